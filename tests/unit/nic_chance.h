/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Chance for two NICs of nic_rig.h: a path that loses and reorders, and runs by seed. NIC_SEED=n
// repeats one.

#include "emu/core/rng.h"
#include "nic_rig.h"

static struct rng chance;
static uint32_t loss_per_1024, holds_per_1024;
static enum rig_side held_from;
static uint64_t current_seed;

// Lets go of the frame that waits.
static inline void release_held(struct rig *r)
{
	if (r->held != NULL)
		rig_release(r, held_from == RIG_A ? RIG_B : RIG_A);
}

// Loses some frames; now and then one waits until some others have passed.
static inline bool chance_path(struct rig *r, enum rig_side from, struct frame *f)
{
	if (r->held != NULL && rng_below(&chance, 8) == 0)
		release_held(r);
	if (rng_below(&chance, 1024) < loss_per_1024)
		return false;
	if (r->held == NULL && rng_below(&chance, 1024) < holds_per_1024) {
		r->held = f;
		held_from = from;
		return false;
	}
	return true;
}

// Runs seeds 1 to `n`, or the one that is asked for.
static inline void run_seeds(void (*run)(uint64_t seed), uint64_t n)
{
	const char *env = getenv("NIC_SEED");

	if (env != NULL) {
		run(strtoull(env, NULL, 0));
		return;
	}
	for (uint64_t seed = 1; seed <= n; seed++) {
		current_seed = seed;
		run(seed);
	}
}
