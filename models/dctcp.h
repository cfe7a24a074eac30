/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// DCTCP: parameters and the state of one queue pair, an algorithm of models/cc.h. See dctcp.c.

#include <stdbool.h>
#include <stdint.h>

#include "emu/core/simtime.h"

// X(field, type, quantity, default, low, high, help); quantity: TIME in ps, RATE in b/s, SIZE in
// bytes, COUNT, FRACTION in 2^-32, FACTOR in thousandths.
#define DCTCP_PARAMS(X)                                                                      \
	X(g, uint64_t, FRACTION, "0.0625", 1, INT64_C(1) << 32,                              \
		"weight of a window's share of marked bytes in the estimate alpha")          \
	X(initial_window, uint32_t, COUNT, "10", 1, 65536, "packets in flight at the start") \
	X(min_window, uint32_t, COUNT, "1", 1, 65536, "least packets in flight")

struct dctcp_params {
#define X(field, type, quantity, def, low, high, help) type field;
	DCTCP_PARAMS(X)
#undef X
};

#define DCTCP_ALPHA_ONE (UINT64_C(1) << 32)

struct dctcp {
	uint64_t window;      // bytes, Q16
	uint64_t threshold;   // of slow start, likewise
	uint64_t alpha;       // Q32
	uint64_t acked;       // bytes of the observation window
	uint64_t marked;      // of these
	uint64_t observe_end; // packet that ends the observation window
	uint64_t recover_end; // no decrease and no growth until this packet is acknowledged
	bool recovering;
};

struct cc_ops;
extern const struct cc_ops dctcp_ops;
