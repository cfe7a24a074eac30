/* SPDX-License-Identifier: BSD-3-Clause */
// What the messages of the connection manager say: from an ID's state into fields, and from fields
// into a connection. Sources and protocol: cm.c.
//
// Numbers of READs and atomics cross over: what one side serves (responder resources) is what the
// other may have outstanding (initiator depth), and both fields are written from the sender's view.
// So do PSNs: "starting PSN" is what the sender of the message wants to receive first.
#include "models/cm_priv.h"

#define LID_PERMISSIVE 0xffff // on Ethernet there are no LIDs
#define PKEY_DEFAULT   BTH_PKEY_DEFAULT

uint8_t cm_ack_timeout(uint8_t ack_delay, uint8_t packet_lifetime)
{
	// 2 * lifetime + delay as one exponent, rounded up when the smaller counts for half or
	// more: cm_ack_timeout() of Linux.
	int there_and_back = packet_lifetime + 1;
	int t = there_and_back >= ack_delay ? there_and_back + (ack_delay >= there_and_back - 1)
					    : ack_delay + (there_and_back >= ack_delay - 1);

	return (uint8_t)(t < 31 ? t : 31);
}

// ---- private data -----------------------------------------------------------------------------

void cm_put_private(uint8_t *field, uint64_t service_id, const struct cm_connect *c)
{
	unsigned header = cm_header_bytes(service_id);

	if (header != 0) {
		struct cma_header h = {
			.version = CMA_VERSION,
			.ip_version = gid_is_ipv4(c->local_gid) ? 4 : 6,
			.port = c->port,
		};
		memcpy(h.src, c->local_gid, GID_BYTES);
		memcpy(h.dst, c->remote_gid, GID_BYTES);
		cma_header_build(&h, field);
	}
	if (c->private_len != 0)
		memcpy(field + header, c->private_data, c->private_len);
}

bool cm_check_cma_header(const uint8_t *field, uint64_t service_id, uint16_t *port)
{
	struct cma_header h;

	*port = 0;
	if (cm_header_bytes(service_id) == 0)
		return true;
	cma_header_parse(field, &h);
	*port = h.port;
	return h.version == CMA_VERSION && (h.ip_version == 4 || h.ip_version == 6);
}

unsigned cm_private_room(uint64_t service_id, enum cm_transport transport)
{
	unsigned field = transport == CM_UD ? sizeof(((struct cm_sidr_req *)0)->private_data)
					    : sizeof(((struct cm_req *)0)->private_data);

	return field - cm_header_bytes(service_id);
}

// ---- out --------------------------------------------------------------------------------------

void cm_format_req(
	const struct cm *cm, const struct cm_id *id, const struct cm_connect *c, struct cm_mad *m)
{
	cm_mad_init(m, CM_ATTR_REQ, id->tid);
	struct cm_req *q = &m->req;
	q->local_comm_id = id->comm_id;
	q->service_id = id->service_id;
	q->local_ca_guid = cm->cfg.guid;
	q->local_qpn = c->qpn;
	q->responder_resources = c->responder_resources;
	q->initiator_depth = c->initiator_depth;
	q->remote_response_timeout = cm->cfg.response_timeout;
	q->transport = c->transport;
	q->starting_psn = c->psn;
	q->local_response_timeout = cm->cfg.response_timeout;
	q->retry_count = c->retry_count;
	q->pkey = PKEY_DEFAULT;
	q->path_mtu = c->mtu;
	q->rnr_retry_count = c->rnr_retry;
	q->max_cm_retries = cm->cfg.max_retries;
	q->primary_local_lid = LID_PERMISSIVE;
	q->primary_remote_lid = LID_PERMISSIVE;
	memcpy(q->primary_local_gid, c->local_gid, GID_BYTES);
	memcpy(q->primary_remote_gid, c->remote_gid, GID_BYTES);
	q->primary_flow_label = c->flow_label;
	q->primary_traffic_class = c->traffic_class;
	q->primary_hop_limit = c->hop_limit;
	q->primary_ack_timeout = cm_ack_timeout(cm->cfg.ack_delay, cm->cfg.packet_lifetime);
	cm_put_private(q->private_data, id->service_id, c);
}

void cm_format_rep(
	const struct cm *cm, const struct cm_id *id, const struct cm_accept *a, struct cm_mad *m)
{
	cm_mad_init(m, CM_ATTR_REP, id->tid);
	struct cm_rep *p = &m->rep;
	p->local_comm_id = id->comm_id;
	p->remote_comm_id = id->remote_comm_id;
	p->local_qpn = id->conn.local_qpn;
	p->starting_psn = id->conn.rq_psn;
	p->responder_resources = id->conn.responder_resources;
	p->initiator_depth = id->conn.initiator_depth;
	p->target_ack_delay = cm->cfg.ack_delay;
	p->rnr_retry_count = a->rnr_retry;
	p->local_ca_guid = cm->cfg.guid;
	if (a->private_len != 0)
		memcpy(p->private_data, a->private_data, a->private_len);
}

void cm_format_rtu(const struct cm_id *id, struct cm_mad *m)
{
	cm_mad_init(m, CM_ATTR_RTU, id->tid);
	m->rtu.local_comm_id = id->comm_id;
	m->rtu.remote_comm_id = id->remote_comm_id;
}

void cm_format_mra(const struct cm *cm, const struct cm_id *id, struct cm_mad *m)
{
	cm_mad_init(m, CM_ATTR_MRA, id->tid);
	m->mra.local_comm_id = id->comm_id;
	m->mra.remote_comm_id = id->remote_comm_id;
	m->mra.message_mraed = CM_ANSWERS_REQ;
	m->mra.service_timeout = cm->cfg.service_timeout;
}

void cm_format_dreq(const struct cm_id *id, struct cm_mad *m)
{
	cm_mad_init(m, CM_ATTR_DREQ, id->tid);
	m->dreq.local_comm_id = id->comm_id;
	m->dreq.remote_comm_id = id->remote_comm_id;
	m->dreq.remote_qpn = id->conn.remote_qpn;
}

void cm_format_drep(const struct cm_id *id, struct cm_mad *m)
{
	cm_mad_init(m, CM_ATTR_DREP, id->tid);
	m->drep.local_comm_id = id->comm_id;
	m->drep.remote_comm_id = id->remote_comm_id;
}

// Which message is refused follows from the state. A timeout names the adapter, because the peer
// may not know our ID yet (IBTA table 109, reason 4).
void cm_format_rej(const struct cm *cm, const struct cm_id *id, uint16_t reason, struct cm_mad *m)
{
	cm_mad_init(m, CM_ATTR_REJ, id->tid);
	struct cm_rej *j = &m->rej;
	bool asked = id->state == CM_REQ_RCVD || id->state == CM_MRA_REQ_SENT;
	j->local_comm_id = id->comm_id;
	j->remote_comm_id = id->remote_comm_id;
	j->message_rejected = asked ? CM_ANSWERS_REQ : CM_ANSWERS_OTHER;
	j->reason = reason;
	if (reason == CM_REJ_TIMEOUT) {
		put_be64(j->info, cm->cfg.guid);
		j->info_length = sizeof(cm->cfg.guid);
	}
}

void cm_format_sidr_req(const struct cm_id *id, const struct cm_connect *c, struct cm_mad *m)
{
	cm_mad_init(m, CM_ATTR_SIDR_REQ, id->tid);
	m->sidr_req.request_id = id->comm_id;
	m->sidr_req.pkey = PKEY_DEFAULT;
	m->sidr_req.service_id = id->service_id;
	cm_put_private(m->sidr_req.private_data, id->service_id, c);
}

void cm_format_sidr_rep(const struct cm_id *id, enum cm_sidr_status status, struct cm_mad *m)
{
	cm_mad_init(m, CM_ATTR_SIDR_REP, id->tid);
	m->sidr_rep.request_id = id->remote_comm_id;
	m->sidr_rep.status = (uint8_t)status;
	m->sidr_rep.service_id = id->service_id;
	if (status == CM_SIDR_OK) {
		m->sidr_rep.qpn = id->conn.local_qpn;
		m->sidr_rep.qkey = id->conn.qkey;
	}
}

// ---- in ---------------------------------------------------------------------------------------

void cm_conn_from_req(struct cm_conn *conn, const struct cm_req *q)
{
	*conn = (struct cm_conn){
		.remote_qpn = q->local_qpn,
		.sq_psn = q->starting_psn,
		.flow_label = q->primary_flow_label,
		.transport = q->transport,
		.mtu = q->path_mtu,
		.responder_resources = q->initiator_depth,
		.initiator_depth = q->responder_resources,
		.ack_timeout = q->primary_ack_timeout,
		.retry_count = q->retry_count,
		.rnr_retry = q->rnr_retry_count,
		.traffic_class = q->primary_traffic_class,
		.hop_limit = q->primary_hop_limit,
	};
	memcpy(conn->local_gid, q->primary_remote_gid, GID_BYTES);
	memcpy(conn->remote_gid, q->primary_local_gid, GID_BYTES);
}

void cm_conn_from_rep(struct cm_conn *conn, const struct cm_rep *p)
{
	conn->remote_qpn = p->local_qpn;
	conn->sq_psn = p->starting_psn;
	conn->initiator_depth = p->responder_resources;
	conn->responder_resources = p->initiator_depth;
	conn->rnr_retry = p->rnr_retry_count;
}
