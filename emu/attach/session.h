/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// A process that runs a host's commands: a guest's virtual machine or a shell in a network
// namespace. We talk with the script guest/session inside over its console; everything it prints
// goes to a log file too.

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>

enum session_state {
	SESSION_BOOTING,
	SESSION_READY,   // configured, waiting for `go`
	SESSION_RUNNING, // its commands run
	SESSION_DONE,    // all foreground commands ended
	SESSION_FAILED,  // see failure
};

#define SESSION_TAIL 512

struct session {
	const char *name; // of the host; the owner's
	pid_t pid;
	int in, out; // its stdin and stdout, -1 when closed
	int log;
	enum session_state state;
	unsigned n_run;
	int *status; // [n_run], -1: none yet
	struct timespec started;
	char failure[256];
	char line[512]; // being read
	size_t line_len;
	char tail[SESSION_TAIL]; // the last the console said, for messages
};

struct session_spec {
	const char *name;
	char *const *argv;
	char *const *envp;
	const char *log_path;
	int netns_fd; // -1: this network namespace
	unsigned n_run;
};

// Starts the process in a process group and, when permitted, a PID namespace of its own: nothing of
// it outlives session_kill() or the calling process. Returns 0, or -errno after a line on `err`.
// Call it from the main thread (the death signal follows the thread).
int session_start(struct session *s, const struct session_spec *spec, FILE *err);

// Reads what the console says and updates the state; false when it has closed (the process ended).
bool session_read(struct session *s);

// "go" or "stop". A process that is gone is not an error here.
void session_say(struct session *s, const char *word);

// SIGTERM to the group (netns only: a guest needs none), later session_kill(): SIGKILL, reap,
// close.
void session_terminate(struct session *s);
void session_kill(struct session *s);
