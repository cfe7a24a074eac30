/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Real endpoints: everything outside the fabric that a scenario's `attach:` hosts name, as one set.
//
//	attach_open()        ports exist, guests boot, namespaces are configured
//	attach_port()        what pipelines/edge.h needs, per host port
//	attach_wait_ready()  every guest and namespace has said so
//	attach_go()          time 0 of the timeline: their `run:` commands start
//	attach_state()       have the commands ended?
//	attach_close()       nothing of it is left: no process, namespace, socket or interface
//
// All functions are for the main thread, except the port operations (the edge node's lcore).
// Processes die with this process, however it ends (PR_SET_PDEATHSIG, and a PID namespace when
// permitted).

#include <rte_mempool.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "emu/scenario/scenario.h"
#include "pipelines/edge.h"

struct attach_set;

struct attach_context {
	const struct scenario *sc; // must outlive the set
	const char *run_dir;       // console logs go here as <host>.console; exists
	// For received frames (pool.full): data room >= attach_data_room(), private area struct
	// frame.
	struct rte_mempool *pool;
};

// Bytes a frame of the pool must hold, RTE_PKTMBUF_HEADROOM included; 0 when the scenario attaches
// nothing. Needs no EAL.
uint32_t attach_data_room(const struct scenario *sc);

// Opens the ports of all attached hosts and starts guests and namespaces. Returns 0, or -errno
// after one line per problem on `err` (what, what to do), with everything undone. A scenario that
// attaches nothing gives an empty set.
int attach_open(const struct attach_context *ctx, struct attach_set **out, FILE *err);

// Operations and their argument for `port` of host node `node`; NULL if that host is not attached.
const struct edge_ops *attach_port(
	const struct attach_set *set, uint32_t node, unsigned port, void **arg);

// Waits until all are ready, or the first fails or exceeds its ready_timeout (-ETIMEDOUT, -ECHILD;
// said on `err` with the console's last lines), or *stop becomes non-zero (-EINTR).
int attach_wait_ready(struct attach_set *set, const volatile sig_atomic_t *stop, FILE *err);

void attach_go(struct attach_set *set);

enum attach_state {
	ATTACH_IDLE,    // no host has commands to run
	ATTACH_RUNNING, // foreground commands are running somewhere
	ATTACH_DONE,    // all foreground commands of all hosts have ended
	ATTACH_FAILED,  // a guest or namespace ended by itself before its commands did
};

enum attach_state attach_state(const struct attach_set *set);

// A command's exit status (128 + signal if killed, 124 if it ran into its timeout); false while it
// has none. A background command still running at the end never gets one.
bool attach_run_status(const struct attach_set *set, uint32_t node, unsigned run, int *status);
// Of a whole host: 0 when all its foreground commands ended with 0 and so did the background ones
// that ended; the first other status; -1 when one has not ended (or the host died).
int attach_host_exit(const struct attach_set *set, uint32_t node);

// Why a host failed, or NULL; valid until attach_close().
const char *attach_host_failure(const struct attach_set *set, uint32_t node);

// Ends commands (SIGTERM, a second later SIGKILL), guests, namespaces; removes sockets and
// interfaces. Ports must no longer be polled. NULL is fine.
void attach_close(struct attach_set *set);
