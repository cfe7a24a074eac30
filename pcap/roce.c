/* SPDX-License-Identifier: BSD-3-Clause */
#include "pcap/roce.h"

// Header lengths by id, as constants the table below can be computed from.
enum {
#define X(id, bytes) EXT_BYTES_##id = (bytes),
	ROCE_EXTS(X)
#undef X
};

#define HAS(id)    (1u << ROCE_EXT_##id)
#define LEN(m, id) (((m)&HAS(id)) ? EXT_BYTES_##id : 0)

// Bytes of the headers in mask m that precede extension `id` on the wire, BTH included.
#define BEFORE_RDETH(m)      BTH_BYTES
#define BEFORE_DETH(m)       (BEFORE_RDETH(m) + LEN(m, RDETH))
#define BEFORE_XRCETH(m)     (BEFORE_DETH(m) + LEN(m, DETH))
#define BEFORE_RETH(m)       (BEFORE_XRCETH(m) + LEN(m, XRCETH))
#define BEFORE_ATOMIC(m)     (BEFORE_RETH(m) + LEN(m, RETH))
#define BEFORE_AETH(m)       (BEFORE_ATOMIC(m) + LEN(m, ATOMIC))
#define BEFORE_ATOMIC_ACK(m) (BEFORE_AETH(m) + LEN(m, AETH))
#define BEFORE_IMM(m)        (BEFORE_ATOMIC_ACK(m) + LEN(m, ATOMIC_ACK))
#define BEFORE_IETH(m)       (BEFORE_IMM(m) + LEN(m, IMM))
#define BEFORE_CNP(m)        (BEFORE_IETH(m) + LEN(m, IETH))
#define ALL(m)               (BEFORE_CNP(m) + LEN(m, CNP))

#define AT(m, id) [ROCE_EXT_##id] = ((m)&HAS(id)) ? BEFORE_##id(m) : 0

#define ENTRY(opcode, text, m, pay)                                                           \
	[opcode] = {                                                                          \
		.name = (text),                                                               \
		.header_bytes = ALL(m),                                                       \
		.payload = (pay),                                                             \
		.ext = {AT(m, RDETH), AT(m, DETH), AT(m, XRCETH), AT(m, RETH), AT(m, ATOMIC), \
			AT(m, AETH), AT(m, ATOMIC_ACK), AT(m, IMM), AT(m, IETH), AT(m, CNP)}, \
	}

// Operations by transport; `p` are the headers that come first in every request (q) or
// response (r) of the transport.
#define SENDS(t, p)                                                             \
	ENTRY(ROCE_##t | ROCE_SEND_FIRST, #t " SEND_FIRST", p, true),           \
		ENTRY(ROCE_##t | ROCE_SEND_MIDDLE, #t " SEND_MIDDLE", p, true), \
		ENTRY(ROCE_##t | ROCE_SEND_LAST, #t " SEND_LAST", p, true),     \
		ENTRY(ROCE_##t | ROCE_SEND_LAST_IMM, #t " SEND_LAST_IMM", (p) | HAS(IMM), true)

#define SEND_ONLYS(t, p)                                            \
	ENTRY(ROCE_##t | ROCE_SEND_ONLY, #t " SEND_ONLY", p, true), \
		ENTRY(ROCE_##t | ROCE_SEND_ONLY_IMM, #t " SEND_ONLY_IMM", (p) | HAS(IMM), true)

#define WRITES(t, p)                                                                               \
	ENTRY(ROCE_##t | ROCE_WRITE_FIRST, #t " WRITE_FIRST", (p) | HAS(RETH), true),              \
		ENTRY(ROCE_##t | ROCE_WRITE_MIDDLE, #t " WRITE_MIDDLE", p, true),                  \
		ENTRY(ROCE_##t | ROCE_WRITE_LAST, #t " WRITE_LAST", p, true),                      \
		ENTRY(ROCE_##t | ROCE_WRITE_LAST_IMM, #t " WRITE_LAST_IMM", (p) | HAS(IMM), true), \
		ENTRY(ROCE_##t | ROCE_WRITE_ONLY, #t " WRITE_ONLY", (p) | HAS(RETH), true),        \
		ENTRY(ROCE_##t | ROCE_WRITE_ONLY_IMM, #t " WRITE_ONLY_IMM",                        \
			(p) | HAS(RETH) | HAS(IMM), true)

#define READS_AND_ATOMICS(t, q, r)                                                                 \
	ENTRY(ROCE_##t | ROCE_READ_REQUEST, #t " READ_REQUEST", (q) | HAS(RETH), false),           \
		ENTRY(ROCE_##t | ROCE_READ_RESP_FIRST, #t " READ_RESPONSE_FIRST", (r) | HAS(AETH), \
			true),                                                                     \
		ENTRY(ROCE_##t | ROCE_READ_RESP_MIDDLE, #t " READ_RESPONSE_MIDDLE", r, true),      \
		ENTRY(ROCE_##t | ROCE_READ_RESP_LAST, #t " READ_RESPONSE_LAST", (r) | HAS(AETH),   \
			true),                                                                     \
		ENTRY(ROCE_##t | ROCE_READ_RESP_ONLY, #t " READ_RESPONSE_ONLY", (r) | HAS(AETH),   \
			true),                                                                     \
		ENTRY(ROCE_##t | ROCE_ACK, #t " ACKNOWLEDGE", (r) | HAS(AETH), false),             \
		ENTRY(ROCE_##t | ROCE_ATOMIC_ACK, #t " ATOMIC_ACKNOWLEDGE",                        \
			(r) | HAS(AETH) | HAS(ATOMIC_ACK), false),                                 \
		ENTRY(ROCE_##t | ROCE_CMP_SWAP, #t " COMPARE_SWAP", (q) | HAS(ATOMIC), false),     \
		ENTRY(ROCE_##t | ROCE_FETCH_ADD, #t " FETCH_ADD", (q) | HAS(ATOMIC), false)

#define SEND_INVALIDATES(t, p)                                                            \
	ENTRY(ROCE_##t | ROCE_SEND_LAST_INV, #t " SEND_LAST_INV", (p) | HAS(IETH), true), \
		ENTRY(ROCE_##t | ROCE_SEND_ONLY_INV, #t " SEND_ONLY_INV", (p) | HAS(IETH), true)

#define RD_REQ (HAS(RDETH) | HAS(DETH))

// An opcode nobody defined is all payload after its BTH. The defined ones override that default.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
#ifdef __clang__
#pragma GCC diagnostic ignored "-Winitializer-overrides"
#endif
const struct roce_opcode roce_opcodes[256] = {
	[0 ... 255] = {.header_bytes = BTH_BYTES, .payload = true},
	SENDS(RC, 0),
	SEND_ONLYS(RC, 0),
	WRITES(RC, 0),
	READS_AND_ATOMICS(RC, 0, 0),
	SEND_INVALIDATES(RC, 0),
	SENDS(UC, 0),
	SEND_ONLYS(UC, 0),
	WRITES(UC, 0),
	SENDS(RD, RD_REQ),
	SEND_ONLYS(RD, RD_REQ),
	WRITES(RD, RD_REQ),
	READS_AND_ATOMICS(RD, RD_REQ, HAS(RDETH)),
	ENTRY(ROCE_RD | ROCE_RESYNC, "RD RESYNC", RD_REQ, false),
	SEND_ONLYS(UD, HAS(DETH)),
	ENTRY(ROCE_OP_CNP, "CNP", HAS(CNP), false),
	SENDS(XRC, HAS(XRCETH)),
	SEND_ONLYS(XRC, HAS(XRCETH)),
	WRITES(XRC, HAS(XRCETH)),
	READS_AND_ATOMICS(XRC, HAS(XRCETH), 0),
	SEND_INVALIDATES(XRC, HAS(XRCETH)),
};
#pragma GCC diagnostic pop

void roce_sack_put(uint8_t out[ROCE_SACK_BYTES], const struct roce_sack *s)
{
	put_be32(out, (uint32_t)ROCE_SACK_KIND << 24 | s->top);
	put_be64(out + 4, s->bitmap);
}

bool roce_sack_get(const uint8_t *in, uint32_t bytes, struct roce_sack *out)
{
	if (bytes != ROCE_SACK_BYTES || in[0] != ROCE_SACK_KIND)
		return false;
	out->top = get_be24(in + 1);
	out->bitmap = get_be64(in + 4);
	return true;
}
