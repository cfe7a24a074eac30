/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// A node's timers: a 4-ary heap ordered by (time, insertion). A timer is a (kind, arg) pair that
// the pipeline understands; there is no cancellation: an owner keeps its deadline in its own state
// and ignores or re-arms a timer that fires early. Retransmission timers are re-armed lazily that
// way, so that an ACK costs nothing here.

#include <stdint.h>

#include "emu/core/simtime.h"

struct timer {
	simtime_t at;
	uint64_t seq; // insertion order, breaks ties
	uint32_t kind;
	uint32_t arg;
};

struct timer_heap {
	struct timer *heap;
	uint32_t n;
	uint32_t cap;
	uint64_t seq;
};

// `cap`: initial capacity; the heap grows (doubling) when a pipeline exceeds it.
int timer_heap_init(struct timer_heap *h, uint32_t cap);
void timer_heap_fini(struct timer_heap *h);
// Returns 0 or -ENOMEM.
int timer_heap_add(struct timer_heap *h, simtime_t at, uint32_t kind, uint32_t arg);
// Time of the earliest timer, SIMTIME_NEVER when empty.
static inline simtime_t timer_heap_next(const struct timer_heap *h)
{
	return h->n ? h->heap[0].at : SIMTIME_NEVER;
}
// Removes and returns the earliest timer; the heap must not be empty.
struct timer timer_heap_pop(struct timer_heap *h);
