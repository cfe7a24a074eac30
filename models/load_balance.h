/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// How a switch chooses among the equal-cost ports of a route: by flow (ECMP), or finer.

#include <stdint.h>

#include "emu/core/rng.h"
#include "emu/core/simtime.h"
#include "models/ecmp.h"

// X(id, name, what it does)
#define LB_MODES(X)                                                              \
	X(ECMP, "ecmp", "all frames of a flow take one path, chosen by a hash")  \
	X(SPRAY, "spray", "frames to a destination take the paths in turn")      \
	X(RANDOM, "random", "each frame takes a random path")                    \
	X(ADAPTIVE, "adaptive", "each frame takes the shortest of a few queues") \
	X(FLOWLET, "flowlet", "a flow may change its path after a gap")

enum lb_mode {
#define X(id, name, help) LB_##id,
	LB_MODES(X)
#undef X
		LB_MODE_COUNT,
};

#define LB_FLOWLETS_LOG2 12
#define LB_CANDIDATES    3

struct lb_flowlet {
	simtime_t last;  // its newest frame
	uint32_t choice; // in units of 2^-32 of the group's width
};

struct load_balancer {
	uint8_t mode; // enum lb_mode
	uint32_t seed;
	simtime_t gap; // LB_FLOWLET
	struct rng rng;
	uint16_t *turn; // [n_endpoints], a position in the group. LB_SPRAY: of the next port,
			// LB_ADAPTIVE: of the last one taken
	uint16_t sampled[LB_CANDIDATES]; // LB_ADAPTIVE: positions of lb_candidates()
	struct lb_flowlet *flowlet;      // LB_FLOWLET: [2^LB_FLOWLETS_LOG2], by hash
};

// As scenario files have it.
const char *lb_mode_name(enum lb_mode mode);

// 0 or -ENOMEM. `gap` >= 0 is the pause after which a flow is a new flowlet.
int lb_init(struct load_balancer *lb, enum lb_mode mode, uint32_t n_endpoints, uint32_t seed,
	simtime_t gap);
void lb_fini(struct load_balancer *lb);

// As ecmp_port() for a balancer that is neither LB_ECMP nor LB_ADAPTIVE: the port for this frame.
int lb_port(struct load_balancer *lb, const struct ecmp *e, uint32_t endpoint, uint32_t flow_hash,
	simtime_t now);

// LB_ADAPTIVE: ports to choose from for a frame to `endpoint`, 0 (no route) to LB_CANDIDATES of
// them; the same one may come twice. The caller takes the one whose queue is shortest and says
// which by lb_took().
unsigned lb_candidates(struct load_balancer *lb, const struct ecmp *e, uint32_t endpoint,
	uint16_t ports[LB_CANDIDATES]);
void lb_took(struct load_balancer *lb, uint32_t endpoint, unsigned candidate);
