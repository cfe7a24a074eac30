/* SPDX-License-Identifier: BSD-3-Clause */
// Adaptive retransmission. mlx5 has it (`roce_adp_retrans_en`) and counts it, but NVIDIA does not
// publish the algorithm; measured from outside (Lumina, SIGCOMM 2023), a QP that gets no answer is
// repeated after a fraction of its configured timeout first, then after longer and longer ones,
// and more often than retry_cnt in all. Here:
//
//	RTO = srtt + 4 rttvar, at least 16 us, at most the configured timeout T  (RFC
// 6298, 2.2, 2.3) 	      T / 16 until there is a sample
//
// with gains 1/8 and 1/4. One packet at a time is timed, never one that may be a repetition (Karn):
// the first new one after the last sample; READs and atomics are not. Each time the timer runs out
// the RTO doubles, without using a retry, until it reaches T: from then on the timeouts are the
// standard's. Progress brings back the RTO of the samples.
//
// It costs the straight path nothing: the packet to time is found by tx_slow, its ACK by ack_slow.
#include "models/rc.h"
#include "models/rc_internal.h"

static void set_rto(struct rc_requester *q)
{
	struct rc_adaptive *a = &q->adaptive;
	simtime_t rto = a->srtt != 0 ? a->srtt + 4 * a->rttvar : a->configured / RC_ADAPTIVE_FIRST;

	if (rto < RC_ADAPTIVE_MIN)
		rto = RC_ADAPTIVE_MIN;
	q->timeout = simtime_min(rto, a->configured);
}

void rc_adaptive_init(struct rc_requester *q)
{
	q->adaptive = (struct rc_adaptive){
		.on = q->timeout != SIMTIME_NEVER,
		.configured = q->timeout,
		.sent_at = SIMTIME_NEVER,
	};
	if (q->adaptive.on)
		set_rto(q);
}

void rc_adaptive_sent(struct rc_requester *q, simtime_t now)
{
	q->adaptive.sent_at = now;
}

static void sample(struct rc_adaptive *a, simtime_t rtt)
{
	if (a->srtt == 0) {
		a->srtt = rtt;
		a->rttvar = rtt / 2;
		return;
	}
	simtime_t off = rtt > a->srtt ? rtt - a->srtt : a->srtt - rtt;
	a->rttvar += (off - a->rttvar) / 4;
	a->srtt += (rtt - a->srtt) / 8;
}

void rc_adaptive_acked(struct rc_requester *q, simtime_t now, uint64_t una)
{
	struct rc_adaptive *a = &q->adaptive;

	if (una > a->mark) {
		if (a->sent_at != SIMTIME_NEVER)
			sample(a, now - a->sent_at);
		rc_adaptive_mark(q);
	}
	a->backed_off = false;
	set_rto(q);
}

void rc_adaptive_mark(struct rc_requester *q)
{
	q->adaptive.mark = q->max;
	q->adaptive.sent_at = SIMTIME_NEVER;
	rc_aim(q);
}

bool rc_adaptive_expired(struct rc_requester *q)
{
	struct rc_adaptive *a = &q->adaptive;

	if (q->timeout >= a->configured)
		return false;
	q->timeout = simtime_min(2 * q->timeout, a->configured);
	a->retrans++;
	a->reached += q->timeout == a->configured;
	a->backed_off = true;
	return true;
}
