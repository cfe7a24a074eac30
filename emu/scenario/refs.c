/* SPDX-License-Identifier: BSD-3-Clause */

// References to nodes, ports and links in a scenario: looked up, or reported with the name that was
// probably meant. And sets of small numbers (priorities, classes).

#include <ctype.h>
#include <string.h>

#include "emu/scenario/loader.h"

#define BITS(n) ((n) >= 64 ? UINT64_MAX : (UINT64_C(1) << (n)) - 1)

uint32_t list_count(const struct ynode *v)
{
	return v->kind == Y_LIST ? v->n : 1;
}

struct ynode *list_item(struct ynode *v, uint32_t i)
{
	return v->kind == Y_LIST ? v->items[i] : v;
}

static uint32_t unknown_node(struct loader *l, const struct ynode *v, const char *name)
{
	const char *meant = names_suggest(&l->node_names, name);

	diag_at(&l->d, v, "no node '%.60s', expected a switch or host of this scenario%s%s%s", name,
		meant != NULL ? "; did you mean " : "", meant != NULL ? meant : "",
		meant != NULL ? "?" : "");
	return SC_NONE;
}

static bool want_scalar(struct loader *l, const struct ynode *v, const char *expected)
{
	if (v->kind == Y_SCALAR && !ynode_is_null(v))
		return true;
	diag_at(&l->d, v, "is %s, expected %s", ynode_kind_name(v), expected);
	return false;
}

uint32_t ref_node(struct loader *l, const struct ynode *v)
{
	if (!want_scalar(l, v, "the name of a node"))
		return SC_NONE;
	uint32_t n = names_find(&l->node_names, v->text);
	return n != SC_NONE ? n : unknown_node(l, v, v->text);
}

uint32_t ref_switch(struct loader *l, const struct ynode *v)
{
	uint32_t n = ref_node(l, v);

	if (n != SC_NONE && sc_is_host(l->s, n)) {
		diag_at(&l->d, v, "'%.60s' is a host, expected a switch", v->text);
		return SC_NONE;
	}
	return n;
}

const struct sc_port *find_port(const struct scenario *s, uint32_t node, const char *name)
{
	for (uint16_t p = 0; p < s->nodes[node].n_ports; p++)
		if (strcmp(s->nodes[node].ports[p].name, name) == 0)
			return &s->nodes[node].ports[p];
	return NULL;
}

bool ref_port(struct loader *l, const struct ynode *v, struct sc_end *end)
{
	if (!want_scalar(l, v, "node or node:port"))
		return false;
	const char *colon = strchr(v->text, ':');
	const char *name =
		colon == NULL ? v->text : arena_strndup(l->a, v->text, (size_t)(colon - v->text));

	end->node = names_find(&l->node_names, name);
	end->port = 0;
	if (end->node == SC_NONE) {
		unknown_node(l, v, name);
		return false;
	}
	const struct sc_node *n = &l->s->nodes[end->node];
	if (colon == NULL)
		return true;
	const struct sc_port *p = find_port(l->s, end->node, colon + 1);
	if (p == NULL) {
		diag_at(&l->d, v, "%s has no port '%.40s', expected one of %s to %s", n->name,
			colon + 1, n->ports[0].name, n->ports[n->n_ports - 1].name);
		return false;
	}
	end->port = (uint16_t)(p - n->ports);
	return true;
}

uint32_t ref_endpoint(struct loader *l, const struct ynode *v)
{
	struct sc_end e;

	if (!ref_port(l, v, &e))
		return SC_NONE;
	if (!sc_is_host(l->s, e.node)) {
		diag_at(&l->d, v, "'%.60s' is a switch, expected a host", v->text);
		return SC_NONE;
	}
	return l->s->nodes[e.node].ports[e.port].endpoint;
}

bool links_between(struct loader *l, uint32_t a, uint32_t b, uint32_t **links, uint32_t *n)
{
	const struct sc_node *node = &l->s->nodes[a];
	uint32_t before = *n;

	for (uint16_t p = 0; p < node->n_ports; p++) {
		if (sc_peer(l->s, a, p).node != b)
			continue;
		*links = arena_grow(l->a, *links, *n, sizeof(**links));
		(*links)[(*n)++] = node->ports[p].link;
	}
	return *n != before;
}

bool ref_links(struct loader *l, const struct ynode *v, uint32_t **links, uint32_t *n)
{
	struct sc_end e;

	*links = NULL;
	*n = 0;
	if (v->kind == Y_LIST && v->n == 2) {
		uint32_t a = ref_node(l, v->items[0]), b = ref_node(l, v->items[1]);

		if (a == SC_NONE || b == SC_NONE)
			return false;
		if (links_between(l, a, b, links, n))
			return true;
		diag_at(&l->d, v, "no link between %s and %s", l->s->nodes[a].name,
			l->s->nodes[b].name);
		return false;
	}
	if (!want_scalar(l, v, "a link's name, node:port, or [node, node]"))
		return false;
	uint32_t link = names_find(&l->link_names, v->text);
	if (link == SC_NONE) {
		if (strchr(v->text, ':') == NULL) {
			diag_at(&l->d, v,
				"no link '%.60s', expected a link's name, node:port, or "
				"[node, node]",
				v->text);
			return false;
		}
		if (!ref_port(l, v, &e))
			return false;
		link = l->s->nodes[e.node].ports[e.port].link;
	}
	*links = arena_alloc(l->a, sizeof(**links));
	(*links)[(*n)++] = link;
	return true;
}

bool ref_links_from(struct loader *l, const struct ynode *v, struct link_ref **refs, uint32_t *n)
{
	uint32_t *links, first_node = SC_NONE;

	if (!ref_links(l, v, &links, n))
		return false;
	if (v->kind == Y_LIST)
		first_node = ref_node(l, v->items[0]);
	*refs = arena_alloc(l->a, *n * sizeof(**refs));
	for (uint32_t i = 0; i < *n; i++) {
		const struct sc_link *link = &l->s->links[links[i]];
		struct sc_end e;

		(*refs)[i].link = links[i];
		if (v->kind == Y_LIST)
			(*refs)[i].first = link->end[0].node != first_node;
		else if (names_find(&l->link_names, v->text) == SC_NONE && ref_port(l, v, &e))
			(*refs)[i].first = l->s->nodes[e.node].ports[e.port].end;
	}
	return true;
}

uint8_t ref_ends(const struct link_ref *r, enum sc_direction dir)
{
	switch (dir) {
	case SC_DIR_TX:
		return (uint8_t)(1u << r->first);
	case SC_DIR_RX:
		return (uint8_t)(2u >> r->first);
	case SC_DIR_BOTH:
		break;
	}
	return 3;
}

// ---- sets of numbers --------------------------------------------------------------------------

static bool bad_set(struct loader *l, const struct ynode *v, const char *text, unsigned limit)
{
	diag_at(&l->d, v,
		"'%.80s' is not a set of numbers from 0 to %u, expected 3, 3-4, 0,2,5-6 or all",
		text, limit - 1);
	return false;
}

bool read_number_set(
	struct loader *l, const struct ynode *v, const char *text, unsigned limit, uint64_t *mask)
{
	const char *c = text;

	*mask = 0;
	if (strcmp(text, "all") == 0) {
		*mask = BITS(limit);
		return true;
	}
	for (;;) {
		unsigned long range[2];
		char *end;

		for (int i = 0; i < 2; i++) {
			if (!isdigit((unsigned char)*c))
				return bad_set(l, v, text, limit);
			range[i] = strtoul(c, &end, 10);
			c = end;
			if (*c != '-' || i == 1) {
				range[1] = range[i];
				break;
			}
			c++;
		}
		if (range[0] > range[1] || range[1] >= limit)
			return bad_set(l, v, text, limit);
		*mask |= BITS(range[1] + 1) & ~BITS(range[0]);
		if (*c == '\0')
			return true;
		if (*c++ != ',')
			return bad_set(l, v, text, limit);
	}
}

// A list of numbers and ranges, or one of them.
bool read_prio_mask(struct loader *l, struct ynode *v, uint8_t *mask)
{
	uint64_t all = 0, part;

	if (v->kind == Y_MAP || ynode_is_null(v)) {
		diag_at(&l->d, v, "is %s, expected a list of priorities such as [3, 4]",
			ynode_kind_name(v));
		return false;
	}
	for (uint32_t i = 0; i < list_count(v); i++) {
		const struct ynode *item = list_item(v, i);
		if (item->kind != Y_SCALAR) {
			diag_at(&l->d, item, "is %s, expected a priority from 0 to 7",
				ynode_kind_name(item));
			return false;
		}
		if (!read_number_set(l, item, item->text, SC_PRIOS, &part))
			return false;
		all |= part;
	}
	*mask = (uint8_t)all;
	return true;
}
