/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// What the parts of the connection manager share; see cm.c.

#include <errno.h>
#include <string.h>

#include "models/cm.h"

// ---- slots and queues (cm.c) ------------------------------------------------------------------

struct cm_id *cm_alloc_id(struct cm *cm); // IDLE; NULL when there is none
void cm_free_id(struct cm_id *id);
struct cm_id *cm_by_comm_id(struct cm *cm, uint32_t comm_id);

static inline bool cm_has_room(const struct cm *cm, unsigned mads, unsigned events)
{
	return cm->out_head - cm->out_tail + mads <= CM_QUEUE &&
	       cm->ev_head - cm->ev_tail + events <= CM_QUEUE;
}

// Queues a message as it is; its destination is the source of what it answers. Room must be there.
void cm_send(struct cm *cm, const struct cm_mad *m, const uint8_t src_gid[GID_BYTES],
	const uint8_t dst_gid[GID_BYTES]);
// Queues a message of an ID and keeps it for cm_repeat().
void cm_send_id(struct cm *cm, struct cm_id *id, const struct cm_mad *m);
void cm_repeat(struct cm *cm, struct cm_id *id);

// Tells the application. Not of orphans.
struct cm_event *cm_tell(struct cm *cm, struct cm_id *id, enum cm_event_type type, int status);
void cm_tell_private(struct cm_event *e, const uint8_t *data, unsigned len);

void cm_set_state(struct cm_id *id, enum cm_state state); // no timer runs
// Waits for an answer, repeating what was sent.
void cm_await(struct cm_id *id, enum cm_state state, simtime_t now, simtime_t interval);
void cm_enter_timewait(struct cm_id *id, simtime_t now);
// It is over at once; an orphan's slot is free.
void cm_enter_idle(struct cm_id *id);
void cm_update_deadline(struct cm *cm);

const struct cm_listener *cm_find_listener(const struct cm *cm, uint64_t service_id);

// How long to wait for the answer to a REQ: there, the peer's CM, and back (IBTA 12.9.8.1).
static inline simtime_t cm_req_interval(const struct cm *cm)
{
	return 2 * cm_time(cm->cfg.packet_lifetime) + cm_time(cm->cfg.response_timeout);
}

// ---- messages (cm_msg.c) ----------------------------------------------------------------------

void cm_format_req(
	const struct cm *cm, const struct cm_id *id, const struct cm_connect *c, struct cm_mad *m);
void cm_format_rep(
	const struct cm *cm, const struct cm_id *id, const struct cm_accept *a, struct cm_mad *m);
void cm_format_rtu(const struct cm_id *id, struct cm_mad *m);
void cm_format_mra(const struct cm *cm, const struct cm_id *id, struct cm_mad *m);
void cm_format_dreq(const struct cm_id *id, struct cm_mad *m);
void cm_format_drep(const struct cm_id *id, struct cm_mad *m);
void cm_format_rej(const struct cm *cm, const struct cm_id *id, uint16_t reason, struct cm_mad *m);
void cm_format_sidr_req(const struct cm_id *id, const struct cm_connect *c, struct cm_mad *m);
void cm_format_sidr_rep(const struct cm_id *id, enum cm_sidr_status status, struct cm_mad *m);

// The connection that a REQ, and later its REP, describes to its receiver.
void cm_conn_from_req(struct cm_conn *conn, const struct cm_req *q);
void cm_conn_from_rep(struct cm_conn *conn, const struct cm_rep *p);

// Exponent of an ACK timeout from those of a delay at the peer and of a packet's life.
uint8_t cm_ack_timeout(uint8_t ack_delay, uint8_t packet_lifetime);

// A request's private data: rdma_cm's header, if the service is one of rdma_cm's, and the
// consumer's.
void cm_put_private(uint8_t *field, uint64_t service_id, const struct cm_connect *c);
// Looks at rdma_cm's header; false when it is not of a version known here.
bool cm_check_cma_header(const uint8_t *field, uint64_t service_id, uint16_t *port);

static inline unsigned cm_header_bytes(uint64_t service_id)
{
	return cma_is_service_id(service_id) ? CMA_HEADER_BYTES : 0;
}

// ---- who a message is about (cm_rx.c) ---------------------------------------------------------

static inline bool cm_has_asked(const struct cm_id *id)
{
	return id->state == CM_REQ_SENT || id->state == CM_MRA_REQ_RCVD;
}

static inline bool cm_has_accepted(const struct cm_id *id)
{
	return id->state == CM_REP_SENT || id->state == CM_MRA_REP_RCVD;
}

struct cm_source {
	const uint8_t *src_gid, *dst_gid;
	simtime_t now;
};

static inline bool cm_is_from_peer(const struct cm_source *from, const struct cm_id *id)
{
	return memcmp(id->conn.remote_gid, from->src_gid, GID_BYTES) == 0;
}

// By the peer's names for it.
struct cm_id *cm_find_remote(struct cm *cm, uint64_t guid, uint32_t remote_comm_id);
// By both names; counts what belongs to nothing.
struct cm_id *cm_find_both(
	struct cm *cm, const struct cm_source *from, uint32_t comm_id, uint32_t remote_comm_id);
// Our question, if it is still open.
struct cm_id *cm_find_question(struct cm *cm, const struct cm_source *from, uint32_t comm_id);

// ---- the end (cm_rx_end.c) --------------------------------------------------------------------

void cm_rx_rej(struct cm *cm, const struct cm_source *from, const struct cm_mad *m);
void cm_rx_dreq(struct cm *cm, const struct cm_source *from, const struct cm_mad *m);
void cm_rx_drep(struct cm *cm, const struct cm_source *from, const struct cm_mad *m);

// ---- datagram services (cm_sidr.c) ------------------------------------------------------------

void cm_rx_sidr_req(struct cm *cm, const struct cm_source *from, const struct cm_mad *m);
void cm_rx_sidr_rep(struct cm *cm, const struct cm_source *from, const struct cm_mad *m);
int cm_sidr_answer(struct cm *cm, simtime_t now, struct cm_id *id, enum cm_sidr_status status,
	const void *private_data, unsigned private_len);
