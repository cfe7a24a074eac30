/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Directed graphs in compressed rows and the two questions a deadlock detector asks of them: which
// vertices lie on a common cycle, and what is a shortest such cycle. No recursion, and no
// allocation after wait_graph_init().

#include <stdbool.h>
#include <stdint.h>

#define WAIT_GRAPH_NONE UINT32_MAX

struct wait_graph {
	uint32_t n; // vertices
	uint32_t m; // edges
	uint32_t max_n;
	uint32_t max_m;
	uint32_t *first; // [n + 1]: edges of v are first[v] .. first[v + 1] - 1
	uint32_t *to;    // [m]
	bool *skip;      // [n]: vertex is not part of the graph for now; set by the caller
	uint32_t *comp;  // [n]: by wait_graph_components()
	uint32_t n_comps;
	uint32_t *work; // five arrays of n + 1
};

// Returns 0 or -ENOMEM. Starts without vertices.
int wait_graph_init(struct wait_graph *g, uint32_t max_n, uint32_t max_m);
void wait_graph_fini(struct wait_graph *g);

// An empty graph of n <= max_n vertices, none skipped. Edges are then added in order of `from`,
// and wait_graph_close() ends the adding.
void wait_graph_reset(struct wait_graph *g, uint32_t n);
void wait_graph_add(struct wait_graph *g, uint32_t from, uint32_t to);
void wait_graph_close(struct wait_graph *g);

// Numbers the strongly connected components that contain a cycle 0, 1, .. in order of their lowest
// vertex; comp[v] is WAIT_GRAPH_NONE for vertices on no cycle and skipped ones.
void wait_graph_components(struct wait_graph *g);

// A shortest cycle of component c: its vertices in order, starting with the lowest vertex that is
// on a shortest cycle. Writes at most `max` of them; returns its length.
uint32_t wait_graph_cycle(struct wait_graph *g, uint32_t c, uint32_t *cycle, uint32_t max);
