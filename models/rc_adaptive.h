/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Adaptive retransmission of a requester (mlx5's roce_adp_retrans): see models/rc_adaptive.c.

#include <stdbool.h>
#include <stdint.h>

#include "emu/core/simtime.h"

struct rc_requester;

#define RC_ADAPTIVE_FIRST 16            // of the configured timeout, until a round trip is known
#define RC_ADAPTIVE_MIN   (16 * SIM_US) // least timeout

struct rc_adaptive {
	bool on;
	bool backed_off;        // the timer has run out since the last progress
	simtime_t configured;   // local ACK timeout; q->timeout is the one in force
	simtime_t srtt, rttvar; // srtt 0: no sample yet
	simtime_t sent_at;      // of packet `mark`, SIMTIME_NEVER: not sent
	uint64_t mark;          // the packet being timed
	uint64_t retrans;       // roce_adp_retrans: repetitions that used no retry
	uint64_t reached;       // roce_adp_retrans_to: times it got as long as configured
};

void rc_adaptive_init(struct rc_requester *q);
// nxt has passed `mark`.
void rc_adaptive_sent(struct rc_requester *q, simtime_t now);
// `una` packets are acknowledged.
void rc_adaptive_acked(struct rc_requester *q, simtime_t now, uint64_t una);
// What was in flight may be a repetition from now on: times the next new packet.
void rc_adaptive_mark(struct rc_requester *q);
// The timer has run out: true when this uses no retry.
bool rc_adaptive_expired(struct rc_requester *q);
