/* SPDX-License-Identifier: BSD-3-Clause */
// Which queue pairs an endpoint has, and which destination QPs are the two ends of one connection.
//
// A CNP for the endpoint names the endpoint's own queue pair L; the packets to be slowed down name
// the peer's, X. And a packet with CE that arrives names L, while the CNP that answers it must go
// to X. No packet of a connection names both. But answers repeat the PSN of what they answer (IBTA
// 9.7.5): an answer to L with PSN P belongs to that half X, of the same addresses in the other
// direction, whose requests include P.
//
// So each half that sends requests keeps the PSNs una..top-1 that may still be answered: top
// follows its requests (a READ takes as many PSNs as it has responses; with the path MTU unknown,
// as with the smallest), una the answers. An answer to an unknown L is held against all of them:
//
//	one half fits                     they belong together
//	several, one of the same UDP      that one: Linux gives both ends of a connection the same
//	source port                       source port (rdma_get_udp_sport())
//	several otherwise                 not known; first PSNs are random, so another answer may
// tell
//
// A connection that is used in one direction only is learnt by its ACKs. One half of a connection
// that nobody answers (UC) stays alone.
//
// It is undone when queue pairs are set up anew: a request far from its half's PSNs starts it
// again, so does an answer far from those of the other half; and a half whose last fitting answer
// is EDGE_QP_IDLE old may be claimed by another.
//
// Simplified: QPNs in the connection manager's messages are not read. Wrong pairs are possible when
// two unpaired connections of the same two addresses use the same PSNs at the same time and one is
// closed before it was answered; the next answer undoes them.
//
// Bounds: sets of EDGE_QP_WAYS by hash. A half that was quiet for EDGE_QP_IDLE gives way when its
// place is needed. A search costs one look at each half in use; searches are spaced, on average, so
// that they take a small part of the time however many halves there are.

#include "pipelines/edge_qp.h"

#include <string.h>

#include "emu/core/rng.h"
#include "pcap/build.h"
#include "pcap/psn.h"

#define PSN_SPAN        (1u << 16) // most PSNs that may still be answered
#define PSN_FAR         (1u << 20) // further apart is another connection
#define SMALLEST_MTU    256u
#define SEARCH_PER_HALF (100 * SIM_NS)
#define SEARCH_BURST    (100 * SIM_US)

static bool near(uint32_t a, uint32_t b)
{
	int32_t d = psn_diff(a, b);

	return d < (int32_t)PSN_FAR && d > -(int32_t)PSN_FAR;
}

void edge_qp_init(struct edge_qp_table *t)
{
	memset(t, 0, sizeof(*t));
	for (uint32_t i = 0; i < EDGE_QP_SLOTS; i++)
		t->qps[i].slot = (uint16_t)i;
}

enum edge_qp_kind edge_qp_kind_of(uint8_t opcode)
{
	unsigned op = opcode & 0x1f;

	if (roce_opcodes[opcode].name == NULL)
		return EDGE_QP_NONE;
	switch (opcode & 0xe0) {
	case ROCE_UC:
		return EDGE_QP_REQUEST;
	case ROCE_RC:
		if (op == ROCE_ACK || op == ROCE_ATOMIC_ACK)
			return EDGE_QP_ACK;
		return op >= ROCE_READ_RESP_FIRST && op <= ROCE_READ_RESP_ONLY ? EDGE_QP_RESPONSE
									       : EDGE_QP_REQUEST;
	default:
		return EDGE_QP_NONE;
	}
}

struct edge_qp_pair edge_qp_pair_of(const struct pkt *p, enum edge_qp_side side)
{
	struct edge_qp_pair pair = {0};
	const uint8_t *src = p->data + p->src_off, *dst = p->data + p->dst_off;

	memcpy(pair.peer, side == EDGE_QP_OUT ? dst : src, p->addr_bytes);
	memcpy(pair.own, side == EDGE_QP_OUT ? src : dst, p->addr_bytes);
	return pair;
}

static struct edge_qp *set_of(struct edge_qp_table *t, enum edge_qp_side side,
	const struct edge_qp_pair *pair, uint32_t qpn)
{
	uint64_t w[4], h = (uint64_t)side << 32 | qpn;

	memcpy(w, pair, sizeof(w));
	for (unsigned i = 0; i < 4; i++)
		h = mix64(h ^ w[i]);
	return &t->qps[h % EDGE_QP_SETS * EDGE_QP_WAYS];
}

static bool is(const struct edge_qp *qp, enum edge_qp_side side, const struct edge_qp_pair *pair,
	uint32_t qpn)
{
	return qp->used && qp->qpn == qpn && qp->side == side &&
	       memcmp(&qp->pair, pair, sizeof(*pair)) == 0;
}

struct edge_qp *edge_qp_find(struct edge_qp_table *t, enum edge_qp_side side,
	const struct edge_qp_pair *pair, uint32_t qpn)
{
	struct edge_qp *set = set_of(t, side, pair, qpn);

	for (unsigned i = 0; i < EDGE_QP_WAYS; i++)
		if (is(&set[i], side, pair, qpn))
			return &set[i];
	return NULL;
}

// One to make anew: never used, else the one that was quiet longest.
static struct edge_qp *spare(struct edge_qp *set, simtime_t now)
{
	struct edge_qp *best = NULL;

	for (unsigned i = 0; i < EDGE_QP_WAYS; i++) {
		if (!set[i].used)
			return &set[i];
		if (!set[i].busy && now - set[i].seen > EDGE_QP_IDLE &&
			(best == NULL || set[i].seen < best->seen))
			best = &set[i];
	}
	return best;
}

static enum edge_qp_side opposite(enum edge_qp_side side)
{
	return side == EDGE_QP_OUT ? EDGE_QP_IN : EDGE_QP_OUT;
}

struct edge_qp *edge_qp_other(struct edge_qp_table *t, const struct edge_qp *qp)
{
	if (qp->other == EDGE_QP_UNKNOWN)
		return NULL;
	return edge_qp_find(t, opposite(qp->side), &qp->pair, qp->other);
}

static void part(struct edge_qp_table *t, struct edge_qp *qp)
{
	struct edge_qp *other = edge_qp_other(t, qp);

	if (other != NULL && other->other == qp->qpn)
		other->other = EDGE_QP_UNKNOWN;
	qp->other = EDGE_QP_UNKNOWN;
}

struct edge_qp *edge_qp_get(struct edge_qp_table *t, enum edge_qp_side side,
	const struct edge_qp_pair *pair, uint32_t qpn, simtime_t now)
{
	struct edge_qp *qp = edge_qp_find(t, side, pair, qpn);

	if (qp == NULL) {
		qp = spare(set_of(t, side, pair, qpn), now);
		if (qp == NULL)
			return NULL;
		if (qp->used)
			part(t, qp);
		else
			t->live[t->n_live++] = qp->slot;
		*qp = (struct edge_qp){.pair = *pair,
			.qpn = qpn,
			.other = EDGE_QP_UNKNOWN,
			.slot = qp->slot,
			.side = (uint8_t)side,
			.used = true,
			.fresh = true};
	}
	qp->seen = now;
	return qp;
}

// ---- requests --------------------------------------------------------------------------------

// PSNs that a request takes.
static uint32_t psns_of(const struct pkt *p)
{
	const uint8_t *reth = p->opcode == ROCE_READ_REQUEST ? pkt_ext(p, ROCE_EXT_RETH) : NULL;
	uint32_t bytes = reth != NULL ? get_be32(reth + 12) : 0;

	if (bytes <= SMALLEST_MTU)
		return 1;
	return bytes >= PSN_SPAN * SMALLEST_MTU ? PSN_SPAN
						: (bytes + SMALLEST_MTU - 1) / SMALLEST_MTU;
}

static void note_request(struct edge_qp_table *t, struct edge_qp *qp, const struct pkt *p)
{
	uint32_t end = (p->psn + psns_of(p)) & PSN_MASK;

	qp->sport = p->sport;
	if (!qp->asks || !near(p->psn, qp->top)) {
		part(t, qp);
		qp->asks = true;
		qp->una = p->psn;
		qp->top = end;
		return;
	}
	if (psn_diff(end, qp->top) > 0)
		qp->top = end;
	if (psn_diff(qp->top, qp->una) > (int32_t)PSN_SPAN)
		qp->una = (qp->top - PSN_SPAN) & PSN_MASK;
}

// ---- answers ---------------------------------------------------------------------------------

// Whether an answer to `to` with this PSN may be one to `asker`.
static bool fits(const struct edge_qp *asker, const struct edge_qp *to, uint32_t psn, simtime_t now)
{
	return asker->asks && asker->side != to->side &&
	       (asker->other == EDGE_QP_UNKNOWN || now - asker->agreed > EDGE_QP_IDLE) &&
	       psn_diff(psn, asker->una) >= 0 && psn_diff(psn, asker->top) < 0 &&
	       memcmp(&asker->pair, &to->pair, sizeof(to->pair)) == 0;
}

static struct edge_qp *search(
	struct edge_qp_table *t, const struct edge_qp *to, const struct pkt *p, simtime_t now)
{
	struct edge_qp *any = NULL, *same_port = NULL;
	unsigned n = 0, n_same = 0;

	if (now < t->search_at)
		return NULL;
	t->search_at = simtime_max(t->search_at, now - SEARCH_BURST) + t->n_live * SEARCH_PER_HALF;
	for (uint32_t i = 0; i < t->n_live; i++) {
		struct edge_qp *q = &t->qps[t->live[i]];

		if (!fits(q, to, p->psn, now))
			continue;
		any = q;
		n++;
		if (q->sport == p->sport) {
			same_port = q;
			n_same++;
		}
	}
	return n == 1 ? any : n_same == 1 ? same_port : NULL;
}

static bool note_answer(
	struct edge_qp_table *t, struct edge_qp *to, const struct pkt *p, simtime_t now)
{
	struct edge_qp *asker = edge_qp_other(t, to);
	const uint8_t *aeth = pkt_ext(p, ROCE_EXT_AETH);
	bool learnt = false;

	if (asker != NULL && (!asker->asks || asker->other != to->qpn || near(p->psn, asker->top)))
		goto known;
	if (asker != NULL)
		part(t, to);
	asker = search(t, to, p, now);
	if (asker == NULL)
		return false;
	part(t, asker);
	part(t, to);
known:
	learnt = to->other != asker->qpn || asker->other != to->qpn;
	to->other = asker->qpn;
	asker->other = to->qpn;
	asker->agreed = now;
	// All before it are answered; so is it, unless it is what is asked for again.
	bool nak = aeth != NULL && (aeth[0] & AETH_TYPE_MASK) != AETH_ACK;
	uint32_t una = (p->psn + !nak) & PSN_MASK;
	if (psn_diff(una, asker->una) > 0 && psn_diff(una, asker->top) <= 0)
		asker->una = una;
	return learnt;
}

bool edge_qp_note(struct edge_qp_table *t, struct edge_qp *qp, const struct pkt *p, simtime_t now)
{
	switch (edge_qp_kind_of(p->opcode)) {
	case EDGE_QP_REQUEST:
		note_request(t, qp, p);
		return false;
	case EDGE_QP_RESPONSE:
	case EDGE_QP_ACK:
		return note_answer(t, qp, p, now);
	case EDGE_QP_NONE:
		break;
	}
	return false;
}
