/* SPDX-License-Identifier: BSD-3-Clause */
// TIMELY: Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM 2015,
// algorithm 1. On each RTT sample, with the gradient
//
//	diff := (1 - alpha) diff + alpha (rtt - last rtt),  gradient = diff / min_rtt
//
// the rate becomes
//
//	rtt < t_low     rate + delta
//	rtt > t_high    rate (1 - beta (1 - t_high / rtt))
//	gradient <= 0   rate + N delta; N = 5 after five such samples in a row (HAI), else 1
//	else            rate (1 - beta gradient)
//
// Samples are those of packets that ask for an acknowledgement: with the NIC's ack_every of 16 and
// packets of 1 KB, the paper's segments of 16 KB. The time is taken when the packet is sent, so a
// segment's own transmission is not in it, which the paper subtracts.
//
// alpha and min_rtt are in the paper's section 4.3 without values; 0.875 and 20 us are those of the
// ns-3 model of HPCC's authors. t_low, t_high, delta and beta are the paper's (section 6.1).

#include "models/cc.h"

#define ONE (UINT64_C(1) << 32)

static void timely_init(struct cc *cc, simtime_t now)
{
	uint64_t rate = cc->params->timely.initial_rate;

	if (rate != 0)
		cc_set_rate(cc, rate);
}

// diff := (1 - alpha) diff + alpha new
static int64_t smooth(int64_t diff, int64_t newest, uint64_t alpha)
{
	__int128 sum = (__int128)diff * (int64_t)(ONE - alpha) + (__int128)newest * (int64_t)alpha;

	return (int64_t)(sum / (int64_t)ONE);
}

// rate (1 - beta num / den), not below the least rate.
static uint64_t decreased(const struct cc *cc, simtime_t num, simtime_t den)
{
	const struct timely_params *p = &cc->params->timely;
	uint64_t cut = cc_scale(p->beta, (uint64_t)num, (uint64_t)den);
	uint64_t rate = cut >= ONE ? 0 : cc_scale(cc->rate_bps, ONE - cut, ONE);

	return rate < p->min_rate ? p->min_rate : rate;
}

static void timely_ack(struct cc *cc, simtime_t now, const struct cc_ack *a)
{
	const struct timely_params *p = &cc->params->timely;
	struct timely *t = &cc->timely;
	simtime_t last = t->rtt;

	if (a->rtt == 0)
		return;
	t->rtt = a->rtt;
	if (last == 0)
		return;
	t->diff = smooth(t->diff, a->rtt - last, p->alpha);
	t->calm = t->diff <= 0 ? t->calm + 1 : 0;
	if (a->rtt < p->t_low)
		cc_set_rate(cc, cc->rate_bps + p->add_step);
	else if (a->rtt > p->t_high)
		cc_set_rate(cc, decreased(cc, a->rtt - p->t_high, a->rtt));
	else if (t->diff <= 0)
		cc_set_rate(cc,
			cc->rate_bps +
				p->add_step * (t->calm >= p->hai_threshold ? p->hai_threshold : 1));
	else
		cc_set_rate(cc, decreased(cc, t->diff, p->min_rtt));
}

const struct cc_ops timely_ops = {
	.needs = CC_NEEDS_RTT,
	.init = timely_init,
	.ack = timely_ack,
};
