/* SPDX-License-Identifier: BSD-3-Clause */
// PFC of a switch port: XOFF and XON to the peer, obeying the peer's, and what else goes before
// data. The states are models/pfc.h's; here are frames, timers and counters.
//
// Timers (kind, prio << 8; arg): refresh and retry carry the port; apply carries port << 16 |
// quanta and comes response time after the PFC frame; expire carries the port. There is at most one
// refresh and retry timer per port and one expire timer per (port, priority); each looks at the
// state when it fires and re-arms if the deadline has moved.

#include "emu/core/observe.h"
#include "pcap/build.h"
#include "pcap/codec.h"
#include "pipelines/ethernet_switch_state.h"

#define PFC_RETRY_AFTER SIM_US // when no mbuf was left for a PFC frame

static_assert(PORT_MAX <= 1 << 16, "port and quanta share a timer argument");

static uint64_t pg_bytes(const struct ethernet_switch *s, const struct switch_pg *pg)
{
	return (uint64_t)mmu_pg_cells(&pg->mmu) * s->mmu.cell_bytes;
}

static void kick(struct ethernet_switch *s, unsigned port, enum switch_urgent why)
{
	struct switch_port *p = &s->port[port];

	if (!p->up)
		return;
	p->urgent |= (uint8_t)why;
	node_want_depart(&s->node, port, s->node.now);
}

void switch_xoff(struct ethernet_switch *s, unsigned port, unsigned pg)
{
	struct switch_port *p = &s->port[port];

	if (p->pg[pg].xoff_since != SIMTIME_NEVER)
		return;
	p->pg[pg].xoff_since = s->node.now;
	p->xoffs[pg]++;
	if (pfc_tx_set(&p->pfc_tx, p->pg_prios[pg], true))
		kick(s, port, URGENT_PFC);
}

void switch_xon(struct ethernet_switch *s, unsigned port, unsigned pg)
{
	struct switch_port *p = &s->port[port];

	p->pg[pg].xoff_since = SIMTIME_NEVER;
	if (pfc_tx_set(&p->pfc_tx, p->pg_prios[pg], false))
		kick(s, port, URGENT_PFC);
}

static void arm_refresh(struct ethernet_switch *s, unsigned port)
{
	struct switch_port *p = &s->port[port];

	if (p->refresh_armed || p->pfc_tx.refresh_at == SIMTIME_NEVER)
		return;
	p->refresh_armed = true;
	node_timer(&s->node, p->pfc_tx.refresh_at, TIMER_PFC_REFRESH, port);
}

// Counts and logs what a PFC frame changes; returns the PG to name in a capture's comment.
static unsigned account_said(
	struct ethernet_switch *s, unsigned port, const struct pfc_tx_frame *said)
{
	struct switch_port *p = &s->port[port];
	struct port_counters *c = s->node.ports[port].ctr;
	unsigned named = 0;

	for (unsigned prio = 0; prio < PFC_PRIORITIES; prio++) {
		if (!(said->vector >> prio & 1))
			continue;
		unsigned pg = p->qos->pfc_to_pg[prio];
		unsigned changed = said->xoff | said->xon;
		if (changed == 0 || (changed >> prio & 1))
			named = pg;
		c->tx_pause[prio]++;
		if (said->xoff >> prio & 1)
			node_event(&s->node, port, EV_PFC_XOFF_SENT, prio, pg_bytes(s, &p->pg[pg]));
		if (said->xon >> prio & 1)
			node_event(&s->node, port, EV_PFC_XON_SENT, prio, pg_bytes(s, &p->pg[pg]));
	}
	return named;
}

static void retry_later(struct ethernet_switch *s, unsigned port)
{
	struct switch_port *p = &s->port[port];

	if (p->retry_armed)
		return;
	p->retry_armed = true;
	node_timer(&s->node, s->node.now + PFC_RETRY_AFTER, TIMER_PFC_RETRY, port);
}

static bool send_pfc(struct ethernet_switch *s, unsigned port)
{
	struct switch_port *p = &s->port[port];
	struct node *n = &s->node;

	p->urgent &= (uint8_t)~URGENT_PFC;
	if (!p->up || !pfc_tx_due(&p->pfc_tx, n->now))
		return false;
	struct frame *f = node_new_frame(n, port);
	if (f == NULL) {
		retry_later(s, port);
		return false;
	}

	struct pfc_tx_frame said = pfc_tx_say(&p->pfc_tx, n->now, &n->ports[port].ctr->tx_pauses);
	unsigned pg = account_said(s, port, &said);
	pfc_build(frame_data(f), n->ports[port].mac, said.vector, said.quanta);
	f->len = f->head_len = PFC_FRAME_BYTES;
	f->kind = FRAME_CONTROL;
	f->flags = FRAME_F_PARSED;
	f->l3_off = ETH_HEADER_BYTES;
	node_digest(n, DIGEST_PAUSE, port, (uint64_t)said.vector << 8 | p->pfc_tx.told);
	bool resumes_only = p->pfc_tx.told == 0 || (said.xoff == 0 && said.xon != 0);
	node_send_noted(
		n, port, f, resumes_only ? OBS_PFC_XON : OBS_PFC_XOFF, pg, pg_bytes(s, &p->pg[pg]));
	arm_refresh(s, port);
	return true;
}

static bool send_local(struct ethernet_switch *s, unsigned port)
{
	struct switch_port *p = &s->port[port];
	struct frame *f = frame_queue_pop(&p->local);

	if (frame_queue_empty(&p->local))
		p->urgent &= (uint8_t)~URGENT_LOCAL;
	if (f == NULL)
		return false;
	node_send(&s->node, port, f);
	return true;
}

bool switch_send_urgent(struct ethernet_switch *s, unsigned port)
{
	if (s->port[port].urgent & URGENT_PFC && send_pfc(s, port))
		return true;
	return s->port[port].urgent & URGENT_LOCAL && send_local(s, port);
}

// ---- the peer's PFC -----------------------------------------------------------------------------

static void update_paused(struct ethernet_switch *s, unsigned port)
{
	struct switch_port *p = &s->port[port];
	uint8_t queues = 0;

	for (unsigned prio = 0; prio < PFC_PRIORITIES; prio++)
		if (p->pfc_rx.paused >> prio & 1)
			queues |= (uint8_t)(1u << p->qos->pfc_to_queue[prio]);
	p->paused = queues;
	if (switch_ready(p) != 0)
		node_want_depart(&s->node, port, s->node.now);
}

static void changed(struct ethernet_switch *s, unsigned port, unsigned prio,
	enum pfc_rx_change change, uint16_t quanta, simtime_t since)
{
	struct node *n = &s->node;

	if (change == PFC_NO_CHANGE)
		return;
	if (change == PFC_PAUSED) {
		node_event(n, port, EV_PFC_PAUSED, prio, quanta);
	} else {
		s->port[port].on2off[prio]++;
		node_event(n, port, EV_PFC_RESUMED, prio, (uint64_t)(n->now - since));
	}
	node_digest(n, DIGEST_PAUSE, port, (uint64_t)prio << 1 | (change == PFC_PAUSED));
	update_paused(s, port);
}

static void apply(struct ethernet_switch *s, unsigned port, unsigned prio, uint16_t quanta)
{
	struct switch_port *p = &s->port[port];
	simtime_t since = p->pfc_rx.since[prio];

	if (!p->up || !(p->pfc_rx.enabled >> prio & 1))
		return;
	enum pfc_rx_change change = pfc_rx_apply(
		&p->pfc_rx, prio, quanta, s->node.now, &s->node.ports[port].ctr->rx_pauses);
	if (quanta != 0 && !(p->pfc_rx.armed >> prio & 1)) {
		p->pfc_rx.armed |= (uint8_t)(1u << prio);
		node_timer(&s->node, p->pfc_rx.until[prio], TIMER_PFC_EXPIRE | prio << 8, port);
	}
	changed(s, port, prio, change, quanta, since);
}

static void expire(struct ethernet_switch *s, unsigned port, unsigned prio)
{
	struct switch_port *p = &s->port[port];
	simtime_t since = p->pfc_rx.since[prio];

	p->pfc_rx.armed &= (uint8_t) ~(1u << prio);
	if (!(p->pfc_rx.paused >> prio & 1))
		return;
	enum pfc_rx_change change =
		pfc_rx_expire(&p->pfc_rx, prio, s->node.now, &s->node.ports[port].ctr->rx_pauses);
	if (change == PFC_NO_CHANGE) {
		p->pfc_rx.armed |= (uint8_t)(1u << prio);
		node_timer(&s->node, p->pfc_rx.until[prio], TIMER_PFC_EXPIRE | prio << 8, port);
	}
	changed(s, port, prio, change, 0, since);
}

static void receive_pfc(struct ethernet_switch *s, unsigned port, const struct pfc *pfc)
{
	struct switch_port *p = &s->port[port];
	struct port_counters *c = s->node.ports[port].ctr;

	for (unsigned prio = 0; prio < PFC_PRIORITIES; prio++) {
		if (!(pfc->classes >> prio & 1))
			continue;
		c->rx_pause[prio]++;
		p->rx_xoffs[prio] += pfc->quanta[prio] != 0;
		if (!(p->pfc_rx.enabled >> prio & 1))
			c->rx_pause_ignored++;
		else if (p->pfc_response == 0)
			apply(s, port, prio, pfc->quanta[prio]);
		else
			node_timer(&s->node, s->node.now + p->pfc_response,
				TIMER_PFC_APPLY | prio << 8, port << 16 | pfc->quanta[prio]);
	}
}

void switch_pfc_enable(struct ethernet_switch *s, unsigned port, unsigned prio, bool on)
{
	struct switch_port *p = &s->port[port];
	uint8_t bit = (uint8_t)(1u << prio);
	uint8_t pausing = 0;

	if (!on) {
		apply(s, port, prio, 0);
		p->pfc_rx.enabled &= (uint8_t)~bit;
		p->pfc_tx.enabled &= (uint8_t)~bit;
	} else {
		p->pfc_rx.enabled |= p->pfc_rx_mask & bit;
		p->pfc_tx.enabled |= p->pfc_tx_mask & bit;
	}
	for (unsigned pg = 0; pg < QOS_CLASSES; pg++)
		if (p->pg[pg].mmu.xoff)
			pausing |= p->pg_prios[pg];
	if (pfc_tx_set(&p->pfc_tx, pausing & bit, true))
		kick(s, port, URGENT_PFC);
}

void switch_control(struct ethernet_switch *s, unsigned port, struct frame *f)
{
	struct pkt p;

	if (pkt_parse_head(frame_data(f), f->head_len, f->len, &p) != PKT_OK) {
		node_drop(&s->node, port, f, DROP_MALFORMED_CONTROL);
		return;
	}
	if (p.kind == PKT_PFC) {
		struct pfc pfc = pfc_parse(&p);
		receive_pfc(s, port, &pfc);
	} else {
		// Link PAUSE would stop all priorities; a lossless fabric negotiates PFC instead,
		// so it is counted, for the user to see, and not obeyed (802.1Q 36.1.3).
		s->node.ports[port].ctr->rx_global_pause++;
	}
	node_consume(&s->node, port, f);
}

// ---- timers, start, link ------------------------------------------------------------------------

void switch_timer(struct node *n, uint32_t kind, uint32_t arg)
{
	struct ethernet_switch *s = switch_of(n);
	unsigned prio = kind >> 8;

	switch ((enum switch_timer)(kind & 0xff)) {
	case TIMER_PFC_REFRESH:
		s->port[arg].refresh_armed = false;
		if (pfc_tx_due(&s->port[arg].pfc_tx, n->now))
			kick(s, arg, URGENT_PFC); // which arms the next
		else
			arm_refresh(s, arg);
		break;
	case TIMER_PFC_RETRY:
		s->port[arg].retry_armed = false;
		if (pfc_tx_due(&s->port[arg].pfc_tx, n->now))
			kick(s, arg, URGENT_PFC);
		break;
	case TIMER_PFC_APPLY:
		apply(s, arg >> 16, prio, (uint16_t)arg);
		break;
	case TIMER_PFC_EXPIRE:
		expire(s, arg, prio);
		break;
	}
}

void switch_pfc_start(struct ethernet_switch *s)
{
	for (unsigned i = 0; i < s->node.n_ports; i++) {
		struct switch_port *p = &s->port[i];
		uint64_t byte_time = s->node.ports[i].out->byte_time;
		pfc_tx_init(&p->pfc_tx, p->pfc_tx_mask, p->pause_quanta, byte_time);
		pfc_rx_init(&p->pfc_rx, p->pfc_rx_mask, byte_time);
		p->up = s->node.ports[i].out->up;
	}
}

void switch_link(struct node *n, unsigned port, bool up)
{
	struct ethernet_switch *s = switch_of(n);
	struct switch_port *p = &s->port[port];
	struct port_counters *c = n->ports[port].ctr;

	if (p->up == up)
		return;
	p->up = up;
	if (up) {
		if (pfc_tx_due(&p->pfc_tx, n->now))
			kick(s, port, URGENT_PFC);
		return;
	}
	// Nobody pauses us any more: queues empty themselves into the dead link, counted as such.
	pfc_tx_reset(&p->pfc_tx, n->now, &c->tx_pauses);
	pfc_rx_reset(&p->pfc_rx, n->now, &c->rx_pauses);
	update_paused(s, port);
}
