/* SPDX-License-Identifier: BSD-3-Clause */

// Judges expectations. Every value a path names (one, or several when parts are patterns) is
// offered to a `judge`, which keeps the first that fails, or the last that holds.

#include "emu/report/expect.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "emu/report/counters.h"
#include "emu/report/expect_path.h"
#include "emu/report/format.h"
#include "emu/report/vendor.h"

struct judge {
	const struct sc_expect *e;
	enum expect_unit unit;
	struct run_expectation *out;
	unsigned n_values;
};

// A value as a person reads it; infinity stands for a time that never came.
static void format_value(char *buf, size_t len, const char *op, enum expect_unit unit, double v)
{
	char text[FORMAT_MAX];

	if (isinf(v))
		snprintf(text, sizeof(text), "never");
	else if (unit == EXPECT_YES_NO)
		snprintf(text, sizeof(text), "%s", v != 0 ? "yes" : "no");
	else if (unit == EXPECT_TIME)
		format_time((simtime_t)v, text);
	else if (unit == EXPECT_RATE)
		format_rate(v, text);
	else if (unit == EXPECT_BYTES)
		format_bytes(v, text);
	else
		snprintf(text, sizeof(text), "%.15g", v);
	snprintf(buf, len, "%s%s%s", op, op[0] != '\0' ? " " : "", text);
}

static void offer(struct judge *j, const char *what, double got)
{
	bool ok = expect_holds(got, j->e->op, j->e->value);

	if (j->n_values++ > 0 && !j->out->ok)
		return;
	j->out->ok = ok;
	snprintf(j->out->what, sizeof(j->out->what), "%s", what);
	format_value(j->out->got, sizeof(j->out->got), "", j->unit, got);
}

static double flow_value(
	const struct run_results *r, const struct run_flow *f, enum expect_path path)
{
	simtime_t fct = run_flow_fct(f);

	switch (path) {
	case EXPECT_PATH_FLOW_GOODPUT:
		return run_flow_goodput_bps(r, f);
	case EXPECT_PATH_FLOW_FCT:
		return fct == SIMTIME_NEVER ? (double)INFINITY : (double)fct;
	case EXPECT_PATH_FLOW_RETRANSMISSIONS:
		return (double)f->retransmitted;
	case EXPECT_PATH_FLOW_BYTES:
		return (double)f->bytes_done;
	case EXPECT_PATH_FLOW_COMPLETE:
		return f->state == FLOW_COMPLETED;
	case EXPECT_PATH_FLOW_PAUSES:
		return (double)f->pauses;
	default: // EXPECT_PATH_FLOW_PAUSED
		return (double)f->paused;
	}
}

static void judge_flows(struct judge *j, const struct run_results *r, enum expect_path path)
{
	char what[128];

	for (unsigned i = 0; i < r->n_flows; i++) {
		if (!expect_matches(j->e->part[1], r->flows[i].name))
			continue;
		snprintf(what, sizeof(what), "flow.%s.%s", r->flows[i].name, j->e->part[2]);
		offer(j, what, flow_value(r, &r->flows[i], path));
	}
}

static void judge_drops(struct judge *j, const struct run_results *r)
{
	char what[128];
	uint64_t total = 0;

	for (int i = 0; i < DROP_REASON_COUNT; i++) {
		const char *name = drop_reason_name((enum drop_reason)i);
		total += r->drops[i];
		if (!expect_matches(j->e->part[1], name))
			continue;
		snprintf(what, sizeof(what), "drops.%s", name);
		offer(j, what, (double)r->drops[i]);
	}
	if (expect_matches(j->e->part[1], "total"))
		offer(j, "drops.total", (double)total);
}

// A vendor's name for what we call otherwise, or have as a part of something; never by wildcard,
// which would meet the same figure under several names.
static void judge_vendor(
	struct judge *j, const struct run_node *node, const struct run_port *port, char what[128])
{
	char name[COUNTER_NAME_MAX];

	for (unsigned set = 0; set < VENDOR_SET_COUNT; set++) {
		if (!vendor_has((enum vendor_set)set, node, port))
			continue;
		for (unsigned i = 0; i < vendor_count((enum vendor_set)set); i++) {
			uint64_t value;
			if (strcmp(j->e->part[3], vendor_name((enum vendor_set)set, i, name)) !=
					0 ||
				!vendor_value((enum vendor_set)set, port, i, &value))
				continue;
			snprintf(what, 128, "counter.%s.%s.%s", node->name, port->name, name);
			j->unit = EXPECT_COUNT;
			offer(j, what, (double)value);
			return;
		}
	}
}

static void judge_port(struct judge *j, const struct run_node *n, const struct run_port *port)
{
	char what[128], name[COUNTER_NAME_MAX];
	const char *node = n->name;
	bool found = false;

	for (unsigned i = 0; i < port_counter_count(); i++) {
		if (!expect_matches(j->e->part[3], port_counter_name(i, name)))
			continue;
		found = true;
		snprintf(what, sizeof(what), "counter.%s.%s.%s", node, port->name, name);
		j->unit = port_counter_is_time(i) ? EXPECT_TIME : EXPECT_COUNT;
		offer(j, what, (double)port_counter_value(port->ctr, i));
	}
	for (unsigned i = 0; i < device_counter_count(port->device); i++) {
		const char *counter = device_counter_name(port->device, i);

		if (!expect_matches(j->e->part[3], counter))
			continue;
		found = true;
		snprintf(what, sizeof(what), "counter.%s.%s.%s", node, port->name, counter);
		j->unit = EXPECT_COUNT;
		offer(j, what, (double)port->device_ctr[i]);
	}
	if (!found)
		judge_vendor(j, n, port, what);
}

static void judge_counters(struct judge *j, const struct run_results *r)
{
	for (unsigned n = 0; n < r->n_nodes; n++) {
		const struct run_node *node = &r->nodes[n];
		if (!expect_matches(j->e->part[1], node->name))
			continue;
		for (unsigned p = 0; p < node->n_ports; p++) {
			if (expect_matches(j->e->part[2], node->ports[p].name))
				judge_port(j, node, &node->ports[p]);
		}
	}
}

// One that was never seen with a frame is 0 bytes long.
static void judge_queue(struct judge *j, const struct run_results *r, uint32_t node, uint16_t port,
	unsigned queue, enum expect_path path)
{
	char what[128];
	uint64_t bytes = 0;

	for (unsigned i = 0; i < r->n_queues; i++) {
		const struct run_queue *q = &r->queues[i];
		if (q->node == node && q->port == port && q->queue == queue)
			bytes = path == EXPECT_PATH_QUEUE_MEAN ? q->mean_bytes : q->max_bytes;
	}
	snprintf(what, sizeof(what), "queue.%s.%s.%u.%s", r->nodes[node].name,
		r->nodes[node].ports[port].name, queue, j->e->part[4]);
	offer(j, what, (double)bytes);
}

static void judge_queues(struct judge *j, const struct run_results *r, enum expect_path path)
{
	for (uint32_t n = 0; n < r->n_nodes; n++) {
		const struct run_node *node = &r->nodes[n];
		if (node->kind != RUN_NODE_SWITCH || !expect_matches(j->e->part[1], node->name))
			continue;
		for (uint16_t i = 0; i < node->n_ports * PRIO_COUNT; i++) {
			char number[] = {(char)('0' + i % PRIO_COUNT), 0};
			uint16_t port = i / PRIO_COUNT;
			if (expect_matches(j->e->part[2], node->ports[port].name) &&
				expect_matches(j->e->part[3], number))
				judge_queue(j, r, n, port, i % PRIO_COUNT, path);
		}
	}
}

static double watchdog_value(const struct ethernet_switch_wd_view *v, enum expect_path path)
{
	switch (path) {
	case EXPECT_PATH_WD_DETECTED:
		return (double)v->deadlock_detected;
	case EXPECT_PATH_WD_RESTORED:
		return (double)v->deadlock_restored;
	case EXPECT_PATH_WD_TX_DROPPED:
		return (double)v->all.tx_dropped_packets;
	case EXPECT_PATH_WD_RX_DROPPED:
		return (double)v->all.rx_dropped_packets;
	default:
		return v->stormed;
	}
}

static void judge_watchdogs(struct judge *j, const struct run_results *r, enum expect_path path)
{
	char what[128];

	for (unsigned i = 0; i < r->n_watchdogs; i++) {
		const struct run_watchdog *w = &r->watchdogs[i];
		const struct run_node *node = &r->nodes[w->node];
		char number[] = {(char)('0' + w->v.queue), 0};
		if (!expect_matches(j->e->part[1], node->name) ||
			!expect_matches(j->e->part[2], node->ports[w->port].name) ||
			!expect_matches(j->e->part[3], number))
			continue;
		snprintf(what, sizeof(what), "pfc_wd.%s.%s.%s.%s", node->name,
			node->ports[w->port].name, number, j->e->part[4]);
		offer(j, what, watchdog_value(&w->v, path));
	}
}

// As a shell would say it: 128 + signal, and 255 for a command that never ended.
static void judge_hosts(struct judge *j, const struct run_results *r)
{
	char what[128];

	for (unsigned i = 0; i < r->n_guests; i++) {
		const struct run_guest *g = &r->guests[i];
		int status = g->signal != 0       ? 128 + g->signal
			     : g->exit_status < 0 ? 255
						  : g->exit_status;
		if (!expect_matches(j->e->part[1], g->name))
			continue;
		snprintf(what, sizeof(what), "host.%s.exit (%s)", g->name, g->command);
		offer(j, what, status);
	}
}

static void judge_faults(struct judge *j, const struct run_results *r, enum expect_path path)
{
	char what[128];

	for (unsigned i = 0; i < r->n_faults; i++) {
		const struct run_fault *f = &r->faults[i];
		if (!expect_matches(j->e->part[1], f->name))
			continue;
		snprintf(what, sizeof(what), "fault.%s.%s", f->name, j->e->part[2]);
		offer(j, what,
			(double)(path == EXPECT_PATH_FAULT_APPLIED ? f->applied : f->matched));
	}
}

static double app_value(const struct run_app *a, enum expect_path path)
{
	switch (path) {
	case EXPECT_PATH_APP_DONE:
		return a->done;
	case EXPECT_PATH_APP_FAILED:
		return a->failed;
	case EXPECT_PATH_APP_MESSAGES:
		return (double)a->messages;
	case EXPECT_PATH_APP_BYTES:
		return (double)a->bytes;
	case EXPECT_PATH_APP_MISMATCHES:
		return (double)a->mismatches;
	default:
		return (double)a->retransmitted;
	}
}

static void judge_apps(struct judge *j, const struct run_results *r, enum expect_path path)
{
	char what[128];

	for (unsigned i = 0; i < r->n_apps; i++) {
		const struct run_app *a = &r->apps[i];
		if (!expect_matches(j->e->part[1], a->name))
			continue;
		snprintf(what, sizeof(what), "app.%s.%s", a->name, j->e->part[2]);
		offer(j, what, app_value(a, path));
	}
}

static void judge_all_flows(struct judge *j, const struct run_results *r, enum expect_path path)
{
	unsigned failed = 0, incomplete = 0;
	simtime_t last = 0;

	for (unsigned i = 0; i < r->n_flows; i++) {
		const struct run_flow *f = &r->flows[i];
		failed += f->state == FLOW_FAILED;
		if (f->open)
			continue;
		incomplete += f->state != FLOW_COMPLETED;
		if (f->end != SIMTIME_NEVER)
			last = simtime_max(last, f->end);
	}
	if (path == EXPECT_PATH_FLOWS_FAILED)
		offer(j, j->e->path, failed);
	else if (path == EXPECT_PATH_FLOWS_COMPLETE)
		offer(j, j->e->path, incomplete == 0);
	else
		offer(j, j->e->path, incomplete == 0 ? (double)last : (double)INFINITY);
}

static void judge_lag(struct judge *j, const struct run_results *r, enum expect_path path)
{
	simtime_t worst = 0;

	for (unsigned i = 0; i < r->n_lag; i++) {
		const struct run_lag *l = &r->lag[i];
		simtime_t v = path == EXPECT_PATH_LAG_P50   ? l->p50
			      : path == EXPECT_PATH_LAG_P99 ? l->p99
							    : l->max;
		worst = simtime_max(worst, v);
	}
	if (r->n_lag > 0)
		offer(j, j->e->path, (double)worst);
}

static void judge_values(struct judge *j, const struct run_results *r)
{
	enum expect_path path = expect_path_of(j->e);

	switch (path) {
	case EXPECT_PATH_DEADLOCK:
		if (r->deadlock != NULL)
			offer(j, j->e->path, deadlock_found(r->deadlock));
		break;
	case EXPECT_PATH_DROPS:
		judge_drops(j, r);
		break;
	case EXPECT_PATH_FLOWS_COMPLETE:
	case EXPECT_PATH_FLOWS_FAILED:
	case EXPECT_PATH_MAKESPAN:
		judge_all_flows(j, r, path);
		break;
	case EXPECT_PATH_COUNTER:
		judge_counters(j, r);
		break;
	case EXPECT_PATH_APP_DONE:
	case EXPECT_PATH_APP_FAILED:
	case EXPECT_PATH_APP_MESSAGES:
	case EXPECT_PATH_APP_BYTES:
	case EXPECT_PATH_APP_MISMATCHES:
	case EXPECT_PATH_APP_RETRANSMISSIONS:
		judge_apps(j, r, path);
		break;
	case EXPECT_PATH_FAULT_APPLIED:
	case EXPECT_PATH_FAULT_MATCHED:
		judge_faults(j, r, path);
		break;
	case EXPECT_PATH_QUEUE_MEAN:
	case EXPECT_PATH_QUEUE_MAX:
		judge_queues(j, r, path);
		break;
	case EXPECT_PATH_WD_DETECTED:
	case EXPECT_PATH_WD_RESTORED:
	case EXPECT_PATH_WD_TX_DROPPED:
	case EXPECT_PATH_WD_RX_DROPPED:
	case EXPECT_PATH_WD_STORMED:
		judge_watchdogs(j, r, path);
		break;
	case EXPECT_PATH_HOST_EXIT:
		judge_hosts(j, r);
		break;
	case EXPECT_PATH_LAG_P50:
	case EXPECT_PATH_LAG_P99:
	case EXPECT_PATH_LAG_MAX:
		judge_lag(j, r, path);
		break;
	case EXPECT_PATH_POOL_EMPTY:
		offer(j, j->e->path, (double)r->pool_empty);
		break;
	case EXPECT_PATH_DURATION:
		offer(j, j->e->path, (double)r->emulated);
		break;
	default:
		judge_flows(j, r, path);
	}
}

int expect_judge(const struct scenario *s, struct run_results *r)
{
	struct run_expectation *all = calloc(s->n_expects + 1, sizeof(*all));

	if (all == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n_expects; i++) {
		const struct sc_expect *e = &s->expects[i];
		struct judge j = {
			.e = e, .unit = expect_unit_of(expect_path_of(e)), .out = &all[i]};

		all[i].line = (int)e->pos.line;
		judge_values(&j, r);
		if (j.n_values == 0) { // a value that nobody measured is no success
			snprintf(all[i].what, sizeof(all[i].what), "%s", e->path);
			snprintf(all[i].got, sizeof(all[i].got), "nothing of that name");
		}
		format_value(all[i].expected, sizeof(all[i].expected), expect_op_text(e->op),
			j.unit, e->value);
	}
	r->expectations = all;
	r->n_expectations = s->n_expects;
	return 0;
}

void expect_free(struct run_results *r)
{
	free((void *)(uintptr_t)r->expectations);
	r->expectations = NULL;
	r->n_expectations = 0;
}
