/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// How a port's traffic is seen from outside the data path: a capture, a live view. A port without
// an observer pays one predictable branch. The observer's function runs on the node's lcore and
// must neither block nor keep the frame; it copies what it needs.

#include <stddef.h>
#include <stdint.h>

#include "emu/core/node.h"

enum observe_dir { OBSERVE_RX, OBSERVE_TX };

// What happened to the frame, for its comment.
enum observe_what {
	OBS_PASS,     // received or sent
	OBS_DROP,     // a: enum drop_reason
	OBS_ECN,      // sent after being marked here; a: queue, b: queue bytes when marked
	OBS_PFC_XOFF, // a PFC frame that pauses; a: PG, b: PG bytes
	OBS_PFC_XON,  // a PFC frame that resumes; a: PG, b: PG bytes
	OBS_DEADLOCK, // attached to the next frame; a: deadlock number
	OBS_FAULT,    // sent into an injected fault; a: rule, b: enum fault_action
};

struct observer {
	// `f` is complete as far as its headers go; a synthetic payload is for the observer to
	// make.
	void (*frame)(struct observer *o, const struct node *n, unsigned port, enum observe_dir dir,
		const struct frame *f, simtime_t at, enum observe_what what, uint64_t a,
		uint64_t b);
};

static inline void node_observe(struct node *n, unsigned port, enum observe_dir dir,
	const struct frame *f, simtime_t at, enum observe_what what, uint64_t a, uint64_t b)
{
	struct observer *o = n->ports[port].obs;

	if (unlikely(o != NULL))
		o->frame(o, n, port, dir, f, at, what, a, b);
}
