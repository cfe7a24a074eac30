/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "models/sched.h"

#define MAX_FRAME 9122

static struct sched sched_with(const struct sched_queue_config *q)
{
	struct sched s;

	sched_init(&s, q, MAX_FRAME);
	return s;
}

// Serves `n` frames of bytes[q] from the ready queues; adds what each sent.
static void serve(struct sched *s, unsigned ready, const uint32_t *bytes, uint64_t *sent, int n)
{
	for (int i = 0; i < n; i++) {
		unsigned q = sched_pick(s, ready);
		assert_true(ready >> q & 1);
		sched_charge(s, ready, q, bytes[q]);
		sent[q] += bytes[q];
	}
}

static void strict_queues_go_first_highest_before(void **state)
{
	struct sched_queue_config q[SCHED_QUEUES] = {
		[2] = {SCHED_STRICT, 0}, [6] = {SCHED_STRICT, 0}};
	struct sched s = sched_with(q);

	assert_int_equal(sched_pick(&s, 0xff), 6);
	assert_int_equal(sched_pick(&s, 0xbf), 2);
	assert_int_equal(sched_pick(&s, 0x05), 2);
	assert_int_equal(sched_pick(&s, 0x80), 7);
}

// Weights 1, 2, 4 with frames of quite different sizes: bytes go 1 : 2 : 4. A queue is off by at
// most a quantum plus a frame, 4 x 9123 + 9122 of 625 rounds x 63.9 kB: well under 0.5 %.
static void dwrr_shares_bytes_by_weight_whatever_the_frames(void **state)
{
	struct sched_queue_config q[SCHED_QUEUES] = {[0] = {0, 1}, [3] = {0, 2}, [5] = {0, 4}};
	uint32_t bytes[SCHED_QUEUES] = {[0] = 9122, [3] = 64, [5] = 1082};
	uint64_t sent[SCHED_QUEUES] = {0};
	struct sched s = sched_with(q);

	serve(&s, 1 | 1 << 3 | 1 << 5, bytes, sent, 200000);
	double total = (double)(sent[0] + sent[3] + sent[5]);
	assert_true(total > 3.9e7);
	assert_true(sent[0] > total / 7 * 0.995 && sent[0] < total / 7 * 1.005);
	assert_true(sent[3] > total * 2 / 7 * 0.995 && sent[3] < total * 2 / 7 * 1.005);
	assert_true(sent[5] > total * 4 / 7 * 0.995 && sent[5] < total * 4 / 7 * 1.005);
}

static void equal_weights_alternate_within_a_quantum(void **state)
{
	struct sched_queue_config q[SCHED_QUEUES] = {0};
	uint32_t bytes[SCHED_QUEUES] = {[1] = 1000, [2] = 1000};
	uint64_t sent[SCHED_QUEUES] = {0};
	struct sched s = sched_with(q);

	for (int i = 0; i < 1000; i++) {
		serve(&s, 6, bytes, sent, 1);
		int64_t lead = (int64_t)(sent[1] - sent[2]);
		assert_true(lead <= 2 * MAX_FRAME && lead >= -2 * MAX_FRAME);
	}
}

static void a_queue_alone_runs_up_no_debt(void **state)
{
	struct sched_queue_config q[SCHED_QUEUES] = {0};
	uint32_t bytes[SCHED_QUEUES] = {[1] = 1000, [2] = 1000};
	uint64_t sent[SCHED_QUEUES] = {0};
	struct sched s = sched_with(q);

	serve(&s, 2, bytes, sent, 100000);
	sent[1] = 0;
	serve(&s, 6, bytes, sent, 100);
	assert_in_range(sent[1], 50000 - 2 * MAX_FRAME, 50000 + 2 * MAX_FRAME);
}

static void a_paused_queue_saves_nothing_up(void **state)
{
	struct sched_queue_config q[SCHED_QUEUES] = {0};
	uint32_t bytes[SCHED_QUEUES] = {[1] = 1000, [2] = 1000, [3] = 1000};
	uint64_t sent[SCHED_QUEUES] = {0};
	struct sched s = sched_with(q);

	serve(&s, 6, bytes, sent, 100000); // 3 is paused
	sent[1] = sent[2] = 0;
	serve(&s, 14, bytes, sent, 300);
	assert_in_range(sent[3], 100000 - 2 * MAX_FRAME, 100000 + 2 * MAX_FRAME);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strict_queues_go_first_highest_before),
		cmocka_unit_test(dwrr_shares_bytes_by_weight_whatever_the_frames),
		cmocka_unit_test(equal_weights_alternate_within_a_quantum),
		cmocka_unit_test(a_queue_alone_runs_up_no_debt),
		cmocka_unit_test(a_paused_queue_saves_nothing_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
