/* SPDX-License-Identifier: BSD-3-Clause */
// READs (IBTA vol. 1, 9.7.5.2 and 9.7.7.2): the responses take the request's PSN and those behind
// it; they come first, middle, last, or only, full to the path MTU but for the last, and add up to
// the length asked for. A requester that finds a hole in them asks again from there, which acts as
// a NAK of its own ("implied"); a responder executes a repeated READ again.
#include "pcap/check_priv.h"

struct read *read_find(struct flow *f, uint32_t psn)
{
	struct seq *q = &f->q;

	for (uint32_t i = 0; i < CHECK_READS && i < q->n_reads; i++) {
		struct read *r = &q->reads[(q->n_reads - 1 - i) % CHECK_READS];
		int32_t off = psn_diff(psn, r->psn);
		if (off >= 0 && off < (int32_t)r->n)
			return r;
	}
	return NULL;
}

void read_request(struct check *c, struct flow *f, const struct sight *s, uint32_t n, bool n_sure)
{
	struct seq *q = &f->q;
	uint32_t psn = s->p->psn;
	struct read *r = read_find(f, psn);

	if (r != NULL) { // again, from the start or from a hole
		r->next = psn;
		r->holed = false;
		return;
	}
	r = &q->reads[q->n_reads++ % CHECK_READS];
	*r = (struct read){.psn = psn,
		.n = n,
		.n_sure = n_sure,
		.bytes = get_be32(pkt_ext(s->p, ROCE_EXT_RETH) + 12),
		.next = psn,
		.time_ns = s->frame->time_ns};
}

static void wrong(struct check *c, struct flow *q, const struct sight *s, const char *what)
{
	check_found(c, CHECK_RESPONSE_ORDER, s->tap, q, s->frame->number, s->frame->time_ns,
		"%s at PSN %u: %s", roce_opcodes[s->p->opcode].name, s->p->psn, what);
}

static void finish(struct check *c, struct flow *q, struct read *r, const struct sight *s)
{
	uint64_t before = (uint64_t)psn_diff(s->p->psn, r->psn) * q->f.mtu;

	if (r->n_sure && before + s->p->payload_len != r->bytes)
		check_found(c, CHECK_RESPONSE_ORDER, s->tap, q, s->frame->number, s->frame->time_ns,
			"READ of %u bytes ends after %llu", r->bytes,
			(unsigned long long)before + s->p->payload_len);
	q->f.messages[CHECK_READ].completed++;
}

// A response in its turn: what a requester takes. What comes behind a hole it drops.
static void in_turn(
	struct check *c, struct flow *q, struct flow *by, struct read *r, const struct sight *s)
{
	uint8_t op = s->p->opcode & 0x1f;
	bool last = op == ROCE_READ_RESP_LAST || op == ROCE_READ_RESP_ONLY;
	uint32_t nth = (uint32_t)psn_diff(s->p->psn, r->psn);

	r->holed = false;
	r->next = psn_add(s->p->psn, 1);
	if (nth < r->seen)
		return; // executed again
	r->seen = nth + 1;
	by->f.payload_bytes += s->p->payload_len;
	if (!r->answered && s->p->psn == r->psn)
		check_sample(c, &q->f.read_latency, s->frame->time_ns - r->time_ns);
	r->answered = true;
	bool at_end = r->n_sure && r->next == psn_add(r->psn, r->n);
	if (r->n_sure && last && !at_end)
		wrong(c, q, s, "more responses are due");
	else if (r->n_sure && !last && at_end)
		wrong(c, q, s, "this is where the last is due");
	if (op == ROCE_READ_RESP_MIDDLE && s->p->psn == r->psn)
		wrong(c, q, s, "this is where the first is due");
	if (last)
		finish(c, q, r, s);
}

void read_response(struct check *c, struct flow *q, struct flow *by, const struct sight *s)
{
	uint8_t op = s->p->opcode & 0x1f;
	uint32_t psn = s->p->psn;

	if (op == ROCE_READ_RESP_FIRST || op == ROCE_READ_RESP_MIDDLE)
		seq_mtu(q, s->p->payload_len);
	struct read *r = read_find(q, psn);
	if (r == NULL) {
		bool known = psn_diff(psn, q->q.una) >= 0 && q->q.n_reads < CHECK_READS;
		if (known)
			check_found(c, CHECK_RESPONSE, s->tap, by, s->frame->number,
				s->frame->time_ns, "%s at PSN %u, where no READ was asked for",
				roce_opcodes[s->p->opcode].name, psn);
		else
			by->f.unjudged++;
		return;
	}
	by->q.matched++;
	int32_t ahead = psn_diff(psn, r->next);
	if (ahead > 0 && !r->holed) {
		by->f.read_holes++;
		check_found(c, CHECK_READ_HOLE, s->tap, by, s->frame->number, s->frame->time_ns,
			"response PSN %u, %u was due", psn, r->next);
		r->holed = true;
	}
	if (ahead == 0)
		in_turn(c, q, by, r, s);
	if (!r->holed)
		seq_advance(q, psn_add(psn, 1));
	resend_acked(q, psn_add(r->psn, PSN_MASK), s);
}
