/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Memory of a scenario: allocated piece by piece, freed as one. Running out aborts: it happens only
// before a run, and the loader bounds what a file can ask for.

#include <stddef.h>
#include <stdint.h>

struct arena;

struct arena *arena_new(void);
void arena_free(struct arena *a);
// Zeroed, aligned for any type; never NULL. `size` may be 0.
void *arena_alloc(struct arena *a, size_t size);
char *arena_strndup(struct arena *a, const char *s, size_t len);
char *arena_strdup(struct arena *a, const char *s);
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// Makes room for element `n` (0-based) of an array that grows by doubling: returns the array,
// moved when it was full. The new element is zero. Start with NULL and 0.
void *arena_grow(struct arena *a, void *array, size_t n, size_t elem_size);
