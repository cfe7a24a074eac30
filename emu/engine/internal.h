/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// The engine's own state, shared by its files only.

#include <pthread.h>

#include "emu/core/evq.h"
#include "emu/engine/barrier.h"
#include "emu/engine/engine.h"
#include "emu/engine/pace.h"

struct lcore_ctx;

// A group: nodes that execute together in time order. Most groups are one node.
struct group {
	struct group_head head; // first: what the data path sees
	struct lcore_ctx *lc;
	uint32_t slot; // source index in lc->q
	uint32_t n_nodes;
	struct node **nodes;
	struct evq q; // n_nodes > 1: next event of each node
	uint64_t weight;
};

struct lcore_ctx {
	struct evq q; // next event of each of its groups
	struct group **groups;
	uint32_t n_groups;
	uint32_t n_inbound;
	struct lane **inbound; // lanes from other lcores
	struct node **pollers; // wall clock: nodes with a poll op
	uint32_t n_pollers;
	simtime_t next; // published: earliest event it knows of, its or sent to another lcore
	simtime_t sent; // earliest arrival its last window sent to another lcore
	struct frame_cache cache;
	uint64_t windows;
	uint64_t slept;
	struct engine *e;
	unsigned index;
	uint32_t napping; // wall clock: asleep until this is no longer 1 (a futex)
	struct lag *lag;
} __rte_cache_aligned;

struct task {
	simtime_t at;
	uint64_t seq;
	engine_task fn;
	void *arg;
	bool daemon;
};

struct engine {
	struct engine_config config;
	struct node **nodes;
	uint32_t n_nodes;
	struct lane **lanes;
	uint32_t n_lanes;
	struct group *groups;
	uint32_t n_groups;
	struct lcore_ctx *lc; // [config.n_lcores]
	simtime_t window;

	struct task *tasks; // sorted by (at, seq)
	uint32_t n_tasks;
	uint32_t cap_tasks;
	uint32_t n_foreground; // tasks that are no daemons
	uint64_t task_seq;
	simtime_t last_task; // time of the last foreground task that ran
	bool touched;        // a task changed nodes

	struct barrier barrier;
	struct pace pace; // virtual clock, several lcores
	volatile bool stop;
	// Decided by the last lcore at the barrier, read by all after it.
	simtime_t now;
	simtime_t window_end;
	bool ended;
	enum engine_end end;

	// wall clock
	uint64_t tsc_start;
	uint64_t tsc_to_ps; // 32.32
};

// groups.c
int engine_form_groups(struct engine *e);
void engine_rearm_all(struct engine *e);
// Executes the group's events before `end`; returns the time of its next one.
simtime_t group_run(struct group *g, simtime_t end);
// Executes all groups of an lcore up to `end` and returns its next event, others' included.
simtime_t lcore_run_window(struct lcore_ctx *lc, simtime_t end);
void lcore_poll_inbound(struct lcore_ctx *lc);

// tasks.c
simtime_t engine_next_task(const struct engine *e);
// Runs the tasks due at or before `now`.
void engine_run_tasks(struct engine *e, simtime_t now);

// virtual.c, wall.c
void virtual_loop(struct lcore_ctx *lc);
void wall_loop(struct lcore_ctx *lc);
