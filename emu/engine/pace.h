/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Whether windows are worth a barrier. Two lcores finish a window of many events sooner than one; a
// window of a few events is over before they have met, and on a busy host a barrier can wait for
// the scheduler. Nothing but a measurement tells: both ways are tried in turn on neighbouring
// windows, the faster one is kept for a while, and the trial is repeated ever more rarely while its
// answer stays the same. Results do not depend on it.
//
// A trial is PACE_BLOCKS times four windows solo and four in parallel. The first of each four pays
// for the change (sleeping lcores, cold caches) and is not counted; nor is the slower half, in
// which the scheduler had its hand.

#include <stdbool.h>
#include <stdint.h>

#define PACE_RUN     4 // windows of one way in a row
#define PACE_BLOCKS  4
#define PACE_TRIAL   (2 * PACE_RUN * PACE_BLOCKS)
#define PACE_SAMPLES ((PACE_RUN - 1) * PACE_BLOCKS)
#define PACE_KEEP    256 // windows until the next trial, at first
#define PACE_LONGEST 65536

struct pace {
	bool solo; // how the next window is to be run: all lcores' groups on one, in turn
	bool trying;
	bool settled_solo;               // the last trial's answer
	uint32_t left;                   // windows left in the trial or until the next one
	uint32_t keep;                   // windows to keep the answer
	uint32_t n[2];                   // samples of the trial: parallel, solo
	uint64_t ticks[2][PACE_SAMPLES]; // in ascending order
	uint64_t started; // TSC at the start of the window that is being run in parallel, else 0
};

static inline void pace_try(struct pace *p)
{
	p->trying = true;
	p->left = PACE_TRIAL;
	p->solo = true;
	p->n[0] = p->n[1] = 0;
}

static inline void pace_init(struct pace *p)
{
	*p = (struct pace){.keep = PACE_KEEP / 2};
	pace_try(p);
}

static inline void pace_sample(struct pace *p, uint64_t ticks)
{
	uint64_t *t = p->ticks[p->solo];
	uint32_t i = p->n[p->solo]++;

	for (; i > 0 && t[i - 1] > ticks; i--)
		t[i] = t[i - 1];
	t[i] = ticks;
}

static inline void pace_settle(struct pace *p)
{
	uint64_t sum[2] = {0};

	for (uint32_t i = 0; i < PACE_SAMPLES / 2; i++) {
		sum[0] += p->ticks[0][i];
		sum[1] += p->ticks[1][i];
	}
	bool solo = sum[1] <= sum[0];
	if (solo != p->settled_solo)
		p->keep = PACE_KEEP;
	else if (p->keep < PACE_LONGEST)
		p->keep *= 2;
	p->settled_solo = p->solo = solo;
	p->trying = false;
	p->left = p->keep;
}

// A window took `ticks`, the way p->solo said. Decides how the next one is run.
static inline void pace_note(struct pace *p, uint64_t ticks)
{
	uint32_t done = PACE_TRIAL - p->left;

	p->left--;
	if (!p->trying) {
		if (p->left == 0)
			pace_try(p);
		return;
	}
	if (done % PACE_RUN != 0)
		pace_sample(p, ticks);
	if (p->left == 0)
		pace_settle(p);
	else
		p->solo = (done + 1) / PACE_RUN % 2 == 0;
}
