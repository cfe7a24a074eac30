/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "emu/core/rng.h"
#include "emu/engine/lag.h"

static void without_samples_all_is_zero(void **state)
{
	struct lag l = {0};

	assert_int_equal(lag_quantile(&l, 0.5), 0);
	assert_int_equal(l.max, 0);
}

static void early_counts_as_on_time(void **state)
{
	struct lag l = {0};

	lag_add(&l, -5);
	assert_int_equal(l.n, 1);
	assert_int_equal(l.max, 0);
	assert_int_equal(lag_quantile(&l, 1), 0);
}

// Any value is answered by its bucket's upper bound, at most 1/8 above it.
static void one_value_is_found_within_an_eighth(void **state)
{
	struct rng r = rng_stream(1, 0);

	for (int bits = 1; bits < 62; bits++) {
		for (int k = 0; k < 200; k++) {
			simtime_t v = (simtime_t)(rng_next(&r) >> (64 - bits));
			struct lag l = {0};
			lag_add(&l, v);
			lag_add(&l, SIMTIME_NEVER / 2 + 1); // so that the maximum does not help
			simtime_t q = lag_quantile(&l, 0);
			assert_true(q >= v);
			assert_true(q <= v + v / 8);
		}
	}
}

// 1..1000 once each: the median is 500, its bucket (480..511) ends at 511; p99 is 990 in 960..1023,
// cut at the maximum.
static void quantiles_of_a_ramp(void **state)
{
	struct lag l = {0};

	for (int i = 1; i <= 1000; i++)
		lag_add(&l, i);
	assert_int_equal(lag_quantile(&l, 0.5), 511);
	assert_int_equal(lag_quantile(&l, 0.99), 1000);
	assert_int_equal(l.max, 1000);
	assert_int_equal(lag_quantile(&l, 1), 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_samples_all_is_zero),
		cmocka_unit_test(early_counts_as_on_time),
		cmocka_unit_test(one_value_is_found_within_an_eighth),
		cmocka_unit_test(quantiles_of_a_ramp),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
