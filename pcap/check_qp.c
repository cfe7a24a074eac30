/* SPDX-License-Identifier: BSD-3-Clause */
// Flows, and which two are the directions of one connection.
//
// A packet names the queue pair it goes to and not the one it comes from. So the flow from A to B's
// queue pair b and the one from B to A's queue pair a belong together when
//   - connection management said so (REQ and REP name both, check_cm.c), or
//   - a response that B sends to a names a PSN that A has under way to b, and to no other of its
//     queue pairs. PSNs start at random, so one match is telling; where several fit, the UDP source
//     port (which Linux computes from both numbers, and rxe from one) and a request for that very
//     acknowledgement decide. If that does not either, the flows stay ambiguous, the response is
//     counted as not judged, and the next one tries again.
#include <stdio.h>
#include <stdlib.h>

#include "pcap/check_priv.h"

#define HASH_MUL       UINT64_C(0x9e3779b97f4a7c15)
#define MAX_CANDIDATES 256
// Points for a candidate.
#define POINTS_ACK_ASKED  1
#define POINTS_SAME_SPORT 2
#define POINTS_SPORT_OF   4

static uint64_t hash_bytes(uint64_t h, const uint8_t *p, unsigned n)
{
	for (unsigned i = 0; i + 4 <= n; i += 4)
		h = (h ^ get_le32(p + i)) * HASH_MUL;
	return h;
}

static uint32_t hash_flow(const struct check *c, uint32_t tap, const uint8_t *src,
	const uint8_t *dst, unsigned addr_bytes, uint32_t qp)
{
	uint64_t h = hash_bytes(((uint64_t)tap << 24 | qp) * HASH_MUL, src, addr_bytes);

	h = hash_bytes(h ^ h >> 32, dst, addr_bytes);
	return (uint32_t)(h >> 32) & (c->n_buckets - 1);
}

// The same for both directions.
uint32_t flow_hash_pair(const struct check *c, uint32_t tap, const uint8_t *src, const uint8_t *dst,
	unsigned addr_bytes)
{
	uint64_t a = hash_bytes(HASH_MUL, src, addr_bytes),
		 b = hash_bytes(HASH_MUL, dst, addr_bytes);

	return (uint32_t)(((a + b) ^ tap) * HASH_MUL >> 32) & (c->n_buckets - 1);
}

static bool is_flow(const struct flow *f, uint32_t tap, const uint8_t *src, const uint8_t *dst,
	unsigned addr_bytes, bool roce1, uint32_t qp)
{
	return f->f.dest_qp == qp && f->f.tap == tap && f->f.addr_bytes == addr_bytes &&
	       f->f.roce1 == roce1 && memcmp(f->f.src, src, addr_bytes) == 0 &&
	       memcmp(f->f.dst, dst, addr_bytes) == 0;
}

static struct flow *flow_new(struct check *c, uint32_t tap, const uint8_t *src, const uint8_t *dst,
	uint8_t addr_bytes, bool roce1, uint32_t qp)
{
	if (c->r.n_flows == c->opt.flows_max)
		return NULL;
	struct flow *f = calloc(1, sizeof(*f));
	if (f == NULL) {
		c->out_of_memory = true;
		return NULL;
	}
	f->f.tap = tap;
	f->f.addr_bytes = addr_bytes;
	f->f.roce1 = roce1;
	memcpy(f->f.src, src, addr_bytes);
	memcpy(f->f.dst, dst, addr_bytes);
	f->f.dest_qp = qp;
	f->index = c->r.n_flows;
	c->flows[c->r.n_flows++] = f;
	uint32_t *pair = &c->pairs[flow_hash_pair(c, tap, src, dst, addr_bytes)];
	f->pair_next = *pair;
	*pair = f->index + 1;
	return f;
}

struct flow *flow_lookup(struct check *c, uint32_t tap, const uint8_t *src, const uint8_t *dst,
	uint8_t addr_bytes, bool roce1, uint32_t qp, bool create)
{
	uint32_t at = hash_flow(c, tap, src, dst, addr_bytes, qp);

	for (; c->buckets[at] != 0; at = (at + 1) & (c->n_buckets - 1)) {
		struct flow *f = c->flows[c->buckets[at] - 1];
		if (is_flow(f, tap, src, dst, addr_bytes, roce1, qp))
			return f;
	}
	struct flow *f = create ? flow_new(c, tap, src, dst, addr_bytes, roce1, qp) : NULL;
	if (f != NULL)
		c->buckets[at] = f->index + 1;
	return f;
}

struct flow *flow_get(struct check *c, const struct sight *s)
{
	const struct pkt *p = s->p;
	const uint8_t *src = p->data + p->src_off, *dst = p->data + p->dst_off;
	bool roce1 = p->kind == PKT_ROCE1;

	if (c->last_flow != NULL &&
		is_flow(c->last_flow, s->tap, src, dst, p->addr_bytes, roce1, p->dest_qp))
		return c->last_flow;
	struct flow *f = flow_lookup(c, s->tap, src, dst, p->addr_bytes, roce1, p->dest_qp, true);
	if (f != NULL)
		c->last_flow = f;
	return f;
}

void flow_link(struct check *c, struct flow *a, struct flow *b, enum check_pairing how)
{
	struct flow *both[2] = {a, b};

	for (int i = 0; i < 2; i++) {
		if (both[i]->f.pairing >= CHECK_BY_PSN) {
			struct flow *old = c->flows[both[i]->f.peer];
			if (old != both[1 - i])
				old->f.pairing = CHECK_UNPAIRED;
		}
	}
	a->f.pairing = b->f.pairing = how;
	a->f.peer = b->index;
	b->f.peer = a->index;
	uint32_t mtu = a->f.mtu != 0 ? a->f.mtu : b->f.mtu;
	seq_mtu(a, mtu);
	seq_mtu(b, mtu);
}

// How well flow `q` fits as the requester of a response with `psn` on `f`; 0: not at all.
static unsigned fit(struct flow *q, const struct flow *f, uint32_t psn)
{
	if (!q->q.started || q->f.pairing >= CHECK_BY_PSN || q->f.transport != ROCE_RC ||
		psn_diff(psn, q->q.next) >= 0 + (int32_t)q->q.unsure_max ||
		psn_diff(psn, q->q.first) < 0)
		return 0;
	const struct sent *sent = seq_sent(q, psn);
	unsigned points = 1;
	if (psn_diff(psn, q->q.una) >= 0)
		points += POINTS_ACK_ASKED;
	if (sent != NULL && sent->ack_req)
		points += POINTS_ACK_ASKED;
	if (q->f.sport == f->f.sport)
		points += POINTS_SAME_SPORT;
	if (q->f.sport == roce_udp_sport(q->f.dest_qp, f->f.dest_qp))
		points += POINTS_SPORT_OF;
	return points;
}

static struct flow *find_requester(struct check *c, struct flow *f, uint32_t psn)
{
	uint32_t i = c->pairs[flow_hash_pair(c, f->f.tap, f->f.src, f->f.dst, f->f.addr_bytes)];
	struct flow *best = NULL;
	unsigned most = 0, n_best = 0, tried = 0;

	for (; i != 0 && tried < MAX_CANDIDATES; i = c->flows[i - 1]->pair_next, tried++) {
		struct flow *q = c->flows[i - 1];
		if (q->f.tap != f->f.tap || q->f.addr_bytes != f->f.addr_bytes ||
			q->f.roce1 != f->f.roce1 ||
			memcmp(q->f.src, f->f.dst, f->f.addr_bytes) != 0 ||
			memcmp(q->f.dst, f->f.src, f->f.addr_bytes) != 0)
			continue;
		unsigned points = fit(q, f, psn);
		if (points > most) {
			most = points;
			best = q;
			n_best = 1;
		} else if (points == most && points > 0) {
			n_best++;
		}
	}
	if (n_best > 1) {
		f->f.pairing = CHECK_AMBIGUOUS;
		return NULL;
	}
	return best;
}

struct flow *flow_requester(struct check *c, struct flow *f, const struct sight *s)
{
	if (f->f.pairing >= CHECK_BY_PSN)
		return c->flows[f->f.peer];
	struct flow *q = find_requester(c, f, s->p->psn);
	if (q != NULL)
		flow_link(c, f, q, CHECK_BY_PSN);
	return q;
}
