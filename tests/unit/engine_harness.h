/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// What the tests of the engine share: EAL with two lcores and one pool of frames, and a bench of
// small nodes whose behaviour the test writes as three functions.
//
// Ops may run on a worker, where a cmocka assertion would jump off the stack of another thread:
// they note what is wrong with probe_check() and the test asserts `errors` after the run.

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_mempool.h>

#include "emu/engine/eal.h"
#include "emu/engine/engine.h"

#define POOL_FRAMES 32767
#define GBPS        UINT64_C(1000000000)

static struct frame_pool pool;

static inline int harness_start(void **state)
{
	struct eal_config c = {
		.n_lcores = 2, .memory_bytes = 2 * frame_pool_bytes(POOL_FRAMES, 192)};
	struct eal_info info;

	if (eal_start(&c, &info, stderr) < 0)
		return -1;
	pool.heads = frame_pool_create("heads", POOL_FRAMES, FRAME_HEAD_ROOM);
	return pool.heads ? 0 : -1;
}

static inline int harness_stop(void **state)
{
	rte_mempool_free(pool.heads);
	eal_stop();
	return 0;
}

// ---- probes: nodes written in a test ------------------------------------------------------------

#define RECORDS_MAX 4096

struct probe;
typedef void (*probe_arrive)(struct probe *p, unsigned port, struct frame *f);
typedef void (*probe_timer)(struct probe *p, uint32_t kind, uint32_t arg);

struct record {
	simtime_t at;
	unsigned port;
	unsigned len;
	uint64_t note;
};

struct probe {
	struct node n;          // first: see node.h
	probe_arrive on_arrive; // NULL: the frame is delivered
	probe_timer on_timer;
	probe_timer on_depart; // kind is the port
	void (*on_start)(struct probe *p);
	struct record rec[RECORDS_MAX]; // arrivals
	unsigned n_rec;
	unsigned link_calls;
	unsigned errors;
	char why[160]; // of the first error
	uint64_t held;
	void *ctx;
};

#define probe_check(p, cond)                                                                \
	do {                                                                                \
		if (!(cond) && (p)->errors++ == 0)                                          \
			snprintf((p)->why, sizeof((p)->why), "%s at %lld: %s", (p)->n.name, \
				(long long)(p)->n.now, #cond);                              \
	} while (0)

static inline void probe_op_arrive(struct node *n, unsigned port, struct frame *f)
{
	struct probe *p = (struct probe *)n;

	if (p->n_rec < RECORDS_MAX)
		p->rec[p->n_rec] = (struct record){n->now, port, f->len, f->note};
	p->n_rec++;
	if (p->on_arrive != NULL)
		p->on_arrive(p, port, f);
	else
		node_deliver(n, port, f);
}

static inline void probe_op_depart(struct node *n, unsigned port)
{
	struct probe *p = (struct probe *)n;

	p->on_depart(p, port, 0);
}

static inline void probe_op_timer(struct node *n, uint32_t kind, uint32_t arg)
{
	struct probe *p = (struct probe *)n;

	p->on_timer(p, kind, arg);
}

static inline void probe_op_start(struct node *n)
{
	struct probe *p = (struct probe *)n;

	if (p->on_start != NULL)
		p->on_start(p);
}

static inline void probe_op_link(struct node *n, unsigned port, bool up)
{
	((struct probe *)n)->link_calls++;
}

static const struct node_ops probe_ops = {
	.name = "probe",
	.arrive = probe_op_arrive,
	.depart = probe_op_depart,
	.timer = probe_op_timer,
	.start = probe_op_start,
	.link = probe_op_link,
};

static inline struct probe *probe_new(struct engine *e, unsigned n_ports)
{
	struct probe *p = calloc(1, sizeof(*p));
	char name[16];

	assert_non_null(p);
	static unsigned count;
	snprintf(name, sizeof(name), "p%u", count++);
	assert_int_equal(node_init(&p->n, &probe_ops, name, n_ports, 64), 0);
	p->n.pool = pool;
	assert_true(engine_add_node(e, &p->n) >= 0);
	return p;
}

static inline void probe_free(struct probe *p)
{
	assert_string_equal(p->why, "");
	node_fini(&p->n);
	free(p);
}

// Both lanes between two ports.
static inline void join(struct engine *e, struct probe *a, unsigned a_port, struct probe *b,
	unsigned b_port, uint64_t rate_bps, simtime_t delay)
{
	struct lane_config c = {.rate_bps = rate_bps, .delay = delay};

	assert_int_equal(engine_connect(e, &a->n, a_port, &b->n, b_port, &c), 0);
	assert_int_equal(engine_connect(e, &b->n, b_port, &a->n, a_port, &c), 0);
}

// A new frame of `len` bytes; its note is when it will arrive if it is sent on `port` now.
static inline struct frame *probe_frame(struct probe *p, unsigned port, unsigned len)
{
	struct frame *f = node_new_frame(&p->n, port);

	if (f != NULL) {
		f->len = f->head_len = (uint16_t)len;
		f->flow_hash = (uint32_t)p->n.created;
	}
	return f;
}

// By the definition of a lane, from the rate and not from the lane's own arithmetic.
static inline simtime_t expected_arrival(
	const struct probe *p, unsigned port, const struct frame *f)
{
	const struct lane *l = p->n.ports[port].out;
	simtime_t wire = (simtime_t)(UINT64_C(8000000000000) / l->rate_bps * (f->len + 24u));

	return simtime_max(p->n.now, l->free_at) + wire + l->delay;
}

static inline void probe_send(struct probe *p, unsigned port, struct frame *f)
{
	f->note = (uint64_t)expected_arrival(p, port, f);
	node_send(&p->n, port, f);
}

static inline struct engine *engine_new(unsigned n_lcores, simtime_t duration, simtime_t target)
{
	struct engine_config c = {.n_lcores = n_lcores,
		.duration = duration,
		.group_target = target,
		.time_scale = 1,
		.seed = 42};
	struct engine *e = NULL;

	assert_int_equal(engine_create(&c, &e), 0);
	return e;
}

static inline void assert_pool_full(void)
{
	assert_int_equal(rte_mempool_avail_count(pool.heads), POOL_FRAMES);
}
