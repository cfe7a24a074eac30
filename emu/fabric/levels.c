/* SPDX-License-Identifier: BSD-3-Clause */
#include "emu/fabric/levels.h"

#define LEVEL_NONE UINT8_MAX

static bool has_host(const struct scenario *s, uint32_t sw)
{
	for (uint16_t p = 0; p < s->nodes[sw].n_ports; p++)
		if (sc_is_host(s, sc_peer(s, sw, p).node))
			return true;
	return false;
}

void levels_find(const struct scenario *s, uint8_t *level, uint32_t *queue)
{
	uint32_t head = 0, tail = 0;

	for (uint32_t i = 0; i < s->n_switches; i++) {
		level[i] = LEVEL_NONE;
		if (!has_host(s, i))
			continue;
		level[i] = 0;
		queue[tail++] = i;
	}
	while (head < tail) {
		uint32_t sw = queue[head++];
		for (uint16_t p = 0; p < s->nodes[sw].n_ports; p++) {
			uint32_t peer = sc_peer(s, sw, p).node;
			if (sc_is_host(s, peer) || level[peer] != LEVEL_NONE)
				continue;
			level[peer] =
				level[sw] + 1 < LEVEL_NONE ? (uint8_t)(level[sw] + 1) : level[sw];
			queue[tail++] = peer;
		}
	}
	for (uint32_t i = 0; i < s->n_switches; i++) {
		if (s->switches[i].level != SC_LEVEL_AUTO)
			level[i] = s->switches[i].level;
		else if (level[i] == LEVEL_NONE) // no host can be reached from it
			level[i] = 0;
	}
}

bool level_is_up(const struct scenario *s, const uint8_t *level, uint32_t sw, uint16_t port)
{
	uint32_t peer = sc_peer(s, sw, port).node;

	return !sc_is_host(s, peer) && level[peer] > level[sw];
}
