/* SPDX-License-Identifier: BSD-3-Clause */
// Shortest paths by breadth-first search, once per switch that has endpoints: endpoints of one
// switch share everything but the last hop. Distances count switches; ties are all kept, in port
// order.
//
// With `paths: up-down` a switch that has a way down to the endpoint's switch uses the shortest
// such, and any other goes up, by the shortest way. Once a frame goes down every switch on its way
// has a way down, so it never goes up again: no path has a valley.

#include "emu/fabric/routes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "emu/fabric/levels.h"

#define UNREACHED UINT32_MAX

struct search {
	const struct scenario *s;
	const bool *link_down;
	uint32_t *base;  // [n_switches] of a switch's first port in
	uint32_t *near;  // switches behind ports that can be used, SC_NONE: there is none
	uint32_t *dist;  // [n_switches] hops to the root
	uint32_t *queue; // [n_switches]
	uint16_t *hops;  // next hops of one switch, at most PORT_MAX
	// up-down only:
	uint8_t *level;
	uint32_t *down; // [n_switches] hops to the root by ways down only
	uint32_t *top;  // [n_switches] switches, the upper ones first
};

static bool usable(const struct search *q, const struct sc_port *p)
{
	return q->link_down == NULL || !q->link_down[p->link];
}

static int push_ports(struct routes *r, struct route_set *set, const uint16_t *ports, uint16_t n)
{
	if (r->n_ports + n > r->cap_ports) {
		uint32_t cap = 2 * (r->cap_ports + n);
		uint16_t *bigger = realloc(r->ports, cap * sizeof(*bigger));
		if (bigger == NULL)
			return -ENOMEM;
		r->ports = bigger;
		r->cap_ports = cap;
	}
	if (n > 0)
		memcpy(r->ports + r->n_ports, ports, n * sizeof(*ports));
	*set = (struct route_set){.first = r->n_ports, .n = n};
	r->n_ports += n;
	return 0;
}

static uint32_t neighbour(const struct search *q, uint32_t sw, uint16_t port)
{
	return q->near[q->base[sw] + port];
}

static int find_neighbours(struct search *q)
{
	const struct scenario *s = q->s;
	uint32_t n = 0;

	q->base = calloc(s->n_switches + 1, sizeof(*q->base));
	for (uint32_t sw = 0; q->base != NULL && sw < s->n_switches; n += s->nodes[sw++].n_ports)
		q->base[sw] = n;
	q->near = calloc((size_t)n + 1, sizeof(*q->near));
	if (q->base == NULL || q->near == NULL)
		return -ENOMEM;
	for (uint32_t sw = 0; sw < s->n_switches; sw++)
		for (uint16_t p = 0; p < s->nodes[sw].n_ports; p++) {
			uint32_t peer = sc_peer(s, sw, p).node;
			bool is = !sc_is_host(s, peer) && usable(q, &s->nodes[sw].ports[p]);
			q->near[q->base[sw] + p] = is ? peer : SC_NONE;
		}
	return 0;
}

static void distances_to(struct search *q, uint32_t root)
{
	const struct scenario *s = q->s;
	uint32_t head = 0;
	uint32_t tail = 0;

	for (uint32_t i = 0; i < s->n_switches; i++)
		q->dist[i] = UNREACHED;
	q->dist[root] = 0;
	q->queue[tail++] = root;
	while (head < tail) {
		uint32_t sw = q->queue[head++];
		for (uint16_t p = 0; p < s->nodes[sw].n_ports; p++) {
			uint32_t peer = neighbour(q, sw, p);
			if (peer == SC_NONE || q->dist[peer] != UNREACHED)
				continue;
			q->dist[peer] = q->dist[sw] + 1;
			q->queue[tail++] = peer;
		}
	}
}

// ---- up-down -----------------------------------------------------------------------------------

// down[]: breadth first from the root, upwards.
static void ways_down_to(struct search *q, uint32_t root)
{
	uint32_t head = 0, tail = 0;

	for (uint32_t i = 0; i < q->s->n_switches; i++)
		q->down[i] = UNREACHED;
	q->down[root] = 0;
	q->queue[tail++] = root;
	while (head < tail) {
		uint32_t sw = q->queue[head++];
		for (uint16_t p = 0; p < q->s->nodes[sw].n_ports; p++) {
			uint32_t peer = neighbour(q, sw, p);
			if (peer == SC_NONE || q->down[peer] != UNREACHED ||
				!level_above(q->level, peer, sw))
				continue;
			q->down[peer] = q->down[sw] + 1;
			q->queue[tail++] = peer;
		}
	}
}

// dist[]: of the path a switch's frames take. Upper switches are done before those that need them.
static void up_down_to(struct search *q, uint32_t root)
{
	ways_down_to(q, root);
	for (uint32_t i = 0; i < q->s->n_switches; i++) {
		uint32_t sw = q->top[i];
		q->dist[sw] = q->down[sw];
		if (q->dist[sw] != UNREACHED)
			continue;
		for (uint16_t p = 0; p < q->s->nodes[sw].n_ports; p++) {
			uint32_t peer = neighbour(q, sw, p);
			if (peer != SC_NONE && level_above(q->level, peer, sw) &&
				q->dist[peer] != UNREACHED && q->dist[peer] + 1 < q->dist[sw])
				q->dist[sw] = q->dist[peer] + 1;
		}
	}
}

static uint16_t up_down_hops(const struct search *q, uint32_t sw)
{
	bool down = q->down[sw] != UNREACHED;
	uint16_t n = 0;

	for (uint16_t p = 0; p < q->s->nodes[sw].n_ports; p++) {
		uint32_t peer = neighbour(q, sw, p);
		if (peer == SC_NONE || level_above(q->level, peer, sw) == down)
			continue;
		if ((down ? q->down[peer] : q->dist[peer]) == q->dist[sw] - 1)
			q->hops[n++] = p;
	}
	return n;
}

static int prepare_up_down(struct search *q)
{
	uint32_t n = q->s->n_switches;

	q->level = calloc(n + 1, sizeof(*q->level));
	q->down = calloc(n + 1, sizeof(*q->down));
	q->top = calloc(n + 1, sizeof(*q->top));
	if (q->level == NULL || q->down == NULL || q->top == NULL)
		return -ENOMEM;
	levels_find(q->s, q->level, q->queue);
	uint32_t filled = 0; // level by level from the highest, in order of number
	for (unsigned level = UINT8_MAX + 1; level-- > 0;)
		for (uint32_t i = 0; i < n && filled < n; i++)
			if (q->level[i] == level)
				q->top[filled++] = i;
	return 0;
}

// ---- next hops ---------------------------------------------------------------------------------

static uint16_t next_hops(const struct search *q, uint32_t sw)
{
	const struct scenario *s = q->s;
	uint16_t n = 0;

	if (q->dist[sw] == UNREACHED || q->dist[sw] == 0)
		return 0;
	if (q->down != NULL)
		return up_down_hops(q, sw);
	for (uint16_t p = 0; p < s->nodes[sw].n_ports; p++) {
		uint32_t peer = neighbour(q, sw, p);
		if (peer != SC_NONE && q->dist[peer] == q->dist[sw] - 1)
			q->hops[n++] = p;
	}
	return n;
}

static struct route_set *set_of(struct routes *r, uint32_t sw, uint32_t endpoint)
{
	return &r->sets[(uint64_t)sw * r->n_endpoints + endpoint];
}

// Routes to all endpoints attached to `root`: the port itself there, shared next hops elsewhere.
static int routes_to_switch(struct search *q, struct routes *r, uint32_t root)
{
	const struct scenario *s = q->s;

	for (uint32_t sw = 0; sw < s->n_switches; sw++) {
		struct route_set shared;
		int rc = push_ports(r, &shared, q->hops, next_hops(q, sw));
		if (rc < 0)
			return rc;
		for (uint16_t p = 0; p < s->nodes[root].n_ports; p++) {
			struct sc_end peer = sc_peer(s, root, p);
			if (!sc_is_host(s, peer.node))
				continue;
			struct route_set *set =
				set_of(r, sw, s->nodes[peer.node].ports[peer.port].endpoint);
			bool up = usable(q, &s->nodes[root].ports[p]);
			if (sw != root)
				*set = up ? shared : (struct route_set){0};
			else if ((rc = push_ports(r, set, &p, up ? 1 : 0)) < 0)
				return rc;
		}
	}
	return 0;
}

static bool has_hosts(const struct scenario *s, uint32_t sw)
{
	for (uint16_t p = 0; p < s->nodes[sw].n_ports; p++)
		if (sc_is_host(s, sc_peer(s, sw, p).node))
			return true;
	return false;
}

static int override_from(struct routes *r, const struct route_from *f)
{
	for (uint32_t i = 0; i < r->n_from; i++)
		if (r->from[i].sw == f->sw && r->from[i].in == f->in &&
			r->from[i].endpoint == f->endpoint) {
			r->from[i] = *f;
			return 0;
		}
	struct route_from *more = realloc(r->from, (r->n_from + 1) * sizeof(*more));
	if (more == NULL)
		return -ENOMEM;
	r->from = more;
	r->from[r->n_from++] = *f;
	return 0;
}

int routes_override(struct routes *r, const struct sc_route *route)
{
	struct route_set shared;
	int rc = push_ports(r, &shared, route->ports, route->n_ports);

	if (rc < 0)
		return rc;
	shared.explicit_route = true;
	for (uint32_t i = 0; i < route->n_endpoints; i++)
		for (uint16_t k = 0; k < route->n_from; k++) {
			struct route_from f = {
				route->sw, route->endpoints[i], route->from[k], shared};
			rc = override_from(r, &f);
			if (rc < 0)
				return rc;
		}
	if (route->n_from > 0)
		return 0;
	for (uint32_t i = 0; i < route->n_endpoints; i++)
		*set_of(r, route->sw, route->endpoints[i]) = shared;
	return 0;
}

static int fill(struct search *q, struct routes *r)
{
	const struct scenario *s = q->s;

	for (uint32_t sw = 0; sw < s->n_switches; sw++) {
		if (!has_hosts(s, sw))
			continue;
		if (q->down != NULL)
			up_down_to(q, sw);
		else
			distances_to(q, sw);
		int rc = routes_to_switch(q, r, sw);
		if (rc < 0)
			return rc;
	}
	for (uint32_t i = 0; i < s->n_routes; i++) {
		int rc = routes_override(r, &s->routes[i]);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int routes_compute(const struct scenario *s, const bool *link_down, struct routes **out)
{
	struct search q = {.s = s, .link_down = link_down};
	struct routes *r = calloc(1, sizeof(*r));
	uint16_t most_ports = 1;
	int rc = -ENOMEM;

	for (uint32_t i = 0; i < s->n_switches; i++)
		if (s->nodes[i].n_ports > most_ports)
			most_ports = s->nodes[i].n_ports;
	q.dist = calloc(s->n_switches + 1, sizeof(*q.dist));
	q.queue = calloc(s->n_switches + 1, sizeof(*q.queue));
	q.hops = calloc(most_ports, sizeof(*q.hops));
	if (r != NULL) {
		r->n_switches = s->n_switches;
		r->n_endpoints = s->n_endpoints;
		r->sets = calloc((size_t)s->n_switches * s->n_endpoints + 1, sizeof(*r->sets));
	}
	if (r != NULL && r->sets != NULL && q.dist != NULL && q.queue != NULL && q.hops != NULL)
		rc = find_neighbours(&q);
	if (rc == 0 && s->paths == SC_PATHS_UP_DOWN)
		rc = prepare_up_down(&q);
	if (rc == 0)
		rc = fill(&q, r);
	free(q.base);
	free(q.near);
	free(q.level);
	free(q.down);
	free(q.top);
	free(q.dist);
	free(q.queue);
	free(q.hops);
	if (rc < 0)
		routes_free(r);
	else
		*out = r;
	return rc;
}

void routes_free(struct routes *r)
{
	if (r == NULL)
		return;
	free(r->sets);
	free(r->from);
	free(r->ports);
	free(r);
}
