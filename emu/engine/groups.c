/* SPDX-License-Identifier: BSD-3-Clause */
// Groups of nodes: how they are formed, which lcore runs them, and the inner loop that executes
// them.
//
// Nodes joined by a lane shorter than the target would force windows of that length, so they
// execute together: union-find over the short lanes. What is left between groups is at least the
// target long, and the shortest such lane is the window W.

#include <errno.h>
#include <stdlib.h>

#include "emu/core/step.h"
#include "emu/engine/internal.h"

#define WINDOW_MAX (20 * SIM_US) // also bounds how long a stop request waits

// ---- execution ---------------------------------------------------------------------------------

static void wake(struct group *g, struct node *n, simtime_t at)
{
	if (g->n_nodes > 1 && at < evq_when(&g->q, n->group_slot))
		evq_set(&g->q, n->group_slot, at);
	if (at < evq_when(&g->lc->q, g->slot))
		evq_set(&g->lc->q, g->slot, at);
}

static simtime_t run_single(struct node *n, simtime_t end)
{
	for (uint64_t events = 0;; events++) {
		uint32_t src = 0;
		simtime_t t = evq_next(&n->evq, &src);
		if (t >= end) {
			n->n_events += events;
			return t;
		}
		node_step(n, src, t);
	}
}

static __attribute__((noinline)) void step(struct node *n, uint32_t src, simtime_t t)
{
	n->n_events++;
	node_step(n, src, t);
}

// Executes arrivals at `port` from the one that is due at `t`, as long as nothing else of the node
// and no other node comes first: a train of frames costs two changes of a key.
static void run_train(struct group *g, struct node *n, unsigned port, simtime_t t, simtime_t end)
{
	struct lane *l = n->ports[port].in;

	evq_set(&n->evq, port, SIMTIME_NEVER);
	do {
		n->n_events++;
		step_train(n, port, t);
		t = lane_next(l);
	} while (
		t < end && evq_precedes(&n->evq, t, port) && evq_precedes(&g->q, t, n->group_slot));
	evq_set(&n->evq, port, t);
}

// Nodes of a group may reach each other within the window: always the earliest node steps, ties to
// the lower index. A node is kept running while nobody else in the group is due before it.
static simtime_t run_together(struct group *g, simtime_t end)
{
	for (;;) {
		uint32_t slot = 0, src = 0;
		simtime_t t = evq_next(&g->q, &slot);
		if (t >= end)
			return t;
		evq_advance(&g->q, t);

		struct node *n = g->nodes[slot];
		// What is left in the queue are the others.
		evq_set(&g->q, slot, SIMTIME_NEVER);
		t = evq_next(&n->evq, &src);
		while (t < end && evq_precedes(&g->q, t, slot)) {
			if (src < n->n_ports)
				run_train(g, n, src, t, end);
			else
				step(n, src, t);
			t = evq_next(&n->evq, &src);
		}
		evq_set(&g->q, slot, t);
	}
}

simtime_t group_run(struct group *g, simtime_t end)
{
	return g->n_nodes == 1 ? run_single(g->nodes[0], end) : run_together(g, end);
}

void lcore_poll_inbound(struct lcore_ctx *lc)
{
	for (uint32_t i = 0; i < lc->n_inbound; i++) {
		struct lane *l = lc->inbound[i];
		if (evq_when(&l->dst->evq, l->dst_port) == SIMTIME_NEVER && !lane_empty(l)) {
			simtime_t at = lane_next(l);
			evq_set(&l->dst->evq, l->dst_port, at);
			wake(l->dst->group, l->dst, at);
		}
	}
}

simtime_t lcore_run_window(struct lcore_ctx *lc, simtime_t end)
{
	simtime_t remote = SIMTIME_NEVER;

	for (;;) {
		uint32_t slot = 0;
		simtime_t t = evq_next(&lc->q, &slot);
		if (t >= end) {
			lc->windows++;
			lc->sent = remote;
			return simtime_min(t, remote);
		}
		struct group *g = lc->groups[slot];
		evq_advance(&lc->q, t);
		g->head.remote_min = SIMTIME_NEVER;
		evq_set(&lc->q, slot, group_run(g, end));
		remote = simtime_min(remote, g->head.remote_min);
	}
}

void engine_rearm_all(struct engine *e)
{
	// What nodes sent from outside a window (start, tasks) wakes no reader on another lcore.
	for (unsigned c = 0; c < e->config.n_lcores; c++)
		lcore_poll_inbound(&e->lc[c]);
	for (uint32_t i = 0; i < e->n_groups; i++) {
		struct group *g = &e->groups[i];
		simtime_t next = SIMTIME_NEVER;
		for (uint32_t k = 0; k < g->n_nodes; k++) {
			uint32_t src;
			simtime_t t = evq_next(&g->nodes[k]->evq, &src);
			if (g->n_nodes > 1)
				evq_set(&g->q, k, t);
			next = simtime_min(next, t);
		}
		evq_set(&g->lc->q, g->slot, next);
	}
}

// ---- formation ---------------------------------------------------------------------------------

static uint32_t find_root(uint32_t *parent, uint32_t i)
{
	while (parent[i] != i) {
		parent[i] = parent[parent[i]];
		i = parent[i];
	}
	return i;
}

static void join_short_lanes(struct engine *e, uint32_t *parent)
{
	for (uint32_t i = 0; i < e->n_nodes; i++)
		parent[i] = i;
	for (uint32_t i = 0; i < e->n_lanes; i++) {
		const struct lane *l = e->lanes[i];
		if (l->delay >= e->config.group_target)
			continue;
		uint32_t a = find_root(parent, l->src->index);
		uint32_t b = find_root(parent, l->dst->index);
		// The lower index becomes the root, so groups come in order of their first node.
		if (a < b)
			parent[b] = a;
		else
			parent[a] = b;
	}
}

static int fill_groups(struct engine *e, uint32_t *parent, uint32_t *group_of_root)
{
	for (uint32_t i = 0; i < e->n_nodes; i++)
		if (find_root(parent, i) == i)
			group_of_root[i] = e->n_groups++;
	e->groups = calloc(e->n_groups, sizeof(*e->groups));
	if (e->groups == NULL)
		return -ENOMEM;

	for (uint32_t i = 0; i < e->n_nodes; i++) {
		struct node *n = e->nodes[i];
		struct group *g = &e->groups[group_of_root[find_root(parent, i)]];
		struct node **nodes = realloc(g->nodes, (g->n_nodes + 1) * sizeof(struct node *));
		if (nodes == NULL)
			return -ENOMEM;
		g->nodes = nodes;
		g->head.wake = wake;
		g->weight += n->n_ports;
		n->group = g;
		n->group_slot = (uint16_t)g->n_nodes;
		g->nodes[g->n_nodes++] = n;
	}
	for (uint32_t i = 0; i < e->n_groups; i++) {
		struct group *g = &e->groups[i];
		if (g->n_nodes > 1 && evq_init(&g->q, g->n_nodes) < 0)
			return -ENOMEM;
	}
	return 0;
}

static void choose_window(struct engine *e)
{
	e->window = WINDOW_MAX;
	for (uint32_t i = 0; i < e->n_lanes; i++) {
		const struct lane *l = e->lanes[i];
		if (l->src->group != l->dst->group)
			e->window = simtime_min(e->window, l->delay);
	}
}

static int by_weight(const void *a, const void *b)
{
	const struct group *x = *(struct group *const *)a;
	const struct group *y = *(struct group *const *)b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return x < y ? -1 : x > y;
}

// Ports that `g` shares with groups already on `lc`.
static uint64_t affinity(const struct group *g, const struct lcore_ctx *lc)
{
	uint64_t n = 0;

	for (uint32_t k = 0; k < g->n_nodes; k++)
		for (unsigned p = 0; p < g->nodes[k]->n_ports; p++)
			n += g->nodes[k]->ports[p].out->dst->group->lc == lc;
	return n;
}

// Of two lcores: the one where the group fits its fair share, that knows more of its neighbours,
// that is the preferred one, that has less to do, in this order.
static bool suits_better(const struct engine *e, const struct group *g, const uint64_t *load,
	uint64_t share, unsigned preferred, unsigned c, unsigned best)
{
	bool fits = load[c] + g->weight <= share;
	bool best_fits = load[best] + g->weight <= share;
	uint64_t known = affinity(g, &e->lc[c]);
	uint64_t best_known = affinity(g, &e->lc[best]);

	if (fits != best_fits)
		return fits;
	if (fits && known != best_known)
		return known > best_known;
	if (fits && (c == preferred || best == preferred))
		return c == preferred;
	return load[c] < load[best];
}

// Heaviest first. Of groups of one weight (the leaves, say) each lcore prefers a run of neighbours,
// for traffic tends to stay near. What an lcore runs never changes results, only speed.
static int assign_lcores(struct engine *e)
{
	struct group **order = calloc(e->n_groups, sizeof(struct group *));
	uint64_t load[ENGINE_LCORES_MAX] = {0};
	uint64_t total = 0;
	uint32_t first = 0, end = 0; // groups of the weight of the one looked at

	if (order == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < e->n_groups; i++) {
		order[i] = &e->groups[i];
		total += e->groups[i].weight;
	}
	qsort(order, e->n_groups, sizeof(struct group *), by_weight);

	uint64_t share = total / e->config.n_lcores + 1;
	for (uint32_t i = 0; i < e->n_groups; i++) {
		struct group *g = order[i];
		if (i == end)
			for (first = i; end < e->n_groups && order[end]->weight == g->weight; end++)
				;
		unsigned preferred =
			(unsigned)((uint64_t)(i - first) * e->config.n_lcores / (end - first));
		unsigned best = 0;
		for (unsigned c = 1; c < e->config.n_lcores; c++)
			if (suits_better(e, g, load, share, preferred, c, best))
				best = c;
		g->lc = &e->lc[best];
		load[best] += g->weight;
	}
	free(order);
	return 0;
}

static int fill_lcores(struct engine *e)
{
	for (uint32_t i = 0; i < e->n_groups; i++)
		e->groups[i].slot = e->groups[i].lc->n_groups++;

	for (unsigned c = 0; c < e->config.n_lcores; c++) {
		struct lcore_ctx *lc = &e->lc[c];
		lc->groups = calloc(lc->n_groups + 1, sizeof(struct group *));
		lc->inbound = calloc(e->n_lanes + 1, sizeof(struct lane *));
		lc->pollers = calloc(e->n_nodes + 1, sizeof(struct node *));
		if (lc->groups == NULL || lc->inbound == NULL || lc->pollers == NULL ||
			evq_init(&lc->q, RTE_MAX(lc->n_groups, 1u)) < 0)
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < e->n_groups; i++)
		e->groups[i].lc->groups[e->groups[i].slot] = &e->groups[i];
	for (uint32_t i = 0; i < e->n_lanes; i++) {
		struct lane *l = e->lanes[i];
		struct lcore_ctx *lc = l->dst->group->lc;
		l->remote = l->src->group->lc != lc;
		lane_update(l);
		if (l->remote)
			lc->inbound[lc->n_inbound++] = l;
	}
	for (uint32_t i = 0; i < e->n_nodes; i++) {
		struct node *n = e->nodes[i];
		if (n->ops->poll != NULL)
			n->group->lc->pollers[n->group->lc->n_pollers++] = n;
	}
	return 0;
}

int engine_form_groups(struct engine *e)
{
	uint32_t *parent = malloc(e->n_nodes * sizeof(*parent));
	uint32_t *group_of_root = malloc(e->n_nodes * sizeof(*group_of_root));
	int rc = -ENOMEM;

	if (parent != NULL && group_of_root != NULL) {
		join_short_lanes(e, parent);
		rc = fill_groups(e, parent, group_of_root);
	}
	free(parent);
	free(group_of_root);
	if (rc == 0)
		rc = assign_lcores(e);
	if (rc == 0)
		rc = fill_lcores(e);
	if (rc == 0)
		choose_window(e);
	return rc;
}
