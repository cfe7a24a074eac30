/* SPDX-License-Identifier: BSD-3-Clause */
// How the engine chooses between running windows on one lcore and on all.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "emu/engine/pace.h"

// Runs `windows` windows that cost `solo` or `parallel` ticks; returns how many ran in parallel.
static unsigned run(struct pace *p, unsigned windows, uint64_t solo, uint64_t parallel)
{
	unsigned n = 0;

	for (unsigned i = 0; i < windows; i++) {
		n += !p->solo;
		pace_note(p, p->solo ? solo : parallel);
	}
	return n;
}

static void both_ways_are_tried_first(void **state)
{
	struct pace p;

	pace_init(&p);
	assert_int_equal(run(&p, PACE_RUN, 10, 10), 0);
	assert_int_equal(run(&p, PACE_RUN, 10, 10), PACE_RUN);
	assert_int_equal(run(&p, PACE_TRIAL - 2 * PACE_RUN, 10, 10), PACE_TRIAL / 2 - PACE_RUN);
	assert_false(p.trying);
}

static void the_faster_way_is_kept(void **state)
{
	struct pace p;

	pace_init(&p);
	run(&p, PACE_TRIAL, 100, 60);
	assert_int_equal(run(&p, PACE_KEEP, 100, 60), PACE_KEEP);

	pace_init(&p);
	run(&p, PACE_TRIAL, 60, 100);
	assert_int_equal(run(&p, PACE_KEEP, 60, 100), 0);
}

// The first answer "parallel" is kept for PACE_KEEP windows, the same answer again for twice as
// many.
static void trials_become_rare_while_the_answer_stays(void **state)
{
	struct pace p;

	pace_init(&p);
	run(&p, PACE_TRIAL, 100, 60);
	run(&p, PACE_KEEP, 100, 60);
	assert_true(p.trying);
	run(&p, PACE_TRIAL, 100, 60);
	assert_int_equal(run(&p, 2 * PACE_KEEP, 100, 60), 2 * PACE_KEEP);
	assert_true(p.trying);
	// 200,000 windows hold few trials once they are at their rarest.
	run(&p, 2 * PACE_LONGEST, 100, 60);
	assert_int_equal(run(&p, 200000, 100, 60) >= 200000 - 4 * PACE_TRIAL / 2, 1);
}

static void a_change_of_load_is_noticed(void **state)
{
	struct pace p;

	pace_init(&p);
	run(&p, PACE_TRIAL, 100, 60);
	run(&p, PACE_KEEP + PACE_TRIAL, 10, 60); // small windows from here
	assert_true(p.solo);
	assert_int_equal(p.left, PACE_KEEP);
	assert_int_equal(run(&p, PACE_KEEP, 10, 60), 0);
}

// One window in eight takes a thousand times as long: the scheduler's doing, whichever way it ran.
static void outliers_do_not_decide(void **state)
{
	struct pace p;

	for (unsigned bad = 0; bad < PACE_TRIAL; bad++) {
		pace_init(&p);
		for (unsigned i = 0; i < PACE_TRIAL; i++)
			pace_note(&p, (p.solo ? 100 : 60) * (i % 8 == bad % 8 ? 1000u : 1u));
		assert_false(p.solo);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ways_are_tried_first),
		cmocka_unit_test(the_faster_way_is_kept),
		cmocka_unit_test(trials_become_rare_while_the_answer_stays),
		cmocka_unit_test(a_change_of_load_is_noticed),
		cmocka_unit_test(outliers_do_not_decide),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
