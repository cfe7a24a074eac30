/* SPDX-License-Identifier: BSD-3-Clause */
// Selective repeat and tolerance of reordering, after Mittal et al., "Revisiting Network Support
// for RDMA", SIGCOMM 2018 (IRN), sections 3.1 to 3.3.
//
// Receiver. A ring over the PSNs [epsn, epsn + window] holds the headers of request packets that
// came before their turn, with a bit for each slot. A packet further ahead is dropped: a sender
// with the window as its BDP cap never sends one. When the expected packet comes, those that follow
// it are handed out one by one, so that everything is done in order, once, as if they had come so.
// Payload is not kept: this is for flows whose payload is a formula.
//
// A gap is reported only when a packet more than `tolerance` ahead has come (under packet spraying
// the missing one is likely on its way; IRN 4.4, "NACK threshold"), or when one comes after the gap
// has been there for `max_age`, as RACK has it for TCP (RFC 8985). Then
//   - for a sender that goes back N, once per gap, as always;
//   - with selective repeat, for every early packet (IRN 3.1): NAK 0x60 with the expected PSN,
//     and a SACK.
// Responses are made when the port is free, so one may stand for several early packets: the SACK
// therefore carries not the triggering PSN alone but what is there of the last 64 up to it, or up
// to the newest of all while that is news. That also heals the loss of some NAKs in a row.
//
// (On the wire the SACK follows the AETH, see pcap/roce.h.)
//
// Sender. `sacked` is a ring of bits over [una, una + window). Lost is a packet not in it when a
// later one is: all below `high` (IRN: the first lost packet is that of the cumulative
// acknowledgement). A NAK that shows a loss not repeated yet begins recovery: `recover` becomes the
// number after the newest sent; the lost packets are sent again, each once, in order; then new
// packets, as far as the window (the BDP cap) allows; recovery ends when all before `recover` is
// acknowledged. What is lost a second time is left to the timeout.
//
// The requester repeats a run of packets by being sent there (rc_seek) with `hold` at the run's
// end, where it stops and sr_sent() aims it at the next run or back at the new packets. So sending
// itself knows nothing of selective repeat.
//
// Timeout: rto_low while at most N = 3 packets are in flight, where no later packet may tell of a
// loss, else rto_high (IRN 3.1). The timer is not restarted as the flight grows, but when it fires
// early it runs on. A timeout sends the oldest packet again, and what is known to be lost. If
// progress comes of it, what was sent before the timeout and is not known to be there is taken for
// lost: the paper leaves open how a lost tail is repeated, and one timeout for each of its packets
// would be absurd. If instead everything had arrived and only the acknowledgements were lost, a
// single packet was repeated for nothing.
//
// Retries: a recovery that begins takes one of retry_cnt, as with go-back-N, and so does a timeout,
// but no more than one per local ACK timeout: the rto may be a thousandth of it, and a queue pair
// must survive what it would with go-back-N. Progress gives them back. RNR NAKs wait and begin
// again at the oldest packet.
//
// Invariants: high, recover, again <= max; no bit below `swept` or at `high` and above is set; hold
// is RC_NEVER unless nxt < max.
//
// Simplified: READ and atomics go back N only. IRN's separate bitmaps for two-sided operations are
// the kept headers here.
#include "models/sr.h"

#include "models/rc_internal.h"

#define WORD 64u

static inline bool bit(const uint64_t *ring, uint32_t i)
{
	return ring[i / WORD] >> (i % WORD) & 1;
}

static inline void set_bit(uint64_t *ring, uint32_t i)
{
	ring[i / WORD] |= UINT64_C(1) << (i % WORD);
}

static inline void clear_bit(uint64_t *ring, uint32_t i)
{
	ring[i / WORD] &= ~(UINT64_C(1) << (i % WORD));
}

uint32_t sr_slots(uint32_t window)
{
	uint32_t n = WORD;

	while (n <= window)
		n *= 2;
	return n;
}

// ---- receiver --------------------------------------------------------------------------------

void sr_receiver_init(struct sr_receiver *s, struct rc_responder *r,
	const struct sr_receiver_config *cfg, uint64_t *have, struct rc_packet *kept)
{
	uint32_t slots = sr_slots(cfg->window);

	*s = (struct sr_receiver){
		.window = cfg->window,
		.tolerance = cfg->tolerance,
		.max_age = cfg->max_age,
		.mask = slots - 1,
		.told = UINT32_MAX, // no PSN
		.have = have,
		.kept = kept,
		.selective = cfg->selective,
	};
	memset(have, 0, slots / WORD * sizeof(*have));
	r->keeps = true;
}

static bool holds(const struct sr_receiver *s, uint32_t psn)
{
	return bit(s->have, psn & s->mask) && s->kept[psn & s->mask].psn == psn;
}

// The gap before what is kept is to be reported.
static bool intolerable(const struct sr_receiver *s, const struct rc_responder *r, simtime_t now)
{
	return s->n_kept != 0 && (psn_diff(s->newest, r->epsn) > (int32_t)s->tolerance ||
					 now - s->gap_at > s->max_age);
}

static int report(const struct sr_receiver *s, struct rc_responder *r)
{
	if (r->nak != 0 || (r->nak_sent && !s->selective))
		return 0; // said before, or about to be
	r->nak_sent = true;
	r->nak = AETH_NAK_PSN_SEQ;
	r->ack_due = true;
	return SR_RESPOND;
}

int sr_keep(struct sr_receiver *s, struct rc_responder *r, simtime_t now, const struct rc_packet *p)
{
	int32_t ahead = psn_diff(p->psn, r->epsn);
	uint32_t slot = p->psn & s->mask;
	int verdict = SR_KEPT;

	if (ahead > (int32_t)s->window)
		return SR_DROPPED | report(s, r);
	s->trigger = p->psn;
	if (s->n_kept == 0)
		s->gap_at = now;
	if (holds(s, p->psn)) {
		verdict = SR_DUPLICATE;
	} else {
		if (s->n_kept == 0 || psn_diff(p->psn, s->newest) > 0)
			s->newest = p->psn;
		s->n_kept += !bit(s->have, slot);
		set_bit(s->have, slot);
		s->kept[slot] = *p;
	}
	return intolerable(s, r, now) ? verdict | report(s, r) : verdict;
}

bool sr_next(struct sr_receiver *s, const struct rc_responder *r, struct rc_packet *out)
{
	uint32_t slot = r->epsn & s->mask;

	if (!holds(s, r->epsn))
		return false;
	*out = s->kept[slot];
	clear_bit(s->have, slot);
	s->n_kept--;
	return true;
}

bool sr_caught_up(struct sr_receiver *s, struct rc_responder *r, simtime_t now)
{
	s->gap_at = now;
	if (intolerable(s, r, now))
		return s->selective && report(s, r) != 0;
	if (r->nak == AETH_NAK_PSN_SEQ) {
		r->nak = 0;
		r->nak_sent = false;
	}
	return false;
}

bool sr_sack(struct sr_receiver *s, const struct rc_responder *r, struct roce_sack *out)
{
	bool news = s->newest != s->told || !holds(s, s->trigger);
	uint32_t psn = news ? s->newest : s->trigger;

	if (!s->selective || s->n_kept == 0 || psn_diff(psn, r->epsn) <= 0)
		return false;
	s->told = s->newest;
	*out = (struct roce_sack){.top = psn};
	for (unsigned i = 0; i < ROCE_SACK_SPAN && psn_diff(psn, r->epsn) > 0; i++) {
		out->bitmap |= (uint64_t)holds(s, psn) << i;
		psn = psn_add(psn, PSN_MASK); // the one before
	}
	return true;
}

// ---- sender ----------------------------------------------------------------------------------

void sr_sender_init(
	struct sr_sender *s, struct rc_requester *q, const struct sr_config *cfg, uint64_t *sacked)
{
	uint32_t slots = sr_slots(q->window);
	bool timed = cfg->rto_high != 0;

	*s = (struct sr_sender){
		.sacked = sacked,
		.mask = slots - 1,
		.rto_low = timed ? cfg->rto_low : SIMTIME_NEVER,
		.rto_high = timed ? cfg->rto_high : SIMTIME_NEVER,
		.patience = cfg->patience != 0 ? cfg->patience : SIMTIME_NEVER,
		.spend_at = cfg->patience != 0 ? 0 : SIMTIME_NEVER,
	};
	memset(sacked, 0, slots / WORD * sizeof(*sacked));
	q->timeout = s->rto_low;
}

// Forgets what is known of packets before una.
static void sweep(struct sr_sender *s, const struct rc_requester *q)
{
	for (; s->swept < q->una && s->swept < s->high; s->swept++)
		clear_bit(s->sacked, (uint32_t)s->swept & s->mask);
	s->swept = q->una;
}

static void note_sack(
	struct sr_sender *s, const struct rc_requester *q, const struct roce_sack *sack)
{
	int32_t d = psn_diff(sack->top, psn_add(q->psn0, q->una));

	if (d < 0 || q->una + (uint32_t)d >= q->max)
		return;
	uint64_t top = q->una + (uint32_t)d;
	for (unsigned i = 0; i < ROCE_SACK_SPAN && i <= (uint32_t)d; i++)
		if (sack->bitmap >> i & 1)
			set_bit(s->sacked, (uint32_t)(top - i) & s->mask);
	if (top >= s->high)
		s->high = top + 1;
}

// The first lost packet not repeated yet; RC_NEVER if there is none. *end: one beyond the run of
// such packets that it begins.
static uint64_t next_lost(const struct sr_sender *s, const struct rc_requester *q, uint64_t *end)
{
	uint64_t stop = s->high > s->suspect ? s->high : s->suspect;
	uint64_t first = s->again > q->una ? s->again : q->una;

	while (first < stop && bit(s->sacked, (uint32_t)first & s->mask))
		first++;
	if (first >= stop)
		return RC_NEVER;
	*end = first + 1;
	while (*end < stop && !bit(s->sacked, (uint32_t)*end & s->mask))
		++*end;
	return first;
}

// Sends the requester to what is to be sent next.
static void aim(struct sr_sender *s, struct rc_requester *q)
{
	uint64_t end = RC_NEVER, first = s->recovering ? next_lost(s, q, &end) : RC_NEVER;

	if (first == RC_NEVER) {
		first = q->max;
		end = RC_NEVER;
	}
	q->hold = end;
	if (q->nxt != first)
		rc_seek(q, first);
	else
		rc_gate(q);
}

// The oldest packet, and again all that is known to be lost.
static void restart(struct sr_sender *s, struct rc_requester *q)
{
	if (q->una == q->max) { // nothing is in flight
		s->recovering = s->probing = false;
		s->suspect = 0;
		aim(s, q);
		return;
	}
	s->recovering = true;
	s->probing = true;
	s->recoveries++;
	s->recover = q->max;
	s->again = q->una;
	s->suspect = q->una + 1;
	clear_bit(s->sacked, (uint32_t)q->una & s->mask);
	aim(s, q);
}

// By the number in flight.
static void set_timeout(struct sr_sender *s, struct rc_requester *q, simtime_t now, bool running)
{
	q->timeout = q->max - q->una <= SR_FEW ? s->rto_low : s->rto_high;
	if (running && q->state == RC_READY)
		q->deadline = q->una == q->max || q->timeout == SIMTIME_NEVER ? SIMTIME_NEVER
									      : now + q->timeout;
}

// After progress or news: begins or ends recovery.
static int settle(struct sr_sender *s, struct rc_requester *q, simtime_t now, bool progress)
{
	uint64_t end;
	int result = RC_ACK_STALE;

	if (s->recovering && q->una >= s->recover) {
		s->recovering = s->probing = false;
		s->suspect = 0;
	}
	if (s->probing && progress) {
		s->probing = false;
		s->suspect = s->recover;
	}
	if (!s->recovering && next_lost(s, q, &end) != RC_NEVER) {
		set_timeout(s, q, now, false);
		result = rc_retry(q, now);
		if (result & RC_ACK_ERROR)
			return result;
		s->recovering = true;
		s->recoveries++;
		s->recover = q->max;
	}
	aim(s, q);
	return result;
}

int sr_rx_ack(struct sr_sender *s, struct rc_requester *q, simtime_t now, uint32_t psn,
	uint32_t aeth, const struct roce_sack *sack)
{
	bool nak = aeth >> 24 == AETH_NAK_PSN_SEQ;
	int32_t d = psn_diff(psn, psn_add(q->psn0, q->una));
	int result;

	if (q->state == RC_ERROR || (nak && d > 0 && q->una + (uint32_t)d > q->max))
		return RC_ACK_STALE;
	if (nak) // as far as the requester is concerned an ACK of all before
		result = rc_rx_ack(q, now, psn_add(psn, PSN_MASK),
			RC_AETH(AETH_ACK | AETH_CREDIT_INVALID, aeth & PSN_MASK));
	else
		result = rc_rx_ack(q, now, psn, aeth);
	if (result & RC_ACK_ERROR)
		return result;
	sweep(s, q);
	if (q->state != RC_READY) // until sr_rnr_expired()
		return result;
	if (nak && sack != NULL)
		note_sack(s, q, sack);
	else if (nak && d >= 0 && q->una < q->max && s->high <= q->una)
		s->high = q->una + 1; // of a peer that does not say more

	if (result & RC_ACK_PROGRESS) {
		set_timeout(s, q, now, true);
		s->spend_at = s->patience != SIMTIME_NEVER ? 0 : SIMTIME_NEVER;
	}
	return result | settle(s, q, now, result & RC_ACK_PROGRESS);
}

void sr_sent(struct sr_sender *s, struct rc_requester *q)
{
	s->again = q->nxt;
	if (q->nxt >= q->hold)
		aim(s, q);
}

int sr_timeout(struct sr_sender *s, struct rc_requester *q, simtime_t now)
{
	if (now < q->deadline)
		return RC_ACK_STALE;
	if (q->timeout < s->rto_high && q->max - q->una > SR_FEW) {
		q->deadline += s->rto_high - q->timeout;
		q->timeout = s->rto_high;
		if (now < q->deadline)
			return RC_ACK_STALE;
	}
	if (now >= s->spend_at) {
		s->spend_at = now + s->patience;
		if (rc_retry(q, now) & RC_ACK_ERROR)
			return RC_ACK_ERROR;
	}
	restart(s, q);
	set_timeout(s, q, now, true);
	return RC_ACK_REWOUND;
}

void sr_rnr_expired(struct sr_sender *s, struct rc_requester *q, simtime_t now)
{
	rc_rnr_expired(q, now);
	restart(s, q);
}
