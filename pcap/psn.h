/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Packet sequence numbers: 24 bits, compared as in a circle (IBTA vol. 1, 9.7.2). Of two PSNs
// less than 2^23 apart the order is known.

#include <stdint.h>

#include "pcap/wire.h"

#define PSN_HALF (UINT32_C(1) << 23)

// a + n modulo 2^24.
static inline uint32_t psn_add(uint32_t a, uint64_t n)
{
	return (uint32_t)(a + n) & PSN_MASK;
}

// How far a is after b: -2^23 .. 2^23 - 1.
static inline int32_t psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}
