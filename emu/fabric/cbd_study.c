/* SPDX-License-Identifier: BSD-3-Clause */
#include "emu/fabric/cbd_study.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// What one look at a situation needs; kept from one to the next.
struct look {
	const struct scenario *s;
	struct cbd_study *st;
	bool *link_down;
	uint8_t *held;                // [n_links] reasons, as the timeline counts them
	struct bdg any, work;         // of the situation alone
	struct bdg any_sum, work_sum; // with that of the one before
	struct bdg any_before, work_before;
};

const char *cbd_verdict_name(enum cbd_verdict v)
{
	static const char *const names[] = {"free", "changeover", "possible"};

	return names[v];
}

static int list(struct cbd_result *r, const struct bdg *b, enum cbd_verdict verdict)
{
	*r = (struct cbd_result){.verdict = verdict,
		.n_vertices = b->n_vertices,
		.n_edges = b->n_edges,
		.n_cycles = b->n_cycles,
		.n_listed = b->n_cycles < BDG_CYCLES_MAX ? b->n_cycles : BDG_CYCLES_MAX};
	if (r->n_listed == 0)
		return 0;
	r->cycle = malloc(r->n_listed * sizeof(*r->cycle));
	if (r->cycle == NULL)
		return -ENOMEM;
	memcpy(r->cycle, b->cycle, r->n_listed * sizeof(*r->cycle));
	return 0;
}

// `before` may be NULL: nothing was.
static int judge(struct bdg *now, const struct bdg *before, struct bdg *sum, struct cbd_result *r)
{
	int rc;

	if (before != NULL) { // most are free even so, which is all there is to know
		bdg_clear(sum);
		bdg_merge(sum, before);
		bdg_merge(sum, now);
		rc = bdg_solve(sum);
		if (rc < 0 || sum->n_cycles == 0)
			return rc < 0 ? rc : list(r, sum, CBD_FREE);
	}
	rc = bdg_solve(now);
	if (rc < 0)
		return rc;
	if (now->n_cycles > 0)
		return list(r, now, CBD_POSSIBLE);
	return before != NULL ? list(r, sum, CBD_CHANGEOVER) : list(r, now, CBD_FREE);
}

static void find_bounces(const struct bdg *b, struct cbd_case *c)
{
	struct bdg_bounce bounce;

	for (uint64_t n = 0; bdg_next_bounce(b, &n, &bounce); c->n_bounces++)
		if (c->n_bounces < sizeof(c->bounce) / sizeof(c->bounce[0]))
			c->bounce[c->n_bounces] = bounce;
}

// Looks at the fabric with k->link_down and routes `r`. What is free for any traffic is for the
// workload's.
static int look_at(struct look *k, const struct routes *r, const struct bdg *any_before,
	const struct bdg *work_before, struct cbd_case *c)
{
	cbd_set_links(k->st->c, k->link_down);
	bdg_clear(&k->any);
	cbd_spread_any(k->st->c, &k->any, r);
	find_bounces(&k->any, c);
	int rc = judge(&k->any, any_before, &k->any_sum, &c->any);
	if (rc < 0)
		return rc;
	bdg_clear(&k->work);
	if (c->when == CBD_FAILURE && c->any.verdict == CBD_FREE)
		return 0;
	cbd_spread_workload(k->st->c, &k->work, r);
	return judge(&k->work, work_before, &k->work_sum, &c->workload);
}

static void free_case(struct cbd_case *c)
{
	free(c->any.cycle);
	free(c->workload.cycle);
}

static int keep(struct cbd_study *st, const struct cbd_case *c)
{
	struct cbd_case *more = realloc(st->cases, (st->n_cases + 1) * sizeof(*more));

	if (more == NULL)
		return -ENOMEM;
	st->cases = more;
	st->cases[st->n_cases++] = *c;
	return 0;
}

static int look_and_keep(struct look *k, struct cbd_case *c, const struct routes *r,
	const struct bdg *any_before, const struct bdg *work_before)
{
	int rc = look_at(k, r, any_before, work_before, c);

	if (rc == 0)
		rc = keep(k->st, c);
	if (rc < 0)
		free_case(c);
	return rc;
}

// ---- the scenario's events ----------------------------------------------------------------------

enum { HELD_EVENT = 1, HELD_REBOOT = 2 };

static void hold(struct look *k, uint32_t link, unsigned why, bool down)
{
	k->held[link] = (uint8_t)(down ? k->held[link] | why : k->held[link] & ~why);
	k->link_down[link] = k->held[link] != 0;
}

// As emu/fabric/timeline.c: what the event does to links. False: routes stay as they are.
static bool apply(struct look *k, const struct sc_event *ev)
{
	const struct sc_node *n;

	switch (ev->kind) {
	case SC_EVENT_LINK_DOWN:
	case SC_EVENT_LINK_UP:
		if (ev->ends != 3)
			return false;
		hold(k, ev->link, HELD_EVENT, ev->kind == SC_EVENT_LINK_DOWN);
		return true;
	case SC_EVENT_REBOOT:
	case SC_EVENT_REBOOT_DONE:
		n = &k->s->nodes[ev->node];
		for (uint16_t p = 0; p < n->n_ports; p++)
			hold(k, n->ports[p].link, (unsigned)HELD_REBOOT << n->ports[p].end,
				ev->kind == SC_EVENT_REBOOT);
		return true;
	default:
		return ev->kind == SC_EVENT_ROUTE;
	}
}

static int routes_at(struct look *k, uint32_t last, struct routes **r)
{
	int rc = routes_compute(k->s, k->link_down, r);

	for (uint32_t i = 0; rc == 0 && i <= last; i++)
		if (k->s->events[i].kind == SC_EVENT_ROUTE) {
			rc = routes_override(*r, &k->s->events[i].route);
			if (rc < 0)
				routes_free(*r);
		}
	return rc;
}

// Events of one instant are one change.
static int look_at_events(struct look *k)
{
	const struct scenario *s = k->s;
	bool changed = false;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < s->n_events; i++) {
		struct routes *r;
		changed = apply(k, &s->events[i]) || changed;
		if (!changed || (i + 1 < s->n_events && s->events[i + 1].at == s->events[i].at))
			continue;
		changed = false;
		rc = routes_at(k, i, &r);
		if (rc < 0)
			return rc;
		struct cbd_case c = {.when = CBD_EVENT, .at = s->events[i].at};
		rc = look_and_keep(k, &c, r, &k->any_before, &k->work_before);
		bdg_merge(&k->any_before, &k->any);
		bdg_merge(&k->work_before, &k->work);
		routes_free(r);
	}
	return rc;
}

// ---- failures -----------------------------------------------------------------------------------

static int fail_link(struct look *k, uint32_t link)
{
	struct cbd_study *st = k->st;
	struct cbd_case c = {.when = CBD_FAILURE, .link = link};
	struct routes *r;

	memset(k->link_down, 0, k->s->n_links * sizeof(*k->link_down));
	k->link_down[link] = true;
	int rc = routes_compute(k->s, k->link_down, &r);
	if (rc < 0)
		return rc;
	rc = look_at(k, r, &st->any, &st->workload, &c);
	routes_free(r);
	if (rc == 0) {
		st->n_any_free += c.any.verdict == CBD_FREE;
		st->n_work_free += c.workload.verdict == CBD_FREE;
		st->n_with_bounce += c.n_bounces > 0;
	}
	bool tell = rc == 0 && (c.any.verdict != CBD_FREE || c.n_bounces > 0);
	if (tell)
		rc = keep(st, &c);
	if (!tell || rc < 0)
		free_case(&c);
	return rc;
}

static int look_at_failures(struct look *k)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < k->s->n_links; i++) {
		const struct sc_link *l = &k->s->links[i];
		if (sc_is_host(k->s, l->end[0].node) || sc_is_host(k->s, l->end[1].node)) {
			k->st->n_host_links++;
			continue;
		}
		k->st->n_links++;
		rc = fail_link(k, i);
	}
	k->st->failures_done = true;
	return rc;
}

// ---- all of it ----------------------------------------------------------------------------------

static int study(struct look *k, bool failures)
{
	struct cbd_case c = {.when = CBD_CONFIGURED};
	struct routes *r;
	int rc = routes_compute(k->s, NULL, &r);

	if (rc < 0)
		return rc;
	rc = look_and_keep(k, &c, r, NULL, NULL);
	routes_free(r);
	if (rc < 0)
		return rc;
	bdg_merge(&k->st->any, &k->any);
	bdg_merge(&k->st->workload, &k->work);
	bdg_merge(&k->any_before, &k->any);
	bdg_merge(&k->work_before, &k->work);
	rc = bdg_solve(&k->st->any);
	if (rc == 0)
		rc = bdg_solve(&k->st->workload);
	if (rc == 0)
		rc = look_at_events(k);
	return rc == 0 && failures ? look_at_failures(k) : rc;
}

int cbd_study_create(const struct scenario *s, bool failures, struct cbd_study *st)
{
	struct look k = {.s = s, .st = st};
	struct bdg *of_any[] = {&k.any, &k.any_sum, &k.any_before, &st->any};
	struct bdg *of_work[] = {&k.work, &k.work_sum, &k.work_before, &st->workload};
	enum { GRAPHS = 4, KEPT = 3 };

	*st = (struct cbd_study){0};
	int rc = cbd_create(s, &st->c);
	for (unsigned i = 0; rc == 0 && i < GRAPHS; i++) {
		rc = bdg_init(of_any[i], cbd_any_fabric(st->c));
		if (rc == 0)
			rc = bdg_init(of_work[i], cbd_workload_fabric(st->c));
	}
	k.link_down = calloc(s->n_links + 1, sizeof(*k.link_down));
	k.held = calloc(s->n_links + 1, sizeof(*k.held));
	if (k.link_down == NULL || k.held == NULL)
		rc = -ENOMEM;
	if (rc == 0)
		rc = study(&k, failures);
	if (rc == 0)
		cbd_set_links(st->c, NULL);
	for (unsigned i = 0; i < KEPT; i++) { // all but the study's own
		bdg_fini(of_any[i]);
		bdg_fini(of_work[i]);
	}
	free(k.link_down);
	free(k.held);
	if (rc < 0)
		cbd_study_free(st);
	return rc;
}

void cbd_study_free(struct cbd_study *st)
{
	for (uint32_t i = 0; i < st->n_cases; i++)
		free_case(&st->cases[i]);
	free(st->cases);
	bdg_fini(&st->any);
	bdg_fini(&st->workload);
	cbd_free(st->c);
	*st = (struct cbd_study){0};
}
