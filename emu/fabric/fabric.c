/* SPDX-License-Identifier: BSD-3-Clause */
// The life of a fabric: DPDK, pools, nodes, lanes, endpoints; run; take down in reverse.

#include "emu/fabric/fabric.h"

#include <errno.h>
#include <rte_mempool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "emu/engine/eal.h"
#include "emu/fabric/internal.h"

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static bool wants_pci(const struct scenario *s)
{
	for (uint32_t i = 0; i < s->n_hosts; i++)
		if (s->hosts[i].kind == SC_HOST_ATTACH && s->hosts[i].attach.kind == SC_ATTACH_DPDK)
			return true;
	return false;
}

static int start_dpdk(struct fabric *f)
{
	struct eal_config cfg = {
		.n_lcores = f->lcores,
		.memory_bytes = pools_bytes(f),
		.pci = wants_pci(f->s),
		.pin = f->s->clock == SC_CLOCK_WALL && f->s->poll == SC_POLL_BUSY,
		.extra = f->opt.eal_args,
	};
	struct eal_info info;
	int rc = eal_start(&cfg, &info, f->opt.err);

	f->hugepages = rc == 0 && info.hugepages;
	return rc;
}

static int create_engine(struct fabric *f)
{
	const struct scenario *s = f->s;
	struct engine_config cfg = {
		.wall = s->clock == SC_CLOCK_WALL,
		.busy_poll = s->poll == SC_POLL_BUSY,
		.n_lcores = f->lcores,
		.duration = s->duration ? s->duration : SIMTIME_NEVER,
		.group_target = s->group_target,
		.time_scale = s->time_scale_milli / 1000.0,
		.seed = s->seed,
		.on_window = captures_window,
		.on_window_arg = f,
	};

	return engine_create(&cfg, &f->engine);
}

typedef int (*stage_fn)(struct fabric *f);

static int prepare_engine(struct fabric *f)
{
	return engine_prepare(f->engine);
}

static int compute_routes(struct fabric *f)
{
	int rc = routes_compute(f->s, NULL, &f->routes);

	if (rc == 0)
		routes_apply(f);
	return rc;
}

// In order of what needs what. A stage that fails has either said why or ran out of memory.
static int build(struct fabric *f)
{
	static const stage_fn stages[] = {
		start_dpdk,
		create_engine,
		pools_create,
		attach_open_all,
		nodes_create,
		lanes_create,
		compute_routes,
		flows_create,
		apps_create,
		faults_create,
		prepare_engine,
		timeline_create,
		detector_create,
		queue_stats_create,
		watchdogs_create,
		captures_create,
		attach_wait_all,
	};

	for (size_t i = 0; i < RTE_DIM(stages); i++) {
		int rc = stages[i](f);
		if (rc == -ENOMEM)
			fprintf(f->opt.err, "fabemu: out of memory building the fabric\n");
		if (rc < 0)
			return rc;
	}
	return 0;
}

int fabric_create(const struct scenario *s, const struct fabric_options *opt, struct fabric **out)
{
	double start = seconds();
	struct fabric *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return -ENOMEM;
	f->s = s;
	f->opt = *opt;
	f->lcores = opt->lcores ? opt->lcores : s->lcores ? s->lcores : 1;
	f->nodes = calloc(s->n_nodes + 1, sizeof(struct node *));
	f->link_down = calloc(s->n_links + 1, sizeof(bool));
	f->link_held = calloc(s->n_links + 1, sizeof(uint8_t));
	int rc = -ENOMEM;
	if (f->nodes != NULL && f->link_down != NULL && f->link_held != NULL) {
		pools_size(f);
		rc = build(f);
	}
	if (rc < 0) {
		fabric_destroy(f);
		return rc;
	}
	f->setup_seconds = seconds() - start;
	*out = f;
	return 0;
}

void fabric_run(struct fabric *f)
{
	double start = seconds();

	attach_start_all(f);
	f->end = engine_run(f->engine);
	f->wall_seconds = seconds() - start;
}

void fabric_request_stop(struct fabric *f)
{
	engine_request_stop(f->engine);
}

void fabric_destroy(struct fabric *f)
{
	if (f == NULL)
		return;
	attach_close_all(f);
	captures_close(f);
	if (f->detecting)
		deadlock_fini(&f->deadlock);
	results_free(f);
	faults_destroy(f);
	nodes_destroy(f);
	engine_destroy(f->engine);
	routes_free(f->routes);
	rte_mempool_free(f->pool.heads);
	rte_mempool_free(f->pool.full);
	free(f->captures);
	free(f->timeline);
	free(f->polls);
	free(f->link_down);
	free(f->link_held);
	free(f->fault_names);
	free(f->app_index);
	free(f);
	eal_stop();
}
