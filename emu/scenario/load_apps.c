/* SPDX-License-Identifier: BSD-3-Clause */

// Applications of built-in NICs. Names are the scenario's own, not the host's: expectations and
// results speak of them.

#include <string.h>

#include "emu/scenario/loader.h"

static bool within(struct loader *l, const struct ynode *map, const char *key, uint32_t value,
	uint32_t min, uint32_t max, const char *program)
{
	if (value >= min && value <= max)
		return true;
	diag_key(&l->d, map, key, "is %u, expected %u to %u for %s", value, min, max, program);
	return false;
}

// The program's own figures where the scenario says nothing, and its limits.
static bool resolve_figures(struct loader *l, const struct ynode *map, struct app_in *in)
{
	enum app_kind kind = (enum app_kind)in->kind;
	struct app_limits limits = app_limits(kind);
	struct app_config def;

	app_config_default(kind, &def);
	in->a.port = (uint16_t)(in->port != 0 ? in->port : def.port);
	in->a.size = in->size != 0 ? in->size : def.size;
	in->a.count = in->count != UINT32_MAX ? in->count : def.count;
	return within(l, map, "size", in->a.size, limits.size_min, limits.size_max,
		       app_name(kind)) &&
	       within(l, map, "count", in->a.count, limits.count_min, limits.count_max,
		       app_name(kind));
}

static bool resolve_peer(struct loader *l, const struct ynode *map, struct app_in *in)
{
	bool server = app_is_server((enum app_kind)in->kind);

	in->a.peer = SC_NONE;
	if (server && in->peer == NULL)
		return true;
	if (server || in->peer == NULL) {
		diag_key(&l->d, map, server ? "peer" : "type",
			server ? "is for clients, expected none with %s"
			       : "is %s, a client, expected a `peer` too",
			app_name((enum app_kind)in->kind));
		return false;
	}
	in->a.peer = ref_endpoint(l, in->peer);
	if (in->a.peer == SC_NONE)
		return false;
	const struct sc_endpoint *e = &l->s->endpoints[in->a.peer];
	if (sc_host_of(l->s, e->node)->kind == SC_HOST_REPLAY) {
		diag_at(&l->d, in->peer, "is a replayed capture, expected a host that can answer");
		return false;
	}
	if (in->a.ipv6 ? e->has_ip6 : e->ip4 != 0)
		return true;
	diag_at(&l->d, in->peer, "has no %s address", in->a.ipv6 ? "IPv6" : "IPv4");
	return false;
}

// Where it runs, and that its packets pass there.
static bool resolve_port(struct loader *l, const struct ynode *map, struct app_in *in)
{
	const struct scenario *s = l->s;
	const struct sc_node *n = &s->nodes[in->a.node];
	const struct sc_port *p = &n->ports[0];

	if (in->interface != NULL)
		p = find_port(s, in->a.node, in->interface);
	if (p == NULL) {
		diag_key(&l->d, map, "interface", "'%.40s' is no port of %s, expected %s to %s",
			in->interface, n->name, n->ports[0].name, n->ports[n->n_ports - 1].name);
		return false;
	}
	in->a.iface = (uint16_t)(p - n->ports);
	in->a.mtu =
		(uint16_t)(in->mtu != 0 ? (uint32_t)in->mtu : sc_host_of(s, in->a.node)->nic.mtu);
	// rxe's allowance for headers: what a kernel endpoint computes its path MTU with.
	if (in->a.mtu + 80u > s->links[p->link].mtu) {
		diag_key(&l->d, map, "mtu",
			"is %u, which with headers does not fit the MTU %u of link %s", in->a.mtu,
			s->links[p->link].mtu, s->links[p->link].name);
		return false;
	}
	if (in->a.ipv6 ? s->endpoints[p->endpoint].has_ip6 : s->endpoints[p->endpoint].ip4 != 0)
		return true;
	diag_key(&l->d, map, "ipv6", "asks for an address that %s does not have", n->name);
	return false;
}

static bool load_app(struct loader *l, uint32_t node, const struct ynode *name, struct ynode *map)
{
	struct app_in in = {0};

	if (!check_name(l, name, name->text))
		return false;
	schema_defaults(&sec_app, &in);
	if (!schema_apply(l, &sec_app, map, &in) || !schema_require(l, &sec_app, map))
		return false;
	in.a.name = name->text;
	in.a.node = node;
	in.a.kind = (uint8_t)in.kind;
	in.a.dscp = (uint8_t)in.dscp;
	in.a.priority = l->s->qos[0].dscp_to_tc[in.dscp];
	in.a.pos = pos_of(name);
	if (!resolve_figures(l, map, &in) || !resolve_port(l, map, &in) ||
		!resolve_peer(l, map, &in))
		return false;
	if (!names_add(&l->app_names, name->text, l->s->n_apps)) {
		diag_at(&l->d, name, "'%s' exists already, expected a name of its own", name->text);
		return false;
	}
	l->s->apps = arena_grow(l->a, l->s->apps, l->s->n_apps, sizeof(*l->s->apps));
	l->s->apps[l->s->n_apps++] = in.a;
	return true;
}

static bool load_host(struct loader *l, uint32_t node, struct ynode *apps)
{
	const struct sc_node *n = &l->s->nodes[node];
	bool ok = true;

	if (apps->kind != Y_MAP) {
		diag_at(&l->d, apps, "is %s, expected {NAME: section}", ynode_kind_name(apps));
		return false;
	}
	if (sc_host_of(l->s, node)->kind != SC_HOST_NIC) {
		diag_at(&l->d, apps,
			"is for built-in NICs; %s is none (its own programs are in "
			"attach.run)",
			n->name);
		return false;
	}
	if (apps->n > NIC_APPS_MAX) {
		diag_at(&l->d, apps, "has %u applications, expected at most %u", apps->n,
			NIC_APPS_MAX);
		return false;
	}
	for (uint32_t i = 0; i < apps->n && !diag_full(&l->d); i++)
		ok = load_app(l, node, apps->pairs[i].key, apps->pairs[i].value) && ok;
	return ok;
}

bool load_apps(struct loader *l)
{
	bool ok = true;

	names_init(&l->app_names, l->a);
	for (uint32_t i = 0; i < l->n_nodes && !diag_full(&l->d); i++)
		if (!l->nodes[i].is_switch && l->nodes[i].host.apps != NULL)
			ok = load_host(l, i, l->nodes[i].host.apps) && ok;
	return ok;
}
