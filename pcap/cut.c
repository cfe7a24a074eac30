/* SPDX-License-Identifier: BSD-3-Clause */
// A frame belongs to a queue pair when it goes to it or to its counterpart: then its addresses and
// destination queue pair are those of a flow. CNPs are such frames. Connection management goes to
// queue pair 1: a REQ or REP names the queue pair and its communication ID, all later messages of
// the connection only the latter.
#include "pcap/cut.h"

#include <stdlib.h>

#include "pcap/codec.h"
#include "pcap/mad.h"

#define COMM_IDS 256

struct key {
	uint8_t src[16], dst[16];
	uint8_t addr_bytes;
	uint32_t qp;
};

struct cut {
	struct cut_window window;
	const struct frame_filter *filter;
	struct key *keys;
	uint32_t n_keys;
	uint32_t comm_ids[COMM_IDS]; // a ring
	uint32_t n_comm_ids;
};

struct cut *cut_new(const struct cut_window *window, const struct frame_filter *filter)
{
	struct cut *c = calloc(1, sizeof(*c));

	if (c != NULL) {
		c->window = *window;
		c->filter = filter;
	}
	return c;
}

void cut_free(struct cut *c)
{
	free(c->keys);
	free(c);
}

static bool same(const struct key *a, const struct key *b)
{
	return a->qp == b->qp && a->addr_bytes == b->addr_bytes &&
	       memcmp(a->src, b->src, a->addr_bytes) == 0 &&
	       memcmp(a->dst, b->dst, a->addr_bytes) == 0;
}

bool cut_add_flow(struct cut *c, const struct check_flow *f)
{
	struct key k = {.addr_bytes = f->addr_bytes, .qp = f->dest_qp};

	memcpy(k.src, f->src, f->addr_bytes);
	memcpy(k.dst, f->dst, f->addr_bytes);
	for (uint32_t i = 0; i < c->n_keys; i++)
		if (same(&c->keys[i], &k))
			return true;
	struct key *more = realloc(c->keys, (c->n_keys + 1) * sizeof(*more));
	if (more == NULL)
		return false;
	c->keys = more;
	c->keys[c->n_keys++] = k;
	return true;
}

// ---- connection management -------------------------------------------------------------------

static bool knows_comm_id(const struct cut *c, uint32_t id)
{
	for (uint32_t i = 0; i < c->n_comm_ids && i < COMM_IDS; i++)
		if (c->comm_ids[i] == id)
			return true;
	return false;
}

static void learn_comm_id(struct cut *c, uint32_t id)
{
	if (!knows_comm_id(c, id))
		c->comm_ids[c->n_comm_ids++ % COMM_IDS] = id;
}

// Whether `qp` of the sender of this packet is one of the flows' destinations.
static bool is_ours(const struct cut *c, const struct pkt *p, uint32_t qp)
{
	for (uint32_t i = 0; i < c->n_keys; i++) {
		const struct key *k = &c->keys[i];
		if (k->qp == qp && k->addr_bytes == p->addr_bytes &&
			memcmp(k->dst, p->data + p->src_off, p->addr_bytes) == 0 &&
			memcmp(k->src, p->data + p->dst_off, p->addr_bytes) == 0)
			return true;
	}
	return false;
}

static bool wants_cm(struct cut *c, const struct stream_frame *f, const struct pkt *p)
{
	struct cm_mad m;
	// every message of a connection begins with the sender's ID and, but for a REQ, the other's
	uint32_t local, remote = 0;
	bool first = false;

	if (f->caplen < (uint32_t)p->payload_off + p->payload_len ||
		cm_mad_parse(p->data + p->payload_off, p->payload_len, &m) != MAD_OK)
		return false;
	const uint8_t *body = p->data + p->payload_off + MAD_HEADER_BYTES;
	local = get_be32(body);
	if (m.hdr.attr_id == CM_ATTR_REQ) {
		first = is_ours(c, p, m.req.local_qpn);
	} else {
		remote = get_be32(body + 4);
		if (m.hdr.attr_id == CM_ATTR_REP)
			first = is_ours(c, p, m.rep.local_qpn);
	}
	if (first)
		learn_comm_id(c, local);
	return first || knows_comm_id(c, local) || (remote != 0 && knows_comm_id(c, remote));
}

// ---- frames ----------------------------------------------------------------------------------

static bool wants_flow(struct cut *c, const struct stream_frame *f)
{
	struct pkt p;

	if (c->n_keys == 0)
		return true;
	if (pkt_parse_head(f->data, f->caplen, f->len, &p) != PKT_OK || p.bth_off == 0)
		return false;
	struct key k = {.addr_bytes = p.addr_bytes, .qp = p.dest_qp};
	memcpy(k.src, p.data + p.src_off, p.addr_bytes);
	memcpy(k.dst, p.data + p.dst_off, p.addr_bytes);
	for (uint32_t i = 0; i < c->n_keys; i++)
		if (same(&c->keys[i], &k))
			return true;
	return p.dest_qp == GSI_QPN && wants_cm(c, f, &p);
}

bool cut_wants(struct cut *c, const struct stream_frame *f)
{
	const struct cut_window *w = &c->window;
	bool wanted = wants_flow(c, f); // first: it learns

	if (w->by_time && (f->time_ns < w->from_ns || f->time_ns > w->to_ns))
		return false;
	if (w->by_number && (f->number < w->from || f->number > w->to))
		return false;
	return wanted && frame_filter_match(c->filter, f->data, f->caplen, f->len);
}
