/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "emu/core/rng.h"
#include "models/headroom.h"

// The worked examples that SONiC's script gives (port MTU 9100, lossless MTU 1024, 50 % small).
static void sonic_formula_gives_the_worked_examples(void **state)
{
	static const struct {
		uint32_t cell, speed;
		double cable, occ, cable_bytes, peer, prop;
		uint64_t xon, xoff, size;
	} t[] = {
		{96, 100000, 5, 1.1176, 631.3, 25216, 35766.5, 19456, 44032, 63488},
		{96, 100000, 40, 1.1176, 5050.5, 25216, 40185.7, 19456, 48128, 67584},
		{96, 100000, 300, 1.1176, 37878.8, 25216, 73014.0, 19456, 84992, 104448},
		{144, 100000, 300, 1.2353, 37878.8, 25216, 73014.0, 19456, 94208, 113664},
		{96, 25000, 5, 1.1176, 157.8, 5120, 15197.0, 19456, 20480, 39936},
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct headroom_sonic_input in =
			headroom_sonic_defaults(t[i].speed, t[i].cable, t[i].cell);
		struct headroom_sonic h = headroom_sonic(&in);
		assert_true(fabs(h.cell_occupancy - t[i].occ) < 1e-4);
		assert_true(fabs(h.cable_bytes - t[i].cable_bytes) < 0.06);
		assert_true(fabs(h.peer_bytes - t[i].peer) < 0.06);
		assert_true(fabs(h.propagation_bytes - t[i].prop) < 0.06);
		assert_int_equal(h.xon_bytes, t[i].xon);
		assert_int_equal(h.xoff_bytes, t[i].xoff);
		assert_int_equal(h.size_bytes, t[i].size);
	}
}

// Spectrum-4: cell 192, 400G, 300 m, and a tile delay of 400 x 120 / 8 = 6000 bytes.
static void sonic_formula_adds_the_tile_delay(void **state)
{
	struct headroom_sonic_input in = headroom_sonic_defaults(400000, 300, 192);

	in.tile_bytes = 6000;
	struct headroom_sonic h = headroom_sonic(&in);
	assert_true(fabs(h.propagation_bytes - 225354.4) < 0.06);
	assert_int_equal(h.xoff_bytes, 281600);
	assert_int_equal(h.size_bytes, 301056);
}

// 100G, 1 us each way, no response time, only frames of 1082 bytes (1102 on the wire, 88.16 ns; six
// cells of 208). PFC frame 84 bytes, 6.72 ns. exposed = 1000 + 88.16 + 6.72 + 1000 = 2094.88 ns,
// 23.76 frames: 23 complete, one more begins, and the trigger: 25 x 6 = 150 cells.
static void exact_headroom_of_equal_frames(void **state)
{
	struct headroom_exact h = headroom_exact(&(struct headroom_exact_input){
		.rate_bps = UINT64_C(100000000000),
		.data_delay = SIM_US,
		.pause_delay = SIM_US,
		.cell_bytes = 208,
		.max_frame_bytes = 1082,
		.min_frame_bytes = 1082,
	});

	assert_int_equal(h.wait, 88160);
	assert_int_equal(h.pause_frame, 6720);
	assert_int_equal(h.exposed, 2094880);
	assert_int_equal(h.trigger_cells, 6);
	assert_int_equal(h.flight_cells, 23 * 6);
	assert_int_equal(h.last_cells, 6);
	assert_int_equal(h.cells, 150);
	assert_int_equal(h.bytes, 31200);
}

// With any size from 64 bytes: the shortest frame fills 1 cell of 208 in 84 byte times, 209 bytes
// fill 2 in 229, so 64 is the worst: 2094.88 ns / 6.72 ns = 311.7 -> 311 cells, + 6 + 6.
static void exact_headroom_of_any_frames(void **state)
{
	struct headroom_exact h = headroom_exact(&(struct headroom_exact_input){
		.rate_bps = UINT64_C(100000000000),
		.data_delay = SIM_US,
		.pause_delay = SIM_US,
		.cell_bytes = 208,
		.max_frame_bytes = 1082,
		.min_frame_bytes = 64,
	});

	assert_int_equal(h.worst_frame_bytes, 64);
	assert_int_equal(h.flight_cells, 311);
	assert_int_equal(h.cells, 323);
}

// No sequence of frames the peer can start within `exposed` needs more than what is computed.
static void no_random_sequence_exceeds_it(void **state)
{
	struct rng g = rng_stream(3, 3);

	for (int round = 0; round < 2000; round++) {
		struct headroom_exact_input in = {
			.rate_bps = UINT64_C(100000000000),
			.data_delay = 1 + rng_below(&g, 1000000),
			.pause_delay = 1 + rng_below(&g, 1000000),
			.response = rng_below(&g, 300000),
			.cell_bytes = 80 + rng_below(&g, 200),
			.max_frame_bytes = 1500 + rng_below(&g, 8000),
			.min_frame_bytes = 64 + rng_below(&g, 1400),
		};
		struct headroom_exact h = headroom_exact(&in);
		uint64_t bt = byte_time_fp(in.rate_bps);
		uint64_t cells = h.trigger_cells;
		uint32_t spread = in.max_frame_bytes - in.min_frame_bytes + 1;
		// Frames begin at 0 (when the trigger's last bit left) and up to `exposed`, that
		// instant included; some rounds prefer the worst size.
		for (simtime_t start = 0; start <= h.exposed;) {
			uint32_t b = round % 2 && start + SIM_NS * 200 < h.exposed
					     ? h.worst_frame_bytes
					     : in.min_frame_bytes + rng_below(&g, spread);
			cells += (b + in.cell_bytes - 1) / in.cell_bytes;
			start += serialization_time(bt, b + 20);
		}
		assert_true(cells <= h.cells);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sonic_formula_gives_the_worked_examples),
		cmocka_unit_test(sonic_formula_adds_the_tile_delay),
		cmocka_unit_test(exact_headroom_of_equal_frames),
		cmocka_unit_test(exact_headroom_of_any_frames),
		cmocka_unit_test(no_random_sequence_exceeds_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
