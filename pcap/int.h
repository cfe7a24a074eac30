/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// In-band telemetry as HPCC has it (Li et al., "HPCC: High Precision Congestion Control", SIGCOMM
// 2019, figure 7): two bytes and a record of eight per hop, room for five hops from the start so
// that a packet's length stays what it is.
//
//	nHop 4 | pathID 12 | { B 4 | TS 24 | txBytes 20 | qLen 16 } x 5
//
// Here it is a trailer behind the IP packet, ahead of the FCS: lengths and ICRC of the packet know
// nothing of it, so everyone else may pass over it. An acknowledgement carries a copy of the newest
// that its receiver got.

#include <stdbool.h>
#include <stdint.h>

#define INT_HOPS_MAX   5
#define INT_HEAD_BYTES 2
#define INT_HOP_BYTES  8
#define INT_BYTES      (INT_HEAD_BYTES + INT_HOPS_MAX * INT_HOP_BYTES)

#define INT_TS_MASK    0xffffffu // ns, modulo 2^24
#define INT_TX_MASK    0xfffffu  // units sent, modulo 2^20
#define INT_TX_UNIT    128u      // bytes
#define INT_QUEUE_UNIT 80u       // bytes
#define INT_QUEUE_MAX  (0xffffu * INT_QUEUE_UNIT)
#define INT_PATH_MASK  0xfffu

// A hop's record, as far as it can say.
struct int_hop {
	uint64_t rate_bps;    // of the port; 0: one that the encoding has no code for
	uint64_t tx_bytes;    // sent by the port until then; decoded: units, modulo 2^20
	uint64_t queue_bytes; // waiting behind the packet; decoded: of units, at most INT_QUEUE_MAX
	uint64_t at_ns;       // when the packet left; decoded: modulo 2^24
};

struct int_trailer {
	uint8_t n_hops;
	uint16_t path_id; // XOR of the hops' identifiers
	struct int_hop hops[INT_HOPS_MAX];
};

// Whether the encoding has a code for that rate: 100M, 1, 2.5, 5, 10, 20, 25, 40, 50, 56, 100, 200,
// 400, 800, 1600 Gb/s.
bool int_rate_known(uint64_t rate_bps);

// Adds a hop's record, `id` identifies it. Beyond the fifth only the number of hops grows, to at
// most 15.
void int_push(uint8_t trailer[INT_BYTES], uint16_t id, const struct int_hop *hop);
void int_get(const uint8_t trailer[INT_BYTES], struct int_trailer *out);
