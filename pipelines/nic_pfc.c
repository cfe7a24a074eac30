/* SPDX-License-Identifier: BSD-3-Clause */
// PFC at a NIC: pauses it obeys, and the pause storm a broken NIC makes.

#include "emu/core/observe.h"
#include "pcap/codec.h"
#include "pipelines/nic_internal.h"

// NIC_TIMER_PFC's argument: what a PFC frame said of one priority, until the response time is over.
#define PFC_ARG(port, prio, quanta) ((uint32_t)(port) << 19 | (uint32_t)(prio) << 16 | (quanta))
_Static_assert(PORT_MAX <= 1 << 13, "port, priority and quanta fit in 32 bits");

#define PFC_TC 7 // class under which PFC frames are counted

void nic_pfc_init(struct nic *nic, unsigned port)
{
	struct nic_port *p = &nic->ports[port];
	uint64_t byte_time = nic->node.ports[port].out->byte_time;

	pfc_rx_init(&p->pauses, p->cfg.pfc_enable, byte_time);
	pfc_tx_init(&p->storm, 0xff, PFC_QUANTA_DEFAULT, byte_time);
}

static void resumed(struct nic *nic, unsigned port, unsigned prio)
{
	simtime_t since = nic->ports[port].pauses.since[prio];

	node_event(&nic->node, port, EV_PFC_RESUMED, prio, (uint64_t)(nic->node.now - since));
	nic_kick(nic, port);
}

static void apply(struct nic *nic, unsigned port, unsigned prio, uint16_t quanta)
{
	struct node *n = &nic->node;
	struct pfc_rx *rx = &nic->ports[port].pauses;

	switch (pfc_rx_apply(rx, prio, quanta, n->now, &n->ports[port].ctr->rx_pauses)) {
	case PFC_PAUSED:
		nic->ports[port].n_pauses[prio]++;
		node_event(n, port, EV_PFC_PAUSED, prio, quanta);
		break;
	case PFC_RESUMED:
		resumed(nic, port, prio);
		break;
	case PFC_NO_CHANGE:
		break;
	}
	if (quanta != 0 && !(rx->armed >> prio & 1)) {
		rx->armed |= (uint8_t)(1u << prio);
		node_timer(n, rx->until[prio], NIC_TIMER_RESUME, port * PRIO_COUNT + prio);
	}
}

void nic_pfc_received(struct nic *nic, unsigned port, const struct pfc *pfc)
{
	struct node *n = &nic->node;
	struct nic_port *p = &nic->ports[port];
	struct port_counters *c = n->ports[port].ctr;

	for (unsigned prio = 0; prio < PRIO_COUNT; prio++) {
		if (!(pfc->classes >> prio & 1))
			continue;
		uint16_t quanta = pfc->quanta[prio];
		c->rx_pause[prio]++;
		node_digest(n, DIGEST_PAUSE, port, (uint64_t)prio << 16 | quanta);
		if (!(p->cfg.pfc_enable >> prio & 1))
			c->rx_pause_ignored++;
		else if (p->cfg.pfc_response == 0)
			apply(nic, port, prio, quanta);
		else
			node_timer(n, n->now + p->cfg.pfc_response, NIC_TIMER_PFC,
				PFC_ARG(port, prio, quanta));
	}
}

void nic_pfc_timer(struct nic *nic, uint32_t arg)
{
	apply(nic, arg >> 19, arg >> 16 & 7, (uint16_t)arg);
}

void nic_resume_timer(struct nic *nic, uint32_t arg)
{
	struct node *n = &nic->node;
	unsigned port = arg / PRIO_COUNT, prio = arg % PRIO_COUNT;
	struct pfc_rx *rx = &nic->ports[port].pauses;

	rx->armed &= (uint8_t) ~(1u << prio);
	if (pfc_rx_expire(rx, prio, n->now, &n->ports[port].ctr->rx_pauses) == PFC_RESUMED) {
		resumed(nic, port, prio);
	} else if (rx->paused >> prio & 1) {
		rx->armed |= (uint8_t)(1u << prio);
		node_timer(n, rx->until[prio], NIC_TIMER_RESUME, arg);
	}
}

simtime_t nic_paused_total(const struct nic *nic, unsigned port, unsigned prio)
{
	const struct pfc_rx *rx = &nic->ports[port].pauses;
	simtime_t total = nic->node.ports[port].ctr->rx_pauses.duration[prio];

	return rx->paused >> prio & 1 ? total + nic->node.now - rx->since[prio] : total;
}

void nic_pfc_link_down(struct nic *nic, unsigned port)
{
	struct node *n = &nic->node;
	struct nic_port *p = &nic->ports[port];
	struct port_counters *c = n->ports[port].ctr;

	pfc_rx_reset(&p->pauses, n->now, &c->rx_pauses);
	pfc_tx_reset(&p->storm, n->now, &c->tx_pauses);
	p->pfc_due = pfc_tx_due(&p->storm, n->now);
}

// ---- pauses made -----------------------------------------------------------------------------

static void kick_pfc(struct nic *nic, unsigned port)
{
	struct nic_port *p = &nic->ports[port];

	p->pfc_due = pfc_tx_due(&p->storm, nic->node.now);
	if (p->pfc_due)
		nic_kick(nic, port);
}

void nic_pause_update(struct nic *nic, unsigned port)
{
	struct nic_port *p = &nic->ports[port];
	uint8_t prios = p->storm_prios | p->slow_prios;

	pfc_tx_set(&p->storm, (uint8_t)~prios, false);
	pfc_tx_set(&p->storm, prios, true);
	kick_pfc(nic, port);
}

int nic_pause_storm(struct node *n, unsigned port, uint8_t prio_mask, simtime_t duration)
{
	struct nic *nic = nic_of(n);

	if (port >= n->n_ports || prio_mask == 0 || duration <= 0)
		return -EINVAL;
	struct nic_port *p = &nic->ports[port];

	p->storm_prios = prio_mask;
	p->storm_end = duration < SIMTIME_NEVER - n->now ? n->now + duration : SIMTIME_NEVER;
	if (p->storm_end != SIMTIME_NEVER)
		node_timer(n, p->storm_end, NIC_TIMER_STORM, port);
	for (unsigned prio = 0; prio < PRIO_COUNT; prio++)
		if (prio_mask >> prio & 1)
			node_event(n, port, EV_STORM_START, prio, 0);
	nic_pause_update(nic, port);
	return 0;
}

void nic_storm_timer(struct nic *nic, unsigned port)
{
	struct node *n = &nic->node;
	struct nic_port *p = &nic->ports[port];

	if (n->now >= p->storm_end && p->storm_prios != 0) {
		for (unsigned prio = 0; prio < PRIO_COUNT; prio++)
			if (p->storm_prios >> prio & 1)
				node_event(n, port, EV_STORM_END, prio, 0);
		p->storm_prios = 0;
		nic_pause_update(nic, port);
		return;
	}
	kick_pfc(nic, port);
}

void nic_pfc_send(struct nic *nic, unsigned port, struct frame *f)
{
	struct node *n = &nic->node;
	struct nic_port *p = &nic->ports[port];
	struct port_counters *c = n->ports[port].ctr;
	struct pfc_tx_frame say = pfc_tx_say(&p->storm, n->now, &c->tx_pauses);
	bool xoff = p->storm.told != 0;

	p->pfc_due = false;
	for (unsigned prio = 0; prio < PRIO_COUNT; prio++)
		c->tx_pause[prio] += say.vector >> prio & 1;
	pfc_build(frame_data(f), p->cfg.mac, say.vector, say.quanta);
	f->kind = FRAME_CONTROL;
	f->len = f->head_len = PFC_FRAME_BYTES;
	f->l3_off = ETH_HEADER_BYTES;
	f->tc = PFC_TC;
	if (p->storm.refresh_at != SIMTIME_NEVER)
		node_timer(n, p->storm.refresh_at, NIC_TIMER_STORM, port);
	node_send_noted(n, port, f, xoff ? OBS_PFC_XOFF : OBS_PFC_XON,
		say.vector ? (unsigned)__builtin_ctz(say.vector) : 0, 0);
}
