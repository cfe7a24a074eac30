/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "models/load_balance.h"

#define GAP (10 * SIM_US)

static const uint16_t four[] = {10, 11, 12, 13};

static void up(struct load_balancer *lb, struct ecmp *e, enum lb_mode mode, uint32_t seed)
{
	assert_int_equal(ecmp_init(e, 3, seed), 0);
	assert_int_equal(ecmp_set(e, 0, four, 4), 0);
	assert_int_equal(ecmp_set(e, 1, four, 3), 0);
	assert_int_equal(lb_init(lb, mode, 3, seed, GAP), 0);
}

static void down(struct load_balancer *lb, struct ecmp *e)
{
	lb_fini(lb);
	ecmp_fini(e);
}

// Whatever else goes through the switch, a destination's frames take its four ports in turn.
static void spray_takes_each_destinations_ports_in_turn(void **state)
{
	struct load_balancer lb;
	struct ecmp e;

	up(&lb, &e, LB_SPRAY, 5);
	int last = lb_port(&lb, &e, 0, 1, 0), other = lb_port(&lb, &e, 1, 1, 0);
	for (uint32_t i = 0; i < 1000; i++) {
		int port = lb_port(&lb, &e, 0, i, 0);
		assert_int_equal(port, last == 13 ? 10 : last + 1);
		last = port;
		if (i % 3 == 0)
			continue;
		port = lb_port(&lb, &e, 1, i, 0);
		assert_int_equal(port, other == 12 ? 10 : other + 1);
		other = port;
	}
	down(&lb, &e);
}

// 64 switches with seeds of their own: a fair choice among 4 starts 16 at each port, deviation 3.5.
static void spray_starts_at_different_ports_in_different_switches(void **state)
{
	int count[4] = {0};

	for (uint32_t seed = 1; seed <= 64; seed++) {
		struct load_balancer lb;
		struct ecmp e;
		up(&lb, &e, LB_SPRAY, seed * 2654435761u);
		count[lb_port(&lb, &e, 0, 7, 0) - 10]++;
		down(&lb, &e);
	}
	for (int i = 0; i < 4; i++)
		assert_in_range(count[i], 5, 27); // three deviations
}

// 40000 frames of one flow: 10000 on each port, deviation sqrt(40000 x 3/16) = 87.
static void random_spreads_one_flow_evenly(void **state)
{
	struct load_balancer lb;
	struct ecmp e;
	int count[4] = {0};

	up(&lb, &e, LB_RANDOM, 9);
	for (int i = 0; i < 40000; i++)
		count[lb_port(&lb, &e, 0, 1234, i) - 10]++;
	for (int i = 0; i < 4; i++)
		assert_in_range(count[i], 10000 - 5 * 87, 10000 + 5 * 87);
	down(&lb, &e);
}

static void the_seed_alone_decides_what_random_draws(void **state)
{
	struct load_balancer a, b, c;
	struct ecmp e, f, g;
	int differ = 0;

	up(&a, &e, LB_RANDOM, 3);
	up(&b, &f, LB_RANDOM, 3);
	up(&c, &g, LB_RANDOM, 4);
	for (int i = 0; i < 100; i++) {
		int port = lb_port(&a, &e, 0, 1, 0);
		assert_int_equal(port, lb_port(&b, &f, 0, 1, 0));
		differ += port != lb_port(&c, &g, 0, 1, 0);
	}
	assert_true(differ > 50); // 75 are expected of 100 draws among 4
	down(&a, &e);
	down(&b, &f);
	down(&c, &g);
}

// Frames GAP apart belong together; one more picosecond begins a flowlet, and of 1000 flowlets a
// quarter, 250 with a deviation of 13.7, draws the port of the one before.
static void a_flowlet_keeps_its_port_until_a_gap(void **state)
{
	struct load_balancer lb;
	struct ecmp e;
	simtime_t now = 0;
	int stayed = 0;

	up(&lb, &e, LB_FLOWLET, 11);
	int last = lb_port(&lb, &e, 0, 99, now);
	for (int i = 0; i < 1000; i++) {
		for (int j = 0; j < 5; j++)
			assert_int_equal(lb_port(&lb, &e, 0, 99, now += GAP), last);
		int port = lb_port(&lb, &e, 0, 99, now += GAP + 1);
		stayed += port == last;
		last = port;
	}
	assert_in_range(stayed, 250 - 5 * 14, 250 + 5 * 14);
	down(&lb, &e);
}

// Two draws among four ports and the one taken before. If always the last port of the group is
// taken when it is among them, it soon always is.
static void adaptive_offers_random_ports_and_the_last_one_taken(void **state)
{
	struct load_balancer lb;
	struct ecmp e;
	int count[4] = {0};

	up(&lb, &e, LB_ADAPTIVE, 21);
	for (int i = 0; i < 20000; i++) {
		uint16_t ports[LB_CANDIDATES];
		assert_int_equal(lb_candidates(&lb, &e, 0, ports), LB_CANDIDATES);
		count[ports[0] - 10]++;
		count[ports[1] - 10]++;
		unsigned take = ports[0] == 13 ? 0 : ports[1] == 13 ? 1 : 2;
		if (i > 100)
			assert_int_equal(ports[take], 13);
		lb_took(&lb, 0, take);
	}
	for (int i = 0; i < 4; i++) // 40000 draws, as above
		assert_in_range(count[i], 10000 - 5 * 87, 10000 + 5 * 87);
	down(&lb, &e);
}

static void adaptive_has_one_candidate_or_none_where_there_is_no_choice(void **state)
{
	uint16_t ports[LB_CANDIDATES];
	struct load_balancer lb;
	struct ecmp e;

	up(&lb, &e, LB_ADAPTIVE, 1);
	assert_int_equal(lb_candidates(&lb, &e, 2, ports), 0);
	assert_int_equal(lb_candidates(&lb, &e, UINT32_MAX, ports), 0);
	assert_int_equal(ecmp_set(&e, 2, four, 1), 0);
	assert_int_equal(lb_candidates(&lb, &e, 2, ports), 1);
	assert_int_equal(ports[0], 10);
	lb_took(&lb, 2, 0);
	down(&lb, &e);
}

static void a_single_port_or_none_is_no_choice(void **state)
{
	static const uint16_t one[] = {7};

	for (int mode = 0; mode < LB_MODE_COUNT; mode++) {
		struct load_balancer lb;
		struct ecmp e;
		up(&lb, &e, (enum lb_mode)mode, 1);
		assert_int_equal(lb_port(&lb, &e, 2, 1, 0), ECMP_NO_ROUTE);
		assert_int_equal(lb_port(&lb, &e, UINT32_MAX, 1, 0), ECMP_NO_ROUTE);
		assert_int_equal(ecmp_set(&e, 2, one, 1), 0);
		for (int i = 0; i < 10; i++)
			assert_int_equal(lb_port(&lb, &e, 2, 1, i), 7);
		down(&lb, &e);
	}
}

// A route that lost a port while the turn stood at it.
static void a_group_may_shrink_under_spray(void **state)
{
	struct load_balancer lb;
	struct ecmp e;

	up(&lb, &e, LB_SPRAY, 1);
	while (lb_port(&lb, &e, 0, 1, 0) != 12)
		;
	assert_int_equal(ecmp_set(&e, 0, four, 2), 0);
	for (int i = 0; i < 10; i++)
		assert_in_range(lb_port(&lb, &e, 0, 1, 0), 10, 11);
	down(&lb, &e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spray_takes_each_destinations_ports_in_turn),
		cmocka_unit_test(spray_starts_at_different_ports_in_different_switches),
		cmocka_unit_test(random_spreads_one_flow_evenly),
		cmocka_unit_test(the_seed_alone_decides_what_random_draws),
		cmocka_unit_test(a_flowlet_keeps_its_port_until_a_gap),
		cmocka_unit_test(adaptive_offers_random_ports_and_the_last_one_taken),
		cmocka_unit_test(adaptive_has_one_candidate_or_none_where_there_is_no_choice),
		cmocka_unit_test(a_single_port_or_none_is_no_choice),
		cmocka_unit_test(a_group_may_shrink_under_spray),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
