/* SPDX-License-Identifier: BSD-3-Clause */
// Reliable connected transport, after IBTA vol. 1 chapter 9.
//
// Requester (9.7.3, 9.9): packets are numbered from 0; una <= nxt <= max, una <= max, and
// max - una <= window < 2^23, which keeps 24-bit PSNs unambiguous. A packet's message and offset
// are seq / msg_pkts and seq % msg_pkts, kept incrementally; only going back divides.
// Going back (go-back-N) sets nxt to una: after a NAK for a PSN sequence error, which also
// acknowledges all before its PSN (9.7.5.1.1), and after a local ACK timeout. Each uses one of
// retry_cnt retries; any progress gives them back (9.9.2.4.1 counts per work request: the same
// for the oldest one). With none left the QP fails with RETRY_EXC. An RNR NAK waits for its timer
// and uses one of rnr_retry, 7 meaning for ever.
// The timer runs from the last progress, or from the first packet sent after everything was
// acknowledged; the standard lets a device take up to four times as long, this one takes exactly
// the configured time.
//
// Responder (9.7.4, 9.7.5): takes only the expected PSN. A packet from the future is dropped and
// reported once per gap; one from the past is acknowledged again with the newest PSN taken. ACKs
// are cumulative, so that a response that could not be sent at once may be merged with later ones.
// A packet that does not fit the message in progress is an invalid request: one NAK, then the
// responder takes nothing more.
//
// Simplified: receive queue entries never run out here (RNR NAKs come only from foreign peers), no
// end-to-end credits (ACKs say "unlimited"), no immediate data.
#include "models/rc.h"

#include <string.h>

#define ACK_TIMEOUT_UNIT_PS (4096 * SIM_NS)

enum { IN_NONE = 0, IN_SEND = RC_OP_SEND + 1, IN_WRITE = RC_OP_WRITE + 1 };

const struct rc_opcode_rule rc_opcode_rules[32] = {
	[ROCE_SEND_FIRST] = {IN_NONE, IN_SEND, 1},
	[ROCE_SEND_MIDDLE] = {IN_SEND, IN_SEND, 1},
	[ROCE_SEND_LAST] = {IN_SEND, IN_NONE, 1},
	[ROCE_SEND_ONLY] = {IN_NONE, IN_NONE, 1},
	[ROCE_WRITE_FIRST] = {IN_NONE, IN_WRITE, 1},
	[ROCE_WRITE_MIDDLE] = {IN_WRITE, IN_WRITE, 1},
	[ROCE_WRITE_LAST] = {IN_WRITE, IN_NONE, 1},
	[ROCE_WRITE_ONLY] = {IN_NONE, IN_NONE, 1},
};

simtime_t rc_ack_timeout(uint8_t exponent)
{
	return exponent == 0 ? 0 : ACK_TIMEOUT_UNIT_PS << (exponent & 31);
}

simtime_t rc_rnr_time(uint8_t timer)
{
	static const uint32_t us[32] = {655360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480,
		640, 960, 1280, 1920, 2560, 3840, 5120, 7680, 10240, 15360, 20480, 30720, 40960,
		61440, 81920, 122880, 163840, 245760, 327680, 491520};

	return us[timer & 31] * SIM_US;
}

void rc_requester_init(struct rc_requester *q, const struct rc_config *cfg)
{
	uint32_t pkts = (cfg->message_bytes - 1) / cfg->payload + 1;

	*q = (struct rc_requester){
		.deadline = SIMTIME_NEVER,
		.msg_pkts = pkts,
		.psn0 = cfg->psn & PSN_MASK,
		.payload = cfg->payload,
		.last_payload = (uint16_t)(cfg->message_bytes - (pkts - 1) * cfg->payload),
		.ack_every = cfg->ack_every,
		.msg_bytes = cfg->message_bytes,
		.window = cfg->window,
		.total = UINT64_MAX,
		.timeout = cfg->timeout != 0 ? cfg->timeout : SIMTIME_NEVER,
		.rnr_until = SIMTIME_NEVER,
		.op = (uint8_t)cfg->op,
		.retry_left = cfg->retry_cnt,
		.retry_cnt = cfg->retry_cnt,
		.rnr_left = cfg->rnr_retry,
		.rnr_retry = cfg->rnr_retry,
	};
	if (cfg->messages != 0 && cfg->messages < UINT64_MAX / pkts)
		q->total = cfg->messages * pkts;
}

static void set_limit(struct rc_requester *q)
{
	uint64_t limit = q->una + q->window;

	q->limit = q->state != RC_READY ? 0 : limit < q->end ? limit : q->end;
}

void rc_start(struct rc_requester *q)
{
	q->end = q->total;
	set_limit(q);
}

void rc_stop(struct rc_requester *q)
{
	uint64_t end = q->max;

	// Packets sent since the last request for an ACK would wait for their timeout.
	if (q->nxt == q->max && q->since_req != 0)
		end++;
	if (end < q->end)
		q->end = end;
	set_limit(q);
}

void rc_seek(struct rc_requester *q, uint64_t seq)
{
	uint64_t msg = seq / q->msg_pkts;

	q->nxt = seq;
	q->in_msg = (uint32_t)(seq - msg * q->msg_pkts);
	q->pos = msg * q->msg_bytes + (uint64_t)q->in_msg * q->payload;
	q->since_req = 0;
}

static int fail(struct rc_requester *q, enum rc_status status)
{
	q->state = RC_ERROR;
	q->status = (uint8_t)status;
	q->deadline = SIMTIME_NEVER;
	q->rnr_until = SIMTIME_NEVER;
	set_limit(q);
	return RC_ACK_ERROR;
}

// One retry: repeat from una, or fail.
static int retry(struct rc_requester *q, simtime_t now)
{
	if (q->retry_left == 0)
		return fail(q, RC_STATUS_RETRY_EXC);
	q->retry_left--;
	rc_seek(q, q->una);
	if (q->timeout != SIMTIME_NEVER)
		q->deadline = now + q->timeout;
	return RC_ACK_REWOUND;
}

static int receiver_not_ready(struct rc_requester *q, simtime_t now, uint8_t timer)
{
	if (q->rnr_left == 0)
		return fail(q, RC_STATUS_RNR_RETRY_EXC);
	if (q->rnr_left != RC_RNR_INFINITE)
		q->rnr_left--;
	q->state = RC_RNR_WAIT;
	q->rnr_until = now + rc_rnr_time(timer);
	q->deadline = SIMTIME_NEVER;
	rc_seek(q, q->una);
	set_limit(q);
	return RC_ACK_REWOUND | RC_ACK_RNR;
}

int rc_rx_nak(struct rc_requester *q, simtime_t now, uint32_t psn, uint8_t syndrome)
{
	int32_t d = psn_diff(psn, psn_add(q->psn0, q->una));
	int result = RC_ACK_STALE;

	// A NAK for max itself asks for nothing sent yet; it still acknowledges what is before.
	if (d < 0 || q->una + (uint32_t)d > q->max || q->state == RC_ERROR)
		return RC_ACK_STALE;
	if (d > 0) {
		rc_advance(q, now, q->una + (uint32_t)d);
		result = RC_ACK_PROGRESS;
	}
	if (q->una == q->max || q->state == RC_RNR_WAIT)
		return result;

	if ((syndrome & AETH_TYPE_MASK) == AETH_RNR_NAK)
		return result | receiver_not_ready(q, now, syndrome & ~AETH_TYPE_MASK & 0xff);
	switch (syndrome) {
	case AETH_NAK_PSN_SEQ:
		// Already there: this NAK and the last one tell of the same loss.
		return q->nxt == q->una ? result : result | retry(q, now);
	case AETH_NAK_INVALID_REQ:
		return result | fail(q, RC_STATUS_REM_INV_REQ);
	default: // reserved or of an operation never requested
		return result;
	}
}

int rc_timeout(struct rc_requester *q, simtime_t now)
{
	return now < q->deadline ? RC_ACK_STALE : retry(q, now);
}

void rc_rnr_expired(struct rc_requester *q, simtime_t now)
{
	if (q->state != RC_RNR_WAIT || now < q->rnr_until)
		return;
	q->state = RC_READY;
	q->rnr_until = SIMTIME_NEVER;
	set_limit(q);
}

void rc_responder_init(struct rc_responder *r, uint32_t psn, uint32_t ack_every)
{
	*r = (struct rc_responder){.epsn = psn & PSN_MASK, .ack_every = ack_every};
}

int rc_rx_unexpected(struct rc_responder *r, int32_t distance)
{
	if (r->failed)
		return RC_RX_INVALID;
	if (distance < 0)
		return RC_RX_DUPLICATE | RC_RX_RESPOND;
	if (r->nak_sent)
		return RC_RX_GAP;
	r->nak_sent = true;
	r->nak = AETH_NAK_PSN_SEQ;
	return RC_RX_GAP | RC_RX_RESPOND;
}

int rc_rx_invalid(struct rc_responder *r)
{
	if (r->failed)
		return RC_RX_INVALID;
	r->failed = true;
	r->nak = AETH_NAK_INVALID_REQ;
	return RC_RX_INVALID | RC_RX_RESPOND;
}
