/* SPDX-License-Identifier: BSD-3-Clause */
#include "emu/core/evq.h"

#include <errno.h>
#include <smmintrin.h>
#include <stdlib.h>
#include <string.h>

static uint32_t hmin_epu32(__m128i v)
{
	v = _mm_min_epu32(v, _mm_shuffle_epi32(v, _MM_SHUFFLE(1, 0, 3, 2)));
	v = _mm_min_epu32(v, _mm_shuffle_epi32(v, _MM_SHUFFLE(2, 3, 0, 1)));
	return (uint32_t)_mm_cvtsi128_si32(v);
}

static uint32_t block_min(const uint32_t *k)
{
	const __m128i *v = (const __m128i *)(const void *)k;
	__m128i a = _mm_min_epu32(_mm_load_si128(v), _mm_load_si128(v + 1));
	__m128i b = _mm_min_epu32(_mm_load_si128(v + 2), _mm_load_si128(v + 3));
	return hmin_epu32(_mm_min_epu32(a, b));
}

// Index of the first of 16 keys equal to `min`; there is one.
static uint32_t block_find(const uint32_t *k, uint32_t min)
{
	const __m128i *v = (const __m128i *)(const void *)k;
	__m128i m = _mm_set1_epi32((int)min);
	__m128i a = _mm_packs_epi32(
		_mm_cmpeq_epi32(_mm_load_si128(v), m), _mm_cmpeq_epi32(_mm_load_si128(v + 1), m));
	__m128i b = _mm_packs_epi32(_mm_cmpeq_epi32(_mm_load_si128(v + 2), m),
		_mm_cmpeq_epi32(_mm_load_si128(v + 3), m));
	return (uint32_t)__builtin_ctz((unsigned)_mm_movemask_epi8(_mm_packs_epi16(a, b)));
}

int evq_init(struct evq *q, uint32_t n_sources)
{
	uint32_t n_blocks = (n_sources + EVQ_BLOCK - 1) / EVQ_BLOCK;
	uint32_t n_minima = (n_blocks + EVQ_BLOCK - 1) / EVQ_BLOCK * EVQ_BLOCK;
	size_t n_keys = (size_t)n_blocks * EVQ_BLOCK;

	*q = (struct evq){.n_blocks = (uint16_t)n_blocks,
		.n_minima = (uint16_t)n_minima,
		.n_sources = n_sources};
	// Minima and keys share one allocation: a host's three sources fit two lines.
	q->minima = aligned_alloc(64, (n_minima + n_keys) * sizeof(uint32_t));
	q->when = malloc(n_sources * sizeof(*q->when));
	if (q->minima == NULL || q->when == NULL) {
		evq_fini(q);
		return -ENOMEM;
	}
	q->key = q->minima + n_minima;
	memset(q->minima, 0xff, (n_minima + n_keys) * sizeof(uint32_t));
	for (uint32_t i = 0; i < n_sources; i++)
		q->when[i] = SIMTIME_NEVER;
	return 0;
}

void evq_fini(struct evq *q)
{
	free(q->minima);
	free(q->when);
	*q = (struct evq){0};
}

void evq_refresh_block(struct evq *q, uint32_t block)
{
	q->minima[block] = block_min(q->key + block * EVQ_BLOCK);
}

void evq_set_epoch(struct evq *q, simtime_t epoch)
{
	q->epoch = epoch;
	for (uint32_t i = 0; i < q->n_sources; i++) {
		uint64_t off = (uint64_t)(q->when[i] - epoch);
		q->key[i] = off < EVQ_FAR ? (uint32_t)off : EVQ_FAR;
	}
	for (uint32_t b = 0; b < q->n_blocks; b++)
		evq_refresh_block(q, b);
}

void evq_rebase(struct evq *q)
{
	simtime_t min = SIMTIME_NEVER;

	for (uint32_t i = 0; i < q->n_sources; i++)
		min = simtime_min(min, q->when[i]);
	if (min != SIMTIME_NEVER)
		evq_set_epoch(q, simtime_max(0, min - EVQ_FAR / 2));
}

uint32_t evq_scan(const struct evq *q, uint32_t *source)
{
	uint32_t block = 0;
	uint32_t min;

	if (q->n_blocks == 1) {
		min = q->minima[0];
	} else {
		min = EVQ_FAR;
		for (uint32_t i = 0; i < q->n_minima; i += EVQ_BLOCK) {
			uint32_t m = block_min(q->minima + i);
			if (m < min) {
				min = m;
				block = i;
			}
		}
		block += block_find(q->minima + block, min);
	}
	*source = block * EVQ_BLOCK + block_find(q->key + block * EVQ_BLOCK, min);
	return min;
}
