/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// The reliable connected transport of InfiniBand and RoCE, one queue pair's two halves: a requester
// that cuts messages into packets and repeats them until acknowledged, and a responder that takes
// them in order, once. Pure state machines; the caller passes time in and moves packets.
//
//	requester                                   responder
//	rc_can_send, rc_tx_next  --- request --->   rc_rx_request
//	rc_rx_ack                <-- ACK / NAK ---  rc_response
//	rc_timeout at q->deadline
//
// All messages of a queue pair have the same operation and length, so that a packet is arithmetic
// on its sequence number and nothing needs to be kept for a repetition.

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "emu/core/simtime.h"
#include "models/psn.h"
#include "pcap/roce.h"

// How a queue pair ends: values of enum ibv_wc_status.
enum rc_status {
	RC_STATUS_OK = 0,
	RC_STATUS_REM_INV_REQ = 9,
	RC_STATUS_RETRY_EXC = 12,
	RC_STATUS_RNR_RETRY_EXC = 13,
};

enum rc_op { RC_OP_SEND, RC_OP_WRITE };

#define RC_WINDOW_MAX   (PSN_HALF - 1)
#define RC_RNR_INFINITE 7

struct rc_config {
	enum rc_op op;
	uint32_t message_bytes; // >= 1
	uint64_t messages;      // 0 = endless
	uint16_t payload;       // bytes per packet, >= 1
	uint32_t window;        // unacknowledged packets, 1..RC_WINDOW_MAX
	uint32_t ack_every;     // >= 1
	simtime_t timeout;      // local ACK timeout, 0 = none; rc_ack_timeout()
	uint8_t retry_cnt;
	uint8_t rnr_retry; // RC_RNR_INFINITE = for ever
	uint32_t psn;      // of the first packet
};

// Local ACK timeout of an exponent 0..31: 4.096 us * 2^exponent, 0 for 0 (IBTA vol. 1, 9.9.2.1).
simtime_t rc_ack_timeout(uint8_t exponent);
// Time to wait after an RNR NAK with this timer value, 0..31 (IBTA vol. 1, table 46).
simtime_t rc_rnr_time(uint8_t timer);

// ---- requester -------------------------------------------------------------------------------

enum rc_state { RC_READY, RC_RNR_WAIT, RC_ERROR };

// Packets are counted from 0 over the QP's life in 64 bits; the PSN is psn0 + count modulo 2^24.
struct rc_requester {
	uint64_t nxt;       // next to send
	uint64_t limit;     // first that may not be sent now (window, end of messages, state)
	uint64_t una;       // oldest not acknowledged
	uint64_t max;       // one beyond the newest ever sent
	uint64_t pos;       // byte position of nxt in the stream of messages
	simtime_t deadline; // when rc_timeout() is due, SIMTIME_NEVER if nothing waits
	uint32_t in_msg;    // nxt's index within its message
	uint32_t msg_pkts;  // packets per message
	uint32_t psn0;
	uint16_t payload;      // of all packets but the last
	uint16_t last_payload; // of a message's last packet
	// second line
	uint32_t since_req; // packets since the last AckReq
	uint32_t ack_every;
	uint32_t msg_bytes;
	uint32_t window;
	uint64_t end;      // packets to send, see rc_stop()
	uint64_t total;    // packets of all messages, UINT64_MAX: endless
	simtime_t timeout; // SIMTIME_NEVER: none
	simtime_t rnr_until;
	uint8_t state; // enum rc_state
	uint8_t status;
	uint8_t op; // enum rc_op
	uint8_t retry_left, retry_cnt;
	uint8_t rnr_left, rnr_retry;
};

static_assert(sizeof(struct rc_requester) <= 128, "two cache lines");

// Where in its message a packet stands.
enum rc_place { RC_MIDDLE = 0, RC_FIRST = 1, RC_LAST = 2, RC_ONLY = RC_FIRST | RC_LAST };

// A packet to send.
struct rc_request {
	uint32_t psn;
	uint32_t dma_len; // RETH: length of the message
	uint64_t pos;     // byte position of the payload in the stream of messages
	uint16_t payload; // bytes
	uint8_t opcode;
	uint8_t place; // enum rc_place; with RC_FIRST a WRITE has a RETH
	bool ack_req;
	bool again; // sent before
};

void rc_requester_init(struct rc_requester *q, const struct rc_config *cfg);

// Begins, or continues after rc_stop(). A new requester is stopped.
void rc_start(struct rc_requester *q);
// Nothing new from now on but one packet that may be needed to ask for an acknowledgement; what was
// sent is repeated as needed.
void rc_stop(struct rc_requester *q);

static inline bool rc_can_send(const struct rc_requester *q)
{
	return q->nxt < q->limit;
}

static inline bool rc_done(const struct rc_requester *q)
{
	return q->una == q->total;
}

static inline uint8_t rc_opcode(enum rc_op op, enum rc_place place)
{
	// FIRST, MIDDLE, LAST, (with immediate), ONLY follow each other in both groups of opcodes.
	static const uint8_t in_group[4] = {1, 0, 2, 4};

	return (uint8_t)((op == RC_OP_WRITE ? ROCE_WRITE_FIRST : ROCE_SEND_FIRST) +
			 in_group[place]);
}

// Payload bytes of a packet by its place.
static inline uint16_t rc_payload(const struct rc_requester *q, enum rc_place place)
{
	return place & RC_LAST ? q->last_payload : q->payload;
}

// The packet to send now; rc_can_send() must hold.
static inline void rc_tx_next(struct rc_requester *q, simtime_t now, struct rc_request *out)
{
	uint64_t seq = q->nxt++;
	uint32_t idx = q->in_msg;
	bool last = idx + 1 == q->msg_pkts;
	enum rc_place place = (enum rc_place)((idx == 0 ? RC_FIRST : 0) | (last ? RC_LAST : 0));

	out->psn = psn_add(q->psn0, seq);
	out->place = (uint8_t)place;
	out->opcode = rc_opcode((enum rc_op)q->op, place);
	out->dma_len = q->msg_bytes;
	out->pos = q->pos;
	out->payload = rc_payload(q, place);
	out->again = seq < q->max;
	out->ack_req = last | (++q->since_req >= q->ack_every) | (q->nxt == q->limit);
	if (out->ack_req)
		q->since_req = 0;
	q->pos += out->payload;
	q->in_msg = last ? 0 : idx + 1;
	if (!out->again)
		q->max = seq + 1;
	if (q->deadline == SIMTIME_NEVER && q->timeout != SIMTIME_NEVER)
		q->deadline = now + q->timeout;
}

enum rc_ack_result {
	RC_ACK_STALE = 0,         // acknowledges nothing new or nothing ever sent
	RC_ACK_PROGRESS = 1 << 0, // the window moved: look at rc_can_send(), rc_done()
	RC_ACK_REWOUND = 1 << 1,  // goes back to the oldest unacknowledged packet
	RC_ACK_RNR = 1 << 2,      // call rc_rnr_expired() at q->rnr_until
	RC_ACK_ERROR = 1 << 3,    // the QP has failed with q->status
};

// A NAK, of any kind: see rc_rx_ack().
int rc_rx_nak(struct rc_requester *q, simtime_t now, uint32_t psn, uint8_t syndrome);
// Moves nxt to packet `seq`.
void rc_seek(struct rc_requester *q, uint64_t seq);

// Acknowledges all packets before `una`, una < it <= max.
static inline void rc_advance(struct rc_requester *q, simtime_t now, uint64_t una)
{
	uint64_t limit = una + q->window;

	q->una = una;
	q->retry_left = q->retry_cnt;
	q->rnr_left = q->rnr_retry;
	if (q->state == RC_READY) {
		q->limit = limit < q->end ? limit : q->end;
		q->deadline = una == q->max || q->timeout == SIMTIME_NEVER ? SIMTIME_NEVER
									   : now + q->timeout;
	}
	if (__builtin_expect(q->nxt < una, 0))
		rc_seek(q, una);
}

// An ACKNOWLEDGE packet with this PSN and AETH syndrome came in. Returns RC_ACK_* bits.
static inline int rc_rx_ack(struct rc_requester *q, simtime_t now, uint32_t psn, uint8_t syndrome)
{
	if (__builtin_expect((syndrome & AETH_TYPE_MASK) != AETH_ACK, 0))
		return rc_rx_nak(q, now, psn, syndrome);

	int32_t d = psn_diff(psn, psn_add(q->psn0, q->una));
	if (d < 0 || q->una + (uint32_t)d >= q->max || q->state == RC_ERROR)
		return RC_ACK_STALE;
	rc_advance(q, now, q->una + (uint32_t)d + 1);
	return RC_ACK_PROGRESS;
}

// To be called at or after q->deadline. Returns RC_ACK_REWOUND, RC_ACK_ERROR, or RC_ACK_STALE if
// the deadline is not reached.
int rc_timeout(struct rc_requester *q, simtime_t now);
// To be called at or after q->rnr_until; sending may go on.
void rc_rnr_expired(struct rc_requester *q, simtime_t now);

// ---- responder -------------------------------------------------------------------------------

struct rc_responder {
	uint32_t epsn; // expected
	uint32_t msn;  // messages completed, modulo 2^24
	uint32_t since_ack;
	uint32_t ack_every;
	uint8_t in_msg; // rc_op + 1 of the message in progress, 0 between messages
	uint8_t nak;    // syndrome of the NAK to send, 0: an ACK
	bool nak_sent;  // the gap before the expected packet was reported
	bool failed;    // after an invalid request nothing more is taken
	uint64_t bytes; // delivered, in order, once
	uint64_t messages;
	simtime_t last_at; // when `bytes` grew last
};

enum rc_rx_result {
	RC_RX_IN_ORDER,  // delivered
	RC_RX_DUPLICATE, // had it
	RC_RX_GAP,       // came too early: dropped by go-back-N
	RC_RX_INVALID,   // not in message order, or after such an error
	RC_RX_RESULT = 0x7,
	RC_RX_RESPOND = 1 << 3, // flag: send rc_response() as soon as possible
	RC_RX_MESSAGE = 1 << 4, // flag: completed a message
};

struct rc_ack {
	uint32_t psn;
	uint32_t msn;
	uint8_t syndrome;
};

void rc_responder_init(struct rc_responder *r, uint32_t psn, uint32_t ack_every);

// The paths out of order of rc_rx_request().
int rc_rx_unexpected(struct rc_responder *r, int32_t distance);
int rc_rx_invalid(struct rc_responder *r);

// Place in its message of each RC opcode 0..31: what must be in progress before and is after.
struct rc_opcode_rule {
	uint8_t before; // in_msg
	uint8_t after;
	uint8_t known;
};
extern const struct rc_opcode_rule rc_opcode_rules[32];

static inline bool rc_is_request(uint8_t opcode)
{
	return opcode < 32 && rc_opcode_rules[opcode].known;
}

// A request packet arrived; rc_is_request(opcode) must hold. Returns an rc_rx_result and flags.
static inline int rc_rx_request(struct rc_responder *r, simtime_t now, uint8_t opcode, uint32_t psn,
	bool ack_req, uint32_t payload)
{
	const struct rc_opcode_rule *rule = &rc_opcode_rules[opcode];

	if (__builtin_expect(psn != r->epsn, 0))
		return rc_rx_unexpected(r, psn_diff(psn, r->epsn));
	if (__builtin_expect(rule->before != r->in_msg || r->failed, 0))
		return rc_rx_invalid(r);

	int result = RC_RX_IN_ORDER;
	r->epsn = psn_add(psn, 1);
	r->nak_sent = false;
	r->in_msg = rule->after;
	r->bytes += payload;
	r->last_at = now;
	if (rule->after == 0) {
		r->messages++;
		r->msn = psn_add(r->msn, 1);
		result |= RC_RX_MESSAGE;
	}
	if (ack_req | (++r->since_ack >= r->ack_every))
		result |= RC_RX_RESPOND;
	return result;
}

// The response to send now. Cumulative: it may be asked for later than RC_RX_RESPOND said and then
// stands for all responses due until now.
static inline void rc_response(struct rc_responder *r, struct rc_ack *out)
{
	out->msn = r->msn;
	out->psn = r->epsn;
	out->syndrome = r->nak;
	if (r->nak == 0) {
		out->psn = psn_add(r->epsn, PSN_MASK); // the one before
		out->syndrome = AETH_ACK | AETH_CREDIT_INVALID;
	}
	r->nak = 0;
	r->since_ack = 0;
}
