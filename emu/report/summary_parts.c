/* SPDX-License-Identifier: BSD-3-Clause */

#include "emu/report/summary_parts.h"

#include "emu/report/counters.h"
#include "emu/report/vendor.h"

#define PLACE_MAX 80

json_t *summary_time(simtime_t t)
{
	return t == SIMTIME_NEVER ? json_null() : json_integer((json_int_t)t);
}

json_t *summary_text(const char *s)
{
	char ascii[512];
	size_t n = 0;

	if (s == NULL)
		return json_null();
	json_t *j = json_string(s);
	if (j != NULL)
		return j;
	for (; n < sizeof(ascii) - 1 && s[n] != '\0'; n++)
		ascii[n] = (unsigned char)s[n] < 0x80 ? s[n] : '?';
	ascii[n] = '\0';
	return json_string(ascii);
}

static json_t *place_json(const struct run_results *r, uint32_t node, unsigned port)
{
	char place[PLACE_MAX];

	return json_string(run_place(r, node, port, place, sizeof(place)));
}

// ---- deadlocks ----------------------------------------------------------------------------------

static json_t *member_json(const struct run_results *r, const struct dl_member *m)
{
	return json_pack("{s:o, s:i, s:I, s:o, s:o, s:I, s:o}", "port",
		place_json(r, m->pg.node, m->pg.port), "priority", m->pg.prio, "bytes",
		(json_int_t)m->bytes, "xoff_since_ps", summary_time(m->xoff_since), "waits_at",
		place_json(r, m->pg.node, m->egress_port), "waiting_bytes",
		(json_int_t)m->waiting_bytes, "paused_since_ps", summary_time(m->paused_since));
}

static json_t *cycle_json(const struct run_results *r, const struct deadlock_report *d)
{
	json_t *members = json_array();
	const struct dl_member *trigger = &d->members[d->trigger];

	for (uint32_t i = 0; i < d->n_listed; i++)
		json_array_append_new(members, member_json(r, &d->members[i]));
	return json_pack("{s:i, s:o, s:o, s:o, s:I, s:I, s:I, s:o, s:o}", "priority",
		trigger->pg.prio, "formed_at_ps", summary_time(d->formed_at), "detected_at_ps",
		summary_time(d->detected_at), "ended_at_ps", summary_time(d->ended_at), "length",
		(json_int_t)d->n_members, "stuck", (json_int_t)d->n_stuck, "behind",
		(json_int_t)d->n_behind, "trigger",
		json_pack("{s:o, s:o}", "port", place_json(r, trigger->pg.node, trigger->pg.port),
			"xoff_since_ps", summary_time(trigger->xoff_since)),
		"members", members);
}

static json_t *storm_json(const struct run_results *r, const struct pause_storm *s)
{
	return json_pack("{s:o, s:i, s:o, s:o, s:o, s:I, s:I}", "source",
		place_json(r, s->root.node, s->root.port), "priority", s->root.prio, "since_ps",
		summary_time(s->since), "detected_at_ps", summary_time(s->detected_at),
		"ended_at_ps", summary_time(s->ended_at), "waiting", (json_int_t)s->n_waiting,
		"depth", (json_int_t)s->depth);
}

json_t *summary_deadlock(const struct run_results *r)
{
	const struct deadlock *d = r->deadlock;
	json_t *cycles = json_array(), *storms = json_array();

	for (uint32_t i = 0; d != NULL && i < d->n_reports; i++)
		json_array_append_new(cycles, cycle_json(r, &d->reports[i]));
	for (uint32_t i = 0; d != NULL && i < d->n_storms; i++)
		json_array_append_new(storms, storm_json(r, &d->storms[i]));
	return json_pack("{s:b, s:b, s:I, s:I, s:I, s:o, s:o}", "watched", d != NULL, "found",
		d != NULL && deadlock_found(d), "checks", (json_int_t)(d ? d->checks : 0), "lost",
		(json_int_t)(d ? d->lost : 0), "lost_reports",
		(json_int_t)(d ? d->lost_reports : 0), "cycles", cycles, "pause_storms", storms);
}

// ---- flows --------------------------------------------------------------------------------------

static json_t *flow_json(const struct run_results *r, const struct run_flow *f)
{
	return json_pack("{s:s, s:s, s:s, s:i, s:s, s:o, s:b, s:i, "
			 "s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:f, "
			 "s:I, s:I, s:I, s:I, s:I, s:o, s:I, s:I, s:I}",
		"name", f->name, "src", f->src, "dst", f->dst, "priority", f->prio, "state",
		flow_state_name(f->state), "error", summary_text(f->error), "open", f->open, "qps",
		(int)f->qps, "bytes", (json_int_t)f->bytes, "bytes_done", (json_int_t)f->bytes_done,
		"messages", (json_int_t)f->messages, "messages_done", (json_int_t)f->messages_done,
		"start_ps", summary_time(f->start), "end_ps", summary_time(f->end), "fct_ps",
		summary_time(run_flow_fct(f)), "goodput_bps", run_flow_goodput_bps(r, f), "packets",
		(json_int_t)f->packets, "retransmissions", (json_int_t)f->retransmitted, "timeouts",
		(json_int_t)f->timeouts, "naks", (json_int_t)f->naks, "pauses",
		(json_int_t)f->pauses, "paused_ps", summary_time(f->paused), "cc_rate_bps",
		(json_int_t)f->cc_rate_bps, "cc_min_rate_bps", (json_int_t)f->cc_min_rate_bps,
		"cnps", (json_int_t)f->cnps);
}

json_t *summary_flows(const struct run_results *r)
{
	json_t *a = json_array();

	for (unsigned i = 0; i < r->n_flows; i++)
		json_array_append_new(a, flow_json(r, &r->flows[i]));
	return a;
}

// ---- ports, priority groups, events
// ---------------------------------------------------------------

// Only counters that are not zero: a large fabric has thousands that are.
static json_t *counters_json(const struct run_port *port)
{
	const struct port_counters *c = port->ctr;
	json_t *o = json_object();
	char name[COUNTER_NAME_MAX];

	for (unsigned i = 0; c != NULL && i < port_counter_count(); i++) {
		uint64_t v = port_counter_value(c, i);
		if (v != 0)
			json_object_set_new(
				o, port_counter_name(i, name), json_integer((json_int_t)v));
	}
	for (unsigned i = 0; i < device_counter_count(port->device); i++) {
		if (port->device_ctr[i] != 0)
			json_object_set_new(o, device_counter_name(port->device, i),
				json_integer((json_int_t)port->device_ctr[i]));
	}
	return o;
}

// All of a set, zeros included, as the vendor's tools show them.
static json_t *vendor_json(enum vendor_set set, const struct run_port *port)
{
	json_t *o = json_object();
	char name[COUNTER_NAME_MAX];

	for (unsigned i = 0; i < vendor_count(set); i++) {
		uint64_t value;
		if (vendor_value(set, port, i, &value))
			json_object_set_new(
				o, vendor_name(set, i, name), json_integer((json_int_t)value));
	}
	return o;
}

static json_t *port_json(const struct run_node *node, const struct run_port *port)
{
	json_t *o = json_pack("{s:s, s:s, s:s, s:s?, s:I, s:o}", "node", node->name, "kind",
		node->kind == RUN_NODE_SWITCH ? "switch" : "host", "port", port->name, "peer",
		port->peer, "rate_bps", (json_int_t)port->rate_bps, "counters",
		counters_json(port));

	if (vendor_has(VENDOR_HW_COUNTERS, node, port))
		json_object_set_new(o, "hw_counters", vendor_json(VENDOR_HW_COUNTERS, port));
	if (vendor_has(VENDOR_RXE, node, port))
		json_object_set_new(o, "rxe_counters", vendor_json(VENDOR_RXE, port));
	if (vendor_has(VENDOR_ETHTOOL, node, port))
		json_object_set_new(o, "ethtool", vendor_json(VENDOR_ETHTOOL, port));
	return o;
}

json_t *summary_ports(const struct run_results *r)
{
	json_t *a = json_array();

	for (unsigned n = 0; n < r->n_nodes; n++) {
		const struct run_node *node = &r->nodes[n];
		for (unsigned p = 0; p < node->n_ports; p++)
			json_array_append_new(a, port_json(node, &node->ports[p]));
	}
	return a;
}

json_t *summary_pgs(const struct run_results *r)
{
	json_t *a = json_array();

	for (unsigned n = 0; n < r->n_nodes; n++) {
		const struct run_node *node = &r->nodes[n];
		for (unsigned i = 0; i < node->n_pgs; i++) {
			const struct run_pg *g = &node->pgs[i];
			json_array_append_new(
				a, json_pack("{s:o, s:i, s:b, s:I, s:I, s:I, s:I, s:I, s:I}",
					   "port", place_json(r, n, g->port), "pg", g->pg,
					   "lossless", g->lossless, "bytes", (json_int_t)g->bytes,
					   "peak_bytes", (json_int_t)g->peak_bytes, "xoff_bytes",
					   (json_int_t)g->xoff_bytes, "headroom_peak_bytes",
					   (json_int_t)g->headroom_peak, "headroom_bytes",
					   (json_int_t)g->headroom_bytes, "xoffs",
					   (json_int_t)g->xoffs));
		}
	}
	return a;
}

json_t *summary_queues(const struct run_results *r)
{
	json_t *a = json_array();

	for (unsigned i = 0; i < r->n_queues; i++) {
		const struct run_queue *q = &r->queues[i];
		json_array_append_new(a,
			json_pack("{s:o, s:i, s:I, s:I}", "port", place_json(r, q->node, q->port),
				"queue", q->queue, "mean_bytes", (json_int_t)q->mean_bytes,
				"max_bytes", (json_int_t)q->max_bytes));
	}
	return a;
}

static json_t *watchdog_json(const struct run_results *r, const struct run_watchdog *w)
{
	const struct ethernet_switch_wd_view *v = &w->v;
	json_t *o = json_pack("{s:o, s:i, s:i, s:s, s:s}", "port", place_json(r, w->node, w->port),
		"queue", v->queue, "priority", v->prio, "action", pfc_wd_action_name(v->action),
		"status", v->stormed ? "stormed" : "operational");
	const struct {
		const char *name;
		uint64_t value;
	} counters[] = {
		{"deadlock_detected", v->deadlock_detected},
		{"deadlock_restored", v->deadlock_restored},
		{"tx_packets", v->all.tx_packets},
		{"tx_dropped_packets", v->all.tx_dropped_packets},
		{"rx_packets", v->all.rx_packets},
		{"rx_dropped_packets", v->all.rx_dropped_packets},
		{"tx_packets_last", v->last.tx_packets},
		{"tx_dropped_packets_last", v->last.tx_dropped_packets},
		{"rx_packets_last", v->last.rx_packets},
		{"rx_dropped_packets_last", v->last.rx_dropped_packets},
	};

	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		json_object_set_new(
			o, counters[i].name, json_integer((json_int_t)counters[i].value));
	return o;
}

json_t *summary_watchdogs(const struct run_results *r)
{
	json_t *a = json_array();

	for (unsigned i = 0; i < r->n_watchdogs; i++)
		json_array_append_new(a, watchdog_json(r, &r->watchdogs[i]));
	return a;
}

json_t *summary_events(const struct run_results *r)
{
	json_t *list = json_array();

	for (uint64_t i = 0; i < r->n_events_log && i < SUMMARY_EVENTS_MAX; i++) {
		const struct event *e = &r->events_log[i];
		json_array_append_new(list,
			json_pack("{s:o, s:s, s:o, s:I, s:I}", "at_ps", summary_time(e->at), "kind",
				event_kind_name(e->kind), "port", place_json(r, e->node, e->port),
				"a", (json_int_t)e->a, "b", (json_int_t)e->b));
	}
	return json_pack("{s:I, s:I, s:o}", "total", (json_int_t)r->n_events_log, "lost",
		(json_int_t)r->events_log_lost, "first", list);
}
