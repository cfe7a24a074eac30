/* SPDX-License-Identifier: BSD-3-Clause */
// The deadlock part of fabemu check: verdicts, cycles, bounces and link failures.

#include "emu/cli/check.h"
#include "emu/scenario/quantity.h"

#define PLACE_MAX      80
#define CYCLES_SHOWN   4u
#define CASES_SHOWN    20u
#define BOUNCES_LISTED (sizeof(((struct cbd_case *)0)->bounce) / sizeof(struct bdg_bounce))

static const char *place(const struct scenario *s, uint32_t sw, uint16_t port, char *buf)
{
	snprintf(buf, PLACE_MAX, "%s:%s", s->nodes[sw].name, s->nodes[sw].ports[port].name);
	return buf;
}

// ---- text ---------------------------------------------------------------------------------------

static void print_cycle(const struct scenario *s, const struct bdg_cycle *y, FILE *out)
{
	char buf[PLACE_MAX];

	fprintf(out, "    cycle of %u (%u PGs on such):", y->n, y->component);
	for (uint32_t i = 0; i < y->n_listed; i++)
		fprintf(out, "%s %s pg %u", i > 0 ? " ->" : "",
			place(s, y->hop[i].v.sw, y->hop[i].v.port, buf), y->hop[i].v.pg);
	fprintf(out, "%s\n", y->n > y->n_listed ? " -> ..." : " -> the first");
}

static void print_result(
	const struct scenario *s, const char *whose, const struct cbd_result *r, FILE *out)
{
	switch (r->verdict) {
	case CBD_FREE:
		fprintf(out, "  %s: proven free of deadlock: no cycle\n", whose);
		return;
	case CBD_CHANGEOVER:
		fprintf(out,
			"  %s: no cycle, but %u together with frames still queued by the routes "
			"before\n",
			whose, r->n_cycles);
		break;
	case CBD_POSSIBLE:
		fprintf(out, "  %s: deadlock possible: cycles in %u place%s\n", whose, r->n_cycles,
			r->n_cycles > 1 ? "s" : "");
		break;
	}
	for (uint32_t i = 0; i < r->n_listed && i < CYCLES_SHOWN; i++)
		print_cycle(s, &r->cycle[i], out);
	if (r->n_cycles > CYCLES_SHOWN)
		fprintf(out, "    ... and in %u more places\n", r->n_cycles - CYCLES_SHOWN);
}

static void print_case(
	const struct scenario *s, const struct cbd_study *st, const struct cbd_case *c, FILE *out)
{
	char time[QUANTITY_MAX], buf[PLACE_MAX], buf2[PLACE_MAX];

	if (c->when == CBD_CONFIGURED)
		fprintf(out, "deadlock check, as configured (%u PGs wait, %u dependencies)\n",
			st->any.n_vertices, st->any.n_edges);
	else if (c->when == CBD_EVENT)
		fprintf(out, "deadlock check, after the events at %s\n",
			quantity_format(Q_TIME, c->at, time));
	else
		fprintf(out, "deadlock check, without link %s\n", s->links[c->link].name);
	if (c->n_bounces > 0)
		fprintf(out, "  bounces: %llu, traffic goes up again after it came down, as at",
			(unsigned long long)c->n_bounces);
	for (uint64_t i = 0; i < c->n_bounces && i < BOUNCES_LISTED; i++)
		fprintf(out, "%s %s to %s", i > 0 ? "," : "",
			place(s, c->bounce[i].sw, c->bounce[i].in, buf),
			place(s, c->bounce[i].sw, c->bounce[i].out, buf2));
	if (c->n_bounces > 0)
		fputc('\n', out);
	print_result(s, "any traffic between hosts", &c->any, out);
	if (c->any.verdict == CBD_FREE)
		return;
	print_result(s,
		cbd_workload_is_known(st->c)
			? "this workload, acknowledgements included"
			: "this workload, acknowledgements and anything from real endpoints",
		&c->workload, out);
}

void check_print_deadlock(const struct scenario *s, const struct cbd_study *st, FILE *out)
{
	uint32_t shown = 0;

	if (s->n_switches == 0)
		return;
	fputc('\n', out);
	for (uint32_t i = 0; i < st->n_cases && shown < CASES_SHOWN; i++, shown++)
		print_case(s, st, &st->cases[i], out);
	if (st->n_cases > shown)
		fprintf(out, "... and %u more situations (--json shows all)\n",
			st->n_cases - shown);
	if (!st->failures_done)
		return;
	fprintf(out,
		"each of %u links between switches failing alone: any traffic proven free in %u, "
		"this workload in %u; bounces in %u\n",
		st->n_links, st->n_any_free, st->n_work_free, st->n_with_bounce);
	fprintf(out, "the %u links to hosts only take traffic away: nothing new can wait\n",
		st->n_host_links);
}

// ---- JSON ---------------------------------------------------------------------------------------

static json_t *cycle_json(const struct scenario *s, const struct bdg_cycle *y)
{
	json_t *hops = json_array();
	char buf[PLACE_MAX], buf2[PLACE_MAX];

	for (uint32_t i = 0; i < y->n_listed; i++)
		json_array_append_new(
			hops, json_pack("{s:s, s:i, s:s}", "port",
				      place(s, y->hop[i].v.sw, y->hop[i].v.port, buf), "pg",
				      y->hop[i].v.pg, "waits_at",
				      place(s, y->hop[i].v.sw, y->hop[i].egress, buf2)));
	return json_pack("{s:I, s:I, s:o}", "length", (json_int_t)y->n, "on_cycles",
		(json_int_t)y->component, "members", hops);
}

static json_t *result_json(const struct scenario *s, const struct cbd_result *r)
{
	json_t *cycles = json_array();

	for (uint32_t i = 0; i < r->n_listed; i++)
		json_array_append_new(cycles, cycle_json(s, &r->cycle[i]));
	return json_pack("{s:s, s:b, s:I, s:o}", "verdict", cbd_verdict_name(r->verdict),
		"proven_free", r->verdict == CBD_FREE, "components", (json_int_t)r->n_cycles,
		"cycles", cycles);
}

static json_t *case_json(const struct scenario *s, const struct cbd_case *c)
{
	json_t *o = json_object(), *bounces = json_array();
	char buf[PLACE_MAX], buf2[PLACE_MAX];

	if (c->when == CBD_EVENT)
		json_object_set_new(o, "at_ps", json_integer(c->at));
	if (c->when == CBD_FAILURE)
		json_object_set_new(o, "link", json_string(s->links[c->link].name));
	json_object_set_new(o, "any_traffic", result_json(s, &c->any));
	json_object_set_new(o, "workload", result_json(s, &c->workload));
	json_object_set_new(o, "bounces", json_integer((json_int_t)c->n_bounces));
	for (uint64_t i = 0; i < c->n_bounces && i < BOUNCES_LISTED; i++)
		json_array_append_new(
			bounces, json_pack("{s:s, s:s}", "in",
					 place(s, c->bounce[i].sw, c->bounce[i].in, buf), "out",
					 place(s, c->bounce[i].sw, c->bounce[i].out, buf2)));
	json_object_set_new(o, "bounce_examples", bounces);
	return o;
}

json_t *check_deadlock_json(const struct scenario *s, const struct cbd_study *st)
{
	json_t *o = case_json(s, &st->cases[0]), *events = json_array(), *failures = json_array();

	for (uint32_t i = 1; i < st->n_cases; i++)
		json_array_append_new(st->cases[i].when == CBD_EVENT ? events : failures,
			case_json(s, &st->cases[i]));
	json_object_set_new(o, "pgs", json_integer(st->any.n_vertices));
	json_object_set_new(o, "dependencies", json_integer(st->any.n_edges));
	json_object_set_new(o, "workload_known", json_boolean(cbd_workload_is_known(st->c)));
	json_object_set_new(o, "events", events);
	if (!st->failures_done) {
		json_object_set_new(o, "failures", json_null());
		json_decref(failures);
		return o;
	}
	json_object_set_new(o, "failures",
		json_pack("{s:I, s:I, s:I, s:I, s:I, s:o}", "links", (json_int_t)st->n_links,
			"host_links", (json_int_t)st->n_host_links, "any_traffic_free",
			(json_int_t)st->n_any_free, "workload_free", (json_int_t)st->n_work_free,
			"with_bounces", (json_int_t)st->n_with_bounce, "cases", failures));
	return o;
}
