/* SPDX-License-Identifier: BSD-3-Clause */
// The end of a run: the invariants, and everything the nodes know, as run_results.

#include <errno.h>
#include <rte_mempool.h>
#include <rte_version.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include "emu/attach/attach.h"
#include "emu/capture/capture.h"
#include "emu/fabric/buffers.h"
#include "emu/fabric/fabemu_version.h"
#include "emu/fabric/internal.h"
#include "pipelines/edge.h"
#include "pipelines/ethernet_switch.h"
#include "pipelines/nic.h"

#define WHY_MAX 256

enum { INV_FRAMES, INV_NODES, INV_DRAINED, INV_POOLS, INV_COUNT };

struct results_store {
	struct run_node *nodes;
	struct run_port *ports;
	char (*peers)[80];
	struct run_pg *pgs;
	struct run_flow *flows;
	struct event *events;
	struct run_guest *guests;
	struct run_queue *queues;
	struct run_watchdog *watchdogs;
	struct run_fault *faults;
	struct run_app *apps;
	struct run_capture *captures;
	struct run_invariant invariants[INV_COUNT];
	char why[INV_COUNT][WHY_MAX];
	struct run_lag lag[ENGINE_LCORES_MAX];
	struct utsname uts;
	char cpu[128];
};

// ---- invariants --------------------------------------------------------------------------------

static void hold(struct results_store *st, int i, const char *name)
{
	st->invariants[i] = (struct run_invariant){.name = name, .ok = true};
}

static void broken(struct results_store *st, int i, const char *why)
{
	if (!st->invariants[i].ok)
		return; // the first reason says most
	if (why != st->why[i])
		snprintf(st->why[i], WHY_MAX, "%s", why);
	st->invariants[i].ok = false;
	st->invariants[i].text = st->why[i];
}

static void count_frames(struct fabric *f, struct run_results *r)
{
	for (uint32_t i = 0; i < f->s->n_nodes; i++) {
		const struct node *n = f->nodes[i];
		r->frames.created += n->created;
		r->frames.delivered += n->delivered;
		r->frames.consumed += n->consumed;
		r->frames.dropped += n->dropped;
		r->frames.inside += n->ops->held != NULL ? n->ops->held(n) : 0;
		r->data_hops += n->data_hops;
		for (unsigned p = 0; p < n->n_ports; p++)
			for (int d = 0; d < DROP_REASON_COUNT; d++)
				r->drops[d] += n->ports[p].ctr->drops[d];
	}
	r->frames.inside += engine_frames_on_lanes(f->engine);
	r->pool_empty = r->drops[DROP_NO_MBUF];
}

static void check_conservation(struct results_store *st, const struct run_results *r)
{
	uint64_t out =
		r->frames.delivered + r->frames.consumed + r->frames.dropped + r->frames.inside;

	hold(st, INV_FRAMES, "frames_conserved");
	if (r->frames.created == out)
		return;
	snprintf(st->why[INV_FRAMES], WHY_MAX,
		"%llu frames created, but %llu delivered + %llu consumed + %llu dropped + %llu "
		"inside",
		(unsigned long long)r->frames.created, (unsigned long long)r->frames.delivered,
		(unsigned long long)r->frames.consumed, (unsigned long long)r->frames.dropped,
		(unsigned long long)r->frames.inside);
	broken(st, INV_FRAMES, st->why[INV_FRAMES]);
}

static void check_nodes(struct fabric *f, struct results_store *st, int which, bool drained)
{
	char why[WHY_MAX - NODE_NAME_MAX - 2];
	char line[WHY_MAX];

	for (uint32_t i = 0; i < f->s->n_nodes; i++) {
		const struct node *n = f->nodes[i];
		if (n->ops->check == NULL || n->ops->check(n, drained, why, sizeof(why)))
			continue;
		snprintf(line, sizeof(line), "%s: %s", n->name, why);
		broken(st, which, line);
	}
}

static void check_pool(struct results_store *st, struct rte_mempool *mp, const char *what)
{
	unsigned left = mp != NULL ? rte_mempool_in_use_count(mp) : 0;

	if (left == 0)
		return;
	char line[WHY_MAX];
	snprintf(line, sizeof(line), "%u of %u frames of the %s pool did not come back", left,
		mp->size, what);
	broken(st, INV_POOLS, line);
}

// Checks, empties the fabric, checks again.
static void check_invariants(struct fabric *f, struct results_store *st, struct run_results *r)
{
	check_conservation(st, r);
	hold(st, INV_NODES, "node_accounting");
	check_nodes(f, st, INV_NODES, false);

	engine_drain_lanes(f->engine);
	for (uint32_t i = 0; i < f->s->n_nodes; i++)
		if (f->nodes[i]->ops->drain != NULL)
			f->nodes[i]->ops->drain(f->nodes[i]);
	hold(st, INV_DRAINED, "buffers_empty_after_drain");
	check_nodes(f, st, INV_DRAINED, true);
	hold(st, INV_POOLS, "mempools_full");
	check_pool(st, f->pool.heads, "header");
	check_pool(st, f->pool.full, "full");
	r->invariants = st->invariants;
	r->n_invariants = INV_COUNT;
}

// ---- nodes -------------------------------------------------------------------------------------

static unsigned pgs_of_switch(const struct node *n, struct run_pg *out)
{
	unsigned count = 0;

	for (unsigned p = 0; p < n->n_ports; p++) {
		for (unsigned g = 0; g < PRIO_COUNT; g++) {
			struct ethernet_switch_pg_view v;
			ethernet_switch_pg(n, p, g, &v);
			if (v.peak_bytes == 0)
				continue;
			out[count++] = (struct run_pg){
				.port = (uint16_t)p,
				.pg = (uint8_t)g,
				.lossless = v.lossless,
				.bytes = v.bytes,
				.peak_bytes = v.peak_bytes,
				.xoff_bytes = v.min_slack_bytes > 0
						      ? v.peak_bytes + (uint64_t)v.min_slack_bytes
						      : v.peak_bytes - v.headroom_peak,
				.headroom_peak = v.headroom_peak,
				.headroom_bytes = v.headroom_size,
				.xoffs = v.xoffs,
			};
		}
	}
	return count;
}

static const char *attach_name(const struct sc_host *h)
{
	static const char *const kinds[] = {
		[SC_ATTACH_VHOST_USER] = "vhost-user",
		[SC_ATTACH_TAP] = "tap",
		[SC_ATTACH_NETDEV] = "netdev",
		[SC_ATTACH_NETNS] = "netns",
		[SC_ATTACH_DPDK] = "dpdk",
		[SC_ATTACH_GUEST] = "guest",
	};

	switch (h->kind) {
	case SC_HOST_NIC:
		return "nic";
	case SC_HOST_REPLAY:
		return "replay";
	case SC_HOST_ATTACH:
		return kinds[h->attach.kind];
	}
	return NULL;
}

static void add_device(const struct fabric *f, uint32_t node, unsigned port, struct run_port *out)
{
	const struct scenario *s = f->s;

	if (!sc_is_host(s, node))
		return;
	switch (sc_host_of(s, node)->kind) {
	case SC_HOST_ATTACH:
		out->device = DEVICE_EDGE;
		out->device_ctr = (const uint64_t *)edge_counters(f->nodes[node], port);
		break;
	case SC_HOST_NIC:
		if (port == 0) {
			out->device = DEVICE_NIC;
			out->device_ctr = (const uint64_t *)nic_counters(f->nodes[node]);
		}
		break;
	case SC_HOST_REPLAY:
		break;
	}
}

static int collect_nodes(struct fabric *f, struct results_store *st, struct run_results *r)
{
	const struct scenario *s = f->s;
	unsigned n_ports = 0;

	for (uint32_t i = 0; i < s->n_nodes; i++)
		n_ports += s->nodes[i].n_ports;
	st->nodes = calloc(s->n_nodes + 1, sizeof(*st->nodes));
	st->ports = calloc(n_ports + 1, sizeof(*st->ports));
	st->peers = calloc(n_ports + 1, sizeof(*st->peers));
	st->pgs = calloc((size_t)n_ports * PRIO_COUNT + 1, sizeof(*st->pgs));
	if (st->nodes == NULL || st->ports == NULL || st->peers == NULL || st->pgs == NULL)
		return -ENOMEM;

	unsigned port = 0;
	struct run_pg *pg = st->pgs;
	for (uint32_t i = 0; i < s->n_nodes; i++) {
		struct node *n = f->nodes[i];
		struct run_node *out = &st->nodes[i];
		bool host = sc_is_host(s, i);
		*out = (struct run_node){
			.name = s->nodes[i].name,
			.kind = host ? RUN_NODE_HOST : RUN_NODE_SWITCH,
			.attach = host ? attach_name(sc_host_of(s, i)) : NULL,
			.ports = &st->ports[port],
			.n_ports = n->n_ports,
			.log_lost = n->log.lost,
		};
		if (!host) {
			ethernet_switch_close_pauses(n, engine_now(f->engine));
			out->pgs = pg;
			out->n_pgs = pgs_of_switch(n, pg);
			pg += out->n_pgs;
		}
		for (uint16_t p = 0; p < n->n_ports; p++, port++) {
			struct sc_end peer = sc_peer(s, i, p);
			snprintf(st->peers[port], sizeof(*st->peers), "%s:%s",
				s->nodes[peer.node].name,
				s->nodes[peer.node].ports[peer.port].name);
			st->ports[port] = (struct run_port){
				.name = s->nodes[i].ports[p].name,
				.peer = st->peers[port],
				.rate_bps = n->ports[p].out->rate_bps,
				.ctr = n->ports[p].ctr,
			};
			add_device(f, i, p, &st->ports[port]);
		}
	}
	r->nodes = st->nodes;
	r->n_nodes = s->n_nodes;
	return 0;
}

// ---- flows -------------------------------------------------------------------------------------

static enum flow_state state_of(const struct nic_flow_result *x)
{
	if (!x->started)
		return FLOW_NOT_STARTED;
	if (x->status != WC_SUCCESS)
		return FLOW_FAILED;
	return x->done ? FLOW_COMPLETED : FLOW_ACTIVE;
}

// NULL: no error.
static const char *error_name(uint8_t status)
{
	return status == WC_SUCCESS ? NULL : wc_status_name((enum wc_status)status);
}

static int collect_flows(struct fabric *f, struct results_store *st, struct run_results *r)
{
	const struct scenario *s = f->s;

	st->flows = calloc(s->n_flows + 1, sizeof(*st->flows));
	if (st->flows == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n_flows; i++) {
		const struct sc_flow *w = &s->flows[i];
		const struct sc_endpoint *src = &s->endpoints[w->src];
		struct nic_flow_result x;
		if (nic_flow_result(f->nodes[src->node], i, &x) < 0)
			continue;
		st->flows[i] = (struct run_flow){
			.name = w->name,
			.src = s->nodes[src->node].name,
			.dst = s->nodes[s->endpoints[w->dst].node].name,
			.prio = w->priority,
			.state = state_of(&x),
			.open = w->open,
			.error = error_name(x.status),
			.qps = w->qps,
			.bytes = x.bytes,
			.bytes_done = x.delivered_bytes,
			.messages = w->messages * w->qps,
			.messages_done = x.completed_messages,
			.start = x.started ? x.start : SIMTIME_NEVER,
			.end = x.acked,
			.packets = x.sent_packets,
			.retransmitted = x.retransmitted_packets,
			.timeouts = x.timeouts,
			.naks = x.naks,
			.pauses = x.pauses,
			.paused = x.paused,
			.cc_rate_bps = x.cc_rate_bps,
			.cc_min_rate_bps = x.cc_min_rate_bps,
			.cnps = x.cnps,
		};
	}
	r->flows = st->flows;
	r->n_flows = s->n_flows;
	return 0;
}

// ---- events ------------------------------------------------------------------------------------

static int by_time(const void *a, const void *b)
{
	const struct event *x = a;
	const struct event *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

// Sorted by time and node; the logs are in order themselves and merge sort is stable.
static void merge_sort(struct event *ev, struct event *tmp, uint64_t n)
{
	if (n < 2)
		return;
	uint64_t half = n / 2;
	merge_sort(ev, tmp, half);
	merge_sort(ev + half, tmp, n - half);
	for (uint64_t i = 0, a = 0, b = half; i < n; i++)
		tmp[i] = b == n || (a < half && by_time(&ev[a], &ev[b]) <= 0) ? ev[a++] : ev[b++];
	memcpy(ev, tmp, n * sizeof(*ev));
}

static int collect_events(struct fabric *f, struct results_store *st, struct run_results *r)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < f->s->n_nodes; i++)
		n += f->nodes[i]->log.n;
	st->events = calloc(n + 1, sizeof(*st->events));
	struct event *tmp = calloc(n + 1, sizeof(*tmp));
	if (st->events == NULL || tmp == NULL) {
		free(tmp);
		return -ENOMEM;
	}
	n = 0;
	for (uint32_t i = 0; i < f->s->n_nodes; i++) {
		const struct event_log *l = &f->nodes[i]->log;
		memcpy(&st->events[n], l->ev, l->n * sizeof(struct event));
		n += l->n;
		r->events_log_lost += l->lost;
	}
	merge_sort(st->events, tmp, n);
	free(tmp);
	r->events_log = st->events;
	r->n_events_log = n;
	return 0;
}

// ---- the rest ----------------------------------------------------------------------------------

static void collect_host(struct fabric *f, struct results_store *st, struct run_results *r)
{
	struct rusage ru;
	FILE *cpuinfo = fopen("/proc/cpuinfo", "re");
	char line[256];

	while (cpuinfo != NULL && fgets(line, sizeof(line), cpuinfo) != NULL)
		if (sscanf(line, "model name : %127[^\n]", st->cpu) == 1)
			break;
	if (cpuinfo != NULL)
		fclose(cpuinfo);
	uname(&st->uts);
	getrusage(RUSAGE_SELF, &ru);
	r->host = (struct run_host){
		.cpu = st->cpu,
		.kernel = st->uts.release,
		.dpdk = rte_version(),
		.lcores = f->lcores,
		.hugepages = f->hugepages,
		.peak_rss_bytes = (uint64_t)ru.ru_maxrss * 1024,
	};
}

static void collect_lag(struct fabric *f, struct results_store *st, struct run_results *r)
{
	for (unsigned i = 0; i < f->lcores && i < ENGINE_LCORES_MAX; i++) {
		const struct lag *l = engine_lag(f->engine, i);
		if (l == NULL)
			return;
		st->lag[r->n_lag++] = (struct run_lag){
			.lcore = i,
			.p50 = lag_quantile(l, 0.5),
			.p99 = lag_quantile(l, 0.99),
			.max = l->max,
			.samples = l->n,
		};
	}
	r->lag = st->lag;
}

static void fill_header(struct fabric *f, struct run_results *r)
{
	const struct scenario *s = f->s;

	r->version = FABEMU_VERSION;
	r->scenario = s->name;
	r->file = s->path;
	r->description = s->description[0] ? s->description : NULL;
	r->seed = s->seed;
	r->wall_clock = s->clock == SC_CLOCK_WALL;
	r->time_scale = r->wall_clock ? s->time_scale_milli / 1000.0 : 1;
	r->digest = engine_digest(f->engine);
	r->emulated = engine_now(f->engine);
	r->duration = s->duration ? s->duration : SIMTIME_NEVER;
	r->wall_seconds = f->wall_seconds;
	r->setup_seconds = f->setup_seconds;
	r->events = engine_progress(f->engine).events;
	r->lag_bound = s->lag_bound ? s->lag_bound : SIMTIME_NEVER;
	r->failure = f->failure;
	r->deadlock = f->detecting ? &f->deadlock : NULL;
}

int fabric_collect(struct fabric *f, struct run_results *r)
{
	struct results_store *st = calloc(1, sizeof(*st));

	*r = (struct run_results){0};
	if (st == NULL)
		return -ENOMEM;
	f->store = st;
	captures_close(f);
	fill_header(f, r);
	if (collect_nodes(f, st, r) < 0 || collect_flows(f, st, r) < 0 ||
		collect_events(f, st, r) < 0 || collect_captures(f, &st->captures, r) < 0 ||
		collect_queues(f, &st->queues, r) < 0 ||
		collect_watchdogs(f, &st->watchdogs, r) < 0 ||
		collect_guests(f, &st->guests, r) < 0 || collect_faults(f, &st->faults, r) < 0 ||
		collect_apps(f, &st->apps, r) < 0)
		return -ENOMEM;
	attach_close_all(f);
	count_frames(f, r);
	check_invariants(f, st, r);
	collect_lag(f, st, r);
	collect_host(f, st, r);
	return 0;
}

void results_free(struct fabric *f)
{
	struct results_store *st = f->store;

	if (st == NULL)
		return;
	free(st->nodes);
	free(st->ports);
	free(st->peers);
	free(st->pgs);
	free(st->flows);
	free(st->events);
	free(st->guests);
	free(st->queues);
	free(st->watchdogs);
	free(f->queue_stats);
	free(st->faults);
	free(st->apps);
	free(st->captures);
	free(st);
}
