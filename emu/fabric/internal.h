/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Between the files of emu/fabric only.

#include "emu/capture/capture.h"
#include "emu/fabric/fabric.h"

// An opened capture and what the results need of it after it is closed.
struct fabric_capture {
	struct capture *c; // NULL: closed
	struct capture_status status;
	char path[1024];
};

// pools.c: how many frames the scenario can have in flight at once, and the pools for them.
void pools_size(struct fabric *f);
int pools_create(struct fabric *f);
size_t pools_bytes(const struct fabric *f);

// nodes.c: switches, NICs, replays, edges and the lanes between them.
int nodes_create(struct fabric *f);
void nodes_destroy(struct fabric *f);
int lanes_create(struct fabric *f);
int flows_create(struct fabric *f);
void routes_apply(struct fabric *f);
// Bytes of pool that data of one frame of `f`'s outside traffic needs at most.
unsigned full_frame_room(const struct fabric *f);

// faults.c: rules and bit errors on lanes; how long a lane's rules may hold frames back, how many
// bytes all of them together, and whether any makes up the bytes of frames.
int faults_create(struct fabric *f);
void faults_destroy(struct fabric *f);
void faults_set_ber(struct fabric *f, const struct sc_event *ev);
simtime_t faults_slack(const struct scenario *s, const struct sc_end *lane);
uint64_t faults_held(const struct scenario *s);
bool faults_need_bytes(const struct scenario *s);

// apps.c: applications of built-in NICs.
int apps_create(struct fabric *f);
int collect_apps(struct fabric *f, struct run_app **store, struct run_results *r);

// timeline.c: the scenario's events as engine tasks.
int timeline_create(struct fabric *f);

// detector.c: the periodic deadlock check.
int detector_create(struct fabric *f);

// queue_stats.c: mean and maximum of egress queues.
int queue_stats_create(struct fabric *f);
int collect_queues(struct fabric *f, struct run_queue **store, struct run_results *r);

// watchdog.c: the switches' PFC watchdogs, and what they did.
int watchdogs_create(struct fabric *f);
int collect_watchdogs(struct fabric *f, struct run_watchdog **store, struct run_results *r);

// observe.c: the scenario's captures.
int captures_create(struct fabric *f);
void captures_window(void *arg, simtime_t t);
void captures_close(struct fabric *f);
void captures_note(struct fabric *f, const struct deadlock_report *r, unsigned number);

// real.c: real endpoints.
int attach_open_all(struct fabric *f);
int attach_wait_all(struct fabric *f);
void attach_start_all(struct fabric *f);
void attach_close_all(struct fabric *f);

// observe.c, real.c, faults.c: their part of the results, freed with the others.
int collect_captures(struct fabric *f, struct run_capture **store, struct run_results *r);
int collect_guests(struct fabric *f, struct run_guest **store, struct run_results *r);

int collect_faults(struct fabric *f, struct run_fault **store, struct run_results *r);

// collect.c
void results_free(struct fabric *f);
