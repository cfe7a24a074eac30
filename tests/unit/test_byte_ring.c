/* SPDX-License-Identifier: BSD-3-Clause */
// The ring of variable-length records between a lcore and a capture's writer.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>

#include "emu/capture/byte_ring.h"
#include "tests/unit/frames.h"

#define SIZE 4096

static bool put(struct byte_ring *r, uint32_t bytes, uint8_t fill)
{
	uint8_t *p = byte_ring_reserve(r, bytes);

	if (p == NULL)
		return false;
	memset(p, fill, bytes);
	memcpy(p, &bytes, sizeof(bytes));
	byte_ring_commit(r, bytes);
	return true;
}

static uint32_t take(struct byte_ring *r, uint8_t fill)
{
	const uint8_t *p = byte_ring_peek(r);
	uint32_t bytes;

	assert_non_null(p);
	memcpy(&bytes, p, sizeof(bytes));
	for (uint32_t i = sizeof(bytes); i < bytes; i++)
		assert_int_equal(p[i], fill);
	byte_ring_release(r, bytes);
	return bytes;
}

static void records_come_out_as_they_went_in(void **state)
{
	struct byte_ring r;

	assert_int_equal(byte_ring_init(&r, SIZE), 0);
	assert_null(byte_ring_peek(&r));
	assert_true(put(&r, 64, 1));
	assert_true(put(&r, 8, 2));
	assert_int_equal(take(&r, 1), 64);
	assert_int_equal(take(&r, 2), 8);
	assert_null(byte_ring_peek(&r));
	byte_ring_fini(&r);
}

// 4 x 1024 fill it exactly.
static void a_full_ring_refuses_until_released(void **state)
{
	struct byte_ring r;

	assert_int_equal(byte_ring_init(&r, SIZE), 0);
	for (uint8_t i = 0; i < 4; i++)
		assert_true(put(&r, 1024, i));
	assert_false(put(&r, 8, 9));
	assert_int_equal(take(&r, 0), 1024);
	assert_true(put(&r, 1024, 4));
	for (uint8_t i = 1; i < 5; i++)
		assert_int_equal(take(&r, i), 1024);
	byte_ring_fini(&r);
}

// 3000 used, 1096 left at the end: a record of 2000 goes to the beginning once 3000 are free, and
// costs 1096 + 2000.
static void a_record_lies_in_one_piece(void **state)
{
	struct byte_ring r;

	assert_int_equal(byte_ring_init(&r, SIZE), 0);
	assert_true(put(&r, 3000, 1));
	assert_false(put(&r, 2000, 2));
	assert_int_equal(take(&r, 1), 3000);
	assert_true(put(&r, 2000, 2));
	assert_false(put(&r, 1008, 3)); // 4096 - 3096 = 1000 left
	assert_true(put(&r, 1000, 4));
	assert_ptr_equal(byte_ring_peek(&r), r.buf);
	assert_int_equal(take(&r, 2), 2000);
	assert_int_equal(take(&r, 4), 1000);
	byte_ring_fini(&r);
}

#define MESSAGES 300000

static void *produce(void *arg)
{
	struct byte_ring *r = arg;

	for (uint32_t i = 0; i < MESSAGES; i++)
		while (!put(r, 8 + 8 * (mix_of(i) % 100), (uint8_t)i))
			sched_yield();
	return NULL;
}

static void nothing_is_lost_between_threads(void **state)
{
	struct byte_ring r;
	pthread_t t;

	assert_int_equal(byte_ring_init(&r, SIZE), 0);
	assert_int_equal(pthread_create(&t, NULL, produce, &r), 0);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		while (byte_ring_peek(&r) == NULL)
			sched_yield();
		assert_int_equal(take(&r, (uint8_t)i), 8 + 8 * (mix_of(i) % 100));
	}
	pthread_join(t, NULL);
	byte_ring_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_come_out_as_they_went_in),
		cmocka_unit_test(a_full_ring_refuses_until_released),
		cmocka_unit_test(a_record_lies_in_one_piece),
		cmocka_unit_test(nothing_is_lost_between_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
