/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// The unreliable connected transport: SEND and WRITE, with and without immediate data, cut as the
// reliable one cuts them, sent once, never answered. Work requests, packets and results are those
// of models/rc.h; a work request completes with its last packet.
//
//	requester                                 responder
//	uc_post_send                              rc_post_recv
//	rc_can_send, uc_tx_next  --- packet --->  uc_rx_request
//	rc_poll

#include "models/rc.h"

// `payload`: bytes per packet, `psn`: of the first, `sq`: as for rc_requester_init().
void uc_requester_init(struct rc_requester *q, uint16_t payload, uint32_t psn, struct rc_wqe *sq,
	uint32_t entries);

// As rc_post_send(); -EINVAL also for what this transport does not carry.
int uc_post_send(struct rc_requester *q, const struct rc_wr *wr);

// The packet to send now, its opcode one of ROCE_UC; rc_can_send() must hold. Returns
// RC_ACK_PROGRESS, and RC_ACK_COMPLETED when a work request is complete.
int uc_tx_next(struct rc_requester *q, simtime_t now, struct rc_request *out);

struct uc_responder {
	struct rc_responder r; // counts: r.bytes of all packets taken, r.messages complete
	bool dropping;         // what is left of a message
	uint64_t gaps;         // times a PSN was not the one expected
	uint64_t dropped;      // packets
};

// Of `cfg` what is about acknowledging, READs and atomics does not matter.
void uc_responder_init(struct uc_responder *u, const struct rc_responder_config *cfg);

static inline bool uc_is_request(uint8_t opcode)
{
	return (opcode & ~0x1f) == ROCE_UC && (opcode & 0x1f) <= ROCE_WRITE_ONLY_IMM;
}

// A packet arrived; uc_is_request(p->opcode) must hold. Returns an rc_rx_result, never with
// RC_RX_RESPOND or RC_RX_FAILED: what is not RC_RX_IN_ORDER was dropped silently.
int uc_rx_request(
	struct uc_responder *u, simtime_t now, const struct rc_packet *p, struct rc_accept *out);
