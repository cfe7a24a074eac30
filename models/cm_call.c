/* SPDX-License-Identifier: BSD-3-Clause */
// What an application asks of the connection manager. Protocol and invariants: cm.c.
#include "models/cm_priv.h"

#include <assert.h>

static uint64_t new_tid(const struct cm *cm, const struct cm_id *id)
{
	return cm->cfg.guid << 32 | id->comm_id;
}

static void own_part(struct cm_conn *conn, const struct cm *cm, const struct cm_connect *c)
{
	*conn = (struct cm_conn){
		.local_qpn = c->qpn,
		.rq_psn = c->psn,
		.flow_label = c->flow_label,
		.transport = c->transport,
		.mtu = c->mtu,
		.responder_resources = c->responder_resources,
		.initiator_depth = c->initiator_depth,
		.ack_timeout = cm_ack_timeout(cm->cfg.ack_delay, cm->cfg.packet_lifetime),
		.retry_count = c->retry_count,
		.rnr_retry = c->rnr_retry,
		.traffic_class = c->traffic_class,
		.hop_limit = c->hop_limit,
	};
	memcpy(conn->local_gid, c->local_gid, GID_BYTES);
	memcpy(conn->remote_gid, c->remote_gid, GID_BYTES);
}

int cm_connect(struct cm *cm, simtime_t now, const struct cm_connect *c, struct cm_id **out)
{
	struct cm_mad m;

	if (c->private_len > cm_private_room(c->service_id, (enum cm_transport)c->transport))
		return -EINVAL;
	if (c->transport != CM_UD && (c->mtu < 1 || c->mtu > cm->cfg.mtu))
		return -EINVAL;
	if (!cm_has_room(cm, 1, 0))
		return -EAGAIN;
	struct cm_id *id = cm_alloc_id(cm);
	if (id == NULL)
		return -ENOMEM;

	id->user = c->user;
	id->service_id = c->service_id;
	id->active = true;
	id->tid = new_tid(cm, id);
	id->max_retries = cm->cfg.max_retries;
	own_part(&id->conn, cm, c);
	if (c->transport == CM_UD) {
		cm_format_sidr_req(id, c, &m);
		cm_await(id, CM_SIDR_REQ_SENT, now, cm_time(cm->cfg.response_timeout));
	} else {
		cm_format_req(cm, id, c, &m);
		cm_await(id, CM_REQ_SENT, now, cm_req_interval(cm));
	}
	cm_send_id(cm, id, &m);
	cm_update_deadline(cm);
	*out = id;
	return 0;
}

static uint8_t at_most(uint8_t wanted, uint8_t asked)
{
	return wanted < asked ? wanted : asked;
}

int cm_accept(struct cm *cm, simtime_t now, struct cm_id *id, const struct cm_accept *a)
{
	struct cm_mad m;

	if (id->state == CM_SIDR_REQ_RCVD) {
		id->conn.local_qpn = a->qpn;
		id->conn.qkey = a->qkey;
		return cm_sidr_answer(cm, now, id, CM_SIDR_OK, a->private_data, a->private_len);
	}
	if (id->state != CM_REQ_RCVD && id->state != CM_MRA_REQ_SENT)
		return -EINVAL;
	if (a->private_len > sizeof(m.rep.private_data))
		return -EINVAL;
	if (!cm_has_room(cm, 1, 0))
		return -EAGAIN;

	struct cm_conn *conn = &id->conn;
	conn->local_qpn = a->qpn;
	conn->rq_psn = a->psn;
	conn->responder_resources = at_most(a->responder_resources, conn->responder_resources);
	conn->initiator_depth = at_most(a->initiator_depth, conn->initiator_depth);
	cm_format_rep(cm, id, a, &m);
	cm_send_id(cm, id, &m);
	cm_await(id, CM_REP_SENT, now, id->interval);
	cm_update_deadline(cm);
	return 0;
}

// Says no with a REJ; after that nothing, or TIMEWAIT if the peer may have begun to send.
static void refuse(struct cm *cm, simtime_t now, struct cm_id *id, uint16_t reason,
	const void *private_data, unsigned private_len)
{
	bool accepted = id->state == CM_REP_SENT || id->state == CM_MRA_REP_RCVD;
	struct cm_mad m;

	cm_format_rej(cm, id, reason, &m);
	if (private_len != 0)
		memcpy(m.rej.private_data, private_data, private_len);
	cm_send_id(cm, id, &m);
	if (accepted)
		cm_enter_timewait(id, now);
	else
		cm_set_state(id, CM_IDLE);
}

int cm_reject(struct cm *cm, simtime_t now, struct cm_id *id, uint16_t reason,
	const void *private_data, uint8_t private_len)
{
	if (id->state == CM_SIDR_REQ_RCVD)
		return cm_sidr_answer(cm, now, id, CM_SIDR_REJECT, private_data, private_len);
	if (id->state != CM_REQ_RCVD && id->state != CM_MRA_REQ_SENT && id->state != CM_REP_SENT &&
		id->state != CM_MRA_REP_RCVD)
		return -EINVAL;
	if (private_len > sizeof(((struct cm_rej *)0)->private_data))
		return -EINVAL;
	if (!cm_has_room(cm, 1, 0))
		return -EAGAIN;
	refuse(cm, now, id, reason, private_data, private_len);
	cm_update_deadline(cm);
	return 0;
}

int cm_established(struct cm *cm, simtime_t now, struct cm_id *id)
{
	if (id->state != CM_REP_SENT && id->state != CM_MRA_REP_RCVD)
		return 0;
	if (!cm_has_room(cm, 0, 1))
		return -EAGAIN;
	cm_set_state(id, CM_ESTABLISHED);
	cm_tell(cm, id, CM_EV_ESTABLISHED, 0);
	cm_update_deadline(cm);
	return 0;
}

static void disconnect(struct cm *cm, simtime_t now, struct cm_id *id)
{
	struct cm_mad m;

	id->tid = new_tid(cm, id);
	cm_format_dreq(id, &m);
	cm_send_id(cm, id, &m);
	id->max_retries = cm->cfg.max_retries;
	cm_await(id, CM_DREQ_SENT, now, cm_req_interval(cm));
}

int cm_disconnect(struct cm *cm, simtime_t now, struct cm_id *id)
{
	if (!cm_has_room(cm, 1, 0))
		return -EAGAIN;
	if (id->state == CM_ESTABLISHED)
		disconnect(cm, now, id);
	else if (id->state == CM_REP_SENT || id->state == CM_MRA_REP_RCVD)
		refuse(cm, now, id, CM_REJ_CONSUMER, NULL, 0);
	cm_update_deadline(cm);
	return 0;
}

// Events that wait for an application that has let go.
static void forget_events(struct cm *cm, const struct cm_id *id)
{
	for (unsigned i = cm->ev_tail; i != cm->ev_head; i++)
		if (cm->events[i % CM_QUEUE].id == id)
			cm->events[i % CM_QUEUE].id = NULL;
}

int cm_destroy(struct cm *cm, simtime_t now, struct cm_id *id)
{
	assert(!id->orphan && id->state != CM_FREE);
	if (!cm_has_room(cm, 1, 0))
		return -EAGAIN;
	forget_events(cm, id);
	switch (id->state) {
	case CM_REQ_SENT:
	case CM_MRA_REQ_RCVD:
		refuse(cm, now, id, CM_REJ_TIMEOUT, NULL, 0);
		break;
	case CM_REQ_RCVD:
	case CM_MRA_REQ_SENT:
	case CM_REP_SENT:
	case CM_MRA_REP_RCVD:
		refuse(cm, now, id, CM_REJ_CONSUMER, NULL, 0);
		break;
	case CM_ESTABLISHED:
		disconnect(cm, now, id);
		break;
	case CM_SIDR_REQ_SENT:
		cm_set_state(id, CM_IDLE);
		break;
	case CM_SIDR_REQ_RCVD:
		cm_sidr_answer(cm, now, id, CM_SIDR_REJECT, NULL, 0);
		break;
	}
	id->orphan = true;
	if (id->state == CM_IDLE)
		cm_free_id(id);
	cm_update_deadline(cm);
	return 0;
}
