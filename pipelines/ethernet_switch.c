/* SPDX-License-Identifier: BSD-3-Clause */
// The Ethernet switch: what happens to a frame, stage by stage.
//
//	arrive: parse -> control | local | classify -> route -> WRED -> admit -> rewrite -+
//	                                                            |                     |
//	                                                           XOFF    queue or send -+
//
//	depart: urgent (PFC, then ARP/ND) | schedule -> release -> WRED at dequeue -> transmit
//	                                                   |
//	                                                  XON
//
// Store and forward: arrive is called when a frame's last bit is in. Forwarding latency is part of
// the outgoing lane's delay, so a frame that finds its port idle is on the wire at once and arrives
// that much later. A frame holds its buffer cells from its arrival until its transmission *starts*
// (depart); on an idle port that is the same instant, so such a frame is only held against the
// thresholds (mmu_pass) and never charged.
//
// The route's port is chosen by flow, or as load_balancing says (models/load_balance.h), among
// equals only.
//
// PFC frames go out before anything else but never cut a frame in two: they leave at the next
// depart. A paused priority stops its queue at the next pick; the frame in transmission is
// finished.
//
// Drops of data are judged before the frame is changed, so that a capture shows it as it came.
// Lossless PGs lose a frame only when their headroom is exhausted: neither the egress queue nor
// WRED drops theirs.
//
// Invariant: a port with something to send (a queue that is ready, or an urgent frame) has a depart
// call scheduled, except inside the call itself.
//
// This file is the path of data; pfc, wd, parse, local and view hold what is rare.

#include "emu/core/observe.h"
#include "pcap/build.h"
#include "pipelines/ethernet_switch_state.h"

static inline void stage_classify(const struct qos_map *m, struct port_counters *c, struct frame *f)
{
	const uint8_t *data = frame_data(f);
	uint8_t tos = f->flags & FRAME_F_IPV6 ? ip_tos(data + f->l3_off) : data[f->l3_off + 1];
	uint8_t tc = m->dscp_to_tc[tos >> 2];

	if (unlikely(m->trust == QOS_TRUST_PCP))
		tc = f->flags & FRAME_F_TAGGED ? m->pcp_to_tc[data[ETH_HEADER_BYTES] >> 5]
					       : m->default_tc;
	if (unlikely(tc != f->tc))
		port_reclassify(c, f, tc);
	f->tc = tc;
	f->pg = m->tc_to_pg[tc];
	f->queue = m->tc_to_queue[tc];
	if (unlikely((tos & 3) == ECN_CE))
		c->ce_seen[tc]++;
}

// RoCE v1 is not IP to a switch: its class is that of its tag, and it is never ECN-capable.
static __attribute__((noinline)) void classify_tag(
	const struct qos_map *m, struct port_counters *c, struct frame *f)
{
	uint8_t tc = f->flags & FRAME_F_TAGGED ? m->pcp_to_tc[frame_data(f)[ETH_HEADER_BYTES] >> 5]
					       : m->default_tc;

	if (tc != f->tc)
		port_reclassify(c, f, tc);
	f->tc = tc;
	f->pg = m->tc_to_pg[tc];
	f->queue = m->tc_to_queue[tc];
}

// Whether a frame for `queue` would leave by port `a` before it would by `b`.
static bool leaves_sooner(const struct ethernet_switch *s, unsigned a, unsigned b, unsigned queue)
{
	uint32_t waiting_a = s->port[a].queue[queue].bytes;
	uint32_t waiting_b = s->port[b].queue[queue].bytes;

	return waiting_a != waiting_b
		       ? waiting_a < waiting_b
		       : s->node.ports[a].out->free_at < s->node.ports[b].out->free_at;
}

// As ecmp_port(), for a switch that balances otherwise.
static __attribute__((noinline)) int balance(struct ethernet_switch *s, const struct frame *f)
{
	uint16_t ports[LB_CANDIDATES];
	unsigned best = 0;

	if (s->lb.mode != LB_ADAPTIVE)
		return lb_port(&s->lb, &s->ecmp, f->dst, f->flow_hash, s->node.now);
	unsigned n = lb_candidates(&s->lb, &s->ecmp, f->dst, ports);
	if (n == 0)
		return ECMP_NO_ROUTE;
	for (unsigned i = 1; i < n; i++)
		if (leaves_sooner(s, ports[i], ports[best], f->queue))
			best = i;
	lb_took(&s->lb, f->dst, best);
	return ports[best];
}

// A frame that came from above and is sent up again goes on with another DSCP. It stays in the PG
// it came by; its queue is that of the new DSCP, for the upper switch will pause it by that. (A
// frame that is dropped here for want of room is seen with its new DSCP.)
static void bounce(struct ethernet_switch *s, unsigned in, struct frame *f)
{
	const struct qos_map *m = s->port[in].qos;
	uint8_t *ip = frame_data(f) + f->l3_off;
	uint8_t dscp = ip_tos(ip) >> 2;

	if (f->kind == FRAME_ROCE1 || s->bounce[dscp] == dscp)
		return;
	ip_set_dscp(ip, s->bounce[dscp]);
	if (m->trust == QOS_TRUST_DSCP)
		f->tc = m->dscp_to_tc[s->bounce[dscp]];
	f->queue = m->tc_to_queue[f->tc];
}

// The output port, for a switch that does more than ECMP.
static __attribute__((noinline)) int route_special(
	struct ethernet_switch *s, unsigned in, struct frame *f)
{
	int out = ECMP_NO_ROUTE;

	if (s->from != NULL && s->from[in] != NULL)
		out = ecmp_port(s->from[in], f->dst, f->flow_hash);
	if (out < 0)
		out = s->lb.mode == LB_ECMP ? ecmp_port(&s->ecmp, f->dst, f->flow_hash)
					    : balance(s, f);
	if (out >= 0 && s->bounces && s->port[in].above && s->port[out].above)
		bounce(s, in, f);
	return out;
}

// Output port of the frame and its index, or NULL: dropped and gone.
static inline struct switch_port *stage_route(
	struct ethernet_switch *s, unsigned port, struct frame *f, unsigned *index)
{
	int out = likely(s->plain) ? ecmp_port(&s->ecmp, f->dst, f->flow_hash)
				   : route_special(s, port, f);
	const uint8_t *ip = frame_data(f) + f->l3_off;
	uint8_t ttl = f->flags & FRAME_F_IPV6 ? ip[7] : ip[8];

	if (unlikely(out < 0)) {
		switch_drop_unroutable(s, port, f);
		return NULL;
	}
	if (unlikely(ttl <= 1) && f->kind != FRAME_ROCE1) {
		node_drop(&s->node, port, f, DROP_TTL_EXPIRED);
		return NULL;
	}
	struct switch_port *p = &s->port[out];
	if (unlikely(f->len - f->l3_off > p->mtu)) {
		node_drop(&s->node, port, f, DROP_MTU_EXCEEDED);
		return NULL;
	}
	*index = (unsigned)out;
	return p;
}

// TTL and MACs of the next hop; RoCE v1 keeps its own.
static inline void stage_rewrite(const struct switch_port *out, struct frame *f)
{
	uint8_t *eth = frame_data(f);

	if (likely(!(f->flags & FRAME_F_IPV6))) {
		memcpy(eth, out->macs, sizeof(out->macs));
		ipv4_decrement_ttl(eth + f->l3_off);
	} else if (f->kind != FRAME_ROCE1) {
		memcpy(eth, out->macs, sizeof(out->macs));
		ipv6_decrement_hops(eth + f->l3_off);
	}
}

enum wred_action { WRED_PASS, WRED_MARK, WRED_DROP };

static enum wred_action stage_wred(struct ethernet_switch *s, const struct wred *w, uint32_t bytes,
	const struct frame *f, bool droppable)
{
	uint8_t ecn = f->kind == FRAME_ROCE1 ? ECN_NOT_ECT : ip_ecn(frame_data(f) + f->l3_off);

	if (ecn == ECN_CE || (ecn == ECN_NOT_ECT && !(w->drop_not_ect && droppable)))
		return WRED_PASS;
	if (!rng_hit(&s->node.rng, wred_probability(w, bytes)))
		return WRED_PASS;
	return ecn == ECN_NOT_ECT ? WRED_DROP : WRED_MARK;
}

static void mark(struct ethernet_switch *s, unsigned out, struct frame *f, uint32_t bytes)
{
	ip_set_ce(frame_data(f) + f->l3_off);
	f->flags |= FRAME_F_MARKED;
	f->note = bytes;
	s->node.ports[out].ctr->ecn_marked[f->tc]++;
	s->port[out].ecn_marked[f->queue]++;
	node_digest(&s->node, DIGEST_MARK, out, frame_identity(f));
}

// Charges the frame to the buffer. False: dropped and gone.
static inline bool stage_admit(struct ethernet_switch *s, unsigned port, struct switch_pg *pg,
	struct switch_queue *q, struct frame *f)
{
	enum mmu_verdict v = mmu_admit(&s->mmu, &pg->mmu, &q->mmu, f->cells);

	if (likely(v == MMU_ADMIT))
		return true;
	static const enum drop_reason reasons[] = {
		[MMU_DROP_HEADROOM] = DROP_PG_HEADROOM_FULL,
		[MMU_DROP_SHARED] = DROP_PG_SHARED_FULL,
		[MMU_DROP_QUEUE] = DROP_QUEUE_FULL,
		[MMU_DROP_POOL] = DROP_POOL_FULL,
	};
	if (v == MMU_ADMIT_XOFF || (v == MMU_DROP_HEADROOM && pg->mmu.xoff))
		switch_xoff(s, port, f->pg);
	if (v == MMU_ADMIT_XOFF || v == MMU_ADMIT_PAUSED)
		return true;
	node_drop(&s->node, port, f, reasons[v]);
	return false;
}

// A frame that was marked here, or wants telemetry.
static __attribute__((noinline)) void transmit_noted(
	struct ethernet_switch *s, unsigned out, struct frame *f)
{
	if (f->kind == FRAME_INT)
		switch_int_push(s, out, f);
	if (f->note == NOTE_INT)
		node_send(&s->node, out, f);
	else
		node_send_noted(&s->node, out, f, OBS_ECN, f->queue, f->note);
}

static inline void stage_transmit(struct ethernet_switch *s, unsigned out, struct switch_queue *q,
	struct frame *f, uint32_t bytes)
{
	q->tx_frames++;
	q->tx_bytes += bytes;
	if (unlikely(f->note != 0))
		transmit_noted(s, out, f);
	else
		node_send(&s->node, out, f);
}

// What a frame's way through the switch consists of.
struct way {
	unsigned in, out;
	struct switch_port *to;
	struct switch_pg *pg;
	struct switch_queue *q;
};

// The frame joins its queue.
static inline void stage_enqueue(
	struct ethernet_switch *s, const struct way *w, struct frame *f, uint32_t bytes)
{
	struct switch_port *p = w->to;
	struct switch_queue *q = w->q;
	enum wred_action action = WRED_PASS;

	if (unlikely(q->bytes > q->mark_above)) {
		action = stage_wred(s, &p->wred[f->queue], q->bytes, f, !w->pg->mmu.lossless);
		if (action == WRED_DROP) {
			node_drop(&s->node, w->in, f, DROP_WRED);
			return;
		}
	}
	if (!stage_admit(s, w->in, w->pg, q, f))
		return;
	stage_rewrite(p, f);
	if (unlikely(action == WRED_MARK))
		mark(s, w->out, f, q->bytes);

	bool was_ready = switch_ready(p) != 0;
	frame_queue_push(&q->fifo, f);
	q->bytes += bytes;
	p->nonempty |= (uint8_t)(1u << f->queue);
	if (!was_ready && switch_ready(p) != 0)
		node_want_depart(&s->node, w->out, s->node.now);
}

// Nothing is ahead of a frame for `queue` on this port.
static inline bool port_is_free(
	const struct ethernet_switch *s, const struct way *w, unsigned queue)
{
	return switch_ready(w->to) == 0 && !(w->to->paused >> queue & 1) && w->to->urgent == 0 &&
	       node_lane_idle(&s->node, w->out);
}

static void other_kind(struct ethernet_switch *s, unsigned port, struct frame *f)
{
	if (f->kind == FRAME_CONTROL)
		switch_control(s, port, f);
	else
		switch_local(s, port, f);
}

// `stormed`: the watchdog has a queue of the switch in drop state. A constant where it is called,
// so that a switch without pays nothing for it.
static __rte_always_inline void arrive(
	struct node *n, unsigned port, struct frame *f, const bool stormed)
{
	struct ethernet_switch *s = switch_of(n);

	if (unlikely(!(f->flags & FRAME_F_PARSED)) && !switch_parse(s, port, f))
		return;
	struct switch_port *from = &s->port[port];
	struct way w = {.in = port};

	f->note = 0;
	if (likely(f->kind == FRAME_IP)) {
		stage_classify(from->qos, n->ports[port].ctr, f);
	} else if (frame_has_tail(f)) {
		stage_classify(from->qos, n->ports[port].ctr, f);
		f->note = f->kind == FRAME_INT ? NOTE_INT : 0;
	} else if (f->kind == FRAME_ROCE1) {
		classify_tag(from->qos, n->ports[port].ctr, f);
	} else {
		other_kind(s, port, f);
		return;
	}
	w.to = stage_route(s, port, f, &w.out);
	if (unlikely(w.to == NULL))
		return;
	if (stormed && switch_wd_drops(s, port, w.out, f))
		return;

	uint32_t bytes = frame_buffer_bytes(f);
	int32_t cells = mmu_cells(&s->mmu, bytes);
	w.pg = &from->pg[f->pg];
	w.q = &w.to->queue[f->queue];
	f->cells = (uint16_t)cells;
	if (port_is_free(s, &w, f->queue) && mmu_pass(&s->mmu, &w.pg->mmu, &w.q->mmu, cells)) {
		stage_rewrite(w.to, f);
		stage_transmit(s, w.out, w.q, f, bytes);
		return;
	}
	stage_enqueue(s, &w, f, bytes);
}

static void switch_arrive(struct node *n, unsigned port, struct frame *f)
{
	arrive(n, port, f, false);
}

static void stormed_arrive(struct node *n, unsigned port, struct frame *f)
{
	arrive(n, port, f, true);
}

// Takes the next frame of `queue`, gives its cells back.
static inline struct frame *dequeue(
	struct ethernet_switch *s, struct switch_port *p, unsigned queue, unsigned ready)
{
	struct switch_queue *q = &p->queue[queue];
	struct frame *f = frame_queue_pop(&q->fifo);
	uint32_t bytes = frame_buffer_bytes(f);
	struct switch_pg *pg = &s->port[f->in_port].pg[f->pg];

	q->bytes -= bytes;
	sched_charge(&p->sched, ready, queue, bytes);
	if (frame_queue_empty(&q->fifo)) {
		p->nonempty &= (uint8_t) ~(1u << queue);
		sched_emptied(&p->sched, queue);
	}
	if (unlikely(mmu_release(&s->mmu, &pg->mmu, &q->mmu, f->cells)))
		switch_xon(s, f->in_port, f->pg);
	return f;
}

static void switch_depart(struct node *n, unsigned port)
{
	struct ethernet_switch *s = switch_of(n);
	struct switch_port *p = &s->port[port];
	unsigned ready = switch_ready(p);

	if (unlikely(p->urgent != 0) && switch_send_urgent(s, port)) {
		if (ready != 0 || p->urgent != 0)
			node_want_depart(n, port, n->now);
		return;
	}
	if (unlikely(ready == 0))
		return;

	unsigned queue = sched_pick(&p->sched, ready);
	struct switch_queue *q = &p->queue[queue];
	uint32_t waiting = q->bytes;
	struct frame *f = dequeue(s, p, queue, ready);
	if (unlikely(p->marks_at_dequeue >> queue & 1) &&
		stage_wred(s, &p->wred[queue], waiting, f, false) == WRED_MARK)
		mark(s, port, f, waiting);
	stage_transmit(s, port, q, f, waiting - q->bytes);
	if (switch_ready(p) != 0 || p->urgent != 0)
		node_want_depart(n, port, n->now);
}

static void switch_start(struct node *n)
{
	switch_pfc_start(switch_of(n));
	switch_wd_start(switch_of(n));
}

#define OPS(arrive_)                                                                     \
	{                                                                                \
		.name = "ethernet-switch", .arrive = (arrive_), .depart = switch_depart, \
		.timer = switch_timer, .start = switch_start, .link = switch_link,       \
		.held = switch_held, .drain = switch_drain, .check = switch_check,       \
	}

const struct node_ops ethernet_switch_ops = OPS(switch_arrive);
const struct node_ops ethernet_switch_stormed_ops = OPS(stormed_arrive);
