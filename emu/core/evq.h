/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Which of a fixed set of event sources is due next: the inner loop of the engine.
//
// A node has at most one pending event per source (head of an input lane, end of a departure,
// earliest timer). Keys are 32 bits: the picoseconds since an epoch above, the source index below.
// They stand in blocks of 8 with the minimum of each block beside them, so that the next event and
// its source are the least of the minima (one line, SIMD), and changing a key usually writes only
// the key. Ties go to the lowest source index: that, and nothing else, orders simultaneous events.
//
// The index takes as many bits as the sources need, the rest is the horizon: 67 us with 33 sources
// (16 ports), 1 ms with 3. Times beyond it have the key EVQ_FAR; who executes events calls
// evq_advance() to let the epoch follow the time, and when only far keys are left the exact times
// are searched.

#include <smmintrin.h>
#include <stdbool.h>
#include <stdint.h>

#include "emu/core/simtime.h"

#define EVQ_BLOCK 8
#define EVQ_FAR   UINT32_MAX // no event, or beyond the horizon

struct evq {
	simtime_t epoch;
	simtime_t advance_at; // half the horizon is used up
	uint32_t *minima;     // [n_minima]
	uint32_t *key;        // [n_blocks * EVQ_BLOCK]
	simtime_t *when;      // [n_sources] exact times, SIMTIME_NEVER if none
	uint32_t n_minima;    // n_blocks rounded up to EVQ_BLOCK
	uint32_t horizon;     // offsets below this have a key of their own
	uint32_t mask;        // source bits of a key
	uint8_t bits;         // how many
	uint32_t n_blocks;
	uint32_t n_sources;
};

// All sources start without an event. Returns 0 or -ENOMEM; n_sources in 1..65536.
int evq_init(struct evq *q, uint32_t n_sources);
void evq_fini(struct evq *q);

// Internal to the inline functions below: computes all keys anew for an epoch; the earliest of the
// exact times, when no key tells.
__attribute__((cold, noinline)) void evq_set_epoch(struct evq *q, simtime_t epoch);
__attribute__((cold, noinline)) simtime_t evq_search(const struct evq *q, uint32_t *source);

// Least of a block of keys.
static inline uint32_t evq_block_min(const uint32_t *k)
{
	const __m128i *b = (const __m128i *)(const void *)k;
	__m128i v = _mm_min_epu32(_mm_load_si128(b), _mm_load_si128(b + 1));

	v = _mm_min_epu32(v, _mm_shuffle_epi32(v, _MM_SHUFFLE(1, 0, 3, 2)));
	v = _mm_min_epu32(v, _mm_shuffle_epi32(v, _MM_SHUFFLE(2, 3, 0, 1)));
	return (uint32_t)_mm_cvtsi128_si32(v);
}

// Sets the time (>= 0) of a source's next event; SIMTIME_NEVER removes it.
static inline void evq_set(struct evq *q, uint32_t source, simtime_t t)
{
	q->when[source] = t;
	if (__builtin_expect(t < q->epoch, 0)) {
		evq_set_epoch(q, t);
		return;
	}

	uint64_t off = (uint64_t)(t - q->epoch);
	uint32_t key = off < q->horizon ? (uint32_t)off << q->bits | source : EVQ_FAR;
	uint32_t *min = &q->minima[source / EVQ_BLOCK];
	uint32_t old = q->key[source];

	q->key[source] = key;
	if (key <= *min)
		*min = key;
	else if (old == *min)
		*min = evq_block_min(q->key + source / EVQ_BLOCK * EVQ_BLOCK);
}

// Begins a change in two steps: from here evq_when() says the source has no event, but its key
// stays until the evq_set() that must follow. Spares a search when the source soon gets a new time.
static inline void evq_forget(struct evq *q, uint32_t source)
{
	q->when[source] = SIMTIME_NEVER;
}

static inline simtime_t evq_when(const struct evq *q, uint32_t source)
{
	return q->when[source];
}

// Least of all keys.
static inline uint32_t evq_min(const struct evq *q)
{
	uint32_t min = q->minima[0];

	// One block keeps its minimum in the first of them, which saves hosts the search.
	if (q->n_blocks > 1) {
		min = evq_block_min(q->minima);
		for (uint32_t i = EVQ_BLOCK; i < q->n_minima; i += EVQ_BLOCK) {
			uint32_t m = evq_block_min(q->minima + i);
			min = m < min ? m : min;
		}
	}
	return min;
}

// Earliest event time and its source; SIMTIME_NEVER when there is none.
static inline simtime_t evq_next(const struct evq *q, uint32_t *source)
{
	uint32_t min = evq_min(q);

	if (__builtin_expect(min == EVQ_FAR, 0))
		return evq_search(q, source);
	*source = min & q->mask;
	return q->epoch + (min >> q->bits);
}

// Would an event of `source` at `t` be next if it were set? `source` has no event.
static inline bool evq_precedes(const struct evq *q, simtime_t t, uint32_t source)
{
	uint64_t off = (uint64_t)(t - q->epoch);

	// Far keys stand for times beyond the horizon, so they need no look.
	if (__builtin_expect(off < q->horizon, 1))
		return ((uint32_t)off << q->bits | source) < evq_min(q);
	uint32_t other = 0;
	simtime_t next = evq_next(q, &other);
	return t < next || (t == next && source < other);
}

// Events before `now` are executed: keeps the horizon ahead of it.
static inline void evq_advance(struct evq *q, simtime_t now)
{
	if (__builtin_expect(now > q->advance_at, 0))
		evq_set_epoch(q, now);
}
