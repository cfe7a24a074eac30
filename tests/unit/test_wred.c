/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "emu/core/rng.h"
#include "models/wred.h"

static struct wred curve(uint64_t min, uint64_t max, double percent)
{
	struct wred_profile p = {.enabled = true,
		.min_bytes = min,
		.max_bytes = max,
		.pmax_q32 = wred_percent(percent)};
	struct wred w;

	assert_int_equal(wred_init(&w, &p), 0);
	return w;
}

static double probability(const struct wred *w, uint32_t bytes)
{
	return (double)wred_probability(w, bytes) / (double)WRED_ALWAYS;
}

static void ramp_is_linear_between_the_knees(void **state)
{
	struct wred w = curve(1000000, 2000000, 5);

	assert_int_equal(wred_probability(&w, 0), 0);
	assert_int_equal(wred_probability(&w, 1000000), 0);
	// 5 % x 1/4, 1/2, 1 of the span
	assert_true(fabs(probability(&w, 1250000) - 0.0125) < 1e-8);
	assert_true(fabs(probability(&w, 1500000) - 0.0250) < 1e-8);
	assert_true(fabs(probability(&w, 2000000) - 0.0500) < 1e-8);
	assert_int_equal(wred_probability(&w, 2000001), WRED_ALWAYS);
}

static void equal_knees_make_a_step(void **state)
{
	struct wred w = curve(5000, 5000, 100);

	assert_int_equal(wred_probability(&w, 5000), 0);
	assert_int_equal(wred_probability(&w, 5001), WRED_ALWAYS);
}

static void no_profile_never_marks(void **state)
{
	struct wred w;

	assert_int_equal(wred_init(&w, &(struct wred_profile){0}), 0);
	assert_int_equal(wred_probability(&w, UINT32_MAX), 0);
}

static void min_above_max_is_refused(void **state)
{
	struct wred w;

	assert_int_equal(
		wred_init(&w,
			&(struct wred_profile){.enabled = true, .min_bytes = 2, .max_bytes = 1}),
		-EINVAL);
}

// 5000 frames of 1024 B into a queue that does not drain, Kmin 800 kB, Kmax 1200 kB, Pmax 100 %.
// Frame k finds 1024 k bytes. k <= 781: never; k >= 1172: always, 3828 frames; between, the sum of
// (1024 k - 800000) / 400000 for k = 782..1171 is 195.1, its deviation sqrt(sum p (1-p)) = 8.1.
static void marks_count_as_the_formula_says(void **state)
{
	struct wred w = curve(800000, 1200000, 100);
	struct rng g = rng_stream(42, 0);
	unsigned never = 0, always = 0, ramp = 0;

	for (uint32_t k = 0; k < 5000; k++) {
		unsigned hit = (unsigned)rng_hit(&g, wred_probability(&w, 1024 * k));
		if (k <= 781)
			never += hit;
		else if (k >= 1172)
			always += hit;
		else
			ramp += hit;
	}
	assert_int_equal(never, 0);
	assert_int_equal(always, 3828);
	assert_in_range(ramp, 195 - 33, 195 + 33);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ramp_is_linear_between_the_knees),
		cmocka_unit_test(equal_knees_make_a_step),
		cmocka_unit_test(no_profile_never_marks),
		cmocka_unit_test(min_above_max_is_refused),
		cmocka_unit_test(marks_count_as_the_formula_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
