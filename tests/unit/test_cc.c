/* SPDX-License-Identifier: BSD-3-Clause */
// DCTCP, TIMELY, Swift and HPCC against their papers' formulas worked by hand. DCQCN: test_dcqcn.c.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "models/cc.h"
#include "pcap/int.h"

#define GBPS UINT64_C(1000000000)
#define MBPS UINT64_C(1000000)
#define Q32  (UINT64_C(1) << 32)
#define MTU  1000u

static struct cc_params params;
static struct cc cc;

static void begin(enum cc_algorithm a, uint64_t line)
{
	params = (struct cc_params){
		.algorithm = a,
		.dctcp = {.g = Q32 / 16, .initial_window = 10, .min_window = 1},
		.timely = {.t_low = 50 * SIM_US,
			.t_high = 500 * SIM_US,
			.min_rtt = 20 * SIM_US,
			.add_step = 10 * MBPS,
			.beta = Q32 / 5 * 4,
			.alpha = Q32,
			.hai_threshold = 5,
			.initial_rate = 5 * GBPS,
			.min_rate = 10 * MBPS},
		.swift = {.base_target = 25 * SIM_US,
			.hop_scale = SIM_US,
			.fs_range = 0,
			.fs_min_cwnd = 100,
			.fs_max_cwnd = 100000,
			.ai = 1000,
			.beta = Q32 / 5 * 4,
			.max_mdf = Q32 / 2,
			.retx_reset_threshold = 5,
			.initial_cwnd = 10,
			.min_cwnd = 10,
			.max_cwnd = 1000000},
		.hpcc = {.base_rtt = 10 * SIM_US,
			.eta = Q32 / 100 * 95,
			.max_stage = 5,
			.w_ai = 80,
			.min_rate = 100 * MBPS},
	};
	cc_init(&cc, &params, line, MTU, 0);
}

// Packet after packet; `sent` ahead of what is acknowledged.
static uint64_t acked;

static void ack(simtime_t now, unsigned packets, uint64_t in_flight, bool ce, simtime_t rtt)
{
	acked += packets;
	cc_ack(&cc, now,
		&(struct cc_ack){.acked_bytes = (uint64_t)packets * MTU,
			.acked_to = acked,
			.sent_to = acked + in_flight,
			.ce = ce,
			.rtt = rtt});
}

static void near(uint64_t value, uint64_t expected, uint64_t tolerance)
{
	uint64_t d = value > expected ? value - expected : expected - value;

	if (d > tolerance)
		fail_msg("%lu, expected %lu", (unsigned long)value, (unsigned long)expected);
}

// ---- DCTCP -----------------------------------------------------------------------------------

// Without marks: slow start adds what is acknowledged.
static void dctcp_begins_with_slow_start(void **state)
{
	begin(CC_DCTCP, 10 * GBPS);
	acked = 0;
	assert_int_equal(cc.window_bytes, 10 * MTU);
	ack(0, 10, 10, false, 0);
	assert_int_equal(cc.window_bytes, 20 * MTU);
}

// alpha is 1: the first mark halves, 10 -> 5 packets. Then one packet per window.
static void dctcp_halves_at_the_first_mark_once_per_window(void **state)
{
	begin(CC_DCTCP, 10 * GBPS);
	acked = 0;
	ack(0, 1, 9, true, 0);
	assert_int_equal(cc.window_bytes, 5 * MTU);
	for (int i = 0; i < 9; i++) // those that were in flight, marked as well
		ack(0, 1, 5, true, 0);
	assert_int_equal(cc.window_bytes, 5 * MTU);
	// 5 + 1/5 + 1/5.2 + 1/5.392 + 1/5.578 + 1/5.757 = 5.930 packets, had there been no marks.
	for (int i = 0; i < 5; i++)
		ack(0, 1, 5, false, 0);
	near(cc.window_bytes, 5930, 2);
}

// g = 1/16. Windows of 8 of which 2 are marked: M = 1/4.
// 1 -> 15/16 + 1/64 = 0.953125 -> 0.953125 * 15/16 + 1/64 = 0.9091796875.
static void dctcp_alpha_is_the_smoothed_share_of_marks(void **state)
{
	begin(CC_DCTCP, 10 * GBPS);
	acked = 0;
	cc.dctcp.observe_end = 7; // a window of 8
	for (int window = 0; window < 2; window++) {
		for (int i = 0; i < 8; i++)
			ack(0, 1, 7, i < 2, 0);
		assert_int_equal(cc.dctcp.alpha, window == 0 ? Q32 / 64 * 61 : Q32 / 1024 * 931);
	}
}

// Halved by a NAK, once; the least one and slow start after a timeout, up to half of before.
static void dctcp_loss(void **state)
{
	begin(CC_DCTCP, 10 * GBPS);
	acked = 0;
	cc_loss(&cc, 0, 10, false);
	assert_int_equal(cc.window_bytes, 5 * MTU);
	cc_loss(&cc, 0, 12, false);
	assert_int_equal(cc.window_bytes, 5 * MTU);
	cc_loss(&cc, 0, 12, true);
	assert_int_equal(cc.window_bytes, MTU);
	ack(0, 1, 1, false, 0);
	ack(0, 1, 1, false, 0); // 3 packets: beyond 2.5, from here on by one per window
	assert_int_equal(cc.window_bytes, 3 * MTU);
	ack(0, 1, 3, false, 0);
	near(cc.window_bytes, 3333, 1);
}

// ---- TIMELY ----------------------------------------------------------------------------------

static void timely(simtime_t rtt_us)
{
	ack(0, 1, 1, false, rtt_us * SIM_US);
}

static void timely_below_t_low_adds_a_step(void **state)
{
	begin(CC_TIMELY, 10 * GBPS);
	assert_int_equal(cc.rate_bps, 5 * GBPS);
	timely(30); // the first says nothing: there is no difference yet
	assert_int_equal(cc.rate_bps, 5 * GBPS);
	timely(49); // rising steeply, but below t_low
	assert_int_equal(cc.rate_bps, 5010 * MBPS);
}

// rate (1 - 0.8 (1 - 500/1000)) = 5 * 0.6 = 3 Gb/s.
static void timely_above_t_high_decreases_by_the_excess(void **state)
{
	begin(CC_TIMELY, 10 * GBPS);
	timely(1000);
	timely(1000);
	near(cc.rate_bps, 3 * GBPS, 10);
}

// Between them, alpha 1: diff 5 us, gradient 5/20: rate (1 - 0.8/4) = 4 Gb/s. Then falling: one
// step each, five steps each from the fifth on.
static void timely_goes_by_the_gradient_in_between(void **state)
{
	begin(CC_TIMELY, 10 * GBPS);
	timely(100);
	timely(105);
	near(cc.rate_bps, 4 * GBPS, 10);
	uint64_t rate = cc.rate_bps;
	for (int i = 1; i <= 6; i++) {
		timely(105 - i);
		rate += (i >= 5 ? 50 : 10) * MBPS;
		assert_int_equal(cc.rate_bps, rate);
	}
}

// alpha 7/8: after +8 us, diff is 7 us; after -8: 7/8 - 7 = -6.125 us.
static void timely_smooths_the_gradient(void **state)
{
	begin(CC_TIMELY, 10 * GBPS);
	params.timely.alpha = Q32 / 8 * 7;
	timely(100);
	timely(108);
	assert_int_equal(cc.timely.diff, 7 * SIM_US);
	timely(100);
	assert_int_equal(cc.timely.diff, -6125 * SIM_NS);
}

// A gradient that would take all leaves the least rate.
static void timely_has_a_floor(void **state)
{
	begin(CC_TIMELY, 10 * GBPS);
	timely(100);
	timely(300);
	assert_int_equal(cc.rate_bps, 10 * MBPS);
	assert_int_equal(cc.min_rate_bps, 10 * MBPS);
}

// ---- Swift -----------------------------------------------------------------------------------

// fs_range 50 us from 0.1 to 100 packets: a = 50 / (1/sqrt(0.1) - 1/10) = 50 / 3.062278 = 16.3277;
// b = -1.63277. At 1 packet 16.3277 - 1.63277 = 14.6949 us, at 4 6.5311 us; hops 3: 3 us more.
static void swift_target_scales_with_window_and_hops(void **state)
{
	begin(CC_SWIFT, 100 * GBPS);
	params.swift.fs_range = 50 * SIM_US;
	near(swift_target(&params.swift, SWIFT_CWND_ONE, 0), 39694900000 / 1000, 2000);
	near(swift_target(&params.swift, 4 * SWIFT_CWND_ONE, 3), 34531100, 2000);
	assert_int_equal(swift_target(&params.swift, SWIFT_CWND_ONE / 20, 0), 75 * SIM_US);
	assert_int_equal(swift_target(&params.swift, 200 * SWIFT_CWND_ONE, 2), 27 * SIM_US);
}

// 10 packets, one acknowledged: 10.1; ten windows' worth would add ten.
static void swift_adds_one_packet_per_rtt(void **state)
{
	begin(CC_SWIFT, 100 * GBPS);
	acked = 0;
	assert_int_equal(cc.window_bytes, 10 * MTU);
	ack(0, 1, 10, false, 20 * SIM_US);
	near(cc.swift.cwnd, SWIFT_CWND_ONE * 101 / 10, 2);
	assert_int_equal(cc.window_bytes, 10 * MTU);
	for (int i = 0; i < 9; i++)
		ack(0, 1, 10, false, 20 * SIM_US);
	near(cc.window_bytes, 10 * MTU, 0); // 10.96
	ack(0, 1, 10, false, 20 * SIM_US);
	assert_int_equal(cc.window_bytes, 11 * MTU);
}

// 40 us against 25: 1 - 0.8 * 15/40 = 0.7, 10 -> 7; not again within an RTT. 100 us: 1 - 0.8 * 0.75
// = 0.4 is more than max_mdf: halved, 3.5.
static void swift_decreases_by_the_excess_once_per_rtt(void **state)
{
	begin(CC_SWIFT, 100 * GBPS);
	ack(100 * SIM_US, 1, 10, false, 40 * SIM_US);
	near(cc.swift.cwnd, 7 * SWIFT_CWND_ONE, 4);
	ack(139 * SIM_US, 1, 10, false, 40 * SIM_US);
	near(cc.swift.cwnd, 7 * SWIFT_CWND_ONE, 4);
	ack(240 * SIM_US, 1, 10, false, 100 * SIM_US);
	near(cc.swift.cwnd, SWIFT_CWND_ONE * 35 / 10, 4);
	assert_int_equal(cc.window_bytes, 3 * MTU);
}

// Half a packet per 50 us: one every 100 us; 1064 bytes on the wire are 85.12 Mb/s.
static void swift_paces_below_one_packet(void **state)
{
	begin(CC_SWIFT, 100 * GBPS);
	cc_sent(&cc, 0, 1064);
	cc.swift.cwnd = SWIFT_CWND_ONE;
	ack(100 * SIM_US, 1, 1, false, 100 * SIM_US); // halved
	near(cc.swift.cwnd, SWIFT_CWND_ONE / 2, 2);
	assert_int_equal(cc.window_bytes, MTU);
	near(cc.rate_bps, 42560000, 100);
	ack(300 * SIM_US, 1, 1, false, 20 * SIM_US); // + ai * 1
	near(cc.swift.cwnd, SWIFT_CWND_ONE * 3 / 2, 2);
	assert_true(cc_unlimited(&cc));
}

static void swift_loss(void **state)
{
	begin(CC_SWIFT, 100 * GBPS);
	ack(0, 1, 10, false, 20 * SIM_US);
	cc.swift.cwnd = 64 * SWIFT_CWND_ONE;
	cc_loss(&cc, 100 * SIM_US, 0, false);
	near(cc.swift.cwnd, 32 * SWIFT_CWND_ONE, 2);
	cc_loss(&cc, 101 * SIM_US, 0, true); // within an RTT
	near(cc.swift.cwnd, 32 * SWIFT_CWND_ONE, 2);
	for (int i = 2; i <= 4; i++)
		cc_loss(&cc, i * 1000 * SIM_US, 0, true);
	near(cc.swift.cwnd, 4 * SWIFT_CWND_ONE, 2);
	cc_loss(&cc, 5 * SIM_MS, 0, true); // the fifth in a row: min_cwnd, 0.01
	near(cc.swift.cwnd, SWIFT_CWND_ONE / 100, 2);
}

// ---- HPCC ------------------------------------------------------------------------------------

// Two ACKs whose one hop of 100 Gb/s sent so many bytes in 10 us with that queue at both.
static void hpcc_two(uint64_t bytes, uint64_t queue)
{
	struct int_trailer t = {.n_hops = 1, .path_id = 5};

	t.hops[0] = (struct int_hop){.rate_bps = 100 * GBPS, .queue_bytes = queue, .at_ns = 100};
	cc_ack(&cc, SIM_US, &(struct cc_ack){.acked_to = 1, .sent_to = 100, .telemetry = &t});
	t.hops[0].at_ns = 10100;
	t.hops[0].tx_bytes = bytes / INT_TX_UNIT;
	cc_ack(&cc, 11 * SIM_US, &(struct cc_ack){.acked_to = 2, .sent_to = 100, .telemetry = &t});
}

// W starts at 100 Gb/s * 10 us = 125,000 bytes and the rate at the line's.
static void hpcc_starts_with_the_bandwidth_delay_product(void **state)
{
	begin(CC_HPCC, 100 * GBPS);
	assert_int_equal(cc.window_bytes, 125000);
	assert_true(cc_unlimited(&cc));
}

// txRate = B (125,000 bytes in 10 us, 976 units of 128: 124,928) and a queue of 62,500 bytes, half
// a BDP: u = 1.499424. W = 125,000 / (1.499424 / 0.95) + 80 = 79,277; rate W / T = 63.42 Gb/s.
static void hpcc_divides_by_the_utilisation(void **state)
{
	begin(CC_HPCC, 100 * GBPS);
	hpcc_two(125000, 62500);
	near(cc.hpcc.u, (uint64_t)(1.499424 * (double)Q32), 3000);
	near(cc.window_bytes, 79277, 2);
	near(cc.rate_bps, 63421600000, 2000000);
	assert_int_equal(cc.hpcc.reference, cc.hpcc.window);
	assert_int_equal(cc.hpcc.stage, 0);
}

// Half used: u = 0.5 (488 units: 62,464 bytes, 0.499712). From a window of 50,000: + 80 per update,
// and within an RTT the reference stays.
static void hpcc_increases_additively_below_eta(void **state)
{
	begin(CC_HPCC, 100 * GBPS);
	cc.hpcc.reference = 50000;
	hpcc_two(62500, 0);
	near(cc.hpcc.u, (uint64_t)(0.499712 * (double)Q32), 3000);
	assert_int_equal(cc.window_bytes, 50080);
	assert_int_equal(cc.hpcc.stage, 1);

	struct int_trailer t = cc.hpcc.last;
	t.hops[0].at_ns += 10000;
	t.hops[0].tx_bytes += 488;
	// Not yet what was sent after the update: W from the same reference, which stays.
	cc_ack(&cc, 21 * SIM_US, &(struct cc_ack){.acked_to = 50, .sent_to = 150, .telemetry = &t});
	assert_int_equal(cc.window_bytes, 50160);
	assert_int_equal(cc.hpcc.reference, 50080);
	assert_int_equal(cc.hpcc.stage, 1);
}

// After maxStage increases one multiplicative adjustment: from 20,000 at u = 0.499712,
// 20,000 * 0.95 / 0.499712 + 80 = 38,102.
static void hpcc_adjusts_after_max_stage(void **state)
{
	begin(CC_HPCC, 100 * GBPS);
	cc.hpcc.reference = 20000;
	cc.hpcc.stage = 5;
	hpcc_two(62500, 0);
	near(cc.window_bytes, 38102, 2);
	assert_int_equal(cc.hpcc.stage, 0);
}

// tau 2.5 us of T 10: U = 0.75 * 1 + 0.25 * u, u = 0.5 (31,250 -> 122 units, 15,616: 0.499712).
static void hpcc_smooths_by_tau(void **state)
{
	struct int_trailer t = {.n_hops = 1};

	begin(CC_HPCC, 100 * GBPS);
	t.hops[0].rate_bps = 100 * GBPS;
	t.hops[0].at_ns = INT_TS_MASK - 499; // it wraps in between
	t.hops[0].tx_bytes = INT_TX_MASK - 21;
	cc_ack(&cc, SIM_US, &(struct cc_ack){.acked_to = 1, .sent_to = 9, .telemetry = &t});
	t.hops[0].at_ns = 2000;
	t.hops[0].tx_bytes = 100;
	cc_ack(&cc, 4 * SIM_US, &(struct cc_ack){.acked_to = 2, .sent_to = 9, .telemetry = &t});
	near(cc.hpcc.u, (uint64_t)((0.75 + 0.25 * 0.499712) * (double)Q32), 3000);
}

// Another path, or silence for as long as the clock needs to wrap: only remembered.
static void hpcc_compares_like_with_like_only(void **state)
{
	begin(CC_HPCC, 100 * GBPS);
	hpcc_two(125000, 62500);
	uint64_t window = cc.window_bytes;
	struct int_trailer t = cc.hpcc.last;
	t.path_id = 6;
	t.hops[0].at_ns += 1000;
	cc_ack(&cc, 12 * SIM_US,
		&(struct cc_ack){.acked_to = 200, .sent_to = 300, .telemetry = &t});
	assert_int_equal(cc.window_bytes, window);
	assert_int_equal(cc.hpcc.last.path_id, 6);
	cc_ack(&cc, 12 * SIM_MS,
		&(struct cc_ack){.acked_to = 300, .sent_to = 400, .telemetry = &t});
	assert_int_equal(cc.window_bytes, window);
}

// ---- INT -------------------------------------------------------------------------------------

// 100 Gb/s is code 11. 0x123456 ns; 1,280,100 bytes sent: 10,000 units = 0x02710; 8,079 bytes
// queued: 100 units = 0x0064. B 4 | TS 24 | txBytes 20 | qLen 16.
static void int_records_are_laid_out_as_in_the_paper(void **state)
{
	static const uint8_t expected[INT_HEAD_BYTES + INT_HOP_BYTES] = {
		0x10, 0x07, 0xb1, 0x23, 0x45, 0x60, 0x27, 0x10, 0x00, 0x64};
	uint8_t trailer[INT_BYTES] = {0};
	struct int_trailer t;

	assert_int_equal(INT_BYTES, 42); // HPCC section 4.1
	int_push(trailer, 7,
		&(struct int_hop){.rate_bps = 100 * GBPS,
			.at_ns = 0x7123456,
			.tx_bytes = 1280100,
			.queue_bytes = 8079});
	assert_memory_equal(trailer, expected, sizeof(expected));
	int_get(trailer, &t);
	assert_int_equal(t.n_hops, 1);
	assert_int_equal(t.path_id, 7);
	assert_int_equal(t.hops[0].rate_bps, 100 * GBPS);
	assert_int_equal(t.hops[0].at_ns, 0x123456);
	assert_int_equal(t.hops[0].tx_bytes, 10000);
	assert_int_equal(t.hops[0].queue_bytes, 8000);
}

static void int_holds_five_hops_and_saturates(void **state)
{
	uint8_t trailer[INT_BYTES + 1] = {0};
	struct int_trailer t;

	for (uint16_t i = 1; i <= 20; i++)
		int_push(trailer, i,
			&(struct int_hop){.rate_bps = 3 * GBPS, .queue_bytes = 1 << 30});
	assert_int_equal(trailer[0] >> 4, 15);
	assert_int_equal(trailer[INT_BYTES], 0);
	int_get(trailer, &t);
	assert_int_equal(t.n_hops, 5);
	assert_int_equal(t.hops[4].queue_bytes, 65535 * 80);
	assert_int_equal(t.hops[4].rate_bps, 0); // no code
	assert_false(int_rate_known(3 * GBPS));
	assert_true(int_rate_known(25 * GBPS));
}

static void names_are_found(void **state)
{
	for (unsigned a = 0; a < CC_ALGORITHM_COUNT; a++)
		assert_int_equal(cc_by_name(cc_name((enum cc_algorithm)a)), a);
	assert_int_equal(cc_by_name("vegas"), CC_ALGORITHM_COUNT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dctcp_begins_with_slow_start),
		cmocka_unit_test(dctcp_halves_at_the_first_mark_once_per_window),
		cmocka_unit_test(dctcp_alpha_is_the_smoothed_share_of_marks),
		cmocka_unit_test(dctcp_loss),
		cmocka_unit_test(timely_below_t_low_adds_a_step),
		cmocka_unit_test(timely_above_t_high_decreases_by_the_excess),
		cmocka_unit_test(timely_goes_by_the_gradient_in_between),
		cmocka_unit_test(timely_smooths_the_gradient),
		cmocka_unit_test(timely_has_a_floor),
		cmocka_unit_test(swift_target_scales_with_window_and_hops),
		cmocka_unit_test(swift_adds_one_packet_per_rtt),
		cmocka_unit_test(swift_decreases_by_the_excess_once_per_rtt),
		cmocka_unit_test(swift_paces_below_one_packet),
		cmocka_unit_test(swift_loss),
		cmocka_unit_test(hpcc_starts_with_the_bandwidth_delay_product),
		cmocka_unit_test(hpcc_divides_by_the_utilisation),
		cmocka_unit_test(hpcc_increases_additively_below_eta),
		cmocka_unit_test(hpcc_adjusts_after_max_stage),
		cmocka_unit_test(hpcc_smooths_by_tau),
		cmocka_unit_test(hpcc_compares_like_with_like_only),
		cmocka_unit_test(int_records_are_laid_out_as_in_the_paper),
		cmocka_unit_test(int_holds_five_hops_and_saturates),
		cmocka_unit_test(names_are_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
