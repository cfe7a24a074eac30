/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Which of a fixed set of event sources is due next: the inner loop of the engine.
//
// A node has at most one pending event per source (head of an input lane, end of a departure,
// earliest timer). Keys are 32-bit picosecond offsets from an epoch, in blocks of 16 with the
// minimum of each block beside them, so that finding the next source reads one line of minima and
// one block, in SIMD, and changing a key usually writes only the key. Times beyond the 32-bit
// horizon (4.3 ms) are saturated; when only saturated keys are left, or a time before the epoch is
// set, the epoch moves (rare, linear in the sources).
//
// Ties go to the lowest source index: that, and nothing else, orders simultaneous events.

#include <smmintrin.h>
#include <stdbool.h>
#include <stdint.h>

#include "emu/core/simtime.h"

#define EVQ_BLOCK 8
#define EVQ_FAR   UINT32_MAX // no event, or beyond the horizon

struct evq {
	simtime_t epoch;
	uint16_t n_blocks;
	uint16_t n_minima; // n_blocks rounded up to EVQ_BLOCK
	uint32_t n_sources;
	uint32_t *key;    // [n_blocks * EVQ_BLOCK]
	uint32_t *minima; // [n_minima]
	simtime_t *when;  // [n_sources] exact times, SIMTIME_NEVER if none
};

// All sources start without an event. Returns 0 or -ENOMEM; n_sources in 1..4096.
int evq_init(struct evq *q, uint32_t n_sources);
void evq_fini(struct evq *q);

// Internal to the inline functions below: recompute all keys for an epoch; move the epoch so that
// the earliest event lies in the middle of the horizon.
void evq_set_epoch(struct evq *q, simtime_t epoch);
void evq_rebase(struct evq *q);

static inline uint32_t evq_hmin(__m128i v)
{
	v = _mm_min_epu32(v, _mm_shuffle_epi32(v, _MM_SHUFFLE(1, 0, 3, 2)));
	v = _mm_min_epu32(v, _mm_shuffle_epi32(v, _MM_SHUFFLE(2, 3, 0, 1)));
	return (uint32_t)_mm_cvtsi128_si32(v);
}

// Least of a block of keys.
static inline uint32_t evq_block_min(const uint32_t *k)
{
	const __m128i *v = (const __m128i *)(const void *)k;
	return evq_hmin(_mm_min_epu32(_mm_load_si128(v), _mm_load_si128(v + 1)));
}

// Index of the first key of a block that equals `min`; there is one.
static inline uint32_t evq_block_find(const uint32_t *k, uint32_t min)
{
	const __m128i *v = (const __m128i *)(const void *)k;
	__m128i m = _mm_set1_epi32((int)min);
	__m128i eq = _mm_packs_epi32(
		_mm_cmpeq_epi32(_mm_load_si128(v), m), _mm_cmpeq_epi32(_mm_load_si128(v + 1), m));
	return (uint32_t)__builtin_ctz((unsigned)_mm_movemask_epi8(eq)) / 2;
}

// The least key and its source.
static inline uint32_t evq_scan(const struct evq *q, uint32_t *source)
{
	uint32_t block = 0;
	uint32_t min = EVQ_FAR;

	if (q->n_blocks == 1) {
		min = q->minima[0];
	} else {
		uint32_t at = 0;
		for (uint32_t i = 0; i < q->n_minima; i += EVQ_BLOCK) {
			uint32_t m = evq_block_min(q->minima + i);
			at = m < min ? i : at;
			min = m < min ? m : min;
		}
		block = at + evq_block_find(q->minima + at, min);
	}
	*source = block * EVQ_BLOCK + evq_block_find(q->key + block * EVQ_BLOCK, min);
	return min;
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
	uint32_t key = off < EVQ_FAR ? (uint32_t)off : EVQ_FAR;
	uint32_t block = source / EVQ_BLOCK;
	uint32_t old = q->key[source];

	q->key[source] = key;
	if (key <= q->minima[block])
		q->minima[block] = key;
	else if (old == q->minima[block])
		q->minima[block] = evq_block_min(q->key + block * EVQ_BLOCK);
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

// Earliest event time and its source; SIMTIME_NEVER when there is none.
static inline simtime_t evq_next(struct evq *q, uint32_t *source)
{
	uint32_t key = evq_scan(q, source);

	if (__builtin_expect(key == EVQ_FAR, 0)) {
		evq_rebase(q);
		key = evq_scan(q, source);
		if (key == EVQ_FAR)
			return SIMTIME_NEVER;
	}
	return q->epoch + key;
}
