/* SPDX-License-Identifier: BSD-3-Clause */

#include "emu/report/console.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emu/report/console_parts.h"
#include "emu/report/format.h"

static const char *const colours[] = {
	[COLOUR_NONE] = "\033[0m",
	[COLOUR_BOLD] = "\033[1m",
	[COLOUR_RED] = "\033[1;31m",
	[COLOUR_GREEN] = "\033[32m",
	[COLOUR_YELLOW] = "\033[33m",
};

const char *console_colour(const struct console *c, enum console_colour which)
{
	return c->colour ? colours[which] : "";
}

bool console_wants_colour(FILE *out)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(fileno(out)) && (no == NULL || no[0] == '\0') && term != NULL &&
	       strcmp(term, "dumb") != 0;
}

static void heading(const struct console *c, const char *text)
{
	fprintf(c->out, "\n%s%s%s\n", console_colour(c, COLOUR_BOLD), text,
		console_colour(c, COLOUR_NONE));
}

// ---- verdict
// --------------------------------------------------------------------------------------

static void print_verdict(const struct console *c)
{
	const struct run_results *r = c->r;
	enum run_verdict v = run_verdict(r);
	char emulated[FORMAT_MAX];
	bool nothing_expected = v == RUN_HELD && r->n_expectations == 0;

	fprintf(c->out, "%s: %s%s%s: %s emulated in %.2f s, digest 0x%016lx, seed %lu%s%s\n",
		r->scenario, console_colour(c, v == RUN_HELD ? COLOUR_GREEN : COLOUR_RED),
		nothing_expected ? "done, nothing was expected" : run_verdict_words(v),
		console_colour(c, COLOUR_NONE), format_time(r->emulated, emulated), r->wall_seconds,
		(unsigned long)r->digest, (unsigned long)r->seed,
		r->interrupted ? ", ended by " : "", r->interrupted ? r->interrupted : "");
}

static void print_failures(const struct console *c)
{
	const struct run_results *r = c->r;
	const char *red = console_colour(c, COLOUR_RED), *off = console_colour(c, COLOUR_NONE);
	char p99[FORMAT_MAX], bound[FORMAT_MAX];

	if (r->failure != NULL)
		fprintf(c->out, "%sfailed%s: %s\n", red, off, r->failure);
	for (unsigned i = 0; i < r->n_invariants; i++) {
		const struct run_invariant *v = &r->invariants[i];
		if (!v->ok)
			fprintf(c->out, "%sinvariant %s is broken%s: %s\n", red, v->name, off,
				v->text ? v->text : "no details");
	}
	for (unsigned i = 0; i < r->n_captures; i++) {
		const struct run_capture *k = &r->captures[i];
		if (k->error != NULL)
			fprintf(c->out, "%scapture %s%s: %s after %lu frames\n", red, k->file, off,
				k->error, (unsigned long)k->frames);
	}
	for (unsigned i = 0; i < r->n_lag; i++) {
		const struct run_lag *l = &r->lag[i];
		if (l->p99 > r->lag_bound)
			fprintf(c->out, "%slag%s: p99 of lcore %u is %s, the scenario allows %s\n",
				red, off, l->lcore, format_time(l->p99, p99),
				format_time(r->lag_bound, bound));
	}
}

static void print_expectations(const struct console *c, bool failed_only)
{
	for (unsigned i = 0; i < c->r->n_expectations; i++) {
		const struct run_expectation *e = &c->r->expectations[i];
		if (failed_only && e->ok)
			continue;
		fprintf(c->out, "%s%-6s%s %s: expected %s, got %s\n",
			console_colour(c, e->ok ? COLOUR_GREEN : COLOUR_RED),
			e->ok ? "ok" : "FAILED", console_colour(c, COLOUR_NONE), e->what,
			e->expected, e->got);
	}
}

// ---- drops, captures, guests, lag
// -----------------------------------------------------------------

static void print_drops(const struct console *c)
{
	const struct run_results *r = c->r;
	char n[FORMAT_MAX];
	bool any = false;

	for (int i = 0; i < DROP_REASON_COUNT; i++) {
		if (r->drops[i] == 0)
			continue;
		if (!any)
			heading(c, "Drops");
		any = true;
		fprintf(c->out, "  %12s  %-18s %s\n", format_count(r->drops[i], n),
			drop_reason_name((enum drop_reason)i),
			drop_reason_help((enum drop_reason)i));
	}
	if (!any)
		fprintf(c->out, "\nNo frame was dropped.\n");
	if (r->pool_empty > 0)
		fprintf(c->out, "The frame pool was found empty %s times.\n",
			format_count(r->pool_empty, n));
}

static void print_guests(const struct console *c)
{
	if (c->r->n_guests > 0)
		heading(c, "Commands");
	for (unsigned i = 0; i < c->r->n_guests; i++) {
		const struct run_guest *g = &c->r->guests[i];
		char how[48];

		if (g->signal != 0)
			snprintf(how, sizeof(how), "killed by signal %d", g->signal);
		else if (g->exit_status < 0)
			snprintf(how, sizeof(how), "did not end");
		else
			snprintf(how, sizeof(how), "exit status %d", g->exit_status);
		fprintf(c->out, "  %s: %s: %s%s%s\n", g->name, how, g->command,
			g->log ? ", log " : "", g->log ? g->log : "");
	}
}

static void print_captures(const struct console *c)
{
	char frames[FORMAT_MAX], bytes[FORMAT_MAX], lost[FORMAT_MAX];

	if (c->r->n_captures > 0)
		heading(c, "Captures");
	for (unsigned i = 0; i < c->r->n_captures; i++) {
		const struct run_capture *k = &c->r->captures[i];
		fprintf(c->out, "  %s: %s frames, %s", k->file, format_count(k->frames, frames),
			format_bytes((double)k->bytes, bytes));
		if (k->lost > 0)
			fprintf(c->out, ", %s frames not written: the disk was too slow",
				format_count(k->lost, lost));
		fputc('\n', c->out);
	}
}

static void print_lag(const struct console *c)
{
	char p50[FORMAT_MAX], p99[FORMAT_MAX], max[FORMAT_MAX];

	if (c->r->n_lag > 0)
		heading(c, "Lag behind the wall clock");
	for (unsigned i = 0; i < c->r->n_lag; i++) {
		const struct run_lag *l = &c->r->lag[i];
		fprintf(c->out, "  lcore %u: p50 %s, p99 %s, max %s\n", l->lcore,
			format_time(l->p50, p50), format_time(l->p99, p99),
			format_time(l->max, max));
	}
}

void console_print(const struct run_results *r, FILE *out, bool quiet, bool colour)
{
	struct console c = {.r = r, .out = out, .colour = colour};

	print_verdict(&c);
	print_failures(&c);
	print_expectations(&c, quiet);
	if (!quiet) {
		console_print_deadlocks(&c);
		console_print_flows(&c);
		console_print_apps(&c);
		console_print_faults(&c);
		print_drops(&c);
		console_print_pauses(&c);
		console_print_pgs(&c);
		print_guests(&c);
		print_captures(&c);
		print_lag(&c);
	}
	fflush(out);
}
