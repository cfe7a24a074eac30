/* SPDX-License-Identifier: BSD-3-Clause */
// IBTA vol. 1, 7.8.1 and annexes A16.5, A17.3.3. CRC-32 of Ethernet (reflected polynomial
// 0xedb88320, initially all ones, complemented) over:
//
//	8 bytes of ones, standing for the LRH | IP header or GRH | UDP header | BTH | extension
//	headers | payload | pad
//
// with these fields replaced by ones: IPv4 TOS, TTL, checksum; IPv6 and GRH traffic class, flow
// label, hop limit; UDP checksum; BTH FECN, BECN and the six reserved bits beside them.
//
// The CRC is computed 16 bytes at a time from 16 tables (Kounavis and Berry, "Novel table lookup-
// based algorithms for high-performance CRC generation", 2008): T[k][b] is the CRC of byte b with k
// zero bytes behind it. Where the processor multiplies without carries, long pieces go through
// pcap/crc32_fold.c, which is several times as fast.
#include "pcap/icrc.h"

#include "pcap/build.h"
#include "pcap/crc32_fold.h"

#define CRC_POLY   0xedb88320u
#define CRC_SLICES 16
// State after the eight bytes of ones that stand for the LRH.
#define CRC_BEHIND_LRH 0xdebb20e3u

static uint32_t crc_table[CRC_SLICES][256];
static bool crc_folds;

__attribute__((constructor)) static void crc_table_fill(void)
{
	for (uint32_t b = 0; b < 256; b++) {
		uint32_t c = b;
		for (int bit = 0; bit < 8; bit++)
			c = c & 1 ? c >> 1 ^ CRC_POLY : c >> 1;
		crc_table[0][b] = c;
	}
	for (unsigned k = 1; k < CRC_SLICES; k++)
		for (unsigned b = 0; b < 256; b++) {
			uint32_t c = crc_table[k - 1][b];
			crc_table[k][b] = c >> 8 ^ crc_table[0][c & 0xff];
		}
	crc_folds = crc32_fold_possible();
}

static inline uint32_t crc_word(uint32_t w, unsigned behind)
{
	return crc_table[behind + 3][w & 0xff] ^ crc_table[behind + 2][w >> 8 & 0xff] ^
	       crc_table[behind + 1][w >> 16 & 0xff] ^ crc_table[behind][w >> 24];
}

uint32_t icrc_update(uint32_t crc, const uint8_t *p, size_t n)
{
	if (n >= CRC32_FOLD_MIN && crc_folds) {
		size_t folded = n & ~(size_t)(CRC_SLICES - 1);
		crc = crc32_fold(crc, p, folded);
		p += folded;
		n -= folded;
	}
	for (; n >= CRC_SLICES; n -= CRC_SLICES, p += CRC_SLICES)
		crc = crc_word(get_le32(p) ^ crc, 12) ^ crc_word(get_le32(p + 4), 8) ^
		      crc_word(get_le32(p + 8), 4) ^ crc_word(get_le32(p + 12), 0);
	for (; n >= 4; n -= 4, p += 4)
		crc = crc_word(get_le32(p) ^ crc, 0);
	for (; n > 0; n--, p++)
		crc = crc >> 8 ^ crc_table[0][(crc ^ *p) & 0xff];
	return crc;
}

// The fixed IP header or GRH with its variant fields masked; returns its length.
static unsigned masked_l3(const uint8_t *l3, uint8_t out[IPV6_HEADER_BYTES])
{
	if (l3[0] >> 4 == 4) {
		memcpy(out, l3, IPV4_HEADER_BYTES);
		out[1] = out[8] = 0xff;
		out[10] = out[11] = 0xff;
		return IPV4_HEADER_BYTES;
	}
	memcpy(out, l3, IPV6_HEADER_BYTES);
	put_be32(out, get_be32(out) | 0x0fffffff);
	out[7] = 0xff;
	return IPV6_HEADER_BYTES;
}

static bool is_grh(const uint8_t *l3)
{
	return l3[0] >> 4 == 6 && l3[6] == GRH_NEXT_BTH;
}

uint32_t icrc_begin(const uint8_t *frame, unsigned l3_off, unsigned bth_off, unsigned head_end)
{
	const uint8_t *l3 = frame + l3_off;
	uint8_t masked[IPV6_HEADER_BYTES + UDP_HEADER_BYTES + BTH_BYTES];
	unsigned n = masked_l3(l3, masked);
	uint32_t crc = CRC_BEHIND_LRH;

	if (!is_grh(l3)) {
		unsigned udp_off = bth_off - UDP_HEADER_BYTES;
		if (l3_off + n != udp_off) { // IPv4 options or IPv6 extension headers
			crc = icrc_update(crc, masked, n);
			crc = icrc_update(crc, l3 + n, udp_off - l3_off - n);
			n = 0;
		}
		memcpy(masked + n, frame + udp_off, UDP_HEADER_BYTES);
		masked[n + 6] = masked[n + 7] = 0xff;
		n += UDP_HEADER_BYTES;
	}
	memcpy(masked + n, frame + bth_off, BTH_BYTES);
	masked[n + 4] = 0xff;
	crc = icrc_update(crc, masked, n + BTH_BYTES);
	return icrc_update(crc, frame + bth_off + BTH_BYTES, head_end - bth_off - BTH_BYTES);
}

uint32_t icrc_compute(const uint8_t *frame, unsigned l3_off, unsigned bth_off, unsigned end)
{
	return icrc_end(icrc_begin(frame, l3_off, bth_off, end));
}
