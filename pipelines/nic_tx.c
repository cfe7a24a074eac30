/* SPDX-License-Identifier: BSD-3-Clause */
// What a NIC port sends next, and how its frame comes to be. Each call sends at most one frame and
// asks for the next call if more is waiting; ports with nothing to send cost nothing.

#include "pcap/build.h"
#include "pipelines/nic_internal.h"

#define POOL_RETRY_PS (1 * SIM_US)

static inline void send_request(struct nic *nic, unsigned port, struct nic_qp *qp, struct frame *f)
{
	struct rc_request r;

	rc_tx_message(&qp->req, nic->node.now, &r);
	uint8_t *p = nic_put_shape(qp, &qp->shape[r.place], f, (uint32_t)r.ack_req << 31 | r.psn);
	if (r.place & RC_FIRST && r.wr->op == WR_WRITE)
		reth_put(p, r.wr->remote_addr + r.pos, r.wr->rkey, r.dma_len);
	f->payload_pos = qp->payload_base + r.pos;
	nic_request_sent(nic, qp, r.payload, r.again);
	if (unlikely(qp->paced)) {
		if (r.ack_req && !r.again)
			nic_probe_sent(qp, qp->req.nxt - 1, nic->node.now);
		nic_cc_pace(nic, qp, r.payload, f);
	}
	node_send(&nic->node, port, f);
}

static inline void send_response(struct nic *nic, unsigned port, struct nic_qp *qp, struct frame *f)
{
	struct rc_ack a;

	uint8_t *aeth;

	rc_tx_ack(&qp->resp, &a);
	nic->ctr.rdma_tx_packets++;
	if (likely((a.syndrome & AETH_TYPE_MASK) == AETH_ACK)) {
		aeth = nic_put_shape(qp, &qp->shape[NIC_SHAPE_ACK], f, a.psn);
		nic->ctr.acks_sent++;
	} else {
		aeth = nic_recovery_sack(qp, f, &a);
		nic->ctr.naks_sent++;
		nic->ctr.seq_naks_sent += a.syndrome == AETH_NAK_PSN_SEQ;
	}
	aeth_put(aeth, a.syndrome, a.msn);
	if (unlikely(qp->echo != NULL))
		nic_echo_put(qp, f, aeth - BTH_BYTES);
	node_send(&nic->node, port, f);
}

void nic_qp_wake(struct nic *nic, struct nic_qp *qp)
{
	if (qp->ready != NIC_IDLE || !nic_qp_can_send(qp))
		return;
	if (unlikely(qp->pace_at > nic->node.now)) {
		qp->ready = NIC_PACED;
		node_timer(&nic->node, qp->pace_at, NIC_TIMER_PACE, (uint32_t)(qp - nic->qps));
		return;
	}
	nic_fifo_push_ready(&nic->ports[qp->port], qp);
}

static void pop_ready(struct nic_port *p, struct nic_qp *qp)
{
	struct nic_qp_fifo *q = &p->ready[qp->tc];

	q->head = qp->next_ready;
	if (q->head == NULL)
		p->ready_mask &= (uint8_t) ~(1u << qp->tc);
	qp->ready = NIC_IDLE;
}

// After its turn the first queue pair of a class goes to the end, waits for its rate, or leaves.
static inline void next_turn(struct nic *nic, struct nic_port *p, struct nic_qp *qp)
{
	struct nic_qp_fifo *q = &p->ready[qp->tc];

	if (likely(nic_qp_can_send(qp) && !qp->paced)) {
		if (qp == q->tail)
			return;
		q->head = qp->next_ready;
		q->tail->next_ready = qp;
		qp->next_ready = NULL;
		q->tail = qp;
		return;
	}
	pop_ready(p, qp);
	nic_qp_wake(nic, qp);
}

static struct nic_qp *pop_ack(struct nic_port *p, unsigned tc)
{
	struct nic_qp_fifo *q = &p->acks[tc];
	struct nic_qp *qp = q->head;

	q->head = qp->next_ack;
	if (q->head == NULL)
		p->ack_mask &= (uint8_t) ~(1u << tc);
	qp->ack_queued = false;
	return qp;
}

// The class after the last one served, in a circle, of those in `mask` (not 0).
static unsigned next_class(struct nic_port *p, uint8_t mask)
{
	unsigned ahead = mask & (0xffu << p->next_tc);
	unsigned tc = (unsigned)__builtin_ctz(ahead ? ahead : mask);

	p->next_tc = (uint8_t)((tc + 1) % PRIO_COUNT);
	return tc;
}

// The queue pair whose data is next, the first of its class; NULL if there is none. A queue pair
// may have lost its reason to wait: stopped, failed, or acknowledged beyond what it was to repeat.
static inline struct nic_qp *next_data(struct nic_port *p)
{
	uint8_t mask;

	while ((mask = p->ready_mask & (uint8_t)~p->pauses.paused) != 0) {
		struct nic_qp *qp = p->ready[next_class(p, mask)].head;
		if (likely(nic_qp_can_send(qp)))
			return qp;
		pop_ready(p, qp);
	}
	return NULL;
}

void nic_wait_for_pool(struct nic *nic, unsigned port)
{
	nic->ctr.pool_waits++;
	if (nic->ports[port].pool_wait)
		return;
	nic->ports[port].pool_wait = true;
	node_timer(&nic->node, nic->node.now + POOL_RETRY_PS, NIC_TIMER_POOL, port);
}

// Whether a PFC frame or a CNP is due that may go.
static inline bool urgent(const struct nic *nic, const struct nic_port *p)
{
	if (likely(!(p->pfc_due | p->cnp_due)))
		return false;
	return p->pfc_due || !(p->pauses.paused >> nic->cfg.cnp_tc & 1);
}

void nic_depart(struct node *n, unsigned port)
{
	struct nic *nic = nic_of(n);
	struct nic_port *p = &nic->ports[port];
	uint8_t acks = p->ack_mask & (uint8_t)~p->pauses.paused;
	struct nic_qp *qp = NULL;
	bool first = urgent(nic, p);

	if (unlikely(p->down | p->pool_wait | p->verbs_due)) {
		if (p->down || p->pool_wait || (!first && verbs_depart(nic, port)))
			return;
	}
	if (acks == 0 && likely(!first)) {
		qp = next_data(p);
		if (qp == NULL) {
			if (unlikely(p->verbs_due)) // it was the flows' turn
				verbs_depart(nic, port);
			return;
		}
	}

	struct frame *f = node_new_frame(n, port);
	if (unlikely(f == NULL)) {
		nic_wait_for_pool(nic, port);
		return;
	}
	if (qp != NULL) {
		if (likely(qp->plain))
			send_request(nic, port, qp, f);
		else if (qp->answers)
			nic_extra_answer(nic, port, qp, f);
		else
			nic_extra_request(nic, port, qp, f);
		next_turn(nic, p, qp);
	} else if (likely(!first)) {
		send_response(nic, port, pop_ack(p, 31u - (unsigned)__builtin_clz(acks)), f);
	} else if (p->pfc_due) {
		nic_pfc_send(nic, port, f);
	} else {
		nic_cc_send_cnp(nic, port, f);
	}
	if ((p->ack_mask | p->ready_mask) & (uint8_t)~p->pauses.paused || (first && p->cnp_due) ||
		(unlikely(p->verbs_due) && verbs_can_send(nic, port)))
		node_want_depart(n, port, n->now);
}
