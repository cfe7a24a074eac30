/* SPDX-License-Identifier: BSD-3-Clause */

// Topology generators. They make nodes and links as if written one by one, in an order that keeps
// port numbers predictable: a switch's host ports come first (eth0, ...), then its uplinks in the
// order of the upper switches; an upper switch's ports are in the order of the lower ones.

#include <string.h>

#include "emu/scenario/loader.h"

static uint32_t gen_node(struct loader *l, const struct topo_in *t, bool is_switch,
	const char *word, uint32_t number)
{
	return add_node(l, arena_printf(l->a, "%s%s%u", t->prefix, word, number), is_switch, NULL);
}

static void gen_link(
	struct loader *l, uint32_t a, uint32_t b, const struct link_in *props, uint32_t parallel)
{
	for (uint32_t i = 0; i < parallel; i++) {
		l->gen_links =
			arena_grow(l->a, l->gen_links, l->n_gen_links, sizeof(*l->gen_links));
		l->gen_links[l->n_gen_links++] =
			(struct gen_link){.node = {a, b}, .props = props->l};
	}
}

// Hosts numbered first, first+1, ... on one switch. False after an error.
static bool gen_hosts(
	struct loader *l, const struct topo_in *t, uint32_t sw, uint32_t first, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t h = gen_node(l, t, false, "h", first + i);
		if (h == SC_NONE)
			return false;
		gen_link(l, sw, h, &t->host_link, 1);
	}
	return true;
}

static bool gen_star(struct loader *l, const struct topo_in *t)
{
	uint32_t sw = gen_node(l, t, true, "sw", 1);
	return sw != SC_NONE && gen_hosts(l, t, sw, 1, t->hosts);
}

static bool gen_ring(struct loader *l, const struct topo_in *t)
{
	uint32_t first = l->n_nodes; // the switches are the first t->switches nodes made here

	for (uint32_t i = 0; i < t->switches; i++)
		if (gen_node(l, t, true, "sw", i + 1) == SC_NONE)
			return false;
	for (uint32_t i = 0; i < t->switches; i++)
		if (!gen_hosts(l, t, first + i, 1 + i * t->hosts_per_switch, t->hosts_per_switch))
			return false;
	for (uint32_t i = 0; i < t->switches; i++)
		gen_link(l, first + i, first + (i + 1) % t->switches, &t->fabric_link, t->parallel);
	return true;
}

static bool gen_leaf_spine(struct loader *l, const struct topo_in *t)
{
	uint32_t first = l->n_nodes;

	for (uint32_t i = 0; i < t->leaves; i++)
		if (gen_node(l, t, true, "leaf", i + 1) == SC_NONE)
			return false;
	for (uint32_t i = 0; i < t->spines; i++)
		if (gen_node(l, t, true, "spine", i + 1) == SC_NONE)
			return false;
	for (uint32_t i = 0; i < t->leaves; i++) {
		if (!gen_hosts(l, t, first + i, 1 + i * t->hosts_per_switch, t->hosts_per_switch))
			return false;
		for (uint32_t s = 0; s < t->spines; s++)
			gen_link(l, first + i, first + t->leaves + s, &t->fabric_link, t->parallel);
	}
	return true;
}

// Al-Fares, Loukissas, Vahdat, SIGCOMM 2008: pod p's agg switch a is joined to core switches
// a*k/2 .. (a+1)*k/2 - 1.
static bool gen_fat_tree(struct loader *l, const struct topo_in *t)
{
	uint32_t half = t->k / 2, first = l->n_nodes;
	uint32_t edge = first, agg = edge + t->k * half, core = agg + t->k * half;

	for (uint32_t i = 0; i < t->k * half; i++)
		if (gen_node(l, t, true, "edge", i + 1) == SC_NONE)
			return false;
	for (uint32_t i = 0; i < t->k * half; i++)
		if (gen_node(l, t, true, "agg", i + 1) == SC_NONE)
			return false;
	for (uint32_t i = 0; i < half * half; i++)
		if (gen_node(l, t, true, "core", i + 1) == SC_NONE)
			return false;
	for (uint32_t i = 0; i < t->k * half; i++) {
		uint32_t pod = i / half;

		if (!gen_hosts(l, t, edge + i, 1 + i * half, half))
			return false;
		for (uint32_t j = 0; j < half; j++)
			gen_link(l, edge + i, agg + pod * half + j, &t->fabric_link, t->parallel);
	}
	for (uint32_t i = 0; i < t->k * half; i++)
		for (uint32_t j = 0; j < half; j++)
			gen_link(l, agg + i, core + i % half * half + j, &t->fabric_link,
				t->parallel);
	return true;
}

static bool generate(struct loader *l, const struct section *sec, struct ynode *v,
	bool (*gen)(struct loader *l, const struct topo_in *t))
{
	struct topo_in t = {0};

	if (v == NULL)
		return true;
	schema_defaults(sec, &t);
	t.host_link = t.fabric_link = l->def.link;
	if (!schema_apply(l, sec, v, &t) || !schema_require(l, sec, v))
		return false;
	if (sec == &sec_fat_tree && t.k % 2 != 0) {
		diag_key(&l->d, v, "k", "%u is odd, expected an even number of ports", t.k);
		return false;
	}
	uint64_t nodes = (uint64_t)t.switches * (1 + t.hosts_per_switch) +
			 (uint64_t)t.leaves * (1 + t.hosts_per_switch) + t.spines + t.hosts +
			 (uint64_t)t.k * t.k * 5 / 4 + (uint64_t)t.k * t.k * t.k / 4;
	uint64_t links = nodes + ((uint64_t)t.leaves * t.spines + t.switches +
					 (uint64_t)t.k * t.k * t.k / 2) *
					 t.parallel;
	if (nodes + l->n_nodes > NODES_MAX || links > LINKS_MAX) {
		diag_at(&l->d, v, "makes more than %u nodes or %u links", NODES_MAX, LINKS_MAX);
		return false;
	}
	return gen(l, &t);
}

bool load_topology(struct loader *l, struct ynode *topology)
{
	struct topologies_in in = {0};

	if (topology == NULL)
		return true;
	return schema_apply(l, &sec_topology, topology, &in) &&
	       generate(l, &sec_star, in.star, gen_star) &&
	       generate(l, &sec_ring, in.ring, gen_ring) &&
	       generate(l, &sec_leaf_spine, in.leaf_spine, gen_leaf_spine) &&
	       generate(l, &sec_fat_tree, in.fat_tree, gen_fat_tree);
}
