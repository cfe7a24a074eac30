/* SPDX-License-Identifier: BSD-3-Clause */
// Expected probabilities were computed with exact fractions (Python's fractions and math.comb):
// s = 1 - (1-b)**10; sum(comb(n, i) * s**i * (1-s)**(n-i) for i in range(t+1, n+1)).

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "models/fec.h"

static void is_near(double got, double want)
{
	// A thousand roundings of 2^-53 each at most.
	assert_true(fabs(got - want) <= want * 1e-12);
}

static void codeword_errors_are_binomial_tails(void **state)
{
	is_near(fec_codeword_error(FEC_RS544, 1e-5), 2.139669774307624e-34);
	is_near(fec_codeword_error(FEC_RS544, 1e-4), 1.3598110647644306e-18);
	is_near(fec_codeword_error(FEC_RS544, 1e-3), 0.0001530258592806046);
	is_near(fec_codeword_error(FEC_RS544, 5e-3), 0.9906764208459232);
	is_near(fec_codeword_error(FEC_RS544, 1e-2), 0.9999999996173791);
	is_near(fec_codeword_error(FEC_RS528, 1e-5), 1.3557689282604283e-15);
	is_near(fec_codeword_error(FEC_RS528, 1e-4), 8.926910513935766e-08);
	is_near(fec_codeword_error(FEC_RS528, 1e-3), 0.16047230622327852);
}

static void without_errors_or_with_nothing_but_errors(void **state)
{
	for (int c = 0; c < FEC_CODE_COUNT; c++) {
		assert_true(fec_codeword_error((enum fec_code)c, 0) == 0);
		assert_true(fec_codeword_error((enum fec_code)c, 1) == 1);
	}
}

static unsigned lost_frames(const struct fec *f, unsigned n, uint32_t bytes, uint32_t apart)
{
	unsigned lost = 0;

	for (uint64_t i = 0; i < n; i++)
		lost += fec_damaged(f, i * apart, bytes);
	return lost;
}

static void frames_are_lost_by_the_codewords_they_touch(void **state)
{
	struct fec f;
	double p = 0.16047230622327852; // RS528 at 1e-3

	fec_init(&f, FEC_RS528, 1e-3, 42);
	// 640 bytes at multiples of 6400: one codeword; 641: two; 1281: three. 10^5 frames with
	// codewords of their own: sigma of the share below sqrt(1/4 / 1e5) = 0.0016; 5 sigma.
	assert_true(fabs(lost_frames(&f, 100000, 640, 6400) / 1e5 - p) < 0.008);
	assert_true(
		fabs(lost_frames(&f, 100000, 641, 6400) / 1e5 - (1 - (1 - p) * (1 - p))) < 0.008);
	assert_true(fabs(lost_frames(&f, 100000, 1281, 6400) / 1e5 - (1 - pow(1 - p, 3))) < 0.008);
}

static void neighbours_share_the_fate_of_their_codeword(void **state)
{
	struct fec f;

	fec_init(&f, FEC_RS528, 1e-3, 7);
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(fec_damaged(&f, 640 * i, 84), fec_damaged(&f, 640 * i + 500, 84));
}

static void without_fec_every_bit_counts(void **state)
{
	struct fec f;

	// 1 - (1 - 1e-6)^8000 = 0.007968089131069667; 4e5 frames: sigma 1.4e-4, 5 sigma 7e-4
	fec_init(&f, FEC_NONE, 1e-6, 3);
	is_near(f.p, 7.999972000055999e-06); // 1 - (1 - 1e-6)^8
	assert_true(fabs(lost_frames(&f, 400000, 1000, 1000) / 4e5 - 0.007968089131069667) < 7e-4);
	fec_init(&f, FEC_NONE, 0, 3);
	assert_false(f.on);
	assert_int_equal(lost_frames(&f, 1000, 1000, 1000), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(codeword_errors_are_binomial_tails),
		cmocka_unit_test(without_errors_or_with_nothing_but_errors),
		cmocka_unit_test(frames_are_lost_by_the_codewords_they_touch),
		cmocka_unit_test(neighbours_share_the_fate_of_their_codeword),
		cmocka_unit_test(without_fec_every_bit_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
