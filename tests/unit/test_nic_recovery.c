/* SPDX-License-Identifier: BSD-3-Clause */
// Loss recovery of the built-in NIC beyond go-back-N, on the wire and in its counters: what one
// lost packet, a lost tail and one late packet cost.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "models/sr.h"
#include "nic_rig.h"
#include "pcap/icrc.h"
#include "pipelines/materialise.h"

#define PACKETS 1024
#define LOST    100
#define NEVER   UINT32_MAX

// The tap's orders, by number of the data frame it sees, from 0.
static unsigned lose, hold, hold_for;
static bool as_foreign; // NAKs reach the sender as frames from outside
static unsigned n_data, n_naks;
static struct roce_sack first_sack;
static uint32_t first_nak_psn;
static bool sacks_valid;

// The bytes of a NAK as a capture shows them, and as a NIC takes them from outside.
static void nak_seen(struct frame *f)
{
	uint8_t bytes[256];
	unsigned n = frame_materialise(f, bytes, sizeof(bytes));
	struct pkt p;
	struct roce_sack sack = {0};

	sacks_valid &= pkt_parse(bytes, n, &p) == PKT_OK && pkt_icrc_valid(&p) &&
		       roce_sack_get(bytes + p.payload_off, p.payload_len, &sack);
	if (n_naks++ == 0) {
		first_sack = sack;
		first_nak_psn = p.psn;
	}
	if (as_foreign) {
		memcpy(frame_data(f), bytes, n);
		f->head_len = f->len;
		f->flags &= (uint8_t) ~(FRAME_F_SYNTH | FRAME_F_PARSED | FRAME_F_ROCE);
	}
}

static bool tap(struct rig *r, enum rig_side from, struct frame *f)
{
	if (from == RIG_B) {
		const uint8_t *aeth = frame_data(f) + f->l4_off + UDP_HEADER_BYTES + BTH_BYTES;
		if (aeth[0] == AETH_NAK_PSN_SEQ)
			nak_seen(f);
		return true;
	}
	unsigned i = n_data++;
	if (i == hold)
		r->held = f;
	if (r->held != NULL && i == hold + hold_for) {
		node_send(&r->tap, 1, f);
		rig_release(r, RIG_B);
		r->held = f; // it is sent already
		return false;
	}
	return i != lose && i != hold;
}

static struct rig *setup_flow(const struct nic_config *cfg, const struct nic_flow_config *flow)
{
	struct rig *r = rig_new(cfg, true);

	lose = hold = NEVER;
	hold_for = n_data = n_naks = 0;
	as_foreign = false;
	sacks_valid = true;
	r->on_frame = tap;
	assert_int_equal(nic_add_flow(r->nic[0], r->nic[1], flow), 0);
	rig_start(r);
	return r;
}

static struct rig *setup(const struct nic_config *cfg, unsigned packets)
{
	struct nic_flow_config flow = rig_flow(0, packets * 1024);

	return setup_flow(cfg, &flow);
}

static struct nic_config selective(void)
{
	struct nic_config cfg = nic_config_default();

	cfg.recovery = NIC_SELECTIVE_REPEAT;
	cfg.window = 4096;
	return cfg;
}

static struct nic_flow_result finish(struct rig *r)
{
	struct nic_flow_result res;
	char why[200];

	rig_run(r, 10 * SIM_MS);
	assert_int_equal(nic_flow_result(r->nic[0], 0, &res), 0);
	assert_true(res.done);
	assert_int_equal(res.delivered_bytes, res.bytes);
	r->held = NULL;
	if (!rig_end(r, why, sizeof(why)))
		fail_msg("%s", why);
	return res;
}

// A frame in the middle of a message takes 14 + 20 + 8 + 12 + 1024 + 4 bytes and 24 on the wire,
// 1106 x 80 ps = 88.48 ns. The frame after the lost one is in the receiver 88.48 + 2 x (88.48 +
// 1000) ns after the lost one began, its NAK (62 + 24 bytes, 6.88 ns) 2 x (6.88 + 1000) ns later at
// the sender: 4279.2 ns, in which frames begin at 0, 88.48, ..., 48 x 88.48: 49 of them.
static void go_back_n_repeats_all_that_was_sent_since_the_loss(void **state)
{
	struct nic_config cfg = nic_config_default();
	struct rig *r = setup(&cfg, PACKETS);

	lose = LOST;
	struct nic_flow_result res = finish(r);
	assert_int_equal(res.retransmitted_packets, 49);
	assert_int_equal(res.naks, 1);
	assert_int_equal(res.timeouts, 0);
}

// The 48 that followed were kept, and each told of the gap.
static void selective_repeat_repeats_the_lost_packet_alone(void **state)
{
	struct nic_config cfg = selective();
	struct rig *r = setup(&cfg, PACKETS);
	uint64_t kept;

	lose = LOST;
	assert_true(nic_counter_by_name(r->nic[1], "out_of_order_kept", &kept));
	assert_int_equal(kept, 0);
	rig_run(r, 10 * SIM_MS);
	nic_counter_by_name(r->nic[1], "out_of_order_kept", &kept);
	assert_int_equal(kept, n_naks);
	struct nic_flow_result res = finish(r);
	assert_int_equal(res.retransmitted_packets, 1);
	assert_int_equal(res.sent_packets, PACKETS + 1);
	assert_int_equal(res.timeouts, 0);
	assert_int_equal(n_data, PACKETS + 1);
	assert_int_equal(n_naks, 48);
}

static void its_naks_are_valid_packets_with_a_sack(void **state)
{
	struct nic_config cfg = selective();
	struct rig *r = setup(&cfg, PACKETS);

	lose = LOST;
	finish(r);
	assert_true(n_naks > 0 && sacks_valid);
	assert_int_equal(psn_diff(first_sack.top, first_nak_psn), 1);
	assert_int_equal(first_sack.bitmap, 1);
}

static void a_sack_from_outside_is_understood(void **state)
{
	struct nic_config cfg = selective();
	struct rig *r = setup(&cfg, PACKETS);

	lose = LOST;
	as_foreign = true;
	struct nic_flow_result res = finish(r);
	assert_int_equal(res.retransmitted_packets, 1);
	assert_int_equal(res.timeouts, 0);
}

// The last of 100 packets is lost: nothing tells but the timer, which runs for one packet in flight
// from the ACK of the 99th, rto_low = 100 us.
static void a_lost_tail_takes_the_short_timeout(void **state)
{
	struct nic_config cfg = selective();
	struct rig *r = setup(&cfg, 100);

	lose = 99;
	struct nic_flow_result res = finish(r);
	assert_int_equal(res.retransmitted_packets, 1);
	assert_int_equal(res.timeouts, 1);
	assert_int_equal(res.naks, 0);
	// 100 packets in 8.9 us, the last ACK 4.2 us after its packet began, the timeout, and
	// again.
	assert_in_range(res.fct, 100 * SIM_US + 12 * SIM_US, 100 * SIM_US + 18 * SIM_US);
}

// 10 comes after 14 instead of after 9: 11..14 are kept, and 14 is 4 ahead.
static void tolerance_keeps_what_overtakes(void **state)
{
	struct nic_config cfg = nic_config_default();
	uint64_t kept;

	cfg.ooo = 4;
	struct rig *r = setup(&cfg, 100);
	hold = 10;
	hold_for = 4;
	rig_run(r, 10 * SIM_MS);
	nic_counter_by_name(r->nic[1], "out_of_order_kept", &kept);
	assert_int_equal(kept, 4);
	assert_int_equal(nic_counters(r->nic[1])->out_of_order_distance, 4);
	assert_int_equal(nic_counters(r->nic[1])->out_of_sequence, 4);
	struct nic_flow_result res = finish(r);
	assert_int_equal(res.naks, 0);
	assert_int_equal(res.retransmitted_packets, 0);
}

// A frame takes 88.48 ns: 12, 13 and 14 come 88.48, 176.96 and 265.44 ns after 11, and 10 after 14.
static void what_is_missing_for_too_long_is_a_loss(void **state)
{
	static const struct {
		simtime_t time;
		unsigned naks;
	} tries[] = {{300 * SIM_NS, 0}, {200 * SIM_NS, 1}};

	for (size_t i = 0; i < RTE_DIM(tries); i++) {
		struct nic_config cfg = nic_config_default();
		cfg.ooo = 64;
		cfg.ooo_time = tries[i].time;
		struct rig *r = setup(&cfg, 100);
		hold = 10;
		hold_for = 4;
		struct nic_flow_result res = finish(r);
		assert_int_equal(res.naks, tries[i].naks);
		assert_int_equal(res.retransmitted_packets > 0, tries[i].naks > 0);
	}
}

// 14 is 4 ahead of 10: a NAK, and dropped. When 10 has come, 18 is 4 ahead of 14: another.
static void one_packet_more_than_tolerated_is_a_loss(void **state)
{
	struct nic_config cfg = nic_config_default();

	cfg.ooo = 3;
	struct rig *r = setup(&cfg, 100);
	hold = 10;
	hold_for = 4;
	struct nic_flow_result res = finish(r);
	assert_int_equal(res.naks, 2);
	assert_true(res.retransmitted_packets > 0);
}

// Five SENDs, two receives, and one more each millisecond. 0 is lost, 1..4 are kept. When 0 has
// come again 1 finds a receive and 2 none: an RNR NAK, and 2 comes again 1.28 ms later; then the
// same with 3 and with 4, which were kept all the time until their turn.
static void kept_sends_need_receives_when_their_turn_comes(void **state)
{
	struct nic_flow_config flow = rig_flow(0, 1024);
	struct nic_config cfg = selective();

	cfg.recv_depth = 2;
	cfg.recv_rate = 1000;
	cfg.min_rnr_timer = 14; // 1.28 ms
	flow.op = WR_SEND;
	flow.messages = 5;
	struct rig *r = setup_flow(&cfg, &flow);
	lose = 0;
	rig_run(r, 10 * SIM_MS);
	assert_int_equal(nic_counters(r->nic[1])->out_of_buffer, 3);
	struct nic_flow_result res = finish(r);
	assert_int_equal(res.delivered_messages, 5);
	assert_int_equal(res.retransmitted_packets, 4);
	assert_int_equal(res.timeouts, 0);
}

// 8 KiB and 1 KiB packets: 8 in flight. 8 packets leave in 0.71 us and their ACKs are back 4.2 us
// after they began, so that 8 packets take a round trip and the line idles.
static void bdp_cap_bounds_what_is_in_flight(void **state)
{
	struct nic_config cfg = nic_config_default();

	cfg.bdp_cap = 8191 + 1;
	struct rig *r = setup(&cfg, 800);
	rig_run(r, 3 * SIM_US); // nothing is acknowledged yet
	struct nic_flow_result res;
	nic_flow_result(r->nic[0], 0, &res);
	assert_int_equal(res.sent_packets, 8);
	res = finish(r);
	// A packet's ACK is back 2 x 1088.48 + 2 x 1006.88 = 4190.72 ns after its packet began.
	assert_in_range(res.fct, 100 * INT64_C(4190720), 100 * INT64_C(4190720) + 8 * 88480);
}

static void ends_that_disagree_are_refused(void **state)
{
	struct nic_config cfg = nic_config_default(), other = selective();
	struct rig *a = rig_new(&cfg, true), *b = rig_new(&other, true);
	struct nic_flow_config flow = rig_flow(0, 1);
	char why[200];

	assert_int_equal(nic_add_flow(a->nic[0], b->nic[1], &flow), -EINVAL);
	assert_true(rig_end(a, why, sizeof(why)) && rig_end(b, why, sizeof(why)));
}

static void settings_out_of_range_are_refused(void **state)
{
	struct nic_port_config port = rig_port(RIG_A);
	struct nic_config cfg = selective();
	struct node *n;

	cfg.name = "x";
	cfg.n_ports = 1;
	cfg.ports = &port;
	cfg.window = SR_WINDOW_MAX + 1;
	assert_int_equal(nic_create(&cfg, &n), -EINVAL);
	cfg.bdp_cap = 1024;
	assert_int_equal(nic_create(&cfg, &n), 0);
	nic_destroy(n);
	cfg.rto_low = cfg.rto_high + 1;
	assert_int_equal(nic_create(&cfg, &n), -EINVAL);
	cfg = nic_config_default();
	cfg.name = "x";
	cfg.n_ports = 1;
	cfg.ports = &port;
	cfg.ooo = SR_WINDOW_MAX + 1;
	assert_int_equal(nic_create(&cfg, &n), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(go_back_n_repeats_all_that_was_sent_since_the_loss),
		cmocka_unit_test(selective_repeat_repeats_the_lost_packet_alone),
		cmocka_unit_test(its_naks_are_valid_packets_with_a_sack),
		cmocka_unit_test(a_sack_from_outside_is_understood),
		cmocka_unit_test(a_lost_tail_takes_the_short_timeout),
		cmocka_unit_test(tolerance_keeps_what_overtakes),
		cmocka_unit_test(what_is_missing_for_too_long_is_a_loss),
		cmocka_unit_test(one_packet_more_than_tolerated_is_a_loss),
		cmocka_unit_test(kept_sends_need_receives_when_their_turn_comes),
		cmocka_unit_test(bdp_cap_bounds_what_is_in_flight),
		cmocka_unit_test(ends_that_disagree_are_refused),
		cmocka_unit_test(settings_out_of_range_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
