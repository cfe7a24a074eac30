/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Routes: for each endpoint a group of equal-cost ports, and the choice among them by flow.

#include <stdint.h>

#define ECMP_WIDTH_MAX 255

struct ecmp {
	uint32_t *route; // [n_endpoints]: first port's position << 8 | number of ports; 0: none
	uint16_t *ports; // the groups' ports, one after another; equal groups are stored once
	uint32_t n_endpoints;
	uint32_t n_ports;
	uint32_t cap_ports;
	uint32_t seed;
};

#define ECMP_NO_ROUTE (-1)

// 0 or -ENOMEM. All endpoints start without a route.
int ecmp_init(struct ecmp *e, uint32_t n_endpoints, uint32_t seed);
void ecmp_fini(struct ecmp *e);

// Sets the group of `endpoint` (n = 0 removes it). A port may occur more than once: that gives it
// more weight. 0, -EINVAL (endpoint or n out of range) or -ENOMEM. Not while frames are routed.
int ecmp_set(struct ecmp *e, uint32_t endpoint, const uint16_t *ports, unsigned n);

// The ports of `endpoint`'s group; returns how many.
unsigned ecmp_group(const struct ecmp *e, uint32_t endpoint, const uint16_t **ports);

// The switch's seed goes through a multiplication, not a mere XOR: otherwise all switches would
// split flows along the same bits and the second tier would find them all on one side
// (polarisation). The product's upper half spreads over n without a division; bias < n * 2^-32.
static inline uint32_t ecmp_hash(uint32_t flow_hash, uint32_t seed)
{
	uint64_t x = (uint64_t)(flow_hash ^ seed) * UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ (x >> 32)) * UINT64_C(0xd6e8feb86659fd93);
	return (uint32_t)(x >> 32);
}

// Port for a flow to `endpoint` (any value; unknown ones have no route), or ECMP_NO_ROUTE.
static inline int ecmp_port(const struct ecmp *e, uint32_t endpoint, uint32_t flow_hash)
{
	if (__builtin_expect(endpoint >= e->n_endpoints, 0))
		return ECMP_NO_ROUTE;
	uint32_t r = e->route[endpoint];
	uint32_t n = r & ECMP_WIDTH_MAX;
	const uint16_t *ports = e->ports + (r >> 8);
	if (n == 1)
		return ports[0];
	if (__builtin_expect(n == 0, 0))
		return ECMP_NO_ROUTE;
	return ports[((uint64_t)ecmp_hash(flow_hash, e->seed) * n) >> 32];
}
