/* SPDX-License-Identifier: BSD-3-Clause */

#include "emu/report/progress.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "emu/report/format.h"

#define REDRAW_NS  UINT64_C(200000000)
#define NS_PER_S   1e9
#define LINE_BYTES 160
#define CLEAR_LINE "\r\033[K"

static unsigned terminal_width(FILE *out)
{
	struct winsize w;

	if (ioctl(fileno(out), TIOCGWINSZ, &w) == 0 && w.ws_col > 1)
		return w.ws_col;
	return 80;
}

void progress_start(struct progress *p, FILE *out, bool quiet, uint64_t wall_ns)
{
	const char *term = getenv("TERM");
	bool dumb = term == NULL || strcmp(term, "dumb") == 0;

	*p = (struct progress){.started_ns = wall_ns, .printed_ns = wall_ns};
	if (!quiet && !dumb && isatty(fileno(out)))
		p->out = out;
}

// Share of the run that is done, or -1 when it cannot be known.
static double share_done(const struct progress_snapshot *s)
{
	if (s->duration != SIMTIME_NEVER && s->duration > 0)
		return (double)s->emulated / (double)s->duration;
	return s->done;
}

static void format_eta(double seconds, char *buf, size_t len)
{
	unsigned long t = (unsigned long)(seconds + 0.5);

	if (t >= 3600)
		snprintf(buf, len, "%luh%02lum", t / 3600, t / 60 % 60);
	else if (t >= 60)
		snprintf(buf, len, "%lum%02lus", t / 60, t % 60);
	else
		snprintf(buf, len, "%lus", t);
}

int progress_format(
	const struct progress *p, const struct progress_snapshot *s, char *buf, size_t len)
{
	char time[FORMAT_MAX], frames[FORMAT_MAX], lag[FORMAT_MAX], part[48] = "", eta[24] = "";
	char lagging[48] = "";
	double elapsed = (double)(s->wall_ns - p->started_ns) / NS_PER_S;
	double since = (double)(s->wall_ns - p->printed_ns) / NS_PER_S;
	double rate = since > 0 ? (double)(s->frames - p->frames) / since : 0;
	double done = share_done(s);

	if (done > 0 && done <= 1) {
		format_eta(elapsed * (1 - done) / done, eta, sizeof(eta));
		snprintf(part, sizeof(part), " (%.0f%%, ETA %s)", 100 * done, eta);
	}
	if (s->wall_clock)
		snprintf(lagging, sizeof(lagging), ", lag p99 %s", format_time(s->lag_p99, lag));
	return snprintf(buf, len, "%s%s, %s frames/s%s", format_time(s->emulated, time), part,
		format_count((uint64_t)rate, frames), lagging);
}

void progress_update(struct progress *p, const struct progress_snapshot *s)
{
	char line[LINE_BYTES];

	if (p->out == NULL || s->wall_ns - p->printed_ns < REDRAW_NS)
		return;
	progress_format(p, s, line, sizeof(line));
	fprintf(p->out, CLEAR_LINE "%.*s", (int)terminal_width(p->out) - 1, line);
	fflush(p->out);
	p->printed_ns = s->wall_ns;
	p->frames = s->frames;
	p->drawn = true;
}

void progress_end(struct progress *p)
{
	if (p->out == NULL || !p->drawn)
		return;
	fputs(CLEAR_LINE, p->out);
	fflush(p->out);
	p->drawn = false;
}
