/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// The responder of a reliable connection: takes request packets in order, once, says what is to be
// done with each, and has the responses ready. See models/rc.h for the picture.

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emu/core/simtime.h"
#include "models/rc_memory.h"
#include "models/verbs.h"
#include "pcap/psn.h"
#include "pcap/roce.h"

#define RC_MESSAGE_MAX  (UINT32_C(1) << 31)
#define RC_ATOMIC_BYTES 8

// Where in its message a packet stands.
enum rc_place { RC_MIDDLE = 0, RC_FIRST = 1, RC_LAST = 2, RC_ONLY = RC_FIRST | RC_LAST };

// Time to wait after an RNR NAK with this timer value, 0..31 (IBTA vol. 1, table 46).
simtime_t rc_rnr_time(uint8_t timer);
// Credits of an AETH credit code 0..30, and the code of the most credits not above `n` (table 45).
uint32_t rc_credits(uint8_t code);
uint8_t rc_credit_code(uint32_t n);

// A READ or an atomic from its request until `max_dest_rd_atomic` newer ones have come: what is
// to be sent, and what a duplicate is answered from.
struct rc_resource {
	uint64_t addr;      // READ: of the first byte asked for
	uint64_t original;  // atomic: the answer
	uint32_t psn, pkts; // of the request as it came first
	uint32_t length, rkey;
	uint32_t msn;
	uint32_t from, next, until; // packet indices of the answer being sent: [from, until)
	uint16_t last_payload;      // of packet until - 1
	uint8_t op;                 // enum wr_op
	bool used;
	bool answered; // all was sent once
};

struct rc_responder_config {
	uint32_t psn;       // of the first packet
	uint32_t ack_every; // an unasked ACK after so many packets, >= 1
	uint16_t payload;   // path MTU: READ responses are cut by it
	bool strict;        // packet lengths are checked; always when memory or receives are
	uint8_t min_rnr_timer;
	bool credits;                  // given in ACKs, unless the receive queue is shared
	struct rc_memory *memory;      // NULL: any address with any key
	struct rc_rq *rq;              // NULL: a receive is always there, and none completes
	struct rc_resource *resources; // [max_dest_rd_atomic]
	uint8_t max_dest_rd_atomic;    // READs and atomics at a time; 0: such requests are invalid
};

struct rc_responder {
	// first line: what every packet touches
	uint32_t epsn; // expected
	uint32_t msn;  // messages completed, modulo 2^24
	uint32_t since_ack;
	uint32_t ack_every;
	uint8_t in_msg;  // enum rc_in of the message in progress, RC_IN_NONE between messages
	uint8_t nak;     // syndrome of the NAK to send, 0: an ACK
	bool nak_sent;   // what is missing was reported
	bool failed;     // after a fatal NAK nothing more is taken
	bool ack_due;    // a response waits
	bool keeps;      // what comes too early is the caller's, who reports it (models/sr.h)
	bool checked;    // lengths, memory or receives matter:nothing goes straight
	uint8_t sending; // resources whose answers wait
	uint8_t oldest;  // the first of them
	uint64_t bytes;  // delivered, in order, once: SEND and WRITE
	uint64_t messages;
	simtime_t last_at; // when `bytes` grew last
	// the message in progress
	uint64_t addr;   // of its first byte
	uint32_t offset; // bytes so far
	uint32_t length; // WRITE: announced; SEND: of the receive
	// second line
	struct rc_recv recv; // that it has taken, if has_recv
	struct rc_memory *memory;
	struct rc_rq *rq;
	struct rc_resource *resources;
	uint16_t payload;
	uint8_t n_resources;
	uint8_t newest; // where the next goes
	uint8_t min_rnr_timer;
	bool credits;
	bool has_recv;
};

static_assert(offsetof(struct rc_responder, addr) <= 64, "first line");

// A request packet as the codec took it apart.
struct rc_packet {
	uint8_t opcode; // of ROCE_RC
	bool ack_req, solicited;
	uint32_t psn;
	uint32_t payload; // bytes
	uint32_t imm;     // immediate data or the rkey to invalidate, when the opcode has one
	// RETH or AtomicETH, when the opcode has one
	uint32_t rkey;
	uint32_t dma_len;
	uint64_t remote_addr;
	uint64_t compare, swap_add;
};

enum rc_rx_result {
	RC_RX_IN_ORDER,  // taken
	RC_RX_DUPLICATE, // had it
	RC_RX_GAP,       // came too early: dropped by go-back-N
	RC_RX_INVALID,   // invalid request, or after a fatal error
	RC_RX_ACCESS,    // memory not permitted: NAK remote access error
	RC_RX_LENGTH,    // a SEND longer than its receive: NAK invalid request
	RC_RX_NOT_READY, // no receive: RNR NAK
	RC_RX_RESULT = 0x7,
	RC_RX_RESPOND = 1 << 3,   // flag: send what rc_tx_response() gives as soon as possible
	RC_RX_MESSAGE = 1 << 4,   // flag: completed a message
	RC_RX_DATA = 1 << 5,      // flag: `out->addr` says where the payload goes
	RC_RX_RECV_DONE = 1 << 6, // flag: completed a receive, see `out`; also with an error
	RC_RX_ATOMIC = 1 << 7,    // flag: execute out->atomic, then rc_atomic_done()
	RC_RX_READ = 1 << 8,      // flag: a READ was taken
	RC_RX_FAILED = 1 << 9,    // flag: the QP has failed just now
};

// What to do with a packet.
struct rc_accept {
	uint64_t addr; // where its payload goes: in the region, or in the receive
	// RC_RX_RECV_DONE
	uint64_t wr_id;
	uint32_t byte_len;
	uint32_t imm;      // immediate data, or the rkey that was invalidated
	uint8_t wc_status; // enum wc_status
	uint8_t wc_op;     // WR_SEND or WR_WRITE_IMM: what the peer did
	bool with_imm, with_inv;
	bool solicited;
	// RC_RX_ATOMIC
	struct {
		uint64_t addr, compare, swap_add;
		bool cmp_swap; // else fetch and add
	} atomic;
};

void rc_responder_init(struct rc_responder *r, const struct rc_responder_config *cfg);

// The original value of the atomic that rc_rx_request() has just told to execute.
void rc_atomic_done(struct rc_responder *r, uint64_t original);

// From outside: takes nothing more and answers nothing more.
void rc_responder_error(struct rc_responder *r);
// After RC_RX_FAILED or rc_responder_error(): receives not completed, flushed one by one; false
// when there is none, or the queue is shared.
bool rc_flush_recv(struct rc_responder *r, struct rc_recv *out);

enum rc_in { RC_IN_NONE, RC_IN_SEND, RC_IN_WRITE };

// Place in its message of each RC opcode 0..31: what must be in progress before and is after.
struct rc_opcode_rule {
	uint8_t before; // enum rc_in
	uint8_t after;
	bool known;
	bool plain;    // SEND and WRITE
	uint8_t place; // enum rc_place
	uint8_t op;    // enum wr_op
};
extern const struct rc_opcode_rule rc_opcode_rules[32];

static inline bool rc_is_request(uint8_t opcode)
{
	return opcode < 32 && rc_opcode_rules[opcode].known;
}

// The paths off the straight line of rc_rx_request().
int rc_rx_other(
	struct rc_responder *r, simtime_t now, const struct rc_packet *p, struct rc_accept *out);

// Whether a packet goes straight to rc_rx_straight(): a SEND or WRITE, as expected, of which
// nothing is to be checked. `opcode` must be that of a request.
static inline bool rc_is_straight(const struct rc_responder *r, uint8_t opcode, uint32_t psn)
{
	const struct rc_opcode_rule *rule = &rc_opcode_rules[opcode];

	return psn == r->epsn && rule->before == r->in_msg && !r->failed &&
	       !(r->checked | !rule->plain);
}

// Such a packet arrived.
static inline int rc_rx_straight(struct rc_responder *r, simtime_t now, uint8_t opcode,
	uint32_t psn, bool ack_req, uint32_t payload)
{
	const struct rc_opcode_rule *rule = &rc_opcode_rules[opcode];
	int result = RC_RX_IN_ORDER;

	r->epsn = psn_add(psn, 1);
	r->nak_sent = false;
	r->in_msg = rule->after;
	r->bytes += payload;
	r->last_at = now;
	if (rule->after == RC_IN_NONE) {
		r->messages++;
		r->msn = psn_add(r->msn, 1);
		result |= RC_RX_MESSAGE;
	}
	if (ack_req | (++r->since_ack >= r->ack_every)) {
		r->ack_due = true;
		result |= RC_RX_RESPOND;
	}
	return result;
}

// A request packet arrived; rc_is_request(p->opcode) must hold. Returns an rc_rx_result and flags.
// `out` is written as the flags say.
static inline int rc_rx_request(
	struct rc_responder *r, simtime_t now, const struct rc_packet *p, struct rc_accept *out)
{
	if (rc_is_straight(r, p->opcode, p->psn))
		return rc_rx_straight(r, now, p->opcode, p->psn, p->ack_req, p->payload);
	return rc_rx_other(r, now, p, out);
}

// ---- responses -------------------------------------------------------------------------------

enum rc_resp_kind {
	RC_RESP_NONE,
	RC_RESP_ACK,  // ACK or NAK
	RC_RESP_DATA, // READ response or ATOMIC ACKNOWLEDGE
};

// What waits to be sent. Answers to READs and atomics come first: an ACK stands behind them, since
// the peer takes a later PSN for the loss of an earlier answer.
static inline enum rc_resp_kind rc_resp_pending(const struct rc_responder *r)
{
	if (__builtin_expect(r->sending != 0, 0))
		return RC_RESP_DATA;
	return r->ack_due ? RC_RESP_ACK : RC_RESP_NONE;
}

struct rc_ack {
	uint32_t psn;
	uint32_t msn;
	uint8_t syndrome;
};

uint8_t rc_give_credits(const struct rc_responder *r);
// Makes `out` an ACK of what is before the answers that wait.
void rc_ack_before_answers(struct rc_responder *r, struct rc_ack *out);

// The ACK or NAK to send now, if rc_resp_pending() says so. Cumulative: it may be asked for later
// than RC_RX_RESPOND said and then stands for all responses due until now. Asked for while answers
// wait it acknowledges what is before them, and what was due stays due.
static inline void rc_tx_ack(struct rc_responder *r, struct rc_ack *out)
{
	if (__builtin_expect(r->sending != 0, 0)) {
		rc_ack_before_answers(r, out);
		return;
	}
	out->msn = r->msn;
	out->psn = r->epsn;
	out->syndrome = r->nak;
	if (r->nak == 0) {
		out->psn = psn_add(r->epsn, PSN_MASK); // the one before
		out->syndrome = AETH_ACK | AETH_CREDIT_INVALID;
		if (__builtin_expect(r->credits, 0))
			out->syndrome = rc_give_credits(r);
	}
	r->nak = 0;
	r->since_ack = 0;
	r->ack_due = false;
}

struct rc_response {
	uint64_t addr;     // READ: of the payload
	uint64_t original; // atomic
	uint32_t psn;
	uint32_t msn;
	uint32_t rkey;    // READ: of the region
	uint16_t payload; // bytes
	uint8_t opcode;
	uint8_t place; // enum rc_place
	uint8_t syndrome;
};

// The response to send now, of any kind; rc_resp_pending() must hold.
void rc_tx_response(struct rc_responder *r, struct rc_response *out);
