/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "emu/core/rng.h"
#include "models/ecmp.h"

#define FLOWS 40000

static void routes_are_set_replaced_and_removed(void **state)
{
	static const uint16_t two[] = {4, 9}, one[] = {7};
	const uint16_t *ports;
	struct ecmp e;

	assert_int_equal(ecmp_init(&e, 3, 1), 0);
	assert_int_equal(ecmp_port(&e, 1, 0), ECMP_NO_ROUTE);
	assert_int_equal(ecmp_set(&e, 1, two, 2), 0);
	assert_int_equal(ecmp_group(&e, 1, &ports), 2);
	assert_int_equal(ports[1], 9);
	assert_int_equal(ecmp_set(&e, 1, one, 1), 0);
	assert_int_equal(ecmp_port(&e, 1, 12345), 7);
	assert_int_equal(ecmp_set(&e, 1, NULL, 0), 0);
	assert_int_equal(ecmp_port(&e, 1, 0), ECMP_NO_ROUTE);
	assert_int_equal(ecmp_port(&e, UINT32_MAX, 0), ECMP_NO_ROUTE);
	assert_int_equal(ecmp_set(&e, 3, one, 1), -EINVAL);
	ecmp_fini(&e);
}

static void equal_groups_are_stored_once(void **state)
{
	uint16_t ports[200];
	struct ecmp e;

	for (uint16_t i = 0; i < 200; i++)
		ports[i] = i;
	assert_int_equal(ecmp_init(&e, 10000, 1), 0);
	for (uint32_t i = 0; i < 10000; i++)
		assert_int_equal(ecmp_set(&e, i, ports + i % 2, 199), 0);
	assert_true(e.n_ports <= 2 * 199);
	const uint16_t *got;
	assert_int_equal(ecmp_group(&e, 7777, &got), 199);
	assert_int_equal(got[198], 199);
	ecmp_fini(&e);
}

// A fair choice among 3 of 40000 flows gives 13333 each, deviation sqrt(40000 x 2/9) = 94.
static void flows_spread_evenly(void **state)
{
	static const uint16_t three[] = {0, 1, 2};
	int count[3] = {0};
	struct ecmp e;

	assert_int_equal(ecmp_init(&e, 1, 77), 0);
	ecmp_set(&e, 0, three, 3);
	for (uint32_t i = 0; i < FLOWS; i++)
		count[ecmp_port(&e, 0, (uint32_t)mix64(i))]++;
	for (int i = 0; i < 3; i++)
		assert_in_range(count[i], 13333 - 5 * 94, 13333 + 5 * 94);
	ecmp_fini(&e);
}

// Flows that the first tier sends to its port 0 must still use all four ports of the second tier:
// some 10000 flows, 2500 each, deviation 43.
static void two_tiers_do_not_polarise(void **state)
{
	static const uint16_t four[] = {0, 1, 2, 3};
	int count[4] = {0}, total = 0;
	struct ecmp a, b;

	assert_int_equal(ecmp_init(&a, 1, 1), 0);
	assert_int_equal(ecmp_init(&b, 1, 2), 0);
	ecmp_set(&a, 0, four, 4);
	ecmp_set(&b, 0, four, 4);
	for (uint32_t i = 0; i < FLOWS; i++) {
		uint32_t h = (uint32_t)mix64(i);
		if (ecmp_port(&a, 0, h) != 0)
			continue;
		count[ecmp_port(&b, 0, h)]++;
		total++;
	}
	for (int i = 0; i < 4; i++)
		assert_in_range(count[i], total / 4 - 5 * 44, total / 4 + 5 * 44);
	ecmp_fini(&a);
	ecmp_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(routes_are_set_replaced_and_removed),
		cmocka_unit_test(equal_groups_are_stored_once),
		cmocka_unit_test(flows_spread_evenly),
		cmocka_unit_test(two_tiers_do_not_polarise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
