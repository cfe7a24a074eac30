/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "models/cc.h"
#include "models/np.h"

#define GBPS UINT64_C(1000000000)
#define MBPS UINT64_C(1000000)

static struct cc_params params;
static struct cc cc;

static void begin(enum dcqcn_preset preset, uint64_t line)
{
	params = (struct cc_params){.algorithm = CC_DCQCN, .dcqcn = dcqcn_preset(preset)};
	cc_init(&cc, &params, line, 1024, 0);
}

static void is_unlimited_and_without_timer_until_a_cnp_comes(void **state)
{
	begin(DCQCN_MLX5, 100 * GBPS);
	for (int i = 0; i < 10000; i++)
		cc_sent(&cc, i * SIM_US, 1000);
	assert_true(cc_unlimited(&cc));
	assert_true(cc.deadline == SIMTIME_NEVER);
	assert_int_equal(cc.window_bytes, 0);
}

// alpha 1 with rpg_gd 11 is half: 40 -> 20 Gb/s; the target stays at 40.
static void first_cnp_halves_the_rate_and_starts_the_timer(void **state)
{
	begin(DCQCN_PAPER, 40 * GBPS);
	cc_cnp(&cc, 7 * SIM_US);
	assert_int_equal(cc.rate_bps, 20 * GBPS);
	assert_int_equal(cc.dcqcn.target_bps, 40 * GBPS);
	assert_int_equal(cc.deadline, (7 + 55) * SIM_US);
	assert_int_equal(cc.min_rate_bps, 20 * GBPS);
}

// Fast recovery, F = 5: the distance to the target halves five times: 20 -> 30 -> 35 -> 37.5 ->
// 38.75 -> 39.375. Then the target would grow, but 40 is the line: it goes on halving.
static void fast_recovery_halves_the_distance_to_the_target(void **state)
{
	static const uint64_t mbps[] = {30000, 35000, 37500, 38750, 39375};

	begin(DCQCN_PAPER, 40 * GBPS);
	cc_cnp(&cc, 0);
	for (int i = 0; i < 5; i++) {
		cc_timer(&cc, (i + 1) * 55 * SIM_US);
		assert_int_equal(cc.rate_bps, mbps[i] * MBPS);
	}
}

// Two CNPs 55 us apart: 40 -> 20 -> (alpha after one quiet period: 255/256)
// 20 * (1 - 255/512) = 10.0390625; the target is clamped to 20. Five recoveries:
// 20 - 9.9609375 / 32 = 19.688720703125. The sixth: target 20.04, (19.688720703 + 20.04) / 2.
static void target_grows_by_ai_after_f_recoveries(void **state)
{
	begin(DCQCN_PAPER, 40 * GBPS);
	cc_cnp(&cc, 0);
	cc_cnp(&cc, 55 * SIM_US);
	assert_int_equal(cc.rate_bps, 10039062500);
	assert_int_equal(cc.dcqcn.target_bps, 20 * GBPS);
	cc_timer(&cc, 55 * SIM_US + 5 * 55 * SIM_US);
	assert_in_range(cc.rate_bps, 19688720703, 19688720708);
	cc_timer(&cc, 55 * SIM_US + 6 * 55 * SIM_US);
	assert_int_equal(cc.dcqcn.target_bps, 20040 * MBPS);
	assert_in_range(cc.rate_bps, 19864360351, 19864360354);
}

// With the byte counter at 10 MB and 1000-byte packets: 10,000 packets are one increase. Both
// stages beyond F = 5 are hyper increase: the target grows by rpg_hai_rate, 400 Mb/s.
static void hyper_increase_needs_both_counters(void **state)
{
	begin(DCQCN_PAPER, 40 * GBPS);
	params.dcqcn.rpg_max_rate = 0;
	cc_cnp(&cc, 0);
	cc.dcqcn.target_bps = 20 * GBPS;
	cc_set_rate(&cc, 20 * GBPS);
	for (int i = 0; i < 6; i++)
		cc_timer(&cc, (i + 1) * 55 * SIM_US);
	assert_int_equal(cc.dcqcn.target_bps, 20040 * MBPS); // one additive: T = 5
	for (int i = 0; i < 60000; i++)
		cc_sent(&cc, 330 * SIM_US, 1000);
	assert_int_equal(cc.dcqcn.byte_stage, 6);
	assert_int_equal(cc.dcqcn.target_bps, 20280 * MBPS); // six additive: min(T, B) <= 5
	cc_timer(&cc, 7 * 55 * SIM_US);
	assert_int_equal(cc.dcqcn.target_bps, 20680 * MBPS); // T = B = 6
}

// As the ns-3 model, whose stage is the timer's alone: at the threshold additive, above it hyper.
static void without_byte_counter_the_timer_alone_decides(void **state)
{
	begin(DCQCN_ALIBABA, 100 * GBPS);
	cc_cnp(&cc, 0);
	cc.dcqcn.target_bps = 60 * GBPS;
	cc_timer(&cc, 300 * SIM_US); // stage 0 < 1
	assert_int_equal(cc.dcqcn.target_bps, 60000 * MBPS);
	cc_timer(&cc, 600 * SIM_US); // stage 1
	assert_int_equal(cc.dcqcn.target_bps, 60020 * MBPS);
	cc_timer(&cc, 900 * SIM_US); // stage 2
	assert_int_equal(cc.dcqcn.target_bps, 60220 * MBPS);
}

static void a_cnp_within_the_monitor_period_counts_at_its_end(void **state)
{
	begin(DCQCN_MLX5, 100 * GBPS);
	params.dcqcn.initial_alpha_value = 1024;
	cc_cnp(&cc, 0);
	assert_int_equal(cc.rate_bps, 50 * GBPS);
	cc_cnp(&cc, SIM_US);
	cc_cnp(&cc, 2 * SIM_US);
	assert_int_equal(cc.rate_bps, 50 * GBPS);
	assert_int_equal(cc.deadline, 4 * SIM_US);
	cc_timer(&cc, 4 * SIM_US);
	assert_in_range(cc.rate_bps, 25 * GBPS, 25300 * MBPS); // once, alpha nearly 1
	assert_int_equal(cc.deadline, (4 + 300) * SIM_US);
}

// The first decrease after the first CNP must not move the target: nothing was increased.
static void target_is_clamped_by_the_first_decrease_after_an_increase_only(void **state)
{
	begin(DCQCN_MLX5, 100 * GBPS);
	cc_cnp(&cc, 0);
	cc_cnp(&cc, 10 * SIM_US);
	assert_int_equal(cc.dcqcn.target_bps, 100 * GBPS);
	cc_timer(&cc, 310 * SIM_US);
	uint64_t rate = cc.rate_bps;
	cc_cnp(&cc, 320 * SIM_US);
	assert_int_equal(cc.dcqcn.target_bps, rate);
}

static void clamp_after_time_increase_can_be_turned_off(void **state)
{
	begin(DCQCN_MLX5, 100 * GBPS);
	params.dcqcn.clamp_tgt_rate_after_time_inc = false;
	cc_cnp(&cc, 0);
	cc_timer(&cc, 300 * SIM_US);
	cc_cnp(&cc, 310 * SIM_US);
	assert_int_equal(cc.dcqcn.target_bps, 100 * GBPS);
}

// g = 1/256, no CNP for 256 periods: (255/256)^256 = 0.367159 of what it was.
static void alpha_decays_by_g_per_quiet_period(void **state)
{
	begin(DCQCN_PAPER, 40 * GBPS);
	params.dcqcn.rpg_time_reset = SIM_S;
	cc_cnp(&cc, 0);
	cc_cnp(&cc, 256 * 55 * SIM_US);
	assert_in_range(cc.dcqcn.alpha, 0.36714 * DCQCN_ALPHA_ONE, 0.36716 * DCQCN_ALPHA_ONE);
	// and up by g * (1 - alpha) in the period of this CNP: 0.367159 * 255/256 + 1/256
	cc_cnp(&cc, 257 * 55 * SIM_US);
	assert_in_range(cc.dcqcn.alpha, 0.36962 * DCQCN_ALPHA_ONE, 0.36964 * DCQCN_ALPHA_ONE);
}

static void no_decrease_goes_below_the_factor_or_the_floor(void **state)
{
	begin(DCQCN_MLX5, 100 * GBPS);
	params.dcqcn.rpg_min_dec_fac = 80;
	params.dcqcn.rpg_min_rate = 70 * GBPS;
	cc_cnp(&cc, 0);
	assert_int_equal(cc.rate_bps, 80 * GBPS);
	cc_cnp(&cc, 10 * SIM_US); // 64
	assert_int_equal(cc.rate_bps, 70 * GBPS);
}

static void gd_10_takes_all_of_alpha(void **state)
{
	begin(DCQCN_MLX5, 100 * GBPS);
	params.dcqcn.rpg_gd = 10;
	params.dcqcn.rpg_min_dec_fac = 1;
	params.dcqcn.initial_alpha_value = 768; // 3/4
	cc_cnp(&cc, 0);
	assert_int_equal(cc.rate_bps, 25 * GBPS);
}

static void first_cnp_can_set_a_rate(void **state)
{
	begin(DCQCN_MLX5, 100 * GBPS);
	params.dcqcn.rate_to_set_on_first_cnp = 10 * GBPS;
	params.dcqcn.initial_alpha_value = 1024;
	cc_cnp(&cc, 0);
	assert_int_equal(cc.rate_bps, 5 * GBPS);
	assert_int_equal(cc.dcqcn.target_bps, 10 * GBPS);
}

// At most 64 halvings to within 1 b/s of the line: then it is as before the first CNP.
static void limiter_is_freed_at_the_top(void **state)
{
	begin(DCQCN_PAPER, 40 * GBPS);
	cc_cnp(&cc, 0);
	cc_timer(&cc, 64 * 55 * SIM_US);
	assert_true(cc_unlimited(&cc));
	assert_true(cc.deadline == SIMTIME_NEVER);
	assert_int_equal(cc.min_rate_bps, 20 * GBPS);
	cc_cnp(&cc, SIM_S);
	assert_int_equal(cc.rate_bps, 20 * GBPS); // alpha is the initial one again
}

static void late_timers_make_up_for_what_was_due(void **state)
{
	begin(DCQCN_PAPER, 40 * GBPS);
	cc_cnp(&cc, 0);
	for (int i = 1; i <= 20; i++)
		cc_timer(&cc, i * 55 * SIM_US);
	uint64_t rate = cc.rate_bps;
	begin(DCQCN_PAPER, 40 * GBPS);
	cc_cnp(&cc, 0);
	cc_timer(&cc, 20 * 55 * SIM_US);
	assert_int_equal(cc.rate_bps, rate);
}

static void algorithms_are_found_by_name(void **state)
{
	assert_int_equal(cc_by_name("dcqcn"), CC_DCQCN);
	assert_int_equal(cc_by_name("none"), CC_NONE);
	assert_int_equal(cc_by_name("cubic"), CC_ALGORITHM_COUNT);
	params.algorithm = CC_NONE;
	cc_init(&cc, &params, GBPS, 1024, 0);
	cc_cnp(&cc, 0);
	cc_loss(&cc, 0, 0, true);
	assert_int_equal(cc.rate_bps, GBPS);
	assert_true(cc.deadline == SIMTIME_NEVER);
}

// ---- notification point ----------------------------------------------------------------------

static struct np np;
static const uint8_t ip_a[16] = {10, 0, 0, 1}, ip_b[16] = {10, 0, 0, 2};

static void begin_np(enum np_scope scope)
{
	np_init(&np, &(struct np_params){
			     .enable = true, .scope = scope, .min_time_between_cnps = 4 * SIM_US});
}

static void cnps_of_a_queue_pair_are_spaced(void **state)
{
	struct np_clock a = {0}, b = {0};

	begin_np(NP_SCOPE_QP);
	assert_true(np_ce(&np, &a, ip_a, 0));
	assert_false(np_ce(&np, &a, ip_a, 4 * SIM_US - 1));
	assert_true(np_ce(&np, &b, ip_a, SIM_US));
	assert_true(np_ce(&np, &a, ip_a, 4 * SIM_US));
}

static void cnps_of_an_address_are_spaced(void **state)
{
	struct np_clock a = {0}, b = {0}, c = {0};

	begin_np(NP_SCOPE_IP);
	assert_true(np_ce(&np, &a, ip_a, 0));
	assert_false(np_ce(&np, &b, ip_a, SIM_US));
	assert_true(np_ce(&np, &c, ip_b, SIM_US));
	assert_true(np_ce(&np, &b, ip_a, 4 * SIM_US));
}

static void cnps_of_a_port_are_spaced(void **state)
{
	struct np_clock a = {0}, b = {0};

	begin_np(NP_SCOPE_PORT);
	assert_true(np_ce(&np, &a, ip_a, 0));
	assert_false(np_ce(&np, &b, ip_b, SIM_US));
	assert_true(np_ce(&np, &b, ip_b, 4 * SIM_US));
}

// A thousand addresses in turn, far more than four of them within their interval per set: those
// displaced may be answered early, but an address seen again at once is not.
static void many_addresses_share_the_table(void **state)
{
	struct np_clock c = {0};

	begin_np(NP_SCOPE_IP);
	for (uint32_t i = 1; i <= 10000; i++) {
		uint8_t ip[16] = {10, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i};
		assert_true(np_ce(&np, &c, ip, i));
		assert_false(np_ce(&np, &c, ip, i));
	}
}

static void disabled_point_sends_nothing(void **state)
{
	struct np_clock c = {0};

	begin_np(NP_SCOPE_QP);
	np.params.enable = false;
	assert_false(np_ce(&np, &c, ip_a, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_unlimited_and_without_timer_until_a_cnp_comes),
		cmocka_unit_test(first_cnp_halves_the_rate_and_starts_the_timer),
		cmocka_unit_test(fast_recovery_halves_the_distance_to_the_target),
		cmocka_unit_test(target_grows_by_ai_after_f_recoveries),
		cmocka_unit_test(hyper_increase_needs_both_counters),
		cmocka_unit_test(without_byte_counter_the_timer_alone_decides),
		cmocka_unit_test(a_cnp_within_the_monitor_period_counts_at_its_end),
		cmocka_unit_test(target_is_clamped_by_the_first_decrease_after_an_increase_only),
		cmocka_unit_test(clamp_after_time_increase_can_be_turned_off),
		cmocka_unit_test(alpha_decays_by_g_per_quiet_period),
		cmocka_unit_test(no_decrease_goes_below_the_factor_or_the_floor),
		cmocka_unit_test(gd_10_takes_all_of_alpha),
		cmocka_unit_test(first_cnp_can_set_a_rate),
		cmocka_unit_test(limiter_is_freed_at_the_top),
		cmocka_unit_test(late_timers_make_up_for_what_was_due),
		cmocka_unit_test(algorithms_are_found_by_name),
		cmocka_unit_test(cnps_of_a_queue_pair_are_spaced),
		cmocka_unit_test(cnps_of_an_address_are_spaced),
		cmocka_unit_test(cnps_of_a_port_are_spaced),
		cmocka_unit_test(many_addresses_share_the_table),
		cmocka_unit_test(disabled_point_sends_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
