/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// HPCC: parameters and the state of one queue pair, an algorithm of models/cc.h. See hpcc.c.

#include <stdbool.h>
#include <stdint.h>

#include "emu/core/simtime.h"
#include "pcap/int.h"

// X(field, type, quantity, default, low, high, help); quantity: TIME in ps, RATE in b/s, SIZE in
// bytes, COUNT, FRACTION in 2^-32, FACTOR in thousandths.
#define HPCC_PARAMS(X)                                                                         \
	X(base_rtt, simtime_t, TIME, "13us", SIM_NS, SIM_S,                                    \
		"T: a little above the longest RTT without queues")                            \
	X(eta, uint64_t, FRACTION, "0.95", 1, INT64_C(1) << 32, "utilisation aimed at")        \
	X(max_stage, uint32_t, COUNT, "5", 0, 1000,                                            \
		"additive increases before the next multiplicative adjustment")                \
	X(w_ai, uint64_t, SIZE, "80B", 1, INT64_C(1) << 30, "additive increase of the window") \
	X(min_rate, uint64_t, RATE, "100Mbps", 1000, INT64_C(1600000000000), "lowest rate")

struct hpcc_params {
#define X(field, type, quantity, def, low, high, help) type field;
	HPCC_PARAMS(X)
#undef X
};

#define HPCC_U_ONE (UINT64_C(1) << 32)

struct hpcc {
	uint64_t window;     // W, bytes
	uint64_t reference;  // Wc
	uint64_t u;          // U, Q32
	uint64_t update_end; // lastUpdateSeq
	uint32_t stage;      // incStage
	bool seen;           // `last` is valid
	simtime_t seen_at;
	struct int_trailer last; // L
};

struct cc_ops;
extern const struct cc_ops hpcc_ops;
