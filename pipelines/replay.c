/* SPDX-License-Identifier: BSD-3-Clause */
// Each class (priority) walks the capture by itself: a linked list of its frames, a position and a
// loop count. The next frame to send is the one that is due first among the classes not paused;
// equal times go by loop and place in the capture. So without pauses the order is the capture's,
// and a paused class holds back nobody but itself.
#include "pipelines/replay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pcap/icrc.h"
#include "pipelines/replay_internal.h"

// Wait before asking again for a frame buffer when the pool is empty.
#define POOL_RETRY SIM_US

enum replay_timer { TIMER_PFC, TIMER_RESUME };

// TIMER_PFC's argument: what a PFC frame said of one priority.
#define PFC_ARG(prio, quanta) ((uint32_t)(prio) << 16 | (quanta))

static struct replay *replay_of(struct node *n)
{
	return (struct replay *)n;
}

// ---- what goes next --------------------------------------------------------------------------

static bool earlier(const struct replay_cursor *x, const struct replay_cursor *y)
{
	if (x->due != y->due)
		return x->due < y->due;
	return x->loop != y->loop ? x->loop < y->loop : x->next < y->next;
}

// The class to send from, NULL when none has anything or all that have are paused.
static struct replay_cursor *next_class(struct replay *r)
{
	struct replay_cursor *best = NULL;

	for (unsigned tc = 0; tc < PRIO_COUNT; tc++) {
		struct replay_cursor *c = &r->cursor[tc];
		if (c->next == REPLAY_NONE || (r->pauses.paused >> tc & 1))
			continue;
		if (best == NULL || earlier(c, best))
			best = c;
	}
	return best;
}

static void kick(struct replay *r)
{
	const struct replay_cursor *c = next_class(r);

	if (c != NULL)
		node_want_depart(&r->node, 0, simtime_max(c->due, r->node.now));
}

static void advance(struct replay *r, struct replay_cursor *c)
{
	c->next = r->store.frames[c->next].next;
	if (c->next == REPLAY_NONE && c->loop + 1 < r->loops) {
		c->loop++;
		c->next = c->first;
	}
	if (c->next != REPLAY_NONE)
		c->due = r->start + (simtime_t)c->loop * r->period + r->store.frames[c->next].due;
}

// Puts a frame of the capture into a buffer; NULL when there is none.
static struct frame *make_frame(struct replay *r, const struct replay_frame *from)
{
	struct node *n = &r->node;
	struct frame *f = frame_alloc(n->pool.full);

	if (f == NULL) {
		// Counted once per wait; the frame is sent later.
		if (!r->starved && n->ports[0].ctr->drops[DROP_NO_MBUF]++ == 0)
			node_event(n, 0, EV_POOL_EMPTY, 0, 0);
		r->starved = true;
		return NULL;
	}
	r->starved = false;
	uint32_t len = RTE_MIN(from->len, r->room);
	f->data_off = RTE_PKTMBUF_HEADROOM;
	f->len = f->head_len = (uint16_t)len;
	f->kind = FRAME_IP;
	f->flags = from->flags;
	f->tc = from->tc;
	f->l3_off = from->l3_off;
	f->l4_off = from->l4_off;
	f->opcode = from->opcode;
	f->flow_hash = from->flow_hash;
	f->dst = from->dst;
	memcpy(frame_data(f), r->store.bytes + from->at, len);
	frame_pad(f);
	node_adopt(n, f);
	return f;
}

static void replay_depart(struct node *n, unsigned port)
{
	struct replay *r = replay_of(n);
	struct replay_cursor *c = next_class(r);

	if (c == NULL)
		return;
	if (c->due > n->now) {
		node_want_depart(n, port, c->due);
		return;
	}
	const struct replay_frame *from = &r->store.frames[c->next];
	struct frame *f = make_frame(r, from);
	if (f == NULL) {
		node_want_depart(n, port, n->now + POOL_RETRY);
		return;
	}
	r->sent++;
	advance(r, c);
	if (from->len > r->room)
		node_drop(n, port, f, DROP_MTU_EXCEEDED);
	else
		node_send(n, port, f);
	kick(r);
}

// ---- PFC -------------------------------------------------------------------------------------

static void resumed(struct replay *r, unsigned prio)
{
	node_event(
		&r->node, 0, EV_PFC_RESUMED, prio, (uint64_t)(r->node.now - r->pauses.since[prio]));
	kick(r);
}

static void apply_pfc(struct replay *r, unsigned prio, uint16_t quanta)
{
	struct node *n = &r->node;
	struct pfc_rx *rx = &r->pauses;

	switch (pfc_rx_apply(rx, prio, quanta, n->now, &n->ports[0].ctr->rx_pauses)) {
	case PFC_PAUSED:
		node_event(n, 0, EV_PFC_PAUSED, prio, quanta);
		break;
	case PFC_RESUMED:
		resumed(r, prio);
		break;
	case PFC_NO_CHANGE:
		break;
	}
	if (quanta != 0 && !(rx->armed >> prio & 1)) {
		rx->armed |= (uint8_t)(1u << prio);
		node_timer(n, rx->until[prio], TIMER_RESUME, prio);
	}
}

static void pause_ran_out(struct replay *r, unsigned prio)
{
	struct node *n = &r->node;
	struct pfc_rx *rx = &r->pauses;

	rx->armed &= (uint8_t) ~(1u << prio);
	if (pfc_rx_expire(rx, prio, n->now, &n->ports[0].ctr->rx_pauses) == PFC_RESUMED) {
		resumed(r, prio);
	} else if (rx->paused >> prio & 1) {
		rx->armed |= (uint8_t)(1u << prio);
		node_timer(n, rx->until[prio], TIMER_RESUME, prio);
	}
}

static void replay_timer(struct node *n, uint32_t kind, uint32_t arg)
{
	if (kind == TIMER_PFC)
		apply_pfc(replay_of(n), arg >> 16, (uint16_t)arg);
	else
		pause_ran_out(replay_of(n), arg);
}

static void receive_control(struct replay *r, struct frame *f)
{
	struct node *n = &r->node;
	struct port_counters *c = n->ports[0].ctr;
	struct pkt p;

	if (pkt_parse(frame_data(f), f->len, &p) != PKT_OK) {
		node_drop(n, 0, f, DROP_MALFORMED_CONTROL);
		return;
	}
	struct pfc pfc = {0};
	if (p.kind == PKT_PFC)
		pfc = pfc_parse(&p);
	else
		c->rx_global_pause++;
	for (unsigned prio = 0; prio < PRIO_COUNT; prio++) {
		if (!(pfc.classes >> prio & 1))
			continue;
		c->rx_pause[prio]++;
		node_digest(n, DIGEST_PAUSE, 0, (uint64_t)prio << 16 | pfc.quanta[prio]);
		if (!(r->pfc_enable >> prio & 1))
			c->rx_pause_ignored++;
		else if (r->pfc_response == 0)
			apply_pfc(r, prio, pfc.quanta[prio]);
		else
			node_timer(n, n->now + r->pfc_response, TIMER_PFC,
				PFC_ARG(prio, pfc.quanta[prio]));
	}
	node_consume(n, 0, f);
}

// ---- what it receives ------------------------------------------------------------------------

// A receiver checks the ICRC of what really has one.
static bool bad_icrc(const struct frame *f)
{
	struct pkt p;

	if (f->flags & FRAME_F_SYNTH)
		return false;
	return pkt_parse(frame_data(f), f->len, &p) == PKT_OK && p.bth_off != 0 &&
	       !pkt_icrc_valid(&p);
}

static void replay_arrive(struct node *n, unsigned port, struct frame *f)
{
	struct replay *r = replay_of(n);

	if (f->kind == FRAME_CONTROL) {
		receive_control(r, f);
	} else if (f->kind == FRAME_LOCAL) {
		node_consume(n, port, f);
	} else if (bad_icrc(f)) {
		node_drop(n, port, f, DROP_BAD_ICRC);
	} else {
		r->received++;
		node_deliver(n, port, f);
	}
}

static void replay_link(struct node *n, unsigned port, bool up)
{
	struct replay *r = replay_of(n);

	if (!up)
		pfc_rx_reset(&r->pauses, n->now, &n->ports[port].ctr->rx_pauses);
	kick(r);
}

// ---- before the run --------------------------------------------------------------------------

// What later nodes need not parse again; anything unusual is left to the first switch, which has a
// drop reason for it.
static void describe(const struct replay *r, struct replay_frame *f, const struct pkt *p)
{
	if (r->endpoints == NULL || p->kind != PKT_IP || p->proto == IP_PROTO_ICMPV6 ||
		(p->data[0] & 1) || p->l4_off > UINT8_MAX)
		return;
	f->dst = p->ip_version == 6 ? endpoint_find_ipv6(r->endpoints, p->data + p->dst_off)
				    : endpoint_find_ipv4(r->endpoints, p->data + p->dst_off);
	if (f->dst == FRAME_NO_DST)
		return;
	f->flags = FRAME_F_PARSED;
	f->flags |= p->ip_version == 6 ? FRAME_F_IPV6 : 0;
	f->flags |= p->bth_off ? FRAME_F_ROCE : 0;
	f->flags |= p->n_tags ? FRAME_F_TAGGED : 0;
	f->l3_off = (uint8_t)p->l3_off;
	f->l4_off = (uint8_t)p->l4_off;
	f->opcode = p->opcode;
	f->flow_hash = pkt_flow_hash(p);
}

static void replay_start(struct node *n)
{
	struct replay *r = replay_of(n);

	r->room = n->pool.full->elt_size - sizeof(struct rte_mbuf) - sizeof(struct frame) -
		  RTE_PKTMBUF_HEADROOM;
	pfc_rx_init(&r->pauses, r->pfc_enable, n->ports[0].out->byte_time);
	for (uint32_t i = 0; i < r->store.n_frames; i++) {
		struct replay_frame *f = &r->store.frames[i];
		struct pkt p;
		if (pkt_parse(r->store.bytes + f->at, f->len, &p) == PKT_OK)
			describe(r, f, &p);
	}
	for (unsigned tc = 0; tc < PRIO_COUNT; tc++) {
		struct replay_cursor *c = &r->cursor[tc];
		*c = (struct replay_cursor){.first = c->first, .next = c->first};
		if (c->next != REPLAY_NONE)
			c->due = r->start + r->store.frames[c->next].due;
	}
	kick(r);
}

const struct node_ops replay_ops = {
	.name = "replay",
	.arrive = replay_arrive,
	.depart = replay_depart,
	.timer = replay_timer,
	.start = replay_start,
	.link = replay_link,
};
