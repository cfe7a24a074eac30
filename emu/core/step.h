/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Executing a node's next event: the engine's inner loop. Inlined into it so that an op is the last
// thing a step does (a jump, no frame of its own).

#include <rte_prefetch.h>

#include "emu/core/node.h"
#include "emu/core/observe.h"

// What every arrival is to the node, once the frame is off its lane.
static inline void step_deliver(struct node *n, unsigned port, struct frame *f)
{
	struct node_port *p = &n->ports[port];
	struct port_traffic *t = &p->ctr->prio[f->tc];
	f->in_port = (uint16_t)port;
	t->rx_frames++;
	t->rx_bytes += frame_buffer_bytes(f);
	if (unlikely(f->flags & FRAME_F_CORRUPT)) {
		node_drop(n, port, f, DROP_LANE_ERROR);
		return;
	}
	node_observe(n, port, OBSERVE_RX, f, n->now, OBS_PASS, 0, 0);
	n->ops->arrive(n, port, f);
}

static inline void step_arrival(struct node *n, unsigned port)
{
	struct lane *l = n->ports[port].in;
	uint32_t head = l->head;
	struct frame *f = l->slots[head & l->mask].f;

	__atomic_store_n(&l->head, head + 1, __ATOMIC_RELEASE);
	if (lane_empty(l)) {
		evq_set(&n->evq, port, SIMTIME_NEVER);
	} else {
		const struct lane_slot *s = &l->slots[l->head & l->mask];
		evq_set(&n->evq, port, s->at);
		rte_prefetch0(s->f);
	}
	step_deliver(n, port, f);
}

// The next frame of the lane arrives, at `at`. Who calls it sees to the key of the lane.
static inline void step_train(struct node *n, unsigned port, simtime_t at)
{
	struct lane *l = n->ports[port].in;
	uint32_t head = l->head;
	struct frame *f = l->slots[head & l->mask].f;

	__atomic_store_n(&l->head, head + 1, __ATOMIC_RELEASE);
	if (!lane_empty(l))
		rte_prefetch0(l->slots[l->head & l->mask].f);
	n->now = at > n->now ? at : n->now;
	evq_advance(&n->evq, at);
	step_deliver(n, port, f);
}

static __attribute__((noinline)) void step_timers(struct node *n)
{
	// One timer per step: a timer set for the same instant by the op keeps its place in the
	// order.
	struct timer t = timer_heap_pop(&n->timers);

	evq_set(&n->evq, node_src_timer(n), timer_heap_next(&n->timers));
	if (unlikely(t.kind == NODE_TIMER_LANE)) {
		struct lane_hook *h = n->ports[t.arg].out->hook;
		h->timer(h, n, t.arg);
		return;
	}
	n->ops->timer(n, t.kind, t.arg);
}

static inline void step_depart(struct node *n, uint32_t src)
{
	unsigned port = src - n->n_ports;
	simtime_t free_at = n->ports[port].out->free_at;

	// A control frame may have taken the lane since the departure was asked for.
	if (unlikely(free_at > n->now)) {
		evq_set(&n->evq, src, free_at);
		return;
	}
	evq_forget(&n->evq, src);
	n->ops->depart(n, port);
	if (evq_when(&n->evq, src) == SIMTIME_NEVER)
		evq_set(&n->evq, src, SIMTIME_NEVER);
}

static __rte_always_inline void node_step(struct node *n, uint32_t src, simtime_t at)
{
	n->now = at > n->now ? at : n->now;
	evq_advance(&n->evq, at);
	if (src < n->n_ports) {
		step_arrival(n, src);
	} else if (src < 2u * n->n_ports) {
		step_depart(n, src);
	} else {
		step_timers(n);
	}
}
