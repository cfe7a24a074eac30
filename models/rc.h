/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// The reliable connected transport of InfiniBand and RoCE, one queue pair's two halves: a requester
// that cuts work requests into packets and repeats them until they are answered, and a responder
// (models/rc_responder.h) that takes them in order, once. Pure state machines; the caller passes
// time in, moves packets and owns all memory.
//
//	requester                                       responder
//	rc_post_send                                    rc_post_recv
//	rc_can_send, rc_tx_next  ---- request ---->     rc_rx_request [, rc_atomic_done]
//	rc_rx_ack, rc_rx_read    <--- response -----    rc_resp_pending, rc_tx_response
//	rc_timeout at q->deadline, rc_rnr_expired
//	rc_poll: completions                            receive completions: from rc_rx_request
//
// Packets are counted over the queue pair's life in 64 bits ("sequence"); the PSN is psn0 +
// sequence modulo 2^24. A work request covers the sequences [first, end); within it everything is
// arithmetic: a work request may stand for `repeat` equal messages one after the other, so that a
// flow of a million messages is one entry of the send queue and nothing is kept per packet.

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "emu/core/simtime.h"
#include "models/rc_adaptive.h"
#include "models/rc_responder.h"
#include "models/verbs.h"
#include "pcap/psn.h"
#include "pcap/roce.h"

#define RC_WINDOW_MAX    (PSN_HALF - 1)
#define RC_RNR_INFINITE  7
#define RC_ENDLESS       UINT64_MAX
#define RC_NEVER         UINT64_MAX // a sequence never reached
#define RC_RD_ATOMIC_MAX 255

// ---- send queue ------------------------------------------------------------------------------

// A work request, or `repeat` equal ones in a row of which only the last completes.
struct rc_wr {
	uint64_t wr_id;
	uint64_t repeat;      // >= 1; RC_ENDLESS
	uint64_t local;       // caller's: where the payload of the first message is
	uint64_t remote_addr; // WRITE, READ: message i is at + i * length; atomics: all the same
	uint64_t compare;     // CMP_SWAP
	uint64_t swap_add;    // CMP_SWAP, FETCH_ADD
	uint32_t length;      // bytes per message, 0..2^31; atomics: 8
	uint32_t rkey;
	uint32_t imm;   // immediate data (host order), or the rkey SEND_INV invalidates
	uint8_t op;     // enum wr_op
	bool signaled;  // completes with an entry even when successful
	bool solicited; // SE bit on the last packet
	bool fence;     // waits for all READs and atomics before it
};

// An entry of the send queue. The queue's memory is the caller's: `struct rc_wqe sq[2^k]`.
struct rc_wqe {
	struct rc_wr wr;
	uint64_t first, end;   // sequences; end is RC_NEVER for an endless one
	uint64_t ssn;          // messages before it, over the queue pair's life
	uint32_t msg_pkts;     // sequences per message (READ: of its responses)
	uint16_t last_payload; // of a message's last packet (READ: response)
};

struct rc_config {
	uint16_t payload; // bytes per packet, >= 1 (the path MTU of a real QP)
	uint32_t window;  // unacknowledged packets, 1..RC_WINDOW_MAX; a READ may go over it
	uint32_t
		ack_every; // AckReq at least on every n-th packet, >= 1; always on a message's last
	simtime_t timeout; // local ACK timeout, 0 = none; rc_ack_timeout()
	uint8_t retry_cnt; // 0..7
	uint8_t rnr_retry; // RC_RNR_INFINITE = for ever
	uint8_t max_rd_atomic; // READs and atomics outstanding; 0: none may be posted
	bool adaptive;         // adaptive retransmission timer (mlx5's roce_adp_retrans)
	uint32_t psn;          // of the first packet
};

// Local ACK timeout of an exponent 0..31: 4.096 us * 2^exponent, 0 for 0 (IBTA vol. 1, 9.9.2.1).
simtime_t rc_ack_timeout(uint8_t exponent);

// ---- requester -------------------------------------------------------------------------------

enum rc_state { RC_READY, RC_RNR_WAIT, RC_ERROR };

struct rc_requester {
	// first line: what every packet touches
	uint64_t nxt;       // next to send
	uint64_t limit;     // first that may not be sent now (window, end of work, state)
	uint64_t una;       // oldest not acknowledged
	uint64_t max;       // one beyond the newest ever sent, of a READ: one beyond its responses
	uint64_t pos;       // byte position of nxt in its work request
	simtime_t deadline; // when rc_timeout() is due, SIMTIME_NEVER if nothing waits
	uint32_t in_msg;    // nxt's index within its message
	uint32_t msg_pkts;  // packets per message
	uint32_t psn0;
	uint16_t payload;      // of all packets but the last
	uint16_t last_payload; // of a message's last packet
	// second line
	uint64_t tx_slow;   // when nxt gets here another work request begins
	uint64_t ack_slow;  // an ACK of all before it moves more than the window
	uint64_t end;       // first not to be sent for another reason than the window
	simtime_t timeout;  // SIMTIME_NEVER: none
	uint32_t since_req; // packets since the last AckReq
	uint32_t ack_every;
	uint32_t msg_bytes;
	uint32_t window;
	const struct rc_wqe *wqe; // that of nxt; NULL when all posted is sent
	uint8_t op;               // enum wr_op
	uint8_t state;            // enum rc_state
	uint8_t status;           // enum wc_status
	uint8_t retry_left, retry_cnt;
	uint8_t rnr_left, rnr_retry;
	bool told; // the completion with `status` was given
	// third line: what a work request's begin and end touch
	struct rc_wqe *sq;
	uint32_t sq_mask;
	uint32_t polled;  // free-running: next to complete to the caller
	uint32_t done;    //   oldest with unacknowledged packets
	uint32_t cur;     //   that of nxt
	uint32_t tail;    //   next free
	uint32_t rd_out;  // READs and atomics sent and not answered
	uint64_t posted;  // end of all posted
	uint64_t stop;    // see rc_stop(), RC_NEVER: not stopped
	uint64_t hold;    // end of a run that is sent again (models/sr.h), RC_NEVER: none
	uint64_t next_rd; // first sequence from una on that a READ response or atomic answer is for
	uint64_t lsn;     // messages before it may be sent (credits), RC_NEVER: unlimited
	// fourth line
	uint64_t messages; // posted
	uint64_t implied;  // una when a hole was taken for a NAK; no more of them until it moves
	simtime_t rnr_until;
	uint8_t max_rd_atomic;
	bool gated; // `end` is set by credits, a fence, or the limit on READs
	struct rc_adaptive adaptive;
};

static_assert(offsetof(struct rc_requester, tx_slow) == 64, "line by line");
static_assert(offsetof(struct rc_requester, sq) == 128, "line by line");
static_assert(sizeof(struct rc_requester) <= 320, "five cache lines");

// A packet to send.
struct rc_request {
	const struct rc_wr *wr; // rkey, immediate, operands
	// Byte position in the work request of the payload, or of the data a READ asks for: the
	// local address is wr->local + pos.
	uint64_t pos;
	// RETH, AtomicETH: valid with RC_FIRST of WRITE, READ, atomics. Of a READ repeated from its
	// middle that of the rest.
	uint64_t remote_addr;
	uint32_t psn;
	uint32_t dma_len; // RETH: length of the message, or of the rest of a READ
	uint16_t payload; // bytes carried, 0 for READ and atomics
	uint8_t opcode;   // of ROCE_RC
	uint8_t place;    // enum rc_place; RC_ONLY for READ and atomics
	bool ack_req;
	bool solicited;
	bool again; // sent before
};

// `sq`: the send queue's memory, `entries` a power of two; it must stay where it is.
void rc_requester_init(
	struct rc_requester *q, const struct rc_config *cfg, struct rc_wqe *sq, uint32_t entries);

// Appends a work request. Returns 0, -ENOMEM (queue full, or behind an endless request), -EINVAL
// (operation, length, repeat), -EPIPE (the QP is in error: taken, to complete flushed).
int rc_post_send(struct rc_requester *q, const struct rc_wr *wr);

// A completion of the send queue.
struct rc_wc {
	uint64_t wr_id;
	uint32_t length; // bytes of one message
	uint8_t op;      // enum wr_op
	uint8_t status;  // enum wc_status
};

// The next completion, in posting order; false when there is none. In error the first not
// completed carries q->status, the rest are flushed. Call it after RC_ACK_COMPLETED and
// RC_ACK_ERROR until it returns false.
bool rc_poll(struct rc_requester *q, struct rc_wc *out);

// Nothing new from now on but one packet that may be needed to ask for an acknowledgement; what was
// sent is repeated as needed.
void rc_stop(struct rc_requester *q);
// Continues after rc_stop().
void rc_start(struct rc_requester *q);

// From outside, as a modify to the error state: all that is not completed will be flushed, the
// first with `status`. Returns RC_ACK_* bits.
int rc_error(struct rc_requester *q, enum wc_status status);

static inline bool rc_can_send(const struct rc_requester *q)
{
	return q->nxt < q->limit;
}

// All that was posted is acknowledged.
static inline bool rc_done(const struct rc_requester *q)
{
	return q->una == q->posted;
}

// Opcode of a packet of ROCE_RC by operation and place; READ and atomics are always RC_ONLY.
extern const uint8_t rc_opcode_of[WR_OP_COUNT][4];

static inline uint8_t rc_opcode(enum wr_op op, enum rc_place place)
{
	return rc_opcode_of[op][place];
}

// Messages wholly acknowledged until now (READ, atomics: answered), over the QP's life.
uint64_t rc_acked_messages(const struct rc_requester *q);

// The paths of rc_tx_next() off the straight line.
void rc_tx_rd_atomic(struct rc_requester *q, simtime_t now, struct rc_request *out);
void rc_tx_slow(struct rc_requester *q, simtime_t now);

// The packet to send now, when it is one of a SEND or WRITE; rc_can_send() must hold.
static inline void rc_tx_message(struct rc_requester *q, simtime_t now, struct rc_request *out)
{
	enum wr_op op = (enum wr_op)q->op;
	uint64_t seq = q->nxt++;
	uint32_t idx = q->in_msg;
	bool last = idx + 1 == q->msg_pkts;
	enum rc_place place = (enum rc_place)((idx == 0 ? RC_FIRST : 0) | (last ? RC_LAST : 0));

	out->wr = &q->wqe->wr;
	out->psn = psn_add(q->psn0, seq);
	out->place = (uint8_t)place;
	out->opcode = rc_opcode(op, place);
	out->dma_len = q->msg_bytes;
	out->pos = q->pos;
	out->payload = last ? q->last_payload : q->payload;
	out->again = seq < q->max;
	out->solicited = false;
	q->pos += out->payload;
	q->in_msg = last ? 0 : idx + 1;
	out->remote_addr = place & RC_FIRST ? out->wr->remote_addr + out->pos : 0;
	if (last)
		out->solicited = out->wr->solicited;
	if (!out->again)
		q->max = seq + 1;
	if (__builtin_expect(q->nxt == q->tx_slow, 0))
		rc_tx_slow(q, now);
	out->ack_req = last | (++q->since_req >= q->ack_every) | (q->nxt == q->limit);
	if (out->ack_req)
		q->since_req = 0;
	if (q->deadline == SIMTIME_NEVER && q->timeout != SIMTIME_NEVER)
		q->deadline = now + q->timeout;
}

// The packet to send now; rc_can_send() must hold.
static inline void rc_tx_next(struct rc_requester *q, simtime_t now, struct rc_request *out)
{
	if (wr_is_rd_atomic((enum wr_op)q->op))
		rc_tx_rd_atomic(q, now, out);
	else
		rc_tx_message(q, now, out);
}

enum rc_ack_result {
	RC_ACK_STALE = 0,          // acknowledges nothing new or nothing ever sent
	RC_ACK_PROGRESS = 1 << 0,  // the window moved: look at rc_can_send()
	RC_ACK_REWOUND = 1 << 1,   // goes back to the oldest unacknowledged packet
	RC_ACK_RNR = 1 << 2,       // call rc_rnr_expired() at q->rnr_until
	RC_ACK_ERROR = 1 << 3,     // the QP has failed with q->status; rc_poll()
	RC_ACK_COMPLETED = 1 << 4, // a work request is complete; rc_poll()
	RC_ACK_DATA = 1 << 5,      // rc_rx_read(): `out` is valid
	RC_ACK_IMPLIED = 1 << 6, // a hole in the answers was taken for a NAK (implied_nak_seq_err)
};

// The paths of rc_rx_ack() off the straight line: a NAK or limited credits; an ACK that completes
// a work request or passes over the answer to a READ. `una` is that after the ACK.
int rc_rx_nak(struct rc_requester *q, simtime_t now, uint32_t psn, uint32_t aeth);
int rc_ack_slow(struct rc_requester *q, simtime_t now, uint64_t una);
// Moves nxt to packet `seq`, una <= seq <= posted.
void rc_seek(struct rc_requester *q, uint64_t seq);

// Acknowledges all packets before `una`, q->una < una <= max.
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

// From now on at most so many packets in flight, >= 1; what is beyond stays.
static inline void rc_set_window(struct rc_requester *q, uint32_t window)
{
	uint64_t limit = q->una + window;

	q->window = window;
	if (q->state == RC_READY)
		q->limit = limit < q->end ? limit : q->end;
}

#define RC_AETH(syndrome, msn) ((uint32_t)(syndrome) << 24 | (msn))

// An ACKNOWLEDGE packet came in: its PSN and its AETH (syndrome << 24 | MSN). Returns RC_ACK_*
// bits.
static inline int rc_rx_ack(struct rc_requester *q, simtime_t now, uint32_t psn, uint32_t aeth)
{
	if (__builtin_expect(aeth >> 24 != (AETH_ACK | AETH_CREDIT_INVALID), 0))
		return rc_rx_nak(q, now, psn, aeth);

	int32_t d = psn_diff(psn, psn_add(q->psn0, q->una));
	uint64_t una = q->una + (uint32_t)d + 1;
	if (d < 0 || una > q->max || q->state == RC_ERROR)
		return RC_ACK_STALE;
	if (__builtin_expect(una >= q->ack_slow, 0))
		return rc_ack_slow(q, now, una);
	rc_advance(q, now, una);
	return RC_ACK_PROGRESS;
}

// What came back for a READ or an atomic.
struct rc_read_place {
	const struct rc_wr *wr;
	uint64_t pos;    // where its payload belongs: wr->local + pos
	uint32_t length; // bytes; an atomic's answer: 8, the original value
	bool last;       // of its message
};

// A READ response or ATOMIC ACKNOWLEDGE came in, `payload` bytes long. `aeth` is 0 for the opcode
// without one (RESP_MIDDLE). Returns RC_ACK_* bits.
int rc_rx_read(struct rc_requester *q, simtime_t now, uint8_t opcode, uint32_t psn, uint32_t aeth,
	uint32_t payload, struct rc_read_place *out);

// To be called at or after q->deadline. Returns RC_ACK_REWOUND, RC_ACK_ERROR, or RC_ACK_STALE if
// the deadline is not reached.
int rc_timeout(struct rc_requester *q, simtime_t now);
// To be called at or after q->rnr_until; sending may go on.
void rc_rnr_expired(struct rc_requester *q, simtime_t now);
