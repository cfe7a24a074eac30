/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Shared by the files of the requester: rc_requester.c sends, rc_complete.c takes ACKs, NAKs and
// gives completions, rc_read.c takes the answers to READs and atomics.

#include "models/rc.h"

static inline struct rc_wqe *rc_wqe_at(const struct rc_requester *q, uint32_t i)
{
	return &q->sq[i & q->sq_mask];
}

// `end`, `limit` and `ack_slow` anew, after anything they depend on has changed.
void rc_gate(struct rc_requester *q);
// `tx_slow` anew.
void rc_aim(struct rc_requester *q);
// rc_advance() with what follows from it: work requests completed, gates opened. Returns RC_ACK_*.
int rc_moved(struct rc_requester *q, simtime_t now, uint64_t una);
// One retry: repeat from una, or fail. Returns RC_ACK_REWOUND or RC_ACK_ERROR.
int rc_retry(struct rc_requester *q, simtime_t now);
// A hole in the answers at una: a retry, the first time.
int rc_implied_nak(struct rc_requester *q, simtime_t now);
// The QP ends; returns RC_ACK_ERROR.
int rc_fail(struct rc_requester *q, enum wc_status status);
// Credits of an AETH that came with new or the newest acknowledged PSN.
void rc_take_credits(struct rc_requester *q, uint32_t aeth);
