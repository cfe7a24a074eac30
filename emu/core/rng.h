/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Seeded random numbers, one independent stream per owner (node, lane, workload), so that a draw
// made by one node never shifts the numbers of another: results do not depend on execution order.
// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): 64-bit state, passes BigCrush, cheap.

#include <stdint.h>

struct rng {
	uint64_t state;
};

// The finaliser of SplitMix64: a bijective 64-bit mix, also used to hash.
static inline uint64_t mix64(uint64_t z)
{
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static inline uint64_t rng_next(struct rng *r)
{
	return mix64(r->state += UINT64_C(0x9e3779b97f4a7c15));
}

// Stream `stream` of the run's seed.
static inline struct rng rng_stream(uint64_t seed, uint64_t stream)
{
	return (struct rng){.state = mix64(seed ^ mix64(stream + UINT64_C(0x9e3779b97f4a7c15)))};
}

// Uniform in [0, n), n > 0 (multiply-shift; bias below 2^-32 for n < 2^32).
static inline uint32_t rng_below(struct rng *r, uint32_t n)
{
	return (uint32_t)(((rng_next(r) >> 32) * n) >> 32);
}

// True with probability p_q32 / 2^32.
static inline int rng_hit(struct rng *r, uint64_t p_q32)
{
	return (rng_next(r) >> 32) < p_q32;
}
