/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Some nodes and the lanes between them without an engine: a minimal executor stands for it.

#include <stdlib.h>

#include "emu/core/step.h"

// Executes all events of the nodes up to and at `until`: the earliest first, ties in the nodes'
// order. Their clocks stay at their last events.
static inline void run_events(struct node *const *nodes, unsigned n, simtime_t until)
{
	for (;;) {
		struct node *next = NULL;
		simtime_t at = SIMTIME_NEVER;
		uint32_t src = 0;
		for (unsigned i = 0; i < n; i++) {
			uint32_t s;
			simtime_t t = evq_next(&nodes[i]->evq, &s);
			if (t < at) {
				at = t;
				next = nodes[i];
				src = s;
			}
		}
		if (next == NULL || at > until)
			break;
		node_step(next, src, at);
	}
}

// The same; every clock then stands at `until`.
static inline void run_nodes(struct node *const *nodes, unsigned n, simtime_t until)
{
	run_events(nodes, n, until);
	for (unsigned i = 0; i < n; i++)
		nodes[i]->now = until;
}

// An executor that looks at all nodes needs no waking.
static inline void no_wake(struct group *g, struct node *n, simtime_t at)
{
}

// From port `src_port` of `src` to port `dst_port` of `dst`, up, with room for `slots` frames.
static inline void lane_join(struct lane *l, struct node *src, unsigned src_port, struct node *dst,
	unsigned dst_port, uint64_t rate_bps, simtime_t delay, uint32_t slots)
{
	if (lane_init(l, slots) < 0)
		abort();
	l->src = src;
	l->src_port = (uint16_t)src_port;
	l->dst = dst;
	l->dst_port = (uint16_t)dst_port;
	l->rate_bps = rate_bps;
	l->byte_time = byte_time_fp(rate_bps);
	l->delay = delay;
	l->up = true;
	src->ports[src_port].out = l;
	dst->ports[dst_port].in = l;
}
