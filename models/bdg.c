/* SPDX-License-Identifier: BSD-3-Clause */

// What it models: whether a fabric can deadlock at all. Vertex: an ingress PG (switch, port, PG).
// Edge B1 -> B2: frames of B1 can leave by a port and queue that B2, behind that port, can pause.
// A deadlock is a directed cycle of PGs that wait for each other, so a fabric whose graph has no
// cycle cannot deadlock (W. J. Dally and C. L. Seitz, "Deadlock-free message routing in
// multiprocessor interconnection networks", IEEE Trans. Comput. C-36(5), 1987; for PFC: Hu et al.,
// HotNets 2016). The reverse does not hold: a cycle is necessary, not sufficient.
//
// The graph is that of the traffic that can exist, not of all routes: (in, out) of a switch depend
// on each other only if traffic to some destination can arrive at `in` and be sent to `out`. So for
// each destination traffic is spread from where it enters along the next hops, all equal-cost ports
// taken. What is kept is, per layer, switch and ingress port, the set of egress ports.
//
// A frame that comes from an upper switch and is sent up again has bounced. A switch may then
// change its mark (struct bdg_class.bounced): it stays in the PG it came in by, but queues and goes
// on as the new mark, so its dependency is on the PG of the new mark.
//
// Simplified, on the safe side: TTLs are infinite, rates and buffer sizes don't matter, an ECMP
// choice may fall on any port, and a queue stops if any PG of the peer that can pause it does.

#include "models/bdg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct bdg_state {
	uint32_t *base;   // [n_switches + 1]: running number of a switch's first port
	size_t *rows;     // [n_switches + 1]: start of its out rows, in words
	size_t *in_rows;  // [n_switches + 1]: start of its in row
	uint64_t *out;    // [layer][all rows]: egress ports per ingress port
	uint64_t *in;     // [layer][all in rows]: ingress ports reached by the current destination
	uint64_t *fresh;  // as `in`: of these not followed yet
	uint64_t *routes; // egress ports of one switch
	uint32_t *queue;  // (layer, switch) with fresh ports, a ring
	bool *queued;
	uint32_t head, tail, n_queue;
	uint8_t *waits; // [ports][BDG_PGS] unless by_mark: what a PG's traffic to a port waits
			// for
	uint32_t n_layers;
	struct wait_graph g; // room for every edge there could be
};

static size_t words(uint16_t ports)
{
	return (ports + 63u) / 64;
}

static uint64_t *in_row(const struct bdg *b, uint64_t *of, uint32_t layer, uint32_t sw)
{
	return of + layer * b->s->in_rows[b->f.n_switches] + b->s->in_rows[sw];
}

static uint64_t *out_row(const struct bdg *b, uint32_t layer, uint32_t sw, uint16_t port)
{
	return b->s->out + layer * b->s->rows[b->f.n_switches] + b->s->rows[sw] +
	       port * words(b->f.sw[sw].n_ports);
}

static bool has(const uint64_t *set, unsigned i)
{
	return set[i / 64] >> i % 64 & 1;
}

static void add(uint64_t *set, unsigned i)
{
	set[i / 64] |= UINT64_C(1) << i % 64;
}

static void fill_waits(struct bdg *b, uint32_t sw)
{
	const struct bdg_switch *w = &b->f.sw[sw];

	for (uint16_t out = 0; out < w->n_ports; out++)
		for (uint16_t m = 0; m < b->f.n_marks; m++)
			b->s->waits[(b->s->base[sw] + out) * BDG_PGS + w->class[m].pg] |=
				w->port[out].gates[w->class[m].queue];
}

int bdg_init(struct bdg *b, const struct bdg_fabric *f)
{
	uint32_t n = f->n_switches, most = 1;
	struct bdg_state *s = calloc(1, sizeof(*s));

	*b = (struct bdg){.f = *f, .s = s};
	if (s == NULL)
		return -ENOMEM;
	s->n_layers = f->by_mark ? f->n_marks : 1;
	s->base = calloc(n + 1, sizeof(*s->base));
	s->rows = calloc(n + 1, sizeof(*s->rows));
	s->in_rows = calloc(n + 1, sizeof(*s->in_rows));
	if (s->base == NULL || s->rows == NULL || s->in_rows == NULL) {
		bdg_fini(b);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint16_t ports = f->sw[i].n_ports;
		s->base[i + 1] = s->base[i] + ports;
		s->in_rows[i + 1] = s->in_rows[i] + words(ports);
		s->rows[i + 1] = s->rows[i] + ports * words(ports);
		if (ports > most)
			most = ports;
	}
	s->n_queue = n * s->n_layers + 1;
	s->out = calloc(s->n_layers * s->rows[n] + 1, sizeof(*s->out));
	s->in = calloc(s->n_layers * s->in_rows[n] + 1, sizeof(*s->in));
	s->fresh = calloc(s->n_layers * s->in_rows[n] + 1, sizeof(*s->fresh));
	s->routes = calloc(words((uint16_t)most), sizeof(*s->routes));
	s->queue = calloc(s->n_queue, sizeof(*s->queue));
	s->queued = calloc(s->n_queue, sizeof(*s->queued));
	s->waits = calloc((size_t)s->base[n] * BDG_PGS + 1, sizeof(*s->waits));
	if (!s->waits || !s->out || !s->in || !s->fresh || !s->routes || !s->queue || !s->queued) {
		bdg_fini(b);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++)
		fill_waits(b, i);
	return 0;
}

void bdg_fini(struct bdg *b)
{
	struct bdg_state *s = b->s;

	if (s == NULL)
		return;
	free(s->base);
	free(s->rows);
	free(s->in_rows);
	free(s->out);
	free(s->in);
	free(s->fresh);
	free(s->routes);
	free(s->queue);
	free(s->queued);
	free(s->waits);
	wait_graph_fini(&s->g);
	free(s);
	b->s = NULL;
}

void bdg_clear(struct bdg *b)
{
	memset(b->s->out, 0, b->s->n_layers * b->s->rows[b->f.n_switches] * sizeof(*b->s->out));
}

void bdg_merge(struct bdg *b, const struct bdg *with)
{
	size_t n = b->s->n_layers * b->s->rows[b->f.n_switches];

	for (size_t i = 0; i < n; i++)
		b->s->out[i] |= with->s->out[i];
}

// ---- spreading ----------------------------------------------------------------------------------

static void reach(struct bdg *b, uint32_t layer, uint32_t sw, uint16_t port)
{
	struct bdg_state *s = b->s;
	uint32_t key = sw * s->n_layers + layer;

	if (has(in_row(b, s->in, layer, sw), port))
		return;
	add(in_row(b, s->in, layer, sw), port);
	add(in_row(b, s->fresh, layer, sw), port);
	if (s->queued[key])
		return;
	s->queued[key] = true;
	s->queue[s->tail] = key;
	s->tail = (s->tail + 1) % s->n_queue;
}

void bdg_source(struct bdg *b, uint32_t sw, uint16_t port, uint16_t mark)
{
	reach(b, b->f.by_mark ? mark : 0, sw, port);
}

// What came in by port `in` can leave by each of the ports.
static void follow_one(struct bdg *b, uint32_t layer, uint32_t sw, uint16_t in,
	const uint16_t *ports, uint16_t n_ports)
{
	const struct bdg_switch *w = &b->f.sw[sw];
	uint64_t *out = out_row(b, layer, sw, in);
	uint32_t bounced = b->f.by_mark ? w->class[layer].bounced : layer;

	for (uint16_t i = 0; i < n_ports; i++) {
		const struct bdg_port *p = &w->port[ports[i]];
		add(out, ports[i]);
		if (p->peer != BDG_NONE)
			reach(b, w->port[in].up && p->up ? bounced : layer, p->peer, p->peer_port);
	}
}

// Takes the fresh ports with routes of their own out of the set.
static void follow_from(struct bdg *b, uint32_t layer, uint32_t sw, const struct bdg_next *next)
{
	uint64_t *fresh = in_row(b, b->s->fresh, layer, sw);

	for (uint16_t i = 0; i < next->n_from; i++) {
		const struct bdg_from *f = &next->from[i];
		if (!has(fresh, f->in))
			continue;
		fresh[f->in / 64] &= ~(UINT64_C(1) << f->in % 64);
		follow_one(b, layer, sw, f->in, f->ports, f->n);
	}
}

// Fresh ports of a switch in one layer: what comes in by them can leave by every next hop.
static void follow(struct bdg *b, uint32_t layer, uint32_t sw, const struct bdg_next *next)
{
	struct bdg_state *s = b->s;
	const struct bdg_switch *w = &b->f.sw[sw];
	size_t n = words(w->n_ports);
	uint64_t *all = s->routes, *fresh = in_row(b, s->fresh, layer, sw);
	uint32_t bounced = b->f.by_mark ? w->class[layer].bounced : layer;
	bool plain = false;

	if (next->n_from > 0)
		follow_from(b, layer, sw, next);
	memset(all, 0, n * sizeof(*all));
	for (uint16_t i = 0; i < next->n; i++)
		add(all, next->ports[i]);
	for (uint16_t in = 0; in < w->n_ports; in++) {
		if (!has(fresh, in))
			continue;
		if (w->port[in].up && bounced != layer) {
			follow_one(b, layer, sw, in, next->ports, next->n);
			continue;
		}
		uint64_t *out = out_row(b, layer, sw, in);
		for (size_t i = 0; i < n; i++)
			out[i] |= all[i];
		plain = true;
	}
	memset(fresh, 0, n * sizeof(*fresh));
	for (uint16_t i = 0; plain && i < next->n; i++) {
		const struct bdg_port *p = &w->port[next->ports[i]];
		if (p->peer != BDG_NONE)
			reach(b, layer, p->peer, p->peer_port);
	}
}

void bdg_spread(struct bdg *b, const struct bdg_next *next)
{
	struct bdg_state *s = b->s;

	while (s->head != s->tail) {
		uint32_t key = s->queue[s->head];
		s->head = (s->head + 1) % s->n_queue;
		s->queued[key] = false;
		follow(b, key % s->n_layers, key / s->n_layers, &next[key / s->n_layers]);
	}
	memset(s->in, 0, s->n_layers * s->in_rows[b->f.n_switches] * sizeof(*s->in));
}

// ---- the graph ----------------------------------------------------------------------------------

// PGs behind `out` that what is in `v` can wait for.
static uint8_t waits_for(const struct bdg *b, struct bdg_vertex v, uint16_t out)
{
	const struct bdg_switch *w = &b->f.sw[v.sw];
	const struct bdg_port *p = &w->port[out];
	uint8_t pgs = 0;

	if (p->peer == BDG_NONE)
		return 0;
	if (!b->f.by_mark)
		return has(out_row(b, 0, v.sw, v.port), out)
			       ? b->s->waits[(b->s->base[v.sw] + out) * BDG_PGS + v.pg]
			       : 0;
	for (uint16_t m = 0; m < b->f.n_marks; m++) {
		if (w->class[m].pg != v.pg || !has(out_row(b, m, v.sw, v.port), out))
			continue;
		bool bounce = w->port[v.port].up && p->up;
		uint16_t after = bounce ? w->class[m].bounced : m;
		pgs |= p->gates[w->class[after].queue];
	}
	return pgs;
}

static void add_edges_of(struct bdg *b, struct bdg_vertex v)
{
	const struct bdg_switch *w = &b->f.sw[v.sw];
	uint32_t from = (b->s->base[v.sw] + v.port) * BDG_PGS + v.pg, before = b->s->g.m;

	for (uint16_t out = 0; out < w->n_ports; out++) {
		unsigned pgs = waits_for(b, v, out);
		if (pgs == 0)
			continue;
		const struct bdg_port *p = &w->port[out];
		uint32_t to = (b->s->base[p->peer] + p->peer_port) * BDG_PGS;
		for (; pgs != 0; pgs &= pgs - 1)
			wait_graph_add(&b->s->g, from, to + (unsigned)__builtin_ctz(pgs));
	}
	b->n_vertices += b->s->g.m > before;
}

static void add_edges(struct bdg *b)
{
	b->n_vertices = 0;
	for (uint32_t sw = 0; sw < b->f.n_switches; sw++)
		for (uint16_t port = 0; port < b->f.sw[sw].n_ports; port++)
			for (uint8_t pg = 0; pg < BDG_PGS; pg++)
				if (b->f.sw[sw].port[port].lossless >> pg & 1)
					add_edges_of(b, (struct bdg_vertex){sw, port, pg});
}

// How many edges there can be at most: PGs of a switch times PGs that gate its queues.
static uint64_t most_edges(const struct bdg *b)
{
	uint64_t n = 0;

	for (uint32_t sw = 0; sw < b->f.n_switches; sw++) {
		uint64_t pgs = 0, gating = 0;
		for (uint16_t p = 0; p < b->f.sw[sw].n_ports; p++) {
			const struct bdg_port *port = &b->f.sw[sw].port[p];
			unsigned gates = 0;
			for (unsigned q = 0; q < BDG_PGS; q++)
				gates |= port->gates[q];
			pgs += (unsigned)__builtin_popcount(port->lossless);
			gating += (unsigned)__builtin_popcount(gates);
		}
		n += pgs * gating;
	}
	return n;
}

static uint16_t egress_to(struct bdg *b, struct bdg_vertex from, struct bdg_vertex to)
{
	const struct bdg_switch *w = &b->f.sw[from.sw];

	for (uint16_t out = 0; out < w->n_ports; out++)
		if (w->port[out].peer == to.sw && w->port[out].peer_port == to.port &&
			waits_for(b, from, out) >> to.pg & 1)
			return out;
	return 0;
}

static void list_cycle(struct bdg *b, uint32_t c)
{
	struct bdg_cycle *y = &b->cycle[c];
	uint32_t v[BDG_LENGTH_MAX];

	*y = (struct bdg_cycle){.n = wait_graph_cycle(&b->s->g, c, v, BDG_LENGTH_MAX)};
	y->n_listed = y->n < BDG_LENGTH_MAX ? y->n : BDG_LENGTH_MAX;
	for (uint32_t i = 0; i < b->s->g.n; i++)
		y->component += b->s->g.comp[i] == c;
	for (uint32_t i = 0; i < y->n_listed; i++)
		y->hop[i].v = bdg_vertex(b, v[i]);
	for (uint32_t i = 0; i < y->n_listed; i++)
		y->hop[i].egress =
			egress_to(b, y->hop[i].v, y->hop[i + 1 < y->n_listed ? i + 1 : 0].v);
}

int bdg_solve(struct bdg *b)
{
	struct bdg_state *s = b->s;
	uint64_t m = most_edges(b);

	if (s->g.first == NULL) {
		if (m > UINT32_MAX / 2 || wait_graph_init(&s->g, bdg_ids(b), (uint32_t)m) < 0)
			return -ENOMEM;
	}
	wait_graph_reset(&s->g, bdg_ids(b));
	add_edges(b);
	b->n_edges = s->g.m;
	wait_graph_close(&s->g);
	wait_graph_components(&s->g);
	b->n_cycles = s->g.n_comps;
	for (uint32_t c = 0; c < b->n_cycles && c < BDG_CYCLES_MAX; c++)
		list_cycle(b, c);
	return 0;
}

uint32_t bdg_ids(const struct bdg *b)
{
	return b->s->base[b->f.n_switches] * BDG_PGS;
}

struct bdg_vertex bdg_vertex(const struct bdg *b, uint32_t v)
{
	uint32_t port = v / BDG_PGS, low = 0, high = b->f.n_switches;

	while (high - low > 1) { // the last switch whose first port is not beyond
		uint32_t mid = (low + high) / 2;
		if (b->s->base[mid] <= port)
			low = mid;
		else
			high = mid;
	}
	return (struct bdg_vertex){
		.sw = low, .port = (uint16_t)(port - b->s->base[low]), .pg = v % BDG_PGS};
}

uint32_t bdg_edges(const struct bdg *b, uint32_t v, const uint32_t **to)
{
	*to = b->s->g.to + b->s->g.first[v];
	return b->s->g.first[v + 1] - b->s->g.first[v];
}

uint32_t bdg_component(const struct bdg *b, uint32_t v)
{
	return b->s->g.comp[v];
}

// *n: running number of (ingress port of the fabric, egress port).
bool bdg_next_bounce(const struct bdg *b, uint64_t *n, struct bdg_bounce *out)
{
	enum { PORTS = 1 << 16 };
	uint32_t last = b->s->base[b->f.n_switches];

	for (; *n / PORTS < last; (*n)++) {
		struct bdg_vertex v = bdg_vertex(b, (uint32_t)(*n / PORTS) * BDG_PGS);
		const struct bdg_switch *w = &b->f.sw[v.sw];
		uint16_t o = (uint16_t)(*n % PORTS);
		if (o >= w->n_ports || !w->port[v.port].up) {
			*n |= PORTS - 1; // on to the next ingress port
			continue;
		}
		for (uint32_t layer = 0; w->port[o].up && layer < b->s->n_layers; layer++) {
			if (!has(out_row(b, layer, v.sw, v.port), o))
				continue;
			*out = (struct bdg_bounce){v.sw, v.port, o};
			(*n)++;
			return true;
		}
	}
	return false;
}
