/* SPDX-License-Identifier: BSD-3-Clause */
// Messages that come in, one function for each kind. Protocol and invariants: cm.c.
#include "models/cm_priv.h"

static bool is_live(const struct cm_id *id)
{
	return id->state >= CM_REQ_SENT && id->state <= CM_DREQ_SENT;
}

struct cm_id *cm_find_remote(struct cm *cm, uint64_t guid, uint32_t remote_comm_id)
{
	for (struct cm_id *id = cm->ids; id < cm->ids + cm->n_ids; id++)
		if ((is_live(id) || id->state == CM_TIMEWAIT) && !cm_has_asked(id) &&
			id->remote_guid == guid && id->remote_comm_id == remote_comm_id)
			return id;
	return NULL;
}

// The connection with this queue pair of the peer's, if there is one: not a question of ours.
static struct cm_id *find_remote_qpn(struct cm *cm, uint64_t guid, uint32_t qpn)
{
	for (struct cm_id *id = cm->ids; id < cm->ids + cm->n_ids; id++)
		if (is_live(id) && !cm_has_asked(id) && id->remote_guid == guid &&
			id->conn.remote_qpn == qpn)
			return id;
	return NULL;
}

struct cm_id *cm_find_both(
	struct cm *cm, const struct cm_source *from, uint32_t comm_id, uint32_t remote_comm_id)
{
	struct cm_id *id = cm_by_comm_id(cm, comm_id);

	if (id != NULL && id->remote_comm_id == remote_comm_id && id->conn.transport != CM_UD &&
		cm_is_from_peer(from, id))
		return id;
	cm->counters.rx_unmatched++;
	return NULL;
}

struct cm_id *cm_find_question(struct cm *cm, const struct cm_source *from, uint32_t comm_id)
{
	struct cm_id *id = cm_by_comm_id(cm, comm_id);

	return id != NULL && cm_has_asked(id) && cm_is_from_peer(from, id) ? id : NULL;
}

// Refuses a message for which there is no ID.
static void reject_message(struct cm *cm, const struct cm_source *from, const struct cm_mad *m,
	enum cm_answered what, uint16_t reason, const void *info, uint8_t info_len)
{
	struct cm_mad answer;

	cm_mad_init(&answer, CM_ATTR_REJ, m->hdr.tid);
	if (what == CM_ANSWERS_REQ) {
		answer.rej.remote_comm_id = m->req.local_comm_id;
	} else {
		answer.rej.remote_comm_id = m->rep.local_comm_id;
		answer.rej.local_comm_id = m->rep.remote_comm_id;
	}
	answer.rej.message_rejected = (uint8_t)what;
	answer.rej.reason = reason;
	answer.rej.info_length = info_len;
	if (info_len != 0)
		memcpy(answer.rej.info, info, info_len);
	cm_send(cm, &answer, from->dst_gid, from->src_gid);
}

// ---- REQ --------------------------------------------------------------------------------------

static void again_req(struct cm *cm, const struct cm_source *from, struct cm_id *id)
{
	struct cm_mad m;

	cm->counters.rx_duplicates++;
	switch (id->state) {
	case CM_REQ_RCVD:
	case CM_MRA_REQ_SENT: // the application takes its time
		cm_format_mra(cm, id, &m);
		cm_send_id(cm, id, &m);
		cm_set_state(id, CM_MRA_REQ_SENT);
		break;
	case CM_REP_SENT:
		cm_repeat(cm, id);
		break;
	case CM_TIMEWAIT:
		cm_format_rej(cm, id, CM_REJ_STALE_CONN, &m);
		cm_send(cm, &m, from->dst_gid, from->src_gid);
		break;
	}
}

// 0, or why the request cannot be granted whatever the application says.
static uint16_t check_req(const struct cm *cm, const struct cm_source *from, const struct cm_req *q,
	const struct cm_listener *l, uint16_t *port)
{
	if (l == NULL)
		return CM_REJ_INVALID_SERVICE_ID;
	if (q->transport != l->transport)
		return CM_REJ_INVALID_TRANSPORT;
	if (memcmp(q->primary_remote_gid, from->dst_gid, GID_BYTES) != 0)
		return CM_REJ_INVALID_GID;
	if (q->path_mtu < 1 || q->path_mtu > cm->cfg.mtu)
		return CM_REJ_INVALID_MTU;
	if (!cm_check_cma_header(q->private_data, q->service_id, port))
		return CM_REJ_CONSUMER;
	return 0;
}

static void new_connection(struct cm *cm, const struct cm_mad *m, struct cm_id *id, uint16_t port)
{
	const struct cm_req *q = &m->req;

	id->service_id = q->service_id;
	id->tid = m->hdr.tid;
	id->remote_comm_id = q->local_comm_id;
	id->remote_guid = q->local_ca_guid;
	id->max_retries = q->max_cm_retries;
	id->interval = cm_time(q->local_response_timeout);
	cm_conn_from_req(&id->conn, q);
	id->conn.remote_port = port;
	cm_set_state(id, CM_REQ_RCVD);
}

// The peer has begun a new life on a queue pair that is still connected here.
static void end_stale(struct cm *cm, const struct cm_source *from, struct cm_id *id)
{
	if (id->state == CM_ESTABLISHED)
		cm_disconnect(cm, from->now, id);
}

static void rx_req(struct cm *cm, const struct cm_source *from, const struct cm_mad *m)
{
	const struct cm_req *q = &m->req;
	const struct cm_listener *l = cm_find_listener(cm, q->service_id);
	uint16_t port;

	struct cm_id *id = cm_find_remote(cm, q->local_ca_guid, q->local_comm_id);
	if (id != NULL) {
		again_req(cm, from, id);
		return;
	}
	id = find_remote_qpn(cm, q->local_ca_guid, q->local_qpn);
	if (id != NULL) {
		reject_message(cm, from, m, CM_ANSWERS_REQ, CM_REJ_STALE_CONN, NULL, 0);
		end_stale(cm, from, id);
		return;
	}
	uint16_t reason = check_req(cm, from, q, l, &port);
	if (reason == 0 && (id = cm_alloc_id(cm)) == NULL)
		reason = CM_REJ_NO_RESOURCES;
	if (reason != 0) {
		// Only an MTU that is too large needs to be told what would do.
		uint8_t mtu = cm->cfg.mtu;
		reject_message(
			cm, from, m, CM_ANSWERS_REQ, reason, &mtu, reason == CM_REJ_INVALID_MTU);
		return;
	}
	new_connection(cm, m, id, port);
	struct cm_event *e = cm_tell(cm, id, CM_EV_CONNECT_REQUEST, 0);
	unsigned header = cm_header_bytes(q->service_id);
	e->listener = l->user;
	cm_tell_private(e, q->private_data + header, sizeof(q->private_data) - header);
}

// ---- REP --------------------------------------------------------------------------------------

static void again_rep(struct cm *cm, const struct cm_source *from, const struct cm_mad *m)
{
	struct cm_id *id = cm_by_comm_id(cm, m->rep.remote_comm_id);

	if (id != NULL && id->state != CM_IDLE && id->remote_comm_id == m->rep.local_comm_id) {
		cm->counters.rx_duplicates++;
		if (id->state == CM_ESTABLISHED)
			cm_repeat(cm, id); // the RTU
		return;
	}
	// Something we do not want any more: the peer need not go on asking.
	cm->counters.rx_unmatched++;
	reject_message(cm, from, m, CM_ANSWERS_REP, CM_REJ_INVALID_COMM_ID, NULL, 0);
}

static void rx_rep(struct cm *cm, const struct cm_source *from, const struct cm_mad *m)
{
	const struct cm_rep *p = &m->rep;
	struct cm_id *id = cm_find_question(cm, from, p->remote_comm_id);

	if (id == NULL) {
		again_rep(cm, from, m);
		return;
	}
	struct cm_id *stale = find_remote_qpn(cm, p->local_ca_guid, p->local_qpn);
	if (stale != NULL) {
		reject_message(cm, from, m, CM_ANSWERS_REP, CM_REJ_STALE_CONN, NULL, 0);
		end_stale(cm, from, stale);
		cm_tell(cm, id, CM_EV_REJECTED, CM_REJ_STALE_CONN);
		cm_enter_idle(id);
		return;
	}
	id->remote_comm_id = p->local_comm_id;
	id->remote_guid = p->local_ca_guid;
	cm_conn_from_rep(&id->conn, p);
	// What was added for our own delay was a guess at the peer's.
	id->conn.ack_timeout = cm_ack_timeout(p->target_ack_delay, cm->cfg.packet_lifetime);

	struct cm_mad rtu;
	cm_format_rtu(id, &rtu);
	cm_send_id(cm, id, &rtu);
	cm_set_state(id, CM_ESTABLISHED);
	struct cm_event *e = cm_tell(cm, id, CM_EV_ESTABLISHED, 0);
	cm_tell_private(e, p->private_data, sizeof(p->private_data));
}

// ---- RTU, MRA ---------------------------------------------------------------------------------

static void rx_rtu(struct cm *cm, const struct cm_source *from, const struct cm_mad *m)
{
	struct cm_id *id = cm_find_both(cm, from, m->rtu.remote_comm_id, m->rtu.local_comm_id);

	if (id == NULL)
		return;
	if (!cm_has_accepted(id)) {
		cm->counters.rx_duplicates++;
		return;
	}
	cm_set_state(id, CM_ESTABLISHED);
	struct cm_event *e = cm_tell(cm, id, CM_EV_ESTABLISHED, 0);
	cm_tell_private(e, m->rtu.private_data, sizeof(m->rtu.private_data));
}

// The peer has the message and needs time: the next repetition is put off.
static void rx_mra(struct cm *cm, const struct cm_source *from, const struct cm_mad *m)
{
	const struct cm_mra *a = &m->mra;
	struct cm_id *id = cm_by_comm_id(cm, a->remote_comm_id);
	simtime_t until = from->now + cm_time(a->service_timeout) + cm_req_interval(cm);

	if (id == NULL || !cm_is_from_peer(from, id)) {
		cm->counters.rx_unmatched++;
	} else if (id->state == CM_REQ_SENT && a->message_mraed == CM_ANSWERS_REQ) {
		id->state = CM_MRA_REQ_RCVD;
		id->deadline = until;
	} else if (id->state == CM_REP_SENT && a->message_mraed == CM_ANSWERS_REP) {
		id->state = CM_MRA_REP_RCVD;
		id->deadline = until;
	} else {
		cm->counters.rx_duplicates++;
	}
}

// ---- all --------------------------------------------------------------------------------------

static void dispatch(struct cm *cm, const struct cm_source *from, const struct cm_mad *m)
{
	switch (m->hdr.attr_id) {
	case CM_ATTR_REQ:
		rx_req(cm, from, m);
		break;
	case CM_ATTR_MRA:
		rx_mra(cm, from, m);
		break;
	case CM_ATTR_REJ:
		cm_rx_rej(cm, from, m);
		break;
	case CM_ATTR_REP:
		rx_rep(cm, from, m);
		break;
	case CM_ATTR_RTU:
		rx_rtu(cm, from, m);
		break;
	case CM_ATTR_DREQ:
		cm_rx_dreq(cm, from, m);
		break;
	case CM_ATTR_DREP:
		cm_rx_drep(cm, from, m);
		break;
	case CM_ATTR_SIDR_REQ:
		cm_rx_sidr_req(cm, from, m);
		break;
	case CM_ATTR_SIDR_REP:
		cm_rx_sidr_rep(cm, from, m);
		break;
	default: // LAP, APR: no alternate paths
		cm->counters.rx_unmatched++;
	}
}

// The most that one message can lead to: a REJ and a DREQ, and an event for each of two IDs.
#define MADS_PER_MESSAGE   2
#define EVENTS_PER_MESSAGE 2

void cm_rx(struct cm *cm, simtime_t now, const uint8_t src_gid[GID_BYTES],
	const uint8_t dst_gid[GID_BYTES], const uint8_t *mad, uint32_t len)
{
	struct cm_source from = {.src_gid = src_gid, .dst_gid = dst_gid, .now = now};
	struct cm_mad m;

	cm->counters.rx_mads++;
	if (cm_mad_parse(mad, len, &m) != MAD_OK) {
		cm->counters.rx_malformed++;
		return;
	}
	if (!cm_has_room(cm, MADS_PER_MESSAGE, EVENTS_PER_MESSAGE)) {
		cm->counters.rx_no_room++;
		return;
	}
	dispatch(cm, &from, &m);
	cm_update_deadline(cm);
}
