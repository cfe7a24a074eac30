/* SPDX-License-Identifier: BSD-3-Clause */
// Loss recovery beyond go-back-N: where the NIC's queue pairs use models/sr.h. A queue pair without
// has no `struct nic_recovery`, and its frames never come here.

#include <errno.h>
#include <stdlib.h>

#include "pcap/build.h"
#include "pipelines/nic_internal.h"

#define WORD_BITS 64

static int make_sender(struct nic *nic, struct nic_qp *qp)
{
	struct nic_recovery *rec = qp->rec;
	struct sr_config cfg = {
		.rto_low = nic->cfg.rto_low,
		.rto_high = nic->cfg.rto_high,
		.patience = rc_ack_timeout(nic->cfg.timeout),
	};

	rec->sacked = calloc(sr_slots(qp->req.window) / WORD_BITS, sizeof(*rec->sacked));
	if (rec->sacked == NULL)
		return -ENOMEM;
	rec->selective = true;
	sr_sender_init(&rec->tx, &qp->req, &cfg, rec->sacked);
	return 0;
}

// Selective repeat keeps all that its sender may send, tolerance no more than it tolerates.
static int make_receiver(struct nic *nic, struct nic_qp *qp, uint32_t peer_window)
{
	struct nic_recovery *rec = qp->rec;
	bool selective = nic->cfg.recovery == NIC_SELECTIVE_REPEAT;
	struct sr_receiver_config cfg = {
		.window = selective ? peer_window : nic->cfg.ooo,
		.tolerance = nic->cfg.ooo,
		.max_age = nic->cfg.ooo_time != 0 ? nic->cfg.ooo_time : SIMTIME_NEVER,
		.selective = selective,
	};
	uint32_t slots = sr_slots(cfg.window);

	rec->have = calloc(slots / WORD_BITS, sizeof(*rec->have));
	rec->kept = calloc(slots, sizeof(*rec->kept));
	if (rec->have == NULL || rec->kept == NULL)
		return -ENOMEM;
	sr_receiver_init(&rec->rx, &qp->resp, &cfg, rec->have, rec->kept);
	return 0;
}

int nic_recovery_make(struct nic *nic, struct nic_qp *qp, bool sends, uint32_t peer_window)
{
	bool selective = nic->cfg.recovery == NIC_SELECTIVE_REPEAT;

	if (!selective && (sends || nic->cfg.ooo == 0))
		return 0;
	qp->rec = aligned_alloc(alignof(struct nic_recovery), sizeof(*qp->rec));
	if (qp->rec == NULL)
		return -ENOMEM;
	memset(qp->rec, 0, sizeof(*qp->rec));
	qp->ack_tells = true;
	return sends ? make_sender(nic, qp) : make_receiver(nic, qp, peer_window);
}

void nic_recovery_free(struct nic_qp *qp)
{
	if (qp->rec == NULL)
		return;
	free(qp->rec->sacked);
	free(qp->rec->have);
	free(qp->rec->kept);
	free(qp->rec);
	qp->rec = NULL;
}

// ---- sender ------------------------------------------------------------------------------------

// The SACK behind the AETH of a frame, if there is one: as far as UDP's length says, and as the
// bytes are there.
static bool find_sack(const struct frame *f, const uint8_t *bth, struct roce_sack *out)
{
	const uint8_t *sack = bth + BTH_BYTES + AETH_BYTES;
	size_t at = (size_t)(sack - frame_data(f));
	uint32_t udp = get_be16(bth - UDP_HEADER_BYTES + 4);
	uint32_t before = UDP_HEADER_BYTES + BTH_BYTES + AETH_BYTES + ICRC_BYTES;

	if (udp < before + ROCE_SACK_BYTES || at + ROCE_SACK_BYTES > f->head_len)
		return false;
	return roce_sack_get(sack, udp - before, out);
}

int nic_recovery_ack(
	struct nic *nic, struct nic_qp *qp, const struct frame *f, const uint8_t *bth, uint32_t psn)
{
	simtime_t now = nic->node.now;
	uint32_t aeth = get_be32(bth + BTH_BYTES);
	struct roce_sack sack;

	if (!qp->rec->selective)
		return rc_rx_ack(&qp->req, now, psn, aeth);
	bool found = find_sack(f, bth, &sack);
	int result = sr_rx_ack(&qp->rec->tx, &qp->req, now, psn, aeth, found ? &sack : NULL);
	nic_arm_ack_timer(nic, qp); // which may be due earlier than before
	return result;
}

int nic_recovery_timeout(struct nic_qp *qp, simtime_t now)
{
	return qp->rec != NULL && qp->rec->selective ? sr_timeout(&qp->rec->tx, &qp->req, now)
						     : rc_timeout(&qp->req, now);
}

void nic_recovery_rnr_expired(struct nic_qp *qp, simtime_t now)
{
	if (qp->rec != NULL && qp->rec->selective)
		sr_rnr_expired(&qp->rec->tx, &qp->req, now);
	else
		rc_rnr_expired(&qp->req, now);
}

// ---- receiver ----------------------------------------------------------------------------------

int nic_recovery_early(struct nic *nic, struct nic_qp *qp, const struct rc_packet *p)
{
	uint64_t ahead = (uint64_t)psn_diff(p->psn, qp->resp.epsn);
	int verdict = sr_keep(&qp->rec->rx, &qp->resp, nic->node.now, p);
	int respond = verdict & SR_RESPOND ? RC_RX_RESPOND : 0;

	switch ((enum sr_verdict)(verdict & SR_VERDICT)) {
	case SR_DUPLICATE:
		return RC_RX_DUPLICATE | respond;
	case SR_KEPT:
		nic->ctr.out_of_order_kept++;
		if (ahead > nic->ctr.out_of_order_distance)
			nic->ctr.out_of_order_distance = ahead;
		break;
	default:
		break;
	}
	return RC_RX_GAP | respond;
}

uint8_t *nic_recovery_sack(struct nic_qp *qp, struct frame *f, const struct rc_ack *a)
{
	struct roce_sack sack;

	if (qp->rec == NULL || a->syndrome != AETH_NAK_PSN_SEQ ||
		!sr_sack(&qp->rec->rx, &qp->resp, &sack))
		return nic_put_shape(qp, &qp->shape[NIC_SHAPE_ACK], f, a->psn);
	uint8_t *aeth = nic_put_shape(qp, &qp->rec->sack, f, a->psn);
	roce_sack_put(aeth + AETH_BYTES, &sack);
	return aeth;
}
