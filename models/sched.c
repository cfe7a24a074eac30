/* SPDX-License-Identifier: BSD-3-Clause */
// Scheduling of a port's queues. Queues of type STRICT go first, the highest index before all
// others, as SONiC orders them. The rest share by deficit weighted round robin (Shreedhar and
// Varghese, SIGCOMM 1995) on frame bytes, in the surplus form: a queue whose turn begins gets its
// quantum, sends while its deficit is positive, and may overdraw by one frame, which its next turn
// pays. So the length of a frame need not be known before it is picked.
//
// quantum = weight * unit, with the unit chosen so that the smallest quantum exceeds the longest
// frame: each turn then sends at least one frame and a pick looks at one other queue at most. Over
// a round every backlogged queue sends quantum bytes, give or take a frame, so long-run shares are
// exactly the weights'.
//
// A queue that is alone sends without being charged; shares count only under competition. A paused
// queue is not ready: it keeps its deficit, misses its turns and saves nothing up. An empty queue
// loses its remaining deficit.

#include "models/sched.h"

void sched_init(
	struct sched *s, const struct sched_queue_config q[SCHED_QUEUES], uint32_t max_frame_bytes)
{
	uint32_t least = UINT32_MAX;

	*s = (struct sched){0};
	for (unsigned i = 0; i < SCHED_QUEUES; i++) {
		uint32_t weight = q[i].weight ? q[i].weight : 1;
		if (q[i].type == SCHED_STRICT)
			s->strict |= (uint8_t)(1u << i);
		else if (weight < least)
			least = weight;
	}
	if (least == UINT32_MAX)
		return;
	uint32_t unit = max_frame_bytes / least + 1;
	for (unsigned i = 0; i < SCHED_QUEUES; i++)
		s->quantum[i] = (int32_t)(unit * (q[i].weight ? q[i].weight : 1));
}
