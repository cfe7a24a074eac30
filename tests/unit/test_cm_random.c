/* SPDX-License-Identifier: BSD-3-Clause */
// Model check of connection management: two managers whose applications ask, accept, refuse, end
// and forget at random, over a channel that loses, doubles and reorders. Whatever happens, both
// sides mean the same connection by the same IDs, events come in an order that makes sense, the
// timers are those that the states want; and when the applications have let go, nothing is left. A
// failure prints its seed; CM_SEED=n repeats one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "emu/core/rng.h"
#include "models/cm.h"

#define RUNS      20000
#define STEPS     400
#define IDS       6
#define IN_FLIGHT 64
#define PORT      1000
#define UD_PORT   2000

static uint64_t current_seed;

struct end {
	struct cm cm;
	struct cm_id ids[IDS];
	unsigned heard[IDS]; // 1 << event, of the ID's present life
	bool held[IDS];      // by the application
	uint8_t gid[GID_BYTES];
};

struct world {
	struct rng rng;
	struct end e[2];
	struct cm_out flight[IN_FLIGHT];
	unsigned to[IN_FLIGHT];
	unsigned n;
	uint32_t loss, dup, reorder; // per 1024
	uint32_t noise;              // bits changed, per 1024 messages
	simtime_t now;
	unsigned established;
};

static void check_timers(const struct cm *cm)
{
	simtime_t min = SIMTIME_NEVER;

	for (unsigned i = 0; i < IDS; i++) {
		const struct cm_id *id = &cm->ids[i];
		bool quiet = id->state == CM_FREE || id->state == CM_IDLE ||
			     id->state == CM_REQ_RCVD || id->state == CM_MRA_REQ_SENT ||
			     id->state == CM_ESTABLISHED || id->state == CM_SIDR_REQ_RCVD;
		assert_int_equal(quiet, id->deadline == SIMTIME_NEVER);
		assert_false(id->orphan && quiet);
		min = simtime_min(min, id->deadline);
	}
	assert_true(cm->deadline == min);
}

// What the other end has under the same pair of IDs must be the same connection.
static void check_same(struct world *w, unsigned side, const struct cm_id *id)
{
	for (unsigned i = 0; i < IDS; i++) {
		const struct cm_id *o = &w->e[!side].ids[i];
		if (o->state == CM_FREE || o->comm_id != id->remote_comm_id ||
			o->remote_comm_id != id->comm_id)
			continue;
		assert_int_equal(o->conn.local_qpn, id->conn.remote_qpn);
		assert_int_equal(o->conn.remote_qpn, id->conn.local_qpn);
		assert_int_equal(o->conn.rq_psn, id->conn.sq_psn);
		assert_int_equal(o->conn.sq_psn, id->conn.rq_psn);
		assert_int_equal(o->conn.initiator_depth, id->conn.responder_resources);
		assert_int_equal(o->conn.responder_resources, id->conn.initiator_depth);
	}
}

static void pick_up(struct world *w)
{
	for (unsigned s = 0; s < 2; s++) {
		struct cm_out o;
		while (cm_next_mad(&w->e[s].cm, &o)) {
			unsigned copies = 1;
			if (rng_below(&w->rng, 1024) < w->loss)
				copies = 0;
			else if (rng_below(&w->rng, 1024) < w->dup)
				copies = 2;
			while (copies-- > 0 && w->n < IN_FLIGHT) {
				w->to[w->n] = !s;
				w->flight[w->n++] = o;
			}
		}
	}
}

static void let_go(struct world *w, unsigned s, struct cm_id *id)
{
	w->e[s].held[id - w->e[s].ids] = false;
	assert_int_equal(cm_destroy(&w->e[s].cm, w->now, id), 0);
	pick_up(w);
}

static void answer(struct world *w, unsigned s, struct cm_id *id)
{
	struct rng *g = &w->rng;
	struct cm_accept a = {
		.qpn = rng_below(g, 1 << 24),
		.psn = rng_below(g, 1 << 24),
		.qkey = 1,
		.responder_resources = (uint8_t)rng_below(g, 20),
		.initiator_depth = CM_AS_ASKED,
	};

	if (rng_below(g, 4) != 0)
		cm_accept(&w->e[s].cm, w->now, id, &a);
	else if (rng_below(g, 2) != 0)
		cm_reject(&w->e[s].cm, w->now, id, CM_REJ_CONSUMER, NULL, 0);
	else
		let_go(w, s, id);
}

#define BIT(type) (1u << CM_EV_##type)
#define END_BITS  (BIT(REJECTED) | BIT(UNREACHABLE) | BIT(DISCONNECTED) | BIT(TIMEWAIT_EXIT))

static void heard(struct world *w, unsigned s, const struct cm_event *ev)
{
	struct end *e = &w->e[s];
	unsigned i = (unsigned)(ev->id - e->ids);

	if (ev->type == CM_EV_CONNECT_REQUEST) {
		e->heard[i] = 0;
		e->held[i] = true;
	}
	assert_true(e->held[i]); // nothing is heard of what was let go
	unsigned before = e->heard[i];
	assert_false(before >> ev->type & 1); // each at most once
	switch (ev->type) {
	case CM_EV_CONNECT_REQUEST:
		assert_int_equal(before, 0);
		break;
	case CM_EV_ESTABLISHED:
		assert_int_equal(before & END_BITS, 0);
		w->established++;
		if (ev->id->conn.transport != CM_UD && w->noise == 0)
			check_same(w, s, ev->id);
		break;
	case CM_EV_TIMEWAIT_EXIT:
		assert_int_not_equal(before & END_BITS, 0);
		break;
	default:
		assert_int_equal(before & END_BITS, 0);
	}
	e->heard[i] |= 1u << ev->type;

	if (ev->type == CM_EV_CONNECT_REQUEST && rng_below(&w->rng, 3) != 0)
		answer(w, s, ev->id);
	else if (ev->type >= CM_EV_REJECTED && rng_below(&w->rng, 3) != 0)
		let_go(w, s, ev->id);
}

static void settle(struct world *w)
{
	struct cm_event ev;

	pick_up(w);
	for (unsigned s = 0; s < 2; s++)
		while (cm_next_event(&w->e[s].cm, &ev)) {
			heard(w, s, &ev);
			pick_up(w);
		}
	check_timers(&w->e[0].cm);
	check_timers(&w->e[1].cm);
}

static void deliver(struct world *w)
{
	unsigned i = rng_below(&w->rng, 1024) < w->reorder ? rng_below(&w->rng, w->n) : 0;
	struct cm_out o = w->flight[i];
	unsigned to = w->to[i];

	for (w->n--; i < w->n; i++) {
		w->flight[i] = w->flight[i + 1];
		w->to[i] = w->to[i + 1];
	}
	if (rng_below(&w->rng, 1024) < w->noise)
		o.mad[rng_below(&w->rng, MAD_BYTES)] ^= (uint8_t)(1u << rng_below(&w->rng, 8));
	cm_rx(&w->e[to].cm, w->now, o.src_gid, o.dst_gid, o.mad, MAD_BYTES);
}

// Packets are quicker than timers, unless the channel reorders.
static void next_timer(struct world *w)
{
	simtime_t next = simtime_min(w->e[0].cm.deadline, w->e[1].cm.deadline);

	if (next == SIMTIME_NEVER)
		return;
	w->now = simtime_max(w->now, next);
	cm_tick(&w->e[0].cm, w->now);
	cm_tick(&w->e[1].cm, w->now);
}

static void ask(struct world *w, unsigned s)
{
	struct rng *g = &w->rng;
	bool ud = rng_below(g, 4) == 0;
	struct cm_connect c = {
		.service_id = cma_service_id(ud ? CMA_PS_UDP : CMA_PS_TCP,
			(uint16_t)((ud ? UD_PORT : PORT) + (rng_below(g, 8) == 0))),
		.transport = ud ? CM_UD : CM_RC,
		.qpn = rng_below(g, 1 << 24),
		.psn = rng_below(g, 1 << 24),
		.mtu = (uint8_t)(1 + rng_below(g, 3)),
		.responder_resources = (uint8_t)rng_below(g, 20),
		.initiator_depth = (uint8_t)rng_below(g, 20),
	};
	struct cm_id *id;

	memcpy(c.local_gid, w->e[s].gid, GID_BYTES);
	memcpy(c.remote_gid, w->e[!s].gid, GID_BYTES);
	if (cm_connect(&w->e[s].cm, w->now, &c, &id) == 0) {
		w->e[s].heard[id - w->e[s].ids] = 0;
		w->e[s].held[id - w->e[s].ids] = true;
	}
}

static void applications(struct world *w)
{
	unsigned s = rng_below(&w->rng, 2), i = rng_below(&w->rng, IDS);
	struct cm_id *id = &w->e[s].ids[i];

	if (!w->e[s].held[i]) {
		if (rng_below(&w->rng, 4) == 0)
			ask(w, s);
		return;
	}
	switch (id->state) {
	case CM_REQ_RCVD:
	case CM_MRA_REQ_SENT:
	case CM_SIDR_REQ_RCVD:
		answer(w, s, id);
		break;
	case CM_REP_SENT:
		if (rng_below(&w->rng, 8) == 0)
			cm_established(&w->e[s].cm, w->now, id);
		break;
	case CM_ESTABLISHED:
		if (rng_below(&w->rng, 2) == 0)
			cm_disconnect(&w->e[s].cm, w->now, id);
		break;
	default:
		if (rng_below(&w->rng, 16) == 0)
			let_go(w, s, id);
	}
}

static void setup(struct world *w, uint64_t seed)
{
	memset(w, 0, sizeof(*w));
	w->rng = rng_stream(seed, 2);
	struct rng *g = &w->rng;
	w->loss = rng_below(g, 3) ? rng_below(g, 400) : 0;
	w->dup = rng_below(g, 2) ? rng_below(g, 300) : 0;
	w->reorder = rng_below(g, 2) ? rng_below(g, 400) : 0;
	w->noise = rng_below(g, 8) ? 0 : 1024;
	for (unsigned s = 0; s < 2; s++) {
		struct cm_config cfg = {
			.guid = 100 + s,
			.seed = rng_next(g),
			.mtu = 3,
			.response_timeout = (uint8_t)(10 + rng_below(g, 4)),
			.max_retries = (uint8_t)rng_below(g, 16),
			.packet_lifetime = (uint8_t)(8 + rng_below(g, 4)),
			.ack_delay = (uint8_t)rng_below(g, 12),
			.service_timeout = (uint8_t)(10 + rng_below(g, 6)),
		};
		cm_init(&w->e[s].cm, &cfg, w->e[s].ids, IDS);
		gid_from_ipv4(w->e[s].gid, 0x0a000001 + s);
		assert_int_equal(
			cm_listen(&w->e[s].cm, cma_service_id(CMA_PS_TCP, PORT), CM_RC, 0), 0);
		assert_int_equal(
			cm_listen(&w->e[s].cm, cma_service_id(CMA_PS_UDP, UD_PORT), CM_UD, 0), 0);
	}
}

// The applications let go of everything; in bounded time nothing is left, even if all is lost.
static void end(struct world *w)
{
	for (unsigned s = 0; s < 2; s++)
		for (unsigned i = 0; i < IDS; i++)
			if (w->e[s].held[i])
				let_go(w, s, &w->e[s].ids[i]);
	for (unsigned steps = 0; steps < 10000; steps++) {
		if (w->n > 0)
			deliver(w);
		else
			next_timer(w);
		settle(w);
		// a late REQ may still come to a listener
		for (unsigned s = 0; s < 2; s++)
			for (unsigned i = 0; i < IDS; i++)
				if (w->e[s].held[i])
					let_go(w, s, &w->e[s].ids[i]);
		if (w->n == 0 && w->e[0].cm.deadline == SIMTIME_NEVER &&
			w->e[1].cm.deadline == SIMTIME_NEVER)
			break;
	}
	assert_int_equal(cm_in_use(&w->e[0].cm), 0);
	assert_int_equal(cm_in_use(&w->e[1].cm), 0);
	if (w->noise == 0)
		assert_int_equal(
			w->e[0].cm.counters.rx_malformed + w->e[1].cm.counters.rx_malformed, 0);
}

static unsigned run(uint64_t seed)
{
	static struct world w;

	current_seed = seed;
	setup(&w, seed);
	for (unsigned i = 0; i < STEPS; i++) {
		uint32_t what = rng_below(&w.rng, 16);
		if (what < 8 && w.n > 0)
			deliver(&w);
		else if (what < 12)
			applications(&w);
		else if (w.n == 0 || (w.reorder != 0 && what == 15))
			next_timer(&w);
		settle(&w);
	}
	end(&w);
	return w.established;
}

static void connections_are_the_same_on_both_sides_and_leave_nothing(void **state)
{
	const char *one = getenv("CM_SEED");
	unsigned established = 0;

	if (one != NULL) {
		run(strtoull(one, NULL, 0));
		return;
	}
	for (uint64_t seed = 1; seed <= RUNS; seed++)
		established += run(seed);
	assert_true(established > 5 * RUNS); // that it was worth the trouble
}

static int say_seed(void **state)
{
	fprintf(stderr, "last seed: CM_SEED=%llu\n", (unsigned long long)current_seed);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
			connections_are_the_same_on_both_sides_and_leave_nothing, say_seed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
