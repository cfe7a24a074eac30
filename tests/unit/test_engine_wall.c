/* SPDX-License-Identifier: BSD-3-Clause */
// The wall clock: the same events at the same emulated times, executed when the host's time gets
// there. What depends on how busy the host is (lag, naps) is bounded loosely, what does not (times,
// counts) exactly.

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "engine_harness.h"

#define DELAY (600 * SIM_NS)

static struct engine *e;
static struct probe *a, *b;

static void set_up(struct engine_config c)
{
	c.wall = true;
	c.group_target = 500 * SIM_NS;
	if (c.time_scale == 0)
		c.time_scale = 1;
	assert_int_equal(engine_create(&c, &e), 0);
	a = probe_new(e, 2);
	b = probe_new(e, 2);
	join(e, a, 0, b, 0, GBPS, DELAY);
	join(e, a, 1, b, 1, GBPS, DELAY);
	assert_int_equal(engine_prepare(e), 0);
	assert_int_equal(engine_shape(e).n_remote_lanes, c.n_lcores == 2 ? 4 : 0);
}

static void tear_down(void)
{
	engine_drain_lanes(e);
	probe_free(a);
	probe_free(b);
	engine_destroy(e);
	assert_pool_full();
}

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double run_for(enum engine_end why)
{
	double start = seconds(CLOCK_MONOTONIC);

	assert_int_equal(engine_run(e), why);
	return seconds(CLOCK_MONOTONIC) - start;
}

// ---- rate
// ------------------------------------------------------------------------------------------

static void send_and_want(struct probe *p, uint32_t port, uint32_t arg)
{
	struct frame *f = probe_frame(p, 0, 1514);

	probe_check(p, f != NULL);
	if (f == NULL)
		return;
	probe_send(p, 0, f);
	node_want_depart(&p->n, 0, 0);
}

static void start_greedy(struct probe *p)
{
	send_and_want(p, 0, 0);
}

// 1538 bytes at 1 Gb/s are 12.304 us: frame k arrives at 12.304 (k+1) + 0.6 us, however late the
// host is; in 40 ms (minus the delay) 3250 of them: 3250.9.
static void an_emulated_rate_is_exact(void **state)
{
	for (int scale = 1; scale <= 3; scale += 2) {
		set_up((struct engine_config){
			.n_lcores = 1, .duration = 40 * SIM_MS, .time_scale = scale});
		a->on_start = start_greedy;
		a->on_depart = send_and_want;
		double took = run_for(ENGINE_END_DURATION);
		assert_int_equal(b->n_rec, 3250);
		for (int i = 0; i < 3250; i++)
			assert_int_equal(b->rec[i].at, (i + 1) * 12304 * SIM_NS + DELAY);
		assert_int_equal(engine_now(e), 40 * SIM_MS);
		assert_true(took > 0.040 * scale * 0.99); // never faster than the wall
		tear_down();
	}
}

// Between lcores a frame may be seen late and then has the reader's time. A reader that has nothing
// else to do is never ahead of it; and what was sent in time is there before the run ends.
static void on_two_lcores_it_is_exact_too(void **state)
{
	set_up((struct engine_config){.n_lcores = 2, .duration = 40 * SIM_MS});
	a->on_start = start_greedy;
	a->on_depart = send_and_want;
	run_for(ENGINE_END_DURATION);
	assert_int_equal(b->n_rec, 3250);
	for (int i = 0; i < 3250; i++)
		assert_int_equal(b->rec[i].at, (i + 1) * 12304 * SIM_NS + DELAY);
	assert_int_equal(a->n.created, b->n.delivered + engine_frames_on_lanes(e));
	tear_down();
}

static void arrive_and_answer(struct probe *p, unsigned port, struct frame *f)
{
	probe_check(p, p->n.now >= (simtime_t)f->note);
	node_deliver(&p->n, port, f);
	f = probe_frame(p, port, 60);
	if (f != NULL)
		probe_send(p, port, f);
}

static void start_ping(struct probe *p)
{
	probe_send(p, 0, probe_frame(p, 0, 60));
}

// A round trip is 2 * (84 * 8 + 600) ns = 2.544 us; on one lcore exactly that, whatever the naps.
static void ping_pong_on_one_lcore_is_exact(void **state)
{
	set_up((struct engine_config){.n_lcores = 1, .duration = 20 * SIM_MS});
	a->on_start = start_ping;
	a->on_arrive = b->on_arrive = arrive_and_answer;
	run_for(ENGINE_END_DURATION);
	assert_int_equal(a->n_rec, 20 * SIM_MS / (2544 * SIM_NS));
	tear_down();
}

// An lcore that naps is woken by a frame from another: a round trip takes far less than the longest
// nap (1 ms). 100 ms hold 39308 round trips without lag; 2000 mean 50 us each.
static void a_frame_wakes_a_napping_lcore(void **state)
{
	set_up((struct engine_config){.n_lcores = 2, .duration = 100 * SIM_MS});
	a->on_start = start_ping;
	a->on_arrive = b->on_arrive = arrive_and_answer;
	run_for(ENGINE_END_DURATION);
	assert_true(a->n_rec > 1000); // measured: 3200; 600 when a nap is not cut short
	tear_down();
}

// ---- lag
// ------------------------------------------------------------------------------------------

static void timer_sleeps(struct probe *p, uint32_t kind, uint32_t arg)
{
	p->rec[p->n_rec++] = (struct record){.at = p->n.now};
	if (arg != 0)
		usleep(arg);
}

// Emulated time runs at half speed: 10 ms into the run (20 ms of wall time) the host is away for 8
// ms; the event due 1 ms of emulated (2 ms of wall) time later is 6 ms of wall time late, and still
// at its time.
static void lag_is_measured_in_wall_time(void **state)
{
	set_up((struct engine_config){.n_lcores = 1, .duration = 20 * SIM_MS, .time_scale = 2});
	a->on_timer = timer_sleeps;
	node_timer(&a->n, 10 * SIM_MS, 0, 8000);
	node_timer(&a->n, 11 * SIM_MS, 0, 0);
	run_for(ENGINE_END_DURATION);
	assert_int_equal(a->n_rec, 2);
	assert_int_equal(a->rec[1].at, 11 * SIM_MS);
	const struct lag *l = engine_lag(e, 0);
	assert_int_equal(l->n, 2);
	assert_true(l->max >= 5 * SIM_MS);
	assert_true(lag_quantile(l, 0.99) == l->max);
	tear_down();
}

// ---- idle
// -----------------------------------------------------------------------------------------

static void an_idle_fabric_sleeps(void **state)
{
	for (unsigned lcores = 1; lcores <= 2; lcores++) {
		set_up((struct engine_config){.n_lcores = lcores, .duration = 100 * SIM_MS});
		double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
		run_for(ENGINE_END_DURATION);
		cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
		assert_true(engine_progress(e).slept > 0);
		assert_true(cpu < 0.5 * 0.100 * lcores); // measured: 6 %
		tear_down();
	}
}

static void busy_polling_never_sleeps(void **state)
{
	set_up((struct engine_config){.n_lcores = 1, .duration = 10 * SIM_MS, .busy_poll = true});
	run_for(ENGINE_END_DURATION);
	assert_int_equal(engine_progress(e).slept, 0);
	tear_down();
}

// ---- tasks and ends
// ---------------------------------------------------------------------------------

static int running; // ops being executed now

static void busy_arrive(struct probe *p, unsigned port, struct frame *f)
{
	__atomic_add_fetch(&running, 1, __ATOMIC_SEQ_CST);
	arrive_and_answer(p, port, f);
	__atomic_sub_fetch(&running, 1, __ATOMIC_SEQ_CST);
}

static unsigned n_tasks;

static void task_alone(struct engine *eng, simtime_t now, void *arg)
{
	probe_check(a, __atomic_load_n(&running, __ATOMIC_SEQ_CST) == 0);
	probe_check(a, now == (simtime_t)n_tasks * 250 * SIM_US && engine_now(eng) == now);
	probe_check(a, a->n.now <= now && b->n.now <= now);
	engine_enter(eng, &a->n);
	probe_check(a, a->n.now == now);
	n_tasks++;
	engine_at(eng, now + 250 * SIM_US, task_alone, NULL, true);
}

// At 0, 250 us, ..., 19.75 ms: 80 tasks, each while no node executes.
static void tasks_run_alone_and_at_their_time(void **state)
{
	for (unsigned lcores = 1; lcores <= 2; lcores++) {
		set_up((struct engine_config){.n_lcores = lcores, .duration = 20 * SIM_MS});
		n_tasks = 0;
		a->on_start = start_ping;
		a->on_arrive = b->on_arrive = busy_arrive;
		engine_at(e, 0, task_alone, NULL, true);
		run_for(ENGINE_END_DURATION);
		assert_int_equal(n_tasks, 80);
		tear_down();
	}
}

static void task_down(struct engine *eng, simtime_t now, void *arg)
{
	engine_set_link(eng, &a->n, 0, false);
}

static void a_link_can_go_down(void **state)
{
	for (unsigned lcores = 1; lcores <= 2; lcores++) {
		set_up((struct engine_config){.n_lcores = lcores, .duration = 20 * SIM_MS});
		a->on_start = start_greedy;
		a->on_depart = send_and_want;
		engine_at(e, 10 * SIM_MS, task_down, NULL, false);
		run_for(ENGINE_END_DURATION);
		// Frame k is sent at 12.304 k us: 0..812 before 10 ms, of which 812 is on the wire
		// then; 813..1625 before 20 ms, into the dead link.
		assert_int_equal(b->n_rec, 812);
		assert_int_equal(b->n.ports[0].ctr->drops[DROP_LINK_DOWN], 1);
		assert_int_equal(a->n.ports[0].ctr->drops[DROP_LINK_DOWN], 813);
		assert_int_equal(a->n.created, 1626);
		tear_down();
	}
}

static void *stop_after(void *arg)
{
	usleep(30000);
	engine_request_stop(e);
	return NULL;
}

static void stop_it(double at_most)
{
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, stop_after, NULL), 0);
	double took = run_for(ENGINE_END_STOPPED);
	pthread_join(t, NULL);
	assert_true(took >= 0.029 && took < at_most);
}

static void an_idle_run_can_be_stopped(void **state)
{
	for (unsigned lcores = 1; lcores <= 2; lcores++) {
		set_up((struct engine_config){.n_lcores = lcores, .duration = SIMTIME_NEVER});
		stop_it(0.5);
		tear_down();
	}
}

static void timer_slow(struct probe *p, uint32_t kind, uint32_t arg)
{
	usleep(1000);
	node_timer(&p->n, p->n.now + SIM_US, 0, 0);
}

// A thousand times too slow: when the stop comes the host is 30 s behind.
static void a_run_that_cannot_keep_up_can_be_stopped(void **state)
{
	for (unsigned lcores = 1; lcores <= 2; lcores++) {
		set_up((struct engine_config){.n_lcores = lcores, .duration = SIMTIME_NEVER});
		a->on_timer = timer_slow;
		node_timer(&a->n, 0, 0, 0);
		stop_it(0.5);
		tear_down();
	}
}

// ---- real ports
// -------------------------------------------------------------------------------------

static unsigned poll_op(struct node *n)
{
	struct probe *p = (struct probe *)n;
	static simtime_t last;

	probe_check(p, n->now >= last || p->held == 0);
	last = n->now;
	if (p->held == 100 || !node_lane_idle(n, 0))
		return 0;
	struct frame *f = frame_alloc(pool.heads);
	if (f == NULL)
		return 0;
	f->len = 60;
	node_adopt(n, f);
	p->held++;
	probe_send(p, 0, f);
	return 1;
}

static void frames_from_a_real_port_cross_the_fabric(void **state)
{
	struct node_ops ops = probe_ops;
	ops.poll = poll_op;

	for (unsigned lcores = 1; lcores <= 2; lcores++) {
		struct engine_config c = {.wall = true,
			.n_lcores = lcores,
			.duration = 50 * SIM_MS,
			.group_target = 500 * SIM_NS,
			.time_scale = 1};
		assert_int_equal(engine_create(&c, &e), 0);
		a = probe_new(e, 2);
		b = probe_new(e, 2);
		a->n.ops = &ops;
		join(e, a, 0, b, 0, GBPS, DELAY);
		join(e, a, 1, b, 1, GBPS, DELAY);
		assert_int_equal(engine_prepare(e), 0);
		run_for(ENGINE_END_DURATION);
		assert_int_equal(a->n.created, 100);
		assert_int_equal(b->n.delivered, 100);
		for (int i = 0; i < 100; i++)
			assert_true(b->rec[i].at >= (simtime_t)b->rec[i].note);
		if (lcores == 1)
			for (int i = 0; i < 100; i++)
				assert_int_equal(b->rec[i].at, b->rec[i].note);
		tear_down();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_emulated_rate_is_exact),
		cmocka_unit_test(on_two_lcores_it_is_exact_too),
		cmocka_unit_test(ping_pong_on_one_lcore_is_exact),
		cmocka_unit_test(a_frame_wakes_a_napping_lcore),
		cmocka_unit_test(lag_is_measured_in_wall_time),
		cmocka_unit_test(an_idle_fabric_sleeps),
		cmocka_unit_test(busy_polling_never_sleeps),
		cmocka_unit_test(tasks_run_alone_and_at_their_time),
		cmocka_unit_test(a_link_can_go_down),
		cmocka_unit_test(an_idle_run_can_be_stopped),
		cmocka_unit_test(a_run_that_cannot_keep_up_can_be_stopped),
		cmocka_unit_test(frames_from_a_real_port_cross_the_fabric),
	};
	return cmocka_run_group_tests(tests, harness_start, harness_stop);
}
