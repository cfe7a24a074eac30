/* SPDX-License-Identifier: BSD-3-Clause */
// The scenario's switches, hosts, links, routes and flows as nodes and lanes.

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "emu/attach/attach.h"
#include "emu/fabric/buffers.h"
#include "emu/fabric/internal.h"
#include "emu/fabric/levels.h"
#include "models/qos_map.h"
#include "pipelines/edge.h"
#include "pipelines/endpoint.h"
#include "pipelines/ethernet_switch.h"
#include "pipelines/nic.h"
#include "pipelines/replay.h"

#define LOG_EVENTS_SWITCH 4096
#define LOG_EVENTS_HOST   1024

static int say(
	struct fabric *f, const struct sc_pos *pos, const char *name, const char *why, int rc)
{
	fprintf(f->opt.err, "%s:%u:%u: %s: %s\n", f->s->path, pos->line, pos->col, name,
		why[0] ? why : strerror(-rc));
	return rc;
}

// ---- endpoints ---------------------------------------------------------------------------------

static int endpoints_create(struct fabric *f)
{
	const struct scenario *s = f->s;

	f->endpoints = calloc(1, sizeof(*f->endpoints));
	if (f->endpoints == NULL)
		return -ENOMEM;
	int rc = endpoint_table_init(f->endpoints, s->n_endpoints, 2 * s->n_endpoints);
	for (uint32_t i = 0; rc == 0 && i < s->n_endpoints; i++) {
		const struct sc_endpoint *e = &s->endpoints[i];
		int64_t index = endpoint_add(
			f->endpoints, NULL, e->port, s->nodes[e->node].ports[e->port].mac);
		rc = index < 0 ? (int)index : 0;
		if (rc == 0 && e->ip4 != 0)
			rc = endpoint_add_ipv4(f->endpoints, i, e->ip4);
		if (rc == 0 && e->has_ip6)
			rc = endpoint_add_ipv6(f->endpoints, i, e->ip6);
	}
	return rc;
}

// ---- switches ----------------------------------------------------------------------------------

static void map_of(const struct sc_qos *q, struct qos_map *m)
{
	qos_map_default(m);
	memcpy(m->dscp_to_tc, q->dscp_to_tc, sizeof(m->dscp_to_tc));
	memcpy(m->pcp_to_tc, q->pcp_to_tc, sizeof(m->pcp_to_tc));
	memcpy(m->tc_to_pg, q->tc_to_pg, sizeof(m->tc_to_pg));
	memcpy(m->tc_to_queue, q->tc_to_queue, sizeof(m->tc_to_queue));
	m->trust = q->trust == SC_TRUST_PCP ? QOS_TRUST_PCP : QOS_TRUST_DSCP;
}

static void queue_config(
	struct ethernet_switch_port_config *p, unsigned i, const struct sc_queue *q)
{
	p->wred[i] = (struct wred_profile){
		.enabled = q->ecn || q->wred_drop,
		.min_bytes = q->kmin,
		.max_bytes = q->kmax,
		.pmax_q32 = (uint32_t)RTE_MIN(q->pmax_q32, (uint64_t)UINT32_MAX),
		.drop_not_ect = q->wred_drop,
		.at_dequeue = q->mark_at_dequeue,
	};
	p->sched[i] = (struct sched_queue_config){
		.type = q->sched == SC_SCHED_STRICT ? SCHED_STRICT : SCHED_DWRR,
		.weight = (uint16_t)q->weight,
	};
}

static void port_config(
	const struct fabric *f, uint32_t node, uint16_t port, struct ethernet_switch_port_config *p)
{
	const struct scenario *s = f->s;
	const struct sc_port *sp = &s->nodes[node].ports[port];
	struct sc_end peer = sc_peer(s, node, port);
	const struct sc_qos *q = port_qos(s, node, port);

	*p = (struct ethernet_switch_port_config){
		.host_port = sc_is_host(s, peer.node),
		.up = level_is_up(s, f->level, node, port),
		.mtu = (uint16_t)s->links[sp->link].mtu,
		.pfc_rx = port_pfc_rx(s, node, port),
		.pfc_tx = port_pfc_tx(s, node, port),
		.pause_quanta = q->pfc_quanta,
		.pfc_response = port_pfc_response(s, node, port),
	};
	snprintf(p->name, sizeof(p->name), "%s", sp->name);
	memcpy(p->mac, sp->mac, sizeof(p->mac));
	memcpy(p->peer_mac, s->nodes[peer.node].ports[peer.port].mac, sizeof(p->peer_mac));
	map_of(q, &p->qos);
	p->wd_prios = q->wd_prios & p->pfc_rx;
	p->wd = (struct pfc_wd_config){
		.action = q->wd.action,
		.condition = q->wd.storm_condition,
		.detection_time = q->wd.detection_time,
		.restoration_time = q->wd.restoration_time,
		.big_red_switch = q->wd.big_red_switch,
	};
	for (unsigned i = 0; i < QOS_CLASSES; i++) {
		p->pg[i] = pg_profile(s, node, port, i);
		p->queue[i] = queue_profile(s, node, port, i);
		queue_config(p, i, &q->queue[i]);
	}
}

// Some DSCP becomes another.
static bool bounces(const struct sc_qos *q)
{
	for (unsigned i = 0; i < SC_DSCPS; i++)
		if (q->bounce[i] != i)
			return true;
	return false;
}

static int switch_create(struct fabric *f, uint32_t node)
{
	const struct sc_switch *sw = &f->s->switches[node];
	const struct sc_node *sn = &f->s->nodes[node];
	struct ethernet_switch_port_config *ports = calloc(sn->n_ports + 1, sizeof(*ports));
	char why[256] = "";

	if (ports == NULL)
		return -ENOMEM;
	for (uint16_t p = 0; p < sn->n_ports; p++)
		port_config(f, node, p, &ports[p]);
	struct ethernet_switch_config cfg = {
		.name = sn->name,
		.n_ports = sn->n_ports,
		.ports = ports,
		.mmu = {.buffer_bytes = sw->buffer, .cell_bytes = qos_of(f->s, node)->cell_size},
		.ecmp_seed = (uint32_t)sw->ecmp_seed,
		.load_balancing = sw->load_balancing,
		.flowlet_gap = sw->flowlet_gap,
		.bounce = bounces(qos_of(f->s, node)) ? qos_of(f->s, node)->bounce : NULL,
		.endpoints = f->endpoints,
		.log_events = LOG_EVENTS_SWITCH,
	};
	int rc = ethernet_switch_create(&cfg, &f->nodes[node], why, sizeof(why));
	free(ports);
	return rc < 0 ? say(f, &sn->pos, sn->name, why, rc) : 0;
}

void routes_apply(struct fabric *f)
{
	for (uint32_t sw = 0; sw < f->s->n_switches; sw++) {
		for (uint32_t e = 0; e < f->s->n_endpoints; e++) {
			uint16_t n;
			const uint16_t *ports = routes_ports(f->routes, sw, e, &n);
			ethernet_switch_set_route(f->nodes[sw], e, ports, n);
		}
	}
	for (uint32_t i = 0; i < f->routes->n_from; i++) {
		const struct route_from *from = &f->routes->from[i];
		ethernet_switch_set_route_from(f->nodes[from->sw], from->in, from->endpoint,
			f->routes->ports + from->set.first, from->set.n);
	}
}

// ---- hosts -------------------------------------------------------------------------------------

static const uint8_t *next_hop_mac(const struct scenario *s, uint32_t node, uint16_t port)
{
	struct sc_end peer = sc_peer(s, node, port);

	return s->nodes[peer.node].ports[peer.port].mac;
}

static int nic_host_create(struct fabric *f, uint32_t node)
{
	const struct scenario *s = f->s;
	const struct sc_node *sn = &s->nodes[node];
	const struct sc_nic *nic = &sc_host_of(s, node)->nic;
	struct nic_port_config *ports = calloc(sn->n_ports + 1, sizeof(*ports));

	if (ports == NULL)
		return -ENOMEM;
	for (uint16_t p = 0; p < sn->n_ports; p++) {
		const struct sc_endpoint *e = &s->endpoints[sn->ports[p].endpoint];
		ports[p] = (struct nic_port_config){
			.ip4 = e->ip4,
			.has_ip6 = e->has_ip6,
			.endpoint = sn->ports[p].endpoint,
			.pfc_enable = port_pfc_rx(s, node, p),
			.pfc_response = port_pfc_response(s, node, p),
		};
		// What is lossless to both ends.
		struct sc_end peer = sc_peer(s, node, p);
		ports[p].pfc_send = ports[p].pfc_enable & port_pfc_rx(s, peer.node, peer.port);
		memcpy(ports[p].mac, sn->ports[p].mac, 6);
		memcpy(ports[p].next_hop_mac, next_hop_mac(s, node, p), 6);
		memcpy(ports[p].ip6, e->ip6, 16);
	}

	struct nic_config cfg = nic_config_default();
	cfg.name = sn->name;
	cfg.n_ports = sn->n_ports;
	cfg.ports = ports;
	cfg.seed = s->seed;
	cfg.index = node;
	cfg.payload = (uint16_t)nic->payload;
	cfg.ack_every = nic->ack_every;
	cfg.window = nic->window;
	cfg.timeout = nic->timeout;
	cfg.retry_cnt = nic->retry_cnt;
	cfg.rnr_retry = nic->rnr_retry;
	cfg.ecn_capable = nic->ecn;
	cfg.adaptive = nic->adaptive;
	cfg.max_rd_atomic = nic->max_rd_atomic;
	cfg.recv_depth = nic->recv_depth;
	cfg.recv_rate = nic->recv_rate;
	cfg.min_rnr_timer = nic->min_rnr_timer;
	cfg.recovery = nic->recovery == SC_SELECTIVE_REPEAT ? NIC_SELECTIVE_REPEAT : NIC_GO_BACK_N;
	cfg.ooo = nic->ooo;
	cfg.ooo_time = nic->ooo_time;
	cfg.bdp_cap = nic->bdp_cap;
	cfg.rto_low = nic->rto_low;
	cfg.rto_high = nic->rto_high;
	cfg.cc = nic->cc;
	cfg.np = nic->np;
	cfg.cnp_tc = s->qos[0].dscp_to_tc[nic->np.cnp_dscp];
	cfg.log_cap = LOG_EVENTS_HOST;
	int rc = nic_create(&cfg, &f->nodes[node]);
	free(ports);
	return rc < 0 ? say(f, &sn->pos, sn->name, "", rc) : 0;
}

static int replay_host_create(struct fabric *f, uint32_t node)
{
	const struct scenario *s = f->s;
	const struct sc_node *sn = &s->nodes[node];
	const struct sc_replay *r = &sc_host_of(s, node)->replay;
	struct replay_config cfg = {
		.name = sn->name,
		.path = r->file,
		.filter = r->filter,
		.speed_milli = r->speed_milli,
		.loops = r->loops,
		.start = r->start,
		.rewrite_macs = true,
		.endpoints = f->endpoints,
		.pfc_enable = port_pfc_rx(s, node, 0),
		.pfc_response = port_pfc_response(s, node, 0),
	};
	char why[256] = "";

	memcpy(cfg.mac, sn->ports[0].mac, 6);
	memcpy(cfg.next_hop_mac, next_hop_mac(s, node, 0), 6);
	memcpy(cfg.dscp_to_tc, s->qos[0].dscp_to_tc, sizeof(cfg.dscp_to_tc));
	memcpy(cfg.pcp_to_tc, s->qos[0].pcp_to_tc, sizeof(cfg.pcp_to_tc));
	int rc = replay_create(&cfg, &f->nodes[node], why, sizeof(why));
	return rc < 0 ? say(f, &sn->pos, sn->name, why, rc) : 0;
}

static int edge_host_create(struct fabric *f, uint32_t node)
{
	const struct scenario *s = f->s;
	const struct sc_node *sn = &s->nodes[node];
	const struct sc_attach *a = &sc_host_of(s, node)->attach;
	struct edge_port_config *ports = calloc(sn->n_ports + 1, sizeof(*ports));
	struct edge_config cfg = {
		.name = sn->name,
		.ports = ports,
		.n_ports = sn->n_ports,
		.endpoints = f->endpoints,
		.pfc_mask = port_pfc_rx(s, node, 0),
		.roce_dscp = a->roce_dscp == SC_UNSET ? EDGE_NO_DSCP : a->roce_dscp,
		.rx_queue_bytes = (uint32_t)a->buffer,
		.pause_response = port_pfc_response(s, node, 0),
		.counters = a->counters,
		.cc = {.cc = a->nic.cc, .np = a->nic.np, .ect0 = a->ect0},
	};

	if (ports == NULL)
		return -ENOMEM;
	for (uint16_t p = 0; p < sn->n_ports; p++) {
		ports[p].ops = attach_port(f->attach, node, p, &ports[p].port);
		ports[p].mtu = (uint16_t)s->links[sn->ports[p].link].mtu;
		memcpy(ports[p].mac, sn->ports[p].mac, 6);
		memcpy(ports[p].next_hop_mac, next_hop_mac(s, node, p), 6);
		ports[p].ip4 = s->endpoints[sn->ports[p].endpoint].ip4;
		// Guests and namespaces are given their MAC; others come with one of their own.
		ports[p].learn_mac = a->kind != SC_ATTACH_GUEST && a->kind != SC_ATTACH_NETNS;
	}
	memcpy(cfg.dscp_to_tc, s->qos[0].dscp_to_tc, sizeof(cfg.dscp_to_tc));
	memcpy(cfg.pcp_to_tc, s->qos[0].pcp_to_tc, sizeof(cfg.pcp_to_tc));
	cfg.trust_pcp = s->qos[0].trust == SC_TRUST_PCP;
	int rc = edge_create(&cfg, &f->nodes[node]);
	free(ports);
	return rc < 0 ? say(f, &sn->pos, sn->name, "", rc) : 0;
}

static int host_create(struct fabric *f, uint32_t node)
{
	switch (sc_host_of(f->s, node)->kind) {
	case SC_HOST_NIC:
		return nic_host_create(f, node);
	case SC_HOST_REPLAY:
		return replay_host_create(f, node);
	case SC_HOST_ATTACH:
		return edge_host_create(f, node);
	}
	return -EINVAL;
}

static void name_ports(struct node *n, const struct sc_node *sn)
{
	for (uint16_t p = 0; p < sn->n_ports; p++) {
		snprintf(n->ports[p].name, sizeof(n->ports[p].name), "%s", sn->ports[p].name);
		memcpy(n->ports[p].mac, sn->ports[p].mac, 6);
	}
}

static int find_levels(struct fabric *f)
{
	uint32_t *queue = calloc(f->s->n_switches + 1, sizeof(*queue));

	f->level = calloc(f->s->n_switches + 1, sizeof(*f->level));
	if (queue != NULL && f->level != NULL)
		levels_find(f->s, f->level, queue);
	free(queue);
	return queue != NULL && f->level != NULL ? 0 : -ENOMEM;
}

int nodes_create(struct fabric *f)
{
	int rc = endpoints_create(f);

	if (rc == 0)
		rc = find_levels(f);

	for (uint32_t i = 0; rc == 0 && i < f->s->n_nodes; i++) {
		rc = sc_is_host(f->s, i) ? host_create(f, i) : switch_create(f, i);
		if (rc == 0) {
			f->nodes[i]->pool = f->pool;
			name_ports(f->nodes[i], &f->s->nodes[i]);
			rc = engine_add_node(f->engine, f->nodes[i]);
			rc = rc < 0 ? rc : 0;
		}
	}
	return rc;
}

static void host_destroy(const struct fabric *f, uint32_t node)
{
	switch (sc_host_of(f->s, node)->kind) {
	case SC_HOST_NIC:
		nic_destroy(f->nodes[node]);
		break;
	case SC_HOST_REPLAY:
		replay_destroy(f->nodes[node]);
		break;
	case SC_HOST_ATTACH:
		edge_destroy(f->nodes[node]);
		break;
	}
}

void nodes_destroy(struct fabric *f)
{
	for (uint32_t i = 0; f->nodes != NULL && i < f->s->n_nodes; i++) {
		if (f->nodes[i] == NULL)
			continue;
		if (sc_is_host(f->s, i))
			host_destroy(f, i);
		else
			ethernet_switch_destroy(f->nodes[i]);
	}
	free(f->nodes);
	free(f->level);
	if (f->endpoints != NULL)
		endpoint_table_fini(f->endpoints);
	free(f->endpoints);
}

// ---- lanes and flows ---------------------------------------------------------------------------

int lanes_create(struct fabric *f)
{
	for (uint32_t i = 0; i < f->s->n_links; i++) {
		const struct sc_link *l = &f->s->links[i];
		for (int end = 0; end < 2; end++) {
			const struct sc_end *a = &l->end[end];
			const struct sc_end *b = &l->end[1 - end];
			struct lane_config cfg = {
				.rate_bps = l->rate_bps,
				.delay = lane_delay(f->s, a->node, a->port),
				.corrupt_q32 = l->corrupt_q32,
				.slack = faults_slack(f->s, a),
			};
			int rc = engine_connect(f->engine, f->nodes[a->node], a->port,
				f->nodes[b->node], b->port, &cfg);
			if (rc < 0)
				return rc;
		}
	}
	return 0;
}

int flows_create(struct fabric *f)
{
	for (uint32_t i = 0; i < f->s->n_flows; i++) {
		const struct sc_flow *w = &f->s->flows[i];
		const struct sc_endpoint *src = &f->s->endpoints[w->src];
		const struct sc_endpoint *dst = &f->s->endpoints[w->dst];
		struct nic_flow_config cfg = {
			.flow = i,
			.src_port = src->port,
			.dst_port = dst->port,
			.ipv6 = w->ipv6,
			.roce1 = w->roce1,
			.transport = w->transport,
			.op = w->op,
			.message_bytes = (uint32_t)w->bytes,
			.messages = w->messages,
			.qps = w->qps,
			.rate_bps = w->rate_bps,
			.start = w->on_demand ? SIMTIME_NEVER : w->start,
			.stop = w->stop,
			.dscp = w->dscp,
			.tc = w->priority,
			.pcp = w->pcp,
			.ttl = w->ttl,
			.udp_sport = w->udp_sport,
		};
		int rc = nic_add_flow(f->nodes[src->node], f->nodes[dst->node], &cfg);
		if (rc < 0)
			return say(f, &w->pos, w->name, "", rc);
	}
	return 0;
}
