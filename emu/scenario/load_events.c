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

static bool push_links(struct loader *l, const struct ynode *v, struct sc_event *e)
{
	uint32_t *links, n;

	if (!ref_links(l, v, &links, &n))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		e->link = links[i];
		if (!push_event(l, v, e))
			return false;
	}
	return true;
}

static bool load_link_down(struct loader *l, struct ynode *v, struct sc_event *e)
{
	e->kind = SC_EVENT_LINK_DOWN;
	return push_links(l, v, e);
}

static bool load_link_up(struct loader *l, struct ynode *v, struct sc_event *e)
{
	e->kind = SC_EVENT_LINK_UP;
	return push_links(l, v, e);
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

static bool load_pause_storm(struct loader *l, struct ynode *v, struct sc_event *e)
{
	struct storm_in in = {0};
	struct sc_end end;

	schema_defaults(&sec_storm, &in);
	in.prio_mask = 1 << 3;
	if (!schema_apply(l, &sec_storm, v, &in) || !schema_require(l, &sec_storm, v) ||
		!ref_port(l, in.host, &end))
		return false;
	if (!sc_is_host(l->s, end.node) || sc_host_of(l->s, end.node)->kind != SC_HOST_NIC) {
		diag_at(&l->d, in.host,
			"'%.60s' is not a built-in NIC, expected a host without "
			"attach or replay",
			in.host->text);
		return false;
	}
	if (in.prio_mask == 0) {
		diag_key(&l->d, v, "priority", "is empty, expected at least one priority");
		return false;
	}
	e->kind = SC_EVENT_PAUSE_STORM;
	e->node = end.node;
	e->port = end.port;
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
		{in.set_corrupt, load_set_corrupt}};
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
