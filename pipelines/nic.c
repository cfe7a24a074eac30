/* SPDX-License-Identifier: BSD-3-Clause */
// The built-in NIC's life: creation, timers, invariants. See nic_internal.h for the whole picture.

#include "pipelines/nic.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipelines/nic_internal.h"

#define QPN_SPREAD 0x10000

struct nic_config nic_config_default(void)
{
	return (struct nic_config){
		.payload = NIC_DEFAULT_PAYLOAD,
		.ack_every = 1,
		.timeout = NIC_DEFAULT_TIMEOUT,
		.retry_cnt = NIC_DEFAULT_RETRY,
		.rnr_retry = RC_RNR_INFINITE,
		.ecn_capable = true,
		.max_rd_atomic = NIC_DEFAULT_RD_ATOMIC,
		.min_rnr_timer = NIC_DEFAULT_RNR_TIMER,
		.rto_low = NIC_DEFAULT_RTO_LOW,
		.rto_high = NIC_DEFAULT_RTO_HIGH,
		.cc = {.dcqcn = dcqcn_preset(DCQCN_MLX5)},
		.np = {.min_time_between_cnps = NP_INTERVAL_DEFAULT,
			.cnp_dscp = NP_CNP_DSCP_DEFAULT,
			.cnp_802p_prio = NP_CNP_PRIO_DEFAULT},
		.cnp_tc = NP_CNP_PRIO_DEFAULT,
		.log_cap = 1024,
	};
}

static void timed_out(struct nic *nic, struct nic_qp *qp)
{
	struct node *n = &nic->node;
	struct rc_adaptive before = qp->req.adaptive;
	int result = nic_recovery_timeout(qp, n->now);

	if (result == RC_ACK_STALE)
		return;
	nic->ctr.roce_adp_retrans += qp->req.adaptive.retrans - before.retrans;
	nic->ctr.roce_adp_retrans_to += qp->req.adaptive.reached - before.reached;
	qp->timeouts++;
	nic->ctr.local_ack_timeout_err++;
	if (result & RC_ACK_ERROR) {
		nic_qp_failed(nic, qp);
		return;
	}
	nic_cc_timed_out(nic, qp);
	node_event(n, qp->port, EV_QP_RETRY, qp->flow, qp->req.retry_left);
	nic_qp_wake(nic, qp);
	nic_kick(nic, qp->port);
}

static void ack_timer(struct nic *nic, struct nic_qp *qp)
{
	struct node *n = &nic->node;

	if (n->now != qp->timer_at) // one that was armed for an earlier time has been
		return;
	qp->timer_at = SIMTIME_NEVER;
	if (n->now >= qp->req.deadline)
		timed_out(nic, qp);
	nic_arm_ack_timer(nic, qp);
}

static void pace_timer(struct nic *nic, struct nic_qp *qp)
{
	qp->ready = NIC_IDLE;
	nic_qp_wake(nic, qp);
	nic_kick(nic, qp->port);
}

static void rnr_timer(struct nic *nic, struct nic_qp *qp)
{
	nic_recovery_rnr_expired(qp, nic->node.now);
	nic_qp_wake(nic, qp);
	nic_kick(nic, qp->port);
}

static void nic_timer(struct node *n, uint32_t kind, uint32_t arg)
{
	struct nic *nic = nic_of(n);

	switch ((enum nic_timer)kind) {
	case NIC_TIMER_FLOW_START:
		nic_flow_begin(nic, &nic->flows[arg]);
		break;
	case NIC_TIMER_FLOW_STOP:
		nic_flow_halt(nic, &nic->flows[arg]);
		break;
	case NIC_TIMER_ACK:
		ack_timer(nic, &nic->qps[arg]);
		break;
	case NIC_TIMER_RNR:
		rnr_timer(nic, &nic->qps[arg]);
		break;
	case NIC_TIMER_PACE:
		pace_timer(nic, &nic->qps[arg]);
		break;
	case NIC_TIMER_PFC:
		nic_pfc_timer(nic, arg);
		break;
	case NIC_TIMER_RESUME:
		nic_resume_timer(nic, arg);
		break;
	case NIC_TIMER_STORM:
		nic_storm_timer(nic, arg);
		break;
	case NIC_TIMER_CC:
		nic_cc_timer(nic, &nic->qps[arg]);
		break;
	case NIC_TIMER_POOL:
		nic->ports[arg].pool_wait = false;
		nic_kick(nic, arg);
		break;
	case NIC_TIMER_SLOW:
		nic_slow_timer(nic, arg);
		break;
	case NIC_TIMER_SLOW_END:
		nic_slow_end(nic, arg);
		break;
	case NIC_TIMER_VERBS_START:
	case NIC_TIMER_VERBS_ACK:
	case NIC_TIMER_VERBS_RNR:
	case NIC_TIMER_VERBS_CM:
		verbs_timer(nic, (enum nic_timer)kind, arg);
		break;
	}
}

static void nic_start(struct node *n)
{
	struct nic *nic = nic_of(n);

	for (unsigned i = 0; i < n->n_ports; i++)
		nic_pfc_init(nic, i);
	nic_cc_start(nic);
	verbs_start(nic);
	for (uint32_t i = 0; i < nic->n_flows; i++) {
		const struct nic_flow_config *c = &nic->flows[i].cfg;
		if (c->start != SIMTIME_NEVER)
			node_timer(n, c->start, NIC_TIMER_FLOW_START, i);
		if (c->stop != SIMTIME_NEVER)
			node_timer(n, c->stop, NIC_TIMER_FLOW_STOP, i);
	}
}

static void nic_link(struct node *n, unsigned port, bool up)
{
	struct nic *nic = nic_of(n);

	nic->ports[port].down = !up;
	if (up)
		nic_kick(nic, port);
	else
		nic_pfc_link_down(nic, port);
}

static uint64_t nic_held(const struct node *n)
{
	return nic_slow_held((const struct nic *)n);
}

static void nic_drain(struct node *n)
{
	struct nic *nic = nic_of(n);

	nic_slow_drain(nic);
	for (unsigned i = 0; i < n->n_ports; i++) {
		struct nic_port *p = &nic->ports[i];
		p->ack_mask = p->ready_mask = 0;
		memset(p->ready, 0, sizeof(p->ready));
		memset(p->acks, 0, sizeof(p->acks));
	}
	nic_cc_drain(nic);
	verbs_drain(nic);
	for (uint32_t i = 0; i < nic->n_qps; i++) {
		nic->qps[i].ready = NIC_IDLE;
		nic->qps[i].ack_queued = false;
		nic->qps[i].answers = false;
	}
}

// READs and atomics: what came in order is what is acknowledged.
static bool check_answers(const struct nic *nic, const struct nic_flow *f, const struct nic_qp *qp,
	char *why, size_t len)
{
	const struct rc_requester *q = &qp->req;
	uint64_t msgs = q->una / f->msg_pkts, rest = q->una % f->msg_pkts;
	uint64_t bytes = msgs * f->cfg.message_bytes + rest * q->payload;

	if (qp->extra->bytes == bytes && qp->extra->messages == msgs && q->nxt <= q->max)
		return true;
	snprintf(why, len,
		"flow %u: %" PRIu64 " bytes, %" PRIu64 " messages came; %" PRIu64 " acknowledged",
		f->cfg.flow, qp->extra->bytes, qp->extra->messages, q->una);
	return false;
}

// UC and UD: no more arrives than was sent.
static bool check_unacknowledged(const struct nic_flow *f, const struct nic_qp *qp,
	const struct nic_qp *peer, char *why, size_t len)
{
	if (peer->extra->messages <= qp->req.max / f->msg_pkts)
		return true;
	snprintf(why, len, "flow %u: %" PRIu64 " messages came, %" PRIu64 " packets were sent",
		f->cfg.flow, peer->extra->messages, qp->req.max);
	return false;
}

// What the receiver of a flow took in order lies between what its sender knows acknowledged and
// what it ever sent, and is so many bytes.
static bool check_pair(
	const struct nic *nic, const struct nic_flow *f, unsigned i, char *why, size_t len)
{
	unsigned at = f->peer == nic ? 2 * i : i;
	const struct nic_qp *qp = &nic->qps[f->first_qp + at];
	const struct nic_qp *peer = &f->peer->qps[f->peer_first_qp + at];
	const struct rc_requester *q = &qp->req;
	const struct rc_responder *r = &peer->resp;

	if (wr_is_rd_atomic(f->cfg.op))
		return check_answers(nic, f, qp, why, len);
	if (f->cfg.transport != QP_RC)
		return check_unacknowledged(f, qp, peer, why, len);
	uint64_t beyond = (uint32_t)psn_diff(r->epsn, psn_add(q->psn0, q->una));
	uint64_t taken = q->una + beyond;
	uint64_t msgs = taken / f->msg_pkts, rest = taken % f->msg_pkts;
	uint64_t bytes = msgs * f->cfg.message_bytes + rest * q->payload;

	if (q->max - q->una > nic->cfg.window || q->nxt > q->max) {
		snprintf(why, len, "flow %u: window: una %" PRIu64 " nxt %" PRIu64 " max %" PRIu64,
			f->cfg.flow, q->una, q->nxt, q->max);
		return false;
	}
	if (beyond > q->max - q->una || r->bytes != bytes || r->messages != msgs) {
		snprintf(why, len,
			"flow %u: receiver has %" PRIu64 " bytes, %" PRIu64
			" messages in order; sender knows %" PRIu64 " packets, sent %" PRIu64,
			f->cfg.flow, r->bytes, r->messages, q->una, q->max);
		return false;
	}
	return true;
}

static bool nic_check(const struct node *n, bool drained, char *why, size_t len)
{
	const struct nic *nic = (const struct nic *)n;

	for (uint32_t i = 0; i < nic->n_flows; i++)
		for (unsigned j = 0; j < nic->flows[i].cfg.qps; j++)
			if (!check_pair(nic, &nic->flows[i], j, why, len))
				return false;
	return verbs_check(nic, why, len);
}

static const struct node_ops nic_ops = {
	.name = "nic",
	.arrive = nic_arrive,
	.depart = nic_depart,
	.timer = nic_timer,
	.start = nic_start,
	.link = nic_link,
	.held = nic_held,
	.drain = nic_drain,
	.check = nic_check,
};

// Packets that may be in flight.
static uint32_t window_of(const struct nic_config *c)
{
	uint32_t window = c->window != 0 ? c->window : RC_WINDOW_MAX;
	uint64_t cap = c->bdp_cap / c->payload;

	if (c->bdp_cap == 0)
		return window;
	return cap == 0 ? 1 : (uint32_t)RTE_MIN(cap, window);
}

static bool valid(const struct nic_config *c)
{
	return c->n_ports >= 1 && c->n_ports <= PORT_MAX && c->payload >= 1 &&
	       c->payload <= NIC_PAYLOAD_MAX && c->ack_every >= 1 && c->window <= RC_WINDOW_MAX &&
	       c->timeout <= 31 && c->retry_cnt <= 7 && c->rnr_retry <= 7 &&
	       c->max_rd_atomic >= 1 && c->recv_depth <= NIC_RECV_DEPTH_MAX &&
	       c->min_rnr_timer <= 31 && c->cnp_tc < PRIO_COUNT && c->np.cnp_dscp < 64 &&
	       !(c->adaptive && c->recovery == NIC_SELECTIVE_REPEAT) && c->ooo <= SR_WINDOW_MAX &&
	       c->ooo_time >= 0 && c->rto_low > 0 && c->rto_low <= c->rto_high &&
	       (c->recovery != NIC_SELECTIVE_REPEAT || window_of(c) <= SR_WINDOW_MAX);
}

int nic_create(const struct nic_config *cfg, struct node **out)
{
	if (!valid(cfg))
		return -EINVAL;

	struct nic *nic = calloc(1, sizeof(*nic));
	if (nic == NULL)
		return -ENOMEM;
	nic->ports = calloc(cfg->n_ports, sizeof(*nic->ports));
	if (nic->ports == NULL ||
		node_init(&nic->node, &nic_ops, cfg->name, cfg->n_ports, cfg->log_cap) < 0) {
		free(nic->ports);
		free(nic);
		return -ENOMEM;
	}
	nic->cfg = *cfg;
	nic->cfg.ports = NULL; // each port has its own copy
	nic->cfg.name = nic->node.name;
	nic->cfg.window = window_of(cfg);
	nic->rng = rng_stream(cfg->seed, UINT64_C(0x6e6963) << 32 | cfg->index);
	nic->qpn_first = NIC_QPN_FIRST + rng_below(&nic->rng, QPN_SPREAD);
	for (unsigned i = 0; i < cfg->n_ports; i++) {
		nic->ports[i].cfg = cfg->ports[i];
		memcpy(nic->node.ports[i].mac, cfg->ports[i].mac, 6);
	}
	if (nic_cc_init(nic) < 0) {
		nic_destroy(&nic->node);
		return -ENOMEM;
	}
	*out = &nic->node;
	return 0;
}

void nic_destroy(struct node *n)
{
	struct nic *nic = nic_of(n);

	nic_slow_free(nic);
	verbs_free(nic);
	node_fini(n);
	for (uint32_t i = 0; i < nic->n_qps; i++) {
		nic_recovery_free(&nic->qps[i]);
		nic_cc_free(&nic->qps[i]);
		nic_extra_free(&nic->qps[i]);
	}
	nic_cc_fini(nic);
	free(nic->ports);
	free(nic->qps);
	for (uint32_t i = 0; i < nic->n_flows; i++)
		free(nic->flows[i].sq);
	free(nic->flows);
	free(nic);
}

const struct nic_counters *nic_counters(const struct node *n)
{
	return &((const struct nic *)n)->ctr;
}

bool nic_counter_by_name(const struct node *n, const char *name, uint64_t *value)
{
	static const struct {
		const char *name;
		size_t off;
	} table[] = {
#define X(name, help) {#name, offsetof(struct nic_counters, name)},
		NIC_COUNTERS(X)
#undef X
	};

	for (size_t i = 0; i < RTE_DIM(table); i++) {
		if (strcmp(table[i].name, name) == 0) {
			memcpy(value, (const char *)nic_counters(n) + table[i].off, sizeof(*value));
			return true;
		}
	}
	return false;
}
