/* SPDX-License-Identifier: BSD-3-Clause */
// Unreliable connected transport (IBTA vol. 1, 9.8.2).
//
// The requester is that of RC with a window of one packet that is acknowledged by being sent.
//
// The responder takes what follows in order. When a PSN is not the one expected, packets were lost:
// the message in progress is dropped, and everything after it until a packet that begins a message
// (FIRST, ONLY), which is taken whatever its PSN; the next is then expected (9.8.2.2.2). A packet
// the RC responder would answer with a NAK, RNR included, drops its message likewise. The receive a
// dropped SEND had taken serves the next one.
//
// Data of a dropped message that came before the gap has been placed: WRITE makes no promise.
#include "models/uc.h"

#include <errno.h>

void uc_requester_init(
	struct rc_requester *q, uint16_t payload, uint32_t psn, struct rc_wqe *sq, uint32_t entries)
{
	struct rc_config cfg = {.payload = payload, .window = 1, .ack_every = 1, .psn = psn};

	rc_requester_init(q, &cfg, sq, entries);
}

int uc_post_send(struct rc_requester *q, const struct rc_wr *wr)
{
	return wr->op > WR_SEND_IMM ? -EINVAL : rc_post_send(q, wr);
}

int uc_tx_next(struct rc_requester *q, simtime_t now, struct rc_request *out)
{
	rc_tx_next(q, now, out);
	out->opcode |= ROCE_UC;
	out->ack_req = false;
	if (q->nxt >= q->ack_slow)
		return rc_ack_slow(q, now, q->nxt);
	rc_advance(q, now, q->nxt);
	return RC_ACK_PROGRESS;
}

void uc_responder_init(struct uc_responder *u, const struct rc_responder_config *cfg)
{
	struct rc_responder_config c = *cfg;

	c.max_dest_rd_atomic = 0;
	*u = (struct uc_responder){0};
	rc_responder_init(&u->r, &c);
}

// The message in progress, or that of this packet, is gone.
static int drop(struct uc_responder *u, const struct rc_packet *p, int result)
{
	u->dropping = true;
	u->dropped++;
	u->r.in_msg = RC_IN_NONE;
	u->r.epsn = psn_add(p->psn, 1);
	return result;
}

int uc_rx_request(
	struct uc_responder *u, simtime_t now, const struct rc_packet *p, struct rc_accept *out)
{
	struct rc_responder *r = &u->r;
	struct rc_packet as_rc = *p;

	as_rc.opcode &= 0x1f;
	as_rc.ack_req = false;
	if (r->failed)
		return RC_RX_INVALID;
	if (p->psn != r->epsn || u->dropping) {
		u->gaps += p->psn != r->epsn;
		if (!(rc_opcode_rules[as_rc.opcode].place & RC_FIRST))
			return drop(u, p, RC_RX_GAP);
		u->dropping = false;
		r->epsn = p->psn;
		r->in_msg = RC_IN_NONE;
	}

	int result = rc_rx_request(r, now, &as_rc, out);
	r->ack_due = false;
	if ((result & RC_RX_RESULT) == RC_RX_IN_ORDER)
		return result & ~RC_RX_RESPOND;
	// The receive of a SEND too long for it stays.
	r->has_recv |= (result & RC_RX_RECV_DONE) != 0;
	r->failed = r->nak_sent = false;
	r->nak = 0;
	return drop(u, p, result & RC_RX_RESULT);
}
