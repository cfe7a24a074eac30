/* SPDX-License-Identifier: BSD-3-Clause */
// The wall clock: the same events, executed when the TSC reaches their time.
//
// Each lcore runs its groups up to now in steps of at most W, so that on one lcore the order is
// that of the virtual clock however late the loop is. Between lcores a frame can be seen late; its
// time is then the node's own. How late events are executed is the lag: measured once per step, for
// the step's first event, in wall time.
//
// An idle lcore sleeps, first briefly, then up to a millisecond, but never past its next event or
// task: a real port's frame may wait that long, which is far below what a soft endpoint notices,
// and the guests that run on the same cores need them more than we do. A frame from another lcore
// ends the nap: with a nap at each hop a round trip through the fabric would be felt.

#include <linux/futex.h>
#include <rte_cycles.h>
#include <rte_pause.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "emu/engine/internal.h"

#define IDLE_SPINS 200
#define NAP_MIN_NS 20000
#define NAP_MAX_NS 1000000
#define NAP_SLACK  (60 * SIM_US) // wake-up latency of a sleeping thread, wall time

static simtime_t wall_now(const struct engine *e)
{
	uint64_t ticks = rte_rdtsc() - e->tsc_start;

	return (simtime_t)(((unsigned __int128)ticks * e->tsc_to_ps) >> 32);
}

// After frames were sent to other lcores. The fence orders the frame before the look at `napping`;
// nap() sets that before it looks for frames, so one of the two sees the other.
static void wake_others(const struct lcore_ctx *lc)
{
	struct engine *e = lc->e;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < e->config.n_lcores; i++) {
		uint32_t *napping = &e->lc[i].napping;
		if (__atomic_load_n(napping, __ATOMIC_RELAXED) &&
			__atomic_exchange_n(napping, 0, __ATOMIC_SEQ_CST))
			syscall(SYS_futex, napping, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
}

static unsigned poll_ports(struct lcore_ctx *lc, simtime_t now)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < lc->n_pollers; i++) {
		struct node *node = lc->pollers[i];
		struct group_head *g = &node->group->head;
		g->remote_min = SIMTIME_NEVER;
		node->now = simtime_max(node->now, now);
		n += node->ops->poll(node);
		if (g->remote_min != SIMTIME_NEVER)
			wake_others(lc);
		uint32_t src;
		simtime_t at = evq_next(&node->evq, &src);
		if (at != SIMTIME_NEVER)
			g->wake(node->group, node, at);
	}
	return n;
}

// Executes everything due up to `now`, or until a stop is asked for: a host that cannot keep up may
// be far behind. Returns whether there was anything.
static bool catch_up(struct lcore_ctx *lc, simtime_t now)
{
	bool any = false;

	for (;;) {
		uint32_t slot = 0;
		lcore_poll_inbound(lc);
		simtime_t t = evq_next(&lc->q, &slot);
		if (t > now || lc->e->stop)
			return any;
		any = true;
		lag_add(lc->lag,
			(simtime_t)((double)(wall_now(lc->e) - t) * lc->e->config.time_scale));
		lcore_run_window(lc, simtime_min(t + lc->e->window, now + 1));
		if (lc->sent != SIMTIME_NEVER)
			wake_others(lc);
	}
}

// Executes what is left before `due`: an lcore that was late may have sent frames to one that was
// at the barrier already.
static void settle(struct engine *e, simtime_t due)
{
	bool any;

	do {
		any = false;
		for (unsigned i = 0; i < e->config.n_lcores; i++)
			any |= catch_up(&e->lc[i], due - 1);
	} while (any && !e->stop);
}

// Runs while all lcores are at the barrier: at the start, when a task is due, and to stop.
static void decide(void *arg)
{
	struct engine *e = arg;

	if (e->tsc_start == 0) {
		e->tsc_to_ps = (uint64_t)((double)SIM_S / (double)rte_get_tsc_hz() /
					  e->config.time_scale * 4294967296.0);
		e->tsc_start = rte_rdtsc();
	}
	simtime_t now = wall_now(e);
	simtime_t due = simtime_min(engine_next_task(e), e->config.duration);
	simtime_t at = simtime_min(now, due);
	if (due <= now)
		settle(e, due);
	e->now = simtime_max(e->now, at);
	if (e->stop) {
		e->ended = true;
		e->end = ENGINE_END_STOPPED;
	} else if (e->now >= e->config.duration) {
		e->ended = true;
		e->end = ENGINE_END_DURATION;
	} else if (engine_next_task(e) <= now) {
		engine_run_tasks(e, e->now);
	}
}

static bool inbound_waiting(const struct lcore_ctx *lc)
{
	for (uint32_t i = 0; i < lc->n_inbound; i++) {
		const struct lane *l = lc->inbound[i];
		if (evq_when(&l->dst->evq, l->dst_port) == SIMTIME_NEVER && !lane_empty(l))
			return true;
	}
	return false;
}

static void sleep_until_woken(struct lcore_ctx *lc, long ns)
{
	struct timespec ts = {.tv_nsec = ns};

	__atomic_store_n(&lc->napping, 1, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!inbound_waiting(lc))
		syscall(SYS_futex, &lc->napping, FUTEX_WAIT_PRIVATE, 1, &ts, NULL, 0);
	__atomic_store_n(&lc->napping, 0, __ATOMIC_RELAXED);
}

static void nap(struct lcore_ctx *lc, simtime_t limit, unsigned *idle)
{
	struct engine *e = lc->e;
	uint32_t slot;

	if (*idle < IDLE_SPINS || e->config.busy_poll) {
		++*idle;
		rte_pause();
		return;
	}
	simtime_t next = simtime_min(evq_next(&lc->q, &slot), limit);
	double left_ns =
		next == SIMTIME_NEVER
			? NAP_MAX_NS
			: ((double)(next - wall_now(e)) * e->config.time_scale - NAP_SLACK) /
				  SIM_NS;
	double nap_ns = RTE_MIN(left_ns, (double)NAP_MIN_NS * (1 + (*idle - IDLE_SPINS) / 16));
	if (nap_ns > NAP_MIN_NS / 2) {
		sleep_until_woken(lc, (long)RTE_MIN(nap_ns, (double)NAP_MAX_NS));
		lc->slept++;
		++*idle;
	} else {
		rte_pause();
	}
}

void wall_loop(struct lcore_ctx *lc)
{
	struct engine *e = lc->e;
	unsigned idle = 0;

	barrier_wait(&e->barrier, decide, e);
	while (!e->ended) {
		// Read before the clock: a task due later than this limit is seen next time round.
		simtime_t limit = simtime_min(engine_next_task(e), e->config.duration);
		simtime_t now = wall_now(e);
		bool meet = e->stop || now >= limit;

		// Events before a task's time come before the task.
		bool busy = catch_up(lc, simtime_min(now, limit - 1));
		if (meet) {
			barrier_wait(&e->barrier, decide, e);
			continue;
		}
		busy |= poll_ports(lc, now) > 0;
		if (lc->index == 0)
			e->now = now;
		if (busy)
			idle = 0;
		else
			nap(lc, limit, &idle);
	}
}
