/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Congestion control on behalf of a real endpoint, for the edge's own files. See edge_cc.c.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emu/core/simtime.h"

struct edge;
struct edge_cc;
struct edge_cc_config;
struct edge_qp;
struct edge_qp_table;
struct frame;
struct pkt;

// Whether it asks for anything at all.
bool edge_cc_wanted(const struct edge_cc_config *cfg);
// NULL without memory. `cfg` and `qps`, the port's, must outlive it.
struct edge_cc *edge_cc_create(const struct edge_cc_config *cfg, struct edge_qp_table *qps);
void edge_cc_destroy(struct edge_cc *c);

// All below: of a port that has one.

// A frame that the endpoint sent, described and charged to its priority: true if it is held until
// its turn, else it goes on as usual.
// `qp`: the half it belongs to, or NULL.
bool edge_cc_take(
	struct edge *e, unsigned port, struct frame *f, const struct pkt *p, struct edge_qp *qp);
// A RoCE packet for the endpoint, of that half.
void edge_cc_arrive(struct edge *e, unsigned port, const struct pkt *p, struct edge_qp *qp);
// That half is a new one: nothing is known of it yet.
void edge_cc_forget(struct edge *e, unsigned port, const struct edge_qp *qp);
// A CNP for the endpoint, which stays the caller's. True if a queue pair slows down.
bool edge_cc_cnp(struct edge *e, unsigned port, const struct frame *f);
// The next held frame of a queue pair is due.
void edge_cc_timer(struct edge *e, unsigned port, uint32_t slot);
// Some priority may send again.
void edge_cc_resume(struct edge *e, unsigned port);

// edge_cnp.c: the CNP that answers packet `ce`, to the sender's queue pair `qpn`.
void edge_cnp_send(struct edge *e, unsigned port, const struct pkt *ce, uint32_t qpn);

// Frames it holds; their bytes are added by priority.
uint64_t edge_cc_held(const struct edge_cc *c, uint64_t bytes[8]);
void edge_cc_drain(struct edge_cc *c);
