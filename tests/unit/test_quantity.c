/* SPDX-License-Identifier: BSD-3-Clause */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "emu/core/simtime.h"
#include "emu/scenario/quantity.h"

static int64_t value_of(enum quantity q, const char *text)
{
	int64_t value = -1;
	const char *problem = quantity_parse(q, text, &value);

	if (problem != NULL)
		fail_msg("'%s' %s", text, problem);
	return value;
}

static const char *problem_of(enum quantity q, const char *text)
{
	int64_t value;
	const char *problem = quantity_parse(q, text, &value);

	return problem != NULL ? problem : "accepted";
}

static void rates_are_read_in_bits_per_second(void **state)
{
	assert_int_equal(value_of(Q_RATE, "100Gbps"), 100000000000);
	assert_int_equal(value_of(Q_RATE, "2.5Gbps"), 2500000000);
	assert_int_equal(value_of(Q_RATE, "10 Mb/s"), 10000000);
	assert_int_equal(value_of(Q_RATE, "1.6Tbps"), 1600000000000);
	assert_int_equal(value_of(Q_RATE, "1e3Kbps"), 1000000);
	assert_int_equal(value_of(Q_RATE, "800bps"), 800);
}

// A binary fraction would make 0.1us 99999.99... ps.
static void times_are_exact_to_the_picosecond(void **state)
{
	assert_int_equal(value_of(Q_TIME, "0.1us"), 100 * SIM_NS);
	assert_int_equal(value_of(Q_TIME, "85.12ns"), 85120);
	assert_int_equal(value_of(Q_TIME, "1.000000000001s"), SIM_S + 1);
	assert_int_equal(value_of(Q_TIME, "3min"), 180 * SIM_S);
	assert_int_equal(value_of(Q_TIME, "7ps"), 7);
}

static void sizes_are_decimal_or_binary(void **state)
{
	assert_int_equal(value_of(Q_SIZE, "32MB"), 32000000);
	assert_int_equal(value_of(Q_SIZE, "32MiB"), 33554432);
	assert_int_equal(value_of(Q_SIZE, "1518B"), 1518);
	assert_int_equal(value_of(Q_SIZE, "1.5KiB"), 1536);
}

static void lengths_are_read_in_millimetres(void **state)
{
	assert_int_equal(value_of(Q_LENGTH, "5m"), 5000);
	assert_int_equal(value_of(Q_LENGTH, "2km"), 2000000);
	assert_int_equal(value_of(Q_LENGTH, "0.5m"), 500);
}

// Probabilities have 32 fractional bits: 0.5 is 2^31, 1e-5 is 42949.67, rounded.
static void probabilities_are_fractions_of_2_to_the_32(void **state)
{
	assert_int_equal(value_of(Q_PROBABILITY, "1"), INT64_C(1) << 32);
	assert_int_equal(value_of(Q_PROBABILITY, "0.5"), INT64_C(1) << 31);
	assert_int_equal(value_of(Q_PROBABILITY, "25%"), INT64_C(1) << 30);
	assert_int_equal(value_of(Q_PROBABILITY, "1e-5"), 42950);
	assert_int_equal(value_of(Q_PROBABILITY, "0"), 0);
}

static void factors_are_read_in_thousandths(void **state)
{
	assert_int_equal(value_of(Q_FACTOR, "100"), 100000);
	assert_int_equal(value_of(Q_FACTOR, "0.5"), 500);
	assert_int_equal(value_of(Q_FACTOR, "2x"), 2000);
}

static void only_zero_needs_no_unit(void **state)
{
	assert_int_equal(value_of(Q_TIME, "0"), 0);
	assert_int_equal(value_of(Q_SIZE, "0"), 0);
	assert_int_equal(value_of(Q_RATE, "0.0"), 0);
	assert_string_equal(problem_of(Q_TIME, "1"), "has no unit");
	assert_string_equal(problem_of(Q_SIZE, "1.0"), "has no unit");
}

static void what_is_no_quantity_is_named(void **state)
{
	assert_string_equal(problem_of(Q_TIME, ""), "is not a number");
	assert_string_equal(problem_of(Q_TIME, "."), "is not a number");
	assert_string_equal(problem_of(Q_TIME, "us"), "is not a number");
	assert_string_equal(problem_of(Q_TIME, "1.2.3us"), "has a wrong unit");
	assert_string_equal(problem_of(Q_TIME, "1uss"), "has a wrong unit");
	assert_string_equal(problem_of(Q_TIME, "1us "), "has a wrong unit");
	assert_string_equal(problem_of(Q_TIME, "-1us"), "is negative");
	assert_string_equal(problem_of(Q_TIME, "0.5ps"), "is finer than the smallest unit");
	assert_string_equal(problem_of(Q_RATE, "1GBps"), "has a wrong unit");
	assert_string_equal(problem_of(Q_COUNT, "3x"), "has a unit");
	assert_string_equal(problem_of(Q_PROBABILITY, "2"), "is out of range");
	assert_string_equal(problem_of(Q_PROBABILITY, "nan"), "is not a number");
	assert_string_equal(problem_of(Q_PROBABILITY, "0x1p-1"), "is not a number");
}

// INT64_MAX = 9223372036854775807 ps is 9223372.036... s.
static void the_largest_value_is_that_of_63_bits(void **state)
{
	assert_int_equal(value_of(Q_TIME, "9223372036854775807ps"), INT64_MAX);
	assert_string_equal(problem_of(Q_TIME, "9223372036854775808ps"), "is too large");
	assert_int_equal(value_of(Q_TIME, "9223372s"), 9223372 * SIM_S);
	assert_string_equal(problem_of(Q_TIME, "9223373s"), "is too large");
	assert_string_equal(problem_of(Q_TIME, "1e30s"), "is too large");
	assert_string_equal(problem_of(Q_TIME, "99999999999999999999999s"), "is not a number");
}

static void values_are_written_in_the_unit_that_suits(void **state)
{
	char buf[QUANTITY_MAX];

	assert_string_equal(quantity_format(Q_RATE, 100000000000, buf), "100Gbps");
	assert_string_equal(quantity_format(Q_RATE, 2500000000, buf), "2.5Gbps");
	assert_string_equal(quantity_format(Q_TIME, 600 * SIM_NS, buf), "600ns");
	assert_string_equal(quantity_format(Q_TIME, 85120, buf), "85.12ns");
	assert_string_equal(quantity_format(Q_TIME, 0, buf), "0");
	assert_string_equal(quantity_format(Q_SIZE, 32000000, buf), "32MB");
	assert_string_equal(quantity_format(Q_SIZE, 1048576, buf), "1MiB");
	assert_string_equal(quantity_format(Q_SIZE, 9100, buf), "9100B");
	assert_string_equal(quantity_format(Q_LENGTH, 5000, buf), "5m");
	assert_string_equal(quantity_format(Q_PROBABILITY, INT64_C(1) << 31, buf), "0.5");
}

// What is written can be read again as the same value.
static void writing_and_reading_agree(void **state)
{
	static const enum quantity kinds[] = {Q_RATE, Q_TIME, Q_SIZE, Q_LENGTH, Q_COUNT, Q_FACTOR};
	static const int64_t values[] = {0, 1, 999, 1000, 1001, 1024, 4096, 10001, 123456, 1000000,
		1048576, 1234567, 1000000000, 25781250000, 9007199254740993};
	char buf[QUANTITY_MAX];

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
			assert_int_equal(
				value_of(kinds[k], quantity_format(kinds[k], values[i], buf)),
				values[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rates_are_read_in_bits_per_second),
		cmocka_unit_test(times_are_exact_to_the_picosecond),
		cmocka_unit_test(sizes_are_decimal_or_binary),
		cmocka_unit_test(lengths_are_read_in_millimetres),
		cmocka_unit_test(probabilities_are_fractions_of_2_to_the_32),
		cmocka_unit_test(factors_are_read_in_thousandths),
		cmocka_unit_test(only_zero_needs_no_unit),
		cmocka_unit_test(what_is_no_quantity_is_named),
		cmocka_unit_test(the_largest_value_is_that_of_63_bits),
		cmocka_unit_test(values_are_written_in_the_unit_that_suits),
		cmocka_unit_test(writing_and_reading_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
