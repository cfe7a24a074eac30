/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// The PFC watchdog of one egress queue, in SONiC's words: by what it sees at each poll it calls the
// queue stormed or restored. What then happens to frames is the caller's. See pfc_wd.c.

#include <stdbool.h>
#include <stdint.h>

#include "emu/core/simtime.h"

// X(id, name, help): what is done about a stormed queue
#define PFC_WD_ACTIONS(X)                                                                        \
	X(DROP, "drop",                                                                          \
		"its frames are dropped, those waiting and those to come, and so are those "     \
		"that come in by the port with its priority")                                    \
	X(FORWARD, "forward", "PFC is off for its priority on the port, both ways: it sends on") \
	X(ALERT, "alert", "nothing but the event")

enum pfc_wd_action {
#define X(id, name, help) PFC_WD_##id,
	PFC_WD_ACTIONS(X)
#undef X
};

// X(id, name, help): when a poll looks like a storm
#define PFC_WD_CONDITIONS(X)                                                           \
	X(GENERIC, "generic",                                                          \
		"frames wait and none left, and XOFFs came; or none wait, none left, " \
		"and it was paused for more than 80 % of the poll")                    \
	X(BROADCOM, "broadcom",                                                        \
		"XOFFs came, no pause ended, and it is paused now and was at the "     \
		"last poll")                                                           \
	X(MELLANOX, "mellanox",                                                        \
		"frames wait, none left, and it was paused for more than 99 % of "     \
		"the poll")

enum pfc_wd_condition {
#define X(id, name, help) PFC_WD_CONDITION_##id,
	PFC_WD_CONDITIONS(X)
#undef X
};

const char *pfc_wd_action_name(enum pfc_wd_action action);
const char *pfc_wd_condition_name(enum pfc_wd_condition condition);

struct pfc_wd_config {
	enum pfc_wd_action action;
	enum pfc_wd_condition condition;
	simtime_t detection_time;   // >= the interval between polls, > 0
	simtime_t restoration_time; // likewise
	bool big_red_switch;        // stormed by order: never restored
};

// Running counters of the queue and of its priority at the time of a poll.
struct pfc_wd_sample {
	uint64_t xoffs;           // PFC frames received that pause the priority (quanta > 0)
	uint64_t on2off;          // pauses that ended
	uint64_t packets;         // that left the queue
	uint64_t occupancy_bytes; // waiting now
	simtime_t paused;         // altogether, the pause under way included
	bool pause_status;        // paused now
};

struct pfc_wd {
	bool stormed;
	simtime_t time_left;
	simtime_t accumulated; // MELLANOX: paused since the condition holds
	simtime_t last_poll;
	struct pfc_wd_sample last;
};

enum pfc_wd_verdict { PFC_WD_UNCHANGED, PFC_WD_DETECTED, PFC_WD_RESTORED };

// At time 0, with all counters 0.
void pfc_wd_init(struct pfc_wd *w, const struct pfc_wd_config *cfg);

enum pfc_wd_verdict pfc_wd_poll(struct pfc_wd *w, const struct pfc_wd_config *cfg, simtime_t now,
	const struct pfc_wd_sample *s);

// Storms by order (the big red switch). True if it was not stormed already.
bool pfc_wd_force(struct pfc_wd *w);
