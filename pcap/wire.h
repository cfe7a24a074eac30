/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// What is on the wire: constants with their source, and byte accessors. Everything here works on
// unaligned bytes, so that a header may start anywhere.

#include <stdint.h>
#include <string.h>

// IEEE 802.3, 802.1Q, 802.1Qbb annex 31D
#define ETH_HEADER_BYTES  14
#define VLAN_TAG_BYTES    4
#define ETH_MIN_NO_FCS    60 // shortest frame, FCS not counted
#define ETHERTYPE_MIN     0x0600
#define ETHERTYPE_IPV4    0x0800
#define ETHERTYPE_ARP     0x0806
#define ETHERTYPE_VLAN    0x8100 // customer tag
#define ETHERTYPE_CONTROL 0x8808 // MAC control: PAUSE, PFC
#define ETHERTYPE_IPV6    0x86dd
#define ETHERTYPE_QINQ    0x88a8 // service tag
#define ETHERTYPE_ROCE1   0x8915
#define MAC_OP_PAUSE      0x0001
#define MAC_OP_PFC        0x0101
#define PFC_CLASSES       8

// RFC 791, 8200, 768, 826
#define IPV4_HEADER_BYTES 20
#define IPV6_HEADER_BYTES 40
#define UDP_HEADER_BYTES  8
#define ARP_BYTES         28
#define IP_PROTO_TCP      6
#define IP_PROTO_UDP      17
#define IP_PROTO_ICMPV6   58
#define IPV4_DF           0x4000

// RFC 3168
enum ecn { ECN_NOT_ECT = 0, ECN_ECT1 = 1, ECN_ECT0 = 2, ECN_CE = 3 };

// IBTA vol. 1 chapter 9, annex A16 (RoCE), A17 (RoCEv2)
#define ROCE_UDP_PORT      4791
#define ROCE_SPORT_MIN     0xc000
#define GRH_BYTES          40
#define GRH_NEXT_BTH       0x1b
#define BTH_BYTES          12
#define ICRC_BYTES         4
#define PSN_MASK           0xffffffu
#define QPN_MASK           0xffffffu
#define BTH_PKEY_DEFAULT   0xffff
#define RETH_BYTES         16
#define AETH_BYTES         4
#define CNP_RESERVED_BYTES 16

static inline uint16_t get_be16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap16(v);
}

static inline uint32_t get_be32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap32(v);
}

static inline uint32_t get_be24(const uint8_t *p)
{
	return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

static inline uint64_t get_be64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap64(v);
}

static inline uint32_t get_le32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline void put_be16(uint8_t *p, uint16_t v)
{
	v = __builtin_bswap16(v);
	memcpy(p, &v, sizeof(v));
}

static inline void put_be32(uint8_t *p, uint32_t v)
{
	v = __builtin_bswap32(v);
	memcpy(p, &v, sizeof(v));
}

static inline void put_be64(uint8_t *p, uint64_t v)
{
	v = __builtin_bswap64(v);
	memcpy(p, &v, sizeof(v));
}

static inline void put_le32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, sizeof(v));
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the accessors above assume it");
