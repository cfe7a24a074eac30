/* SPDX-License-Identifier: BSD-3-Clause */
// Proxy ARP (RFC 1027) and proxy neighbour discovery (RFC 4861 7.2.8): hosts of one subnet sit
// behind routed ports, so the switch answers for every endpoint that is not behind the asking port,
// with that port's own MAC. Nothing is flooded; what is not a question for a known endpoint ends
// here.
//
// A question also tells the asker's MAC; on a port towards a host it becomes the next hop's, so
// that a real endpoint's MAC need not be known beforehand.

#include "pcap/build.h"
#include "pcap/codec.h"
#include "pipelines/ethernet_switch_state.h"

// ARP, RFC 826
#define ARP_REQUEST    1
#define ARP_REPLY      2
#define ARP_OP         6
#define ARP_SENDER_MAC 8
#define ARP_SENDER_IP  14
#define ARP_TARGET_MAC 18
#define ARP_TARGET_IP  24

// Neighbour solicitation and advertisement, RFC 4861 4.3, 4.4, 4.6.1
#define ND_SOLICITATION     135
#define ND_ADVERTISEMENT    136
#define ND_HOP_LIMIT        255
#define ND_TARGET           8
#define ND_OPTIONS          24
#define ND_OPTION_BYTES     8
#define ND_OPT_SOURCE_MAC   1
#define ND_OPT_TARGET_MAC   2
#define NA_SOLICITED        0x40
#define NA_OVERRIDE         0x20
#define NA_BYTES            (ND_OPTIONS + ND_OPTION_BYTES)
#define ICMPV6_CHECKSUM_OFF 2

// The asker may be answered for `endpoint`: it exists and is not reached through the asker's port.
static bool answers_for(const struct ethernet_switch *s, unsigned port, uint32_t endpoint)
{
	const uint16_t *ports;

	if (endpoint == ENDPOINT_NONE)
		return false;
	unsigned n = ecmp_group(&s->ecmp, endpoint, &ports);
	for (unsigned i = 0; i < n; i++)
		if (ports[i] == port)
			return false;
	return true;
}

static void learn(struct ethernet_switch *s, unsigned port, uint32_t asker, const uint8_t mac[6])
{
	if (asker != ENDPOINT_NONE && s->port[port].host_port && !(mac[0] & 1))
		memcpy(s->port[port].macs, mac, 6);
}

static void reply(struct ethernet_switch *s, unsigned port, struct frame *f)
{
	struct switch_port *p = &s->port[port];

	f->head_len = f->len = RTE_MAX(f->len, (uint16_t)ETH_MIN_BYTES);
	f->kind = FRAME_LOCAL;
	frame_queue_push(&p->local, f);
	p->urgent |= URGENT_LOCAL;
	node_want_depart(&s->node, port, s->node.now);
}

// A frame with the request's Ethernet header, tags included, turned round; zero behind it.
static struct frame *new_reply(
	struct ethernet_switch *s, unsigned port, const struct pkt *p, const uint8_t to[6])
{
	struct frame *f = node_new_frame(&s->node, port);

	if (f == NULL)
		return NULL;
	uint8_t *eth = frame_data(f);
	memset(eth, 0, FRAME_HEAD_ROOM);
	memcpy(eth, p->data, p->l3_off);
	memcpy(eth, to, 6);
	memcpy(eth + 6, s->node.ports[port].mac, 6);
	return f;
}

static bool answer_arp(struct ethernet_switch *s, unsigned port, const struct pkt *p)
{
	const uint8_t *q = p->data + p->l3_off;
	const uint8_t *mac = s->node.ports[port].mac;

	if (get_be16(q + ARP_OP) != ARP_REQUEST)
		return false;
	learn(s, port, endpoint_find_ipv4(s->endpoints, q + ARP_SENDER_IP), q + ARP_SENDER_MAC);
	if (!answers_for(s, port, endpoint_find_ipv4(s->endpoints, q + ARP_TARGET_IP)))
		return false;

	struct frame *f = new_reply(s, port, p, q + ARP_SENDER_MAC);
	if (f == NULL)
		return false;
	uint8_t *a = frame_data(f) + p->l3_off;
	memcpy(a, q, ARP_OP);
	put_be16(a + ARP_OP, ARP_REPLY);
	memcpy(a + ARP_SENDER_MAC, mac, 6);
	memcpy(a + ARP_SENDER_IP, q + ARP_TARGET_IP, 4);
	memcpy(a + ARP_TARGET_MAC, q + ARP_SENDER_MAC, 6);
	memcpy(a + ARP_TARGET_IP, q + ARP_SENDER_IP, 4);
	f->len = (uint16_t)(p->l3_off + ARP_BYTES);
	reply(s, port, f);
	return true;
}

// Ones' complement sum over pseudo-header and message (RFC 8200 8.1): 0xffff when right.
static uint16_t icmpv6_sum(const uint8_t *ip, const uint8_t *msg, uint32_t bytes)
{
	uint64_t sum = bytes + IP_PROTO_ICMPV6;

	for (unsigned i = 8; i < IPV6_HEADER_BYTES; i += 2)
		sum += get_be16(ip + i);
	for (uint32_t i = 0; i + 1 < bytes; i += 2)
		sum += get_be16(msg + i);
	if (bytes & 1)
		sum += (uint32_t)msg[bytes - 1] << 8;
	return csum_fold(sum);
}

// The source link-layer address option of a solicitation, NULL if it has none.
static const uint8_t *source_mac(const uint8_t *ns, uint32_t bytes)
{
	uint32_t at = ND_OPTIONS;

	while (at + ND_OPTION_BYTES <= bytes && ns[at + 1] != 0) {
		if (ns[at] == ND_OPT_SOURCE_MAC)
			return ns + at + 2;
		at += ns[at + 1] * ND_OPTION_BYTES;
	}
	return NULL;
}

static struct frame *advertisement(
	struct ethernet_switch *s, unsigned port, const struct pkt *p, const uint8_t to[6])
{
	const uint8_t *ip = p->data + p->l3_off;
	const uint8_t *target = p->data + p->l4_off + ND_TARGET;
	struct frame *f = new_reply(s, port, p, to);

	if (f == NULL)
		return NULL;
	uint8_t *rip = frame_data(f) + p->l3_off;
	uint8_t *na = ipv6_put(rip, 0, 0, NA_BYTES, IP_PROTO_ICMPV6, ND_HOP_LIMIT, target, ip + 8);
	na[0] = ND_ADVERTISEMENT;
	na[4] = NA_SOLICITED | NA_OVERRIDE;
	memcpy(na + ND_TARGET, target, 16);
	na[ND_OPTIONS] = ND_OPT_TARGET_MAC;
	na[ND_OPTIONS + 1] = 1;
	memcpy(na + ND_OPTIONS + 2, s->node.ports[port].mac, 6);
	put_be16(na + ICMPV6_CHECKSUM_OFF, (uint16_t)~icmpv6_sum(rip, na, NA_BYTES));
	f->len = (uint16_t)(p->l3_off + IPV6_HEADER_BYTES + NA_BYTES);
	return f;
}

static bool answer_nd(struct ethernet_switch *s, unsigned port, const struct pkt *p)
{
	static const uint8_t unspecified[16] = {0};
	const uint8_t *ip = p->data + p->l3_off;
	const uint8_t *ns = p->data + p->l4_off;
	uint32_t bytes = (uint32_t)(p->end - p->l4_off);

	// RFC 4861 7.1.1, and the owner's own duplicate address detection is not to be answered.
	if (ns[0] != ND_SOLICITATION || ip[7] != ND_HOP_LIMIT || bytes < ND_OPTIONS ||
		icmpv6_sum(ip, ns, bytes) != 0xffff || memcmp(ip + 8, unspecified, 16) == 0)
		return false;
	const uint8_t *mac = source_mac(ns, bytes);
	if (mac == NULL)
		mac = p->data + 6;
	learn(s, port, endpoint_find_ipv6(s->endpoints, ip + 8), mac);
	if (!answers_for(s, port, endpoint_find_ipv6(s->endpoints, ns + ND_TARGET)))
		return false;
	struct frame *f = advertisement(s, port, p, mac);
	if (f == NULL)
		return false;
	reply(s, port, f);
	return true;
}

void switch_local(struct ethernet_switch *s, unsigned port, struct frame *f)
{
	struct pkt p;
	bool answered = false;

	// Complete frames only: a synthetic payload never hides in ARP or ND.
	if (pkt_parse(frame_data(f), RTE_MIN(f->head_len, f->len), &p) == PKT_OK)
		answered = p.kind == PKT_ARP ? answer_arp(s, port, &p)
			   : p.ip_version == 6 && p.l4_off != 0 && p.end > p.l4_off
				   ? answer_nd(s, port, &p)
				   : false;
	if (answered)
		node_consume(&s->node, port, f);
	else
		node_drop(&s->node, port, f, DROP_NOT_ROUTABLE);
}
