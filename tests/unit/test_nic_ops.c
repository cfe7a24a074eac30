/* SPDX-License-Identifier: BSD-3-Clause */
// The built-in NIC beyond RC WRITE and SEND: READ, atomics, immediate data, UC, UD, receives that
// run out, RoCE v1. A tap sees every frame and may lose it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nic_seen.h"
#include "pcap/psn.h"

static struct nic_flow_config op_flow(enum wr_op op, enum qp_transport transport)
{
	bool atomic = op == WR_CMP_SWAP || op == WR_FETCH_ADD;
	struct nic_flow_config f = rig_flow(7, atomic ? 8 : transport == QP_UD ? 1000 : 2500);

	f.op = op;
	f.transport = transport;
	f.messages = 5;
	return f;
}

static uint64_t counter(struct rig *r, enum rig_side side, const char *name)
{
	uint64_t v;

	assert_true(nic_counter_by_name(r->nic[side], name, &v));
	return v;
}

// How many frames of an opcode the tap saw from a side.
static unsigned count(enum rig_side from, uint8_t opcode)
{
	unsigned n = 0;

	for (unsigned i = 0; i < n_seen; i++)
		n += seen[i].from == from && seen[i].p.opcode == opcode;
	return n;
}

static void assert_all_valid(void)
{
	for (unsigned i = 0; i < n_seen; i++) {
		assert_true(seen[i].hash_ok && seen[i].icrc_ok && seen[i].payload_ok);
		assert_int_equal(seen[i].p.payload_off + seen[i].p.payload_len + seen[i].p.pad + 4,
			seen[i].p.end);
	}
}

static void every_operation_is_carried(void **state)
{
	static const struct {
		enum wr_op op;
		enum qp_transport transport;
		uint8_t a[2], b[2]; // opcodes that a and b send, and how often
	} table[] = {
		// 2500 bytes are three packets of at most 1024
		{WR_WRITE_IMM, QP_RC, {0x09, 5}, {0x11, 5}},
		{WR_SEND_IMM, QP_RC, {0x03, 5}, {0x11, 5}},
		{WR_READ, QP_RC, {0x0c, 5}, {0x0e, 5}},
		{WR_CMP_SWAP, QP_RC, {0x13, 5}, {0x12, 5}},
		{WR_FETCH_ADD, QP_RC, {0x14, 5}, {0x12, 5}},
		{WR_WRITE, QP_UC, {0x26, 5}, {0x11, 0}},
		{WR_WRITE_IMM, QP_UC, {0x29, 5}, {0x11, 0}},
		{WR_SEND, QP_UC, {0x22, 5}, {0x11, 0}},
		{WR_SEND_IMM, QP_UC, {0x23, 5}, {0x11, 0}},
		{WR_SEND, QP_UD, {0x64, 5}, {0x11, 0}},
		{WR_SEND_IMM, QP_UD, {0x65, 5}, {0x11, 0}},
	};

	for (unsigned i = 0; i < RTE_DIM(table); i++) {
		struct nic_config cfg = nic_config_default();
		struct nic_flow_config flow = op_flow(table[i].op, table[i].transport);
		cfg.ack_every = 100;
		struct rig *r = tapped(&cfg);
		add(r, &flow);
		rig_start(r);
		rig_run(r, SIM_MS);
		struct nic_flow_result res = result(r, 7);
		assert_true(res.done);
		assert_int_equal(res.delivered_bytes, 5 * flow.message_bytes);
		assert_int_equal(res.delivered_messages, 5);
		assert_int_equal(res.completed_messages, 5);
		assert_int_not_equal(res.arrived, SIMTIME_NEVER);
		assert_int_equal(count(RIG_A, table[i].a[0]), table[i].a[1]);
		assert_int_equal(count(RIG_B, table[i].b[0]), table[i].b[1]);
		assert_all_valid();
		end(r);
	}
}

static void requests_are_counted_where_they_are_answered(void **state)
{
	struct nic_config cfg = nic_config_default();
	struct rig *r = tapped(&cfg);
	static const enum wr_op ops[] = {WR_READ, WR_FETCH_ADD, WR_WRITE_IMM};

	for (uint32_t i = 0; i < 3; i++) {
		struct nic_flow_config flow = op_flow(ops[i], QP_RC);
		flow.flow = i;
		add(r, &flow);
	}
	rig_start(r);
	rig_run(r, SIM_MS);
	assert_int_equal(counter(r, RIG_B, "rx_read_requests"), 5);
	assert_int_equal(counter(r, RIG_B, "rx_atomic_requests"), 5);
	assert_int_equal(counter(r, RIG_B, "rx_write_requests"), 5);
	assert_int_equal(counter(r, RIG_A, "rx_read_requests"), 0);
	end(r);
}

// ---- READ ------------------------------------------------------------------------------------

static void read_responses_carry_what_was_asked_for(void **state)
{
	struct nic_config cfg = nic_config_default();
	struct nic_flow_config flow = op_flow(WR_READ, QP_RC);
	struct rig *r = tapped(&cfg);

	add(r, &flow);
	rig_start(r);
	rig_run(r, SIM_MS);
	// Message m is at m x 2500 in the flow's pattern and at that offset of the memory.
	const struct seen *first = nth(RIG_A, 0);
	for (unsigned m = 0; m < 5; m++) {
		const struct seen *req = nth(RIG_A, m);
		assert_int_equal(get_be64(pkt_ext(&req->p, ROCE_EXT_RETH)) -
					 get_be64(pkt_ext(&first->p, ROCE_EXT_RETH)),
			m * 2500);
		assert_int_equal(req->p.psn, psn_add(first->p.psn, m * 3));
		for (unsigned k = 0; k < 3; k++) {
			const struct seen *resp = nth(RIG_B, m * 3 + k);
			assert_int_equal(resp->p.opcode, 0x0d + k);
			assert_int_equal(resp->p.psn, psn_add(first->p.psn, m * 3 + k));
			assert_int_equal(resp->pos, m * 2500 + k * 1024);
			assert_int_equal(resp->p.payload_len, k < 2 ? 1024 : 452);
		}
	}
	end(r);
}

static unsigned lose; // the n-th frame from b, from 1; 0: none

static bool lose_nth_of_b(struct rig *r, enum rig_side from, struct frame *f)
{
	record(r, from, f);
	return from == RIG_A || lose == 0 || --lose != 0;
}

static void a_lost_response_is_asked_for_again(void **state)
{
	struct nic_config cfg = nic_config_default();
	struct nic_flow_config flow = op_flow(WR_READ, QP_RC);
	struct rig *r = tapped(&cfg);

	flow.messages = 1;
	flow.message_bytes = 10 * 1024;
	r->on_frame = lose_nth_of_b;
	lose = 4; // the response of packet 3
	add(r, &flow);
	rig_start(r);
	rig_run(r, 10 * SIM_MS);
	struct nic_flow_result res = result(r, 7);
	assert_true(res.done);
	assert_int_equal(res.delivered_bytes, 10 * 1024);
	assert_int_equal(counter(r, RIG_A, "implied_nak_seq_err"), 1);
	assert_int_equal(counter(r, RIG_A, "local_ack_timeout_err"), 0);
	const struct seen *again = nth(RIG_A, 1);
	assert_int_equal(again->p.psn, psn_add(nth(RIG_A, 0)->p.psn, 3));
	assert_int_equal(get_be32(pkt_ext(&again->p, ROCE_EXT_RETH) + 12), 7 * 1024);
	// 10 responses, of which one is lost, and 7 again.
	assert_int_equal(res.sent_packets, 17);
	assert_int_equal(res.retransmitted_packets, 7);
	assert_int_equal(counter(r, RIG_B, "duplicate_request"), 1);
	assert_all_valid();
	end(r);
}

static void a_lost_last_response_is_a_timeout(void **state)
{
	struct nic_config cfg = nic_config_default();
	struct nic_flow_config flow = op_flow(WR_READ, QP_RC);
	struct rig *r = tapped(&cfg);

	cfg.timeout = 1;
	flow.messages = 1;
	r->on_frame = lose_nth_of_b;
	lose = 3;
	add(r, &flow);
	rig_start(r);
	rig_run(r, SIM_S);
	assert_true(result(r, 7).done);
	assert_int_equal(result(r, 7).timeouts, 1);
	assert_int_equal(counter(r, RIG_A, "implied_nak_seq_err"), 0);
	assert_int_equal(get_be32(pkt_ext(&nth(RIG_A, 1)->p, ROCE_EXT_RETH) + 12), 452);
	end(r);
}

static void a_lost_atomic_answer_is_replayed(void **state)
{
	struct nic_config cfg = nic_config_default();
	struct nic_flow_config flow = op_flow(WR_FETCH_ADD, QP_RC);
	struct rig *r = tapped(&cfg);

	flow.messages = 3;
	r->on_frame = lose_nth_of_b;
	lose = 2;
	add(r, &flow);
	rig_start(r);
	rig_run(r, SIM_S);
	assert_true(result(r, 7).done);
	// The word counts 0, 1, 2 whatever was lost: each was added once.
	unsigned n = 0;
	for (unsigned i = 0; i < n_seen; i++) {
		if (seen[i].p.opcode != 0x12)
			continue;
		uint32_t nr = (uint32_t)psn_diff(seen[i].p.psn, nth(RIG_A, 0)->p.psn);
		assert_int_equal(get_be64(pkt_ext(&seen[i].p, ROCE_EXT_ATOMIC_ACK)), nr);
		n++;
	}
	assert_in_range(n, 4, 5); // three and at least one again
	end(r);
}

static void reads_outstanding_are_limited(void **state)
{
	struct nic_config cfg = nic_config_default();
	struct nic_flow_config flow = op_flow(WR_READ, QP_RC);
	cfg.max_rd_atomic = 2;
	struct rig *r = tapped(&cfg);
	int open = 0, most = 0;

	flow.messages = 20;
	add(r, &flow);
	rig_start(r);
	rig_run(r, SIM_MS);
	assert_true(result(r, 7).done);
	for (unsigned i = 0; i < n_seen; i++) {
		open += seen[i].p.opcode == 0x0c;
		most = open > most ? open : most;
		open -= seen[i].p.opcode == 0x0f;
	}
	assert_int_equal(most, 2);
	end(r);
}

// ---- receives --------------------------------------------------------------------------------

static void a_slow_application_makes_senders_wait(void **state)
{
	struct nic_config cfg = nic_config_default();
	struct nic_flow_config flow = op_flow(WR_SEND, QP_RC);
	cfg.recv_depth = 2;
	cfg.recv_rate = 1000;   // one per millisecond
	cfg.min_rnr_timer = 14; // 1.28 ms
	struct rig *r = tapped(&cfg);

	add(r, &flow); // 5 messages
	rig_start(r);
	rig_run(r, SIM_S);
	struct nic_flow_result res = result(r, 7);
	assert_true(res.done);
	// Two at once; the others after 1, 2 and 3 ms: each but one finds a receive after one wait
	// of 1.28 ms (1.28, 2.56, 3.84 ms), so three RNR NAKs.
	assert_int_equal(counter(r, RIG_B, "out_of_buffer"), 3);
	assert_int_equal(counter(r, RIG_A, "rnr_nak_retry_err"), 3);
	assert_in_range(res.fct, 3840 * SIM_US, 3900 * SIM_US);
	end(r);
}

static void without_rnr_retries_the_queue_pair_fails(void **state)
{
	struct nic_config cfg = nic_config_default();
	struct nic_flow_config flow = op_flow(WR_SEND, QP_RC);
	cfg.recv_depth = 1;
	cfg.recv_rate = 1;
	cfg.rnr_retry = 0;
	struct rig *r = tapped(&cfg);

	add(r, &flow);
	rig_start(r);
	rig_run(r, SIM_MS);
	assert_int_equal(result(r, 7).status, WC_RNR_RETRY_EXC_ERR);
	assert_int_equal(result(r, 7).delivered_messages, 1);
	assert_int_equal(counter(r, RIG_A, "req_rnr_retries_exceeded"), 1);
	end(r);
}

static void writes_need_no_receive(void **state)
{
	struct nic_config cfg = nic_config_default();
	struct nic_flow_config flow = op_flow(WR_WRITE, QP_RC);
	cfg.recv_depth = 1;
	cfg.recv_rate = 1;
	struct rig *r = tapped(&cfg);

	add(r, &flow);
	rig_start(r);
	rig_run(r, SIM_MS);
	assert_true(result(r, 7).done);
	end(r);
}

// ---- UC, UD ----------------------------------------------------------------------------------

static bool lose_one_of_a(struct rig *r, enum rig_side from, struct frame *f)
{
	record(r, from, f);
	return from == RIG_B || lose == 0 || --lose != 0;
}

static void what_uc_loses_stays_lost(void **state)
{
	struct nic_config cfg = nic_config_default();
	struct nic_flow_config flow = op_flow(WR_SEND, QP_UC);
	struct rig *r = tapped(&cfg);

	r->on_frame = lose_one_of_a;
	lose = 5; // of the second message
	add(r, &flow);
	rig_start(r);
	rig_run(r, SIM_MS);
	struct nic_flow_result res = result(r, 7);
	assert_true(res.done); // it was sent
	assert_int_equal(res.completed_messages, 5);
	assert_int_equal(res.delivered_messages, 4);
	assert_int_equal(res.delivered_bytes, 4 * 2500);
	assert_int_equal(res.arrived, SIMTIME_NEVER);
	assert_int_equal(res.retransmitted_packets, 0);
	end(r);
}

static void datagrams_without_receive_are_dropped(void **state)
{
	struct nic_config cfg = nic_config_default();
	struct nic_flow_config flow = op_flow(WR_SEND, QP_UD);
	cfg.recv_depth = 2;
	cfg.recv_rate = 1;
	struct rig *r = tapped(&cfg);

	add(r, &flow);
	rig_start(r);
	rig_run(r, SIM_MS);
	assert_int_equal(result(r, 7).delivered_messages, 2);
	assert_int_equal(counter(r, RIG_B, "out_of_buffer"), 3);
	assert_int_equal(get_be32(pkt_ext(&nth(RIG_A, 0)->p, ROCE_EXT_DETH)), 0x11111111);
	end(r);
}

// ---- RoCE v1 ---------------------------------------------------------------------------------

static void version_1_has_a_grh_and_no_ip(void **state)
{
	for (unsigned v6 = 0; v6 < 2; v6++) {
		struct nic_config cfg = nic_config_default();
		struct nic_flow_config flow = op_flow(WR_READ, QP_RC);
		struct rig *r = tapped(&cfg);
		flow.roce1 = true;
		flow.ipv6 = v6;
		add(r, &flow);
		rig_start(r);
		rig_run(r, SIM_MS);
		assert_true(result(r, 7).done);
		assert_all_valid();
		const struct seen *s = nth(RIG_A, 0);
		static const uint8_t mapped[] = {
			0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2};
		static const uint8_t ip6[] = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xb};
		assert_int_equal(s->p.kind, PKT_ROCE1);
		assert_int_equal(get_be16(s->bytes + 12), 0x8915);
		assert_memory_equal(s->bytes + s->p.dst_off, v6 ? ip6 : mapped, 16);
		assert_int_equal(s->bytes[5], 0xb); // to the peer itself, not to a router
		end(r);
	}
}

// ---- refused ---------------------------------------------------------------------------------

static void what_does_not_go_together_is_refused(void **state)
{
	struct nic_config cfg = nic_config_default();
	struct rig *r = rig_new(&cfg, false);
	struct nic_flow_config bad;

#define REFUSE(op_, transport_, change) \
	bad = op_flow(op_, transport_); \
	change;                         \
	assert_int_equal(nic_add_flow(r->nic[0], r->nic[1], &bad), -EINVAL)
	REFUSE(WR_READ, QP_UC, );
	REFUSE(WR_FETCH_ADD, QP_UD, );
	REFUSE(WR_WRITE, QP_UD, );
	REFUSE(WR_SEND, QP_UD, bad.message_bytes = 1025);
	REFUSE(WR_CMP_SWAP, QP_RC, bad.message_bytes = 4);
	REFUSE(WR_SEND_INV, QP_RC, );
	end(r);
	cfg.ooo = 10;
	r = rig_new(&cfg, false);
	REFUSE(WR_READ, QP_RC, );
	end(r);
	cfg.ooo = 0;
	cfg.recovery = NIC_SELECTIVE_REPEAT;
	cfg.window = 1000;
	r = rig_new(&cfg, false);
	REFUSE(WR_FETCH_ADD, QP_RC, );
	REFUSE(WR_WRITE, QP_RC, bad.roce1 = true);
	end(r);
}

static void silence_is_met_early_when_the_timer_adapts(void **state)
{
	struct nic_config cfg = nic_config_default();
	struct nic_flow_config flow = op_flow(WR_WRITE, QP_RC);
	cfg.adaptive = true; // timeout 14: 67.1 ms
	struct rig *r = tapped(&cfg);

	r->on_frame = lose_one_of_a;
	lose = 15; // the last packet: nothing tells of it but the timer
	add(r, &flow);
	rig_start(r);
	rig_run(r, 10 * SIM_MS);
	assert_true(result(r, 7).done);
	assert_int_equal(counter(r, RIG_A, "roce_adp_retrans"), 1);
	assert_int_equal(counter(r, RIG_A, "roce_adp_retrans_to"), 0);
	end(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_operation_is_carried),
		cmocka_unit_test(requests_are_counted_where_they_are_answered),
		cmocka_unit_test(read_responses_carry_what_was_asked_for),
		cmocka_unit_test(a_lost_response_is_asked_for_again),
		cmocka_unit_test(a_lost_last_response_is_a_timeout),
		cmocka_unit_test(a_lost_atomic_answer_is_replayed),
		cmocka_unit_test(reads_outstanding_are_limited),
		cmocka_unit_test(a_slow_application_makes_senders_wait),
		cmocka_unit_test(without_rnr_retries_the_queue_pair_fails),
		cmocka_unit_test(writes_need_no_receive),
		cmocka_unit_test(what_uc_loses_stays_lost),
		cmocka_unit_test(datagrams_without_receive_are_dropped),
		cmocka_unit_test(version_1_has_a_grh_and_no_ip),
		cmocka_unit_test(what_does_not_go_together_is_refused),
		cmocka_unit_test(silence_is_met_early_when_the_timer_adapts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
