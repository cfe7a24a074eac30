/* SPDX-License-Identifier: BSD-3-Clause */
// Tasks: things that happen to the fabric as a whole at an exact time.

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "emu/engine/internal.h"

#define TASKS_INITIAL 16

int engine_at(struct engine *e, simtime_t at, engine_task fn, void *arg, bool daemon)
{
	if (e->n_tasks == e->cap_tasks) {
		uint32_t cap = e->cap_tasks ? 2 * e->cap_tasks : TASKS_INITIAL;
		struct task *bigger = realloc(e->tasks, cap * sizeof(*bigger));
		if (bigger == NULL)
			return -ENOMEM;
		e->tasks = bigger;
		e->cap_tasks = cap;
	}

	uint32_t i = e->n_tasks++;
	while (i > 0 && e->tasks[i - 1].at > at) {
		e->tasks[i] = e->tasks[i - 1];
		i--;
	}
	e->tasks[i] = (struct task){
		.at = at, .seq = e->task_seq++, .fn = fn, .arg = arg, .daemon = daemon};
	e->n_foreground += !daemon;
	return 0;
}

simtime_t engine_next_task(const struct engine *e)
{
	return e->n_tasks ? e->tasks[0].at : SIMTIME_NEVER;
}

void engine_run_tasks(struct engine *e, simtime_t now)
{
	e->touched = false;
	while (e->n_tasks > 0 && e->tasks[0].at <= now) {
		struct task t = e->tasks[0];
		e->n_tasks--;
		e->n_foreground -= !t.daemon;
		memmove(e->tasks, e->tasks + 1, e->n_tasks * sizeof(*e->tasks));
		if (!t.daemon)
			e->last_task = e->now;
		t.fn(e, simtime_max(t.at, e->now), t.arg);
	}
	if (e->touched)
		engine_rearm_all(e);
}

void engine_enter(struct engine *e, struct node *n)
{
	n->now = simtime_max(n->now, e->now);
	e->touched = true;
}
