/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Pauses by priority that have ended, in one direction of a port: as mlx5 counts them.

#include <stdint.h>

#include "emu/core/simtime.h"

#define PAUSE_PRIORITIES 8

// A pause made for this long is a storm: mlx5's pfc_prevention_tout, 8 s unless set, and 85 % of it
// for the warning (its driver's en_ethtool.c).
#define PAUSE_STORM_ERROR   (8 * SIM_S)
#define PAUSE_STORM_WARNING (PAUSE_STORM_ERROR / 100 * 85)

struct pauses {
	simtime_t duration[PAUSE_PRIORITIES];
	uint64_t transitions[PAUSE_PRIORITIES]; // from XOFF to XON
	uint64_t storm_warnings, storm_errors;
};

static inline void pauses_add(struct pauses *p, unsigned prio, simtime_t duration)
{
	p->duration[prio] += duration;
	p->transitions[prio]++;
	p->storm_warnings += duration >= PAUSE_STORM_WARNING;
	p->storm_errors += duration >= PAUSE_STORM_ERROR;
}
