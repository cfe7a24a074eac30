/* SPDX-License-Identifier: BSD-3-Clause */

// Switches and hosts: those the generators made, plus those named in `switches` and `hosts`, which
// may also give a generated node settings of its own.

#include <ctype.h>
#include <string.h>

#include "emu/core/rng.h"
#include "emu/scenario/loader.h"

bool check_name(struct loader *l, const struct ynode *at, const char *name)
{
	size_t len = strlen(name);
	bool ok = len >= 1 && len <= NAME_LEN_MAX;

	for (const char *c = name; *c != '\0' && ok; c++)
		ok = isalnum((unsigned char)*c) || *c == '_' || *c == '-';
	if (ok)
		return true;
	diag_at(&l->d, at, "'%.60s' cannot be a name, expected 1 to %u letters, digits, - and _",
		name, NAME_LEN_MAX);
	return false;
}

uint32_t add_node(struct loader *l, const char *name, bool is_switch, struct ynode *at)
{
	const struct ynode *err = at != NULL ? at : ynode_get(l->root, "topology");

	if (!check_name(l, err, name))
		return SC_NONE;
	if (l->n_nodes == NODES_MAX) {
		diag_at(&l->d, err, "more than %u nodes", NODES_MAX);
		return SC_NONE;
	}
	if (!names_add(&l->node_names, name, l->n_nodes)) {
		diag_at(&l->d, err, "'%s' exists already, expected a name of its own", name);
		return SC_NONE;
	}
	l->nodes = arena_grow(l->a, l->nodes, l->n_nodes, sizeof(*l->nodes));
	struct node_in *n = &l->nodes[l->n_nodes];
	*n = (struct node_in){.name = name, .is_switch = is_switch, .at = at, .sw = l->def.sw};
	n->host.h.nic = l->def.nic;
	return l->n_nodes++;
}

// One entry of `switches` or `hosts`; `map` is NULL in a list of names.
static bool load_node(struct loader *l, struct ynode *name, struct ynode *map, bool is_switch)
{
	uint32_t i = names_find(&l->node_names, name->text);

	if (i != SC_NONE && (l->nodes[i].is_switch != is_switch || l->nodes[i].at != NULL)) {
		diag_at(&l->d, map != NULL ? map : name,
			"'%s' is already a %s, expected a name of "
			"its own",
			name->text, l->nodes[i].is_switch ? "switch" : "host");
		return false;
	}
	if (i == SC_NONE)
		i = add_node(l, name->text, is_switch, map != NULL ? map : name);
	if (i == SC_NONE)
		return false;

	struct node_in *n = &l->nodes[i];
	n->at = map != NULL ? map : name;
	if (map == NULL)
		return true;
	return is_switch ? schema_apply(l, &sec_switch, map, &n->sw)
			 : schema_apply(l, &sec_host, map, &n->host);
}

static bool load_named(struct loader *l, struct ynode *v, bool is_switch)
{
	bool ok = true;

	if (v == NULL || ynode_is_null(v))
		return true;
	if (v->kind == Y_SCALAR) {
		diag_at(&l->d, v, "is %s, expected a mapping or a list of names",
			ynode_kind_name(v));
		return false;
	}
	for (uint32_t i = 0; i < v->n && !diag_full(&l->d); i++) {
		struct ynode *name = v->kind == Y_MAP ? v->pairs[i].key : v->items[i];

		if (name->kind != Y_SCALAR) {
			diag_at(&l->d, name, "is %s, expected a name (settings need `NAME: {...}`)",
				ynode_kind_name(name));
			ok = false;
		} else if (!load_node(l, name, v->kind == Y_MAP ? v->pairs[i].value : NULL,
				   is_switch)) {
			ok = false;
		}
	}
	return ok;
}

// Puts switches before hosts and makes names and generated links follow.
static void order_nodes(struct loader *l)
{
	struct node_in *sorted = arena_alloc(l->a, l->n_nodes * sizeof(*sorted));
	uint32_t *moved = arena_alloc(l->a, l->n_nodes * sizeof(*moved));
	uint32_t n = 0;

	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < l->n_nodes; i++)
			if (l->nodes[i].is_switch == (pass == 0)) {
				moved[i] = n;
				sorted[n++] = l->nodes[i];
			}
	l->nodes = sorted;
	names_init(&l->node_names, l->a);
	for (uint32_t i = 0; i < n; i++)
		names_add(&l->node_names, sorted[i].name, i);
	for (uint32_t i = 0; i < l->n_gen_links; i++)
		for (int e = 0; e < 2; e++)
			l->gen_links[i].node[e] = moved[l->gen_links[i].node[e]];
}

// SC_NONE after an error.
static uint32_t ref_qos(struct loader *l, const struct ynode *v)
{
	const char *name = v->kind == Y_SCALAR ? v->text : "";
	uint32_t q = names_find(&l->qos_names, name);

	if (q == SC_NONE) {
		const char *meant = names_suggest(&l->qos_names, name);
		diag_at(&l->d, v, "no profile '%.60s' in qos:, expected the name of one%s%s%s",
			name, meant != NULL ? "; did you mean " : "", meant != NULL ? meant : "",
			meant != NULL ? "?" : "");
	}
	return q;
}

static bool resolve_port_qos(struct loader *l, uint32_t node, const struct ypair *pair)
{
	const struct sc_node *n = &l->s->nodes[node];
	const struct sc_port *p = find_port(l->s, node, pair->key->text);

	if (p == NULL) {
		diag_at(&l->d, pair->key, "%s has no port of that name, expected one of its links'",
			n->name);
		return false;
	}
	uint32_t q = ref_qos(l, pair->value);
	if (q == SC_NONE)
		return false;
	if (l->s->qos[q].cell_size != l->s->qos[l->s->switches[node].qos].cell_size) {
		diag_at(&l->d, pair->value,
			"has another cell_size than the switch's own profile, expected the same");
		return false;
	}
	l->ports[node][p - n->ports].qos = q;
	return true;
}

bool load_port_qos(struct loader *l)
{
	bool ok = true;

	for (uint32_t i = 0; i < l->s->n_switches; i++) {
		const struct ynode *map = l->nodes[i].sw.ports;
		for (uint16_t p = 0; p < l->s->nodes[i].n_ports; p++)
			l->ports[i][p].qos = l->s->switches[i].qos;
		if (map == NULL || ynode_is_null(map))
			continue;
		if (map->kind != Y_MAP) {
			diag_at(&l->d, map,
				"is %s, expected a mapping such as {eth0: PROFILE, ...}",
				ynode_kind_name(map));
			ok = false;
			continue;
		}
		for (uint32_t k = 0; k < map->n; k++)
			ok = resolve_port_qos(l, i, &map->pairs[k]) && ok;
	}
	return ok;
}

static bool resolve_switch(struct loader *l, struct node_in *in, uint32_t node)
{
	struct sc_switch *sw = &in->sw.sw;

	if (in->sw.qos != NULL) {
		sw->qos = ref_qos(l, in->sw.qos);
		if (sw->qos == SC_NONE)
			return false;
	}
	sw->node = node;
	if (sw->buffer == SC_AUTO)
		sw->buffer = l->s->qos[sw->qos].buffer;
	if (sw->ecmp_seed == SC_AUTO)
		sw->ecmp_seed = mix64(l->s->seed ^ mix64(node + 1));
	return true;
}

bool load_nodes(struct loader *l, struct ynode *switches, struct ynode *hosts)
{
	struct scenario *s = l->s;
	bool ok = load_named(l, switches, true);

	ok = load_named(l, hosts, false) && ok;
	if (!ok)
		return false;
	if (l->n_nodes == 0) {
		diag_at(&l->d, l->root, "no nodes, expected hosts and links, or a topology");
		return false;
	}
	order_nodes(l);

	s->n_nodes = l->n_nodes;
	s->nodes = arena_alloc(l->a, s->n_nodes * sizeof(*s->nodes));
	s->switches = arena_alloc(l->a, s->n_nodes * sizeof(*s->switches));
	s->hosts = arena_alloc(l->a, s->n_nodes * sizeof(*s->hosts));
	for (uint32_t i = 0; i < s->n_nodes; i++) {
		struct node_in *in = &l->nodes[i];

		s->nodes[i] = (struct sc_node){.name = in->name,
			.is_switch = in->is_switch,
			.index = in->is_switch ? i : i - s->n_switches,
			.pos = pos_of(in->at)};
		if (in->is_switch) {
			ok = resolve_switch(l, in, i) && ok;
			s->switches[s->n_switches++] = in->sw.sw;
		} else {
			if (in->host.h.nic.payload == 0)
				in->host.h.nic.payload = in->host.h.nic.mtu;
			resolve_cc(&in->host.h.nic);
			resolve_attach_cc(&in->host.h.attach);
			in->host.h.node = i;
			s->hosts[s->n_hosts++] = in->host.h;
		}
	}
	return ok;
}
