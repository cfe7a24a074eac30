/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "models/qos_map.h"

// SONiC's qos_config.j2, AZURE: everything to TC 1 but these six.
static void defaults_are_sonics(void **state)
{
	struct qos_map m;
	unsigned ones = 0;

	qos_map_default(&m);
	assert_true(qos_map_valid(&m));
	assert_int_equal(m.dscp_to_tc[3], 3);
	assert_int_equal(m.dscp_to_tc[4], 4);
	assert_int_equal(m.dscp_to_tc[5], 2);
	assert_int_equal(m.dscp_to_tc[8], 0);
	assert_int_equal(m.dscp_to_tc[46], 5);
	assert_int_equal(m.dscp_to_tc[48], 6);
	for (unsigned i = 0; i < QOS_DSCPS; i++)
		ones += m.dscp_to_tc[i] == 1;
	assert_int_equal(ones, 64 - 6);
	// DOT1P_TO_TC: 0 -> 1, 1 -> 0; TC_TO_PRIORITY_GROUP: 0, 1, 2, 5, 6 share PG 0
	assert_int_equal(m.pcp_to_tc[0], 1);
	assert_int_equal(m.pcp_to_tc[1], 0);
	assert_int_equal(m.pcp_to_tc[5], 5);
	assert_int_equal(m.tc_to_pg[6], 0);
	assert_int_equal(m.tc_to_pg[4], 4);
	assert_int_equal(m.tc_to_pg[7], 7);
}

static void classes_above_seven_are_invalid(void **state)
{
	struct qos_map m;

	qos_map_default(&m);
	m.dscp_to_tc[63] = 8;
	assert_false(qos_map_valid(&m));
	qos_map_default(&m);
	m.pfc_to_queue[0] = 200;
	assert_false(qos_map_valid(&m));
}

static void a_pg_pauses_the_priorities_mapped_to_it(void **state)
{
	struct qos_map m;

	qos_map_default(&m);
	assert_int_equal(qos_map_pg_priorities(&m, 3), 1 << 3);
	m.pfc_to_pg[5] = 3;
	assert_int_equal(qos_map_pg_priorities(&m, 3), 1 << 3 | 1 << 5);
	assert_int_equal(qos_map_pg_priorities(&m, 5), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_sonics),
		cmocka_unit_test(classes_above_seven_are_invalid),
		cmocka_unit_test(a_pg_pauses_the_priorities_mapped_to_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
