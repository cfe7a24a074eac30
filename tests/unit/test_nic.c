/* SPDX-License-Identifier: BSD-3-Clause */
// What the built-in NIC puts on the wire and when: headers, lengths, order, pacing.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "nic_rig.h"
#include "pcap/icrc.h"
#include "pipelines/materialise.h"

#define SEEN_MAX 2048

// A frame the tap saw, as anyone on the wire would see it.
struct seen {
	struct pkt p; // data: `bytes`
	uint8_t bytes[1200];
	simtime_t at; // last bit
	enum rig_side from;
	uint32_t flow;
	uint8_t tc;
	bool hash_ok, offsets_ok, icrc_ok, payload_ok;
};

static struct seen seen[SEEN_MAX];
static unsigned n_seen;

static bool record(struct rig *r, enum rig_side from, struct frame *f)
{
	assert_in_range(n_seen, 0, SEEN_MAX - 1);
	struct seen *s = &seen[n_seen++];

	assert_int_equal(frame_materialise(f, s->bytes, sizeof(s->bytes)), f->len);
	assert_int_equal(pkt_parse(s->bytes, f->len, &s->p), PKT_OK);
	s->at = r->tap.now;
	s->from = from;
	s->flow = f->flow;
	s->tc = f->tc;
	s->hash_ok = pkt_flow_hash(&s->p) == f->flow_hash;
	s->offsets_ok = s->p.l3_off == f->l3_off && s->p.l4_off == f->l4_off &&
			s->p.opcode == f->opcode && s->p.payload_len == f->payload_len &&
			s->p.payload_off == f->head_len && s->p.end == f->len;
	s->icrc_ok = pkt_icrc_valid(&s->p);
	s->payload_ok = payload_pattern_check(f->flow, f->payload_pos, s->bytes + s->p.payload_off,
				s->p.payload_len) == s->p.payload_len;
	return true;
}

static struct rig *tapped(const struct nic_config *cfg)
{
	struct rig *r = rig_new(cfg, true);

	n_seen = 0;
	r->on_frame = record;
	return r;
}

static void add(struct rig *r, const struct nic_flow_config *flow)
{
	assert_int_equal(nic_add_flow(r->nic[0], r->nic[1], flow), 0);
}

static void end(struct rig *r)
{
	char why[200];

	if (!rig_end(r, why, sizeof(why)))
		fail_msg("%s", why);
}

static struct nic_flow_result result(struct rig *r, uint32_t flow)
{
	struct nic_flow_result res;

	assert_int_equal(nic_flow_result(r->nic[0], flow, &res), 0);
	return res;
}

// A WRITE of 2500 bytes at 1024 per packet: on the wire in order FIRST, MIDDLE, LAST, and the ACKs.
static void run_one_write(struct nic_flow_config *flow)
{
	struct nic_config cfg = nic_config_default();
	struct rig *r = tapped(&cfg);

	add(r, flow);
	rig_start(r);
	rig_run(r, SIM_MS);
	assert_true(result(r, flow->flow).done);
	end(r);
	assert_int_equal(n_seen, 6); // 3 packets, an ACK for each
	for (unsigned i = 0; i < n_seen; i++) {
		assert_true(seen[i].icrc_ok);
		assert_true(seen[i].hash_ok);
		assert_true(seen[i].offsets_ok);
		assert_true(seen[i].payload_ok);
		assert_int_equal(seen[i].flow, flow->flow);
		assert_int_equal(seen[i].tc, flow->tc);
		assert_int_equal(seen[i].p.dscp, flow->dscp);
		assert_int_equal(seen[i].p.ecn, ECN_ECT0);
		assert_int_equal(seen[i].p.dport, 4791);
		assert_int_equal(seen[i].p.pkey, 0xffff);
	}
}

// The `i`-th frame from a side.
static const struct seen *nth(enum rig_side from, unsigned i)
{
	for (unsigned k = 0; k < n_seen; k++)
		if (seen[k].from == from && i-- == 0)
			return &seen[k];
	fail_msg("no such frame");
	return NULL;
}

static void a_write_over_ipv4_is_complete_on_the_wire(void **state)
{
	struct nic_flow_config flow = rig_flow(5, 2500);

	flow.ttl = 9;
	run_one_write(&flow);
	// Ethernet 14, IPv4 20, UDP 8, BTH 12, RETH 16 on the first, payload, ICRC 4.
	static const uint8_t opcode[] = {0x06, 0x07, 0x08};
	static const uint16_t len[] = {74 + 1024, 58 + 1024, 58 + 452};
	static const uint16_t payload[] = {1024, 1024, 452};
	uint32_t psn = nth(RIG_A, 0)->p.psn;
	for (unsigned i = 0; i < 3; i++) {
		const struct pkt *p = &nth(RIG_A, i)->p;
		const uint8_t *ip = p->data + p->l3_off;
		assert_int_equal(p->opcode, opcode[i]);
		assert_int_equal(p->end, len[i]);
		assert_int_equal(p->payload_len, payload[i]);
		assert_int_equal(p->psn, (psn + i) & 0xffffff);
		assert_true(p->ack_req);
		assert_int_equal(p->ttl, 9);
		assert_int_equal(get_be16(ip + 4), 0);
		assert_int_equal(get_be16(ip + 6), IPV4_DF);
		assert_int_equal(get_be32(ip + 12), RIG_A_IP);
		assert_int_equal(get_be32(ip + 16), RIG_B_IP);
		assert_int_equal(p->dest_qp, nth(RIG_A, 0)->p.dest_qp);
	}
	const uint8_t *reth = pkt_ext(&nth(RIG_A, 0)->p, ROCE_EXT_RETH);
	assert_int_equal(get_be32(reth + 12), 2500);

	// The receiver's answers: same UDP source port, PSN acknowledged, MSN 0 until the last.
	const struct pkt *req = &nth(RIG_A, 0)->p;
	for (unsigned i = 0; i < 3; i++) {
		const struct pkt *p = &nth(RIG_B, i)->p;
		const uint8_t *aeth = pkt_ext(p, ROCE_EXT_AETH);
		assert_int_equal(p->opcode, ROCE_ACK);
		assert_int_equal(p->end, 62);
		assert_int_equal(p->psn, (psn + i) & 0xffffff);
		assert_int_equal(aeth[0], AETH_ACK | AETH_CREDIT_INVALID);
		assert_int_equal(get_be24(aeth + 1), i == 2);
		assert_int_equal(p->sport, req->sport);
		assert_int_equal(p->sport, roce_udp_sport(p->dest_qp, req->dest_qp));
	}
}

static void a_tagged_write_over_ipv6_is_complete_on_the_wire(void **state)
{
	struct nic_flow_config flow = rig_flow(6, 2500);

	flow.ipv6 = true;
	flow.pcp = 3;
	flow.udp_sport = 0xc123;
	run_one_write(&flow);
	const struct pkt *p = &nth(RIG_A, 0)->p;
	assert_int_equal(p->end, 14 + 4 + 40 + 8 + 12 + 16 + 1024 + 4);
	assert_int_equal(p->vlan_tci, 3 << 13);
	assert_int_equal(p->ip_version, 6);
	assert_int_equal(p->ttl, 64);
	assert_int_equal(p->sport, 0xc123);
	assert_int_equal(nth(RIG_B, 0)->p.end, 14 + 4 + 40 + 8 + 12 + 4 + 4);
}

static void odd_payloads_are_padded_to_four_bytes(void **state)
{
	for (unsigned bytes = 1; bytes <= 9; bytes++) {
		struct nic_config cfg = nic_config_default();
		struct nic_flow_config flow = rig_flow(0, bytes);
		struct rig *r = tapped(&cfg);

		flow.op = NIC_FLOW_SEND;
		add(r, &flow);
		rig_start(r);
		rig_run(r, SIM_MS);
		end(r);
		const struct seen *s = nth(RIG_A, 0);
		assert_int_equal(s->p.opcode, 0x04);
		assert_int_equal(s->p.pad, (4 - bytes % 4) % 4);
		assert_int_equal(s->p.payload_len, bytes);
		assert_int_equal(s->p.end, 58 + (bytes + 3) / 4 * 4);
		assert_true(s->icrc_ok && s->payload_ok);
	}
}

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
	add(r, &flow);
	rig_start(r);
	rig_run(r, SIM_MS);
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
	uint32_t src;
	for (simtime_t t; (t = evq_next(&n->evq, &src)) < SIM_MS;)
		node_step(n, src, t);
	for (uint32_t i = 0; i < 2; i++) {
		struct nic_flow_result res;
		assert_int_equal(nic_flow_result(n, i, &res), 0);
		assert_true(res.done);
		assert_int_equal(res.delivered_bytes, 3 * 100 * 1024);
	}
	char why[200];
	assert_true(n->ops->check(n, false, why, sizeof(why)));
	assert_int_equal(n->created, n->delivered);
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
		cmocka_unit_test(a_write_over_ipv4_is_complete_on_the_wire),
		cmocka_unit_test(a_tagged_write_over_ipv6_is_complete_on_the_wire),
		cmocka_unit_test(odd_payloads_are_padded_to_four_bytes),
		cmocka_unit_test(a_lone_flow_takes_its_frames_and_the_path),
		cmocka_unit_test(two_flows_share_the_line_packet_by_packet),
		cmocka_unit_test(the_line_is_never_idle_while_a_flow_has_data),
		cmocka_unit_test(acknowledgements_go_before_data),
		cmocka_unit_test(acknowledgements_are_coalesced_as_configured),
		cmocka_unit_test(a_rate_spaces_packets_exactly),
		cmocka_unit_test(an_odd_rate_is_exact_in_the_long_run),
		cmocka_unit_test(two_paced_queue_pairs_share_the_rate),
		cmocka_unit_test(a_stopped_endless_flow_goes_on_when_started_again),
		cmocka_unit_test(a_flow_may_join_two_ports_of_one_nic),
		cmocka_unit_test(a_seed_decides_the_psns_and_nothing_else_does),
		cmocka_unit_test(wrong_configurations_are_refused),
		cmocka_unit_test(counters_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
