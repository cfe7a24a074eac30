/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// For unit tests: two connection managers, A and B, joined by a channel that a test can cut.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "models/cm.h"

#define RIG_IDS    8
#define RIG_EVENTS 64
#define RIG_GUID_A UINT64_C(0x505400fffe000002)
#define RIG_GUID_B UINT64_C(0x505400fffe000001)
#define RIG_IP_A   0x0a000002u
#define RIG_IP_B   0x0a000001u
#define SERVICE    cma_service_id(CMA_PS_TCP, 7174)
#define UD_SERVICE cma_service_id(CMA_PS_UDP, 7174)

struct rig_end {
	struct cm cm;
	struct cm_id ids[RIG_IDS];
	uint8_t gid[GID_BYTES];
	struct cm_event ev[RIG_EVENTS]; // heard, in order
	unsigned n_ev, seen;
};

struct rig {
	struct rig_end a, b;
	simtime_t now;
	int lose_attr;       // messages of this attribute ..
	unsigned lose;       // .. are lost, so many of them
	unsigned sent[0x20]; // by attribute, lost ones included
	unsigned copies;     // of every message that is delivered
};

static inline struct cm_config rig_config(uint64_t guid)
{
	return (struct cm_config){
		.guid = guid,
		.seed = guid * 77,
		.mtu = 3,
		.response_timeout = CM_RESPONSE_TIMEOUT,
		.max_retries = CM_MAX_RETRIES,
		.packet_lifetime = CM_PACKET_LIFETIME,
		.ack_delay = CM_ACK_DELAY,
		.service_timeout = CM_SERVICE_TIMEOUT,
	};
}

static inline void rig_setup(struct rig *r)
{
	struct cm_config a = rig_config(RIG_GUID_A), b = rig_config(RIG_GUID_B);

	memset(r, 0, sizeof(*r));
	r->copies = 1;
	gid_from_ipv4(r->a.gid, RIG_IP_A);
	gid_from_ipv4(r->b.gid, RIG_IP_B);
	cm_init(&r->a.cm, &a, r->a.ids, RIG_IDS);
	cm_init(&r->b.cm, &b, r->b.ids, RIG_IDS);
	assert_int_equal(cm_listen(&r->b.cm, SERVICE, CM_RC, 77), 0);
	assert_int_equal(cm_listen(&r->b.cm, UD_SERVICE, CM_UD, 88), 0);
}

static inline void rig_hear(struct rig_end *e)
{
	while (cm_next_event(&e->cm, &e->ev[e->n_ev % RIG_EVENTS]))
		e->n_ev++;
}

// The next event that the test has not looked at.
static inline const struct cm_event *rig_event(struct rig_end *e, enum cm_event_type type)
{
	rig_hear(e);
	assert_true(e->seen < e->n_ev);
	const struct cm_event *ev = &e->ev[e->seen++ % RIG_EVENTS];
	assert_int_equal(ev->type, type);
	return ev;
}

static inline void rig_no_event(struct rig_end *e)
{
	rig_hear(e);
	assert_int_equal(e->seen, e->n_ev);
}

static inline bool rig_move_one(struct rig *r, struct rig_end *from, struct rig_end *to)
{
	struct cm_out o;

	if (!cm_next_mad(&from->cm, &o))
		return false;
	unsigned attr = get_be16(o.mad + 16);
	assert_memory_equal(o.src_gid, from->gid, GID_BYTES);
	assert_memory_equal(o.dst_gid, to->gid, GID_BYTES);
	r->sent[attr]++;
	if ((int)attr == r->lose_attr && r->lose > 0) {
		r->lose--;
		return true;
	}
	for (unsigned i = 0; i < r->copies; i++) {
		cm_rx(&to->cm, r->now, o.src_gid, o.dst_gid, o.mad, MAD_BYTES);
		rig_hear(to);
	}
	return true;
}

// Until nobody has anything to say.
static inline void rig_move(struct rig *r)
{
	while (rig_move_one(r, &r->a, &r->b) || rig_move_one(r, &r->b, &r->a))
		;
	rig_hear(&r->a);
	rig_hear(&r->b);
}

// Lets timers run up to `until`, moving what they send.
static inline void rig_run(struct rig *r, simtime_t until)
{
	for (;;) {
		simtime_t next = simtime_min(r->a.cm.deadline, r->b.cm.deadline);
		if (next > until)
			break;
		r->now = next;
		cm_tick(&r->a.cm, next);
		cm_tick(&r->b.cm, next);
		rig_move(r);
	}
	r->now = until;
}

// What the client of the captured rping asked for.
static inline struct cm_connect rig_request(const struct rig *r)
{
	struct cm_connect c = {
		.service_id = SERVICE,
		.user = 5,
		.qpn = 0x1a,
		.psn = 0xd89201,
		.flow_label = 0x31401,
		.port = 0x9ca5,
		.transport = CM_RC,
		.mtu = 3,
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry = 7,
		.hop_limit = 64,
	};

	memcpy(c.local_gid, r->a.gid, GID_BYTES);
	memcpy(c.remote_gid, r->b.gid, GID_BYTES);
	return c;
}

// What its server answered.
static inline struct cm_accept rig_answer(void)
{
	return (struct cm_accept){
		.qpn = 0x1a,
		.psn = 0x501c3b,
		.responder_resources = CM_AS_ASKED,
		.initiator_depth = CM_AS_ASKED,
		.rnr_retry = 7,
	};
}

// A asks; B's application has it.
static inline struct cm_id *rig_ask(struct rig *r, struct cm_id **a)
{
	struct cm_connect c = rig_request(r);

	assert_int_equal(cm_connect(&r->a.cm, r->now, &c, a), 0);
	rig_move(r);
	return rig_event(&r->b, CM_EV_CONNECT_REQUEST)->id;
}

struct rig_pair {
	struct cm_id *a, *b;
};

static inline struct rig_pair rig_connected(struct rig *r)
{
	struct cm_accept acc = rig_answer();
	struct rig_pair p;

	p.b = rig_ask(r, &p.a);
	assert_int_equal(cm_accept(&r->b.cm, r->now, p.b, &acc), 0);
	rig_move(r);
	assert_ptr_equal(rig_event(&r->a, CM_EV_ESTABLISHED)->id, p.a);
	assert_ptr_equal(rig_event(&r->b, CM_EV_ESTABLISHED)->id, p.b);
	assert_int_equal(p.a->state, CM_ESTABLISHED);
	assert_int_equal(p.b->state, CM_ESTABLISHED);
	return p;
}
