/* SPDX-License-Identifier: BSD-3-Clause */
// What a switch refuses to be built with, and that it says where and why.

#include "tests/unit/switch_bench.h"

static struct ethernet_switch_port_config ports[PORTS];
static struct ethernet_switch_config cfg;
static struct endpoint_table none;

static int start(void **state)
{
	bench_ports(ports);
	cfg = (struct ethernet_switch_config){.name = "sw",
		.n_ports = PORTS,
		.ports = ports,
		.mmu = {.buffer_bytes = 10000000, .cell_bytes = CELL},
		.endpoints = &none,
		.log_events = 8};
	return 0;
}

static void refused(const char *words)
{
	struct node *n;

	why[0] = '\0';
	assert_int_equal(ethernet_switch_create(&cfg, &n, why, sizeof(why)), -EINVAL);
	if (strstr(why, words) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", why, words);
}

static void lossless_pg_without_headroom(void **state)
{
	ports[2].pg[4].xoff_bytes = 0;
	refused("port swp2: lossless PG 4 has no headroom");
}

// 8 lossless PGs x 3000 bytes of headroom, and 5 x 4 x 0 reserved.
static void guarantees_beyond_the_buffer(void **state)
{
	cfg.mmu.buffer_bytes = 23999;
	refused("headroom 24000 B = 24000 B > 23999 B");
}

// mtu 1500: (1526 + 20 + 84) x 2 / 64 + 2 = 52
static void quanta_that_expire_before_the_refresh(void **state)
{
	ports[0].pause_quanta = 51;
	refused("at least 52 are needed");
	struct node *n;
	ports[0].pause_quanta = 52;
	assert_int_equal(ethernet_switch_create(&cfg, &n, why, sizeof(why)), 0);
	ethernet_switch_destroy(n);
}

static void wred_knees_in_the_wrong_order(void **state)
{
	ports[1].wred[3] = (struct wred_profile){.enabled = true, .min_bytes = 2, .max_bytes = 1};
	refused("port swp1: queue 3: WRED min 2 B exceeds max 1 B");
}

static void classes_thresholds_sizes_out_of_range(void **state)
{
	ports[3].qos.tc_to_queue[7] = 8;
	refused("port swp3: a QoS map names a class above 7");
	ports[3].qos.tc_to_queue[7] = 7;
	ports[3].queue[0].th = (struct mmu_threshold){.dynamic = true, .dynamic_th = 9};
	refused("queue 0: dynamic_th 9 is not within -8..8");
	ports[3].queue[0].th.dynamic_th = 0;
	ports[3].mtu = 67;
	refused("mtu 67 is not within 68..16000");
	ports[3].mtu = 1500;
	cfg.mmu.cell_bytes = 8;
	refused("cell size 8 B is not within 16..16384 B");
	cfg.n_ports = 0;
	refused("0 ports are not within 1..512");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(lossless_pg_without_headroom, start),
		cmocka_unit_test_setup(guarantees_beyond_the_buffer, start),
		cmocka_unit_test_setup(quanta_that_expire_before_the_refresh, start),
		cmocka_unit_test_setup(wred_knees_in_the_wrong_order, start),
		cmocka_unit_test_setup(classes_thresholds_sizes_out_of_range, start),
	};

	return cmocka_run_group_tests(tests, eal_up, eal_down);
}
