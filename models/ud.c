/* SPDX-License-Identifier: BSD-3-Clause */
// Unreliable datagram transport (IBTA vol. 1, 9.8.3).
//
// The requester is that of UC with messages of one packet; its PSNs count but nobody checks them.
// The receiver takes what has its Q_Key and finds a receive that is long enough for GRH and
// payload, and drops everything else (9.8.3.2, 9.6.1.5 for the Q_Key).
//
// The GRH: annex A17 has the network header's 40 bytes before the payload, and Linux (rxe,
// mlx5) puts an IPv4 header into the second half of them.
#include "models/ud.h"

#include <errno.h>
#include <string.h>

#include "models/uc.h"

void ud_requester_init(
	struct rc_requester *q, uint16_t payload, uint32_t psn, struct rc_wqe *sq, uint32_t entries)
{
	uc_requester_init(q, payload, psn, sq, entries);
}

int ud_post_send(struct rc_requester *q, const struct rc_wr *wr)
{
	bool send = wr->op == WR_SEND || wr->op == WR_SEND_IMM;

	return send && wr->length <= q->payload ? rc_post_send(q, wr) : -EINVAL;
}

int ud_tx_next(struct rc_requester *q, simtime_t now, struct rc_request *out)
{
	int result = uc_tx_next(q, now, out);

	out->opcode = ROCE_UD | (out->opcode & 0x1f);
	return result;
}

int ud_rx(struct ud_receiver *u, simtime_t now, const struct rc_packet *p, uint32_t qkey,
	struct rc_accept *out)
{
	struct rc_recv recv = {0};
	uint32_t bytes = p->payload + UD_GRH_BYTES;
	int result = RC_RX_IN_ORDER | RC_RX_MESSAGE | RC_RX_DATA;

	if (qkey != u->qkey) {
		u->qkey_violations++;
		return RC_RX_ACCESS;
	}
	if (u->rq != NULL) {
		if (rc_rq_count(u->rq) == 0) {
			u->out_of_buffer++;
			return RC_RX_NOT_READY;
		}
		if (bytes > u->rq->ring[u->rq->head & u->rq->mask].length) {
			u->too_long++;
			return RC_RX_LENGTH;
		}
		rc_rq_take(u->rq, &recv);
		result |= RC_RX_RECV_DONE;
	}
	*out = (struct rc_accept){
		.addr = recv.addr + UD_GRH_BYTES,
		.wr_id = recv.wr_id,
		.byte_len = bytes,
		.imm = p->imm,
		.wc_status = WC_SUCCESS,
		.wc_op = WR_SEND,
		.with_imm = p->opcode == (ROCE_UD | ROCE_SEND_ONLY_IMM),
		.solicited = p->solicited,
	};
	u->bytes += p->payload;
	u->messages++;
	u->last_at = now;
	return result;
}

void ud_put_grh(uint8_t out[UD_GRH_BYTES], const uint8_t *l3)
{
	unsigned bytes = l3[0] >> 4 == 4 ? IPV4_HEADER_BYTES : IPV6_HEADER_BYTES;

	memset(out, 0, UD_GRH_BYTES);
	memcpy(out + UD_GRH_BYTES - bytes, l3, bytes);
}
