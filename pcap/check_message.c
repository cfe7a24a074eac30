/* SPDX-License-Identifier: BSD-3-Clause */
// Messages in the stream of new requests (IBTA vol. 1, 9.4.1 and 9.7.4.1.2): first, middle ...,
// last, or only, all of one kind; first and middle packets as long as the path MTU; a WRITE as long
// as its RETH says. A message of which a packet is missing is neither judged nor counted.
#include "pcap/check_priv.h"

enum check_message message_of(uint8_t op)
{
	if (op == ROCE_READ_REQUEST)
		return CHECK_READ;
	if (op == ROCE_CMP_SWAP || op == ROCE_FETCH_ADD)
		return CHECK_ATOMIC;
	return op >= ROCE_WRITE_FIRST && op <= ROCE_WRITE_ONLY_IMM ? CHECK_WRITE : CHECK_SEND;
}

static void message_sent(struct check_messages *m, uint64_t bytes)
{
	uint32_t b = bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes;

	m->min_bytes = m->sent == 0 || b < m->min_bytes ? b : m->min_bytes;
	m->max_bytes = b > m->max_bytes ? b : m->max_bytes;
	m->sent++;
	m->bytes += bytes;
}

enum part { FIRST, MIDDLE, LAST, ONLY };

static enum part part_of(uint8_t op)
{
	switch (op) {
	case ROCE_SEND_FIRST:
	case ROCE_WRITE_FIRST:
		return FIRST;
	case ROCE_SEND_MIDDLE:
	case ROCE_WRITE_MIDDLE:
		return MIDDLE;
	case ROCE_SEND_LAST:
	case ROCE_SEND_LAST_IMM:
	case ROCE_SEND_LAST_INV:
	case ROCE_WRITE_LAST:
	case ROCE_WRITE_LAST_IMM:
		return LAST;
	default:
		return ONLY;
	}
}

// Whether the part may come where the flow stands. If not, says so, and what it belongs to is not
// known.
static void judge_order(struct check *c, struct flow *f, const struct sight *s, enum part part,
	enum check_message kind)
{
	const struct seq *q = &f->q;
	bool begins = part == FIRST || part == ONLY;

	if (q->kind == CHECK_MESSAGES || (q->open && !begins && q->kind == kind) ||
		(!q->open && begins))
		return;
	check_found(c, CHECK_OPCODE_ORDER, s->tap, f, s->frame->number, s->frame->time_ns,
		"%s at PSN %u, but %s", roce_opcodes[s->p->opcode].name, s->p->psn,
		!q->open          ? "no message is under way"
		: q->kind != kind ? "a message of another kind is under way"
				  : "a message is under way");
	f->q.kind = CHECK_MESSAGES;
}

static void judge_length(struct check *c, struct flow *f, const struct sight *s)
{
	const struct seq *q = &f->q;

	if (q->kind == CHECK_WRITE && q->want != q->got)
		check_found(c, CHECK_DMA_LENGTH, s->tap, f, s->frame->number, s->frame->time_ns,
			"WRITE of %llu bytes ends after %llu", (unsigned long long)q->want,
			(unsigned long long)q->got);
}

void message_packet(struct check *c, struct flow *f, const struct sight *s, bool in_order)
{
	struct seq *q = &f->q;
	const struct pkt *p = s->p;
	uint8_t op = p->opcode & 0x1f;
	enum check_message kind = message_of(op);
	enum part part = part_of(op);
	const uint8_t *reth = pkt_ext(p, ROCE_EXT_RETH);

	if (!in_order)
		q->kind = CHECK_MESSAGES;
	judge_order(c, f, s, part, kind);
	if (part == FIRST || part == ONLY) {
		q->kind = kind;
		q->got = 0;
		q->want = kind == CHECK_WRITE && reth != NULL ? get_be32(reth + 12) : 0;
		q->open = true;
	}
	if ((part == FIRST || part == MIDDLE) && f->f.mtu != p->payload_len) {
		if (f->f.mtu != 0)
			check_found(c, CHECK_MTU, s->tap, f, s->frame->number, s->frame->time_ns,
				"payload of %u bytes, the path MTU is %u", p->payload_len,
				f->f.mtu);
		seq_mtu(f, p->payload_len);
	}
	f->f.payload_bytes += p->payload_len;
	q->got += p->payload_len;
	if (part != LAST && part != ONLY)
		return;
	if (q->kind == CHECK_SEND || q->kind == CHECK_WRITE) {
		judge_length(c, f, s);
		message_sent(&f->f.messages[q->kind], q->got);
	} else if (q->kind == CHECK_READ) {
		message_sent(&f->f.messages[kind], get_be32(reth + 12));
	} else if (q->kind == CHECK_ATOMIC) {
		message_sent(&f->f.messages[kind], sizeof(uint64_t));
	}
	q->kind = kind;
	q->open = false;
}
