/* SPDX-License-Identifier: BSD-3-Clause */
// HPCC: Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, algorithm 1.
//
// Each acknowledgement brings what the switches wrote into the packet it answers (pcap/int.h). Of
// two in a row, for each hop i,
//
//	txRate = (txBytes - txBytes') / (ts - ts'),  u_i = min(qlen, qlen') / (B T) + txRate / B
//
// u is the largest of them and tau its ts - ts', at most T;  U := (1 - tau/T) U + (tau/T) u.
//
//	U >= eta or stage >= maxStage    W = Wc / (U / eta) + W_AI,  stage = 0
//	else                             W = Wc + W_AI,              stage + 1
//
// On every ACK W is computed so from the reference Wc; once per RTT, when a packet sent after the
// last such update is acknowledged, Wc and stage are updated too. Rate: W / T.
//
// The window starts at line rate x T and never exceeds it; W / T does not fall below min_rate. When
// the path or the number of hops changes, or ts may have wrapped since (2^24 ns = 16.8 ms), only L
// is replaced. Bytes are counted as they are on the wire, preamble and gap too, so that a port that
// never rests has txRate = B.
//
// Defaults: the paper's (eta 95 %, maxStage 5, section 5.1; W_AI 80 bytes, T 13 us), min_rate that
// of the authors' ns-3 model.

#include "models/cc.h"

#define WRAP_NS (INT_TS_MASK + 1)

static void apply(struct cc *cc)
{
	const struct hpcc_params *p = &cc->params->hpcc;
	struct hpcc *h = &cc->hpcc;
	uint64_t t = (uint64_t)p->base_rtt;
	uint64_t most = cc_scale(cc->line_bps, t, 8 * SIM_S);
	uint64_t least = cc_scale(p->min_rate, t, 8 * SIM_S);

	if (h->window < least)
		h->window = least;
	if (h->window > most)
		h->window = most;
	cc->window_bytes = h->window != 0 ? h->window : 1;
	cc_set_rate(cc, h->window == most ? cc->line_bps : cc_scale(h->window, 8 * SIM_S, t));
}

static void hpcc_init(struct cc *cc, simtime_t now)
{
	cc->hpcc = (struct hpcc){.window = UINT64_MAX, .u = HPCC_U_ONE};
	apply(cc);
	cc->hpcc.reference = cc->hpcc.window;
}

// Utilisation of a hop, Q32, and the time it was measured over; 0: no time has passed.
static uint64_t utilisation(const struct hpcc_params *p, const struct int_hop *now,
	const struct int_hop *before, simtime_t *tau)
{
	uint64_t ns = (now->at_ns - before->at_ns) & INT_TS_MASK;
	uint64_t bytes = ((now->tx_bytes - before->tx_bytes) & INT_TX_MASK) * INT_TX_UNIT;
	uint64_t queue =
		now->queue_bytes < before->queue_bytes ? now->queue_bytes : before->queue_bytes;
	uint64_t b = now->rate_bps;

	*tau = (simtime_t)ns * SIM_NS;
	if (ns == 0 || b == 0)
		return 0;
	// queue * 8 / (B T) and bytes * 8 / (B tau), B in b/s and T in ps
	uint64_t ideal = cc_scale(b, (uint64_t)p->base_rtt, SIM_S);
	uint64_t could = cc_scale(b, ns, 1000000000);
	return cc_scale(HPCC_U_ONE, queue * 8, ideal != 0 ? ideal : 1) +
	       cc_scale(HPCC_U_ONE, bytes * 8, could != 0 ? could : 1);
}

static void measure(struct cc *cc, const struct int_trailer *t)
{
	const struct hpcc_params *p = &cc->params->hpcc;
	struct hpcc *h = &cc->hpcc;
	uint64_t u = 0, period = (uint64_t)p->base_rtt;
	simtime_t tau = 0;

	for (unsigned i = 0; i < t->n_hops; i++) {
		simtime_t took;
		uint64_t hop = utilisation(p, &t->hops[i], &h->last.hops[i], &took);
		if (hop > u || i == 0) {
			u = hop;
			tau = took;
		}
	}
	uint64_t part = (uint64_t)simtime_min(tau, p->base_rtt);
	h->u = cc_scale(h->u, period - part, period) + cc_scale(u, part, period);
}

static void compute(struct cc *cc, bool update)
{
	const struct hpcc_params *p = &cc->params->hpcc;
	struct hpcc *h = &cc->hpcc;
	bool adjust = h->u >= p->eta || h->stage >= p->max_stage;

	h->window = p->w_ai +
		    (adjust ? cc_scale(h->reference, p->eta, h->u != 0 ? h->u : 1) : h->reference);
	apply(cc);
	if (update) {
		h->stage = adjust ? 0 : h->stage + 1;
		h->reference = h->window;
	}
}

static void hpcc_ack(struct cc *cc, simtime_t now, const struct cc_ack *a)
{
	struct hpcc *h = &cc->hpcc;
	const struct int_trailer *t = a->telemetry;

	if (t == NULL || t->n_hops == 0)
		return;
	bool same = h->seen && t->path_id == h->last.path_id && t->n_hops == h->last.n_hops &&
		    now - h->seen_at < (simtime_t)(WRAP_NS / 2) * SIM_NS;
	if (same) {
		bool update = a->acked_to > h->update_end;
		measure(cc, t);
		compute(cc, update);
		if (update)
			h->update_end = a->sent_to;
	}
	h->last = *t;
	h->seen = true;
	h->seen_at = now;
}

const struct cc_ops hpcc_ops = {
	.needs = CC_NEEDS_INT | CC_NEEDS_EACH,
	.init = hpcc_init,
	.ack = hpcc_ack,
};
