/* SPDX-License-Identifier: BSD-3-Clause */
// Making queue pairs: the two ends of a flow's, their transport's state, and the shapes of their
// frames.

#include <errno.h>
#include <stdlib.h>

#include "pcap/build.h"
#include "pcap/codec.h"
#include "pipelines/nic_internal.h"

int nic_reserve_qps(struct nic *nic, unsigned more)
{
	if (nic->n_qps + more <= nic->cap_qps)
		return 0;

	uint32_t cap = nic->n_qps + more > 2 * nic->cap_qps ? nic->n_qps + more : 2 * nic->cap_qps;
	struct nic_qp *qps = aligned_alloc(alignof(struct nic_qp), cap * sizeof(*qps));
	if (qps == NULL)
		return -ENOMEM;
	if (nic->n_qps != 0)
		memcpy(qps, nic->qps, nic->n_qps * sizeof(*qps));
	free(nic->qps);
	nic->qps = qps;
	nic->cap_qps = cap;
	return 0;
}

// One end of a queue pair as the other sees it.
struct qp_end {
	struct nic *nic;
	const struct nic_port_config *port;
	struct nic_qp *qp;
	uint32_t qpn;
	uint32_t psn;
};

// ---- frames ----------------------------------------------------------------------------------

// The way of a queue pair's frames: everything about them that the flow decides.
struct qp_way {
	const struct nic_flow_config *cfg;
	const struct nic_port_config *s, *d;
	uint32_t dest_qpn;
	uint16_t sport;
	uint8_t tos;
};

void nic_port_gid(const struct nic_port_config *p, bool ipv6, uint8_t gid[GID_BYTES])
{
	if (ipv6)
		memcpy(gid, p->ip6, GID_BYTES);
	else
		gid_from_ipv4(gid, p->ip4);
}

// Writes what is between Ethernet and BTH, `bytes` behind it included in its lengths.
static uint8_t *put_network(uint8_t *p, const struct qp_way *w, uint16_t bytes, struct frame *f)
{
	const struct nic_flow_config *c = w->cfg;
	uint8_t ttl = c->ttl ? c->ttl : NIC_DEFAULT_TTL;
	uint16_t udp_bytes = (uint16_t)(UDP_HEADER_BYTES + bytes);
	uint8_t s[GID_BYTES], d[GID_BYTES];

	if (c->roce1) {
		nic_port_gid(w->s, c->ipv6, s);
		nic_port_gid(w->d, c->ipv6, d);
		f->kind = FRAME_ROCE1;
		f->flow_hash = flow_hash_v6(s, d, 0, 0, 0);
		p = ipv6_put(p, 0, 0, bytes, GRH_NEXT_BTH, ttl, s, d);
		f->l4_off -= UDP_HEADER_BYTES; // as if there was one
		return p;
	}
	if (c->ipv6) {
		f->flow_hash =
			flow_hash_v6(w->s->ip6, w->d->ip6, w->sport, ROCE_UDP_PORT, IP_PROTO_UDP);
		p = ipv6_put(p, w->tos, 0, udp_bytes, IP_PROTO_UDP, ttl, w->s->ip6, w->d->ip6);
	} else {
		f->flow_hash =
			flow_hash_v4(w->s->ip4, w->d->ip4, w->sport, ROCE_UDP_PORT, IP_PROTO_UDP);
		p = ipv4_put(p, w->tos, (uint16_t)(IPV4_HEADER_BYTES + udp_bytes), 0, ttl,
			IP_PROTO_UDP, w->s->ip4, w->d->ip4);
	}
	return udp_put(p, w->sport, ROCE_UDP_PORT, udp_bytes);
}

// One shape of the frames of a queue pair: its extension headers are those of the opcode and `more`
// bytes. Returns the offset of the BTH's last word.
static uint8_t make_shape(struct nic_shape *shape, const struct qp_way *w, uint8_t opcode,
	unsigned more, uint16_t payload, enum frame_kind kind)
{
	const struct nic_flow_config *c = w->cfg;
	uint8_t *head = shape->head, *p;
	unsigned pad = -payload & 3u, ext = roce_header_bytes(opcode) - BTH_BYTES + more;
	uint16_t bytes = (uint16_t)(BTH_BYTES + ext + payload + pad + ICRC_BYTES);
	uint16_t type = c->roce1 ? ETHERTYPE_ROCE1 : c->ipv6 ? ETHERTYPE_IPV6 : ETHERTYPE_IPV4;
	struct frame f = {.kind = (uint8_t)kind,
		.opcode = opcode,
		.payload_len = payload,
		.dst = w->d->endpoint,
		.flow = c->flow,
		.tc = c->tc};

	p = eth_put(head, c->roce1 ? w->d->mac : w->s->next_hop_mac, w->s->mac,
		c->pcp >= 0 ? ETHERTYPE_VLAN : type);
	if (c->pcp >= 0)
		p = vlan_put(p, (uint16_t)(c->pcp << 13), type);
	f.l3_off = (uint8_t)(p - head);
	f.l4_off =
		(uint8_t)(f.l3_off + (c->ipv6 || c->roce1 ? IPV6_HEADER_BYTES : IPV4_HEADER_BYTES));
	p = put_network(p, w, bytes, &f);
	f.len = (uint16_t)(p - head + bytes);
	if (frame_has_tail(&f))
		f.len += FRAME_TAIL_BYTES;
	p = bth_put(p, opcode, BTH_MIG, pad, w->dest_qpn, false, 0);
	f.head_len = (uint16_t)(p - head + ext);
	f.flags = FRAME_F_PARSED | FRAME_F_SYNTH | FRAME_F_ROCE | FRAME_F_HEAD;
	f.flags |= c->ipv6 || c->roce1 ? FRAME_F_IPV6 : 0;
	f.flags |= c->pcp >= 0 ? FRAME_F_TAGGED : 0;
	memcpy(shape->frame, (uint8_t *)&f + NIC_FRAME_OFFSET, NIC_FRAME_BYTES);
	return (uint8_t)(p - head - 4);
}

static uint8_t request_opcode(const struct nic_flow_config *c, enum rc_place place)
{
	static const uint8_t transport[] = {
		[QP_RC] = ROCE_RC, [QP_UC] = ROCE_UC, [QP_UD] = ROCE_UD};

	return transport[c->transport] | rc_opcode(c->op, place);
}

static uint8_t answer_opcode(const struct nic_flow_config *c, enum rc_place place)
{
	static const uint8_t read[4] = {
		[RC_FIRST] = ROCE_READ_RESP_FIRST,
		[RC_MIDDLE] = ROCE_READ_RESP_MIDDLE,
		[RC_LAST] = ROCE_READ_RESP_LAST,
		[RC_ONLY] = ROCE_READ_RESP_ONLY,
	};

	return c->op == WR_READ ? read[place] : ROCE_ATOMIC_ACK;
}

// `sends`: of requests; else, if the flow's operation has them, of answers. `full`: bytes of a
// packet with all the payload it can have.
// `feedback`: what the sender of data must be told, enum cc_needs.
static void make_shapes(
	struct nic_qp *qp, const struct qp_way *w, bool sends, uint16_t full, unsigned feedback)
{
	enum frame_kind forth = feedback & CC_NEEDS_INT ? FRAME_INT : FRAME_IP;
	enum frame_kind back = feedback & CC_NEEDS_INT ? FRAME_INT_ECHO : FRAME_IP;
	const struct nic_flow_config *c = w->cfg;
	bool rd_atomic = wr_is_rd_atomic(c->op), data = !rd_atomic || (!sends && c->op == WR_READ);
	uint16_t last = (uint16_t)((c->message_bytes - 1) % full + 1);

	for (enum rc_place place = RC_MIDDLE; place <= RC_ONLY; place++) {
		uint8_t opcode =
			sends || !rd_atomic ? request_opcode(c, place) : answer_opcode(c, place);
		uint16_t payload = place & RC_LAST ? last : full;
		make_shape(&qp->shape[place], w, opcode, 0, data ? payload : 0, forth);
	}
	qp->psn_off = make_shape(&qp->shape[NIC_SHAPE_ACK], w, ROCE_ACK, 0, 0, back);
	if (qp->rec != NULL)
		make_shape(&qp->rec->sack, w, ROCE_ACK, ROCE_SACK_BYTES, 0, back);
}

// ---- the two ends ----------------------------------------------------------------------------

static void init_requester(struct nic_qp *qp, const struct qp_end *from, struct rc_wqe *sq)
{
	const struct nic_config *nc = &from->nic->cfg;
	struct rc_config rc = {
		.payload = nc->payload,
		.window = nc->window,
		.ack_every = nc->ack_every,
		.timeout = rc_ack_timeout(nc->timeout),
		.retry_cnt = nc->retry_cnt,
		.rnr_retry = nc->rnr_retry,
		.max_rd_atomic = nc->max_rd_atomic,
		.adaptive = nc->adaptive,
		.psn = from->psn,
	};

	if (qp->transport == QP_RC)
		rc_requester_init(&qp->req, &rc, sq, 1);
	else
		uc_requester_init(&qp->req, nc->payload, from->psn, sq, 1);
}

static void init_responder(
	struct nic_qp *qp, const struct qp_end *from, const struct qp_end *to, uint16_t payload)
{
	const struct nic_config *nc = &from->nic->cfg;
	struct nic_extra *x = qp->extra;
	struct rc_responder_config resp = {
		.psn = to->psn,
		.ack_every = nc->ack_every,
		.payload = payload,
		.min_rnr_timer = nc->min_rnr_timer,
		.rq = x != NULL && x->ring != NULL ? &x->rq : NULL,
		.resources = x != NULL ? x->resources : NULL,
		.max_dest_rd_atomic = x != NULL && x->resources != NULL ? nc->max_rd_atomic : 0,
	};

	rc_responder_init(&qp->resp, &resp);
	if (qp->transport == QP_RC)
		return;
	qp->resp.checked = true; // what comes is not for it
	x->ud = (struct ud_receiver){.qkey = NIC_QKEY, .rq = resp.rq};
	uc_responder_init(&x->uc, &resp);
}

// Its CNP goes the way of its answers, in a class of its own, and cannot be marked.
static void make_cnp(const struct nic *nic, struct nic_np *np, const struct qp_way *to)
{
	struct nic_flow_config cfg = *to->cfg;
	struct qp_way way = *to;

	cfg.tc = nic->cfg.cnp_tc;
	if (cfg.pcp >= 0)
		cfg.pcp = nic->cfg.np.cnp_802p_prio;
	way.cfg = &cfg;
	way.tos = (uint8_t)(nic->cfg.np.cnp_dscp << 2 | ECN_NOT_ECT);
	np->psn_off = make_shape(&np->cnp, &way, ROCE_OP_CNP, 0, 0, FRAME_IP);
	np->cnp.head[np->psn_off - 4] |= BTH_BECN;
}

static int make_cc(struct nic *nic, struct nic_qp *qp, const struct nic_flow_config *cfg,
	const struct qp_way *way, bool requester)
{
	bool answers = cfg->op == WR_READ, sends = requester ? !wr_is_rd_atomic(cfg->op) : answers;
	// What needs acknowledgements controls nothing that has none.
	bool told = !(cc_ops_of(nic->cfg.cc.algorithm)->needs & CC_NEEDS_ACK) ||
		    nic_cc_feedback(nic, cfg) != 0;

	if (nic_cc_make(nic, qp, sends && told) < 0)
		return -ENOMEM;
	if (qp->cc != NULL)
		qp->cc->ttl = cfg->ttl ? cfg->ttl : NIC_DEFAULT_TTL;
	if (qp->np != NULL)
		make_cnp(nic, qp->np, way);
	return 0;
}

static int make_qp(const struct nic_flow_config *cfg, const struct qp_end *from,
	const struct qp_end *to, unsigned port, uint16_t sport, struct rc_wqe *sq)
{
	const struct nic_config *nc = &from->nic->cfg;
	struct nic_qp *qp = from->qp;
	bool sends = sq != NULL;
	uint16_t payload = sends ? nc->payload : to->nic->cfg.payload; // the sender's

	memset(qp, 0, sizeof(*qp));
	qp->flow = cfg->flow;
	qp->port = (uint16_t)port;
	qp->tc = cfg->tc;
	qp->qpn = from->qpn;
	qp->transport = (uint8_t)cfg->transport;
	qp->plain = sends && cfg->transport == QP_RC && (cfg->op == WR_WRITE || cfg->op == WR_SEND);
	qp->ipv6 = cfg->ipv6;
	qp->roce1 = cfg->roce1;
	qp->timer_at = SIMTIME_NEVER;
	if (cfg->ipv6)
		memcpy(qp->peer_ip, to->port->ip6, sizeof(qp->peer_ip));
	else
		put_be32(qp->peer_ip, to->port->ip4);
	if (nic_needs_extra(from->nic, cfg, sends) && nic_extra_make(from->nic, qp, cfg) < 0)
		return -ENOMEM;
	init_requester(qp, from, sq);
	init_responder(qp, from, to, payload);
	if (cfg->transport == QP_RC &&
		nic_recovery_make(from->nic, qp, sends, to->nic->cfg.window) < 0)
		return -ENOMEM;
	struct qp_way way = {.cfg = cfg,
		.s = from->port,
		.d = to->port,
		.dest_qpn = to->qpn,
		.sport = sport,
		.tos = (uint8_t)(cfg->dscp << 2 | (nc->ecn_capable ? ECN_ECT0 : ECN_NOT_ECT))};
	unsigned feedback = nic_cc_feedback(sends ? from->nic : to->nic, cfg);
	make_shapes(qp, &way, sends, payload, feedback);
	if (!sends && nic_echo_make(qp, feedback) < 0)
		return -ENOMEM;
	return make_cc(from->nic, qp, cfg, &way, sends);
}

int nic_make_pair(struct nic *src, struct nic *dst, uint32_t flow_local, unsigned i)
{
	const struct nic_flow *f = &src->flows[flow_local];
	const struct nic_flow_config *cfg = &f->cfg;
	uint32_t sq = src->n_qps++, dq = dst->n_qps++;
	struct qp_end s = {src, &src->ports[cfg->src_port].cfg, &src->qps[sq], src->qpn_first + sq,
		(uint32_t)(rng_next(&src->rng) >> 40)};
	struct qp_end d = {dst, &dst->ports[cfg->dst_port].cfg, &dst->qps[dq], dst->qpn_first + dq,
		(uint32_t)(rng_next(&dst->rng) >> 40)};
	uint16_t sport =
		cfg->udp_sport ? (uint16_t)(cfg->udp_sport + i) : roce_udp_sport(s.qpn, d.qpn);

	int rc = make_qp(cfg, &s, &d, cfg->src_port, sport, &f->sq[i]);
	if (make_qp(cfg, &d, &s, cfg->dst_port, sport, NULL) < 0 || rc < 0)
		return -ENOMEM;
	s.qp->flow_local = flow_local;
	s.qp->payload_base = d.qp->payload_base = i * cfg->messages * cfg->message_bytes;
	if (cfg->rate_bps != 0) {
		s.qp->pace_time = byte_time_fp(cfg->rate_bps) * cfg->qps;
		s.qp->paced = true;
	}
	return 0;
}
