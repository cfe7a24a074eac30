/* SPDX-License-Identifier: BSD-3-Clause */

// What a person reads: the result of a run, quantities, the progress line.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "emu/report/console.h"
#include "emu/report/format.h"
#include "emu/report/progress.h"
#include "tests/unit/report_fixture.h"

static char text[16384];

static const char *printed(struct report_fixture *x, bool quiet, bool colour)
{
	FILE *out = fmemopen(text, sizeof(text), "w");

	assert_non_null(out);
	console_print(&x->r, out, quiet, colour);
	fclose(out);
	return text;
}

static void shows(const char *what)
{
	if (strstr(text, what) == NULL)
		fail_msg("'%s' is not in:\n%s", what, text);
}

static int setup(void **state)
{
	struct report_fixture *x = malloc(sizeof(*x));

	assert_non_null(x);
	fixture_init(x);
	*state = x;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static void deadlock_is_a_ring_of_who_waits_for_whom(void **state)
{
	fixture_deadlock(*state);
	printed(*state, false, false);
	shows("DEADLOCK on priority 3, formed at 8 us, seen at 18 us: 2 priority groups");
	shows("  +-> sw1:eth1  holds 120 kB, XOFF since 7 us; 110 kB wait at sw1:eth1, paused "
	      "since "
	      "6 us by\n"
	      "  +-- sw2:eth0  holds 130 kB, XOFF since 5 us; 100 kB wait at sw2:eth0, paused "
	      "since "
	      "8 us by the first again\n"
	      "  trigger: sw2:eth0 crossed XOFF first, at 5 us\n"
	      "  1 more are stuck behind it\n");
}

static void storm_is_called_a_tree(void **state)
{
	struct report_fixture *x = *state;

	x->deadlock.n_storms = 1;
	x->deadlock.storms[0] = (struct pause_storm){.root = {2, 0, 3},
		.since = 2 * SIM_US,
		.ended_at = SIMTIME_NEVER,
		.n_waiting = 4,
		.depth = 3};
	printed(x, false, false);
	shows("PAUSE STORM from h1:p0 on priority 3, 2 us to the end: 4 priority groups waited for "
	      "it, up to 3 hops away. A tree, not a cycle: no deadlock.");
}

static void tables_show_flows_drops_pauses_and_pgs(void **state)
{
	printed(*state, false, false);
	shows("test: done, nothing was expected: 20 us emulated in 0.50 s, digest "
	      "0xf0123456789abcde, seed 1\n");
	shows("victim  h1 -> h2  completed       125 kB      10 us    100 Gb/s        0       0  3 "
	      "us");
	shows("load    h2 -> h1  active           50 kB          -     20 Gb/s");
	shows("             2  no_route           no route to the destination address");
	shows("sw1:eth1                    3       1.5 us            7            0            0");
	shows("sw2:eth1                    3      90 kB     100 kB    90%        0        0 B of   "
	      "  50 "
	      "kB");
}

static void unfinished_flows_come_first(void **state)
{
	printed(*state, false, false);
	assert_true(strstr(text, "\n  cut ") < strstr(text, "\n  victim "));
}

static void quiet_is_the_verdict_and_what_failed(void **state)
{
	struct report_fixture *x = *state;
	struct run_expectation e[2] = {
		{.ok = true, .what = "deadlock", .expected = "== no", .got = "no"},
		{.what = "drops.total", .expected = "== 0", .got = "2"}};

	x->r.expectations = e;
	x->r.n_expectations = 2;
	assert_string_equal(printed(x, true, false), "test: an expectation failed: 20 us emulated "
						     "in 0.50 s, digest 0xf0123456789abcde, seed "
						     "1\n"
						     "FAILED drops.total: expected == 0, got 2\n");
}

static void colour_only_when_asked(void **state)
{
	fixture_deadlock(*state);
	assert_null(strchr(printed(*state, false, false), '\033'));
	assert_non_null(strchr(printed(*state, false, true), '\033'));
	FILE *null = fopen("/dev/null", "w");
	assert_false(console_wants_colour(null)); // not a terminal
	fclose(null);
}

static void quantities_have_four_digits_and_a_unit(void **state)
{
	char b[FORMAT_MAX];

	assert_string_equal(format_time(0, b), "0 ps");
	assert_string_equal(format_time(999, b), "999 ps");
	assert_string_equal(format_time(104200 * SIM_NS, b), "104.2 us");
	assert_string_equal(format_time(17028100 * SIM_NS, b), "17.03 ms");
	assert_string_equal(format_time(SIMTIME_NEVER, b), "-");
	assert_string_equal(format_bytes(1200000, b), "1.2 MB");
	assert_string_equal(format_rate(9.41e10, b), "94.1 Gb/s");
	assert_string_equal(format_rate(0, b), "0 b/s");
	assert_string_equal(format_count(0, b), "0");
	assert_string_equal(format_count(999, b), "999");
	assert_string_equal(format_count(1234567, b), "1,234,567");
	assert_string_equal(format_count(UINT64_MAX, b), "18,446,744,073,709,551,615");
}

static void progress_tells_time_share_eta_speed_and_lag(void **state)
{
	struct progress p = {.started_ns = 1000000000, .printed_ns = 3000000000, .frames = 1000};
	struct progress_snapshot s = {.wall_ns = 4000000000,
		.emulated = 2 * SIM_MS,
		.duration = 8 * SIM_MS,
		.frames = 51000};
	char line[160];

	// A quarter took 3 s, so 9 s are left; 50,000 frames in the last second.
	progress_format(&p, &s, line, sizeof(line));
	assert_string_equal(line, "2 ms (25%, ETA 9s), 50,000 frames/s");
	s.duration = SIMTIME_NEVER;
	s.done = -1;
	s.wall_clock = true;
	s.lag_p99 = 12 * SIM_US;
	progress_format(&p, &s, line, sizeof(line));
	assert_string_equal(line, "2 ms, 50,000 frames/s, lag p99 12 us");
}

static void progress_is_silent_when_not_on_a_terminal(void **state)
{
	struct progress p;
	FILE *null = fopen("/dev/null", "w");

	progress_start(&p, null, false, 0);
	assert_null(p.out);
	progress_update(&p, &(struct progress_snapshot){.wall_ns = 1000000000});
	progress_end(&p);
	fclose(null);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(deadlock_is_a_ring_of_who_waits_for_whom),
		T(storm_is_called_a_tree),
		T(tables_show_flows_drops_pauses_and_pgs),
		T(unfinished_flows_come_first),
		T(quiet_is_the_verdict_and_what_failed),
		T(colour_only_when_asked),
		cmocka_unit_test(quantities_have_four_digits_and_a_unit),
		cmocka_unit_test(progress_tells_time_share_eta_speed_and_lag),
		cmocka_unit_test(progress_is_silent_when_not_on_a_terminal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
