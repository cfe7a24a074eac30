/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// A scenario as a buffer-dependency graph (models/bdg.h): which switches, ports, priorities and
// routes there are, and which traffic: any flow that the routes allow, or the scenario's own.

#include "emu/fabric/routes.h"
#include "models/bdg.h"

struct cbd;

// 0 or -ENOMEM.
int cbd_create(const struct scenario *s, struct cbd **out);
void cbd_free(struct cbd *c);
// For graphs of any traffic, and of the workload's.
const struct bdg_fabric *cbd_any_fabric(const struct cbd *c);
const struct bdg_fabric *cbd_workload_fabric(const struct cbd *c);

// Links that are down carry nothing; NULL: all are up.
void cbd_set_links(struct cbd *c, const bool *link_down);

// Adds to `b` where traffic can get along `r`: from any host to any other, with any DSCP (RoCE v1
// too if the scenario has it);
void cbd_spread_any(struct cbd *c, struct bdg *b, const struct routes *r);
// or that of the scenario's flows and applications, both ways (acknowledgements, CNPs). A host
// whose traffic is not known (real endpoint, replay) may send anything anywhere.
void cbd_spread_workload(struct cbd *c, struct bdg *b, const struct routes *r);
// Whether cbd_spread_workload() knows all traffic.
bool cbd_workload_is_known(const struct cbd *c);
