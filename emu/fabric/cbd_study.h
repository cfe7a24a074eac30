/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Where a scenario's fabric could deadlock: as configured, after each of its events that change
// routes, and with any single link failed, routes computed anew as a run would.
//
// Between two situations frames that were queued by the old routes are still there while new ones
// come by the new, so a situation is only free if its graph together with that of the one before
// (in a timeline: all before) has no cycle.

#include "emu/fabric/cbd.h"

enum cbd_verdict {
	CBD_FREE,       // no cycle, not even with frames of the routes before: proven
	CBD_CHANGEOVER, // a cycle only while such frames are there
	CBD_POSSIBLE,   // a cycle
};

const char *cbd_verdict_name(enum cbd_verdict v);

struct cbd_result {
	enum cbd_verdict verdict;
	uint32_t n_vertices, n_edges, n_cycles; // of the graph that has the cycles, if any has
	uint32_t n_listed;
	struct bdg_cycle *cycle; // [n_listed]
};

enum cbd_when { CBD_CONFIGURED, CBD_EVENT, CBD_FAILURE };

struct cbd_case {
	enum cbd_when when;
	simtime_t at;  // CBD_EVENT
	uint32_t link; // CBD_FAILURE
	struct cbd_result any;
	struct cbd_result workload;
	uint64_t n_bounces; // (ingress, egress) pairs by which any traffic goes up after down
	struct bdg_bounce bounce[4];
};

struct cbd_study {
	struct cbd *c;
	struct bdg any; // graphs of the fabric as configured
	struct bdg workload;
	uint32_t n_cases; // the configured one first, then events, then failures worth telling
	struct cbd_case *cases;
	bool failures_done;
	uint32_t n_links;       // between switches: failed one by one
	uint32_t n_host_links;  // their failure takes traffic away and changes no other route
	uint32_t n_any_free;    // failures after which any traffic is still free,
	uint32_t n_work_free;   // this workload is,
	uint32_t n_with_bounce; // and traffic bounces
};

// `failures`: also all single link failures. 0 or -ENOMEM.
int cbd_study_create(const struct scenario *s, bool failures, struct cbd_study *out);
void cbd_study_free(struct cbd_study *st);
