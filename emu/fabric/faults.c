/* SPDX-License-Identifier: BSD-3-Clause */
// The scenario's fault rules and bit errors, put in the way of the lanes they are for.

#include <errno.h>
#include <stdlib.h>

#include "emu/fabric/internal.h"
#include "pipelines/lane_fault.h"

#define BER_ONE 4611686018427387904.0 // 2^62

static struct lane *lane_of(const struct fabric *f, const struct sc_end *sender)
{
	return f->nodes[sender->node]->ports[sender->port].out;
}

static bool is_on(const struct sc_fault *fault, const struct sc_end *lane)
{
	for (uint32_t i = 0; i < fault->n_lanes; i++)
		if (fault->lanes[i].node == lane->node && fault->lanes[i].port == lane->port)
			return true;
	return false;
}

simtime_t faults_slack(const struct scenario *s, const struct sc_end *lane)
{
	simtime_t slack = 0;

	for (uint32_t i = 0; i < s->n_faults; i++) {
		const struct fault_rule *r = &s->faults[i].rule;
		if ((r->action == FAULT_DELAY || r->action == FAULT_REORDER) &&
			is_on(&s->faults[i], lane))
			slack = simtime_max(slack, r->delay);
	}
	return slack;
}

uint64_t faults_held(const struct scenario *s)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < s->n_links; i++)
		for (int e = 0; e < 2; e++)
			bytes += (uint64_t)((double)s->links[i].rate_bps / 8 / (double)SIM_S *
					    (double)faults_slack(s, &s->links[i].end[e]));
	return bytes;
}

bool faults_need_bytes(const struct scenario *s)
{
	for (uint32_t i = 0; i < s->n_faults; i++)
		if (s->faults[i].rule.action == FAULT_CORRUPT ||
			s->faults[i].rule.action == FAULT_TRUNCATE)
			return true;
	return false;
}

// Does any event change the bit error rate of what end `e` of the link sends?
static bool has_ber_event(const struct scenario *s, uint32_t link, unsigned e)
{
	for (uint32_t i = 0; i < s->n_events; i++)
		if (s->events[i].kind == SC_EVENT_SET_BER && s->events[i].link == link &&
			s->events[i].ends >> e & 1)
			return true;
	return false;
}

static int create_on(struct fabric *f, uint32_t link, unsigned e)
{
	const struct scenario *s = f->s;
	const struct sc_link *l = &s->links[link];
	const struct sc_end *sender = &l->end[e];
	struct lane_fault_rule rules[FAULT_RULES_MAX];
	struct lane_fault_config cfg = {.rules = rules, .endpoints = f->endpoints, .seed = s->seed};

	for (uint32_t i = 0; i < s->n_faults && cfg.n_rules < FAULT_RULES_MAX; i++)
		if (is_on(&s->faults[i], sender))
			rules[cfg.n_rules++] =
				(struct lane_fault_rule){.rule = &s->faults[i].rule, .index = i};
	if (cfg.n_rules == 0 && l->ber_q62 == 0 && !has_ber_event(s, link, e))
		return 0;
	int rc = lane_fault_create(lane_of(f, sender), &cfg);
	if (rc == 0)
		lane_fault_set_ber(lane_of(f, sender), l->fec, (double)l->ber_q62 / BER_ONE);
	return rc;
}

int faults_create(struct fabric *f)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < f->s->n_links; i++)
		for (unsigned e = 0; rc == 0 && e < 2; e++)
			rc = create_on(f, i, e);
	return rc;
}

void faults_destroy(struct fabric *f)
{
	for (uint32_t i = 0; i < f->s->n_links; i++) {
		for (unsigned e = 0; e < 2; e++) {
			const struct sc_end *sender = &f->s->links[i].end[e];
			const struct node *n = f->nodes != NULL ? f->nodes[sender->node] : NULL;
			if (n != NULL && n->ports[sender->port].out != NULL)
				lane_fault_destroy(n->ports[sender->port].out);
		}
	}
}

void faults_set_ber(struct fabric *f, const struct sc_event *ev)
{
	for (unsigned e = 0; e < 2; e++)
		if (ev->ends >> e & 1)
			lane_fault_set_ber(lane_of(f, &f->s->links[ev->link].end[e]), ev->fec,
				(double)ev->ber_q62 / BER_ONE);
}

int collect_faults(struct fabric *f, struct run_fault **store, struct run_results *r)
{
	const struct scenario *s = f->s;
	struct lane_fault_result x;

	*store = calloc(s->n_faults + 1, sizeof(**store));
	if (*store == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n_faults; i++) {
		struct run_fault *out = &(*store)[i];
		*out = (struct run_fault){.name = s->faults[i].name,
			.action = fault_action_name(s->faults[i].rule.action),
			.lanes = s->faults[i].n_lanes};
		for (uint32_t k = 0; k < s->faults[i].n_lanes; k++) {
			const struct lane *l = lane_of(f, &s->faults[i].lanes[k]);
			for (uint32_t n = 0; lane_fault_result(l, n, &x); n++) {
				if (x.index != i)
					continue;
				out->matched += x.matched;
				out->applied += x.applied;
				out->unknown += x.unknown;
			}
		}
	}
	r->faults = *store;
	r->n_faults = s->n_faults;
	return 0;
}
