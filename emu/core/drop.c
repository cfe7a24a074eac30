/* SPDX-License-Identifier: BSD-3-Clause */
#include "emu/core/drop.h"

#include <stddef.h>
#include <string.h>

static const struct {
	const char *name;
	const char *help;
} reasons[DROP_REASON_COUNT] = {
#define X(id, name, help) [DROP_##id] = {name, help},
	DROP_REASONS(X)
#undef X
};

const char *drop_reason_name(enum drop_reason reason)
{
	return reason < DROP_REASON_COUNT ? reasons[reason].name : NULL;
}

const char *drop_reason_help(enum drop_reason reason)
{
	return reason < DROP_REASON_COUNT ? reasons[reason].help : NULL;
}

int drop_reason_by_name(const char *name)
{
	for (int i = 0; i < DROP_REASON_COUNT; i++)
		if (strcmp(reasons[i].name, name) == 0)
			return i;
	return -1;
}
