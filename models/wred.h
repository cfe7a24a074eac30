/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// WRED with ECN: the probability that a frame is marked (or dropped, if not ECN capable) as a
// function of its queue's length. See wred.c.

#include <stdbool.h>
#include <stdint.h>

// WRED_PROFILE. All zero: no profile bound.
struct wred_profile {
	bool enabled;
	uint64_t min_bytes; // Kmin: none is marked up to here
	uint64_t max_bytes; // Kmax: all are marked above
	uint32_t pmax_q32;  // probability at Kmax, 2^32 - 1 ~ 1; see wred_percent()
	bool drop_not_ect;  // drop frames that cannot be marked, with the same probability
	bool at_dequeue;    // judge and mark when the frame leaves instead of when it comes
};

// What the data path needs of a profile.
struct wred {
	uint32_t min_bytes; // UINT32_MAX: no profile
	uint32_t max_bytes;
	uint64_t slope; // probability per byte above min, Q32 << WRED_SLOPE_SHIFT
	bool drop_not_ect;
	bool at_dequeue;
};

#define WRED_ALWAYS      (UINT64_C(1) << 32)
#define WRED_SLOPE_SHIFT 16

// A probability given in percent (0..100) as Q32.
uint32_t wred_percent(double percent);

// 0, or -EINVAL when min > max or a value exceeds 32 bits.
int wred_init(struct wred *w, const struct wred_profile *p);

// Probability in Q32 (0 .. WRED_ALWAYS) for a queue of `bytes`.
static inline uint64_t wred_probability(const struct wred *w, uint32_t bytes)
{
	if (__builtin_expect(bytes <= w->min_bytes, 1))
		return 0;
	if (bytes > w->max_bytes)
		return WRED_ALWAYS;
	return (uint64_t)(((unsigned __int128)w->slope * (bytes - w->min_bytes)) >>
			  WRED_SLOPE_SHIFT);
}
