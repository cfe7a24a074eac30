/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Name -> index, for nodes, profiles, flows.

#include <stdbool.h>
#include <stdint.h>

#include "emu/scenario/arena.h"

struct names {
	struct arena *a;
	uint32_t n;
	uint32_t cap; // power of two or 0
	struct name_slot {
		const char *name; // NULL: free
		uint32_t index;
	} * slots;
};

void names_init(struct names *t, struct arena *a);
// False if the name exists already. The string is kept, not copied.
bool names_add(struct names *t, const char *name, uint32_t index);
// SC_NONE (UINT32_MAX) if unknown.
uint32_t names_find(const struct names *t, const char *name);
// The known name most like `name`, or NULL.
const char *names_suggest(const struct names *t, const char *name);
