/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Which of a port's eight queues sends next: STRICT queues by index (7 first), then the others by
// deficit weighted round robin (DWRR) on bytes. See sched.c.

#include <stdint.h>

#define SCHED_QUEUES 8

enum sched_type { SCHED_DWRR, SCHED_STRICT };

// SCHEDULER table entry bound to a queue.
struct sched_queue_config {
	uint8_t type;    // enum sched_type
	uint16_t weight; // DWRR: share, 1..1000; 0 counts as 1
};

struct sched {
	uint8_t strict;  // queues of type STRICT
	uint8_t current; // queue whose turn it is
	int32_t deficit[SCHED_QUEUES];
	int32_t quantum[SCHED_QUEUES];
};

// `max_frame_bytes`: the longest frame to come (with FCS); sets the unit of the quanta.
void sched_init(
	struct sched *s, const struct sched_queue_config q[SCHED_QUEUES], uint32_t max_frame_bytes);

// The DWRR turn among `ready`, two or more queues, none of them strict.
static inline unsigned sched_turn(struct sched *s, unsigned ready)
{
	unsigned q = s->current;

	// Every quantum exceeds the longest frame, so a queue visited anew can always send, and
	// this loop runs at most twice.
	while (!(ready >> q & 1) || s->deficit[q] <= 0) {
		unsigned later = ready & ~((2u << q) - 1);
		q = (unsigned)__builtin_ctz(later ? later : ready);
		s->deficit[q] += s->quantum[q];
	}
	s->current = (uint8_t)q;
	return q;
}

// The queue to send from. `ready`: bit mask of queues with frames and not paused, not 0.
static inline unsigned sched_pick(struct sched *s, unsigned ready)
{
	unsigned strict = ready & s->strict;

	if ((ready & (ready - 1)) == 0)
		return (unsigned)__builtin_ctz(ready);
	if (strict)
		return 31u - (unsigned)__builtin_clz(strict);
	return sched_turn(s, ready);
}

// `bytes` of queue `q` were sent while `ready` were. A queue without competition is not charged.
static inline void sched_charge(struct sched *s, unsigned ready, unsigned q, uint32_t bytes)
{
	if ((ready & ~(unsigned)s->strict & ~(1u << q)) != 0)
		s->deficit[q] -= (int32_t)bytes;
}

// `q` ran empty: what it did not use is gone.
static inline void sched_emptied(struct sched *s, unsigned q)
{
	if (s->deficit[q] > 0)
		s->deficit[q] = 0;
}
