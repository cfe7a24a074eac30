/* SPDX-License-Identifier: BSD-3-Clause */
// From a bit error rate to lost frames (IEEE 802.3 clauses 91 and 134).
//
// RS(n, 514) over 10-bit symbols corrects t = (n - 514) / 2 symbols of a codeword: t = 15 for
// RS(544,514), 7 for RS(528,514). With independent bit errors of rate b before correction
//
//	symbol error     s = 1 - (1-b)^10
//	codeword error   P = sum over i = t+1 .. n of C(n,i) s^i (1-s)^(n-i)
//
// A codeword that cannot be corrected spoils every frame that has a byte in it, so a frame that
// touches m codewords is lost with 1 - (1-P)^m. The stream of a lane never stops (idle fills it),
// so where a frame's bytes lie in it follows from when it was sent, and whether codeword number c
// is bad is a hash of the lane's seed and c: neighbours share the fate of the codeword they share,
// and nothing needs to be kept. Without FEC the same is done byte by byte, P = 1 - (1-b)^8.
//
// Invariants: only +, -, *, / of IEEE doubles, in one order, without contraction into fused
// operations (meson.build), no libm: the same probability on every machine.
//
// Simplified: bit errors are independent (no bursts of a DFE), codewords are not interleaved (from
// 200 Gb/s on two are, which halves what a burst does and changes nothing for independent errors),
// and miscorrection (1/t! of the uncorrectable) counts as detected.

#include "models/fec.h"

#include <stddef.h>

#include "emu/core/rng.h"

#define SYMBOL_BITS 10

static const struct {
	const char *name;
	int n, k;
} codes[] = {
#define X(id, name, n, k) [FEC_##id] = {name, n, k},
	FEC_CODES(X)
#undef X
};

const char *fec_name(enum fec_code code)
{
	return code < FEC_CODE_COUNT ? codes[code].name : NULL;
}

// 1 - (1-b)^n without cancellation, by squaring.
static double any_of(double b, uint32_t n)
{
	double p = 0;

	for (; n != 0; n >>= 1, b = b + b * (1 - b))
		if (n & 1)
			p = p + b * (1 - p);
	return p;
}

static uint64_t to_q64(double p)
{
	return p >= 1 ? UINT64_MAX : (uint64_t)(p * 18446744073709551616.0);
}

static uint64_t draw(const struct fec *f, uint64_t number)
{
	return mix64(f->seed ^ mix64(number + UINT64_C(0x9e3779b97f4a7c15)));
}

static double power(double x, int n)
{
	double p = 1;

	for (int i = 0; i < n; i++)
		p = p * x;
	return p;
}

double fec_codeword_error(enum fec_code code, double ber)
{
	int n = codes[code].n, first = (n - codes[code].k) / 2 + 1;

	if (code == FEC_NONE)
		return any_of(ber, 8);
	double s = any_of(ber, SYMBOL_BITS);
	if (s <= 0 || s >= 1)
		return s <= 0 ? 0 : 1;
	// The terms of fewer errors; summing up the tail directly keeps small results exact.
	double term = power(1 - s, n), below = term, ratio = s / (1 - s), tail = 0;
	if (term <= 0)
		return 1; // (1-s)^n underflows only where nothing can be corrected
	for (int i = 1; i <= n; i++) {
		term = term * (n - i + 1) / i * ratio;
		if (i < first)
			below = below + term;
		else
			tail = tail + term;
	}
	return tail < 0.5 ? tail : 1 - below;
}

void fec_init(struct fec *f, enum fec_code code, double ber, uint64_t seed)
{
	double p = fec_codeword_error(code, ber);

	*f = (struct fec){
		.on = p > 0, .code = (uint8_t)code, .seed = seed, .p = p, .p_q64 = to_q64(p)};
}

bool fec_damaged(const struct fec *f, uint64_t pos, uint32_t bytes)
{
	if (f->code == FEC_NONE)
		return draw(f, pos) < to_q64(any_of(f->p, bytes));

	uint64_t last = (pos + bytes - 1) / FEC_CODEWORD_BYTES;
	for (uint64_t c = pos / FEC_CODEWORD_BYTES; c <= last; c++)
		if (draw(f, c) < f->p_q64)
			return true;
	return false;
}
