/* SPDX-License-Identifier: BSD-3-Clause */
// What applications call, and what the connection manager says. A queue pair is made when a
// connection is asked for, by us or by the peer, and may be given receives at once; it sends and
// takes packets from the moment its peer's number and PSN are known: with our own acceptance, or
// with the peer's.

#include <errno.h>
#include <stdlib.h>

#include "pipelines/nic_verbs.h"

#define RDMA_PORT_FIRST 0xc000 // of clients, in rdma_cm's header: the ephemeral range

static struct verbs *verbs_in(const struct app_env *env)
{
	return (struct verbs *)env->nic;
}

static struct verbs_qp *qp_in(const struct app_env *env, unsigned conn)
{
	struct verbs_qp *qp =
		conn < APP_CONNECTIONS ? verbs_in(env)->qps[VERBS_USER(env->app, conn)] : NULL;

	return qp != NULL && qp->used ? qp : NULL;
}

// ---- addresses -------------------------------------------------------------------------------

int verbs_port_of(const struct nic *nic, const uint8_t gid[GID_BYTES])
{
	uint8_t own[GID_BYTES];

	for (unsigned i = 0; i < nic->node.n_ports; i++) {
		const struct nic_port_config *c = &nic->ports[i].cfg;
		gid_from_ipv4(own, c->ip4);
		if ((c->ip4 != 0 && memcmp(own, gid, GID_BYTES) == 0) ||
			(c->has_ip6 && memcmp(c->ip6, gid, GID_BYTES) == 0))
			return (int)i;
	}
	return -1;
}

// ---- queue pairs -----------------------------------------------------------------------------

static struct verbs_qp *open_qp(struct verbs *v, unsigned app, unsigned port, uint8_t transport)
{
	struct verbs_qp *qp = NULL;

	for (unsigned c = 0; c < APP_CONNECTIONS && qp == NULL; c++) {
		struct verbs_qp *q = v->qps[VERBS_USER(app, c)];
		if (q != NULL && !q->used && !q->queued)
			qp = q;
	}
	if (qp == NULL)
		return NULL;
	qp->used = true;
	qp->connected = false;
	qp->id = NULL;
	qp->qpn = VERBS_QPN_FIRST + (qp->generation++ % 0x7000u) * VERBS_QPS + qp->index;
	qp->port = (uint16_t)port;
	qp->transport = transport;
	qp->timer_at = SIMTIME_NEVER;
	rc_rq_init(&qp->rq, qp->ring, APP_DEPTH, false);
	memset(qp->resources, 0, sizeof(qp->resources));
	// Nothing is sent before the peer is known; what is posted is refused until then.
	ud_requester_init(&qp->req, v->apps[app].cfg.mtu, (uint32_t)(rng_next(&v->rng) >> 40),
		qp->sq, APP_DEPTH);
	qp->ud = (struct ud_receiver){.qkey = CM_UD_QKEY, .rq = &qp->rq};
	qp->connected = transport == CM_UD;
	return qp;
}

static void connected(struct verbs *v, struct verbs_qp *qp)
{
	struct verbs_app *a = verbs_app_of(v, qp);
	const struct cm_conn *c = &qp->id->conn;
	uint16_t payload = (uint16_t)RTE_MIN(128u << c->mtu, a->cfg.mtu);
	struct rc_config req = {
		.payload = payload,
		.window = v->nic->cfg.window,
		.ack_every = v->nic->cfg.ack_every,
		.timeout = rc_ack_timeout(c->ack_timeout),
		.retry_cnt = c->retry_count,
		.rnr_retry = c->rnr_retry,
		.max_rd_atomic = c->initiator_depth,
		.psn = c->sq_psn,
	};
	struct rc_responder_config resp = {
		.psn = c->rq_psn,
		.ack_every = v->nic->cfg.ack_every,
		.payload = payload,
		.strict = true,
		.min_rnr_timer = VERBS_RNR_TIMER,
		.memory = &v->memory,
		.rq = &qp->rq,
		.resources = qp->resources,
		.max_dest_rd_atomic = RTE_MIN(c->responder_resources, VERBS_RESOURCES),
	};

	rc_requester_init(&qp->req, &req, qp->sq, APP_DEPTH);
	rc_responder_init(&qp->resp, &resp);
	qp->peer_qpn = c->remote_qpn;
	qp->sport = roce_udp_sport(qp->qpn, qp->peer_qpn);
	memcpy(qp->peer_gid, c->remote_gid, GID_BYTES);
	qp->connected = true;
	a->ack_timeout = c->ack_timeout;
	node_event(&v->nic->node, qp->port, EV_CM_ESTABLISHED, qp->index / APP_CONNECTIONS,
		c->ack_timeout);
}

// ---- what applications call ------------------------------------------------------------------

static int reg_mr(const struct app_env *env, uint32_t bytes, unsigned access, struct app_mr *out)
{
	struct verbs *v = verbs_in(env);
	struct verbs_app *a = &v->apps[env->app];

	if (a->mr != NULL)
		return -EINVAL; // one each
	a->memory = calloc(1, bytes);
	if (a->memory == NULL)
		return -ENOMEM;
	a->mr = rc_mr_register(&v->memory, VERBS_MEMORY(env->app), bytes, (uint8_t)access,
		(uint8_t)(env->app + 1));
	if (a->mr == NULL)
		return -ENOMEM;
	*out = (struct app_mr){.bytes = a->memory,
		.addr = a->mr->addr,
		.length = bytes,
		.lkey = a->mr->lkey,
		.rkey = a->mr->rkey};
	return 0;
}

static int env_listen(const struct app_env *env, uint64_t service_id, enum cm_transport transport)
{
	return cm_listen(&verbs_in(env)->cm, service_id, transport, env->app);
}

static int env_connect(const struct app_env *env, const struct app_request *r, unsigned *conn)
{
	struct verbs *v = verbs_in(env);
	const struct nic_app_config *a = &v->apps[env->app].cfg;
	struct verbs_qp *qp = open_qp(v, env->app, a->port, r->transport);

	if (qp == NULL)
		return -ENOMEM;
	*conn = verbs_conn_of(qp);
	struct cm_connect c = {
		.service_id = r->service_id,
		.user = VERBS_USER(env->app, *conn),
		.qpn = qp->qpn,
		.psn = (uint32_t)(rng_next(&v->rng) >> 40),
		.port = (uint16_t)(RDMA_PORT_FIRST | qp->index),
		.transport = r->transport,
		.mtu = verbs_mtu_code(a->mtu),
		.responder_resources = RTE_MIN(r->responder_resources, VERBS_RESOURCES),
		.initiator_depth = r->initiator_depth,
		.retry_count = r->retry_count,
		.rnr_retry = r->rnr_retry,
		.traffic_class = (uint8_t)(a->dscp << 2),
		.hop_limit = NIC_DEFAULT_TTL,
	};
	nic_port_gid(&v->nic->ports[a->port].cfg, a->ipv6, c.local_gid);
	memcpy(c.remote_gid, r->gid, GID_BYTES);
	int ret = cm_connect(&v->cm, v->nic->node.now, &c, &qp->id);
	if (ret < 0) {
		qp->id = NULL;
		qp->used = false;
	}
	return ret;
}

static int env_accept(
	const struct app_env *env, unsigned conn, const void *private_data, uint8_t private_len)
{
	struct verbs *v = verbs_in(env);
	struct verbs_qp *qp = qp_in(env, conn);

	if (qp == NULL || qp->id == NULL)
		return -EINVAL;
	struct cm_accept a = {
		.qpn = qp->qpn,
		.psn = (uint32_t)(rng_next(&v->rng) >> 40),
		.qkey = CM_UD_QKEY,
		.responder_resources = RTE_MIN(qp->id->conn.responder_resources, VERBS_RESOURCES),
		.initiator_depth = CM_AS_ASKED,
		.rnr_retry = RC_RNR_INFINITE,
		.private_data = private_data,
		.private_len = private_len,
	};
	int ret = cm_accept(&v->cm, v->nic->node.now, qp->id, &a);
	if (ret == 0 && qp->transport != CM_UD)
		connected(v, qp);
	return ret;
}

static int env_reject(const struct app_env *env, unsigned conn)
{
	struct verbs *v = verbs_in(env);
	struct verbs_qp *qp = qp_in(env, conn);

	if (qp == NULL || qp->id == NULL)
		return -EINVAL;
	return cm_reject(&v->cm, v->nic->node.now, qp->id, CM_REJ_CONSUMER, NULL, 0);
}

// Nothing more is sent; what the peer repeats is still answered, until the connection is gone.
static void stop_sending(struct verbs_qp *qp)
{
	if (qp->connected && qp->transport != CM_UD)
		rc_error(&qp->req, WC_WR_FLUSH_ERR);
}

static int env_disconnect(const struct app_env *env, unsigned conn)
{
	struct verbs *v = verbs_in(env);
	struct verbs_qp *qp = qp_in(env, conn);

	if (qp == NULL || qp->id == NULL)
		return -EINVAL;
	stop_sending(qp);
	return cm_disconnect(&v->cm, v->nic->node.now, qp->id);
}

static int env_destroy(const struct app_env *env, unsigned conn)
{
	struct verbs *v = verbs_in(env);
	struct verbs_qp *qp = qp_in(env, conn);

	if (qp == NULL)
		return -EINVAL;
	if (qp->id != NULL)
		cm_destroy(&v->cm, v->nic->node.now, qp->id);
	qp->id = NULL;
	qp->used = qp->connected = false;
	return 0;
}

static int env_post_send(const struct app_env *env, unsigned conn, const struct app_wr *wr)
{
	struct verbs *v = verbs_in(env);
	struct verbs_qp *qp = qp_in(env, conn);
	bool ud = qp != NULL && qp->transport == CM_UD;

	if (qp == NULL || !qp->connected || ud != (wr->dest != NULL) ||
		!rc_mr_allows(&v->memory, wr->lkey, wr->local, wr->length, 0))
		return -EINVAL;
	struct rc_wr r = {.wr_id = wr->wr_id,
		.repeat = 1,
		.local = wr->local,
		.remote_addr = wr->remote_addr,
		.compare = wr->compare,
		.swap_add = wr->swap_add,
		.length = wr->length,
		.rkey = wr->rkey,
		.imm = wr->imm,
		.op = wr->op,
		.signaled = true};
	uint32_t place = qp->req.tail & (APP_DEPTH - 1);
	int ret = ud ? ud_post_send(&qp->req, &r) : rc_post_send(&qp->req, &r);
	if (ret == -EPIPE) // it completes flushed
		ret = 0;
	if (ret == 0 && ud)
		qp->dest[place] = *wr->dest;
	if (ret == 0)
		verbs_wake(v, qp);
	return ret;
}

static int env_post_recv(const struct app_env *env, unsigned conn, const struct app_recv *r)
{
	struct verbs *v = verbs_in(env);
	struct verbs_qp *qp = qp_in(env, conn);

	if (qp == NULL ||
		!rc_mr_allows(&v->memory, r->lkey, r->addr, r->length, ACCESS_LOCAL_WRITE))
		return -EINVAL;
	return rc_post_recv(&qp->rq,
		       &(struct rc_recv){.wr_id = r->wr_id, .addr = r->addr, .length = r->length})
		       ? 0
		       : -ENOMEM;
}

static uint32_t env_qpn(const struct app_env *env, unsigned conn)
{
	const struct verbs_qp *qp = qp_in(env, conn);

	return qp != NULL ? qp->qpn : 0;
}

const struct app_env_ops verbs_env_ops = {
	.reg_mr = reg_mr,
	.listen = env_listen,
	.connect = env_connect,
	.accept = env_accept,
	.reject = env_reject,
	.disconnect = env_disconnect,
	.destroy = env_destroy,
	.post_send = env_post_send,
	.post_recv = env_post_recv,
	.qpn = env_qpn,
};

// ---- what the connection manager says --------------------------------------------------------

// Somebody wants to connect. False: there is no queue pair for him.
static bool requested(struct verbs *v, const struct cm_event *e)
{
	int port = verbs_port_of(v->nic, e->id->conn.local_gid);
	struct verbs_qp *qp =
		port < 0 ? NULL
			 : open_qp(v, (unsigned)e->listener, (unsigned)port, e->id->conn.transport);

	if (qp == NULL) {
		cm_reject(&v->cm, v->nic->node.now, e->id, CM_REJ_NO_QP, NULL, 0);
		cm_destroy(&v->cm, v->nic->node.now, e->id);
		return false;
	}
	qp->id = e->id;
	e->id->user = qp->index;
	return true;
}

void verbs_cm_event(struct verbs *v, const struct cm_event *e)
{
	if (e->type == CM_EV_CONNECT_REQUEST && !requested(v, e))
		return;
	struct verbs_qp *qp = v->qps[e->id->user];
	if (e->type == CM_EV_ESTABLISHED && !qp->connected)
		connected(v, qp);
	else if (e->type == CM_EV_DISCONNECTED)
		stop_sending(qp);
	struct app_cm_event ev = {
		.type = e->type,
		.conn = verbs_conn_of(qp),
		.status = e->status,
		.peer = &e->id->conn,
		.private_data = e->private_data,
		.private_len = e->private_len,
	};
	app_cm(verbs_app_of(v, qp)->app, &ev);
}
