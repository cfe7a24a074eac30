/* SPDX-License-Identifier: BSD-3-Clause */

#include "emu/report/results.h"

#include <stdio.h>

const char *flow_state_name(enum flow_state s)
{
	static const char *const names[] = {
#define X(id, name) [FLOW_##id] = name,
		FLOW_STATES(X)
#undef X
	};

	return (unsigned)s < FLOW_STATE_COUNT ? names[s] : "?";
}

const char *run_verdict_name(enum run_verdict v)
{
	switch (v) {
#define X(id, status, name, words) \
	case RUN_##id:             \
		return name;
		RUN_VERDICTS(X)
#undef X
	}
	return "?";
}

const char *run_verdict_words(enum run_verdict v)
{
	switch (v) {
#define X(id, status, name, words) \
	case RUN_##id:             \
		return words;
		RUN_VERDICTS(X)
#undef X
	}
	return "?";
}

static bool failed(const struct run_results *r)
{
	if (r->failure != NULL)
		return true;
	for (unsigned i = 0; i < r->n_invariants; i++) {
		if (!r->invariants[i].ok)
			return true;
	}
	for (unsigned i = 0; i < r->n_captures; i++) {
		if (r->captures[i].error != NULL)
			return true;
	}
	return false;
}

static bool lagged(const struct run_results *r)
{
	for (unsigned i = 0; i < r->n_lag; i++) {
		if (r->lag[i].p99 > r->lag_bound)
			return true;
	}
	return false;
}

enum run_verdict run_verdict(const struct run_results *r)
{
	if (failed(r))
		return RUN_RUN_FAILED;
	if (lagged(r))
		return RUN_LAGGED;
	for (unsigned i = 0; i < r->n_expectations; i++) {
		if (!r->expectations[i].ok)
			return RUN_EXPECTATION_FAILED;
	}
	return RUN_HELD;
}

char *run_place(const struct run_results *r, uint32_t node, unsigned port, char *buf, size_t len)
{
	if (node >= r->n_nodes)
		snprintf(buf, len, "node%u:%u", node, port);
	else if (port >= r->nodes[node].n_ports)
		snprintf(buf, len, "%s:%u", r->nodes[node].name, port);
	else
		snprintf(buf, len, "%s:%s", r->nodes[node].name, r->nodes[node].ports[port].name);
	return buf;
}

simtime_t run_flow_fct(const struct run_flow *f)
{
	if (f->state != FLOW_COMPLETED || f->start == SIMTIME_NEVER || f->end == SIMTIME_NEVER)
		return SIMTIME_NEVER;
	return f->end - f->start;
}

double run_flow_goodput_bps(const struct run_results *r, const struct run_flow *f)
{
	if (f->start == SIMTIME_NEVER)
		return 0;
	simtime_t end = f->end != SIMTIME_NEVER ? f->end : r->emulated;
	if (end <= f->start)
		return 0;
	return (double)f->bytes_done * 8 * SIM_S / (double)(end - f->start);
}
