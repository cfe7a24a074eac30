/* SPDX-License-Identifier: BSD-3-Clause */
// Flows: queue pairs on two NICs that are made for each other, their start, stop and result.

#include <errno.h>
#include <stdlib.h>

#include "pcap/build.h"
#include "pcap/codec.h"
#include "pipelines/nic_internal.h"

#define REMOTE_ADDR_BASE UINT64_C(0x7f0000000000) // where a process's buffers usually are
#define RKEY_BASE        0x1000

// One end of a queue pair as the other sees it.
struct qp_end {
	struct nic *nic;
	const struct nic_port_config *port;
	struct nic_qp *qp;
	uint32_t qpn;
	uint32_t psn;
};

static int reserve_qps(struct nic *nic, unsigned more)
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

static int reserve_flow(struct nic *nic)
{
	if (nic->n_flows < nic->cap_flows)
		return 0;

	uint32_t cap = nic->cap_flows ? 2 * nic->cap_flows : 4;
	struct nic_flow *flows = realloc(nic->flows, cap * sizeof(*flows));
	if (flows == NULL)
		return -ENOMEM;
	nic->flows = flows;
	nic->cap_flows = cap;
	return 0;
}

// The way of a queue pair's frames: everything about them that the flow decides.
struct qp_way {
	const struct nic_flow_config *cfg;
	const struct nic_port_config *s, *d;
	uint32_t dest_qpn;
	uint16_t sport;
	uint8_t tos;
};

// One shape of the frames of a queue pair: `ext` bytes of extension headers, `payload` bytes.
// Returns the offset of the BTH's last word.
static uint8_t make_shape(struct nic_shape *shape, const struct qp_way *w, uint8_t opcode,
	unsigned ext, uint16_t payload)
{
	const struct nic_flow_config *c = w->cfg;
	uint8_t *head = shape->head, *p;
	unsigned pad = -payload & 3u;
	uint16_t udp_bytes =
		(uint16_t)(UDP_HEADER_BYTES + BTH_BYTES + ext + payload + pad + ICRC_BYTES);
	uint8_t ttl = c->ttl ? c->ttl : NIC_DEFAULT_TTL;
	uint16_t type = c->ipv6 ? ETHERTYPE_IPV6 : ETHERTYPE_IPV4;
	struct frame f = {.kind = FRAME_IP,
		.opcode = opcode,
		.payload_len = payload,
		.dst = w->d->endpoint,
		.flow = c->flow,
		.tc = c->tc};

	p = eth_put(head, w->s->next_hop_mac, w->s->mac, c->pcp >= 0 ? ETHERTYPE_VLAN : type);
	if (c->pcp >= 0)
		p = vlan_put(p, (uint16_t)(c->pcp << 13), type);
	f.l3_off = (uint8_t)(p - head);
	if (c->ipv6) {
		p = ipv6_put(p, w->tos, 0, udp_bytes, IP_PROTO_UDP, ttl, w->s->ip6, w->d->ip6);
		f.flow_hash =
			flow_hash_v6(w->s->ip6, w->d->ip6, w->sport, ROCE_UDP_PORT, IP_PROTO_UDP);
	} else {
		p = ipv4_put(p, w->tos, (uint16_t)(IPV4_HEADER_BYTES + udp_bytes), 0, ttl,
			IP_PROTO_UDP, w->s->ip4, w->d->ip4);
		f.flow_hash =
			flow_hash_v4(w->s->ip4, w->d->ip4, w->sport, ROCE_UDP_PORT, IP_PROTO_UDP);
	}
	f.l4_off = (uint8_t)(p - head);
	p = udp_put(p, w->sport, ROCE_UDP_PORT, udp_bytes);
	p = bth_put(p, opcode, BTH_MIG, pad, w->dest_qpn, false, 0);
	f.len = (uint16_t)(f.l4_off + udp_bytes);
	f.head_len = (uint16_t)(p - head + ext);
	f.flags = FRAME_F_PARSED | FRAME_F_SYNTH | FRAME_F_ROCE | FRAME_F_HEAD;
	f.flags |= c->ipv6 ? FRAME_F_IPV6 : 0;
	f.flags |= c->pcp >= 0 ? FRAME_F_TAGGED : 0;
	memcpy(shape->frame, (uint8_t *)&f + NIC_FRAME_OFFSET, NIC_FRAME_BYTES);
	return (uint8_t)(p - head - 4);
}

static void make_shapes(struct nic_qp *qp, const struct qp_way *w)
{
	const struct nic_flow_config *c = w->cfg;
	uint16_t full = qp->req.payload, last = (uint16_t)((c->message_bytes - 1) % full + 1);

	for (unsigned place = RC_MIDDLE; place <= RC_ONLY; place++)
		make_shape(&qp->shape[place], w, rc_opcode(c->op, (enum rc_place)place),
			place & RC_FIRST && c->op == WR_WRITE ? RETH_BYTES : 0,
			place & RC_LAST ? last : full);
	qp->psn_off = make_shape(&qp->shape[NIC_SHAPE_ACK], w, ROCE_ACK, AETH_BYTES, 0);
	if (qp->rec != NULL)
		make_shape(&qp->rec->sack, w, ROCE_ACK, AETH_BYTES + ROCE_SACK_BYTES, 0);
}

static int make_qp(const struct nic_flow_config *cfg, const struct qp_end *from,
	const struct qp_end *to, unsigned port, uint16_t sport, struct rc_wqe *sq)
{
	const struct nic_config *nc = &from->nic->cfg;
	struct nic_qp *qp = from->qp;
	struct rc_config rc = {
		.payload = nc->payload,
		.window = nc->window,
		.ack_every = nc->ack_every,
		.timeout = rc_ack_timeout(nc->timeout),
		.retry_cnt = nc->retry_cnt,
		.rnr_retry = nc->rnr_retry,
		.psn = from->psn,
	};
	struct rc_responder_config resp = {
		.psn = to->psn,
		.ack_every = nc->ack_every,
		.payload = nc->payload,
	};

	memset(qp, 0, sizeof(*qp));
	qp->flow = cfg->flow;
	qp->port = (uint16_t)port;
	qp->tc = cfg->tc;
	qp->qpn = from->qpn;
	qp->ipv6 = cfg->ipv6;
	qp->timer_at = SIMTIME_NEVER;
	if (cfg->ipv6)
		memcpy(qp->peer_ip, to->port->ip6, sizeof(qp->peer_ip));
	else
		put_be32(qp->peer_ip, to->port->ip4);
	rc_requester_init(&qp->req, &rc, sq, 1);
	rc_responder_init(&qp->resp, &resp);
	if (nic_recovery_make(from->nic, qp, sq != NULL, to->nic->cfg.window) < 0)
		return -ENOMEM;
	make_shapes(qp, &(struct qp_way){.cfg = cfg,
				.s = from->port,
				.d = to->port,
				.dest_qpn = to->qpn,
				.sport = sport,
				.tos = (uint8_t)(cfg->dscp << 2 |
						 (nc->ecn_capable ? ECN_ECT0 : ECN_NOT_ECT))});
	return 0;
}

static int make_pair(struct nic *src, struct nic *dst, uint32_t flow_local, unsigned i)
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
	s.qp->payload_base = i * cfg->messages * cfg->message_bytes;
	if (cfg->rate_bps != 0)
		s.qp->pace_time = byte_time_fp(cfg->rate_bps) * cfg->qps;
	return 0;
}

static struct nic_flow *find(const struct node *n, uint32_t flow)
{
	const struct nic *nic = (const struct nic *)n;

	for (uint32_t i = 0; i < nic->n_flows; i++)
		if (nic->flows[i].cfg.flow == flow)
			return &nic->flows[i];
	return NULL;
}

static bool valid(const struct nic *src, const struct nic *dst, const struct nic_flow_config *c)
{
	if (c->src_port >= src->node.n_ports || c->dst_port >= dst->node.n_ports)
		return false;
	const struct nic_port_config *s = &src->ports[c->src_port].cfg;
	const struct nic_port_config *d = &dst->ports[c->dst_port].cfg;

	return (c->ipv6 ? s->has_ip6 && d->has_ip6 : s->ip4 != 0 && d->ip4 != 0) &&
	       src->cfg.recovery == dst->cfg.recovery && c->message_bytes >= 1 &&
	       c->message_bytes <= RC_MESSAGE_MAX && c->qps >= 1 && c->dscp < 64 &&
	       c->tc < PRIO_COUNT && c->pcp < 8 && c->start >= 0;
}

int nic_add_flow(struct node *s, struct node *d, const struct nic_flow_config *cfg)
{
	struct nic *src = nic_of(s), *dst = nic_of(d);

	if (!valid(src, dst, cfg))
		return -EINVAL;
	if (find(s, cfg->flow) != NULL)
		return -EEXIST;
	// On one node both ends come from the same array.
	unsigned here = src == dst ? 2 * cfg->qps : cfg->qps;
	if (reserve_flow(src) < 0 || reserve_qps(src, here) < 0 || reserve_qps(dst, cfg->qps) < 0)
		return -ENOMEM;

	struct rc_wqe *sq = calloc(cfg->qps, sizeof(*sq));
	if (sq == NULL)
		return -ENOMEM;

	uint32_t local = src->n_flows++;
	src->flows[local] = (struct nic_flow){
		.cfg = *cfg,
		.sq = sq,
		.msg_pkts = (cfg->message_bytes - 1) / src->cfg.payload + 1,
		.first_qp = src->n_qps,
		.peer_first_qp = src == dst ? src->n_qps + 1 : dst->n_qps,
		.peer = dst,
		.qps_left = cfg->qps,
		.started_at = SIMTIME_NEVER,
		.ended_at = SIMTIME_NEVER,
	};
	for (unsigned i = 0; i < cfg->qps; i++)
		if (make_pair(src, dst, local, i) < 0)
			return -ENOMEM;
	return 0;
}

// The i-th queue pair of a flow at its sender and its receiver. On one node they alternate.
static struct nic_qp *flow_qp(const struct nic *nic, const struct nic_flow *f, unsigned i)
{
	return &nic->qps[f->first_qp + (f->peer == nic ? 2 * i : i)];
}

static struct nic_qp *flow_peer_qp(const struct nic *nic, const struct nic_flow *f, unsigned i)
{
	return &f->peer->qps[f->peer_first_qp + (f->peer == nic ? 2 * i : i)];
}

// All messages of a queue pair as one work request.
static void post_work(struct nic_qp *qp, const struct nic_flow *f, uint32_t peer_qpn)
{
	struct rc_wr wr = {
		.repeat = f->cfg.messages != 0 ? f->cfg.messages : RC_ENDLESS,
		.local = qp->payload_base,
		.remote_addr = REMOTE_ADDR_BASE + ((uint64_t)peer_qpn << 20),
		.length = f->cfg.message_bytes,
		.rkey = RKEY_BASE + peer_qpn,
		.op = (uint8_t)f->cfg.op,
		.signaled = true,
	};

	rc_post_send(&qp->req, &wr);
}

void nic_flow_begin(struct nic *nic, struct nic_flow *f)
{
	struct node *n = &nic->node;
	bool first = !f->started;

	if (first) {
		f->started = true;
		f->started_at = n->now;
		f->paused_before = nic_paused_total(nic, f->cfg.src_port, f->cfg.tc);
		f->pauses_before = nic->ports[f->cfg.src_port].n_pauses[f->cfg.tc];
		node_event(n, f->cfg.src_port, EV_FLOW_START, f->cfg.flow,
			f->cfg.messages * f->cfg.message_bytes * f->cfg.qps);
	}
	f->stopped = false;
	for (unsigned i = 0; i < f->cfg.qps; i++) {
		struct nic_qp *qp = flow_qp(nic, f, i);
		qp->pace_at = simtime_max(qp->pace_at, n->now);
		rc_start(&qp->req);
		if (first)
			post_work(qp, f, flow_peer_qp(nic, f, i)->qpn);
		nic_qp_wake(nic, qp);
	}
	nic_kick(nic, f->cfg.src_port);
}

void nic_flow_halt(struct nic *nic, struct nic_flow *f)
{
	f->stopped = true;
	for (unsigned i = 0; i < f->cfg.qps; i++) {
		struct nic_qp *qp = flow_qp(nic, f, i);
		rc_stop(&qp->req);
		nic_qp_wake(nic, qp);
	}
	nic_kick(nic, f->cfg.src_port);
}

int nic_flow_start(struct node *src, uint32_t flow)
{
	struct nic_flow *f = find(src, flow);

	if (f == NULL)
		return -ENOENT;
	nic_flow_begin(nic_of(src), f);
	return 0;
}

int nic_flow_stop(struct node *src, uint32_t flow)
{
	struct nic_flow *f = find(src, flow);

	if (f == NULL)
		return -ENOENT;
	nic_flow_halt(nic_of(src), f);
	return 0;
}

static void qp_ended(struct nic *nic, struct nic_qp *qp, struct nic_flow *f)
{
	qp->ended = true;
	if (--f->qps_left == 0) {
		f->ended_at = nic->node.now;
		f->paused = nic_paused_total(nic, f->cfg.src_port, f->cfg.tc) - f->paused_before;
		f->pauses = nic->ports[f->cfg.src_port].n_pauses[f->cfg.tc] - f->pauses_before;
	}
}

void nic_qp_done(struct nic *nic, struct nic_qp *qp)
{
	struct nic_flow *f = &nic->flows[qp->flow_local];
	struct rc_wc wc;

	if (!rc_poll(&qp->req, &wc))
		return;
	qp_ended(nic, qp, f);
	if (f->qps_left == 0 && f->status == WC_SUCCESS)
		node_event(&nic->node, qp->port, EV_FLOW_DONE, qp->flow,
			f->cfg.messages * f->cfg.message_bytes * f->cfg.qps);
}

void nic_qp_failed(struct nic *nic, struct nic_qp *qp)
{
	struct nic_flow *f = &nic->flows[qp->flow_local];

	nic->ctr.req_cqe_error++;
	if (qp->req.status == WC_RETRY_EXC_ERR)
		nic->ctr.req_transport_retries_exceeded++;
	else if (qp->req.status == WC_RNR_RETRY_EXC_ERR)
		nic->ctr.req_rnr_retries_exceeded++;
	if (f->status == WC_SUCCESS)
		f->status = qp->req.status;
	node_event(&nic->node, qp->port, EV_QP_ERROR, qp->flow, qp->req.status);
	qp_ended(nic, qp, f);
}

// Adds what one queue pair and its peer have done.
static void add_qp(struct nic_flow_result *r, const struct nic_qp *qp, const struct nic_qp *peer)
{
	r->delivered_bytes += peer->resp.bytes;
	r->delivered_messages += peer->resp.messages;
	r->completed_messages += rc_acked_messages(&qp->req);
	r->sent_packets += qp->req.max + qp->retransmitted;
	r->retransmitted_packets += qp->retransmitted;
	r->timeouts += qp->timeouts;
	r->naks += qp->naks;
}

int nic_flow_result(const struct node *src, uint32_t flow, struct nic_flow_result *out)
{
	const struct nic *nic = (const struct nic *)src;
	const struct nic_flow *f = find(src, flow);
	simtime_t last = 0;

	if (f == NULL)
		return -ENOENT;
	*out = (struct nic_flow_result){
		.started = f->started,
		.done = f->qps_left == 0 && f->status == WC_SUCCESS,
		.status = f->status,
		.start = f->started_at,
		.acked = SIMTIME_NEVER,
		.arrived = SIMTIME_NEVER,
		.fct = SIMTIME_NEVER,
		.bytes = f->cfg.messages * f->cfg.message_bytes * f->cfg.qps,
		.paused = f->paused,
		.pauses = f->pauses,
	};
	for (unsigned i = 0; i < f->cfg.qps; i++) {
		const struct nic_qp *peer = flow_peer_qp(nic, f, i);
		add_qp(out, flow_qp(nic, f, i), peer);
		last = simtime_max(last, peer->resp.last_at);
	}
	if (out->done) {
		out->acked = f->ended_at;
		out->fct = f->ended_at - f->started_at;
	}
	if (out->bytes != 0 && out->delivered_bytes == out->bytes)
		out->arrived = last;
	if (f->started && f->qps_left != 0) {
		out->paused = nic_paused_total(nic, f->cfg.src_port, f->cfg.tc) - f->paused_before;
		out->pauses = nic->ports[f->cfg.src_port].n_pauses[f->cfg.tc] - f->pauses_before;
	}
	if (f->started && last > f->started_at)
		out->goodput_bps = (uint64_t)((unsigned __int128)out->delivered_bytes * 8 * SIM_S /
					      (uint64_t)(last - f->started_at));
	return 0;
}

uint32_t nic_open_flows(const struct node *src)
{
	const struct nic *nic = (const struct nic *)src;
	uint32_t open = 0;

	for (uint32_t i = 0; i < nic->n_flows; i++) {
		const struct nic_flow *f = &nic->flows[i];
		bool runs = f->started || f->cfg.start != SIMTIME_NEVER;
		open += runs && !f->stopped && f->cfg.messages != 0 && f->qps_left != 0;
	}
	return open;
}
