/* SPDX-License-Identifier: BSD-3-Clause */
// What a NIC port sends next, and how its frame comes to be. Each call sends at most one frame and
// asks for the next call if more is waiting; ports with nothing to send cost nothing.

#include "pcap/build.h"
#include "pipelines/nic_internal.h"

#define POOL_RETRY_PS (1 * SIM_US)

// The frame's headers up to the BTH from the QP's template, for `after` bytes behind the BTH (pad
// included) and the ICRC. Returns where the extension headers go.
static inline uint8_t *put_head(struct nic_qp *qp, struct frame *f, uint8_t opcode, unsigned pad,
	uint32_t psn_word, uint32_t after)
{
	uint8_t *data = frame_data(f);
	uint8_t *l3 = data + qp->l3_off;
	uint8_t *udp = data + qp->l4_off;
	uint8_t *bth = udp + UDP_HEADER_BYTES;
	uint16_t udp_bytes = (uint16_t)(UDP_HEADER_BYTES + BTH_BYTES + after + ICRC_BYTES);

	memcpy(data, qp->head, NIC_TEMPLATE_BYTES);
	if (likely(!(qp->flags & FRAME_F_IPV6))) {
		uint16_t total = __builtin_bswap16((uint16_t)(IPV4_HEADER_BYTES + udp_bytes));
		uint16_t id = __builtin_bswap16(qp->ip_id++);
		uint16_t sum = (uint16_t)~csum_fold((uint64_t)qp->ip_sum + total + id);
		memcpy(l3 + 2, &total, sizeof(total));
		memcpy(l3 + 4, &id, sizeof(id));
		memcpy(l3 + 10, &sum, sizeof(sum));
	} else {
		put_be16(l3 + 4, udp_bytes);
	}
	put_be16(udp + 4, udp_bytes);
	bth[0] = opcode;
	bth[1] = (uint8_t)(BTH_MIG | pad << 4);
	put_be32(bth + 8, psn_word);

	f->kind = FRAME_IP;
	f->flags = qp->flags;
	f->flow_hash = qp->flow_hash;
	f->dst = qp->dst;
	f->flow = qp->flow;
	f->tc = qp->tc;
	f->l3_off = qp->l3_off;
	f->l4_off = qp->l4_off;
	f->opcode = opcode;
	f->len = (uint16_t)(qp->l4_off + udp_bytes);
	return bth + BTH_BYTES;
}

static void send_request(struct nic *nic, unsigned port, struct nic_qp *qp, struct frame *f)
{
	struct node *n = &nic->node;
	struct rc_request r;

	rc_tx_next(&qp->req, n->now, &r);

	bool reth = r.first && qp->req.op == RC_OP_WRITE;
	unsigned pad = -r.payload & 3u;
	uint32_t after = (reth ? 16 : 0) + r.payload + pad;
	uint8_t *p = put_head(qp, f, r.opcode, pad, (uint32_t)r.ack_req << 31 | r.psn, after);
	if (reth)
		p = reth_put(p, qp->remote_addr + r.pos, qp->rkey, r.dma_len);
	f->head_len = (uint16_t)(p - frame_data(f));
	f->payload_len = r.payload;
	f->payload_pos = qp->payload_base + r.pos;

	nic->ctr.rdma_tx_packets++;
	nic->ctr.rdma_tx_bytes += r.payload;
	if (unlikely(r.again)) {
		qp->retransmitted++;
		nic->ctr.retransmitted_packets++;
	}
	if (unlikely(!qp->timer_armed) && qp->req.deadline != SIMTIME_NEVER) {
		qp->timer_armed = true;
		node_timer(n, qp->req.deadline, NIC_TIMER_ACK, (uint32_t)(qp - nic->qps));
	}
	if (unlikely(qp->pace_time != 0)) {
		// The schedule is kept however late the port was, but for no more than one packet.
		uint64_t t = qp->pace_time * r.payload + qp->pace_frac;
		qp->pace_frac = t & ((1u << BYTE_TIME_SHIFT) - 1);
		qp->pace_at = simtime_max(qp->pace_at + (simtime_t)(t >> BYTE_TIME_SHIFT), n->now);
	}
	node_send(n, port, f);
}

static void send_response(struct nic *nic, unsigned port, struct nic_qp *qp, struct frame *f)
{
	struct rc_ack a;

	rc_response(&qp->resp, &a);
	uint8_t *p = put_head(qp, f, ROCE_ACK, 0, a.psn, 4);
	p = aeth_put(p, a.syndrome, a.msn);
	f->head_len = (uint16_t)(p - frame_data(f));

	nic->ctr.rdma_tx_packets++;
	if (likely((a.syndrome & AETH_TYPE_MASK) == AETH_ACK))
		nic->ctr.acks_sent++;
	else
		nic->ctr.naks_sent++;
	node_send(&nic->node, port, f);
}

void nic_qp_wake(struct nic *nic, struct nic_qp *qp)
{
	if (qp->ready != NIC_IDLE || !rc_can_send(&qp->req))
		return;
	if (unlikely(qp->pace_at > nic->node.now)) {
		qp->ready = NIC_PACED;
		node_timer(&nic->node, qp->pace_at, NIC_TIMER_PACE, (uint32_t)(qp - nic->qps));
		return;
	}
	nic_fifo_push_ready(&nic->ports[qp->port], qp);
}

static struct nic_qp *pop_ready(struct nic_port *p, unsigned tc)
{
	struct nic_qp_fifo *q = &p->ready[tc];
	struct nic_qp *qp = q->head;

	q->head = qp->next_ready;
	if (q->head == NULL)
		p->ready_mask &= (uint8_t) ~(1u << tc);
	qp->ready = NIC_IDLE;
	return qp;
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

// The queue pair whose data is next, taken from its FIFO; NULL if there is none. A queue pair may
// have lost its reason to wait there: stopped, failed, or acknowledged beyond what it was to
// repeat.
static struct nic_qp *take_data(struct nic_port *p)
{
	uint8_t mask;

	while ((mask = p->ready_mask & (uint8_t)~p->pauses.paused) != 0) {
		struct nic_qp *qp = pop_ready(p, next_class(p, mask));
		if (likely(rc_can_send(&qp->req)))
			return qp;
	}
	return NULL;
}

static void wait_for_pool(struct nic *nic, unsigned port)
{
	nic->ctr.pool_waits++;
	if (nic->ports[port].pool_wait)
		return;
	nic->ports[port].pool_wait = true;
	node_timer(&nic->node, nic->node.now + POOL_RETRY_PS, NIC_TIMER_POOL, port);
}

void nic_depart(struct node *n, unsigned port)
{
	struct nic *nic = nic_of(n);
	struct nic_port *p = &nic->ports[port];
	uint8_t acks = p->ack_mask & (uint8_t)~p->pauses.paused;
	struct nic_qp *qp = NULL;

	if (unlikely(p->down || p->pool_wait))
		return;
	if (acks == 0 && likely(!p->pfc_due)) {
		qp = take_data(p);
		if (qp == NULL)
			return;
	}

	struct frame *f = node_new_frame(n, port);
	if (unlikely(f == NULL)) {
		if (qp != NULL)
			nic_fifo_push_ready(p, qp);
		wait_for_pool(nic, port);
		return;
	}
	if (qp != NULL) {
		send_request(nic, port, qp, f);
		nic_qp_wake(nic, qp);
	} else if (likely(!p->pfc_due)) {
		send_response(nic, port, pop_ack(p, 31u - (unsigned)__builtin_clz(acks)), f);
	} else {
		nic_pfc_send(nic, port, f);
	}
	if ((p->ack_mask | p->ready_mask) & (uint8_t)~p->pauses.paused)
		node_want_depart(n, port, n->now);
}
