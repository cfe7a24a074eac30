/* SPDX-License-Identifier: BSD-3-Clause */

#include "emu/scenario/names.h"

#include <string.h>

#include "emu/scenario/diag.h"

void names_init(struct names *t, struct arena *a)
{
	*t = (struct names){.a = a};
}

static struct name_slot *find_slot(const struct names *t, const char *name)
{
	uint64_t h = UINT64_C(14695981039346656037); // FNV-1a

	for (const char *c = name; *c != '\0'; c++)
		h = (h ^ (unsigned char)*c) * UINT64_C(1099511628211);
	for (uint64_t i = h ^ (h >> 32);; i++) {
		struct name_slot *s = &t->slots[i & (t->cap - 1)];
		if (s->name == NULL || strcmp(s->name, name) == 0)
			return s;
	}
}

static void grow(struct names *t)
{
	struct names bigger = {.a = t->a, .n = t->n, .cap = t->cap == 0 ? 32 : 2 * t->cap};

	bigger.slots = arena_alloc(t->a, bigger.cap * sizeof(*bigger.slots));
	for (uint32_t i = 0; i < t->cap; i++)
		if (t->slots[i].name != NULL)
			*find_slot(&bigger, t->slots[i].name) = t->slots[i];
	*t = bigger;
}

bool names_add(struct names *t, const char *name, uint32_t index)
{
	if (2 * t->n >= t->cap)
		grow(t);
	struct name_slot *s = find_slot(t, name);
	if (s->name != NULL)
		return false;
	*s = (struct name_slot){.name = name, .index = index};
	t->n++;
	return true;
}

uint32_t names_find(const struct names *t, const char *name)
{
	if (t->n == 0)
		return UINT32_MAX;
	const struct name_slot *s = find_slot(t, name);
	return s->name != NULL ? s->index : UINT32_MAX;
}

static const char *nth_name(const void *ctx, size_t i)
{
	const struct names *t = ctx;
	static const char skipped[] = "";

	if (i >= t->cap)
		return NULL;
	return t->slots[i].name != NULL ? t->slots[i].name : skipped;
}

const char *names_suggest(const struct names *t, const char *name)
{
	return diag_suggest(name, nth_name, t);
}
