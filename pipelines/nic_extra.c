/* SPDX-License-Identifier: BSD-3-Clause */
// What the NIC's queue pairs do beyond WRITE and SEND over RC with a receive always there: READs
// and atomics at both ends, immediate data, UC, UD, and receives that can run out. None of their
// frames take the fast paths of nic_tx.c and nic_rx.c but for what is common to all.
//
// The data of a READ is that of the flow's pattern, as if the requester had written it: the address
// in the request says which bytes. Atomics work on one word per queue pair. Answers to both wait
// their turn among the data of their port and class; an ACK or NAK that becomes due meanwhile goes
// after them.
//
// Receives: an application posts recv_depth of them, and each that completes again, at once or at
// most recv_rate per second. How many have been posted by now is computed when a packet asks.

#include <errno.h>
#include <stdlib.h>

#include "pcap/build.h"
#include "pipelines/nic_internal.h"

// ---- making ----------------------------------------------------------------------------------

bool nic_needs_extra(const struct nic *nic, const struct nic_flow_config *c, bool sends)
{
	return c->transport != QP_RC || wr_is_rd_atomic(c->op) ||
	       (!sends && nic->cfg.recv_depth != 0 && wr_needs_recv(c->op));
}

static uint32_t power_of_two(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p *= 2;
	return p;
}

static void post_recv(struct nic_extra *x)
{
	rc_post_recv(&x->rq, &(struct rc_recv){.length = RC_MESSAGE_MAX});
}

static int make_receives(struct nic *nic, struct nic_extra *x)
{
	uint32_t entries = power_of_two(nic->cfg.recv_depth);

	x->ring = calloc(entries, sizeof(*x->ring));
	if (x->ring == NULL)
		return -ENOMEM;
	x->recv_depth = nic->cfg.recv_depth;
	x->recv_interval = nic->cfg.recv_rate != 0 ? SIM_S / nic->cfg.recv_rate : 0;
	rc_rq_init(&x->rq, x->ring, entries, false);
	for (uint32_t i = 0; i < x->recv_depth; i++)
		post_recv(x);
	return 0;
}

int nic_extra_make(struct nic *nic, struct nic_qp *qp, const struct nic_flow_config *c)
{
	struct nic_extra *x = calloc(1, sizeof(*x));

	qp->extra = x;
	if (x == NULL)
		return -ENOMEM;
	x->message_bytes = c->message_bytes;
	if (wr_is_rd_atomic(c->op)) {
		x->resources = calloc(nic->cfg.max_rd_atomic, sizeof(*x->resources));
		if (x->resources == NULL)
			return -ENOMEM;
	}
	if (nic->cfg.recv_depth != 0 && wr_needs_recv(c->op))
		return make_receives(nic, x);
	return 0;
}

void nic_extra_free(struct nic_qp *qp)
{
	if (qp->extra == NULL)
		return;
	free(qp->extra->ring);
	free(qp->extra->resources);
	free(qp->extra);
	qp->extra = NULL;
}

// ---- sending ---------------------------------------------------------------------------------

int nic_extra_post(struct nic_qp *qp, const struct rc_wr *wr)
{
	switch ((enum qp_transport)qp->transport) {
	case QP_RC:
		return rc_post_send(&qp->req, wr);
	case QP_UC:
		return uc_post_send(&qp->req, wr);
	case QP_UD:
		return ud_post_send(&qp->req, wr);
	}
	return -EINVAL;
}

// The packet to send now. Returns RC_ACK_* bits: UC and UD complete what they send.
static int next_packet(struct nic_qp *qp, simtime_t now, struct rc_request *out)
{
	if (qp->transport == QP_UC)
		return uc_tx_next(&qp->req, now, out);
	if (qp->transport == QP_UD)
		return ud_tx_next(&qp->req, now, out);
	rc_tx_next(&qp->req, now, out);
	return 0;
}

uint8_t *nic_put_extensions(uint8_t *p, const struct rc_request *r, uint32_t qkey, uint32_t qpn)
{
	const uint8_t *ext = roce_opcodes[r->opcode].ext;

	if (ext[ROCE_EXT_DETH])
		p = deth_put(p, qkey, qpn);
	if (ext[ROCE_EXT_RETH])
		p = reth_put(p, r->remote_addr, r->wr->rkey, r->dma_len);
	if (ext[ROCE_EXT_ATOMIC])
		p = atomiceth_put(p, r->remote_addr, r->wr->rkey, r->wr->swap_add, r->wr->compare);
	if (ext[ROCE_EXT_IMM] || ext[ROCE_EXT_IETH])
		p = immdt_put(p, r->wr->imm);
	return p;
}

void nic_extra_request(struct nic *nic, unsigned port, struct nic_qp *qp, struct frame *f)
{
	struct rc_request r;
	int result = next_packet(qp, nic->node.now, &r);
	uint8_t *p = nic_put_shape(qp, &qp->shape[r.place], f, (uint32_t)r.ack_req << 31 | r.psn);

	nic_put_extensions(p, &r, NIC_QKEY, qp->qpn);
	f->payload_pos = qp->payload_base + r.pos;
	nic_request_sent(nic, qp, r.payload, r.again);
	if (qp->ack_tells && r.ack_req && !r.again)
		nic_probe_sent(qp, qp->req.nxt - 1, nic->node.now);
	if (qp->paced) // a READ's data counts when it is asked for
		nic_cc_pace(nic, qp, r.payload ? r.payload : r.dma_len, f);
	node_send(&nic->node, port, f);
	if (result & RC_ACK_COMPLETED)
		nic_qp_done(nic, qp);
}

void nic_extra_answer(struct nic *nic, unsigned port, struct nic_qp *qp, struct frame *f)
{
	struct nic_extra *x = qp->extra;
	struct rc_response a;

	rc_tx_response(&qp->resp, &a);
	uint8_t *p = nic_put_shape(qp, &qp->shape[a.place], f, a.psn);
	if (roce_opcodes[a.opcode].ext[ROCE_EXT_AETH])
		p = aeth_put(p, a.syndrome, a.msn);
	if (a.opcode == ROCE_ATOMIC_ACK)
		atomic_ack_put(p, a.original);
	else
		f->payload_pos = qp->payload_base + (a.addr - NIC_REMOTE_ADDR(qp->qpn));

	nic->ctr.rdma_tx_packets++;
	nic->ctr.rdma_tx_bytes += a.payload;
	if (x->answers++ == 0)
		x->next_answer = a.psn;
	if (psn_diff(a.psn, x->next_answer) < 0) {
		x->answers_again++;
		nic->ctr.retransmitted_packets++;
	} else {
		x->next_answer = psn_add(a.psn, 1);
	}
	if (rc_resp_pending(&qp->resp) != RC_RESP_DATA) {
		qp->answers = false;
		if (qp->resp.ack_due && !qp->ack_queued)
			nic_fifo_push_ack(&nic->ports[qp->port], qp);
	}
	if (qp->paced)
		nic_cc_pace(nic, qp, a.payload, f);
	node_send(&nic->node, port, f);
}

// ---- receiving -------------------------------------------------------------------------------

struct rc_packet nic_packet_of(const uint8_t *bth, uint8_t opcode, uint32_t payload)
{
	const uint8_t *ext = roce_opcodes[opcode].ext;
	struct rc_packet p = {
		.opcode = opcode,
		.ack_req = bth[8] & BTH_ACK_REQ,
		.solicited = bth[1] & BTH_SE,
		.psn = get_be32(bth + 8) & PSN_MASK,
		.payload = payload,
	};

	if (ext[ROCE_EXT_RETH]) {
		const uint8_t *reth = bth + ext[ROCE_EXT_RETH];
		p.remote_addr = get_be64(reth);
		p.rkey = get_be32(reth + 8);
		p.dma_len = get_be32(reth + 12);
	}
	if (ext[ROCE_EXT_ATOMIC]) {
		const uint8_t *atomic = bth + ext[ROCE_EXT_ATOMIC];
		p.remote_addr = get_be64(atomic);
		p.rkey = get_be32(atomic + 8);
		p.swap_add = get_be64(atomic + 12);
		p.compare = get_be64(atomic + 20);
	}
	if (ext[ROCE_EXT_IMM] || ext[ROCE_EXT_IETH])
		p.imm = get_be32(
			bth + (ext[ROCE_EXT_IMM] ? ext[ROCE_EXT_IMM] : ext[ROCE_EXT_IETH]));
	return p;
}

// Posts the receives whose time has come.
static void give_receives(struct nic_extra *x, simtime_t now)
{
	while (rc_rq_count(&x->rq) < x->recv_depth && now - x->recv_at >= x->recv_interval) {
		post_recv(x);
		x->recv_at += x->recv_interval;
	}
}

static void receive_done(struct nic_extra *x, simtime_t now)
{
	if (x->recv_interval == 0)
		post_recv(x);
	else if (rc_rq_count(&x->rq) + 1 == x->recv_depth)
		x->recv_at = now; // all were posted until now
}

// A fatal error: the receive it was about, and all others, complete with an error.
static void flush_receives(struct nic *nic, struct nic_qp *qp, int result)
{
	struct rc_recv recv;

	nic->ctr.resp_cqe_error += (result & RC_RX_RECV_DONE) != 0;
	while (rc_flush_recv(&qp->resp, &recv)) {
		nic->ctr.resp_cqe_error++;
		nic->ctr.resp_cqe_flush_error++;
	}
}

static void execute(struct nic_qp *qp, const struct rc_accept *a)
{
	uint64_t original = qp->extra->word;

	if (!a->atomic.cmp_swap)
		qp->extra->word += a->atomic.swap_add;
	else if (original == a->atomic.compare)
		qp->extra->word = a->atomic.swap_add;
	rc_atomic_done(&qp->resp, original);
}

void nic_count_request(struct nic *nic, const struct rc_packet *p, int result)
{
	struct nic_counters *c = &nic->ctr;

	switch (result & RC_RX_RESULT) {
	case RC_RX_IN_ORDER:
		c->rx_read_requests += (result & RC_RX_READ) != 0;
		c->rx_atomic_requests += (result & RC_RX_ATOMIC) != 0;
		if (result & RC_RX_MESSAGE && rc_opcode_rules[p->opcode & 0x1f].plain)
			c->rx_write_requests += (p->opcode & 0x1f) >= ROCE_WRITE_FIRST &&
						(p->opcode & 0x1f) <= ROCE_WRITE_ONLY_IMM;
		break;
	case RC_RX_DUPLICATE:
		c->duplicate_request++;
		break;
	case RC_RX_GAP:
		c->out_of_sequence++;
		break;
	case RC_RX_INVALID:
		c->resp_invalid_request++;
		break;
	case RC_RX_ACCESS:
		c->resp_remote_access_errors++;
		break;
	case RC_RX_LENGTH:
		c->resp_local_length_error++;
		break;
	case RC_RX_NOT_READY:
		c->out_of_buffer++;
		break;
	}
}

// One packet whose turn may have come. Returns as rc_rx_request().
static int take(struct nic *nic, struct nic_qp *qp, const struct rc_packet *p)
{
	struct nic_extra *x = qp->extra;
	struct rc_accept a;

	if (x != NULL && x->ring != NULL)
		give_receives(x, nic->node.now);
	int result = rc_rx_request(&qp->resp, nic->node.now, p, &a);
	if ((result & RC_RX_RESULT) == RC_RX_GAP && qp->resp.keeps)
		result = nic_recovery_early(nic, qp, p);
	nic_count_request(nic, p, result);
	if (result & RC_RX_ATOMIC)
		execute(qp, &a);
	if (result & RC_RX_FAILED)
		flush_receives(nic, qp, result);
	else if (result & RC_RX_RECV_DONE)
		receive_done(x, nic->node.now);
	return result;
}

static void request(struct nic *nic, struct nic_qp *qp, const struct rc_packet *p)
{
	int result = take(nic, qp, p);

	nic->ctr.rdma_rx_bytes += p->payload;
	if ((result & RC_RX_RESULT) == RC_RX_IN_ORDER && qp->resp.keeps &&
		qp->rec->rx.n_kept != 0) {
		struct rc_packet kept;
		while (sr_next(&qp->rec->rx, &qp->resp, &kept))
			result |= take(nic, qp, &kept) & RC_RX_RESPOND;
		if (sr_caught_up(&qp->rec->rx, &qp->resp, nic->node.now))
			result |= RC_RX_RESPOND;
	}
	if (rc_resp_pending(&qp->resp) == RC_RESP_DATA) {
		qp->answers = true;
		nic_qp_wake(nic, qp);
	} else if (result & RC_RX_RESPOND && !qp->ack_queued) {
		nic_fifo_push_ack(&nic->ports[qp->port], qp);
	}
}

static void delivered(struct nic *nic, struct nic_extra *x, uint32_t bytes, bool message)
{
	x->bytes += bytes;
	x->messages += message;
	x->last_at = nic->node.now;
}

static void answer(
	struct nic *nic, struct nic_qp *qp, const uint8_t *bth, uint8_t opcode, uint32_t payload)
{
	uint8_t at = roce_opcodes[opcode].ext[ROCE_EXT_AETH];
	struct rc_read_place place;
	int result = rc_rx_read(&qp->req, nic->node.now, opcode, get_be32(bth + 8) & PSN_MASK,
		at ? get_be32(bth + at) : 0, payload, &place);

	nic->ctr.rdma_rx_bytes += payload;
	if (result & RC_ACK_DATA)
		delivered(nic, qp->extra, place.length, place.last);
	nic_qp_answered(nic, qp, result);
	nic_qp_wake(nic, qp);
	nic_arm_ack_timer(nic, qp);
}

static void unacknowledged(
	struct nic *nic, struct nic_qp *qp, const uint8_t *bth, const struct rc_packet *p)
{
	struct nic_extra *x = qp->extra;
	struct rc_accept a;
	int result;

	if (x->ring != NULL)
		give_receives(x, nic->node.now);
	if (qp->transport == QP_UC)
		result = uc_rx_request(&x->uc, nic->node.now, p, &a);
	else
		result = ud_rx(&x->ud, nic->node.now, p, get_be32(bth + BTH_BYTES), &a);
	nic_count_request(nic, p, result);
	nic->ctr.rdma_rx_bytes += p->payload;
	if (result & RC_RX_RECV_DONE)
		receive_done(x, nic->node.now);
	if (result & RC_RX_MESSAGE)
		delivered(nic, x, x->message_bytes, true);
}

bool nic_extra_received(
	struct nic *nic, struct nic_qp *qp, const uint8_t *bth, uint8_t opcode, uint32_t payload)
{
	struct rc_packet p = nic_packet_of(bth, opcode, payload);

	switch ((enum qp_transport)qp->transport) {
	case QP_RC:
		if (rc_is_request(opcode))
			request(nic, qp, &p);
		else if (opcode >= ROCE_READ_RESP_FIRST && opcode <= ROCE_ATOMIC_ACK &&
			 opcode != ROCE_ACK && qp->extra != NULL)
			answer(nic, qp, bth, opcode, payload);
		else
			return false;
		return true;
	case QP_UC:
		if (!uc_is_request(opcode))
			return false;
		break;
	case QP_UD:
		if (!ud_is_request(opcode))
			return false;
		break;
	}
	unacknowledged(nic, qp, bth, &p);
	return true;
}
