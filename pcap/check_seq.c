/* SPDX-License-Identifier: BSD-3-Clause */
// Requests: what one side sends in the order of its PSNs (IBTA vol. 1, 9.7.2 and 9.7.4).
//
//	una ------------------- next
//	 oldest not            behind the newest
//	 acknowledged          that passed here
//
// A packet at `next` is new and in order; one beyond leaves a hole; one before is a repetition, a
// late one or a copy (check_resend.c). A READ takes as many PSNs as it has responses, which takes
// the path MTU to know: from connection management, a first or middle packet, the READ's responses,
// or the PSN of the request behind it. Until then `next` is unsure.
#include <stdlib.h>

#include "pcap/check_priv.h"

#define RING_FIRST 64
#define RING_MAX   16384
#define MTU_MIN    256
#define MTU_MAX    4096

// ---- packets under way -----------------------------------------------------------------------

struct sent *seq_sent(struct flow *f, uint32_t psn)
{
	if (f->q.ring_size == 0)
		return NULL;
	struct sent *s = &f->q.ring[psn & (f->q.ring_size - 1)];
	return s->used && s->psn == psn ? s : NULL;
}

// Makes the ring large enough for PSNs from `una` to `psn`.
static void ring_grow(struct check *c, struct seq *q, uint32_t psn)
{
	uint32_t want = (uint32_t)psn_diff(psn, q->una) + 1, size = q->ring_size;

	if (want <= size || size == RING_MAX)
		return;
	size = size != 0 ? size : RING_FIRST;
	while (size < want && size < RING_MAX)
		size *= 2;
	struct sent *ring = calloc(size, sizeof(*ring));
	if (ring == NULL) {
		c->out_of_memory = true;
		return;
	}
	for (uint32_t i = 0; i < q->ring_size; i++)
		if (q->ring[i].used)
			ring[q->ring[i].psn & (size - 1)] = q->ring[i];
	free(q->ring);
	q->ring = ring;
	q->ring_size = size;
}

static bool ends_message(uint8_t op)
{
	switch (op) {
	case ROCE_SEND_FIRST:
	case ROCE_SEND_MIDDLE:
	case ROCE_WRITE_FIRST:
	case ROCE_WRITE_MIDDLE:
	case ROCE_READ_REQUEST:
	case ROCE_CMP_SWAP:
	case ROCE_FETCH_ADD:
		return false; // the last three complete by their responses
	default:
		return true;
	}
}

static uint16_t ip_id(const struct pkt *p)
{
	return p->ip_version == 4 ? get_be16(p->data + p->l3_off + 4) : 0;
}

struct sent *seq_record(struct check *c, struct flow *f, const struct sight *s)
{
	const struct pkt *p = s->p;

	ring_grow(c, &f->q, p->psn);
	if (f->q.ring_size == 0)
		return NULL;
	struct sent *e = &f->q.ring[p->psn & (f->q.ring_size - 1)];
	uint8_t op = p->opcode & 0x1f;
	bool done = e->used && e->psn == p->psn && e->done;
	*e = (struct sent){.time_ns = s->frame->time_ns,
		.psn = p->psn,
		.ip_id = ip_id(p),
		.op = op,
		.ttl = p->ttl,
		.used = true,
		.last = ends_message(op),
		.done = done,
		.ack_req = p->ack_req};
	return e;
}

void seq_advance(struct flow *f, uint32_t psn)
{
	struct seq *q = &f->q;

	if (psn_diff(psn, q->una) > (int32_t)RING_MAX)
		q->una = (psn - RING_MAX) & PSN_MASK;
	for (; psn_diff(psn, q->una) > 0; q->una = psn_add(q->una, 1)) {
		const struct sent *s = seq_sent(f, q->una);
		if (s != NULL && s->last)
			f->f.messages[message_of(s->op)].completed++;
	}
}

void seq_start(struct flow *f, uint32_t psn)
{
	struct seq *q = &f->q;
	struct sent *ring = q->ring;
	uint32_t ring_size = q->ring_size;
	struct seq fresh = {.started = true,
		.next_sure = true,
		.first = psn,
		.next = psn,
		.una = psn,
		.kind = CHECK_MESSAGES,
		.ring = ring,
		.ring_size = ring_size,
		.msn_known = q->msn_known,
		.msn = q->msn,
		.msn_psn = q->msn_psn,
		.last_cnp_ns = q->last_cnp_ns};

	*q = fresh;
	for (uint32_t i = 0; i < ring_size; i++)
		ring[i].used = false;
}

// ---- path MTU --------------------------------------------------------------------------------

static uint32_t responses(uint32_t bytes, uint32_t mtu)
{
	return bytes == 0 ? 1 : (uint32_t)(((uint64_t)bytes + mtu - 1) / mtu);
}

// Now that the MTU is known, so is how many PSNs the READs under way take.
void seq_mtu(struct flow *f, uint32_t mtu)
{
	struct seq *q = &f->q;

	if (mtu == 0 || f->f.mtu != 0)
		return;
	f->f.mtu = mtu;
	for (unsigned i = 0; i < CHECK_READS; i++) {
		struct read *r = &q->reads[i];
		if (r->n == 0 || r->n_sure)
			continue;
		r->n = responses(r->bytes, mtu);
		r->n_sure = true;
		if (!q->next_sure && q->unsure_read == r->psn) {
			q->next = psn_add(r->psn, r->n);
			q->next_sure = true;
			q->unsure_max = 0;
		}
	}
}

// A request at `psn` came behind a READ that could not be counted: is there an MTU that explains
// the distance?
static void settle_read(struct flow *f, uint32_t psn)
{
	struct seq *q = &f->q;

	for (unsigned i = 0; i < CHECK_READS; i++) {
		const struct read *r = &q->reads[i];
		if (r->n == 0 || r->psn != q->unsure_read)
			continue;
		for (uint32_t mtu = MTU_MIN; mtu <= MTU_MAX; mtu *= 2)
			if (psn_add(r->psn, responses(r->bytes, mtu)) == psn) {
				seq_mtu(f, mtu);
				return;
			}
	}
}

// PSNs that a request takes.
static uint32_t psns_of(const struct flow *f, const struct pkt *p, bool *sure)
{
	*sure = true;
	if ((p->opcode & 0x1f) != ROCE_READ_REQUEST)
		return 1;
	uint32_t bytes = get_be32(pkt_ext(p, ROCE_EXT_RETH) + 12);
	*sure = f->f.mtu != 0 || bytes <= MTU_MIN;
	return responses(bytes, f->f.mtu != 0 ? f->f.mtu : MTU_MIN);
}

// ---- requests --------------------------------------------------------------------------------

static void move_next(struct flow *f, const struct pkt *p, uint32_t n, bool sure)
{
	struct seq *q = &f->q;

	q->next_sure = sure;
	q->next = psn_add(p->psn, sure ? n : 1);
	q->unsure_max = sure ? 0 : n;
	q->unsure_read = p->psn;
}

// An acknowledgement came before its request, which may be here now.
static void settle_early(struct check *c, struct flow *f, int64_t now)
{
	struct seq *q = &f->q;

	if (q->early_frame == 0 || psn_diff(q->early_psn, q->next) >= 0)
		return;
	if (seq_sent(f, q->early_psn) != NULL && now - q->early_ns <= CHECK_EARLY_NS)
		check_found(c, CHECK_REORDERED, f->f.tap, f, q->early_frame, q->early_ns,
			"acknowledgement of PSN %u captured before its request", q->early_psn);
	else
		check_found(c, CHECK_ACK_UNSENT, f->f.tap, f, q->early_frame, q->early_ns,
			"acknowledges PSN %u, which had not been sent", q->early_psn);
	q->early_frame = 0;
}

static void new_request(struct check *c, struct flow *f, const struct sight *s, uint32_t n,
	bool sure, bool in_order)
{
	struct seq *q = &f->q;

	q->in_round = false;
	seq_record(c, f, s);
	message_packet(c, f, s, in_order);
	if ((s->p->opcode & 0x1f) == ROCE_READ_REQUEST)
		read_request(c, f, s, n, sure);
	move_next(f, s->p, n, sure);
	if (f->f.transport == ROCE_UC)
		q->una = q->next; // nobody acknowledges
	settle_early(c, f, s->frame->time_ns);
}

static void restart(struct check *c, struct flow *f, const struct sight *s)
{
	f->f.restarts++;
	check_found(c, CHECK_RESTART, s->tap, f, s->frame->number, s->frame->time_ns,
		"PSN %u, %u was due: taken for a new connection", s->p->psn, f->q.next);
	seq_end(c, f);
	seq_start(f, s->p->psn);
	f->q.msn_known = false;
	if (f->f.pairing >= CHECK_BY_PSN)
		c->flows[f->f.peer]->q.msn_known = false;
}

void seq_request(struct check *c, struct flow *f, const struct sight *s)
{
	struct seq *q = &f->q;
	uint32_t psn = s->p->psn;
	bool sure;
	uint32_t n = psns_of(f, s->p, &sure);

	if (!q->started)
		seq_start(f, psn);
	for (unsigned i = 0; q->n_naks != 0 && i < CHECK_NAKS; i++)
		q->naks[i].packets++;
	if (!q->next_sure && psn != q->unsure_read) {
		settle_read(f, psn);
		n = psns_of(f, s->p, &sure);
	}
	int32_t ahead = psn_diff(psn, q->next);
	if (ahead > CHECK_JUMP || ahead < -CHECK_JUMP) {
		restart(c, f, s);
		ahead = 0;
	}
	if (ahead > 0 && !q->next_sure && (uint32_t)ahead < q->unsure_max)
		ahead = 0; // within what the READ may take
	if (ahead == 0) {
		new_request(c, f, s, n, sure, true);
	} else if (ahead > 0) {
		resend_hole_open(c, f, q->next, (uint32_t)ahead, s);
		new_request(c, f, s, n, sure, false);
	} else {
		resend_request(c, f, s, n);
	}
}

void seq_end(struct check *c, struct flow *f)
{
	struct seq *q = &f->q;

	if (q->early_frame != 0)
		check_found(c, CHECK_ACK_UNSENT, f->f.tap, f, q->early_frame, q->early_ns,
			"acknowledges PSN %u, which had not been sent", q->early_psn);
	q->early_frame = 0;
	resend_end(c, f);
}
