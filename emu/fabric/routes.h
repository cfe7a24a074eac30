/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Which output ports of each switch lead to each endpoint: shortest paths by number of hops, all
// equal-cost ports (parallel links included), overridden by the scenario's explicit routes.

#include <stdbool.h>
#include <stdint.h>

#include "emu/scenario/scenario.h"

struct route_set {
	uint32_t first; // index in routes.ports
	uint16_t n;     // 0: no route
	bool explicit_route;
};

// Another route for what comes in by one port.
struct route_from {
	uint32_t sw;
	uint32_t endpoint;
	uint16_t in;
	struct route_set set;
};

struct routes {
	uint32_t n_switches;
	uint32_t n_endpoints;
	struct route_set *sets; // [n_switches][n_endpoints]
	struct route_from *from;
	uint32_t n_from;
	uint16_t *ports;
	uint32_t n_ports;
	uint32_t cap_ports;
};

// `link_down[link]`: links to be left out; NULL if all are up. Hosts do not forward. Returns 0 or
// -ENOMEM.
int routes_compute(const struct scenario *s, const bool *link_down, struct routes **out);
void routes_free(struct routes *r);

// The equal-cost ports at switch `sw` (node index) towards `endpoint`, in ascending order.
static inline const uint16_t *routes_ports(
	const struct routes *r, uint32_t sw, uint32_t endpoint, uint16_t *n)
{
	const struct route_set *set = &r->sets[(uint64_t)sw * r->n_endpoints + endpoint];

	*n = set->n;
	return r->ports + set->first;
}

// An explicit route takes effect (also during a run, for the caller to pass on). 0 or -ENOMEM.
int routes_override(struct routes *r, const struct sc_route *route);
