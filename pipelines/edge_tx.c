/* SPDX-License-Identifier: BSD-3-Clause */
// From the fabric to the real port: end what a kernel endpoint must not see (PFC, CNPs), complete
// synthetic frames, buffer while the port is slow and pause the switch before the buffer is full.

#include <string.h>

#include "pcap/build.h"
#include "pcap/icrc.h"
#include "pcap/roce.h"
#include "pipelines/edge_priv.h"
#include "pipelines/materialise.h"

#define ARP_HTYPE_ETHERNET 1
#define ARP_REQUEST        1

static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

// Of the buffer of a priority: paused from one half on (the other half takes what is under way),
// resumed at a quarter.
static uint32_t xoff_at(const struct edge *e)
{
	return e->tx_limit / 2;
}

static uint32_t xon_at(const struct edge *e)
{
	return e->tx_limit / 4;
}

static void pause_switch(struct edge *e, unsigned port, unsigned prio, bool xoff)
{
	struct edge_port *p = &e->port[port];

	if (pfc_tx_set(&p->pfc_tx, (uint8_t)(1u << prio), xoff))
		node_want_depart(&e->node, port, e->node.now);
}

static void account(struct edge *e, unsigned port, unsigned prio, int32_t bytes)
{
	struct edge_port *p = &e->port[port];

	p->tx_bytes[prio] = (uint32_t)((int32_t)p->tx_bytes[prio] + bytes);
	bool asserted = p->pfc_tx.asserted >> prio & 1;
	if (!asserted && p->tx_bytes[prio] >= xoff_at(e))
		pause_switch(e, port, prio, true);
	else if (asserted && p->tx_bytes[prio] <= xon_at(e))
		pause_switch(e, port, prio, false);
}

static void watch(struct edge *e, unsigned port, const struct frame *f)
{
	struct pkt p;

	if (f->kind == FRAME_ROCE1 ||
		pkt_parse_head(frame_data(f), f->head_len, f->len, &p) != PKT_OK || p.bth_off == 0)
		return;
	// What the endpoint will drop has not happened to it. (Made here, it has no ICRC yet.)
	if (!(f->flags & FRAME_F_SYNTH) && !pkt_icrc_valid(&p)) {
		e->port[port].ctr.rx_icrc_encapsulated++;
		return;
	}
	struct edge_qp *qp = edge_watch_arrives(e, port, &p);
	if (qp != NULL && e->port[port].cc != NULL)
		edge_cc_arrive(e, port, &p, qp);
}

void edge_arrive(struct node *n, unsigned port, struct frame *f)
{
	struct edge *e = (struct edge *)n;
	struct edge_port *p = &e->port[port];
	unsigned prio = f->tc;

	if (f->kind == FRAME_CONTROL) {
		edge_control(e, port, f);
		return;
	}
	uint32_t bytes = frame_buffer_bytes(f);
	if (f->flags & FRAME_F_ROCE && f->opcode == ROCE_OP_CNP) {
		p->ctr.cc_rx_cnp_pkts++;
		if (p->cc == NULL || !edge_cc_cnp(e, port, f))
			p->ctr.edge_cnp_swallowed++;
		node_consume(n, port, f);
		return;
	}
	if (p->tx_bytes[prio] + bytes > e->tx_limit) {
		n->ports[port].ctr->rx_buf_discard[prio]++;
		node_drop(n, port, f, DROP_EDGE_BUFFER_FULL);
		return;
	}
	if (f->flags & FRAME_F_ROCE && p->watch != NULL)
		watch(e, port, f);
	if (f->flags & FRAME_F_SYNTH) {
		struct frame *full = frame_complete(n->pool.full, f);
		if (full == NULL) {
			node_drop(n, port, f, DROP_NO_MBUF);
			return;
		}
		p->ctr.edge_materialised++;
		f = full;
	}
	uint8_t *mac = frame_data(f);
	if (!(mac[0] & 1))
		memcpy(mac, p->mac_known ? p->mac : broadcast, 6);

	frame_queue_push(&p->tx_fifo, f);
	p->tx_count++;
	account(e, port, prio, (int32_t)bytes);
	if (p->tx_count == EDGE_BURST)
		edge_flush(e, port);
}

// Frame headers move into the mbuf, where the outside world looks for them.
static void to_mbuf(struct frame *f, struct rte_mbuf **out)
{
	struct rte_mbuf *m = frame_mbuf(f);

	m->data_off = f->data_off;
	m->pkt_len = f->len;
	m->data_len = f->len;
	m->nb_segs = 1;
	m->next = NULL;
	m->ol_flags = 0;
	*out = m;
}

// An ARP probe (RFC 5227: sender address 0.0.0.0, so that no neighbour table learns us). It is the
// edge's own, never a frame of the fabric, and lost without harm.
void edge_ask_mac(struct edge *e, unsigned port)
{
	struct edge_port *p = &e->port[port];
	struct frame *f = e->node.pool.full != NULL ? frame_alloc(e->node.pool.full) : NULL;
	struct rte_mbuf *m;

	if (f == NULL)
		return;
	f->data_off = RTE_PKTMBUF_HEADROOM;
	f->len = ETH_HEADER_BYTES + ARP_BYTES;
	uint8_t *a = eth_put(frame_data(f), broadcast, e->node.ports[port].mac, ETHERTYPE_ARP);
	memset(a, 0, ARP_BYTES);
	put_be16(a, ARP_HTYPE_ETHERNET);
	put_be16(a + 2, ETHERTYPE_IPV4);
	a[4] = 6;
	a[5] = 4;
	put_be16(a + 6, ARP_REQUEST);
	memcpy(a + 8, e->node.ports[port].mac, 6);
	put_be32(a + 24, p->ip4);
	to_mbuf(f, &m);
	if (p->ops->tx(p->real, &m, 1) == 0)
		frame_free(f);
}

static void refuse_all(struct edge *e, unsigned port)
{
	struct edge_port *p = &e->port[port];
	struct frame *f;

	while ((f = frame_queue_pop(&p->tx_fifo)) != NULL) {
		account(e, port, f->tc, -(int32_t)frame_buffer_bytes(f));
		node_drop(&e->node, port, f, DROP_REAL_PORT_TX);
	}
	p->tx_count = 0;
}

// Offers one burst; how many the port took.
static unsigned offer(struct edge *e, unsigned port)
{
	struct edge_port *p = &e->port[port];
	struct rte_mbuf *m[EDGE_BURST];
	uint64_t identity[EDGE_BURST];
	uint32_t bytes[EDGE_BURST];
	uint16_t len[EDGE_BURST];
	uint8_t prio[EDGE_BURST];
	unsigned n = 0;

	// What a taken frame was must be known before: the port may free it.
	for (struct frame *f = p->tx_fifo.head; f != NULL && n < EDGE_BURST; f = f->next) {
		identity[n] = frame_identity(f);
		bytes[n] = frame_buffer_bytes(f);
		len[n] = f->len;
		prio[n] = f->tc;
		to_mbuf(f, &m[n]);
		n++;
	}
	struct frame *rest = mbuf_frame(m[n - 1])->next;
	unsigned sent = p->ops->tx(p->real, m, n);

	if (sent < n) {
		p->ctr.edge_tx_busy++;
		p->tx_fifo.head = mbuf_frame(m[sent]);
	} else {
		p->tx_fifo.head = rest;
	}
	p->tx_count -= sent;
	for (unsigned i = 0; i < sent; i++) {
		p->ctr.edge_tx_frames++;
		p->ctr.edge_tx_bytes += len[i];
		e->node.delivered++;
		node_digest(&e->node, DIGEST_DELIVER, port, identity[i]);
		account(e, port, prio[i], -(int32_t)bytes[i]);
	}
	return sent;
}

unsigned edge_flush(struct edge *e, unsigned port)
{
	struct edge_port *p = &e->port[port];
	unsigned total = 0;

	if (p->tx_count == 0)
		return 0;
	if (unlikely(p->ops->down != NULL && p->ops->down(p->real))) {
		refuse_all(e, port);
		return 0;
	}
	while (p->tx_count != 0) {
		unsigned want = RTE_MIN(p->tx_count, (uint32_t)EDGE_BURST);
		unsigned sent = offer(e, port);

		total += sent;
		if (sent < want)
			break;
	}
	return total;
}
