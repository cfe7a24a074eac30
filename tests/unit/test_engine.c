/* SPDX-License-Identifier: BSD-3-Clause */
// The windowed executor under the virtual clock: random traffic over several topologies must come
// out the same on one and two lcores, in any grouping and from run to run; and each event must
// happen at its own time.

#include "engine_harness.h"

#define QUEUE_LIMIT 40
#define PORTS_MAX   16
#define NODES_MAX   40

// ---- a store-and-forward node that makes and forwards random traffic
// -------------------------------

struct traffic {
	struct probe p; // first
	struct frame_queue queue[PORTS_MAX];
	unsigned queued[PORTS_MAX];
	simtime_t want[PORTS_MAX]; // earliest legal time of the next depart call
	unsigned to_make;
	simtime_t mean_gap;
	simtime_t last_now;
};

enum { TIMER_MAKE, TIMER_NOTHING };

// No event of a node is earlier than the one before it.
static void check_time(struct traffic *t)
{
	probe_check(&t->p, t->p.n.now >= t->last_now);
	t->last_now = t->p.n.now;
}

static void forward(struct traffic *t, unsigned port, struct frame *f)
{
	struct node *n = &t->p.n;

	if (node_lane_idle(n, port) && frame_queue_empty(&t->queue[port])) {
		probe_send(&t->p, port, f);
		return;
	}
	if (t->queued[port] >= QUEUE_LIMIT) {
		node_drop(n, f->in_port, f, DROP_QUEUE_FULL);
		return;
	}
	frame_queue_push(&t->queue[port], f);
	t->queued[port]++;
	t->p.held++;
	if (!node_depart_pending(n, port)) {
		t->want[port] = n->ports[port].out->free_at;
		node_want_depart(n, port, n->now);
	}
}

static void traffic_depart(struct probe *p, uint32_t port, uint32_t arg)
{
	struct traffic *t = (struct traffic *)p;

	check_time(t);
	// A control frame may have made it later, never earlier.
	probe_check(p, p->n.now >= t->want[port] && node_lane_idle(&p->n, port));
	struct frame *f = frame_queue_pop(&t->queue[port]);
	probe_check(p, f != NULL);
	if (f == NULL)
		return;
	t->queued[port]--;
	p->held--;
	probe_send(p, port, f);
	if (!frame_queue_empty(&t->queue[port])) {
		t->want[port] = p->n.ports[port].out->free_at;
		node_want_depart(&p->n, port, 0);
	}
}

static void make_frame(struct traffic *t)
{
	struct node *n = &t->p.n;
	unsigned port = rng_below(&n->rng, n->n_ports);
	struct frame *f = probe_frame(&t->p, port, 60 + rng_below(&n->rng, 1455));

	if (f == NULL)
		return;
	f->in_port = (uint16_t)port;
	f->payload_pos = 1 + rng_below(&n->rng, 6); // hops to go
	f->tc = (uint8_t)rng_below(&n->rng, PRIO_COUNT);
	forward(t, port, f);
}

// Timer times repeat often (multiples of 10 ns), so that ties are many. The argument is the low
// half of the time at which it must fire.
static void traffic_timer(struct probe *p, uint32_t kind, uint32_t arg)
{
	struct traffic *t = (struct traffic *)p;

	check_time(t);
	probe_check(p, (uint32_t)p->n.now == arg);
	if (kind == TIMER_NOTHING || t->to_make == 0)
		return;
	t->to_make--;
	make_frame(t);
	simtime_t at = p->n.now / 10000 * 10000 +
		       10000 * (1 + rng_below(&p->n.rng, (uint32_t)(2 * t->mean_gap / 10000)));
	node_timer(&p->n, at, TIMER_MAKE, (uint32_t)at);
	if (rng_below(&p->n.rng, 8) == 0) // far: beyond the event queue's 4.3 ms
		node_timer(&p->n, at + 5 * SIM_MS, TIMER_NOTHING, (uint32_t)(at + 5 * SIM_MS));
}

static void traffic_arrive(struct probe *p, unsigned port, struct frame *f)
{
	struct traffic *t = (struct traffic *)p;

	check_time(t);
	probe_check(p, (uint64_t)p->n.now == f->note);
	if (f->kind == FRAME_CONTROL) {
		node_consume(&p->n, port, f);
		return;
	}
	if (rng_below(&p->n.rng, 16) == 0) { // like a pause frame: at once, whatever the lane does
		struct frame *c = probe_frame(p, port, 60);
		if (c != NULL) {
			c->kind = FRAME_CONTROL;
			probe_send(p, port, c);
		}
	}
	if (--f->payload_pos == 0)
		node_deliver(&p->n, port, f);
	else
		forward(t, rng_below(&p->n.rng, p->n.n_ports), f);
}

static void traffic_start(struct probe *p)
{
	struct traffic *t = (struct traffic *)p;

	make_frame(t); // sent before the first window
	node_timer(&p->n, 0, TIMER_MAKE, 0);
}

// ---- topologies
// ----------------------------------------------------------------------------------

struct link {
	uint8_t a, b;
	uint16_t gbps;
	simtime_t delay;
};

struct topology {
	const char *name;
	unsigned n_nodes;
	unsigned n_links;
	struct link links[128];
};

static void add(struct topology *t, unsigned a, unsigned b, unsigned gbps, simtime_t delay)
{
	t->links[t->n_links++] = (struct link){(uint8_t)a, (uint8_t)b, (uint16_t)gbps, delay};
	t->n_nodes = RTE_MAX(t->n_nodes, RTE_MAX(a, b) + 1);
}

// Leaves with hosts 5 m away, 300 m to the spines.
static struct topology leaf_spine(void)
{
	struct topology t = {.name = "leaf-spine"};

	for (unsigned leaf = 2; leaf < 6; leaf++) {
		for (unsigned spine = 0; spine < 2; spine++)
			add(&t, leaf, spine, 400, 1500 * SIM_NS);
		for (unsigned h = 0; h < 5; h++)
			add(&t, leaf, 6 + (leaf - 2) * 5 + h, 100, 25 * SIM_NS);
	}
	return t;
}

static struct topology star(void)
{
	struct topology t = {.name = "star"};

	for (unsigned h = 1; h <= 12; h++)
		add(&t, 0, h, 25, h % 3 ? 600 * SIM_NS : 25 * SIM_NS);
	return t;
}

// Every length from 1 ps to 3 us, in a ring: groups of all shapes.
static struct topology ring(void)
{
	static const simtime_t delays[] = {
		1, 25000, 25000, 700000, 499999, 500000, 500001, 3000000};
	struct topology t = {.name = "ring"};

	for (unsigned i = 0; i < 16; i++)
		add(&t, i, (i + 1) % 16, i % 2 ? 100 : 10, delays[i % 8]);
	return t;
}

static struct topology random_mesh(void)
{
	struct topology t = {.name = "mesh"};
	struct rng r = rng_stream(5, 5);

	for (unsigned i = 1; i < 20; i++)
		add(&t, i, rng_below(&r, i), 100, SIM_NS * (1 + rng_below(&r, 2000)));
	for (unsigned i = 0; i < 20; i++)
		add(&t, rng_below(&r, 20), rng_below(&r, 20), 400,
			SIM_NS * (1 + rng_below(&r, 2000)));
	return t;
}

static struct topology pair(void)
{
	struct topology t = {.name = "pair"};

	add(&t, 0, 1, 100, 900 * SIM_NS);
	add(&t, 0, 1, 100, 900 * SIM_NS);
	return t;
}

// ---- run
// -------------------------------------------------------------------------------------------

struct run {
	unsigned n_lcores;
	simtime_t target;
	simtime_t duration;
	uint64_t seed;
	uint64_t corrupt_q32;
	bool toggle_links;
};

struct outcome {
	uint64_t digest, events, created, delivered, consumed, dropped, link_down, inside;
	simtime_t end;
	enum engine_end why;
	struct engine_shape shape;
};

static struct traffic *nodes[NODES_MAX];

static void toggle_a_link(struct engine *e, simtime_t now, void *arg)
{
	struct node *n = &nodes[(uint64_t)now / SIM_US % 2]->p.n;
	unsigned port = (unsigned)((uint64_t)now / (3 * SIM_US)) % n->n_ports;

	assert_int_equal(engine_now(e), now);
	engine_set_link(e, n, port, !n->ports[port].out->up);
	if (now < 40 * SIM_US)
		assert_int_equal(engine_at(e, now + 777 * SIM_NS, toggle_a_link, NULL, false), 0);
}

static void build(struct engine *e, const struct topology *t, const struct run *r)
{
	unsigned degree[NODES_MAX] = {0}, next[NODES_MAX] = {0};

	for (unsigned i = 0; i < t->n_links; i++) {
		degree[t->links[i].a]++;
		degree[t->links[i].b]++;
	}
	for (unsigned i = 0; i < t->n_nodes; i++) {
		assert_true(degree[i] <= PORTS_MAX);
		nodes[i] = calloc(1, sizeof(*nodes[i]));
		assert_non_null(nodes[i]);
		struct probe *p = &nodes[i]->p;
		assert_int_equal(node_init(&p->n, &probe_ops, "t", degree[i], 16), 0);
		p->n.pool = pool;
		assert_int_equal(engine_add_node(e, &p->n), i);
		p->on_arrive = traffic_arrive;
		p->on_timer = traffic_timer;
		p->on_depart = traffic_depart;
		p->on_start = traffic_start;
		nodes[i]->to_make = 300;
		nodes[i]->mean_gap = 150 * SIM_NS;
	}
	for (unsigned i = 0; i < t->n_links; i++) {
		const struct link *l = &t->links[i];
		struct lane_config c = {.rate_bps = l->gbps * GBPS,
			.delay = l->delay,
			.corrupt_q32 = r->corrupt_q32};
		struct node *a = &nodes[l->a]->p.n, *b = &nodes[l->b]->p.n;
		unsigned a_port = next[l->a]++, b_port = next[l->b]++;
		assert_int_equal(engine_connect(e, a, a_port, b, b_port, &c), 0);
		assert_int_equal(engine_connect(e, b, b_port, a, a_port, &c), 0);
	}
}

static void drain_and_free(const struct topology *t)
{
	for (unsigned i = 0; i < t->n_nodes; i++) {
		struct traffic *n = nodes[i];
		for (unsigned p = 0; p < n->p.n.n_ports; p++)
			for (struct frame *f; (f = frame_queue_pop(&n->queue[p])) != NULL;)
				frame_free(f);
		probe_free(&n->p); // asserts that it saw no error
	}
}

static struct outcome run(const struct topology *t, struct run r)
{
	struct engine_config c = {.n_lcores = r.n_lcores,
		.duration = r.duration,
		.group_target = r.target,
		.time_scale = 1,
		.seed = r.seed};
	struct engine *e = NULL;
	struct outcome o = {0};

	assert_int_equal(engine_create(&c, &e), 0);
	build(e, t, &r);
	assert_int_equal(engine_prepare(e), 0);
	if (r.toggle_links)
		assert_int_equal(engine_at(e, 5 * SIM_US, toggle_a_link, NULL, false), 0);
	o.why = engine_run(e);
	o.digest = engine_digest(e);
	o.shape = engine_shape(e);
	o.end = engine_now(e);
	o.inside = engine_frames_on_lanes(e);
	for (unsigned i = 0; i < t->n_nodes; i++) {
		const struct node *n = &nodes[i]->p.n;
		o.events += n->n_events;
		o.created += n->created;
		o.delivered += n->delivered;
		o.consumed += n->consumed;
		o.dropped += n->dropped;
		o.inside += nodes[i]->p.held;
		for (unsigned p = 0; p < n->n_ports; p++)
			o.link_down += n->ports[p].ctr->drops[DROP_LINK_DOWN];
		assert_int_equal(n->now, o.end);
	}
	assert_int_equal(o.created, o.delivered + o.consumed + o.dropped + o.inside);
	assert_true(o.delivered > 0);
	if (r.duration != SIMTIME_NEVER)
		assert_true(o.why == ENGINE_END_DURATION && o.end == r.duration && o.inside > 0);
	else
		assert_true(o.why == ENGINE_END_IDLE && o.inside == 0);
	assert_true((o.link_down > 0) == r.toggle_links);
	engine_drain_lanes(e);
	drain_and_free(t);
	engine_destroy(e);
	assert_pool_full();
	return o;
}

static void assert_equal_outcome(const struct outcome *a, const struct outcome *b)
{
	assert_int_equal(a->events, b->events);
	assert_int_equal(a->created, b->created);
	assert_int_equal(a->delivered, b->delivered);
	assert_int_equal(a->dropped, b->dropped);
	assert_int_equal(a->inside, b->inside);
	assert_int_equal(a->end, b->end);
	assert_int_equal(a->why, b->why);
	assert_int_equal(a->digest, b->digest);
}

// In any grouping: each node alone, all in one, and what lies between.
static void assert_independent_of_execution(const struct topology *t, struct run r)
{
	static const simtime_t targets[] = {0, 30 * SIM_NS, 500 * SIM_NS, 1 * SIM_MS};

	r.n_lcores = 1;
	struct outcome first = run(t, r);
	for (int i = 0; i < 4; i++) {
		for (unsigned lcores = 1; lcores <= 2; lcores++) {
			r.target = targets[i];
			r.n_lcores = lcores;
			struct outcome o = run(t, r);
			assert_equal_outcome(&first, &o);
			if (i == 0)
				assert_int_equal(o.shape.n_groups, t->n_nodes);
			if (i == 3)
				assert_int_equal(o.shape.n_groups, 1);
			assert_int_equal(o.shape.n_remote_lanes > 0, lcores == 2 && i < 3);
		}
	}
}

static void all_topologies(struct run r)
{
	struct topology t[] = {leaf_spine(), star(), ring(), random_mesh(), pair()};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		print_message("  %s\n", t[i].name);
		assert_independent_of_execution(&t[i], r);
	}
}

static void results_do_not_depend_on_lcores_or_groups(void **state)
{
	all_topologies((struct run){.duration = SIMTIME_NEVER, .seed = 1});
}

static void nor_when_the_run_is_cut_off(void **state)
{
	all_topologies((struct run){.duration = 33333333, .seed = 2});
}

static void nor_with_bit_errors_and_failing_links(void **state)
{
	all_topologies((struct run){.duration = SIMTIME_NEVER,
		.seed = 3,
		.corrupt_q32 = UINT64_C(1) << 26,
		.toggle_links = true});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results_do_not_depend_on_lcores_or_groups),
		cmocka_unit_test(nor_when_the_run_is_cut_off),
		cmocka_unit_test(nor_with_bit_errors_and_failing_links),
	};
	return cmocka_run_group_tests(tests, harness_start, harness_stop);
}
