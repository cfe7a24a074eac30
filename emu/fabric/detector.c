/* SPDX-License-Identifier: BSD-3-Clause */
// The exact deadlock detector's eyes: now and then, while nothing runs, it looks at who pauses whom
// in all switches and hands that to models/deadlock.
//
// A deadlock needs egresses that stay paused for `stuck_for`. So a check is only worth its cost
// when some egress has been paused that long, and the next check is set for the earliest time that
// can be: a fabric that is not paused pays nothing.

#include <errno.h>

#include "emu/fabric/internal.h"
#include "pipelines/ethernet_switch.h"

#define WALL_INTERVAL_MIN SIM_MS // of wall time: a check stops all lcores

static void check(struct engine *e, simtime_t now, void *arg);

static simtime_t interval(const struct fabric *f)
{
	simtime_t t = f->s->deadlock.check_interval;

	if (f->s->clock == SC_CLOCK_WALL)
		t = simtime_max(t, WALL_INTERVAL_MIN * 1000 / f->s->time_scale_milli);
	return t;
}

// Vertices of one switch port: the PGs that pause its peer, and a host peer that pauses it.
// `oldest`: lowered to the earliest time since which an egress is paused.
static void add_port(struct fabric *f, uint32_t sw, uint16_t port, simtime_t *oldest)
{
	const struct node *n = f->nodes[sw];
	struct sc_end peer = sc_peer(f->s, sw, port);

	for (unsigned prio = 0; prio < PRIO_COUNT; prio++) {
		simtime_t pausing = ethernet_switch_pausing_since(n, port, prio);
		if (pausing != SIMTIME_NEVER) {
			struct ethernet_switch_pg_view v;
			ethernet_switch_pg(n, port, ethernet_switch_prio_pg(n, port, prio), &v);
			deadlock_add_pg(&f->deadlock,
				&(struct dl_asserting){
					.pg = {.node = sw, .port = port, .prio = (uint8_t)prio},
					.xoff_since = v.xoff ? v.xoff_since : pausing,
					.bytes = v.bytes,
				});
		}
		simtime_t paused = ethernet_switch_paused_since(n, port, prio);
		if (paused == SIMTIME_NEVER)
			continue;
		*oldest = simtime_min(*oldest, paused);
		if (sc_is_host(f->s, peer.node))
			deadlock_add_pg(&f->deadlock, &(struct dl_asserting){
							      .pg = {.node = peer.node,
								      .port = peer.port,
								      .prio = (uint8_t)prio},
							      .host = true,
							      .xoff_since = paused,
						      });
	}
}

struct wait_ctx {
	struct fabric *f;
	uint32_t sw;
};

// Frames of (in_port, pg) in a paused (out_port, queue): they wait for the peer's PG.
static void add_wait(void *arg, const struct ethernet_switch_wait *w)
{
	struct wait_ctx *c = arg;
	struct fabric *f = c->f;
	const struct node *n = f->nodes[c->sw];
	struct sc_end peer = sc_peer(f->s, c->sw, w->out_port);
	struct ethernet_switch_pg_view pg;
	struct ethernet_switch_queue_view q;

	ethernet_switch_pg(n, w->in_port, w->pg, &pg);
	ethernet_switch_queue(n, w->out_port, w->queue, &q);
	for (unsigned to = 0; to < PRIO_COUNT; to++) {
		simtime_t since = ethernet_switch_paused_since(n, w->out_port, to);
		if (since == SIMTIME_NEVER ||
			ethernet_switch_prio_queue(n, w->out_port, to) != w->queue)
			continue;
		for (unsigned from = 0; from < PRIO_COUNT; from++) {
			if (!(pg.priorities >> from & 1))
				continue;
			deadlock_add_wait(
				&f->deadlock, &(struct dl_wait){
						      .from = {c->sw, w->in_port, (uint8_t)from},
						      .to = {peer.node, peer.port, (uint8_t)to},
						      .egress_port = w->out_port,
						      .bytes = w->bytes,
						      .moved = q.tx_frames,
						      .paused_since = since,
					      });
		}
	}
}

static void stop_run(struct engine *e, simtime_t now, void *arg)
{
	engine_request_stop(e);
}

static void announce(struct fabric *f, const struct deadlock_report *r, unsigned number)
{
	const struct dl_member *t = &r->members[r->trigger];
	struct node *n = f->nodes[t->pg.node];

	engine_enter(f->engine, n);
	node_event(n, t->pg.port, EV_DEADLOCK, t->pg.prio, r->n_members);
	captures_note(f, r, number);
	if (f->s->deadlock.stop && !f->stopping)
		f->stopping = engine_at(f->engine, engine_now(f->engine) + f->s->deadlock.linger,
				      stop_run, f, true) == 0;
}

static void check(struct engine *e, simtime_t now, void *arg)
{
	struct fabric *f = arg;
	struct deadlock *d = &f->deadlock;
	simtime_t stuck_for = f->s->deadlock.stuck_for;
	simtime_t oldest = SIMTIME_NEVER;

	deadlock_begin(d, now);
	for (uint32_t sw = 0; sw < f->s->n_switches; sw++)
		for (uint16_t p = 0; p < f->s->nodes[sw].n_ports; p++)
			add_port(f, sw, p, &oldest);
	bool ripe = oldest != SIMTIME_NEVER && now - oldest >= stuck_for;
	if (ripe) {
		for (uint32_t sw = 0; sw < f->s->n_switches; sw++) {
			struct wait_ctx c = {f, sw};
			ethernet_switch_waits(f->nodes[sw], true, add_wait, &c);
		}
	}
	if (deadlock_end(d) > 0)
		for (; f->deadlocks_seen < d->n_reports; f->deadlocks_seen++)
			announce(f, &d->reports[f->deadlocks_seen], f->deadlocks_seen + 1);

	simtime_t next = now + interval(f);
	if (!ripe)
		next = simtime_max(next, (oldest == SIMTIME_NEVER ? now : oldest) + stuck_for);
	engine_at(e, next, check, f, true);
}

int detector_create(struct fabric *f)
{
	const struct sc_deadlock *cfg = &f->s->deadlock;
	uint64_t pgs = 1;
	uint64_t waits = 1;

	if (!cfg->detect || f->s->n_switches == 0)
		return 0;
	for (uint32_t sw = 0; sw < f->s->n_switches; sw++) {
		uint64_t ports = f->s->nodes[sw].n_ports;
		pgs += 2 * ports * PRIO_COUNT;
		waits += ports * ports * PRIO_COUNT;
	}
	int rc = deadlock_init(
		&f->deadlock, &(struct deadlock_config){
				      .max_pgs = (uint32_t)pgs,
				      .max_waits = (uint32_t)RTE_MIN(waits, (uint64_t)1 << 20),
				      .stuck_for = cfg->stuck_for,
				      .storm_for = cfg->stuck_for,
			      });
	if (rc < 0)
		return rc;
	f->detecting = true;
	return engine_at(f->engine, cfg->stuck_for, check, f, true);
}
