/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Inside of the deadlock detector: a snapshot of the wait-for graph in canonical order, whatever
// the order in which the caller added to it, with the progress of each wait since the one before.

#include "models/deadlock.h"
#include "models/wait_graph.h"

struct progress_memo {
	uint64_t ends; // keys of both ends
	uint64_t moved;
	simtime_t stalled_since;
};

struct wait_state {
	struct dl_wait w;
	uint32_t from; // index in pgs[]
	uint32_t to;
	simtime_t stalled_since;
};

struct dl_scratch {
	struct dl_asserting *added_pgs; // as the caller gave them
	struct dl_wait *added_waits;
	struct dl_asserting *pgs; // sorted by key, unique
	struct wait_state *waits; // sorted by (from, to), unique
	struct progress_memo *memo;
	uint64_t *keys;  // of pgs[]
	uint64_t *order; // sort space: key, index pairs
	uint32_t *level; // storms: distance to the root
	bool *behind;
	uint64_t *stuck_bytes;
	uint32_t n_pgs;
	uint32_t n_waits;
	uint32_t n_memo;
	simtime_t previous; // time of the previous snapshot
	struct wait_graph graph;
	uint32_t cycle[DEADLOCK_MEMBERS_MAX];
};

// A number for each place, in order of node, port, priority.
uint32_t dl_pg_key(struct dl_pg p);
// Index in pgs[], or UINT32_MAX.
uint32_t dl_find_pg(const struct dl_scratch *s, struct dl_pg pg);
// All PGs and waits have been added: fills pgs[], waits[] and memo[].
void dl_close_snapshot(struct deadlock *d);
