/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// DCQCN's reaction point, an algorithm of models/cc.h: parameters under mlx5's names, presets, and
// the state of one queue pair. See dcqcn.c.

#include <stdbool.h>
#include <stdint.h>

#include "emu/core/simtime.h"

// X(field, type, quantity, mlx5's default, low, high, help); quantity: TIME in ps, RATE in b/s,
// SIZE in bytes, COUNT. The notification point's parameters are in models/np.h.
#define DCQCN_PARAMS(X)                                                                           \
	X(clamp_tgt_rate, bool, BOOL, "no", 0, 1,                                                 \
		"every decrease makes the current rate the target; else only the first after an " \
		"increase")                                                                       \
	X(clamp_tgt_rate_after_time_inc, bool, BOOL, "yes", 0, 1,                                 \
		"the first decrease after an increase by the timer does, too")                    \
	X(rpg_time_reset, simtime_t, TIME, "300us", SIM_US, 131071 * SIM_US,                      \
		"time between rate increases without a CNP")                                      \
	X(rpg_byte_reset, uint64_t, SIZE, "2097088B", 0, INT64_C(1) << 40,                        \
		"bytes on the wire between rate increases; 0: by time only")                      \
	X(rpg_threshold, uint32_t, COUNT, "1", 1, 31,                                             \
		"increases in fast recovery before the target grows (the paper's F)")             \
	X(rpg_max_rate, uint64_t, RATE_LINE, "line", 1000000, INT64_C(1600000000000),             \
		"most a limited queue pair sends at; reached, it is limited no more")             \
	X(rpg_ai_rate, uint64_t, RATE, "5Mbps", 1000000, INT64_C(1600000000000),                  \
		"additive increase of the target")                                                \
	X(rpg_hai_rate, uint64_t, RATE, "50Mbps", 1000000, INT64_C(1600000000000),                \
		"hyper increase of the target")                                                   \
	X(rpg_gd, uint32_t, COUNT, "11", 10, 11,                                                  \
		"a decrease is by alpha / 2^rpg_gd, alpha in 1/1024; 11: by half of alpha")       \
	X(rpg_min_dec_fac, uint32_t, COUNT, "50", 1, 100,                                         \
		"no single decrease goes below this percentage of the current rate")              \
	X(rpg_min_rate, uint64_t, RATE, "1Mbps", 1000, INT64_C(1600000000000), "lowest rate")     \
	X(rate_to_set_on_first_cnp, uint64_t, RATE_CURRENT, "current", 1000000,                   \
		INT64_C(1600000000000), "rate that the first CNP sets, before its decrease")      \
	X(dce_tcp_g, uint32_t, COUNT, "1019", 0, 1023,                                            \
		"weight of the old alpha in 1/1024: g is 1 - dce_tcp_g / 1024")                   \
	X(dce_tcp_rtt, simtime_t, TIME, "1us", SIM_NS, SIM_S, "time between updates of alpha")    \
	X(rate_reduce_monitor_period, simtime_t, TIME, "4us", SIM_NS, SIM_S,                      \
		"least time between decreases")                                                   \
	X(initial_alpha_value, uint32_t, COUNT, "1023", 1, 1024,                                  \
		"alpha at the first CNP, in 1/1024")

struct dcqcn_params {
#define X(field, type, quantity, def, low, high, help) type field;
	DCQCN_PARAMS(X)
#undef X
};

#define DCQCN_PRESETS(X)                                                                       \
	X(MLX5, "mlx5", "ConnectX-4 to 6 as shipped")                                          \
	X(PAPER, "paper", "Zhu et al., Congestion Control for Large-Scale RDMA, SIGCOMM 2015") \
	X(HPCC_NS3, "hpcc-ns3", "defaults of the ns-3 model of HPCC's authors")                \
	X(ALIBABA, "alibaba", "what they compared HPCC with, at 100 Gb/s")

enum dcqcn_preset {
#define X(id, word, help) DCQCN_##id,
	DCQCN_PRESETS(X)
#undef X
		DCQCN_PRESET_COUNT
};

struct dcqcn_params dcqcn_preset(enum dcqcn_preset preset);
// The notification point's min_time_between_cnps that goes with it.
simtime_t dcqcn_preset_cnp_interval(enum dcqcn_preset preset);

#define DCQCN_ALPHA_ONE (UINT32_C(1) << 30)

struct dcqcn {
	uint64_t target_bps;
	uint64_t max_bps;
	uint64_t bytes_left;    // until the byte counter expires
	simtime_t alpha_at;     // end of the last period that alpha accounts for
	simtime_t decreased_at; // last decrease
	simtime_t increase_at;  // when the timer expires
	uint32_t alpha;         // Q30
	uint32_t time_stage, byte_stage;
	bool limited;       // a CNP came and the limiter is in use
	bool cnp_in_period; // since alpha_at
	bool cnp_pending;   // one that has not led to a decrease yet
};

struct cc_ops;
extern const struct cc_ops dcqcn_ops;
