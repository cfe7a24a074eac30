/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// What a responder may touch: the memory regions peers reach by rkey, and the receives its
// application has posted. Both belong to the caller and may be shared by queue pairs; nothing here
// is real memory, addresses are numbers.

#include <stdbool.h>
#include <stdint.h>

#include "models/verbs.h"

struct rc_mr {
	uint64_t addr, length; // bytes
	uint32_t rkey, lkey;
	uint8_t access; // enum access_flag
	bool valid;
};

// A key is index << 8 | variant, as hardware's; the variant tells a slot's users apart.
struct rc_memory {
	struct rc_mr *mr; // [n], zeroed by the caller
	uint32_t n;
};

// Fills a free slot: the region, whose keys are the same; NULL when all are taken.
const struct rc_mr *rc_mr_register(
	struct rc_memory *m, uint64_t addr, uint64_t length, uint8_t access, uint8_t variant);
// The valid region of a key, NULL: none.
const struct rc_mr *rc_mr_find(const struct rc_memory *m, uint32_t key);
// False when there is none. Deregistration, and what SEND with invalidate does.
bool rc_mr_invalidate(struct rc_memory *m, uint32_t key);
// Whether [addr, addr + bytes) lies in the key's region and all of `access` is permitted. Always
// for zero bytes, whatever the key (IBTA vol. 1, 9.4.3, 9.4.4).
bool rc_mr_allows(
	const struct rc_memory *m, uint32_t key, uint64_t addr, uint32_t bytes, uint8_t access);

// A receive: one buffer.
struct rc_recv {
	uint64_t wr_id;
	uint64_t addr;
	uint32_t length;
};

// A receive queue, of one queue pair or shared by several (SRQ). Free-running indices.
struct rc_rq {
	struct rc_recv *ring; // [mask + 1], the caller's
	uint32_t mask;
	uint32_t head, tail; // oldest; one beyond the newest
	bool shared;         // no credits are given for it (IBTA vol. 1, 9.7.7.2.1)
};

// `entries`: a power of two.
static inline void rc_rq_init(struct rc_rq *q, struct rc_recv *ring, uint32_t entries, bool shared)
{
	*q = (struct rc_rq){.ring = ring, .mask = entries - 1, .shared = shared};
}

static inline uint32_t rc_rq_count(const struct rc_rq *q)
{
	return q->tail - q->head;
}

// False when the queue is full.
static inline bool rc_post_recv(struct rc_rq *q, const struct rc_recv *recv)
{
	if (q->tail - q->head > q->mask)
		return false;
	q->ring[q->tail++ & q->mask] = *recv;
	return true;
}

// The oldest receive; false when there is none.
static inline bool rc_rq_take(struct rc_rq *q, struct rc_recv *out)
{
	if (q->head == q->tail)
		return false;
	*out = q->ring[q->head++ & q->mask];
	return true;
}
