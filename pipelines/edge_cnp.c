/* SPDX-License-Identifier: BSD-3-Clause */
// The CNP that an edge sends for its endpoint (IBTA annex A17.9): the way of the packet it answers
// turned round, BECN set, 16 reserved bytes, the notification point's DSCP and, where the packet
// had a tag, PCP. Not ECT: nobody would answer a mark on it. It goes through the queue of its class
// like what the endpoint sends.

#include <string.h>

#include "pcap/build.h"
#include "pcap/icrc.h"
#include "pipelines/edge_priv.h"

#define TTL 64

// The CNP that answers packet `p`, for queue pair `qpn`; its length.
static uint16_t build_cnp(const struct edge *e, const struct edge_port *ep, const struct pkt *p,
	uint32_t qpn, uint8_t *out)
{
	const struct np_params *np = &e->cc.np;
	const uint8_t *my = p->data + p->dst_off, *peer = p->data + p->src_off;
	uint16_t l4 = UDP_HEADER_BYTES + BTH_BYTES + CNP_RESERVED_BYTES + ICRC_BYTES;
	uint16_t type = p->ip_version == 4 ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6;
	uint8_t tos = (uint8_t)(np->cnp_dscp << 2); // Not-ECT
	uint8_t *l3 = eth_put(out, ep->next_hop_known ? ep->next_hop : p->data + 6, ep->mac,
		p->n_tags != 0 ? ETHERTYPE_VLAN : type);

	if (p->n_tags != 0)
		l3 = vlan_put(l3,
			(uint16_t)((p->vlan_tci & 0x0fff) | (unsigned)np->cnp_802p_prio << 13),
			type);
	uint8_t *udp = p->ip_version == 4 ? ipv4_put(l3, tos, IPV4_HEADER_BYTES + l4, 0, TTL,
						    IP_PROTO_UDP, get_be32(my), get_be32(peer))
					  : ipv6_put(l3, tos, 0, l4, IP_PROTO_UDP, TTL, my, peer);
	uint8_t *bth = udp_put(udp, p->sport, ROCE_UDP_PORT, l4);
	uint8_t *rest = bth_put(bth, ROCE_OP_CNP, BTH_MIG, 0, qpn, false, 0);

	bth[4] |= BTH_BECN;
	memset(rest, 0, CNP_RESERVED_BYTES);
	rest += CNP_RESERVED_BYTES;
	icrc_put(rest, icrc_compute(out, (unsigned)(l3 - out), (unsigned)(bth - out),
			       (unsigned)(rest - out)));
	return (uint16_t)(rest + ICRC_BYTES - out);
}

void edge_cnp_send(struct edge *e, unsigned port, const struct pkt *ce, uint32_t qpn)
{
	struct edge_port *ep = &e->port[port];
	struct frame *f = node_new_frame(&e->node, port);
	struct pkt p;

	if (f == NULL)
		return;
	f->len = f->head_len = build_cnp(e, ep, ce, qpn, frame_data(f));
	if (pkt_parse(frame_data(f), f->len, &p) != PKT_OK) {
		node_drop(&e->node, port, f, DROP_MALFORMED_BTH);
		return;
	}
	f->kind = FRAME_IP;
	f->flags |= FRAME_F_PARSED | FRAME_F_ROCE;
	if (p.ip_version == 6)
		f->flags |= FRAME_F_IPV6;
	if (p.n_tags != 0)
		f->flags |= FRAME_F_TAGGED;
	f->l3_off = (uint8_t)p.l3_off;
	f->l4_off = (uint8_t)p.l4_off;
	f->opcode = p.opcode;
	f->flow_hash = pkt_flow_hash(&p);
	f->dst = edge_destination(e, ep, &p);
	f->tc = p.n_tags != 0 && e->trust_pcp ? e->pcp_to_tc[pkt_pcp(&p)]
					      : e->dscp_to_tc[e->cc.np.cnp_dscp];
	ep->ctr.edge_cnp_sent++;
	edge_charge(e, ep, f);
	edge_queue(e, port, f);
}
