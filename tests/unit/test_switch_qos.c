/* SPDX-License-Identifier: BSD-3-Clause */
// Queues of the Ethernet switch: scheduling, ECN by WRED, limits of lossy classes, watermarks.

#include <math.h>

#include "tests/unit/switch_bench.h"

#define LEN 996 // 1000 bytes with FCS, ten cells

static uint64_t tx_bytes(unsigned port, unsigned queue)
{
	struct ethernet_switch_queue_view v;
	uint64_t tx_frames;

	ethernet_switch_queue(b->sw, port, queue, &v);
	assert_int_equal(ethernet_switch_queue_bytes(b->sw, port, queue, &tx_frames), v.bytes);
	assert_int_equal(tx_frames, v.tx_frames);
	return v.tx_bytes;
}

static unsigned marked(unsigned peer, unsigned from, unsigned to)
{
	unsigned n = 0;

	for (unsigned i = from; i < to; i++)
		n += (got(peer, i)->bytes[15] & 3) == ECN_CE;
	return n;
}

// Peers 0 and 2 send at line rate to peer 1, one in queue 1, one in queue 3, which the buffer holds
// without a pause: bytes go 1 : 3 by weight.
static void dwrr_shares_the_wire_by_weight(void **state)
{
	struct ethernet_switch_port_config ports[PORTS];

	bench_ports(ports);
	ports[1].sched[1].weight = 1;
	ports[1].sched[3].weight = 3;
	ports[2].pg[3].th = (struct mmu_threshold){.static_th_bytes = UINT64_MAX};
	bench_start(ports);
	source(0, (struct source){.to = 1, .len = LEN, .dscp = 0, .left = 5000});
	source(2, (struct source){.to = 1, .len = 396, .dscp = 3, .prio = 3, .left = 10000});
	run(10 * SIM_US);
	uint64_t q1 = tx_bytes(1, 1), q3 = tx_bytes(1, 3);
	run(150 * SIM_US);
	q1 = tx_bytes(1, 1) - q1;
	q3 = tx_bytes(1, 3) - q3;
	// 140 us x 12.5 GB/s are 1.75 MB with gaps; the granularity is a quantum, 3 x 1527 bytes.
	assert_true(q1 + q3 > 1650000);
	assert_true(llabs((int64_t)(3 * q1) - (int64_t)q3) < 3 * 2 * 4600);
	bench_stop();
}

static void strict_priority_starves_the_others(void **state)
{
	struct ethernet_switch_port_config ports[PORTS];

	bench_ports(ports);
	ports[1].sched[6].type = SCHED_STRICT;
	bench_start(ports);
	source(0, (struct source){.to = 1, .len = LEN, .dscp = 0, .left = 500});
	source(2, (struct source){.to = 1, .len = LEN, .dscp = 48, .left = 500});
	run(40 * SIM_US);
	// The one frame of queue 1 is that which came before or with the first of queue 6.
	assert_true(tx_bytes(1, 1) <= 2000);
	assert_true(tx_bytes(1, 6) > 400000);
	bench_stop();
}

static void bench_with_wred(struct wred_profile w)
{
	struct ethernet_switch_port_config ports[PORTS];

	bench_ports(ports);
	for (unsigned i = 0; i < PORTS; i++)
		ports[i].pg[3].th = (struct mmu_threshold){.static_th_bytes = UINT64_MAX};
	w.enabled = true;
	ports[1].wred[3] = w;
	ports[1].wred[1] = w;
	bench_start(ports);
}

// Egress paused, 600 frames of 1000 bytes queued, Kmin 100 kB, Kmax 300 kB, Pmax 100 %. Frame k
// finds 1000 k bytes: never up to k = 100, always from 301; between, the sum of (k - 100) / 200
// over 101..300 is 100.5, its deviation sqrt(200 / 6) = 5.8.
static void enqueue_marks_follow_the_queue_a_frame_finds(void **state)
{
	bench_with_wred((struct wred_profile){
		.min_bytes = 100000, .max_bytes = 300000, .pmax_q32 = UINT32_MAX});
	send_pfc(1, 1 << 3, 65535);
	run(SIM_US);
	source(0, (struct source){.to = 1, .len = LEN, .dscp = 3, .ecn = ECN_ECT0, .left = 600});
	run(100 * SIM_US);
	send_pfc(1, 1 << 3, 0);
	run(300 * SIM_US);
	assert_int_equal(b->peer[1].n_rec, 600);
	assert_int_equal(marked(1, 0, 101), 0);
	assert_in_range(marked(1, 101, 301), 100 - 24, 100 + 24);
	assert_int_equal(marked(1, 301, 600), 299);
	for (unsigned i = 0; i < 600; i++)
		assert_int_equal(ipv4_header_sum(got(1, i)->bytes + 14, 20), 0xffff);
	assert_int_equal(counters(1)->ecn_marked[3], marked(1, 0, 600));
	bench_stop();
}

// The same queue judged when frames leave: the first, with all behind them, are the marked ones.
static void dequeue_marks_follow_the_queue_a_frame_leaves(void **state)
{
	bench_with_wred((struct wred_profile){.min_bytes = 100000,
		.max_bytes = 300000,
		.pmax_q32 = UINT32_MAX,
		.at_dequeue = true});
	send_pfc(1, 1 << 3, 65535);
	run(SIM_US);
	source(0, (struct source){.to = 1, .len = LEN, .dscp = 3, .ecn = ECN_ECT1, .left = 600});
	run(100 * SIM_US);
	send_pfc(1, 1 << 3, 0);
	run(300 * SIM_US);
	// Frame i leaves 1000 (600 - i) bytes, itself included: > 300 kB for i < 300.
	assert_int_equal(marked(1, 0, 300), 300);
	assert_in_range(marked(1, 300, 500), 100 - 24, 100 + 24);
	assert_int_equal(marked(1, 500, 600), 0);
	bench_stop();
}

static void what_cannot_be_marked_is_left_or_dropped_as_configured(void **state)
{
	bench_with_wred((struct wred_profile){.min_bytes = 5000,
		.max_bytes = 5000,
		.pmax_q32 = UINT32_MAX,
		.drop_not_ect = true});
	send_pfc(1, 1 << 3 | 1 << 1, 65535);
	run(SIM_US);
	source(0, (struct source){.to = 1, .len = LEN, .dscp = 3, .left = 20});
	source(2, (struct source){.to = 1, .len = LEN, .dscp = 3, .ecn = ECN_CE, .left = 20});
	run(10 * SIM_US);
	// Lossless: never dropped by WRED; CE already: nothing to mark here, but seen.
	assert_int_equal(counters(0)->drops[DROP_WRED], 0);
	assert_int_equal(counters(1)->ecn_marked[3], 0);
	assert_int_equal(counters(2)->ce_seen[3], 20);
	bench_stop();

	struct ethernet_switch_port_config ports[PORTS];
	bench_ports(ports);
	ports[1].pfc_rx = 1 << 1;
	ports[1].wred[1] = (struct wred_profile){.enabled = true,
		.min_bytes = 5000,
		.max_bytes = 5000,
		.pmax_q32 = UINT32_MAX,
		.drop_not_ect = true};
	bench_start(ports);
	send_pfc(1, 1 << 1, 65535);
	run(SIM_US);
	source(0, (struct source){.to = 1, .len = LEN, .left = 20});
	run(10 * SIM_US);
	// Lossy: the 7th finds 6000 bytes, more than 5000, and so do all after it.
	assert_int_equal(counters(0)->drops[DROP_WRED], 14);
	bench_stop();
}

static void lossy_frames_drop_at_their_queues_limit(void **state)
{
	struct ethernet_switch_port_config ports[PORTS];
	struct ethernet_switch_queue_view v;

	bench_ports(ports);
	ports[1].pfc_rx = 1 << 1;
	ports[1].queue[1] =
		(struct mmu_queue_profile){.size_bytes = 1000, .th = {.static_th_bytes = 4000}};
	bench_start(ports);
	send_pfc(1, 1 << 1, 65535);
	run(SIM_US);
	source(0, (struct source){.to = 1, .len = LEN, .left = 8});
	run(10 * SIM_US);
	assert_int_equal(counters(0)->drops[DROP_QUEUE_FULL], 3); // 1 + 4 of 8 pass
	assert_int_equal(counters(0)->prio_drops[1], 3);
	ethernet_switch_queue(b->sw, 1, 1, &v);
	assert_int_equal(v.peak_bytes, 5000);
	bench_stop();
}

static void watermarks_and_pool_show_the_most_that_was_held(void **state)
{
	struct ethernet_switch_pg_view pg;
	struct ethernet_switch_pool_view pool_view;

	bench_default();
	send_pfc(1, 1 << 3, 65535);
	run(SIM_US);
	for (int i = 0; i < 4; i++)
		send_udp(0, 1, 60 + 41, 3, 0); // 105 bytes with FCS: two cells each
	run(3 * SIM_US);
	ethernet_switch_pg(b->sw, 0, 3, &pg);
	assert_int_equal(pg.bytes, 800);
	assert_int_equal(pg.shared_bytes, 800);
	assert_int_equal(pg.limit_bytes, 2000);
	assert_int_equal(pg.min_slack_bytes, 1200); // how far from XOFF
	send_pfc(1, 1 << 3, 0);
	run(10 * SIM_US);
	ethernet_switch_pg(b->sw, 0, 3, &pg);
	assert_int_equal(pg.bytes, 0);
	assert_int_equal(pg.peak_bytes, 800);
	ethernet_switch_pool(b->sw, &pool_view);
	assert_int_equal(pool_view.shared_used, 0);
	assert_int_equal(pool_view.shared_peak, 800);
	// 10 MB less 4 ports x 2 PGs x 3000 bytes of headroom
	assert_int_equal(pool_view.headroom_size, 24000);
	assert_int_equal(pool_view.shared_size, 10000000 - 24000);
	bench_stop();
}

static void flows_of_one_route_use_all_its_ports(void **state)
{
	bench_default();
	assert_int_equal(ethernet_switch_set_route(b->sw, 3, (uint16_t[]){1, 2}, 2), 0);
	uint8_t bytes[100];
	for (uint16_t i = 0; i < 64; i++) {
		udp_frame(bytes, 0, 3, 100, 0, 0, 64);
		put_be16(bytes + 34, 0xc000 + i); // source port: the entropy
		send_bytes(0, bytes, sizeof(bytes));
		send_bytes(0, bytes, sizeof(bytes)); // the same flow takes the same way
	}
	run(SIM_MS);
	assert_int_equal(b->peer[1].n_rec + b->peer[2].n_rec, 128);
	assert_int_equal(b->peer[1].n_rec % 2, 0);
	// 64 fair choices: 32, deviation 4.
	assert_in_range(b->peer[1].n_rec / 2, 16, 48);
	bench_stop();
}

static uint8_t dscp_of(const struct record *r)
{
	return r->bytes[15] >> 2;
}

static void bounced_frames_go_on_by_another_queue_in_the_pg_they_came_by(void **state)
{
	struct ethernet_switch_port_config ports[PORTS];
	struct ethernet_switch_pg_view pg;
	uint8_t map[QOS_DSCPS];

	for (unsigned i = 0; i < QOS_DSCPS; i++)
		map[i] = (uint8_t)i;
	map[3] = 4;
	bench_ports(ports);
	ports[2].up = ports[3].up = true;
	ports[2].host_port = ports[3].host_port = false;
	bench_bounce = map;
	bench_start(ports);
	bench_bounce = NULL;
	send_udp(2, 3, 500, 3, 0); // from above, up again
	send_udp(2, 1, 500, 3, 0); // from above, down
	send_udp(0, 3, 500, 3, 0); // from below, up
	run(5 * SIM_US);
	assert_int_equal(b->peer[3].n_rec, 2);
	assert_int_equal(dscp_of(got(3, 0)) + dscp_of(got(3, 1)), 4 + 3);
	assert_int_equal(dscp_of(got(1, 0)), 3);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(ipv4_header_sum(got(3, i)->bytes + 14, 20), 0xffff);
	// The upper neighbour pauses what was bounced by its new priority, not the old one.
	send_pfc(3, 1 << 3, 65535);
	run(6 * SIM_US);
	send_udp(2, 3, 500, 3, 0);
	run(8 * SIM_US);
	assert_int_equal(b->peer[3].n_rec, 3);
	send_pfc(3, 1 << 4, 65535);
	run(9 * SIM_US);
	send_udp(2, 3, 500, 3, 0);
	run(11 * SIM_US);
	assert_int_equal(b->peer[3].n_rec, 3);
	ethernet_switch_pg(b->sw, 2, 3, &pg);
	assert_int_equal(pg.bytes, 600); // 504 with FCS, in cells of 100
	ethernet_switch_pg(b->sw, 2, 4, &pg);
	assert_int_equal(pg.bytes, 0);
	send_pfc(3, 1 << 3 | 1 << 4, 0);
	bench_stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dwrr_shares_the_wire_by_weight),
		cmocka_unit_test(strict_priority_starves_the_others),
		cmocka_unit_test(enqueue_marks_follow_the_queue_a_frame_finds),
		cmocka_unit_test(dequeue_marks_follow_the_queue_a_frame_leaves),
		cmocka_unit_test(what_cannot_be_marked_is_left_or_dropped_as_configured),
		cmocka_unit_test(lossy_frames_drop_at_their_queues_limit),
		cmocka_unit_test(watermarks_and_pool_show_the_most_that_was_held),
		cmocka_unit_test(flows_of_one_route_use_all_its_ports),
		cmocka_unit_test(bounced_frames_go_on_by_another_queue_in_the_pg_they_came_by),
	};

	return cmocka_run_group_tests(tests, eal_up, eal_down);
}
