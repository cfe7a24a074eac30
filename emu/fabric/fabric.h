/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// A fabric: a scenario turned into nodes, lanes, pools, detector, captures and a timeline, run
// once, and turned into results.

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#include "emu/core/frame.h"
#include "emu/engine/engine.h"
#include "emu/fabric/routes.h"
#include "emu/report/results.h"
#include "emu/scenario/scenario.h"
#include "models/deadlock.h"

struct fabric_capture;
struct attach_set;
struct endpoint_table;

struct fabric_options {
	unsigned lcores;                   // 0: the scenario's, else one
	const char *out_dir;               // exists; captures, logs and sockets go there
	const char *eal_args;              // passed on, or NULL
	const char *pcap_file;             // one more capture, of every port, or NULL
	FILE *err;                         // one line per problem
	const volatile sig_atomic_t *stop; // becomes non-zero when the user gives up waiting
};

struct fabric {
	const struct scenario *s;
	struct fabric_options opt;
	struct engine *engine;
	struct node **nodes; // [s->n_nodes], same index
	struct endpoint_table *endpoints;
	struct routes *routes;
	uint8_t *level;           // [s->n_switches]
	bool *link_down;          // [s->n_links]
	uint8_t *link_held;       // [s->n_links] why: enum link_held of timeline.c
	const char **fault_names; // [s->n_faults]
	unsigned *app_index;      // [s->n_apps] in its NIC
	struct frame_pool pool;
	unsigned pool_heads_size;
	unsigned pool_full_size;
	bool hugepages;
	unsigned lcores;

	struct deadlock deadlock;
	bool detecting;
	unsigned deadlocks_seen;
	bool stopping; // linger task set

	struct fabric_capture *captures;
	unsigned n_captures;
	struct attach_set *attach; // real endpoints
	char attach_failure[300];  // of the first that failed, "" if none
	const char *failure;       // why the run itself failed, or NULL

	struct timeline_entry *timeline; // [s->n_events]
	struct watchdog_poll {
		struct node *sw;
		simtime_t interval;
	} * polls; // [s->n_switches] of PFC watchdogs

	double setup_seconds;
	double wall_seconds;
	enum engine_end end;
	struct queue_stat {
		uint64_t sum_bytes, max_bytes;
	} * queue_stats;             // by switch, port and queue; NULL: not wanted
	uint64_t queue_looks;        // in them
	uint64_t queue_samples;      // of them until the last at which
	uint64_t queue_sent;         // frames had left since the one before
	struct results_store *store; // memory behind the results
};

// Starts DPDK and builds everything, real endpoints included (waits until they are ready). Returns
// 0 or a negative errno; what is wrong was written to opt->err, and nothing is left behind.
int fabric_create(const struct scenario *s, const struct fabric_options *opt, struct fabric **out);
// Runs to the end of the scenario.
void fabric_run(struct fabric *f);
// From a signal handler or another thread: ends the run soon.
void fabric_request_stop(struct fabric *f);
// After the run: stops endpoints and captures, checks the invariants, empties the fabric and fills
// `r` (valid until fabric_destroy()). Returns 0 or -ENOMEM.
int fabric_collect(struct fabric *f, struct run_results *r);
void fabric_destroy(struct fabric *f);
