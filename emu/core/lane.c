/* SPDX-License-Identifier: BSD-3-Clause */
#include "emu/core/lane.h"

#include <errno.h>
#include <rte_common.h>
#include <stdlib.h>

int lane_init(struct lane *l, uint32_t slots)
{
	uint32_t n = rte_align32pow2(RTE_MAX(slots, 4u));

	l->head = l->tail = 0;
	l->mask = n - 1;
	l->slots = malloc(n * sizeof(*l->slots));
	return l->slots ? 0 : -ENOMEM;
}

void lane_fini(struct lane *l)
{
	free(l->slots);
	l->slots = NULL;
}
