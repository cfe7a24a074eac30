/* SPDX-License-Identifier: BSD-3-Clause */
// What node_send() and node_step() do with one frame, on the smallest fabric: two nodes, one link.

#include "engine_harness.h"

#define DELAY (25 * SIM_NS)

static struct engine *e;
static struct probe *a, *b;

static void set_up(uint64_t rate_bps)
{
	e = engine_new(1, SIMTIME_NEVER, 500 * SIM_NS);
	a = probe_new(e, 1);
	b = probe_new(e, 1);
	join(e, a, 0, b, 0, rate_bps, DELAY);
	assert_int_equal(engine_prepare(e), 0);
}

static void tear_down(void)
{
	engine_drain_lanes(e);
	probe_free(a);
	probe_free(b);
	engine_destroy(e);
	assert_pool_full();
}

static void send_len(struct probe *p, uint32_t kind, uint32_t len)
{
	probe_send(p, 0, probe_frame(p, 0, len));
}

// 1514 bytes at 100 Gb/s: (1514 + 24) * 80 ps = 123040 ps on the wire, + 25 ns.
static void a_frame_arrives_when_its_last_bit_is_in(void **state)
{
	set_up(100 * GBPS);
	a->on_timer = send_len;
	node_timer(&a->n, 1000, 0, 1514);
	assert_int_equal(engine_run(e), ENGINE_END_IDLE);
	assert_int_equal(b->n_rec, 1);
	assert_int_equal(b->rec[0].at, 1000 + 123040 + 25000);
	assert_int_equal(a->n.ports[0].out->free_at, 1000 + 123040);
	assert_int_equal(port_total(a->n.ports[0].ctr).tx_frames, 1);
	assert_int_equal(port_total(a->n.ports[0].ctr).tx_bytes, 1518);
	assert_int_equal(port_total(b->n.ports[0].ctr).rx_frames, 1);
	assert_int_equal(port_total(b->n.ports[0].ctr).rx_bytes, 1518);
	assert_int_equal(b->n.delivered, 1);
	assert_int_equal(engine_now(e), 1000 + 123040 + 25000);
	tear_down();
}

// 60 bytes, the least, at 10 Gb/s: 84 * 800 ps = 67.2 ns. The second is sent at 10 ns, while the
// first is on the wire, and starts when it ends; the third long after, and starts at once.
static void a_frame_waits_for_the_one_before_it(void **state)
{
	set_up(10 * GBPS);
	a->on_timer = send_len;
	node_timer(&a->n, 0, 0, 60);
	node_timer(&a->n, 10000, 0, 60);
	node_timer(&a->n, 500000, 0, 61); // 85 * 800 = 68 ns
	engine_run(e);
	assert_int_equal(b->n_rec, 3);
	assert_int_equal(b->rec[0].at, 67200 + 25000);
	assert_int_equal(b->rec[1].at, 134400 + 25000);
	assert_int_equal(b->rec[2].at, 500000 + 68000 + 25000);
	tear_down();
}

// More frames at once than the lane has slots: it grows, none is lost, order and spacing hold.
static void a_burst_makes_the_lane_grow(void **state)
{
	enum { N = 3000 };
	set_up(100 * GBPS);
	a->on_timer = send_len;
	for (int i = 0; i < N; i++)
		node_timer(&a->n, 0, 0, 60 + (uint32_t)i % 7);
	engine_run(e);
	assert_int_equal(b->n_rec, N);
	simtime_t t = DELAY;
	for (int i = 0; i < N; i++) {
		t += 80 * (84 + i % 7);
		assert_int_equal(b->rec[i].at, t);
		assert_int_equal(b->rec[i].len, 60 + i % 7);
	}
	tear_down();
}

// Probability 1/4: of 4000 frames 1000 are expected, standard deviation 27.4; 6 of those on each
// side.
static void corrupt_frames_end_at_the_receiver(void **state)
{
	enum { N = 4000 };
	set_up(100 * GBPS);
	a->n.ports[0].out->corrupt_q32 = UINT64_C(1) << 30;
	lane_update(a->n.ports[0].out);
	a->on_timer = send_len;
	for (int i = 0; i < N; i++)
		node_timer(&a->n, i * SIM_US, 0, 100);
	engine_run(e);
	uint64_t lost = b->n.ports[0].ctr->drops[DROP_LANE_ERROR];
	assert_in_range(lost, 1000 - 165, 1000 + 165);
	assert_int_equal(b->n_rec, N - lost); // the pipeline does not see them
	assert_int_equal(port_total(b->n.ports[0].ctr).rx_frames, N);
	assert_int_equal(b->n.dropped, lost);
	assert_int_equal(b->n.delivered, N - lost);
	tear_down();
}

static void certain_corruption_loses_everything(void **state)
{
	set_up(100 * GBPS);
	a->n.ports[0].out->corrupt_q32 = UINT64_C(1) << 32;
	lane_update(a->n.ports[0].out);
	a->on_timer = send_len;
	for (int i = 0; i < 100; i++)
		node_timer(&a->n, i, 0, 100);
	engine_run(e);
	assert_int_equal(b->n.ports[0].ctr->drops[DROP_LANE_ERROR], 100);
	assert_int_equal(b->n_rec, 0);
	tear_down();
}

static void a_down_lane_drops_at_the_sender(void **state)
{
	set_up(100 * GBPS);
	a->on_timer = send_len;
	node_timer(&a->n, 0, 0, 100);
	engine_set_link(e, &a->n, 0, false);
	engine_run(e);
	assert_int_equal(a->n.ports[0].ctr->drops[DROP_LINK_DOWN], 1);
	assert_int_equal(a->n.dropped, 1);
	assert_int_equal(b->n_rec, 0);
	assert_int_equal(a->n.log.n, 2);
	assert_int_equal(a->n.log.ev[0].kind, EV_LINK_DOWN);
	assert_int_equal(a->n.log.ev[1].kind, EV_FIRST_DROP);
	assert_int_equal(a->n.log.ev[1].a, DROP_LINK_DOWN);
	tear_down();
}

static void want_then_send_control(struct probe *p, uint32_t kind, uint32_t arg)
{
	probe_send(p, 0, probe_frame(p, 0, 1514)); // the lane is busy until 123040
	node_want_depart(&p->n, 0, p->n.now);
	probe_send(p, 0, probe_frame(p, 0, 60)); // 84 * 80 = 6720 ps: until 129760
	probe_check(p, node_depart_pending(&p->n, 0));
	probe_check(p, !node_lane_idle(&p->n, 0));
}

static void note_depart(struct probe *p, uint32_t port, uint32_t arg)
{
	probe_check(p, node_lane_idle(&p->n, 0));
	probe_check(p, !node_depart_pending(&p->n, 0));
	p->held = (uint64_t)p->n.now;
}

// A pause frame may go out after a departure was asked for; the departure then finds the lane busy.
static void depart_is_called_only_when_the_lane_is_free(void **state)
{
	set_up(100 * GBPS);
	a->on_timer = want_then_send_control;
	a->on_depart = note_depart;
	node_timer(&a->n, 0, 0, 0);
	engine_run(e);
	assert_int_equal(a->held, 129760);
	tear_down();
}

static void note_order(struct probe *p, uint32_t kind, uint32_t arg)
{
	p->rec[p->n_rec++] = (struct record){.at = p->n.now, .port = kind};
	if (kind == 7)
		node_timer(&p->n, p->n.now - 5, 8, 0); // late: fires now, not in the past
}

static void a_timer_in_the_past_fires_now(void **state)
{
	set_up(100 * GBPS);
	a->on_timer = note_order;
	node_timer(&a->n, 100, 7, 0);
	node_timer(&a->n, 100, 9, 0);
	engine_run(e);
	// Within the heap the earlier time goes first.
	assert_int_equal(a->n_rec, 3);
	assert_int_equal(a->rec[1].port, 8);
	assert_int_equal(a->rec[1].at, 100);
	assert_int_equal(a->rec[2].port, 9);
	tear_down();
}

static void arrive_note(struct probe *p, unsigned port, struct frame *f)
{
	p->held = p->held * 10 + 1;
	node_deliver(&p->n, port, f);
}

static void depart_note(struct probe *p, uint32_t port, uint32_t arg)
{
	p->held = p->held * 10 + 2;
}

static void timer_note(struct probe *p, uint32_t kind, uint32_t arg)
{
	p->held = p->held * 10 + 3;
}

// Sources of a node in order: arrivals, departures, timers.
static void at_one_instant_arrivals_come_first_then_departures_then_timers(void **state)
{
	set_up(100 * GBPS);
	a->on_timer = send_len;
	b->on_timer = timer_note;
	b->on_depart = depart_note;
	b->on_arrive = arrive_note;
	simtime_t t = 84 * 80 + DELAY;
	node_timer(&b->n, t, 0, 0);
	node_want_depart(&b->n, 0, t);
	node_timer(&a->n, 0, 0, 60);
	engine_run(e);
	assert_int_equal(b->held, 123);
	tear_down();
}

static void send_until_empty(struct probe *p, uint32_t kind, uint32_t arg)
{
	for (struct frame *f; (f = probe_frame(p, 0, 60)) != NULL;)
		probe_send(p, 0, f);
}

// The pool runs out: counted, one event, never a hang; and all frames come back.
static void an_empty_pool_is_counted(void **state)
{
	set_up(100 * GBPS);
	a->on_timer = send_until_empty;
	node_timer(&a->n, 0, 0, 0);
	node_timer(&a->n, 1, 0, 0);
	engine_run(e);
	// Nothing came back between the two calls: each met the empty pool once.
	assert_int_equal(a->n.ports[0].ctr->drops[DROP_NO_MBUF], 2);
	assert_int_equal(a->n.created, POOL_FRAMES);
	assert_int_equal(a->n.dropped, 0); // never frames: conservation holds without them
	assert_int_equal(b->n.delivered, POOL_FRAMES);
	assert_int_equal(a->n.log.n, 1);
	assert_int_equal(a->n.log.ev[0].kind, EV_POOL_EMPTY);
	tear_down();
}

static void the_event_log_keeps_the_first_and_counts_the_rest(void **state)
{
	set_up(100 * GBPS);
	for (uint64_t i = 0; i < 100; i++)
		node_event(&a->n, 0, EV_FAULT, i, 0);
	assert_int_equal(a->n.log.n, 64); // as given to node_init
	assert_int_equal(a->n.log.lost, 36);
	assert_int_equal(a->n.log.ev[63].a, 63);
	tear_down();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_frame_arrives_when_its_last_bit_is_in),
		cmocka_unit_test(a_frame_waits_for_the_one_before_it),
		cmocka_unit_test(a_burst_makes_the_lane_grow),
		cmocka_unit_test(corrupt_frames_end_at_the_receiver),
		cmocka_unit_test(certain_corruption_loses_everything),
		cmocka_unit_test(a_down_lane_drops_at_the_sender),
		cmocka_unit_test(depart_is_called_only_when_the_lane_is_free),
		cmocka_unit_test(a_timer_in_the_past_fires_now),
		cmocka_unit_test(at_one_instant_arrivals_come_first_then_departures_then_timers),
		cmocka_unit_test(an_empty_pool_is_counted),
		cmocka_unit_test(the_event_log_keeps_the_first_and_counts_the_rest),
	};
	return cmocka_run_group_tests(tests, harness_start, harness_stop);
}
