/* SPDX-License-Identifier: BSD-3-Clause */

// Rules that tie sections together, checked when everything is resolved: a run must be able to end,
// real endpoints need real time, and what a host sends must fit its own link.

#include "emu/scenario/loader.h"
#include "models/sr.h"

// Headers of the longest RoCEv2 packet, counted against the IP MTU: UDP, BTH, RETH, ICRC.
#define ROCE_BYTES (8 + 12 + 16 + 4)

static bool has_real_endpoint(const struct scenario *s)
{
	for (uint32_t i = 0; i < s->n_hosts; i++)
		if (s->hosts[i].kind == SC_HOST_ATTACH)
			return true;
	return false;
}

static bool check_clock(struct loader *l)
{
	const struct scenario *s = l->s;

	for (uint32_t i = 0; i < s->n_hosts && s->clock == SC_CLOCK_VIRTUAL; i++) {
		if (s->hosts[i].kind != SC_HOST_ATTACH)
			continue;
		diag_key(&l->d, l->nodes[s->hosts[i].node].at, "attach",
			"real endpoints need real time, expected `clock: wall` at the top");
		return false;
	}
	return true;
}

static bool is_stopped(const struct scenario *s, uint32_t flow)
{
	for (uint32_t i = 0; i < s->n_events; i++)
		if (s->events[i].kind == SC_EVENT_FLOW_STOP && s->events[i].flow == flow)
			return true;
	return false;
}

// The error at a workload's entry.
const struct ynode *workload_map(const struct loader *l)
{
	const struct ynode *map = ynode_get(l->root, "workloads");
	return map != NULL ? map : l->root;
}

// Without a duration a run ends when nothing happens any more, which must come to pass. (With real
// endpoints it ends when their commands have, or by a signal.)
static bool check_end(struct loader *l)
{
	const struct scenario *s = l->s;
	const struct ynode *events = ynode_get(l->root, "events");

	if (s->duration != 0 || has_real_endpoint(s))
		return true;
	for (uint32_t i = 0; i < s->n_flows; i++) {
		const struct sc_flow *f = &s->flows[i];
		if (f->messages != 0 || f->stop != SIMTIME_NEVER || is_stopped(s, i))
			continue;
		diag_key(&l->d, workload_map(l), l->work_list[f->workload],
			"is endless in a run without end, expected `duration:` at the top, or "
			"`messages` or `stop` here");
		return false;
	}
	for (uint32_t i = 0; i < s->n_events; i++) {
		const struct sc_event *e = &s->events[i];
		if (e->kind != SC_EVENT_PAUSE_STORM || e->duration != SIMTIME_NEVER)
			continue;
		diag_at(&l->d, events != NULL ? events : l->root,
			"the pause storm of %s is endless in a run without end, expected "
			"`duration:` at the top or there",
			s->nodes[e->node].name);
		return false;
	}
	return true;
}

static const struct sc_link *link_of(const struct scenario *s, uint32_t endpoint)
{
	const struct sc_endpoint *e = &s->endpoints[endpoint];
	return &s->links[s->nodes[e->node].ports[e->port].link];
}

static bool check_flow_mtu(struct loader *l, const struct sc_flow *f)
{
	const struct scenario *s = l->s;
	const struct sc_nic *nic = &sc_host_of(s, s->endpoints[f->src].node)->nic;
	const struct sc_link *link = link_of(s, f->op == WR_READ ? f->dst : f->src); // of the data
	uint64_t longest = f->bytes < nic->payload ? f->bytes : nic->payload;
	// IP header; RoCE v1: a GRH and no UDP.
	uint64_t head = f->roce1 ? 40 - 8 : f->ipv6 ? 40 : 20;
	uint64_t packet = head + ROCE_BYTES + (longest + 3) / 4 * 4;

	if (packet <= link->mtu)
		return true;
	diag_key(&l->d, workload_map(l), l->work_list[f->workload],
		"its packets of %llu bytes do not fit link %s of MTU %u, expected a smaller NIC "
		"`mtu` "
		"or `packet_payload`, or a larger link `mtu`",
		(unsigned long long)packet, link->name, link->mtu);
	return false;
}

static bool check_mtu(struct loader *l)
{
	const struct scenario *s = l->s;
	bool ok = true;

	for (uint32_t i = 0; i < s->n_flows && !diag_full(&l->d); i++)
		ok = check_flow_mtu(l, &s->flows[i]) && ok;
	for (uint32_t i = 0; i < s->n_endpoints; i++) {
		const struct sc_host *h = sc_host_of(s, s->endpoints[i].node);
		const struct sc_link *link = link_of(s, i);

		if (h->kind != SC_HOST_ATTACH || h->attach.mtu <= link->mtu)
			continue;
		diag_key(&l->d, l->nodes[h->node].at, "attach",
			"its MTU %u is above the %u of link %s, expected a larger link `mtu`",
			h->attach.mtu, link->mtu, link->name);
		ok = false;
	}
	return ok;
}

// ---- loss recovery ----------------------------------------------------------------------------

// The error at a key of a host's NIC, or at the default if the host does not say.
static const struct ynode *nic_map(const struct loader *l, uint32_t node, const char *key)
{
	const struct ynode *at = l->nodes[node].at, *nic = NULL;

	if (at != NULL && at->kind == Y_MAP)
		nic = ynode_get(at, "nic");
	if (nic != NULL && nic->kind == Y_MAP && ynode_get(nic, key) != NULL)
		return nic;
	const struct ynode *defaults = ynode_get(l->root, "defaults");
	nic = defaults != NULL ? ynode_get(defaults, "nic") : NULL;
	return nic != NULL && ynode_get(nic, key) != NULL ? nic : l->root;
}

static bool check_nic_recovery(struct loader *l, const struct sc_host *h)
{
	const struct sc_nic *nic = &h->nic;
	uint64_t cap = nic->bdp_cap != 0 ? nic->bdp_cap / nic->payload : UINT64_MAX;

	if (h->kind != SC_HOST_NIC)
		return true;
	if (nic->ooo_time != 0 && nic->ooo == 0) {
		diag_key(&l->d, nic_map(l, h->node, "ooo_time"), "ooo_time",
			"has no meaning at %s, whose ooo is 0; expected both or none",
			l->s->nodes[h->node].name);
		return false;
	}
	if (nic->recovery != SC_SELECTIVE_REPEAT)
		return true;
	if (nic->rto_low > nic->rto_high) {
		const struct ynode *low = nic_map(l, h->node, "rto_low");
		bool given = ynode_get(low, "rto_low") != NULL;
		diag_key(&l->d, given ? low : nic_map(l, h->node, "rto_high"),
			given ? "rto_low" : "rto_high", "is %s at %s, expected rto_low <= rto_high",
			given ? "above rto_high" : "below rto_low", l->s->nodes[h->node].name);
		return false;
	}
	if (nic->window > SR_WINDOW_MAX && cap > SR_WINDOW_MAX) {
		diag_key(&l->d, nic_map(l, h->node, "window"), "window",
			"is %u packets at %s, expected at most %u with selective-repeat, or a "
			"smaller bdp_cap",
			nic->window, l->s->nodes[h->node].name, SR_WINDOW_MAX);
		return false;
	}
	return true;
}

static const char *recovery_name(const struct sc_nic *nic)
{
	return nic->recovery == SC_SELECTIVE_REPEAT ? "selective-repeat" : "go-back-N";
}

static bool check_flow_recovery(struct loader *l, const struct sc_flow *f)
{
	const struct scenario *s = l->s;
	const struct sc_host *src = sc_host_of(s, s->endpoints[f->src].node);
	const struct sc_host *dst = sc_host_of(s, s->endpoints[f->dst].node);

	if (src->nic.recovery == dst->nic.recovery)
		return true;
	diag_key(&l->d, workload_map(l), l->work_list[f->workload],
		"joins %s with recovery %s and %s with %s, expected the same at both ends",
		s->nodes[src->node].name, recovery_name(&src->nic), s->nodes[dst->node].name,
		recovery_name(&dst->nic));
	return false;
}

static bool check_recovery(struct loader *l)
{
	bool ok = true;

	for (uint32_t i = 0; i < l->s->n_hosts && !diag_full(&l->d); i++)
		ok = check_nic_recovery(l, &l->s->hosts[i]) && ok;
	for (uint32_t i = 0; i < l->s->n_flows && ok; i++)
		ok = check_flow_recovery(l, &l->s->flows[i]);
	return ok;
}

bool load_whole(struct loader *l)
{
	bool ok = check_clock(l);

	ok = check_end(l) && ok;
	ok = check_recovery(l) && ok;
	ok = check_transport(l) && ok;
	ok = check_cc(l) && ok;
	return check_mtu(l) && ok;
}
