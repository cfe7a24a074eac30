/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipelines/materialise.h"

#include <string.h>

#include "emu/core/rng.h"
#include "pcap/build.h"
#include "pcap/codec.h"
#include "pcap/icrc.h"

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)

static inline uint64_t pattern_key(uint32_t flow)
{
	return mix64((uint64_t)flow + 1);
}

static inline uint64_t pattern_word(uint64_t key, uint64_t block)
{
	return mix64(key + block * GOLDEN);
}

void payload_pattern_fill(uint32_t flow, uint64_t pos, uint8_t *out, size_t n)
{
	uint64_t key = pattern_key(flow);
	uint64_t block = pos / 8;
	unsigned skip = pos % 8;

	if (skip != 0 && n > 0) {
		uint64_t w = pattern_word(key, block++) >> (8 * skip);
		size_t part = n < 8 - skip ? n : 8 - skip;
		memcpy(out, &w, part);
		out += part;
		n -= part;
	}
	for (; n >= 8; n -= 8, out += 8) {
		uint64_t w = pattern_word(key, block++);
		memcpy(out, &w, 8);
	}
	if (n > 0) {
		uint64_t w = pattern_word(key, block);
		memcpy(out, &w, n);
	}
}

size_t payload_pattern_check(uint32_t flow, uint64_t pos, const uint8_t *p, size_t n)
{
	uint8_t expect[256];

	for (size_t done = 0; done < n;) {
		size_t part = n - done < sizeof(expect) ? n - done : sizeof(expect);
		payload_pattern_fill(flow, pos + done, expect, part);
		if (memcmp(p + done, expect, part) != 0) {
			while (*(p + done) == expect[done % sizeof(expect)])
				done++;
			return done;
		}
		done += part;
	}
	return n;
}

struct frame_recipe frame_recipe_of(const struct frame *f)
{
	struct frame_recipe r = {
		.payload_pos = f->payload_pos,
		.flow = f->flow,
		.len = f->len,
		.head_len = f->head_len,
		.payload_len = f->payload_len,
		.synth = f->flags & FRAME_F_SYNTH,
	};
	if (!r.synth)
		return r;
	if (frame_has_tail(f)) {
		r.tail_len = FRAME_TAIL_BYTES;
		memcpy(r.tail, frame_tail(f), FRAME_TAIL_BYTES);
	}
	if (f->flags & FRAME_F_PARSED) {
		r.l3_off = f->l3_off;
		r.bth_off = (uint8_t)(f->l4_off + UDP_HEADER_BYTES);
		return r;
	}
	struct pkt p;
	pkt_parse_head(frame_data(f), f->head_len, f->len, &p);
	r.l3_off = (uint8_t)p.l3_off;
	r.bth_off = (uint8_t)p.bth_off;
	return r;
}

// Copies up to `n` bytes to out[*at], as far as `cap` goes.
static void append(uint8_t *out, size_t cap, size_t *at, const uint8_t *bytes, size_t n)
{
	n = RTE_MIN(n, cap - *at);
	if (bytes != NULL)
		memcpy(out + *at, bytes, n);
	else
		memset(out + *at, 0, n);
	*at += n;
}

unsigned recipe_materialise(
	const struct frame_recipe *r, const uint8_t *head, uint8_t *out, size_t cap)
{
	size_t at = 0;

	cap = RTE_MIN(cap, r->len);
	append(out, cap, &at, head, r->head_len);
	if (!r->synth)
		return (unsigned)at;

	size_t payload = RTE_MIN((size_t)r->payload_len, cap - at);
	payload_pattern_fill(r->flow, r->payload_pos, out + at, payload);
	at += payload;
	append(out, cap, &at, NULL, BTH_PAD(head[r->bth_off + 1]));
	if (at < cap) { // all that the ICRC covers is there
		uint8_t icrc[ICRC_BYTES];
		icrc_put(icrc, icrc_compute(out, r->l3_off, r->bth_off, (unsigned)at));
		append(out, cap, &at, icrc, ICRC_BYTES);
	}
	size_t tail_at = RTE_MIN(cap, (size_t)(r->len - r->tail_len));
	append(out, cap, &at, NULL, tail_at - RTE_MIN(at, tail_at));
	append(out, cap, &at, r->tail, cap - at);
	return (unsigned)at;
}

unsigned frame_materialise(const struct frame *f, uint8_t *out, size_t cap)
{
	struct frame_recipe r = frame_recipe_of(f);

	return recipe_materialise(&r, frame_data(f), out, cap);
}

struct frame *frame_complete(struct rte_mempool *pool, struct frame *f)
{
	struct frame *full = pool != NULL ? frame_alloc(pool) : NULL;

	if (full == NULL)
		return NULL;
	*full = *f;
	full->data_off = RTE_PKTMBUF_HEADROOM;
	full->flags &= (uint8_t) ~(FRAME_F_SYNTH | FRAME_F_HEAD);
	full->head_len = f->len;
	if (frame_has_tail(f))
		full->kind = FRAME_IP; // its tail is where it will be seen, and stays as it is
	frame_materialise(f, frame_data(full), f->len);
	frame_free(f);
	return full;
}
