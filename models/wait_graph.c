/* SPDX-License-Identifier: BSD-3-Clause */

// Strongly connected components: R. E. Tarjan, "Depth-first search and linear graph algorithms",
// SIAM J. Comput. 1(2), 1972, with an explicit stack. A component contains a cycle if it has two or
// more vertices, or one with an edge to itself.
//
// Shortest cycle of a component: breadth-first search from each of its vertices back to itself, at
// most O(vertices x edges) of the component. It runs only when a deadlock has been found.

#include "models/wait_graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int wait_graph_init(struct wait_graph *g, uint32_t max_n, uint32_t max_m)
{
	*g = (struct wait_graph){.max_n = max_n, .max_m = max_m};
	g->first = calloc((size_t)max_n + 1, sizeof(*g->first));
	g->to = calloc((size_t)max_m + 1, sizeof(*g->to));
	g->skip = calloc((size_t)max_n + 1, sizeof(*g->skip));
	g->comp = calloc((size_t)max_n + 1, sizeof(*g->comp));
	g->work = calloc(5 * ((size_t)max_n + 1), sizeof(*g->work));
	if (!g->first || !g->to || !g->skip || !g->comp || !g->work) {
		wait_graph_fini(g);
		return -ENOMEM;
	}
	return 0;
}

void wait_graph_fini(struct wait_graph *g)
{
	free(g->first);
	free(g->to);
	free(g->skip);
	free(g->comp);
	free(g->work);
	*g = (struct wait_graph){0};
}

void wait_graph_reset(struct wait_graph *g, uint32_t n)
{
	g->n = n;
	g->m = 0;
	g->n_comps = 0;
	memset(g->first, 0, ((size_t)n + 1) * sizeof(*g->first));
	memset(g->skip, 0, (size_t)n * sizeof(*g->skip));
}

void wait_graph_add(struct wait_graph *g, uint32_t from, uint32_t to)
{
	g->first[from + 1]++;
	g->to[g->m++] = to;
}

void wait_graph_close(struct wait_graph *g)
{
	for (uint32_t v = 0; v < g->n; v++)
		g->first[v + 1] += g->first[v];
}

// The state of one depth-first search.
struct dfs {
	uint32_t *index; // 1 + discovery order, 0: not seen
	uint32_t *low;
	uint32_t *edge;  // next edge to follow
	uint32_t *link;  // the vertex from which it was discovered
	uint32_t *stack; // component stack
	uint32_t n_stack;
	uint32_t count;
};

static void dfs_enter(const struct wait_graph *g, struct dfs *d, uint32_t v, uint32_t from)
{
	d->index[v] = d->low[v] = ++d->count;
	d->edge[v] = g->first[v];
	d->link[v] = from;
	d->stack[d->n_stack++] = v;
}

static bool has_self_edge(const struct wait_graph *g, uint32_t v)
{
	for (uint32_t e = g->first[v]; e < g->first[v + 1]; e++) {
		if (g->to[e] == v)
			return true;
	}
	return false;
}

// `root` is complete: what lies above it on the stack is its component. A finished vertex without a
// cycle gets the number n, which no component has.
static void dfs_pop_component(struct wait_graph *g, struct dfs *d, uint32_t root)
{
	bool cyclic = d->stack[d->n_stack - 1] != root || has_self_edge(g, root);
	uint32_t v;

	do {
		v = d->stack[--d->n_stack];
		g->comp[v] = cyclic ? root : g->n;
	} while (v != root);
}

static void dfs_from(struct wait_graph *g, struct dfs *d, uint32_t start)
{
	uint32_t v = start;

	dfs_enter(g, d, start, WAIT_GRAPH_NONE);
	while (v != WAIT_GRAPH_NONE) {
		if (d->edge[v] < g->first[v + 1]) {
			uint32_t w = g->to[d->edge[v]++];
			if (g->skip[w])
				continue;
			if (d->index[w] == 0) {
				dfs_enter(g, d, w, v);
				v = w;
			} else if (g->comp[w] == WAIT_GRAPH_NONE && d->index[w] < d->low[v]) {
				d->low[v] = d->index[w]; // w is still on the stack
			}
			continue;
		}
		uint32_t up = d->link[v];
		if (d->low[v] == d->index[v])
			dfs_pop_component(g, d, v);
		else if (d->low[v] < d->low[up])
			d->low[up] = d->low[v];
		v = up;
	}
}

void wait_graph_components(struct wait_graph *g)
{
	size_t n = (size_t)g->max_n + 1;
	struct dfs d = {
		.index = g->work,
		.low = g->work + n,
		.edge = g->work + 2 * n,
		.link = g->work + 3 * n,
		.stack = g->work + 4 * n,
	};
	uint32_t *number = d.low; // free again after the search

	memset(d.index, 0, n * sizeof(*d.index));
	for (uint32_t v = 0; v < g->n; v++)
		g->comp[v] = WAIT_GRAPH_NONE;
	for (uint32_t v = 0; v < g->n; v++) {
		if (!g->skip[v] && d.index[v] == 0)
			dfs_from(g, &d, v);
	}

	// Renumber by lowest vertex: a component is known so far by its root.
	for (uint32_t v = 0; v < g->n; v++)
		number[v] = WAIT_GRAPH_NONE;
	g->n_comps = 0;
	for (uint32_t v = 0; v < g->n; v++) {
		uint32_t root = g->comp[v];
		if (root >= g->n) {
			g->comp[v] = WAIT_GRAPH_NONE;
			continue;
		}
		if (number[root] == WAIT_GRAPH_NONE)
			number[root] = g->n_comps++;
		g->comp[v] = number[root];
	}
}

// Length of a shortest cycle through `start` if shorter than `best`, else `best`. Leaves in `from`
// the way back: from[start] is the last vertex of the cycle, and so on.
static uint32_t bfs_cycle(const struct wait_graph *g, uint32_t start, uint32_t best)
{
	size_t n = (size_t)g->max_n + 1;
	uint32_t *dist = g->work, *from = g->work + n, *queue = g->work + 2 * n;
	uint32_t head = 0, tail = 0;

	for (uint32_t v = 0; v < g->n; v++)
		from[v] = WAIT_GRAPH_NONE;
	dist[start] = 0;
	queue[tail++] = start;
	while (head < tail) {
		uint32_t v = queue[head++];
		if (dist[v] + 1 >= best)
			break;
		for (uint32_t e = g->first[v]; e < g->first[v + 1]; e++) {
			uint32_t w = g->to[e];
			if (g->comp[w] != g->comp[start] || from[w] != WAIT_GRAPH_NONE)
				continue;
			from[w] = v;
			if (w == start)
				return dist[v] + 1;
			dist[w] = dist[v] + 1;
			queue[tail++] = w;
		}
	}
	return best;
}

uint32_t wait_graph_cycle(struct wait_graph *g, uint32_t c, uint32_t *cycle, uint32_t max)
{
	const uint32_t *from = g->work + (size_t)g->max_n + 1;
	uint32_t best = WAIT_GRAPH_NONE, start = WAIT_GRAPH_NONE;

	for (uint32_t v = 0; v < g->n; v++) {
		if (g->comp[v] != c)
			continue;
		uint32_t len = bfs_cycle(g, v, best);
		if (len < best) {
			best = len;
			start = v;
		}
	}
	if (start == WAIT_GRAPH_NONE)
		return 0;
	bfs_cycle(g, start, WAIT_GRAPH_NONE); // for its way back
	for (uint32_t i = best, v = from[start]; i-- > 0; v = from[v]) {
		if (i < max)
			cycle[i] = v;
	}
	return best;
}
