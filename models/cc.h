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
// What needs acknowledgements (CC_NEEDS_ACK) is for RC's SENDs and WRITEs only.
//
// All arithmetic is on integers, so results are the same on every machine.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emu/core/simtime.h"
#include "models/dcqcn.h"
#include "models/dctcp.h"
#include "models/hpcc.h"
#include "models/swift.h"
#include "models/timely.h"
#include "pcap/int.h"

#define CC_ALGORITHMS(X)                                                                        \
	X(NONE, none, "none", "line rate, whatever happens")                                    \
	X(DCQCN, dcqcn, "dcqcn", "DCQCN as mlx5 has it: rate, by CNPs")                         \
	X(DCTCP, dctcp, "dctcp", "DCTCP (RFC 8257): window, by the share of CE that ACKs echo") \
	X(TIMELY, timely, "timely", "TIMELY (SIGCOMM 2015): rate, by the gradient of the RTT")  \
	X(SWIFT, swift, "swift", "Swift (SIGCOMM 2020): window, by the RTT against a target")   \
	X(HPCC, hpcc, "hpcc", "HPCC (SIGCOMM 2019): window and rate, by INT from the switches")

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
	CC_NEEDS_INT = 1 << 3,  // cc_ack with telemetry
	CC_NEEDS_EACH = 1 << 4, // an ACK for each packet
};

#define CC_NEEDS_ACK (CC_NEEDS_RTT | CC_NEEDS_ECHO | CC_NEEDS_INT)

// What an acknowledgement says.
struct cc_ack {
	uint64_t acked_bytes; // payload it acknowledges newly
	uint64_t acked_to;    // packets acknowledged, over the queue pair's life
	uint64_t sent_to;     // packets sent, likewise: those from acked_to on are in flight
	simtime_t rtt;        // of the packet it answers; 0: no sample
	uint8_t hops;         // switches that it passed
	bool ce;              // a packet it answers was marked CE
	const struct int_trailer *telemetry; // NULL: none
};

// Those of all algorithms, so that one may be chosen after all are set.
struct cc_params {
	enum cc_algorithm algorithm;
	struct dcqcn_params dcqcn;
	struct dctcp_params dctcp;
	struct timely_params timely;
	struct swift_params swift;
	struct hpcc_params hpcc;
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
	uint32_t payload;      // of a full packet
	union {
		struct dcqcn dcqcn;
		struct dctcp dctcp;
		struct timely timely;
		struct swift swift;
		struct hpcc hpcc;
	};
};

struct cc_ops {
	unsigned needs; // enum cc_needs
	void (*init)(struct cc *cc, simtime_t now);
	// Each may be NULL: the event means nothing to it.
	void (*sent)(struct cc *cc, simtime_t now, uint32_t wire_bytes);
	void (*cnp)(struct cc *cc, simtime_t now);
	void (*ack)(struct cc *cc, simtime_t now, const struct cc_ack *ack);
	void (*loss)(struct cc *cc, simtime_t now, uint64_t sent_to, bool timeout);
	void (*timer)(struct cc *cc, simtime_t now);
};

const struct cc_ops *cc_ops_of(enum cc_algorithm a);
const char *cc_name(enum cc_algorithm a);
// CC_ALGORITHM_COUNT when there is none of that name.
enum cc_algorithm cc_by_name(const char *name);

// `params` must outlive it; many may share them. line_bps > 0; `payload` > 0: bytes of a full
// packet.
void cc_init(struct cc *cc, const struct cc_params *params, uint64_t line_bps, uint32_t payload,
	simtime_t now);

// For algorithms: a new rate, within 1..line.
void cc_set_rate(struct cc *cc, uint64_t bps);
// x * num / den, rounded down; the quotient must fit. den > 0.
static inline uint64_t cc_scale(uint64_t x, uint64_t num, uint64_t den)
{
	return (uint64_t)((unsigned __int128)x * num / den);
}

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

// Packets were lost, of those before `sent_to`: found by a NAK, or by a timeout.
static inline void cc_loss(struct cc *cc, simtime_t now, uint64_t sent_to, bool timeout)
{
	if (cc->ops->loss != NULL)
		cc->ops->loss(cc, now, sent_to, timeout);
}

// To be called at or after cc->deadline; late is right, too: what was due meanwhile is made up for.
static inline void cc_timer(struct cc *cc, simtime_t now)
{
	while (cc->deadline <= now)
		cc->ops->timer(cc, now);
}
