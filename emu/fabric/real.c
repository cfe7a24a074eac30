/* SPDX-License-Identifier: BSD-3-Clause */
// Real endpoints in the life of a fabric: opened before the nodes, waited for before the timeline
// starts, watched while it runs (a run whose commands have all ended is over), closed at the end.

#include <errno.h>
#include <stdlib.h>

#include "emu/attach/attach.h"
#include "emu/fabric/internal.h"

#define LOG_NAME_BYTES 64
#define WATCH_INTERVAL (10 * SIM_MS) // wall time

int attach_open_all(struct fabric *f)
{
	struct attach_context ctx = {.sc = f->s, .run_dir = f->opt.out_dir, .pool = f->pool.full};

	return attach_open(&ctx, &f->attach, f->opt.err);
}

int attach_wait_all(struct fabric *f)
{
	return attach_wait_ready(f->attach, f->opt.stop, f->opt.err);
}

static simtime_t watch_interval(const struct fabric *f)
{
	return WATCH_INTERVAL * 1000 / f->s->time_scale_milli;
}

static void watch(struct engine *e, simtime_t now, void *arg)
{
	struct fabric *f = arg;

	switch (attach_state(f->attach)) {
	case ATTACH_FAILED:
		f->failure = "a real endpoint ended before its commands did";
		engine_request_stop(e);
		return;
	case ATTACH_DONE:
		engine_request_stop(e);
		return;
	case ATTACH_IDLE:
	case ATTACH_RUNNING:
		break;
	}
	engine_at(e, now + watch_interval(f), watch, f, true);
}

void attach_start_all(struct fabric *f)
{
	attach_go(f->attach);
	if (attach_state(f->attach) != ATTACH_IDLE)
		engine_at(f->engine, watch_interval(f), watch, f, true);
}

static unsigned count_runs(const struct scenario *s)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < s->n_hosts; i++)
		if (s->hosts[i].kind == SC_HOST_ATTACH)
			n += s->hosts[i].attach.n_run;
	return n;
}

int collect_guests(struct fabric *f, struct run_guest **store, struct run_results *r)
{
	const struct scenario *s = f->s;

	// Behind the entries, the names of the hosts' console logs.
	unsigned n = count_runs(s) + 1;
	*store = calloc(1, n * sizeof(**store) + s->n_hosts * LOG_NAME_BYTES);
	if (*store == NULL)
		return -ENOMEM;
	char(*log)[LOG_NAME_BYTES] = (char(*)[LOG_NAME_BYTES])(*store + n);
	for (uint32_t i = 0; i < s->n_hosts; i++) {
		const struct sc_host *h = &s->hosts[i];
		if (h->kind != SC_HOST_ATTACH)
			continue;
		snprintf(log[i], LOG_NAME_BYTES, "%s.console", s->nodes[h->node].name);
		for (uint32_t k = 0; k < h->attach.n_run; k++) {
			int status;
			bool ended = attach_run_status(f->attach, h->node, k, &status);
			(*store)[r->n_guests++] = (struct run_guest){
				.name = s->nodes[h->node].name,
				.command = h->attach.run[k].command,
				.log = log[i],
				.exit_status = !ended         ? -1
					       : status > 128 ? 128
							      : status,
				.signal = ended && status > 128 ? status - 128 : 0,
			};
		}
		const char *failure = attach_host_failure(f->attach, h->node);
		if (failure != NULL && r->failure == NULL) {
			snprintf(f->attach_failure, sizeof(f->attach_failure), "%s: %s",
				s->nodes[h->node].name, failure);
			r->failure = f->attach_failure;
		}
	}
	r->guests = *store;
	return 0;
}

void attach_close_all(struct fabric *f)
{
	attach_close(f->attach);
	f->attach = NULL;
}
