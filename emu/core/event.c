/* SPDX-License-Identifier: BSD-3-Clause */
#include "emu/core/event.h"

#include <stddef.h>

static const char *const names[EVENT_KIND_COUNT] = {
#define X(id, name, a, b) [EV_##id] = name,
	EVENT_KINDS(X)
#undef X
};

const char *event_kind_name(enum event_kind kind)
{
	return kind < EVENT_KIND_COUNT ? names[kind] : NULL;
}
