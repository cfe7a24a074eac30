/* SPDX-License-Identifier: BSD-3-Clause */
// The shared buffer: all numbers in cells of 100 bytes unless a test says otherwise, so that a
// profile of 500 bytes is 5 cells.

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "emu/core/rng.h"
#include "models/mmu.h"

#define CELL 100

static const struct mmu_queue_profile no_limit = {.th = {.static_th_bytes = UINT64_MAX}};

static char why[256];

static struct mmu pool(uint64_t buffer, const struct mmu_pg_profile *pg, size_t n)
{
	struct mmu m;
	struct mmu_config cfg = {.buffer_bytes = buffer, .cell_bytes = CELL};

	assert_int_equal(mmu_init(&m, &cfg, pg, n, why, sizeof(why)), 0);
	return m;
}

// 5 reserved, 10 shared, 8 headroom; XON 2 below the limit.
static const struct mmu_pg_profile lossless = {
	.lossless = true,
	.size_bytes = 500,
	.th = {.static_th_bytes = 1000},
	.xoff_bytes = 800,
	.xon_offset_bytes = 200,
};

static void cells_are_rounded_up_exactly(void **state)
{
	static const uint32_t sizes[] = {16, 80, 96, 144, 192, 208, 254, 256, 1000, 16384};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct mmu_config cfg = {.buffer_bytes = 1 << 20, .cell_bytes = sizes[i]};
		struct mmu m;
		assert_int_equal(mmu_init(&m, &cfg, NULL, 0, why, sizeof(why)), 0);
		for (uint32_t b = 1; b <= 65535; b++)
			assert_int_equal(mmu_cells(&m, b), (b + sizes[i] - 1) / sizes[i]);
	}
}

static void xoff_when_headroom_starts_to_fill(void **state)
{
	struct mmu m = pool(10000, &lossless, 1);
	struct mmu_pg pg;
	struct mmu_queue q;

	mmu_pg_init(&pg, &m, &lossless);
	mmu_queue_init(&q, &m, &no_limit);
	// 5 reserved + 10 shared frames of one cell pass, the 16th is the first in the headroom,
	// 7 more fill it, the 24th is lost.
	for (int i = 0; i < 15; i++)
		assert_int_equal(mmu_admit(&m, &pg, &q, 1), MMU_ADMIT);
	assert_false(pg.xoff);
	assert_int_equal(mmu_admit(&m, &pg, &q, 1), MMU_ADMIT_XOFF);
	assert_true(pg.xoff);
	for (int i = 0; i < 7; i++)
		assert_int_equal(mmu_admit(&m, &pg, &q, 1), MMU_ADMIT_PAUSED);
	assert_int_equal(mmu_admit(&m, &pg, &q, 1), MMU_DROP_HEADROOM);
	assert_int_equal(mmu_pg_cells(&pg), 23);
	assert_int_equal(q.used, 23);
	assert_int_equal(pg.peak, 23);
	assert_int_equal(pg.headroom_peak, 8);
}

static void xon_below_limit_minus_offset_and_headroom_empty(void **state)
{
	struct mmu m = pool(10000, &lossless, 1);
	struct mmu_pg pg;
	struct mmu_queue q;

	mmu_pg_init(&pg, &m, &lossless);
	mmu_queue_init(&q, &m, &no_limit);
	for (int i = 0; i < 23; i++)
		mmu_admit(&m, &pg, &q, 1);
	// 23 cells; limit 15, offset 2: XON when 13 are left, the tenth release.
	for (int i = 0; i < 9; i++)
		assert_false(mmu_release(&m, &pg, &q, 1));
	assert_true(mmu_release(&m, &pg, &q, 1));
	assert_int_equal(mmu_pg_cells(&pg), 13);
	assert_false(pg.xoff);
	for (int i = 0; i < 13; i++)
		assert_false(mmu_release(&m, &pg, &q, 1));
	assert_int_equal(m.shared_free, m.shared_size);
	assert_int_equal(m.headroom_free, m.headroom_size);
}

static void xon_threshold_counts_when_it_is_the_higher(void **state)
{
	struct mmu_pg_profile p = lossless;
	p.xon_bytes = 1400; // 14 cells > 15 - 2
	struct mmu m = pool(10000, &p, 1);
	struct mmu_pg pg;
	struct mmu_queue q;

	mmu_pg_init(&pg, &m, &p);
	mmu_queue_init(&q, &m, &no_limit);
	for (int i = 0; i < 16; i++)
		mmu_admit(&m, &pg, &q, 1);
	assert_false(mmu_release(&m, &pg, &q, 1)); // 15 left
	assert_true(mmu_release(&m, &pg, &q, 1));  // 14
}

static void xon_waits_for_an_empty_headroom(void **state)
{
	// Dynamic threshold, alpha 1. A hog leaves little, the PG uses its headroom, the hog goes:
	// the PG is far below its limit now, yet one cell in the headroom holds XON back.
	struct mmu_pg_profile p[2] = {
		{.lossless = true, .th = {.dynamic = true}, .xoff_bytes = 400},
		{.th = {.dynamic = true, .dynamic_th = 8}},
	};
	struct mmu m = pool(10400, p, 2); // 100 shared
	struct mmu_pg pg, hog;
	struct mmu_queue q;

	mmu_pg_init(&pg, &m, &p[0]);
	mmu_pg_init(&hog, &m, &p[1]);
	mmu_queue_init(&q, &m, &no_limit);
	assert_int_equal(mmu_admit(&m, &hog, &q, 98), MMU_ADMIT);
	assert_int_equal(mmu_admit(&m, &pg, &q, 1), MMU_ADMIT);      // 1 <= 2 free
	assert_int_equal(mmu_admit(&m, &pg, &q, 1), MMU_ADMIT_XOFF); // 2 > 1 free
	assert_int_equal(mmu_admit(&m, &pg, &q, 1), MMU_ADMIT_PAUSED);
	mmu_release(&m, &hog, &q, 98);
	assert_false(mmu_release(&m, &pg, &q, 1)); // headroom 1, though 2 <= 99
	assert_true(mmu_release(&m, &pg, &q, 1));
}

// One-cell frames a single queue gets of 64 shared cells: the n-th is admitted when
// n <= alpha * (64 - (n - 1)), so n_max = floor(65 * alpha / (1 + alpha)), with the product
// floored.
static void dynamic_threshold_is_alpha_times_free(void **state)
{
	static const struct {
		int8_t th;
		int frames;
	} expect[] = {{-2, 13}, {-1, 21}, {0, 32}, {1, 43}, {3, 57}, {8, 64}};

	for (size_t i = 0; i < sizeof(expect) / sizeof(expect[0]); i++) {
		struct mmu_pg_profile p = {.th = {.dynamic = true, .dynamic_th = expect[i].th}};
		struct mmu m = pool(6400, &p, 1);
		struct mmu_pg pg;
		struct mmu_queue q;
		int n = 0;

		mmu_pg_init(&pg, &m, &p);
		mmu_queue_init(&q, &m, &no_limit);
		while (mmu_admit(&m, &pg, &q, 1) == MMU_ADMIT)
			n++;
		assert_int_equal(n, expect[i].frames);
	}
}

static void lossy_frames_drop_for_the_limit_that_was_hit(void **state)
{
	struct mmu_pg_profile p[2] = {
		{.th = {.static_th_bytes = 1000}},
		{.th = {.static_th_bytes = UINT64_MAX}},
	};
	struct mmu_queue_profile limited = {.size_bytes = 200, .th = {.static_th_bytes = 300}};
	struct mmu m = pool(3000, p, 2);
	struct mmu_pg small, big;
	struct mmu_queue q, narrow;

	mmu_pg_init(&small, &m, &p[0]);
	mmu_pg_init(&big, &m, &p[1]);
	mmu_queue_init(&q, &m, &no_limit);
	mmu_queue_init(&narrow, &m, &limited);
	assert_int_equal(mmu_admit(&m, &small, &q, 10), MMU_ADMIT);
	assert_int_equal(mmu_admit(&m, &small, &q, 1), MMU_DROP_SHARED);
	assert_int_equal(mmu_admit(&m, &big, &narrow, 5), MMU_ADMIT); // 2 + 3
	assert_int_equal(mmu_admit(&m, &big, &narrow, 1), MMU_DROP_QUEUE);
	assert_int_equal(mmu_admit(&m, &big, &q, 15), MMU_ADMIT);
	assert_int_equal(mmu_admit(&m, &big, &q, 1), MMU_DROP_POOL);
	// A refused frame has changed nothing.
	assert_int_equal(mmu_pg_cells(&small) + mmu_pg_cells(&big), 30);
	assert_int_equal(m.shared_free, 0);
}

static void lossless_frames_ignore_the_queue_limit(void **state)
{
	struct mmu_queue_profile nothing = {.th = {.static_th_bytes = 0}};
	struct mmu m = pool(10000, &lossless, 1);
	struct mmu_pg pg;
	struct mmu_queue q;

	mmu_pg_init(&pg, &m, &lossless);
	mmu_queue_init(&q, &m, &nothing);
	assert_int_equal(mmu_admit(&m, &pg, &q, 10), MMU_ADMIT);
}

static void headroom_pool_bounds_all_pgs_together(void **state)
{
	struct mmu_pg_profile p[2] = {
		{.lossless = true, .xoff_bytes = 500},
		{.lossless = true, .xoff_bytes = 500},
	};
	struct mmu_config cfg = {
		.buffer_bytes = 2000, .cell_bytes = CELL, .headroom_pool_bytes = 700};
	struct mmu m;
	struct mmu_pg a, b;
	struct mmu_queue q;

	assert_int_equal(mmu_init(&m, &cfg, p, 2, why, sizeof(why)), 0);
	assert_int_equal(m.shared_size, 13);
	mmu_pg_init(&a, &m, &p[0]);
	mmu_pg_init(&b, &m, &p[1]);
	mmu_queue_init(&q, &m, &no_limit);
	// static_th 0: everything is headroom. 5 of a, then only 2 of b.
	assert_int_equal(mmu_admit(&m, &a, &q, 5), MMU_ADMIT_XOFF);
	assert_int_equal(mmu_admit(&m, &b, &q, 2), MMU_ADMIT_XOFF);
	assert_int_equal(mmu_admit(&m, &b, &q, 1), MMU_DROP_HEADROOM);
}

static void guarantees_beyond_the_buffer_are_refused_with_the_sum(void **state)
{
	struct mmu_pg_profile p[2] = {lossless, lossless};
	struct mmu_config cfg = {.buffer_bytes = 2500, .cell_bytes = CELL};
	struct mmu m;

	// 2 x 500 + 2 x 800 = 2600
	assert_int_equal(mmu_init(&m, &cfg, p, 2, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "1000 B + headroom 1600 B = 2600 B > 2500 B"));
	cfg.buffer_bytes = 2600;
	assert_int_equal(mmu_init(&m, &cfg, p, 2, why, sizeof(why)), 0);
	assert_int_equal(m.shared_size, 0);
}

static void passing_frames_leave_a_watermark_and_nothing_else(void **state)
{
	struct mmu m = pool(10000, &lossless, 1);
	struct mmu_pg pg;
	struct mmu_queue q;

	mmu_pg_init(&pg, &m, &lossless);
	mmu_queue_init(&q, &m, &no_limit);
	assert_true(mmu_pass(&m, &pg, &q, 15));
	assert_false(mmu_pass(&m, &pg, &q, 16)); // would be headroom
	assert_int_equal(mmu_pg_cells(&pg), 0);
	assert_int_equal(pg.peak, 15);
	assert_int_equal(pg.min_slack, -1); // 11 shared against 10
	assert_int_equal(m.shared_free, m.shared_size);
}

// ---- random admissions and releases -------------------------------------------------------------

#define PGS    6
#define QUEUES 3
#define FRAMES 400

struct held {
	int pg, queue;
	int32_t cells;
};

struct rig {
	struct mmu m;
	struct mmu_pg pg[PGS];
	struct mmu_queue q[QUEUES];
	struct held held[FRAMES];
	int n;
};

static void rig_init(struct rig *r, struct rng *g)
{
	struct mmu_pg_profile p[PGS] = {0};
	struct mmu_config cfg = {.buffer_bytes = 60000, .cell_bytes = CELL};

	for (int i = 0; i < PGS; i++) {
		p[i].lossless = i % 2;
		p[i].size_bytes = rng_below(g, 8) * CELL;
		p[i].th.dynamic = rng_below(g, 2);
		p[i].th.dynamic_th = (int8_t)((int)rng_below(g, 8) - 4);
		p[i].th.static_th_bytes = rng_below(g, 200) * CELL;
		p[i].xoff_bytes = p[i].lossless ? (20 + rng_below(g, 50)) * CELL : 0;
		p[i].xon_bytes = rng_below(g, 3) * CELL;
		p[i].xon_offset_bytes = rng_below(g, 20) * CELL;
	}
	assert_int_equal(mmu_init(&r->m, &cfg, p, PGS, why, sizeof(why)), 0);
	for (int i = 0; i < PGS; i++)
		mmu_pg_init(&r->pg[i], &r->m, &p[i]);
	for (int i = 0; i < QUEUES; i++) {
		struct mmu_queue_profile q = {.size_bytes = 3 * CELL,
			.th = {.dynamic = true, .dynamic_th = (int8_t)(i - 1)}};
		mmu_queue_init(&r->q[i], &r->m, &q);
	}
	r->n = 0;
}

static void rig_check(const struct rig *r)
{
	const struct mmu_pg *pgs[PGS];
	int32_t cells[QUEUES] = {0};

	for (int i = 0; i < PGS; i++)
		pgs[i] = &r->pg[i];
	if (!mmu_consistent(&r->m, pgs, PGS, why, sizeof(why)))
		fail_msg("%s", why);
	for (int i = 0; i < r->n; i++)
		cells[r->held[i].queue] += r->held[i].cells;
	for (int i = 0; i < QUEUES; i++)
		assert_int_equal(r->q[i].used, cells[i]);
}

static void rig_admit(struct rig *r, struct rng *g)
{
	struct held h = {
		(int)rng_below(g, PGS), (int)rng_below(g, QUEUES), 1 + (int32_t)rng_below(g, 15)};
	struct mmu_pg *pg = &r->pg[h.pg];
	bool room = pg->headroom_used + h.cells <= pg->headroom_size;
	bool was_xoff = pg->xoff;
	enum mmu_verdict v = mmu_admit(&r->m, pg, &r->q[h.queue], h.cells);

	if (pg->lossless && room)
		assert_true(v <= MMU_ADMIT_PAUSED); // never lost while headroom is left
	if (!pg->lossless)
		assert_true(v == MMU_ADMIT || v >= MMU_DROP_SHARED);
	if (v == MMU_ADMIT_XOFF)
		assert_true(!was_xoff && pg->xoff);
	if (v <= MMU_ADMIT_PAUSED)
		r->held[r->n++] = h;
}

static void rig_release(struct rig *r, struct rng *g)
{
	int i = (int)rng_below(g, (uint32_t)r->n);
	struct held h = r->held[i];

	r->held[i] = r->held[--r->n];
	if (mmu_release(&r->m, &r->pg[h.pg], &r->q[h.queue], h.cells))
		assert_int_equal(r->pg[h.pg].headroom_used, 0);
}

static void random_use_keeps_the_books(void **state)
{
	struct rng g = rng_stream(1, 2);
	static struct rig r;

	for (int round = 0; round < 50; round++) {
		rig_init(&r, &g);
		for (int i = 0; i < 4000; i++) {
			// Phases that fill alternate with phases that drain.
			bool fill = rng_below(&g, 100) < (i / 500 % 2 ? 30u : 70u);
			if (fill && r.n < FRAMES)
				rig_admit(&r, &g);
			else if (r.n > 0)
				rig_release(&r, &g);
			if (i % 16 == 0)
				rig_check(&r);
		}
		while (r.n > 0)
			rig_release(&r, &g);
		rig_check(&r);
		assert_int_equal(r.m.shared_free, r.m.shared_size);
		assert_int_equal(r.m.headroom_free, r.m.headroom_size);
		for (int i = 0; i < PGS; i++)
			assert_false(r.pg[i].xoff); // an empty PG pauses nobody
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cells_are_rounded_up_exactly),
		cmocka_unit_test(xoff_when_headroom_starts_to_fill),
		cmocka_unit_test(xon_below_limit_minus_offset_and_headroom_empty),
		cmocka_unit_test(xon_threshold_counts_when_it_is_the_higher),
		cmocka_unit_test(xon_waits_for_an_empty_headroom),
		cmocka_unit_test(dynamic_threshold_is_alpha_times_free),
		cmocka_unit_test(lossy_frames_drop_for_the_limit_that_was_hit),
		cmocka_unit_test(lossless_frames_ignore_the_queue_limit),
		cmocka_unit_test(headroom_pool_bounds_all_pgs_together),
		cmocka_unit_test(guarantees_beyond_the_buffer_are_refused_with_the_sum),
		cmocka_unit_test(passing_frames_leave_a_watermark_and_nothing_else),
		cmocka_unit_test(random_use_keeps_the_books),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
