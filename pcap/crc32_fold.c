/* SPDX-License-Identifier: BSD-3-Clause */
// CRC-32 by carry-less multiplication (Gopal et al., "Fast CRC Computation for Generic Polynomials
// Using PCLMULQDQ Instruction", Intel 2009): a message is a polynomial over GF(2), and 128 bits of
// it can be moved 512 or 128 bits nearer to its end by two multiplications with constants x^n mod
// P. So four 128-bit pieces advance in parallel, are folded into one, that into 64 bits, and
// Barrett's reduction leaves 32. Constants are those of the reflected polynomial 0xedb88320, from
// the paper.
#include "pcap/crc32_fold.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__((target("pclmul,sse4.1")))
#define PIECES 4 // folded in parallel
#define PIECE  16

// Low half, high half.
static const uint64_t by_512[2] = {0x0154442bd4, 0x01c6e41596};
static const uint64_t by_128[2] = {0x01751997d0, 0x00ccaa009e};
static const uint64_t by_64[2] = {0x0163cd6124, 0};
static const uint64_t reduce[2] = {0x01db710641, 0x01f7011641}; // P, floor(x^64 / P)

bool crc32_fold_possible(void)
{
	__builtin_cpu_init();
	return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
}

static inline TARGET __m128i load(const void *p)
{
	return _mm_loadu_si128((const __m128i *)p);
}

// Moves `x` over the distance of `k` and adds what is there.
static inline TARGET __m128i fold(__m128i x, __m128i k, __m128i there)
{
	__m128i low = _mm_clmulepi64_si128(x, k, 0x00), high = _mm_clmulepi64_si128(x, k, 0x11);

	return _mm_xor_si128(_mm_xor_si128(low, high), there);
}

static inline TARGET uint32_t reduce_128(__m128i x, __m128i k)
{
	const __m128i words = _mm_setr_epi32(-1, 0, -1, 0);
	__m128i y = _mm_clmulepi64_si128(x, k, 0x10);

	x = _mm_xor_si128(_mm_srli_si128(x, 8), y); // 128 to 96 bits
	y = _mm_srli_si128(x, 4);
	x = _mm_clmulepi64_si128(_mm_and_si128(x, words), load(by_64), 0x00);
	x = _mm_xor_si128(x, y); // to 64
	y = _mm_clmulepi64_si128(_mm_and_si128(x, words), load(reduce), 0x10);
	y = _mm_clmulepi64_si128(_mm_and_si128(y, words), load(reduce), 0x00);
	return (uint32_t)_mm_extract_epi32(_mm_xor_si128(x, y), 1);
}

TARGET uint32_t crc32_fold(uint32_t crc, const uint8_t *p, size_t n)
{
	__m128i x[PIECES], k = load(by_512);

	for (int i = 0; i < PIECES; i++)
		x[i] = load(p + PIECE * i);
	x[0] = _mm_xor_si128(x[0], _mm_cvtsi32_si128((int)crc));
	for (p += PIECES * PIECE, n -= PIECES * PIECE; n >= PIECES * PIECE;
		p += PIECES * PIECE, n -= PIECES * PIECE)
		for (int i = 0; i < PIECES; i++)
			x[i] = fold(x[i], k, load(p + PIECE * i));
	k = load(by_128);
	for (int i = 1; i < PIECES; i++)
		x[0] = fold(x[0], k, x[i]);
	for (; n >= PIECE; p += PIECE, n -= PIECE)
		x[0] = fold(x[0], k, load(p));
	return reduce_128(x[0], k);
}

#else

bool crc32_fold_possible(void)
{
	return false;
}

uint32_t crc32_fold(uint32_t crc, const uint8_t *p, size_t n)
{
	return crc; // not called
}

#endif
