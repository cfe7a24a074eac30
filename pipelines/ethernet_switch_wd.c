/* SPDX-License-Identifier: BSD-3-Clause */
// The PFC watchdog in the switch: what models/pfc_wd.h sees at a poll, and what its verdict does.
//
//	detected: PFC of the priority is off on the port, both ways, so that its PG pauses nobody
// and 	          its queue obeys nobody (SONiC's PfcWdLossyHandler); with action drop moreover the
// frames in the queue are dropped, and until it is restored every frame routed to it, and every one
// that comes in by the port in the priority's PG, before it takes a cell. 	restored: PFC is on
// again as configured.
//
// A frame of another port that waits for a queue in drop state would hold its own PG, which is how
// a deadlock lives; so the queue is emptied at once and not left to drain into the paused link.
//
// While a queue is in drop state the switch runs with other node_ops, whose arrive looks for it.
// XOFFs are counted as they come, obeyed or not, so the end of a storm is seen when it comes.

#include <errno.h>
#include <stdlib.h>

#include "pipelines/ethernet_switch_state.h"

int switch_wd_init(struct ethernet_switch *s, const struct ethernet_switch_config *cfg)
{
	unsigned n = 0;

	for (unsigned i = 0; i < cfg->n_ports; i++)
		n += (unsigned)__builtin_popcount(cfg->ports[i].wd_prios);
	if (n == 0)
		return 0;
	s->watchdogs = calloc(n, sizeof(*s->watchdogs));
	if (s->watchdogs == NULL)
		return -ENOMEM;
	struct switch_wd *next = s->watchdogs;
	for (unsigned i = 0; i < cfg->n_ports; i++) {
		const struct ethernet_switch_port_config *pc = &cfg->ports[i];
		struct switch_port *p = &s->port[i];
		p->wd = next;
		for (uint8_t prio = 0; prio < PFC_PRIORITIES; prio++) {
			if (!(pc->wd_prios >> prio & 1))
				continue;
			*next = (struct switch_wd){
				.cfg = pc->wd,
				.prio = prio,
				.queue = pc->qos.pfc_to_queue[prio],
				.pg = pc->qos.pfc_to_pg[prio],
			};
			next->count.queue = next->queue;
			next->count.prio = prio;
			next->count.action = pc->wd.action;
			pfc_wd_init(&next->wd, &next->cfg);
			next++;
			p->n_wd++;
		}
	}
	return 0;
}

// Frames that came in by the port in the watchdog's PG.
static uint64_t pg_frames(const struct ethernet_switch *s, unsigned port, const struct switch_wd *w)
{
	uint64_t n = 0;

	for (unsigned tc = 0; tc < QOS_CLASSES; tc++)
		if (s->port[port].qos->tc_to_pg[tc] == w->pg)
			n += s->node.ports[port].ctr->prio[tc].rx_frames;
	return n;
}

// ---- drop state ---------------------------------------------------------------------------------

static struct switch_wd *dropping(const struct switch_port *p, int pg, int queue)
{
	for (unsigned i = 0; i < p->n_wd; i++) {
		struct switch_wd *w = &p->wd[i];
		if (w->wd.stormed && w->cfg.action == PFC_WD_DROP &&
			(w->pg == pg || w->queue == queue))
			return w;
	}
	return NULL;
}

static void count_tx_drop(struct switch_wd *w)
{
	w->count.all.tx_dropped_packets++;
	w->count.last.tx_dropped_packets++;
}

bool switch_wd_drops(struct ethernet_switch *s, unsigned in, unsigned out, struct frame *f)
{
	if (s->port[in].wd_pgs >> f->pg & 1) {
		struct switch_wd *w = dropping(&s->port[in], f->pg, -1);
		w->count.all.rx_dropped_packets++;
		w->count.last.rx_dropped_packets++;
	} else if (s->port[out].wd_queues >> f->queue & 1) {
		count_tx_drop(dropping(&s->port[out], -1, f->queue));
	} else {
		return false;
	}
	node_drop(&s->node, in, f, DROP_WATCHDOG);
	return true;
}

static void empty_queue(struct ethernet_switch *s, unsigned port, struct switch_wd *w)
{
	struct switch_port *p = &s->port[port];
	struct switch_queue *q = &p->queue[w->queue];
	struct frame *f;

	while ((f = frame_queue_pop(&q->fifo)) != NULL) {
		struct switch_pg *pg = &s->port[f->in_port].pg[f->pg];
		q->bytes -= frame_buffer_bytes(f);
		if (mmu_release(&s->mmu, &pg->mmu, &q->mmu, f->cells))
			switch_xon(s, f->in_port, f->pg);
		count_tx_drop(w);
		node_drop(&s->node, f->in_port, f, DROP_WATCHDOG);
	}
	p->nonempty &= (uint8_t) ~(1u << w->queue);
	sched_emptied(&p->sched, w->queue);
}

// What is dropped at the port and which arrive the switch runs with.
static void update_drops(struct ethernet_switch *s, unsigned port)
{
	struct switch_port *p = &s->port[port];
	bool was = p->wd_queues != 0;

	p->wd_queues = p->wd_pgs = 0;
	for (unsigned i = 0; i < p->n_wd; i++) {
		const struct switch_wd *w = &p->wd[i];
		if (!w->wd.stormed || w->cfg.action != PFC_WD_DROP)
			continue;
		p->wd_queues |= (uint8_t)(1u << w->queue);
		p->wd_pgs |= (uint8_t)(1u << w->pg);
	}
	s->n_dropping += (unsigned)(p->wd_queues != 0) - (unsigned)was;
	s->node.ops = s->n_dropping != 0 ? &ethernet_switch_stormed_ops : &ethernet_switch_ops;
}

// ---- verdicts -----------------------------------------------------------------------------------

static void storm(struct ethernet_switch *s, unsigned port, struct switch_wd *w)
{
	w->since = s->node.now;
	w->count.deadlock_detected++;
	w->count.last = (struct ethernet_switch_wd_traffic){0};
	w->tx_base = s->port[port].queue[w->queue].tx_frames;
	w->rx_base = pg_frames(s, port, w);
	node_event(&s->node, port, EV_PFC_WD_DETECTED, w->queue, 0);
	if (w->cfg.action == PFC_WD_ALERT)
		return;
	if (w->cfg.action == PFC_WD_DROP) {
		update_drops(s, port);
		empty_queue(s, port, w);
	}
	switch_pfc_enable(s, port, w->prio, false);
}

// Traffic of the storm under way, or of the last.
static struct ethernet_switch_wd_traffic traffic(
	const struct ethernet_switch *s, unsigned port, const struct switch_wd *w)
{
	struct ethernet_switch_wd_traffic t = w->count.last;

	if (w->wd.stormed) {
		t.tx_packets = s->port[port].queue[w->queue].tx_frames - w->tx_base;
		t.rx_packets = pg_frames(s, port, w) - w->rx_base - t.rx_dropped_packets;
	}
	return t;
}

static void restore(struct ethernet_switch *s, unsigned port, struct switch_wd *w)
{
	struct ethernet_switch_wd_traffic *last = &w->count.last;

	w->count.deadlock_restored++;
	last->tx_packets = s->port[port].queue[w->queue].tx_frames - w->tx_base;
	last->rx_packets = pg_frames(s, port, w) - w->rx_base - last->rx_dropped_packets;
	w->count.all.tx_packets += last->tx_packets;
	w->count.all.rx_packets += last->rx_packets;
	node_event(
		&s->node, port, EV_PFC_WD_RESTORED, w->queue, (uint64_t)(s->node.now - w->since));
	if (w->cfg.action == PFC_WD_ALERT)
		return;
	update_drops(s, port);
	switch_pfc_enable(s, port, w->prio, true);
}

static struct pfc_wd_sample sample(
	const struct ethernet_switch *s, unsigned port, const struct switch_wd *w)
{
	const struct switch_port *p = &s->port[port];
	simtime_t since = pfc_rx_since(&p->pfc_rx, w->prio);
	simtime_t open = since == SIMTIME_NEVER ? 0 : s->node.now - since;

	return (struct pfc_wd_sample){
		.xoffs = p->rx_xoffs[w->prio],
		.on2off = p->on2off[w->prio],
		.packets = p->queue[w->queue].tx_frames,
		.occupancy_bytes = p->queue[w->queue].bytes,
		.paused = s->node.ports[port].ctr->rx_pauses.duration[w->prio] + open,
		.pause_status = open != 0 || since == s->node.now,
	};
}

void ethernet_switch_wd_poll(struct node *n)
{
	struct ethernet_switch *s = switch_of(n);

	for (unsigned port = 0; port < n->n_ports; port++) {
		for (unsigned i = 0; i < s->port[port].n_wd; i++) {
			struct switch_wd *w = &s->port[port].wd[i];
			struct pfc_wd_sample now = sample(s, port, w);
			enum pfc_wd_verdict v = pfc_wd_poll(&w->wd, &w->cfg, n->now, &now);
			if (v == PFC_WD_DETECTED)
				storm(s, port, w);
			else if (v == PFC_WD_RESTORED)
				restore(s, port, w);
		}
	}
}

void switch_wd_start(struct ethernet_switch *s)
{
	for (unsigned port = 0; port < s->node.n_ports; port++)
		for (unsigned i = 0; i < s->port[port].n_wd; i++)
			if (s->port[port].wd[i].cfg.big_red_switch &&
				pfc_wd_force(&s->port[port].wd[i].wd))
				storm(s, port, &s->port[port].wd[i]);
}

bool ethernet_switch_wd(
	const struct node *n, unsigned port, unsigned i, struct ethernet_switch_wd_view *out)
{
	const struct ethernet_switch *s = switch_of_const(n);

	if (i >= s->port[port].n_wd)
		return false;
	const struct switch_wd *w = &s->port[port].wd[i];
	*out = w->count;
	out->stormed = w->wd.stormed;
	out->last = traffic(s, port, w);
	if (w->wd.stormed) {
		out->all.tx_packets += out->last.tx_packets;
		out->all.rx_packets += out->last.rx_packets;
	}
	return true;
}
