/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// A lane: one direction of a link. A FIFO of (frame, arrival time), one producer, one consumer.
//
// The producer writes `tail`, the consumer `head`, each on its own line with what that side needs.
// Between lcores the release store of `tail` publishes the slots; inside a window of the virtual
// clock nothing sent can be due, so the consumer never races for the newest slot. Slots carry the
// arrival time so that a peek does not touch the frame.
//
// Timing, all in the producer's hands: a frame that is ready at r starts at max(r, free_at), holds
// the lane for its wire bytes, and arrives delay later, when its last bit is in.

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#include "emu/core/frame.h"
#include "emu/core/rng.h"
#include "emu/core/simtime.h"

struct node;
struct lane_hook;

struct lane_slot {
	struct frame *f;
	simtime_t at;
};

struct lane {
	// consumer
	uint32_t head;
	uint32_t mask; // slots - 1, constant
	struct lane_slot *slots;
	struct node *dst;
	uint16_t dst_port;
	bool remote; // the two ends run on different lcores
	bool up;     // changed only while nothing runs (timeline)
	bool plain;  // up, not remote, no errors, no hook: node_send() need not look further
	uint8_t pad[3];

	// producer
	alignas(RTE_CACHE_LINE_MIN_SIZE) uint32_t tail;
	uint16_t src_port;
	struct node *src;
	uint64_t byte_time; // see byte_time_fp()
	simtime_t delay;    // propagation + the sender's forwarding latency, > 0
	simtime_t free_at;  // end of the last frame sent
	// error model: each frame is corrupted with this probability (0 = never)
	uint64_t corrupt_q32;
	struct rng rng;
	uint64_t rate_bps;
	uint32_t id;
	struct lane_hook *hook; // NULL: nothing in the way
	simtime_t slack;        // longest time by which the hook holds frames back
};

// Something in the way of a lane's frames (pipelines/lane_fault.h). Everything runs on the lcore of
// the sender, or while nothing runs.
struct lane_hook {
	// Takes a frame that is on the wire from `start` to `end`, to be passed on with
	// node_carry() or ended; observes it (`what`, `a`, `b` as the sender said).
	void (*send)(struct lane_hook *h, struct node *n, unsigned port, struct frame *f,
		simtime_t start, simtime_t end, int what, uint64_t a, uint64_t b);
	// A timer of kind NODE_TIMER_LANE set by the hook.
	void (*timer)(struct lane_hook *h, struct node *n, unsigned port);
	// How many frames it holds; takes one of them out, NULL when none is left.
	uint64_t (*held)(const struct lane_hook *h);
	struct frame *(*take)(struct lane_hook *h);
	simtime_t free_at; // when the last bit it passed on left
};

// To be called when up, remote, hook or corrupt_q32 changed. A lane that is not `plain` though it
// could be is merely slower.
static inline void lane_update(struct lane *l)
{
	l->plain = l->up && !l->remote && l->corrupt_q32 == 0 && l->hook == NULL;
}

static inline bool lane_empty(const struct lane *l)
{
	return __atomic_load_n(&l->tail, __ATOMIC_ACQUIRE) == l->head;
}

// Arrival time of the oldest frame, SIMTIME_NEVER when the lane is empty. Consumer only.
static inline simtime_t lane_next(const struct lane *l)
{
	return lane_empty(l) ? SIMTIME_NEVER : l->slots[l->head & l->mask].at;
}

static inline bool lane_full(const struct lane *l)
{
	// Acquire: the reader is done with the slot before it is written again.
	return l->tail - __atomic_load_n(&l->head, __ATOMIC_ACQUIRE) > l->mask;
}

static inline simtime_t lane_wire_time(const struct lane *l, uint32_t wire_bytes)
{
	return serialization_time(l->byte_time, wire_bytes);
}

// Allocates at least `slots` slots. Returns 0 or -ENOMEM.
int lane_init(struct lane *l, uint32_t slots);
void lane_fini(struct lane *l);
// Doubles a lane whose two ends run on one lcore (lanes start small to stay in the cache). Returns
// 0, or -ENOMEM, or -ENOSPC at the limit of 4 Mi frames.
int lane_grow(struct lane *l);
