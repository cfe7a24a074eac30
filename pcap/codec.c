/* SPDX-License-Identifier: BSD-3-Clause */
// Parsing is a walk along the headers with one cursor: each step first makes sure that its header
// lies within the bytes that exist (`limit`), and each length field is held against the length that
// is left of the frame (`end`). Steps return the error of their layer, which is a drop reason.
#include "pcap/codec.h"

#include "pcap/build.h"

#define MAX_TAGS     2 // 802.1Q and QinQ
#define MAX_IPV6_EXT 8

#define IPV4_FRAGMENT_MASK 0x3fff      // MF, or an offset
#define BTH_TVER_MASK      0x000f0000u // of the first word; only version 0 is defined

#define IPV6_EXT_HOP      0
#define IPV6_EXT_ROUTING  43
#define IPV6_EXT_FRAGMENT 44
#define IPV6_EXT_DST      60

struct cursor {
	const uint8_t *data;
	uint32_t off;
	uint32_t end;   // bytes of the enclosing packet, payload not made yet included
	uint32_t limit; // of them those that exist
};

static inline bool lacks(const struct cursor *c, uint32_t bytes)
{
	return c->off + bytes > c->limit;
}

// The packet ends `bytes` behind the cursor, which is not beyond what encloses it.
static inline void enclose(struct cursor *c, uint32_t bytes)
{
	c->end = c->off + bytes;
	c->limit = c->limit < c->end ? c->limit : c->end;
}

static enum pkt_error parse_bth(struct cursor *c, struct pkt *p)
{
	if (lacks(c, BTH_BYTES))
		return PKT_ERR_BTH;
	const uint8_t *b = c->data + c->off;
	uint32_t w0 = get_be32(b), w1 = get_be32(b + 4), w2 = get_be32(b + 8);
	p->bth_off = (uint16_t)c->off;
	p->opcode = (uint8_t)(w0 >> 24);
	p->se = w0 >> 23 & 1;
	p->pad = w0 >> 20 & 3;
	p->pkey = (uint16_t)w0;
	p->fecn = w1 >> 31;
	p->becn = w1 >> 30 & 1;
	p->dest_qp = w1 & QPN_MASK;
	p->ack_req = w2 >> 31;
	p->psn = w2 & PSN_MASK;
	if (w0 & BTH_TVER_MASK)
		return PKT_ERR_BTH;

	uint32_t headers = roce_header_bytes(p->opcode);
	if (lacks(c, headers) || c->off + headers + p->pad + ICRC_BYTES > c->end)
		return PKT_ERR_BTH;
	c->off += headers;
	p->payload_off = (uint16_t)c->off;
	p->payload_len = (uint16_t)(c->end - c->off - p->pad - ICRC_BYTES);
	return PKT_OK;
}

static enum pkt_error parse_udp(struct cursor *c, struct pkt *p)
{
	if (lacks(c, UDP_HEADER_BYTES))
		return PKT_ERR_UDP;
	const uint8_t *u = c->data + c->off;
	uint32_t bytes = get_be16(u + 4);
	uint32_t left = c->end - c->off;

	p->sport = get_be16(u);
	p->dport = get_be16(u + 2);
	// A datagram may be shorter than its packet (RFC 9868), but not when an ICRC has to be
	// found at its end.
	if (bytes < UDP_HEADER_BYTES || bytes > left)
		return PKT_ERR_UDP;
	if (p->dport == ROCE_UDP_PORT && bytes != left)
		return PKT_ERR_UDP;
	enclose(c, bytes);
	c->off += UDP_HEADER_BYTES;
	if (p->dport == ROCE_UDP_PORT)
		return parse_bth(c, p);
	p->payload_off = (uint16_t)c->off;
	p->payload_len = (uint16_t)(c->end - c->off);
	return PKT_OK;
}

static enum pkt_error parse_l4(struct cursor *c, struct pkt *p, bool fragment)
{
	p->payload_off = (uint16_t)c->off;
	p->payload_len = (uint16_t)(c->end - c->off);
	if (fragment)
		return PKT_OK;
	p->l4_off = (uint16_t)c->off;
	if (p->proto == IP_PROTO_UDP)
		return parse_udp(c, p);
	if (p->proto == IP_PROTO_TCP && !lacks(c, 4)) {
		p->sport = get_be16(c->data + c->off);
		p->dport = get_be16(c->data + c->off + 2);
	}
	return PKT_OK;
}

static enum pkt_error parse_ipv4(struct cursor *c, struct pkt *p)
{
	if (lacks(c, IPV4_HEADER_BYTES))
		return PKT_ERR_IP;
	const uint8_t *ip = c->data + c->off;
	uint32_t header = (ip[0] & 0x0fu) * 4;
	uint32_t total = get_be16(ip + 2);

	if (ip[0] >> 4 != 4 || header < IPV4_HEADER_BYTES || lacks(c, header) || total < header ||
		c->off + total > c->end)
		return PKT_ERR_IP;
	p->ip_version = 4;
	p->dscp = ip[1] >> 2;
	p->ecn = ip[1] & 3;
	p->ttl = ip[8];
	p->proto = ip[9];
	p->addr_bytes = 4;
	p->src_off = (uint16_t)(c->off + 12);
	p->dst_off = (uint16_t)(c->off + 16);
	p->end = (uint16_t)(c->off + total);
	if (ipv4_header_sum(ip, header) != 0xffff)
		return PKT_ERR_IP_CHECKSUM;

	bool fragment = get_be16(ip + 6) & IPV4_FRAGMENT_MASK;
	enclose(c, total);
	c->off += header;
	return parse_l4(c, p, fragment);
}

// Walks the extension headers that a router may see before the transport (RFC 8200 4).
static enum pkt_error skip_ipv6_exts(struct cursor *c, struct pkt *p, bool *fragment)
{
	for (unsigned i = 0; i < MAX_IPV6_EXT; i++) {
		uint32_t bytes;

		if (p->proto == IPV6_EXT_FRAGMENT) {
			if (lacks(c, 8))
				return PKT_ERR_IP;
			bytes = 8;
			*fragment = get_be16(c->data + c->off + 2) & 0xfff9;
		} else if (p->proto == IPV6_EXT_HOP || p->proto == IPV6_EXT_ROUTING ||
			   p->proto == IPV6_EXT_DST) {
			if (lacks(c, 8))
				return PKT_ERR_IP;
			bytes = (c->data[c->off + 1] + 1u) * 8;
		} else {
			return PKT_OK;
		}
		if (lacks(c, bytes))
			return PKT_ERR_IP;
		p->proto = c->data[c->off];
		c->off += bytes;
		if (*fragment)
			return PKT_OK;
	}
	return PKT_ERR_IP;
}

static enum pkt_error parse_ipv6(struct cursor *c, struct pkt *p)
{
	if (lacks(c, IPV6_HEADER_BYTES))
		return PKT_ERR_IP;
	const uint8_t *ip = c->data + c->off;
	uint32_t total = IPV6_HEADER_BYTES + get_be16(ip + 4);

	if (ip[0] >> 4 != 6 || c->off + total > c->end)
		return PKT_ERR_IP;
	p->ip_version = 6;
	p->dscp = ip_dscp(ip);
	p->ecn = (uint8_t)ip_ecn(ip);
	p->ttl = ip[7];
	p->proto = ip[6];
	p->addr_bytes = 16;
	p->src_off = (uint16_t)(c->off + 8);
	p->dst_off = (uint16_t)(c->off + 24);
	p->end = (uint16_t)(c->off + total);

	bool fragment = false;
	enclose(c, total);
	c->off += IPV6_HEADER_BYTES;
	enum pkt_error err = skip_ipv6_exts(c, p, &fragment);
	return err != PKT_OK ? err : parse_l4(c, p, fragment);
}

// RoCEv1: a GRH, shaped like an IPv6 header, then the BTH.
static enum pkt_error parse_roce1(struct cursor *c, struct pkt *p)
{
	p->kind = PKT_ROCE1;
	if (lacks(c, GRH_BYTES))
		return PKT_ERR_BTH;
	const uint8_t *grh = c->data + c->off;
	uint32_t total = GRH_BYTES + get_be16(grh + 4);

	if (grh[0] >> 4 != 6 || grh[6] != GRH_NEXT_BTH || c->off + total > c->end)
		return PKT_ERR_BTH;
	p->dscp = ip_dscp(grh);
	p->ttl = grh[7];
	p->proto = grh[6];
	p->addr_bytes = 16;
	p->src_off = (uint16_t)(c->off + 8);
	p->dst_off = (uint16_t)(c->off + 24);
	p->end = (uint16_t)(c->off + total);
	enclose(c, total);
	c->off += GRH_BYTES;
	return parse_bth(c, p);
}

static enum pkt_error parse_arp(struct cursor *c, struct pkt *p)
{
	static const uint8_t ethernet_ipv4[6] = {0, 1, 8, 0, 6, 4};

	p->kind = PKT_ARP;
	if (lacks(c, ARP_BYTES) || memcmp(c->data + c->off, ethernet_ipv4, 6) != 0)
		return PKT_ERR_ETH;
	p->end = (uint16_t)(c->off + ARP_BYTES);
	return PKT_OK;
}

static enum pkt_error parse_control(struct cursor *c, struct pkt *p)
{
	if (lacks(c, 2))
		return PKT_ERR_CONTROL;
	uint32_t bytes;
	switch (get_be16(c->data + c->off)) {
	case MAC_OP_PFC:
		p->kind = PKT_PFC;
		bytes = 4 + 2 * PFC_CLASSES;
		break;
	case MAC_OP_PAUSE:
		p->kind = PKT_PAUSE;
		bytes = 4;
		break;
	default:
		return PKT_ERR_CONTROL;
	}
	if (lacks(c, bytes))
		return PKT_ERR_CONTROL;
	p->end = (uint16_t)(c->off + bytes);
	return PKT_OK;
}

static enum pkt_error parse_eth(struct cursor *c, struct pkt *p)
{
	if (lacks(c, ETH_HEADER_BYTES))
		return PKT_ERR_ETH;
	c->off = ETH_HEADER_BYTES;
	p->ethertype = get_be16(c->data + 12);
	while (p->ethertype == ETHERTYPE_VLAN || p->ethertype == ETHERTYPE_QINQ) {
		if (p->n_tags == MAX_TAGS || lacks(c, VLAN_TAG_BYTES))
			return PKT_ERR_ETH;
		if (p->n_tags++ == 0)
			p->vlan_tci = get_be16(c->data + c->off);
		p->ethertype = get_be16(c->data + c->off + 2);
		c->off += VLAN_TAG_BYTES;
	}
	p->l3_off = (uint16_t)c->off;
	return PKT_OK;
}

// The shape of nearly all frames in one step: untagged, IPv4 without options or fragments, RoCEv2,
// nothing wrong. Half the instructions of the walk. False: not that shape, and the walk finds out
// what it is.
static bool parse_usual(const uint8_t *data, uint32_t have, uint32_t len, struct pkt *p)
{
	enum {
		IP = ETH_HEADER_BYTES,
		UDP = IP + IPV4_HEADER_BYTES,
		BTH = UDP + UDP_HEADER_BYTES,
	};

	if (have < BTH + BTH_BYTES || get_be16(data + 12) != ETHERTYPE_IPV4 || data[IP] != 0x45 ||
		data[IP + 9] != IP_PROTO_UDP || get_be16(data + UDP + 2) != ROCE_UDP_PORT)
		return false;
	uint32_t total = get_be16(data + IP + 2), end = IP + total;
	uint32_t w0 = get_be32(data + BTH), w1 = get_be32(data + BTH + 4),
		 w2 = get_be32(data + BTH + 8);
	uint32_t pad = w0 >> 20 & 3;
	uint32_t payload = BTH + roce_header_bytes((uint8_t)(w0 >> 24));
	bool wrong = (end > len) |
		     (total != get_be16(data + UDP + 4) + (uint32_t)IPV4_HEADER_BYTES) |
		     ((get_be16(data + IP + 6) & IPV4_FRAGMENT_MASK) != 0) |
		     ((w0 & BTH_TVER_MASK) != 0) | (payload > have) |
		     (payload + pad + ICRC_BYTES > end) |
		     (ipv4_header_sum(data + IP, IPV4_HEADER_BYTES) != 0xffff);
	if (wrong)
		return false;

	*p = (struct pkt){
		.data = data,
		.l3_off = IP,
		.l4_off = UDP,
		.bth_off = BTH,
		.payload_off = (uint16_t)payload,
		.payload_len = (uint16_t)(end - payload - pad - ICRC_BYTES),
		.end = (uint16_t)end,
		.ethertype = ETHERTYPE_IPV4,
		.ip_version = 4,
		.dscp = data[IP + 1] >> 2,
		.ecn = data[IP + 1] & 3,
		.ttl = data[IP + 8],
		.proto = IP_PROTO_UDP,
		.addr_bytes = 4,
		.src_off = IP + 12,
		.dst_off = IP + 16,
		.sport = get_be16(data + UDP),
		.dport = ROCE_UDP_PORT,
		.psn = w2 & PSN_MASK,
		.dest_qp = w1 & QPN_MASK,
		.pkey = (uint16_t)w0,
		.opcode = (uint8_t)(w0 >> 24),
		.pad = (uint8_t)pad,
		.se = w0 >> 23 & 1,
		.ack_req = w2 >> 31,
		.fecn = w1 >> 31,
		.becn = w1 >> 30 & 1,
	};
	return true;
}

enum pkt_error pkt_parse_head(const uint8_t *data, uint32_t have, uint32_t len, struct pkt *p)
{
	struct cursor c = {.data = data, .end = len, .limit = have < len ? have : len};

	if (len <= UINT16_MAX && parse_usual(data, c.limit, len, p))
		return PKT_OK;
	*p = (struct pkt){.data = data, .end = (uint16_t)len};
	if (len > UINT16_MAX)
		return PKT_ERR_ETH;
	enum pkt_error err = parse_eth(&c, p);
	if (err != PKT_OK)
		return err;
	switch (p->ethertype) {
	case ETHERTYPE_IPV4:
		return parse_ipv4(&c, p);
	case ETHERTYPE_IPV6:
		return parse_ipv6(&c, p);
	case ETHERTYPE_ARP:
		return parse_arp(&c, p);
	case ETHERTYPE_CONTROL:
		return parse_control(&c, p);
	case ETHERTYPE_ROCE1:
		return parse_roce1(&c, p);
	default:
		return PKT_ERR_ETH;
	}
}

enum pkt_error pkt_parse(const uint8_t *data, uint32_t len, struct pkt *out)
{
	return pkt_parse_head(data, len, len, out);
}

const char *pkt_error_name(enum pkt_error err)
{
	static const char *const names[] = {[PKT_OK] = "ok",
#define X(id, drop) [PKT_ERR_##id] = #drop,
		PKT_ERRORS(X)
#undef X
	};

	return (unsigned)err < sizeof(names) / sizeof(names[0]) ? names[err] : NULL;
}
