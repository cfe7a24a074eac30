/* SPDX-License-Identifier: BSD-3-Clause */

// The deadlock detector on hand-made graphs.
// PG i of these graphs is node i, port i + 100, priority 3, unless said otherwise; times are in us.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "models/deadlock.h"

#define STUCK_FOR (100 * SIM_US)
#define STORM_FOR (500 * SIM_US)

static struct deadlock *start(struct deadlock *d)
{
	struct deadlock_config cfg = {
		.max_pgs = 64, .max_waits = 256, .stuck_for = STUCK_FOR, .storm_for = STORM_FOR};

	assert_int_equal(deadlock_init(d, &cfg), 0);
	return d;
}

static struct dl_pg pg(uint32_t i)
{
	return (struct dl_pg){.node = i, .port = (uint16_t)(i + 100), .prio = 3};
}

static void add_pg(struct deadlock *d, uint32_t i, int since_us)
{
	deadlock_add_pg(
		d, &(struct dl_asserting){
			   .pg = pg(i), .xoff_since = since_us * SIM_US, .bytes = 1000 * (i + 1)});
}

static void add_host(struct deadlock *d, uint32_t i, int since_us)
{
	deadlock_add_pg(d,
		&(struct dl_asserting){.pg = pg(i), .host = true, .xoff_since = since_us * SIM_US});
}

static void add_wait(
	struct deadlock *d, uint32_t from, uint32_t to, int paused_since_us, uint64_t moved)
{
	deadlock_add_wait(d, &(struct dl_wait){.from = pg(from),
				     .to = pg(to),
				     .egress_port = (uint16_t)(200 + to),
				     .bytes = 500,
				     .moved = moved,
				     .paused_since = paused_since_us * SIM_US});
}

// Ring 0 -> 1 -> .. -> n-1 -> 0 whose PG i crossed XOFF at 10 + i us and whose egress toward it was
// paused 1 us later.
static void add_ring(struct deadlock *d, uint32_t first, uint32_t n, uint64_t moved)
{
	for (uint32_t i = 0; i < n; i++)
		add_pg(d, first + i, (int)(10 + i));
	for (uint32_t i = 0; i < n; i++) {
		uint32_t next = (i + 1) % n;
		add_wait(d, first + i, first + next, (int)(11 + next), moved);
	}
}

static void ring_of_three_is_a_deadlock(void **state)
{
	struct deadlock d;

	start(&d);
	// The last PG (2) crosses XOFF at 12 us and pauses PG 1's egress at 13 us: formed at 13 us.
	deadlock_begin(&d, 112 * SIM_US);
	add_ring(&d, 0, 3, 7);
	assert_int_equal(deadlock_end(&d), 0); // stuck for 99 us
	deadlock_begin(&d, 113 * SIM_US);
	add_ring(&d, 0, 3, 7);
	assert_int_equal(deadlock_end(&d), 1); // 100 us
	const struct deadlock_report *r = &d.reports[0];
	assert_int_equal(r->detected_at, 113 * SIM_US);
	assert_int_equal(r->formed_at, 13 * SIM_US);
	assert_true(r->ended_at == SIMTIME_NEVER);
	assert_int_equal(r->n_members, 3);
	assert_int_equal(r->n_listed, 3);
	assert_int_equal(r->n_stuck, 3);
	assert_int_equal(r->n_behind, 0);
	assert_int_equal(r->trigger, 0); // 10 us is the earliest XOFF
	for (uint32_t i = 0; i < 3; i++) {
		const struct dl_member *m = &r->members[i];
		uint32_t next = (i + 1) % 3;
		assert_int_equal(m->pg.node, i);
		assert_int_equal(m->pg.port, 100 + i);
		assert_int_equal(m->pg.prio, 3);
		assert_int_equal(m->egress_port, 200 + next);
		assert_int_equal(m->xoff_since, (10 + i) * SIM_US);
		assert_int_equal(m->paused_since, (11 + next) * SIM_US);
		assert_int_equal(m->bytes, 1000 * (i + 1));
		assert_int_equal(m->waiting_bytes, 500);
	}
	deadlock_fini(&d);
}

static void order_of_adding_does_not_matter(void **state)
{
	struct deadlock a, b;

	start(&a);
	start(&b);
	deadlock_begin(&a, 200 * SIM_US);
	add_ring(&a, 0, 3, 7);
	assert_int_equal(deadlock_end(&a), 1);
	deadlock_begin(&b, 200 * SIM_US);
	add_wait(&b, 2, 0, 11, 7);
	add_wait(&b, 0, 1, 12, 7);
	add_pg(&b, 2, 12);
	add_pg(&b, 0, 10);
	add_wait(&b, 1, 2, 13, 7);
	add_pg(&b, 1, 11);
	assert_int_equal(deadlock_end(&b), 1);
	assert_memory_equal(&a.reports[0], &b.reports[0], sizeof(a.reports[0]));
	deadlock_fini(&a);
	deadlock_fini(&b);
}

static void lasting_deadlock_is_reported_once_and_its_end_noted(void **state)
{
	struct deadlock d;

	start(&d);
	for (int t = 150; t <= 1000; t += 50) { // the load may long have ended: nothing changes
		deadlock_begin(&d, t * SIM_US);
		add_ring(&d, 0, 3, 7);
		assert_int_equal(deadlock_end(&d), t == 150);
	}
	assert_true(d.reports[0].ended_at == SIMTIME_NEVER);
	deadlock_begin(&d, 1050 * SIM_US); // someone broke it: PG 1 sent XON
	add_pg(&d, 0, 10);
	add_pg(&d, 2, 12);
	add_wait(&d, 2, 0, 11, 7);
	assert_int_equal(deadlock_end(&d), 0);
	assert_int_equal(d.reports[0].ended_at, 1050 * SIM_US);
	assert_true(deadlock_found(&d));
	for (int t = 1100; t <= 1200; t += 50) { // frames moved, and it forms anew
		deadlock_begin(&d, t * SIM_US);
		add_ring(&d, 0, 3, 9);
		assert_int_equal(deadlock_end(&d), t == 1200);
	}
	assert_int_equal(d.n_reports, 2);
	deadlock_fini(&d);
}

static void tree_is_no_deadlock(void **state)
{
	struct deadlock d;

	start(&d);
	// 1 and 2 wait for 0, which drains to a slow host; 3 waits for 1. Paused for ages.
	deadlock_begin(&d, 10000 * SIM_US);
	for (uint32_t i = 0; i < 4; i++)
		add_pg(&d, i, 10);
	add_wait(&d, 1, 0, 11, 1);
	add_wait(&d, 2, 0, 11, 1);
	add_wait(&d, 3, 1, 11, 1);
	assert_int_equal(deadlock_end(&d), 0);
	assert_false(deadlock_found(&d));
	assert_int_equal(d.n_storms, 0);
	deadlock_fini(&d);
}

static void long_but_moving_pause_is_no_deadlock(void **state)
{
	struct deadlock d;

	start(&d);
	// The ring pauses again and again (paused for 150 us at each look) but frames leave
	// between.
	for (int t = 1000; t < 5000; t += 50) {
		deadlock_begin(&d, t * SIM_US);
		for (uint32_t i = 0; i < 3; i++)
			add_pg(&d, i, 20);
		for (uint32_t i = 0; i < 3; i++)
			add_wait(&d, i, (i + 1) % 3, t - 90, (uint64_t)t);
		assert_int_equal(deadlock_end(&d), 0);
	}
	deadlock_fini(&d);
}

static void cycle_with_one_moving_member_is_no_deadlock(void **state)
{
	struct deadlock d;

	start(&d);
	// Paused since 20 us without a break as far as we know, yet PG 1's egress sends frames.
	for (int t = 50; t < 2000; t += 50) {
		deadlock_begin(&d, t * SIM_US);
		for (uint32_t i = 0; i < 3; i++) {
			add_pg(&d, i, 20);
			add_wait(&d, i, (i + 1) % 3, 20, i == 1 ? (uint64_t)t : 5);
		}
		assert_int_equal(deadlock_end(&d), 0);
	}
	deadlock_fini(&d);
}

static void cycle_forms_when_its_last_member_stops_moving(void **state)
{
	struct deadlock d;
	unsigned found = 0;

	start(&d);
	// As above, but PG 1's egress stops after the look at 400 us.
	for (int t = 50; t <= 500; t += 50) {
		deadlock_begin(&d, t * SIM_US);
		for (uint32_t i = 0; i < 3; i++) {
			add_pg(&d, i, 20);
			add_wait(&d, i, (i + 1) % 3, 20, i == 1 && t < 400 ? (uint64_t)t : 400);
		}
		found += deadlock_end(&d);
		assert_int_equal(found, t == 500);
	}
	assert_int_equal(d.reports[0].formed_at, 400 * SIM_US);
	assert_int_equal(d.reports[0].detected_at, 500 * SIM_US);
	deadlock_fini(&d);
}

static void pg_that_would_drain_below_xon_is_not_stuck(void **state)
{
	struct deadlock d;

	start(&d);
	for (int again = 0; again < 2; again++) {
		deadlock_begin(&d, 1000 * SIM_US);
		add_pg(&d, 0, 10);
		add_pg(&d, 1, 10);
		// PG 2 holds 100,000 bytes of which only 500 wait in the cycle; the rest leave by
		// other egresses. With XON at 500 it will resume its upstream, with 499 it cannot.
		deadlock_add_pg(&d, &(struct dl_asserting){.pg = pg(2),
					    .xoff_since = 10 * SIM_US,
					    .bytes = 100000,
					    .xon_bytes = again ? 499 : 500});
		for (uint32_t i = 0; i < 3; i++)
			add_wait(&d, i, (i + 1) % 3, 11, 1);
		assert_int_equal(deadlock_end(&d), again);
	}
	deadlock_fini(&d);
}

static void two_disjoint_cycles_are_two_deadlocks(void **state)
{
	struct deadlock d;

	start(&d);
	deadlock_begin(&d, 1000 * SIM_US);
	add_ring(&d, 10, 4, 1);
	add_ring(&d, 0, 3, 1);
	add_pg(&d, 20, 50); // waits for the first ring only
	add_wait(&d, 20, 11, 60, 1);
	assert_int_equal(deadlock_end(&d), 2);
	assert_int_equal(d.reports[0].n_members, 3);
	assert_int_equal(d.reports[0].members[0].pg.node, 0);
	assert_int_equal(d.reports[0].n_behind, 0);
	assert_int_equal(d.reports[1].n_members, 4);
	assert_int_equal(d.reports[1].members[0].pg.node, 10);
	assert_int_equal(d.reports[1].n_behind, 1);
	deadlock_fini(&d);
}

static void routing_loop_is_a_cycle_of_two(void **state)
{
	struct deadlock d;

	start(&d);
	deadlock_begin(&d, 1000 * SIM_US);
	add_ring(&d, 0, 2, 1);
	assert_int_equal(deadlock_end(&d), 1);
	assert_int_equal(d.reports[0].n_members, 2);
	deadlock_fini(&d);
}

static void shortest_cycle_of_a_knot_is_reported(void **state)
{
	struct deadlock d;

	start(&d);
	// Ring of five with a chord 3 -> 1: shortest cycle 1 -> 2 -> 3 -> 1.
	deadlock_begin(&d, 1000 * SIM_US);
	add_ring(&d, 0, 5, 1);
	add_wait(&d, 3, 1, 12, 1);
	assert_int_equal(deadlock_end(&d), 1);
	assert_int_equal(d.reports[0].n_members, 3);
	assert_int_equal(d.reports[0].members[0].pg.node, 1);
	assert_int_equal(d.reports[0].members[2].pg.node, 3);
	assert_int_equal(d.reports[0].n_stuck, 5);
	deadlock_fini(&d);
}

static void priorities_do_not_mix(void **state)
{
	struct deadlock d;

	start(&d);
	// 0 -> 1 on priority 3, 1 -> 0 on priority 4: no cycle.
	deadlock_begin(&d, 1000 * SIM_US);
	for (uint32_t i = 0; i < 2; i++) {
		struct dl_asserting a = {.pg = pg(i), .xoff_since = SIM_US, .bytes = 1};
		deadlock_add_pg(&d, &a);
		a.pg.prio = 4;
		deadlock_add_pg(&d, &a);
	}
	add_wait(&d, 0, 1, 10, 1);
	struct dl_wait back = {.from = pg(1), .to = pg(0), .bytes = 1, .paused_since = SIM_US};
	back.from.prio = back.to.prio = 4;
	deadlock_add_wait(&d, &back);
	assert_int_equal(deadlock_end(&d), 0);
	deadlock_fini(&d);
}

static void two_queues_of_one_priority_move_together(void **state)
{
	struct deadlock d;

	start(&d);
	for (int t = 50; t <= 300; t += 50) {
		deadlock_begin(&d, t * SIM_US);
		add_ring(&d, 0, 2, 1);
		add_wait(&d, 0, 1, 11, (uint64_t)t); // second queue toward PG 1 still moves
		assert_int_equal(deadlock_end(&d), 0);
	}
	deadlock_fini(&d);
}

static void nic_pause_storm_is_a_tree(void **state)
{
	struct deadlock d;

	start(&d);
	// Host 9 pauses from 100 us on; 0 waits for it, 1 and 2 for 0, 3 for 2.
	for (int t = 500; t <= 900; t += 100) {
		deadlock_begin(&d, t * SIM_US);
		add_host(&d, 9, 100);
		for (uint32_t i = 0; i < 4; i++)
			add_pg(&d, i, 110);
		add_wait(&d, 0, 9, 101, 1);
		add_wait(&d, 1, 0, 111, 1);
		add_wait(&d, 2, 0, 111, 1);
		add_wait(&d, 3, 2, 112, 1);
		assert_int_equal(deadlock_end(&d), 0);
		assert_int_equal(d.n_storms, t >= 600);
	}
	assert_int_equal(d.storms[0].root.node, 9);
	assert_int_equal(d.storms[0].since, 100 * SIM_US);
	assert_int_equal(d.storms[0].detected_at, 600 * SIM_US);
	assert_int_equal(d.storms[0].n_waiting, 4);
	assert_int_equal(d.storms[0].depth, 3);
	assert_true(d.storms[0].ended_at == SIMTIME_NEVER);
	deadlock_begin(&d, 1000 * SIM_US);
	assert_int_equal(deadlock_end(&d), 0);
	assert_int_equal(d.storms[0].ended_at, 1000 * SIM_US);
	assert_int_equal(d.n_storms, 1);
	assert_false(deadlock_found(&d));
	deadlock_fini(&d);
}

// A slow real host pauses its switch for long, again and again: each is a storm, none a deadlock.
static void storms_beyond_the_list_are_no_deadlock(void **state)
{
	struct deadlock d;

	start(&d);
	for (int i = 0; i < DEADLOCK_STORMS_MAX + 3; i++) {
		deadlock_begin(&d, (1000 * i + 999) * SIM_US);
		add_host(&d, 9, 1000 * i);
		assert_int_equal(deadlock_end(&d), 0);
	}
	assert_int_equal(d.n_storms, DEADLOCK_STORMS_MAX);
	assert_int_equal(d.lost_reports, 3);
	assert_false(deadlock_found(&d));
	deadlock_fini(&d);
}

static void ring_held_only_by_a_storm_is_no_deadlock(void **state)
{
	struct deadlock d;

	start(&d);
	// The ring's PG 1 has 500 bytes waiting in it and 5000 for a storming host, XON at 1000:
	// when the storm ends the 5000 leave, PG 1 resumes PG 0, and the ring turns again.
	deadlock_begin(&d, 1000 * SIM_US);
	add_host(&d, 9, 5);
	add_pg(&d, 0, 10);
	deadlock_add_pg(&d,
		&(struct dl_asserting){
			.pg = pg(1), .xoff_since = 10 * SIM_US, .bytes = 5500, .xon_bytes = 1000});
	add_wait(&d, 0, 1, 11, 1);
	add_wait(&d, 1, 0, 11, 1);
	deadlock_add_wait(
		&d, &(struct dl_wait){
			    .from = pg(1), .to = pg(9), .bytes = 5000, .paused_since = 6 * SIM_US});
	assert_int_equal(deadlock_end(&d), 0);
	assert_int_equal(d.n_storms, 1);
	deadlock_fini(&d);
}

static void snapshot_larger_than_its_bounds_is_counted(void **state)
{
	struct deadlock_config cfg = {
		.max_pgs = 2, .max_waits = 1, .stuck_for = STUCK_FOR, .storm_for = STORM_FOR};
	struct deadlock d;

	assert_int_equal(deadlock_init(&d, &cfg), 0);
	deadlock_begin(&d, 1000 * SIM_US);
	add_ring(&d, 0, 3, 1);
	assert_int_equal(deadlock_end(&d), 0);
	assert_int_equal(d.lost, 1 + 2); // one PG, two waits
	deadlock_fini(&d);
	cfg.stuck_for = 0;
	assert_int_equal(deadlock_init(&d, &cfg), -22); // EINVAL
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ring_of_three_is_a_deadlock),
		cmocka_unit_test(order_of_adding_does_not_matter),
		cmocka_unit_test(lasting_deadlock_is_reported_once_and_its_end_noted),
		cmocka_unit_test(tree_is_no_deadlock),
		cmocka_unit_test(long_but_moving_pause_is_no_deadlock),
		cmocka_unit_test(cycle_with_one_moving_member_is_no_deadlock),
		cmocka_unit_test(cycle_forms_when_its_last_member_stops_moving),
		cmocka_unit_test(pg_that_would_drain_below_xon_is_not_stuck),
		cmocka_unit_test(two_disjoint_cycles_are_two_deadlocks),
		cmocka_unit_test(routing_loop_is_a_cycle_of_two),
		cmocka_unit_test(shortest_cycle_of_a_knot_is_reported),
		cmocka_unit_test(priorities_do_not_mix),
		cmocka_unit_test(two_queues_of_one_priority_move_together),
		cmocka_unit_test(nic_pause_storm_is_a_tree),
		cmocka_unit_test(storms_beyond_the_list_are_no_deadlock),
		cmocka_unit_test(ring_held_only_by_a_storm_is_no_deadlock),
		cmocka_unit_test(snapshot_larger_than_its_bounds_is_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
