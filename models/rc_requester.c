/* SPDX-License-Identifier: BSD-3-Clause */
// Requester of the reliable connected transport: what is sent when, after IBTA vol. 1 chapter 9
// (9.7.2 PSNs, 9.7.3 requester, 9.9 errors). Answers are in rc_complete.c and rc_read.c.
//
// Packets are numbered from 0: una <= nxt <= max, and max - una < 2^23, which keeps 24-bit PSNs
// unambiguous. A work request covers [first, end) of the numbers, repeat * msg_pkts of them; a
// packet's message and offset are (seq - first) / msg_pkts and the rest of it, kept incrementally:
// only going back divides. A zero-length message is one packet. A READ is one packet of request but
// takes the numbers of its responses, ceil(length / payload) (9.7.3): nxt jumps over them, and una
// walks through them as the responses come in. Repeated from its middle it asks for the rest: a
// RETH that much further and shorter.
//
// Going back (go-back-N) sets nxt to una: after a NAK for a PSN sequence error, which also
// acknowledges all before its PSN (9.7.5.1.1), after a hole in the answers (an implied NAK), and
// after a local ACK timeout. Each uses one of retry_cnt retries; any progress gives them back
// (9.9.2.4.1 counts per work request: the same for the oldest one). With none left the QP fails
// with RETRY_EXC. An RNR NAK waits for its timer and uses one of rnr_retry, 7 meaning for ever.
//
// The timer runs from the last progress, or from the first packet sent after everything was
// acknowledged; the standard lets a device take up to four times as long, this one takes exactly
// the configured time.
//
// `end` is the first number that may not be sent whatever the window: the end of what is posted,
// where rc_stop() has stopped, or a gate before the work request at nxt:
//   READ, atomic: at most max_rd_atomic unanswered (9.7.3, responder resources), and no number
//     2^23 beyond una;
//   fence: nothing before all READs and atomics are answered (10.8.3.3);
//   SEND, WRITE with immediate: end-to-end credits (9.7.7.2): message number m may go when m < lsn,
//     and of the first beyond it one packet, asking for an ACK.
// While a gate is shut, or credits are limited, every ACK takes the slow path and looks again.
#include "models/rc.h"

#include <errno.h>

#include "models/rc_internal.h"

#define ACK_TIMEOUT_UNIT_PS (4096 * SIM_NS)

const uint8_t rc_opcode_of[WR_OP_COUNT][4] = {
#define GROUP(first, middle, last, only)                                          \
	{                                                                         \
		[RC_MIDDLE] = (middle), [RC_FIRST] = (first), [RC_LAST] = (last), \
		[RC_ONLY] = (only)                                                \
	}
	[WR_WRITE] = GROUP(ROCE_WRITE_FIRST, ROCE_WRITE_MIDDLE, ROCE_WRITE_LAST, ROCE_WRITE_ONLY),
	[WR_WRITE_IMM] = GROUP(
		ROCE_WRITE_FIRST, ROCE_WRITE_MIDDLE, ROCE_WRITE_LAST_IMM, ROCE_WRITE_ONLY_IMM),
	[WR_SEND] = GROUP(ROCE_SEND_FIRST, ROCE_SEND_MIDDLE, ROCE_SEND_LAST, ROCE_SEND_ONLY),
	[WR_SEND_IMM] =
		GROUP(ROCE_SEND_FIRST, ROCE_SEND_MIDDLE, ROCE_SEND_LAST_IMM, ROCE_SEND_ONLY_IMM),
	[WR_SEND_INV] =
		GROUP(ROCE_SEND_FIRST, ROCE_SEND_MIDDLE, ROCE_SEND_LAST_INV, ROCE_SEND_ONLY_INV),
	[WR_READ] = GROUP(0, 0, 0, ROCE_READ_REQUEST),
	[WR_CMP_SWAP] = GROUP(0, 0, 0, ROCE_CMP_SWAP),
	[WR_FETCH_ADD] = GROUP(0, 0, 0, ROCE_FETCH_ADD),
#undef GROUP
};

simtime_t rc_ack_timeout(uint8_t exponent)
{
	return exponent == 0 ? 0 : ACK_TIMEOUT_UNIT_PS << (exponent & 31);
}

void rc_requester_init(
	struct rc_requester *q, const struct rc_config *cfg, struct rc_wqe *sq, uint32_t entries)
{
	*q = (struct rc_requester){
		.deadline = SIMTIME_NEVER,
		.psn0 = cfg->psn & PSN_MASK,
		.payload = cfg->payload,
		.tx_slow = RC_NEVER,
		.ack_slow = RC_NEVER,
		.ack_every = cfg->ack_every,
		.window = cfg->window,
		.timeout = cfg->timeout != 0 ? cfg->timeout : SIMTIME_NEVER,
		.retry_left = cfg->retry_cnt,
		.retry_cnt = cfg->retry_cnt,
		.rnr_left = cfg->rnr_retry,
		.rnr_retry = cfg->rnr_retry,
		.sq = sq,
		.sq_mask = entries - 1,
		.stop = RC_NEVER,
		.hold = RC_NEVER,
		.next_rd = RC_NEVER,
		.lsn = RC_NEVER,
		.implied = RC_NEVER,
		.rnr_until = SIMTIME_NEVER,
		.max_rd_atomic = cfg->max_rd_atomic,
	};
	if (cfg->adaptive)
		rc_adaptive_init(q);
}

// ---- gates -----------------------------------------------------------------------------------

// How far the message that begins at `seq` and has no credit may be sent: a SEND by one packet,
// unless that has been acknowledged and so has a receive; a WRITE needs none before its last.
static uint64_t beyond_credits(const struct rc_requester *q, const struct rc_wqe *w, uint64_t seq)
{
	return seq + (w->wr.op == WR_WRITE_IMM || q->una > seq ? w->msg_pkts : 1);
}

// First number of work request `w`, nxt being in it, that may not be sent yet.
static uint64_t gate_of(const struct rc_requester *q, const struct rc_wqe *w)
{
	enum wr_op op = (enum wr_op)w->wr.op;

	if (w->wr.fence && q->nxt == w->first && q->next_rd < q->nxt)
		return q->nxt;
	if (wr_is_rd_atomic(op)) {
		uint64_t end = q->nxt + (w->msg_pkts - q->in_msg);
		if (q->rd_out >= q->max_rd_atomic || end - q->una > RC_WINDOW_MAX)
			return q->nxt;
	}
	if (q->lsn != RC_NEVER && wr_needs_recv(op)) {
		uint64_t n = q->lsn > w->ssn ? q->lsn - w->ssn : 0;
		// A NAK acknowledges messages without saying anything about credits.
		uint64_t acked = q->una > w->first ? (q->una - w->first) / w->msg_pkts : 0;
		n = n > acked ? n : acked;
		if (n < w->wr.repeat)
			return beyond_credits(q, w, w->first + n * w->msg_pkts);
	}
	return RC_NEVER;
}

void rc_gate(struct rc_requester *q)
{
	uint64_t gate = q->wqe != NULL ? gate_of(q, q->wqe) : RC_NEVER;
	uint64_t limit = q->una + q->window;

	q->end = q->posted < q->stop ? q->posted : q->stop;
	if (q->hold < q->end)
		q->end = q->hold;
	q->gated = gate < q->end;
	if (q->gated)
		q->end = gate;
	q->limit = q->state != RC_READY ? 0 : limit < q->end ? limit : q->end;

	q->ack_slow = q->next_rd != RC_NEVER ? q->next_rd + 1 : RC_NEVER;
	if (q->gated || q->lsn != RC_NEVER || q->adaptive.backed_off)
		q->ack_slow = 0;
	else if (q->done != q->tail && rc_wqe_at(q, q->done)->end < q->ack_slow)
		q->ack_slow = rc_wqe_at(q, q->done)->end;
	if (q->adaptive.on && q->adaptive.sent_at != SIMTIME_NEVER &&
		q->adaptive.mark + 1 < q->ack_slow)
		q->ack_slow = q->adaptive.mark + 1;
}

// ---- send queue ------------------------------------------------------------------------------

void rc_aim(struct rc_requester *q)
{
	const struct rc_adaptive *a = &q->adaptive;

	q->tx_slow = q->wqe != NULL ? q->wqe->end : RC_NEVER;
	if (a->on && a->mark >= q->nxt && a->mark < q->tx_slow &&
		!wr_is_rd_atomic((enum wr_op)q->op))
		q->tx_slow = a->mark + 1;
}

// Makes sq[cur] the work request of nxt, which is at its first packet.
static void load(struct rc_requester *q)
{
	if (q->cur == q->tail) {
		q->wqe = NULL;
		rc_aim(q);
		return;
	}

	const struct rc_wqe *w = rc_wqe_at(q, q->cur);
	q->wqe = w;
	q->op = w->wr.op;
	q->msg_pkts = w->msg_pkts;
	q->msg_bytes = w->wr.length;
	q->last_payload = w->last_payload;
	q->in_msg = 0;
	q->pos = 0;
	rc_aim(q);
}

void rc_tx_slow(struct rc_requester *q, simtime_t now)
{
	if (q->adaptive.on && q->nxt == q->adaptive.mark + 1)
		rc_adaptive_sent(q, now);
	if (q->nxt == q->wqe->end) {
		q->cur++;
		load(q);
	} else {
		rc_aim(q);
	}
	rc_gate(q);
}

static bool valid(const struct rc_requester *q, const struct rc_wr *wr, uint32_t pkts)
{
	enum wr_op op = (enum wr_op)wr->op;

	if (op >= WR_OP_COUNT || wr->repeat == 0 || wr->length > RC_MESSAGE_MAX)
		return false;
	if (wr_is_rd_atomic(op) && (q->max_rd_atomic == 0 || pkts > RC_WINDOW_MAX))
		return false;
	return (op != WR_CMP_SWAP && op != WR_FETCH_ADD) || wr->length == RC_ATOMIC_BYTES;
}

// Room by forgetting what has completed without an entry.
static bool has_room(struct rc_requester *q)
{
	while (q->tail - q->polled > q->sq_mask) {
		const struct rc_wqe *w = rc_wqe_at(q, q->polled);
		if (w->end > q->una || w->wr.signaled)
			return false;
		q->polled++;
	}
	return true;
}

int rc_post_send(struct rc_requester *q, const struct rc_wr *wr)
{
	enum wr_op op = (enum wr_op)wr->op;
	bool atomic = wr_is_rd_atomic(op) && op != WR_READ;
	uint32_t pkts = wr->length == 0 || atomic ? 1 : (wr->length - 1) / q->payload + 1;

	if (!valid(q, wr, pkts))
		return -EINVAL;
	if (q->posted == RC_NEVER || !has_room(q))
		return -ENOMEM;

	struct rc_wqe *w = rc_wqe_at(q, q->tail);
	bool endless = wr->repeat >= (RC_NEVER - q->posted) / pkts;
	*w = (struct rc_wqe){
		.wr = *wr,
		.first = q->posted,
		.end = endless ? RC_NEVER : q->posted + wr->repeat * pkts,
		.ssn = q->messages,
		.msg_pkts = pkts,
		.last_payload = (uint16_t)(wr->length - (pkts - 1) * q->payload),
	};
	q->posted = w->end;
	q->messages = endless ? RC_NEVER : q->messages + wr->repeat;
	if (q->cur == q->tail++)
		load(q);
	rc_gate(q);
	return q->state == RC_ERROR ? -EPIPE : 0;
}

void rc_start(struct rc_requester *q)
{
	q->stop = RC_NEVER;
	rc_gate(q);
}

void rc_stop(struct rc_requester *q)
{
	uint64_t end = q->max;

	// Packets sent since the last request for an ACK would wait for their timeout.
	if (q->nxt == q->max && q->since_req != 0)
		end++;
	if (end < q->stop)
		q->stop = end;
	rc_gate(q);
}

// ---- sending ---------------------------------------------------------------------------------

void rc_tx_rd_atomic(struct rc_requester *q, simtime_t now, struct rc_request *out)
{
	const struct rc_wr *wr = &q->wqe->wr;
	uint64_t seq = q->nxt;
	uint32_t skip = q->in_msg * q->payload; // of a READ: what has come already

	*out = (struct rc_request){
		.wr = wr,
		.pos = q->pos,
		.remote_addr = wr->remote_addr + (wr->op == WR_READ ? q->pos : 0),
		.psn = psn_add(q->psn0, seq),
		.dma_len = wr->length - skip,
		.opcode = rc_opcode((enum wr_op)wr->op, RC_ONLY),
		.place = RC_ONLY,
		.ack_req = true,
		.solicited = wr->solicited,
		.again = seq < q->max,
	};
	q->nxt += q->msg_pkts - q->in_msg;
	q->pos += out->dma_len;
	q->in_msg = 0;
	q->since_req = 0;
	if (q->nxt > q->max)
		q->max = q->nxt;
	q->rd_out++;
	if (seq < q->next_rd)
		q->next_rd = seq;
	if (q->deadline == SIMTIME_NEVER && q->timeout != SIMTIME_NEVER)
		q->deadline = now + q->timeout;
	if (q->nxt == q->tx_slow)
		rc_tx_slow(q, now);
	else
		rc_gate(q);
}

void rc_seek(struct rc_requester *q, uint64_t seq)
{
	uint32_t i = q->done;

	while (i != q->tail && rc_wqe_at(q, i)->end <= seq)
		i++;
	q->nxt = seq;
	q->cur = i;
	q->since_req = 0;
	q->rd_out = 0; // what is in flight is not counted on
	load(q);
	if (q->wqe != NULL) {
		uint64_t in_wqe = seq - q->wqe->first, msg = in_wqe / q->msg_pkts;
		q->in_msg = (uint32_t)(in_wqe - msg * q->msg_pkts);
		q->pos = msg * q->msg_bytes + (uint64_t)q->in_msg * q->payload;
	}
	if (q->adaptive.on)
		rc_adaptive_mark(q);
	rc_gate(q);
}

// ---- going back and ending -------------------------------------------------------------------

int rc_fail(struct rc_requester *q, enum wc_status status)
{
	q->state = RC_ERROR;
	q->status = (uint8_t)status;
	q->deadline = SIMTIME_NEVER;
	q->rnr_until = SIMTIME_NEVER;
	rc_gate(q);
	return RC_ACK_ERROR;
}

int rc_error(struct rc_requester *q, enum wc_status status)
{
	return q->state == RC_ERROR ? RC_ACK_STALE : rc_fail(q, status);
}

static int go_back(struct rc_requester *q, simtime_t now)
{
	rc_seek(q, q->una);
	if (q->timeout != SIMTIME_NEVER)
		q->deadline = now + q->timeout;
	return RC_ACK_REWOUND;
}

int rc_retry(struct rc_requester *q, simtime_t now)
{
	if (q->retry_left == 0)
		return rc_fail(q, WC_RETRY_EXC_ERR);
	q->retry_left--;
	return go_back(q, now);
}

int rc_implied_nak(struct rc_requester *q, simtime_t now)
{
	// What was in flight behind the hole tells of it again and again.
	if (q->implied == q->una || q->nxt == q->una)
		return RC_ACK_STALE;
	q->implied = q->una;
	return RC_ACK_IMPLIED | rc_retry(q, now);
}

int rc_timeout(struct rc_requester *q, simtime_t now)
{
	if (now < q->deadline)
		return RC_ACK_STALE;
	q->implied = RC_NEVER;
	if (q->adaptive.on && rc_adaptive_expired(q))
		return go_back(q, now);
	return rc_retry(q, now);
}

void rc_rnr_expired(struct rc_requester *q, simtime_t now)
{
	if (q->state != RC_RNR_WAIT || now < q->rnr_until)
		return;
	q->state = RC_READY;
	q->rnr_until = SIMTIME_NEVER;
	rc_gate(q);
}
