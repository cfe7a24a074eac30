/* SPDX-License-Identifier: BSD-3-Clause */
// Making an Ethernet switch: defaults, validation with one-line reasons, allocation.

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "pcap/build.h"
#include "pipelines/ethernet_switch_state.h"

#define LOSSLESS_PRIOS  0x18 // 3 and 4
#define LOSSLESS_WEIGHT 15   // SONiC scheduler.1
#define LOSSY_WEIGHT    14   // SONiC scheduler.0
#define LOSSY_ALPHA     3    // 2^3 = 8
#define DEFAULT_MTU     9100
#define MTU_MIN         68 // RFC 791
#define MTU_MAX         16000
#define L2_MAX_BYTES    (ETH_HEADER_BYTES + 2 * VLAN_TAG_BYTES + ETH_FCS_BYTES)

void ethernet_switch_port_defaults(struct ethernet_switch_port_config *p, uint64_t rate_bps)
{
	*p = (struct ethernet_switch_port_config){
		.mtu = DEFAULT_MTU,
		.pfc_rx = LOSSLESS_PRIOS,
		.pfc_tx = LOSSLESS_PRIOS,
		.pause_quanta = PFC_QUANTA_DEFAULT,
		.pfc_response = pfc_response_time(rate_bps),
	};
	qos_map_default(&p->qos);
	for (unsigned i = 0; i < QOS_CLASSES; i++) {
		bool lossless = LOSSLESS_PRIOS >> i & 1;
		p->pg[i].lossless = lossless;
		p->pg[i].th.dynamic = true;
		p->pg[i].th.dynamic_th = lossless ? 0 : LOSSY_ALPHA;
		p->queue[i].th.dynamic = true;
		p->queue[i].th.dynamic_th = LOSSY_ALPHA;
		p->sched[i].weight = lossless ? LOSSLESS_WEIGHT : LOSSY_WEIGHT;
	}
}

// One line to `why`: "port swp1: ...".
#define REFUSE(p, fmt, ...) \
	(snprintf(why, why_len, "port %s: " fmt, (p)->name, ##__VA_ARGS__), -EINVAL)

static int check_classes(const struct ethernet_switch_port_config *p, char *why, size_t why_len)
{
	for (unsigned i = 0; i < QOS_CLASSES; i++) {
		const struct mmu_threshold *t = &p->queue[i].th;
		if (p->pg[i].lossless && p->pg[i].xoff_bytes == 0)
			return REFUSE(p,
				"lossless PG %u has no headroom; give its profile an xoff of more "
				"than 0 bytes",
				i);
		if (t->dynamic &&
			(t->dynamic_th < MMU_DYNAMIC_TH_MIN || t->dynamic_th > MMU_DYNAMIC_TH_MAX))
			return REFUSE(p, "queue %u: dynamic_th %d is not within %d..%d", i,
				t->dynamic_th, MMU_DYNAMIC_TH_MIN, MMU_DYNAMIC_TH_MAX);
		struct wred w;
		if (wred_init(&w, &p->wred[i]) < 0)
			return REFUSE(p,
				"queue %u: WRED min %" PRIu64 " B exceeds max %" PRIu64
				" B, or max is 4 GiB or more",
				i, p->wred[i].min_bytes, p->wred[i].max_bytes);
	}
	return 0;
}

static int check_port(const struct ethernet_switch_port_config *p, char *why, size_t why_len)
{
	if (!qos_map_valid(&p->qos))
		return REFUSE(p, "a QoS map names a class above %d", QOS_CLASSES - 1);
	if (p->mtu < MTU_MIN || p->mtu > MTU_MAX)
		return REFUSE(p, "mtu %u is not within %d..%d", p->mtu, MTU_MIN, MTU_MAX);
	if (p->pfc_response < 0)
		return REFUSE(p, "the PFC response time is negative");
	uint32_t least = pfc_min_quanta(p->mtu + L2_MAX_BYTES);
	if (p->pfc_tx != 0 && p->pause_quanta < least)
		return REFUSE(p,
			"%u pause quanta expire before a refresh can pass a frame of mtu %u; at "
			"least %u are needed",
			p->pause_quanta, p->mtu, least);
	return check_classes(p, why, why_len);
}

// DSCPs have 6 bits.
static bool bounce_valid(const uint8_t *bounce)
{
	for (unsigned i = 0; bounce != NULL && i < QOS_DSCPS; i++)
		if (bounce[i] >= QOS_DSCPS)
			return false;
	return true;
}

static int check_config(const struct ethernet_switch_config *cfg, char *why, size_t why_len)
{
	if (cfg->n_ports == 0 || cfg->n_ports > PORT_MAX) {
		snprintf(why, why_len, "%u ports are not within 1..%d", cfg->n_ports, PORT_MAX);
		return -EINVAL;
	}
	for (unsigned i = 0; i < cfg->n_ports; i++) {
		int rc = check_port(&cfg->ports[i], why, why_len);
		if (rc < 0)
			return rc;
	}
	if (!bounce_valid(cfg->bounce)) {
		snprintf(why, why_len, "a DSCP after a bounce is above %u", QOS_DSCPS - 1);
		return -EINVAL;
	}
	return 0;
}

// The buffer takes all ports' PG profiles in one array.
static int init_mmu(struct ethernet_switch *s, const struct ethernet_switch_config *cfg, char *why,
	size_t why_len)
{
	size_t n = (size_t)cfg->n_ports * QOS_CLASSES;
	struct mmu_pg_profile *pg = calloc(n, sizeof(*pg));

	if (pg == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < cfg->n_ports; i++)
		memcpy(&pg[(size_t)i * QOS_CLASSES], cfg->ports[i].pg, sizeof(cfg->ports[i].pg));
	int rc = mmu_init(&s->mmu, &cfg->mmu, pg, n, why, why_len);
	free(pg);
	return rc;
}

// Ports with equal maps share one copy, so that a whole switch classifies from two cache lines.
static const struct qos_map *shared_map(struct ethernet_switch *s, const struct qos_map *m)
{
	for (unsigned i = 0; i < s->n_maps; i++)
		if (memcmp(&s->maps[i], m, sizeof(*m)) == 0)
			return &s->maps[i];
	s->maps[s->n_maps] = *m;
	return &s->maps[s->n_maps++];
}

static void init_queue(struct ethernet_switch *s, struct switch_port *p, unsigned i,
	const struct ethernet_switch_port_config *cfg)
{
	struct switch_queue *q = &p->queue[i];

	mmu_queue_init(&q->mmu, &s->mmu, &cfg->queue[i]);
	wred_init(&p->wred[i], &cfg->wred[i]);
	q->mark_above = p->wred[i].at_dequeue ? UINT32_MAX : p->wred[i].min_bytes;
	if (p->wred[i].at_dequeue)
		p->marks_at_dequeue |= (uint8_t)(1u << i);
}

static void init_port(
	struct ethernet_switch *s, unsigned port, const struct ethernet_switch_port_config *cfg)
{
	struct switch_port *p = &s->port[port];
	struct node_port *np = &s->node.ports[port];

	snprintf(np->name, sizeof(np->name), "%s", cfg->name);
	memcpy(np->mac, cfg->mac, sizeof(np->mac));
	np->mtu = p->mtu = cfg->mtu;
	memcpy(p->macs, cfg->peer_mac, 6);
	memcpy(p->macs + 6, cfg->mac, 6);
	p->host_port = cfg->host_port;
	p->qos = shared_map(s, &cfg->qos);
	p->pfc_tx_mask = cfg->pfc_tx;
	p->pfc_rx_mask = cfg->pfc_rx;
	p->pause_quanta = cfg->pause_quanta;
	p->pfc_response = cfg->pfc_response;
	p->up = true;
	p->above = cfg->up;
	sched_init(&p->sched, cfg->sched, cfg->mtu + L2_MAX_BYTES);
	for (unsigned i = 0; i < QOS_CLASSES; i++) {
		p->pg_prios[i] = qos_map_pg_priorities(&cfg->qos, (uint8_t)i);
		mmu_pg_init(&p->pg[i].mmu, &s->mmu, &cfg->pg[i]);
		p->pg[i].xoff_since = SIMTIME_NEVER;
		init_queue(s, p, i, cfg);
	}
}

static int allocate(struct ethernet_switch *s, const struct ethernet_switch_config *cfg)
{
	size_t ports = cfg->n_ports * sizeof(*s->port);

	s->port = aligned_alloc(alignof(struct switch_port), ports);
	s->maps = calloc(cfg->n_ports, sizeof(*s->maps));
	s->scratch = calloc((size_t)cfg->n_ports * QOS_CLASSES, sizeof(*s->scratch));
	if (s->port == NULL || s->maps == NULL || s->scratch == NULL)
		return -ENOMEM;
	memset(s->port, 0, ports);
	int rc = ecmp_init(&s->ecmp, cfg->endpoints->n, cfg->ecmp_seed);
	if (rc == 0)
		rc = lb_init(&s->lb, cfg->load_balancing, cfg->endpoints->n, cfg->ecmp_seed,
			cfg->flowlet_gap);
	if (rc < 0)
		return rc;
	return node_init(&s->node, &ethernet_switch_ops, cfg->name, cfg->n_ports, cfg->log_events);
}

int ethernet_switch_create(
	const struct ethernet_switch_config *cfg, struct node **out, char *why, size_t why_len)
{
	int rc = check_config(cfg, why, why_len);

	if (rc < 0)
		return rc;
	struct ethernet_switch *s = aligned_alloc(
		RTE_CACHE_LINE_MIN_SIZE, RTE_ALIGN_CEIL(sizeof(*s), RTE_CACHE_LINE_MIN_SIZE));
	if (s == NULL)
		return -ENOMEM;
	memset(s, 0, sizeof(*s));
	s->endpoints = cfg->endpoints;
	s->buffer_bytes = cfg->mmu.buffer_bytes;
	s->bounces = cfg->bounce != NULL;
	if (s->bounces)
		memcpy(s->bounce, cfg->bounce, sizeof(s->bounce));
	s->plain = cfg->load_balancing == LB_ECMP && !s->bounces;
	rc = init_mmu(s, cfg, why, why_len);
	if (rc == 0)
		rc = allocate(s, cfg);
	if (rc == 0)
		rc = switch_wd_init(s, cfg);
	if (rc < 0) {
		if (rc == -ENOMEM)
			snprintf(why, why_len, "out of memory");
		ethernet_switch_destroy(&s->node);
		return rc;
	}
	for (unsigned i = 0; i < cfg->n_ports; i++)
		init_port(s, i, &cfg->ports[i]);
	*out = &s->node;
	return 0;
}

void ethernet_switch_destroy(struct node *n)
{
	struct ethernet_switch *s = switch_of(n);

	node_fini(n);
	ecmp_fini(&s->ecmp);
	for (unsigned i = 0; s->from != NULL && i < n->n_ports; i++)
		if (s->from[i] != NULL) {
			ecmp_fini(s->from[i]);
			free(s->from[i]);
		}
	free(s->from);
	lb_fini(&s->lb);
	free(s->port);
	free(s->maps);
	free(s->scratch);
	free(s->watchdogs);
	free(s);
}

int ethernet_switch_set_route(
	struct node *n, uint32_t endpoint, const uint16_t *ports, unsigned n_ports)
{
	for (unsigned i = 0; i < n_ports; i++)
		if (ports[i] >= n->n_ports)
			return -EINVAL;
	return ecmp_set(&switch_of(n)->ecmp, endpoint, ports, n_ports);
}

int ethernet_switch_set_route_from(
	struct node *n, unsigned in, uint32_t endpoint, const uint16_t *ports, unsigned n_ports)
{
	struct ethernet_switch *s = switch_of(n);

	if (in >= n->n_ports)
		return -EINVAL;
	for (unsigned i = 0; i < n_ports; i++)
		if (ports[i] >= n->n_ports)
			return -EINVAL;
	if (s->from == NULL)
		s->from = calloc(n->n_ports, sizeof(*s->from));
	if (s->from == NULL)
		return -ENOMEM;
	if (s->from[in] == NULL) {
		struct ecmp *e = calloc(1, sizeof(*e));
		if (e == NULL || ecmp_init(e, s->endpoints->n, s->ecmp.seed) < 0) {
			free(e);
			return -ENOMEM;
		}
		s->from[in] = e;
	}
	s->plain = false;
	return ecmp_set(s->from[in], endpoint, ports, n_ports);
}

unsigned ethernet_switch_route(const struct node *n, uint32_t endpoint, const uint16_t **ports)
{
	return ecmp_group(&switch_of_const(n)->ecmp, endpoint, ports);
}

void ethernet_switch_set_peer_mac(struct node *n, unsigned port, const uint8_t mac[6])
{
	memcpy(switch_of(n)->port[port].macs, mac, 6);
}
