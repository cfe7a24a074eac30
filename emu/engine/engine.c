/* SPDX-License-Identifier: BSD-3-Clause */
// Building, running and looking at an engine. The loops are in virtual.c and wall.c.

#include "emu/engine/engine.h"

#include <errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <stdlib.h>

#include "emu/engine/internal.h"

#define MIN_WIRE_BYTES (ETH_MIN_BYTES + ETH_OVERHEAD_BYTES)
#define LANE_SLOTS_MAX (1u << 22)

int engine_create(const struct engine_config *config, struct engine **out)
{
	if (config->n_lcores < 1 || config->n_lcores > ENGINE_LCORES_MAX || config->time_scale <= 0)
		return -EINVAL;

	struct engine *e = calloc(1, sizeof(*e));
	if (e == NULL)
		return -ENOMEM;
	e->config = *config;
	e->barrier.n = config->n_lcores;
	pace_init(&e->pace);
	if (posix_memalign(
		    (void **)&e->lc, RTE_CACHE_LINE_SIZE, config->n_lcores * sizeof(*e->lc)) != 0) {
		free(e);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < config->n_lcores; i++)
		e->lc[i] = (struct lcore_ctx){.e = e, .index = i};
	for (unsigned i = 0; i < config->n_lcores; i++) {
		if (config->wall && (e->lc[i].lag = calloc(1, sizeof(struct lag))) == NULL) {
			engine_destroy(e);
			return -ENOMEM;
		}
	}
	*out = e;
	return 0;
}

void engine_destroy(struct engine *e)
{
	if (e == NULL)
		return;
	for (uint32_t i = 0; i < e->n_lanes; i++) {
		lane_fini(e->lanes[i]);
		free(e->lanes[i]);
	}
	for (uint32_t i = 0; i < e->n_groups; i++) {
		evq_fini(&e->groups[i].q);
		free(e->groups[i].nodes);
	}
	for (unsigned i = 0; i < e->config.n_lcores; i++) {
		evq_fini(&e->lc[i].q);
		free(e->lc[i].groups);
		free(e->lc[i].inbound);
		free(e->lc[i].pollers);
		free(e->lc[i].lag);
	}
	free(e->lanes);
	free(e->nodes);
	free(e->groups);
	free(e->tasks);
	free(e->lc);
	free(e);
}

int engine_add_node(struct engine *e, struct node *n)
{
	struct node **nodes = realloc(e->nodes, (e->n_nodes + 1) * sizeof(struct node *));
	if (nodes == NULL)
		return -ENOMEM;
	e->nodes = nodes;
	e->nodes[e->n_nodes] = n;
	n->index = e->n_nodes++;
	n->seed = e->config.seed;
	n->rng = rng_stream(e->config.seed, n->index);
	return (int)n->index;
}

// How many frames a lane can hold at most: what fits into its delay and two windows as minimum-size
// frames. Local lanes start smaller, to stay in the cache, and grow; see lane_grow().
static uint64_t lane_slots(const struct engine *e, const struct lane *l, uint32_t wire_bytes)
{
	simtime_t frame = lane_wire_time(l, wire_bytes);
	simtime_t span = l->delay + l->slack + 2 * e->window;

	return (uint64_t)(span / simtime_max(frame, 1)) + 8;
}

int engine_connect(struct engine *e, struct node *src, unsigned src_port, struct node *dst,
	unsigned dst_port, const struct lane_config *config)
{
	if (config->delay <= 0 || config->rate_bps == 0 || src_port >= src->n_ports ||
		dst_port >= dst->n_ports)
		return -EINVAL;
	if (src->ports[src_port].out != NULL || dst->ports[dst_port].in != NULL)
		return -EINVAL;

	struct lane *l = NULL;
	struct lane **lanes = realloc(e->lanes, (e->n_lanes + 1) * sizeof(struct lane *));
	if (lanes == NULL)
		return -ENOMEM;
	e->lanes = lanes;
	if (posix_memalign((void **)&l, RTE_CACHE_LINE_SIZE, sizeof(*l)) != 0)
		return -ENOMEM;
	*l = (struct lane){.dst = dst,
		.dst_port = (uint16_t)dst_port,
		.src = src,
		.src_port = (uint16_t)src_port,
		.up = true,
		.byte_time = byte_time_fp(config->rate_bps),
		.rate_bps = config->rate_bps,
		.delay = config->delay,
		.corrupt_q32 = config->corrupt_q32,
		.slack = config->slack,
		.id = e->n_lanes};
	l->rng = rng_stream(e->config.seed, ((uint64_t)1 << 32) + l->id);
	src->ports[src_port].out = l;
	dst->ports[dst_port].in = l;
	e->lanes[e->n_lanes++] = l;
	return 0;
}

int engine_prepare(struct engine *e)
{
	// An lcore that never runs would leave the others at the barrier for ever.
	if (e->config.n_lcores > 1 && e->config.n_lcores > rte_lcore_count())
		return -EINVAL;
	for (uint32_t i = 0; i < e->n_nodes; i++)
		for (unsigned p = 0; p < e->nodes[i]->n_ports; p++)
			if (e->nodes[i]->ports[p].in == NULL || e->nodes[i]->ports[p].out == NULL)
				return -EINVAL;

	int rc = engine_form_groups(e);
	for (uint32_t i = 0; rc == 0 && i < e->n_lanes; i++) {
		struct lane *l = e->lanes[i];
		uint64_t slots = l->remote ? lane_slots(e, l, MIN_WIRE_BYTES)
					   : lane_slots(e, l, 16 * MIN_WIRE_BYTES);
		// Under the wall clock the reader may be late by more than a window.
		if (e->config.wall && l->remote)
			slots = 4 * slots + 4096;
		rc = lane_init(l, (uint32_t)RTE_MIN(slots, (uint64_t)LANE_SLOTS_MAX));
	}
	return rc;
}

// ---- run ---------------------------------------------------------------------------------------

static int run_lcore(void *arg)
{
	struct lcore_ctx *lc = arg;

	if (lc->e->config.wall)
		wall_loop(lc);
	else
		virtual_loop(lc);
	return 0;
}

// When the last thing happened in a run that ended by itself: a frame arrived, a node noted an
// event, a task ran. Not the last timer: those that expire without need (retransmission timers
// re-arm lazily) would have the run end long after its traffic.
static simtime_t last_happening(const struct engine *e)
{
	simtime_t last = e->last_task;

	for (uint32_t i = 0; i < e->n_lanes; i++) {
		const struct lane *l = e->lanes[i];
		if (l->free_at > 0)
			last = simtime_max(last, l->free_at + l->delay);
		if (l->hook != NULL && l->hook->free_at > 0)
			last = simtime_max(last, l->hook->free_at + l->delay);
	}
	for (uint32_t i = 0; i < e->n_nodes; i++) {
		const struct event_log *log = &e->nodes[i]->log;
		if (log->n > 0)
			last = simtime_max(last, log->ev[log->n - 1].at);
	}
	return last;
}

// Gives every node its lcore's frame cache for the run, or takes it away and empties the caches.
static void lend_caches(struct engine *e, bool lend)
{
	for (uint32_t i = 0; i < e->n_nodes; i++) {
		struct node *n = e->nodes[i];
		struct frame_cache *c = &n->group->lc->cache;
		// One cache serves one pool.
		if (c->pool == NULL)
			c->pool = n->pool.heads;
		n->cache = lend && c->pool == n->pool.heads ? c : NULL;
	}
	for (unsigned i = 0; i < e->config.n_lcores && !lend; i++)
		frame_cache_flush(&e->lc[i].cache, 0);
}

enum engine_end engine_run(struct engine *e)
{
	lend_caches(e, true);
	for (uint32_t i = 0; i < e->n_nodes; i++)
		if (e->nodes[i]->ops->start != NULL)
			e->nodes[i]->ops->start(e->nodes[i]);
	engine_rearm_all(e);

	unsigned started = 1;
	unsigned id;
	RTE_LCORE_FOREACH_WORKER(id)
	{
		if (started < e->config.n_lcores)
			rte_eal_remote_launch(run_lcore, &e->lc[started++], id);
	}
	run_lcore(&e->lc[0]);
	rte_eal_mp_wait_lcore();
	lend_caches(e, false);
	// e->now is the start of the last window: the run ended with the last event in it.
	for (uint32_t i = 0; i < e->n_nodes; i++)
		e->now = simtime_max(e->now, e->nodes[i]->now);
	if (e->end == ENGINE_END_IDLE)
		e->now = simtime_min(e->now, last_happening(e));
	for (uint32_t i = 0; i < e->n_nodes; i++)
		e->nodes[i]->now = e->now;
	return e->end;
}

void engine_request_stop(struct engine *e)
{
	e->stop = true;
}

// ---- links -------------------------------------------------------------------------------------

static void lose_frames(struct lane *l)
{
	struct node *n = l->dst;

	while (!lane_empty(l)) {
		struct frame *f = l->slots[l->head & l->mask].f;
		l->head++;
		node_drop(n, l->dst_port, f, DROP_LINK_DOWN);
	}
	evq_set(&n->evq, l->dst_port, SIMTIME_NEVER);
	if (l->hook != NULL)
		for (struct frame *f; (f = l->hook->take(l->hook)) != NULL;)
			node_lose(l->src, l->src_port, f, DROP_LINK_DOWN);
}

void engine_set_link(struct engine *e, struct node *a, unsigned port, bool up)
{
	struct lane *out = a->ports[port].out;
	struct lane *in = a->ports[port].in;
	struct node *b = out->dst;
	unsigned b_port = out->dst_port;

	if (out->up == up && in->up == up)
		return;
	engine_enter(e, a);
	engine_enter(e, b);
	out->up = in->up = up;
	lane_update(out);
	lane_update(in);
	if (!up) {
		lose_frames(out);
		lose_frames(in);
	}
	node_event(a, port, up ? EV_LINK_UP : EV_LINK_DOWN, 0, 0);
	node_event(b, b_port, up ? EV_LINK_UP : EV_LINK_DOWN, 0, 0);
	if (a->ops->link != NULL)
		a->ops->link(a, port, up);
	if (b->ops->link != NULL)
		b->ops->link(b, b_port, up);
}

void engine_set_lane(struct engine *e, struct node *a, unsigned port, bool up)
{
	struct lane *l = a->ports[port].out;

	if (l->up == up)
		return;
	engine_enter(e, a);
	engine_enter(e, l->dst);
	l->up = up;
	lane_update(l);
	if (!up)
		lose_frames(l);
	node_event(a, port, up ? EV_LINK_UP : EV_LINK_DOWN, 0, 0);
}

// ---- looking at it -----------------------------------------------------------------------------

simtime_t engine_now(const struct engine *e)
{
	return e->now;
}

uint64_t engine_digest(const struct engine *e)
{
	uint64_t digest = 0;

	for (uint32_t i = 0; i < e->n_nodes; i++)
		digest = mix64(digest + e->nodes[i]->digest + i);
	return digest;
}

struct engine_shape engine_shape(const struct engine *e)
{
	struct engine_shape s = {.n_groups = e->n_groups, .window = e->window};

	for (uint32_t i = 0; i < e->n_lanes; i++)
		s.n_remote_lanes += e->lanes[i]->remote;
	return s;
}

struct engine_progress engine_progress(const struct engine *e)
{
	struct engine_progress p = {.now = e->now};

	for (unsigned i = 0; i < e->config.n_lcores; i++) {
		p.windows += e->lc[i].windows;
		p.slept += e->lc[i].slept;
	}
	for (uint32_t i = 0; i < e->n_nodes; i++)
		p.events += e->nodes[i]->n_events;
	return p;
}

const struct lag *engine_lag(const struct engine *e, unsigned lcore)
{
	return e->lc[lcore].lag;
}

uint64_t engine_frames_on_lanes(const struct engine *e)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < e->n_lanes; i++) {
		const struct lane *l = e->lanes[i];
		n += l->tail - l->head;
		if (l->hook != NULL)
			n += l->hook->held(l->hook);
	}
	return n;
}

void engine_drain_lanes(struct engine *e)
{
	for (uint32_t i = 0; i < e->n_lanes; i++) {
		struct lane *l = e->lanes[i];
		for (; l->head != l->tail; l->head++)
			frame_free(l->slots[l->head & l->mask].f);
		for (struct frame *f; l->hook != NULL && (f = l->hook->take(l->hook)) != NULL;)
			frame_free(f);
	}
}
