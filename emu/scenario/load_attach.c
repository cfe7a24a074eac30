/* SPDX-License-Identifier: BSD-3-Clause */

// Hosts that are not built-in NICs: real endpoints and replayed captures.

#include <string.h>

#include "emu/scenario/loader.h"

bool read_nic_pfc(struct loader *l, struct ynode *v, void *object)
{
	struct sc_nic *nic = object;
	bool b;

	if (v->kind == Y_LIST)
		return read_prio_mask(l, v, &nic->pfc_rx);
	if (!schema_bool(l, v, &b))
		return false;
	nic->pfc_rx = b ? 0xff : 0;
	return true;
}

bool read_run(struct loader *l, struct ynode *v, void *object)
{
	struct sc_attach *a = object;
	uint32_t n = list_count(v);
	struct sc_run *run = arena_alloc(l->a, n * sizeof(*run));

	for (uint32_t i = 0; i < n; i++) {
		struct ynode *item = list_item(v, i);
		struct run_in in = {0};

		schema_defaults(&sec_run, &in);
		if (item->kind == Y_SCALAR && !ynode_is_null(item))
			in.r.command = item->text;
		else if (!schema_apply(l, &sec_run, item, &in) ||
			 !schema_require(l, &sec_run, item))
			return false;
		run[i] = in.r;
		run[i].pos = pos_of(item);
	}
	a->run = run;
	a->n_run = n;
	return true;
}

bool read_env(struct loader *l, struct ynode *v, void *object)
{
	struct sc_attach *a = object;

	if (v->kind != Y_MAP) {
		diag_at(&l->d, v, "is %s, expected a mapping such as {NAME: value}",
			ynode_kind_name(v));
		return false;
	}
	const char **env = arena_alloc(l->a, v->n * sizeof(*env));
	for (uint32_t i = 0; i < v->n; i++) {
		const struct ynode *value = v->pairs[i].value;

		if (value->kind != Y_SCALAR || strchr(v->pairs[i].key->text, '=') != NULL) {
			diag_at(&l->d, value, "expected a name without '=' and a plain value");
			return false;
		}
		env[i] = arena_printf(l->a, "%s=%s", v->pairs[i].key->text, value->text);
	}
	a->env = env;
	a->n_env = v->n;
	return true;
}

// What a kind cannot do without, and what belongs to other kinds.
static bool check_attach(struct loader *l, const struct ynode *v, const struct sc_attach *a)
{
	bool runs = a->kind == SC_ATTACH_GUEST || a->kind == SC_ATTACH_NETNS;

	if (a->kind == SC_ATTACH_NETDEV && a->ifname == NULL) {
		diag_key(&l->d, v, "ifname", "missing, expected the interface to attach");
		return false;
	}
	if (a->kind == SC_ATTACH_DPDK && a->devargs == NULL) {
		diag_key(&l->d, v, "devargs",
			"missing, expected DPDK device arguments such as "
			"net_af_packet0,iface=eth1");
		return false;
	}
	if (a->n_run > 0 && !runs) {
		diag_key(
			&l->d, v, "run", "nothing runs in this kind, expected kind guest or netns");
		return false;
	}
	if (a->ifname != NULL && strlen(a->ifname) > 15) {
		diag_key(&l->d, v, "ifname", "'%.40s' is too long, expected at most 15 letters",
			a->ifname);
		return false;
	}
	return true;
}

bool read_attach(struct loader *l, struct ynode *v, void *object)
{
	struct host_in *in = object;

	if (ynode_get(v->parent, "replay") != NULL) {
		diag_at(&l->d, v, "is given together with replay, expected one of them");
		return false;
	}
	in->h.kind = SC_HOST_ATTACH;
	in->h.attach = l->def.attach;
	if (!schema_apply(l, &sec_attach, v, &in->h.attach))
		return false;
	const struct ynode *common = ynode_get(ynode_get(l->root, "defaults"), "attach");
	if (ynode_get(common, "kind") == NULL && !schema_require(l, &sec_attach, v))
		return false;
	return check_attach(l, v, &in->h.attach);
}

bool read_replay(struct loader *l, struct ynode *v, void *object)
{
	struct host_in *in = object;
	struct sc_replay *r = &in->h.replay;

	in->h.kind = SC_HOST_REPLAY;
	schema_defaults(&sec_replay, r);
	if (v->kind == Y_SCALAR && !ynode_is_null(v))
		r->file = v->text; // `replay: FILE`
	else if (!schema_apply(l, &sec_replay, v, r) || !schema_require(l, &sec_replay, v))
		return false;
	if (r->file[0] != '/')
		r->file = arena_printf(l->a, "%s%s", l->dir, r->file);
	if (r->loops == 0 && l->s->duration == 0) {
		diag_at(&l->d, v,
			"is endless in a run without end, expected `duration:` at the top");
		return false;
	}
	return true;
}
