/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// A frame on its way through the fabric: an rte_mbuf whose private area holds this one cache line.
//
//	+-----------+-----------+--------------+------------------------------+
//	| mbuf line0| mbuf line1| struct frame | headers (and payload if real)|
//	+-----------+-----------+--------------+------------------------------+
//	                        ^ f            ^ f + 1 + data_off
//
// The fabric passes `struct frame *`. A hop touches the frame line and the first header line, which
// the adjacent-line prefetcher fetches together, and never the mbuf lines: what the data path needs
// of them (length, data offset) is here. Between allocation and a real port an mbuf always has
// refcnt 1, one segment and no next, so freeing it is a mempool put.
//
// A frame of a built-in NIC has all its real headers, but its payload and ICRC exist only as the
// recipe `payload_*` until someone looks (pipelines/materialise.h).

#include <assert.h>
#include <rte_common.h>
#include <rte_mbuf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "emu/core/simtime.h"

// Ethernet's per-frame overhead on the wire that is not in `len` (IEEE 802.3 clauses 3 and 4).
#define ETH_FCS_BYTES      4
#define ETH_PREAMBLE_BYTES 8
#define ETH_IFG_BYTES      12
#define ETH_OVERHEAD_BYTES (ETH_FCS_BYTES + ETH_PREAMBLE_BYTES + ETH_IFG_BYTES)
#define ETH_MIN_BYTES      60 // without FCS

enum frame_kind {
	FRAME_IP,       // IPv4 or IPv6, to be routed
	FRAME_ROCE1,    // RoCE v1, to be switched; its GRH passes for IPv6, l4_off is BTH - 8
	FRAME_CONTROL,  // MAC control (PFC, PAUSE): ends at the next node
	FRAME_LOCAL,    // ARP, ND: answered by the next switch or ended there
	FRAME_INT,      // IP, with a trailer that switches put their telemetry into
	FRAME_INT_ECHO, // IP, with such a trailer on its way back
};

enum frame_flag {
	FRAME_F_PARSED = 1 << 0,  // the fields below marked (parse) are valid
	FRAME_F_SYNTH = 1 << 1,   // payload and ICRC not made yet: see payload_*
	FRAME_F_IPV6 = 1 << 2,    // (parse)
	FRAME_F_ROCE = 1 << 3,    // (parse) RoCEv2: UDP 4791 with a BTH
	FRAME_F_MARKED = 1 << 4,  // CE set somewhere in this fabric
	FRAME_F_CORRUPT = 1 << 5, // bit error on a lane: the next MAC's FCS check drops it
	FRAME_F_TAGGED = 1 << 6,  // (parse) 802.1Q tag present
	FRAME_F_HEAD = 1 << 7,    // of the pool of heads: may go back by way of a cache
};

struct frame {
	struct frame *next; // queue link of whoever holds the frame
	simtime_t born;     // when it entered the fabric
	uint32_t flow_hash; // (parse) of the 5-tuple, for ECMP
	uint32_t dst;       // (parse) endpoint index of the destination address, or FRAME_NO_DST
	uint16_t len;       // bytes of the Ethernet frame without FCS, payload included; >= 60
	uint16_t data_off;  // headers start at (uint8_t *)(f + 1) + data_off
	uint16_t head_len;  // bytes really present in the buffer (== len unless FRAME_F_SYNTH)
	uint16_t in_port;   // arrival port at the node that holds it
	uint16_t cells;     // buffer cells charged at the node that holds it
	uint8_t kind;       // enum frame_kind
	uint8_t flags;      // enum frame_flag
	uint8_t tc;         // traffic class, priority group and egress queue at this node
	uint8_t pg;
	uint8_t queue;
	uint8_t l3_off;       // (parse)
	uint8_t l4_off;       // (parse) UDP or other transport header
	uint8_t opcode;       // (parse) BTH opcode if FRAME_F_ROCE
	uint16_t payload_len; // FRAME_F_SYNTH: payload bytes to make, before the pad
	uint32_t flow;        // workload flow index of a built-in NIC's frame, else FRAME_NO_FLOW
	uint64_t payload_pos; // FRAME_F_SYNTH: byte position in the flow's pattern
	uint64_t note;        // the holder's own, e.g. queue bytes when it marked the frame
};

static_assert(sizeof(struct frame) == RTE_CACHE_LINE_MIN_SIZE, "one cache line per frame");
static_assert(sizeof(struct rte_mbuf) == 2 * RTE_CACHE_LINE_MIN_SIZE, "see the layout above");

#define FRAME_NO_DST  UINT32_MAX
#define FRAME_NO_FLOW UINT32_MAX

static inline struct rte_mbuf *frame_mbuf(const struct frame *f)
{
	return (struct rte_mbuf *)((uintptr_t)f - sizeof(struct rte_mbuf));
}

static inline struct frame *mbuf_frame(struct rte_mbuf *m)
{
	return (struct frame *)(m + 1);
}

static inline uint8_t *frame_data(const struct frame *f)
{
	return (uint8_t *)((uintptr_t)(f + 1) + f->data_off);
}

// Who takes in a frame from outside brings it to the least length of Ethernet (IEEE 802.3
// 4A.2.3.2.4), as a NIC does on sending. Its bytes are all present, and so is room for 60.
static inline void frame_pad(struct frame *f)
{
	if (unlikely(f->len < ETH_MIN_BYTES)) {
		memset(frame_data(f) + f->len, 0, ETH_MIN_BYTES - f->len);
		f->len = f->head_len = ETH_MIN_BYTES;
	}
}

// Bytes the frame occupies on an Ethernet wire: preamble, frame, FCS, gap.
static inline uint32_t frame_wire_bytes(const struct frame *f)
{
	return f->len + ETH_OVERHEAD_BYTES;
}

// Bytes that count against a switch buffer and in port statistics: the frame with its FCS.
static inline uint32_t frame_buffer_bytes(const struct frame *f)
{
	return f->len + ETH_FCS_BYTES;
}

struct frame_queue {
	struct frame *head;
	struct frame *tail;
};

static inline bool frame_queue_empty(const struct frame_queue *q)
{
	return q->head == NULL;
}

static inline void frame_queue_push(struct frame_queue *q, struct frame *f)
{
	f->next = NULL;
	if (q->head == NULL)
		q->head = f;
	else
		q->tail->next = f;
	q->tail = f;
}

static inline struct frame *frame_queue_pop(struct frame_queue *q)
{
	struct frame *f = q->head;
	if (f != NULL)
		q->head = f->next;
	return f;
}

// ---- pools -----------------------------------------------------------------------------------

// Room for the headers of a built-in NIC's frame: Ethernet 14 + 802.1Q 4 + IPv6 40 + UDP 8 + BTH 12
// + the longest extension (AtomicETH 28) + slack; a multiple of the cache line.
#define FRAME_HEAD_ROOM 192

// FRAME_INT and FRAME_INT_ECHO, always from the pool of heads: the last FRAME_TAIL_BYTES bytes of
// the frame are kept here, behind its headers.
#define FRAME_TAIL_OFFSET 144
#define FRAME_TAIL_BYTES  42 // INT_BYTES of pcap/int.h

static inline bool frame_has_tail(const struct frame *f)
{
	return f->kind >= FRAME_INT;
}

static inline uint8_t *frame_tail(const struct frame *f)
{
	return (uint8_t *)(uintptr_t)(f + 1) + FRAME_TAIL_OFFSET;
}

// Two pools per fabric: `heads` for built-in NICs' frames and control frames, `full` for frames
// that come from outside (real ports, replay) and carry all their bytes.
struct frame_pool {
	struct rte_mempool *heads;
	struct rte_mempool *full; // NULL when nothing comes from outside
};

// A frame from `pool` with data_off 0, all other fields zero; NULL when the pool is empty (the
// caller counts DROP_NO_MBUF). Constant time, per-lcore cache.
static inline struct frame *frame_alloc(struct rte_mempool *pool)
{
	struct rte_mbuf *m;

	if (unlikely(rte_mempool_get(pool, (void **)&m) < 0))
		return NULL;
	struct frame *f = mbuf_frame(m);
	*f = (struct frame){.dst = FRAME_NO_DST, .flow = FRAME_NO_FLOW};
	return f;
}

// Gives the frame back to the pool it came from.
static inline void frame_free(struct frame *f)
{
	struct rte_mbuf *m = frame_mbuf(f);
	rte_mempool_put(m->pool, m);
}

// Free a frame whose pool is known, without touching the mbuf's lines.
static inline void frame_free_to(struct rte_mempool *pool, struct frame *f)
{
	rte_mempool_put(pool, frame_mbuf(f));
}

// ---- cache -----------------------------------------------------------------------------------

// An lcore's own free heads, last in first out, linked through the frames: four instructions each
// way where a mempool's cache takes thirty. Overflow and shortage are settled with the pool in
// bulk.
#define FRAME_CACHE_BULK 128u
#define FRAME_CACHE_MAX  (4 * FRAME_CACHE_BULK)

struct frame_cache {
	struct frame *head;
	uint32_t n;
	struct rte_mempool *pool;
};

// Takes a bulk, or what there is, from the pool. False when there is none.
bool frame_cache_refill(struct frame_cache *c);
// Gives frames back to the pool until `left` are left.
void frame_cache_flush(struct frame_cache *c, uint32_t left);

// As frame_alloc().
static inline struct frame *frame_cache_get(struct frame_cache *c)
{
	if (unlikely(c->head == NULL) && !frame_cache_refill(c))
		return NULL;
	struct frame *f = c->head;
	c->head = f->next;
	c->n--;
	*f = (struct frame){.dst = FRAME_NO_DST, .flow = FRAME_NO_FLOW, .flags = FRAME_F_HEAD};
	return f;
}

static inline void frame_cache_put(struct frame_cache *c, struct frame *f)
{
	f->next = c->head;
	c->head = f;
	if (unlikely(++c->n > FRAME_CACHE_MAX))
		frame_cache_flush(c, FRAME_CACHE_MAX - FRAME_CACHE_BULK);
}
