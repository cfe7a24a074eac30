/* SPDX-License-Identifier: BSD-3-Clause */
// fabemu check, for people: one block per switch, then hosts, flows and the rest.

#include <arpa/inet.h>
#include <string.h>

#include "emu/cli/check.h"
#include "emu/fabric/buffers.h"
#include "emu/scenario/quantity.h"

#define FLOWS_SHOWN 40u

// Quantities in one printf need a buffer each; a handful in turn is enough.
static const char *show(enum quantity q, uint64_t value)
{
	static char bufs[12][QUANTITY_MAX];
	static unsigned next;

	return quantity_format(q, (int64_t)value, bufs[next++ % 12]);
}

static const char *rate(uint64_t bps)
{
	return show(Q_RATE, bps);
}

static const char *duration(simtime_t t)
{
	return t == 0 ? "0" : show(Q_TIME, (uint64_t)t);
}

static const char *bytes(uint64_t n)
{
	return show(Q_SIZE, n);
}

static void print_mask(uint8_t mask, FILE *out)
{
	if (mask == 0)
		fputs("none", out);
	for (unsigned p = 0, n = 0; p < SC_PRIOS; p++)
		if (mask >> p & 1)
			fprintf(out, "%s%u", n++ ? "," : "", p);
}

static void print_threshold(const struct mmu_threshold *th, FILE *out)
{
	if (!th->dynamic)
		fprintf(out, "%s", bytes(th->static_th_bytes));
	else if (th->dynamic_th >= 0)
		fprintf(out, "%ux free", 1u << th->dynamic_th);
	else
		fprintf(out, "free/%u", 1u << -th->dynamic_th);
}

// ---- switches ---------------------------------------------------------------------------------

// Where the computed headroom of the port's PGs comes from.
static void print_headroom(const struct scenario *s, uint32_t node, uint16_t port, FILE *out)
{
	struct headroom_exact h = port_headroom(s, node, port);

	fprintf(out,
		"           headroom: exposed %s = frame before the pause %s + pause %s + way %s",
		duration(h.exposed), duration(h.wait), duration(h.pause_frame),
		duration(h.pause_delay));
	fprintf(out, " + response %s + way back %s;\n", duration(h.response),
		duration(h.data_delay));
	fprintf(out, "               cells: trigger %u + in flight %u (frames of %s) + last %u\n",
		h.trigger_cells, h.flight_cells, bytes(h.worst_frame_bytes), h.last_cells);
}

static void print_port(const struct scenario *s, uint32_t node, uint16_t port, FILE *out)
{
	const struct sc_port *p = &s->nodes[node].ports[port];
	const struct sc_link *l = &s->links[p->link];
	struct sc_end peer = sc_peer(s, node, port);

	fprintf(out, "    %-6s -> %s:%s  %s  %s", p->name, s->nodes[peer.node].name,
		s->nodes[peer.node].ports[peer.port].name, rate(l->rate_bps), duration(l->delay));
	fprintf(out, "  mtu %u  pfc tx ", l->mtu);
	print_mask(port_pfc_tx(s, node, port), out);
	fputs(" rx ", out);
	print_mask(port_pfc_rx(s, node, port), out);
	if (!sc_is_host(s, node) && p->qos != s->switches[node].qos)
		fprintf(out, "  qos %s", s->qos[p->qos].name);
	fputc('\n', out);
	const struct sc_qos *q = port_qos(s, node, port);
	bool computed = false;
	for (unsigned pg = 0; pg < SC_PRIOS; pg++) {
		struct mmu_pg_profile g = pg_profile(s, node, port, pg);
		if (!g.lossless)
			continue;
		computed |= q->pg[pg].xoff == SC_AUTO;
		fprintf(out, "           pg %u lossless: reserved %s, xoff at ", pg,
			bytes(g.size_bytes));
		print_threshold(&g.th, out);
		fprintf(out, ", headroom %s, xon at %s or %s below\n", bytes(g.xoff_bytes),
			bytes(g.xon_bytes), bytes(g.xon_offset_bytes));
	}
	if (computed)
		print_headroom(s, node, port, out);
}

static bool same_ports(const uint16_t *a, uint16_t n, const uint16_t *b, uint16_t m)
{
	return n == m && (n == 0 || memcmp(a, b, n * sizeof(*a)) == 0);
}

static void print_endpoint(const struct scenario *s, uint32_t e, FILE *out)
{
	const struct sc_node *n = &s->nodes[s->endpoints[e].node];

	fputs(n->name, out);
	if (n->n_ports > 1)
		fprintf(out, ":%s", n->ports[s->endpoints[e].port].name);
}

// Runs of consecutive endpoints with the same ports share a line.
static void print_routes(const struct scenario *s, const struct routes *r, uint32_t sw, FILE *out)
{
	for (uint32_t e = 0; e < s->n_endpoints;) {
		uint16_t n, m;
		const uint16_t *ports = routes_ports(r, sw, e, &n);
		uint32_t end = e + 1;

		while (end < s->n_endpoints) {
			const uint16_t *more = routes_ports(r, sw, end, &m);
			if (!same_ports(ports, n, more, m))
				break;
			end++;
		}
		fputs("    route ", out);
		print_endpoint(s, e, out);
		if (end - e > 1) {
			fputs(" .. ", out);
			print_endpoint(s, end - 1, out);
		}
		fputs(n == 0 ? " -> none" : " ->", out);
		for (uint16_t i = 0; i < n; i++)
			fprintf(out, " %s", s->nodes[sw].ports[ports[i]].name);
		if (r->sets[(uint64_t)sw * r->n_endpoints + e].explicit_route)
			fputs("  (explicit)", out);
		fputc('\n', out);
		e = end;
	}
}

static void print_switch(const struct scenario *s, const struct routes *r, uint32_t i, FILE *out)
{
	const struct sc_switch *sw = &s->switches[i];
	const struct sc_qos *q = &s->qos[sw->qos];
	struct switch_budget b = switch_budget(s, i);

	fprintf(out, "switch %s  latency %s  qos %s", s->nodes[i].name, duration(sw->latency),
		q->name);
	if (sw->load_balancing != LB_ECMP)
		fprintf(out, "  load balancing %s", lb_mode_name(sw->load_balancing));
	if (sw->load_balancing == LB_FLOWLET)
		fprintf(out, " gap %s", duration(sw->flowlet_gap));
	fputc('\n', out);
	fprintf(out, "    buffer %s in cells of %s = reserved %s + headroom %s + shared %s\n",
		bytes(b.buffer_bytes), bytes(q->cell_size), bytes(b.reserved_bytes),
		bytes(b.headroom_bytes), bytes(b.shared_bytes));
	for (uint16_t p = 0; p < s->nodes[i].n_ports; p++)
		print_port(s, i, p, out);
	print_routes(s, r, i, out);
}

static void print_wd(const struct sc_qos *q, FILE *out)
{
	const struct sc_pfc_wd *wd = &q->wd;

	if (q->wd_prios == 0)
		return;
	fputs("    pfc_wd on ", out);
	print_mask(q->wd_prios, out);
	fprintf(out, "  %s  condition %s", pfc_wd_action_name(wd->action),
		pfc_wd_condition_name(wd->storm_condition));
	fprintf(out, "  detection %s", duration(wd->detection_time));
	fprintf(out, " restoration %s", duration(wd->restoration_time));
	fprintf(out, " poll %s%s\n", duration(wd->poll_interval),
		wd->big_red_switch ? "  big red switch" : "");
}

static void print_qos(const struct sc_qos *q, FILE *out)
{
	fprintf(out, "qos %s  trust %s  pfc tx ", q->name,
		q->trust == SC_TRUST_DSCP ? "dscp" : "pcp");
	print_mask(q->pfc_tx, out);
	fputs(" rx ", out);
	print_mask(q->pfc_rx, out);
	fprintf(out, "  cells of %s\n", bytes(q->cell_size));
	print_wd(q, out);
	for (unsigned i = 0; i < SC_PRIOS; i++) {
		const struct sc_queue *queue = &q->queue[i];

		fprintf(out, "    tc %u -> pg %u queue %u   queue %u ", i, q->tc_to_pg[i],
			q->tc_to_queue[i], i);
		if (queue->sched == SC_SCHED_STRICT)
			fputs("STRICT", out);
		else
			fprintf(out, "DWRR %u", queue->weight);
		if (queue->ecn || queue->wred_drop)
			fprintf(out, "  %s%s%s %s..%s p %s", queue->ecn ? "ecn" : "",
				queue->ecn && queue->wred_drop ? "+" : "",
				queue->wred_drop ? "drop" : "", bytes(queue->kmin),
				bytes(queue->kmax), show(Q_PROBABILITY, queue->pmax_q32));
		fputc('\n', out);
	}
}

// ---- hosts, flows, the rest -------------------------------------------------------------------

static void print_recovery(const struct sc_nic *nic, FILE *out)
{
	if (nic->recovery == SC_SELECTIVE_REPEAT)
		fprintf(out, " selective-repeat rto %s..%s", duration(nic->rto_low),
			duration(nic->rto_high));
	if (nic->bdp_cap != 0)
		fprintf(out, " bdp cap %s", bytes(nic->bdp_cap));
	if (nic->ooo != 0)
		fprintf(out, " ooo %u", nic->ooo);
	if (nic->ooo_time != 0)
		fprintf(out, " for %s", duration(nic->ooo_time));
}

static void print_cc(const struct sc_nic *nic, FILE *out)
{
#define CC_BOOL(value)                  (value) ? "yes" : "no"
#define CC_TIME(value)                  duration(value)
#define CC_RATE(value)                  rate(value)
#define CC_RATE_LINE(value)             (value) != 0 ? rate(value) : "line"
#define CC_RATE_CURRENT(value)          (value) != 0 ? rate(value) : "current"
#define CC_SIZE(value)                  bytes(value)
#define CC_COUNT(value)                 show(Q_COUNT, value)
#define CC_FRACTION(value)              show(Q_PROBABILITY, value)
#define CC_FACTOR(value)                show(Q_FACTOR, value)
#define CC_SHOW(value, field, quantity) fprintf(out, " " #field " %s", CC_##quantity(value));
#define X_dcqcn(f, t, q, d, l, h, x)    CC_SHOW(nic->cc.dcqcn.f, f, q)
#define X_dctcp(f, t, q, d, l, h, x)    CC_SHOW(nic->cc.dctcp.f, f, q)
#define X_timely(f, t, q, d, l, h, x)   CC_SHOW(nic->cc.timely.f, f, q)
#define X_swift(f, t, q, d, l, h, x)    CC_SHOW(nic->cc.swift.f, f, q)
#define X_hpcc(f, t, q, d, l, h, x)     CC_SHOW(nic->cc.hpcc.f, f, q)
	if (nic->cc.algorithm != CC_NONE)
		fprintf(out, "  %s", cc_name(nic->cc.algorithm));
	switch (nic->cc.algorithm) {
	case CC_DCQCN:
		DCQCN_PARAMS(X_dcqcn)
		break;
	case CC_DCTCP:
		DCTCP_PARAMS(X_dctcp)
		break;
	case CC_TIMELY:
		TIMELY_PARAMS(X_timely)
		break;
	case CC_SWIFT:
		SWIFT_PARAMS(X_swift)
		break;
	case CC_HPCC:
		HPCC_PARAMS(X_hpcc)
		break;
	default:
		break;
	}
	if (nic->cc.algorithm != CC_NONE)
		fputc('\n', out);
	if (nic->np.enable)
		fprintf(out,
			"  np scope %s min_time_between_cnps %s cnp_dscp %u cnp_802p_prio %u\n",
			np_scope_name(nic->np.scope), duration(nic->np.min_time_between_cnps),
			nic->np.cnp_dscp, nic->np.cnp_802p_prio);
}

static void print_host(const struct scenario *s, const struct sc_host *h, FILE *out)
{
	static const char *const kinds[] = {
		[SC_HOST_NIC] = "nic", [SC_HOST_REPLAY] = "replay", [SC_HOST_ATTACH] = "attach"};
	static const char *const attach[] = {[SC_ATTACH_VHOST_USER] = "vhost-user",
		[SC_ATTACH_TAP] = "tap",
		[SC_ATTACH_NETDEV] = "netdev",
		[SC_ATTACH_NETNS] = "netns",
		[SC_ATTACH_DPDK] = "dpdk",
		[SC_ATTACH_GUEST] = "guest"};
	const struct sc_node *n = &s->nodes[h->node];

	fprintf(out, "host %s  %s", n->name, kinds[h->kind]);
	if (h->kind == SC_HOST_NIC)
		fprintf(out, " mtu %u payload %u ack every %u window %u", h->nic.mtu,
			h->nic.payload, h->nic.ack_every, h->nic.window);
	if (h->kind == SC_HOST_NIC)
		print_recovery(&h->nic, out);
	else if (h->kind == SC_HOST_REPLAY)
		fprintf(out, " %s", h->replay.file);
	else
		fprintf(out, " %s mtu %u%s", attach[h->attach.kind], h->attach.mtu,
			h->attach.ect0 ? " ecn ect0" : "");
	fputc('\n', out);
	if (h->kind != SC_HOST_REPLAY)
		print_cc(h->kind == SC_HOST_NIC ? &h->nic : &h->attach.nic, out);
	for (uint16_t p = 0; p < n->n_ports; p++) {
		const struct sc_endpoint *e = &s->endpoints[n->ports[p].endpoint];
		struct sc_end peer = sc_peer(s, h->node, p);
		struct in_addr in = {.s_addr = htonl(e->ip4)};
		char ip4[INET_ADDRSTRLEN], ip6[INET6_ADDRSTRLEN] = "";
		const uint8_t *m = n->ports[p].mac;

		inet_ntop(AF_INET, &in, ip4, sizeof(ip4));
		if (e->has_ip6)
			inet_ntop(AF_INET6, e->ip6, ip6, sizeof(ip6));
		fprintf(out, "    %-6s -> %s:%s  %s/%u %s%s%02x:%02x:%02x:%02x:%02x:%02x\n",
			n->ports[p].name, s->nodes[peer.node].name,
			s->nodes[peer.node].ports[peer.port].name, ip4, e->ip4_len, ip6,
			e->has_ip6 ? " " : "", m[0], m[1], m[2], m[3], m[4], m[5]);
	}
}

static void print_flow(const struct scenario *s, const struct sc_flow *f, FILE *out)
{
	fprintf(out, "flow %s  ", f->name);
	print_endpoint(s, f->src, out);
	fputs(" -> ", out);
	print_endpoint(s, f->dst, out);
	fprintf(out, "  %s ", wr_op_word(f->op));
	if (f->transport != QP_RC || f->roce1)
		fprintf(out, "%s%s ", qp_transport_name(f->transport),
			f->roce1 ? " (RoCE v1)" : "");
	if (f->messages == 0)
		fprintf(out, "%s messages without end", bytes(f->bytes));
	else
		fprintf(out, "%llu x %s", (unsigned long long)f->messages, bytes(f->bytes));
	if (f->qps > 1)
		fprintf(out, " on %u QPs", f->qps);
	fprintf(out, "  at %s", f->rate_bps != 0 ? rate(f->rate_bps) : "line rate");
	fprintf(out, "  dscp %u (priority %u)", f->dscp, f->priority);
	if (f->on_demand)
		fputs("  on event", out);
	else if (f->start != 0)
		fprintf(out, "  from %s", duration(f->start));
	if (f->stop != SIMTIME_NEVER)
		fprintf(out, "  until %s", duration(f->stop));
	fputc('\n', out);
}

static void print_app(const struct scenario *s, const struct sc_app *a, FILE *out)
{
	const struct sc_node *n = &s->nodes[a->node];

	fprintf(out, "app %s  %s on %s:%s  port %u  size %u  count %u  mtu %u  dscp %u%s", a->name,
		app_name((enum app_kind)a->kind), n->name, n->ports[a->iface].name, a->port,
		a->size, a->count, a->mtu, a->dscp, a->ipv6 ? "  ipv6" : "");
	if (a->peer != SC_NONE)
		fprintf(out, "  to %s  at %s", s->nodes[s->endpoints[a->peer].node].name,
			duration(a->start));
	fputc('\n', out);
}

static void print_captures(const struct scenario *s, FILE *out)
{
	for (uint32_t i = 0; i < s->n_captures; i++)
		fprintf(out, "capture %s  %u ports%s%s\n", s->captures[i].file,
			s->captures[i].n_taps, s->captures[i].filter != NULL ? "  " : "",
			s->captures[i].filter != NULL ? s->captures[i].filter : "");
}

void check_print_text(const struct scenario *s, const struct routes *r, FILE *out)
{
	fprintf(out, "scenario %s%s%s\n", s->name, s->description[0] != '\0' ? ": " : "",
		s->description);
	fprintf(out, "clock %s  seed %llu  duration %s\n",
		s->clock == SC_CLOCK_VIRTUAL ? "virtual" : "wall", (unsigned long long)s->seed,
		s->duration == 0 ? "until nothing happens" : duration(s->duration));
	fprintf(out, "%u switches, %u hosts, %u links, %u flows\n\n", s->n_switches, s->n_hosts,
		s->n_links, s->n_flows);
	for (uint32_t i = 0; i < s->n_qos; i++)
		print_qos(&s->qos[i], out);
	for (uint32_t i = 0; i < s->n_switches; i++)
		print_switch(s, r, i, out);
	for (uint32_t i = 0; i < s->n_hosts; i++)
		print_host(s, &s->hosts[i], out);
	for (uint32_t i = 0; i < s->n_flows && i < FLOWS_SHOWN; i++)
		print_flow(s, &s->flows[i], out);
	if (s->n_flows > FLOWS_SHOWN)
		fprintf(out, "... and %u more flows (--json shows all)\n",
			s->n_flows - FLOWS_SHOWN);
	for (uint32_t i = 0; i < s->n_apps; i++)
		print_app(s, &s->apps[i], out);
	for (uint32_t i = 0; i < s->n_faults; i++)
		check_print_fault(s, &s->faults[i], out);
	fprintf(out, "%u events\n", s->n_events);
	print_captures(s, out);
	for (uint32_t i = 0; i < s->n_expects; i++)
		fprintf(out, "expect %s\n", s->expects[i].text);
}
