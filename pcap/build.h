/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Writing headers, and the changes a switch makes to them. Each `*_put` writes one header at `p`
// and returns the byte behind it; the caller has made sure of the room. Arguments in host order.

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "pcap/wire.h"

static inline uint8_t *eth_put(
	uint8_t *p, const uint8_t dst[6], const uint8_t src[6], uint16_t ethertype)
{
	memcpy(p, dst, 6);
	memcpy(p + 6, src, 6);
	put_be16(p + 12, ethertype);
	return p + ETH_HEADER_BYTES;
}

// A tag to follow an Ethernet header written with ETHERTYPE_VLAN: `ethertype` is what comes next.
static inline uint8_t *vlan_put(uint8_t *p, uint16_t tci, uint16_t ethertype)
{
	put_be16(p, tci);
	put_be16(p + 2, ethertype);
	return p + VLAN_TAG_BYTES;
}

// ---- checksums -------------------------------------------------------------------------------

// Ones' complement sum folded to 16 bits (RFC 1071). `sum` below 2^32.
static inline uint16_t csum_fold(uint64_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

// Sum of a header of `bytes` (multiple of 4, at least 20), checksum field included: 0xffff when it
// is right. Summed in the machine's byte order, to which ones' complement sums are indifferent but
// for a swap of the result.
static inline uint16_t ipv4_header_sum(const uint8_t *ip, unsigned bytes)
{
	uint64_t sum = (uint64_t)get_le32(ip) + get_le32(ip + 4) + get_le32(ip + 8) +
		       get_le32(ip + 12) + get_le32(ip + 16);

	for (unsigned i = IPV4_HEADER_BYTES; __builtin_expect(i < bytes, 0); i += 4)
		sum += get_le32(ip + i);
	sum = (sum & 0xffffffff) + (sum >> 32);
	return csum_fold((sum & 0xffff) + (sum >> 16));
}

static inline void ipv4_set_checksum(uint8_t *ip, unsigned bytes)
{
	ip[10] = ip[11] = 0;
	uint16_t sum = (uint16_t)~ipv4_header_sum(ip, bytes);
	memcpy(ip + 10, &sum, sizeof(sum));
}

// RFC 1624 equation 3, HC' = ~(~HC + ~m + m'): the checksum after the aligned 16-bit word at `off`
// changed to `new` (machine order, as read by memcpy). Never gives the -0 that equation 2 can.
static inline void ipv4_replace_word(uint8_t *ip, unsigned off, uint16_t new_word)
{
	uint16_t old, check;

	memcpy(&old, ip + off, sizeof(old));
	memcpy(&check, ip + 10, sizeof(check));
	memcpy(ip + off, &new_word, sizeof(new_word));
	uint32_t sum = (uint32_t)(uint16_t)~check + (uint16_t)~old + new_word;
	check = (uint16_t)~csum_fold(sum);
	memcpy(ip + 10, &check, sizeof(check));
}

// ---- IP --------------------------------------------------------------------------------------

// An option-less IPv4 header with DF set and a valid checksum. `total_bytes`: header and payload.
static inline uint8_t *ipv4_put(uint8_t *p, uint8_t tos, uint16_t total_bytes, uint16_t id,
	uint8_t ttl, uint8_t proto, uint32_t src, uint32_t dst)
{
	p[0] = 0x45;
	p[1] = tos;
	put_be16(p + 2, total_bytes);
	put_be16(p + 4, id);
	put_be16(p + 6, IPV4_DF);
	p[8] = ttl;
	p[9] = proto;
	put_be32(p + 12, src);
	put_be32(p + 16, dst);
	ipv4_set_checksum(p, IPV4_HEADER_BYTES);
	return p + IPV4_HEADER_BYTES;
}

static inline uint8_t *ipv6_put(uint8_t *p, uint8_t tclass, uint32_t flow_label,
	uint16_t payload_bytes, uint8_t next_header, uint8_t hop_limit, const uint8_t src[16],
	const uint8_t dst[16])
{
	put_be32(p, 6u << 28 | (uint32_t)tclass << 20 | (flow_label & 0xfffff));
	put_be16(p + 4, payload_bytes);
	p[6] = next_header;
	p[7] = hop_limit;
	memcpy(p + 8, src, 16);
	memcpy(p + 24, dst, 16);
	return p + IPV6_HEADER_BYTES;
}

// Takes one from TTL or hop limit, keeping the checksum right; false, and nothing changed, when
// that would reach 0 (RFC 1812 5.3.1: the packet has expired). `ip` starts an IPv4 or IPv6 header.
static inline bool ipv4_decrement_ttl(uint8_t *ip)
{
	uint16_t check;

	if (ip[8] <= 1)
		return false;
	// RFC 1624 equation 3 for a word that falls by one (the TTL is its low byte in machine
	// order): HC' = HC + 1, ones' complement, never -0. Once per packet and hop, so spelt out.
	ip[8]--;
	memcpy(&check, ip + 10, sizeof(check));
	check = (uint16_t)(check + 1 + (check + 1 >= 0xffff));
	memcpy(ip + 10, &check, sizeof(check));
	return true;
}

static inline bool ipv6_decrement_hops(uint8_t *ip)
{
	if (ip[7] <= 1)
		return false;
	ip[7]--;
	return true;
}

static inline bool ip_decrement_ttl(uint8_t *ip)
{
	return ip[0] >> 4 == 4 ? ipv4_decrement_ttl(ip) : ipv6_decrement_hops(ip);
}

// Whole TOS byte of IPv4 or traffic class of IPv6.
static inline uint8_t ip_tos(const uint8_t *ip)
{
	return ip[0] >> 4 == 4 ? ip[1] : (uint8_t)(ip[0] << 4 | ip[1] >> 4);
}

static inline void ip_set_tos(uint8_t *ip, uint8_t tos)
{
	if (ip[0] >> 4 == 4) {
		ipv4_replace_word(ip, 0, (uint16_t)(ip[0] | tos << 8));
	} else {
		ip[0] = (uint8_t)(0x60 | tos >> 4);
		ip[1] = (uint8_t)(tos << 4 | (ip[1] & 0x0f));
	}
}

static inline enum ecn ip_ecn(const uint8_t *ip)
{
	return (enum ecn)(ip_tos(ip) & 3);
}

static inline uint8_t ip_dscp(const uint8_t *ip)
{
	return ip_tos(ip) >> 2;
}

// Marks congestion experienced. The caller has checked that the packet is ECT.
static inline void ip_set_ce(uint8_t *ip)
{
	ip_set_tos(ip, ip_tos(ip) | ECN_CE);
}

// dscp 0..63; ECN stays.
static inline void ip_set_dscp(uint8_t *ip, uint8_t dscp)
{
	ip_set_tos(ip, (uint8_t)(dscp << 2 | (ip_tos(ip) & 3)));
}

// ---- UDP and RoCE ----------------------------------------------------------------------------

// Checksum 0, as RoCEv2 senders do. `bytes`: header and payload.
static inline uint8_t *udp_put(uint8_t *p, uint16_t sport, uint16_t dport, uint16_t bytes)
{
	put_be16(p, sport);
	put_be16(p + 2, dport);
	put_be16(p + 4, bytes);
	put_be16(p + 6, 0);
	return p + UDP_HEADER_BYTES;
}

#define BTH_SE             0x80 // solicited event
#define BTH_MIG            0x40 // migration state: migrated, what rxe and hardware send
#define BTH_PAD(flags_pad) (((flags_pad) >> 4) & 3)
#define BTH_FECN           0x80 // of byte 4
#define BTH_BECN           0x40
#define BTH_ACK_REQ        0x80 // of byte 8

// `flags`: BTH_SE | BTH_MIG; `pad` 0..3 bytes behind the payload; TVer 0, default PKey.
static inline uint8_t *bth_put(uint8_t *p, uint8_t opcode, uint8_t flags, unsigned pad,
	uint32_t dest_qp, bool ack_req, uint32_t psn)
{
	put_be32(p, (uint32_t)opcode << 24 | (uint32_t)(flags | pad << 4) << 16 | BTH_PKEY_DEFAULT);
	put_be32(p + 4, dest_qp & QPN_MASK);
	put_be32(p + 8, (ack_req ? 0x80000000u : 0) | (psn & PSN_MASK));
	return p + BTH_BYTES;
}

static inline uint8_t *reth_put(uint8_t *p, uint64_t va, uint32_t rkey, uint32_t bytes)
{
	put_be64(p, va);
	put_be32(p + 8, rkey);
	put_be32(p + 12, bytes);
	return p + 16;
}

static inline uint8_t *aeth_put(uint8_t *p, uint8_t syndrome, uint32_t msn)
{
	put_be32(p, (uint32_t)syndrome << 24 | (msn & 0xffffff));
	return p + 4;
}

static inline uint8_t *atomiceth_put(
	uint8_t *p, uint64_t va, uint32_t rkey, uint64_t swap_add, uint64_t compare)
{
	put_be64(p, va);
	put_be32(p + 8, rkey);
	put_be64(p + 12, swap_add);
	put_be64(p + 20, compare);
	return p + 28;
}

static inline uint8_t *atomic_ack_put(uint8_t *p, uint64_t original)
{
	put_be64(p, original);
	return p + 8;
}

static inline uint8_t *deth_put(uint8_t *p, uint32_t qkey, uint32_t src_qp)
{
	put_be32(p, qkey);
	put_be32(p + 4, src_qp & QPN_MASK);
	return p + 8;
}

// ImmDt, and IETH (the rkey to invalidate), are four bytes alike.
static inline uint8_t *immdt_put(uint8_t *p, uint32_t value)
{
	put_be32(p, value);
	return p + 4;
}
