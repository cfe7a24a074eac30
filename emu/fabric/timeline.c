/* SPDX-License-Identifier: BSD-3-Clause */
// The scenario's events as engine tasks: each happens at its exact time, between node events.
//
// When a link changes state the routing converges at once: shortest paths are computed anew without
// the links that are down, and explicit routes stay as they are. A scenario that wants to show slow
// or wrong convergence says so with explicit routes and `route` events.

#include <errno.h>
#include <stdlib.h>

#include "emu/fabric/internal.h"
#include "pipelines/nic.h"

struct timeline_entry {
	struct fabric *f;
	const struct sc_event *ev;
};

static void reroute(struct fabric *f)
{
	struct routes *r;

	// Out of memory leaves the old routes, which then lead into the dead link: counted drops.
	if (routes_compute(f->s, f->link_down, &r) < 0)
		return;
	for (uint32_t i = 0; i < f->s->n_events; i++) {
		const struct sc_event *ev = &f->s->events[i];
		if (ev->kind == SC_EVENT_ROUTE && ev->at <= engine_now(f->engine))
			routes_override(r, &ev->route);
	}
	routes_free(f->routes);
	f->routes = r;
	routes_apply(f);
}

static void set_link(struct fabric *f, uint32_t link, bool up)
{
	const struct sc_end *a = &f->s->links[link].end[0];

	f->link_down[link] = !up;
	engine_set_link(f->engine, f->nodes[a->node], a->port, up);
	reroute(f);
}

static void set_corrupt(struct fabric *f, uint32_t link, uint64_t probability_q32)
{
	for (int end = 0; end < 2; end++) {
		const struct sc_end *e = &f->s->links[link].end[end];
		struct lane *l = f->nodes[e->node]->ports[e->port].out;
		l->corrupt_q32 = probability_q32;
		lane_update(l);
	}
}

static void change_route(struct fabric *f, const struct sc_route *route)
{
	struct node *sw = f->nodes[route->sw];

	if (routes_override(f->routes, route) < 0)
		return;
	engine_enter(f->engine, sw);
	routes_apply(f);
	for (uint32_t i = 0; i < route->n_endpoints; i++)
		node_event(sw, 0, EV_ROUTE_CHANGE, route->endpoints[i], route->n_ports);
}

static struct node *flow_source(struct fabric *f, uint32_t flow)
{
	struct node *n = f->nodes[f->s->endpoints[f->s->flows[flow].src].node];

	engine_enter(f->engine, n);
	return n;
}

static void happen(struct engine *e, simtime_t now, void *arg)
{
	struct timeline_entry *t = arg;
	struct fabric *f = t->f;
	const struct sc_event *ev = t->ev;

	switch (ev->kind) {
	case SC_EVENT_LINK_DOWN:
	case SC_EVENT_LINK_UP:
		set_link(f, ev->link, ev->kind == SC_EVENT_LINK_UP);
		break;
	case SC_EVENT_ROUTE:
		change_route(f, &ev->route);
		break;
	case SC_EVENT_PAUSE_STORM:
		engine_enter(e, f->nodes[ev->node]);
		nic_pause_storm(f->nodes[ev->node], ev->port, ev->prio_mask, ev->duration);
		break;
	case SC_EVENT_FLOW_START:
		nic_flow_start(flow_source(f, ev->flow), ev->flow);
		break;
	case SC_EVENT_FLOW_STOP:
		nic_flow_stop(flow_source(f, ev->flow), ev->flow);
		break;
	case SC_EVENT_SET_CORRUPT:
		set_corrupt(f, ev->link, ev->corrupt_q32);
		break;
	}
}

int timeline_create(struct fabric *f)
{
	f->timeline = calloc(f->s->n_events + 1, sizeof(*f->timeline));
	if (f->timeline == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->s->n_events; i++) {
		const struct sc_event *ev = &f->s->events[i];
		f->timeline[i] = (struct timeline_entry){.f = f, .ev = ev};
		if (engine_at(f->engine, ev->at, happen, &f->timeline[i], false) < 0)
			return -ENOMEM;
	}
	return 0;
}
