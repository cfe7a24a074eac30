/* SPDX-License-Identifier: BSD-3-Clause */

// The timeline. An entry that names several links, flows or routes becomes one event for each.

#include <string.h>

#include "emu/scenario/loader.h"

static bool push_event(struct loader *l, const struct ynode *at, const struct sc_event *e)
{
	struct scenario *s = l->s;

	if (s->n_events == EVENTS_MAX) {
		diag_at(&l->d, at, "more than %u events", EVENTS_MAX);
		return false;
	}
	s->events = arena_grow(l->a, s->events, s->n_events, sizeof(*s->events));
	s->events[s->n_events++] = *e;
	return true;
}

static bool push_lanes(
	struct loader *l, const struct ynode *v, enum sc_direction dir, struct sc_event *e)
{
	struct link_ref *refs;
	uint32_t n;

	if (!ref_links_from(l, v, &refs, &n))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		e->link = refs[i].link;
		e->ends = ref_ends(&refs[i], dir);
		if (!push_event(l, v, e))
			return false;
	}
	return true;
}

static bool push_links(struct loader *l, const struct ynode *v, struct sc_event *e)
{
	return push_lanes(l, v, SC_DIR_BOTH, e);
}

// A link, or {link, direction}.
static bool push_link_or_lanes(struct loader *l, struct ynode *v, struct sc_event *e)
{
	struct lanes_in in = {.link = v};

	if (v->kind == Y_MAP) {
		schema_defaults(&sec_lanes, &in);
		if (!schema_apply(l, &sec_lanes, v, &in) || !schema_require(l, &sec_lanes, v))
			return false;
	}
	return push_lanes(l, in.link, in.dir, e);
}

static bool load_link_down(struct loader *l, struct ynode *v, struct sc_event *e)
{
	e->kind = SC_EVENT_LINK_DOWN;
	return push_link_or_lanes(l, v, e);
}

static bool load_link_up(struct loader *l, struct ynode *v, struct sc_event *e)
{
	e->kind = SC_EVENT_LINK_UP;
	return push_link_or_lanes(l, v, e);
}

static bool load_flap(struct loader *l, struct ynode *v, struct sc_event *e)
{
	struct flap_in in = {0};
	simtime_t start = e->at;

	schema_defaults(&sec_flap, &in);
	if (!schema_apply(l, &sec_flap, v, &in) || !schema_require(l, &sec_flap, v))
		return false;
	simtime_t up = (simtime_t)((unsigned __int128)in.period * in.duty_q32 >> 32);
	for (uint32_t i = 0; i < in.count; i++) {
		e->kind = SC_EVENT_LINK_DOWN;
		e->at = start + i * in.period;
		if (!push_links(l, in.link, e))
			return false;
		e->kind = SC_EVENT_LINK_UP;
		e->at += in.period - up;
		if (!push_links(l, in.link, e))
			return false;
	}
	return true;
}

static bool load_set_rate(struct loader *l, struct ynode *v, struct sc_event *e)
{
	struct rate_in in = {0};

	schema_defaults(&sec_rate, &in);
	if (!schema_apply(l, &sec_rate, v, &in) || !schema_require(l, &sec_rate, v))
		return false;
	e->kind = SC_EVENT_SET_RATE;
	e->rate_bps = in.rate_bps;
	return push_lanes(l, in.at.link, in.at.dir, e);
}

static bool load_set_ber(struct loader *l, struct ynode *v, struct sc_event *e)
{
	struct ber_in in = {0};

	schema_defaults(&sec_ber, &in);
	if (!schema_apply(l, &sec_ber, v, &in) || !schema_require(l, &sec_ber, v))
		return false;
	e->kind = SC_EVENT_SET_BER;
	e->ber_q62 = in.ber_q62;
	e->fec = in.fec;
	return push_lanes(l, in.at.link, in.at.dir, e);
}

static bool load_reboot(struct loader *l, struct ynode *v, struct sc_event *e)
{
	struct reboot_in in = {0};

	if (!schema_apply(l, &sec_reboot, v, &in) || !schema_require(l, &sec_reboot, v))
		return false;
	e->node = ref_switch(l, in.sw);
	if (e->node == SC_NONE)
		return false;
	e->kind = SC_EVENT_REBOOT;
	if (!push_event(l, v, e))
		return false;
	e->kind = SC_EVENT_REBOOT_DONE;
	e->at += in.duration;
	return push_event(l, v, e);
}

static bool load_fault_event(struct loader *l, struct ynode *v, struct sc_event *e)
{
	return load_fault(l, v, e->at);
}

static bool load_set_corrupt(struct loader *l, struct ynode *v, struct sc_event *e)
{
	struct corrupt_in in = {0};

	if (!schema_apply(l, &sec_corrupt, v, &in) || !schema_require(l, &sec_corrupt, v))
		return false;
	e->kind = SC_EVENT_SET_CORRUPT;
	e->corrupt_q32 = in.probability;
	return push_links(l, in.link, e);
}

static bool load_route_event(struct loader *l, struct ynode *v, struct sc_event *e)
{
	struct sc_route *routes = NULL;
	uint32_t n = 0;

	if (!read_route(l, v, false, &routes, &n))
		return false;
	e->kind = SC_EVENT_ROUTE;
	e->route = routes[0];
	return push_event(l, v, e);
}

bool read_storm_prio(struct loader *l, struct ynode *v, void *object)
{
	return read_prio_mask(l, v, &((struct storm_in *)object)->prio_mask);
}

static bool ref_nic(struct loader *l, const struct ynode *v, struct sc_event *e)
{
	struct sc_end end;

	if (!ref_port(l, v, &end))
		return false;
	e->node = end.node;
	e->port = end.port;
	if (sc_is_host(l->s, end.node) && sc_host_of(l->s, end.node)->kind == SC_HOST_NIC)
		return true;
	diag_at(&l->d, v, "'%.60s' is not a built-in NIC, expected a host without attach or replay",
		v->text);
	return false;
}

static bool load_slow_receiver(struct loader *l, struct ynode *v, struct sc_event *e)
{
	struct slow_in in = {0};

	schema_defaults(&sec_slow, &in);
	if (!schema_apply(l, &sec_slow, v, &in) || !schema_require(l, &sec_slow, v) ||
		!ref_nic(l, in.host, e))
		return false;
	e->kind = SC_EVENT_SLOW_RECEIVER;
	e->rate_bps = in.rate_bps;
	e->buffer = in.buffer;
	e->duration = in.duration;
	return push_event(l, v, e);
}

static bool load_pause_storm(struct loader *l, struct ynode *v, struct sc_event *e)
{
	struct storm_in in = {0};

	schema_defaults(&sec_storm, &in);
	in.prio_mask = 1 << 3;
	if (!schema_apply(l, &sec_storm, v, &in) || !schema_require(l, &sec_storm, v) ||
		!ref_nic(l, in.host, e))
		return false;
	if (in.prio_mask == 0) {
		diag_key(&l->d, v, "priority", "is empty, expected at least one priority");
		return false;
	}
	e->kind = SC_EVENT_PAUSE_STORM;
	e->prio_mask = in.prio_mask;
	e->duration = in.duration;
	return push_event(l, v, e);
}

static bool push_flows(struct loader *l, const struct ynode *v, struct sc_event *e)
{
	const char *name = v->kind == Y_SCALAR ? v->text : "";
	uint32_t w = names_find(&l->work_names, name), f = names_find(&l->flow_names, name);
	uint32_t first = f, n = 1;

	if (w != SC_NONE) {
		first = l->works[w].first;
		n = l->works[w].n;
	} else if (f == SC_NONE) {
		const char *meant = names_suggest(&l->work_names, name);
		diag_at(&l->d, v, "no workload or flow '%.60s'%s%s%s", name,
			meant != NULL ? "; did you mean " : ", expected one of workloads:",
			meant != NULL ? meant : "", meant != NULL ? "?" : "");
		return false;
	}
	for (uint32_t i = 0; i < n; i++) {
		e->flow = first + i;
		if (e->kind == SC_EVENT_FLOW_START && !l->s->flows[e->flow].on_demand) {
			diag_at(&l->d, v, "'%.60s' starts by itself, expected `start: event` there",
				name);
			return false;
		}
		if (!push_event(l, v, e))
			return false;
	}
	return true;
}

static bool load_flow_start(struct loader *l, struct ynode *v, struct sc_event *e)
{
	e->kind = SC_EVENT_FLOW_START;
	return push_flows(l, v, e);
}

static bool load_flow_stop(struct loader *l, struct ynode *v, struct sc_event *e)
{
	e->kind = SC_EVENT_FLOW_STOP;
	return push_flows(l, v, e);
}

static bool load_event(struct loader *l, struct ynode *v)
{
	struct event_in in = {0};
	struct sc_event e = {.pos = pos_of(v), .link = SC_NONE, .flow = SC_NONE, .node = SC_NONE};

	if (!schema_apply(l, &sec_event, v, &in) || !schema_require(l, &sec_event, v))
		return false;
	const struct {
		struct ynode *v;
		bool (*load)(struct loader *l, struct ynode *v, struct sc_event *e);
	} kinds[] = {{in.link_down, load_link_down}, {in.link_up, load_link_up},
		{in.route, load_route_event}, {in.pause_storm, load_pause_storm},
		{in.flow_start, load_flow_start}, {in.flow_stop, load_flow_stop},
		{in.set_corrupt, load_set_corrupt}, {in.set_rate, load_set_rate},
		{in.set_ber, load_set_ber}, {in.flap, load_flap}, {in.reboot, load_reboot},
		{in.slow_receiver, load_slow_receiver}, {in.fault, load_fault_event}};
	int given = -1, n = 0;

	for (int i = 0; i < (int)(sizeof(kinds) / sizeof(kinds[0])); i++)
		if (kinds[i].v != NULL) {
			given = i;
			n++;
		}
	if (n != 1) {
		diag_at(&l->d, v, "%d things happen at once, expected exactly one beside `at`", n);
		return false;
	}
	e.at = in.at;
	return kinds[given].load(l, kinds[given].v, &e);
}

// Stable: events of the same time stay in file order.
static void sort_events(struct loader *l)
{
	struct scenario *s = l->s;
	struct sc_event *tmp = arena_alloc(l->a, s->n_events * sizeof(*tmp));

	for (uint32_t width = 1; width < s->n_events; width *= 2) {
		for (uint32_t lo = 0; lo < s->n_events; lo += 2 * width) {
			uint32_t mid = lo + width < s->n_events ? lo + width : s->n_events;
			uint32_t hi = mid + width < s->n_events ? mid + width : s->n_events;

			for (uint32_t i = lo, j = mid, k = lo; k < hi; k++) {
				bool left =
					i < mid && (j == hi || s->events[i].at <= s->events[j].at);
				tmp[k] = s->events[left ? i++ : j++];
			}
		}
		memcpy(s->events, tmp, s->n_events * sizeof(*tmp));
	}
}

bool load_events(struct loader *l, struct ynode *events)
{
	bool ok = true;

	if (events == NULL || ynode_is_null(events))
		return true;
	if (events->kind != Y_LIST) {
		diag_at(&l->d, events, "is %s, expected a list of events", ynode_kind_name(events));
		return false;
	}
	for (uint32_t i = 0; i < events->n && !diag_full(&l->d); i++)
		ok = load_event(l, events->items[i]) && ok;
	if (ok)
		sort_events(l);
	return ok;
}
