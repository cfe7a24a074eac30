/* SPDX-License-Identifier: BSD-3-Clause */
// What arrives for a NIC's applications: management datagrams, requests whose payload goes into
// memory that the transport has found permitted, and answers.

#include "pcap/build.h"
#include "pipelines/nic_verbs.h"

// Source or destination of a packet with this IP header, as a GID.
static void gid_of(const uint8_t *ip, bool source, uint8_t gid[GID_BYTES])
{
	if (ip[0] >> 4 == 4)
		gid_from_ipv4(gid, get_be32(ip + (source ? 12 : 16)));
	else
		memcpy(gid, ip + (source ? 8 : 24), GID_BYTES);
}

static void received_mad(struct verbs *v, const uint8_t *ip, const uint8_t *mad, uint32_t len)
{
	uint8_t src[GID_BYTES], dst[GID_BYTES];

	gid_of(ip, true, src);
	gid_of(ip, false, dst);
	cm_rx(&v->cm, v->nic->node.now, src, dst, mad, len);
}

// Whose number it is or was last; NULL: nobody's.
static struct verbs_qp *with_number(struct verbs *v, uint32_t qpn)
{
	struct verbs_qp *qp =
		qpn >= VERBS_QPN_FIRST ? v->qps[(qpn - VERBS_QPN_FIRST) % VERBS_QPS] : NULL;

	return qp != NULL && qp->qpn == qpn ? qp : NULL;
}

static struct verbs_qp *find(struct verbs *v, unsigned port, uint32_t qpn)
{
	struct verbs_qp *qp = with_number(v, qpn);

	return qp != NULL && qp->used && qp->connected && qp->port == port ? qp : NULL;
}

// Of a connection that is over: the last acknowledgements may still be on their way, and end in
// silence (IBTA 12.9.8.4, TimeWait).
static bool was_here(struct verbs *v, uint32_t qpn)
{
	const struct verbs_qp *qp = with_number(v, qpn);

	return qp != NULL && !qp->used;
}

static void tell_receive(
	struct verbs *v, struct verbs_qp *qp, const struct rc_accept *a, struct app_wc *wc)
{
	wc->wr_id = a->wr_id;
	wc->byte_len = a->byte_len;
	wc->status = a->wc_status;
	wc->recv = true;
	wc->has_imm = a->with_imm;
	wc->imm = a->with_imm ? a->imm : 0;
	if (a->wc_status != WC_SUCCESS)
		v->nic->ctr.resp_cqe_error++;
	app_wc(verbs_app_of(v, qp)->app, verbs_conn_of(qp), wc);
}

// The responder has failed: the whole queue pair is in error, and its receives are flushed.
static void failed(struct verbs *v, struct verbs_qp *qp)
{
	struct rc_recv r;

	rc_error(&qp->req, WC_WR_FLUSH_ERR);
	while (rc_flush_recv(&qp->resp, &r)) {
		v->nic->ctr.resp_cqe_error++;
		v->nic->ctr.resp_cqe_flush_error++;
	}
}

// On the emulated host's memory, in this host's byte order, as rxe does.
static void execute(struct verbs *v, struct verbs_qp *qp, const struct rc_accept *a)
{
	uint8_t *at = verbs_at(v, a->atomic.addr, RC_ATOMIC_BYTES);
	uint64_t original = 0, value;

	if (at == NULL) // the transport has checked it
		return;
	memcpy(&original, at, sizeof(original));
	value = a->atomic.cmp_swap ? a->atomic.swap_add : original + a->atomic.swap_add;
	if (!a->atomic.cmp_swap || original == a->atomic.compare)
		memcpy(at, &value, sizeof(value));
	rc_atomic_done(&qp->resp, original);
}

static void store(struct verbs *v, uint64_t addr, const uint8_t *bytes, uint32_t n)
{
	uint8_t *to = n != 0 ? verbs_at(v, addr, n) : NULL;

	if (to != NULL)
		memcpy(to, bytes, n);
}

static void request(
	struct verbs *v, struct verbs_qp *qp, const struct rc_packet *p, const uint8_t *payload)
{
	struct rc_accept a;
	int result = rc_rx_request(&qp->resp, v->nic->node.now, p, &a);

	nic_count_request(v->nic, p, result);
	v->nic->ctr.rdma_rx_bytes += p->payload;
	if (result & RC_RX_DATA)
		store(v, a.addr, payload, p->payload);
	if (result & RC_RX_ATOMIC)
		execute(v, qp, &a);
	if (qp->id != NULL && (result & RC_RX_RESULT) == RC_RX_IN_ORDER)
		cm_established(&v->cm, v->nic->node.now, qp->id);
	verbs_wake(v, qp);
	if (result & RC_RX_RECV_DONE)
		tell_receive(v, qp, &a, &(struct app_wc){.status = WC_SUCCESS});
	if (result & RC_RX_FAILED && qp->used)
		failed(v, qp);
}

void verbs_answered(struct verbs *v, struct verbs_qp *qp, int result)
{
	struct nic *nic = v->nic;

	nic->ctr.implied_nak_seq_err += (result & RC_ACK_IMPLIED) != 0;
	if (result & RC_ACK_RNR)
		node_timer(&nic->node, qp->req.rnr_until, NIC_TIMER_VERBS_RNR, qp->index);
	if (result & RC_ACK_ERROR) {
		nic->ctr.req_transport_retries_exceeded += qp->req.status == WC_RETRY_EXC_ERR;
		nic->ctr.req_rnr_retries_exceeded += qp->req.status == WC_RNR_RETRY_EXC_ERR;
		node_event(&nic->node, qp->port, EV_QP_ERROR, FRAME_NO_FLOW, qp->req.status);
	}
	verbs_arm_ack_timer(v, qp);
	verbs_wake(v, qp);
}

static void answer(struct verbs *v, struct verbs_qp *qp, const struct rc_packet *p,
	const uint8_t *bth, const uint8_t *payload)
{
	const uint8_t *ext = roce_opcodes[p->opcode].ext;
	uint32_t aeth = ext[ROCE_EXT_AETH] ? get_be32(bth + ext[ROCE_EXT_AETH]) : 0;
	struct rc_read_place place;
	uint64_t original;
	int result;

	if (p->opcode == ROCE_ACK) {
		result = rc_rx_ack(&qp->req, v->nic->node.now, p->psn, aeth);
		if ((aeth >> 24 & AETH_TYPE_MASK) != AETH_ACK) {
			verbs_app_of(v, qp)->naks++;
			nic_count_nak(v->nic, (uint8_t)(aeth >> 24));
		}
	} else {
		result = rc_rx_read(
			&qp->req, v->nic->node.now, p->opcode, p->psn, aeth, p->payload, &place);
		v->nic->ctr.rdma_rx_bytes += p->payload;
		if (result & RC_ACK_DATA && p->opcode == ROCE_ATOMIC_ACK) {
			original = get_be64(bth + ext[ROCE_EXT_ATOMIC_ACK]);
			store(v, place.wr->local + place.pos, (const uint8_t *)&original,
				sizeof(original));
		} else if (result & RC_ACK_DATA) {
			store(v, place.wr->local + place.pos, payload, p->payload);
		}
	}
	verbs_answered(v, qp, result);
}

static void datagram(struct verbs *v, struct verbs_qp *qp, const struct rc_packet *p,
	const uint8_t *ip, const uint8_t *deth, const uint8_t *payload)
{
	struct rc_accept a;
	int result = ud_rx(&qp->ud, v->nic->node.now, p, get_be32(deth), &a);
	struct app_wc wc = {.src_qpn = get_be32(deth + 4) & QPN_MASK};
	uint8_t grh[UD_GRH_BYTES];

	nic_count_request(v->nic, p, result);
	v->nic->ctr.rdma_rx_bytes += p->payload;
	if (result & RC_RX_DATA) {
		ud_put_grh(grh, ip);
		store(v, a.addr - UD_GRH_BYTES, grh, sizeof(grh));
		store(v, a.addr, payload, p->payload);
	}
	if (result & RC_RX_RECV_DONE) {
		gid_of(ip, true, wc.src_gid);
		tell_receive(v, qp, &a, &wc);
	}
}

// Whether the packet is from the queue pair's peer; a UD one has many.
static bool from_peer(const struct verbs_qp *qp, const uint8_t *ip)
{
	uint8_t src[GID_BYTES];

	gid_of(ip, true, src);
	return qp->transport == CM_UD || memcmp(src, qp->peer_gid, GID_BYTES) == 0;
}

static bool is_answer(uint8_t opcode)
{
	return opcode >= ROCE_READ_RESP_FIRST && opcode <= ROCE_ATOMIC_ACK;
}

// A packet for queue pair `qp`. False: it has no business there.
static bool received(struct verbs *v, struct verbs_qp *qp, const uint8_t *ip, const uint8_t *bth,
	uint8_t opcode, uint32_t payload_bytes)
{
	const uint8_t *payload = bth + roce_header_bytes(opcode);
	struct rc_packet p = nic_packet_of(bth, opcode, payload_bytes);

	if (!from_peer(qp, ip))
		return false;
	if (qp->transport == CM_UD) {
		if (!ud_is_request(opcode))
			return false;
		datagram(v, qp, &p, ip, bth + roce_opcodes[opcode].ext[ROCE_EXT_DETH], payload);
	} else if (rc_is_request(opcode)) {
		request(v, qp, &p, payload);
	} else if (is_answer(opcode)) {
		answer(v, qp, &p, bth, payload);
	} else {
		return false;
	}
	return true;
}

bool verbs_received(struct nic *nic, unsigned port, struct frame *f, const uint8_t *bth,
	uint8_t opcode, uint32_t payload)
{
	struct verbs *v = nic->verbs;
	struct node *n = &nic->node;
	const uint8_t *ip = frame_data(f) + f->l3_off;
	uint32_t dest = get_be32(bth + 4) & QPN_MASK;

	// Applications have bytes to read; RoCE v1 is the flows' only.
	if (f->flags & FRAME_F_SYNTH || f->kind == FRAME_ROCE1)
		return false;
	if (dest == GSI_QPN) {
		const uint8_t *deth = bth + BTH_BYTES;
		if (opcode != (ROCE_UD | ROCE_SEND_ONLY) || get_be32(deth) != GSI_QKEY)
			return false;
		received_mad(v, ip, bth + roce_header_bytes(opcode), payload);
	} else {
		struct verbs_qp *qp = find(v, port, dest);
		if (qp == NULL ? !was_here(v, dest) : !received(v, qp, ip, bth, opcode, payload))
			return false;
	}
	nic->ctr.rdma_rx_packets++;
	if (ip_ecn(ip) == ECN_CE) {
		nic->ctr.np_ecn_marked_roce_packets++;
		n->ports[port].ctr->ce_seen[f->tc]++;
	}
	node_deliver(n, port, f);
	verbs_settle(v);
	nic_kick(nic, port);
	return true;
}
