/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// The static buffer-dependency graph of a fabric under PFC: which ingress priority group (PG) can
// come to wait for which other one, if there is enough traffic. See bdg.c.
//
//	bdg_init(&b, &fabric);
//	per destination and kind of traffic:
//		bdg_source(&b, sw, port, layer); ...  where its frames enter the fabric
//		bdg_spread(&b, next_hops);            and where they go
//	bdg_solve(&b);                                b.n_cycles == 0: no deadlock is possible

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "models/wait_graph.h"

#define BDG_NONE       UINT32_MAX
#define BDG_PGS        8
#define BDG_CYCLES_MAX 16 // listed; all are counted
#define BDG_LENGTH_MAX 64 // vertices of a cycle that are listed

struct bdg_port {
	uint32_t peer; // switch behind it; BDG_NONE: a host, or the link is down
	uint16_t peer_port;
	bool up;                // the peer is nearer to the top: traffic from up to up has bounced
	uint8_t lossless;       // PGs of this port that can send XOFF
	uint8_t gates[BDG_PGS]; // per queue of this port: PGs of the peer whose XOFF stops it
};

// What a switch does to a kind of traffic. Kinds ("marks") are numbered by the caller: what
// switches tell apart, such as DSCPs.
struct bdg_class {
	uint8_t pg;
	uint8_t queue;
	uint16_t bounced; // mark it goes on with after a bounce here, itself if unchanged
};

struct bdg_switch {
	uint16_t n_ports;
	struct bdg_port *port;         // [n_ports]
	const struct bdg_class *class; // [n_marks]
};

// Reach of traffic is kept per layer: one for each mark, or one for all of them, if all go the same
// ways and no switch changes marks.
struct bdg_fabric {
	uint32_t n_switches;
	const struct bdg_switch *sw;
	uint16_t n_marks;
	bool by_mark;
};

struct bdg_vertex {
	uint32_t sw;
	uint16_t port;
	uint8_t pg;
};

struct bdg_hop {
	struct bdg_vertex v;
	uint16_t egress; // port by which its frames leave for the next one
};

// A shortest cycle of a strongly connected component.
struct bdg_cycle {
	uint32_t n;         // its length
	uint32_t n_listed;  // of these in hop[]
	uint32_t component; // PGs that lie on any cycle of this component
	struct bdg_hop hop[BDG_LENGTH_MAX];
};

// Next hops of one destination at a switch; others for what comes in by some ports.
struct bdg_from {
	uint16_t in;
	const uint16_t *ports;
	uint16_t n;
};

struct bdg_next {
	const uint16_t *ports;
	uint16_t n;
	uint16_t n_from;
	const struct bdg_from *from;
};

struct bdg_state;

struct bdg {
	struct bdg_fabric f;
	struct bdg_state *s;
	uint32_t n_vertices; // PGs that can come to wait, after bdg_solve()
	uint32_t n_edges;
	uint32_t n_cycles; // components with a cycle
	struct bdg_cycle cycle[BDG_CYCLES_MAX];
};

// `f` and what it points to must outlive `b`; ports may change between calls. 0 or -ENOMEM.
int bdg_init(struct bdg *b, const struct bdg_fabric *f);
void bdg_fini(struct bdg *b);

// No traffic at all; or that of another graph of the same fabric as well.
void bdg_clear(struct bdg *b);
void bdg_merge(struct bdg *b, const struct bdg *with);

// Traffic of a mark enters at a switch's port (on its way to the destination of the next
// bdg_spread()). `mark` is ignored unless by_mark.
void bdg_source(struct bdg *b, uint32_t sw, uint16_t port, uint16_t mark);
// Follows it along next[n_switches] to wherever it can get.
void bdg_spread(struct bdg *b, const struct bdg_next *next);

// Builds the graph and looks for cycles: 0 or -ENOMEM.
int bdg_solve(struct bdg *b);

// After bdg_solve(): the edges of vertex v (0 .. bdg_ids(b) - 1), for pictures.
uint32_t bdg_ids(const struct bdg *b);
struct bdg_vertex bdg_vertex(const struct bdg *b, uint32_t v);
uint32_t bdg_edges(const struct bdg *b, uint32_t v, const uint32_t **to);
// The component of v, BDG_NONE if it is on no cycle.
uint32_t bdg_component(const struct bdg *b, uint32_t v);

// Bounces one by one: the next (switch, in, out) at which traffic that came from
// above goes up again. False when there are no more. *n starts at 0 and is advanced.
struct bdg_bounce {
	uint32_t sw;
	uint16_t in, out;
};
bool bdg_next_bounce(const struct bdg *b, uint64_t *n, struct bdg_bounce *out);
