/* SPDX-License-Identifier: BSD-3-Clause */
// From the real port into the fabric: parse once, refuse what is malformed, set the DSCP, queue by
// priority, send as the link and the switch's PFC allow.

#include <rte_prefetch.h>
#include <stddef.h>
#include <string.h>

#include "pcap/build.h"
#include "pipelines/edge_priv.h"
#include "pipelines/endpoint.h"
#include "pipelines/parsed.h"

// One poll takes in at most this many frames, so that a flood on one port cannot stall an lcore.
#define POLL_FRAMES 128
// The lane to a switch on another lcore that has fallen behind: try again a little later.
#define LANE_RETRY (1 * SIM_US)

#define ARP_SENDER_IP 14 // offset in the ARP body

// The mbuf as the port filled it becomes a frame; false (and it is gone) if it cannot.
static struct frame *to_frame(struct edge *e, unsigned port, struct rte_mbuf *m)
{
	struct edge_port *p = &e->port[port];
	struct frame *f = mbuf_frame(m);
	bool fits = m->pkt_len <= UINT16_MAX;

	if (unlikely(m->nb_segs > 1)) {
		if (fits && rte_pktmbuf_linearize(m) == 0) {
			p->ctr.edge_linearised++;
		} else {
			rte_pktmbuf_free(m->next);
			m->next = NULL;
			m->nb_segs = 1;
			fits = false;
		}
	}
	*f = (struct frame){
		.dst = FRAME_NO_DST,
		.flow = FRAME_NO_FLOW,
		.data_off = m->data_off,
		.len = (uint16_t)RTE_MIN(m->data_len, m->pkt_len),
		.head_len = (uint16_t)RTE_MIN(m->data_len, m->pkt_len),
		.in_port = (uint16_t)port,
	};
	p->ctr.edge_rx_frames++;
	p->ctr.edge_rx_bytes += f->len;
	if (unlikely(!fits)) {
		node_adopt(&e->node, f);
		node_drop(&e->node, port, f, DROP_MTU_EXCEEDED);
		return NULL;
	}
	return f;
}

// A burst mostly goes to one endpoint, and the table does not change while frames flow.
uint32_t edge_destination(const struct edge *e, struct edge_port *port, const struct pkt *p)
{
	if (e->endpoints == NULL)
		return FRAME_NO_DST;
	if (p->ip_version == 4) {
		uint32_t ip = get_be32(p->data + p->dst_off);

		if (ip != port->last_ip4 || ip == 0) {
			port->last_ip4 = ip;
			port->last_dst = endpoint_find_ipv4(e->endpoints, p->data + p->dst_off);
		}
		return port->last_dst;
	}
	return endpoint_find_ipv6(e->endpoints, p->data + p->dst_off);
}

static uint8_t traffic_class(const struct edge *e, const struct pkt *p)
{
	if (p->n_tags != 0 && (e->trust_pcp || p->ip_version == 0))
		return e->pcp_to_tc[pkt_pcp(p)];
	return p->ip_version != 0 ? e->dscp_to_tc[p->dscp] : 0;
}

// Fills what later nodes read instead of parsing again.
static void describe(struct edge *e, struct edge_port *port, struct frame *f, struct pkt *p)
{
	f->flags = FRAME_F_PARSED;
	f->l3_off = (uint8_t)p->l3_off;
	f->l4_off = (uint8_t)p->l4_off;
	if (p->n_tags != 0)
		f->flags |= FRAME_F_TAGGED;
	if (p->kind != PKT_IP) {
		f->kind = FRAME_LOCAL;
		port->ctr.edge_local_in++;
		f->tc = traffic_class(e, p);
		return;
	}

	f->kind = FRAME_IP;
	if (p->ip_version == 6)
		f->flags |= FRAME_F_IPV6;
	if (p->bth_off != 0) {
		f->flags |= FRAME_F_ROCE;
		f->opcode = p->opcode;
		if (e->roce_dscp != EDGE_NO_DSCP && p->dscp != e->roce_dscp) {
			ip_set_dscp(frame_data(f) + f->l3_off, (uint8_t)e->roce_dscp);
			p->dscp = (uint8_t)e->roce_dscp;
			port->ctr.edge_dscp_rewritten++;
		}
	} else if (is_neighbour_discovery(p, p->end)) {
		f->kind = FRAME_LOCAL;
		port->ctr.edge_local_in++;
	}
	f->flow_hash = pkt_flow_hash(p);
	f->dst = edge_destination(e, port, p);
	f->tc = traffic_class(e, p);
}

// An interface may show us what others on it send too (the host's own stack on a netdev): only who
// uses the endpoint's address is the endpoint.
static bool is_endpoint(const struct edge_port *p, const struct pkt *pkt)
{
	if (p->ip4 == 0)
		return true;
	if (pkt->kind == PKT_ARP)
		return get_be32(pkt->data + pkt->l3_off + ARP_SENDER_IP) == p->ip4;
	return pkt->ip_version == 4 && get_be32(pkt->data + pkt->src_off) == p->ip4;
}

static void queue(struct edge_port *p, struct frame *f)
{
	frame_queue_push(&p->rx_queue[f->tc], f);
	p->backlog |= (uint8_t)(1u << f->tc);
}

void edge_queue(struct edge *e, unsigned port, struct frame *f)
{
	struct edge_port *p = &e->port[port];

	queue(p, f);
	if ((p->backlog & ~p->pfc_rx.paused) != 0 && !node_depart_pending(&e->node, port))
		node_want_depart(&e->node, port, e->node.now);
}

// The endpoint's MAC is what it sends with, whatever was configured. Its ARP and ND go out as they
// are; the rest goes to the switch, as its (proxied) neighbour table says anyway.
static void set_next_hop(struct edge_port *p, struct frame *f, const struct pkt *pkt)
{
	uint8_t *mac = frame_data(f);

	if (!(mac[6] & 1) && (!p->mac_known || memcmp(p->mac, mac + 6, 6) != 0) &&
		is_endpoint(p, pkt)) {
		memcpy(p->mac, mac + 6, 6);
		p->mac_known = true;
	}
	if (p->next_hop_known && f->kind == FRAME_IP && !(mac[0] & 1))
		memcpy(mac, p->next_hop, 6);
}

void edge_charge(struct edge *e, struct edge_port *p, struct frame *f)
{
	unsigned prio = f->tc;

	frame_pad(f);
	p->rx_bytes[prio] += frame_buffer_bytes(f);
	if (p->rx_bytes[prio] >= e->rx_limit && !(p->full >> prio & 1)) {
		p->full |= (uint8_t)(1u << prio);
		p->ctr.edge_rx_held++;
	}
}

static void take_one(struct edge *e, unsigned port, struct rte_mbuf *m)
{
	struct edge_port *p = &e->port[port];
	struct node *n = &e->node;
	struct pkt pkt;
	struct frame *f = to_frame(e, port, m);

	if (f == NULL)
		return;
	enum pkt_error err = pkt_parse(frame_data(f), f->len, &pkt);
	if (err == PKT_OK && (pkt.kind == PKT_PFC || pkt.kind == PKT_PAUSE)) {
		// The edge, not the endpoint, speaks PFC on this link: the frame never enters it.
		p->ctr.edge_control_from_port++;
		frame_free(f);
		return;
	}
	node_adopt(n, f);
	if (unlikely(err != PKT_OK)) {
		p->ctr.edge_rx_malformed++;
		node_drop(n, port, f, parse_drop_reason(err));
		return;
	}
	describe(e, p, f, &pkt);
	if (unlikely(pkt.end > pkt.l3_off + n->ports[port].mtu)) {
		node_drop(n, port, f, DROP_MTU_EXCEEDED);
		return;
	}
	set_next_hop(p, f, &pkt);
	edge_charge(e, p, f);
	struct edge_qp *qp = NULL;
	if (f->flags & FRAME_F_ROCE && p->watch != NULL)
		qp = edge_watch_sent(e, port, &pkt);
	if (p->cc == NULL || !edge_cc_take(e, port, f, &pkt, qp))
		queue(p, f);
}

unsigned edge_take_in(struct edge *e, unsigned port)
{
	struct edge_port *p = &e->port[port];
	struct rte_mbuf *m[EDGE_BURST];
	unsigned total = 0;

	// One full priority holds back the whole port: what comes next may be of that priority.
	while (p->full == 0 && total < POLL_FRAMES) {
		unsigned got = p->ops->rx(p->real, m, EDGE_BURST);

		for (unsigned i = 0; i < got; i++)
			take_one(e, port, m[i]);
		total += got;
		if (got < EDGE_BURST)
			break;
	}
	if ((p->backlog & ~p->pfc_rx.paused) != 0 && !node_depart_pending(&e->node, port))
		node_want_depart(&e->node, port, e->node.now);
	return total;
}

// Next priority after the last one that sent, among `ready` (not 0).
static unsigned round_robin(unsigned ready, unsigned last)
{
	unsigned after = ready & ~((2u << last) - 1);

	return (unsigned)__builtin_ctz(after != 0 ? after : ready);
}

static struct frame *take_next(struct edge *e, struct edge_port *p, unsigned ready)
{
	unsigned prio = round_robin(ready, p->last_prio);
	struct frame *f = frame_queue_pop(&p->rx_queue[prio]);

	p->last_prio = (uint8_t)prio;
	p->rx_bytes[prio] -= frame_buffer_bytes(f);
	rte_prefetch0(p->rx_queue[prio].head);
	if (frame_queue_empty(&p->rx_queue[prio]))
		p->backlog &= (uint8_t) ~(1u << prio);
	if (p->rx_bytes[prio] < e->rx_limit)
		p->full &= (uint8_t) ~(1u << prio);
	return f;
}

// Frames whose transmission starts no later than this need no depart call each: nothing can stop
// them. A pause that arrives from now on takes effect after the response time, one that has arrived
// by a timer. What is observed is sent in its time, so that captures are in order.
static simtime_t committed_until(const struct edge *e, unsigned port)
{
	const struct node *n = &e->node;

	if (n->ports[port].obs != NULL)
		return n->now;
	// A timer due now may come after us.
	simtime_t timer = evq_when(&n->evq, node_src_timer(n));
	return simtime_max(n->now, simtime_min(n->now + e->pause_response, timer) - 1);
}

// A lane within the lcore grows.
static inline bool lane_blocked(const struct lane *l)
{
	return unlikely(l->remote) && lane_full(l);
}

void edge_depart(struct node *n, unsigned port)
{
	struct edge *e = (struct edge *)n;
	struct edge_port *p = &e->port[port];
	const struct lane *l = n->ports[port].out;

	if (pfc_tx_due(&p->pfc_tx, n->now) && !lane_blocked(l)) {
		simtime_t again = edge_say_pause(e, port) ? n->now : n->now + LANE_RETRY;
		node_want_depart(n, port, again);
		return;
	}

	simtime_t until = committed_until(e, port);
	unsigned ready;
	while ((ready = p->backlog & (unsigned)~p->pfc_rx.paused) != 0 && l->free_at <= until &&
		!lane_blocked(l))
		node_send(n, port, take_next(e, p, ready));
	if (lane_blocked(l))
		node_want_depart(n, port, n->now + LANE_RETRY);
	else if (ready != 0)
		node_want_depart(n, port, n->now);
}
