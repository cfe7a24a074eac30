/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// What happens in a fabric besides frames moving: one vocabulary for the console, the results, the
// captures' comments. A node appends records to its own bounded log; the engine's owner collects
// them in time order (ties: node index, then sequence).

#include <stdbool.h>
#include <stdint.h>

#include "emu/core/simtime.h"

// X(id, name, meaning of a, meaning of b)
#define EVENT_KINDS(X)                                                                   \
	X(PFC_XOFF_SENT, "pfc_xoff_sent", "priority", "bytes held by the PG")            \
	X(PFC_XON_SENT, "pfc_xon_sent", "priority", "bytes held by the PG")              \
	X(PFC_PAUSED, "pfc_paused", "priority", "quanta")                                \
	X(PFC_RESUMED, "pfc_resumed", "priority", "paused for, ps")                      \
	X(FIRST_DROP, "first_drop", "drop reason", "priority")                           \
	X(LINK_DOWN, "link_down", "0", "0")                                              \
	X(LINK_UP, "link_up", "0", "0")                                                  \
	X(STORM_START, "storm_start", "priority", "0")                                   \
	X(STORM_END, "storm_end", "priority", "0")                                       \
	X(QP_RETRY, "qp_retry", "flow", "retries left")                                  \
	X(QP_ERROR, "qp_error", "flow", "work completion status")                        \
	X(FLOW_START, "flow_start", "flow", "bytes")                                     \
	X(FLOW_DONE, "flow_done", "flow", "bytes")                                       \
	X(FAULT, "fault", "rule", "PSN")                                                 \
	X(POOL_EMPTY, "pool_empty", "0", "0")                                            \
	X(ROUTE_CHANGE, "route_change", "endpoint", "0")                                 \
	X(CM_ESTABLISHED, "cm_established", "application", "local ACK timeout exponent") \
	X(APP_END, "app_end", "application", "status")                                   \
	X(DEADLOCK, "deadlock", "priority", "members")                                   \
	X(RATE_CHANGE, "rate_change", "bits per second", "0")                            \
	X(REBOOT, "reboot", "1: stops, 0: is back", "0")                                 \
	X(PFC_WD_DETECTED, "pfc_wd_detected", "queue", "0")                              \
	X(PFC_WD_RESTORED, "pfc_wd_restored", "queue", "stormed for, ps")

enum event_kind {
#define X(id, name, a, b) EV_##id,
	EVENT_KINDS(X)
#undef X
		EVENT_KIND_COUNT,
};

const char *event_kind_name(enum event_kind kind);

struct event {
	simtime_t at;
	uint16_t kind; // enum event_kind
	uint16_t port;
	uint32_t node;
	uint64_t a; // meaning by kind, see the table
	uint64_t b;
};

// Keeps the first `cap` events of a node and counts the rest.
struct event_log {
	struct event *ev;
	uint32_t n;
	uint32_t cap;
	uint64_t lost;
};

static inline void event_log_add(struct event_log *l, struct event e)
{
	if (l->n < l->cap)
		l->ev[l->n++] = e;
	else
		l->lost++;
}
