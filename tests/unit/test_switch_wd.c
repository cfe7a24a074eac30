/* SPDX-License-Identifier: BSD-3-Clause */
// The PFC watchdog in the switch. Frames of 996 bytes are ten cells; peer 1 storms priority 3, peer
// 0 sends to it. Polls of 100 us; stormed after 100 us, restored after 100 us.

#include "tests/unit/switch_bench.h"

#define LEN   996
#define PRIO3 (1 << 3)
#define PRIO4 (1 << 4)
#define POLL  (100 * SIM_US)

static void watched_bench(enum pfc_wd_action action)
{
	struct ethernet_switch_port_config ports[PORTS];

	bench_ports(ports);
	for (unsigned i = 0; i < PORTS; i++) {
		ports[i].wd_prios = PRIO3;
		ports[i].wd = (struct pfc_wd_config){
			.action = action, .detection_time = POLL, .restoration_time = POLL};
	}
	bench_start(ports);
}

static struct ethernet_switch_wd_view view(unsigned port)
{
	struct ethernet_switch_wd_view v;

	assert_true(ethernet_switch_wd(b->sw, port, 0, &v));
	assert_false(ethernet_switch_wd(b->sw, port, 1, &v));
	assert_true(ethernet_switch_wd(b->sw, port, 0, &v));
	return v;
}

static void poll_at(simtime_t t)
{
	run(t);
	ethernet_switch_wd_poll(b->sw);
}

// Peer 1 pauses priority 3 (335 us), four frames wait for it: one PG's two shared and two in the
// headroom, so peer 0 is paused. Stormed at the first poll.
static void storm(void)
{
	send_pfc(1, PRIO3, 65535);
	run(SIM_US);
	for (int i = 0; i < 4; i++)
		send_udp(0, 1, LEN, 3, ECN_ECT0);
	poll_at(POLL); // frames wait, none left since the start, an XOFF came: already a storm
	assert_true(view(1).stormed);
}

static void what_waits_is_dropped_and_the_sender_resumed(void **state)
{
	struct ethernet_switch_pg_view pg;

	watched_bench(PFC_WD_DROP);
	storm();
	assert_int_equal(view(1).last.tx_dropped_packets, 4);
	assert_int_equal(counters(0)->drops[DROP_WATCHDOG], 4);
	ethernet_switch_pg(b->sw, 0, 3, &pg);
	assert_int_equal(pg.bytes, 0);
	run(POLL + 2 * SIM_US);
	assert_int_equal(b->peer[0].paused, 0); // the XON has come
	for (int i = 0; i < 9; i++)             // twice what the PG holds
		send_udp(0, 1, LEN, 3, ECN_ECT0);
	run(POLL + 10 * SIM_US);
	assert_int_equal(view(1).last.tx_dropped_packets, 13);
	assert_int_equal(counters(0)->tx_pause[3], 2); // that XOFF and that XON
	assert_int_equal(b->peer[1].n_rec, 0);
	bench_stop();
}

static void what_comes_in_by_the_port_in_its_class_is_dropped_too(void **state)
{
	watched_bench(PFC_WD_DROP);
	storm();
	send_udp(1, 2, LEN, 3, ECN_ECT0);
	send_udp(1, 2, LEN, 4, ECN_ECT0);
	send_udp(0, 2, LEN, 3, ECN_ECT0); // between others
	run(POLL + 10 * SIM_US);
	assert_int_equal(view(1).last.rx_dropped_packets, 1);
	assert_int_equal(view(1).last.rx_packets, 0);
	assert_int_equal(counters(1)->drops[DROP_WATCHDOG], 1);
	assert_int_equal(b->peer[2].n_rec, 2);
	bench_stop();
}

// Case 5 of what people reported: a mask that spares the stormed priority and takes the others.
static void only_the_stormed_priority_loses_its_pfc(void **state)
{
	watched_bench(PFC_WD_FORWARD);
	storm();
	run(POLL + SIM_US);
	assert_int_equal(b->peer[1].n_rec, 4); // its frames went out
	send_pfc(1, PRIO3 | PRIO4, 65535);
	run(POLL + 10 * SIM_US);
	assert_int_equal(counters(1)->rx_pause_ignored, 1);
	assert_int_equal(ethernet_switch_paused_since(b->sw, 1, 3), SIMTIME_NEVER);
	assert_true(ethernet_switch_paused_since(b->sw, 1, 4) != SIMTIME_NEVER);
	send_udp(0, 1, LEN, 4, ECN_ECT0);
	send_udp(0, 1, LEN, 3, ECN_ECT0);
	run(POLL + 20 * SIM_US);
	assert_int_equal(b->peer[1].n_rec, 5);
	assert_int_equal(view(1).last.tx_packets, 5);
	bench_stop();
}

// Case 2: XONs at any rate keep nothing stormed, XOFFs do, obeyed or not (case 1).
static void xons_do_not_keep_a_queue_stormed(void **state)
{
	watched_bench(PFC_WD_DROP);
	storm();
	send_pfc(1, PRIO3, 65535);
	poll_at(2 * POLL);
	assert_true(view(1).stormed);
	for (int i = 0; i < 10; i++)
		send_pfc(1, PRIO3, 0);
	poll_at(3 * POLL);
	assert_false(view(1).stormed);
	assert_int_equal(view(1).deadlock_detected, 1);
	assert_int_equal(view(1).deadlock_restored, 1);
	// PFC is obeyed again.
	send_pfc(1, PRIO3, 65535);
	run(3 * POLL + 2 * SIM_US);
	assert_true(ethernet_switch_paused_since(b->sw, 1, 3) != SIMTIME_NEVER);
	send_udp(0, 1, LEN, 3, ECN_ECT0);
	run(3 * POLL + 10 * SIM_US);
	assert_int_equal(b->peer[1].n_rec, 0);
	bench_stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_waits_is_dropped_and_the_sender_resumed),
		cmocka_unit_test(what_comes_in_by_the_port_in_its_class_is_dropped_too),
		cmocka_unit_test(only_the_stormed_priority_loses_its_pfc),
		cmocka_unit_test(xons_do_not_keep_a_queue_stormed),
	};

	return cmocka_run_group_tests(tests, eal_up, eal_down);
}
