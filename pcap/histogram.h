/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Quantiles of a stream of times in little memory: buckets of equal width within each power of two,
// so that a quantile is right to 1/16 of its value; minimum, maximum and sum are exact.

#include <stdint.h>

#define HIST_SUB_BITS 4
#define HIST_SUB      (1u << HIST_SUB_BITS)
#define HIST_BUCKETS  ((41u - HIST_SUB_BITS) * HIST_SUB) // up to 2^40 ns, 18 minutes

struct histogram {
	uint64_t n;
	uint64_t sum_ns;
	uint64_t min_ns, max_ns;
	uint32_t bucket[HIST_BUCKETS];
};

static inline unsigned histogram_index(uint64_t ns)
{
	if (ns < HIST_SUB)
		return (unsigned)ns;
	unsigned power = 63u - (unsigned)__builtin_clzll(ns);
	unsigned i = (power - HIST_SUB_BITS) * HIST_SUB + (unsigned)(ns >> (power - HIST_SUB_BITS));
	return i < HIST_BUCKETS ? i : HIST_BUCKETS - 1;
}

// Middle of a bucket.
static inline uint64_t histogram_value(unsigned i)
{
	if (i < 2 * HIST_SUB)
		return i;
	unsigned shift = i / HIST_SUB - 1;
	return ((uint64_t)(HIST_SUB + i % HIST_SUB) << shift) + (UINT64_C(1) << shift) / 2;
}

static inline void histogram_add(struct histogram *h, uint64_t ns)
{
	h->min_ns = h->n == 0 || ns < h->min_ns ? ns : h->min_ns;
	h->max_ns = ns > h->max_ns ? ns : h->max_ns;
	h->n++;
	h->sum_ns += ns;
	h->bucket[histogram_index(ns)]++;
}

// The value that `permille` of the samples do not exceed; 0 without samples.
static inline uint64_t histogram_quantile(const struct histogram *h, unsigned permille)
{
	uint64_t rank = (h->n * permille + 999) / 1000, seen = 0;

	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		seen += h->bucket[i];
		if (seen >= rank && seen > 0) {
			uint64_t v = histogram_value(i);
			return v < h->min_ns ? h->min_ns : v > h->max_ns ? h->max_ns : v;
		}
	}
	return h->max_ns;
}
