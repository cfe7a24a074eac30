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
	uint8_t bits = 0;

	while ((1u << bits) < n_sources)
		bits++;
	*q = (struct evq){
		.n_blocks = n_blocks,
		.n_minima = n_minima,
		.n_sources = n_sources,
		.bits = bits,
		.mask = (1u << bits) - 1,
		.horizon = EVQ_FAR >> bits,
		.advance_at = (EVQ_FAR >> bits) / 2,
	};
	// Minima and keys share one allocation: a host's three sources fit one line.
	size_t bytes = (n_minima + n_keys) * sizeof(uint32_t);
	q->minima = aligned_alloc(64, (bytes + 63) / 64 * 64);
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
	q->advance_at = epoch + q->horizon / 2;
	for (uint32_t i = 0; i < q->n_sources; i++) {
		uint64_t off = (uint64_t)(q->when[i] - epoch);
		q->key[i] = off < q->horizon ? (uint32_t)off << q->bits | i : EVQ_FAR;
	}
	for (uint32_t b = 0; b < q->n_blocks; b++)
		q->minima[b] = evq_block_min(q->key + b * EVQ_BLOCK);
}

simtime_t evq_search(const struct evq *q, uint32_t *source)
{
	simtime_t min = SIMTIME_NEVER;

	for (uint32_t i = 0; i < q->n_sources; i++) {
		if (q->when[i] < min) {
			min = q->when[i];
			*source = i;
		}
	}
	return min;
}
