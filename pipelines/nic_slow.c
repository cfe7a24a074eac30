/* SPDX-License-Identifier: BSD-3-Clause */
// A slow receiver: a NIC whose way to the host's memory (PCIe, a busy IOMMU, a full cache) takes in
// less than the link brings. What it cannot take in waits in its receive buffer, in order, with its
// bytes counted per priority: from half of `limit` on a priority that the NIC has PFC for is
// paused, at a quarter it is resumed; what does not fit is discarded (rx_overrun,
// rx_prioN_buf_discard). MAC control frames end at the MAC and never wait.

#include <errno.h>
#include <stdlib.h>

#include "pipelines/nic_internal.h"

struct nic_slow {
	struct frame_queue fifo;
	uint64_t n_held;
	uint64_t byte_time; // 0: over, frames pass at once
	simtime_t end;
	uint32_t limit;
	uint32_t bytes[PRIO_COUNT];
	bool busy; // a NIC_TIMER_SLOW is on its way for the first frame
};

static void account(struct nic *nic, unsigned port, unsigned prio, int64_t bytes)
{
	struct nic_port *p = &nic->ports[port];
	struct nic_slow *s = p->slow;
	uint8_t bit = (uint8_t)(1u << prio);

	s->bytes[prio] = (uint32_t)(s->bytes[prio] + bytes);
	if (!(p->cfg.pfc_send & bit))
		return;
	if (!(p->slow_prios & bit) && s->bytes[prio] >= s->limit / 2)
		p->slow_prios |= bit;
	else if (p->slow_prios & bit && s->bytes[prio] <= s->limit / 4)
		p->slow_prios &= (uint8_t)~bit;
	else
		return;
	nic_pause_update(nic, port);
}

static void serve(struct nic *nic, unsigned port)
{
	struct nic_slow *s = nic->ports[port].slow;
	const struct frame *f = s->fifo.head;

	if (s->busy || f == NULL)
		return;
	s->busy = true;
	node_timer(&nic->node,
		nic->node.now + serialization_time(s->byte_time, frame_buffer_bytes(f)),
		NIC_TIMER_SLOW, port);
}

void nic_slow_timer(struct nic *nic, unsigned port)
{
	struct nic_slow *s = nic->ports[port].slow;

	s->busy = false;
	if (nic->node.now >= s->end)
		s->byte_time = 0;
	struct frame *f = frame_queue_pop(&s->fifo);
	if (f == NULL)
		return;
	s->n_held--;
	account(nic, port, f->tc, -(int64_t)frame_buffer_bytes(f));
	serve(nic, port);
	nic_take(nic, port, f);
}

bool nic_slow_hold(struct nic *nic, unsigned port, struct frame *f)
{
	struct nic_slow *s = nic->ports[port].slow;
	struct node *n = &nic->node;
	uint32_t bytes = frame_buffer_bytes(f);

	if (f->kind == FRAME_CONTROL || (s->byte_time == 0 && s->fifo.head == NULL))
		return false;
	if (s->bytes[f->tc] + bytes > s->limit) {
		n->ports[port].ctr->rx_buf_discard[f->tc]++;
		node_drop(n, port, f, DROP_RX_OVERRUN);
		return true;
	}
	frame_queue_push(&s->fifo, f);
	s->n_held++;
	account(nic, port, f->tc, bytes);
	serve(nic, port);
	return true;
}

int nic_slow_receiver(
	struct node *n, unsigned port, uint64_t rate_bps, uint32_t buffer_bytes, simtime_t duration)
{
	struct nic *nic = nic_of(n);

	if (port >= n->n_ports || rate_bps == 0 || buffer_bytes == 0 || duration <= 0)
		return -EINVAL;
	struct nic_port *p = &nic->ports[port];
	if (p->slow == NULL)
		p->slow = calloc(1, sizeof(*p->slow));
	if (p->slow == NULL)
		return -ENOMEM;
	p->slow->byte_time = byte_time_fp(rate_bps);
	p->slow->limit = buffer_bytes;
	p->slow->end = duration < SIMTIME_NEVER - n->now ? n->now + duration : SIMTIME_NEVER;
	if (p->slow->end != SIMTIME_NEVER)
		node_timer(n, p->slow->end, NIC_TIMER_SLOW_END, port);
	return 0;
}

void nic_slow_end(struct nic *nic, unsigned port)
{
	struct nic_slow *s = nic->ports[port].slow;

	// Not if a later event has prolonged it.
	if (nic->node.now >= s->end)
		s->byte_time = 0;
}

uint64_t nic_slow_held(const struct nic *nic)
{
	uint64_t held = 0;

	for (unsigned i = 0; i < nic->node.n_ports; i++)
		held += nic->ports[i].slow != NULL ? nic->ports[i].slow->n_held : 0;
	return held;
}

void nic_slow_drain(struct nic *nic)
{
	struct frame *f;

	for (unsigned i = 0; i < nic->node.n_ports; i++) {
		struct nic_slow *s = nic->ports[i].slow;
		if (s == NULL)
			continue;
		while ((f = frame_queue_pop(&s->fifo)) != NULL)
			frame_free(f);
		*s = (struct nic_slow){.limit = s->limit};
	}
}

void nic_slow_free(struct nic *nic)
{
	for (unsigned i = 0; i < nic->node.n_ports; i++)
		free(nic->ports[i].slow);
}
