/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Which way is up: the level of each switch, and up-down (valley-free) paths.
//
// A switch with hosts has level 0, others one more than the lowest of their neighbours', unless the
// scenario gives levels. For up*/down* routing (M. D. Schroeder et al., "Autonet", IEEE JSAC 9(8),
// 1991) every link needs a direction: between equals, the switch named first is the upper one.

#include <stdbool.h>
#include <stdint.h>

#include "emu/scenario/scenario.h"

// Fills level[s->n_switches]. `queue`: as many, for the search.
void levels_find(const struct scenario *s, uint8_t *level, uint32_t *queue);

// The neighbour behind a port is a switch of a higher level.
bool level_is_up(const struct scenario *s, const uint8_t *level, uint32_t sw, uint16_t port);

static inline bool level_above(const uint8_t *level, uint32_t a, uint32_t b)
{
	return level[a] != level[b] ? level[a] > level[b] : a < b;
}
