/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Exact runtime detection of PFC deadlocks from snapshots of the wait-for graph.
//
// Vertex: an ingress priority group (node, port, priority) that asserts XOFF to its upstream.
// Edge B1 -> B2: B1 holds frames in an egress queue that B2, the peer's ingress PG at the other end
// of that egress port's link, has paused. A host that asserts XOFF is a vertex without edges.
//
// A snapshot is taken between events, when nothing runs:
//
//	deadlock_begin(d, now);
//	for each asserting PG:               deadlock_add_pg(d, &pg);
//	for each paused egress, PG in it:    deadlock_add_wait(d, &wait);
//	if (deadlock_end(d) > 0)
//		... d->reports[d->n_reports - 1] and before it are new
//
// An egress that has been paused for less than cfg.stuck_for cannot be part of a deadlock yet and
// may be left out of the snapshot, so the caller need not look into queues that still move.

#include <stdbool.h>
#include <stdint.h>

#include "emu/core/simtime.h"

#define DEADLOCK_MEMBERS_MAX 128
#define DEADLOCK_REPORTS_MAX 16
#define DEADLOCK_STORMS_MAX  16

// A priority group's place. node < 2^19, port < 2^10, prio < 2^3.
struct dl_pg {
	uint32_t node;
	uint16_t port; // ingress port; for a host its own port
	uint8_t prio;
};

// A PG that asserts XOFF (or a host that pauses its switch).
struct dl_asserting {
	struct dl_pg pg;
	bool host;            // never waits for anybody: root of a pause tree at most
	simtime_t xoff_since; // since when it has asserted XOFF without a break
	uint64_t bytes;       // it holds
	uint64_t xon_bytes;   // it would send XON at or below this; 0 when unknown
};

// Frames of `from` that wait in an egress queue paused by `to`.
struct dl_wait {
	struct dl_pg from;
	struct dl_pg to;
	uint16_t egress_port;   // of from.node
	uint64_t bytes;         // of `from` in that queue
	uint64_t moved;         // frames ever sent by that egress queue: any change is progress
	simtime_t paused_since; // since when the egress has been paused without a break
};

// One member of a cycle: it waits for the next one (the last for the first).
struct dl_member {
	struct dl_pg pg;
	uint16_t egress_port;   // where its frames wait
	simtime_t xoff_since;   // since when it has paused the member before it
	simtime_t paused_since; // since when the next member has paused it
	uint64_t bytes;         // held by the PG
	uint64_t waiting_bytes; // of these, waiting for the next member
};

struct deadlock_report {
	simtime_t detected_at;
	simtime_t formed_at; // when the last member stopped moving or crossed XOFF
	simtime_t ended_at;  // seen dissolved at, SIMTIME_NEVER while it lasts
	uint32_t n_members;  // length of the cycle, a shortest one of its component
	uint32_t n_listed;   // of these in members[]
	uint32_t trigger;    // index in members[] of the one that crossed XOFF first
	uint32_t n_stuck;    // PGs on any cycle of this component
	uint32_t n_behind;   // further stuck PGs that wait for it, on no cycle themselves
	struct dl_member members[DEADLOCK_MEMBERS_MAX];
};

// A pause storm: a host that has paused its switch for cfg.storm_for or longer, and the tree of PGs
// that wait for it. It ends when the host stops: not a deadlock.
struct pause_storm {
	struct dl_pg root;
	simtime_t since;
	simtime_t detected_at;
	simtime_t ended_at; // SIMTIME_NEVER while it lasts
	uint32_t n_waiting; // most PGs seen waiting for it, directly or not
	uint32_t depth;     // longest such chain
};

struct deadlock_config {
	uint32_t max_pgs;    // most asserting PGs in a snapshot
	uint32_t max_waits;  // most waits in a snapshot
	simtime_t stuck_for; // nothing moved for this long: > 0
	simtime_t storm_for; // a host has paused for this long: > 0
};

struct dl_scratch;

struct deadlock {
	struct deadlock_config cfg;
	simtime_t now;
	uint32_t n_pgs;
	uint32_t n_waits;
	uint64_t lost; // PGs and waits that did not fit a snapshot: detection may have missed some
	uint64_t checks;
	struct dl_scratch *s; // the snapshot, the previous one, and work space
	uint32_t n_reports;
	uint32_t n_storms;
	uint64_t lost_reports; // beyond the tables
	struct deadlock_report reports[DEADLOCK_REPORTS_MAX];
	struct pause_storm storms[DEADLOCK_STORMS_MAX];
};

// Allocates everything a check will need. Returns 0, -EINVAL or -ENOMEM.
int deadlock_init(struct deadlock *d, const struct deadlock_config *cfg);
void deadlock_fini(struct deadlock *d);

void deadlock_begin(struct deadlock *d, simtime_t now);
void deadlock_add_pg(struct deadlock *d, const struct dl_asserting *pg);
// Waits whose ends were not added as asserting are ignored. Several waits between the same two PGs
// (queues that share a PFC priority) are merged.
void deadlock_add_wait(struct deadlock *d, const struct dl_wait *w);
// Evaluates the snapshot. Returns the number of new deadlocks (at the end of d->reports); a lasting
// one is reported once. Storms go to d->storms likewise.
unsigned deadlock_end(struct deadlock *d);

// True if any deadlock was found, ended or not. lost_reports does not count here: it may be storms,
// and a deadlock is only lost when the list is full.
static inline bool deadlock_found(const struct deadlock *d)
{
	return d->n_reports > 0;
}
