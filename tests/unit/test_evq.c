/* SPDX-License-Identifier: BSD-3-Clause */
// The event queue against the obvious implementation: an array of times, searched linearly.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "emu/core/evq.h"
#include "emu/core/rng.h"

#define HORIZON ((simtime_t)UINT32_MAX)

static simtime_t naive_next(const simtime_t *when, uint32_t n, uint32_t *source)
{
	simtime_t min = SIMTIME_NEVER;

	for (uint32_t i = 0; i < n; i++) {
		if (when[i] < min) {
			min = when[i];
			*source = i;
		}
	}
	return min;
}

static void assert_same(struct evq *q, const simtime_t *when, uint32_t n)
{
	uint32_t got_source = UINT32_MAX, source = UINT32_MAX;
	simtime_t t = naive_next(when, n, &source);

	assert_int_equal(evq_next(q, &got_source), t);
	if (t != SIMTIME_NEVER)
		assert_int_equal(got_source, source);
}

// Time of a random set: close to `now` (with many ties), at the edges of the horizon seen from the
// queue's epoch, far beyond it, before the epoch, never.
static simtime_t random_time(struct rng *r, const struct evq *q, simtime_t now)
{
	switch (rng_below(r, 12)) {
	case 0:
		return SIMTIME_NEVER;
	case 1:
		return q->epoch + (simtime_t)q->horizon - 2 + rng_below(r, 5);
	case 2:
		return now + HORIZON * (1 + rng_below(r, 1000)) + rng_below(r, 3);
	case 3:
		return simtime_max(0, q->epoch - 1 - rng_below(r, 3));
	case 4:
		return simtime_max(0, now - (simtime_t)rng_below(r, 1u << 31) * 4);
	case 5:
		return SIMTIME_NEVER / 2 - rng_below(r, 2);
	case 6:
		return q->epoch;
	default:
		return now + rng_below(r, 8);
	}
}

// Asks whether a source without an event would be next with one at `t`.
static void assert_same_order(
	struct evq *q, simtime_t *when, uint32_t n, uint32_t idle, simtime_t t)
{
	uint32_t first = UINT32_MAX;

	if (when[idle] != SIMTIME_NEVER || t == SIMTIME_NEVER)
		return;
	when[idle] = t;
	naive_next(when, n, &first);
	when[idle] = SIMTIME_NEVER;
	assert_int_equal(evq_precedes(q, t, idle), first == idle);
}

static void random_sets(uint32_t n, unsigned ops, uint64_t seed)
{
	struct rng r = rng_stream(seed, n);
	simtime_t *when = malloc(n * sizeof(*when));
	simtime_t now = 0;
	struct evq q;

	assert_int_equal(evq_init(&q, n), 0);
	for (uint32_t i = 0; i < n; i++)
		when[i] = SIMTIME_NEVER;
	assert_same(&q, when, n);
	for (unsigned k = 0; k < ops; k++) {
		uint32_t source = rng_below(&r, n);
		simtime_t t = random_time(&r, &q, now);
		evq_set(&q, source, t);
		when[source] = t;
		assert_int_equal(evq_when(&q, source), t);
		assert_same(&q, when, n);
		assert_same_order(&q, when, n, rng_below(&r, n), random_time(&r, &q, now));
		if (rng_below(&r, 16) == 0) {
			uint32_t first;
			evq_advance(&q, simtime_min(now, naive_next(when, n, &first)));
			assert_same(&q, when, n);
		}
		if (rng_below(&r, 4) == 0)
			now += rng_below(&r, 1u << (1 + rng_below(&r, 31)));
	}
	for (uint32_t i = 0; i < n; i++) {
		evq_set(&q, i, SIMTIME_NEVER);
		when[i] = SIMTIME_NEVER;
		assert_same(&q, when, n);
	}
	evq_fini(&q);
	free(when);
}

static void agrees_with_a_linear_search_for_any_number_of_sources(void **state)
{
	// Around the block (8) and block-of-blocks (64) sizes, and the documented limit.
	static const uint32_t sizes[] = {
		1, 2, 3, 7, 8, 9, 16, 17, 33, 63, 64, 65, 127, 129, 257, 513, 1025, 4096};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		random_sets(sizes[i], sizes[i] > 1000 ? 3000 : 30000, 7);
}

// As the engine uses it: the earliest event is taken and that source gets a later one or none.
static void runs_like_a_simulation_for_millions_of_operations(void **state)
{
	static const uint32_t sizes[] = {3, 64, 300};

	for (int s = 0; s < 3; s++) {
		uint32_t n = sizes[s];
		struct rng r = rng_stream(3, n);
		struct evq q;
		assert_int_equal(evq_init(&q, n), 0);
		for (uint32_t i = 0; i < n; i++)
			evq_set(&q, i, rng_below(&r, 100000));
		simtime_t last = 0;
		for (unsigned k = 0; k < 1000000; k++) {
			uint32_t source = 0;
			simtime_t t = evq_next(&q, &source);
			evq_advance(&q, t);
			assert_true(t >= last);
			assert_int_equal(evq_when(&q, source), t);
			last = t;
			// One in 1024 jumps over the horizon, as a retransmission timer does.
			simtime_t step = rng_below(&r, 1024) ? rng_below(&r, 200000) : 3 * HORIZON;
			evq_set(&q, source, t + step);
		}
		evq_fini(&q);
	}
}

static void ties_go_to_the_lowest_source(void **state)
{
	struct evq q;
	uint32_t source;

	assert_int_equal(evq_init(&q, 300), 0);
	// 299 first so that neither insertion order nor block order can decide.
	for (int i = 299; i >= 0; i -= 13)
		evq_set(&q, (uint32_t)i, 5 * HORIZON);
	// 299 - 23 * 13 = 0.
	for (uint32_t i = 0; i < 300; i += 13) {
		assert_int_equal(evq_next(&q, &source), 5 * HORIZON);
		assert_int_equal(source, i);
		evq_set(&q, source, SIMTIME_NEVER);
	}
	assert_int_equal(evq_next(&q, &source), SIMTIME_NEVER);
	evq_fini(&q);
}

// With two sources a key has 31 bits for the offset; that of the last offset would be the key that
// stands for "never" and "beyond the horizon", so the last exact offset is 2^31 - 2.
static void the_edge_of_the_horizon_is_exact(void **state)
{
	struct evq q;
	uint32_t source;

	assert_int_equal(evq_init(&q, 2), 0);
	simtime_t horizon = q.horizon;
	assert_int_equal(horizon, INT32_MAX);
	for (simtime_t d = -3; d <= 3; d++) {
		evq_set_epoch(&q, 0);
		evq_set(&q, 0, horizon + 1);
		evq_set(&q, 1, horizon + d);
		assert_int_equal(evq_next(&q, &source), simtime_min(horizon + 1, horizon + d));
		assert_int_equal(source, d < 1);
		evq_set(&q, 0, SIMTIME_NEVER);
		evq_set(&q, 1, SIMTIME_NEVER);
	}
	evq_fini(&q);
}

static void an_event_before_the_epoch_moves_it_back(void **state)
{
	struct evq q;
	uint32_t source;

	assert_int_equal(evq_init(&q, 40), 0);
	evq_set(&q, 39, 100 * HORIZON);
	assert_int_equal(evq_next(&q, &source), 100 * HORIZON);
	evq_advance(&q, 100 * HORIZON);
	assert_int_equal(q.epoch, 100 * HORIZON);
	evq_set(&q, 20, 7);
	evq_set(&q, 3, 8);
	assert_int_equal(evq_next(&q, &source), 7);
	assert_int_equal(source, 20);
	evq_set(&q, 20, SIMTIME_NEVER);
	assert_int_equal(evq_next(&q, &source), 8);
	evq_set(&q, 3, SIMTIME_NEVER);
	assert_int_equal(evq_next(&q, &source), 100 * HORIZON);
	assert_int_equal(source, 39);
	evq_fini(&q);
}

// In two steps, as a departure is executed: forgotten, others set meanwhile (before the epoch too),
// then set again or not.
static void a_source_can_be_changed_in_two_steps(void **state)
{
	enum { N = 40 };
	struct rng r = rng_stream(11, 0);
	simtime_t when[N];
	struct evq q;

	assert_int_equal(evq_init(&q, N), 0);
	for (uint32_t i = 0; i < N; i++) {
		when[i] = rng_below(&r, 1000);
		evq_set(&q, i, when[i]);
	}
	for (int k = 0; k < 20000; k++) {
		uint32_t source = rng_below(&r, N);
		simtime_t now = k * (simtime_t)1000000;
		evq_forget(&q, source);
		assert_int_equal(evq_when(&q, source), SIMTIME_NEVER);
		for (uint32_t i = rng_below(&r, 3); i > 0; i--) {
			uint32_t other = (source + 1 + rng_below(&r, N - 1)) % N;
			when[other] = random_time(&r, &q, now);
			evq_set(&q, other, when[other]);
		}
		when[source] = random_time(&r, &q, now);
		evq_set(&q, source, when[source]);
		assert_same(&q, when, N);
	}
	evq_fini(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_a_linear_search_for_any_number_of_sources),
		cmocka_unit_test(runs_like_a_simulation_for_millions_of_operations),
		cmocka_unit_test(ties_go_to_the_lowest_source),
		cmocka_unit_test(the_edge_of_the_horizon_is_exact),
		cmocka_unit_test(a_source_can_be_changed_in_two_steps),
		cmocka_unit_test(an_event_before_the_epoch_moves_it_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
