/* SPDX-License-Identifier: BSD-3-Clause */
#include "emu/core/lane.h"

#include <errno.h>
#include <rte_common.h>
#include <stdlib.h>

#define LANE_SLOTS_MAX (1u << 22)

int lane_init(struct lane *l, uint32_t slots)
{
	uint32_t n = rte_align32pow2(RTE_MAX(slots, 4u));

	l->head = l->tail = 0;
	l->mask = n - 1;
	l->slots = malloc(n * sizeof(*l->slots));
	return l->slots ? 0 : -ENOMEM;
}

int lane_grow(struct lane *l)
{
	uint32_t n = l->tail - l->head;
	uint32_t size = 2 * (l->mask + 1);

	if (size > LANE_SLOTS_MAX)
		return -ENOSPC;
	struct lane_slot *slots = malloc(size * sizeof(*slots));
	if (slots == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		slots[i] = l->slots[(l->head + i) & l->mask];
	free(l->slots);
	l->slots = slots;
	l->mask = size - 1;
	l->head = 0;
	l->tail = n;
	return 0;
}

void lane_fini(struct lane *l)
{
	free(l->slots);
	l->slots = NULL;
}
