/* SPDX-License-Identifier: BSD-3-Clause */

// Workloads: named flows and generators of flows between the built-in NICs.

#include <string.h>

#include "emu/scenario/loader.h"

#define BYTES_DEFAULT (1 << 20)
#define BYTES_MAX     (INT64_C(1) << 31) // longest RDMA message
#define ATOMIC_BYTES  8

// ---- reachability: connected parts of the fabric, hosts do not forward ------------------------

static uint32_t root_of(uint32_t *up, uint32_t i)
{
	while (up[i] != i) {
		up[i] = up[up[i]];
		i = up[i];
	}
	return i;
}

static void find_parts(struct loader *l)
{
	const struct scenario *s = l->s;

	l->part = arena_alloc(l->a, s->n_nodes * sizeof(*l->part));
	for (uint32_t i = 0; i < s->n_nodes; i++)
		l->part[i] = i;
	for (uint32_t i = 0; i < s->n_links; i++) {
		const struct sc_end *e = s->links[i].end;
		if (!sc_is_host(s, e[0].node) && !sc_is_host(s, e[1].node))
			l->part[root_of(l->part, e[0].node)] = root_of(l->part, e[1].node);
	}
}

static bool reachable(struct loader *l, uint32_t from, uint32_t to)
{
	const struct scenario *s = l->s;
	const struct sc_endpoint *a = &s->endpoints[from], *b = &s->endpoints[to];
	uint32_t pa = sc_peer(s, a->node, a->port).node, pb = sc_peer(s, b->node, b->port).node;

	if (sc_is_host(s, pa) || sc_is_host(s, pb))
		return pa == b->node && pb == a->node; // back to back
	return root_of(l->part, pa) == root_of(l->part, pb);
}

// ---- flows ------------------------------------------------------------------------------------

struct work {
	struct loader *l;
	struct work_in in;
	struct ynode *at; // the entry
	const char *name;
};

// "h1", or "h1_eth1" for a port that is not the first.
static const char *endpoint_word(struct loader *l, uint32_t endpoint)
{
	const struct sc_endpoint *e = &l->s->endpoints[endpoint];
	const struct sc_node *n = &l->s->nodes[e->node];

	return e->port == 0 ? n->name
			    : arena_printf(l->a, "%s_%s", n->name, n->ports[e->port].name);
}

static const struct sc_qos *qos_near(const struct scenario *s, uint32_t endpoint)
{
	const struct sc_endpoint *e = &s->endpoints[endpoint];
	struct sc_end peer = sc_peer(s, e->node, e->port);

	return sc_is_host(s, peer.node) ? &s->qos[0]
					: &s->qos[s->nodes[peer.node].ports[peer.port].qos];
}

static bool choose_class(struct work *w, struct sc_flow *f)
{
	const struct sc_qos *q = qos_near(w->l->s, f->src);

	f->dscp = (uint8_t)w->in.dscp;
	if (w->in.priority != SC_UNSET) {
		unsigned p = (unsigned)w->in.priority, d = 0;

		while (q->dscp_to_tc[d] != p && d + 1 < SC_DSCPS)
			d++;
		f->dscp = (uint8_t)(q->dscp_to_tc[p] == p ? p : d);
		if (q->dscp_to_tc[f->dscp] != p) {
			diag_key(&w->l->d, w->at, "priority",
				"no DSCP maps to traffic class %u in profile %s", p, q->name);
			return false;
		}
	}
	if (q->trust == SC_TRUST_DSCP && !f->roce1)
		f->priority = q->dscp_to_tc[f->dscp];
	else
		f->priority = f->pcp == SC_UNSET ? q->default_tc : q->pcp_to_tc[f->pcp];
	return true;
}

static bool add_flow(struct work *w, uint32_t src, uint32_t dst, const char *name)
{
	struct loader *l = w->l;
	struct scenario *s = l->s;
	struct sc_flow f = w->in.f;

	f.src = src;
	f.dst = dst;
	f.name = name != NULL ? name
			      : arena_printf(l->a, "%s-%s-%s", w->name, endpoint_word(l, src),
					endpoint_word(l, dst));
	if (s->n_flows == FLOWS_MAX) {
		diag_at(&l->d, w->at, "makes more than %u flows", FLOWS_MAX);
		return false;
	}
	if (!reachable(l, src, dst)) {
		diag_at(&l->d, w->at, "%s is not reachable from %s, expected links between them",
			endpoint_word(l, dst), endpoint_word(l, src));
		return false;
	}
	if (f.ipv6 && (!s->endpoints[src].has_ip6 || !s->endpoints[dst].has_ip6)) {
		diag_key(&l->d, w->at, "ipv6", "%s has no IPv6 address",
			endpoint_word(l, s->endpoints[src].has_ip6 ? dst : src));
		return false;
	}
	if (!choose_class(w, &f))
		return false;
	if (f.ttl == 0)
		f.ttl = sc_host_of(s, s->endpoints[src].node)->nic.ttl;
	if (!names_add(&l->flow_names, f.name, s->n_flows)) {
		diag_at(&l->d, w->at, "a flow is named '%.60s' already", f.name);
		return false;
	}
	s->flows = arena_grow(l->a, s->flows, s->n_flows, sizeof(*s->flows));
	s->flows[s->n_flows++] = f;
	return true;
}

// ---- generators -------------------------------------------------------------------------------

struct endpoint_list {
	uint32_t *of;
	uint32_t n;
};

static bool is_nic(const struct scenario *s, uint32_t endpoint)
{
	return sc_host_of(s, s->endpoints[endpoint].node)->kind == SC_HOST_NIC;
}

static uint32_t nic_ref(struct loader *l, const struct ynode *v)
{
	uint32_t e = ref_endpoint(l, v);

	if (e != SC_NONE && !is_nic(l->s, e)) {
		diag_at(&l->d, v,
			"'%.60s' is not a built-in NIC, expected a host without attach or "
			"replay",
			v->text);
		return SC_NONE;
	}
	return e;
}

// The hosts of a list, or every NIC endpoint except `but` when there is none.
static bool nic_list(struct loader *l, struct ynode *v, uint32_t but, struct endpoint_list *list)
{
	uint32_t n = v != NULL ? list_count(v) : l->s->n_endpoints;

	list->of = arena_alloc(l->a, n * sizeof(*list->of));
	list->n = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t e = i;

		if (v != NULL) {
			e = nic_ref(l, list_item(v, i));
			if (e == SC_NONE)
				return false;
			for (uint32_t k = 0; k < list->n; k++)
				if (list->of[k] == e || e == but) {
					diag_at(&l->d, list_item(v, i), "is named twice");
					return false;
				}
		} else if (e == but || !is_nic(l->s, e)) {
			continue;
		}
		list->of[list->n++] = e;
	}
	return true;
}

static uint32_t need_nic(struct work *w, const char *key, const struct ynode *v)
{
	if (v != NULL)
		return nic_ref(w->l, v);
	diag_key(&w->l->d, w->at, key, "missing, expected the name of a host");
	return SC_NONE;
}

static bool same_host(const struct work *w, uint32_t a, uint32_t b)
{
	return w->l->s->endpoints[a].node == w->l->s->endpoints[b].node;
}

static bool same_end(struct work *w)
{
	diag_key(&w->l->d, w->at, "dst", "is the source itself, expected another host");
	return false;
}

static bool make_flow(struct work *w)
{
	uint32_t src = need_nic(w, "src", w->in.src);
	uint32_t dst = src != SC_NONE ? need_nic(w, "dst", w->in.dst) : SC_NONE;

	if (dst == SC_NONE)
		return false;
	if (same_host(w, src, dst))
		return same_end(w);
	return add_flow(w, src, dst, w->name);
}

static bool make_incast(struct work *w)
{
	uint32_t dst = need_nic(w, "dst", w->in.dst);
	struct endpoint_list src;

	if (dst == SC_NONE || !nic_list(w->l, w->in.src, dst, &src))
		return false;
	if (src.n == 0 || w->in.fanin > src.n) {
		diag_key(&w->l->d, w->at, w->in.fanin > src.n ? "fanin" : "src",
			"only %u senders, expected more hosts", src.n);
		return false;
	}
	for (uint32_t i = 0; i < (w->in.fanin != 0 ? w->in.fanin : src.n); i++) {
		if (same_host(w, src.of[i], dst))
			return same_end(w);
		if (!add_flow(w, src.of[i], dst, NULL))
			return false;
	}
	return true;
}

static bool make_permutation(struct work *w)
{
	struct endpoint_list h;

	if (!nic_list(w->l, w->in.hosts, SC_NONE, &h))
		return false;
	if (h.n < 2 || w->in.shift % h.n == 0) {
		diag_key(&w->l->d, w->at, "shift",
			"%u among %u hosts sends to oneself, expected "
			"another shift",
			w->in.shift, h.n);
		return false;
	}
	for (uint32_t i = 0; i < h.n; i++) {
		uint32_t to = h.of[(i + w->in.shift) % h.n];

		if (same_host(w, h.of[i], to)) {
			diag_key(&w->l->d, w->at, "shift",
				"makes %s send to itself, expected another",
				endpoint_word(w->l, to));
			return false;
		}
		if (!add_flow(w, h.of[i], to, NULL))
			return false;
	}
	return true;
}

static bool make_all_to_all(struct work *w)
{
	struct endpoint_list h;

	if (!nic_list(w->l, w->in.hosts, SC_NONE, &h))
		return false;
	if (h.n < 2) {
		diag_key(&w->l->d, w->at, "hosts", "%u host, expected two or more", h.n);
		return false;
	}
	for (uint32_t i = 0; i < h.n; i++)
		for (uint32_t j = 0; j < h.n; j++)
			if (!same_host(w, h.of[i], h.of[j]) && !add_flow(w, h.of[i], h.of[j], NULL))
				return false;
	return true;
}

// ---- entries ----------------------------------------------------------------------------------

// Keys that mean nothing for the type are mistakes.
static bool check_keys(struct work *w)
{
	static const struct {
		const char *key;
		unsigned types; // bit by enum work_type
	} only[] = {{"src", 1 << WORK_FLOW | 1 << WORK_INCAST},
		{"dst", 1 << WORK_FLOW | 1 << WORK_INCAST},
		{"hosts", 1 << WORK_PERMUTATION | 1 << WORK_ALL_TO_ALL},
		{"fanin", 1 << WORK_INCAST}, {"shift", 1 << WORK_PERMUTATION}};

	for (size_t i = 0; i < sizeof(only) / sizeof(only[0]); i++) {
		if (ynode_get(w->at, only[i].key) == NULL || (only[i].types >> w->in.type & 1))
			continue;
		diag_key(&w->l->d, w->at, only[i].key,
			"has no meaning for this type, expected it with another `type`");
		return false;
	}
	if (w->in.priority != SC_UNSET && ynode_get(w->at, "dscp") != NULL) {
		diag_key(&w->l->d, w->at, "priority", "is given together with dscp, expected one");
		return false;
	}
	return true;
}

static bool read_bytes(struct work *w)
{
	struct work_in *in = &w->in;
	bool atomic = wr_is_rd_atomic(in->f.op) && in->f.op != WR_READ;
	int64_t bytes = atomic ? ATOMIC_BYTES : BYTES_DEFAULT;

	if (in->bytes != NULL && !schema_number(w->l, in->bytes, Q_SIZE, 1, BYTES_MAX, &bytes))
		return false;
	if (atomic && bytes != ATOMIC_BYTES) {
		diag_key(&w->l->d, w->at, "bytes", "is not what an atomic works on, expected %dB",
			ATOMIC_BYTES);
		return false;
	}
	in->f.bytes = (uint64_t)bytes;
	return true;
}

static bool finish_input(struct work *w)
{
	struct work_in *in = &w->in;

	if (!transport_carries(w->l, w->at, &in->f) || !read_bytes(w))
		return false;
	in->f.messages = in->messages != SC_AUTO ? in->messages : in->bytes != NULL ? 1 : 0;
	in->f.on_demand = in->f.start == SIMTIME_NEVER;
	if (in->f.on_demand)
		in->f.start = 0;
	in->f.open = in->f.messages == 0;
	if (in->f.stop <= in->f.start) {
		diag_key(&w->l->d, w->at, "stop", "is not after start");
		return false;
	}
	if (in->f.udp_sport != 0 && in->f.udp_sport + in->f.qps - 1 > UINT16_MAX) {
		diag_key(&w->l->d, w->at, "udp_sport", "leaves no room for %u QPs below 65536",
			in->f.qps);
		return false;
	}
	return true;
}

static bool load_workload(struct loader *l, const char *name, struct ynode *v)
{
	static bool (*const make[])(struct work * w) = {[WORK_FLOW] = make_flow,
		[WORK_INCAST] = make_incast,
		[WORK_PERMUTATION] = make_permutation,
		[WORK_ALL_TO_ALL] = make_all_to_all};
	struct work w = {.l = l, .at = v, .name = name};

	schema_defaults(&sec_workload, &w.in);
	w.in.messages = SC_AUTO;
	w.in.priority = SC_UNSET;
	w.in.f.workload = l->n_works;
	w.in.f.pos = pos_of(v);
	if (!check_name(l, v, name) || !schema_apply(l, &sec_workload, v, &w.in) ||
		!check_keys(&w) || !finish_input(&w))
		return false;

	uint32_t first = l->s->n_flows;
	if (!make[w.in.type](&w))
		return false;
	l->works = arena_grow(l->a, l->works, l->n_works, sizeof(*l->works));
	l->work_list = arena_grow(l->a, l->work_list, l->n_works, sizeof(*l->work_list));
	l->works[l->n_works] = (struct work_range){.first = first, .n = l->s->n_flows - first};
	l->work_list[l->n_works] = name;
	names_add(&l->work_names, name, l->n_works++);
	return true;
}

bool load_workloads(struct loader *l, struct ynode *workloads)
{
	bool ok = true;

	find_parts(l);
	if (workloads == NULL || ynode_is_null(workloads))
		return true;
	if (workloads->kind != Y_MAP) {
		diag_at(&l->d, workloads, "is %s, expected a mapping of workloads by name",
			ynode_kind_name(workloads));
		return false;
	}
	for (uint32_t i = 0; i < workloads->n && !diag_full(&l->d); i++)
		ok = load_workload(l, workloads->pairs[i].key->text, workloads->pairs[i].value) &&
		     ok;
	return ok;
}
