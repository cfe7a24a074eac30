/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Congestion control of one sender (a queue pair) behind one interface: events go in, a rate and a
// window come out. Each algorithm is one file with its parameters and state (dcqcn.c, ...) and one
// line in CC_ALGORITHMS.
//
//	cc_init
//	cc_sent on each packet, cc_cnp, cc_ack, cc_loss, cc_timer at cc->deadline
//	cc->rate_bps, cc->window_bytes: what holds from now on
//
// All arithmetic is on integers, so results are the same on every machine.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emu/core/simtime.h"
#include "models/dcqcn.h"

#define CC_ALGORITHMS(X)                                     \
	X(NONE, none, "none", "line rate, whatever happens") \
	X(DCQCN, dcqcn, "dcqcn", "DCQCN as mlx5 has it: rate, by CNPs")

enum cc_algorithm {
#define X(id, name, word, help) CC_##id,
	CC_ALGORITHMS(X)
#undef X
		CC_ALGORITHM_COUNT
};

// What an algorithm must be told.
enum cc_needs {
	CC_NEEDS_CNP = 1 << 0,  // cc_cnp
	CC_NEEDS_RTT = 1 << 1,  // cc_ack with rtt
	CC_NEEDS_ECHO = 1 << 2, // cc_ack with ce
	CC_NEEDS_INT = 1 << 3,  // cc_ack with hops
};

#define CC_HOPS_MAX 5 // INT records of a packet (HPCC section 4.1)

// What a switch port put into a data packet as it left (INT).
struct cc_hop {
	simtime_t at;      // when it left
	uint64_t tx_bytes; // sent by the port until then
	uint32_t queue_bytes;
	uint64_t rate_bps; // of the port
};

struct cc_ack {
	uint64_t acked_bytes;     // newly acknowledged
	uint64_t in_flight_bytes; // still not
	simtime_t rtt;            // 0: no sample
	bool ce;                  // a packet it answers was marked CE
	uint8_t n_hops;
	const struct cc_hop *hops;
};

// Those of all algorithms, so that one may be chosen after all are set.
struct cc_params {
	enum cc_algorithm algorithm;
	struct dcqcn_params dcqcn;
};

struct cc_ops;

struct cc {
	uint64_t rate_bps;     // on the wire, 1..line_bps
	uint64_t window_bytes; // payload in flight, 0: not limited
	simtime_t deadline;    // when cc_timer() is due; SIMTIME_NEVER
	const struct cc_ops *ops;
	const struct cc_params *params;
	uint64_t line_bps;
	uint64_t min_rate_bps; // lowest until now
	union {
		struct dcqcn dcqcn;
	};
};

struct cc_ops {
	unsigned needs; // enum cc_needs
	void (*init)(struct cc *cc, simtime_t now);
	// Each may be NULL: the event means nothing to it.
	void (*sent)(struct cc *cc, simtime_t now, uint32_t wire_bytes);
	void (*cnp)(struct cc *cc, simtime_t now);
	void (*ack)(struct cc *cc, simtime_t now, const struct cc_ack *ack);
	void (*loss)(struct cc *cc, simtime_t now, bool timeout);
	void (*timer)(struct cc *cc, simtime_t now);
};

const struct cc_ops *cc_ops_of(enum cc_algorithm a);
const char *cc_name(enum cc_algorithm a);
// CC_ALGORITHM_COUNT when there is none of that name.
enum cc_algorithm cc_by_name(const char *name);

// `params` must outlive it; many may share them. line_bps > 0.
void cc_init(struct cc *cc, const struct cc_params *params, uint64_t line_bps, simtime_t now);

// For algorithms: a new rate, within 1..line.
void cc_set_rate(struct cc *cc, uint64_t bps);

static inline bool cc_unlimited(const struct cc *cc)
{
	return cc->rate_bps == cc->line_bps;
}

static inline void cc_sent(struct cc *cc, simtime_t now, uint32_t wire_bytes)
{
	if (cc->ops->sent != NULL)
		cc->ops->sent(cc, now, wire_bytes);
}

static inline void cc_cnp(struct cc *cc, simtime_t now)
{
	if (cc->ops->cnp != NULL)
		cc->ops->cnp(cc, now);
}

static inline void cc_ack(struct cc *cc, simtime_t now, const struct cc_ack *ack)
{
	if (cc->ops->ack != NULL)
		cc->ops->ack(cc, now, ack);
}

// Packets were lost: found by a NAK, or by a timeout.
static inline void cc_loss(struct cc *cc, simtime_t now, bool timeout)
{
	if (cc->ops->loss != NULL)
		cc->ops->loss(cc, now, timeout);
}

// To be called at or after cc->deadline; late is right, too: what was due meanwhile is made up for.
static inline void cc_timer(struct cc *cc, simtime_t now)
{
	while (cc->deadline <= now)
		cc->ops->timer(cc, now);
}
