/* SPDX-License-Identifier: BSD-3-Clause */
// The scenario's events as engine tasks: each happens at its exact time, between node events.
//
// When a link changes state the routing converges at once: shortest paths are computed anew without
// the links that are down, and explicit routes stay as they are. A scenario that wants to show slow
// or wrong convergence says so with explicit routes and `route` events. A link that fails in one
// direction only does so silently.

#include <errno.h>
#include <stdlib.h>

#include "emu/fabric/internal.h"
#include "pipelines/ethernet_switch.h"
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

// Why a link is down; it is up when there is no reason left.
enum link_held {
	HELD_BY_EVENT = 1 << 0,
	HELD_BY_REBOOT = 1 << 1, // of end 0; << 1: of end 1
};

static void hold_link(struct fabric *f, uint32_t link, uint8_t why, bool down)
{
	const struct sc_end *a = &f->s->links[link].end[0];

	if (down)
		f->link_held[link] |= why;
	else
		f->link_held[link] &= (uint8_t)~why;
	f->link_down[link] = f->link_held[link] != 0;
	engine_set_link(f->engine, f->nodes[a->node], a->port, !f->link_down[link]);
}

static void set_link(struct fabric *f, const struct sc_event *ev, bool up)
{
	const struct sc_link *l = &f->s->links[ev->link];

	if (ev->ends == 3) {
		hold_link(f, ev->link, HELD_BY_EVENT, !up);
		reroute(f);
		return;
	}
	for (unsigned e = 0; e < 2; e++)
		if (ev->ends >> e & 1)
			engine_set_lane(f->engine, f->nodes[l->end[e].node], l->end[e].port, up);
}

static void set_corrupt(struct fabric *f, const struct sc_event *ev)
{
	for (int end = 0; end < 2; end++) {
		const struct sc_end *e = &f->s->links[ev->link].end[end];
		struct lane *l = f->nodes[e->node]->ports[e->port].out;
		l->corrupt_q32 = ev->corrupt_q32;
		lane_update(l);
	}
}

// What is on the wire keeps its time. Pauses go on being counted in quanta of the link's first
// rate, at both ends.
static void set_rate(struct fabric *f, const struct sc_event *ev)
{
	for (unsigned end = 0; end < 2; end++) {
		const struct sc_end *e = &f->s->links[ev->link].end[end];
		struct node *n = f->nodes[e->node];
		struct lane *l = n->ports[e->port].out;
		if (!(ev->ends >> end & 1))
			continue;
		engine_enter(f->engine, n);
		l->rate_bps = ev->rate_bps;
		l->byte_time = byte_time_fp(ev->rate_bps);
		node_event(n, e->port, EV_RATE_CHANGE, ev->rate_bps, 0);
	}
}

static void reboot(struct fabric *f, const struct sc_event *ev, bool stops)
{
	const struct sc_node *sn = &f->s->nodes[ev->node];
	struct node *n = f->nodes[ev->node];

	engine_enter(f->engine, n);
	node_event(n, 0, EV_REBOOT, stops, 0);
	if (stops)
		ethernet_switch_reboot(n);
	for (uint16_t p = 0; p < sn->n_ports; p++)
		hold_link(
			f, sn->ports[p].link, (uint8_t)(HELD_BY_REBOOT << sn->ports[p].end), stops);
	reroute(f);
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
		set_link(f, ev, ev->kind == SC_EVENT_LINK_UP);
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
		set_corrupt(f, ev);
		break;
	case SC_EVENT_SET_RATE:
		set_rate(f, ev);
		break;
	case SC_EVENT_SET_BER:
		faults_set_ber(f, ev);
		break;
	case SC_EVENT_REBOOT:
	case SC_EVENT_REBOOT_DONE:
		reboot(f, ev, ev->kind == SC_EVENT_REBOOT);
		break;
	case SC_EVENT_SLOW_RECEIVER:
		engine_enter(e, f->nodes[ev->node]);
		nic_slow_receiver(f->nodes[ev->node], ev->port, ev->rate_bps,
			(uint32_t)RTE_MIN(ev->buffer, (uint64_t)UINT32_MAX), ev->duration);
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
