/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Fault rules: which frames of a lane something is done to. See fault.c. The rule is constant and
// may be on several lanes; each lane has a state of its own.

#include <stdbool.h>
#include <stdint.h>

#include "emu/core/rng.h"
#include "emu/core/simtime.h"

// X(id, name, what a capture's comment says was done, help)
#define FAULT_ACTIONS(X)                                                                           \
	X(DROP, "drop", "dropped", "the frame is lost")                                            \
	X(CORRUPT, "corrupt", "corrupted", "a bit of the payload flips, the ICRC is wrong")        \
	X(FCS, "fcs", "FCS damaged", "a bit flips and the next port's FCS check drops the frame")  \
	X(ECN, "ecn", "marked CE", "the frame is marked CE, whatever its ECN field was")           \
	X(DELAY, "delay", "delayed", "the frame comes later by `delay`")                           \
	X(REORDER, "reorder", "reordered", "`packets` later frames that the rule matches pass it") \
	X(DUPLICATE, "duplicate", "duplicated", "the frame comes twice")                           \
	X(TRUNCATE, "truncate", "truncated", "the frame is cut to `length` bytes")

enum fault_action {
#define X(id, name, done, help) FAULT_##id,
	FAULT_ACTIONS(X)
#undef X
		FAULT_ACTION_COUNT,
};

// What a frame is. X(id, name, help)
#define FAULT_KINDS(X)                                               \
	X(DATA, "data", "SENDs and WRITEs")                          \
	X(READ_REQUEST, "read_request", "RDMA READ requests")        \
	X(READ_RESPONSE, "read_response", "RDMA READ responses")     \
	X(ATOMIC, "atomic", "atomic requests")                       \
	X(ATOMIC_ACK, "atomic_ack", "atomic responses")              \
	X(ACK, "ack", "positive acknowledgements")                   \
	X(NAK, "nak", "negative acknowledgements")                   \
	X(RNR, "rnr", "receiver-not-ready NAKs")                     \
	X(CNP, "cnp", "congestion notification packets")             \
	X(OTHER_ROCE, "other_roce", "RoCE packets of no other kind") \
	X(PFC, "pfc", "PFC and PAUSE frames")                        \
	X(OTHER, "other", "frames that are neither RoCE nor MAC control")

enum fault_kind {
#define X(id, name, help) FAULT_KIND_##id,
	FAULT_KINDS(X)
#undef X
		FAULT_KIND_COUNT,
};

#define FAULT_KIND_ANY ((UINT32_C(1) << FAULT_KIND_COUNT) - 1)

const char *fault_action_name(enum fault_action a);
const char *fault_action_done(enum fault_action a);
const char *fault_kind_name(enum fault_kind k);
const char *fault_kind_help(enum fault_kind k);
// Kind of a RoCE packet by BTH opcode and, for acknowledgements, AETH syndrome.
enum fault_kind fault_kind_of(uint8_t opcode, uint8_t syndrome);

// Which of the matching frames.
enum fault_pick {
	FAULT_ALL,
	FAULT_NTH,         // the n-th
	FAULT_EVERY,       // the n-th, 2n-th, ...
	FAULT_PSN,         // PSN n after the queue pair's first
	FAULT_PACKET,      // packet `packet` of message `message` of the queue pair, both from 1
	FAULT_PROBABILITY, // each with probability p_q32
	FAULT_GILBERT,     // by a Gilbert-Elliott chain
};

#define FAULT_QP_ALL    0 // all queue pairs as one stream of frames
#define FAULT_QP_EACH   UINT32_MAX
#define FAULT_RULES_MAX 64u  // on a lane
#define FAULT_QPS_MAX   256u // queue pairs that a rule can tell apart on a lane
#define FAULT_ANY       UINT32_MAX
#define FAULT_NO_OPCODE (-1)

struct fault_rule {
	enum fault_action action;
	// matching
	uint32_t kinds;      // bit per fault_kind
	int opcode;          // BTH opcode, FAULT_NO_OPCODE: any
	uint32_t qp;         // 1..FAULT_QPS_MAX: the n-th to appear; or FAULT_QP_ALL, FAULT_QP_EACH
	uint32_t qpn;        // destination QP, FAULT_ANY
	uint32_t flow;       // FAULT_ANY
	uint32_t src, n_src; // endpoints src .. src + n_src - 1; n_src 0: any
	uint32_t dst, n_dst;
	uint8_t prios; // bit per priority
	// picking
	enum fault_pick pick;
	uint64_t n;
	uint32_t message, packet;
	uint64_t p_q32;                       // FAULT_PROBABILITY; FAULT_GILBERT: good to bad
	uint64_t r_q32;                       // bad to good
	uint64_t loss_bad_q32, loss_good_q32; // 1 - h, 1 - k
	uint32_t iter;                        // only the iter-th transmission of a PSN; 0: any
	uint64_t count;                       // most frames picked on a lane; 0: no limit
	simtime_t from, until;                // of the start of the frame on the lane
	// doing
	simtime_t delay;  // FAULT_DELAY; FAULT_REORDER: the longest
	uint32_t packets; // FAULT_REORDER
	uint16_t length;  // FAULT_TRUNCATE
};

// Must the rule know queue pairs apart?
static inline bool fault_needs_qp(const struct fault_rule *r)
{
	return r->pick == FAULT_PSN || r->pick == FAULT_PACKET || r->iter != 0;
}

struct fault_packet {
	simtime_t at;
	uint64_t qp_key;   // of the direction of a queue pair it belongs to, 0: none
	uint32_t src, dst; // endpoints, FAULT_ANY if unknown
	uint32_t flow;
	uint32_t qpn;
	uint32_t psn;
	uint8_t kind; // enum fault_kind
	uint8_t opcode;
	uint8_t prios; // its priority; of a PFC frame: those it names
	bool opens;    // first packet of a message
};

struct fault_qp {
	uint64_t key;
	uint64_t n;         // frames that could be picked
	uint32_t first_psn; // of the first frame
	uint32_t top;       // newest PSN
	uint32_t messages;
	uint32_t message_psn; // of the last one's first packet
	uint32_t target;      // FAULT_PACKET: the PSN, once known
	bool started, target_known;
	uint8_t *sent; // how often each PSN was seen, [FAULT_PSN_WINDOW], NULL if not asked
};

struct fault_state {
	const struct fault_rule *rule;
	struct rng rng;
	struct fault_qp *qps;
	uint32_t n_qps, cap_qps;
	uint8_t *sent;    // of all queue pairs
	bool bad;         // Gilbert-Elliott
	uint64_t matched; // frames of the kind the rule is for
	uint64_t picked;
	uint64_t unknown; // frames of queue pairs beyond FAULT_QPS_MAX
};

// Allocates what the rule needs. Returns 0, -EINVAL (a rule that contradicts itself) or -ENOMEM.
int fault_init(struct fault_state *s, const struct fault_rule *rule, struct rng rng);
void fault_fini(struct fault_state *s);

enum fault_answer {
	FAULT_MISS,  // not one of the rule's frames
	FAULT_MATCH, // one of them, but not picked
	FAULT_HIT,   // picked: to be done
};

// Every frame of the lane in order, those that other rules drop included.
enum fault_answer fault_see(struct fault_state *s, const struct fault_packet *p);
