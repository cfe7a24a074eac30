/* SPDX-License-Identifier: BSD-3-Clause */
// Flows: queue pairs on two NICs that are made for each other, their start, stop and result.

#include <errno.h>
#include <stdlib.h>

#include "pcap/build.h"
#include "pcap/codec.h"
#include "pipelines/nic_internal.h"

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

static struct nic_flow *find(const struct node *n, uint32_t flow)
{
	const struct nic *nic = (const struct nic *)n;

	for (uint32_t i = 0; i < nic->n_flows; i++)
		if (nic->flows[i].cfg.flow == flow)
			return &nic->flows[i];
	return NULL;
}

// Whether transport and settings go with the operation.
static bool carried(const struct nic *src, const struct nic *dst, const struct nic_flow_config *c)
{
	bool selective = src->cfg.recovery == NIC_SELECTIVE_REPEAT;
	bool keeps = selective || src->cfg.ooo != 0 || dst->cfg.ooo != 0;

	if (c->op >= WR_SEND_INV || (c->roce1 && selective))
		return false;
	if (wr_is_rd_atomic(c->op))
		return c->transport == QP_RC && !keeps &&
		       src->cfg.max_rd_atomic <= dst->cfg.max_rd_atomic &&
		       (c->op == WR_READ || c->message_bytes == RC_ATOMIC_BYTES);
	return c->transport != QP_UD ||
	       ((c->op == WR_SEND || c->op == WR_SEND_IMM) && c->message_bytes <= src->cfg.payload);
}

static bool valid(const struct nic *src, const struct nic *dst, const struct nic_flow_config *c)
{
	if (c->src_port >= src->node.n_ports || c->dst_port >= dst->node.n_ports)
		return false;
	const struct nic_port_config *s = &src->ports[c->src_port].cfg;
	const struct nic_port_config *d = &dst->ports[c->dst_port].cfg;

	if (!carried(src, dst, c))
		return false;
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
	if (reserve_flow(src) < 0 || nic_reserve_qps(src, here) < 0 ||
		nic_reserve_qps(dst, cfg->qps) < 0)
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
		if (nic_make_pair(src, dst, local, i) < 0)
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
		.remote_addr = NIC_REMOTE_ADDR(peer_qpn),
		.length = f->cfg.message_bytes,
		.swap_add = 1,
		.rkey = NIC_RKEY(peer_qpn),
		.imm = f->cfg.flow,
		.op = (uint8_t)f->cfg.op,
		.signaled = true,
	};

	nic_extra_post(qp, &wr);
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
	for (struct rc_wc wc; rc_poll(&qp->req, &wc);)
		nic->ctr.req_cqe_flush_error += wc.status == WC_WR_FLUSH_ERR;
	node_event(&nic->node, qp->port, EV_QP_ERROR, qp->flow, qp->req.status);
	qp_ended(nic, qp, f);
}

// Adds what one queue pair and its peer have done; returns when data was delivered last.
static simtime_t add_qp(struct nic_flow_result *r, const struct nic_flow *f,
	const struct nic_qp *qp, const struct nic_qp *peer)
{
	bool answered = wr_is_rd_atomic(f->cfg.op);
	const struct nic_extra *x = answered                    ? qp->extra
				    : f->cfg.transport != QP_RC ? peer->extra
								: NULL;

	r->delivered_bytes += x != NULL ? x->bytes : peer->resp.bytes;
	r->delivered_messages += x != NULL ? x->messages : peer->resp.messages;
	r->completed_messages += rc_acked_messages(&qp->req);
	r->sent_packets += answered ? peer->extra->answers : qp->req.max + qp->retransmitted;
	r->retransmitted_packets += answered ? peer->extra->answers_again : qp->retransmitted;
	const struct nic_cc *cc = answered ? peer->cc : qp->cc;
	if (cc != NULL) {
		r->cc_rate_bps += cc->cc.rate_bps;
		if (r->cc_min_rate_bps == 0 || cc->cc.min_rate_bps < r->cc_min_rate_bps)
			r->cc_min_rate_bps = cc->cc.min_rate_bps;
		r->cnps += cc->cnps;
	}
	r->timeouts += qp->timeouts;
	r->naks += qp->naks;
	return x != NULL ? x->last_at : peer->resp.last_at;
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
		simtime_t at = add_qp(out, f, flow_qp(nic, f, i), flow_peer_qp(nic, f, i));
		last = simtime_max(last, at);
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
