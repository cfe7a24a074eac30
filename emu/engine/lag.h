/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// How late the host executed events under the wall clock: a histogram with 8 linear steps per power
// of two (12 % resolution) of wall picoseconds, plus the exact maximum.

#include <stdint.h>

#include "emu/core/simtime.h"

#define LAG_SUB     8
#define LAG_BUCKETS (64 * LAG_SUB)

struct lag {
	uint64_t count[LAG_BUCKETS];
	uint64_t n;
	simtime_t max;
};

void lag_add(struct lag *l, simtime_t lag);
// Upper bound of the bucket that holds quantile q (0..1); 0 without samples.
simtime_t lag_quantile(const struct lag *l, double q);
