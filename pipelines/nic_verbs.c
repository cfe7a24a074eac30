/* SPDX-License-Identifier: BSD-3-Clause */
// The life of a NIC's applications, their timers and what they are told. See nic_verbs.h for the
// whole picture.
//
// An application's addresses are numbers of the emulated machine, the same in every run: what goes
// into its packets must not depend on where this process has its memory. Nothing is allocated but
// before the run and when an application starts.
//
// Simplified: applications' queue pairs go back N and are not under congestion control: neither
// `recovery` nor `cc` of their NIC applies to them. UC has no application and thus no queue pair.

#include "pipelines/nic_verbs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define GUID_BASE UINT64_C(0x02fabe0000000000)

uint8_t *verbs_at(struct verbs *v, uint64_t addr, uint32_t len)
{
	uint64_t app = (addr - VERBS_MEMORY_BASE) / VERBS_MEMORY_STRIDE;
	uint64_t at = (addr - VERBS_MEMORY_BASE) % VERBS_MEMORY_STRIDE;

	if (addr < VERBS_MEMORY_BASE || app >= v->n_apps || v->apps[app].mr == NULL ||
		at + len > v->apps[app].mr->length)
		return NULL;
	return v->apps[app].memory + at;
}

// ---- making ----------------------------------------------------------------------------------

static struct verbs *verbs_of(struct nic *nic)
{
	struct verbs *v = nic->verbs;

	if (v != NULL)
		return v;
	v = calloc(1, sizeof(*v));
	if (v == NULL)
		return NULL;
	v->ports = calloc(nic->node.n_ports, sizeof(*v->ports));
	if (v->ports == NULL) {
		free(v);
		return NULL;
	}
	v->nic = nic;
	v->memory = (struct rc_memory){.mr = v->mrs, .n = NIC_APPS_MAX};
	v->rng = rng_stream(nic->cfg.seed, UINT64_C(0x617070) << 32 | nic->cfg.index);
	v->cm_timer_at = SIMTIME_NEVER;
	v->gsi_psn = (uint32_t)(rng_next(&v->rng) >> 40);
	nic->verbs = v;
	return v;
}

uint8_t verbs_mtu_code(uint16_t bytes)
{
	for (uint8_t code = 1; code <= CM_MTU_MAX; code++)
		if (bytes == 128u << code)
			return code;
	return 0;
}

static bool valid(const struct nic *nic, const struct nic_app_config *c)
{
	if ((unsigned)c->kind >= APP_KINDS || c->port >= nic->node.n_ports ||
		verbs_mtu_code(c->mtu) == 0 || c->dscp >= 64 || c->tc >= PRIO_COUNT ||
		c->start < 0 || c->rdma_cm_timeout < 0 || c->app.connections < 1 ||
		c->app.connections > APP_CONNECTIONS)
		return false;
	const struct nic_port_config *p = &nic->ports[c->port].cfg;
	return c->ipv6 ? p->has_ip6 : p->ip4 != 0;
}

static int make_qps(struct verbs *v, unsigned app, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		unsigned index = app * APP_CONNECTIONS + i;
		v->qps[index] = calloc(1, sizeof(*v->qps[index]));
		if (v->qps[index] == NULL)
			return -ENOMEM;
		v->qps[index]->index = (uint16_t)index;
		v->qps[index]->timer_at = SIMTIME_NEVER;
	}
	return 0;
}

int nic_add_app(struct node *n, const struct nic_app_config *cfg)
{
	struct nic *nic = nic_of(n);

	if (!valid(nic, cfg))
		return -EINVAL;
	struct verbs *v = verbs_of(nic);
	if (v == NULL)
		return -ENOMEM;
	if (v->n_apps == NIC_APPS_MAX)
		return -EINVAL;
	unsigned i = v->n_apps;
	struct verbs_app *a = &v->apps[i];

	*a = (struct verbs_app){.cfg = *cfg, .started = SIMTIME_NEVER, .ended = SIMTIME_NEVER};
	a->env = (struct app_env){.ops = &verbs_env_ops, .nic = v, .app = i};
	a->app = calloc(1, app_bytes(cfg->kind));
	if (a->app == NULL ||
		make_qps(v, i, app_is_server(cfg->kind) ? cfg->app.connections : 1) < 0)
		return -ENOMEM; // what there is goes with the NIC
	v->n_apps++;
	return (int)i;
}

// Exponent of the smallest 4.096 us * 2^n that is not below `t`.
static uint8_t time_exponent(simtime_t t)
{
	uint8_t n = 0;

	while (n < 31 && cm_time(n) < t)
		n++;
	return n;
}

static void start_cm(struct verbs *v)
{
	struct cm_config c = {.guid = GUID_BASE | v->nic->cfg.index,
		.seed = rng_next(&v->rng),
		.response_timeout = CM_RESPONSE_TIMEOUT,
		.max_retries = CM_MAX_RETRIES,
		.packet_lifetime = CM_PACKET_LIFETIME,
		.ack_delay = CM_ACK_DELAY,
		.service_timeout = CM_SERVICE_TIMEOUT};

	for (unsigned i = 0; i < v->n_apps; i++) {
		const struct nic_app_config *a = &v->apps[i].cfg;
		c.mtu = RTE_MAX(c.mtu, verbs_mtu_code(a->mtu));
		if (a->rdma_cm_timeout != 0)
			c.response_timeout = c.packet_lifetime = c.ack_delay =
				time_exponent(a->rdma_cm_timeout);
	}
	cm_init(&v->cm, &c, v->ids, VERBS_CM_IDS);
}

static void start_app(struct verbs *v, unsigned i)
{
	struct verbs_app *a = &v->apps[i];

	a->running = true;
	a->started = v->nic->node.now;
	app_start(a->app, a->cfg.kind, &a->cfg.app, &a->env);
	verbs_settle(v);
}

void verbs_start(struct nic *nic)
{
	struct verbs *v = nic->verbs;

	if (v == NULL)
		return;
	start_cm(v);
	for (unsigned i = 0; i < v->n_apps; i++) {
		if (app_is_server(v->apps[i].cfg.kind))
			start_app(v, i);
		else
			node_timer(&nic->node, v->apps[i].cfg.start, NIC_TIMER_VERBS_START, i);
	}
}

void verbs_free(struct nic *nic)
{
	struct verbs *v = nic->verbs;

	if (v == NULL)
		return;
	for (unsigned i = 0; i < NIC_APPS_MAX; i++) {
		free(v->apps[i].app);
		free(v->apps[i].memory);
	}
	for (unsigned i = 0; i < VERBS_QPS; i++)
		free(v->qps[i]);
	free(v->ports);
	free(v);
	nic->verbs = NULL;
}

void verbs_drain(struct nic *nic)
{
	struct verbs *v = nic->verbs;

	if (v == NULL)
		return;
	v->mad_head = v->mad_tail;
	for (unsigned i = 0; i < nic->node.n_ports; i++) {
		v->ports[i] = (struct verbs_port){.head = NULL};
		nic->ports[i].verbs_due = false;
	}
	for (unsigned i = 0; i < VERBS_QPS; i++)
		if (v->qps[i] != NULL)
			v->qps[i]->queued = false;
}

bool verbs_check(const struct nic *nic, char *why, size_t len)
{
	const struct verbs *v = nic->verbs;

	for (unsigned i = 0; v != NULL && i < VERBS_QPS; i++) {
		const struct verbs_qp *qp = v->qps[i];
		if (qp == NULL || !qp->used || !qp->connected || qp->transport == CM_UD)
			continue;
		const struct rc_requester *q = &qp->req;
		if (q->una > q->max || q->nxt > q->posted || q->max > q->posted) {
			snprintf(why, len,
				"queue pair 0x%x: una %" PRIu64 " nxt %" PRIu64 " max %" PRIu64
				" posted %" PRIu64,
				qp->qpn, q->una, q->nxt, q->max, q->posted);
			return false;
		}
	}
	return true;
}

// ---- telling ---------------------------------------------------------------------------------

// Completions of the send queue. The application may destroy the queue pair in answer to one.
static bool tell_completions(struct verbs *v, struct verbs_qp *qp)
{
	struct verbs_app *a = verbs_app_of(v, qp);
	uint32_t qpn = qp->qpn;
	struct rc_wc wc;
	bool any = false;

	while (qp->used && qp->qpn == qpn && rc_poll(&qp->req, &wc)) {
		any = true;
		if (wc.status == WC_WR_FLUSH_ERR)
			v->nic->ctr.req_cqe_flush_error++;
		if (wc.status != WC_SUCCESS)
			v->nic->ctr.req_cqe_error++;
		app_wc(a->app, verbs_conn_of(qp),
			&(struct app_wc){.wr_id = wc.wr_id, .status = wc.status});
	}
	return any;
}

static bool take_mads(struct verbs *v)
{
	struct cm_out out;
	bool any = false;

	while (cm_next_mad(&v->cm, &out)) {
		any = true;
		int port = verbs_port_of(v->nic, out.src_gid);
		// What has no room is lost as on a wire: the connection manager sends it again.
		if (port < 0 || v->mad_tail - v->mad_head == VERBS_MADS)
			continue;
		v->mads[v->mad_tail++ % VERBS_MADS] = out;
		v->nic->ports[port].verbs_due = true;
	}
	return any;
}

static bool tell_events(struct verbs *v)
{
	struct cm_event e;
	bool any = false;

	while (cm_next_event(&v->cm, &e)) {
		any = true;
		verbs_cm_event(v, &e);
		take_mads(v);
	}
	return any;
}

static bool busy(const struct verbs *v, unsigned app)
{
	for (unsigned c = 0; c < APP_CONNECTIONS; c++) {
		const struct verbs_qp *qp = v->qps[app * APP_CONNECTIONS + c];
		if (qp != NULL && qp->used)
			return true;
	}
	return false;
}

static void note_ends(struct verbs *v)
{
	struct node *n = &v->nic->node;

	for (unsigned i = 0; i < v->n_apps; i++) {
		struct verbs_app *a = &v->apps[i];
		if (!a->running || a->ended != SIMTIME_NEVER || app_is_server(a->cfg.kind) ||
			a->app->status == APP_ST_RUNNING || busy(v, i))
			continue;
		a->ended = n->now;
		node_event(n, a->cfg.port, EV_APP_END, i, a->app->status);
	}
}

void verbs_settle(struct verbs *v)
{
	struct node *n = &v->nic->node;
	bool again = true;

	if (v->settling) // an application's call: the loop below goes on
		return;
	v->settling = true;
	while (again) {
		again = take_mads(v);
		again |= tell_events(v);
		for (unsigned i = 0; i < v->n_apps * APP_CONNECTIONS; i++)
			if (v->qps[i] != NULL && v->qps[i]->used)
				again |= tell_completions(v, v->qps[i]);
	}
	note_ends(v);
	if (v->cm.deadline < v->cm_timer_at) {
		v->cm_timer_at = v->cm.deadline;
		node_timer(n, v->cm_timer_at, NIC_TIMER_VERBS_CM, 0);
	}
	v->settling = false;
	for (unsigned i = 0; i < n->n_ports; i++)
		if (v->nic->ports[i].verbs_due)
			nic_kick(v->nic, i);
}

// ---- timers ----------------------------------------------------------------------------------

void verbs_arm_ack_timer(struct verbs *v, struct verbs_qp *qp)
{
	if (qp->timer_at <= qp->req.deadline)
		return;
	qp->timer_at = qp->req.deadline;
	node_timer(&v->nic->node, qp->timer_at, NIC_TIMER_VERBS_ACK, qp->index);
}

static void ack_timer(struct verbs *v, struct verbs_qp *qp)
{
	simtime_t now = v->nic->node.now;

	if (!qp->used || now != qp->timer_at) // of an earlier deadline or queue pair
		return;
	qp->timer_at = SIMTIME_NEVER;
	int result = rc_timeout(&qp->req, now);
	if (result != RC_ACK_STALE) {
		verbs_app_of(v, qp)->timeouts++;
		v->nic->ctr.local_ack_timeout_err++;
	}
	verbs_answered(v, qp, result);
}

void verbs_timer(struct nic *nic, enum nic_timer kind, uint32_t arg)
{
	struct verbs *v = nic->verbs;

	if (kind == NIC_TIMER_VERBS_START) {
		start_app(v, arg);
		return;
	}
	if (kind == NIC_TIMER_VERBS_CM) {
		if (nic->node.now != v->cm_timer_at)
			return;
		v->cm_timer_at = SIMTIME_NEVER;
		if (nic->node.now >= v->cm.deadline)
			cm_tick(&v->cm, nic->node.now);
	} else if (kind == NIC_TIMER_VERBS_ACK) {
		ack_timer(v, v->qps[arg]);
	} else if (v->qps[arg]->used) {
		rc_rnr_expired(&v->qps[arg]->req, nic->node.now);
		verbs_wake(v, v->qps[arg]);
	}
	verbs_settle(v);
}

// ---- results ---------------------------------------------------------------------------------

int nic_app_result(const struct node *n, unsigned app, struct nic_app_result *out)
{
	const struct verbs *v = ((const struct nic *)n)->verbs;

	if (v == NULL || app >= v->n_apps)
		return -ENOENT;
	const struct verbs_app *a = &v->apps[app];
	*out = (struct nic_app_result){
		.status = a->running ? a->app->status : APP_ST_RUNNING,
		.detail = a->app->detail,
		.counts = a->app->counts,
		.started = a->started,
		.ended = a->ended,
		.ack_timeout = a->ack_timeout,
		.retransmitted = a->retransmitted,
		.timeouts = a->timeouts,
		.naks = a->naks,
	};
	return 0;
}

unsigned nic_open_apps(const struct node *n)
{
	const struct verbs *v = ((const struct nic *)n)->verbs;
	unsigned open = 0;

	for (unsigned i = 0; v != NULL && i < v->n_apps; i++)
		open += !app_is_server(v->apps[i].cfg.kind) && v->apps[i].ended == SIMTIME_NEVER;
	return open;
}
