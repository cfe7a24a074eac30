/* SPDX-License-Identifier: BSD-3-Clause */
// Which queue pairs are the two ends of a connection, told from the PSNs that pass.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emu/core/rng.h"
#include "pcap/build.h"
#include "pipelines/edge_qp.h"

#define FRAME_BYTES 128
#define SPORT       0xc001

static struct edge_qp_table *t;
static simtime_t now;

static int setup(void **state)
{
	t = malloc(sizeof(*t));
	edge_qp_init(t);
	now = SIM_S;
	return t == NULL;
}

static int teardown(void **state)
{
	free(t);
	return 0;
}

struct what {
	uint8_t opcode;
	uint8_t syndrome;
	uint8_t peer; // last byte of its address
	uint32_t qpn, psn, read_bytes;
};

// A packet of that kind passes; true if it told who is who.
static bool pass(enum edge_qp_side side, struct what w)
{
	uint8_t frame[FRAME_BYTES] = {0};
	uint32_t own = 0x0a000001, peer = 0x0a000100 + w.peer;
	uint16_t l4 = (uint16_t)(UDP_HEADER_BYTES + roce_header_bytes(w.opcode) + ICRC_BYTES);
	uint8_t *p = eth_put(frame, frame, frame, ETHERTYPE_IPV4);
	struct pkt pkt;

	p = ipv4_put(p, 0, IPV4_HEADER_BYTES + l4, 1, 64, IP_PROTO_UDP,
		side == EDGE_QP_OUT ? own : peer, side == EDGE_QP_OUT ? peer : own);
	p = udp_put(p, SPORT, ROCE_UDP_PORT, l4);
	p = bth_put(p, w.opcode, BTH_MIG, 0, w.qpn, false, w.psn);
	if (w.opcode == ROCE_READ_REQUEST)
		reth_put(p, 0, 0, w.read_bytes);
	else if (w.opcode == ROCE_ACK)
		aeth_put(p, w.syndrome, 0);
	assert_int_equal(
		pkt_parse(frame, (uint32_t)(ETH_HEADER_BYTES + IPV4_HEADER_BYTES + l4), &pkt),
		PKT_OK);
	struct edge_qp_pair pair = edge_qp_pair_of(&pkt, side);
	struct edge_qp *qp = edge_qp_get(t, side, &pair, w.qpn, now);
	return qp != NULL && edge_qp_note(t, qp, &pkt, now);
}

static bool send(uint32_t qpn, uint32_t psn)
{
	return pass(EDGE_QP_OUT, (struct what){.opcode = ROCE_SEND_ONLY, .qpn = qpn, .psn = psn});
}

static bool ack(uint32_t qpn, uint32_t psn)
{
	return pass(EDGE_QP_IN, (struct what){.opcode = ROCE_ACK, .qpn = qpn, .psn = psn});
}

static uint32_t other_of(enum edge_qp_side side, uint32_t qpn)
{
	struct edge_qp_pair pair = {.peer = {0x0a, 0, 1, 0}, .own = {0x0a, 0, 0, 1}};
	struct edge_qp *qp = edge_qp_find(t, side, &pair, qpn);

	assert_non_null(qp);
	return qp->other;
}

static void an_ack_pairs_both_directions(void **state)
{
	send(0x11, 100);
	assert_true(ack(0x21, 100));
	assert_int_equal(other_of(EDGE_QP_OUT, 0x11), 0x21);
	assert_int_equal(other_of(EDGE_QP_IN, 0x21), 0x11);
	assert_false(ack(0x21, 100)); // nothing new
}

static void an_answer_to_what_was_not_asked_says_nothing(void **state)
{
	send(0x11, 100);
	assert_false(ack(0x21, 99));
	assert_false(ack(0x21, 101));
	assert_int_equal(other_of(EDGE_QP_OUT, 0x11), EDGE_QP_UNKNOWN);
}

static void what_was_answered_is_not_taken_for_another(void **state)
{
	send(0x11, 100);
	send(0x11, 101);
	assert_true(ack(0x21, 101));
	assert_false(ack(0x22, 101));
	assert_int_equal(other_of(EDGE_QP_OUT, 0x11), 0x21);
}

static void psns_wrap(void **state)
{
	send(0x11, 0xffffff);
	send(0x11, 0);
	assert_true(ack(0x21, 0));
}

// 1000 bytes at the smallest MTU, 256, are 4 packets: PSNs 100 to 103.
static void the_responses_of_a_read_are_its_answers(void **state)
{
	pass(EDGE_QP_OUT,
		(struct what){
			.opcode = ROCE_READ_REQUEST, .qpn = 0x11, .psn = 100, .read_bytes = 1000});
	assert_false(pass(
		EDGE_QP_IN, (struct what){.opcode = ROCE_READ_RESP_LAST, .qpn = 0x21, .psn = 104}));
	assert_true(pass(
		EDGE_QP_IN, (struct what){.opcode = ROCE_READ_RESP_LAST, .qpn = 0x21, .psn = 103}));
}

static void a_nak_is_an_answer_to_the_packet_it_asks_for(void **state)
{
	send(0x11, 100);
	send(0x11, 101);
	assert_true(pass(EDGE_QP_IN, (struct what){.opcode = ROCE_ACK,
					     .syndrome = AETH_NAK_PSN_SEQ,
					     .qpn = 0x21,
					     .psn = 100}));
	struct edge_qp_pair pair = {.peer = {0x0a, 0, 1, 0}, .own = {0x0a, 0, 0, 1}};
	assert_int_equal(edge_qp_find(t, EDGE_QP_OUT, &pair, 0x11)->una, 100);
}

static void another_peers_answers_do_not_count(void **state)
{
	send(0x11, 100);
	assert_false(pass(
		EDGE_QP_IN, (struct what){.opcode = ROCE_ACK, .peer = 9, .qpn = 0x21, .psn = 100}));
}

static void two_that_fit_are_left_alone_until_one_does(void **state)
{
	send(0x11, 7);
	send(0x12, 7);
	assert_false(ack(0x21, 7));
	send(0x12, 8);
	assert_true(ack(0x22, 8));
	assert_true(ack(0x21, 7));
	assert_int_equal(other_of(EDGE_QP_OUT, 0x11), 0x21);
	assert_int_equal(other_of(EDGE_QP_OUT, 0x12), 0x22);
}

static void a_pair_that_is_quiet_may_be_claimed(void **state)
{
	send(0x11, 100);
	ack(0x21, 100);
	send(0x11, 101);
	assert_false(ack(0x31, 101));
	now += EDGE_QP_IDLE + 1;
	assert_true(ack(0x31, 101));
	assert_int_equal(other_of(EDGE_QP_OUT, 0x11), 0x31);
	assert_int_equal(other_of(EDGE_QP_IN, 0x21), EDGE_QP_UNKNOWN);
}

static void datagrams_and_cnps_are_of_no_connection(void **state)
{
	assert_int_equal(edge_qp_kind_of(ROCE_UD | ROCE_SEND_ONLY), EDGE_QP_NONE);
	assert_int_equal(edge_qp_kind_of(ROCE_OP_CNP), EDGE_QP_NONE);
	assert_int_equal(edge_qp_kind_of(ROCE_UC | ROCE_WRITE_LAST), EDGE_QP_REQUEST);
	assert_int_equal(edge_qp_kind_of(0x1f), EDGE_QP_NONE);
}

// Whatever passes: partners name each other, and every half in use is listed once.
static void any_packets_leave_it_consistent(void **state)
{
	static const uint8_t opcodes[] = {ROCE_SEND_ONLY, ROCE_WRITE_MIDDLE, ROCE_READ_REQUEST,
		ROCE_READ_RESP_LAST, ROCE_ACK, ROCE_ATOMIC_ACK, ROCE_UC | ROCE_SEND_ONLY};
	struct rng g = rng_stream(1, 2);

	for (unsigned i = 0; i < 200000; i++) {
		uint64_t x = rng_next(&g);

		now += (simtime_t)(x >> 60) * (x >> 50 & 1 ? SIM_MS : SIM_US);
		pass(x & 1 ? EDGE_QP_IN : EDGE_QP_OUT,
			(struct what){.opcode = opcodes[(x >> 1 & 0xff) % sizeof(opcodes)],
				.syndrome = x >> 9 & 1 ? AETH_NAK_PSN_SEQ : 0,
				.peer = (uint8_t)(x >> 10 & 3),
				.qpn = (uint32_t)(x >> 12 & (i & 1 ? 7 : 0xfff)),
				.psn = (uint32_t)(x >> 24 & (i & 4 ? 0xf : 0xffffff)),
				.read_bytes = (uint32_t)(x >> 30)});
	}
	unsigned used = 0, paired = 0;
	for (unsigned i = 0; i < EDGE_QP_SLOTS; i++) {
		struct edge_qp *qp = &t->qps[i];

		used += qp->used;
		if (!qp->used || qp->other == EDGE_QP_UNKNOWN)
			continue;
		struct edge_qp *o = edge_qp_find(
			t, qp->side == EDGE_QP_IN ? EDGE_QP_OUT : EDGE_QP_IN, &qp->pair, qp->other);
		assert_non_null(o);
		assert_int_equal(o->other, qp->qpn);
		paired++;
	}
	assert_int_equal(used, t->n_live);
	assert_in_range(used, EDGE_QP_SLOTS / 2, EDGE_QP_SLOTS);
	assert_true(paired > 0);
	for (unsigned i = 0; i < t->n_live; i++) {
		assert_true(t->qps[t->live[i]].used);
		t->qps[t->live[i]].used = false; // listed twice, it would not be there
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(an_ack_pairs_both_directions),
		T(an_answer_to_what_was_not_asked_says_nothing),
		T(what_was_answered_is_not_taken_for_another),
		T(psns_wrap),
		T(the_responses_of_a_read_are_its_answers),
		T(a_nak_is_an_answer_to_the_packet_it_asks_for),
		T(another_peers_answers_do_not_count),
		T(two_that_fit_are_left_alone_until_one_does),
		T(a_pair_that_is_quiet_may_be_claimed),
		T(datagrams_and_cnps_are_of_no_connection),
		T(any_packets_leave_it_consistent),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
