/* SPDX-License-Identifier: BSD-3-Clause */
// DCQCN for endpoints that know nothing of it, as the NIC model does it for built-in ones (models/
// cc.h, models/np.h), but from outside: the edge sees packets, not queue pairs. Which packets are
// of one connection is edge_qp.c's affair.
//
//	from the endpoint  --> ECT(0) --> limiter of (addresses, destination QP) --> queue -->
// switch 	to the endpoint    <-- CE? then a CNP to the sender's queue pair         <-- switch
// CNP? the limiter of that connection slows down
//
// Sender. Each destination QP has a reaction point. While it limits nothing its frames pass, at the
// cost of a look-up. Once limited, a frame goes when the bytes on the wire of the one before have
// passed at the current rate; until then it is held, in order, in a queue of its own, so other
// queue pairs go on. What is held counts against the priority's limit like what is queued: when
// that is full the real port is not read, and its own flow control does the rest. A frame leaves
// the limiter for the port's queue only while its priority is not paused, so a pause does not end
// in a burst.
//
// ACKs and NAKs are neither paced nor held behind requests, to which they have no order; behind
// READ responses they stay, since an answer that overtakes others would pass for a loss of those.
//
// A CNP names the endpoint's queue pair. While its connection is not known (edge_cnp_unmatched) it
// slows down all queue pairs to that address whose own number is not known either, which it must be
// one of; those of other connections are not touched.
//
// Receiver. A packet with CE makes a CNP due at most every min_time_between_cnps. It goes to the
// sender's queue pair if that is known (edge_cnp_unsent counts when not), with the notification
// point's DSCP, in that class's queue.
//
// Limiters have no timer for their rate: what was due meanwhile is made up for when a frame or a
// CNP comes. The only timers are those of held frames, one per queue pair.
//
// Simplified: datagrams (UD) are not limited, and not sent as ECT.

#include "pipelines/edge_cc.h"

#include <stdlib.h>
#include <string.h>

#include "models/cc.h"
#include "models/np.h"
#include "pcap/build.h"
#include "pipelines/edge_priv.h"
#include "pipelines/edge_qp.h"

// Beside a queue pair's half: the limiter of what it sends, the notification point of what it gets.
struct limiter {
	struct frame_queue held;
	simtime_t next_at; // for the next frame
	uint64_t byte_time;
	uint64_t rate_bps;  // that byte_time is for; 0: not limited
	uint32_t frac;      // of a picosecond, in units of 2^-BYTE_TIME_SHIFT
	uint32_t responses; // held READ responses
	bool armed;
	bool stalled; // due, but its priority is paused
	struct np_clock np;
	struct cc cc;
};

struct edge_cc {
	const struct edge_cc_config *cfg;
	uint32_t n_stalled;
	struct np np;
	struct edge_qp_table *qps; // the port's
	struct limiter limiters[EDGE_QP_SLOTS];
};

bool edge_cc_wanted(const struct edge_cc_config *cfg)
{
	return cfg->cc.algorithm != CC_NONE || cfg->np.enable || cfg->ect0;
}

struct edge_cc *edge_cc_create(const struct edge_cc_config *cfg, struct edge_qp_table *qps)
{
	struct edge_cc *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->cfg = cfg;
	np_init(&c->np, &cfg->np);
	c->qps = qps;
	return c;
}

void edge_cc_destroy(struct edge_cc *c)
{
	free(c);
}

// ---- limiters --------------------------------------------------------------------------------

// After an event: what the algorithm says now holds for the next frame.
static void obey(struct edge_counters *ctr, struct limiter *l)
{
	uint64_t rate = cc_unlimited(&l->cc) ? 0 : l->cc.rate_bps;

	if (rate == l->rate_bps)
		return;
	ctr->edge_cc_limited += rate != 0;
	ctr->edge_cc_limited -= l->rate_bps != 0;
	ctr->edge_cc_rate += rate - l->rate_bps;
	if (rate != 0 && (ctr->edge_cc_rate_min == 0 || rate < ctr->edge_cc_rate_min))
		ctr->edge_cc_rate_min = rate;
	l->rate_bps = rate;
	l->byte_time = rate == 0 ? 0 : byte_time_fp(rate);
}

void edge_cc_forget(struct edge *e, unsigned port, const struct edge_qp *qp)
{
	struct edge_cc *c = e->port[port].cc;
	struct limiter *l = &c->limiters[qp->slot];
	uint64_t line = e->node.ports[port].out->rate_bps;

	e->port[port].ctr.edge_cc_limited -= l->rate_bps != 0;
	e->port[port].ctr.edge_cc_rate -= l->rate_bps;
	memset(l, 0, sizeof(*l));
	// The endpoint's path MTU is not known; what an edge can run does not ask.
	cc_init(&l->cc, &c->cfg->cc, line, 4096, e->node.now);
}

static bool paused(const struct edge_port *p, const struct frame *f)
{
	return p->pfc_rx.paused >> f->tc & 1;
}

// The limiter is up to date; true if `f` may go now, which then counts as sent.
static bool may_go(struct edge *e, unsigned port, struct limiter *l, const struct frame *f)
{
	struct edge_port *p = &e->port[port];
	simtime_t now = e->node.now;

	cc_timer(&l->cc, now);
	obey(&p->ctr, l);
	if (l->rate_bps == 0)
		return true;
	if (l->next_at > now || paused(p, f))
		return false;
	uint32_t wire = frame_wire_bytes(f);

	l->next_at =
		simtime_max(l->next_at, now) + serialization_step(l->byte_time, wire, &l->frac);
	cc_sent(&l->cc, now, wire);
	obey(&p->ctr, l);
	return true;
}

static void arm(struct edge *e, unsigned port, struct edge_cc *c, struct edge_qp *qp)
{
	struct limiter *l = &c->limiters[qp->slot];
	bool stop = paused(&e->port[port], l->held.head);

	if (stop && !l->stalled) {
		l->stalled = true;
		c->n_stalled++;
	} else if (!stop && !l->armed) {
		l->armed = true;
		node_timer(&e->node, simtime_max(l->next_at, e->node.now), TIMER_CC,
			port << ARG_PORT_SHIFT | qp->slot);
	}
}

static void hold(
	struct edge *e, unsigned port, struct edge_qp *qp, struct frame *f, enum edge_qp_kind kind)
{
	struct edge_cc *c = e->port[port].cc;
	struct limiter *l = &c->limiters[qp->slot];

	frame_queue_push(&l->held, f);
	l->responses += kind == EDGE_QP_RESPONSE;
	qp->busy = true;
	e->port[port].ctr.edge_cc_held++;
	if (!l->stalled)
		arm(e, port, c, qp);
}

// True if the frame is held.
static bool limit(struct edge *e, unsigned port, struct edge_qp *qp, struct frame *f)
{
	struct limiter *l = &e->port[port].cc->limiters[qp->slot];
	enum edge_qp_kind kind = edge_qp_kind_of(f->opcode);

	if (likely(l->rate_bps == 0 && frame_queue_empty(&l->held)))
		return false;
	if (kind == EDGE_QP_ACK && l->responses == 0)
		return false;
	if (frame_queue_empty(&l->held) && may_go(e, port, l, f))
		return false;
	hold(e, port, qp, f, kind);
	return true;
}

// Sends what is due of a queue pair and sees that it is called again for the rest.
static void release(struct edge *e, unsigned port, struct edge_qp *qp)
{
	struct edge_cc *c = e->port[port].cc;
	struct limiter *l = &c->limiters[qp->slot];
	struct frame *f;

	c->n_stalled -= l->stalled;
	l->stalled = false;
	while ((f = l->held.head) != NULL) {
		enum edge_qp_kind kind = edge_qp_kind_of(f->opcode);

		if (kind != EDGE_QP_ACK && !may_go(e, port, l, f)) {
			arm(e, port, c, qp);
			return;
		}
		l->responses -= kind == EDGE_QP_RESPONSE;
		edge_queue(e, port, frame_queue_pop(&l->held));
	}
	qp->busy = false;
}

void edge_cc_timer(struct edge *e, unsigned port, uint32_t slot)
{
	struct edge_cc *c = e->port[port].cc;

	c->limiters[slot].armed = false;
	release(e, port, &c->qps->qps[slot]);
}

void edge_cc_resume(struct edge *e, unsigned port)
{
	struct edge_cc *c = e->port[port].cc;

	for (uint32_t i = 0; i < c->qps->n_live && c->n_stalled != 0; i++) {
		struct limiter *l = &c->limiters[c->qps->live[i]];

		if (!l->stalled || paused(&e->port[port], l->held.head))
			continue;
		release(e, port, &c->qps->qps[c->qps->live[i]]);
	}
}

// ---- from the endpoint -----------------------------------------------------------------------

bool edge_cc_take(
	struct edge *e, unsigned port, struct frame *f, const struct pkt *p, struct edge_qp *qp)
{
	struct edge_port *ep = &e->port[port];
	struct edge_cc *c = ep->cc;

	if (p->bth_off == 0 || f->kind != FRAME_IP || edge_qp_kind_of(p->opcode) == EDGE_QP_NONE)
		return false;
	if (c->cfg->ect0 && p->ecn == ECN_NOT_ECT && roce_opcodes[p->opcode].payload) {
		uint8_t *ip = frame_data(f) + f->l3_off;
		ip_set_tos(ip, ip_tos(ip) | ECN_ECT0);
		ep->ctr.edge_ect_set++;
	}
	if (c->cfg->cc.algorithm == CC_NONE && !c->cfg->np.enable)
		return false;
	if (qp == NULL) {
		ep->ctr.edge_cc_untracked++;
		return false;
	}
	return limit(e, port, qp, f);
}

// ---- to the endpoint -------------------------------------------------------------------------

static bool slow_down(struct edge *e, unsigned port, struct edge_qp *qp)
{
	struct limiter *l = &e->port[port].cc->limiters[qp->slot];

	cc_timer(&l->cc, e->node.now);
	cc_cnp(&l->cc, e->node.now);
	obey(&e->port[port].ctr, l);
	return true;
}

// All that it may be meant for.
static bool slow_down_unpaired(struct edge *e, unsigned port, const struct edge_qp_pair *pair)
{
	struct edge_qp_table *t = e->port[port].cc->qps;
	bool any = false;

	for (uint32_t i = 0; i < t->n_live; i++) {
		struct edge_qp *qp = &t->qps[t->live[i]];

		if (qp->side == EDGE_QP_OUT && qp->other == EDGE_QP_UNKNOWN &&
			memcmp(&qp->pair, pair, sizeof(*pair)) == 0)
			any |= slow_down(e, port, qp);
	}
	return any;
}

bool edge_cc_cnp(struct edge *e, unsigned port, const struct frame *f)
{
	struct edge_port *ep = &e->port[port];
	struct edge_cc *c = ep->cc;
	struct edge_qp *in, *out = NULL;
	struct pkt p;

	if (c->cfg->cc.algorithm == CC_NONE ||
		pkt_parse_head(frame_data(f), f->head_len, f->len, &p) != PKT_OK || p.bth_off == 0)
		return false;
	struct edge_qp_pair pair = edge_qp_pair_of(&p, EDGE_QP_IN);
	in = edge_qp_find(c->qps, EDGE_QP_IN, &pair, p.dest_qp);
	if (in != NULL && in->other != EDGE_QP_UNKNOWN)
		out = edge_qp_find(c->qps, EDGE_QP_OUT, &pair, in->other);
	if (out == NULL)
		ep->ctr.edge_cnp_unmatched++;
	bool handled = out != NULL ? slow_down(e, port, out) : slow_down_unpaired(e, port, &pair);
	ep->ctr.edge_cnp_handled += handled;
	return handled;
}

static void congestion_seen(struct edge *e, unsigned port, struct edge_qp *qp, const struct pkt *p)
{
	struct edge_cc *c = e->port[port].cc;
	struct edge_counters *ctr = &e->port[port].ctr;
	uint8_t tc = e->dscp_to_tc[c->cfg->np.cnp_dscp];

	if (qp->other == EDGE_QP_UNKNOWN || e->port[port].full >> tc & 1)
		ctr->edge_cnp_unsent++;
	else if (np_ce(&c->np, &c->limiters[qp->slot].np, qp->pair.peer, e->node.now))
		edge_cnp_send(e, port, p, qp->other);
}

void edge_cc_arrive(struct edge *e, unsigned port, const struct pkt *p, struct edge_qp *qp)
{
	if (p->ecn == ECN_CE && e->port[port].cc->cfg->np.enable)
		congestion_seen(e, port, qp, p);
}

// ---- what is held ----------------------------------------------------------------------------

uint64_t edge_cc_held(const struct edge_cc *c, uint64_t bytes[PRIO_COUNT])
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < c->qps->n_live; i++) {
		const struct frame *f = c->limiters[c->qps->live[i]].held.head;

		for (; f != NULL; f = f->next) {
			n++;
			bytes[f->tc] += frame_buffer_bytes(f);
		}
	}
	return n;
}

void edge_cc_drain(struct edge_cc *c)
{
	for (uint32_t i = 0; i < c->qps->n_live; i++) {
		struct limiter *l = &c->limiters[c->qps->live[i]];

		while (!frame_queue_empty(&l->held))
			frame_free(frame_queue_pop(&l->held));
		l->responses = 0;
		l->stalled = false;
		c->qps->qps[c->qps->live[i]].busy = false;
	}
	c->n_stalled = 0;
}
