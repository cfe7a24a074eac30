/* SPDX-License-Identifier: BSD-3-Clause */
// What a NIC does with an arriving frame. Frames of built-in NICs come with their offsets known and
// nothing in them to be verified; all others are parsed and their ICRC is checked.

#include "pcap/build.h"
#include "pcap/icrc.h"
#include "pipelines/nic_internal.h"
#include "pipelines/parsed.h"

#define FAST_FLAGS (FRAME_F_PARSED | FRAME_F_SYNTH | FRAME_F_ROCE)

static void received_early(
	struct nic *nic, struct nic_qp *qp, const struct rc_packet *p, int *result)
{
	if (qp->resp.keeps)
		*result = nic_recovery_early(nic, qp, p);
	if ((*result & RC_RX_RESULT) == RC_RX_GAP)
		nic->ctr.out_of_sequence++;
	else
		nic->ctr.duplicate_request++;
}

// Of a packet that was taken.
static inline void count_taken(struct nic *nic, uint8_t opcode, int result)
{
	if (result & RC_RX_MESSAGE && opcode >= ROCE_WRITE_FIRST && opcode <= ROCE_WRITE_ONLY_IMM)
		nic->ctr.rx_write_requests++;
}

// After a packet in order, those that were kept and whose turn has come. Returns what `result` of
// the first becomes.
static __attribute__((noinline)) int catch_up(struct nic *nic, struct nic_qp *qp, int result)
{
	struct sr_receiver *s = &qp->rec->rx;
	struct rc_accept accept;
	struct rc_packet p;

	if (s->n_kept == 0)
		return result;
	while (sr_next(s, &qp->resp, &p)) {
		int next = rc_rx_request(&qp->resp, nic->node.now, &p, &accept);
		if ((next & RC_RX_RESULT) == RC_RX_IN_ORDER)
			count_taken(nic, p.opcode, next);
		else
			nic->ctr.resp_invalid_request++;
		result |= next & RC_RX_RESPOND;
	}
	return sr_caught_up(s, &qp->resp, nic->node.now) ? result | RC_RX_RESPOND : result;
}

// A SEND or WRITE that was not expected.
static __attribute__((noinline)) int unexpected(struct nic *nic, struct nic_qp *qp, uint8_t opcode,
	uint32_t psn, bool ack_req, uint32_t payload)
{
	struct rc_packet p = {.opcode = opcode, .ack_req = ack_req, .psn = psn, .payload = payload};
	struct rc_accept accept;
	int result = rc_rx_request(&qp->resp, nic->node.now, &p, &accept);

	switch (result & RC_RX_RESULT) {
	case RC_RX_DUPLICATE:
		nic->ctr.duplicate_request++;
		break;
	case RC_RX_GAP:
		received_early(nic, qp, &p, &result);
		break;
	case RC_RX_INVALID:
		nic->ctr.resp_invalid_request++;
		break;
	}
	return result;
}

static void received_request(struct nic *nic, struct nic_qp *qp, uint8_t opcode, uint32_t psn,
	bool ack_req, uint32_t payload)
{
	int result;

	nic->ctr.rdma_rx_bytes += payload;
	if (likely(rc_is_straight(&qp->resp, opcode, psn))) {
		result = rc_rx_straight(&qp->resp, nic->node.now, opcode, psn, ack_req, payload);
		count_taken(nic, opcode, result);
		if (unlikely(qp->resp.keeps))
			result = catch_up(nic, qp, result);
	} else {
		result = unexpected(nic, qp, opcode, psn, ack_req, payload);
	}
	if (result & RC_RX_RESPOND && !qp->ack_queued)
		nic_fifo_push_ack(&nic->ports[qp->port], qp);
}

void nic_qp_answered(struct nic *nic, struct nic_qp *qp, int result)
{
	struct node *n = &nic->node;

	nic->ctr.implied_nak_seq_err += (result & RC_ACK_IMPLIED) != 0;
	if (result & RC_ACK_REWOUND)
		node_event(n, qp->port, EV_QP_RETRY, qp->flow, qp->req.retry_left);
	if (result & RC_ACK_RNR)
		node_timer(n, qp->req.rnr_until, NIC_TIMER_RNR, (uint32_t)(qp - nic->qps));
	if (result & RC_ACK_ERROR)
		nic_qp_failed(nic, qp);
	else if (result & RC_ACK_COMPLETED)
		nic_qp_done(nic, qp);
}

void nic_count_nak(struct nic *nic, uint8_t syndrome)
{
	if ((syndrome & AETH_TYPE_MASK) == AETH_RNR_NAK)
		nic->ctr.rnr_nak_retry_err++;
	else if (syndrome == AETH_NAK_PSN_SEQ)
		nic->ctr.packet_seq_err++;
	else if (syndrome == AETH_NAK_INVALID_REQ)
		nic->ctr.req_remote_invalid_request++;
	else if (syndrome == AETH_NAK_REM_ACCESS)
		nic->ctr.req_remote_access_errors++;
}

static inline void acknowledged(struct nic *nic, struct nic_qp *qp, uint8_t syndrome, int result)
{
	if (unlikely((syndrome & AETH_TYPE_MASK) != AETH_ACK)) {
		qp->naks++;
		nic_count_nak(nic, syndrome);
	}
	if (unlikely(result & ~RC_ACK_PROGRESS))
		nic_qp_answered(nic, qp, result);
	if (qp->ready == NIC_IDLE)
		nic_qp_wake(nic, qp);
}

static void received_ack(struct nic *nic, struct nic_qp *qp, const uint8_t *aeth, uint32_t psn)
{
	uint8_t syndrome = aeth[0];
	int result = rc_rx_ack(&qp->req, nic->node.now, psn, get_be32(aeth));

	acknowledged(nic, qp, syndrome, result);
}

static __attribute__((noinline)) void received_telling_ack(
	struct nic *nic, struct nic_qp *qp, const struct frame *f, const uint8_t *bth, uint32_t psn)
{
	uint64_t una = qp->req.una;
	int result = qp->rec != NULL
			     ? nic_recovery_ack(nic, qp, f, bth, psn)
			     : rc_rx_ack(&qp->req, nic->node.now, psn, get_be32(bth + BTH_BYTES));

	if (qp->cc != NULL && qp->cc->needs & CC_NEEDS_ACK && !qp->ended)
		nic_cc_acked(nic, qp, f, bth, una, result);
	acknowledged(nic, qp, bth[BTH_BYTES], result);
}

static bool gid_is(const uint8_t gid[16], bool ipv6, const uint8_t *ip)
{
	static const uint8_t mapped[12] = {[10] = 0xff, 0xff};

	return ipv6 ? memcmp(gid, ip, 16) == 0
		    : memcmp(gid, mapped, 12) == 0 && memcmp(gid + 12, ip, 4) == 0;
}

// Whether a packet with this IP header or GRH comes from where the queue pair's peer is.
static bool from_peer(const struct nic_qp *qp, const uint8_t *ip)
{
	bool v6 = ip[0] >> 4 == 6, grh = v6 && ip[6] == GRH_NEXT_BTH;

	if (grh || qp->roce1)
		return grh && qp->roce1 && gid_is(ip + 8, qp->ipv6, qp->peer_ip);
	return v6 == qp->ipv6 && memcmp(ip + (v6 ? 8 : 12), qp->peer_ip, v6 ? 16 : 4) == 0;
}

// What is known of a packet: that it is as a NIC of this fabric made it, that it is and carries
// telemetry, or nothing.
enum how { LOCAL, TELLING, FOREIGN };

// A RoCE packet for one of this port's addresses.
static inline __attribute__((always_inline)) void received(struct nic *nic, unsigned port,
	struct frame *f, const uint8_t *bth, uint8_t opcode, uint32_t payload, enum how how)
{
	struct node *n = &nic->node;
	uint64_t words = get_be64(bth + 4); // FECN.. 8, DestQP 24, AckReq.. 8, PSN 24
	uint32_t index = ((uint32_t)(words >> 32) & QPN_MASK) - nic->qpn_first;
	uint32_t psn = (uint32_t)words & PSN_MASK;

	if (unlikely(index >= nic->n_qps || nic->qps[index].port != port)) {
		if (nic->verbs == NULL || !verbs_received(nic, port, f, bth, opcode, payload))
			node_drop(n, port, f, DROP_NO_QP);
		return;
	}
	struct nic_qp *qp = &nic->qps[index];
	const uint8_t *ip = frame_data(f) + f->l3_off;

	if (how == FOREIGN && !from_peer(qp, ip)) {
		node_drop(n, port, f, DROP_NO_QP);
		return;
	}
	if (how == TELLING && qp->echo != NULL)
		nic_echo_take(qp, f);

	nic->ctr.rdma_rx_packets++;
	if (ip_ecn(ip) == ECN_CE) {
		nic->ctr.np_ecn_marked_roce_packets++;
		n->ports[port].ctr->ce_seen[f->tc]++;
		nic_cc_ce(nic, port, qp);
		if (qp->echo != NULL)
			qp->echo->ce = true;
	}
	if (rc_is_request(opcode) && rc_opcode_rules[opcode].plain && !qp->resp.checked) {
		received_request(nic, qp, opcode, psn, words >> 31 & 1, payload);
	} else if (opcode == ROCE_ACK) {
		if (likely(!qp->ack_tells))
			received_ack(nic, qp, bth + BTH_BYTES, psn);
		else
			received_telling_ack(nic, qp, f, bth, psn);
	} else if (opcode == ROCE_OP_CNP) {
		nic_cc_cnp(nic, qp);
	} else if (!nic_extra_received(nic, qp, bth, opcode, payload)) {
		node_drop(n, port, f, DROP_UNSUPPORTED);
		return;
	}
	node_deliver(n, port, f);
	nic_kick(nic, port);
}

static void received_control(struct nic *nic, unsigned port, struct frame *f, const struct pkt *p)
{
	struct port_counters *c = nic->node.ports[port].ctr;

	if (p->kind == PKT_PFC) {
		struct pfc pfc = pfc_parse(p);
		nic_pfc_received(nic, port, &pfc);
	} else {
		c->rx_global_pause++;
	}
	node_consume(&nic->node, port, f);
}

static bool is_ours(const struct nic_port_config *cfg, const struct pkt *p)
{
	const uint8_t *dst = p->data + p->dst_off;

	if (memcmp(p->data, cfg->mac, sizeof(cfg->mac)) != 0)
		return false;
	return p->ip_version == 4 ? cfg->ip4 != 0 && get_be32(dst) == cfg->ip4
				  : cfg->has_ip6 && memcmp(dst, cfg->ip6, 16) == 0;
}

// A frame from outside: nothing is known of it but its bytes.
static void foreign_ip(struct nic *nic, unsigned port, struct frame *f, const struct pkt *p)
{
	struct node *n = &nic->node;

	if (!is_ours(&nic->ports[port].cfg, p)) {
		node_drop(n, port, f, DROP_NOT_FOR_US);
	} else if (p->bth_off == 0) {
		node_drop(n, port, f, DROP_UNSUPPORTED);
	} else if (!(f->flags & FRAME_F_SYNTH) && !pkt_icrc_valid(p)) {
		nic->ctr.rx_icrc_encapsulated++;
		node_drop(n, port, f, DROP_BAD_ICRC);
	} else {
		f->l3_off = (uint8_t)p->l3_off;
		f->l4_off = (uint8_t)p->l4_off;
		received(nic, port, f, p->data + p->bth_off, p->opcode, p->payload_len, FOREIGN);
	}
}

// RoCE v1, of whoever: its GIDs must be this port's and the queue pair's peer's.
static void roce1(struct nic *nic, unsigned port, struct frame *f, const struct pkt *p)
{
	const struct nic_port_config *c = &nic->ports[port].cfg;
	const uint8_t *dgid = p->data + p->dst_off;
	uint8_t ip4[4];

	put_be32(ip4, c->ip4);
	if (memcmp(p->data, c->mac, sizeof(c->mac)) != 0 ||
		!(gid_is(dgid, false, ip4) || (c->has_ip6 && gid_is(dgid, true, c->ip6)))) {
		node_drop(&nic->node, port, f, DROP_NOT_FOR_US);
	} else if (!(f->flags & FRAME_F_SYNTH) && !pkt_icrc_valid(p)) {
		nic->ctr.rx_icrc_encapsulated++;
		node_drop(&nic->node, port, f, DROP_BAD_ICRC);
	} else {
		f->l3_off = (uint8_t)p->l3_off;
		f->l4_off = (uint8_t)(p->bth_off - UDP_HEADER_BYTES);
		received(nic, port, f, p->data + p->bth_off, p->opcode, p->payload_len, FOREIGN);
	}
}

static __attribute__((noinline)) void slow_path(struct nic *nic, unsigned port, struct frame *f)
{
	struct node *n = &nic->node;
	struct pkt p;
	enum pkt_error err = pkt_parse_head(frame_data(f), f->head_len, f->len, &p);

	if (err != PKT_OK) {
		node_drop(n, port, f, parse_drop_reason(err));
		return;
	}
	switch (p.kind) {
	case PKT_PFC:
	case PKT_PAUSE:
		received_control(nic, port, f, &p);
		break;
	case PKT_ARP:
		node_consume(n, port, f);
		break;
	case PKT_ROCE1:
		roce1(nic, port, f, &p);
		break;
	default:
		if (f->kind == FRAME_LOCAL)
			node_consume(n, port, f);
		else
			foreign_ip(nic, port, f, &p);
	}
}

static __attribute__((noinline)) void telling(struct nic *nic, unsigned port, struct frame *f)
{
	if (f->dst != nic->ports[port].cfg.endpoint)
		node_drop(&nic->node, port, f, DROP_NOT_FOR_US);
	else
		received(nic, port, f, frame_data(f) + f->l4_off + UDP_HEADER_BYTES, f->opcode,
			f->payload_len, TELLING);
}

void nic_take(struct nic *nic, unsigned port, struct frame *f)
{
	if (unlikely((f->flags & FAST_FLAGS) != FAST_FLAGS || f->kind != FRAME_IP)) {
		if ((f->flags & FAST_FLAGS) == FAST_FLAGS && f->kind == FRAME_INT)
			telling(nic, port, f);
		else
			slow_path(nic, port, f);
	} else if (unlikely(f->dst != nic->ports[port].cfg.endpoint)) {
		node_drop(&nic->node, port, f, DROP_NOT_FOR_US);
	} else {
		received(nic, port, f, frame_data(f) + f->l4_off + UDP_HEADER_BYTES, f->opcode,
			f->payload_len, LOCAL);
	}
}

void nic_arrive(struct node *n, unsigned port, struct frame *f)
{
	struct nic *nic = nic_of(n);

	if (unlikely(nic->ports[port].slow != NULL) && nic_slow_hold(nic, port, f))
		return;
	nic_take(nic, port, f);
}
