/* SPDX-License-Identifier: BSD-3-Clause */
// fabemu check --json. Base units: bits per second, bytes, picoseconds. Absent limits are null.

#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "emu/cli/check.h"
#include "emu/fabric/buffers.h"

#define CHECK_JSON_VERSION 1

static void set_int(json_t *o, const char *key, uint64_t value)
{
	json_object_set_new(o, key, json_integer((json_int_t)value));
}

static void set_text(json_t *o, const char *key, const char *value)
{
	json_object_set_new(o, key, value != NULL ? json_string(value) : json_null());
}

static void set_bool(json_t *o, const char *key, bool value)
{
	json_object_set_new(o, key, json_boolean(value));
}

static json_t *mask_json(uint8_t mask)
{
	json_t *a = json_array();

	for (unsigned p = 0; p < SC_PRIOS; p++)
		if (mask >> p & 1)
			json_array_append_new(a, json_integer(p));
	return a;
}

static void set_port_name(const struct scenario *s, json_t *o, const char *key, struct sc_end e)
{
	char name[64];

	snprintf(name, sizeof(name), "%s:%s", s->nodes[e.node].name,
		s->nodes[e.node].ports[e.port].name);
	set_text(o, key, name);
}

static json_t *pg_json(const struct scenario *s, uint32_t node, uint16_t port, unsigned pg)
{
	struct mmu_pg_profile g = pg_profile(s, node, port, pg);
	json_t *o = json_object();

	set_int(o, "pg", pg);
	set_bool(o, "lossless", g.lossless);
	set_int(o, "size", g.size_bytes);
	if (g.th.dynamic)
		json_object_set_new(o, "dynamic_th", json_integer(g.th.dynamic_th));
	else
		set_int(o, "static_th", g.th.static_th_bytes);
	set_int(o, "xoff", g.xoff_bytes);
	set_int(o, "xon", g.xon_bytes);
	set_int(o, "xon_offset", g.xon_offset_bytes);
	return o;
}

static json_t *port_json(const struct scenario *s, uint32_t node, uint16_t port)
{
	const struct sc_port *p = &s->nodes[node].ports[port];
	const struct sc_link *l = &s->links[p->link];
	json_t *o = json_object();
	char mac[18];

	set_text(o, "name", p->name);
	set_port_name(s, o, "peer", sc_peer(s, node, port));
	set_text(o, "link", l->name);
	snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", p->mac[0], p->mac[1], p->mac[2],
		p->mac[3], p->mac[4], p->mac[5]);
	set_text(o, "mac", mac);
	set_int(o, "rate_bps", l->rate_bps);
	set_int(o, "delay_ps", (uint64_t)l->delay);
	set_int(o, "mtu", l->mtu);
	json_object_set_new(o, "pfc_tx", mask_json(port_pfc_tx(s, node, port)));
	json_object_set_new(o, "pfc_rx", mask_json(port_pfc_rx(s, node, port)));
	set_int(o, "pfc_response_ps", (uint64_t)port_pfc_response(s, node, port));
	return o;
}

// The parts of the computed headroom, see models/headroom.h.
static json_t *headroom_json(const struct scenario *s, uint32_t node, uint16_t port)
{
	struct headroom_exact h = port_headroom(s, node, port);
	json_t *o = json_object();

	set_int(o, "bytes", h.bytes);
	set_int(o, "exposed_ps", (uint64_t)h.exposed);
	set_int(o, "wait_ps", (uint64_t)h.wait);
	set_int(o, "pause_frame_ps", (uint64_t)h.pause_frame);
	set_int(o, "pause_delay_ps", (uint64_t)h.pause_delay);
	set_int(o, "response_ps", (uint64_t)h.response);
	set_int(o, "data_delay_ps", (uint64_t)h.data_delay);
	set_int(o, "trigger_cells", h.trigger_cells);
	set_int(o, "flight_cells", h.flight_cells);
	set_int(o, "last_cells", h.last_cells);
	set_int(o, "worst_frame_bytes", h.worst_frame_bytes);
	return o;
}

static json_t *route_json(const struct scenario *s, const struct routes *r, uint32_t sw, uint32_t e)
{
	const struct sc_endpoint *dst = &s->endpoints[e];
	json_t *o = json_object(), *via = json_array();
	uint16_t n;
	const uint16_t *ports = routes_ports(r, sw, e, &n);

	set_port_name(s, o, "dst", (struct sc_end){.node = dst->node, .port = dst->port});
	for (uint16_t i = 0; i < n; i++)
		json_array_append_new(via, json_string(s->nodes[sw].ports[ports[i]].name));
	json_object_set_new(o, "via", via);
	set_bool(o, "explicit", r->sets[(uint64_t)sw * r->n_endpoints + e].explicit_route);
	return o;
}

static json_t *switch_json(const struct scenario *s, const struct routes *r, uint32_t i)
{
	struct switch_budget b = switch_budget(s, i);
	json_t *o = json_object(), *ports = json_array(), *routes = json_array();

	set_text(o, "name", s->nodes[i].name);
	set_int(o, "latency_ps", (uint64_t)s->switches[i].latency);
	set_text(o, "qos", s->qos[s->switches[i].qos].name);
	set_text(o, "load_balancing", lb_mode_name(s->switches[i].load_balancing));
	if (s->switches[i].load_balancing == LB_FLOWLET)
		set_int(o, "flowlet_gap_ps", (uint64_t)s->switches[i].flowlet_gap);
	set_int(o, "buffer", b.buffer_bytes);
	set_int(o, "reserved", b.reserved_bytes);
	set_int(o, "headroom", b.headroom_bytes);
	set_int(o, "shared", b.shared_bytes);
	for (uint16_t p = 0; p < s->nodes[i].n_ports; p++) {
		json_t *port = port_json(s, i, p), *pgs = json_array();

		for (unsigned pg = 0; pg < SC_PRIOS; pg++)
			json_array_append_new(pgs, pg_json(s, i, p, pg));
		json_object_set_new(port, "pgs", pgs);
		json_object_set_new(port, "headroom", headroom_json(s, i, p));
		json_array_append_new(ports, port);
	}
	json_object_set_new(o, "ports", ports);
	for (uint32_t e = 0; e < s->n_endpoints; e++)
		json_array_append_new(routes, route_json(s, r, i, e));
	json_object_set_new(o, "routes", routes);
	return o;
}

static json_t *qos_json(const struct sc_qos *q)
{
	json_t *o = json_object(), *dscp = json_array(), *pg = json_array(), *tc = json_array();
	json_t *queues = json_array();

	set_text(o, "name", q->name);
	set_text(o, "trust", q->trust == SC_TRUST_DSCP ? "dscp" : "pcp");
	set_int(o, "cell_size", q->cell_size);
	for (unsigned i = 0; i < SC_DSCPS; i++)
		json_array_append_new(dscp, json_integer(q->dscp_to_tc[i]));
	for (unsigned i = 0; i < SC_PRIOS; i++) {
		const struct sc_queue *queue = &q->queue[i];
		json_t *e = json_object();

		json_array_append_new(pg, json_integer(q->tc_to_pg[i]));
		json_array_append_new(tc, json_integer(q->tc_to_queue[i]));
		set_text(e, "type", queue->sched == SC_SCHED_STRICT ? "STRICT" : "DWRR");
		set_int(e, "weight", queue->weight);
		set_bool(e, "ecn", queue->ecn);
		set_bool(e, "drop", queue->wred_drop);
		set_int(e, "kmin", queue->kmin);
		set_int(e, "kmax", queue->kmax);
		json_object_set_new(e, "pmax", json_real((double)queue->pmax_q32 / 4294967296.0));
		json_array_append_new(queues, e);
	}
	json_object_set_new(o, "dscp_to_tc", dscp);
	json_object_set_new(o, "tc_to_pg", pg);
	json_object_set_new(o, "tc_to_queue", tc);
	json_object_set_new(o, "pfc_tx", mask_json(q->pfc_tx));
	json_object_set_new(o, "pfc_rx", mask_json(q->pfc_rx));
	json_object_set_new(o, "queues", queues);
	return o;
}

static json_t *cc_json(const struct sc_nic *nic)
{
	json_t *o = json_object();

	set_text(o, "algorithm", cc_name(nic->cc.algorithm));
#define PARAM(value, field)           set_int(o, #field, (uint64_t)(value));
#define X_dcqcn(f, t, q, d, l, h, x)  PARAM(nic->cc.dcqcn.f, f)
#define X_dctcp(f, t, q, d, l, h, x)  PARAM(nic->cc.dctcp.f, f)
#define X_timely(f, t, q, d, l, h, x) PARAM(nic->cc.timely.f, f)
#define X_swift(f, t, q, d, l, h, x)  PARAM(nic->cc.swift.f, f)
#define X_hpcc(f, t, q, d, l, h, x)   PARAM(nic->cc.hpcc.f, f)
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
	return o;
}

static json_t *np_json(const struct sc_nic *nic)
{
	json_t *o = json_object();

	set_text(o, "scope", np_scope_name(nic->np.scope));
	set_int(o, "min_time_between_cnps", (uint64_t)nic->np.min_time_between_cnps);
	set_int(o, "cnp_dscp", nic->np.cnp_dscp);
	set_int(o, "cnp_802p_prio", nic->np.cnp_802p_prio);
	return o;
}

static json_t *nic_json(const struct sc_nic *nic)
{
	json_t *o = json_object();

	set_int(o, "payload", nic->payload);
	set_int(o, "ack_every", nic->ack_every);
	set_int(o, "window", nic->window);
	set_text(o, "recovery",
		nic->recovery == SC_SELECTIVE_REPEAT ? "selective-repeat" : "go-back-N");
	set_int(o, "ooo", nic->ooo);
	if (nic->ooo_time != 0)
		set_int(o, "ooo_time_ps", (uint64_t)nic->ooo_time);
	if (nic->bdp_cap != 0)
		set_int(o, "bdp_cap", nic->bdp_cap);
	else
		set_text(o, "bdp_cap", NULL);
	if (nic->recovery == SC_SELECTIVE_REPEAT) {
		set_int(o, "rto_low_ps", (uint64_t)nic->rto_low);
		set_int(o, "rto_high_ps", (uint64_t)nic->rto_high);
	}
	json_object_set_new(o, "cc", cc_json(nic));
	if (nic->np.enable)
		json_object_set_new(o, "np", np_json(nic));
	return o;
}

static json_t *host_json(const struct scenario *s, const struct sc_host *h)
{
	static const char *const kinds[] = {"nic", "replay", "attach"};
	const struct sc_node *n = &s->nodes[h->node];
	json_t *o = json_object(), *ports = json_array();

	set_text(o, "name", n->name);
	set_text(o, "kind", kinds[h->kind]);
	if (h->kind == SC_HOST_NIC)
		json_object_set_new(o, "nic", nic_json(&h->nic));
	for (uint16_t p = 0; p < n->n_ports; p++) {
		const struct sc_endpoint *e = &s->endpoints[n->ports[p].endpoint];
		struct in_addr in = {.s_addr = htonl(e->ip4)};
		char ip4[INET_ADDRSTRLEN], ip6[INET6_ADDRSTRLEN];
		json_t *port = port_json(s, h->node, p);

		set_text(port, "ip", inet_ntop(AF_INET, &in, ip4, sizeof(ip4)));
		set_text(port, "ip6",
			e->has_ip6 ? inet_ntop(AF_INET6, e->ip6, ip6, sizeof(ip6)) : NULL);
		json_array_append_new(ports, port);
	}
	json_object_set_new(o, "ports", ports);
	return o;
}

static json_t *flow_json(const struct scenario *s, const struct sc_flow *f)
{
	const struct sc_endpoint *src = &s->endpoints[f->src], *dst = &s->endpoints[f->dst];
	json_t *o = json_object();

	set_text(o, "name", f->name);
	set_port_name(s, o, "src", (struct sc_end){.node = src->node, .port = src->port});
	set_port_name(s, o, "dst", (struct sc_end){.node = dst->node, .port = dst->port});
	set_text(o, "op", wr_op_word(f->op));
	set_text(o, "transport", qp_transport_name(f->transport));
	set_text(o, "roce", f->roce1 ? "v1" : "v2");
	set_int(o, "bytes", f->bytes);
	set_int(o, "messages", f->messages);
	set_int(o, "rate_bps", f->rate_bps);
	set_int(o, "qps", f->qps);
	set_int(o, "start_ps", (uint64_t)f->start);
	if (f->stop == SIMTIME_NEVER)
		set_text(o, "stop_ps", NULL);
	else
		set_int(o, "stop_ps", (uint64_t)f->stop);
	set_int(o, "dscp", f->dscp);
	set_int(o, "priority", f->priority);
	set_int(o, "ttl", f->ttl);
	set_bool(o, "on_demand", f->on_demand);
	return o;
}

static json_t *fault_json(const struct scenario *s, const struct sc_fault *f)
{
	json_t *o = json_object(), *lanes = json_array();
	char *text = NULL;
	size_t len;
	FILE *words = open_memstream(&text, &len);

	set_text(o, "name", f->name);
	set_text(o, "action", fault_action_name(f->rule.action));
	for (uint32_t i = 0; i < f->n_lanes; i++) {
		json_t *lane = json_object();
		set_port_name(s, lane, "from", f->lanes[i]);
		set_port_name(s, lane, "to", sc_peer(s, f->lanes[i].node, f->lanes[i].port));
		json_array_append_new(lanes, lane);
	}
	json_object_set_new(o, "lanes", lanes);
	if (words != NULL) {
		check_print_fault(s, f, words);
		fclose(words);
		text[strcspn(text, "\n")] = '\0';
	}
	set_text(o, "text", text);
	free(text);
	return o;
}

static json_t *app_json(const struct scenario *s, const struct sc_app *a)
{
	json_t *o = json_object();

	set_text(o, "name", a->name);
	set_text(o, "type", app_name((enum app_kind)a->kind));
	set_text(o, "host", s->nodes[a->node].name);
	set_text(o, "interface", s->nodes[a->node].ports[a->iface].name);
	if (a->peer != SC_NONE)
		set_text(o, "peer", s->nodes[s->endpoints[a->peer].node].name);
	set_int(o, "port", a->port);
	set_int(o, "size", a->size);
	set_int(o, "count", a->count);
	set_int(o, "connections", a->connections);
	set_int(o, "start_ps", (uint64_t)a->start);
	set_int(o, "dscp", a->dscp);
	set_int(o, "mtu", a->mtu);
	return o;
}

int check_print_json(
	const struct scenario *s, const struct routes *r, const struct cbd_study *st, FILE *out)
{
	json_t *o = json_object();
	json_t *qos = json_array(), *switches = json_array(), *hosts = json_array();
	json_t *flows = json_array(), *faults = json_array(), *expects = json_array();
	json_t *apps = json_array();

	set_int(o, "version", CHECK_JSON_VERSION);
	set_text(o, "scenario", s->path);
	set_text(o, "name", s->name);
	set_text(o, "description", s->description);
	set_text(o, "clock", s->clock == SC_CLOCK_VIRTUAL ? "virtual" : "wall");
	set_int(o, "seed", s->seed);
	set_int(o, "duration_ps", (uint64_t)s->duration);
	for (uint32_t i = 0; i < s->n_qos; i++)
		json_array_append_new(qos, qos_json(&s->qos[i]));
	for (uint32_t i = 0; i < s->n_switches; i++)
		json_array_append_new(switches, switch_json(s, r, i));
	for (uint32_t i = 0; i < s->n_hosts; i++)
		json_array_append_new(hosts, host_json(s, &s->hosts[i]));
	for (uint32_t i = 0; i < s->n_flows; i++)
		json_array_append_new(flows, flow_json(s, &s->flows[i]));
	for (uint32_t i = 0; i < s->n_expects; i++)
		json_array_append_new(expects, json_string(s->expects[i].text));
	json_object_set_new(o, "qos", qos);
	json_object_set_new(o, "switches", switches);
	json_object_set_new(o, "hosts", hosts);
	for (uint32_t i = 0; i < s->n_faults; i++)
		json_array_append_new(faults, fault_json(s, &s->faults[i]));
	json_object_set_new(o, "flows", flows);
	for (uint32_t i = 0; i < s->n_apps; i++)
		json_array_append_new(apps, app_json(s, &s->apps[i]));
	json_object_set_new(o, "apps", apps);
	json_object_set_new(o, "faults", faults);
	json_object_set_new(o, "expect", expects);
	json_object_set_new(o, "deadlock", check_deadlock_json(s, st));

	int rc = o != NULL ? json_dumpf(o, out, JSON_INDENT(2)) : -1;
	json_decref(o);
	fputc('\n', out);
	return rc == 0 || ferror(out) ? 0 : -ENOMEM;
}
