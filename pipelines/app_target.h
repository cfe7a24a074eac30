/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// What a target and its initiators agree on. Needs nothing but the C library: the program that
// plays either part on real verbs (tests/guest/verbs_peer.c) includes it too.
//
// The target accepts with 16 bytes of private data: be64 address, be32 rkey, be32 length of its
// memory, which may be READ, written and used for atomics:
//
//	0    word FETCH_ADD goes to, 0 when a connection begins
//	8    word CMP_SWAP goes to, 0 when a connection begins
//	64   data for WRITE and READ, `size` bytes
//
// It answers each SEND, with or without immediate data, with the same. The initiator ends the
// connection. In round n (from 0), one after the other:
//
//	WRITE a pattern, READ it back                                   the same
//	FETCH_ADD n + 1                                                 returns 1 + .. + n
//	CMP_SWAP compare = swapped before, swap = target_swap(n)        returns what was before
//	CMP_SWAP compare = a value that is not there                    returns what is there
//	SEND another pattern (odd rounds: with immediate data n)        the same comes back

#include <stdint.h>

#define TARGET_GREETING_BYTES 16
#define TARGET_ADD_AT         0
#define TARGET_SWAP_AT        8
#define TARGET_DATA_AT        64
#define TARGET_ECHOES         8 // SENDs a target can take before it has answered the first

enum target_pattern { TARGET_WRITTEN, TARGET_SENT };

// Byte i of the pattern of a round. No two rounds, and no two places 256 apart, look alike.
static inline uint8_t target_byte(enum target_pattern what, uint32_t round, uint32_t i)
{
	return (uint8_t)(17 * round + 101 * (uint32_t)what + i + 7 * (i >> 8) + 3 * (i >> 16));
}

static inline void target_fill(uint8_t *bytes, uint32_t n, enum target_pattern what, uint32_t round)
{
	for (uint32_t i = 0; i < n; i++)
		bytes[i] = target_byte(what, round, i);
}

// The first byte that is wrong, n when none is.
static inline uint32_t target_check(
	const uint8_t *bytes, uint32_t n, enum target_pattern what, uint32_t round)
{
	for (uint32_t i = 0; i < n; i++)
		if (bytes[i] != target_byte(what, round, i))
			return i;
	return n;
}

// What FETCH_ADD returns in a round: 1 + 2 + .. + round.
static inline uint64_t target_sum(uint32_t round)
{
	return (uint64_t)round * (round + 1) / 2;
}

// What is swapped in in a round.
static inline uint64_t target_swap(uint32_t round)
{
	return UINT64_C(0x0123456789abcdef) * (round + 1);
}
