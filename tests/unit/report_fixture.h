/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// A small finished run for the tests of emu/report: switches sw1, sw2 (ports eth0, eth1), host h1
// (port p0); flows "victim" (completed), "load" (endless) and "cut" (unfinished).

#include <string.h>

#include "emu/report/results.h"

struct report_fixture {
	struct port_counters ctr[5];
	struct run_port ports[5];
	struct run_pg pgs[1];
	struct run_node nodes[3];
	struct run_flow flows[3];
	struct run_guest guests[2];
	struct run_invariant invariants[1];
	struct run_capture captures[1];
	struct run_lag lag[2];
	struct event events[2];
	struct deadlock deadlock;
	struct run_results r;
};

static inline void fixture_nodes(struct report_fixture *x)
{
	static const char *const names[] = {"eth0", "eth1", "eth0", "eth1", "p0"};

	for (int i = 0; i < 5; i++) {
		x->ctr[i].prio[0].rx_frames = 10;
		x->ctr[i].prio[3].rx_frames = 90 + (uint64_t)i; // altogether 100 + i
		x->ports[i] = (struct run_port){
			.name = names[i], .rate_bps = 100000000000, .ctr = &x->ctr[i]};
	}
	x->ports[4].peer = "sw1:eth0";
	x->ctr[1].rx_pause[3] = 7;
	x->ctr[1].rx_pauses.duration[3] = 1500 * SIM_NS;
	x->ctr[2].drops[DROP_NO_ROUTE] = 2;
	x->pgs[0] = (struct run_pg){.port = 1,
		.pg = 3,
		.lossless = true,
		.bytes = 0,
		.peak_bytes = 90000,
		.xoff_bytes = 100000,
		.headroom_bytes = 50000};
	x->nodes[0] = (struct run_node){.name = "sw1", .ports = x->ports, .n_ports = 2};
	x->nodes[1] = (struct run_node){
		.name = "sw2", .ports = x->ports + 2, .n_ports = 2, .pgs = x->pgs, .n_pgs = 1};
	x->nodes[2] = (struct run_node){.name = "h1",
		.kind = RUN_NODE_HOST,
		.attach = "nic",
		.ports = x->ports + 4,
		.n_ports = 1};
}

static inline void fixture_flows(struct report_fixture *x)
{
	// 125,000 bytes in 10 us: 100 Gb/s.
	x->flows[0] = (struct run_flow){.name = "victim",
		.src = "h1",
		.dst = "h2",
		.prio = 3,
		.state = FLOW_COMPLETED,
		.qps = 1,
		.bytes = 125000,
		.bytes_done = 125000,
		.messages = 1,
		.messages_done = 1,
		.start = 5 * SIM_US,
		.end = 15 * SIM_US,
		.packets = 125,
		.pauses = 2,
		.paused = 3 * SIM_US};
	x->flows[1] = (struct run_flow){.name = "load",
		.src = "h2",
		.dst = "h1",
		.state = FLOW_ACTIVE,
		.open = true,
		.qps = 1,
		.bytes_done = 50000, // in 20 us: 20 Gb/s
		.start = 0,
		.end = SIMTIME_NEVER};
	x->flows[2] = (struct run_flow){.name = "cut",
		.src = "h1",
		.dst = "h3",
		.state = FLOW_NOT_STARTED,
		.qps = 1,
		.bytes = 1000,
		.start = SIMTIME_NEVER,
		.end = SIMTIME_NEVER};
}

// sw1:eth1 and sw2:eth0 pause each other.
static inline void fixture_deadlock(struct report_fixture *x)
{
	struct deadlock_report *d = &x->deadlock.reports[0];

	x->deadlock.n_reports = 1;
	x->deadlock.checks = 9;
	*d = (struct deadlock_report){.detected_at = 18 * SIM_US,
		.formed_at = 8 * SIM_US,
		.ended_at = SIMTIME_NEVER,
		.n_members = 2,
		.n_listed = 2,
		.trigger = 1,
		.n_stuck = 2,
		.n_behind = 1};
	d->members[0] = (struct dl_member){.pg = {0, 1, 3},
		.egress_port = 1,
		.xoff_since = 7 * SIM_US,
		.paused_since = 6 * SIM_US,
		.bytes = 120000,
		.waiting_bytes = 110000};
	d->members[1] = (struct dl_member){.pg = {1, 0, 3},
		.egress_port = 0,
		.xoff_since = 5 * SIM_US,
		.paused_since = 8 * SIM_US,
		.bytes = 130000,
		.waiting_bytes = 100000};
}

static inline void fixture_init(struct report_fixture *x)
{
	memset(x, 0, sizeof(*x));
	fixture_nodes(x);
	fixture_flows(x);
	x->invariants[0] = (struct run_invariant){.name = "frames_conserved", .ok = true};
	x->captures[0] = (struct run_capture){.name = "all", .file = "all.pcapng", .frames = 10};
	x->events[0] = (struct event){
		.at = 6 * SIM_US, .kind = EV_PFC_XOFF_SENT, .node = 1, .port = 0, .a = 3, .b = 99};
	x->events[1] = (struct event){.at = 15 * SIM_US, .kind = EV_FLOW_DONE, .node = 2};
	x->r = (struct run_results){
		.version = "0.1.0",
		.scenario = "test",
		.file = "test.yaml",
		.seed = 1,
		.time_scale = 1,
		.digest = 0xf0123456789abcde,
		.emulated = 20 * SIM_US,
		.duration = SIMTIME_NEVER,
		.wall_seconds = 0.5,
		.frames = {.created = 10, .delivered = 8, .dropped = 2},
		.nodes = x->nodes,
		.n_nodes = 3,
		.flows = x->flows,
		.n_flows = 3,
		.deadlock = &x->deadlock,
		.events_log = x->events,
		.n_events_log = 2,
		.guests = x->guests,
		.captures = x->captures,
		.n_captures = 1,
		.invariants = x->invariants,
		.n_invariants = 1,
		.lag = x->lag,
		.lag_bound = SIMTIME_NEVER,
	};
	x->r.drops[DROP_NO_ROUTE] = 2;
}
