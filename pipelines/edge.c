/* SPDX-License-Identifier: BSD-3-Clause */
// The edge node: see edge.h for what it is, edge_rx.c for what comes from the real port, edge_tx.c
// for what goes there, edge_pfc.c for the pauses, edge_cc.c for congestion control; here are the
// node's operations and its life.

#include "pipelines/edge_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ASK_INTERVAL (100 * SIM_MS)
#define LOG_EVENTS   4096

static void ask_mac(struct edge *e, unsigned port)
{
	if (e->port[port].mac_known || e->port[port].ip4 == 0)
		return;
	edge_ask_mac(e, port);
	node_timer(&e->node, e->node.now + ASK_INTERVAL, TIMER_ASK, port << ARG_PORT_SHIFT);
}

// ---- node operations ----------------------------------------------------------------------------

static void edge_timer(struct node *n, uint32_t kind, uint32_t arg)
{
	struct edge *e = (struct edge *)n;
	unsigned port = arg >> ARG_PORT_SHIFT;
	unsigned prio = arg >> ARG_PRIO_SHIFT & 7;

	switch ((enum edge_timer)kind) {
	case TIMER_PAUSE:
		edge_apply_pause(e, port, prio, (uint16_t)arg);
		break;
	case TIMER_EXPIRE:
		edge_expire_pause(e, port, prio);
		break;
	case TIMER_REFRESH:
		edge_refresh(e, port);
		break;
	case TIMER_ASK:
		ask_mac(e, port);
		break;
	case TIMER_CC:
		edge_cc_timer(e, port, arg & ((1u << ARG_PORT_SHIFT) - 1));
		break;
	}
}

static unsigned edge_poll(struct node *n)
{
	struct edge *e = (struct edge *)n;
	unsigned in = 0;

	for (unsigned port = 0; port < n->n_ports; port++) {
		in += edge_take_in(e, port);
		in += edge_flush(e, port);
	}
	return in;
}

static void edge_start(struct node *n)
{
	struct edge *e = (struct edge *)n;

	for (unsigned i = 0; i < n->n_ports; i++) {
		struct edge_port *p = &e->port[i];

		pfc_rx_init(&p->pfc_rx, e->pfc_mask, n->ports[i].out->byte_time);
		pfc_tx_init(
			&p->pfc_tx, e->pfc_mask, PFC_QUANTA_DEFAULT, n->ports[i].out->byte_time);
		ask_mac(e, i);
	}
}

static void edge_link(struct node *n, unsigned port, bool up)
{
	struct edge *e = (struct edge *)n;
	struct edge_port *p = &e->port[port];
	struct port_counters *c = n->ports[port].ctr;

	if (!up) {
		pfc_rx_reset(&p->pfc_rx, n->now, &c->rx_pauses);
		pfc_tx_reset(&p->pfc_tx, n->now, &c->tx_pauses);
		if (p->cc != NULL)
			edge_cc_resume(e, port);
	}
	// On a link that is down frames leave, and are lost, as from any NIC.
	if (p->backlog || pfc_tx_due(&p->pfc_tx, n->now))
		node_want_depart(n, port, n->now);
}

static uint64_t queue_count(const struct frame_queue *q, uint64_t *bytes)
{
	uint64_t n = 0;

	for (const struct frame *f = q->head; f != NULL; f = f->next) {
		n++;
		*bytes += frame_buffer_bytes(f);
	}
	return n;
}

static uint64_t edge_held(const struct node *n)
{
	const struct edge *e = (const struct edge *)n;
	uint64_t held = 0, bytes = 0, by_prio[PRIO_COUNT] = {0};

	for (unsigned port = 0; port < n->n_ports; port++) {
		for (unsigned i = 0; i < PRIO_COUNT; i++)
			held += queue_count(&e->port[port].rx_queue[i], &bytes);
		held += queue_count(&e->port[port].tx_fifo, &bytes);
		if (e->port[port].cc != NULL)
			held += edge_cc_held(e->port[port].cc, by_prio);
	}
	return held;
}

static void edge_drain(struct node *n)
{
	struct edge *e = (struct edge *)n;
	struct frame *f;

	for (unsigned port = 0; port < n->n_ports; port++) {
		struct edge_port *p = &e->port[port];

		for (unsigned i = 0; i < PRIO_COUNT; i++) {
			while ((f = frame_queue_pop(&p->rx_queue[i])) != NULL)
				frame_free(f);
			p->rx_bytes[i] = 0;
			p->tx_bytes[i] = 0;
		}
		while ((f = frame_queue_pop(&p->tx_fifo)) != NULL)
			frame_free(f);
		if (p->cc != NULL)
			edge_cc_drain(p->cc);
		p->tx_count = 0;
		p->backlog = p->full = 0;
	}
}

static bool edge_check(const struct node *n, bool drained, char *why, size_t len)
{
	const struct edge *e = (const struct edge *)n;

	for (unsigned port = 0; port < n->n_ports; port++) {
		const struct edge_port *p = &e->port[port];
		uint64_t counted = 0, bytes = 0, fifo = 0, limited[PRIO_COUNT] = {0};

		if (p->cc != NULL)
			edge_cc_held(p->cc, limited);
		for (unsigned i = 0; i < PRIO_COUNT; i++) {
			uint64_t queued = limited[i];

			queue_count(&p->rx_queue[i], &queued);
			if (queued != p->rx_bytes[i]) {
				snprintf(why, len,
					"port %u priority %u holds %" PRIu64 " bytes, counted %u",
					port, i, queued, p->rx_bytes[i]);
				return false;
			}
			counted += p->tx_bytes[i];
			bytes += queued;
		}
		uint64_t frames = queue_count(&p->tx_fifo, &fifo);
		if (fifo != counted || frames != p->tx_count) {
			snprintf(why, len,
				"port %u holds %" PRIu64
				" bytes for the real port, counted %" PRIu64,
				port, fifo, counted);
			return false;
		}
		if (drained && bytes + fifo != 0) {
			snprintf(why, len, "port %u still holds frames after draining", port);
			return false;
		}
	}
	return true;
}

static const struct node_ops edge_node_ops = {
	.name = "edge",
	.arrive = edge_arrive,
	.depart = edge_depart,
	.timer = edge_timer,
	.poll = edge_poll,
	.start = edge_start,
	.link = edge_link,
	.held = edge_held,
	.drain = edge_drain,
	.check = edge_check,
};

// ---- life -----------------------------------------------------------------------------------

static bool config_valid(const struct edge_config *cfg)
{
	bool ok = cfg->n_ports > 0 && cfg->n_ports <= PORT_MAX && cfg->roce_dscp <= 63 &&
		  cfg->roce_dscp >= EDGE_NO_DSCP && cfg->cc.cc.algorithm < CC_ALGORITHM_COUNT &&
		  (cc_ops_of(cfg->cc.cc.algorithm)->needs & (unsigned)~CC_NEEDS_CNP) == 0;

	for (unsigned i = 0; ok && i < cfg->n_ports; i++)
		ok = cfg->ports[i].mtu > 0 && cfg->ports[i].ops != NULL;
	for (unsigned i = 0; ok && i < 64; i++)
		ok = cfg->dscp_to_tc[i] < PRIO_COUNT;
	for (unsigned i = 0; ok && i < PRIO_COUNT; i++)
		ok = cfg->pcp_to_tc[i] < PRIO_COUNT;
	return ok;
}

// False without memory.
static bool make_watch(struct edge *e, struct edge_port *p, bool counters)
{
	bool cc = edge_cc_wanted(&e->cc);

	if (!counters && !cc)
		return true;
	p->watch = edge_watch_create();
	if (p->watch == NULL || !cc)
		return p->watch != NULL;
	p->cc = edge_cc_create(&e->cc, edge_watch_qps(p->watch));
	return p->cc != NULL;
}

int edge_create(const struct edge_config *cfg, struct node **out)
{
	static const uint8_t none[6];

	if (!config_valid(cfg))
		return -EINVAL;
	struct edge *e = calloc(1, sizeof(*e) + cfg->n_ports * sizeof(e->port[0]));
	if (e == NULL)
		return -ENOMEM;
	int err = node_init(&e->node, &edge_node_ops, cfg->name, cfg->n_ports, LOG_EVENTS);
	if (err < 0) {
		free(e);
		return err;
	}

	e->endpoints = cfg->endpoints;
	e->pfc_mask = cfg->pfc_mask;
	e->roce_dscp = cfg->roce_dscp;
	e->cc = cfg->cc;
	e->trust_pcp = cfg->trust_pcp;
	e->pause_response = cfg->pause_response;
	e->rx_limit = cfg->rx_queue_bytes ? cfg->rx_queue_bytes : EDGE_RX_QUEUE_BYTES;
	e->tx_limit = cfg->tx_buffer_bytes ? cfg->tx_buffer_bytes : EDGE_TX_BUFFER_BYTES;
	memcpy(e->dscp_to_tc, cfg->dscp_to_tc, sizeof(e->dscp_to_tc));
	memcpy(e->pcp_to_tc, cfg->pcp_to_tc, sizeof(e->pcp_to_tc));
	for (unsigned i = 0; i < cfg->n_ports; i++) {
		const struct edge_port_config *pc = &cfg->ports[i];
		struct edge_port *p = &e->port[i];

		p->ops = pc->ops;
		p->real = pc->port;
		memcpy(p->mac, pc->mac, 6);
		memcpy(p->next_hop, pc->next_hop_mac, 6);
		p->mac_known = !pc->learn_mac;
		p->next_hop_known = memcmp(pc->next_hop_mac, none, 6) != 0;
		p->ip4 = pc->ip4;
		memcpy(e->node.ports[i].mac, pc->mac, 6);
		e->node.ports[i].mtu = pc->mtu;
		if (!make_watch(e, p, cfg->counters)) {
			edge_destroy(&e->node);
			return -ENOMEM;
		}
	}
	*out = &e->node;
	return 0;
}

void edge_destroy(struct node *n)
{
	if (n == NULL)
		return;
	for (unsigned i = 0; i < n->n_ports; i++) {
		struct edge_port *p = &((struct edge *)n)->port[i];

		edge_cc_destroy(p->cc);
		edge_watch_destroy(p->watch);
	}
	node_fini(n);
	free(n);
}

const struct edge_counters *edge_counters(const struct node *n, unsigned port)
{
	return &((const struct edge *)n)->port[port].ctr;
}

bool edge_counter_at(
	const struct node *n, unsigned port, unsigned i, const char **name, uint64_t *value)
{
	static const char *const names[] = {
#define X(field, help) #field,
		EDGE_COUNTERS(X)
#undef X
	};
	const struct edge_counters *c = edge_counters(n, port);

	if (i >= RTE_DIM(names))
		return false;
	*name = names[i];
	*value = ((const uint64_t *)c)[i];
	return true;
}
