/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// The executor: runs the events of all nodes in windows, under one of two clocks, on any number of
// lcores. What a node does is its own business (node_ops); the engine only decides when.
//
// Life: engine_create, engine_add_node*, engine_connect*, engine_prepare, engine_at*, engine_run,
// engine_finish, engine_destroy. All but engine_run and engine_request_stop are called while
// nothing runs: before the run, after it, or from a task.

#include <stdbool.h>
#include <stdint.h>

#include "emu/core/node.h"
#include "emu/engine/lag.h"

#define ENGINE_LCORES_MAX 64

struct engine;

struct engine_config {
	bool wall;              // clock: wall, else virtual
	bool busy_poll;         // wall: never sleep
	unsigned n_lcores;      // 1..ENGINE_LCORES_MAX, at most what EAL was given
	simtime_t duration;     // end of the run, SIMTIME_NEVER for "until nothing happens"
	simtime_t group_target; // nodes joined by lanes shorter than this form a group
	double time_scale; // wall: emulated time runs this many times slower than the wall, > 0
	uint64_t seed;
	// Virtual clock: called when everything before `t` has happened, from whichever lcore is
	// last (captures merge up to here). May be NULL.
	void (*on_window)(void *arg, simtime_t t);
	void *on_window_arg;
};

struct lane_config {
	uint64_t rate_bps;
	simtime_t delay; // > 0: propagation + the sender's forwarding latency
	uint64_t corrupt_q32;
	simtime_t slack; // longest time by which frames may be held on it besides
};

enum engine_end {
	ENGINE_END_IDLE,     // nothing left to happen
	ENGINE_END_DURATION, // the configured time is over
	ENGINE_END_STOPPED,  // engine_request_stop()
};

// Returns 0 or -ENOMEM, -EINVAL.
int engine_create(const struct engine_config *config, struct engine **out);
void engine_destroy(struct engine *e); // destroys lanes, not nodes

// The node's index in order of addition. Returns it, or -ENOMEM.
int engine_add_node(struct engine *e, struct node *n);
// Makes the lane that carries what `src` sends on `src_port` to `dst`. Returns 0, -ENOMEM, -EINVAL
// (rate or delay 0, no such port, or connected already).
int engine_connect(struct engine *e, struct node *src, unsigned src_port, struct node *dst,
	unsigned dst_port, const struct lane_config *config);
// Forms groups, assigns them to lcores, makes event queues. Returns 0 or -ENOMEM, -EINVAL (a port
// without a link, or EAL has fewer lcores).
int engine_prepare(struct engine *e);

// A task runs at an exact emulated time while no node executes, after all events before that time
// and before all events at it. It may touch any node after engine_enter(). A daemon (say, a
// periodic check) does not keep a run alive.
typedef void (*engine_task)(struct engine *e, simtime_t now, void *arg);
int engine_at(struct engine *e, simtime_t at, engine_task task, void *arg, bool daemon);
// Before a task changes a node: brings its time up to date and has its queue looked at afterwards.
void engine_enter(struct engine *e, struct node *n);

// Takes a link (both lanes of a's port) down or up and tells both nodes. Frames on the way are
// lost.
void engine_set_link(struct engine *e, struct node *a, unsigned port, bool up);

// The lane that `a` sends on from `port` only: neither end is told.
void engine_set_lane(struct engine *e, struct node *a, unsigned port, bool up);

// Runs to the end on the calling (main) lcore and the first n_lcores - 1 workers.
enum engine_end engine_run(struct engine *e);
// From a signal handler or another thread.
void engine_request_stop(struct engine *e);

simtime_t engine_now(const struct engine *e);
uint64_t engine_digest(const struct engine *e);
// Shape of the execution, for reports.
struct engine_shape {
	unsigned n_groups;
	unsigned n_remote_lanes;
	simtime_t window;
};
struct engine_shape engine_shape(const struct engine *e);

// Counted while running; safe to read from another thread (values may be a moment old).
struct engine_progress {
	simtime_t now;
	uint64_t windows;
	uint64_t events;
	uint64_t slept; // idle naps
};
struct engine_progress engine_progress(const struct engine *e);
// Wall clock: lag of each lcore, index < n_lcores; NULL under the virtual clock.
const struct lag *engine_lag(const struct engine *e, unsigned lcore);

// Frames on lanes, and freeing them at the end of a run.
uint64_t engine_frames_on_lanes(const struct engine *e);
void engine_drain_lanes(struct engine *e);
