/* SPDX-License-Identifier: BSD-3-Clause */
// The watchdog's arithmetic: polls of 100 us, detection and restoration in 250 us unless said.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "models/pfc_wd.h"

#define POLL (100 * SIM_US)

static struct pfc_wd w;
static struct pfc_wd_config cfg;
static struct pfc_wd_sample s;

static int reset(void **state)
{
	cfg = (struct pfc_wd_config){
		.detection_time = 250 * SIM_US, .restoration_time = 250 * SIM_US};
	s = (struct pfc_wd_sample){0};
	pfc_wd_init(&w, &cfg);
	return 0;
}

static enum pfc_wd_verdict poll(void)
{
	return pfc_wd_poll(&w, &cfg, w.last_poll + POLL, &s);
}

// One poll later: paused all the time, an XOFF came, nothing left.
static enum pfc_wd_verdict storm(void)
{
	s.xoffs++;
	s.paused += POLL;
	s.pause_status = true;
	return poll();
}

static void make_stormed(void)
{
	s.occupancy_bytes = 1000;
	for (int i = 0; i < 10 && !w.stormed; i++)
		storm();
	assert_true(w.stormed);
}

// 250 -> 150 -> 50 <= 100: the third poll.
static void time_left_runs_down_and_fires_when_it_is_a_poll_or_less(void **state)
{
	s.occupancy_bytes = 1000;
	assert_int_equal(storm(), PFC_WD_UNCHANGED);
	assert_int_equal(w.time_left, 150 * SIM_US);
	assert_int_equal(storm(), PFC_WD_UNCHANGED);
	assert_int_equal(storm(), PFC_WD_DETECTED);
	assert_int_equal(storm(), PFC_WD_UNCHANGED);
}

static void one_good_poll_starts_detection_anew(void **state)
{
	s.occupancy_bytes = 1000;
	storm();
	storm();
	s.packets++;
	assert_int_equal(storm(), PFC_WD_UNCHANGED);
	assert_int_equal(w.time_left, 250 * SIM_US);
	storm();
	storm();
	assert_int_equal(storm(), PFC_WD_DETECTED);
}

static void generic_needs_xoffs_with_frames_and_four_fifths_of_pause_without(void **state)
{
	s.occupancy_bytes = 1000;
	s.paused += POLL;
	poll(); // paused, but no XOFF came
	assert_int_equal(w.time_left, 250 * SIM_US);
	s.occupancy_bytes = 0;
	s.paused += 80 * SIM_US; // not more than 80 %
	poll();
	assert_int_equal(w.time_left, 250 * SIM_US);
	s.paused += 80 * SIM_US + 1;
	poll();
	assert_int_equal(w.time_left, 150 * SIM_US);
}

// Case 4 of what people reported: a generator that leaves gaps.
static void a_gap_is_no_storm_to_broadcom(void **state)
{
	cfg.condition = PFC_WD_CONDITION_BROADCOM;
	storm(); // not paused at the poll before
	assert_int_equal(w.time_left, 250 * SIM_US);
	storm();
	assert_int_equal(w.time_left, 150 * SIM_US);
	s.on2off++;
	storm();
	assert_int_equal(w.time_left, 250 * SIM_US);
	for (int i = 0; i < 100; i++) {
		s.on2off++;
		assert_int_equal(storm(), PFC_WD_UNCHANGED);
	}
}

static void a_gap_below_one_percent_is_a_storm_to_mellanox(void **state)
{
	cfg.condition = PFC_WD_CONDITION_MELLANOX;
	s.occupancy_bytes = 1000;
	for (int i = 0; i < 100; i++) { // 99 %, not more
		s.paused += 99 * SIM_US;
		assert_int_equal(poll(), PFC_WD_UNCHANGED);
	}
	// 99.1 us a poll: 99.1, 198.2, 297.3 > 0.99 * 250 = 247.5
	s.paused += 99100 * SIM_NS;
	assert_int_equal(poll(), PFC_WD_UNCHANGED);
	s.paused += 99100 * SIM_NS;
	assert_int_equal(poll(), PFC_WD_UNCHANGED);
	s.paused += 99100 * SIM_NS;
	assert_int_equal(poll(), PFC_WD_DETECTED);
}

static void mellanox_needs_frames_that_wait(void **state)
{
	cfg.condition = PFC_WD_CONDITION_MELLANOX;
	for (int i = 0; i < 100; i++)
		assert_int_equal(storm(), PFC_WD_UNCHANGED);
}

static void restored_when_no_xoff_came_for_restoration_time(void **state)
{
	make_stormed();
	poll();
	poll();
	s.xoffs++; // one is enough to start anew
	assert_int_equal(poll(), PFC_WD_UNCHANGED);
	assert_int_equal(w.time_left, 250 * SIM_US);
	assert_int_equal(poll(), PFC_WD_UNCHANGED);
	assert_int_equal(poll(), PFC_WD_UNCHANGED);
	assert_int_equal(poll(), PFC_WD_RESTORED);
	assert_false(w.stormed);
	assert_int_equal(w.time_left, 250 * SIM_US);
}

static void alert_is_restored_by_the_first_good_poll(void **state)
{
	cfg.action = PFC_WD_ALERT;
	make_stormed();
	assert_int_equal(storm(), PFC_WD_UNCHANGED);
	s.packets++;
	assert_int_equal(storm(), PFC_WD_RESTORED);
}

static void big_red_switch_is_never_restored(void **state)
{
	cfg.big_red_switch = true;
	assert_true(pfc_wd_force(&w));
	assert_false(pfc_wd_force(&w));
	for (int i = 0; i < 100; i++)
		assert_int_equal(poll(), PFC_WD_UNCHANGED);
	assert_true(w.stormed);
}

#define T(f) cmocka_unit_test_setup(f, reset)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(time_left_runs_down_and_fires_when_it_is_a_poll_or_less),
		T(one_good_poll_starts_detection_anew),
		T(generic_needs_xoffs_with_frames_and_four_fifths_of_pause_without),
		T(a_gap_is_no_storm_to_broadcom),
		T(a_gap_below_one_percent_is_a_storm_to_mellanox),
		T(mellanox_needs_frames_that_wait),
		T(restored_when_no_xoff_came_for_restoration_time),
		T(alert_is_restored_by_the_first_good_poll),
		T(big_red_switch_is_never_restored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
