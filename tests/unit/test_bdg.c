/* SPDX-License-Identifier: BSD-3-Clause */

// The static buffer-dependency graph on hand-made fabrics: rings of switches, each with port 0 to a
// host, port 1 from the switch before and port 2 to the next; and one upper switch with two lower
// ones. All traffic is in PG 3 and queue 3 unless said otherwise.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "models/bdg.h"

enum { HOST, PREV, NEXT, PORTS };
#define RING_MAX 70

static const struct bdg_class one_class[] = {{.pg = 3, .queue = 3, .bounced = 0}};

struct ring {
	struct bdg_port port[RING_MAX][PORTS];
	struct bdg_switch sw[RING_MAX];
	struct bdg_next next[RING_MAX];
	struct bdg b;
	uint32_t n;
};

static const uint16_t to_host[] = {HOST}, to_next[] = {NEXT};

static void start_ring(struct ring *r, uint32_t n)
{
	memset(r, 0, sizeof(*r));
	r->n = n;
	for (uint32_t i = 0; i < n; i++) {
		r->port[i][HOST] = (struct bdg_port){.peer = BDG_NONE, .lossless = 1 << 3};
		r->port[i][PREV] = (struct bdg_port){
			.peer = (i + n - 1) % n, .peer_port = NEXT, .lossless = 1 << 3};
		r->port[i][NEXT] = (struct bdg_port){
			.peer = (i + 1) % n, .peer_port = PREV, .lossless = 1 << 3};
		r->port[i][PREV].gates[3] = r->port[i][NEXT].gates[3] = 1 << 3;
		r->sw[i] = (struct bdg_switch){
			.n_ports = PORTS, .port = r->port[i], .class = one_class};
	}
	struct bdg_fabric f = {.n_switches = n, .sw = r->sw, .n_marks = 1};
	assert_int_equal(bdg_init(&r->b, &f), 0);
}

// Traffic from the host of `from` clockwise to that of `to`.
static void flow(struct ring *r, uint32_t from, uint32_t to)
{
	for (uint32_t i = 0; i < r->n; i++)
		r->next[i] = (struct bdg_next){i == to ? to_host : to_next, 1};
	bdg_source(&r->b, from, HOST, 0);
	bdg_spread(&r->b, r->next);
}

static void flows_that_close_a_ring_can_deadlock(void **state)
{
	struct ring r;

	start_ring(&r, 3);
	flow(&r, 0, 2); // 0 -> 1 -> 2: 0's host port waits for 1, 1 for 2
	flow(&r, 1, 0);
	flow(&r, 2, 1);
	assert_int_equal(bdg_solve(&r.b), 0);
	// Ingress from the hosts: 3, each waits for the next switch; from before: 3, likewise.
	assert_int_equal(r.b.n_vertices, 6);
	assert_int_equal(r.b.n_edges, 6);
	assert_int_equal(r.b.n_cycles, 1);
	assert_int_equal(r.b.cycle[0].n, 3);
	assert_int_equal(r.b.cycle[0].n_listed, 3);
	assert_int_equal(r.b.cycle[0].component, 3);
	for (uint32_t i = 0; i < 3; i++) {
		const struct bdg_hop *h = &r.b.cycle[0].hop[i];
		assert_int_equal(h->v.sw, i);
		assert_int_equal(h->v.port, PREV);
		assert_int_equal(h->v.pg, 3);
		assert_int_equal(h->egress, NEXT);
	}
	bdg_fini(&r.b);
}

static void flows_that_leave_a_gap_cannot(void **state)
{
	struct ring r;

	start_ring(&r, 3);
	flow(&r, 0, 2);
	flow(&r, 1, 0);
	assert_int_equal(bdg_solve(&r.b), 0);
	assert_int_equal(r.b.n_cycles, 0);
	// (0 host), (1 prev), (1 host), (2 prev) wait; (2 prev) waits for (0 prev), which does not.
	assert_int_equal(r.b.n_vertices, 4);
	assert_int_equal(r.b.n_edges, 4);
	bdg_clear(&r.b);
	assert_int_equal(bdg_solve(&r.b), 0);
	assert_int_equal(r.b.n_edges, 0);
	bdg_fini(&r.b);
}

static void traffic_of_two_situations_adds_up(void **state)
{
	struct ring r, other;

	start_ring(&r, 3);
	start_ring(&other, 3);
	flow(&r, 0, 2);
	flow(&r, 1, 0);
	flow(&other, 2, 1);
	bdg_merge(&r.b, &other.b);
	assert_int_equal(bdg_solve(&r.b), 0);
	assert_int_equal(r.b.n_cycles, 1);
	bdg_fini(&r.b);
	bdg_fini(&other.b);
}

static void a_loop_of_routes_is_a_cycle_and_ends(void **state)
{
	struct ring r;

	start_ring(&r, 2);
	r.next[0] = r.next[1] = (struct bdg_next){to_next, 1};
	bdg_source(&r.b, 0, HOST, 0);
	bdg_spread(&r.b, r.next);
	assert_int_equal(bdg_solve(&r.b), 0);
	assert_int_equal(r.b.n_cycles, 1);
	assert_int_equal(r.b.cycle[0].n, 2);
	bdg_fini(&r.b);
}

static void a_port_without_pfc_or_link_breaks_the_cycle(void **state)
{
	struct ring r;

	start_ring(&r, 4);
	for (uint32_t i = 0; i < 4; i++)
		flow(&r, i, (i + 2) % 4);
	assert_int_equal(bdg_solve(&r.b), 0);
	assert_int_equal(r.b.n_cycles, 1);
	r.port[2][NEXT].peer = BDG_NONE; // the link is down
	assert_int_equal(bdg_solve(&r.b), 0);
	assert_int_equal(r.b.n_cycles, 0);
	r.port[2][NEXT].peer = 3;
	r.port[2][PREV].lossless = 0; // switch 1 is not paused
	assert_int_equal(bdg_solve(&r.b), 0);
	assert_int_equal(r.b.n_cycles, 0);
	bdg_fini(&r.b);
}

static void long_cycles_are_measured_and_cut_short(void **state)
{
	struct ring r;

	start_ring(&r, RING_MAX);
	for (uint32_t i = 0; i < RING_MAX; i++)
		flow(&r, i, (i + 2) % RING_MAX);
	assert_int_equal(bdg_solve(&r.b), 0);
	assert_int_equal(r.b.cycle[0].n, RING_MAX);
	assert_int_equal(r.b.cycle[0].n_listed, BDG_LENGTH_MAX);
	assert_int_equal(r.b.cycle[0].component, RING_MAX);
	bdg_fini(&r.b);
}

// An upper switch 0 (ports 0, 1 to lower switches 1, 2) between two lower ones (port 0 host, port 1
// up), whose bounced traffic goes up again: the dual-ToR case. Marks 0 (PG 3) and 1 (PG 2).
struct dual {
	struct bdg_port port[3][2];
	struct bdg_switch sw[3];
	struct bdg b;
};

static void start_dual(struct dual *d, const struct bdg_class *lower, bool by_mark)
{
	static const struct bdg_class upper[] = {{3, 3, 0}, {2, 2, 1}};
	const uint8_t lossless = 1 << 3 | 1 << 2;

	memset(d, 0, sizeof(*d));
	for (uint16_t i = 0; i < 2; i++) {
		d->port[0][i] =
			(struct bdg_port){.peer = i + 1u, .peer_port = 1, .lossless = lossless};
		d->port[i + 1][0] = (struct bdg_port){.peer = BDG_NONE, .lossless = lossless};
		d->port[i + 1][1] = (struct bdg_port){
			.peer = 0, .peer_port = i, .up = true, .lossless = lossless};
		for (unsigned q = 2; q <= 3; q++)
			d->port[0][i].gates[q] = d->port[i + 1][1].gates[q] = (uint8_t)(1 << q);
	}
	for (uint32_t i = 0; i < 3; i++)
		d->sw[i] = (struct bdg_switch){
			.n_ports = 2, .port = d->port[i], .class = i == 0 ? upper : lower};
	struct bdg_fabric f = {.n_switches = 3, .sw = d->sw, .n_marks = 2, .by_mark = by_mark};
	assert_int_equal(bdg_init(&d->b, &f), 0);
}

// What came to each lower switch from above goes up again, for the other one's host, whose bounced
// traffic has mark 1 where that matters.
static void bounce_both_ways(struct dual *d)
{
	static const uint16_t zero[] = {0}, one[] = {1};
	// The upper switch sends what is for the host of 2 by port 1, for that of 1 by port 0.
	const struct bdg_next for_2[] = {{one, 1}, {one, 1}, {zero, 1}};
	const struct bdg_next for_1[] = {{zero, 1}, {zero, 1}, {one, 1}};

	bdg_source(&d->b, 0, 0, 0);
	bdg_spread(&d->b, for_2);
	bdg_source(&d->b, 0, 1, 0);
	bdg_spread(&d->b, for_1);
	bdg_source(&d->b, 0, 0, 1); // bounced, on its way to its host
	bdg_spread(&d->b, for_2);
	bdg_source(&d->b, 0, 1, 1);
	bdg_spread(&d->b, for_1);
	// the bounce itself: traffic from the upper switch's port goes up again
	const struct bdg_next up_1[] = {{zero, 0}, {one, 1}, {one, 1}};
	bdg_source(&d->b, 1, 1, 0);
	bdg_spread(&d->b, up_1);
	bdg_source(&d->b, 2, 1, 0);
	bdg_spread(&d->b, up_1);
}

static void bounces_both_ways_close_a_cycle_of_four(void **state)
{
	static const struct bdg_class lower[] = {{3, 3, 0}, {2, 2, 1}};
	struct dual d;
	struct bdg_bounce bounce;
	uint64_t n = 0;

	start_dual(&d, lower, false);
	bounce_both_ways(&d);
	assert_int_equal(bdg_solve(&d.b), 0);
	assert_int_equal(d.b.n_cycles, 2); // in PG 2 likewise
	// 0 port 0 -> 2 port 1 -> 0 port 1 -> 1 port 1 -> 0 port 0
	assert_int_equal(d.b.cycle[0].n, 4);
	assert_true(bdg_next_bounce(&d.b, &n, &bounce));
	assert_int_equal(bounce.sw, 1);
	assert_int_equal(bounce.in, 1);
	assert_int_equal(bounce.out, 1);
	assert_true(bdg_next_bounce(&d.b, &n, &bounce));
	assert_int_equal(bounce.sw, 2);
	assert_false(bdg_next_bounce(&d.b, &n, &bounce));
	bdg_fini(&d.b);
}

static void another_priority_for_bounced_traffic_opens_the_cycle(void **state)
{
	static const struct bdg_class lower[] = {{3, 3, 1}, {2, 2, 1}};
	struct dual d;

	start_dual(&d, lower, true);
	bounce_both_ways(&d);
	assert_int_equal(bdg_solve(&d.b), 0);
	assert_int_equal(d.b.n_cycles, 0);
	bdg_fini(&d.b);
}

static void what_bounces_twice_needs_a_third_priority(void **state)
{
	// As above, but traffic is already of the second mark when it bounces.
	static const struct bdg_class lower[] = {{3, 3, 1}, {2, 2, 1}};
	static const uint16_t zero[] = {0}, one[] = {1};
	const struct bdg_next for_2[] = {{one, 1}, {one, 1}, {one, 1}};
	const struct bdg_next for_1[] = {{zero, 1}, {one, 1}, {one, 1}};
	struct dual d;

	start_dual(&d, lower, true);
	bdg_source(&d.b, 0, 0, 1);
	bdg_spread(&d.b, for_2);
	bdg_source(&d.b, 0, 1, 1);
	bdg_spread(&d.b, for_1);
	assert_int_equal(bdg_solve(&d.b), 0);
	assert_true(d.b.n_cycles > 0);
	for (uint32_t i = 0; i < d.b.cycle[0].n_listed; i++)
		assert_int_equal(d.b.cycle[0].hop[i].v.pg, 2);
	bdg_fini(&d.b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flows_that_close_a_ring_can_deadlock),
		cmocka_unit_test(flows_that_leave_a_gap_cannot),
		cmocka_unit_test(traffic_of_two_situations_adds_up),
		cmocka_unit_test(a_loop_of_routes_is_a_cycle_and_ends),
		cmocka_unit_test(a_port_without_pfc_or_link_breaks_the_cycle),
		cmocka_unit_test(long_cycles_are_measured_and_cut_short),
		cmocka_unit_test(bounces_both_ways_close_a_cycle_of_four),
		cmocka_unit_test(another_priority_for_bounced_traffic_opens_the_cycle),
		cmocka_unit_test(what_bounces_twice_needs_a_third_priority),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
