/* SPDX-License-Identifier: BSD-3-Clause */
// What every node does the same way: putting frames on lanes, ending them, counting. Everything
// here runs on the node's lcore.

#include "emu/core/node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/core/observe.h"

#define TIMERS_INITIAL 64

int node_init(struct node *n, const struct node_ops *ops, const char *name, unsigned n_ports,
	unsigned log_cap)
{
	n->ops = ops;
	n->n_ports = (uint16_t)n_ports;
	snprintf(n->name, sizeof(n->name), "%s", name);
	n->ports = calloc(n_ports, sizeof(*n->ports));
	struct port_counters *ctr = calloc(n_ports, sizeof(*ctr));
	n->log = (struct event_log){.cap = log_cap, .ev = calloc(log_cap, sizeof(struct event))};
	if (n->ports == NULL || ctr == NULL || n->log.ev == NULL) {
		free(ctr);
		node_fini(n);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < n_ports; i++)
		n->ports[i].ctr = &ctr[i];
	if (evq_init(&n->evq, 2 * n_ports + 1) < 0 ||
		timer_heap_init(&n->timers, TIMERS_INITIAL) < 0) {
		node_fini(n);
		return -ENOMEM;
	}
	return 0;
}

void node_fini(struct node *n)
{
	if (n->ports != NULL)
		free(n->ports[0].ctr);
	free(n->ports);
	free(n->log.ev);
	n->ports = NULL;
	n->log.ev = NULL;
	evq_fini(&n->evq);
	timer_heap_fini(&n->timers);
}

void node_timer(struct node *n, simtime_t at, uint32_t kind, uint32_t arg)
{
	if (unlikely(timer_heap_add(&n->timers, at, kind, arg) < 0)) {
		fprintf(stderr, "fabemu: %s: out of memory for timers\n", n->name);
		abort();
	}
	evq_set(&n->evq, node_src_timer(n), timer_heap_next(&n->timers));
}

static void lost_on_lane(struct node *n, unsigned port, struct frame *f, enum drop_reason reason)
{
	f->in_port = (uint16_t)port;
	node_drop(n, port, f, reason);
}

// Occupies the lane for the frame and counts it. Returns when its last bit is sent.
static inline simtime_t occupy(struct node *n, struct node_port *p, struct lane *l, struct frame *f)
{
	struct port_traffic *t = &p->ctr->prio[f->tc];
	uint32_t bytes = frame_buffer_bytes(f);
	simtime_t start = simtime_max(n->now, l->free_at);
	simtime_t end = start + lane_wire_time(l, bytes + ETH_OVERHEAD_BYTES - ETH_FCS_BYTES);

	l->free_at = end;
	t->tx_frames++;
	t->tx_bytes += bytes;
	n->data_hops += f->payload_len != 0;
	return end;
}

static inline void push(struct lane *l, struct frame *f, simtime_t at)
{
	uint32_t tail = l->tail;

	l->slots[tail & l->mask] = (struct lane_slot){.f = f, .at = at};
	__atomic_store_n(&l->tail, tail + 1, __ATOMIC_RELEASE);
}

static __attribute__((noinline)) void wake_reader(struct lane *l, simtime_t at)
{
	struct node *dst = l->dst;

	evq_set(&dst->evq, l->dst_port, at);
	((struct group_head *)dst->group)->wake(dst->group, dst, at);
}

// The general case: someone looks, the lane is down, faulty, full, or its reader on another lcore.
__attribute__((noinline)) void node_send_noted(
	struct node *n, unsigned port, struct frame *f, int what, uint64_t a, uint64_t b)
{
	struct node_port *p = &n->ports[port];
	struct lane *l = p->out;
	simtime_t start = simtime_max(n->now, l->free_at);
	simtime_t end = occupy(n, p, l, f);

	if (unlikely(l->hook != NULL) && l->up) {
		l->hook->send(l->hook, n, port, f, start, end, what, a, b);
		return;
	}
	node_observe(n, port, OBSERVE_TX, f, start, (enum observe_what)what, a, b);
	if (!l->up)
		lost_on_lane(n, port, f, DROP_LINK_DOWN);
	else
		node_carry(n, port, f, end);
}

void node_carry(struct node *n, unsigned port, struct frame *f, simtime_t end)
{
	struct lane *l = n->ports[port].out;

	if (l->corrupt_q32 != 0 && rng_hit(&l->rng, l->corrupt_q32))
		f->flags |= FRAME_F_CORRUPT;
	if (lane_full(l) && (l->remote || lane_grow(l) < 0)) {
		lost_on_lane(n, port, f, DROP_RX_OVERRUN);
		return;
	}

	simtime_t at = end + l->delay;
	bool wake = !l->remote && lane_empty(l);
	push(l, f, at);
	if (l->remote) {
		struct group_head *g = (struct group_head *)n->group;
		g->remote_min = simtime_min(g->remote_min, at);
	} else if (wake) {
		wake_reader(l, at);
	}
}

void node_send(struct node *n, unsigned port, struct frame *f)
{
	struct node_port *p = &n->ports[port];
	struct lane *l = p->out;
	// Only used when the reader is on this lcore.
	uint32_t waiting = l->tail - __atomic_load_n(&l->head, __ATOMIC_RELAXED);

	// Nothing below calls anything but in tail position: no registers to save.
	if (unlikely(!l->plain || p->obs != NULL || waiting > l->mask)) {
		node_send_noted(n, port, f, OBS_PASS, 0, 0);
		return;
	}
	simtime_t at = occupy(n, p, l, f) + l->delay;
	push(l, f, at);
	if (waiting == 0)
		wake_reader(l, at);
}

static inline void give_back(struct node *n, struct frame *f)
{
	if (likely(f->flags & FRAME_F_HEAD && n->cache != NULL))
		frame_cache_put(n->cache, f);
	else
		frame_free(f);
}

static void count_drop(
	struct node *n, unsigned port, const struct frame *f, enum drop_reason reason)
{
	struct port_counters *c = n->ports[port].ctr;

	if (c->drops[reason]++ == 0)
		node_event(n, port, EV_FIRST_DROP, reason, f->tc);
	c->prio_drops[f->tc]++;
	n->dropped++;
	node_digest(n, DIGEST_DROP, port, frame_identity(f) + reason);
}

void node_lose(struct node *n, unsigned port, struct frame *f, enum drop_reason reason)
{
	count_drop(n, port, f, reason);
	give_back(n, f);
}

void node_drop(struct node *n, unsigned port, struct frame *f, enum drop_reason reason)
{
	count_drop(n, port, f, reason);
	node_observe(n, port, OBSERVE_RX, f, n->now, OBS_DROP, reason, 0);
	give_back(n, f);
}

void node_deliver(struct node *n, unsigned port, struct frame *f)
{
	n->delivered++;
	node_digest(n, DIGEST_DELIVER, port, frame_identity(f));
	give_back(n, f);
}

void node_consume(struct node *n, unsigned port, struct frame *f)
{
	n->consumed++;
	give_back(n, f);
}

struct frame *node_new_frame(struct node *n, unsigned port)
{
	struct frame *f =
		likely(n->cache != NULL) ? frame_cache_get(n->cache) : frame_alloc(n->pool.heads);

	if (unlikely(f == NULL)) {
		if (n->ports[port].ctr->drops[DROP_NO_MBUF]++ == 0)
			node_event(n, port, EV_POOL_EMPTY, 0, 0);
		return NULL;
	}
	f->born = n->now;
	n->created++;
	return f;
}
