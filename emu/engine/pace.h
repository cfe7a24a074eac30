/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Whether windows are worth a barrier. Two lcores finish a window of many events sooner than one; a
// window of a few events is over before they have met, and on a busy host a barrier can wait for
// the scheduler. Nothing but a measurement tells, so both ways are tried on neighbouring windows,
// the faster one is kept for a while, and the trial is repeated ever more rarely while its answer
// stays the same. Results do not depend on it.

#include <stdbool.h>
#include <stdint.h>

#define PACE_TRIAL   8   // windows each way
#define PACE_KEEP    256 // windows until the next trial, at first
#define PACE_LONGEST 65536

enum pace_phase { PACE_TRY_SOLO, PACE_TRY_PARALLEL, PACE_SETTLED };

struct pace {
	enum pace_phase phase;
	bool solo;         // how the next window is to be run: all lcores' groups on one, in turn
	bool settled_solo; // the last trial's answer
	uint32_t left;     // windows left in this phase
	uint32_t keep;     // windows to keep the answer
	uint64_t ticks[2]; // spent in the trial: solo, parallel
	uint64_t started;  // TSC at the start of the window that is being run
};

static inline void pace_init(struct pace *p)
{
	*p = (struct pace){
		.phase = PACE_TRY_SOLO, .solo = true, .left = PACE_TRIAL, .keep = PACE_KEEP / 2};
}

static inline void pace_settle(struct pace *p)
{
	bool solo = p->ticks[0] <= p->ticks[1];

	if (solo != p->settled_solo)
		p->keep = PACE_KEEP;
	else if (p->keep < PACE_LONGEST)
		p->keep *= 2;
	p->settled_solo = p->solo = solo;
	p->phase = PACE_SETTLED;
	p->left = p->keep;
	p->ticks[0] = p->ticks[1] = 0;
}

// A window took `ticks`, the way p->solo said. Decides how the next one is run.
static inline void pace_note(struct pace *p, uint64_t ticks)
{
	if (p->phase != PACE_SETTLED)
		p->ticks[p->phase == PACE_TRY_PARALLEL] += ticks;
	if (--p->left > 0)
		return;
	switch (p->phase) {
	case PACE_TRY_SOLO:
		p->phase = PACE_TRY_PARALLEL;
		p->solo = false;
		p->left = PACE_TRIAL;
		break;
	case PACE_TRY_PARALLEL:
		pace_settle(p);
		break;
	case PACE_SETTLED:
		p->phase = PACE_TRY_SOLO;
		p->solo = true;
		p->left = PACE_TRIAL;
		break;
	}
}
