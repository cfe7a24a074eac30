/* SPDX-License-Identifier: BSD-3-Clause */
// The 5-tuple hash of the whole fabric. Senders compute it from their tuple, switches from the
// bytes; both must agree, so there is one definition. Per-switch seeds are the switch's business
// (it mixes this value with its own).
#include "pcap/codec.h"

// The SplitMix64 finaliser, as in emu/core/rng.h (which this layer may not include).
static inline uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static inline uint32_t finish(uint64_t h, uint16_t sport, uint16_t dport, uint8_t proto)
{
	h = mix(h ^ ((uint64_t)sport << 48 | (uint64_t)dport << 32 | proto));
	return (uint32_t)(h ^ (h >> 32));
}

uint32_t flow_hash_v4(uint32_t src, uint32_t dst, uint16_t sport, uint16_t dport, uint8_t proto)
{
	return finish(mix((uint64_t)src << 32 | dst), sport, dport, proto);
}

uint32_t flow_hash_v6(
	const uint8_t src[16], const uint8_t dst[16], uint16_t sport, uint16_t dport, uint8_t proto)
{
	uint64_t h = mix(get_be64(src) + UINT64_C(0x9e3779b97f4a7c15));

	h = mix(h ^ get_be64(src + 8));
	h = mix(h ^ get_be64(dst));
	h = mix(h ^ get_be64(dst + 8));
	return finish(h, sport, dport, proto);
}

uint32_t pkt_flow_hash(const struct pkt *p)
{
	const uint8_t *src = p->data + p->src_off;
	const uint8_t *dst = p->data + p->dst_off;
	uint8_t proto = p->l4_off ? p->proto : 0;

	switch (p->addr_bytes) {
	case 4:
		return flow_hash_v4(get_be32(src), get_be32(dst), p->sport, p->dport, proto);
	case 16:
		return flow_hash_v6(src, dst, p->sport, p->dport, proto);
	default:
		return 0;
	}
}
