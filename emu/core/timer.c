/* SPDX-License-Identifier: BSD-3-Clause */
#include "emu/core/timer.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define ARITY 4

int timer_heap_init(struct timer_heap *h, uint32_t cap)
{
	*h = (struct timer_heap){.cap = cap ? cap : ARITY};
	h->heap = malloc(h->cap * sizeof(*h->heap));
	return h->heap ? 0 : -ENOMEM;
}

void timer_heap_fini(struct timer_heap *h)
{
	free(h->heap);
	*h = (struct timer_heap){0};
}

static bool earlier(const struct timer *a, const struct timer *b)
{
	return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

int timer_heap_add(struct timer_heap *h, simtime_t at, uint32_t kind, uint32_t arg)
{
	if (h->n == h->cap) {
		struct timer *bigger = realloc(h->heap, 2 * (size_t)h->cap * sizeof(*bigger));
		if (bigger == NULL)
			return -ENOMEM;
		h->heap = bigger;
		h->cap *= 2;
	}

	struct timer t = {.at = at, .seq = h->seq++, .kind = kind, .arg = arg};
	uint32_t i = h->n++;
	while (i > 0 && earlier(&t, &h->heap[(i - 1) / ARITY])) {
		h->heap[i] = h->heap[(i - 1) / ARITY];
		i = (i - 1) / ARITY;
	}
	h->heap[i] = t;
	return 0;
}

struct timer timer_heap_pop(struct timer_heap *h)
{
	struct timer top = h->heap[0];
	struct timer last = h->heap[--h->n];
	uint32_t i = 0;

	for (;;) {
		uint32_t first = i * ARITY + 1;
		uint32_t best = i;
		const struct timer *best_timer = &last;
		for (uint32_t c = first; c < first + ARITY && c < h->n; c++) {
			if (earlier(&h->heap[c], best_timer)) {
				best = c;
				best_timer = &h->heap[c];
			}
		}
		if (best == i)
			break;
		h->heap[i] = h->heap[best];
		i = best;
	}
	if (h->n > 0)
		h->heap[i] = last;
	return top;
}
