/* SPDX-License-Identifier: BSD-3-Clause */
// What the built-in NIC puts on the wire: complete frames, headers and lengths.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "nic_seen.h"

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

		flow.op = WR_SEND;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_write_over_ipv4_is_complete_on_the_wire),
		cmocka_unit_test(a_tagged_write_over_ipv6_is_complete_on_the_wire),
		cmocka_unit_test(odd_payloads_are_padded_to_four_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
