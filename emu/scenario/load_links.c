/* SPDX-License-Identifier: BSD-3-Clause */

// Links and the ports they make. Ports are numbered in the order links are given and named eth0,
// eth1, ... unless the link says `node:port`.

#include <string.h>

#include "emu/scenario/loader.h"

// Ports while they are collected: a growing array per node.
struct port_list {
	struct sc_port *ports;
	uint16_t n;
};

struct link_build {
	struct loader *l;
	struct port_list *of; // by node
};

bool read_length(struct loader *l, struct ynode *v, void *object)
{
	struct link_in *in = object;
	int64_t mm;

	if (ynode_get(v->parent, "delay") != NULL) {
		diag_at(&l->d, v, "is given together with delay, expected one of them");
		return false;
	}
	if (!schema_number(l, v, Q_LENGTH, 0, 100 * 1000 * 1000, &mm))
		return false;
	in->l.delay = mm * (5 * SIM_NS / 1000); // 5 ns per metre
	return true;
}

bool read_flow_control(struct loader *l, struct ynode *v, void *object)
{
	struct link_in *in = object;
	const char *text = v->kind == Y_SCALAR ? v->text : "";

	if (strcmp(text, "pfc") == 0) {
		in->l.flow_control = SC_FC_PFC;
	} else if (strcmp(text, "none") == 0) {
		in->l.flow_control = SC_FC_NONE;
	} else if (strcmp(text, "credit") == 0) {
		diag_at(&l->d, v,
			"credit flow control (InfiniBand) is not in this version, "
			"expected pfc or none");
		return false;
	} else {
		diag_at(&l->d, v, "'%.60s' is unknown, expected pfc or none", text);
		return false;
	}
	return true;
}

static const struct sc_port *port_by_name(const struct port_list *pl, const char *name)
{
	for (uint16_t i = 0; i < pl->n; i++)
		if (strcmp(pl->ports[i].name, name) == 0)
			return &pl->ports[i];
	return NULL;
}

// "eth<n>" with the lowest n from the port's number up that is not taken.
static const char *free_port_name(struct loader *l, const struct port_list *pl)
{
	for (unsigned n = pl->n;; n++) {
		const char *name = arena_printf(l->a, "eth%u", n);
		if (port_by_name(pl, name) == NULL)
			return name;
	}
}

static bool add_port(struct link_build *b, const struct ynode *at, uint32_t node, const char *name,
	uint32_t link, uint8_t end)
{
	struct loader *l = b->l;
	struct port_list *pl = &b->of[node];

	if (pl->n == NODE_PORTS) {
		diag_at(&l->d, at, "%s has more than %u links", l->s->nodes[node].name, NODE_PORTS);
		return false;
	}
	if (name != NULL && port_by_name(pl, name) != NULL) {
		diag_at(&l->d, at, "port %s:%s has a link already, expected a free port",
			l->s->nodes[node].name, name);
		return false;
	}
	pl->ports = arena_grow(l->a, pl->ports, pl->n, sizeof(*pl->ports));
	pl->ports[pl->n] = (struct sc_port){
		.name = name != NULL ? name : free_port_name(l, pl),
		.link = link,
		.end = end,
		// 02: locally administered; unique by node and port
		.mac = {0x02, 0xfa, (uint8_t)(node >> 8), (uint8_t)node, (uint8_t)(pl->n >> 8),
			(uint8_t)pl->n},
		.endpoint = SC_NONE,
	};
	l->s->links[link].end[end] = (struct sc_end){.node = node, .port = pl->n++};
	return true;
}

static bool add_link(struct link_build *b, const struct ynode *at, const uint32_t node[2],
	const char *const port[2], const struct sc_link *props)
{
	struct loader *l = b->l;
	struct scenario *s = l->s;
	uint32_t link = s->n_links;

	if (link == LINKS_MAX) {
		diag_at(&l->d, at, "more than %u links", LINKS_MAX);
		return false;
	}
	s->links = arena_grow(l->a, s->links, link, sizeof(*s->links));
	s->links[link] = *props;
	s->links[link].pos = pos_of(at);
	s->n_links++;
	for (uint8_t e = 0; e < 2; e++)
		if (!add_port(b, at, node[e], port[e], link, e))
			return false;
	if (props->name == NULL) {
		const struct sc_end *end = s->links[link].end;
		s->links[link].name = arena_printf(l->a, "%s:%s-%s:%s", s->nodes[node[0]].name,
			b->of[node[0]].ports[end[0].port].name, s->nodes[node[1]].name,
			b->of[node[1]].ports[end[1].port].name);
	}
	if (!names_add(&l->link_names, s->links[link].name, link)) {
		diag_at(&l->d, at, "a link is named '%.60s' already", s->links[link].name);
		return false;
	}
	return true;
}

// "node" or "node:port" of a link's `ends`.
static bool read_end(struct loader *l, const struct ynode *v, uint32_t *node, const char **port)
{
	const char *colon = v->kind == Y_SCALAR ? strchr(v->text, ':') : NULL;
	struct ynode plain = *v;

	*port = NULL;
	if (colon != NULL) {
		plain.text = arena_strndup(l->a, v->text, (size_t)(colon - v->text));
		*port = colon + 1;
		if (!check_name(l, v, *port))
			return false;
		if (strlen(*port) > 15) {
			diag_at(&l->d, v, "port name '%s' is too long, expected at most 15 letters",
				*port);
			return false;
		}
	}
	*node = ref_node(l, &plain);
	return *node != SC_NONE;
}

static bool load_link(struct link_build *b, struct ynode *v)
{
	struct loader *l = b->l;
	struct link_in in = l->def.link;
	uint32_t node[2];
	const char *port[2];

	in.ends = NULL;
	in.parallel = 1;
	if (v->kind == Y_LIST) {
		in.ends = v;
	} else if (!schema_apply(l, &sec_link, v, &in) || !schema_require(l, &sec_link, v)) {
		return false;
	}
	if (in.ends == NULL || in.ends->kind != Y_LIST || in.ends->n != 2) {
		diag_at(&l->d, in.ends != NULL ? in.ends : v,
			"expected the link's two ends such as [sw1, h1]");
		return false;
	}
	for (int e = 0; e < 2; e++)
		if (!read_end(l, in.ends->items[e], &node[e], &port[e]))
			return false;
	if (node[0] == node[1]) {
		diag_at(&l->d, in.ends, "a link from a node to itself, expected two nodes");
		return false;
	}
	if (in.parallel > 1 && (in.l.name != NULL || port[0] != NULL || port[1] != NULL)) {
		diag_key(&l->d, v, "parallel",
			"a name and named ports fit one link only, expected "
			"links written one by one");
		return false;
	}
	for (uint32_t i = 0; i < in.parallel; i++)
		if (!add_link(b, v, node, port, &in.l))
			return false;
	return true;
}

// Gives the nodes their ports and the hosts their endpoints.
static bool finish_ports(struct link_build *b)
{
	struct loader *l = b->l;
	struct scenario *s = l->s;
	bool ok = true;

	l->ports = arena_alloc(l->a, s->n_nodes * sizeof(*l->ports));
	for (uint32_t i = 0; i < s->n_nodes; i++) {
		struct port_list *pl = &b->of[i];

		if (pl->n == 0) {
			const struct ynode *at = l->nodes[i].at;
			diag_at(&l->d, at != NULL ? at : l->root,
				"%s has no link, expected one in links:", s->nodes[i].name);
			ok = false;
			continue;
		}
		if (sc_is_host(s, i)) {
			s->hosts[i - s->n_switches].first_endpoint = s->n_endpoints;
			for (uint16_t p = 0; p < pl->n; p++) {
				pl->ports[p].endpoint = s->n_endpoints;
				s->endpoints = arena_grow(
					l->a, s->endpoints, s->n_endpoints, sizeof(*s->endpoints));
				s->endpoints[s->n_endpoints++] =
					(struct sc_endpoint){.node = i, .port = p};
			}
		}
		l->ports[i] = pl->ports;
		s->nodes[i].ports = pl->ports;
		s->nodes[i].n_ports = pl->n;
	}
	return ok;
}

bool load_links(struct loader *l, struct ynode *links)
{
	static const char *const unnamed[2] = {NULL, NULL};
	struct link_build b = {.l = l, .of = arena_alloc(l->a, l->n_nodes * sizeof(*b.of))};
	const struct ynode *topology = ynode_get(l->root, "topology");
	bool ok = true;

	for (uint32_t i = 0; i < l->n_gen_links && ok; i++)
		ok = add_link(&b, topology, l->gen_links[i].node, unnamed, &l->gen_links[i].props);
	if (links != NULL && !ynode_is_null(links) && links->kind != Y_LIST) {
		diag_at(&l->d, links, "is %s, expected a list of links", ynode_kind_name(links));
		return false;
	}
	for (uint32_t i = 0; links != NULL && links->kind == Y_LIST && i < links->n; i++)
		ok = load_link(&b, links->items[i]) && ok;
	return ok && finish_ports(&b);
}
