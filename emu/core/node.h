/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// A node: a switch or a host. It owns all its state and its events and touches no other node's
// memory; all it sees of the world are frames on its input lanes, its timers, and the time.
//
// A pipeline embeds `struct node` as the first member of its own state and fills a node_ops. The
// engine calls the ops with node->now set to the event's time; ops react by sending frames
// (node_send), asking to be called when a lane is free (node_want_depart) and setting timers.

#include <rte_branch_prediction.h>
#include <stdbool.h>
#include <stdint.h>

#include "emu/core/drop.h"
#include "emu/core/event.h"
#include "emu/core/evq.h"
#include "emu/core/frame.h"
#include "emu/core/lane.h"
#include "emu/core/pauses.h"
#include "emu/core/rng.h"
#include "emu/core/simtime.h"
#include "emu/core/timer.h"

#define NODE_NAME_MAX 32
#define PRIO_COUNT    8
#define PORT_MAX      512 // per node

// The timer kind of what is in the way of an output lane; arg: port. Not for pipelines.
#define NODE_TIMER_LANE UINT32_MAX

struct node;
struct group;

struct node_ops {
	const char *name;
	// A frame's last bit has arrived on `port`; the node now owns it.
	void (*arrive)(struct node *n, unsigned port, struct frame *f);
	// `port`'s output lane is free and node_want_depart() was called for a time <= now.
	void (*depart)(struct node *n, unsigned port);
	void (*timer)(struct node *n, uint32_t kind, uint32_t arg);
	// Wall clock only, may be NULL: take in what a real port received. Called from the lcore's
	// loop with node->now = the wall time; returns how many frames came in.
	unsigned (*poll)(struct node *n);
	// Before the first event, at time 0.
	void (*start)(struct node *n);
	// The link of `port` changed state (lane->up of both directions); NULL if of no interest.
	void (*link)(struct node *n, unsigned port, bool up);
	// Number of frames it holds (queues, reassembly), for conservation.
	uint64_t (*held)(const struct node *n);
	// Frees all frames it holds and returns their buffer accounting to zero (end of run).
	void (*drain)(struct node *n);
	// Checks its invariants; on violation writes what is wrong into `why` and returns false.
	// Called when nothing runs: at the end before drain() and again after it (`drained`).
	bool (*check)(const struct node *n, bool drained, char *why, size_t len);
};

// Counters of a port. `prio` is the 802.1p/PFC priority of the frame's class. Names: mlx5 `ethtool
// -S`.
struct port_counters {
	// By class. Control frames and what no class could be found for count as class 0.
	struct port_traffic {
		uint64_t rx_frames, rx_bytes; // bytes with FCS
		uint64_t tx_frames, tx_bytes;
	} prio[PRIO_COUNT];
	uint64_t rx_pause[PRIO_COUNT], tx_pause[PRIO_COUNT]; // PFC frames that name the priority
	uint64_t rx_global_pause;                            // 802.3x PAUSE frames
	uint64_t rx_pause_ignored;                           // PFC for priorities not enabled
	struct pauses rx_pauses;                             // of this port
	struct pauses tx_pauses;                             // of its peer, by this port
	uint64_t ecn_marked[PRIO_COUNT];                     // marked here, by egress port
	uint64_t ce_seen[PRIO_COUNT];                        // arrived with CE
	uint64_t drops[DROP_REASON_COUNT];                   // by ingress port
	uint64_t prio_drops[PRIO_COUNT];
	uint64_t rx_buf_discard[PRIO_COUNT]; // no room in a NIC's receive buffer
};

// All classes together.
static inline struct port_traffic port_total(const struct port_counters *c)
{
	struct port_traffic t = {0};

	for (int i = 0; i < PRIO_COUNT; i++) {
		t.rx_frames += c->prio[i].rx_frames;
		t.rx_bytes += c->prio[i].rx_bytes;
		t.tx_frames += c->prio[i].tx_frames;
		t.tx_bytes += c->prio[i].tx_bytes;
	}
	return t;
}

// The engine counts an arrival in the class its sender gave it; a switch that classifies it anew
// moves it.
static inline void port_reclassify(struct port_counters *c, const struct frame *f, uint8_t tc)
{
	uint32_t bytes = frame_buffer_bytes(f);

	c->prio[f->tc].rx_frames--;
	c->prio[f->tc].rx_bytes -= bytes;
	c->prio[tc].rx_frames++;
	c->prio[tc].rx_bytes += bytes;
}

// What the observer wants to know about a frame; see observe.h.
struct observer;

struct node_port {
	struct lane *in;
	struct lane *out;
	struct port_counters *ctr;
	struct observer *obs; // NULL unless this port is observed (capture, live page)
	uint8_t mac[6];
	uint16_t mtu; // IP MTU
	char name[24];
};

struct node {
	// hot: engine
	const struct node_ops *ops;
	simtime_t now;
	struct evq evq;          // sources: see NODE_SRC_*
	struct node_port *ports; // [n_ports]
	uint16_t n_ports;
	bool grouped; // shares its group with other nodes
	uint32_t index;
	uint16_t group_slot; // index within its group
	struct group *group;
	uint64_t digest;
	struct frame_pool pool;
	struct frame_cache *cache; // of its lcore, NULL outside engine_run()

	// warm
	struct timer_heap timers;
	uint64_t created;   // frames that entered the fabric here
	uint64_t delivered; // frames that ended here as intended
	uint64_t consumed;  // control and local frames that ended here as intended
	uint64_t dropped;   // frames that ended here for a drop reason
	uint64_t n_events;
	uint64_t data_hops; // RoCE request frames with payload sent on a link (bench)
	struct event_log log;
	struct rng rng;
	uint64_t seed;
	char name[NODE_NAME_MAX];
};

// Event sources of a node with P ports, in tie-breaking order: arrivals 0..P-1, departures P..2P-1,
// timers 2P.
static inline uint32_t node_src_depart(const struct node *n, unsigned port)
{
	return n->n_ports + port;
}
static inline uint32_t node_src_timer(const struct node *n)
{
	return 2u * n->n_ports;
}

// Allocates ports, counters, event queue, timers and log (all zero). `name` is copied. Lanes are
// attached by the engine. Returns 0 or -ENOMEM.
int node_init(struct node *n, const struct node_ops *ops, const char *name, unsigned n_ports,
	unsigned log_cap);
void node_fini(struct node *n);

// What the data path knows of the engine's groups (emu/engine/group.h has the rest): a lane end on
// another lcore is not woken but noted in remote_min; on the same lcore the reader is woken.
struct group_head {
	simtime_t remote_min; // earliest arrival sent to another lcore in this window
	void (*wake)(struct group *g, struct node *n, simtime_t at);
};

// ---- digest ----------------------------------------------------------------------------------

enum digest_kind { DIGEST_DELIVER = 1, DIGEST_DROP, DIGEST_MARK, DIGEST_PAUSE };

// Folds one fact into the node's digest: what happened, when, where, to which frame.
static inline void node_digest(struct node *n, enum digest_kind kind, unsigned port, uint64_t what)
{
	uint64_t x = (uint64_t)n->now ^ (what * UINT64_C(0x9e3779b97f4a7c15)) ^
		     ((uint64_t)kind << 56) ^ ((uint64_t)port << 40);

	n->digest = (((n->digest << 23) | (n->digest >> 41)) ^ x) * UINT64_C(0xd6e8feb86659fd93);
}

// Identity of a frame that does not depend on addresses: when it was made and for which flow.
static inline uint64_t frame_identity(const struct frame *f)
{
	return (uint64_t)f->born ^ ((uint64_t)f->flow_hash << 32) ^ ((uint64_t)f->len << 16);
}

// ---- what ops call ---------------------------------------------------------------------------

static inline void node_event(
	struct node *n, unsigned port, enum event_kind kind, uint64_t a, uint64_t b)
{
	event_log_add(&n->log, (struct event){.at = n->now,
				       .kind = (uint16_t)kind,
				       .port = (uint16_t)port,
				       .node = n->index,
				       .a = a,
				       .b = b});
}

// Asks for ops->depart(port) at time `at`, or as soon as the lane is free if that is later.
// A later call replaces an earlier one.
static inline void node_want_depart(struct node *n, unsigned port, simtime_t at)
{
	evq_set(&n->evq, node_src_depart(n, port), simtime_max(at, n->ports[port].out->free_at));
}

static inline bool node_lane_idle(const struct node *n, unsigned port)
{
	return n->ports[port].out->free_at <= n->now;
}

// True when a depart call for `port` is already due or scheduled.
static inline bool node_depart_pending(const struct node *n, unsigned port)
{
	return evq_when(&n->evq, node_src_depart(n, port)) != SIMTIME_NEVER;
}

// ops->timer(kind, arg) at `at`. Out of memory is fatal (abort): timers are bounded by the
// scenario.
void node_timer(struct node *n, simtime_t at, uint32_t kind, uint32_t arg);

// Puts `f` on the wire of `port` now (the lane should be idle; else it starts when it becomes so).
// The frame is gone for the caller. Counts it; applies the lane's error model and state: on a lane
// that is down, or full (which only a wall-clock overload can cause), it is dropped and counted.
void node_send(struct node *n, unsigned port, struct frame *f);

// The same, and the port's observer is told `what` (enum observe_what), with `a` and `b` for the
// comment.
void node_send_noted(
	struct node *n, unsigned port, struct frame *f, int what, uint64_t a, uint64_t b);

// For a lane's hook: puts `f` on the lane of `port` so that its last bit leaves at `end` (>= now,
// not before that of the frame before). The lane's own error model applies.
void node_carry(struct node *n, unsigned port, struct frame *f, simtime_t end);

// Ends a frame here for a reason: counts by port, reason and the frame's class (f->tc), tells the
// observer, frees it.
void node_drop(struct node *n, unsigned port, struct frame *f, enum drop_reason reason);

// The same for a frame that the observer has seen leave: it is not told again.
void node_lose(struct node *n, unsigned port, struct frame *f, enum drop_reason reason);

// Ends a frame that reached its destination (delivered) or was meant for this hop (consumed).
void node_deliver(struct node *n, unsigned port, struct frame *f);
void node_consume(struct node *n, unsigned port, struct frame *f);

// A new frame for `n` from the pool of headers, or NULL (counted as NO_MBUF on `port`).
struct frame *node_new_frame(struct node *n, unsigned port);

// A frame made elsewhere (real port, replay) enters the fabric at this node: stamps and counts it.
static inline void node_adopt(struct node *n, struct frame *f)
{
	f->born = n->now;
	n->created++;
}
