/* SPDX-License-Identifier: BSD-3-Clause */
// PFC of the Ethernet switch, both ways. Frames of 996 bytes: with FCS 1000 bytes, ten cells of
// 100; 1020 bytes and 81.6 ns on the wire. PG 3 has 20 cells of shared buffer and 30 of headroom
// (bench_ports), so it takes two frames, asserts XOFF with the third and is full with the fifth.

#include "models/headroom.h"
#include "tests/unit/switch_bench.h"

#define LEN      996
#define WIRE_LEN WIRE(LEN)
#define PFC_WIRE WIRE(60)
#define FOREVER  65535
#define QUANTUM  5120 // 512 bit times at 100 Gb/s
#define PRIO3    (1 << 3)
#define PRIO4    (1 << 4)

static unsigned pfcs(unsigned peer)
{
	unsigned n = 0;

	for (unsigned i = 0; i < b->peer[peer].n_rec; i++)
		n += is_pfc(&b->peer[peer].rec[i]);
	return n;
}

// Peer 1 stops priority 3 of the switch's port to it for good; peer 0 sends `n` frames there.
static void fill(unsigned n)
{
	send_pfc(1, PRIO3, FOREVER);
	run(SIM_US);
	for (unsigned i = 0; i < n; i++)
		send_udp(0, 1, LEN, 3, ECN_ECT0);
}

static void xoff_is_sent_when_headroom_starts_to_fill(void **state)
{
	struct ethernet_switch_pg_view pg;

	bench_default();
	fill(2);
	run(3 * SIM_US);
	assert_int_equal(pfcs(0), 0);
	ethernet_switch_pg(b->sw, 0, 3, &pg);
	assert_false(pg.xoff);
	assert_int_equal(pg.bytes, 2000);

	simtime_t sent = b->peer[0].n.now;
	send_udp(0, 1, LEN, 3, ECN_ECT0);
	run(6 * SIM_US);
	ethernet_switch_pg(b->sw, 0, 3, &pg);
	assert_true(pg.xoff);
	assert_int_equal(pg.headroom_used, 1000);
	assert_int_equal(pg.xoff_since, sent + WIRE_LEN + DELAY);
	assert_int_equal(ethernet_switch_pausing_since(b->sw, 0, 3), pg.xoff_since);

	// It leaves at once, the lane being idle, and says so: DA, SA, type, opcode, class 3,
	// quanta.
	static const uint8_t head[] = {0x01, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0x88, 0x08, 1,
		1, 0, 8, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0};
	const struct record *r = got(0, 0);
	assert_int_equal(r->at, pg.xoff_since + PFC_WIRE + DELAY);
	assert_int_equal(r->len, 60);
	assert_memory_equal(r->bytes, head, sizeof(head));
	assert_int_equal(counters(0)->tx_pause[3], 1);
	bench_stop();
}

static void headroom_full_is_the_only_loss_of_a_lossless_class(void **state)
{
	bench_default();
	fill(7);
	run(10 * SIM_US);
	// 2 shared, 3 headroom, 2 lost; the egress queue's own limit (alpha 8) never counts.
	assert_int_equal(counters(0)->drops[DROP_PG_HEADROOM_FULL], 2);
	assert_int_equal(counters(0)->prio_drops[3], 2);
	assert_int_equal(b->sw->dropped, 2);
	bench_stop();
}

static void xon_is_sent_when_the_pg_has_drained(void **state)
{
	bench_default();
	fill(4);
	run(10 * SIM_US);
	assert_int_equal(pfcs(0), 1);
	send_pfc(1, PRIO3, 0);
	run(20 * SIM_US);
	// 40 cells held; limit 20, offset 10: XON at <= 10, when the third frame starts, two frame
	// times after the first, which starts as the XON arrives.
	simtime_t third = 10 * SIM_US + PFC_WIRE + DELAY + 2 * WIRE_LEN;
	assert_int_equal(pfcs(0), 2);
	assert_int_equal(got(0, 1)->at, third + PFC_WIRE + DELAY);
	assert_int_equal(get_be16(got(0, 1)->bytes + 16), PRIO3);
	assert_int_equal(get_be16(got(0, 1)->bytes + 24), 0); // XON
	assert_int_equal(ethernet_switch_pausing_since(b->sw, 0, 3), SIMTIME_NEVER);
	assert_int_equal(counters(0)->tx_pauses.duration[3],
		third - (SIM_US + 3 * WIRE_LEN + DELAY)); // since the third frame came
	assert_int_equal(counters(1)->rx_pauses.duration[3],
		10 * SIM_US); // both came PFC_WIRE + DELAY after they were sent
	assert_int_equal(b->peer[1].n_rec, 4);
	bench_stop();
}

static void pause_is_refreshed_before_it_expires(void **state)
{
	struct ethernet_switch_port_config ports[PORTS];

	bench_ports(ports);
	ports[0].pause_quanta = 1000; // 5.12 us, refreshed every 2.56 us
	bench_start(ports);
	fill(3);
	run(50 * SIM_US);
	unsigned n = pfcs(0);
	assert_in_range(n, 17, 20); // (50 - 1.7) / 2.56
	for (unsigned i = 1; i < n; i++)
		assert_int_equal(got(0, i)->at - got(0, i - 1)->at, 500 * QUANTUM);
	assert_int_equal(counters(0)->tx_pause[3], n);
	// One event for the pause, none for its refreshes.
	unsigned events = 0;
	for (unsigned i = 0; i < b->sw->log.n; i++)
		events += b->sw->log.ev[i].kind == EV_PFC_XOFF_SENT;
	assert_int_equal(events, 1);
	bench_stop();
}

// The lane to peer 0 is busy with frames from peer 2 when XOFF is due: the one in transmission is
// finished, then the PFC frame goes, before the others that wait.
static void xoff_goes_between_data_frames_before_all_that_wait(void **state)
{
	bench_default();
	fill(2);
	run(3 * SIM_US);
	for (int i = 0; i < 20; i++)
		send_udp(2, 0, LEN, 0, 0);
	for (int i = 0; i < 20; i++)
		send_udp(3, 0, LEN, 0, 0); // twice the line rate: a queue builds up
	run(3 * SIM_US + 500 * SIM_NS);
	send_udp(0, 1, LEN, 3, 0);
	run(20 * SIM_US);
	struct ethernet_switch_pg_view pg;
	ethernet_switch_pg(b->sw, 0, 3, &pg);
	unsigned i = 0;
	while (!is_pfc(got(0, i)))
		i++;
	assert_in_range(i, 5, 10);
	assert_int_equal(got(0, i)->at - got(0, i - 1)->at, PFC_WIRE); // back to back
	assert_int_equal(got(0, i + 1)->at - got(0, i)->at, WIRE_LEN);
	simtime_t start = got(0, i)->at - DELAY - PFC_WIRE;
	assert_true(start >= pg.xoff_since && start < pg.xoff_since + WIRE_LEN);
	bench_stop();
}

static void paused_priority_leaves_others_running(void **state)
{
	struct ethernet_switch_queue_view q3, q4;

	bench_default();
	send_pfc(1, PRIO3, FOREVER);
	run(SIM_US);
	for (int i = 0; i < 2; i++) {
		send_udp(0, 1, LEN, 3, 0);
		send_udp(0, 1, LEN, 4, 0);
		send_udp(0, 1, LEN, 0, 0);
	}
	run(20 * SIM_US);
	assert_int_equal(b->peer[1].n_rec, 4);
	ethernet_switch_queue(b->sw, 1, 3, &q3);
	ethernet_switch_queue(b->sw, 1, 4, &q4);
	assert_true(q3.paused);
	assert_int_equal(q3.frames, 2);
	assert_int_equal(q3.bytes, 2000);
	assert_int_equal(q3.tx_frames, 0);
	assert_false(q4.paused);
	assert_int_equal(q4.tx_frames, 2);
	assert_int_equal(q4.tx_bytes, 2000);
	assert_int_equal(ethernet_switch_paused_since(b->sw, 1, 3), PFC_WIRE + DELAY);
	assert_int_equal(counters(1)->rx_pause[3], 1);
	bench_stop();
}

// 100 quanta = 512 ns from the moment it takes effect, 300 ns after its last bit.
static void pause_takes_effect_after_the_response_time_and_expires(void **state)
{
	struct ethernet_switch_port_config ports[PORTS];

	bench_ports(ports);
	ports[1].pfc_response = 300 * SIM_NS;
	bench_start(ports);
	send_pfc(1, PRIO3, 100);
	simtime_t effect = PFC_WIRE + DELAY + 300 * SIM_NS;
	// Arrives at the switch 1 ns before the pause does: sent at once.
	run(effect - SIM_NS - WIRE_LEN - DELAY);
	send_udp(0, 1, LEN, 3, 0);
	// Its successor arrives while paused: sent when the pause ends.
	send_udp(0, 1, LEN, 3, 0);
	run(10 * SIM_US);
	assert_int_equal(got(1, 0)->at, effect - SIM_NS + WIRE_LEN + DELAY);
	assert_int_equal(got(1, 1)->at, effect + 100 * QUANTUM + WIRE_LEN + DELAY);
	assert_int_equal(counters(1)->rx_pauses.duration[3], 100 * QUANTUM);
	bench_stop();
}

static void ports_without_pfc_neither_send_nor_obey(void **state)
{
	struct ethernet_switch_port_config ports[PORTS];

	bench_ports(ports);
	ports[1].pfc_rx = PRIO4;
	ports[0].pfc_tx = 0;
	bench_start(ports);
	send_pfc(1, PRIO3, FOREVER);
	run(SIM_US);
	send_udp(0, 1, LEN, 3, 0);
	run(3 * SIM_US);
	assert_int_equal(b->peer[1].n_rec, 1); // not paused
	assert_int_equal(counters(1)->rx_pause_ignored, 1);
	assert_int_equal(counters(1)->rx_pause[3], 1);
	send_pfc(1, PRIO4, FOREVER);
	run(5 * SIM_US);
	for (int i = 0; i < 7; i++)
		send_udp(0, 1, LEN, 4, 0);
	run(10 * SIM_US);
	assert_int_equal(pfcs(0), 0);
	assert_int_equal(counters(0)->drops[DROP_PG_HEADROOM_FULL], 2);
	bench_stop();
}

static void link_down_ends_pauses_and_drops_what_waits(void **state)
{
	bench_default();
	fill(4);
	run(10 * SIM_US);
	b->up[1].up = b->down[1].up = false;
	b->sw->ops->link(b->sw, 1, false);
	run(20 * SIM_US);
	assert_int_equal(counters(1)->drops[DROP_LINK_DOWN], 4);
	assert_int_equal(ethernet_switch_paused_since(b->sw, 1, 3), SIMTIME_NEVER);
	assert_int_equal(pfcs(0), 2); // the PG is empty: XON
	bench_stop();
}

static void xoff_is_repeated_when_the_link_comes_back(void **state)
{
	bench_default();
	fill(4);
	run(10 * SIM_US);
	b->up[0].up = b->down[0].up = false;
	b->sw->ops->link(b->sw, 0, false);
	run(20 * SIM_US);
	b->up[0].up = b->down[0].up = true;
	b->sw->ops->link(b->sw, 0, true);
	run(30 * SIM_US);
	assert_int_equal(pfcs(0), 2);
	assert_int_equal(got(0, 1)->at, 20 * SIM_US + PFC_WIRE + DELAY);
	bench_stop();
}

static void xoff_is_retried_when_no_mbuf_was_left(void **state)
{
	static struct rte_mbuf *taken[POOL_FRAMES];
	unsigned n = 0;

	bench_default();
	fill(3);
	while (n < POOL_FRAMES && (taken[n] = rte_pktmbuf_alloc(pool)) != NULL)
		n++;
	run(3 * SIM_US);
	assert_int_equal(pfcs(0), 0);
	assert_true(counters(0)->drops[DROP_NO_MBUF] >= 1);
	rte_pktmbuf_free_bulk(taken, n);
	run(10 * SIM_US);
	assert_int_equal(pfcs(0), 1);
	bench_stop();
}

static unsigned n_waits;
static struct ethernet_switch_wait waits[8];

static void note_wait(void *arg, const struct ethernet_switch_wait *w)
{
	struct ethernet_switch_wait *to = arg;

	assert_true(n_waits < 8);
	to[n_waits++] = *w;
}

static void waits_say_which_pg_waits_for_which_queue(void **state)
{
	bench_default();
	fill(2);
	send_udp(2, 1, 96, 3, 0);
	run(5 * SIM_US);
	n_waits = 0;
	ethernet_switch_waits(b->sw, true, note_wait, waits);
	assert_int_equal(n_waits, 2);
	assert_int_equal(waits[0].in_port, 0);
	assert_int_equal(waits[0].pg, 3);
	assert_int_equal(waits[0].out_port, 1);
	assert_int_equal(waits[0].queue, 3);
	assert_int_equal(waits[0].frames, 2);
	assert_int_equal(waits[0].bytes, 2000);
	assert_int_equal(waits[1].in_port, 2);
	assert_int_equal(waits[1].bytes, 100);
	bench_stop();
}

// ---- headroom -----------------------------------------------------------------------------------

// A greedy peer 0 with response time R sends equal frames to the stopped port 1, while peers 2 and
// 3 keep the lane back to peer 0 busy, so that XOFF waits for up to a frame. Returns the most
// headroom used, in bytes; `lost`: frames of the class dropped.
static uint64_t greedy(uint64_t xoff_bytes, simtime_t phase, uint64_t *lost)
{
	struct ethernet_switch_port_config ports[PORTS];
	struct ethernet_switch_pg_view pg;

	bench_ports(ports);
	ports[0].pg[3].xoff_bytes = xoff_bytes;
	bench_start(ports);
	b->peer[0].response = 200 * SIM_NS;
	send_pfc(1, PRIO3, FOREVER);
	source(2, (struct source){.to = 0, .len = LEN, .left = 200});
	source(3, (struct source){.to = 0, .len = LEN, .left = 200});
	run(5 * SIM_US + phase);
	source(0, (struct source){.to = 1, .len = LEN, .dscp = 3, .prio = 3, .left = 100});
	run(20 * SIM_US);
	ethernet_switch_pg(b->sw, 0, 3, &pg);
	*lost = counters(0)->drops[DROP_PG_HEADROOM_FULL];
	bench_stop();
	return pg.headroom_peak;
}

// The computed headroom holds whatever the phase between data and XOFF, the worst phase needs all
// of it, and with one cell less than what arrives, it loses.
static void computed_headroom_is_exact(void **state)
{
	struct headroom_exact h = headroom_exact(&(struct headroom_exact_input){
		.rate_bps = UINT64_C(100000000000),
		.data_delay = DELAY,
		.pause_delay = DELAY,
		.response = 200 * SIM_NS,
		.cell_bytes = CELL,
		.max_frame_bytes = LEN + ETH_FCS_BYTES,
		.min_frame_bytes = LEN + ETH_FCS_BYTES,
	});
	uint64_t most = 0, lost;
	simtime_t worst = 0;

	// exposed = 81.6 + 6.72 + 500 + 200 + 500 = 1288.32 ns: 15 frames, one more, the trigger.
	assert_int_equal(h.cells, 170);
	for (simtime_t phase = 0; phase < WIRE_LEN; phase += WIRE_LEN / 40) {
		uint64_t used = greedy(h.bytes, phase, &lost);
		assert_int_equal(lost, 0);
		if (used > most) {
			most = used;
			worst = phase;
		}
	}
	assert_int_equal(most, h.bytes);
	assert_true(greedy(most - CELL, worst, &lost) < most);
	assert_int_equal(lost, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xoff_is_sent_when_headroom_starts_to_fill),
		cmocka_unit_test(headroom_full_is_the_only_loss_of_a_lossless_class),
		cmocka_unit_test(xon_is_sent_when_the_pg_has_drained),
		cmocka_unit_test(pause_is_refreshed_before_it_expires),
		cmocka_unit_test(xoff_goes_between_data_frames_before_all_that_wait),
		cmocka_unit_test(paused_priority_leaves_others_running),
		cmocka_unit_test(pause_takes_effect_after_the_response_time_and_expires),
		cmocka_unit_test(ports_without_pfc_neither_send_nor_obey),
		cmocka_unit_test(link_down_ends_pauses_and_drops_what_waits),
		cmocka_unit_test(xoff_is_repeated_when_the_link_comes_back),
		cmocka_unit_test(xoff_is_retried_when_no_mbuf_was_left),
		cmocka_unit_test(waits_say_which_pg_waits_for_which_queue),
		cmocka_unit_test(computed_headroom_is_exact),
	};

	return cmocka_run_group_tests(tests, eal_up, eal_down);
}
