/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// The shared buffer of a switch (MMU), cell by cell, in SONiC's words. See mmu.c for the model.
//
// The caller owns one struct mmu per switch, one struct mmu_pg per (ingress port, priority group)
// and one struct mmu_queue per (egress port, queue), and passes pointers, so that it can lay them
// out beside its own hot state. mmu_admit() charges a frame, mmu_release() gives it back.

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Buffer threshold of a profile: either a constant, or a share of what is free of the shared pool.
struct mmu_threshold {
	bool dynamic;
	int8_t dynamic_th;        // alpha = 2^dynamic_th; -8..8
	uint64_t static_th_bytes; // if !dynamic; UINT64_MAX: no limit but the pool
};

#define MMU_DYNAMIC_TH_MIN (-8)
#define MMU_DYNAMIC_TH_MAX 8

// BUFFER_PROFILE of a priority group.
struct mmu_pg_profile {
	bool lossless;
	uint64_t size_bytes;       // reserved for this PG alone
	struct mmu_threshold th;   // of its share of the shared pool
	uint64_t xoff_bytes;       // headroom above the threshold; lossless only, else 0
	uint64_t xon_bytes;        // XON not before the PG holds at most this much, or ...
	uint64_t xon_offset_bytes; // ... this much below its limit, whichever is more
};

// BUFFER_PROFILE of an egress queue; not applied to frames of a lossless PG.
struct mmu_queue_profile {
	uint64_t size_bytes; // below this the threshold is not asked
	struct mmu_threshold th;
};

struct mmu_config {
	uint64_t buffer_bytes;        // all of the switch's packet memory
	uint32_t cell_bytes;          // 16..16384
	uint64_t headroom_pool_bytes; // BUFFER_POOL xoff, shared by all PGs; 0: each PG has its own
};

// What became of the buffer when the guarantees were subtracted; for `fabemu check` and errors.
struct mmu_budget {
	uint64_t buffer_bytes;
	uint64_t reserved_bytes; // sum of the PGs' `size`
	uint64_t headroom_bytes; // sum of the lossless PGs' `xoff`, or the headroom pool
	uint64_t shared_bytes;   // the rest; 0 with `fits` false when nothing is left
	bool fits;
};

struct mmu {
	int32_t shared_free; // cells
	int32_t shared_size;
	int32_t headroom_free;
	int32_t headroom_size;
	uint32_t cell_bytes;
	uint32_t cell_reciprocal; // ceil(2^32 / cell_bytes)
	int32_t shared_min_free;  // low watermark of shared_free
	int32_t headroom_min_free;
};

// Threshold in cells: fixed + free * alpha. One of the two is 0.
#define MMU_ALPHA_SHIFT 8

struct mmu_limit {
	int32_t fixed;
	uint32_t alpha; // 2^dynamic_th << MMU_ALPHA_SHIFT, 1 .. 2^16
};

struct mmu_pg {
	int32_t over; // cells held outside the headroom, minus the reserved ones: > 0 is shared
	int32_t headroom_used;
	struct mmu_limit limit; // of the shared part
	int32_t headroom_size;
	int32_t reserved;
	int32_t xon;
	int32_t xon_offset;
	bool lossless;
	bool xoff;             // XOFF asserted
	int32_t peak;          // most cells ever held, headroom included
	int32_t headroom_peak; // most cells of headroom ever used
	int32_t min_slack;     // least distance to the limit an arriving frame found
};

static_assert(sizeof(struct mmu_pg) <= 64, "one cache line per PG");

struct mmu_queue {
	int32_t used; // cells of all frames in the queue
	int32_t reserved;
	struct mmu_limit limit;
	int32_t peak;
};

enum mmu_verdict {
	MMU_ADMIT,         // charged to reserved or shared cells
	MMU_ADMIT_XOFF,    // charged to the headroom, which was not in use: assert XOFF now
	MMU_ADMIT_PAUSED,  // charged to the headroom, XOFF is already asserted
	MMU_DROP_HEADROOM, // lossless PG: the headroom is exhausted; assert XOFF if pg->xoff
	MMU_DROP_SHARED,   // lossy PG: its threshold is reached
	MMU_DROP_QUEUE,    // lossy PG: the queue's threshold is reached
	MMU_DROP_POOL,     // lossy PG: the shared pool is full
};

// Sums the guarantees. `pg[n]`: the profiles of all (port, PG) of the switch.
struct mmu_budget mmu_budget(
	const struct mmu_config *cfg, const struct mmu_pg_profile *pg, size_t n);

// Sets up the pool for `pg[n]`. 0, or -EINVAL with the reason (the arithmetic of the budget) in
// `why` when the guarantees exceed the buffer or a value is out of range.
int mmu_init(struct mmu *m, const struct mmu_config *cfg, const struct mmu_pg_profile *pg, size_t n,
	char *why, size_t why_len);
void mmu_pg_init(struct mmu_pg *pg, const struct mmu *m, const struct mmu_pg_profile *profile);
void mmu_queue_init(
	struct mmu_queue *q, const struct mmu *m, const struct mmu_queue_profile *profile);

// True when the counters of the pool are what the `n` PGs add up to and none is out of range;
// otherwise says what is wrong in `why`.
bool mmu_consistent(
	const struct mmu *m, const struct mmu_pg *const *pg, size_t n, char *why, size_t why_len);

// Cells a frame of `bytes` (<= 65535) occupies; a multiplication instead of a division.
static inline int32_t mmu_cells(const struct mmu *m, uint32_t bytes)
{
	return (int32_t)(((uint64_t)(bytes + m->cell_bytes - 1) * m->cell_reciprocal) >> 32);
}

static inline int32_t mmu_positive(int32_t x)
{
	return x > 0 ? x : 0;
}

static inline int32_t mmu_limit_cells(const struct mmu *m, const struct mmu_limit *l)
{
	return l->fixed + (int32_t)(((int64_t)m->shared_free * l->alpha) >> MMU_ALPHA_SHIFT);
}

// Cells the PG holds, headroom included.
static inline int32_t mmu_pg_cells(const struct mmu_pg *pg)
{
	return pg->over + pg->reserved + pg->headroom_used;
}

static inline int32_t mmu_pg_shared(const struct mmu_pg *pg)
{
	return mmu_positive(pg->over);
}

// Most cells of reserved and shared memory the PG may hold now.
static inline int32_t mmu_pg_limit(const struct mmu *m, const struct mmu_pg *pg)
{
	return pg->reserved + mmu_limit_cells(m, &pg->limit);
}

// The part of mmu_admit() for frames that find their PG's threshold reached.
enum mmu_verdict mmu_admit_beyond(
	struct mmu *m, struct mmu_pg *pg, struct mmu_queue *q, int32_t cells, bool pool_full);

// Would `cells` fit below the thresholds, and if so how many shared cells would they take?
// Negative: no (-1: threshold of the PG, -2: the pool, -3: the queue).
static inline int32_t mmu_room(
	struct mmu *m, struct mmu_pg *pg, const struct mmu_queue *q, int32_t cells)
{
	int32_t over = pg->over + cells;
	int32_t shared = mmu_positive(over);
	int32_t take = shared - mmu_positive(pg->over);
	int32_t slack = mmu_limit_cells(m, &pg->limit) - shared;

	if (slack < pg->min_slack)
		pg->min_slack = slack;
	if (__builtin_expect(take > 0, 1)) {
		if (__builtin_expect(slack < 0, 0))
			return -1;
		if (__builtin_expect(take > m->shared_free, 0))
			return -2;
	}
	if (!pg->lossless) {
		int32_t used = q->used + cells;
		if (used > q->reserved && used > q->reserved + mmu_limit_cells(m, &q->limit))
			return -3;
	}
	return take;
}

// Charges a frame of `cells` to its PG and queue, or says why it must be dropped.
static inline enum mmu_verdict mmu_admit(
	struct mmu *m, struct mmu_pg *pg, struct mmu_queue *q, int32_t cells)
{
	int32_t take = mmu_room(m, pg, q, cells);

	if (__builtin_expect(take < 0, 0)) {
		if (take == -3)
			return MMU_DROP_QUEUE;
		return mmu_admit_beyond(m, pg, q, cells, take == -2);
	}
	pg->over += cells;
	q->used += cells;
	m->shared_free -= take;
	int32_t held = mmu_pg_cells(pg);
	if (held > pg->peak)
		pg->peak = held;
	if (q->used > q->peak)
		q->peak = q->used;
	if (m->shared_free < m->shared_min_free)
		m->shared_min_free = m->shared_free;
	return MMU_ADMIT;
}

// A frame that leaves in the instant it comes: true when it would have been admitted below the
// thresholds (watermarks are kept); false: the caller must mmu_admit() it to know.
static inline bool mmu_pass(struct mmu *m, struct mmu_pg *pg, struct mmu_queue *q, int32_t cells)
{
	if (__builtin_expect(mmu_room(m, pg, q, cells) < 0, 0))
		return false;
	int32_t held = mmu_pg_cells(pg) + cells;
	if (held > pg->peak)
		pg->peak = held;
	if (q->used + cells > q->peak)
		q->peak = q->used + cells;
	return true;
}

static inline bool mmu_xon_due(const struct mmu *m, const struct mmu_pg *pg)
{
	int32_t below = mmu_pg_limit(m, pg) - pg->xon_offset;

	return pg->headroom_used == 0 && mmu_pg_cells(pg) <= (below > pg->xon ? below : pg->xon);
}

// Gives back a frame's cells: headroom first, then shared, then reserved. True when the PG had
// asserted XOFF and is now to send XON.
static inline bool mmu_release(struct mmu *m, struct mmu_pg *pg, struct mmu_queue *q, int32_t cells)
{
	q->used -= cells;
	if (__builtin_expect(pg->headroom_used != 0, 0)) {
		int32_t h = cells < pg->headroom_used ? cells : pg->headroom_used;
		pg->headroom_used -= h;
		m->headroom_free += h;
		cells -= h;
	}
	int32_t before = mmu_positive(pg->over);
	pg->over -= cells;
	m->shared_free += before - mmu_positive(pg->over);
	if (__builtin_expect(!pg->xoff, 1) || !mmu_xon_due(m, pg))
		return false;
	pg->xoff = false;
	return true;
}
