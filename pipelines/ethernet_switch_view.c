/* SPDX-License-Identifier: BSD-3-Clause */
// Looking into a switch: accounting checks, draining, and the views for results and the deadlock
// detector. Nothing here is on the data path.

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pipelines/ethernet_switch_state.h"

static uint64_t list_length(const struct frame_queue *q)
{
	uint64_t n = 0;

	for (const struct frame *f = q->head; f != NULL; f = f->next)
		n++;
	return n;
}

uint64_t switch_held(const struct node *n)
{
	const struct ethernet_switch *s = switch_of_const(n);
	uint64_t held = 0;

	for (unsigned i = 0; i < n->n_ports; i++) {
		held += list_length(&s->port[i].local);
		for (unsigned q = 0; q < QOS_CLASSES; q++)
			held += list_length(&s->port[i].queue[q].fifo);
	}
	return held;
}

void switch_drain(struct node *n)
{
	struct ethernet_switch *s = switch_of(n);
	struct frame *f;

	for (unsigned i = 0; i < n->n_ports; i++) {
		struct switch_port *p = &s->port[i];
		for (unsigned queue = 0; queue < QOS_CLASSES; queue++) {
			struct switch_queue *q = &p->queue[queue];
			while ((f = frame_queue_pop(&q->fifo)) != NULL) {
				struct switch_pg *pg = &s->port[f->in_port].pg[f->pg];
				q->bytes -= frame_buffer_bytes(f);
				mmu_release(&s->mmu, &pg->mmu, &q->mmu, f->cells);
				frame_free(f);
			}
		}
		while ((f = frame_queue_pop(&p->local)) != NULL)
			frame_free(f);
		p->nonempty = 0;
		p->urgent = 0;
	}
}

void ethernet_switch_reboot(struct node *n)
{
	struct ethernet_switch *s = switch_of(n);
	struct frame *f;

	for (unsigned i = 0; i < n->n_ports; i++) {
		struct switch_port *p = &s->port[i];
		for (unsigned queue = 0; queue < QOS_CLASSES; queue++) {
			struct switch_queue *q = &p->queue[queue];
			while ((f = frame_queue_pop(&q->fifo)) != NULL) {
				struct switch_pg *pg = &s->port[f->in_port].pg[f->pg];
				q->bytes -= frame_buffer_bytes(f);
				if (mmu_release(&s->mmu, &pg->mmu, &q->mmu, f->cells))
					switch_xon(s, f->in_port, f->pg);
				node_drop(n, f->in_port, f, DROP_REBOOT);
			}
			sched_emptied(&p->sched, queue);
		}
		while ((f = frame_queue_pop(&p->local)) != NULL)
			node_drop(n, i, f, DROP_REBOOT);
		p->nonempty = 0;
	}
}

// ---- check --------------------------------------------------------------------------------------

// Cells that the frames in the queues say a PG holds.
static int64_t pg_cells_in_queues(const struct ethernet_switch *s, unsigned port, unsigned pg)
{
	int64_t cells = 0;

	for (unsigned i = 0; i < s->node.n_ports; i++)
		for (unsigned q = 0; q < QOS_CLASSES; q++)
			for (const struct frame *f = s->port[i].queue[q].fifo.head; f; f = f->next)
				if (f->in_port == port && f->pg == pg)
					cells += f->cells;
	return cells;
}

static bool check_queues(const struct ethernet_switch *s, unsigned port, char *why, size_t len)
{
	const struct switch_port *p = &s->port[port];

	for (unsigned i = 0; i < QOS_CLASSES; i++) {
		const struct switch_queue *q = &p->queue[i];
		uint64_t bytes = 0;
		int64_t cells = 0;
		for (const struct frame *f = q->fifo.head; f != NULL; f = f->next) {
			bytes += frame_buffer_bytes(f);
			cells += f->cells;
		}
		bool bit = p->nonempty >> i & 1;
		if (bytes == q->bytes && cells == q->mmu.used && bit == (q->fifo.head != NULL))
			continue;
		snprintf(why, len,
			"%s port %s queue %u: counts %u bytes, %d cells, holds %" PRIu64
			" bytes, %" PRId64 " cells",
			s->node.name, s->node.ports[port].name, i, q->bytes, q->mmu.used, bytes,
			cells);
		return false;
	}
	return true;
}

static bool check_pgs(const struct ethernet_switch *s, unsigned port, char *why, size_t len)
{
	for (unsigned i = 0; i < QOS_CLASSES; i++) {
		int64_t held = pg_cells_in_queues(s, port, i);
		int64_t counted = mmu_pg_cells(&s->port[port].pg[i].mmu);
		if (held == counted)
			continue;
		snprintf(why, len,
			"%s port %s PG %u: counts %" PRId64 " cells, frames hold %" PRId64,
			s->node.name, s->node.ports[port].name, i, counted, held);
		return false;
	}
	return true;
}

static bool check_pool(const struct ethernet_switch *s, char *why, size_t len)
{
	int64_t shared = s->mmu.shared_free;
	int64_t headroom = s->mmu.headroom_free;

	for (unsigned i = 0; i < s->node.n_ports; i++) {
		for (unsigned k = 0; k < QOS_CLASSES; k++) {
			const struct mmu_pg *pg = &s->port[i].pg[k].mmu;
			shared += mmu_pg_shared(pg);
			headroom += pg->headroom_used;
		}
	}
	if (shared == s->mmu.shared_size && headroom == s->mmu.headroom_size)
		return true;
	snprintf(why, len,
		"%s: pool of %d cells adds up to %" PRId64 ", headroom of %d to %" PRId64,
		s->node.name, s->mmu.shared_size, shared, s->mmu.headroom_size, headroom);
	return false;
}

bool switch_check(const struct node *n, bool drained, char *why, size_t len)
{
	const struct ethernet_switch *s = switch_of_const(n);

	for (unsigned i = 0; i < n->n_ports; i++)
		if (!check_queues(s, i, why, len) || !check_pgs(s, i, why, len))
			return false;
	if (!check_pool(s, why, len))
		return false;
	if (!drained || switch_held(n) == 0)
		return true;
	snprintf(why, len, "%s: %" PRIu64 " frames left after draining", n->name, switch_held(n));
	return false;
}

// ---- views --------------------------------------------------------------------------------------

static uint64_t bytes_of(const struct ethernet_switch *s, int32_t cells)
{
	return (uint64_t)mmu_positive(cells) * s->mmu.cell_bytes;
}

void ethernet_switch_pg(
	const struct node *n, unsigned port, unsigned pg, struct ethernet_switch_pg_view *out)
{
	const struct ethernet_switch *s = switch_of_const(n);
	const struct switch_pg *p = &s->port[port].pg[pg];
	const struct mmu_pg *m = &p->mmu;
	bool untouched = m->min_slack == INT32_MAX;
	int32_t slack = untouched ? mmu_limit_cells(&s->mmu, &m->limit) : m->min_slack;

	*out = (struct ethernet_switch_pg_view){
		.lossless = m->lossless,
		.xoff = m->xoff,
		.priorities = s->port[port].pg_prios[pg],
		.xoff_since = p->xoff_since,
		.bytes = bytes_of(s, mmu_pg_cells(m)),
		.shared_bytes = bytes_of(s, m->over),
		.headroom_used = bytes_of(s, m->headroom_used),
		.headroom_size = bytes_of(s, m->headroom_size),
		.limit_bytes = bytes_of(s, mmu_pg_limit(&s->mmu, m)),
		.peak_bytes = bytes_of(s, m->peak),
		.headroom_peak = bytes_of(s, m->headroom_peak),
		.xoffs = s->port[port].xoffs[pg],
		.min_slack_bytes = (int64_t)slack * s->mmu.cell_bytes,
	};
}

void ethernet_switch_queue(
	const struct node *n, unsigned port, unsigned queue, struct ethernet_switch_queue_view *out)
{
	const struct ethernet_switch *s = switch_of_const(n);
	const struct switch_port *p = &s->port[port];
	const struct switch_queue *q = &p->queue[queue];

	*out = (struct ethernet_switch_queue_view){
		.paused = p->paused >> queue & 1,
		.frames = (uint32_t)list_length(&q->fifo),
		.bytes = q->bytes,
		.peak_bytes = bytes_of(s, q->mmu.peak),
		.tx_frames = q->tx_frames,
		.tx_bytes = q->tx_bytes,
		.ecn_marked = p->ecn_marked[queue],
	};
}

uint64_t ethernet_switch_queue_bytes(
	const struct node *n, unsigned port, unsigned queue, uint64_t *tx_frames)
{
	const struct switch_queue *q = &switch_of_const(n)->port[port].queue[queue];

	*tx_frames = q->tx_frames;
	return q->bytes;
}

void ethernet_switch_pool(const struct node *n, struct ethernet_switch_pool_view *out)
{
	const struct ethernet_switch *s = switch_of_const(n);
	const struct mmu *m = &s->mmu;

	*out = (struct ethernet_switch_pool_view){
		.buffer_bytes = s->buffer_bytes,
		.shared_size = bytes_of(s, m->shared_size),
		.shared_used = bytes_of(s, m->shared_size - m->shared_free),
		.shared_peak = bytes_of(s, m->shared_size - m->shared_min_free),
		.headroom_size = bytes_of(s, m->headroom_size),
		.headroom_used = bytes_of(s, m->headroom_size - m->headroom_free),
		.headroom_peak = bytes_of(s, m->headroom_size - m->headroom_min_free),
	};
}

simtime_t ethernet_switch_paused_since(const struct node *n, unsigned port, unsigned prio)
{
	return pfc_rx_since(&switch_of_const(n)->port[port].pfc_rx, prio);
}

simtime_t ethernet_switch_pausing_since(const struct node *n, unsigned port, unsigned prio)
{
	return pfc_tx_since(&switch_of_const(n)->port[port].pfc_tx, prio);
}

unsigned ethernet_switch_prio_queue(const struct node *n, unsigned port, unsigned prio)
{
	return switch_of_const(n)->port[port].qos->pfc_to_queue[prio];
}

unsigned ethernet_switch_prio_pg(const struct node *n, unsigned port, unsigned prio)
{
	return switch_of_const(n)->port[port].qos->pfc_to_pg[prio];
}

void ethernet_switch_close_pauses(struct node *n, simtime_t now)
{
	struct ethernet_switch *s = switch_of(n);

	for (unsigned i = 0; i < n->n_ports; i++) {
		struct port_counters *c = n->ports[i].ctr;
		for (unsigned prio = 0; prio < PFC_PRIORITIES; prio++) {
			simtime_t rx = pfc_rx_since(&s->port[i].pfc_rx, prio);
			simtime_t tx = pfc_tx_since(&s->port[i].pfc_tx, prio);
			if (rx != SIMTIME_NEVER)
				c->rx_pauses.duration[prio] += now - rx;
			if (tx != SIMTIME_NEVER)
				c->tx_pauses.duration[prio] += now - tx;
		}
	}
}

// ---- the wait-for graph -------------------------------------------------------------------------

static void queue_waits(const struct ethernet_switch *s, unsigned port, unsigned queue,
	void (*fn)(void *arg, const struct ethernet_switch_wait *w), void *arg)
{
	struct ethernet_switch_wait *by_pg = s->scratch;
	size_t n = (size_t)s->node.n_ports * QOS_CLASSES;

	memset(by_pg, 0, n * sizeof(*by_pg));
	for (const struct frame *f = s->port[port].queue[queue].fifo.head; f; f = f->next) {
		struct ethernet_switch_wait *w = &by_pg[(size_t)f->in_port * QOS_CLASSES + f->pg];
		w->frames++;
		w->bytes += frame_buffer_bytes(f);
	}
	for (size_t i = 0; i < n; i++) {
		if (by_pg[i].frames == 0)
			continue;
		by_pg[i].in_port = (uint16_t)(i / QOS_CLASSES);
		by_pg[i].pg = i % QOS_CLASSES;
		by_pg[i].out_port = (uint16_t)port;
		by_pg[i].queue = (uint8_t)queue;
		fn(arg, &by_pg[i]);
	}
}

void ethernet_switch_waits(const struct node *n, bool paused_only,
	void (*fn)(void *arg, const struct ethernet_switch_wait *w), void *arg)
{
	const struct ethernet_switch *s = switch_of_const(n);

	for (unsigned i = 0; i < n->n_ports; i++) {
		unsigned queues = s->port[i].nonempty;
		if (paused_only)
			queues &= s->port[i].paused;
		for (; queues != 0; queues &= queues - 1)
			queue_waits(s, i, (unsigned)__builtin_ctz(queues), fn, arg);
	}
}
