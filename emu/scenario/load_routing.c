/* SPDX-License-Identifier: BSD-3-Clause */

// Explicit routes: `{switch, dst, via}` or `{dst, path}`, the latter being one route per step of
// the path. They replace the shortest paths the fabric would compute, and may form loops.

#include <string.h>

#include "emu/scenario/loader.h"

// A set of endpoints as a growing array.
struct endpoints {
	uint32_t *of;
	uint32_t n;
};

static void add_endpoint(struct loader *l, struct endpoints *e, uint32_t endpoint)
{
	e->of = arena_grow(l->a, e->of, e->n, sizeof(*e->of));
	e->of[e->n++] = endpoint;
}

static bool in_prefix(const uint8_t *a, const uint8_t *b, unsigned bits)
{
	if (memcmp(a, b, bits / 8) != 0)
		return false;
	return bits % 8 == 0 || (a[bits / 8] ^ b[bits / 8]) >> (8 - bits % 8) == 0;
}

// "10.0.0.0/24", "fd00::/64" or a single address.
static bool add_prefix(struct loader *l, const struct ynode *v, struct endpoints *e)
{
	const struct scenario *s = l->s;
	bool is_ip6 = strchr(v->text, ':') != NULL;
	uint8_t ip6[16], len;
	uint32_t ip4, before = e->n;

	if (is_ip6 ? !parse_ip6(l, v, 128, ip6, &len) : !parse_ip4(l, v, 32, &ip4, &len))
		return false;
	for (uint32_t i = 0; i < s->n_endpoints; i++) {
		const struct sc_endpoint *p = &s->endpoints[i];
		bool in = is_ip6 ? p->has_ip6 && in_prefix(p->ip6, ip6, len)
				 : len == 0 || (p->ip4 ^ ip4) >> (32 - len) == 0;
		if (in)
			add_endpoint(l, e, i);
	}
	if (e->n != before)
		return true;
	diag_at(&l->d, v, "no host has an address in '%.60s'", v->text);
	return false;
}

static bool looks_like_address(const char *text)
{
	size_t digits = strspn(text, "0123456789");
	return strchr(text, '/') != NULL || (digits > 0 && text[digits] == '.') ||
	       strstr(text, "::") != NULL;
}

static bool read_dst(struct loader *l, struct ynode *v, struct endpoints *e)
{
	for (uint32_t i = 0; i < list_count(v); i++) {
		const struct ynode *item = list_item(v, i);

		if (item->kind == Y_SCALAR && looks_like_address(item->text)) {
			if (!add_prefix(l, item, e))
				return false;
			continue;
		}
		uint32_t first = ref_endpoint(l, item);
		if (first == SC_NONE)
			return false;
		if (strchr(item->text, ':') != NULL) {
			add_endpoint(l, e, first);
			continue;
		}
		const struct sc_node *n = &l->s->nodes[l->s->endpoints[first].node];
		for (uint16_t p = 0; p < n->n_ports; p++)
			add_endpoint(l, e, n->ports[p].endpoint);
	}
	return true;
}

// Adds the ports of `sw` that lead to neighbour `peer`.
static bool add_ports_to(struct loader *l, const struct ynode *at, uint32_t sw, uint32_t peer,
	uint16_t **ports, uint16_t *n)
{
	const struct sc_node *node = &l->s->nodes[sw];
	uint16_t before = *n;

	for (uint16_t p = 0; p < node->n_ports; p++) {
		if (sc_peer(l->s, sw, p).node != peer)
			continue;
		*ports = arena_grow(l->a, *ports, *n, sizeof(**ports));
		(*ports)[(*n)++] = p;
	}
	if (*n != before)
		return true;
	diag_at(&l->d, at, "%s is not a neighbour of %s, expected a node it has a link to",
		l->s->nodes[peer].name, node->name);
	return false;
}

// Ports of switch `sw` by their names or those of the neighbours behind them.
static bool read_ports(
	struct loader *l, struct ynode *v, uint32_t sw, const uint16_t **out, uint16_t *n_out)
{
	uint16_t *ports = NULL, n = 0;

	for (uint32_t i = 0; i < list_count(v); i++) {
		const struct ynode *item = list_item(v, i);
		struct sc_end e;

		if (!ref_port(l, item, &e))
			return false;
		if (strchr(item->text, ':') == NULL) {
			if (!add_ports_to(l, item, sw, e.node, &ports, &n))
				return false;
			continue;
		}
		if (e.node != sw) {
			diag_at(&l->d, item, "is a port of another node, expected one of %s",
				l->s->nodes[sw].name);
			return false;
		}
		ports = arena_grow(l->a, ports, n, sizeof(*ports));
		ports[n++] = e.port;
	}
	if (n == 0) {
		diag_at(&l->d, v, "is empty, expected a neighbour or a port");
		return false;
	}
	*out = ports;
	*n_out = n;
	return true;
}

static bool read_via(struct loader *l, struct ynode *v, struct sc_route *r)
{
	if (v->kind == Y_SCALAR && strcmp(v->text, "drop") == 0)
		return true;
	return read_ports(l, v, r->sw, &r->ports, &r->n_ports);
}

static void push_route(
	struct loader *l, struct sc_route **routes, uint32_t *n, const struct sc_route *r)
{
	*routes = arena_grow(l->a, *routes, *n, sizeof(**routes));
	(*routes)[(*n)++] = *r;
}

static bool read_path(struct loader *l, struct ynode *path, struct sc_route *r,
	struct sc_route **routes, uint32_t *n)
{
	if (path->kind != Y_LIST || path->n < 2) {
		diag_at(&l->d, path, "expected a list of two or more switches");
		return false;
	}
	for (uint32_t i = 0; i + 1 < path->n; i++) {
		uint16_t *ports = NULL;

		r->sw = ref_switch(l, path->items[i]);
		uint32_t next = r->sw != SC_NONE ? ref_node(l, path->items[i + 1]) : SC_NONE;
		r->n_ports = 0;
		if (next == SC_NONE ||
			!add_ports_to(l, path->items[i + 1], r->sw, next, &ports, &r->n_ports))
			return false;
		r->ports = ports;
		push_route(l, routes, n, r);
	}
	return true;
}

bool read_route(
	struct loader *l, struct ynode *v, bool path_allowed, struct sc_route **routes, uint32_t *n)
{
	struct route_in in = {0};
	struct sc_route r = {.pos = pos_of(v)};
	struct endpoints dst = {0};

	if (!schema_apply(l, &sec_route, v, &in) || !schema_require(l, &sec_route, v) ||
		!read_dst(l, in.dst, &dst))
		return false;
	r.endpoints = dst.of;
	r.n_endpoints = dst.n;
	if (in.path != NULL &&
		(!path_allowed || in.sw != NULL || in.via != NULL || in.from != NULL)) {
		diag_at(&l->d, in.path,
			path_allowed
				? "is given together with switch, via or from, expected one way"
				: "is not possible here, expected switch and via");
		return false;
	}
	if (in.path != NULL)
		return read_path(l, in.path, &r, routes, n);
	if (in.sw == NULL || in.via == NULL) {
		diag_key(&l->d, v, in.sw == NULL ? "switch" : "via",
			"missing, expected switch, dst and via");
		return false;
	}
	r.sw = ref_switch(l, in.sw);
	if (r.sw == SC_NONE || !read_via(l, in.via, &r))
		return false;
	if (in.from != NULL && r.n_ports == 0) {
		diag_at(&l->d, in.via, "is drop together with from, expected next hops");
		return false;
	}
	if (in.from != NULL && !read_ports(l, in.from, r.sw, &r.from, &r.n_from))
		return false;
	push_route(l, routes, n, &r);
	return true;
}

bool load_routing(struct loader *l, struct ynode *routing)
{
	bool ok = true;

	if (routing == NULL || ynode_is_null(routing))
		return true;
	if (routing->kind != Y_LIST) {
		diag_at(&l->d, routing, "is %s, expected a list of routes",
			ynode_kind_name(routing));
		return false;
	}
	for (uint32_t i = 0; i < routing->n && !diag_full(&l->d); i++)
		ok = read_route(l, routing->items[i], true, &l->s->routes, &l->s->n_routes) && ok;
	return ok;
}
