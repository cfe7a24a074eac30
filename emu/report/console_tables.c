/* SPDX-License-Identifier: BSD-3-Clause */

// Tables of the result for a person: flows, the ports that suffered most, the PGs that came closest
// to pausing. Long ones are cut; summary.json has them whole.

#include <stdlib.h>
#include <string.h>

#include "emu/report/console_parts.h"
#include "emu/report/format.h"

#define FLOWS_SHOWN 20
#define TOP_SHOWN   8
#define PLACE_MAX   80

static void heading(const struct console *c, const char *text)
{
	fprintf(c->out, "\n%s%s%s\n", console_colour(c, COLOUR_BOLD), text,
		console_colour(c, COLOUR_NONE));
}

// ---- applications -------------------------------------------------------------------------------

void console_print_apps(const struct console *c)
{
	const struct run_results *r = c->r;
	char bytes[FORMAT_MAX];

	if (r->n_apps == 0)
		return;
	heading(c, "Applications");
	fprintf(c->out, "  %-16s %-12s %-15s %-11s %5s %10s %10s %6s %8s %7s\n", "name", "host",
		"type", "status", "conns", "messages", "bytes", "wrong", "retrans.", "t.outs");
	for (unsigned i = 0; i < r->n_apps && i < FLOWS_SHOWN; i++) {
		const struct run_app *a = &r->apps[i];
		fprintf(c->out, "  %-16s %-12s %-15s %-11s %5lu %10lu %10s %6lu %8lu %7lu\n",
			a->name, a->host, a->type, a->status, (unsigned long)a->connections,
			(unsigned long)a->messages, format_bytes((double)a->bytes, bytes),
			(unsigned long)a->mismatches, (unsigned long)a->retransmitted,
			(unsigned long)a->timeouts);
		if (a->failed)
			fprintf(c->out, "    %s\n", a->detail);
	}
	if (r->n_apps > FLOWS_SHOWN)
		fprintf(c->out, "  and %u more, see summary.json\n", r->n_apps - FLOWS_SHOWN);
}

// ---- faults -------------------------------------------------------------------------------------

void console_print_faults(const struct console *c)
{
	const struct run_results *r = c->r;

	if (r->n_faults == 0)
		return;
	heading(c, "Faults");
	fprintf(c->out, "  %-24s %-10s %5s %12s %10s\n", "rule", "action", "lanes", "matched",
		"applied");
	for (unsigned i = 0; i < r->n_faults && i < FLOWS_SHOWN; i++) {
		const struct run_fault *f = &r->faults[i];
		fprintf(c->out, "  %-24s %-10s %5u %12lu %10lu\n", f->name, f->action, f->lanes,
			(unsigned long)f->matched, (unsigned long)f->applied);
	}
	if (r->n_faults > FLOWS_SHOWN)
		fprintf(c->out, "  and %u more, see summary.json\n", r->n_faults - FLOWS_SHOWN);
}

// ---- flows --------------------------------------------------------------------------------------

static void print_flow(const struct console *c, const struct run_flow *f, int name, int ends)
{
	char bytes[FORMAT_MAX], fct[FORMAT_MAX], rate[FORMAT_MAX], paused[FORMAT_MAX];
	char route[2 * NODE_NAME_MAX + 8];

	snprintf(route, sizeof(route), "%s -> %s", f->src, f->dst);
	fprintf(c->out, "  %-*s  %-*s  %-11s %10s %10s %11s %8lu %7lu  %s\n", name, f->name, ends,
		route, flow_state_name(f->state), format_bytes((double)f->bytes_done, bytes),
		format_time(run_flow_fct(f), fct), format_rate(run_flow_goodput_bps(c->r, f), rate),
		(unsigned long)f->retransmitted, (unsigned long)f->timeouts,
		format_time(f->paused, paused));
	if (f->error != NULL)
		fprintf(c->out, "  %-*s  %s\n", name, "", f->error);
}

// Failed and unfinished flows are more interesting than completed ones.
static bool shown_first(const struct run_flow *f)
{
	return f->state != FLOW_COMPLETED && !(f->open && f->state == FLOW_ACTIVE);
}

void console_print_flows(const struct console *c)
{
	const struct run_results *r = c->r;
	int name = 4, ends = 5;
	unsigned shown = 0;

	if (r->n_flows == 0)
		return;
	for (unsigned i = 0; i < r->n_flows; i++) {
		const struct run_flow *f = &r->flows[i];
		int n = (int)strlen(f->name), e = (int)(strlen(f->src) + strlen(f->dst) + 4);
		name = n > name ? n : name;
		ends = e > ends ? e : ends;
	}
	heading(c, "Flows");
	fprintf(c->out, "  %-*s  %-*s  %-11s %10s %10s %11s %8s %7s  %s\n", name, "name", ends,
		"route", "state", "delivered", "FCT", "goodput", "retrans.", "t.outs", "paused");
	for (int first = 1; first >= 0; first--) {
		for (unsigned i = 0; i < r->n_flows && shown < FLOWS_SHOWN; i++) {
			if (shown_first(&r->flows[i]) != (first == 1))
				continue;
			print_flow(c, &r->flows[i], name, ends);
			shown++;
		}
	}
	if (shown < r->n_flows)
		fprintf(c->out, "  and %u more, see summary.json\n", r->n_flows - shown);
}

// ---- the worst of many
// ----------------------------------------------------------------------------

// A row of a table of the TOP_SHOWN largest.
struct top_row {
	double key;
	unsigned node;
	unsigned index; // of port or PG
	unsigned prio;
};

struct top {
	struct top_row row[TOP_SHOWN];
	unsigned n;
};

// Keeps the largest keys in order; of equal ones the first added stays first.
static void top_add(struct top *t, struct top_row row)
{
	if (t->n == TOP_SHOWN && t->row[t->n - 1].key >= row.key)
		return;
	unsigned i = t->n < TOP_SHOWN ? t->n++ : TOP_SHOWN - 1;

	for (; i > 0 && t->row[i - 1].key < row.key; i--)
		t->row[i] = t->row[i - 1];
	t->row[i] = row;
}

void console_print_pauses(const struct console *c)
{
	const struct run_results *r = c->r;
	struct top t = {.n = 0};

	for (unsigned n = 0; n < r->n_nodes; n++) {
		for (unsigned p = 0; p < r->nodes[n].n_ports; p++) {
			const struct port_counters *k = r->nodes[n].ports[p].ctr;
			for (unsigned prio = 0; prio < PRIO_COUNT; prio++) {
				double key = (double)k->rx_pauses.duration[prio] +
					     (double)k->ecn_marked[prio];
				if (key > 0)
					top_add(&t, (struct top_row){key, n, p, prio});
			}
		}
	}
	if (t.n == 0)
		return;
	heading(c, "Paused and marked most");
	fprintf(c->out, "  %-24s %4s %12s %12s %12s %12s\n", "port", "prio", "paused", "pauses in",
		"pauses out", "ECN marks");
	for (unsigned i = 0; i < t.n; i++) {
		const struct top_row *w = &t.row[i];
		const struct port_counters *k = r->nodes[w->node].ports[w->index].ctr;
		char place[PLACE_MAX], paused[FORMAT_MAX], in[FORMAT_MAX], out[FORMAT_MAX];
		char marks[FORMAT_MAX];
		fprintf(c->out, "  %-24s %4u %12s %12s %12s %12s\n",
			run_place(r, w->node, w->index, place, sizeof(place)), w->prio,
			format_time(k->rx_pauses.duration[w->prio], paused),
			format_count(k->rx_pause[w->prio], in),
			format_count(k->tx_pause[w->prio], out),
			format_count(k->ecn_marked[w->prio], marks));
	}
}

void console_print_pgs(const struct console *c)
{
	const struct run_results *r = c->r;
	struct top t = {.n = 0};

	for (unsigned n = 0; n < r->n_nodes; n++) {
		for (unsigned i = 0; i < r->nodes[n].n_pgs; i++) {
			const struct run_pg *g = &r->nodes[n].pgs[i];
			if (g->lossless && g->xoff_bytes > 0 && g->peak_bytes > 0)
				top_add(&t, (struct top_row){
						    (double)g->peak_bytes / (double)g->xoff_bytes,
						    n, i, g->pg});
		}
	}
	if (t.n == 0)
		return;
	heading(c, "Priority groups closest to XOFF");
	fprintf(c->out, "  %-24s %4s %10s %10s %6s %8s %22s\n", "ingress port", "PG", "peak",
		"XOFF at", "", "XOFFs", "headroom used");
	for (unsigned i = 0; i < t.n; i++) {
		const struct top_row *w = &t.row[i];
		const struct run_pg *g = &r->nodes[w->node].pgs[w->index];
		char place[PLACE_MAX], peak[FORMAT_MAX], xoff[FORMAT_MAX], used[FORMAT_MAX];
		char room[FORMAT_MAX], xoffs[FORMAT_MAX];
		fprintf(c->out, "  %-24s %4u %10s %10s %5.0f%% %8s %10s of %9s\n",
			run_place(r, w->node, g->port, place, sizeof(place)), g->pg,
			format_bytes((double)g->peak_bytes, peak),
			format_bytes((double)g->xoff_bytes, xoff), 100 * w->key,
			format_count(g->xoffs, xoffs), format_bytes((double)g->headroom_peak, used),
			format_bytes((double)g->headroom_bytes, room));
	}
}
