/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "models/pfc.h"

#define GBPS UINT64_C(1000000000)

static struct pauses ended;

static int reset(void **state)
{
	ended = (struct pauses){0};
	return 0;
}

// A quantum is 512 bit times: 51.2 ns at 10G, 5.12 ns at 100G, 1.28 ns at 400G.
static void quanta_last_512_bit_times(void **state)
{
	assert_int_equal(pfc_quanta_time(byte_time_fp(10 * GBPS), 1), 51200);
	assert_int_equal(pfc_quanta_time(byte_time_fp(100 * GBPS), 1), 5120);
	assert_int_equal(pfc_quanta_time(byte_time_fp(400 * GBPS), 1), 1280);
	// 65535 x 5.12 ns = 335.5392 us; at 1G 33.55392 ms
	assert_int_equal(pfc_quanta_time(byte_time_fp(100 * GBPS), 65535), 335539200);
	assert_int_equal(pfc_quanta_time(byte_time_fp(GBPS), 65535), INT64_C(33553920000));
}

// IEEE 802.3 31B.3.7: 394 quanta at 100G = 2.01728 us; 33G takes the 40G entry's 118; 1.6T keeps
// the 800G time, so twice its quanta.
static void response_time_follows_the_standards_table(void **state)
{
	assert_int_equal(pfc_response_quanta(100 * GBPS), 394);
	assert_int_equal(pfc_response_quanta(25 * GBPS), 80);
	assert_int_equal(pfc_response_quanta(33 * GBPS), 118);
	assert_int_equal(pfc_response_quanta(1600 * GBPS), 1810);
	assert_int_equal(pfc_response_time(100 * GBPS), 2017280);
}

static void one_frame_says_all_changes(void **state)
{
	struct pfc_tx p;

	pfc_tx_init(&p, 0x18, 1000, byte_time_fp(100 * GBPS));
	assert_true(pfc_tx_set(&p, 1 << 3, true));
	assert_true(pfc_tx_set(&p, 1 << 4, true));
	struct pfc_tx_frame f = pfc_tx_say(&p, 100, &ended);
	assert_int_equal(f.vector, 0x18);
	assert_int_equal(f.xoff, 0x18);
	assert_int_equal(f.quanta[3], 1000);
	assert_int_equal(f.quanta[4], 1000);
	assert_int_equal(f.quanta[0], 0);

	// 3 resumes, 4 stays: the frame resumes one and refreshes the other.
	assert_true(pfc_tx_set(&p, 1 << 3, false));
	f = pfc_tx_say(&p, 700, &ended);
	assert_int_equal(f.vector, 0x18);
	assert_int_equal(f.xoff, 0);
	assert_int_equal(f.xon, 0x08);
	assert_int_equal(f.quanta[3], 0);
	assert_int_equal(f.quanta[4], 1000);
	assert_int_equal(ended.duration[3], 600);
}

static void priorities_not_enabled_are_never_paused(void **state)
{
	struct pfc_tx p;

	pfc_tx_init(&p, 0x08, 1000, byte_time_fp(100 * GBPS));
	assert_false(pfc_tx_set(&p, 1 << 4, true));
	assert_int_equal(p.asserted, 0);
}

static void a_change_taken_back_needs_no_frame(void **state)
{
	struct pfc_tx p;

	pfc_tx_init(&p, 0x08, 1000, byte_time_fp(100 * GBPS));
	assert_true(pfc_tx_set(&p, 1 << 3, true));
	assert_false(pfc_tx_set(&p, 1 << 3, false));
	assert_false(pfc_tx_due(&p, SIM_S));
}

// 1000 quanta at 100G live 5.12 us: refresh is due 2.56 us after the last frame, again and again.
static void refresh_is_due_at_half_life(void **state)
{
	struct pfc_tx p;

	pfc_tx_init(&p, 0x08, 1000, byte_time_fp(100 * GBPS));
	pfc_tx_set(&p, 1 << 3, true);
	pfc_tx_say(&p, 0, &ended);
	assert_int_equal(p.refresh_at, 2560000);
	assert_false(pfc_tx_due(&p, 2559999));
	assert_true(pfc_tx_due(&p, 2560000));
	struct pfc_tx_frame f = pfc_tx_say(&p, 2600000, &ended);
	assert_int_equal(f.vector, 0x08);
	assert_int_equal(f.xoff, 0); // nothing new
	assert_int_equal(p.refresh_at, 5160000);
	assert_int_equal(pfc_tx_since(&p, 3), 0);
	pfc_tx_set(&p, 1 << 3, false);
	pfc_tx_say(&p, 3000000, &ended);
	assert_int_equal(p.refresh_at, SIMTIME_NEVER);
	assert_int_equal(ended.duration[3], 3000000);
}

// A refresh that just misses a frame of 9122 bytes: half life must cover 9142 + 84 bytes on the
// wire = 144.2 quanta, so 2 x 144.2 rounded up is enough and one half less is not.
static void min_quanta_let_a_refresh_arrive_in_time(void **state)
{
	uint64_t bt = byte_time_fp(100 * GBPS);
	uint32_t least = pfc_min_quanta(9122);
	simtime_t in_the_way = serialization_time(bt, 9122 + 20 + 84);
	struct pfc_tx p;

	assert_int_equal(least, 290);
	pfc_tx_init(&p, 8, (uint16_t)least, bt);
	assert_true(p.lifetime / 2 + in_the_way < p.lifetime);
	pfc_tx_init(&p, 8, (uint16_t)(least - 3), bt);
	assert_false(p.lifetime / 2 + in_the_way < p.lifetime);
}

static void pause_ends_by_itself_unless_extended(void **state)
{
	struct pfc_rx p;

	pfc_rx_init(&p, 0x08, byte_time_fp(100 * GBPS));
	assert_int_equal(pfc_rx_apply(&p, 3, 100, 0, &ended), PFC_PAUSED); // until 512 ns
	assert_int_equal(p.until[3], 512000);
	assert_int_equal(pfc_rx_apply(&p, 3, 100, 300000, &ended), PFC_NO_CHANGE);
	assert_int_equal(pfc_rx_expire(&p, 3, 512000, &ended), PFC_NO_CHANGE);
	assert_int_equal(p.until[3], 812000);
	assert_int_equal(pfc_rx_since(&p, 3), 0);
	assert_int_equal(pfc_rx_expire(&p, 3, 812000, &ended), PFC_RESUMED);
	assert_int_equal(ended.duration[3], 812000);
	assert_int_equal(pfc_rx_since(&p, 3), SIMTIME_NEVER);
}

static void xon_ends_a_pause_and_is_harmless_without_one(void **state)
{
	struct pfc_rx p;

	pfc_rx_init(&p, 0x08, byte_time_fp(100 * GBPS));
	assert_int_equal(pfc_rx_apply(&p, 3, 0, 5, &ended), PFC_NO_CHANGE);
	pfc_rx_apply(&p, 3, 65535, 10, &ended);
	assert_int_equal(pfc_rx_apply(&p, 3, 0, 25, &ended), PFC_RESUMED);
	assert_int_equal(ended.duration[3], 15);
}

static void link_down_forgets_both_sides(void **state)
{
	struct pfc_tx t;
	struct pfc_rx r;

	pfc_tx_init(&t, 0x08, 1000, byte_time_fp(100 * GBPS));
	pfc_tx_set(&t, 8, true);
	pfc_tx_say(&t, 0, &ended);
	pfc_tx_reset(&t, 50, &ended);
	assert_int_equal(ended.duration[3], 50);
	assert_true(pfc_tx_due(&t, 50)); // still asserted: to be said again
	pfc_rx_init(&r, 0x08, byte_time_fp(100 * GBPS));
	pfc_rx_apply(&r, 3, 9, 0, &ended);
	assert_int_equal(pfc_rx_reset(&r, 70, &ended), 8);
	assert_int_equal(r.paused, 0);
	assert_int_equal(ended.duration[3], 120);
	assert_int_equal(ended.transitions[3], 2);
}

// mlx5 warns of a pause made for 85 % of 8 s, and calls one of 8 s an error.
static void long_pauses_are_storms(void **state)
{
	static const simtime_t seconds[] = {6, 7, 9};
	struct pfc_tx t;
	simtime_t now = 0;

	pfc_tx_init(&t, 0x08, 1000, byte_time_fp(100 * GBPS));
	for (int i = 0; i < 3; i++) {
		pfc_tx_set(&t, 8, true);
		pfc_tx_say(&t, now, &ended);
		now += seconds[i] * SIM_S;
		pfc_tx_set(&t, 8, false);
		pfc_tx_say(&t, now, &ended);
	}
	assert_int_equal(ended.transitions[3], 3);
	assert_int_equal(ended.storm_warnings, 2);
	assert_int_equal(ended.storm_errors, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quanta_last_512_bit_times),
		cmocka_unit_test(response_time_follows_the_standards_table),
		cmocka_unit_test_setup(one_frame_says_all_changes, reset),
		cmocka_unit_test(priorities_not_enabled_are_never_paused),
		cmocka_unit_test(a_change_taken_back_needs_no_frame),
		cmocka_unit_test_setup(refresh_is_due_at_half_life, reset),
		cmocka_unit_test(min_quanta_let_a_refresh_arrive_in_time),
		cmocka_unit_test_setup(pause_ends_by_itself_unless_extended, reset),
		cmocka_unit_test_setup(xon_ends_a_pause_and_is_harmless_without_one, reset),
		cmocka_unit_test_setup(link_down_forgets_both_sides, reset),
		cmocka_unit_test_setup(long_pauses_are_storms, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
