/* SPDX-License-Identifier: BSD-3-Clause */
// The data path's side of a capture: copy what the writer needs, nothing else.
#include <rte_lcore.h>
#include <rte_pause.h>
#include <sched.h>

#include "emu/capture/internal.h"

#define SPINS_BEFORE_YIELD 256

// The one place where a node waits: virtual time stands still anyway until the writer has room.
static void *reserve(struct capture *c, struct byte_ring *ring, uint32_t bytes)
{
	void *p = byte_ring_reserve(ring, bytes);

	for (unsigned spins = 0; unlikely(p == NULL); spins++) {
		if (!c->lossless) {
			__atomic_store_n(&ring->lost, ring->lost + 1, __ATOMIC_RELAXED);
			return NULL;
		}
		if (spins < SPINS_BEFORE_YIELD)
			rte_pause();
		else
			sched_yield();
		p = byte_ring_reserve(ring, bytes);
	}
	return p;
}

// Bytes of the frame to copy: its headers if the rest can be made, else as much as may be wanted.
static uint32_t bytes_to_copy(const struct capture *c, const struct frame *f)
{
	uint32_t n = f->flags & FRAME_F_SYNTH ? f->head_len : f->len;

	if (c->snaplen != 0 && !c->copy_all && !(f->flags & FRAME_F_SYNTH))
		n = RTE_MIN(n, c->snaplen);
	return n;
}

static void record_frame(struct tap *t, enum observe_dir dir, const struct frame *f, simtime_t at,
	enum observe_what what, uint64_t a, uint64_t b)
{
	struct capture *c = t->capture;
	int lcore = rte_lcore_index(-1);
	struct byte_ring *ring = &c->rings[lcore < 0 ? 0 : lcore];
	uint32_t have = bytes_to_copy(c, f);
	uint32_t bytes = RTE_ALIGN_CEIL((uint32_t)offsetof(struct record, data) + have, 8);
	uint64_t seq = t->seq[dir]++;
	struct record *r = reserve(c, ring, bytes);

	if (r == NULL)
		return;
	*r = (struct record){
		.bytes = bytes,
		.interface = t->interface[dir],
		.what = (uint8_t)what,
		.note = t->note,
		.at = at,
		.seq = seq,
		.a = a,
		.b = b,
		.frame = f,
		.recipe = frame_recipe_of(f),
		.have = have,
	};
	t->note = 0;
	memcpy(r->data, frame_data(f), have);
	byte_ring_commit(ring, bytes);
}

static void tap_frame(struct observer *o, const struct node *n, unsigned port, enum observe_dir dir,
	const struct frame *f, simtime_t at, enum observe_what what, uint64_t a, uint64_t b)
{
	struct tap *t = (struct tap *)o;

	if (t->interface[dir] != CAPTURE_NO_INTERFACE && (t->capture->what >> what & 1))
		record_frame(t, dir, f, at, what, a, b);
	if (t->next != NULL)
		t->next->frame(t->next, n, port, dir, f, at, what, a, b);
}

void capture_tap_attach(struct tap *t)
{
	struct node_port *p = &t->node->ports[t->port];

	t->obs.frame = tap_frame;
	t->next = p->obs;
	p->obs = &t->obs;
}

void capture_tap_detach(struct tap *t)
{
	struct observer **at = &t->node->ports[t->port].obs;

	while (*at != NULL && *at != &t->obs && (*at)->frame == tap_frame)
		at = &((struct tap *)*at)->next;
	if (*at == &t->obs)
		*at = t->next;
}
