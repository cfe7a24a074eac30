/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// The set of attached hosts, shared by attach.c (ports and life) and attach_run.c (sessions).

#include <pthread.h>

#include "emu/attach/attach.h"
#include "emu/attach/port.h"
#include "emu/attach/session.h"

struct attached {
	const struct sc_host *host;
	const struct sc_node *node;
	struct port *ports; // [node->n_ports]
	unsigned n_open;
	bool has_session;
	bool netns_made;
	struct session session; // under the set's lock once the monitor runs
};

struct attach_set {
	struct attach_context ctx;
	struct attached *hosts;
	unsigned n_hosts;
	char dir[64]; // private, for sockets, jobs and the session script; "" until made
	bool monitored;
	pthread_t monitor;
	pthread_mutex_t lock;
	int wake[2]; // to end the monitor
};

// attach_dir.c: a private folder, and removal of those that killed runs left.
int attach_make_dir(struct attach_set *set, FILE *err);
void attach_remove_dir(struct attach_set *set);

// attach_run.c: the session of a guest or namespace; the thread that listens to all.
int attach_start_session(struct attach_set *set, struct attached *a, FILE *err);
int attach_start_monitor(struct attach_set *set);
// Ends the monitor and every session.
void attach_stop_sessions(struct attach_set *set);

static inline const char *attached_netns(const struct attached *a)
{
	return a->host->attach.netns != NULL ? a->host->attach.netns : a->node->name;
}
