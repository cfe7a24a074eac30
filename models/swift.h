/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Swift: parameters and the state of one queue pair, an algorithm of models/cc.h. See swift.c.

#include <stdbool.h>
#include <stdint.h>

#include "emu/core/simtime.h"

// X(field, type, quantity, default, low, high, help); quantity: TIME in ps, RATE in b/s, SIZE in
// bytes, COUNT, FRACTION in 2^-32, FACTOR in thousandths.
#define SWIFT_PARAMS(X)                                                                       \
	X(base_target, simtime_t, TIME, "25us", SIM_NS, SIM_S,                                \
		"target RTT without hops and with a large window")                            \
	X(hop_scale, simtime_t, TIME, "1us", 0, SIM_MS, "more target per switch on the way")  \
	X(fs_range, simtime_t, TIME, "50us", 0, SIM_S,                                        \
		"most that a small window adds to the target (flow scaling)")                 \
	X(fs_min_cwnd, uint64_t, FACTOR, "0.1", 1, 1000000,                                   \
		"window in packets that adds all of fs_range")                                \
	X(fs_max_cwnd, uint64_t, FACTOR, "100", 1, 1000000000, "window that adds nothing")    \
	X(ai, uint64_t, FACTOR, "1", 1, 1000000, "additive increase, packets per RTT")        \
	X(beta, uint64_t, FRACTION, "0.8", 1, INT64_C(1) << 32,                               \
		"multiplicative decrease, of the share of the RTT beyond the target")         \
	X(max_mdf, uint64_t, FRACTION, "0.5", 1, INT64_C(1) << 32, "largest single decrease") \
	X(retx_reset_threshold, uint32_t, COUNT, "5", 1, 100,                                 \
		"timeouts in a row after which the window is the least one")                  \
	X(initial_cwnd, uint32_t, COUNT, "10", 1, 65536, "packets in flight at the start")    \
	X(min_cwnd, uint64_t, FACTOR, "0.01", 1, 1000000, "least window in packets")          \
	X(max_cwnd, uint64_t, FACTOR, "1000", 1000, 1000000000, "largest window in packets")

struct swift_params {
#define X(field, type, quantity, def, low, high, help) type field;
	SWIFT_PARAMS(X)
#undef X
};

struct swift {
	uint64_t cwnd;          // packets, Q20
	simtime_t rtt;          // the last, 0: none yet
	simtime_t decreased_at; // last decrease
	simtime_t target;       // at the last ACK
	uint32_t wire_bytes;    // of the last packet
	uint32_t timeouts;      // in a row
};

#define SWIFT_CWND_ONE (UINT64_C(1) << 20)

// Target RTT of that window (packets, Q20) over so many switches.
simtime_t swift_target(const struct swift_params *p, uint64_t cwnd, unsigned hops);

struct cc_ops;
extern const struct cc_ops swift_ops;
