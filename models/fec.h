/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// What bit errors on a link do to frames: forward error correction of Ethernet's PCS. See fec.c.

#include <stdbool.h>
#include <stdint.h>

// X(id, name, n, k): Reed-Solomon over 10-bit symbols, n - k = 2t
#define FEC_CODES(X)                                      \
	X(NONE, "none", 0, 0)                             \
	X(RS528, "rs528", 528, 514) /* 802.3 clause 91 */ \
	X(RS544, "rs544", 544, 514) /* 802.3 clause 91, 134 */

enum fec_code {
#define X(id, name, n, k) FEC_##id,
	FEC_CODES(X)
#undef X
		FEC_CODE_COUNT,
};

const char *fec_name(enum fec_code code);

// Bytes of the MAC's stream (preamble, frame, FCS, gap) in a codeword: 514 symbols are 20 blocks of
// 257 bits, each of 4 x 64 bits of data.
#define FEC_CODEWORD_BYTES 640

// Probability that a codeword cannot be corrected (without FEC: that a byte is wrong), for
// independent bit errors of rate `ber` (0..1).
double fec_codeword_error(enum fec_code code, double ber);

struct fec {
	bool on;
	uint8_t code;
	uint64_t seed;
	double p;       // of a codeword; without FEC of a byte
	uint64_t p_q64; // the same
};

void fec_init(struct fec *f, enum fec_code code, double ber, uint64_t seed);

// Are the `bytes` bytes at byte `pos` of the lane's stream damaged beyond repair?
bool fec_damaged(const struct fec *f, uint64_t pos, uint32_t bytes);
