/* SPDX-License-Identifier: BSD-3-Clause */
// DCQCN's reaction point: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments",
// SIGCOMM 2015, section 3, with the parameters that ConnectX NICs have for it.
//
// A queue pair sends at line rate until its first CNP. From then on it has a current rate Rc, a
// target Rt and an estimate alpha of how congested its path is:
//
// alpha: every dce_tcp_rtt, alpha := (1-g) alpha + g if a CNP came in it, else (1-g) alpha, with
// 1-g = dce_tcp_g / 1024.
//
// Decrease: on a CNP, at most once per rate_reduce_monitor_period; one that comes too soon counts
// when the period is over. Rt := Rc, if clamped (below); then
//
//	Rc := max(Rc (1 - alpha 2^(10 - rpg_gd)), Rc rpg_min_dec_fac %, rpg_min_rate)
//
// and both stages are 0, both counters start again.
//
// Increase: each time rpg_time_reset is over (stage T) or rpg_byte_reset bytes were sent (stage B),
// with F = rpg_threshold:
//
//	max(T,B) < F   fast recovery
//	min(T,B) > F   Rt += rpg_hai_rate
//	else           Rt += rpg_ai_rate
//
// then Rc := (Rc + Rt) / 2, and the stage goes up by one.
//
// Stages are compared as they were before the event, so F events are fast recovery; a byte counter
// that is off has no say in the minimum. The target is clamped to Rc always with clamp_tgt_rate,
// else by the first decrease after an increase by bytes or, with clamp_tgt_rate_after_time_inc, by
// time. When Rc reaches rpg_max_rate the limiter is freed: the queue pair is as before its first
// CNP and costs nothing (IEEE 802.1Qau 32.11, and what mlx5's manual says of rpg_max_rate).
//
// State: alpha has 30 fraction bits (mlx5: 10) so that small values of g work; it is brought up to
// date only when someone asks, the decays of quiet periods as one power. The increase timer is the
// only one; it runs while the queue pair is limited.
//
// Invariants: rpg_min_rate <= Rc <= Rt or Rc is at the floor; Rt <= rpg_max_rate; 0 <= alpha <= 1.
//
// Simplified: the monitor period starts at a decrease rather than running freely, so a CNP after
// quiet acts at once and not up to one period later. Hyper increase adds rpg_hai_rate, not a
// multiple of it, as mlx5's parameters and the ns-3 models have it.
//
// rpg_byte_reset: mlx5's default is 32767, in units of 64 bytes by some of the vendor's pages and
// of bytes by others. In units it is 2 MB, which is what test equipment has as default; so here.
//
// Presets. mlx5: defaults that configuration dumps of ConnectX-4 to 6 agree in. paper: the paper's
// section 5 and table 2; it does not give the hyper increase, which here is ten times the additive
// one as with mlx5. hpcc-ns3: default attributes of that simulator's rdma-hw; alibaba: the settings
// `dcqcn` of its run script. Both have no byte counter, and echo CE in every ACK: their interval
// between CNPs is 0.

#include "models/cc.h"

#define Q32_ONE         (UINT64_C(1) << 32)
#define MBPS            UINT64_C(1000000)
#define G_ONE           1024u // of dce_tcp_g and initial_alpha_value
#define GD_BASE         10    // rpg_gd that decreases by all of alpha
#define ALPHA_SHIFT     30
#define MLX5_BYTE_RESET (32767 * 64)

static const struct dcqcn_params presets[DCQCN_PRESET_COUNT] = {
	[DCQCN_MLX5] =
		{
			.clamp_tgt_rate_after_time_inc = true,
			.rpg_time_reset = 300 * SIM_US,
			.rpg_byte_reset = MLX5_BYTE_RESET,
			.rpg_threshold = 1,
			.rpg_ai_rate = 5 * MBPS,
			.rpg_hai_rate = 50 * MBPS,
			.rpg_gd = 11,
			.rpg_min_dec_fac = 50,
			.rpg_min_rate = 1 * MBPS,
			.dce_tcp_g = 1019,
			.dce_tcp_rtt = SIM_US,
			.rate_reduce_monitor_period = 4 * SIM_US,
			.initial_alpha_value = 1023,
		},
	[DCQCN_PAPER] =
		{
			.clamp_tgt_rate = true,
			.clamp_tgt_rate_after_time_inc = true,
			.rpg_time_reset = 55 * SIM_US,
			.rpg_byte_reset = 10000000,
			.rpg_threshold = 5,
			.rpg_ai_rate = 40 * MBPS,
			.rpg_hai_rate = 400 * MBPS,
			.rpg_gd = 11,
			.rpg_min_dec_fac = 50,
			.rpg_min_rate = 1 * MBPS,
			.dce_tcp_g = 1020, // 1/256
			.dce_tcp_rtt = 55 * SIM_US,
			.rate_reduce_monitor_period = SIM_NS, // CNPs are spaced by the NP
			.initial_alpha_value = 1024,
		},
	[DCQCN_HPCC_NS3] =
		{
			.clamp_tgt_rate_after_time_inc = true,
			.rpg_time_reset = 1500 * SIM_US,
			.rpg_threshold = 5,
			.rpg_ai_rate = 5 * MBPS,
			.rpg_hai_rate = 50 * MBPS,
			.rpg_gd = 11,
			.rpg_min_dec_fac = 1,
			.rpg_min_rate = 100 * MBPS,
			.dce_tcp_g = 960, // 1/16
			.dce_tcp_rtt = 55 * SIM_US,
			.rate_reduce_monitor_period = 4 * SIM_US,
			.initial_alpha_value = 1024,
		},
	[DCQCN_ALIBABA] =
		{
			.clamp_tgt_rate_after_time_inc = true,
			.rpg_time_reset = 300 * SIM_US,
			.rpg_threshold = 1,
			.rpg_ai_rate = 20 * MBPS, // 5 per 25 Gb/s of the line
			.rpg_hai_rate = 200 * MBPS,
			.rpg_gd = 11,
			.rpg_min_dec_fac = 1,
			.rpg_min_rate = 1000 * MBPS,
			.dce_tcp_g = 1020, // 1/256
			.dce_tcp_rtt = SIM_US,
			.rate_reduce_monitor_period = 4 * SIM_US,
			.initial_alpha_value = 1024,
		},
};

struct dcqcn_params dcqcn_preset(enum dcqcn_preset preset)
{
	return presets[preset];
}

simtime_t dcqcn_preset_cnp_interval(enum dcqcn_preset preset)
{
	static const simtime_t intervals[DCQCN_PRESET_COUNT] = {
		[DCQCN_MLX5] = 4 * SIM_US, [DCQCN_PAPER] = 50 * SIM_US};

	return intervals[preset];
}

// base^n, Q32, base < 1.
static uint64_t power_q32(uint64_t base, uint64_t n)
{
	uint64_t result = Q32_ONE;

	for (; n != 0 && result != 0; n >>= 1) {
		if (n & 1)
			result = (uint64_t)((unsigned __int128)result * base >> 32);
		base = (uint64_t)((unsigned __int128)base * base >> 32);
	}
	return result;
}

static void update_alpha(struct dcqcn *d, const struct dcqcn_params *p, simtime_t now)
{
	if (now - d->alpha_at < p->dce_tcp_rtt)
		return;

	uint64_t periods = (uint64_t)(now - d->alpha_at) / (uint64_t)p->dce_tcp_rtt;
	d->alpha_at += (simtime_t)periods * p->dce_tcp_rtt;
	if (d->cnp_in_period) {
		uint64_t sum = (uint64_t)d->alpha * p->dce_tcp_g +
			       (uint64_t)DCQCN_ALPHA_ONE * (G_ONE - p->dce_tcp_g);
		d->alpha = (uint32_t)(sum / G_ONE);
		d->cnp_in_period = false;
		periods--;
	}
	uint64_t keep = power_q32((uint64_t)p->dce_tcp_g * (Q32_ONE / G_ONE), periods);
	d->alpha = (uint32_t)((uint64_t)d->alpha * keep >> 32);
}

static void set_deadline(struct cc *cc)
{
	struct dcqcn *d = &cc->dcqcn;
	simtime_t period = cc->params->dcqcn.rate_reduce_monitor_period;

	if (!d->limited)
		cc->deadline = SIMTIME_NEVER;
	else if (d->cnp_pending)
		cc->deadline = simtime_min(d->increase_at, d->decreased_at + period);
	else
		cc->deadline = d->increase_at;
}

static void decrease(struct cc *cc, simtime_t now)
{
	const struct dcqcn_params *p = &cc->params->dcqcn;
	struct dcqcn *d = &cc->dcqcn;
	uint64_t rate = cc->rate_bps, least = rate * p->rpg_min_dec_fac / 100;

	update_alpha(d, p, now);
	if (p->clamp_tgt_rate || d->byte_stage != 0 ||
		(p->clamp_tgt_rate_after_time_inc && d->time_stage != 0))
		d->target_bps = rate;
	rate -= (uint64_t)((unsigned __int128)rate * d->alpha >>
			   (ALPHA_SHIFT + p->rpg_gd - GD_BASE));
	if (rate < least)
		rate = least;
	cc_set_rate(cc, rate < p->rpg_min_rate ? p->rpg_min_rate : rate);
	d->time_stage = d->byte_stage = 0;
	d->increase_at = now + p->rpg_time_reset;
	d->bytes_left = p->rpg_byte_reset;
	d->decreased_at = now;
	d->cnp_pending = false;
}

static void increase(struct cc *cc)
{
	const struct dcqcn_params *p = &cc->params->dcqcn;
	struct dcqcn *d = &cc->dcqcn;
	uint32_t t = d->time_stage, b = p->rpg_byte_reset != 0 ? d->byte_stage : t;
	uint32_t most = t > b ? t : b, least = t < b ? t : b;

	if (least > p->rpg_threshold)
		d->target_bps += p->rpg_hai_rate;
	else if (most >= p->rpg_threshold)
		d->target_bps += p->rpg_ai_rate;
	if (d->target_bps > d->max_bps)
		d->target_bps = d->max_bps;
	uint64_t rate = (cc->rate_bps + d->target_bps + 1) / 2; // rounded up: it gets there
	if (rate >= d->max_bps) {
		d->limited = false;
		rate = cc->line_bps;
	}
	cc_set_rate(cc, rate);
}

static void dcqcn_init(struct cc *cc, simtime_t now)
{
	const struct dcqcn_params *p = &cc->params->dcqcn;
	uint64_t line = cc->line_bps;

	cc->dcqcn.max_bps = p->rpg_max_rate != 0 && p->rpg_max_rate < line ? p->rpg_max_rate : line;
}

static void first_cnp(struct cc *cc, simtime_t now)
{
	const struct dcqcn_params *p = &cc->params->dcqcn;
	struct dcqcn *d = &cc->dcqcn;
	uint64_t rate = p->rate_to_set_on_first_cnp;

	d->limited = true;
	d->cnp_in_period = d->cnp_pending = false;
	d->alpha = p->initial_alpha_value * (DCQCN_ALPHA_ONE / G_ONE);
	d->alpha_at = now;
	d->time_stage = d->byte_stage = 0;
	cc_set_rate(cc, rate != 0 && rate < d->max_bps ? rate : d->max_bps);
	d->target_bps = cc->rate_bps;
	decrease(cc, now);
}

static void dcqcn_cnp(struct cc *cc, simtime_t now)
{
	const struct dcqcn_params *p = &cc->params->dcqcn;
	struct dcqcn *d = &cc->dcqcn;

	if (!d->limited) {
		first_cnp(cc, now);
	} else {
		update_alpha(d, p, now);
		d->cnp_in_period = true;
		if (now - d->decreased_at >= p->rate_reduce_monitor_period)
			decrease(cc, now);
		else
			d->cnp_pending = true;
	}
	set_deadline(cc);
}

static void dcqcn_sent(struct cc *cc, simtime_t now, uint32_t wire_bytes)
{
	struct dcqcn *d = &cc->dcqcn;
	uint64_t reset = cc->params->dcqcn.rpg_byte_reset;

	if (!d->limited || reset == 0)
		return;
	uint64_t bytes = wire_bytes;
	while (d->limited && bytes >= d->bytes_left) {
		bytes -= d->bytes_left;
		d->bytes_left = reset;
		increase(cc);
		d->byte_stage++;
	}
	d->bytes_left -= bytes < d->bytes_left ? bytes : 0;
	set_deadline(cc);
}

static void dcqcn_timer(struct cc *cc, simtime_t now)
{
	const struct dcqcn_params *p = &cc->params->dcqcn;
	struct dcqcn *d = &cc->dcqcn;
	simtime_t decrease_at = d->decreased_at + p->rate_reduce_monitor_period;

	if (d->cnp_pending && decrease_at <= d->increase_at) {
		decrease(cc, decrease_at);
	} else {
		d->increase_at += p->rpg_time_reset;
		increase(cc);
		d->time_stage++;
	}
	set_deadline(cc);
}

const struct cc_ops dcqcn_ops = {
	.needs = CC_NEEDS_CNP,
	.init = dcqcn_init,
	.sent = dcqcn_sent,
	.cnp = dcqcn_cnp,
	.timer = dcqcn_timer,
};
