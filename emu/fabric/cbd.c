/* SPDX-License-Identifier: BSD-3-Clause */
// Marks are what switches can tell apart in a frame: 64 DSCPs, with or without one of 8 PCPs, and
// RoCE v1, which has a PCP at most. Those that all profiles treat alike are one, so a handful is
// left.

#include "emu/fabric/cbd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "emu/fabric/buffers.h"
#include "emu/fabric/levels.h"
#include "models/qos_map.h"

#define TAGS  (1 + SC_PRIOS) // untagged, or a PCP
#define ROCE1 (SC_DSCPS * TAGS)
#define MARKS (ROCE1 + TAGS)

struct cbd {
	const struct scenario *s;
	struct bdg_fabric any, workload;
	struct bdg_switch *sw;
	struct bdg_port *ports;
	struct bdg_class *classes; // [n_qos][n_marks]
	uint8_t *level;
	uint32_t *scratch; // [n_switches]
	struct bdg_next *next;
	struct bdg_from *from; // [n_from] of one destination, switch by switch
	uint32_t n_from;
	struct sc_end *at;    // [n_endpoints] the other end of an endpoint's link
	uint16_t kind[MARKS]; // mark -> number among the distinct ones
	uint16_t n_kinds;
	uint16_t first_of[MARKS]; // number -> one such mark
	bool roce1;               // some traffic may be RoCE v1
};

static unsigned mark_of(unsigned dscp, int pcp, bool roce1)
{
	unsigned tag = pcp == SC_UNSET ? 0 : 1 + (unsigned)pcp;

	return roce1 ? ROCE1 + tag : dscp * TAGS + tag;
}

static uint8_t tc_of(const struct sc_qos *q, unsigned mark)
{
	unsigned tag = mark >= ROCE1 ? mark - ROCE1 : mark % TAGS;

	if (mark < ROCE1 && q->trust == SC_TRUST_DSCP)
		return q->dscp_to_tc[mark / TAGS];
	return tag == 0 ? q->default_tc : q->pcp_to_tc[tag - 1];
}

static unsigned bounced(const struct sc_qos *q, unsigned mark)
{
	return mark >= ROCE1 ? mark : q->bounce[mark / TAGS] * TAGS + mark % TAGS;
}

// The same to every profile, now and after a bounce.
static bool alike(const struct scenario *s, unsigned a, unsigned b)
{
	for (uint32_t i = 0; i < s->n_qos; i++) {
		const struct sc_qos *q = &s->qos[i];
		unsigned after_a = bounced(q, a), after_b = bounced(q, b);
		bool both_keep = after_a == a && after_b == b;
		if (tc_of(q, a) != tc_of(q, b) || (after_a != after_b && !both_keep))
			return false;
	}
	return true;
}

static void number_marks(struct cbd *c)
{
	for (unsigned m = 0; m < MARKS; m++) {
		uint16_t k = 0;
		while (k < c->n_kinds && !alike(c->s, c->first_of[k], m))
			k++;
		if (k == c->n_kinds)
			c->first_of[c->n_kinds++] = (uint16_t)m;
		c->kind[m] = k;
	}
}

static int make_classes(struct cbd *c)
{
	c->classes = calloc((size_t)c->s->n_qos * c->n_kinds + 1, sizeof(*c->classes));
	if (c->classes == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->s->n_qos; i++)
		for (uint16_t k = 0; k < c->n_kinds; k++) {
			const struct sc_qos *q = &c->s->qos[i];
			uint8_t tc = tc_of(q, c->first_of[k]);
			uint16_t after = c->kind[bounced(q, c->first_of[k])];
			c->classes[i * c->n_kinds + k] = (struct bdg_class){
				.pg = q->tc_to_pg[tc],
				.queue = q->tc_to_queue[tc],
				.bounced = after,
			};
			c->any.by_mark = c->any.by_mark || after != k;
		}
	return 0;
}

// PGs of the peer's port whose XOFF stops each queue of this port.
static void find_gates(const struct scenario *s, uint32_t sw, uint16_t port, struct bdg_port *p)
{
	struct sc_end peer = sc_peer(s, sw, port);
	struct qos_map here, there;

	qos_map_default(&here); // priorities to queues and PGs: no scenario changes these
	qos_map_default(&there);
	uint8_t paused = port_pfc_rx(s, sw, port) & port_pfc_tx(s, peer.node, peer.port);
	for (unsigned prio = 0; prio < SC_PRIOS; prio++)
		if (paused >> prio & 1)
			p->gates[here.pfc_to_queue[prio]] |= (uint8_t)(1u << there.pfc_to_pg[prio]);
}

static void make_port(struct cbd *c, uint32_t sw, uint16_t port, struct bdg_port *p)
{
	struct sc_end peer = sc_peer(c->s, sw, port);

	*p = (struct bdg_port){.peer = BDG_NONE, .up = level_is_up(c->s, c->level, sw, port)};
	for (unsigned pg = 0; pg < SC_PRIOS; pg++)
		if (pg_profile(c->s, sw, port, pg).lossless)
			p->lossless |= (uint8_t)(1u << pg);
	if (sc_is_host(c->s, peer.node))
		return;
	p->peer = peer.node;
	p->peer_port = peer.port;
	find_gates(c->s, sw, port, p);
	uint8_t lossless = 0; // a lossy PG never asserts XOFF
	for (unsigned pg = 0; pg < SC_PRIOS; pg++)
		if (pg_profile(c->s, peer.node, peer.port, pg).lossless)
			lossless |= (uint8_t)(1u << pg);
	for (unsigned q = 0; q < SC_PRIOS; q++)
		p->gates[q] &= lossless;
}

int cbd_create(const struct scenario *s, struct cbd **out)
{
	struct cbd *c = calloc(1, sizeof(*c));
	size_t n_ports = 0, at = 0;

	if (c == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n_switches; i++)
		n_ports += s->nodes[i].n_ports;
	c->s = s;
	c->sw = calloc(s->n_switches + 1, sizeof(*c->sw));
	c->ports = calloc(n_ports + 1, sizeof(*c->ports));
	c->level = calloc(s->n_switches + 1, sizeof(*c->level));
	c->scratch = calloc(s->n_switches + 1, sizeof(*c->scratch));
	c->next = calloc(s->n_switches + 1, sizeof(*c->next));
	for (uint32_t i = 0; i < s->n_routes; i++)
		c->n_from += s->routes[i].n_from * s->routes[i].n_endpoints;
	for (uint32_t i = 0; i < s->n_events; i++)
		c->n_from += s->events[i].route.n_from * s->events[i].route.n_endpoints;
	c->from = calloc(c->n_from + 1, sizeof(*c->from));
	c->at = calloc(s->n_endpoints + 1, sizeof(*c->at));
	number_marks(c);
	if (!c->sw || !c->ports || !c->level || !c->scratch || !c->next || !c->at || !c->from ||
		make_classes(c) < 0) {
		cbd_free(c);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < s->n_endpoints; i++)
		c->at[i] = sc_peer(s, s->endpoints[i].node, s->endpoints[i].port);
	c->roce1 = !cbd_workload_is_known(c);
	for (uint32_t i = 0; i < s->n_flows; i++)
		c->roce1 = c->roce1 || s->flows[i].roce1;
	levels_find(s, c->level, c->scratch);
	for (uint32_t i = 0; i < s->n_switches; at += s->nodes[i++].n_ports) {
		c->sw[i] = (struct bdg_switch){
			.n_ports = s->nodes[i].n_ports,
			.port = c->ports + at,
			.class = c->classes + (size_t)s->switches[i].qos * c->n_kinds,
		};
		for (uint16_t p = 0; p < s->nodes[i].n_ports; p++)
			make_port(c, i, p, &c->sw[i].port[p]);
	}
	c->any.n_switches = s->n_switches;
	c->any.sw = c->sw;
	c->any.n_marks = c->n_kinds;
	c->workload = c->any;
	c->workload.by_mark = true;
	*out = c;
	return 0;
}

void cbd_free(struct cbd *c)
{
	if (c == NULL)
		return;
	free(c->sw);
	free(c->ports);
	free(c->classes);
	free(c->level);
	free(c->scratch);
	free(c->next);
	free(c->at);
	free(c->from);
	free(c);
}

const struct bdg_fabric *cbd_any_fabric(const struct cbd *c)
{
	return &c->any;
}

const struct bdg_fabric *cbd_workload_fabric(const struct cbd *c)
{
	return &c->workload;
}

void cbd_set_links(struct cbd *c, const bool *link_down)
{
	for (uint32_t sw = 0; sw < c->s->n_switches; sw++)
		for (uint16_t p = 0; p < c->s->nodes[sw].n_ports; p++) {
			uint32_t peer = sc_peer(c->s, sw, p).node;
			bool down = link_down != NULL && link_down[c->s->nodes[sw].ports[p].link];
			c->sw[sw].port[p].peer = down || sc_is_host(c->s, peer) ? BDG_NONE : peer;
		}
}

// ---- traffic ------------------------------------------------------------------------------------

static void enter(struct cbd *c, struct bdg *b, uint32_t endpoint, uint16_t kind)
{
	struct sc_end at = c->at[endpoint];

	if (!sc_is_host(c->s, at.node)) // else two hosts back to back
		bdg_source(b, at.node, at.port, kind);
}

// An endpoint's frames with any mark (distinct ones are numbered by their first; IP comes before
// RoCE v1).
static void enter_any(struct cbd *c, struct bdg *b, uint32_t endpoint)
{
	for (uint16_t k = 0; k < (b->f.by_mark ? c->n_kinds : 1); k++)
		if (c->first_of[k] < ROCE1 || c->roce1)
			enter(c, b, endpoint, k);
}

static void spread_to(struct cbd *c, struct bdg *b, const struct routes *r, uint32_t endpoint)
{
	uint32_t used = 0;

	for (uint32_t sw = 0; sw < c->s->n_switches; sw++) {
		struct bdg_next *next = &c->next[sw];
		next->ports = routes_ports(r, sw, endpoint, &next->n);
		next->from = c->from + used;
		next->n_from = 0;
		for (uint32_t i = 0; i < r->n_from && used < c->n_from; i++) {
			const struct route_from *f = &r->from[i];
			if (f->sw != sw || f->endpoint != endpoint || f->set.n == 0)
				continue;
			c->from[used++] =
				(struct bdg_from){f->in, r->ports + f->set.first, f->set.n};
			next->n_from++;
		}
	}
	bdg_spread(b, c->next);
}

// Two endpoints of one switch to which all others have the same routes, and it its own: what is
// true of one is of the other.
static bool same_routes(const struct cbd *c, const struct routes *r, uint32_t a, uint32_t b)
{
	uint32_t root = c->at[a].node;

	if (c->at[b].node != root || sc_is_host(c->s, root))
		return false;
	for (uint32_t i = 0; i < r->n_from; i++)
		if (r->from[i].endpoint == a || r->from[i].endpoint == b)
			return false;
	for (uint32_t sw = 0; sw < c->s->n_switches; sw++) {
		const struct route_set *x = &r->sets[(uint64_t)sw * r->n_endpoints + a];
		const struct route_set *y = &r->sets[(uint64_t)sw * r->n_endpoints + b];
		if (sw == root ? x->explicit_route || y->explicit_route
			       : x->first != y->first || x->n != y->n)
			return false;
	}
	return true;
}

void cbd_spread_any(struct cbd *c, struct bdg *b, const struct routes *r)
{
	for (uint32_t dst = 0; dst < c->s->n_endpoints; dst++) {
		if (dst > 0 && same_routes(c, r, dst - 1, dst))
			continue;
		for (uint32_t src = 0; src < c->s->n_endpoints; src++)
			if (c->s->endpoints[src].node != c->s->endpoints[dst].node)
				enter_any(c, b, src);
		spread_to(c, b, r, dst);
	}
}

static bool is_known(const struct scenario *s, uint32_t endpoint)
{
	return sc_host_of(s, s->endpoints[endpoint].node)->kind == SC_HOST_NIC;
}

bool cbd_workload_is_known(const struct cbd *c)
{
	for (uint32_t e = 0; e < c->s->n_endpoints; e++)
		if (!is_known(c->s, e))
			return false;
	return true;
}

// One way of a flow: what `from` sends to `to`, CNPs included.
static void enter_flow(struct cbd *c, struct bdg *b, uint32_t from, uint32_t to, uint32_t dst,
	unsigned mark, int pcp)
{
	const struct sc_nic *nic = &sc_host_of(c->s, c->s->endpoints[from].node)->nic;

	if (to != dst)
		return;
	enter(c, b, from, c->kind[mark]);
	if (nic->np.enable)
		enter(c, b, from, c->kind[mark_of(nic->np.cnp_dscp, pcp, false)]);
}

static void enter_workload(struct cbd *c, struct bdg *b, uint32_t dst)
{
	const struct scenario *s = c->s;

	for (uint32_t i = 0; i < s->n_flows; i++) {
		const struct sc_flow *f = &s->flows[i];
		unsigned mark = mark_of(f->dscp, f->pcp, f->roce1);
		enter_flow(c, b, f->src, f->dst, dst, mark, f->pcp);
		enter_flow(c, b, f->dst, f->src, dst, mark, f->pcp);
	}
	for (uint32_t i = 0; i < s->n_apps; i++) {
		const struct sc_app *a = &s->apps[i];
		uint32_t own = s->nodes[a->node].ports[a->iface].endpoint;
		unsigned mark = mark_of(a->dscp, SC_UNSET, false);
		if (a->peer == SC_NONE)
			continue;
		enter_flow(c, b, own, a->peer, dst, mark, SC_UNSET);
		enter_flow(c, b, a->peer, own, dst, mark, SC_UNSET);
	}
	for (uint32_t e = 0; e < s->n_endpoints; e++)
		if (e != dst && (!is_known(s, e) || !is_known(s, dst)))
			enter_any(c, b, e);
}

void cbd_spread_workload(struct cbd *c, struct bdg *b, const struct routes *r)
{
	for (uint32_t dst = 0; dst < c->s->n_endpoints; dst++) {
		enter_workload(c, b, dst);
		spread_to(c, b, r, dst);
	}
}
