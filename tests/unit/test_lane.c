/* SPDX-License-Identifier: BSD-3-Clause */
// Lanes as FIFOs, and the arithmetic of line rates.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "emu/core/lane.h"

#define GBPS UINT64_C(1000000000)

// One byte takes 8e12 / rate ps.
static void a_byte_time_is_exact_at_the_usual_rates(void **state)
{
	static const struct {
		uint64_t rate;
		uint64_t ps;
	} rates[] = {
		{1 * GBPS, 8000},
		{10 * GBPS, 800},
		{25 * GBPS, 320},
		{40 * GBPS, 200},
		{50 * GBPS, 160},
		{100 * GBPS, 80},
		{200 * GBPS, 40},
		{400 * GBPS, 20},
		{800 * GBPS, 10},
	};

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		uint64_t bt = byte_time_fp(rates[i].rate);
		assert_int_equal(bt, rates[i].ps << BYTE_TIME_SHIFT);
		for (uint32_t bytes = 0; bytes < 10000; bytes += 7)
			assert_int_equal(serialization_time(bt, bytes), rates[i].ps * bytes);
	}
}

// 3 Gb/s: 2666.67 ps per byte. 1538 bytes (a 1500-byte IP packet on the wire) last 4101333.33 ps.
static void an_odd_rate_is_right_to_the_picosecond(void **state)
{
	assert_int_equal(serialization_time(byte_time_fp(3 * GBPS), 1538), 4101333);
	// 7 Gb/s: 1142.857142 ps; 9038 bytes: 10329142.857.
	assert_int_equal(serialization_time(byte_time_fp(7 * GBPS), 9038), 10329142);
}

// 8e9 ps a byte at 1 kb/s: 16 KiB take 131.072 s.
static void the_slowest_rate_does_not_overflow(void **state)
{
	assert_int_equal(serialization_time(byte_time_fp(1000), 16384), 131072 * SIM_MS);
}

static struct frame *fake(uintptr_t i)
{
	return (struct frame *)(i + 1);
}

static void push(struct lane *l, uintptr_t i)
{
	assert_false(lane_full(l));
	l->slots[l->tail & l->mask] = (struct lane_slot){.f = fake(i), .at = (simtime_t)i};
	l->tail++;
}

static void pop(struct lane *l, uintptr_t i)
{
	assert_int_equal(lane_next(l), i);
	assert_ptr_equal(l->slots[l->head & l->mask].f, fake(i));
	l->head++;
}

static void a_lane_is_full_when_every_slot_is_taken(void **state)
{
	struct lane l = {0};

	assert_int_equal(lane_init(&l, 8), 0);
	assert_true(lane_empty(&l));
	assert_int_equal(lane_next(&l), SIMTIME_NEVER);
	for (uintptr_t i = 0; i < 8; i++)
		push(&l, i);
	assert_true(lane_full(&l));
	pop(&l, 0);
	assert_false(lane_full(&l));
	push(&l, 8);
	assert_true(lane_full(&l));
	for (uintptr_t i = 1; i < 9; i++)
		pop(&l, i);
	assert_true(lane_empty(&l));
	lane_fini(&l);
}

static void slots_are_rounded_up(void **state)
{
	static const uint32_t asked[] = {0, 1, 4, 5, 100, 128, 129};
	static const uint32_t got[] = {4, 4, 4, 8, 128, 128, 256};

	for (int i = 0; i < 7; i++) {
		struct lane l = {0};
		assert_int_equal(lane_init(&l, asked[i]), 0);
		assert_int_equal(l.mask + 1, got[i]);
		lane_fini(&l);
	}
}

// Grown at every fill position of the ring, and with indices about to wrap around 2^32.
static void growth_keeps_the_order(void **state)
{
	for (uint32_t start = 0; start < 40; start++) {
		struct lane l = {0};
		uintptr_t in = 0, out = 0;
		assert_int_equal(lane_init(&l, 4), 0);
		l.head = l.tail = start - 20;
		for (int k = 0; k < 1000; k++) {
			for (int j = 0; j < 3; j++) {
				if (lane_full(&l))
					assert_int_equal(lane_grow(&l), 0);
				push(&l, in++);
			}
			pop(&l, out++);
		}
		assert_int_equal(l.mask + 1, 2048); // 2000 frames left
		while (out < in)
			pop(&l, out++);
		assert_true(lane_empty(&l));
		lane_fini(&l);
	}
}

static void indices_wrap_around(void **state)
{
	struct lane l = {0};

	assert_int_equal(lane_init(&l, 16), 0);
	l.head = l.tail = UINT32_MAX - 5;
	for (uintptr_t i = 0; i < 16; i++)
		push(&l, i);
	assert_true(lane_full(&l));
	for (uintptr_t i = 0; i < 16; i++)
		pop(&l, i);
	assert_true(lane_empty(&l));
	lane_fini(&l);
}

static void growth_ends_at_the_limit(void **state)
{
	struct lane l = {0};

	assert_int_equal(lane_init(&l, 4), 0);
	for (uint32_t n = 8; n <= 1u << 22; n *= 2) {
		assert_int_equal(lane_grow(&l), 0);
		assert_int_equal(l.mask + 1, n);
	}
	assert_true(lane_grow(&l) < 0);
	assert_int_equal(l.mask + 1, 1u << 22);
	lane_fini(&l);
}

// What comes from outside is padded to 60 with zeros; FCS 4, preamble 8 and gap 12 come on top on
// the wire; buffers count the FCS only.
static void short_frames_are_padded(void **state)
{
	static const struct {
		uint16_t len;
		uint32_t wire, buffer;
	} frames[] = {{14, 84, 64}, {60, 84, 64}, {61, 85, 65}, {1514, 1538, 1518}};
	static alignas(64) uint8_t room[sizeof(struct frame) + 64];
	struct frame *f = (struct frame *)room;

	for (int i = 0; i < 4; i++) {
		*f = (struct frame){.len = frames[i].len, .head_len = frames[i].len};
		memset(frame_data(f), 0xff, 64);
		frame_pad(f);
		assert_int_equal(frame_wire_bytes(f), frames[i].wire);
		assert_int_equal(frame_buffer_bytes(f), frames[i].buffer);
		assert_int_equal(f->head_len, f->len);
		assert_int_equal(frame_data(f)[frames[i].len < 60 ? frames[i].len : 60],
			frames[i].len < 60 ? 0 : 0xff);
		assert_int_equal(frame_data(f)[60], 0xff);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_byte_time_is_exact_at_the_usual_rates),
		cmocka_unit_test(an_odd_rate_is_right_to_the_picosecond),
		cmocka_unit_test(the_slowest_rate_does_not_overflow),
		cmocka_unit_test(a_lane_is_full_when_every_slot_is_taken),
		cmocka_unit_test(slots_are_rounded_up),
		cmocka_unit_test(growth_keeps_the_order),
		cmocka_unit_test(indices_wrap_around),
		cmocka_unit_test(growth_ends_at_the_limit),
		cmocka_unit_test(short_frames_are_padded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
