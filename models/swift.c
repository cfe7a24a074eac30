/* SPDX-License-Identifier: BSD-3-Clause */
// Swift: Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the
// Datacenter", SIGCOMM 2020, algorithm 1, for the delay of the fabric.
//
// On an acknowledgement of n packets with round-trip time `delay`:
//
//	delay < target   cwnd += ai n / cwnd     (cwnd < 1: ai n)
//	else             cwnd *= max(1 - beta (delay - target) / delay, 1 - max_mdf), once per RTT
//
// On a loss found by a NAK, and on a timeout, cwnd *= 1 - max_mdf, once per RTT; after
// retx_reset_threshold timeouts in a row it is min_cwnd.
//
//	target = base_target + hops hop_scale + clamp(0, a / sqrt(cwnd) + b, fs_range)
//	a = fs_range / (1 / sqrt(fs_min_cwnd) - 1 / sqrt(fs_max_cwnd)),  b = -a / sqrt(fs_max_cwnd)
//
// (section 3.5). Windows below a packet are paced: a packet every rtt / cwnd.
//
// The paper sets t_last_decrease when cwnd <= its previous value, which would put off a decrease
// for ever while nothing changes; here it is set by decreases only. The paper's second window, for
// the delay in the receiving host, has no counterpart: built-in NICs have no host behind them, and
// a slow receiver's buffer counts as part of the way. The paper publishes few of its values; beta,
// max_mdf, ai and the range of fs are those commonly used in simulators.

#include "models/cc.h"

#define ONE       (UINT64_C(1) << 32)
#define THOUSAND  1000u
#define ROOT_BITS 20 // fraction bits of inverse square roots

static uint64_t isqrt(uint64_t x)
{
	uint64_t root = 0, bit = UINT64_C(1) << 62;

	while (bit > x)
		bit >>= 2;
	for (; bit != 0; bit >>= 2) {
		if (x >= root + bit) {
			x -= root + bit;
			root = (root >> 1) + bit;
		} else {
			root >>= 1;
		}
	}
	return root;
}

// 1 / sqrt(cwnd), Q20, of a window in packets, Q20 (> 0): sqrt(2^60 / cwnd).
static uint64_t inverse_root(uint64_t cwnd)
{
	return isqrt((UINT64_C(1) << 60) / cwnd);
}

static uint64_t packets_of(uint64_t thousandths)
{
	return cc_scale(thousandths, SWIFT_CWND_ONE, THOUSAND);
}

simtime_t swift_target(const struct swift_params *p, uint64_t cwnd, unsigned hops)
{
	uint64_t most = inverse_root(packets_of(p->fs_min_cwnd));
	uint64_t least = inverse_root(packets_of(p->fs_max_cwnd));
	uint64_t here = inverse_root(cwnd);
	simtime_t target = p->base_target + (simtime_t)hops * p->hop_scale;

	if (here <= least || most <= least)
		return target;
	if (here >= most)
		return target + p->fs_range;
	return target + (simtime_t)cc_scale((uint64_t)p->fs_range, here - least, most - least);
}

// The window into what the NIC knows: whole packets in flight, or a rate below one.
static void apply(struct cc *cc, simtime_t now, uint64_t before)
{
	const struct swift_params *p = &cc->params->swift;
	struct swift *s = &cc->swift;
	uint64_t least = packets_of(p->min_cwnd), most = packets_of(p->max_cwnd);

	s->cwnd = s->cwnd < least ? least : s->cwnd > most ? most : s->cwnd;
	if (s->cwnd < before)
		s->decreased_at = now;
	if (s->cwnd >= SWIFT_CWND_ONE) {
		cc->window_bytes = s->cwnd / SWIFT_CWND_ONE * cc->payload;
		cc_set_rate(cc, cc->line_bps);
		return;
	}
	cc->window_bytes = cc->payload;
	if (s->rtt != 0)
		cc_set_rate(cc, cc_scale((uint64_t)s->wire_bytes * 8 * s->cwnd / SWIFT_CWND_ONE,
					SIM_S, (uint64_t)s->rtt));
}

static void swift_init(struct cc *cc, simtime_t now)
{
	cc->swift = (struct swift){
		.cwnd = (uint64_t)cc->params->swift.initial_cwnd * SWIFT_CWND_ONE,
		.wire_bytes = cc->payload,
		.decreased_at = now,
	};
	apply(cc, now, 0);
}

static void swift_sent(struct cc *cc, simtime_t now, uint32_t wire_bytes)
{
	cc->swift.wire_bytes = wire_bytes;
}

static bool may_decrease(const struct swift *s, simtime_t now)
{
	return now - s->decreased_at >= s->rtt;
}

static void swift_ack(struct cc *cc, simtime_t now, const struct cc_ack *a)
{
	const struct swift_params *p = &cc->params->swift;
	struct swift *s = &cc->swift;
	uint64_t before = s->cwnd;
	uint64_t acked = cc_scale(a->acked_bytes, SWIFT_CWND_ONE, cc->payload);
	uint64_t add = cc_scale(acked, p->ai, THOUSAND);

	if (a->acked_bytes != 0)
		s->timeouts = 0;
	if (a->rtt == 0)
		return;
	s->rtt = a->rtt;
	s->target = swift_target(p, s->cwnd, a->hops);
	if (a->rtt < s->target) {
		s->cwnd += s->cwnd >= SWIFT_CWND_ONE ? cc_scale(add, SWIFT_CWND_ONE, s->cwnd) : add;
	} else if (may_decrease(s, now)) {
		uint64_t cut = cc_scale(p->beta, (uint64_t)(a->rtt - s->target), (uint64_t)a->rtt);
		s->cwnd = cc_scale(s->cwnd, ONE - (cut < p->max_mdf ? cut : p->max_mdf), ONE);
	}
	apply(cc, now, before);
}

static void swift_loss(struct cc *cc, simtime_t now, uint64_t sent_to, bool timeout)
{
	const struct swift_params *p = &cc->params->swift;
	struct swift *s = &cc->swift;
	uint64_t before = s->cwnd;

	s->timeouts = timeout ? s->timeouts + 1 : 0;
	if (s->timeouts >= p->retx_reset_threshold)
		s->cwnd = 0; // the least
	else if (may_decrease(s, now))
		s->cwnd = cc_scale(s->cwnd, ONE - p->max_mdf, ONE);
	apply(cc, now, before);
}

const struct cc_ops swift_ops = {
	.needs = CC_NEEDS_RTT | CC_NEEDS_EACH,
	.init = swift_init,
	.sent = swift_sent,
	.ack = swift_ack,
	.loss = swift_loss,
};
