/* SPDX-License-Identifier: BSD-3-Clause */
// The virtual clock: windows one after the other, empty ones skipped, one barrier between them.
//
// In a window [t, t+W) every group executes alone, for what it sends to another group arrives at
// t+W or later. Which lcore runs which group, and when within the window, changes nothing.

#include "emu/engine/internal.h"

// Runs while all lcores are at the barrier.
static void decide(void *arg)
{
	struct engine *e = arg;
	simtime_t published = SIMTIME_NEVER;

	for (unsigned i = 0; i < e->config.n_lcores; i++)
		published = simtime_min(published, e->lc[i].next);

	for (;;) {
		simtime_t task = engine_next_task(e);
		simtime_t next = published;
		for (unsigned i = 0; i < e->config.n_lcores; i++) {
			uint32_t slot;
			next = simtime_min(next, evq_next(&e->lc[i].q, &slot));
		}

		e->ended = true;
		if (e->stop) {
			e->end = ENGINE_END_STOPPED;
			return;
		}
		if (next == SIMTIME_NEVER && e->n_foreground == 0) {
			e->end = ENGINE_END_IDLE;
			return;
		}
		if (simtime_min(next, task) >= e->config.duration) {
			e->now = e->config.duration;
			e->end = ENGINE_END_DURATION;
			return;
		}
		e->ended = false;
		if (e->config.on_window != NULL)
			e->config.on_window(e->config.on_window_arg, simtime_min(next, task));
		if (task <= next) {
			e->now = simtime_max(e->now, task);
			engine_run_tasks(e, e->now);
			// All queues were looked at again, frames between lcores included.
			if (e->touched)
				published = SIMTIME_NEVER;
			continue;
		}
		e->now = next;
		e->window_end =
			simtime_min(simtime_min(next + e->window, task), e->config.duration);
		return;
	}
}

void virtual_loop(struct lcore_ctx *lc)
{
	struct engine *e = lc->e;
	uint32_t slot;

	lc->next = evq_next(&lc->q, &slot);
	for (;;) {
		barrier_wait(&e->barrier, decide, e);
		if (e->ended)
			return;
		lcore_poll_inbound(lc);
		lc->next = lcore_run_window(lc, e->window_end);
	}
}
