/* SPDX-License-Identifier: BSD-3-Clause */
// Answers: ACK, NAK, RNR NAK, ATOMIC ACK, and through check_read.c READ responses (IBTA vol. 1,
// 9.7.5.1). An answer names a PSN of the other direction's requests and means all up to it; a NAK
// means all before it. The MSN it carries counts the messages that the responder has completed and
// never falls.
#include "pcap/check_priv.h"

// Waiting time of an RNR NAK by its five bits, in microseconds (IBTA vol. 1, table 45).
static const uint32_t rnr_us[32] = {655360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640,
	960, 1280, 1920, 2560, 3840, 5120, 7680, 10240, 15360, 20480, 30720, 40960,
	// Linux's rxe has 61410 for 61440: the smaller is what may be waited for
	61410, 81920, 122880, 163840, 245760, 327680, 491520};

#define NS_PER_US 1000
// Fitting responses after which a pairing by PSN is beyond doubt.
#define MATCHED_ENOUGH 4

// An answer overtaken by a later one has a smaller PSN, and a smaller MSN unless both are within
// one message. `may_tell`: it is an ACK, and of
// nothing that was resent, which is answered again.
static bool judge_msn(
	struct check *c, struct flow *by, const struct sight *s, uint32_t msn, bool may_tell)
{
	struct seq *q = &by->q;
	uint32_t psn = s->p->psn;
	bool back = q->msn_known && psn_diff(msn, q->msn) < 0;

	if (back && psn_diff(psn, q->msn_psn) < 0) {
		by->f.reordered++;
		check_found(c, CHECK_REORDERED, s->tap, by, s->frame->number, s->frame->time_ns,
			"answer for PSN %u, MSN %u behind one for %u, %u", psn, msn, q->msn_psn,
			q->msn);
		return false;
	}
	if (q->msn_known && msn == q->msn && psn_diff(psn, q->msn_psn) < 0 && may_tell)
		by->f.reordered++; // within one message
	if (back)
		check_found(c, CHECK_MSN, s->tap, by, s->frame->number, s->frame->time_ns,
			"MSN %u for PSN %u after MSN %u for PSN %u", msn, psn, q->msn, q->msn_psn);
	q->msn_known = true;
	q->msn = msn;
	q->msn_psn = psn;
	return true;
}

// The answer names a PSN that has not been sent, as far as seen here.
static void unsent(struct check *c, struct flow *q, struct flow *by, const struct sight *s)
{
	uint32_t psn = s->p->psn;
	int32_t ahead = psn_diff(psn, q->q.next);

	if (by->f.pairing == CHECK_BY_PSN && by->q.matched < MATCHED_ENOUGH &&
		ahead >= CHECK_EARLY_PACKETS) {
		by->f.pairing = q->f.pairing = CHECK_UNPAIRED; // the wrong counterpart
		by->q.msn_known = false;
		by->f.unjudged++;
		return;
	}
	if (ahead < CHECK_EARLY_PACKETS && q->q.early_frame == 0) {
		q->q.early_frame = s->frame->number;
		q->q.early_psn = psn;
		q->q.early_ns = s->frame->time_ns;
		return;
	}
	check_found(c, CHECK_ACK_UNSENT, s->tap, by, s->frame->number, s->frame->time_ns,
		"answers PSN %u, the newest sent is %u", psn, psn_add(q->q.next, PSN_MASK));
}

static void accept_ack(struct check *c, struct flow *q, struct flow *by, const struct sight *s)
{
	uint32_t psn = s->p->psn;
	struct sent *sent = seq_sent(q, psn);

	if (psn_diff(psn, q->q.una) < 0)
		by->f.duplicate_acks++;
	else if (sent != NULL && !sent->resent)
		check_sample(c, &q->f.ack_latency, s->frame->time_ns - sent->time_ns);
	if ((s->p->opcode & 0x1f) == ROCE_ATOMIC_ACK && sent != NULL) {
		if (sent->op != ROCE_CMP_SWAP && sent->op != ROCE_FETCH_ADD)
			check_found(c, CHECK_RESPONSE, s->tap, by, s->frame->number,
				s->frame->time_ns, "ATOMIC ACK for PSN %u, which was no atomic",
				psn);
		else if (!sent->done)
			q->f.messages[CHECK_ATOMIC].completed++;
		sent->done = true;
	}
	resend_acked(q, psn, s);
	seq_advance(q, psn_add(psn, 1));
}

static void accept_nak(
	struct check *c, struct flow *q, const struct sight *s, uint8_t syndrome, bool in_order)
{
	uint32_t psn = s->p->psn;
	bool rnr = (syndrome & AETH_TYPE_MASK) == AETH_RNR_NAK;

	if (s->p->payload_len != 0)
		q->f.selective = true;
	if (in_order && psn_diff(psn, q->q.una) < 0 && !q->f.selective) {
		check_found(c, CHECK_NAK_ACKED, s->tap, q, s->frame->number, s->frame->time_ns,
			"NAK for PSN %u, but all before %u was acknowledged", psn, q->q.una);
		return;
	}
	resend_acked(q, psn_add(psn, PSN_MASK), s);
	seq_advance(q, psn);
	if (rnr)
		resend_nak(c, q, s, (int64_t)rnr_us[syndrome & 0x1f] * NS_PER_US);
	else if (syndrome == AETH_NAK_PSN_SEQ && in_order)
		resend_nak(c, q, s, 0);
}

// Counts an ACKNOWLEDGE by its syndrome and tells of NAKs.
static void tally(struct check *c, struct flow *by, const struct sight *s, uint8_t syndrome)
{
	static const char *const codes[] = {"PSN sequence error", "invalid request",
		"remote access error", "remote operational error", "invalid RD request"};
	unsigned code = syndrome & 0x1f;

	switch (syndrome & AETH_TYPE_MASK) {
	case AETH_RNR_NAK:
		by->f.rnr_naks++;
		check_found(c, CHECK_RNR, s->tap, by, s->frame->number, s->frame->time_ns,
			"RNR NAK for PSN %u, %u us", s->p->psn, rnr_us[code]);
		break;
	case AETH_NAK:
		by->f.naks += syndrome == AETH_NAK_PSN_SEQ;
		by->f.fatal_naks += syndrome != AETH_NAK_PSN_SEQ;
		check_found(c, syndrome == AETH_NAK_PSN_SEQ ? CHECK_NAK : CHECK_NAK_FATAL, s->tap,
			by, s->frame->number, s->frame->time_ns, "NAK for PSN %u: %s", s->p->psn,
			code < sizeof(codes) / sizeof(codes[0]) ? codes[code] : "reserved code");
		break;
	default:
		by->f.acks++;
	}
}

void ack_response(struct check *c, struct flow *by, const struct sight *s)
{
	const uint8_t *aeth = pkt_ext(s->p, ROCE_EXT_AETH);
	uint8_t op = s->p->opcode & 0x1f, syndrome = aeth != NULL ? aeth[0] : 0;
	uint32_t psn = s->p->psn;

	if (op == ROCE_ACK)
		tally(c, by, s, syndrome);
	struct flow *q = flow_requester(c, by, s);
	if (q == NULL || !q->q.started) {
		by->f.unjudged++;
		return;
	}
	int32_t ahead = psn_diff(psn, q->q.next);
	if (ahead >= 0 && (q->q.next_sure || (uint32_t)ahead >= q->q.unsure_max)) {
		unsent(c, q, by, s);
		return;
	}
	if (psn_diff(psn, q->q.first) < 0)
		return; // of what was sent before the capture began
	bool first = q->f.resent_packets == 0 && (syndrome & AETH_TYPE_MASK) == AETH_ACK;
	bool in_order = aeth == NULL || judge_msn(c, by, s, get_be24(aeth + 1), first);
	if (op != ROCE_ACK && op != ROCE_ATOMIC_ACK) {
		read_response(c, q, by, s);
		return;
	}
	by->q.matched++;
	if ((syndrome & AETH_TYPE_MASK) == AETH_ACK)
		accept_ack(c, q, by, s);
	else
		accept_nak(c, q, s, syndrome, in_order);
}
