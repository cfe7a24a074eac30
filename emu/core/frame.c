/* SPDX-License-Identifier: BSD-3-Clause */
#include "emu/core/frame.h"

bool frame_cache_refill(struct frame_cache *c)
{
	void *m[FRAME_CACHE_BULK];
	unsigned n = FRAME_CACHE_BULK;

	while (rte_mempool_get_bulk(c->pool, m, n) < 0)
		if ((n /= 2) == 0)
			return false;
	for (unsigned i = 0; i < n; i++) {
		struct frame *f = mbuf_frame(m[i]);
		f->next = c->head;
		c->head = f;
	}
	c->n += n;
	return true;
}

void frame_cache_flush(struct frame_cache *c, uint32_t left)
{
	void *m[FRAME_CACHE_BULK];

	while (c->n > left) {
		unsigned n = RTE_MIN(c->n - left, FRAME_CACHE_BULK);
		for (unsigned i = 0; i < n; i++) {
			m[i] = frame_mbuf(c->head);
			c->head = c->head->next;
		}
		c->n -= n;
		rte_mempool_put_bulk(c->pool, m, n);
	}
}
