/* SPDX-License-Identifier: BSD-3-Clause */
// When tasks run, what ends a run, and what a link going down does, under the virtual clock.

#include <pthread.h>
#include <unistd.h>

#include "engine_harness.h"

#define DELAY (600 * SIM_NS)

static struct engine *e;
static struct probe *a, *b;

static void two_nodes(void)
{
	a = probe_new(e, 2);
	b = probe_new(e, 2);
	join(e, a, 0, b, 0, 100 * GBPS, DELAY);
	join(e, a, 1, b, 1, 100 * GBPS, DELAY);
}

// Two nodes, each its own group; on two lcores each its own lcore. (Of weight two: with one port
// each they would share an lcore.)
static void set_up(unsigned n_lcores, simtime_t duration)
{
	e = engine_new(n_lcores, duration, 500 * SIM_NS);
	two_nodes();
	assert_int_equal(engine_prepare(e), 0);
	assert_int_equal(engine_shape(e).n_groups, 2);
	assert_int_equal(engine_shape(e).window, DELAY);
	assert_int_equal(engine_shape(e).n_remote_lanes, n_lcores == 2 ? 4 : 0);
}

static void tear_down(void)
{
	engine_drain_lanes(e);
	probe_free(a);
	probe_free(b);
	engine_destroy(e);
	assert_pool_full();
}

// ---- the order of things
// --------------------------------------------------------------------------

static struct record trace[256];
static unsigned n_trace;

static void note(simtime_t at, unsigned what)
{
	assert_true(n_trace < 256);
	trace[n_trace++] = (struct record){.at = at, .port = what};
}

static void task_note(struct engine *eng, simtime_t now, void *arg)
{
	note(now, (unsigned)(uintptr_t)arg);
	probe_check(a, engine_now(eng) == now);
}

static void timer_note(struct probe *p, uint32_t kind, uint32_t arg)
{
	note(p->n.now, kind);
}

static void *num(unsigned i)
{
	return (void *)(uintptr_t)i;
}

static void assert_trace(unsigned n, const struct record *want)
{
	assert_int_equal(n_trace, n);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(trace[i].at, want[i].at);
		assert_int_equal(trace[i].port, want[i].port);
	}
	n_trace = 0;
}

// Only node a has events, so the trace is written by one thread at a time.
static void a_task_runs_before_the_events_of_its_instant_and_after_all_earlier_ones(void **state)
{
	for (unsigned lcores = 1; lcores <= 2; lcores++) {
		set_up(lcores, SIMTIME_NEVER);
		a->on_timer = timer_note;
		node_timer(&a->n, 99, 1, 0);
		node_timer(&a->n, 100, 2, 0);
		node_timer(&a->n, 101, 3, 0);
		node_timer(&a->n, 5 * SIM_US, 4, 0);
		engine_at(e, 5 * SIM_US, task_note, num(12), false);
		engine_at(e, 100, task_note, num(10), false);
		engine_at(e, 100, task_note, num(11), true); // same time: in order of setting
		engine_at(e, 0, task_note, num(9), false);
		engine_at(e, 5 * SIM_US - 1, task_note, num(13), false);
		assert_int_equal(engine_run(e), ENGINE_END_IDLE);
		const struct record want[] = {{.at = 0, .port = 9}, {.at = 99, .port = 1},
			{.at = 100, .port = 10}, {.at = 100, .port = 11}, {.at = 100, .port = 2},
			{.at = 101, .port = 3}, {.at = 5 * SIM_US - 1, .port = 13},
			{.at = 5 * SIM_US, .port = 12}, {.at = 5 * SIM_US, .port = 4}};
		assert_trace(9, want);
		tear_down();
	}
}

static void task_sets_task_in_the_past(struct engine *eng, simtime_t now, void *arg)
{
	note(now, 1);
	engine_at(eng, now - 50, task_note, num(2), false);
	engine_at(eng, now, task_note, num(3), false);
}

static void a_task_set_in_the_past_runs_now(void **state)
{
	set_up(1, SIMTIME_NEVER);
	engine_at(e, 100, task_sets_task_in_the_past, NULL, false);
	engine_run(e);
	const struct record want[] = {
		{.at = 100, .port = 1}, {.at = 100, .port = 2}, {.at = 100, .port = 3}};
	assert_trace(3, want);
	assert_int_equal(engine_now(e), 100);
	tear_down();
}

static void daemon_tick(struct engine *eng, simtime_t now, void *arg)
{
	++*(unsigned *)arg;
	engine_at(eng, now + SIM_US, daemon_tick, arg, true);
}

// Ticks at 0, 1, ..., 10 us; the event at 10.5 us is the last; the tick at 11 us does not happen.
static void a_daemon_does_not_keep_a_run_alive(void **state)
{
	for (unsigned lcores = 1; lcores <= 2; lcores++) {
		unsigned ticks = 0;
		set_up(lcores, SIM_S);
		a->on_timer = timer_note;
		node_timer(&a->n, 10 * SIM_US + 500 * SIM_NS, 1, 0);
		engine_at(e, 0, daemon_tick, &ticks, true);
		assert_int_equal(engine_run(e), ENGINE_END_IDLE);
		assert_int_equal(ticks, 11);
		// A timer and a daemon alone are nothing that happened.
		assert_int_equal(engine_now(e), 0);
		n_trace = 0;
		tear_down();
	}
}

static void a_foreground_task_does(void **state)
{
	unsigned ticks = 0;

	set_up(2, SIM_S);
	engine_at(e, 0, daemon_tick, &ticks, true);
	engine_at(e, 10 * SIM_US, task_note, num(1), false);
	assert_int_equal(engine_run(e), ENGINE_END_IDLE);
	assert_int_equal(engine_now(e), 10 * SIM_US);
	assert_int_equal(ticks, 11); // 0 to 10 us: that of 10 us comes after the task
	n_trace = 0;
	tear_down();
}

// ---- frames sent outside windows
// ------------------------------------------------------------------

static void send_60(struct probe *p)
{
	probe_send(p, 0, probe_frame(p, 0, 60));
}

static void arrive_on_time(struct probe *p, unsigned port, struct frame *f)
{
	probe_check(p, (uint64_t)p->n.now == f->note);
	node_deliver(&p->n, port, f);
}

// 84 * 80 ps + 600 ns. Nothing else happens: the frame alone keeps the run going.
static void a_frame_sent_at_start_arrives(void **state)
{
	for (unsigned lcores = 1; lcores <= 2; lcores++) {
		set_up(lcores, SIMTIME_NEVER);
		a->on_start = send_60;
		b->on_arrive = arrive_on_time;
		assert_int_equal(engine_run(e), ENGINE_END_IDLE);
		assert_int_equal(b->n_rec, 1);
		assert_int_equal(b->rec[0].at, 606720);
		assert_int_equal(engine_now(e), 606720);
		tear_down();
	}
}

static void task_sends(struct engine *eng, simtime_t now, void *arg)
{
	engine_enter(eng, &a->n);
	probe_check(a, a->n.now == now);
	send_60(a);
}

static void timer_ignored(struct probe *p, uint32_t kind, uint32_t arg)
{
}

// A later event of the reader must not be executed before the frame.
static void a_frame_sent_by_a_task_arrives_on_time(void **state)
{
	for (unsigned lcores = 1; lcores <= 2; lcores++) {
		set_up(lcores, SIMTIME_NEVER);
		a->on_timer = timer_ignored;
		b->on_timer = timer_ignored;
		b->on_arrive = arrive_on_time;
		node_timer(&b->n, 50 * SIM_US, 0, 0);
		node_timer(&a->n, 50 * SIM_US, 0, 0);
		for (int i = 1; i < 40; i++)
			engine_at(e, i * SIM_US, task_sends, NULL, false);
		assert_int_equal(engine_run(e), ENGINE_END_IDLE);
		assert_int_equal(b->n_rec, 39);
		for (int i = 1; i < 40; i++)
			assert_int_equal(b->rec[i - 1].at, i * SIM_US + 606720);
		tear_down();
	}
}

// ---- ends
// -----------------------------------------------------------------------------------------

static void timer_again(struct probe *p, uint32_t kind, uint32_t arg)
{
	p->held++;
	node_timer(&p->n, p->n.now + 100 * SIM_NS, kind, arg);
}

// Events at 0, 100, ..., 9900 ns; the one at exactly 10 us belongs to the time after.
static void the_duration_ends_a_run_before_the_events_at_it(void **state)
{
	for (unsigned lcores = 1; lcores <= 2; lcores++) {
		set_up(lcores, 10 * SIM_US);
		a->on_timer = timer_again;
		node_timer(&a->n, 0, 0, 0);
		engine_at(e, 10 * SIM_US, task_note, num(1), false);
		assert_int_equal(engine_run(e), ENGINE_END_DURATION);
		assert_int_equal(a->held, 100);
		assert_int_equal(n_trace, 0);
		assert_int_equal(engine_now(e), 10 * SIM_US);
		assert_int_equal(b->n.now, 10 * SIM_US);
		tear_down();
	}
}

static void nothing_to_do_ends_at_once(void **state)
{
	set_up(2, SIM_S);
	assert_int_equal(engine_run(e), ENGINE_END_IDLE);
	assert_int_equal(engine_now(e), 0);
	tear_down();
}

static void *stop_soon(void *arg)
{
	while (engine_progress(e).events < 1000)
		usleep(100);
	engine_request_stop(e);
	return NULL;
}

static void another_thread_can_stop_a_run(void **state)
{
	for (unsigned lcores = 1; lcores <= 2; lcores++) {
		pthread_t t;
		set_up(lcores, SIMTIME_NEVER);
		a->on_timer = b->on_timer = timer_again;
		node_timer(&a->n, 0, 0, 0);
		node_timer(&b->n, 0, 0, 0);
		assert_int_equal(pthread_create(&t, NULL, stop_soon, NULL), 0);
		assert_int_equal(engine_run(e), ENGINE_END_STOPPED);
		pthread_join(t, NULL);
		assert_true(a->held + b->held >= 1000);
		tear_down();
	}
}

// ---- windows
// --------------------------------------------------------------------------------------

static simtime_t last_window;

static void on_window(void *arg, simtime_t t)
{
	probe_check(a, t >= last_window);
	probe_check(a, a->n.now <= t && b->n.now <= t);
	last_window = t;
}

// "Everything before t has happened", and nothing at or after it: 600 ns windows, events every 100
// ns, aligned to the first event. 10 us hold 17 windows.
static void windows_are_announced_in_order(void **state)
{
	struct engine_config c = {.n_lcores = 2,
		.duration = 10 * SIM_US,
		.group_target = 500 * SIM_NS,
		.time_scale = 1,
		.on_window = on_window};

	assert_int_equal(engine_create(&c, &e), 0);
	two_nodes();
	assert_int_equal(engine_prepare(e), 0);
	last_window = 0;
	a->on_timer = b->on_timer = timer_again;
	node_timer(&a->n, 0, 0, 0);
	node_timer(&b->n, 50 * SIM_NS, 0, 0);
	assert_int_equal(engine_run(e), ENGINE_END_DURATION);
	assert_int_equal(last_window, 16 * 600 * SIM_NS);
	assert_int_equal(engine_progress(e).windows, 2 * 17); // each lcore counts its own
	tear_down();
}

// ---- links
// ----------------------------------------------------------------------------------------

static void task_link(struct engine *eng, simtime_t now, void *arg)
{
	engine_set_link(eng, &a->n, 0, arg != NULL);
}

static void timer_sends(struct probe *p, uint32_t kind, uint32_t arg)
{
	send_60(p);
}

// Frames sent every us from 0 to 9 us, each 606.72 ns on its way. Down at 3.3 us: the frame sent at
// 3 us is lost on the way; those of 4, 5, 6 us at the sender. Up at 6.5 us: 7, 8, 9 arrive.
static void a_link_going_down_loses_what_is_on_it(void **state)
{
	for (unsigned lcores = 1; lcores <= 2; lcores++) {
		set_up(lcores, SIMTIME_NEVER);
		a->on_timer = timer_sends;
		for (int i = 0; i < 10; i++)
			node_timer(&a->n, i * SIM_US, 0, 0);
		engine_at(e, 3300 * SIM_NS, task_link, NULL, false);
		engine_at(e, 3400 * SIM_NS, task_link, NULL, false); // already down: nothing
		engine_at(e, 6500 * SIM_NS, task_link, num(1), false);
		assert_int_equal(engine_run(e), ENGINE_END_IDLE);
		assert_int_equal(b->n_rec, 6);
		assert_int_equal(b->rec[2].at, 2606720);
		assert_int_equal(b->rec[3].at, 7606720);
		assert_int_equal(a->n.ports[0].ctr->drops[DROP_LINK_DOWN], 3);
		assert_int_equal(b->n.ports[0].ctr->drops[DROP_LINK_DOWN], 1);
		assert_int_equal(a->link_calls, 2);
		assert_int_equal(b->link_calls, 2);
		assert_int_equal(a->n.created, 10);
		assert_int_equal(a->n.dropped + b->n.dropped + b->n.delivered, 10);
		assert_int_equal(b->n.log.ev[0].kind, EV_FIRST_DROP);
		assert_int_equal(b->n.log.ev[0].at, 3300 * SIM_NS);
		assert_int_equal(b->n.log.ev[1].kind, EV_LINK_DOWN);
		assert_int_equal(b->n.log.ev[2].kind, EV_LINK_UP);
		tear_down();
	}
}

// The frame was the last thing to happen: the run ends when it is lost, not when it would have
// come.
static void a_frame_lost_with_its_link_does_not_prolong_the_run(void **state)
{
	for (unsigned lcores = 1; lcores <= 2; lcores++) {
		set_up(lcores, SIMTIME_NEVER);
		a->on_timer = timer_sends;
		node_timer(&a->n, 0, 0, 0);
		engine_at(e, 300 * SIM_NS, task_link, NULL, false);
		assert_int_equal(engine_run(e), ENGINE_END_IDLE);
		assert_int_equal(b->n.dropped, 1);
		assert_int_equal(engine_now(e), 300 * SIM_NS);
		tear_down();
	}
}

// ---- what cannot be built
// ------------------------------------------------------------------------

static void wrong_fabrics_are_refused(void **state)
{
	struct lane_config ok = {.rate_bps = GBPS, .delay = 1};
	struct lane_config no_rate = {.delay = 1}, no_delay = {.rate_bps = GBPS};

	e = engine_new(2, SIM_S, 0);
	a = probe_new(e, 2);
	b = probe_new(e, 1);
	assert_int_equal(engine_connect(e, &a->n, 0, &b->n, 0, &no_rate), -EINVAL);
	assert_int_equal(engine_connect(e, &a->n, 0, &b->n, 0, &no_delay), -EINVAL);
	assert_int_equal(engine_connect(e, &a->n, 2, &b->n, 0, &ok), -EINVAL);
	assert_int_equal(engine_connect(e, &a->n, 0, &b->n, 1, &ok), -EINVAL);
	join(e, a, 0, b, 0, GBPS, 1);
	assert_int_equal(engine_connect(e, &a->n, 0, &a->n, 1, &ok), -EINVAL); // out taken
	assert_int_equal(engine_connect(e, &a->n, 1, &b->n, 0, &ok), -EINVAL); // in taken
	assert_int_equal(engine_prepare(e), -EINVAL); // port 1 of a leads nowhere
	tear_down();

	struct engine_config c = {.n_lcores = 0, .duration = 1, .time_scale = 1};
	assert_int_equal(engine_create(&c, &e), -EINVAL);
	c.n_lcores = ENGINE_LCORES_MAX + 1;
	assert_int_equal(engine_create(&c, &e), -EINVAL);
	c.n_lcores = 1;
	c.time_scale = 0;
	assert_int_equal(engine_create(&c, &e), -EINVAL);
}

static void more_lcores_than_eal_has_are_refused(void **state)
{
	e = engine_new(3, SIM_S, 0);
	a = probe_new(e, 1);
	b = probe_new(e, 1);
	join(e, a, 0, b, 0, GBPS, 1);
	assert_int_equal(engine_prepare(e), -EINVAL);
	tear_down();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_task_runs_before_the_events_of_its_instant_and_after_all_earlier_ones),
		cmocka_unit_test(a_task_set_in_the_past_runs_now),
		cmocka_unit_test(a_daemon_does_not_keep_a_run_alive),
		cmocka_unit_test(a_foreground_task_does),
		cmocka_unit_test(a_frame_sent_at_start_arrives),
		cmocka_unit_test(a_frame_sent_by_a_task_arrives_on_time),
		cmocka_unit_test(the_duration_ends_a_run_before_the_events_at_it),
		cmocka_unit_test(nothing_to_do_ends_at_once),
		cmocka_unit_test(another_thread_can_stop_a_run),
		cmocka_unit_test(windows_are_announced_in_order),
		cmocka_unit_test(a_link_going_down_loses_what_is_on_it),
		cmocka_unit_test(a_frame_lost_with_its_link_does_not_prolong_the_run),
		cmocka_unit_test(wrong_fabrics_are_refused),
		cmocka_unit_test(more_lcores_than_eal_has_are_refused),
	};
	return cmocka_run_group_tests(tests, harness_start, harness_stop);
}
