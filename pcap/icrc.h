/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// The invariant CRC of RoCE packets: what stays the same from end to end, whatever switches do to
// TTL, ECN and DSCP on the way.

#include <stdbool.h>
#include <stdint.h>

#include "pcap/codec.h"

// ICRC of a whole packet: `l3_off` is where its IP header (or GRH) starts, `bth_off` its BTH, `end`
// where its ICRC is or will be stored. All bytes before `end` must be there.
uint32_t icrc_compute(const uint8_t *frame, unsigned l3_off, unsigned bth_off, unsigned end);

// The same in pieces: headers up to `head_end` (behind the last extension header), then payload and
// pad in any number of pieces, then the value.
uint32_t icrc_begin(const uint8_t *frame, unsigned l3_off, unsigned bth_off, unsigned head_end);
uint32_t icrc_update(uint32_t state, const uint8_t *bytes, size_t n);
static inline uint32_t icrc_end(uint32_t state)
{
	return ~state;
}

// On the wire the ICRC is little-endian.
static inline void icrc_put(uint8_t *p, uint32_t icrc)
{
	put_le32(p, icrc);
}

// Whether the ICRC of a parsed packet (bth_off != 0, all its bytes there) is right.
static inline bool pkt_icrc_valid(const struct pkt *p)
{
	unsigned end = p->end - ICRC_BYTES;

	return icrc_compute(p->data, p->l3_off, p->bth_off, end) == get_le32(p->data + end);
}
