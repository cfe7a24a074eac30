/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "emu/core/rng.h"
#include "emu/core/timer.h"

static void an_empty_heap_is_due_never(void **state)
{
	struct timer_heap h;

	assert_int_equal(timer_heap_init(&h, 0), 0);
	assert_int_equal(timer_heap_next(&h), SIMTIME_NEVER);
	assert_int_equal(timer_heap_add(&h, 5, 1, 2), 0);
	assert_int_equal(timer_heap_next(&h), 5);
	struct timer t = timer_heap_pop(&h);
	assert_int_equal(t.at, 5);
	assert_int_equal(t.kind, 1);
	assert_int_equal(t.arg, 2);
	assert_int_equal(timer_heap_next(&h), SIMTIME_NEVER);
	timer_heap_fini(&h);
}

static void timers_of_one_instant_fire_in_the_order_they_were_set(void **state)
{
	struct timer_heap h;

	assert_int_equal(timer_heap_init(&h, 2), 0);
	// Three instants, interleaved: 0, 1, 2, 0, 1, 2, ...
	for (uint32_t i = 0; i < 3000; i++)
		assert_int_equal(timer_heap_add(&h, i % 3, 0, i), 0);
	for (uint32_t i = 0; i < 3000; i++) {
		struct timer t = timer_heap_pop(&h);
		assert_int_equal(t.at, i / 1000);
		assert_int_equal(t.arg, i % 1000 * 3 + i / 1000);
	}
	timer_heap_fini(&h);
}

static int by_time_then_arg(const void *a, const void *b)
{
	const struct timer *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->arg < y->arg ? -1 : x->arg > y->arg;
}

static void random_timers_come_out_sorted_after_growth(void **state)
{
	enum { N = 20000 };
	struct timer *sorted = malloc(N * sizeof(*sorted));
	struct rng r = rng_stream(1, 1);
	struct timer_heap h;

	assert_int_equal(timer_heap_init(&h, 1), 0);
	for (uint32_t i = 0; i < N; i++) {
		sorted[i] = (struct timer){.at = rng_below(&r, N / 4), .kind = i ^ 5, .arg = i};
		assert_int_equal(timer_heap_add(&h, sorted[i].at, i ^ 5, i), 0);
	}
	qsort(sorted, N, sizeof(*sorted), by_time_then_arg);
	for (uint32_t i = 0; i < N; i++) {
		assert_int_equal(timer_heap_next(&h), sorted[i].at);
		struct timer t = timer_heap_pop(&h);
		assert_int_equal(t.at, sorted[i].at);
		assert_int_equal(t.arg, sorted[i].arg);
		assert_int_equal(t.kind, sorted[i].kind);
	}
	free(sorted);
	timer_heap_fini(&h);
}

// Pops and adds mixed, as a node does: never back in time, and a timer set while others of its
// instant wait comes after them.
static void mixed_adds_and_pops_never_go_back(void **state)
{
	struct rng r = rng_stream(2, 2);
	struct timer_heap h;
	simtime_t now = 0;
	uint64_t last_seq = 0;

	assert_int_equal(timer_heap_init(&h, 4), 0);
	for (int i = 0; i < 50; i++)
		assert_int_equal(timer_heap_add(&h, rng_below(&r, 10), 0, 0), 0);
	for (int i = 0; i < 300000; i++) {
		struct timer t = timer_heap_pop(&h);
		assert_true(t.at > now || (t.at == now && (i == 0 || t.seq > last_seq)));
		now = t.at;
		last_seq = t.seq;
		unsigned adds = h.n < 10 ? 2 : h.n > 1000 ? 0 : rng_below(&r, 3);
		for (unsigned k = 0; k < adds; k++)
			assert_int_equal(timer_heap_add(&h, now + rng_below(&r, 20), 0, 0), 0);
	}
	timer_heap_fini(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_heap_is_due_never),
		cmocka_unit_test(timers_of_one_instant_fire_in_the_order_they_were_set),
		cmocka_unit_test(random_timers_come_out_sorted_after_growth),
		cmocka_unit_test(mixed_adds_and_pops_never_go_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
