/* SPDX-License-Identifier: BSD-3-Clause */
// WRED as switches use it for ECN (RFC 3168, DCQCN section 5.2, SONiC WRED_PROFILE): with queue
// length q in bytes, instantaneous as ASICs configured for RoCE use it,
//
//	p(q) = 0                                   q <= Kmin
//	       Pmax * (q - Kmin) / (Kmax - Kmin)   Kmin < q <= Kmax
//	       1                                   q > Kmax
//
// q is what waits in the queue before the frame joins it (marking at enqueue), or what waits when
// the frame leaves, itself included (at dequeue: then the mark tells of the congestion behind the
// frame, one queueing delay earlier).
//
// The division by (Kmax - Kmin) happens once, in wred_init(): slope is Q32 probability per byte
// with 16 more fraction bits, rounded to nearest, so p is off by less than 2^-17 * (q - Kmin) *
// 2^-32.

#include "models/wred.h"

#include <errno.h>

uint32_t wred_percent(double percent)
{
	if (percent >= 100.0)
		return UINT32_MAX;
	return percent <= 0.0 ? 0 : (uint32_t)(percent / 100.0 * (double)WRED_ALWAYS + 0.5);
}

int wred_init(struct wred *w, const struct wred_profile *p)
{
	*w = (struct wred){.min_bytes = UINT32_MAX};
	if (!p->enabled)
		return 0;
	// UINT32_MAX as Kmin means "no profile".
	if (p->min_bytes > p->max_bytes || p->max_bytes >= UINT32_MAX)
		return -EINVAL;

	uint64_t span = p->max_bytes - p->min_bytes;
	w->min_bytes = (uint32_t)p->min_bytes;
	w->max_bytes = (uint32_t)p->max_bytes;
	if (span != 0)
		w->slope = (((uint64_t)p->pmax_q32 << WRED_SLOPE_SHIFT) + span / 2) / span;
	w->drop_not_ect = p->drop_not_ect;
	w->at_dequeue = p->at_dequeue;
	return 0;
}
