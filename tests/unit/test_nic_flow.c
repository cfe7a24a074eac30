/* SPDX-License-Identifier: BSD-3-Clause */
// Flows of the built-in NIC: their times to the picosecond, their order on the line, pacing, life.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "nic_seen.h"
#include "pipelines/nic_internal.h"

// Without a tap: FIRST 14 + 20 + 8 + 12 + 16 + 1024 + 4 + FCS 4 + preamble and gap 20 = 1122 bytes
// on the wire, MIDDLE and LAST 1106, an ACK 86; 80 ps each.
#define FIRST_PS  (1122 * RIG_BYTE)
#define MIDDLE_PS (1106 * RIG_BYTE)
#define ACK_PS    (86 * RIG_BYTE)

static void a_lone_flow_takes_its_frames_and_the_path(void **state)
{
	struct nic_config cfg = nic_config_default();
	struct nic_flow_config flow = rig_flow(0, 10 * 1024);
	struct rig *r = rig_new(&cfg, false);

	flow.start = 7 * SIM_US;
	add(r, &flow);
	rig_start(r);
	assert_int_equal(nic_open_flows(r->nic[0]), 1);
	rig_run(r, SIM_MS);
	assert_int_equal(nic_open_flows(r->nic[0]), 0);
	struct nic_flow_result res = result(r, 0);
	simtime_t arrived = 7 * SIM_US + FIRST_PS + 9 * MIDDLE_PS + RIG_DELAY;
	assert_int_equal(res.start, 7 * SIM_US);
	assert_int_equal(res.arrived, arrived);
	assert_int_equal(res.acked, arrived + ACK_PS + RIG_DELAY);
	assert_int_equal(res.fct, res.acked - 7 * SIM_US);
	assert_int_equal(res.delivered_bytes, 10240);
	assert_int_equal(res.delivered_messages, 1);
	assert_int_equal(res.completed_messages, 1);
	assert_int_equal(res.sent_packets, 10);
	// 81,920 bits in 1,886,080 ps are 43.43 Gb/s.
	assert_int_equal(res.goodput_bps, UINT64_C(81920) * 1000000000000 / 1886080);
	end(r);
}

static void two_flows_share_the_line_packet_by_packet(void **state)
{
	struct nic_config cfg = nic_config_default();
	struct rig *r = tapped(&cfg);
	struct nic_flow_config flow = rig_flow(0, 20 * 1024);

	add(r, &flow);
	flow.flow = 1;
	flow.qps = 2; // each queue pair sends the message: three shares
	add(r, &flow);
	rig_start(r);
	rig_run(r, SIM_MS);
	// Flow 0 starts a moment earlier (timers in order), then each queue pair has every third.
	unsigned of_flow0 = 0;
	for (unsigned i = 1; i <= 30; i++)
		of_flow0 += nth(RIG_A, i)->flow == 0;
	assert_int_equal(of_flow0, 10);
	struct nic_flow_result res = result(r, 1);
	assert_true(res.done);
	assert_int_equal(res.bytes, 2 * 20 * 1024);
	assert_int_equal(res.delivered_bytes, res.bytes);
	assert_int_equal(res.delivered_messages, 2);
	// The second queue pair's stream follows the first's.
	uint64_t first[2];
	unsigned n = 0;
	for (unsigned i = 0; n < 2; i++)
		if (nth(RIG_A, i)->flow == 1 && nth(RIG_A, i)->p.opcode == ROCE_WRITE_FIRST)
			first[n++] = nth(RIG_A, i)->pos;
	assert_int_equal(first[0], 0);
	assert_int_equal(first[1], 20 * 1024);
	end(r);
}

static void the_line_is_never_idle_while_a_flow_has_data(void **state)
{
	struct nic_config cfg = nic_config_default();
	struct rig *r = tapped(&cfg);
	struct nic_flow_config flow = rig_flow(0, 300 * 1024);

	add(r, &flow);
	rig_start(r);
	rig_run(r, SIM_MS);
	for (unsigned i = 2; i < 300; i++)
		assert_int_equal(nth(RIG_A, i)->at - nth(RIG_A, i - 1)->at, MIDDLE_PS);
	end(r);
}

static void acknowledgements_go_before_data(void **state)
{
	struct nic_config cfg = nic_config_default();
	struct rig *r = tapped(&cfg);
	struct nic_flow_config flow = rig_flow(0, 100 * 1024);

	add(r, &flow);
	flow.flow = 1; // the other way, so that b has data and ACKs
	assert_int_equal(nic_add_flow(r->nic[1], r->nic[0], &flow), 0);
	rig_start(r);
	rig_run(r, SIM_MS);
	// A packet arrives every 1106 + 86 byte times or so; each ACK leaves before the next data
	// frame, so that b never sends two data frames in a row while packets arrive (first at 2 us
	// + one frame: b's data frame number 24 or so), and no ACKs are merged.
	unsigned acks = 0, data_run = 0, worst = 0;
	for (unsigned i = 0; i < n_seen; i++) {
		if (seen[i].from != RIG_B)
			continue;
		bool ack = seen[i].p.opcode == ROCE_ACK;
		acks += ack;
		data_run = ack ? 0 : data_run + 1;
		if (acks > 0 && acks < 90 && data_run > worst)
			worst = data_run;
	}
	assert_int_equal(acks, 100);
	assert_int_equal(worst, 1);
	end(r);
}

static void acknowledgements_are_coalesced_as_configured(void **state)
{
	struct nic_config cfg = nic_config_default();
	cfg.ack_every = 16;
	struct rig *r = tapped(&cfg);
	struct nic_flow_config flow = rig_flow(0, 100 * 1024);

	add(r, &flow);
	rig_start(r);
	rig_run(r, SIM_MS);
	// 100 packets: after 16, 32, .. 96 and the last.
	assert_int_equal(nic_counters(r->nic[1])->acks_sent, 7);
	assert_true(result(r, 0).done);
	end(r);
}

// ---- pacing -----------------------------------------------------------------------------------

static void a_rate_spaces_packets_exactly(void **state)
{
	struct nic_config cfg = nic_config_default();
	struct rig *r = tapped(&cfg);
	struct nic_flow_config flow = rig_flow(0, 100 * 1024);

	flow.rate_bps = UINT64_C(10000000000); // 8192 bits at 10 Gb/s: 819,200 ps
	flow.start = 7 * SIM_US;
	add(r, &flow);
	rig_start(r);
	rig_run(r, SIM_MS);
	// First bits are what the rate spaces: FIRST is longer than MIDDLE.
	assert_int_equal(nth(RIG_A, 1)->at - nth(RIG_A, 0)->at, 819200 + MIDDLE_PS - FIRST_PS);
	for (unsigned i = 2; i < 100; i++) // frames of equal length
		assert_int_equal(nth(RIG_A, i)->at - nth(RIG_A, i - 1)->at, 819200);
	end(r);
}

static void an_odd_rate_is_exact_in_the_long_run(void **state)
{
	struct nic_config cfg = nic_config_default();
	struct rig *r = tapped(&cfg);
	struct nic_flow_config flow = rig_flow(0, 1024);

	flow.messages = 601;
	flow.rate_bps =
		UINT64_C(3000000000); // 8192 / 3e9 = 2,730,666 2/3 ps; 600 of them 1638.4 us
	add(r, &flow);
	rig_start(r);
	rig_run(r, 10 * SIM_MS);
	simtime_t took = nth(RIG_A, 600)->at - nth(RIG_A, 0)->at;
	// byte_time_fp() is off by less than 2^-17 ps per byte: 4.7 ps in 614,400 bytes.
	assert_in_range(took, 1638400000 - 5, 1638400000 + 5);
	end(r);
}

static void a_rate_is_kept_however_busy_the_line_is(void **state)
{
	struct nic_config cfg = nic_config_default();
	struct rig *r = tapped(&cfg);
	struct nic_flow_config flow = rig_flow(0, 50 * 1024);

	flow.rate_bps = UINT64_C(10000000000);
	add(r, &flow);
	flow.flow = 1; // as fast as it can for more than 50 x 819.2 ns
	flow.message_bytes = 500 * 1024;
	flow.rate_bps = 0;
	add(r, &flow);
	rig_start(r);
	rig_run(r, SIM_MS);
	simtime_t first = 0;
	for (unsigned i = 0, k = 0; k < 50; i++) {
		const struct seen *s = nth(RIG_A, i);
		if (s->flow != 0)
			continue;
		// Each packet leaves on schedule, or behind the frame on the line and one more of
		// the other flow's; being late once does not delay the next.
		first = k == 0 ? s->at + MIDDLE_PS - FIRST_PS : first;
		assert_in_range(s->at - first - k * 819200, 0, 2 * FIRST_PS);
		k++;
	}
	end(r);
}

static void two_paced_queue_pairs_share_the_rate(void **state)
{
	struct nic_config cfg = nic_config_default();
	struct rig *r = tapped(&cfg);
	struct nic_flow_config flow = rig_flow(0, 50 * 1024);

	flow.qps = 2;
	flow.rate_bps = UINT64_C(10000000000);
	add(r, &flow);
	rig_start(r);
	rig_run(r, SIM_MS);
	// Both start together and then send a packet each every 1,638,400 ps.
	for (unsigned i = 4; i < 100; i++)
		assert_int_equal(nth(RIG_A, i)->at - nth(RIG_A, i - 2)->at, 1638400);
	end(r);
}

// ---- life of flows ----------------------------------------------------------------------------

static void a_stopped_endless_flow_goes_on_when_started_again(void **state)
{
	struct nic_config cfg = nic_config_default();
	struct rig *r = rig_new(&cfg, false);
	struct nic_flow_config flow = rig_flow(0, 1024);

	flow.messages = 0;
	flow.stop = 10 * SIM_US;
	add(r, &flow);
	rig_start(r);
	rig_run(r, 100 * SIM_US);
	// One WRITE_ONLY (1122 byte times) after the other until 10 us: the 112th starts at
	// 9,963,360 ps, the next would at 10,053,120.
	struct nic_flow_result res = result(r, 0);
	assert_int_equal(res.delivered_messages, 112);
	assert_int_equal(res.completed_messages, 112);
	assert_false(res.done);
	assert_int_equal(nic_open_flows(r->nic[0]), 0);
	assert_int_equal(nic_flow_start(r->nic[0], 0), 0);
	rig_run(r, 100 * SIM_US + 89760);
	assert_int_equal(nic_flow_stop(r->nic[0], 0), 0);
	rig_run(r, 200 * SIM_US);
	// Two: at 100 us and one frame time later, before the stop.
	assert_int_equal(result(r, 0).delivered_messages, 114);
	assert_int_equal(nic_flow_start(r->nic[0], 7), -ENOENT);
	end(r);
}

// A SEND_ONLY without payload arrives at `port`.
static void request_to(struct node *n, unsigned port, uint32_t endpoint, uint32_t qpn)
{
	struct frame *f = node_new_frame(n, port);

	bth_put(frame_data(f) + 34 + UDP_HEADER_BYTES, 0x04, 0, 0, qpn, true, 0);
	f->flags = FRAME_F_PARSED | FRAME_F_SYNTH | FRAME_F_ROCE;
	f->dst = endpoint;
	f->l3_off = 14;
	f->l4_off = 34;
	f->opcode = 0x04;
	n->ops->arrive(n, port, f);
}

static void a_flow_may_join_two_ports_of_one_nic(void **state)
{
	struct nic_port_config ports[2] = {rig_port(RIG_A), rig_port(RIG_B)};
	struct nic_config cfg = nic_config_default();
	struct rig *r = rig_new(&cfg, false); // for its group, pool and main loop
	struct node *n;

	cfg.name = "two";
	cfg.n_ports = 2;
	cfg.ports = ports;
	assert_int_equal(nic_create(&cfg, &n), 0);
	rig_adopt(r, n, 3);
	struct lane lane[2];
	memset(lane, 0, sizeof(lane));
	rig_lane(r, &lane[0], n, 0, n, 1);
	rig_lane(r, &lane[1], n, 1, n, 0);
	struct nic_flow_config flow = rig_flow(0, 100 * 1024);
	flow.dst_port = 1;
	flow.qps = 3;
	assert_int_equal(nic_add_flow(n, n, &flow), 0);
	flow.flow = 1;
	flow.src_port = 1;
	flow.dst_port = 0;
	assert_int_equal(nic_add_flow(n, n, &flow), 0);
	n->ops->start(n);
	run_events(&n, 1, SIM_MS - 1);
	for (uint32_t i = 0; i < 2; i++) {
		struct nic_flow_result res;
		assert_int_equal(nic_flow_result(n, i, &res), 0);
		assert_true(res.done);
		assert_int_equal(res.delivered_bytes, 3 * 100 * 1024);
	}
	char why[200];
	assert_true(n->ops->check(n, false, why, sizeof(why)));
	assert_int_equal(n->created, n->delivered);

	// A queue pair listens on its own port only: the first one sends from port 0.
	request_to(n, 1, ports[1].endpoint, nic_of(n)->qps[0].qpn);
	assert_int_equal(n->ports[1].ctr->drops[DROP_NO_QP], 1);
	lane_fini(&lane[0]);
	lane_fini(&lane[1]);
	nic_destroy(n);
	end(r);
}

static uint64_t digest_of(uint64_t seed, uint32_t *psn)
{
	struct nic_config cfg = nic_config_default();
	cfg.seed = seed;
	struct rig *r = tapped(&cfg);
	struct nic_flow_config flow = rig_flow(0, 100 * 1024);

	add(r, &flow);
	rig_start(r);
	rig_run(r, SIM_MS);
	uint64_t d = r->nic[0]->digest ^ r->nic[1]->digest;
	*psn = nth(RIG_A, 0)->p.psn;
	end(r);
	return d;
}

static void a_seed_decides_the_psns_and_nothing_else_does(void **state)
{
	uint32_t psn1, again, psn2;
	uint64_t d = digest_of(1, &psn1);

	assert_true(d == digest_of(1, &again));
	assert_int_equal(psn1, again);
	digest_of(2, &psn2);
	assert_int_not_equal(psn1, psn2);
}

static void wrong_configurations_are_refused(void **state)
{
	struct nic_config cfg = nic_config_default();
	struct rig *r = rig_new(&cfg, false);
	struct nic_flow_config flow = rig_flow(0, 1024), bad;
	struct node *n;

#define REFUSE(change) \
	bad = flow;    \
	change;        \
	assert_int_equal(nic_add_flow(r->nic[0], r->nic[1], &bad), -EINVAL)
	REFUSE(bad.src_port = 1);
	REFUSE(bad.dst_port = 1);
	REFUSE(bad.message_bytes = 0);
	REFUSE(bad.message_bytes = (1u << 31) + 1);
	REFUSE(bad.qps = 0);
	REFUSE(bad.dscp = 64);
	REFUSE(bad.tc = 8);
	REFUSE(bad.pcp = 8);
	add(r, &flow);
	assert_int_equal(nic_add_flow(r->nic[0], r->nic[1], &flow), -EEXIST);

	struct nic_port_config port = rig_port(RIG_A);
	cfg.name = "n";
	cfg.ports = &port;
	assert_int_equal(nic_create(&cfg, &n), -EINVAL); // no ports
	cfg.n_ports = 1;
	cfg.payload = 9001;
	assert_int_equal(nic_create(&cfg, &n), -EINVAL);
	cfg.payload = 1024;
	cfg.window = 1 << 23;
	assert_int_equal(nic_create(&cfg, &n), -EINVAL);
	cfg.window = 0;
	cfg.ack_every = 0;
	assert_int_equal(nic_create(&cfg, &n), -EINVAL);
	end(r);

	// No IPv6 address: no flow over IPv6.
	struct nic_port_config v4[2] = {rig_port(RIG_A), rig_port(RIG_B)};
	v4[1].has_ip6 = false;
	cfg = nic_config_default();
	cfg.ports = v4;
	r = rig_new(&cfg, false);
	REFUSE(bad.ipv6 = true);
	end(r);
}

static void counters_have_names(void **state)
{
	struct nic_config cfg = nic_config_default();
	struct rig *r = rig_new(&cfg, false);
	struct nic_flow_config flow = rig_flow(0, 10 * 1024);
	uint64_t v;

	add(r, &flow);
	rig_start(r);
	rig_run(r, SIM_MS);
	assert_true(nic_counter_by_name(r->nic[1], "rx_write_requests", &v));
	assert_int_equal(v, 1);
	assert_true(nic_counter_by_name(r->nic[0], "rdma_tx_bytes", &v));
	assert_int_equal(v, 10240);
	assert_true(nic_counter_by_name(r->nic[0], "rdma_rx_packets", &v));
	assert_int_equal(v, 10); // ACKs
	assert_false(nic_counter_by_name(r->nic[0], "no_such", &v));
	assert_int_equal(r->nic[1]->ports[0].ctr->prio[3].rx_frames, 10);
	assert_int_equal(r->nic[0]->data_hops, 10);
	assert_int_equal(r->nic[1]->data_hops, 0);
	end(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lone_flow_takes_its_frames_and_the_path),
		cmocka_unit_test(two_flows_share_the_line_packet_by_packet),
		cmocka_unit_test(the_line_is_never_idle_while_a_flow_has_data),
		cmocka_unit_test(acknowledgements_go_before_data),
		cmocka_unit_test(acknowledgements_are_coalesced_as_configured),
		cmocka_unit_test(a_rate_spaces_packets_exactly),
		cmocka_unit_test(an_odd_rate_is_exact_in_the_long_run),
		cmocka_unit_test(a_rate_is_kept_however_busy_the_line_is),
		cmocka_unit_test(two_paced_queue_pairs_share_the_rate),
		cmocka_unit_test(a_stopped_endless_flow_goes_on_when_started_again),
		cmocka_unit_test(a_flow_may_join_two_ports_of_one_nic),
		cmocka_unit_test(a_seed_decides_the_psns_and_nothing_else_does),
		cmocka_unit_test(wrong_configurations_are_refused),
		cmocka_unit_test(counters_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
