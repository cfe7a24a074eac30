/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// What a run knows when it ends. The engine's owner fills it from the nodes; everything that is
// shown or decided afterwards (console, summary.json, expectations, exit status) reads it and
// nothing else. Strings and arrays belong to whoever filled them and live as long as the results.
//
// Pointers may be NULL when their count is 0. An optional string may be NULL. Times are emulated
// unless named otherwise; SIMTIME_NEVER means "did not happen".

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emu/core/drop.h"
#include "emu/core/event.h"
#include "emu/core/node.h"
#include "emu/core/simtime.h"
#include "emu/report/counters.h"
#include "models/deadlock.h"
#include "pipelines/ethernet_switch.h"

#define SUMMARY_SCHEMA         "fabemu-summary"
#define SUMMARY_SCHEMA_VERSION 1

// Exit statuses, most decisive first when several apply: see run_exit_status().
// X(id, status, verdict in summary.json, words for a person)
#define RUN_VERDICTS(X)                                                         \
	X(HELD, 0, "held", "all expectations held")                             \
	X(EXPECTATION_FAILED, 1, "expectation_failed", "an expectation failed") \
	X(BAD_SCENARIO, 2, "bad_scenario", "bad usage or scenario")             \
	X(RUN_FAILED, 3, "run_failed", "the run itself failed")                 \
	X(LAGGED, 4, "lagged", "the host could not keep up with the wall clock")

enum run_verdict {
#define X(id, status, name, words) RUN_##id = status,
	RUN_VERDICTS(X)
#undef X
};

// How close an ingress PG of a switch came to pausing its upstream.
struct run_pg {
	uint16_t port;
	uint8_t pg;
	bool lossless;
	uint64_t bytes;          // held at the end
	uint64_t peak_bytes;     // most ever held, headroom included
	uint64_t xoff_bytes;     // XOFF threshold (static, or dynamic when it was closest to it)
	uint64_t headroom_peak;  // most headroom ever used
	uint64_t headroom_bytes; // headroom there is
	uint64_t xoffs;          // times it crossed XOFF
};

// How long an egress queue of a switch was, if the scenario asks for it (queue_stats).
struct run_queue {
	uint32_t node;
	uint16_t port;
	uint8_t queue;
	uint64_t mean_bytes; // over time
	uint64_t max_bytes;
};

// What the PFC watchdog did about a queue it watches. Counters as SONiC's PFC_WD_QUEUE_STATS_*.
struct run_watchdog {
	uint32_t node;
	uint16_t port;
	struct ethernet_switch_wd_view v;
};

struct run_port {
	const char *name;
	const char *peer;  // "node:port", NULL when not connected
	uint64_t rate_bps; // of its output lane
	const struct port_counters *ctr;
	enum device_kind device;
	const uint64_t *device_ctr; // [device_counter_count(device)]
};

enum run_node_kind { RUN_NODE_SWITCH, RUN_NODE_HOST };

struct run_node {
	const char *name;
	enum run_node_kind kind;
	const char *attach; // hosts: kind of endpoint ("nic", "guest", ...); switches: NULL
	const struct run_port *ports;
	unsigned n_ports;
	const struct run_pg *pgs; // switches
	unsigned n_pgs;
	uint64_t log_lost; // events beyond the node's log
};

// X(id, name)
#define FLOW_STATES(X)                                             \
	X(NOT_STARTED, "not_started")                              \
	X(ACTIVE, "active")       /* still sending at the end */   \
	X(COMPLETED, "completed") /* every message acknowledged */ \
	X(FAILED, "failed")       /* its queue pair went to error */

enum flow_state {
#define X(id, name) FLOW_##id,
	FLOW_STATES(X)
#undef X
		FLOW_STATE_COUNT,
};

const char *flow_state_name(enum flow_state s);

struct run_flow {
	const char *name;
	const char *src; // host names
	const char *dst;
	uint8_t prio;
	enum flow_state state;
	bool open;         // has no end of its own: part of the load, never "completed"
	const char *error; // why it failed, else NULL
	unsigned qps;
	uint64_t bytes;         // to send; 0 when limited by time only
	uint64_t bytes_done;    // payload received in order by the destination
	uint64_t messages;      // messages to send; 0 when limited by time only
	uint64_t messages_done; // acknowledged
	simtime_t start;        // SIMTIME_NEVER when it did not start
	simtime_t end;          // last message acknowledged, SIMTIME_NEVER when it did not end
	uint64_t packets;       // data packets sent, retransmissions included
	uint64_t retransmitted; // of these
	uint64_t timeouts;
	uint64_t naks;        // received by the sender
	uint64_t pauses;      // times its sender's priority was paused while it had data to send
	simtime_t paused;     // and how long altogether
	uint64_t cc_rate_bps; // of its QPs together at the end; 0: no congestion control
	uint64_t cc_min_rate_bps; // lowest that one of them ever had
	uint64_t cnps;            // that slowed it down
};

struct run_guest {
	const char *name;    // host
	const char *command; // one command; a host has one entry for each
	int exit_status;     // -1 when it never ended or never ran
	int signal;          // that ended it, else 0
	const char *log;     // file name, relative to the run directory
};

struct run_capture {
	const char *name;
	const char *file;
	uint64_t frames;
	uint64_t bytes;
	uint64_t lost;     // frames the writer could not keep up with
	const char *error; // what stopped it ("No space left on device"), else NULL
};

// What a fault rule did, on all its lanes.
struct run_fault {
	const char *name;
	const char *action;
	unsigned lanes;   // directions of links it is on
	uint64_t matched; // frames it is for
	uint64_t applied; // of these, done something to
	uint64_t unknown; // frames of queue pairs beyond those it can tell apart
};

// An application of a built-in NIC.
struct run_app {
	const char *name;
	const char *host;
	const char *type;       // "rping-server"
	const char *status;     // "DONE", "MISMATCH", ...
	const char *detail;     // what that means, or the reason
	bool done;              // of a server: a connection ended well
	bool failed;            // neither done nor still at it
	uint64_t connections;   // established
	uint64_t messages;      // SENDs and datagrams received, READs and WRITEs completed
	uint64_t bytes;         // in them
	uint64_t mismatches;    // messages whose data was wrong
	simtime_t started;      // SIMTIME_NEVER: it did not
	simtime_t ended;        // clients; SIMTIME_NEVER: it did not
	unsigned ack_timeout;   // exponent of its last connection, 0: none
	uint64_t retransmitted; // request packets of its queue pairs
	uint64_t timeouts, naks;
};

struct run_invariant {
	const char *name; // "frames_conserved", "buffer_accounting", "mempools_full", ...
	bool ok;
	const char *text; // what is wrong, NULL when ok
};

// Executed minus scheduled time of events, wall clock, per lcore. In host picoseconds.
struct run_lag {
	unsigned lcore;
	simtime_t p50;
	simtime_t p99;
	simtime_t max;
	uint64_t samples;
};

// One judged expectation.
struct run_expectation {
	bool ok;
	int line;          // of the scenario file, 0 when given otherwise
	char what[128];    // "counters.sw1.eth2.rx_prio3_pause"
	char expected[64]; // ">= 10"
	char got[64];      // "0"
};

struct run_host {
	const char *cpu;
	const char *kernel;
	const char *dpdk;
	unsigned lcores;
	bool hugepages;
	uint64_t peak_rss_bytes;
};

struct run_results {
	const char *version;  // of fabemu
	const char *scenario; // its name
	const char *file;
	const char *description; // NULL when the scenario has none
	uint64_t seed;
	bool wall_clock;
	double time_scale; // 1 under the virtual clock

	uint64_t digest;
	simtime_t emulated;   // time at the end of the run
	simtime_t duration;   // asked for, SIMTIME_NEVER when until all is done
	double wall_seconds;  // of the event loop
	double setup_seconds; // from start to the event loop
	uint64_t events;
	uint64_t data_hops;
	const char *interrupted; // "SIGINT" when a signal ended it early, else NULL
	const char *failure;     // first reason why the run itself failed, else NULL

	struct {
		uint64_t created, delivered, consumed, dropped, inside;
	} frames;
	uint64_t drops[DROP_REASON_COUNT];
	uint64_t pool_empty; // times a frame pool was found exhausted

	const struct run_node *nodes; // index: node->index
	unsigned n_nodes;
	const struct run_flow *flows;
	unsigned n_flows;
	const struct run_queue *queues; // those that were ever seen with a frame
	unsigned n_queues;
	const struct run_watchdog *watchdogs;
	unsigned n_watchdogs;
	const struct deadlock *deadlock; // NULL when the detector was off
	const struct event *events_log;  // merged, in time order
	uint64_t n_events_log;
	uint64_t events_log_lost;
	const struct run_app *apps;
	unsigned n_apps;
	const struct run_fault *faults;
	unsigned n_faults;
	const struct run_guest *guests;
	unsigned n_guests;
	const struct run_capture *captures;
	unsigned n_captures;
	const struct run_invariant *invariants;
	unsigned n_invariants;
	const struct run_lag *lag; // per lcore, wall clock only
	unsigned n_lag;
	simtime_t lag_bound; // largest p99 the scenario allows, SIMTIME_NEVER when unbounded
	struct run_host host;

	// Filled by expect_judge().
	const struct run_expectation *expectations;
	unsigned n_expectations;
};

// The run's verdict, whose value is the exit status. Of several that apply, the one that makes the
// others meaningless wins: a run that failed (`failure`, a broken invariant, a capture that could
// not be written) says nothing about the fabric, nor does one that lagged beyond its bound; only
// then do expectations count. A signal alone does not fail a run.
enum run_verdict run_verdict(const struct run_results *r);
static inline int run_exit_status(const struct run_results *r)
{
	return (int)run_verdict(r);
}
const char *run_verdict_name(enum run_verdict v);
const char *run_verdict_words(enum run_verdict v);

// "sw1:eth2"; never NULL. Names unknown places by number. Returns buf.
char *run_place(const struct run_results *r, uint32_t node, unsigned port, char *buf, size_t len);

// Time from the first to the last byte of a flow, SIMTIME_NEVER when it did not complete; and
// payload bits per second over that time, or until `emulated` for a flow still active.
simtime_t run_flow_fct(const struct run_flow *f);
double run_flow_goodput_bps(const struct run_results *r, const struct run_flow *f);
