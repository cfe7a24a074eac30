/* SPDX-License-Identifier: BSD-3-Clause */
// The switches' PFC watchdogs: an engine task per switch that has one looks every poll_interval,
// from time 0 on, as SONiC's orchagent does.

#include <errno.h>
#include <stdlib.h>

#include "emu/fabric/buffers.h"
#include "emu/fabric/internal.h"

// The shortest poll_interval of the ports that have a watchdog.
static simtime_t interval(const struct fabric *f, uint32_t sw)
{
	simtime_t least = SIMTIME_NEVER;

	for (uint16_t p = 0; p < f->s->nodes[sw].n_ports; p++) {
		const struct sc_qos *q = port_qos(f->s, sw, p);
		if (q->wd.enabled)
			least = simtime_min(least, q->wd.poll_interval);
	}
	return least;
}

static unsigned count_watched(const struct fabric *f, uint32_t sw)
{
	struct ethernet_switch_wd_view v;
	unsigned n = 0;

	for (uint16_t p = 0; p < f->s->nodes[sw].n_ports; p++)
		for (unsigned i = 0; ethernet_switch_wd(f->nodes[sw], p, i, &v); i++)
			n++;
	return n;
}

// Reads and acts at one switch; `arg` is its entry of f->polls.
static void poll(struct engine *e, simtime_t now, void *arg)
{
	struct watchdog_poll *w = arg;

	engine_enter(e, w->sw);
	ethernet_switch_wd_poll(w->sw);
	engine_at(e, now + w->interval, poll, w, true);
}

int watchdogs_create(struct fabric *f)
{
	f->polls = calloc(f->s->n_switches + 1, sizeof(*f->polls));
	if (f->polls == NULL)
		return -ENOMEM;
	for (uint32_t sw = 0; sw < f->s->n_switches; sw++) {
		if (count_watched(f, sw) == 0)
			continue;
		f->polls[sw] = (struct watchdog_poll){
			.sw = f->nodes[sw],
			.interval = interval(f, sw),
		};
		if (engine_at(f->engine, f->polls[sw].interval, poll, &f->polls[sw], true) < 0)
			return -ENOMEM;
	}
	return 0;
}

int collect_watchdogs(struct fabric *f, struct run_watchdog **store, struct run_results *r)
{
	unsigned n = 0;

	for (uint32_t sw = 0; sw < f->s->n_switches; sw++)
		n += count_watched(f, sw);
	*store = calloc(n + 1, sizeof(**store));
	if (*store == NULL)
		return -ENOMEM;
	for (uint32_t sw = 0; sw < f->s->n_switches; sw++) {
		for (uint16_t p = 0; p < f->s->nodes[sw].n_ports; p++) {
			struct run_watchdog w = {.node = sw, .port = p};
			for (unsigned i = 0; ethernet_switch_wd(f->nodes[sw], p, i, &w.v); i++)
				(*store)[r->n_watchdogs++] = w;
		}
	}
	r->watchdogs = *store;
	return 0;
}
