/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// The queue pairs of a real endpoint, as an edge can know them: from the packets that pass. A
// packet names the queue pair it goes to, never the one it comes from, so a connection is seen as
// two halves, one per direction; which belong together is learnt. See edge_qp.c.

#include <stdbool.h>
#include <stdint.h>

#include "emu/core/simtime.h"
#include "pcap/codec.h"

#define EDGE_QP_SETS    256
#define EDGE_QP_WAYS    8
#define EDGE_QP_SLOTS   (EDGE_QP_SETS * EDGE_QP_WAYS)
#define EDGE_QP_IDLE    (1 * SIM_S) // one that is quiet for longer may make room
#define EDGE_QP_UNKNOWN UINT32_MAX

enum edge_qp_side {
	EDGE_QP_OUT, // what the endpoint sends
	EDGE_QP_IN,  // what it gets
};

// The addresses of both ends, in network order, IPv4 padded with zeros.
struct edge_qp_pair {
	uint8_t peer[16];
	uint8_t own[16];
};

struct edge_qp {
	struct edge_qp_pair pair;
	uint32_t qpn;     // destination QP of this half's packets
	uint32_t other;   // of the other half's packets, or EDGE_QP_UNKNOWN
	uint32_t una;     // requests una..top-1 may still be answered
	uint32_t top;     //
	uint16_t sport;   // UDP source port of its requests
	uint16_t slot;    // its index, also of what others keep beside it
	uint8_t side;     // enum edge_qp_side
	bool used;        //
	bool asks;        // sent requests: una, top and sport hold
	bool busy;        // not to be replaced
	bool fresh;       // just made; the caller's to clear
	simtime_t seen;   // last packet
	simtime_t agreed; // last answer that fitted `other`
};

struct edge_qp_table {
	struct edge_qp qps[EDGE_QP_SLOTS];
	uint16_t live[EDGE_QP_SLOTS]; // slots in use, in order of use
	uint32_t n_live;
	simtime_t search_at; // no search for a partner before
};

// What a packet of a connected transport is to the table.
enum edge_qp_kind {
	EDGE_QP_NONE,     // of no connection, or not understood
	EDGE_QP_REQUEST,  //
	EDGE_QP_RESPONSE, // READ response: data
	EDGE_QP_ACK,      // ACK, NAK, atomic response
};

void edge_qp_init(struct edge_qp_table *t);

enum edge_qp_kind edge_qp_kind_of(uint8_t opcode);

// The addresses of a parsed packet on its way out or in.
struct edge_qp_pair edge_qp_pair_of(const struct pkt *p, enum edge_qp_side side);

// The half, if known.
struct edge_qp *edge_qp_find(struct edge_qp_table *t, enum edge_qp_side side,
	const struct edge_qp_pair *pair, uint32_t qpn);

// The half, made if need be; NULL when its set is full of ones in use.
struct edge_qp *edge_qp_get(struct edge_qp_table *t, enum edge_qp_side side,
	const struct edge_qp_pair *pair, uint32_t qpn, simtime_t now);

// The other half of the connection, NULL while it is not known.
struct edge_qp *edge_qp_other(struct edge_qp_table *t, const struct edge_qp *qp);

// A packet of the half passes. True if it told which half is the other one.
bool edge_qp_note(struct edge_qp_table *t, struct edge_qp *qp, const struct pkt *p, simtime_t now);
