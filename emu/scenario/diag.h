/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Errors of a scenario, one line each: "file:line:col: key: problem, expected ...". Collected up to
// a limit, so that a person can mend several at once; a loader goes on after an error only where
// what follows does not depend on it.

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define DIAG_MAX 20

struct ynode;

struct diag {
	FILE *out;
	unsigned n;
};

// At a value: its position and its key's path come from the node.
void diag_at(struct diag *d, const struct ynode *n, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
// At a key of the mapping `map` that is missing, or wrong whatever its value.
void diag_key(struct diag *d, const struct ynode *map, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
// At a place of the file without a node (syntax errors).
void diag_pos(struct diag *d, const char *file, size_t line, size_t col, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

// True when so many errors were found that going on is pointless.
static inline bool diag_full(const struct diag *d)
{
	return d->n >= DIAG_MAX;
}

// The candidate that `word` most likely was meant to be, or NULL. Iterates next(ctx, i) for i = 0..
// until it returns NULL.
const char *diag_suggest(
	const char *word, const char *(*next)(const void *ctx, size_t i), const void *ctx);
