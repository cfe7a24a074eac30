/* SPDX-License-Identifier: BSD-3-Clause */

#include "emu/scenario/diag.h"

#include <ctype.h>
#include <stdarg.h>
#include <string.h>

#include "emu/scenario/doc.h"

#define WORD_MAX 64

static void finish(struct diag *d, const char *fmt, va_list ap)
{
	vfprintf(d->out, fmt, ap);
	fputc('\n', d->out);
	if (++d->n == DIAG_MAX)
		fprintf(d->out, "too many errors, the rest is not shown\n");
}

static void print_origin(struct diag *d, const struct ynode *n)
{
	if (n->line != 0)
		fprintf(d->out, "%s:%u:%u: ", n->src, n->line, n->col);
	else
		fprintf(d->out, "%s: ", n->src);
}

void diag_at(struct diag *d, const struct ynode *n, const char *fmt, ...)
{
	char path[YNODE_PATH_MAX];
	va_list ap;

	if (diag_full(d))
		return;
	print_origin(d, n);
	ynode_path(n, path, sizeof(path));
	if (path[0] != '\0')
		fprintf(d->out, "%s: ", path);
	va_start(ap, fmt);
	finish(d, fmt, ap);
	va_end(ap);
}

void diag_key(struct diag *d, const struct ynode *map, const char *key, const char *fmt, ...)
{
	char path[YNODE_PATH_MAX];
	va_list ap;

	if (diag_full(d))
		return;
	const struct ynode *at = ynode_key_node(map, key);
	print_origin(d, at != NULL ? at : map);
	ynode_path(map, path, sizeof(path));
	fprintf(d->out, "%s%s%s: ", path, path[0] != '\0' ? "." : "", key);
	va_start(ap, fmt);
	finish(d, fmt, ap);
	va_end(ap);
}

void diag_pos(struct diag *d, const char *file, size_t line, size_t col, const char *fmt, ...)
{
	va_list ap;

	if (diag_full(d))
		return;
	if (line != 0)
		fprintf(d->out, "%s:%zu:%zu: ", file, line, col);
	else
		fprintf(d->out, "%s: ", file);
	va_start(ap, fmt);
	finish(d, fmt, ap);
	va_end(ap);
}

// Damerau-Levenshtein distance (adjacent swap counts 1), case folded; words beyond WORD_MAX are
// cut.
static unsigned distance(const char *a, const char *b)
{
	unsigned row[3][WORD_MAX + 1];
	size_t la = strnlen(a, WORD_MAX), lb = strnlen(b, WORD_MAX);

	for (size_t j = 0; j <= lb; j++)
		row[0][j] = (unsigned)j;
	for (size_t i = 1; i <= la; i++) {
		unsigned *cur = row[i % 3], *up = row[(i - 1) % 3];

		cur[0] = (unsigned)i;
		for (size_t j = 1; j <= lb; j++) {
			int ca = tolower((unsigned char)a[i - 1]);
			int cb = tolower((unsigned char)b[j - 1]);
			unsigned best = up[j - 1] + (ca != cb);

			if (up[j] + 1 < best)
				best = up[j] + 1;
			if (cur[j - 1] + 1 < best)
				best = cur[j - 1] + 1;
			if (i > 1 && j > 1 && ca == tolower((unsigned char)b[j - 2]) &&
				cb == tolower((unsigned char)a[i - 2]) &&
				row[(i - 2) % 3][j - 2] + 1 < best)
				best = row[(i - 2) % 3][j - 2] + 1;
			cur[j] = best;
		}
	}
	return row[la % 3][lb];
}

const char *diag_suggest(
	const char *word, const char *(*next)(const void *ctx, size_t i), const void *ctx)
{
	const char *best = NULL;
	unsigned best_distance = ((unsigned)strnlen(word, WORD_MAX) + 2) / 3 + 1; // exclusive
	const char *c;

	for (size_t i = 0; (c = next(ctx, i)) != NULL; i++) {
		unsigned dist = distance(word, c);
		if (dist < best_distance && dist < strlen(c)) {
			best_distance = dist;
			best = c;
		}
	}
	return best;
}
