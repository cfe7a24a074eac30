/* SPDX-License-Identifier: BSD-3-Clause */
// What fault rules see of a frame, and what they do to its bytes.
//
// A built-in NIC's frame has no payload and no ICRC to be wrong. One that is damaged gets all its
// bytes, in a frame of the pool of full ones, before a bit of them flips: from there on everyone
// (capture, real port, NIC) treats it as any frame from outside, and what is wrong with it is found
// by whoever would find it.

#include <string.h>

#include "pcap/build.h"
#include "pcap/codec.h"
#include "pipelines/endpoint.h"
#include "pipelines/lane_fault_frame.h"
#include "pipelines/materialise.h"

#define QPN_GSI 1 // up to this: management, no connection of an application

static uint64_t address_key(const uint8_t *a, unsigned bytes)
{
	uint64_t key = bytes;

	for (unsigned i = 0; i < bytes; i += 4)
		key = mix64(key ^ get_be32(a + i));
	return key;
}

static uint32_t endpoint_of(const struct endpoint_table *t, const struct pkt *p, uint16_t off)
{
	if (t == NULL || p->addr_bytes == 0)
		return FAULT_ANY;
	return p->addr_bytes == 4 ? endpoint_find_ipv4(t, p->data + off)
				  : endpoint_find_ipv6(t, p->data + off);
}

static bool opens_message(uint8_t opcode)
{
	switch (opcode & 0x1f) {
	case ROCE_SEND_FIRST:
	case ROCE_SEND_ONLY:
	case ROCE_SEND_ONLY_IMM:
	case ROCE_SEND_ONLY_INV:
	case ROCE_WRITE_FIRST:
	case ROCE_WRITE_ONLY:
	case ROCE_WRITE_ONLY_IMM:
	case ROCE_READ_REQUEST:
	case ROCE_READ_RESP_FIRST:
	case ROCE_READ_RESP_ONLY:
	case ROCE_CMP_SWAP:
	case ROCE_FETCH_ADD:
		return true;
	}
	return false;
}

static void look_at_roce(const struct pkt *p, const struct frame *f, struct fault_packet *out)
{
	const uint8_t *aeth = pkt_ext(p, ROCE_EXT_AETH);
	bool readable = aeth != NULL && aeth < p->data + f->head_len;

	out->opcode = p->opcode;
	out->kind = (uint8_t)fault_kind_of(p->opcode, readable ? *aeth : 0);
	out->qpn = p->dest_qp;
	out->psn = p->psn;
	out->opens = opens_message(p->opcode);
	if (p->dest_qp > QPN_GSI)
		out->qp_key =
			mix64(address_key(p->data + p->src_off, p->addr_bytes) +
				3 * address_key(p->data + p->dst_off, p->addr_bytes) + p->dest_qp) |
			1;
}

struct fault_packet lane_fault_look(const struct endpoint_table *endpoints, const struct frame *f)
{
	struct fault_packet out = {
		.src = FAULT_ANY,
		.dst = FAULT_ANY,
		.flow = f->flow,
		.qpn = FAULT_ANY,
		.kind = FAULT_KIND_OTHER,
		.prios = (uint8_t)(1u << f->tc),
	};
	struct pkt p;

	if (pkt_parse_head(frame_data(f), f->head_len, f->len, &p) != PKT_OK)
		return out;
	if (p.kind == PKT_PFC || p.kind == PKT_PAUSE) {
		out.kind = FAULT_KIND_PFC;
		out.prios = p.kind == PKT_PFC ? pfc_parse(&p).classes : 0xff;
		return out;
	}
	out.src = endpoint_of(endpoints, &p, p.src_off);
	out.dst = endpoint_of(endpoints, &p, p.dst_off);
	if (p.bth_off != 0)
		look_at_roce(&p, f, &out);
	return out;
}

bool lane_fault_mark(struct frame *f)
{
	struct pkt p;

	if (pkt_parse_head(frame_data(f), f->head_len, f->len, &p) != PKT_OK || p.ip_version == 0 ||
		p.ecn == ECN_CE)
		return false;
	ip_set_ce(frame_data(f) + p.l3_off);
	f->flags |= FRAME_F_MARKED;
	return true;
}

// The frame with all its bytes.
static struct frame *complete(struct node *n, unsigned port, struct frame *f)
{
	if (!(f->flags & FRAME_F_SYNTH))
		return f;
	struct frame *full = frame_complete(n->pool.full, f);
	if (full == NULL)
		node_lose(n, port, f, DROP_NO_MBUF);
	return full;
}

struct frame *lane_fault_corrupt(
	struct node *n, unsigned port, struct frame *f, struct rng *rng, bool *done)
{
	struct pkt p;
	uint32_t bit = rng_below(rng, UINT32_MAX);

	*done = true;
	if (pkt_parse_head(frame_data(f), f->head_len, f->len, &p) != PKT_OK || p.bth_off == 0) {
		f->flags |= FRAME_F_CORRUPT; // nothing but the FCS protects it
		return f;
	}
	f = complete(n, port, f);
	if (f == NULL)
		return NULL;
	// Of a packet without payload a bit of the ICRC itself.
	uint32_t first = p.payload_len != 0 ? p.payload_off : p.end - ICRC_BYTES;
	uint32_t bytes = p.payload_len != 0 ? p.payload_len : ICRC_BYTES;
	bit %= 8 * bytes;
	frame_data(f)[first + bit / 8] ^= (uint8_t)(1u << bit % 8);
	return f;
}

struct frame *lane_fault_truncate(
	struct node *n, unsigned port, struct frame *f, uint16_t length, bool *done)
{
	*done = f->len > length;
	if (!*done)
		return f;
	f = complete(n, port, f);
	if (f == NULL)
		return NULL;
	f->len = f->head_len = length;
	f->payload_len = 0;
	f->flags &= (uint8_t)~FRAME_F_PARSED; // its lengths are no longer true
	return f;
}

struct frame *lane_fault_copy(struct node *n, unsigned port, const struct frame *f)
{
	bool small = f->head_len <= FRAME_HEAD_ROOM;
	struct frame *copy;

	if (small) {
		copy = node_new_frame(n, port);
	} else {
		copy = n->pool.full != NULL ? frame_alloc(n->pool.full) : NULL;
		if (copy == NULL)
			n->ports[port].ctr->drops[DROP_NO_MBUF]++;
		else
			n->created++;
	}
	if (copy == NULL)
		return NULL;
	*copy = *f;
	copy->next = NULL;
	copy->data_off = small ? 0 : RTE_PKTMBUF_HEADROOM;
	copy->flags = (uint8_t)((f->flags & ~FRAME_F_HEAD) | (small ? FRAME_F_HEAD : 0));
	memcpy(frame_data(copy), frame_data(f), f->head_len);
	if (frame_has_tail(f))
		memcpy(frame_tail(copy), frame_tail(f), FRAME_TAIL_BYTES);
	return copy;
}
