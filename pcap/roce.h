/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// RoCE transport headers by opcode (IBTA vol. 1, 9.2 and table 38): one table for NIC, codec,
// materialisation and names.

#include <stdbool.h>
#include <stdint.h>

#include "pcap/wire.h"

// Extension headers in their order on the wire: X(id, bytes).
#define ROCE_EXTS(X)     \
	X(RDETH, 4)      \
	X(DETH, 8)       \
	X(XRCETH, 4)     \
	X(RETH, 16)      \
	X(ATOMIC, 28)    \
	X(AETH, 4)       \
	X(ATOMIC_ACK, 8) \
	X(IMM, 4)        \
	X(IETH, 4)       \
	X(CNP, CNP_RESERVED_BYTES)

enum roce_ext {
#define X(id, bytes) ROCE_EXT_##id,
	ROCE_EXTS(X)
#undef X
		ROCE_EXT_COUNT,
};

enum roce_transport {
	ROCE_RC = 0x00,
	ROCE_UC = 0x20,
	ROCE_RD = 0x40,
	ROCE_UD = 0x60,
	ROCE_CNP_T = 0x80,
	ROCE_XRC = 0xa0,
};

// Operations, the low five bits of an opcode.
enum roce_op {
	ROCE_SEND_FIRST = 0x00,
	ROCE_SEND_MIDDLE,
	ROCE_SEND_LAST,
	ROCE_SEND_LAST_IMM,
	ROCE_SEND_ONLY,
	ROCE_SEND_ONLY_IMM,
	ROCE_WRITE_FIRST,
	ROCE_WRITE_MIDDLE,
	ROCE_WRITE_LAST,
	ROCE_WRITE_LAST_IMM,
	ROCE_WRITE_ONLY,
	ROCE_WRITE_ONLY_IMM,
	ROCE_READ_REQUEST,
	ROCE_READ_RESP_FIRST,
	ROCE_READ_RESP_MIDDLE,
	ROCE_READ_RESP_LAST,
	ROCE_READ_RESP_ONLY,
	ROCE_ACK,
	ROCE_ATOMIC_ACK,
	ROCE_CMP_SWAP,
	ROCE_FETCH_ADD,
	ROCE_RESYNC,
	ROCE_SEND_LAST_INV,
	ROCE_SEND_ONLY_INV,
};

#define ROCE_OP_CNP 0x81 // annex A17.9

struct roce_opcode {
	const char *name;            // NULL: opcode not defined
	uint8_t ext[ROCE_EXT_COUNT]; // offset of the header from the BTH's start, 0 when absent
	uint8_t header_bytes;        // BTH and extension headers
	bool payload;                // may carry payload
};

extern const struct roce_opcode roce_opcodes[256];

// Bytes of BTH and extension headers of an opcode; BTH alone for an undefined one.
static inline unsigned roce_header_bytes(uint8_t opcode)
{
	return roce_opcodes[opcode].header_bytes;
}

// AETH syndrome (IBTA 9.7.5.1.2).
#define AETH_TYPE_MASK       0xe0
#define AETH_ACK             0x00
#define AETH_RNR_NAK         0x20
#define AETH_NAK             0x60
#define AETH_CREDIT_INVALID  0x1f // no end-to-end flow control: "unlimited"
#define AETH_NAK_PSN_SEQ     0x60
#define AETH_NAK_INVALID_REQ 0x61
#define AETH_NAK_REM_ACCESS  0x62
#define AETH_NAK_REM_OP      0x63
#define AETH_NAK_INVALID_RD  0x64

// ---- SACK ------------------------------------------------------------------------------------

// Ours: what of the packets after a gap has arrived, in a NAK for a PSN sequence error of a NIC
// with selective repeat (models/sr.h). It follows the AETH, where the standard has nothing:
//
//	AETH      syndrome 0x60 | MSN
//	          kind 0x53     | PSN of a packet that is there ("top")
//	          bitmap, 64 bit: bit i (0 = lowest) says that PSN top - i is there
//	ICRC      as usual, over all of it
//
// To one who does not know it, it is an acknowledge packet with 12 bytes of payload.
#define ROCE_SACK_BYTES 12
#define ROCE_SACK_KIND  0x53
#define ROCE_SACK_SPAN  64

struct roce_sack {
	uint32_t top;
	uint64_t bitmap;
};

void roce_sack_put(uint8_t out[ROCE_SACK_BYTES], const struct roce_sack *s);
// From the bytes behind an AETH up to the ICRC. False: not a SACK.
bool roce_sack_get(const uint8_t *in, uint32_t bytes, struct roce_sack *out);

// UDP source port of a connection: entropy for ECMP. As rdma_calc_flow_label() and
// rdma_flow_label_to_udp_sport() of Linux's ib_verbs.h.
static inline uint16_t roce_udp_sport(uint32_t local_qpn, uint32_t remote_qpn)
{
	uint64_t v = (uint64_t)local_qpn * remote_qpn;

	v ^= v >> 20;
	v ^= v >> 40;
	uint32_t label = (uint32_t)(v & 0xfffff);
	return (uint16_t)(((label & 0x3fff) ^ (label >> 14)) | ROCE_SPORT_MIN);
}
