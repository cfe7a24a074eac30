/* SPDX-License-Identifier: BSD-3-Clause */
// What acknowledgements do to the requester (IBTA vol. 1, 9.7.5, 9.7.7, 9.9.2), and completions.
//
// An ACK of PSN p acknowledges all up to p. One that passes over the answer to an outstanding READ
// or atomic shows that the answer was lost, since answers come in order: it acknowledges only what
// is before that request, and is an implied NAK for it (9.7.3.2). A NAK
// acknowledges all before its PSN, with the same exception.
//
// NAK codes end the queue pair with the status of the table below, but for a PSN sequence error,
// which goes back, and RNR. Reserved codes are ignored: the timer will tell.
//
// Credits (9.7.7.2): an ACK with credit code c and MSN m lets all messages before m + credits(c) be
// sent. 0x1f says that there is no such limit. Until the first ACK there is none either.
//
// Completions come in posting order: a work request is complete when una has passed its end, which
// for a READ means that its data is there. A queue pair in error completes what is acknowledged
// with success, the oldest of the rest with the reason, and all others flushed (10.10.2.3).
#include "models/rc.h"
#include "models/rc_internal.h"

// First number from una on that a READ response or an atomic's answer is awaited for.
static uint64_t next_rd(const struct rc_requester *q)
{
	for (uint32_t i = q->done; i != q->tail; i++) {
		const struct rc_wqe *w = rc_wqe_at(q, i);
		if (w->first >= q->max)
			break;
		if (!wr_is_rd_atomic((enum wr_op)w->wr.op))
			continue;
		uint64_t seq = w->first > q->una ? w->first : q->una;
		return seq < q->max ? seq : RC_NEVER;
	}
	return RC_NEVER;
}

int rc_moved(struct rc_requester *q, simtime_t now, uint64_t una)
{
	int result = RC_ACK_PROGRESS;

	if (q->adaptive.on)
		rc_adaptive_acked(q, now, una);
	rc_advance(q, now, una);
	for (; q->done != q->tail && rc_wqe_at(q, q->done)->end <= una; q->done++)
		result |= RC_ACK_COMPLETED;
	if (q->next_rd != RC_NEVER)
		q->next_rd = next_rd(q);
	rc_gate(q);
	return result;
}

// Moves una to at most `una`; *hole when the answer of a READ or atomic is missing before it.
static int move_to(struct rc_requester *q, simtime_t now, uint64_t una, bool *hole)
{
	*hole = una > q->next_rd;
	if (*hole)
		una = q->next_rd;
	return una > q->una ? rc_moved(q, now, una) : RC_ACK_STALE;
}

int rc_ack_slow(struct rc_requester *q, simtime_t now, uint64_t una)
{
	bool hole;

	q->lsn = RC_NEVER;
	int result = move_to(q, now, una, &hole);
	if (result == RC_ACK_STALE)
		rc_gate(q);
	return hole ? result | rc_implied_nak(q, now) : result;
}

void rc_take_credits(struct rc_requester *q, uint32_t aeth)
{
	uint8_t code = aeth >> 24 & ~AETH_TYPE_MASK & 0xff;

	if (code == AETH_CREDIT_INVALID) {
		q->lsn = RC_NEVER;
	} else {
		uint64_t acked = rc_acked_messages(q);
		int32_t ahead = psn_diff(aeth & PSN_MASK, (uint32_t)acked & PSN_MASK);
		uint64_t lsn = acked + (uint64_t)(int64_t)ahead + rc_credits(code);
		// Credits are never taken back; an old ACK says less than a newer one did.
		if (q->lsn == RC_NEVER || lsn > q->lsn)
			q->lsn = lsn;
	}
	rc_gate(q);
}

// An ACK with credits.
static int limited_ack(struct rc_requester *q, simtime_t now, int32_t d, uint32_t aeth)
{
	uint64_t una = q->una + (uint64_t)(int64_t)d + 1;
	uint64_t limit = q->limit;
	bool hole = false;
	int result = RC_ACK_STALE;

	if (d < -1 || una > q->max || q->state == RC_ERROR)
		return RC_ACK_STALE;
	if (d >= 0)
		result = move_to(q, now, una, &hole);
	rc_take_credits(q, aeth);
	if (hole)
		return result | rc_implied_nak(q, now);
	return q->limit > limit ? result | RC_ACK_PROGRESS : result;
}

static int receiver_not_ready(struct rc_requester *q, simtime_t now, uint8_t timer)
{
	if (q->rnr_left == 0)
		return rc_fail(q, WC_RNR_RETRY_EXC_ERR);
	if (q->rnr_left != RC_RNR_INFINITE)
		q->rnr_left--;
	q->state = RC_RNR_WAIT;
	q->rnr_until = now + rc_rnr_time(timer);
	q->deadline = SIMTIME_NEVER;
	rc_seek(q, q->una);
	return RC_ACK_REWOUND | RC_ACK_RNR;
}

// What a NAK code of table 44 ends the queue pair with; WC_SUCCESS: it does not.
static enum wc_status fatal_status(uint8_t syndrome)
{
	switch (syndrome) {
	case AETH_NAK_INVALID_REQ:
		return WC_REM_INV_REQ_ERR;
	case AETH_NAK_REM_ACCESS:
		return WC_REM_ACCESS_ERR;
	case AETH_NAK_REM_OP:
		return WC_REM_OP_ERR;
	case AETH_NAK_INVALID_RD:
		return WC_REM_INV_RD_REQ_ERR;
	default:
		return WC_SUCCESS;
	}
}

int rc_rx_nak(struct rc_requester *q, simtime_t now, uint32_t psn, uint32_t aeth)
{
	uint8_t syndrome = (uint8_t)(aeth >> 24);
	int32_t d = psn_diff(psn, psn_add(q->psn0, q->una));
	bool hole;

	if ((syndrome & AETH_TYPE_MASK) == AETH_ACK)
		return limited_ack(q, now, d, aeth);
	// A NAK for max itself asks for nothing sent yet; it still acknowledges what is before.
	if (d < 0 || q->una + (uint32_t)d > q->max || q->state == RC_ERROR)
		return RC_ACK_STALE;

	int result = move_to(q, now, q->una + (uint32_t)d, &hole);
	if (q->una == q->max || q->state == RC_RNR_WAIT)
		return result;
	if ((syndrome & AETH_TYPE_MASK) == AETH_RNR_NAK)
		return result | receiver_not_ready(q, now, syndrome & ~AETH_TYPE_MASK & 0xff);
	if (fatal_status(syndrome) != WC_SUCCESS)
		return result | rc_fail(q, fatal_status(syndrome));
	if (hole)
		return result | rc_implied_nak(q, now);
	// Already there: this NAK and the last one tell of the same loss.
	if (syndrome == AETH_NAK_PSN_SEQ && q->nxt != q->una)
		return result | rc_retry(q, now);
	return result;
}

uint64_t rc_acked_messages(const struct rc_requester *q)
{
	if (q->done == q->tail)
		return q->messages;

	const struct rc_wqe *w = rc_wqe_at(q, q->done);
	return w->ssn + (q->una - w->first) / w->msg_pkts;
}

bool rc_poll(struct rc_requester *q, struct rc_wc *out)
{
	while (q->polled != q->tail) {
		const struct rc_wqe *w = rc_wqe_at(q, q->polled);
		bool complete = w->end <= q->una;
		if (!complete && q->state != RC_ERROR)
			return false;
		q->polled++;
		if (complete && !w->wr.signaled)
			continue;
		*out = (struct rc_wc){
			.wr_id = w->wr.wr_id,
			.length = w->wr.length,
			.op = w->wr.op,
			.status = complete  ? WC_SUCCESS
				  : q->told ? WC_WR_FLUSH_ERR
					    : q->status,
		};
		q->told |= !complete;
		return true;
	}
	return false;
}
