/* SPDX-License-Identifier: BSD-3-Clause */

#include "emu/report/expect_path.h"

#include <fnmatch.h>
#include <string.h>

static const struct {
	const char *first;
	const char *last;
	uint32_t n_parts;
	enum expect_unit unit;
} paths[] = {
#define X(id, first, last, n, unit, form) [EXPECT_PATH_##id] = {first, last, n, unit},
	EXPECT_PATHS(X)
#undef X
};

enum expect_path expect_path_of(const struct sc_expect *e)
{
	for (int i = 0; i < EXPECT_PATH_COUNT; i++) {
		if (e->n_parts != paths[i].n_parts || strcmp(e->part[0], paths[i].first) != 0)
			continue;
		if (paths[i].last == NULL || strcmp(e->part[e->n_parts - 1], paths[i].last) == 0)
			return (enum expect_path)i;
	}
	return EXPECT_PATH_COUNT;
}

enum expect_unit expect_unit_of(enum expect_path path)
{
	return path < EXPECT_PATH_COUNT ? paths[path].unit : EXPECT_COUNT;
}

bool expect_matches(const char *part, const char *name)
{
	return fnmatch(part, name, 0) == 0;
}

const char *expect_op_text(enum sc_cmp op)
{
	static const char *const text[] = {
		[SC_EQ] = "==",
		[SC_NE] = "!=",
		[SC_LT] = "<",
		[SC_LE] = "<=",
		[SC_GT] = ">",
		[SC_GE] = ">=",
	};

	return (unsigned)op < sizeof(text) / sizeof(text[0]) ? text[op] : "?";
}

bool expect_holds(double got, enum sc_cmp op, double value)
{
	switch (op) {
	case SC_EQ:
		return got == value;
	case SC_NE:
		return got != value;
	case SC_LT:
		return got < value;
	case SC_LE:
		return got <= value;
	case SC_GT:
		return got > value;
	case SC_GE:
		return got >= value;
	}
	return false;
}
