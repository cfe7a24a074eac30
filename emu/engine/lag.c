/* SPDX-License-Identifier: BSD-3-Clause */
#include "emu/engine/lag.h"

static unsigned bucket_of(uint64_t v)
{
	if (v < LAG_SUB)
		return (unsigned)v;
	unsigned log2 = 63 - (unsigned)__builtin_clzll(v);
	// Three bits below the leading one choose the step.
	return (log2 - 2) * LAG_SUB + (unsigned)((v >> (log2 - 3)) & (LAG_SUB - 1));
}

static uint64_t bucket_end(unsigned b)
{
	if (b < LAG_SUB)
		return b;
	unsigned log2 = b / LAG_SUB + 2;
	return ((uint64_t)(LAG_SUB + b % LAG_SUB + 1) << (log2 - 3)) - 1;
}

void lag_add(struct lag *l, simtime_t lag)
{
	uint64_t v = lag > 0 ? (uint64_t)lag : 0;

	l->count[bucket_of(v)]++;
	l->n++;
	l->max = simtime_max(l->max, (simtime_t)v);
}

simtime_t lag_quantile(const struct lag *l, double q)
{
	uint64_t rank = (uint64_t)(q * (double)l->n);
	uint64_t seen = 0;

	for (unsigned b = 0; b < LAG_BUCKETS; b++) {
		seen += l->count[b];
		if (l->count[b] && seen > rank)
			return simtime_min((simtime_t)bucket_end(b), l->max);
	}
	return l->max;
}
