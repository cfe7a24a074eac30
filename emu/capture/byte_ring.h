/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// A ring of variable-length records, one producer, one consumer: how a lcore hands frames to a
// capture's writer without a system call, a lock or an allocation.
//
// A record lies in one piece and starts with its length (uint32_t, multiple of 8). One that does
// not fit before the end of the buffer goes to its beginning, behind a length with the top bit set
// that tells the consumer to skip.

#include <errno.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BYTE_RING_SKIP 0x80000000u

struct byte_ring {
	uint8_t *buf;
	uint64_t size; // power of two
	// producer
	alignas(64) uint64_t tail;
	uint64_t seen_head; // the consumer's head when last looked at
	uint64_t lost;      // records that found no room
	// consumer
	alignas(64) uint64_t head;
};

// `size`: power of two, at least twice the longest record. Returns 0 or -ENOMEM.
static inline int byte_ring_init(struct byte_ring *r, size_t size)
{
	*r = (struct byte_ring){.size = size, .buf = aligned_alloc(64, size)};
	return r->buf ? 0 : -ENOMEM;
}

static inline void byte_ring_fini(struct byte_ring *r)
{
	free(r->buf);
	r->buf = NULL;
}

// Room for a record of `bytes` (multiple of 8), NULL when there is none now. Producer only.
static inline void *byte_ring_reserve(struct byte_ring *r, uint32_t bytes)
{
	uint64_t at = r->tail & (r->size - 1);
	uint64_t to_end = r->size - at;
	uint64_t need = bytes <= to_end ? bytes : to_end + bytes;

	if (r->tail + need - r->seen_head > r->size) {
		r->seen_head = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE);
		if (r->tail + need - r->seen_head > r->size)
			return NULL;
	}
	if (bytes <= to_end)
		return r->buf + at;
	uint32_t skip = (uint32_t)to_end | BYTE_RING_SKIP;
	memcpy(r->buf + at, &skip, sizeof(skip));
	return r->buf;
}

// Publishes the record just reserved and filled.
static inline void byte_ring_commit(struct byte_ring *r, uint32_t bytes)
{
	uint64_t to_end = r->size - (r->tail & (r->size - 1));

	__atomic_store_n(
		&r->tail, r->tail + (bytes <= to_end ? bytes : to_end + bytes), __ATOMIC_RELEASE);
}

// Where the last record published so far ends: `head` once it is released. Consumer only.
static inline uint64_t byte_ring_end(const struct byte_ring *r)
{
	return __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE);
}

// The oldest record, NULL when the ring is empty. Consumer only.
static inline const void *byte_ring_peek(struct byte_ring *r)
{
	while (__atomic_load_n(&r->tail, __ATOMIC_ACQUIRE) != r->head) {
		const uint8_t *p = r->buf + (r->head & (r->size - 1));
		uint32_t bytes;

		memcpy(&bytes, p, sizeof(bytes));
		if (!(bytes & BYTE_RING_SKIP))
			return p;
		__atomic_store_n(&r->head, r->head + (bytes & ~BYTE_RING_SKIP), __ATOMIC_RELEASE);
	}
	return NULL;
}

// Gives the oldest record's room back.
static inline void byte_ring_release(struct byte_ring *r, uint32_t bytes)
{
	__atomic_store_n(&r->head, r->head + bytes, __ATOMIC_RELEASE);
}
