/* SPDX-License-Identifier: BSD-3-Clause */
// The counters of an endpoint that has none, or whose are out of reach: from the packets that pass.
//
// Responder. Of the requests that come in, each half keeps the PSN that is next. A request beyond
// it came after a gap (out_of_sequence); it stays next, since the endpoint drops what comes early.
// One before it is a duplicate. After a READ the next PSN is not known exactly, as its responses'
// number depends on the path MTU: any of those it may have is in order.
//
// Requester. A request before what was sent last begins a repetition (go_backs); unless a NAK asked
// for it, or answers to a READ were seen to be missing, the endpoint's timer did:
// local_ack_timeout_err. NAKs and READ responses name the endpoint's queue pair and requests the
// peer's, so this needs edge_qp.c's knowledge of which belong together; a NAK of an unknown one
// counts for all unknown ones of the same addresses.
//
// Answers speak for themselves: the codes of NAKs, sent or received.
//
// Simplified: UC and UD are counted as packets and messages only. ICRCs are not checked: the
// endpoint does. A READ asked for again from its middle, right after it was sent, passes for a new
// one.

#include "pipelines/edge_watch.h"

#include <stdlib.h>
#include <string.h>

#include "pcap/build.h"
#include "pcap/psn.h"
#include "pipelines/edge_priv.h"

#define SMALLEST_MTU 256u
#define FAR          (1 << 20) // further apart is another connection

// Beside a half: the requests that pass.
struct watched {
	uint32_t next_low, next_high; // PSN of the next new one: of these
	uint32_t cont_low, cont_high; // one that follows the last without a break: of these
	uint32_t answer;              // PSN of the next READ response of the message that has begun
	bool asks;                    // the above but `answer` are valid
	bool answers;                 // `answer` is valid
	uint8_t told;                 // enum told, since it last went back
};

enum told { TOLD_NOTHING, TOLD_NAK, TOLD_RNR };

struct edge_watch {
	struct edge_qp_table qps;
	struct watched of[EDGE_QP_SLOTS];
};

struct edge_watch *edge_watch_create(void)
{
	struct edge_watch *w = calloc(1, sizeof(*w));

	if (w != NULL)
		edge_qp_init(&w->qps);
	return w;
}

void edge_watch_destroy(struct edge_watch *w)
{
	free(w);
}

struct edge_qp_table *edge_watch_qps(struct edge_watch *w)
{
	return &w->qps;
}

static struct edge_qp *half_of(
	struct edge *e, unsigned port, const struct pkt *p, enum edge_qp_side side)
{
	struct edge_watch *w = e->port[port].watch;
	struct edge_qp_pair pair = edge_qp_pair_of(p, side);
	struct edge_qp *qp = edge_qp_get(&w->qps, side, &pair, p->dest_qp, e->node.now);

	if (qp != NULL && qp->fresh) {
		qp->fresh = false;
		w->of[qp->slot] = (struct watched){0};
		if (e->port[port].cc != NULL)
			edge_cc_forget(e, port, qp);
	}
	return qp;
}

// ---- requests --------------------------------------------------------------------------------

enum place { NEW, EARLY, AGAIN };

// The PSNs that may follow a request.
static void follow(const struct pkt *p, uint32_t *low, uint32_t *high)
{
	const uint8_t *reth = p->opcode == ROCE_READ_REQUEST ? pkt_ext(p, ROCE_EXT_RETH) : NULL;
	uint32_t bytes = reth != NULL ? get_be32(reth + 12) : 0;
	uint32_t most = bytes <= SMALLEST_MTU ? 1 : (bytes - 1) / SMALLEST_MTU + 1;

	*low = psn_add(p->psn, 1);
	*high = psn_add(p->psn, most < FAR ? most : FAR);
}

static bool within(uint32_t psn, uint32_t low, uint32_t high)
{
	return psn_diff(psn, low) >= 0 && psn_diff(psn, high) <= 0;
}

// `gaps`: a request beyond the next does not move it.
static enum place place_of(struct watched *w, const struct pkt *p, bool gaps)
{
	int32_t d = psn_diff(p->psn, w->next_low);

	if (!w->asks || d > FAR || d < -FAR) {
		*w = (struct watched){.asks = true};
		follow(p, &w->next_low, &w->next_high);
		return NEW;
	}
	if (d < 0)
		return AGAIN;
	if (gaps && psn_diff(p->psn, w->next_high) > 0)
		return EARLY;
	follow(p, &w->next_low, &w->next_high);
	return NEW;
}

static bool ends_message(uint8_t opcode)
{
	unsigned op = opcode & 0x1f;

	return roce_opcodes[opcode].payload && op != ROCE_SEND_FIRST && op != ROCE_SEND_MIDDLE &&
	       op != ROCE_WRITE_FIRST && op != ROCE_WRITE_MIDDLE;
}

static bool is_send(uint8_t opcode)
{
	unsigned op = opcode & 0x1f;

	return op <= ROCE_SEND_ONLY_IMM || op == ROCE_SEND_LAST_INV || op == ROCE_SEND_ONLY_INV;
}

static bool uses_receive(uint8_t opcode)
{
	return ends_message(opcode) && (is_send(opcode) || roce_opcodes[opcode].ext[ROCE_EXT_IMM]);
}

static void request_sent(struct edge *e, unsigned port, struct watched *w, const struct pkt *p)
{
	struct edge_counters *c = &e->port[port].ctr;
	bool follows = w->asks && within(p->psn, w->cont_low, w->cont_high);

	enum place place = place_of(w, p, false);

	if (place == NEW)
		c->rdma_sends += ends_message(p->opcode) && is_send(p->opcode);
	else if (!follows) {
		c->go_backs += w->told != TOLD_RNR;
		c->local_ack_timeout_err += w->told == TOLD_NOTHING;
		w->told = TOLD_NOTHING;
	}
	follow(p, &w->cont_low, &w->cont_high);
}

static void count_taken(struct edge_counters *c, uint8_t opcode)
{
	if (opcode == ROCE_READ_REQUEST)
		c->rx_read_requests++;
	else if (opcode == ROCE_CMP_SWAP || opcode == ROCE_FETCH_ADD)
		c->rx_atomic_requests++;
	else if (ends_message(opcode) && !is_send(opcode))
		c->rx_write_requests++;
}

static void request_arrives(struct edge *e, unsigned port, struct watched *w, const struct pkt *p)
{
	struct edge_counters *c = &e->port[port].ctr;

	switch (place_of(w, p, true)) {
	case NEW:
		count_taken(c, p->opcode);
		c->rdma_recvs += uses_receive(p->opcode);
		break;
	case EARLY:
		c->out_of_sequence++;
		break;
	case AGAIN:
		c->duplicate_request++;
		break;
	}
}

// ---- answers ---------------------------------------------------------------------------------

// The requester behind half `qp`, of what the endpoint gets, was told to go back.
static void tell(struct edge_watch *w, const struct edge_qp *qp, enum told what)
{
	struct edge_qp *asker = edge_qp_other(&w->qps, qp);

	if (asker != NULL) {
		w->of[asker->slot].told = (uint8_t)what;
		return;
	}
	for (uint32_t i = 0; i < w->qps.n_live; i++) {
		const struct edge_qp *q = &w->qps.qps[w->qps.live[i]];
		if (q->side == EDGE_QP_OUT && q->other == EDGE_QP_UNKNOWN &&
			memcmp(&q->pair, &qp->pair, sizeof(q->pair)) == 0)
			w->of[q->slot].told = (uint8_t)what;
	}
}

static void answer_sent(struct edge_counters *c, uint8_t syndrome)
{
	c->out_of_buffer += (syndrome & AETH_TYPE_MASK) == AETH_RNR_NAK;
	c->seq_naks_sent += syndrome == AETH_NAK_PSN_SEQ;
	c->resp_remote_access_errors += syndrome == AETH_NAK_REM_ACCESS;
}

static void answer_arrives(
	struct edge *e, unsigned port, const struct edge_qp *qp, uint8_t syndrome)
{
	struct edge_counters *c = &e->port[port].ctr;
	bool rnr = (syndrome & AETH_TYPE_MASK) == AETH_RNR_NAK;

	c->rnr_nak_retry_err += rnr;
	c->packet_seq_err += syndrome == AETH_NAK_PSN_SEQ;
	c->req_remote_invalid_request += syndrome == AETH_NAK_INVALID_REQ;
	c->req_remote_access_errors += syndrome == AETH_NAK_REM_ACCESS;
	if (rnr || syndrome == AETH_NAK_PSN_SEQ)
		tell(e->port[port].watch, qp, rnr ? TOLD_RNR : TOLD_NAK);
}

// A hole among the responses of a READ: what the endpoint takes for a NAK (IBTA 9.7.3.2).
static void response_arrives(struct edge *e, unsigned port, const struct edge_qp *qp,
	struct watched *w, const struct pkt *p)
{
	bool begins = p->opcode == ROCE_READ_RESP_FIRST || p->opcode == ROCE_READ_RESP_ONLY;
	bool ends = p->opcode == ROCE_READ_RESP_LAST || p->opcode == ROCE_READ_RESP_ONLY;

	if (w->answers && psn_diff(p->psn, w->answer) > 0) {
		e->port[port].ctr.implied_nak_seq_err++;
		tell(e->port[port].watch, qp, TOLD_NAK);
		w->answers = false; // what is behind the hole tells of it again and again
	} else if (begins || (w->answers && p->psn == w->answer)) {
		w->answers = !ends;
		w->answer = psn_add(p->psn, 1);
	}
}

// ---- packets ---------------------------------------------------------------------------------

struct edge_qp *edge_watch_sent(struct edge *e, unsigned port, const struct pkt *p)
{
	struct edge_port *ep = &e->port[port];
	enum edge_qp_kind kind = edge_qp_kind_of(p->opcode);

	ep->ctr.rdma_tx_packets++;
	ep->ctr.rdma_tx_bytes += p->payload_len;
	if ((p->opcode & 0xe0) != ROCE_RC)
		ep->ctr.rdma_sends += ends_message(p->opcode) && is_send(p->opcode);
	struct edge_qp *qp = kind != EDGE_QP_NONE ? half_of(e, port, p, EDGE_QP_OUT) : NULL;
	if (qp == NULL)
		return NULL;
	ep->ctr.edge_qps_paired += edge_qp_note(&ep->watch->qps, qp, p, e->node.now);
	if ((p->opcode & 0xe0) != ROCE_RC)
		return qp;
	if (kind == EDGE_QP_REQUEST) {
		request_sent(e, port, &ep->watch->of[qp->slot], p);
	} else if (p->opcode == ROCE_ACK) {
		const uint8_t *aeth = pkt_ext(p, ROCE_EXT_AETH);
		answer_sent(&ep->ctr, aeth[0]);
	}
	return qp;
}

struct edge_qp *edge_watch_arrives(struct edge *e, unsigned port, const struct pkt *p)
{
	struct edge_port *ep = &e->port[port];
	enum edge_qp_kind kind = edge_qp_kind_of(p->opcode);

	ep->ctr.rdma_rx_packets++;
	ep->ctr.rdma_rx_bytes += p->payload_len;
	ep->ctr.edge_ce_seen += p->ecn == ECN_CE;
	if ((p->opcode & 0xe0) != ROCE_RC)
		ep->ctr.rdma_recvs += uses_receive(p->opcode);
	struct edge_qp *qp = kind != EDGE_QP_NONE ? half_of(e, port, p, EDGE_QP_IN) : NULL;
	if (qp == NULL)
		return NULL;
	ep->ctr.edge_qps_paired += edge_qp_note(&ep->watch->qps, qp, p, e->node.now);
	if ((p->opcode & 0xe0) != ROCE_RC)
		return qp;
	struct watched *w = &ep->watch->of[qp->slot];
	if (kind == EDGE_QP_REQUEST) {
		request_arrives(e, port, w, p);
	} else if (kind == EDGE_QP_RESPONSE) {
		response_arrives(e, port, qp, w, p);
	} else if (p->opcode == ROCE_ACK) {
		const uint8_t *aeth = pkt_ext(p, ROCE_EXT_AETH);
		answer_arrives(e, port, qp, aeth[0]);
	}
	return qp;
}
