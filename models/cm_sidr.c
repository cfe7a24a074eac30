/* SPDX-License-Identifier: BSD-3-Clause */
// Datagram services: one question, one answer (IBTA vol. 1, 12.11). Only the question is repeated
// by a timer. The answer is kept for as long as its asker may ask again, so that a question whose
// answer was lost does not reach the application twice; slots with such answers are given up when
// others need them.
#include "models/cm_priv.h"

// An asker is known by its request ID and its GID.
static struct cm_id *find_asker(struct cm *cm, uint32_t request_id, const uint8_t gid[GID_BYTES])
{
	for (struct cm_id *id = cm->ids; id < cm->ids + cm->n_ids; id++)
		if ((id->state == CM_SIDR_REQ_RCVD || id->state == CM_SIDR_REP_SENT) &&
			id->remote_comm_id == request_id &&
			memcmp(id->conn.remote_gid, gid, GID_BYTES) == 0)
			return id;
	return NULL;
}

static void again(struct cm *cm, struct cm_id *id)
{
	cm->counters.rx_duplicates++;
	if (id->state == CM_SIDR_REP_SENT)
		cm_repeat(cm, id);
}

static void unsupported(struct cm *cm, const struct cm_source *from, const struct cm_mad *m)
{
	struct cm_mad answer;

	cm_mad_init(&answer, CM_ATTR_SIDR_REP, m->hdr.tid);
	answer.sidr_rep.request_id = m->sidr_req.request_id;
	answer.sidr_rep.status = CM_SIDR_UNSUPPORTED;
	answer.sidr_rep.service_id = m->sidr_req.service_id;
	cm_send(cm, &answer, from->dst_gid, from->src_gid);
}

void cm_rx_sidr_req(struct cm *cm, const struct cm_source *from, const struct cm_mad *m)
{
	const struct cm_sidr_req *q = &m->sidr_req;
	const struct cm_listener *l = cm_find_listener(cm, q->service_id);
	struct cm_id *id = find_asker(cm, q->request_id, from->src_gid);
	uint16_t port;

	if (id != NULL) {
		again(cm, id);
		return;
	}
	if (l == NULL || l->transport != CM_UD ||
		!cm_check_cma_header(q->private_data, q->service_id, &port)) {
		unsupported(cm, from, m);
		return;
	}
	id = cm_alloc_id(cm);
	if (id == NULL) {
		cm->counters.rx_no_room++;
		return;
	}
	id->tid = m->hdr.tid;
	id->service_id = q->service_id;
	id->remote_comm_id = q->request_id;
	id->conn = (struct cm_conn){.transport = CM_UD, .remote_port = port, .mtu = cm->cfg.mtu};
	memcpy(id->conn.local_gid, from->dst_gid, GID_BYTES);
	memcpy(id->conn.remote_gid, from->src_gid, GID_BYTES);
	cm_set_state(id, CM_SIDR_REQ_RCVD);

	struct cm_event *e = cm_tell(cm, id, CM_EV_CONNECT_REQUEST, 0);
	unsigned header = cm_header_bytes(q->service_id);
	e->listener = l->user;
	cm_tell_private(e, q->private_data + header, sizeof(q->private_data) - header);
}

int cm_sidr_answer(struct cm *cm, simtime_t now, struct cm_id *id, enum cm_sidr_status status,
	const void *private_data, unsigned private_len)
{
	struct cm_mad m;

	if (private_len > sizeof(m.sidr_rep.private_data))
		return -EINVAL;
	if (!cm_has_room(cm, 1, 0))
		return -EAGAIN;
	cm_format_sidr_rep(id, status, &m);
	if (private_len != 0)
		memcpy(m.sidr_rep.private_data, private_data, private_len);
	cm_send_id(cm, id, &m);
	id->state = CM_SIDR_REP_SENT;
	// As long as an asker with our settings may go on asking.
	id->deadline = now + (cm->cfg.max_retries + 1) * cm_time(cm->cfg.response_timeout);
	cm_update_deadline(cm);
	return 0;
}

void cm_rx_sidr_rep(struct cm *cm, const struct cm_source *from, const struct cm_mad *m)
{
	const struct cm_sidr_rep *p = &m->sidr_rep;
	struct cm_id *id = cm_by_comm_id(cm, p->request_id);

	if (id == NULL || !id->active || id->conn.transport != CM_UD) {
		cm->counters.rx_unmatched++;
		return;
	}
	if (id->state != CM_SIDR_REQ_SENT) {
		cm->counters.rx_duplicates++;
		return;
	}
	cm_set_state(id, CM_IDLE);
	struct cm_event *e;
	if (p->status == CM_SIDR_OK) {
		id->conn.remote_qpn = p->qpn;
		id->conn.qkey = p->qkey;
		e = cm_tell(cm, id, CM_EV_ESTABLISHED, 0);
	} else {
		e = cm_tell(cm, id, CM_EV_REJECTED, p->status);
	}
	cm_tell_private(e, p->private_data, sizeof(p->private_data));
}
