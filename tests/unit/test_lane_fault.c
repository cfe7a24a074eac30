/* SPDX-License-Identifier: BSD-3-Clause */
// When frames arrive that something was done to, on one link of 10 Gb/s (800 ps a byte) and 25 ns.
// A frame of 60 + i bytes takes (84 + i) * 800 ps and is told by its length.

#include "engine_harness.h"
#include "pipelines/lane_fault.h"

#define BYTE  800
#define DELAY (25 * SIM_NS)

static struct engine *e;
static struct probe *a, *b;

static void send_len(struct probe *p, uint32_t kind, uint32_t len)
{
	probe_send(p, 0, probe_frame(p, 0, len));
}

static struct fault_rule rule_of(enum fault_action action)
{
	return (struct fault_rule){
		.action = action,
		.kinds = FAULT_KIND_ANY,
		.opcode = FAULT_NO_OPCODE,
		.qpn = FAULT_ANY,
		.flow = FAULT_ANY,
		.prios = 0xff,
		.until = SIMTIME_NEVER,
	};
}

static void set_up(const struct fault_rule *rules, unsigned n)
{
	struct lane_fault_rule on[4];
	struct lane_fault_config cfg = {.rules = on, .n_rules = n, .seed = 1};

	e = engine_new(1, SIMTIME_NEVER, 500 * SIM_NS);
	a = probe_new(e, 1);
	b = probe_new(e, 1);
	join(e, a, 0, b, 0, 10 * GBPS, DELAY);
	for (unsigned i = 0; i < n; i++)
		on[i] = (struct lane_fault_rule){.rule = &rules[i], .index = i};
	assert_int_equal(lane_fault_create(a->n.ports[0].out, &cfg), 0);
	assert_int_equal(engine_prepare(e), 0);
	assert_false(a->n.ports[0].out->plain);
	a->on_timer = send_len;
}

static uint64_t applied(unsigned rule)
{
	struct lane_fault_result r;

	assert_true(lane_fault_result(a->n.ports[0].out, rule, &r));
	return r.applied;
}

// Frames in = frames out and on the way; the pool is full again afterwards.
static void tear_down(void)
{
	assert_int_equal(a->n.created,
		a->n.dropped + b->n.delivered + b->n.dropped + engine_frames_on_lanes(e));
	engine_drain_lanes(e);
	assert_int_equal(engine_frames_on_lanes(e), 0);
	lane_fault_destroy(a->n.ports[0].out);
	assert_true(a->n.ports[0].out->plain == a->n.ports[0].out->up);
	probe_free(a);
	probe_free(b);
	engine_destroy(e);
	assert_pool_full();
}

static void send_at_once(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		node_timer(&a->n, 0, 0, 60 + i);
}

static void a_lane_that_nothing_matches_is_as_without_rules(void **state)
{
	struct fault_rule r = rule_of(FAULT_DROP);
	simtime_t t = DELAY;

	r.kinds = 1u << FAULT_KIND_CNP;
	set_up(&r, 1);
	send_at_once(10);
	engine_run(e);
	assert_int_equal(b->n_rec, 10);
	for (unsigned i = 0; i < 10; i++) {
		t += (84 + (simtime_t)i) * BYTE;
		assert_int_equal(b->rec[i].at, t);
	}
	tear_down();
}

static void a_dropped_frame_still_takes_its_time_on_the_wire(void **state)
{
	struct fault_rule r = rule_of(FAULT_DROP);

	r.pick = FAULT_NTH;
	r.n = 2;
	set_up(&r, 1);
	send_at_once(3);
	engine_run(e);
	assert_int_equal(b->n_rec, 2);
	assert_int_equal(b->rec[1].len, 62);
	assert_int_equal(b->rec[1].at, (84 + 85 + 86) * BYTE + DELAY);
	assert_int_equal(a->n.ports[0].ctr->drops[DROP_FAULT], 1);
	assert_int_equal(applied(0), 1);
	tear_down();
}

static void all_delayed_alike_keep_order_and_rate(void **state)
{
	struct fault_rule r = rule_of(FAULT_DELAY);
	simtime_t t = DELAY + 3 * SIM_US;

	r.delay = 3 * SIM_US;
	set_up(&r, 1);
	send_at_once(200);
	engine_run(e);
	assert_int_equal(b->n_rec, 200);
	for (unsigned i = 0; i < 200; i++) {
		t += (84 + (simtime_t)i) * BYTE;
		assert_int_equal(b->rec[i].len, 60 + i);
		assert_int_equal(b->rec[i].at, t);
	}
	assert_int_equal(engine_now(e), t); // the run ends with the last of them
	tear_down();
}

// Frame 0 is held for 100 ns from its end at 67.2 ns: until 167.2 ns. Frame 1 ends at 135.2, frame
// 2 at 204.0 (its 68.8 ns of wire are its own already, so it leaves at once); frame 0 comes back
// while 2 is on the wire and leaves behind it at 204.0 + 67.2; frame 3, which ended at 273.6, waits
// for its own wire time: 271.2 + 69.6.
static void a_held_frame_takes_wire_time_when_it_comes_back(void **state)
{
	struct fault_rule r = rule_of(FAULT_DELAY);
	static const struct {
		unsigned len;
		simtime_t at;
	} want[] = {{61, 135200}, {62, 204000}, {60, 271200}, {63, 340800}};

	static const simtime_t sent[] = {0, 67200, 135200, 204000}; // each as the wire is free

	r.pick = FAULT_NTH;
	r.n = 1;
	r.delay = 100 * SIM_NS;
	set_up(&r, 1);
	for (unsigned i = 0; i < 4; i++)
		node_timer(&a->n, sent[i], 0, 60 + i);
	engine_run(e);
	assert_int_equal(b->n_rec, 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(b->rec[i].len, want[i].len);
		assert_int_equal(b->rec[i].at, want[i].at + DELAY);
	}
	tear_down();
}

static void a_reordered_frame_follows_those_that_pass_it(void **state)
{
	struct fault_rule r = rule_of(FAULT_REORDER);
	static const unsigned order[] = {60, 62, 63, 61, 64};

	r.pick = FAULT_NTH;
	r.n = 2;
	r.packets = 2;
	r.delay = SIM_MS;
	set_up(&r, 1);
	send_at_once(5);
	engine_run(e);
	assert_int_equal(b->n_rec, 5);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(b->rec[i].len, order[i]);
	// Behind frame 3, which ended after 84 + 85 + 86 + 87 bytes.
	assert_int_equal(b->rec[3].at, (84 + 85 + 86 + 87 + 85) * BYTE + DELAY);
	tear_down();
}

static void a_reordered_frame_that_nobody_passes_comes_at_last(void **state)
{
	struct fault_rule r = rule_of(FAULT_REORDER);

	r.packets = 1;
	r.delay = 7 * SIM_US;
	set_up(&r, 1);
	node_timer(&a->n, 0, 0, 60);
	engine_run(e);
	assert_int_equal(b->n_rec, 1);
	assert_int_equal(b->rec[0].at, 84 * BYTE + 7 * SIM_US + DELAY);
	tear_down();
}

static void a_duplicate_holds_the_sender_back(void **state)
{
	struct fault_rule r = rule_of(FAULT_DUPLICATE);

	r.pick = FAULT_NTH;
	r.n = 1;
	set_up(&r, 1);
	node_timer(&a->n, 0, 0, 60);
	node_timer(&a->n, 1, 0, 61);
	engine_run(e);
	assert_int_equal(b->n_rec, 3);
	assert_int_equal(b->rec[0].at, 84 * BYTE + DELAY);
	assert_int_equal(b->rec[1].at, 2 * 84 * BYTE + DELAY);
	assert_int_equal(b->rec[1].len, 60);
	assert_int_equal(b->rec[2].at, (2 * 84 + 85) * BYTE + DELAY);
	assert_int_equal(a->n.created, 3);
	tear_down();
}

// Two rules for the same frame: a drop is the only thing done.
static void a_drop_comes_before_all_else(void **state)
{
	struct fault_rule r[] = {rule_of(FAULT_DELAY), rule_of(FAULT_DROP), rule_of(FAULT_DROP)};

	r[0].delay = SIM_US;
	set_up(r, 3);
	send_at_once(1);
	engine_run(e);
	assert_int_equal(b->n_rec, 0);
	assert_int_equal(applied(0), 0);
	assert_int_equal(applied(1), 1);
	assert_int_equal(applied(2), 0);
	tear_down();
}

static void damage_to_what_only_an_fcs_protects_ends_at_the_next_port(void **state)
{
	struct fault_rule r[] = {rule_of(FAULT_FCS), rule_of(FAULT_CORRUPT)};

	r[0].pick = r[1].pick = FAULT_NTH;
	r[0].n = 1;
	r[1].n = 3;
	set_up(r, 2);
	send_at_once(4);
	engine_run(e);
	assert_int_equal(b->n_rec, 2);
	assert_int_equal(b->n.ports[0].ctr->drops[DROP_LANE_ERROR], 2);
	tear_down();
}

static void take_link_down(struct engine *engine, simtime_t now, void *arg)
{
	engine_set_link(engine, &a->n, 0, false);
}

static void what_is_held_is_lost_with_the_link(void **state)
{
	struct fault_rule r = rule_of(FAULT_DELAY);

	r.delay = 10 * SIM_US;
	set_up(&r, 1);
	send_at_once(5);
	assert_int_equal(engine_at(e, 5 * SIM_US, take_link_down, NULL, false), 0);
	engine_run(e);
	assert_int_equal(b->n_rec, 0);
	assert_int_equal(a->n.ports[0].ctr->drops[DROP_LINK_DOWN], 5);
	tear_down();
}

static void stop(struct engine *engine, simtime_t now, void *arg)
{
	engine_request_stop(engine);
}

static void what_is_held_at_the_end_is_accounted_for(void **state)
{
	struct fault_rule r = rule_of(FAULT_DELAY);

	r.delay = SIM_S;
	set_up(&r, 1);
	send_at_once(5);
	assert_int_equal(engine_at(e, 5 * SIM_US, stop, NULL, false), 0);
	assert_int_equal(engine_run(e), ENGINE_END_STOPPED);
	assert_int_equal(engine_frames_on_lanes(e), 5);
	tear_down(); // also: they go back to the pool
}

static void events_tell_of_the_first_and_counts_of_all(void **state)
{
	struct fault_rule r = rule_of(FAULT_DROP);
	unsigned events = 0;

	set_up(&r, 1);
	for (unsigned i = 0; i < 500; i++)
		node_timer(&a->n, i * SIM_US, 0, 60);
	engine_run(e);
	for (uint32_t i = 0; i < a->n.log.n; i++)
		events += a->n.log.ev[i].kind == EV_FAULT;
	assert_in_range(events, 60, 64); // the log of this node holds 64 events of all kinds
	assert_int_equal(applied(0), 500);
	tear_down();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lane_that_nothing_matches_is_as_without_rules),
		cmocka_unit_test(a_dropped_frame_still_takes_its_time_on_the_wire),
		cmocka_unit_test(all_delayed_alike_keep_order_and_rate),
		cmocka_unit_test(a_held_frame_takes_wire_time_when_it_comes_back),
		cmocka_unit_test(a_reordered_frame_follows_those_that_pass_it),
		cmocka_unit_test(a_reordered_frame_that_nobody_passes_comes_at_last),
		cmocka_unit_test(a_duplicate_holds_the_sender_back),
		cmocka_unit_test(a_drop_comes_before_all_else),
		cmocka_unit_test(damage_to_what_only_an_fcs_protects_ends_at_the_next_port),
		cmocka_unit_test(what_is_held_is_lost_with_the_link),
		cmocka_unit_test(what_is_held_at_the_end_is_accounted_for),
		cmocka_unit_test(events_tell_of_the_first_and_counts_of_all),
	};

	return cmocka_run_group_tests(tests, harness_start, harness_stop);
}
