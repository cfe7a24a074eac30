/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// TIMELY: parameters and the state of one queue pair, an algorithm of models/cc.h. See timely.c.

#include <stdbool.h>
#include <stdint.h>

#include "emu/core/simtime.h"

// X(field, type, quantity, default, low, high, help); quantity: TIME in ps, RATE in b/s, SIZE in
// bytes, COUNT, FRACTION in 2^-32, FACTOR in thousandths.
#define TIMELY_PARAMS(X)                                                                         \
	X(t_low, simtime_t, TIME, "50us", SIM_NS, SIM_S, "below this RTT the rate grows")        \
	X(t_high, simtime_t, TIME, "500us", SIM_NS, SIM_S, "above this RTT the rate falls")      \
	X(min_rtt, simtime_t, TIME, "20us", SIM_NS, SIM_S, "what the gradient is a fraction of") \
	X(add_step, uint64_t, RATE, "10Mbps", 1000, INT64_C(1600000000000),                      \
		"additive increase (delta)")                                                     \
	X(beta, uint64_t, FRACTION, "0.8", 1, INT64_C(1) << 32, "multiplicative decrease")       \
	X(alpha, uint64_t, FRACTION, "0.875", 1, INT64_C(1) << 32,                               \
		"weight of the newest difference of RTTs")                                       \
	X(hai_threshold, uint32_t, COUNT, "5", 1, 1000,                                          \
		"RTTs in a row that do not rise before the increase is by as many steps")        \
	X(initial_rate, uint64_t, RATE_LINE, "line", 1000, INT64_C(1600000000000),               \
		"rate at the start")                                                             \
	X(min_rate, uint64_t, RATE, "10Mbps", 1000, INT64_C(1600000000000), "lowest rate")

struct timely_params {
#define X(field, type, quantity, def, low, high, help) type field;
	TIMELY_PARAMS(X)
#undef X
};

struct timely {
	simtime_t rtt; // the last, 0: none yet
	int64_t diff;  // smoothed difference between one and the next, ps
	uint32_t calm; // differences in a row that were not above 0
};

struct cc_ops;
extern const struct cc_ops timely_ops;
