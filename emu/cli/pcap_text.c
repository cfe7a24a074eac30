/* SPDX-License-Identifier: BSD-3-Clause */
// The report of fabemu pcap check for people: what was found, then who sent what to whom, with what
// losses and delays, then pauses. 100 columns.

#include <inttypes.h>
#include <string.h>

#include "emu/cli/pcap.h"
#include "emu/report/format.h"
#include "pcap/roce.h"

// Rows shown without --verbose.
#define ROWS_TAPS     20
#define ROWS_FLOWS    24
#define ROWS_PAUSES   24
#define ROWS_FINDINGS 12
#define ADDRESS_BYTES 48
#define PERCENT       100.0

static const char *time_text(uint64_t ns, char *buf)
{
	return format_time((simtime_t)(ns > INT64_MAX / SIM_NS ? INT64_MAX : ns * SIM_NS), buf);
}

static double share(uint64_t part, uint64_t whole)
{
	return whole != 0 ? PERCENT * (double)part / (double)whole : 0;
}

static void print_more(FILE *out, uint64_t n, const char *what)
{
	char buf[FORMAT_MAX];

	if (n != 0)
		fprintf(out, "  and %s more %s (--verbose)\n", format_count(n, buf), what);
}

// ---- findings --------------------------------------------------------------------------------

static uint64_t count_kind(const struct pcap_report *p, enum check_kind kind)
{
	uint64_t n = 0;

	if (!p->only_qp)
		return p->r.counts[kind];
	for (uint32_t i = 0; i < p->r.n_findings; i++)
		n += p->r.findings[i].kind == kind && pcap_wants_finding(p, &p->r.findings[i]);
	return n;
}

static void print_kinds(const struct pcap_report *p, bool violations, FILE *out)
{
	char buf[FORMAT_MAX];

	for (int k = 0; k < CHECK_KINDS; k++) {
		uint64_t n = count_kind(p, (enum check_kind)k);
		if (n != 0 && check_is_violation((enum check_kind)k) == violations)
			fprintf(out, "  %-16s %10s  %s\n", check_kind_name((enum check_kind)k),
				format_count(n, buf), check_kind_help((enum check_kind)k));
	}
}

static void print_finding(const struct pcap_report *p, const struct check_finding *f, FILE *out)
{
	const char *tap = p->r.taps[f->tap].name;

	fprintf(out, "  #%-3td frame %" PRIu64 "%s%s: %s: %s\n", f - p->r.findings + 1, f->frame,
		p->r.n_taps > 1 ? ", " : "", p->r.n_taps > 1 ? tap : "", check_kind_name(f->kind),
		f->text);
}

// Those of one sort, the first of them unless all are wanted.
static void print_list(const struct pcap_report *p, bool violations, FILE *out)
{
	uint64_t shown = 0, left = 0;

	for (uint32_t i = 0; i < p->r.n_findings; i++) {
		const struct check_finding *f = &p->r.findings[i];
		if (check_is_violation(f->kind) != violations || !pcap_wants_finding(p, f))
			continue;
		if (!p->verbose && shown == ROWS_FINDINGS) {
			left++;
			continue;
		}
		print_finding(p, f, out);
		shown++;
	}
	print_more(out, left, violations ? "violations" : "notes");
}

static bool any_kind(const struct pcap_report *p, bool violations)
{
	for (int k = 0; k < CHECK_KINDS; k++)
		if (check_is_violation((enum check_kind)k) == violations &&
			count_kind(p, (enum check_kind)k) != 0)
			return true;
	return false;
}

static void print_findings(const struct pcap_report *p, FILE *out)
{
	if (any_kind(p, true)) {
		fputs("\nViolations\n", out);
		print_kinds(p, true, out);
		fputc('\n', out);
		print_list(p, true, out);
	}
	if (any_kind(p, false)) {
		fputs("\nNotes: unusual, and legal\n", out);
		print_kinds(p, false, out);
		if (p->verbose) {
			fputc('\n', out);
			print_list(p, false, out);
		}
	}
}

// ---- taps ------------------------------------------------------------------------------------

static void print_taps(const struct pcap_report *p, FILE *out)
{
	uint32_t n = p->verbose || p->r.n_taps < ROWS_TAPS ? p->r.n_taps : ROWS_TAPS;
	char a[FORMAT_MAX], b[FORMAT_MAX], c[FORMAT_MAX];

	fprintf(out,
		"\nTaps: each is judged on its own; one packet may have passed several\n"
		"  %-24s %11s %11s %9s %7s %7s %7s %11s\n",
		"tap", "frames", "RoCE", "bytes", "ECT", "CE", "CNPs", "violations");
	for (uint32_t i = 0; i < n; i++) {
		const struct check_tap *t = &p->r.taps[i];
		uint64_t ce = t->ecn[ECN_CE], ect = ce + t->ecn[ECN_ECT0] + t->ecn[ECN_ECT1];
		fprintf(out, "  %-24s %11s %11s %9s %6.1f%% %6.2f%% %7" PRIu64 " %11" PRIu64 "\n",
			t->name, format_count(t->frames, a), format_count(t->roce, b),
			format_bytes((double)t->bytes, c), share(ect, t->roce), share(ce, ect),
			t->cnps, t->violations);
	}
	print_more(out, p->r.n_taps - n, "taps");
}

static void print_tap_remarks(const struct pcap_report *p, FILE *out)
{
	for (uint32_t i = 0; i < p->r.n_taps; i++) {
		const struct check_tap *t = &p->r.taps[i];
		if (t->lost != 0)
			fprintf(out,
				"%s: the capture says it lost %" PRIu64
				" frames: what seems missing may be among them\n",
				t->name, t->lost);
		if (t->unjudged_icrc != 0 && p->icrc)
			fprintf(out, "%s: %" PRIu64 " frames are cut before their ICRC\n", t->name,
				t->unjudged_icrc);
		if (t->flows_refused != 0)
			fprintf(out,
				"%s: %" PRIu64
				" packets of queue pairs beyond --max-qps were not followed\n",
				t->name, t->flows_refused);
	}
	if (p->r.foreign != 0)
		fprintf(out,
			"%" PRIu64 " frames of interfaces that are not Ethernet were skipped\n",
			p->r.foreign);
}

// ---- queue pairs -----------------------------------------------------------------------------

static const char *transport_name(const struct check_flow *f)
{
	static const char *const names[8] = {"RC", "UC", "RD", "UD", "CNP", "XRC", "?", "?"};

	return names[f->transport >> 5];
}

static void print_times(const char *what, const struct histogram *h, FILE *out)
{
	char a[FORMAT_MAX], b[FORMAT_MAX], c[FORMAT_MAX], d[FORMAT_MAX];

	if (h != NULL && h->n != 0)
		fprintf(out, "      %s (%" PRIu64 "): min %s, median %s, p99 %s, max %s\n", what,
			h->n, time_text(h->min_ns, a), time_text(histogram_quantile(h, 500), b),
			time_text(histogram_quantile(h, 990), c), time_text(h->max_ns, d));
}

static void print_messages(const struct check_flow *f, FILE *out)
{
	const char *sep = "      ";
	char a[FORMAT_MAX];

	for (int m = 0; m < CHECK_MESSAGES; m++) {
		const struct check_messages *k = &f->messages[m];
		if (k->sent == 0)
			continue;
		fprintf(out, "%s%s %s x ", sep, check_message_name((enum check_message)m),
			format_count(k->sent, a));
		if (k->min_bytes == k->max_bytes)
			fprintf(out, "%" PRIu32 " B", k->min_bytes);
		else
			fprintf(out, "%" PRIu32 "-%" PRIu32 " B", k->min_bytes, k->max_bytes);
		if (f->transport == ROCE_RC)
			fprintf(out, " (%s completed)", format_count(k->completed, a));
		sep = ", ";
	}
	if (strcmp(sep, ", ") == 0)
		fputc('\n', out);
}

static void print_losses(const struct check_flow *f, FILE *out)
{
	const char *sep = "      resends: ";

	for (int i = 0; i < CHECK_CAUSE_COUNT; i++) {
		if (f->resends[i] == 0)
			continue;
		fprintf(out, "%s%" PRIu64 " by %s", sep, f->resends[i],
			check_cause_name((enum check_cause)i));
		sep = ", ";
	}
	if (strcmp(sep, ", ") == 0)
		fputc('\n', out);
	if (f->gaps + f->looped + f->reordered + f->read_holes != 0)
		fprintf(out,
			"      gaps %" PRIu64 " (%" PRIu64 " packets), read holes %" PRIu64
			", reordered %" PRIu64 ", looped %" PRIu64 "\n",
			f->gaps, f->gap_packets, f->read_holes, f->reordered, f->looped);
	if (f->nak_to_resend != NULL)
		fprintf(out, "      NAK to resend: mean %.1f, max %" PRIu64 " packets\n",
			(double)f->nak_packets_sum / (double)f->nak_to_resend->n,
			f->nak_packets_max);
	print_times("NAK to resend", f->nak_to_resend, out);
}

static void print_ops(const struct check_flow *f, FILE *out)
{
	const char *sep = "      opcodes: ";

	for (unsigned op = 0; op < 32; op++) {
		if (f->ops[op] == 0)
			continue;
		const char *name = roce_opcodes[f->transport | op].name;
		fprintf(out, "%s%s %" PRIu64, sep, name != NULL ? name : "?", f->ops[op]);
		sep = ", ";
	}
	if (strcmp(sep, ", ") == 0)
		fputc('\n', out);
}

static void print_flow(const struct pcap_report *p, const struct check_flow *f, FILE *out)
{
	char src[ADDRESS_BYTES], dst[ADDRESS_BYTES], who[2 * ADDRESS_BYTES + 24], peer[16] = "-";
	char a[FORMAT_MAX], b[FORMAT_MAX], c[FORMAT_MAX];
	int64_t ns = f->last_ns - f->first_ns;
	uint64_t ect = f->ecn[ECN_ECT0] + f->ecn[ECN_ECT1] + f->ecn[ECN_CE];

	check_address(src, sizeof(src), f->src, f->addr_bytes);
	check_address(dst, sizeof(dst), f->dst, f->addr_bytes);
	snprintf(who, sizeof(who), "%s > %s:%" PRIx32, src, dst, f->dest_qp);
	if (f->pairing >= CHECK_BY_PSN)
		snprintf(peer, sizeof(peer), "%" PRIx32, p->r.flows[f->peer]->dest_qp);
	else if (f->pairing == CHECK_AMBIGUOUS)
		snprintf(peer, sizeof(peer), "ambig.");
	fprintf(out, "  %-34s %-6s %-3s %9s %9s %10s %6" PRIu64 " %5" PRIu64 " %4" PRIu64 "\n", who,
		peer, transport_name(f), format_count(f->frames, a),
		format_bytes((double)f->payload_bytes, b),
		ns > 0 ? format_rate((double)f->payload_bytes * 8e9 / (double)ns, c) : "-",
		f->resent_packets, f->naks + f->rnr_naks + f->fatal_naks,
		f->resends[CHECK_BY_TIMEOUT]);
	print_messages(f, out);
	if (p->verbose)
		print_ops(f, out);
	print_times("ACK latency", f->ack_latency, out);
	print_times("READ latency", f->read_latency, out);
	print_losses(f, out);
	if (f->cnps != 0)
		fprintf(out, "      CNPs: %" PRIu64 "\n", f->cnps);
	print_times("CNP interval", f->cnp_interval, out);
	if (f->ecn[ECN_CE] != 0)
		fprintf(out, "      CE: %.2f%% of %" PRIu64 " ECT packets\n",
			share(f->ecn[ECN_CE], ect), ect);
	if (f->unjudged != 0)
		fprintf(out, "      %" PRIu64 " responses without a known counterpart\n",
			f->unjudged);
}

static void print_flows(const struct pcap_report *p, FILE *out)
{
	uint32_t shown = 0, left = 0;

	for (uint32_t t = 0; t < p->r.n_taps; t++) {
		bool heading = false;
		for (uint32_t i = 0; i < p->r.n_flows; i++) {
			if (p->r.flows[i]->tap != t || p->r.flows[i]->frames == 0 ||
				!pcap_wants_flow(p, i))
				continue;
			if (!p->verbose && !p->only_qp && shown == ROWS_FLOWS) {
				left++;
				continue;
			}
			if (!heading)
				fprintf(out,
					"\nQueue pairs%s%s\n  %-34s %-6s %-3s %9s %9s %10s %6s %5s "
					"%4s\n",
					p->r.n_taps > 1 ? " at " : "",
					p->r.n_taps > 1 ? p->r.taps[t].name : "",
					"from > to:QP (hex)", "source", "", "packets", "new data",
					"goodput", "resent", "NAKs", "t.o.");
			heading = true;
			print_flow(p, p->r.flows[i], out);
			shown++;
		}
	}
	print_more(out, left, "directions of queue pairs");
}

// ---- pauses ----------------------------------------------------------------------------------

static void print_pauses(const struct pcap_report *p, FILE *out)
{
	uint32_t shown = 0, left = 0;
	char a[FORMAT_MAX], prio[8];

	for (uint32_t i = 0; i < p->r.n_pauses; i++) {
		const struct check_pause *e = &p->r.pauses[i];
		for (unsigned k = 0; k < CHECK_PAUSE_CLASSES; k++) {
			const struct check_pause_class *c = &e->classes[k];
			if (c->xoff + c->xon == 0)
				continue;
			if (!p->verbose && shown == ROWS_PAUSES) {
				left++;
				continue;
			}
			if (shown++ == 0)
				fprintf(out, "\nPauses\n  %-22s %-17s %4s %8s %8s %8s %12s %10s\n",
					"interface", "sender", "prio", "XOFF", "XON", "pauses",
					"quanta", "paused");
			snprintf(prio, sizeof(prio), k == PFC_CLASSES ? "link" : "%u", k);
			fprintf(out,
				"  %-22s %02x:%02x:%02x:%02x:%02x:%02x %4s %8" PRIu64 " %8" PRIu64
				" %8" PRIu64 " %12" PRIu64 " %10s%s\n",
				p->interfaces[e->interface][0] ? p->interfaces[e->interface] : "-",
				e->src_mac[0], e->src_mac[1], e->src_mac[2], e->src_mac[3],
				e->src_mac[4], e->src_mac[5], prio, c->xoff, c->xon, c->pauses,
				c->quanta, time_text((uint64_t)c->paused_ns, a),
				e->rate_bps != 0 ? "" : " *");
		}
	}
	print_more(out, left, "classes that paused");
	for (uint32_t i = 0; i < p->r.n_pauses; i++)
		if (p->r.pauses[i].rate_bps == 0) {
			fputs("  * from XOFF to XON: the link's rate is not known (--rate)\n", out);
			return;
		}
}

void pcap_print_text(const struct pcap_report *p, FILE *out)
{
	uint64_t roce = 0;
	char a[FORMAT_MAX], b[FORMAT_MAX], c[FORMAT_MAX];

	for (uint32_t i = 0; i < p->r.n_taps; i++)
		roce += p->r.taps[i].roce;
	fprintf(out, "%s: ", p->path);
	if (p->violations == 0)
		fputs("no violations", out);
	else
		fprintf(out, "%s violation%s", format_count(p->violations, a),
			p->violations == 1 ? "" : "s");
	fprintf(out, " in %s frames, %s of them RoCE, at %" PRIu32 " tap%s%s%s\n",
		format_count(p->r.frames, b), format_count(roce, c), p->r.n_taps,
		p->r.n_taps == 1 ? "" : "s", p->icrc ? "" : "; ICRCs not verified",
		p->error != NULL ? "; damaged behind them" : "");
	print_tap_remarks(p, out);
	print_findings(p, out);
	if (p->r.n_taps > 1)
		print_taps(p, out);
	print_flows(p, out);
	print_pauses(p, out);
}
