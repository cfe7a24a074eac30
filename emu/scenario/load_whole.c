/* SPDX-License-Identifier: BSD-3-Clause */

// Rules that tie sections together, checked when everything is resolved: a run must be able to end,
// real endpoints need real time, and what a host sends must fit its own link.

#include "emu/scenario/loader.h"

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
static const struct ynode *workload_map(const struct loader *l)
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
	const struct sc_link *link = link_of(s, f->src);
	uint64_t longest = f->bytes < nic->payload ? f->bytes : nic->payload;
	uint64_t packet = (f->ipv6 ? 40 : 20) + ROCE_BYTES + (longest + 3) / 4 * 4;

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

bool load_whole(struct loader *l)
{
	bool ok = check_clock(l);

	ok = check_end(l) && ok;
	return check_mtu(l) && ok;
}
