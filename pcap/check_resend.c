/* SPDX-License-Identifier: BSD-3-Clause */
// Repetitions, and the NAKs that ask for them (IBTA vol. 1, 9.7.5.1.2 and 9.7.9): go-back-N.
//
// A responder that misses PSN n says so once and drops all behind it until n comes; the requester
// sends n and everything after it again. A *round* is such a run of repetitions; it continues as
// long as each repeats what followed the last one, and ends with the first new packet. What began
// it is its cause: a NAK for just that PSN, an RNR NAK whose timer ran out, a hole in a READ's
// responses (implied NAK), or, when nobody asked, the requester's timer. A packet that comes again
// before any timer can have run out was duplicated on the way, and one whose TTL fell between is
// in a loop.
//
// A NAK stays open until its PSN is sent again. The responder can't acknowledge it before. If it
// does, the packet may have come late, and the resend is on its way; so only when none has come at
// the end of the capture, though the requester sent on, has the NAK been ignored.
#include "pcap/check_priv.h"

// ---- holes -----------------------------------------------------------------------------------

static void hole_remove(struct seq *q, unsigned i)
{
	q->n_holes--;
	memmove(&q->holes[i], &q->holes[i + 1], (q->n_holes - i) * sizeof(q->holes[0]));
}

static void judge_hole(struct check *c, struct flow *f, const struct hole *h)
{
	if (h->acked_frame == 0 || f->f.selective)
		return;
	f->lost_packets += h->n;
	check_found(c, CHECK_LOST_ACKED, f->f.tap, f, h->frame, h->time_ns,
		"PSN %u never passed here, yet frame %llu acknowledges it: not captured, "
		"or "
		"not received",
		h->psn, (unsigned long long)h->acked_frame);
}

void resend_hole_open(
	struct check *c, struct flow *f, uint32_t psn, uint32_t n, const struct sight *s)
{
	struct seq *q = &f->q;

	f->f.gaps++;
	f->f.gap_packets += n;
	check_found(c, CHECK_GAP, s->tap, f, s->frame->number, s->frame->time_ns,
		"PSN %u after %u: %u missing", s->p->psn, psn_add(psn, PSN_MASK), n);
	if (f->f.transport != ROCE_RC)
		return;
	if (q->n_holes == CHECK_HOLES) {
		judge_hole(c, f, &q->holes[0]);
		hole_remove(q, 0);
	}
	struct hole *h = &q->holes[q->n_holes++];
	*h = (struct hole){psn, n, s->frame->number, s->frame->time_ns, 0};
	if (q->early_frame != 0 && psn_diff(q->early_psn, psn) >= 0 &&
		psn_diff(q->early_psn, psn_add(psn, n)) < 0) {
		h->acked_frame = q->early_frame;
		q->early_frame = 0;
	}
}

// Takes `psn` out of a hole, which may leave two. False when it was in none.
static bool hole_fill(struct seq *q, uint32_t psn, uint32_t n, struct hole *was)
{
	for (unsigned i = 0; i < q->n_holes; i++) {
		struct hole *h = &q->holes[i];
		int32_t off = psn_diff(psn, h->psn);
		if (off < 0 || off >= (int32_t)h->n)
			continue;
		*was = *h;
		uint32_t rest = h->n - (uint32_t)off > n ? h->n - (uint32_t)off - n : 0;
		h->n = (uint32_t)off;
		struct hole behind = *was;
		behind.psn = psn_add(psn, n);
		behind.n = rest;
		if (off == 0 && rest == 0)
			hole_remove(q, i);
		else if (off == 0)
			*h = behind;
		else if (rest != 0 && q->n_holes < CHECK_HOLES)
			q->holes[q->n_holes++] = behind;
		return true;
	}
	return false;
}

// ---- NAKs ------------------------------------------------------------------------------------

static struct nak *nak_find(struct seq *q, uint32_t psn)
{
	for (unsigned i = 0; q->n_naks != 0 && i < CHECK_NAKS; i++)
		if (q->naks[i].pending && q->naks[i].psn == psn)
			return &q->naks[i];
	return NULL;
}

static void nak_close(struct seq *q, struct nak *n)
{
	n->pending = false;
	q->n_naks--;
}

// A place for one more NAK: free, or that of the one longest open, which is then not judged.
static struct nak *nak_place(struct seq *q)
{
	struct nak *oldest = &q->naks[0];

	for (unsigned i = 0; i < CHECK_NAKS; i++) {
		if (!q->naks[i].pending) {
			q->n_naks++;
			return &q->naks[i];
		}
		if (q->naks[i].frame < oldest->frame)
			oldest = &q->naks[i];
	}
	return oldest;
}

void resend_nak(struct check *c, struct flow *f, const struct sight *s, int64_t rnr_ns)
{
	struct seq *q = &f->q;
	uint32_t psn = s->p->psn;
	struct nak *n = nak_find(q, psn);

	if (n != NULL && !n->rnr && rnr_ns == 0) {
		if (!f->f.selective)
			check_found(c, CHECK_NAK_REPEATED, s->tap, f, s->frame->number,
				s->frame->time_ns,
				"NAK for PSN %u again (first in frame %llu), not resent between",
				psn, (unsigned long long)n->frame);
		return;
	}
	n = n != NULL ? n : nak_place(q);
	const struct sent *sent = seq_sent(f, psn);
	*n = (struct nak){.pending = true,
		.rnr = rnr_ns != 0,
		.resent_before = sent != NULL && sent->resent,
		.psn = psn,
		.time_ns = s->frame->time_ns,
		.frame = s->frame->number,
		.rnr_ns = rnr_ns};
}

void resend_acked(struct flow *f, uint32_t psn, const struct sight *s)
{
	struct seq *q = &f->q;

	for (unsigned i = 0; q->n_naks != 0 && i < CHECK_NAKS; i++) {
		struct nak *n = &q->naks[i];
		if (!n->pending || psn_diff(psn, n->psn) < 0)
			continue;
		if (n->resent_before) {
			nak_close(q, n);
		} else if (n->contradicted == 0) {
			n->contradicted = s->frame->number;
			n->packets_then = n->packets;
		}
	}
	for (unsigned i = 0; i < q->n_holes; i++)
		if (psn_diff(psn, q->holes[i].psn) >= 0 && q->holes[i].acked_frame == 0)
			q->holes[i].acked_frame = s->frame->number;
}

static void judge_nak(struct check *c, struct flow *f, const struct nak *n)
{
	bool sent_on = n->contradicted != 0 && n->packets > n->packets_then;

	if (f->f.selective)
		return;
	if (sent_on && n->resend_frame != 0)
		check_found(c, CHECK_RESEND_PSN, f->f.tap, f, n->resend_frame, n->time_ns,
			"resent from PSN %u, frame %llu asked for %u; frame %llu acknowledges it "
			"all the "
			"same",
			n->resend_psn, (unsigned long long)n->frame, n->psn,
			(unsigned long long)n->contradicted);
	else if (sent_on || n->packets >= CHECK_IGNORED_PACKETS)
		check_found(c, CHECK_NAK_UNANSWERED, f->f.tap, f, n->frame, n->time_ns,
			"NAK for PSN %u: %llu requests followed, none of them that", n->psn,
			(unsigned long long)n->packets);
	else
		check_found(c, CHECK_NAK_OPEN, f->f.tap, f, n->frame, n->time_ns,
			"the capture ends before PSN %u is sent again", n->psn);
}

void resend_end(struct check *c, struct flow *f)
{
	struct seq *q = &f->q;

	for (unsigned i = 0; q->n_naks != 0 && i < CHECK_NAKS; i++)
		if (q->naks[i].pending)
			judge_nak(c, f, &q->naks[i]);
	for (unsigned i = 0; i < q->n_holes; i++)
		judge_hole(c, f, &q->holes[i]);
	q->n_naks = q->n_holes = 0;
	memset(q->naks, 0, sizeof(q->naks));
}

// ---- repetitions -----------------------------------------------------------------------------

static void answer_nak(struct check *c, struct flow *f, struct nak *n, const struct sight *s)
{
	int64_t waited = s->frame->time_ns - n->time_ns;

	if (n->rnr && waited < n->rnr_ns)
		check_found(c, CHECK_RNR_EARLY, s->tap, f, s->frame->number, s->frame->time_ns,
			"PSN %u again %lld ns after the RNR NAK in frame %llu, which asked for "
			"%lld ns",
			n->psn, (long long)waited, (unsigned long long)n->frame,
			(long long)n->rnr_ns);
	if (!n->rnr) {
		check_sample(c, &f->f.nak_to_resend, waited);
		f->f.nak_packets_sum += n->packets;
		if (n->packets > f->f.nak_packets_max)
			f->f.nak_packets_max = n->packets;
	}
	nak_close(&f->q, n);
}

// Not sent again but copied on the way, as far as the identification tells (IPv6 has none).
static bool same_packet(const struct sent *sent, const struct pkt *p)
{
	return sent != NULL &&
	       (p->ip_version != 4 || sent->ip_id == get_be16(p->data + p->l3_off + 4));
}

// A copy that went round a loop: the same packet with less to live.
static bool is_copy(const struct sent *sent, const struct pkt *p)
{
	return same_packet(sent, p) && p->ttl < sent->ttl;
}

// A repetition that no NAK for its PSN asked for: why?
static enum check_cause guess_cause(
	struct flow *f, const struct sight *s, const struct sent *sent, const struct hole *was)
{
	struct seq *q = &f->q;
	const struct read *r = NULL;

	if (f->f.selective || q->n_naks != 0)
		return CHECK_BY_NAK;
	if ((s->p->opcode & 0x1f) == ROCE_READ_REQUEST)
		r = read_find(f, s->p->psn);
	if (r != NULL && r->holed)
		return CHECK_BY_IMPLIED;
	int64_t since = was != NULL ? was->time_ns : sent != NULL ? sent->time_ns : 0;
	bool young = since != 0 && s->frame->time_ns - since < CHECK_TIMER_MIN_NS;
	// where no answers were seen, a NAK may have passed elsewhere: then only the very same
	// packet
	bool certain = f->f.pairing >= CHECK_BY_PSN || same_packet(sent, s->p);
	return young && certain ? CHECK_BY_DUPLICATE : CHECK_BY_TIMEOUT;
}

static void round_begin(
	struct check *c, struct flow *f, const struct sight *s, enum check_cause cause)
{
	struct seq *q = &f->q;

	f->f.resends[cause]++;
	q->cause = cause;
	if (cause == CHECK_BY_TIMEOUT)
		check_found(c, CHECK_TIMEOUT, s->tap, f, s->frame->number, s->frame->time_ns,
			"PSN %u again, no NAK passed here", s->p->psn);
	q->in_round = cause != CHECK_BY_DUPLICATE;
}

// The round began behind what open NAKs asked for.
static void suspect(struct seq *q, const struct sight *s)
{
	for (unsigned i = 0; q->n_naks != 0 && i < CHECK_NAKS; i++) {
		struct nak *n = &q->naks[i];
		if (n->pending && !n->rnr && n->resend_frame == 0 &&
			psn_diff(s->p->psn, n->psn) > 0) {
			n->resend_frame = s->frame->number;
			n->resend_psn = s->p->psn;
		}
	}
}

static void record_again(struct check *c, struct flow *f, const struct sight *s, uint32_t n)
{
	struct sent *e = seq_record(c, f, s);

	if (e != NULL)
		e->resent = true;
	if ((s->p->opcode & 0x1f) == ROCE_READ_REQUEST)
		read_request(c, f, s, n, f->f.mtu != 0);
}

void resend_request(struct check *c, struct flow *f, const struct sight *s, uint32_t n)
{
	struct seq *q = &f->q;
	uint32_t psn = s->p->psn;
	struct hole was;
	bool filled = hole_fill(q, psn, n, &was);
	const struct sent *sent = filled ? NULL : seq_sent(f, psn);
	struct nak *nak = nak_find(q, psn);

	if (is_copy(sent, s->p)) {
		f->f.looped++;
		return;
	}
	if (nak != NULL) {
		round_begin(c, f, s, nak->rnr ? CHECK_BY_RNR : CHECK_BY_NAK);
		answer_nak(c, f, nak, s);
	} else if (!q->in_round || psn_diff(psn, q->round_next) < 0) {
		enum check_cause cause = guess_cause(f, s, sent, filled ? &was : NULL);
		if (filled && cause == CHECK_BY_DUPLICATE) { // not seen before: late
			f->f.reordered++;
			check_found(c, CHECK_REORDERED, s->tap, f, s->frame->number,
				s->frame->time_ns, "PSN %u after %u", psn,
				psn_add(q->next, PSN_MASK));
			f->f.payload_bytes += s->p->payload_len;
			seq_record(c, f, s);
			return;
		}
		suspect(q, s);
		round_begin(c, f, s, cause);
	}
	q->round_next = psn_add(psn, n);
	f->f.resent_packets++;
	if (filled)
		f->f.payload_bytes += s->p->payload_len;
	record_again(c, f, s, n);
}
