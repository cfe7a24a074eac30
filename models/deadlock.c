/* SPDX-License-Identifier: BSD-3-Clause */

// What it models: the question whether PFC has locked a fabric for good. A PG that asserts XOFF
// waits for every egress where its frames queue; an egress paused by its peer waits for the peer's
// PG of the same priority. (Definition: Hu et al., "Deadlocks in Datacenter Networks: Why Do They
// Form, and How to Avoid Them", HotNets 2016: a directed cycle of asserting PGs.)
//
// When is a PG stuck for good? It resumes its upstream as soon as it holds no more than its XON
// level, so it is lost exactly if the frames that can never leave exceed that level. A wait is
// stalled when its egress has sent nothing for `stuck_for` while both its ends assert XOFF.
// The stuck set D is the largest set of PGs with
//
//	for all p in D: sum of bytes over p's stalled waits for members of D > xon_bytes(p)
//
// computed by starting from all asserting PGs of switches and removing those that violate it until
// nothing changes. Hosts are never in D: a NIC that pauses can stop doing so at any time, so what
// waits for it (a tree) is no deadlock. Every member of D waits for another one, so D is empty or
// contains a cycle; its strongly connected components with a cycle are the deadlocks and the rest
// of it is stuck behind them. A PG whose XON level is unknown (0) is stuck by any stalled byte.
//
// State between snapshots: per wait, the counter of frames its egress sent and since when it has
// not changed; which deadlocks and storms were reported. A new wait is taken as stalled since its
// egress was paused.
//
// Invariants: reports are in order of detection; every member of a reported cycle asserted XOFF,
// and waited for the next, from formed_at to detected_at at least.
//
// Simplified: with a dynamic threshold the XON level is taken as it is now, although it rises when
// other PGs drain; a `stuck_for` longer than a buffer's drain time makes up for it. A frame that
// leaves during the response time of a pause counts as progress only if it is seen by a snapshot.

#include "models/deadlock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "models/deadlock_snapshot.h"

static bool same_pg(struct dl_pg a, struct dl_pg b)
{
	return dl_pg_key(a) == dl_pg_key(b);
}

// ---- life ---------------------------------------------------------------------------------------

int deadlock_init(struct deadlock *d, const struct deadlock_config *cfg)
{
	memset(d, 0, sizeof(*d));
	if (cfg->stuck_for <= 0 || cfg->storm_for <= 0 || cfg->max_pgs == 0)
		return -EINVAL;

	struct dl_scratch *s = calloc(1, sizeof(*s));
	if (s == NULL)
		return -ENOMEM;
	d->cfg = *cfg;
	d->s = s;

	size_t n = cfg->max_pgs, m = cfg->max_waits, most = n > m ? n : m;
	s->added_pgs = calloc(n, sizeof(*s->added_pgs));
	s->pgs = calloc(n, sizeof(*s->pgs));
	s->keys = calloc(n, sizeof(*s->keys));
	s->level = calloc(n, sizeof(*s->level));
	s->behind = calloc(n, sizeof(*s->behind));
	s->stuck_bytes = calloc(n, sizeof(*s->stuck_bytes));
	s->added_waits = calloc(m + 1, sizeof(*s->added_waits));
	s->waits = calloc(m + 1, sizeof(*s->waits));
	s->memo = calloc(m + 1, sizeof(*s->memo));
	s->order = calloc(2 * most, sizeof(*s->order));
	if (!s->added_pgs || !s->pgs || !s->keys || !s->level || !s->behind || !s->stuck_bytes ||
		!s->added_waits || !s->waits || !s->memo || !s->order ||
		wait_graph_init(&s->graph, cfg->max_pgs, cfg->max_waits) < 0) {
		deadlock_fini(d);
		return -ENOMEM;
	}
	return 0;
}

void deadlock_fini(struct deadlock *d)
{
	struct dl_scratch *s = d->s;

	if (s == NULL)
		return;
	free(s->added_pgs);
	free(s->pgs);
	free(s->keys);
	free(s->level);
	free(s->behind);
	free(s->stuck_bytes);
	free(s->added_waits);
	free(s->waits);
	free(s->memo);
	free(s->order);
	wait_graph_fini(&s->graph);
	free(s);
	d->s = NULL;
}

// ---- the stuck set ------------------------------------------------------------------------------

static bool is_stalled(const struct deadlock *d, const struct wait_state *w)
{
	return d->now - w->stalled_since >= d->cfg.stuck_for;
}

// Leaves in graph.skip[] which PGs are not in the stuck set, and the stalled waits as its edges.
static void find_stuck(struct deadlock *d)
{
	struct dl_scratch *s = d->s;
	struct wait_graph *g = &s->graph;
	bool changed = true;

	wait_graph_reset(g, s->n_pgs);
	for (uint32_t i = 0; i < s->n_waits; i++) {
		if (is_stalled(d, &s->waits[i]))
			wait_graph_add(g, s->waits[i].from, s->waits[i].to);
	}
	wait_graph_close(g);
	for (uint32_t v = 0; v < s->n_pgs; v++)
		g->skip[v] = s->pgs[v].host || g->first[v] == g->first[v + 1];
	while (changed) {
		changed = false;
		memset(s->stuck_bytes, 0, s->n_pgs * sizeof(*s->stuck_bytes));
		for (uint32_t i = 0; i < s->n_waits; i++) {
			const struct wait_state *w = &s->waits[i];
			if (!g->skip[w->to] && is_stalled(d, w))
				s->stuck_bytes[w->from] += w->w.bytes;
		}
		for (uint32_t v = 0; v < s->n_pgs; v++) {
			if (!g->skip[v] && s->stuck_bytes[v] <= s->pgs[v].xon_bytes) {
				g->skip[v] = true;
				changed = true;
			}
		}
	}
}

// How many stuck PGs on no cycle wait for component c, directly or not.
static uint32_t count_behind(const struct dl_scratch *s, uint32_t c)
{
	const struct wait_graph *g = &s->graph;
	uint32_t n = 0;
	bool changed = true;

	for (uint32_t v = 0; v < g->n; v++)
		s->behind[v] = g->comp[v] == c;
	while (changed) {
		changed = false;
		for (uint32_t v = 0; v < g->n; v++) {
			if (s->behind[v] || g->skip[v])
				continue;
			for (uint32_t e = g->first[v]; e < g->first[v + 1]; e++) {
				if (s->behind[g->to[e]]) {
					s->behind[v] = true;
					changed = true;
					n += g->comp[v] == WAIT_GRAPH_NONE;
					break;
				}
			}
		}
	}
	return n;
}

// ---- reports ------------------------------------------------------------------------------------

static const struct wait_state *find_wait(const struct dl_scratch *s, uint32_t from, uint32_t to)
{
	for (uint32_t i = 0; i < s->n_waits; i++) {
		if (s->waits[i].from == from && s->waits[i].to == to)
			return &s->waits[i];
	}
	return NULL;
}

// A lasting report one of whose members is in component c.
static bool is_reported(const struct deadlock *d, uint32_t c)
{
	for (uint32_t i = 0; i < d->n_reports; i++) {
		const struct deadlock_report *r = &d->reports[i];
		for (uint32_t k = 0; r->ended_at == SIMTIME_NEVER && k < r->n_listed; k++) {
			uint32_t v = dl_find_pg(d->s, r->members[k].pg);
			if (v != UINT32_MAX && d->s->graph.comp[v] == c)
				return true;
		}
	}
	return false;
}

// A deadlock has ended when one of its members is stuck no more.
static void end_reports(struct deadlock *d)
{
	for (uint32_t i = 0; i < d->n_reports; i++) {
		struct deadlock_report *r = &d->reports[i];
		for (uint32_t k = 0; r->ended_at == SIMTIME_NEVER && k < r->n_listed; k++) {
			uint32_t v = dl_find_pg(d->s, r->members[k].pg);
			if (v == UINT32_MAX || d->s->graph.skip[v])
				r->ended_at = d->now;
		}
	}
}

static void report_component(struct deadlock *d, uint32_t c)
{
	struct dl_scratch *s = d->s;

	if (d->n_reports == DEADLOCK_REPORTS_MAX) {
		d->lost_reports++;
		return;
	}
	struct deadlock_report *r = &d->reports[d->n_reports++];
	*r = (struct deadlock_report){.detected_at = d->now, .ended_at = SIMTIME_NEVER};
	r->n_members = wait_graph_cycle(&s->graph, c, s->cycle, DEADLOCK_MEMBERS_MAX);
	r->n_listed = r->n_members < DEADLOCK_MEMBERS_MAX ? r->n_members : DEADLOCK_MEMBERS_MAX;
	for (uint32_t k = 0; k < r->n_listed; k++) {
		const struct dl_asserting *p = &s->pgs[s->cycle[k]];
		uint32_t next = s->cycle[k + 1 < r->n_listed ? k + 1 : 0];
		const struct wait_state *w = find_wait(s, s->cycle[k], next);

		r->members[k] = (struct dl_member){
			.pg = p->pg,
			.xoff_since = p->xoff_since,
			.bytes = p->bytes,
		};
		if (w != NULL) { // always, but for the last of a cycle that is not listed whole
			r->members[k].egress_port = w->w.egress_port;
			r->members[k].paused_since = w->w.paused_since;
			r->members[k].waiting_bytes = w->w.bytes;
			r->formed_at = simtime_max(r->formed_at, w->stalled_since);
		}
		if (p->xoff_since < r->members[r->trigger].xoff_since)
			r->trigger = k;
	}
	for (uint32_t v = 0; v < s->graph.n; v++)
		r->n_stuck += s->graph.comp[v] == c;
	r->n_behind = count_behind(s, c);
}

// ---- storms -------------------------------------------------------------------------------------

static struct pause_storm *storm_of(struct deadlock *d, const struct dl_asserting *host)
{
	for (uint32_t i = 0; i < d->n_storms; i++) {
		struct pause_storm *st = &d->storms[i];
		if (st->ended_at == SIMTIME_NEVER && same_pg(st->root, host->pg) &&
			st->since == host->xoff_since)
			return st;
	}
	if (d->n_storms == DEADLOCK_STORMS_MAX) {
		d->lost_reports++;
		return NULL;
	}
	struct pause_storm *st = &d->storms[d->n_storms++];
	*st = (struct pause_storm){
		.root = host->pg,
		.since = host->xoff_since,
		.detected_at = d->now,
		.ended_at = SIMTIME_NEVER,
	};
	return st;
}

// Who waits for PG `root`, level by level.
static void measure_tree(struct deadlock *d, uint32_t root, struct pause_storm *st)
{
	struct dl_scratch *s = d->s;
	uint32_t n = 0, depth = 0;
	bool grew = true;

	for (uint32_t v = 0; v < s->n_pgs; v++)
		s->level[v] = UINT32_MAX;
	s->level[root] = 0;
	for (; grew; depth += grew) {
		grew = false;
		for (uint32_t i = 0; i < s->n_waits; i++) {
			const struct wait_state *w = &s->waits[i];
			if (s->level[w->to] != depth || s->level[w->from] != UINT32_MAX)
				continue;
			s->level[w->from] = depth + 1;
			grew = true;
			n++;
		}
	}
	if (n > st->n_waiting)
		st->n_waiting = n;
	if (depth > st->depth)
		st->depth = depth;
}

static void watch_storms(struct deadlock *d)
{
	struct dl_scratch *s = d->s;

	for (uint32_t i = 0; i < d->n_storms; i++) {
		struct pause_storm *st = &d->storms[i];
		uint32_t v = dl_find_pg(s, st->root);
		if (st->ended_at == SIMTIME_NEVER &&
			(v == UINT32_MAX || s->pgs[v].xoff_since != st->since))
			st->ended_at = d->now;
	}
	for (uint32_t v = 0; v < s->n_pgs; v++) {
		if (!s->pgs[v].host || d->now - s->pgs[v].xoff_since < d->cfg.storm_for)
			continue;
		struct pause_storm *st = storm_of(d, &s->pgs[v]);
		if (st != NULL)
			measure_tree(d, v, st);
	}
}

unsigned deadlock_end(struct deadlock *d)
{
	uint32_t before = d->n_reports;

	d->checks++;
	dl_close_snapshot(d);
	find_stuck(d);
	wait_graph_components(&d->s->graph);
	end_reports(d);
	for (uint32_t c = 0; c < d->s->graph.n_comps; c++) {
		if (!is_reported(d, c))
			report_component(d, c);
	}
	watch_storms(d);
	return d->n_reports - before;
}
