/* SPDX-License-Identifier: BSD-3-Clause */
// Parsing of frames that nobody in the fabric has parsed yet: those of real endpoints, replays and
// fuzzers. Frames of built-in NICs and of other switches arrive with the result in struct frame.

#include "pipelines/ethernet_switch_state.h"
#include "pipelines/parsed.h"

static bool multicast_mac(const uint8_t *eth)
{
	return eth[0] & 1;
}

static void fill(const struct ethernet_switch *s, struct frame *f, const struct pkt *p)
{
	f->flags |= FRAME_F_PARSED;
	f->flags |= p->ip_version == 6 ? FRAME_F_IPV6 : 0;
	f->flags |= p->bth_off ? FRAME_F_ROCE : 0;
	f->flags |= p->n_tags ? FRAME_F_TAGGED : 0;
	f->l3_off = (uint8_t)p->l3_off; // at most 14 + 2 tags
	f->l4_off = p->l4_off <= UINT8_MAX ? (uint8_t)p->l4_off : 0;
	f->opcode = p->opcode;
	f->flow_hash = pkt_flow_hash(p);
	f->dst = p->ip_version == 6 ? endpoint_find_ipv6(s->endpoints, p->data + p->dst_off)
				    : endpoint_find_ipv4(s->endpoints, p->data + p->dst_off);
}

// RoCE v1 is switched, not routed: to whom the GID it is for belongs (IBTA annex A16). A GID that
// is an IPv4-mapped address is that IPv4 address's.
static bool parse_roce1(
	struct ethernet_switch *s, unsigned port, struct frame *f, const struct pkt *p)
{
	static const uint8_t mapped[12] = {[10] = 0xff, 0xff};
	const uint8_t *gid = p->data + p->dst_off;

	if (multicast_mac(p->data)) {
		node_drop(&s->node, port, f, DROP_NOT_ROUTABLE);
		return false;
	}
	f->kind = FRAME_ROCE1;
	f->flags |= FRAME_F_PARSED | FRAME_F_IPV6 | FRAME_F_ROCE;
	f->flags |= p->n_tags ? FRAME_F_TAGGED : 0;
	f->l3_off = (uint8_t)p->l3_off;
	f->l4_off = (uint8_t)(p->bth_off - UDP_HEADER_BYTES);
	f->opcode = p->opcode;
	f->flow_hash = pkt_flow_hash(p);
	f->dst = memcmp(gid, mapped, sizeof(mapped)) == 0
			 ? endpoint_find_ipv4(s->endpoints, gid + sizeof(mapped))
			 : endpoint_find_ipv6(s->endpoints, gid);
	return true;
}

bool switch_parse(struct ethernet_switch *s, unsigned port, struct frame *f)
{
	struct pkt p;
	enum pkt_error err = pkt_parse_head(frame_data(f), f->head_len, f->len, &p);

	f->flags &= FRAME_F_SYNTH | FRAME_F_MARKED;
	if (err != PKT_OK) {
		node_drop(&s->node, port, f, parse_drop_reason(err));
		return false;
	}
	switch (p.kind) {
	case PKT_PFC:
	case PKT_PAUSE:
		f->kind = FRAME_CONTROL;
		return true;
	case PKT_ARP:
		f->kind = FRAME_LOCAL;
		return true;
	case PKT_ROCE1:
		return parse_roce1(s, port, f, &p);
	default:
		break;
	}
	if (is_neighbour_discovery(&p, f->head_len)) {
		f->kind = FRAME_LOCAL;
		return true;
	}
	if (multicast_mac(p.data)) {
		node_drop(&s->node, port, f, DROP_NOT_ROUTABLE);
		return false;
	}
	f->kind = FRAME_IP;
	fill(s, f, &p);
	return true;
}

// Multicast, broadcast, link-local (RFC 1112, 919, 3927; RFC 4291): no router forwards them.
static bool routable_ipv4(const uint8_t *a)
{
	return a[0] < 224 && !(a[0] == 169 && a[1] == 254);
}

static bool routable_ipv6(const uint8_t *a)
{
	return a[0] != 0xff && !(a[0] == 0xfe && (a[1] & 0xc0) == 0x80);
}

void switch_drop_unroutable(struct ethernet_switch *s, unsigned port, struct frame *f)
{
	const uint8_t *ip = frame_data(f) + f->l3_off;
	bool routable = f->flags & FRAME_F_IPV6 ? routable_ipv6(ip + 24) : routable_ipv4(ip + 16);

	node_drop(&s->node, port, f, routable ? DROP_NO_ROUTE : DROP_NOT_ROUTABLE);
}
