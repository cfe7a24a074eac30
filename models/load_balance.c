/* SPDX-License-Identifier: BSD-3-Clause */
// Load balancing finer than ECMP. A hash per flow keeps a flow's frames in order but lets two large
// flows collide on one path while others idle. The remedies, by how much reordering they cost:
//
// flowlet  A flow that paused for longer than the paths' delays differ may move without being
//          reordered (Kandula et al., "Dynamic load balancing without packet reordering", CCR
//          2007). Each flowlet draws a path at random, which by itself moves load away from slow
//          paths, since their flowlets end sooner (LetFlow, Vanini et al., NSDI 2017). State: a
//          table indexed by the flow's hash, {time of the newest frame, choice}. Flows that share
//          an entry share their flowlets, as in the switches that have such tables.
// spray    Each frame to a destination takes the next path in turn (DRB, Cao et al., CoNEXT 2013):
//          of n paths each carries 1/n of the destination's frames, to within one. State: one
//          position per destination, started at a different place in each switch, so that senders
//          that begin together do not all begin with the same path.
// random   Each frame takes a path at random (Dixit et al., "On the impact of packet spraying",
//          INFOCOM 2013). State: the random stream.
//
// adaptive Each frame takes the shortest queue of two random paths and the one it took last (DRILL
//          with d = 2, m = 1: Ghorbani et al., SIGCOMM 2017; adaptive routing of switch chips looks
//          at all). Two choices are nearly as good as all, and a path that is slow, paused or busy
//          with others' traffic gets what it can carry. State: the random stream, and the position
//          taken last for each destination.
//
// All but flowlets reorder: receivers need tolerance (`ooo` of a NIC). All of a route's frames are
// treated alike, acknowledgements and foreign traffic included. Routes of a single port involve no
// choice and leave the state alone.
//
// Simplified: but for adaptive, choices ignore queue lengths, and nothing looks beyond the switch's
// own queues. Weights are those of the group, where a port may occur more than once.
#include "models/load_balance.h"

#include <errno.h>
#include <stdlib.h>

#define FLOWLETS (1u << LB_FLOWLETS_LOG2)

const char *lb_mode_name(enum lb_mode mode)
{
	static const char *const names[] = {
#define X(id, name, help) name,
		LB_MODES(X)
#undef X
	};

	return (unsigned)mode < LB_MODE_COUNT ? names[mode] : "?";
}

int lb_init(struct load_balancer *lb, enum lb_mode mode, uint32_t n_endpoints, uint32_t seed,
	simtime_t gap)
{
	*lb = (struct load_balancer){.mode = (uint8_t)mode,
		.seed = seed,
		.gap = gap,
		.rng = rng_stream(seed, UINT64_C(0x6c62))};
	if (mode == LB_SPRAY || mode == LB_ADAPTIVE) {
		lb->turn = calloc(n_endpoints ? n_endpoints : 1, sizeof(*lb->turn));
		if (lb->turn == NULL)
			return -ENOMEM;
		for (uint32_t i = 0; i < n_endpoints; i++)
			lb->turn[i] = (uint16_t)ecmp_hash(i, seed);
	}
	if (mode == LB_FLOWLET) {
		lb->flowlet = calloc(FLOWLETS, sizeof(*lb->flowlet));
		if (lb->flowlet == NULL)
			return -ENOMEM;
		for (uint32_t i = 0; i < FLOWLETS; i++)
			lb->flowlet[i].last = -gap - 1; // the first frame begins a flowlet
	}
	return 0;
}

void lb_fini(struct load_balancer *lb)
{
	free(lb->turn);
	free(lb->flowlet);
	*lb = (struct load_balancer){0};
}

static unsigned scaled(uint32_t fraction, unsigned n)
{
	return (unsigned)(((uint64_t)fraction * n) >> 32);
}

static unsigned in_turn(struct load_balancer *lb, uint32_t endpoint, unsigned n)
{
	unsigned at = lb->turn[endpoint];

	if (__builtin_expect(at >= n, 0)) // the first time, or the group has shrunk
		at %= n;
	lb->turn[endpoint] = (uint16_t)(at + 1 < n ? at + 1 : 0);
	return at;
}

static unsigned by_flowlet(struct load_balancer *lb, uint32_t hash, unsigned n, simtime_t now)
{
	struct lb_flowlet *f = &lb->flowlet[ecmp_hash(hash, lb->seed) >> (32 - LB_FLOWLETS_LOG2)];

	if (now - f->last > lb->gap)
		f->choice = (uint32_t)(rng_next(&lb->rng) >> 32);
	f->last = now;
	return scaled(f->choice, n);
}

int lb_port(struct load_balancer *lb, const struct ecmp *e, uint32_t endpoint, uint32_t flow_hash,
	simtime_t now)
{
	const uint16_t *ports;
	unsigned n = ecmp_group(e, endpoint, &ports);

	if (n <= 1)
		return n == 0 ? ECMP_NO_ROUTE : ports[0];
	switch ((enum lb_mode)lb->mode) {
	case LB_SPRAY:
		return ports[in_turn(lb, endpoint, n)];
	case LB_RANDOM:
		return ports[rng_below(&lb->rng, n)];
	case LB_FLOWLET:
		return ports[by_flowlet(lb, flow_hash, n, now)];
	case LB_ECMP:
	case LB_ADAPTIVE:
	case LB_MODE_COUNT:
		break;
	}
	return ecmp_port(e, endpoint, flow_hash);
}

unsigned lb_candidates(struct load_balancer *lb, const struct ecmp *e, uint32_t endpoint,
	uint16_t ports[LB_CANDIDATES])
{
	const uint16_t *group;
	unsigned n = ecmp_group(e, endpoint, &group);

	if (n == 0)
		return 0;
	if (n == 1) {
		lb->sampled[0] = 0;
		ports[0] = group[0];
		return 1;
	}
	for (unsigned i = 0; i < LB_CANDIDATES - 1; i++)
		lb->sampled[i] = (uint16_t)rng_below(&lb->rng, n);
	lb->sampled[LB_CANDIDATES - 1] = lb->turn[endpoint] % n; // the group may have shrunk
	for (unsigned i = 0; i < LB_CANDIDATES; i++)
		ports[i] = group[lb->sampled[i]];
	return LB_CANDIDATES;
}

void lb_took(struct load_balancer *lb, uint32_t endpoint, unsigned candidate)
{
	lb->turn[endpoint] = lb->sampled[candidate];
}
