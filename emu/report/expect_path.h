/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// The vocabulary of `expect:` paths: one table from which checking, judging and messages come.

#include "emu/scenario/scenario.h"

enum expect_unit { EXPECT_COUNT, EXPECT_YES_NO, EXPECT_BYTES, EXPECT_TIME, EXPECT_RATE };

// X(id, first part, last part or NULL when it is a name of its own, number of parts, unit, form)
#define EXPECT_PATHS(X)                                                                        \
	X(DEADLOCK, "deadlock", NULL, 1, EXPECT_YES_NO, "deadlock")                            \
	X(DROPS, "drops", NULL, 2, EXPECT_COUNT, "drops.REASON")                               \
	X(FLOWS_COMPLETE, "flows", "complete", 2, EXPECT_YES_NO, "flows.complete")             \
	X(FLOWS_FAILED, "flows", "failed", 2, EXPECT_COUNT, "flows.failed")                    \
	X(FLOW_GOODPUT, "flow", "goodput", 3, EXPECT_RATE, "flow.NAME.goodput")                \
	X(FLOW_FCT, "flow", "fct", 3, EXPECT_TIME, "flow.NAME.fct")                            \
	X(FLOW_RETRANSMISSIONS, "flow", "retransmissions", 3, EXPECT_COUNT,                    \
		"flow.NAME.retransmissions")                                                   \
	X(FLOW_BYTES, "flow", "bytes", 3, EXPECT_BYTES, "flow.NAME.bytes")                     \
	X(FLOW_COMPLETE, "flow", "complete", 3, EXPECT_YES_NO, "flow.NAME.complete")           \
	X(FLOW_PAUSES, "flow", "pauses", 3, EXPECT_COUNT, "flow.NAME.pauses")                  \
	X(FLOW_PAUSED, "flow", "paused", 3, EXPECT_TIME, "flow.NAME.paused")                   \
	X(COUNTER, "counter", NULL, 4, EXPECT_COUNT, "counter.NODE.PORT.NAME")                 \
	X(FAULT_APPLIED, "fault", "applied", 3, EXPECT_COUNT, "fault.NAME.applied")            \
	X(FAULT_MATCHED, "fault", "matched", 3, EXPECT_COUNT, "fault.NAME.matched")            \
	X(APP_DONE, "app", "done", 3, EXPECT_YES_NO, "app.NAME.done")                          \
	X(APP_FAILED, "app", "failed", 3, EXPECT_YES_NO, "app.NAME.failed")                    \
	X(APP_MESSAGES, "app", "messages", 3, EXPECT_COUNT, "app.NAME.messages")               \
	X(APP_BYTES, "app", "bytes", 3, EXPECT_BYTES, "app.NAME.bytes")                        \
	X(APP_MISMATCHES, "app", "mismatches", 3, EXPECT_COUNT, "app.NAME.mismatches")         \
	X(APP_RETRANSMISSIONS, "app", "retransmissions", 3, EXPECT_COUNT,                      \
		"app.NAME.retransmissions")                                                    \
	X(QUEUE_MEAN, "queue", "mean", 5, EXPECT_BYTES, "queue.NODE.PORT.N.mean")              \
	X(QUEUE_MAX, "queue", "max", 5, EXPECT_BYTES, "queue.NODE.PORT.N.max")                 \
	X(WD_DETECTED, "pfc_wd", "deadlock_detected", 5, EXPECT_COUNT,                         \
		"pfc_wd.NODE.PORT.QUEUE.deadlock_detected")                                    \
	X(WD_RESTORED, "pfc_wd", "deadlock_restored", 5, EXPECT_COUNT,                         \
		"pfc_wd.NODE.PORT.QUEUE.deadlock_restored")                                    \
	X(WD_TX_DROPPED, "pfc_wd", "tx_dropped_packets", 5, EXPECT_COUNT,                      \
		"pfc_wd.NODE.PORT.QUEUE.tx_dropped_packets")                                   \
	X(WD_RX_DROPPED, "pfc_wd", "rx_dropped_packets", 5, EXPECT_COUNT,                      \
		"pfc_wd.NODE.PORT.QUEUE.rx_dropped_packets")                                   \
	X(WD_STORMED, "pfc_wd", "stormed", 5, EXPECT_YES_NO, "pfc_wd.NODE.PORT.QUEUE.stormed") \
	X(HOST_EXIT, "host", "exit", 3, EXPECT_COUNT, "host.NAME.exit")                        \
	X(LAG_P50, "lag", "p50", 2, EXPECT_TIME, "lag.p50")                                    \
	X(LAG_P99, "lag", "p99", 2, EXPECT_TIME, "lag.p99")                                    \
	X(LAG_MAX, "lag", "max", 2, EXPECT_TIME, "lag.max")                                    \
	X(POOL_EMPTY, "pool_empty", NULL, 1, EXPECT_COUNT, "pool_empty")                       \
	X(DURATION, "duration", NULL, 1, EXPECT_TIME, "duration")                              \
	X(MAKESPAN, "makespan", NULL, 1, EXPECT_TIME, "makespan")

enum expect_path {
#define X(id, first, last, n, unit, form) EXPECT_PATH_##id,
	EXPECT_PATHS(X)
#undef X
		EXPECT_PATH_COUNT,
};

// EXPECT_PATH_COUNT when the path is none of them.
enum expect_path expect_path_of(const struct sc_expect *e);
enum expect_unit expect_unit_of(enum expect_path path);

// Does `name` match a part, which may be an fnmatch pattern?
bool expect_matches(const char *part, const char *name);

// "==", "!=", "<", ...; and whether `got op value` holds.
const char *expect_op_text(enum sc_cmp op);
bool expect_holds(double got, enum sc_cmp op, double value);
