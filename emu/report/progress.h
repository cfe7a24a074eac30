/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// One line on a terminal while a run goes on: emulated time, percent, ETA, frames per second, lag.

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "emu/core/simtime.h"

struct progress {
	FILE *out; // NULL: silent
	uint64_t started_ns;
	uint64_t printed_ns; // when the line was last drawn
	uint64_t frames;     // at that time
	bool drawn;
};

struct progress_snapshot {
	uint64_t wall_ns; // CLOCK_MONOTONIC
	simtime_t emulated;
	simtime_t duration; // SIMTIME_NEVER when unknown
	double done;     // share of the flows' bytes that arrived, if duration is unknown; or < 0
	uint64_t frames; // moved so far (hops)
	bool wall_clock;
	simtime_t lag_p99; // wall clock only
};

// Silent when `out` is not a terminal or `quiet`.
void progress_start(struct progress *p, FILE *out, bool quiet, uint64_t wall_ns);
// Draws the line unless it was drawn less than 200 ms ago. Cheap to call when not due.
void progress_update(struct progress *p, const struct progress_snapshot *s);
// Removes the line.
void progress_end(struct progress *p);

// The line without terminal control, for tests. Returns what snprintf would.
int progress_format(
	const struct progress *p, const struct progress_snapshot *s, char *buf, size_t len);
