/* SPDX-License-Identifier: BSD-3-Clause */
// PFC between the edge and the switch, both ways: what the switch asks of the endpoint, and what
// the edge asks of the switch while the real port is slow.

#include "pcap/codec.h"
#include "pipelines/edge_priv.h"

// ---- what the switch tells us -----------------------------------------------------------------

static void resume(struct edge *e, unsigned port)
{
	if (e->port[port].cc != NULL)
		edge_cc_resume(e, port);
	if (e->port[port].backlog)
		node_want_depart(&e->node, port, e->node.now);
}

static void arm_expiry(struct edge *e, unsigned port, unsigned prio)
{
	struct pfc_rx *rx = &e->port[port].pfc_rx;

	if (rx->armed >> prio & 1)
		return;
	rx->armed |= (uint8_t)(1u << prio);
	node_timer(&e->node, rx->until[prio], TIMER_EXPIRE,
		port << ARG_PORT_SHIFT | prio << ARG_PRIO_SHIFT);
}

void edge_apply_pause(struct edge *e, unsigned port, unsigned prio, uint16_t quanta)
{
	struct pfc_rx *rx = &e->port[port].pfc_rx;
	struct port_counters *c = e->node.ports[port].ctr;
	simtime_t since = rx->since[prio];

	switch (pfc_rx_apply(rx, prio, quanta, e->node.now, &c->rx_pauses)) {
	case PFC_PAUSED:
		node_event(&e->node, port, EV_PFC_PAUSED, prio, quanta);
		node_digest(&e->node, DIGEST_PAUSE, port, prio);
		break;
	case PFC_RESUMED:
		node_event(&e->node, port, EV_PFC_RESUMED, prio, (uint64_t)(e->node.now - since));
		resume(e, port);
		break;
	case PFC_NO_CHANGE:
		break;
	}
	if (rx->paused >> prio & 1)
		arm_expiry(e, port, prio);
}

void edge_expire_pause(struct edge *e, unsigned port, unsigned prio)
{
	struct pfc_rx *rx = &e->port[port].pfc_rx;
	struct port_counters *c = e->node.ports[port].ctr;
	simtime_t since = rx->since[prio];

	rx->armed &= (uint8_t) ~(1u << prio);
	if (pfc_rx_expire(rx, prio, e->node.now, &c->rx_pauses) == PFC_RESUMED) {
		node_event(&e->node, port, EV_PFC_RESUMED, prio, (uint64_t)(e->node.now - since));
		resume(e, port);
	} else if (rx->paused >> prio & 1) {
		arm_expiry(e, port, prio);
	}
}

void edge_control(struct edge *e, unsigned port, struct frame *f)
{
	struct port_counters *c = e->node.ports[port].ctr;
	struct pkt p;

	if (pkt_parse(frame_data(f), f->len, &p) != PKT_OK) {
		node_drop(&e->node, port, f, DROP_MALFORMED_CONTROL);
		return;
	}
	if (p.kind != PKT_PFC) {
		// PFC is what a lossless Ethernet port negotiates; 802.3x is then not obeyed.
		c->rx_global_pause += p.kind == PKT_PAUSE;
		node_consume(&e->node, port, f);
		return;
	}

	struct pfc pfc = pfc_parse(&p);
	for (unsigned prio = 0; prio < PRIO_COUNT; prio++) {
		if (!(pfc.classes >> prio & 1))
			continue;
		c->rx_pause[prio]++;
		if (!(e->port[port].pfc_rx.enabled >> prio & 1))
			c->rx_pause_ignored++;
		else if (e->pause_response == 0)
			edge_apply_pause(e, port, prio, pfc.quanta[prio]);
		else
			node_timer(&e->node, e->node.now + e->pause_response, TIMER_PAUSE,
				port << ARG_PORT_SHIFT | prio << ARG_PRIO_SHIFT | pfc.quanta[prio]);
	}
	node_consume(&e->node, port, f);
}

// ---- what we tell the switch --------------------------------------------------------------------

bool edge_say_pause(struct edge *e, unsigned port)
{
	struct edge_port *p = &e->port[port];
	struct node *n = &e->node;
	struct port_counters *c = n->ports[port].ctr;
	struct frame *f = node_new_frame(n, port);

	if (f == NULL)
		return false;

	struct pfc_tx_frame say = pfc_tx_say(&p->pfc_tx, n->now, &c->tx_pauses);
	pfc_build(frame_data(f), n->ports[port].mac, say.vector, say.quanta);
	f->kind = FRAME_CONTROL;
	f->len = f->head_len = ETH_MIN_NO_FCS;
	f->l3_off = ETH_HEADER_BYTES;
	f->flags = FRAME_F_PARSED;
	uint8_t named = say.xoff ? say.xoff : say.vector;
	unsigned prio = (unsigned)__builtin_ctz(named | 0x100) & 7;
	for (unsigned i = 0; i < PRIO_COUNT; i++) {
		c->tx_pause[i] += say.vector >> i & 1;
		if (say.xoff >> i & 1)
			node_event(n, port, EV_PFC_XOFF_SENT, i, p->tx_bytes[i]);
		if (say.xon >> i & 1)
			node_event(n, port, EV_PFC_XON_SENT, i, p->tx_bytes[i]);
	}
	node_send_noted(n, port, f, say.xoff || !say.xon ? OBS_PFC_XOFF : OBS_PFC_XON, prio,
		p->tx_bytes[prio]);

	if (p->pfc_tx.refresh_at != SIMTIME_NEVER && !p->refresh_armed) {
		p->refresh_armed = true;
		node_timer(n, p->pfc_tx.refresh_at, TIMER_REFRESH, port << ARG_PORT_SHIFT);
	}
	return true;
}

void edge_refresh(struct edge *e, unsigned port)
{
	struct edge_port *p = &e->port[port];

	p->refresh_armed = false;
	if (p->pfc_tx.refresh_at == SIMTIME_NEVER)
		return;
	if (pfc_tx_due(&p->pfc_tx, e->node.now)) {
		node_want_depart(&e->node, port, e->node.now);
	} else {
		p->refresh_armed = true;
		node_timer(&e->node, p->pfc_tx.refresh_at, TIMER_REFRESH, port << ARG_PORT_SHIFT);
	}
}
