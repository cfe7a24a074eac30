/* SPDX-License-Identifier: BSD-3-Clause */
// The virtual clock: windows one after the other, empty ones skipped, one barrier between them.
//
// In a window [t, t+W) every group executes alone, for what it sends to another group arrives at
// t+W or later. Which lcore runs which group, and when within the window, changes nothing.

#include <rte_cycles.h>

#include "emu/engine/internal.h"

static simtime_t next_event(struct engine *e)
{
	simtime_t next = SIMTIME_NEVER;

	for (unsigned i = 0; i < e->config.n_lcores; i++) {
		uint32_t slot;
		next = simtime_min(next, e->lc[i].next);
		next = simtime_min(next, evq_next(&e->lc[i].q, &slot));
	}
	return next;
}

// Is the run over, with `next` the earliest event and `task` the earliest task?
static bool is_over(struct engine *e, simtime_t next, simtime_t task)
{
	e->ended = true;
	if (e->stop) {
		e->end = ENGINE_END_STOPPED;
	} else if (next == SIMTIME_NEVER && e->n_foreground == 0) {
		e->end = ENGINE_END_IDLE;
	} else if (simtime_min(next, task) >= e->config.duration) {
		e->now = e->config.duration;
		e->end = ENGINE_END_DURATION;
	} else {
		e->ended = false;
	}
	return e->ended;
}

// Chooses the next window, running the tasks that are due before it. False at the end of the run.
static bool choose_window(struct engine *e)
{
	for (;;) {
		simtime_t task = engine_next_task(e);
		simtime_t next = next_event(e);

		if (is_over(e, next, task))
			return false;
		if (e->config.on_window != NULL)
			e->config.on_window(e->config.on_window_arg, simtime_min(next, task));
		if (next < task) {
			e->now = next;
			e->window_end = simtime_min(
				simtime_min(next + e->window, task), e->config.duration);
			return true;
		}
		e->now = simtime_max(e->now, task);
		engine_run_tasks(e, e->now);
		// All queues were looked at again, frames between lcores included.
		for (unsigned i = 0; e->touched && i < e->config.n_lcores; i++)
			e->lc[i].next = SIMTIME_NEVER;
	}
}

static void run_window(struct lcore_ctx *lc)
{
	lcore_poll_inbound(lc);
	lc->next = lcore_run_window(lc, lc->e->window_end);
}

// Runs while all lcores are at the barrier: chooses the next window and, as long as that is the
// faster way, executes windows for all of them.
static void decide(void *arg)
{
	struct engine *e = arg;
	struct pace *p = &e->pace;

	if (e->config.n_lcores == 1) {
		choose_window(e);
		return;
	}
	if (p->started != 0)
		pace_note(p, rte_rdtsc() - p->started);
	p->started = 0;
	while (choose_window(e)) {
		uint64_t start = rte_rdtsc();
		if (!p->solo) {
			p->started = start;
			return;
		}
		for (unsigned i = 0; i < e->config.n_lcores; i++)
			run_window(&e->lc[i]);
		pace_note(p, rte_rdtsc() - start);
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
		run_window(lc);
	}
}
