/* SPDX-License-Identifier: BSD-3-Clause */

#include "emu/scenario/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES (64 * 1024)
#define ALIGN       16

struct block {
	struct block *next;
	size_t used;
	size_t size;
	char *data;
};

struct arena {
	struct block *blocks;
};

static void *must(void *p)
{
	if (p == NULL) {
		fputs("fabemu: out of memory while reading a scenario\n", stderr);
		abort();
	}
	return p;
}

struct arena *arena_new(void)
{
	return must(calloc(1, sizeof(struct arena)));
}

void arena_free(struct arena *a)
{
	if (a == NULL)
		return;
	for (struct block *b = a->blocks, *next; b != NULL; b = next) {
		next = b->next;
		free(b->data);
		free(b);
	}
	free(a);
}

void *arena_alloc(struct arena *a, size_t size)
{
	struct block *b = a->blocks;

	size = (size + ALIGN - 1) / ALIGN * ALIGN;
	if (b == NULL || b->size - b->used < size) {
		b = must(calloc(1, sizeof(*b)));
		b->size = size > BLOCK_BYTES ? size : BLOCK_BYTES;
		b->data = must(calloc(1, b->size));
		b->next = a->blocks;
		a->blocks = b;
	}
	void *p = b->data + b->used;
	b->used += size;
	return p;
}

char *arena_strndup(struct arena *a, const char *s, size_t len)
{
	char *copy = arena_alloc(a, len + 1);
	memcpy(copy, s, len);
	return copy;
}

char *arena_strdup(struct arena *a, const char *s)
{
	return arena_strndup(a, s, strlen(s));
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	char *s = arena_strdup(a, must(text));
	free(text);
	return s;
}

void *arena_grow(struct arena *a, void *array, size_t n, size_t elem_size)
{
	if (n != 0 && (n & (n - 1)) != 0)
		return array; // capacity is the next power of two

	void *moved = arena_alloc(a, (n == 0 ? 1 : 2 * n) * elem_size);
	if (n != 0)
		memcpy(moved, array, n * elem_size);
	return moved;
}
