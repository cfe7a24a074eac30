/* SPDX-License-Identifier: BSD-3-Clause */
// The shared buffer of a switch, as SONiC and SAI describe it (BUFFER_POOL, BUFFER_PROFILE,
// SAI_BUFFER_PROFILE_ATTR_*; doc/qos/dynamically-headroom-calculation.md).
//
//	buffer = sum of reserved (PG `size`)  +  shared pool  +  headroom (sum of `xoff`, or a pool)
//
// Memory is given out in cells; a frame takes ceil(bytes / cell) of them, its FCS included. A frame
// that comes in is charged, once, to its ingress PG:
//
//	1. to the PG's reserved cells as far as they go, and the rest
//	2. to the shared pool, if the PG's shared cells stay within its threshold
//	   (static_th, or dynamic_th: alpha = 2^n times the cells free in the pool before this
// frame) 	   and the pool has them; else
//	3. lossless PG: all its cells to the headroom, or it is dropped;
//	   lossy PG: it is dropped.
//
// XOFF. A lossless PG asserts XOFF when the first frame goes to the headroom, that is when a frame
// would cross the threshold. That frame is part of what the headroom must hold (models/headroom.c).
//
// Release. Cells go back headroom first, then shared, then reserved, so the headroom is whole again
// as early as possible. XON when the headroom is empty *and* the PG holds no more than
// max(xon, limit - xon_offset), limit being reserved + the shared threshold at that moment (SAI's
// rule: "when the total buffer usage drops below the maximum of xon_th and buffer limit -
// xon_offset_th and a packet is dequeued"). That the headroom must be empty is ours: with a dynamic
// threshold that has grown since, SAI's rule alone could resume a sender whose headroom is partly
// used, and the next XOFF would lose frames.
//
// Egress. A lossy frame is also held against its queue's limit (reserved `size`, then a static or
// dynamic threshold on the same pool). A queue's `size` is a promise not to drop, not memory set
// aside: memory is accounted at ingress only. Frames of a lossless PG are counted in the queue but
// never dropped there.
//
// Simplified: one pool for lossy and lossless (SONiC's egress pools are views of the same memory);
// a frame is either in the headroom or not, never split between shared and headroom.
//
// Invariants (mmu_consistent): shared_free + sum of PGs' shared = shared_size; headroom_free + sum
// of PGs' headroom_used = headroom_size; nothing negative; a PG's headroom_used <= its size.

#include "models/mmu.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

// A buffer of 2^22 cells times the largest alpha, 2^8, and sums of it stay within int32_t; profiles
// that ask for more ("no limit") are cut to CELLS_MAX.
#define BUFFER_CELLS_MAX (1 << 22)
#define CELLS_MAX        (1 << 28)
#define CELL_BYTES_MIN   16
#define CELL_BYTES_MAX   16384

static int32_t cells_up(uint64_t bytes, uint32_t cell)
{
	uint64_t c = bytes / cell + (bytes % cell != 0);
	return c > CELLS_MAX ? CELLS_MAX : (int32_t)c;
}

static int32_t cells_down(uint64_t bytes, uint32_t cell)
{
	uint64_t c = bytes / cell;
	return c > CELLS_MAX ? CELLS_MAX : (int32_t)c;
}

struct mmu_budget mmu_budget(
	const struct mmu_config *cfg, const struct mmu_pg_profile *pg, size_t n)
{
	struct mmu_budget b = {.buffer_bytes = cfg->buffer_bytes};
	uint64_t cell = cfg->cell_bytes;

	for (size_t i = 0; i < n; i++) {
		b.reserved_bytes += (uint64_t)cells_up(pg[i].size_bytes, cfg->cell_bytes) * cell;
		if (pg[i].lossless)
			b.headroom_bytes +=
				(uint64_t)cells_up(pg[i].xoff_bytes, cfg->cell_bytes) * cell;
	}
	if (cfg->headroom_pool_bytes != 0)
		b.headroom_bytes =
			(uint64_t)cells_up(cfg->headroom_pool_bytes, cfg->cell_bytes) * cell;
	uint64_t taken = b.reserved_bytes + b.headroom_bytes;
	b.fits = taken <= b.buffer_bytes;
	if (b.fits)
		b.shared_bytes = (b.buffer_bytes - taken) / cell * cell;
	return b;
}

static_assert(MMU_DYNAMIC_TH_MIN + MMU_ALPHA_SHIFT >= 0, "the smallest alpha is 1 / 2^shift");

static bool threshold_valid(const struct mmu_threshold *t)
{
	return !t->dynamic ||
	       (t->dynamic_th >= MMU_DYNAMIC_TH_MIN && t->dynamic_th <= MMU_DYNAMIC_TH_MAX);
}

int mmu_init(struct mmu *m, const struct mmu_config *cfg, const struct mmu_pg_profile *pg, size_t n,
	char *why, size_t why_len)
{
	if (cfg->cell_bytes < CELL_BYTES_MIN || cfg->cell_bytes > CELL_BYTES_MAX) {
		snprintf(why, why_len, "cell size %u B is not within %d..%d B", cfg->cell_bytes,
			CELL_BYTES_MIN, CELL_BYTES_MAX);
		return -EINVAL;
	}
	if (cfg->buffer_bytes / cfg->cell_bytes > BUFFER_CELLS_MAX) {
		snprintf(why, why_len, "buffer of %" PRIu64 " B has more than %d cells of %u B",
			cfg->buffer_bytes, BUFFER_CELLS_MAX, cfg->cell_bytes);
		return -EINVAL;
	}
	for (size_t i = 0; i < n; i++) {
		if (threshold_valid(&pg[i].th))
			continue;
		snprintf(why, why_len, "dynamic_th %d is not within %d..%d", pg[i].th.dynamic_th,
			MMU_DYNAMIC_TH_MIN, MMU_DYNAMIC_TH_MAX);
		return -EINVAL;
	}

	struct mmu_budget b = mmu_budget(cfg, pg, n);
	if (!b.fits) {
		snprintf(why, why_len,
			"guarantees exceed the buffer: reserved %" PRIu64 " B + headroom %" PRIu64
			" B = %" PRIu64 " B > %" PRIu64
			" B; enlarge the buffer or lower size, xoff",
			b.reserved_bytes, b.headroom_bytes, b.reserved_bytes + b.headroom_bytes,
			b.buffer_bytes);
		return -EINVAL;
	}
	*m = (struct mmu){
		.cell_bytes = cfg->cell_bytes,
		.cell_reciprocal =
			(uint32_t)(((UINT64_C(1) << 32) + cfg->cell_bytes - 1) / cfg->cell_bytes),
	};
	m->shared_size = cells_down(b.shared_bytes, cfg->cell_bytes);
	m->headroom_size = cells_down(b.headroom_bytes, cfg->cell_bytes);
	m->shared_free = m->shared_min_free = m->shared_size;
	m->headroom_free = m->headroom_min_free = m->headroom_size;
	return 0;
}

static struct mmu_limit limit_of(const struct mmu *m, const struct mmu_threshold *t)
{
	if (!t->dynamic)
		return (struct mmu_limit){.fixed = cells_down(t->static_th_bytes, m->cell_bytes)};
	return (struct mmu_limit){.alpha = 1u << (MMU_ALPHA_SHIFT + t->dynamic_th)};
}

void mmu_pg_init(struct mmu_pg *pg, const struct mmu *m, const struct mmu_pg_profile *profile)
{
	*pg = (struct mmu_pg){
		.limit = limit_of(m, &profile->th),
		.reserved = cells_up(profile->size_bytes, m->cell_bytes),
		.headroom_size =
			profile->lossless ? cells_up(profile->xoff_bytes, m->cell_bytes) : 0,
		.xon = cells_down(profile->xon_bytes, m->cell_bytes),
		.xon_offset = cells_up(profile->xon_offset_bytes, m->cell_bytes),
		.lossless = profile->lossless,
		.min_slack = INT32_MAX,
	};
	pg->over = -pg->reserved;
}

void mmu_queue_init(
	struct mmu_queue *q, const struct mmu *m, const struct mmu_queue_profile *profile)
{
	*q = (struct mmu_queue){
		.reserved = cells_up(profile->size_bytes, m->cell_bytes),
		.limit = limit_of(m, &profile->th),
	};
}

enum mmu_verdict mmu_admit_beyond(
	struct mmu *m, struct mmu_pg *pg, struct mmu_queue *q, int32_t cells, bool pool_full)
{
	if (!pg->lossless)
		return pool_full ? MMU_DROP_POOL : MMU_DROP_SHARED;
	if (pg->headroom_used + cells > pg->headroom_size || cells > m->headroom_free) {
		// The peer must stop all the more. But an empty PG has nothing whose release could
		// end a pause.
		pg->xoff |= mmu_pg_cells(pg) > 0;
		return MMU_DROP_HEADROOM;
	}

	pg->headroom_used += cells;
	m->headroom_free -= cells;
	q->used += cells;
	if (pg->headroom_used > pg->headroom_peak)
		pg->headroom_peak = pg->headroom_used;
	if (m->headroom_free < m->headroom_min_free)
		m->headroom_min_free = m->headroom_free;
	if (mmu_pg_cells(pg) > pg->peak)
		pg->peak = mmu_pg_cells(pg);
	if (q->used > q->peak)
		q->peak = q->used;
	if (pg->xoff)
		return MMU_ADMIT_PAUSED;
	pg->xoff = true;
	return MMU_ADMIT_XOFF;
}

static bool pg_consistent(const struct mmu_pg *pg, size_t i, char *why, size_t why_len)
{
	if (pg->over + pg->reserved >= 0 && pg->headroom_used >= 0 &&
		pg->headroom_used <= pg->headroom_size)
		return true;
	snprintf(why, why_len, "PG %zu: %d cells held, headroom %d of %d", i,
		pg->over + pg->reserved, pg->headroom_used, pg->headroom_size);
	return false;
}

bool mmu_consistent(
	const struct mmu *m, const struct mmu_pg *const *pg, size_t n, char *why, size_t why_len)
{
	int64_t shared = 0;
	int64_t headroom = 0;

	for (size_t i = 0; i < n; i++) {
		if (!pg_consistent(pg[i], i, why, why_len))
			return false;
		shared += mmu_pg_shared(pg[i]);
		headroom += pg[i]->headroom_used;
	}
	if (m->shared_free >= 0 && m->headroom_free >= 0 &&
		m->shared_free + shared == m->shared_size &&
		m->headroom_free + headroom == m->headroom_size)
		return true;
	snprintf(why, why_len,
		"pool: shared %d free + %" PRId64 " held of %d, headroom %d free + %" PRId64
		" held of %d cells",
		m->shared_free, shared, m->shared_size, m->headroom_free, headroom,
		m->headroom_size);
	return false;
}
