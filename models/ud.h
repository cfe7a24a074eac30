/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// The unreliable datagram transport: each SEND is one packet, to whom the caller says. Work
// requests, packets and results are those of models/rc.h; destination, Q_Key and address are the
// caller's own, by wr_id.
//
//	ud_post_send, rc_can_send, ud_tx_next  --- packet --->  ud_rx, with receives in an rc_rq

#include "models/rc.h"

// A receive's first 40 bytes are for the GRH or what stands for it; the payload comes behind.
#define UD_GRH_BYTES 40

void ud_requester_init(struct rc_requester *q, uint16_t payload, uint32_t psn, struct rc_wqe *sq,
	uint32_t entries);
// As rc_post_send(); -EINVAL also for another operation than SEND and SEND_IMM, and for more than
// one packet.
int ud_post_send(struct rc_requester *q, const struct rc_wr *wr);
// As uc_tx_next().
int ud_tx_next(struct rc_requester *q, simtime_t now, struct rc_request *out);

struct ud_receiver {
	uint32_t qkey;
	struct rc_rq *rq; // NULL: a receive is always there, and none completes
	uint64_t bytes, messages;
	simtime_t last_at;
	uint64_t qkey_violations;
	uint64_t out_of_buffer; // no receive
	uint64_t too_long;      // for the receive, which stays
};

static inline bool ud_is_request(uint8_t opcode)
{
	return opcode == (ROCE_UD | ROCE_SEND_ONLY) || opcode == (ROCE_UD | ROCE_SEND_ONLY_IMM);
}

// A packet arrived whose DETH has this Q_Key; ud_is_request(p->opcode) must hold. Returns
// RC_RX_IN_ORDER with flags, or what was wrong with it: RC_RX_ACCESS (Q_Key), RC_RX_NOT_READY,
// RC_RX_LENGTH. `out->addr` is that of the payload, 40 bytes into the receive, and `out->byte_len`
// counts those 40 too, as a verbs completion does.
int ud_rx(struct ud_receiver *u, simtime_t now, const struct rc_packet *p, uint32_t qkey,
	struct rc_accept *out);

// What the first 40 bytes of the receive are: the GRH (RoCE v1) or IPv6 header; for IPv4 its header
// in the last 20, the first 20 being zero. `l3`: a header without options.
void ud_put_grh(uint8_t out[UD_GRH_BYTES], const uint8_t *l3);
