/* SPDX-License-Identifier: BSD-3-Clause */
// fabemu check: the fault rules, each in one line of words, and what they bind to.

#include <string.h>

#include "emu/cli/check.h"
#include "emu/scenario/quantity.h"
#include "pcap/roce.h"

static const char *show(enum quantity q, uint64_t v)
{
	static char bufs[8][QUANTITY_MAX];
	static unsigned next;

	return quantity_format(q, (int64_t)v, bufs[next++ % 8]);
}

static void print_kinds(const struct fault_rule *r, FILE *out)
{
	const char *gap = "";

	if (r->opcode != FAULT_NO_OPCODE) {
		fprintf(out, "%s", roce_opcodes[r->opcode].name);
		return;
	}
	if (r->kinds == FAULT_KIND_ANY) {
		fputs("any frame", out);
		return;
	}
	for (unsigned i = 0; i < FAULT_KIND_COUNT; i++) {
		if (!(r->kinds >> i & 1))
			continue;
		fprintf(out, "%s%s", gap, fault_kind_name((enum fault_kind)i));
		gap = "+";
	}
}

static void print_host(
	const struct scenario *s, const char *word, uint32_t first, uint32_t n, FILE *out)
{
	const struct sc_endpoint *e = &s->endpoints[first];

	if (n == 0)
		return;
	fprintf(out, " %s %s", word, s->nodes[e->node].name);
	if (n < s->nodes[e->node].n_ports)
		fprintf(out, ":%s", s->nodes[e->node].ports[e->port].name);
}

static void print_match(const struct scenario *s, const struct fault_rule *r, FILE *out)
{
	print_kinds(r, out);
	if (r->flow != FAULT_ANY)
		fprintf(out, " of flow %s", s->flows[r->flow].name);
	print_host(s, "from", r->src, r->n_src, out);
	print_host(s, "to", r->dst, r->n_dst, out);
	if (r->qpn != FAULT_ANY)
		fprintf(out, " to QPN 0x%x", r->qpn);
	if (r->qp == FAULT_QP_EACH)
		fputs(" of each QP", out);
	else if (r->qp != FAULT_QP_ALL)
		fprintf(out, " of QP #%u to appear", r->qp);
	if (r->prios != 0xff)
		for (unsigned i = 0, n = 0; i < SC_PRIOS; i++)
			if (r->prios >> i & 1)
				fprintf(out, "%s%u", n++ == 0 ? " priority " : ",", i);
}

static void print_pick(const struct fault_rule *r, FILE *out)
{
	switch (r->pick) {
	case FAULT_ALL:
		fputs("all", out);
		break;
	case FAULT_NTH:
		fprintf(out, "number %llu", (unsigned long long)r->n);
		break;
	case FAULT_EVERY:
		fprintf(out, "every %llu", (unsigned long long)r->n);
		break;
	case FAULT_PSN:
		fprintf(out, "PSN first+%llu", (unsigned long long)r->n);
		break;
	case FAULT_PACKET:
		fprintf(out, "packet %u of message %u", r->packet, r->message);
		break;
	case FAULT_PROBABILITY:
		fprintf(out, "each with %s", show(Q_PROBABILITY, r->p_q32));
		break;
	case FAULT_GILBERT:
		fprintf(out, "Gilbert-Elliott p %s r %s 1-h %s 1-k %s",
			show(Q_PROBABILITY, r->p_q32), show(Q_PROBABILITY, r->r_q32),
			show(Q_PROBABILITY, r->loss_bad_q32),
			show(Q_PROBABILITY, r->loss_good_q32));
		break;
	}
	if (r->iter != 0)
		fprintf(out, ", transmission %u", r->iter);
	if (r->count != 0)
		fprintf(out, ", at most %llu", (unsigned long long)r->count);
	if (r->from != 0)
		fprintf(out, ", from %s", show(Q_TIME, (uint64_t)r->from));
	if (r->until != SIMTIME_NEVER)
		fprintf(out, ", until %s", show(Q_TIME, (uint64_t)r->until));
}

static void print_action(const struct fault_rule *r, FILE *out)
{
	fprintf(out, "%s", fault_action_name(r->action));
	if (r->action == FAULT_DELAY)
		fprintf(out, " by %s", show(Q_TIME, (uint64_t)r->delay));
	else if (r->action == FAULT_REORDER)
		fprintf(out, " by %u packets within %s", r->packets,
			show(Q_TIME, (uint64_t)r->delay));
	else if (r->action == FAULT_TRUNCATE)
		fprintf(out, " to %uB", r->length);
}

void check_print_fault(const struct scenario *s, const struct sc_fault *f, FILE *out)
{
	fprintf(out, "fault %s  ", f->name);
	print_action(&f->rule, out);
	fputs(": ", out);
	print_match(s, &f->rule, out);
	fputs(": ", out);
	print_pick(&f->rule, out);
	fputs("; on", out);
	for (uint32_t i = 0; i < f->n_lanes; i++) {
		const struct sc_end *a = &f->lanes[i];
		struct sc_end b = sc_peer(s, a->node, a->port);
		fprintf(out, "%s %s:%s -> %s:%s", i == 0 ? "" : ",", s->nodes[a->node].name,
			s->nodes[a->node].ports[a->port].name, s->nodes[b.node].name,
			s->nodes[b.node].ports[b.port].name);
	}
	fputc('\n', out);
}
