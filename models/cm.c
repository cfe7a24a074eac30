/* SPDX-License-Identifier: BSD-3-Clause */
// The connection manager: IBTA vol. 1 chapter 12, annex A11 (IP addresses in requests), and where
// the standard leaves a choice, what Linux's ib_cm and rdma_cm do, because that is whom it talks
// to.
//
//	active                                passive
//	REQ_SENT        ---- REQ --->         REQ_RCVD      the application decides
//	                <--- MRA ----         MRA_REQ_SENT  if the REQ comes again meanwhile
//	ESTABLISHED     <--- REP ----         REP_SENT
//	                ---- RTU --->         ESTABLISHED
//	DREQ_SENT       ---- DREQ -->
//	TIMEWAIT        <--- DREP ---         TIMEWAIT
//
// Either side may end it from ESTABLISHED; REJ takes the place of REP, RTU or MRA to say no. For
// datagrams one question (SIDR_REQ) and one answer (SIDR_REP) tell where a service's queue pair is.
//
// Loss. Who waits for an answer repeats what it sent every `interval`, max_retries times: REQ, REP,
// DREQ and SIDR_REQ have timers, all others are sent again when their cause comes again. So each
// message that could be lost is covered: a lost REP by the repeated REP (or REQ), a lost RTU by the
// repeated REP, a lost DREP by the repeated DREQ, a lost REJ by the repeated REQ or REP. When
// retries are used up, a REJ (timeout) tells the other side to forget it too.
//
// Duplicates. A connection is known to the peer by its communication ID, which carries the slot and
// a generation, so that an old ID never finds a new connection. A REQ with a known (peer's ID,
// adapter GUID) is a duplicate. A REQ from a queue pair that, for us, is connected is a new life of
// that peer: REJ (stale connection), and the old connection is ended.
//
// TIMEWAIT: for the life of packets that may still be on the way, the ID answers duplicates and its
// queue pair's number must not be used again by the caller.
//
// State: one slot per connection or question, the last message sent in it; short queues of MADs and
// events between calls. Nothing is taken from the wire, and no timer is worked on, unless what
// follows from it fits into the queues, so state and messages never disagree.
//
// Invariants: deadline of an ID is SIMTIME_NEVER exactly in the states FREE, IDLE, REQ_RCVD,
// MRA_REQ_SENT, ESTABLISHED and SIDR_REQ_RCVD; an orphan is in a state with a deadline, so every
// orphan's slot becomes free; cm->deadline is the smallest of them.
//
// Simplified: no alternate paths (LAP is not answered), no redirection, no reliable datagrams, no
// XRC; RTU is sent as soon as the REP is here and DREP as soon as the DREQ is, without asking the
// application (as rdma_cm does for the first).
#include "models/cm_priv.h"

#include <assert.h>

#define INDEX_BITS 12
#define INDEX_MASK ((1u << INDEX_BITS) - 1)

static_assert(CM_IDS_MAX == 1 << INDEX_BITS, "an ID's slot is part of its number");

const char *cm_state_name(enum cm_state state)
{
	static const char *const names[] = {
#define X(id, help) #id,
		CM_STATES(X)
#undef X
	};

	return names[state];
}

const char *cm_event_name(enum cm_event_type type)
{
	static const char *const names[] = {
#define X(id, name) name,
		CM_EVENTS(X)
#undef X
	};

	return names[type];
}

void cm_init(struct cm *cm, const struct cm_config *cfg, struct cm_id *ids, unsigned n_ids)
{
	assert(n_ids >= 1 && n_ids <= CM_IDS_MAX && cfg->mtu >= 1 && cfg->mtu <= CM_MTU_MAX);
	memset(cm, 0, sizeof(*cm));
	cm->cfg = *cfg;
	cm->ids = ids;
	cm->n_ids = n_ids;
	// Two runs of an adapter should not use the same IDs: a peer may remember the first.
	cm->salt = (uint32_t)(cfg->seed ^ cfg->seed >> 32);
	cm->deadline = SIMTIME_NEVER;
	for (unsigned i = 0; i < n_ids; i++)
		ids[i] = (struct cm_id){.comm_id = i ^ cm->salt, .deadline = SIMTIME_NEVER};
}

// ---- slots ------------------------------------------------------------------------------------

static struct cm_id *take_slot(struct cm *cm, struct cm_id *id)
{
	// The next generation of the slot's number.
	uint32_t comm_id = ((id->comm_id ^ cm->salt) + (1u << INDEX_BITS)) ^ cm->salt;

	*id = (struct cm_id){.comm_id = comm_id, .state = CM_IDLE, .deadline = SIMTIME_NEVER};
	return id;
}

// When all are in use, answers kept for peers that might ask again are the first to go: oldest
// first.
struct cm_id *cm_alloc_id(struct cm *cm)
{
	struct cm_id *oldest = NULL;

	for (struct cm_id *id = cm->ids; id < cm->ids + cm->n_ids; id++) {
		if (id->state == CM_FREE)
			return take_slot(cm, id);
		if (id->state == CM_SIDR_REP_SENT && id->orphan &&
			(oldest == NULL || id->deadline < oldest->deadline))
			oldest = id;
	}
	return oldest == NULL ? NULL : take_slot(cm, oldest);
}

void cm_free_id(struct cm_id *id)
{
	id->state = CM_FREE;
	id->orphan = false;
	id->deadline = SIMTIME_NEVER;
}

struct cm_id *cm_by_comm_id(struct cm *cm, uint32_t comm_id)
{
	uint32_t index = (comm_id ^ cm->salt) & INDEX_MASK;

	if (index >= cm->n_ids)
		return NULL;
	struct cm_id *id = &cm->ids[index];
	return id->state != CM_FREE && id->comm_id == comm_id ? id : NULL;
}

unsigned cm_in_use(const struct cm *cm)
{
	unsigned n = 0;

	for (unsigned i = 0; i < cm->n_ids; i++)
		n += cm->ids[i].state != CM_FREE;
	return n;
}

// ---- queues -----------------------------------------------------------------------------------

static struct cm_out *push_out(
	struct cm *cm, const uint8_t src_gid[GID_BYTES], const uint8_t dst_gid[GID_BYTES])
{
	assert(cm_has_room(cm, 1, 0));
	struct cm_out *o = &cm->out[cm->out_head++ % CM_QUEUE];

	memcpy(o->src_gid, src_gid, GID_BYTES);
	memcpy(o->dst_gid, dst_gid, GID_BYTES);
	cm->counters.tx_mads++;
	return o;
}

void cm_send(struct cm *cm, const struct cm_mad *m, const uint8_t src_gid[GID_BYTES],
	const uint8_t dst_gid[GID_BYTES])
{
	cm_mad_build(m, push_out(cm, src_gid, dst_gid)->mad);
}

void cm_send_id(struct cm *cm, struct cm_id *id, const struct cm_mad *m)
{
	cm_mad_build(m, id->msg);
	cm_repeat(cm, id);
}

void cm_repeat(struct cm *cm, struct cm_id *id)
{
	memcpy(push_out(cm, id->conn.local_gid, id->conn.remote_gid)->mad, id->msg, MAD_BYTES);
}

bool cm_next_mad(struct cm *cm, struct cm_out *out)
{
	if (cm->out_tail == cm->out_head)
		return false;
	*out = cm->out[cm->out_tail++ % CM_QUEUE];
	return true;
}

struct cm_event *cm_tell(struct cm *cm, struct cm_id *id, enum cm_event_type type, int status)
{
	if (id->orphan)
		return &cm->unheard;
	assert(cm_has_room(cm, 0, 1));
	struct cm_event *e = &cm->events[cm->ev_head++ % CM_QUEUE];
	*e = (struct cm_event){.type = type, .id = id, .status = status};
	return e;
}

void cm_tell_private(struct cm_event *e, const uint8_t *data, unsigned len)
{
	memcpy(e->private_data, data, len);
	e->private_len = (uint8_t)len;
}

// Events of destroyed IDs have lost their `id`.
bool cm_next_event(struct cm *cm, struct cm_event *out)
{
	while (cm->ev_tail != cm->ev_head) {
		*out = cm->events[cm->ev_tail++ % CM_QUEUE];
		if (out->id != NULL)
			return true;
	}
	return false;
}

// ---- states and timers ------------------------------------------------------------------------

void cm_update_deadline(struct cm *cm)
{
	cm->deadline = SIMTIME_NEVER;
	for (unsigned i = 0; i < cm->n_ids; i++)
		cm->deadline = simtime_min(cm->deadline, cm->ids[i].deadline);
}

void cm_set_state(struct cm_id *id, enum cm_state state)
{
	id->state = (uint8_t)state;
	id->deadline = SIMTIME_NEVER;
}

void cm_await(struct cm_id *id, enum cm_state state, simtime_t now, simtime_t interval)
{
	id->state = (uint8_t)state;
	id->interval = interval;
	id->retries_left = id->max_retries;
	id->deadline = now + interval;
}

// As long as a packet and its acknowledgement can be under way.
void cm_enter_timewait(struct cm_id *id, simtime_t now)
{
	id->state = CM_TIMEWAIT;
	id->deadline = now + cm_time(id->conn.ack_timeout);
}

void cm_enter_idle(struct cm_id *id)
{
	if (id->orphan)
		cm_free_id(id);
	else
		cm_set_state(id, CM_IDLE);
}

// A message of ours was never answered.
static void give_up(struct cm *cm, struct cm_id *id, simtime_t now)
{
	struct cm_mad m;

	switch (id->state) {
	case CM_REQ_SENT:
	case CM_MRA_REQ_RCVD:
		cm_format_rej(cm, id, CM_REJ_TIMEOUT, &m);
		cm_send_id(cm, id, &m);
		cm_tell(cm, id, CM_EV_UNREACHABLE, -ETIMEDOUT);
		cm_enter_idle(id);
		break;
	case CM_REP_SENT:
	case CM_MRA_REP_RCVD:
		cm_format_rej(cm, id, CM_REJ_TIMEOUT, &m);
		cm_send_id(cm, id, &m);
		cm_tell(cm, id, CM_EV_UNREACHABLE, -ETIMEDOUT);
		cm_enter_timewait(id, now);
		break;
	case CM_DREQ_SENT:
		cm_tell(cm, id, CM_EV_DISCONNECTED, -ETIMEDOUT);
		cm_enter_timewait(id, now);
		break;
	case CM_SIDR_REQ_SENT:
		cm_tell(cm, id, CM_EV_UNREACHABLE, -ETIMEDOUT);
		cm_enter_idle(id);
		break;
	}
}

static void expire(struct cm *cm, struct cm_id *id, simtime_t now)
{
	switch (id->state) {
	case CM_TIMEWAIT:
		cm_tell(cm, id, CM_EV_TIMEWAIT_EXIT, 0);
		cm_enter_idle(id);
		return;
	case CM_SIDR_REP_SENT:
		cm_enter_idle(id);
		return;
	}
	if (id->retries_left == 0) {
		give_up(cm, id, now);
		return;
	}
	id->retries_left--;
	id->deadline = now + id->interval;
	cm->counters.tx_retries++;
	cm_repeat(cm, id);
}

void cm_tick(struct cm *cm, simtime_t now)
{
	for (unsigned i = 0; i < cm->n_ids; i++)
		if (cm->ids[i].deadline <= now && cm_has_room(cm, 1, 1))
			expire(cm, &cm->ids[i], now);
	cm_update_deadline(cm);
}

// ---- listeners --------------------------------------------------------------------------------

const struct cm_listener *cm_find_listener(const struct cm *cm, uint64_t service_id)
{
	for (unsigned i = 0; i < CM_LISTENERS; i++)
		if (cm->listeners[i].used && cm->listeners[i].service_id == service_id)
			return &cm->listeners[i];
	return NULL;
}

int cm_listen(struct cm *cm, uint64_t service_id, enum cm_transport transport, uint64_t user)
{
	if (cm_find_listener(cm, service_id) != NULL)
		return -EADDRINUSE;
	for (unsigned i = 0; i < CM_LISTENERS; i++) {
		struct cm_listener *l = &cm->listeners[i];
		if (l->used)
			continue;
		*l = (struct cm_listener){service_id, user, (uint8_t)transport, true};
		return 0;
	}
	return -ENOMEM;
}

void cm_unlisten(struct cm *cm, uint64_t service_id)
{
	for (unsigned i = 0; i < CM_LISTENERS; i++)
		if (cm->listeners[i].service_id == service_id)
			cm->listeners[i].used = false;
}
