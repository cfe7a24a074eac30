/* SPDX-License-Identifier: BSD-3-Clause */
// Records come from several lcores, each nearly in time order (a frame that is sent is stamped with
// the moment its first bit leaves, which may lie ahead). A heap by (time, interface, sequence)
// brings them in an order that does not depend on who produced them.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "emu/capture/internal.h"

#define INITIAL_RECORDS 1024
#define SMALL_BYTES     320 // record of a synthetic frame with the longest headers

int merge_init(struct merge *m)
{
	*m = (struct merge){.cap = INITIAL_RECORDS};
	m->heap = malloc(m->cap * sizeof(struct record *));
	return m->heap ? 0 : -ENOMEM;
}

void merge_fini(struct merge *m)
{
	for (size_t i = 0; i < m->n; i++)
		free(m->heap[i]);
	while (m->free_small != NULL) {
		struct record *next;
		memcpy(&next, m->free_small, sizeof(struct record *));
		free(m->free_small);
		m->free_small = next;
	}
	free(m->heap);
	m->heap = NULL;
}

static bool before(const struct record *x, const struct record *y)
{
	if (x->at != y->at)
		return x->at < y->at;
	if (x->interface != y->interface)
		return x->interface < y->interface;
	return x->seq < y->seq;
}

static struct record *new_record(struct merge *m, uint32_t bytes)
{
	if (bytes > SMALL_BYTES)
		return malloc(bytes);
	struct record *r = m->free_small;
	if (r == NULL)
		return malloc(SMALL_BYTES);
	memcpy(&m->free_small, r, sizeof(struct record *));
	return r;
}

void merge_give_back(struct merge *m, struct record *r)
{
	if (r->bytes > SMALL_BYTES) {
		free(r);
		return;
	}
	memcpy(r, &m->free_small, sizeof(struct record *));
	m->free_small = r;
}

int merge_add(struct merge *m, const struct record *from)
{
	if (m->n == m->cap) {
		struct record **heap = realloc(m->heap, 2 * m->cap * sizeof(struct record *));
		if (heap == NULL)
			return -ENOMEM;
		m->heap = heap;
		m->cap *= 2;
	}
	struct record *r = new_record(m, from->bytes);
	if (r == NULL)
		return -ENOMEM;
	memcpy(r, from, from->bytes);

	size_t i = m->n++;
	while (i > 0 && before(r, m->heap[(i - 1) / 2])) {
		m->heap[i] = m->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	m->heap[i] = r;
	return 0;
}

const struct record *merge_first(const struct merge *m)
{
	return m->n ? m->heap[0] : NULL;
}

struct record *merge_take(struct merge *m)
{
	struct record *first = m->heap[0], *last = m->heap[--m->n];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < m->n) {
		if (child + 1 < m->n && before(m->heap[child + 1], m->heap[child]))
			child++;
		if (before(last, m->heap[child]))
			break;
		m->heap[i] = m->heap[child];
		i = child;
	}
	m->heap[i] = last;
	return first;
}
