/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// What a real endpoint's queue pairs go through, counted from outside under the names that a NIC
// has for it. See edge_watch.c.

#include <stdint.h>

#include "pipelines/edge_qp.h"

struct edge;
struct edge_watch;
struct frame;

// NULL without memory.
struct edge_watch *edge_watch_create(void);
void edge_watch_destroy(struct edge_watch *w);
struct edge_qp_table *edge_watch_qps(struct edge_watch *w);

// A RoCE packet that the endpoint sent, or that it will get. Returns the half of the connection
// that it belongs to; NULL: of none, or without room for it.
struct edge_qp *edge_watch_sent(struct edge *e, unsigned port, const struct pkt *p);
struct edge_qp *edge_watch_arrives(struct edge *e, unsigned port, const struct pkt *p);
