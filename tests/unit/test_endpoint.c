/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "pipelines/endpoint.h"

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 9};

static void every_address_finds_its_endpoint_and_no_other(void **state)
{
	const uint32_t n = 5000;
	struct endpoint_table t;

	assert_int_equal(endpoint_table_init(&t, n, 2 * n), 0);
	for (uint32_t i = 0; i < n; i++) {
		uint8_t v6[16] = {0xfd, 0, [14] = (uint8_t)(i >> 8), [15] = (uint8_t)i};
		assert_int_equal(endpoint_add(&t, NULL, 0, mac), i);
		assert_int_equal(endpoint_add_ipv4(&t, i, 0x0a000000 + i), 0);
		assert_int_equal(endpoint_add_ipv6(&t, i, v6), 0);
	}
	for (uint32_t i = 0; i < n; i++) {
		uint8_t v4[4] = {10, 0, (uint8_t)(i >> 8), (uint8_t)i};
		uint8_t v6[16] = {0xfd, 0, [14] = (uint8_t)(i >> 8), [15] = (uint8_t)i};
		assert_int_equal(endpoint_find_ipv4(&t, v4), i);
		assert_int_equal(endpoint_find_ipv6(&t, v6), i);
		v4[0] = 11;
		v6[1] = 1;
		assert_int_equal(endpoint_find_ipv4(&t, v4), ENDPOINT_NONE);
		assert_int_equal(endpoint_find_ipv6(&t, v6), ENDPOINT_NONE);
	}
	endpoint_table_fini(&t);
}

static void an_address_has_one_owner(void **state)
{
	struct endpoint_table t;

	assert_int_equal(endpoint_table_init(&t, 2, 4), 0);
	assert_int_equal(endpoint_add(&t, NULL, 3, mac), 0);
	assert_int_equal(endpoint_add(&t, NULL, 4, mac), 1);
	assert_int_equal(endpoint_add(&t, NULL, 5, mac), -ENOSPC);
	assert_int_equal(endpoint_add_ipv4(&t, 0, 0x0a000001), 0);
	assert_int_equal(endpoint_add_ipv4(&t, 1, 0x0a000001), -EEXIST);
	assert_int_equal(endpoint_add_ipv4(&t, 0, 0x0a000002), 0); // a second one of its own
	assert_int_equal(endpoint_add_ipv4(&t, 2, 0x0a000003), -EINVAL);
	assert_int_equal(t.ep[0].ipv4, 0x0a000001);
	assert_int_equal(endpoint_find_ipv4(&t, (const uint8_t[]){10, 0, 0, 2}), 0);
	endpoint_table_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_address_finds_its_endpoint_and_no_other),
		cmocka_unit_test(an_address_has_one_owner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
