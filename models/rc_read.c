/* SPDX-License-Identifier: BSD-3-Clause */
// Answers to READs and atomics (IBTA vol. 1, 9.7.5.1, 9.4.4, 9.4.5).
//
// Answers come in the order of the requests, so exactly one PSN is awaited: next_rd, the first from
// una on that belongs to a READ or atomic. An answer with that PSN is taken; it acknowledges
// everything before it too. One further on shows a hole: implied NAK, once per hole. One from the
// past is a duplicate or ghost and ignored.
//
// A response taken moves una by one: the window, the timer and the retries follow the data as they
// follow ACKs. If the request is repeated from the middle, responses of the first request that
// are still on their way are as good as those of the second: they carry the same bytes by PSN. So
// FIRST, MIDDLE, LAST and ONLY are held against one thing only, whether the message ends here.
//
// An answer of another kind than what was asked for, or of another length than the message has at
// this place, ends the queue pair with BAD_RESP_ERR (9.9.2).
#include "models/rc.h"
#include "models/rc_internal.h"

static bool fits(const struct rc_requester *q, const struct rc_wqe *w, uint8_t opcode, bool last,
	uint32_t payload)
{
	if (w->wr.op != WR_READ)
		return opcode == ROCE_ATOMIC_ACK;

	bool ends = opcode == ROCE_READ_RESP_LAST || opcode == ROCE_READ_RESP_ONLY;
	bool goes_on = opcode == ROCE_READ_RESP_FIRST || opcode == ROCE_READ_RESP_MIDDLE;
	return (last ? ends : goes_on) && payload == (last ? w->last_payload : q->payload);
}

// The work request that number `seq`, una or later, belongs to.
static const struct rc_wqe *find(const struct rc_requester *q, uint64_t seq)
{
	uint32_t i = q->done;

	while (rc_wqe_at(q, i)->end <= seq)
		i++;
	return rc_wqe_at(q, i);
}

static int taken(struct rc_requester *q, simtime_t now, const struct rc_wqe *w, uint64_t seq,
	uint32_t payload, struct rc_read_place *out)
{
	uint64_t in_wqe = seq - w->first, msg = in_wqe / w->msg_pkts;
	uint32_t idx = (uint32_t)(in_wqe - msg * w->msg_pkts);

	*out = (struct rc_read_place){
		.wr = &w->wr,
		.pos = msg * w->wr.length + (uint64_t)idx * q->payload,
		.length = w->wr.op == WR_READ ? payload : RC_ATOMIC_BYTES,
		.last = idx + 1 == w->msg_pkts,
	};
	// Not below 0: after going back an answer to the first request may come.
	if (out->last && q->rd_out != 0)
		q->rd_out--;
	return RC_ACK_DATA | rc_moved(q, now, seq + 1);
}

int rc_rx_read(struct rc_requester *q, simtime_t now, uint8_t opcode, uint32_t psn, uint32_t aeth,
	uint32_t payload, struct rc_read_place *out)
{
	int32_t d = psn_diff(psn, psn_add(q->psn0, q->una));
	uint64_t seq = q->una + (uint64_t)(int64_t)d;
	int result = RC_ACK_STALE;

	if (d < 0 || seq >= q->max || q->state == RC_ERROR)
		return RC_ACK_STALE;

	const struct rc_wqe *w = find(q, seq);
	if (!wr_is_rd_atomic((enum wr_op)w->wr.op))
		return rc_fail(q, WC_BAD_RESP_ERR);
	if (seq > q->next_rd) {
		if (q->next_rd > q->una)
			result = rc_moved(q, now, q->next_rd);
		return result | rc_implied_nak(q, now);
	}
	bool last = (seq - w->first) % w->msg_pkts + 1 == w->msg_pkts;
	if (!fits(q, w, opcode, last, payload))
		return rc_fail(q, WC_BAD_RESP_ERR);
	result = taken(q, now, w, seq, payload, out);
	if (opcode != ROCE_READ_RESP_MIDDLE &&
		(q->lsn != RC_NEVER || (aeth >> 24) != (AETH_ACK | AETH_CREDIT_INVALID)))
		rc_take_credits(q, aeth);
	return result;
}
