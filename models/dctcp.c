/* SPDX-License-Identifier: BSD-3-Clause */
// DCTCP for a queue pair: Alizadeh et al., "Data Center TCP", SIGCOMM 2010, as RFC 8257 has it, on
// an RDMA NIC.
//
// The receiver echoes CE in the BECN of its acknowledgements (where TCP has ECE); an ACK that has
// it counts with all it acknowledges, which is exact while there is one for each packet.
//
// Per observation window, one window of packets (RFC 8257, 3.3):
//
//	M = marked bytes / acknowledged bytes;  alpha := (1 - g) alpha + g M
//
// A mark ends slow start and reduces the window, at most once per window of packets:
//
//	window := window (1 - alpha / 2)
//
// Until the packets that were in flight then are acknowledged the window does not grow (TCP's CWR
// state). Otherwise it grows as TCP's: by what is acknowledged in slow start, else by one packet
// per window. alpha begins at 1. A loss found by a NAK halves the window, once per window; a
// timeout sets it to the least one, slow start up to half of what it was (RFC 5681).
//
// In the steady state of N equal flows over a link of rate C with round-trip time R and marking
// threshold K, the queue reaches K + N packets, and alpha is about sqrt(2 / W), W = (C R + K) / N
// packets (SIGCOMM 2010, 3.3).

#include "models/cc.h"

#define Q16     16
#define Q16_MAX ((UINT64_C(1) << 40) << Q16)

static void apply(struct cc *cc)
{
	struct dctcp *d = &cc->dctcp;
	uint64_t least = (uint64_t)cc->params->dctcp.min_window * cc->payload << Q16;

	if (d->window < least)
		d->window = least;
	if (d->window > Q16_MAX)
		d->window = Q16_MAX;
	cc->window_bytes = d->window >> Q16;
}

static void dctcp_init(struct cc *cc, simtime_t now)
{
	cc->dctcp = (struct dctcp){
		.window = (uint64_t)cc->params->dctcp.initial_window * cc->payload << Q16,
		.threshold = Q16_MAX,
		.alpha = DCTCP_ALPHA_ONE,
	};
	apply(cc);
}

static void observe(struct cc *cc, const struct cc_ack *a)
{
	struct dctcp *d = &cc->dctcp;
	uint64_t g = cc->params->dctcp.g;

	d->acked += a->acked_bytes;
	d->marked += a->ce ? a->acked_bytes : 0;
	if (a->acked_to <= d->observe_end || d->acked == 0)
		return;
	uint64_t m = cc_scale(DCTCP_ALPHA_ONE, d->marked, d->acked);
	d->alpha = cc_scale(d->alpha, DCTCP_ALPHA_ONE - g, DCTCP_ALPHA_ONE) +
		   cc_scale(m, g, DCTCP_ALPHA_ONE);
	d->acked = d->marked = 0;
	d->observe_end = a->sent_to;
}

static void recover_from(struct dctcp *d, uint64_t sent_to)
{
	d->recovering = true;
	d->recover_end = sent_to;
	d->threshold = d->window;
}

static void dctcp_ack(struct cc *cc, simtime_t now, const struct cc_ack *a)
{
	struct dctcp *d = &cc->dctcp;
	uint64_t acked = a->acked_bytes << Q16;

	if (a->acked_bytes == 0)
		return;
	observe(cc, a);
	if (d->recovering && a->acked_to > d->recover_end)
		d->recovering = false;
	if (a->ce && !d->recovering) {
		d->window -= cc_scale(d->window, d->alpha, 2 * DCTCP_ALPHA_ONE);
		recover_from(d, a->sent_to);
	} else if (!d->recovering) {
		d->window += d->window < d->threshold
				     ? acked
				     : cc_scale(acked, (uint64_t)cc->payload << Q16, d->window);
	}
	apply(cc);
}

static void dctcp_loss(struct cc *cc, simtime_t now, uint64_t sent_to, bool timeout)
{
	struct dctcp *d = &cc->dctcp;

	if (d->recovering && !timeout)
		return;
	d->window /= 2;
	recover_from(d, sent_to);
	if (timeout) {
		d->window = 0; // the least
		d->recovering = false;
	}
	apply(cc);
}

const struct cc_ops dctcp_ops = {
	.needs = CC_NEEDS_ECHO | CC_NEEDS_EACH,
	.init = dctcp_init,
	.ack = dctcp_ack,
	.loss = dctcp_loss,
};
