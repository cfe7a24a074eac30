/* SPDX-License-Identifier: BSD-3-Clause */

// A deadlock as a ring: each member, why it cannot move, and by whom.
//
//	DEADLOCK on priority 3, formed at 104.2 us, seen at 204.2 us: 3 priority groups in a ring
//	  +-> sw1:eth2  holds 1.2 MB, 1.1 MB of it wait at sw1:eth3, paused since 103.9 us by
//	  |   sw2:eth1  holds ...
//	  +-- sw3:eth1  holds ... paused since 104.2 us by the first again
//	  trigger: sw1:eth2 was the first to cross XOFF, at 98.1 us

#include <string.h>

#include "emu/report/console_parts.h"
#include "emu/report/format.h"

#define PLACE_MAX 80

static const char *member_place(const struct console *c, const struct dl_member *m, char *buf)
{
	return run_place(c->r, m->pg.node, m->pg.port, buf, PLACE_MAX);
}

static void print_member(
	const struct console *c, const struct deadlock_report *d, uint32_t i, int width)
{
	const struct dl_member *m = &d->members[i];
	char place[PLACE_MAX], egress[PLACE_MAX], held[FORMAT_MAX], waiting[FORMAT_MAX];
	char xoff[FORMAT_MAX], since[FORMAT_MAX];
	bool last = i + 1 == d->n_listed;

	fprintf(c->out, "  %s %-*s  holds %s, XOFF since %s; %s wait at %s, paused since %s by%s\n",
		i == 0 ? "+->"
		: last ? "+--"
		       : "|  ",
		width, member_place(c, m, place), format_bytes((double)m->bytes, held),
		format_time(m->xoff_since, xoff), format_bytes((double)m->waiting_bytes, waiting),
		run_place(c->r, m->pg.node, m->egress_port, egress, sizeof(egress)),
		format_time(m->paused_since, since), last ? " the first again" : "");
}

static void print_deadlock(const struct console *c, const struct deadlock_report *d)
{
	const struct dl_member *trigger = &d->members[d->trigger];
	char formed[FORMAT_MAX], seen[FORMAT_MAX], place[PLACE_MAX], xoff[FORMAT_MAX];
	int width = 0;

	fprintf(c->out,
		"\n%sDEADLOCK on priority %u%s, formed at %s, seen at %s: %u priority groups wait "
		"for each other in a ring\n",
		console_colour(c, COLOUR_RED), trigger->pg.prio, console_colour(c, COLOUR_NONE),
		format_time(d->formed_at, formed), format_time(d->detected_at, seen), d->n_members);
	for (uint32_t i = 0; i < d->n_listed; i++) {
		int len = (int)strlen(member_place(c, &d->members[i], place));
		width = len > width ? len : width;
	}
	for (uint32_t i = 0; i < d->n_listed; i++)
		print_member(c, d, i, width);
	if (d->n_listed < d->n_members)
		fprintf(c->out, "  and %u more\n", d->n_members - d->n_listed);
	fprintf(c->out, "  trigger: %s crossed XOFF first, at %s\n",
		member_place(c, trigger, place), format_time(trigger->xoff_since, xoff));
	if (d->n_stuck > d->n_members)
		fprintf(c->out, "  %u priority groups are on this or a longer ring\n", d->n_stuck);
	if (d->n_behind > 0)
		fprintf(c->out, "  %u more are stuck behind it\n", d->n_behind);
	if (d->ended_at != SIMTIME_NEVER)
		fprintf(c->out, "  it was seen dissolved at %s\n", format_time(d->ended_at, seen));
}

static bool same_root(const struct pause_storm *a, const struct pause_storm *b)
{
	return a->root.node == b->root.node && a->root.port == b->root.port &&
	       a->root.prio == b->root.prio;
}

// A storm and how often it came back: a slow real endpoint may pause dozens of times.
static void print_storm(const struct console *c, const struct deadlock *d, uint32_t i)
{
	const struct pause_storm *s = &d->storms[i];
	char place[PLACE_MAX], since[FORMAT_MAX], until[FORMAT_MAX] = "the end";
	unsigned again = 0, waiting = s->n_waiting, depth = s->depth;

	for (uint32_t k = 0; k < i; k++)
		if (same_root(&d->storms[k], s))
			return; // told with that one
	for (uint32_t k = i + 1; k < d->n_storms; k++) {
		const struct pause_storm *later = &d->storms[k];
		if (!same_root(later, s))
			continue;
		again++;
		waiting = later->n_waiting > waiting ? later->n_waiting : waiting;
		depth = later->depth > depth ? later->depth : depth;
	}
	if (s->ended_at != SIMTIME_NEVER)
		format_time(s->ended_at, until);
	fprintf(c->out, "\n%sPAUSE STORM from %s on priority %u%s, %s to %s",
		console_colour(c, COLOUR_YELLOW),
		run_place(c->r, s->root.node, s->root.port, place, sizeof(place)), s->root.prio,
		console_colour(c, COLOUR_NONE), format_time(s->since, since), until);
	if (again > 0)
		fprintf(c->out, " and %u more", again);
	fprintf(c->out,
		": %u priority groups waited for it, up to %u hops away. A tree, not a cycle: no "
		"deadlock.\n",
		waiting, depth);
}

void console_print_deadlocks(const struct console *c)
{
	const struct deadlock *d = c->r->deadlock;

	if (d == NULL)
		return;
	for (uint32_t i = 0; i < d->n_reports; i++)
		print_deadlock(c, &d->reports[i]);
	for (uint32_t i = 0; i < d->n_storms; i++)
		print_storm(c, d, i);
	if (d->lost_reports > 0)
		fprintf(c->out, "%lu more deadlocks or storms are not listed.\n",
			(unsigned long)d->lost_reports);
	if (d->lost > 0)
		fprintf(c->out, "The detector's table was too small for %lu waits.\n",
			(unsigned long)d->lost);
}
