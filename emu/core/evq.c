/* SPDX-License-Identifier: BSD-3-Clause */
#include "emu/core/evq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int evq_init(struct evq *q, uint32_t n_sources)
{
	uint32_t n_blocks = (n_sources + EVQ_BLOCK - 1) / EVQ_BLOCK;
	uint32_t n_minima = (n_blocks + EVQ_BLOCK - 1) / EVQ_BLOCK * EVQ_BLOCK;
	size_t n_keys = (size_t)n_blocks * EVQ_BLOCK;

	*q = (struct evq){.n_blocks = (uint16_t)n_blocks,
		.n_minima = (uint16_t)n_minima,
		.n_sources = n_sources};
	// Minima and keys share one allocation: a host's three sources fit two lines.
	size_t bytes = (n_minima + n_keys) * sizeof(uint32_t);
	q->minima = aligned_alloc(64, (bytes + 63) / 64 * 64); // a multiple, as C11 asks for
	q->when = malloc(n_sources * sizeof(*q->when));
	if (q->minima == NULL || q->when == NULL) {
		evq_fini(q);
		return -ENOMEM;
	}
	q->key = q->minima + n_minima;
	memset(q->minima, 0xff, bytes);
	for (uint32_t i = 0; i < n_sources; i++)
		q->when[i] = SIMTIME_NEVER;
	return 0;
}

void evq_fini(struct evq *q)
{
	free(q->minima);
	free(q->when);
	*q = (struct evq){0};
}

void evq_set_epoch(struct evq *q, simtime_t epoch)
{
	q->epoch = epoch;
	for (uint32_t i = 0; i < q->n_sources; i++) {
		uint64_t off = (uint64_t)(q->when[i] - epoch);
		q->key[i] = off < EVQ_FAR ? (uint32_t)off : EVQ_FAR;
	}
	for (uint32_t b = 0; b < q->n_blocks; b++)
		q->minima[b] = evq_block_min(q->key + b * EVQ_BLOCK);
}

void evq_rebase(struct evq *q)
{
	simtime_t min = SIMTIME_NEVER;

	for (uint32_t i = 0; i < q->n_sources; i++)
		min = simtime_min(min, q->when[i]);
	if (min != SIMTIME_NEVER)
		evq_set_epoch(q, simtime_max(0, min - EVQ_FAR / 2));
}
