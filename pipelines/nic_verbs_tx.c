/* SPDX-License-Identifier: BSD-3-Clause */
// What a NIC's applications send: frames with all their bytes, ICRC included, made when their turn
// comes. A port alternates between flows and applications that have something to send; among the
// latter, management datagrams go first, then queue pairs in turn, each its responses before its
// requests. A paused class waits.

#include "pcap/build.h"
#include "pcap/icrc.h"
#include "pipelines/nic_verbs.h"

// One packet to be made.
struct packet {
	const uint8_t *dst_gid;
	const uint8_t *ext; // extension headers,
	const uint8_t *payload;
	uint32_t dest_qpn;
	uint32_t psn;
	uint32_t ext_bytes;
	uint32_t payload_bytes;
	uint16_t sport;
	uint8_t opcode;
	uint8_t bth_flags;
	uint8_t dscp, tc;
	bool ack_req;
};

static uint8_t *put_network(const struct nic *nic, unsigned port, const struct packet *k,
	uint8_t *p, uint16_t udp_bytes)
{
	const struct nic_port_config *c = &nic->ports[port].cfg;
	uint8_t tos = (uint8_t)(k->dscp << 2 | (nic->cfg.ecn_capable ? ECN_ECT0 : ECN_NOT_ECT));

	if (gid_is_ipv4(k->dst_gid))
		p = ipv4_put(p, tos, (uint16_t)(IPV4_HEADER_BYTES + udp_bytes), 0, NIC_DEFAULT_TTL,
			IP_PROTO_UDP, c->ip4, get_be32(k->dst_gid + 12));
	else
		p = ipv6_put(
			p, tos, 0, udp_bytes, IP_PROTO_UDP, NIC_DEFAULT_TTL, c->ip6, k->dst_gid);
	return udp_put(p, k->sport, ROCE_UDP_PORT, udp_bytes);
}

// False when there was no buffer for it: the port waits for one.
static bool send(struct verbs *v, unsigned port, const struct packet *k)
{
	struct nic *nic = v->nic;
	struct node *n = &nic->node;
	const struct nic_port_config *c = &nic->ports[port].cfg;
	struct frame *f = n->pool.full != NULL ? frame_alloc(n->pool.full) : NULL;
	unsigned pad = -k->payload_bytes & 3u;

	if (f == NULL) {
		n->ports[port].ctr->drops[DROP_NO_MBUF]++;
		nic_wait_for_pool(nic, port);
		return false;
	}
	f->data_off = RTE_PKTMBUF_HEADROOM;
	uint8_t *head = frame_data(f);
	uint8_t *l3 = eth_put(head, c->next_hop_mac, c->mac,
		gid_is_ipv4(k->dst_gid) ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6);
	uint8_t *bth = put_network(nic, port, k, l3,
		(uint16_t)(UDP_HEADER_BYTES + BTH_BYTES + k->ext_bytes + k->payload_bytes + pad +
			   ICRC_BYTES));
	uint8_t *p = bth_put(bth, k->opcode, k->bth_flags, pad, k->dest_qpn, k->ack_req, k->psn);
	memcpy(p, k->ext, k->ext_bytes);
	p += k->ext_bytes;
	if (k->payload_bytes != 0)
		memcpy(p, k->payload, k->payload_bytes);
	p += k->payload_bytes;
	memset(p, 0, pad);
	p += pad;
	icrc_put(p, icrc_compute(head, (unsigned)(l3 - head), (unsigned)(bth - head),
			    (unsigned)(p - head)));
	f->len = f->head_len = (uint16_t)(p - head + ICRC_BYTES);
	f->kind = FRAME_IP;
	f->tc = k->tc;
	frame_pad(f);
	node_adopt(n, f);
	nic->ctr.rdma_tx_packets++;
	nic->ctr.rdma_tx_bytes += k->payload_bytes;
	node_send(n, port, f);
	return true;
}

// ---- queue pairs in turn ---------------------------------------------------------------------

static bool may_send(const struct verbs_qp *qp)
{
	return qp->used && qp->connected &&
	       (rc_can_send(&qp->req) ||
		       (qp->transport != CM_UD && rc_resp_pending(&qp->resp) != RC_RESP_NONE));
}

void verbs_wake(struct verbs *v, struct verbs_qp *qp)
{
	struct verbs_port *p = &v->ports[qp->port];

	if (qp->queued || !may_send(qp))
		return;
	qp->queued = true;
	qp->next = NULL;
	if (p->head == NULL)
		p->head = qp;
	else
		p->tail->next = qp;
	p->tail = qp;
	v->nic->ports[qp->port].verbs_due = true;
}

// Takes the queue pair behind `prev` (NULL: the first) out of its port's queue.
static void unlink_qp(struct verbs_port *p, struct verbs_qp *prev, struct verbs_qp *qp)
{
	if (prev == NULL)
		p->head = qp->next;
	else
		prev->next = qp->next;
	if (p->tail == qp)
		p->tail = prev;
	qp->queued = false;
}

static bool paused(const struct verbs *v, unsigned port, unsigned app)
{
	return v->nic->ports[port].pauses.paused >> v->apps[app].cfg.tc & 1;
}

// The first queue pair that may send, taken out of the queue; those that have no reason to be there
// leave it too. NULL: none.
static struct verbs_qp *next_qp(struct verbs *v, unsigned port)
{
	struct verbs_port *p = &v->ports[port];
	struct verbs_qp *prev = NULL, *qp = p->head;

	while (qp != NULL) {
		struct verbs_qp *next = qp->next;
		if (!may_send(qp)) {
			unlink_qp(p, prev, qp);
		} else if (!paused(v, port, qp->index / APP_CONNECTIONS)) {
			unlink_qp(p, prev, qp);
			return qp;
		} else {
			prev = qp;
		}
		qp = next;
	}
	return NULL;
}

// The oldest management datagram, if this port may send it.
static const struct cm_out *next_mad(const struct verbs *v, unsigned port)
{
	const struct cm_out *o = &v->mads[v->mad_head % VERBS_MADS];

	if (v->mad_head == v->mad_tail || verbs_port_of(v->nic, o->src_gid) != (int)port ||
		paused(v, port, 0))
		return NULL;
	return o;
}

bool verbs_can_send(const struct nic *nic, unsigned port)
{
	const struct verbs *v = nic->verbs;

	if (next_mad(v, port) != NULL)
		return true;
	for (const struct verbs_qp *qp = v->ports[port].head; qp != NULL; qp = qp->next)
		if (may_send(qp) && !paused(v, port, qp->index / APP_CONNECTIONS))
			return true;
	return false;
}

// ---- packets ---------------------------------------------------------------------------------

// A UD SEND from queue pair 1 to queue pair 1 (IBTA 13.5.2); its class is the first application's.
static bool send_mad(struct verbs *v, unsigned port, const struct cm_out *o)
{
	const struct nic_app_config *a = &v->apps[0].cfg;
	uint8_t deth[8];

	deth_put(deth, GSI_QKEY, GSI_QPN);
	bool sent = send(v, port,
		&(struct packet){.dst_gid = o->dst_gid,
			.ext = deth,
			.ext_bytes = sizeof(deth),
			.payload = o->mad,
			.payload_bytes = MAD_BYTES,
			.dest_qpn = GSI_QPN,
			.psn = v->gsi_psn,
			.sport = roce_udp_sport(GSI_QPN, GSI_QPN),
			.opcode = ROCE_UD | ROCE_SEND_ONLY,
			.dscp = a->dscp,
			.tc = a->tc});
	if (sent) {
		v->gsi_psn = psn_add(v->gsi_psn, 1);
		v->mad_head++;
	}
	return sent;
}

static struct packet packet_to(struct verbs *v, const struct verbs_qp *qp, const uint8_t *ext)
{
	const struct nic_app_config *a = &verbs_app_of(v, qp)->cfg;

	return (struct packet){.dst_gid = qp->peer_gid,
		.ext = ext,
		.dest_qpn = qp->peer_qpn,
		.sport = qp->sport,
		.bth_flags = BTH_MIG,
		.dscp = a->dscp,
		.tc = a->tc};
}

// A response is made once: when there is no buffer for it, it is lost as on a wire, and the peer
// asks again.
static void send_response(struct verbs *v, struct verbs_qp *qp)
{
	uint8_t ext[16], *p = ext;
	struct packet k = packet_to(v, qp, ext);
	struct rc_response a;

	rc_tx_response(&qp->resp, &a);
	if (roce_opcodes[a.opcode].ext[ROCE_EXT_AETH])
		p = aeth_put(p, a.syndrome, a.msn);
	if (a.opcode == ROCE_ATOMIC_ACK)
		p = atomic_ack_put(p, a.original);
	k.ext_bytes = (uint32_t)(p - ext);
	k.opcode = a.opcode;
	k.psn = a.psn;
	if (a.opcode != ROCE_ACK && a.opcode != ROCE_ATOMIC_ACK) {
		k.payload = verbs_at(v, a.addr, a.payload); // permitted when it was asked for
		k.payload_bytes = k.payload != NULL ? a.payload : 0;
	} else if ((a.syndrome & AETH_TYPE_MASK) == AETH_ACK) {
		v->nic->ctr.acks_sent++;
	} else {
		v->nic->ctr.naks_sent++;
		v->nic->ctr.seq_naks_sent += a.syndrome == AETH_NAK_PSN_SEQ;
	}
	send(v, qp->port, &k);
}

// A request of a queue pair. UD completes what it sends.
static void send_request(struct verbs *v, struct verbs_qp *qp)
{
	uint8_t ext[64];
	struct packet k = packet_to(v, qp, ext);
	bool ud = qp->transport == CM_UD;
	uint32_t qkey = 0;
	struct rc_request r;

	if (ud) {
		ud_tx_next(&qp->req, v->nic->node.now, &r);
		const struct app_dest *d = &qp->dest[(const struct rc_wqe *)r.wr - qp->sq];
		k.dst_gid = d->gid;
		k.dest_qpn = d->qpn;
		k.sport = roce_udp_sport(qp->qpn, d->qpn);
		qkey = d->qkey;
	} else {
		rc_tx_next(&qp->req, v->nic->node.now, &r);
	}
	k.ext_bytes = (uint32_t)(nic_put_extensions(ext, &r, qkey, qp->qpn) - ext);
	k.opcode = r.opcode;
	k.psn = r.psn;
	k.ack_req = r.ack_req;
	k.bth_flags |= r.solicited ? BTH_SE : 0;
	k.payload = verbs_at(v, r.wr->local + r.pos, r.payload); // checked when posted
	k.payload_bytes = r.payload;
	if (r.again) {
		verbs_app_of(v, qp)->retransmitted++;
		v->nic->ctr.retransmitted_packets++;
	}
	send(v, qp->port, &k); // for want of a buffer: lost as on a wire
	if (!ud)
		verbs_arm_ack_timer(v, qp);
}

bool verbs_depart(struct nic *nic, unsigned port)
{
	struct verbs *v = nic->verbs;
	struct verbs_port *p = &v->ports[port];
	struct nic_port *np = &nic->ports[port];
	const struct cm_out *mad = next_mad(v, port);

	if (p->gave && nic_flows_due(np)) {
		p->gave = false;
		return false;
	}
	p->gave = false;
	struct verbs_qp *qp = mad == NULL ? next_qp(v, port) : NULL;
	if (mad == NULL && qp == NULL) {
		np->verbs_due = p->head != NULL || v->mad_head != v->mad_tail;
		return false;
	}
	p->gave = true;
	if (mad != NULL)
		send_mad(v, port, mad);
	else if (qp->transport != CM_UD && rc_resp_pending(&qp->resp) != RC_RESP_NONE)
		send_response(v, qp);
	else
		send_request(v, qp);
	if (qp != NULL)
		verbs_wake(v, qp);
	if (!np->pool_wait && (verbs_can_send(nic, port) || nic_flows_due(np)))
		node_want_depart(&nic->node, port, nic->node.now);
	if (qp != NULL && qp->transport == CM_UD)
		verbs_settle(v);
	return true;
}
