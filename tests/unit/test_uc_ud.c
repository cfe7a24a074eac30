/* SPDX-License-Identifier: BSD-3-Clause */
// The unreliable transports: UC against a script and through a channel that loses, duplicates and
// reorders; UD.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "emu/core/rng.h"
#include "models/uc.h"
#include "models/ud.h"

#define MTU 1024
#define OK  RC_RX_IN_ORDER

static struct rc_accept got;

static struct rc_requester requester(struct rc_wqe *sq, enum wr_op op, uint32_t length, uint64_t n)
{
	struct rc_requester q;
	struct rc_wr w = {.op = (uint8_t)op, .length = length, .repeat = n, .signaled = true};

	uc_requester_init(&q, MTU, 0xfffffe, sq, 1);
	assert_int_equal(uc_post_send(&q, &w), 0);
	return q;
}

static struct uc_responder responder(struct rc_rq *rq)
{
	struct uc_responder u;
	struct rc_responder_config cfg = {
		.ack_every = 1, .payload = MTU, .rq = rq, .strict = true, .max_dest_rd_atomic = 3};

	uc_responder_init(&u, &cfg);
	return u;
}

static int rx(struct uc_responder *u, uint8_t opcode, uint32_t psn, uint32_t bytes)
{
	struct rc_packet p = {
		.opcode = opcode, .psn = psn, .payload = bytes, .dma_len = bytes, .ack_req = true};

	return uc_rx_request(u, 0, &p, &got);
}

static void a_request_completes_with_its_last_packet(void **state)
{
	struct rc_wqe sq[1];
	struct rc_requester q = requester(sq, WR_SEND_IMM, MTU + 1, 2);
	static const uint8_t opcodes[] = {0x20, 0x23, 0x20, 0x23};
	struct rc_request r;
	struct rc_wc wc;

	for (unsigned i = 0; i < 4; i++) {
		assert_true(rc_can_send(&q));
		assert_false(rc_poll(&q, &wc));
		int res = uc_tx_next(&q, 0, &r);
		assert_int_equal(res, RC_ACK_PROGRESS | (i == 3 ? RC_ACK_COMPLETED : 0));
		assert_int_equal(r.opcode, opcodes[i]);
		assert_int_equal(r.psn, psn_add(0xfffffe, i));
		assert_false(r.ack_req);
	}
	assert_false(rc_can_send(&q));
	assert_int_equal(q.deadline, SIMTIME_NEVER); // nothing is waited for
	assert_true(rc_poll(&q, &wc));
	assert_int_equal(wc.status, WC_SUCCESS);
}

static void what_needs_an_answer_is_not_carried(void **state)
{
	static const uint8_t no[] = {WR_READ, WR_CMP_SWAP, WR_FETCH_ADD, WR_SEND_INV};
	struct rc_wqe sq[1];
	struct rc_requester q;

	uc_requester_init(&q, MTU, 0, sq, 1);
	for (unsigned i = 0; i < sizeof(no); i++) {
		struct rc_wr w = {.op = no[i], .length = 8, .repeat = 1};
		assert_int_equal(uc_post_send(&q, &w), -EINVAL);
	}
	static const uint8_t opcodes[] = {0x2c, 0x31, 0x33, 0x36, 0x04, 0x64, 0x81};
	for (unsigned i = 0; i < sizeof(opcodes); i++)
		assert_false(uc_is_request(opcodes[i]));
	assert_true(uc_is_request(0x20) && uc_is_request(0x2b));
}

static void a_gap_drops_its_message_and_no_other(void **state)
{
	struct uc_responder u = responder(NULL);

	assert_int_equal(rx(&u, 0x20, 0, MTU) & RC_RX_RESULT, OK);
	assert_int_equal(rx(&u, 0x21, 2, MTU), RC_RX_GAP); // 1 is lost
	assert_int_equal(rx(&u, 0x22, 3, 10), RC_RX_GAP);  // the rest goes too
	assert_int_equal(u.r.messages, 0);
	assert_int_equal(rx(&u, 0x24, 4, 10) & ~RC_RX_DATA, OK | RC_RX_MESSAGE);
	// A message whose first packet is lost, then one that begins after a gap.
	assert_int_equal(rx(&u, 0x21, 6, MTU), RC_RX_GAP);
	assert_int_equal(rx(&u, 0x22, 7, 10), RC_RX_GAP);
	assert_int_equal(rx(&u, 0x20, 9, MTU) & RC_RX_RESULT, OK);
	assert_int_equal(rx(&u, 0x22, 10, 10) & ~RC_RX_DATA, OK | RC_RX_MESSAGE);
	assert_int_equal(u.r.messages, 2);
	assert_int_equal(u.gaps, 3);
	assert_int_equal(u.dropped, 4);
}

static void errors_are_silent_and_cost_one_message(void **state)
{
	struct rc_recv ring[2];
	struct rc_rq rq;

	rc_rq_init(&rq, ring, 2, false);
	struct uc_responder u = responder(&rq);
	assert_int_equal(rx(&u, 0x24, 0, 10), RC_RX_NOT_READY); // no receive
	rc_post_recv(&rq, &(struct rc_recv){.wr_id = 7, .length = 20});
	assert_int_equal(rx(&u, 0x24, 1, 21), RC_RX_LENGTH); // too long: the receive stays
	assert_int_equal(rx(&u, 0x22, 2, 10), RC_RX_GAP);    // no message: dropped with the last
	assert_int_equal(rx(&u, 0x24, 3, MTU + 1), RC_RX_INVALID);
	assert_int_equal(rx(&u, 0x24, 4, 20), OK | RC_RX_DATA | RC_RX_MESSAGE | RC_RX_RECV_DONE);
	assert_int_equal(got.wr_id, 7);
	assert_int_equal(rc_resp_pending(&u.r), RC_RESP_NONE);
}

static void a_dropped_send_leaves_its_receive_to_the_next(void **state)
{
	struct rc_recv ring[2];
	struct rc_rq rq;

	rc_rq_init(&rq, ring, 2, false);
	rc_post_recv(&rq, &(struct rc_recv){.wr_id = 7, .addr = 1000, .length = 5000});
	struct uc_responder u = responder(&rq);
	rx(&u, 0x20, 0, MTU);
	rx(&u, 0x2a, 2, 10); // lost 1; a WRITE in between
	assert_int_equal(rx(&u, 0x24, 3, 20), OK | RC_RX_DATA | RC_RX_MESSAGE | RC_RX_RECV_DONE);
	assert_int_equal(got.wr_id, 7);
	assert_int_equal(got.addr, 1000);
	assert_int_equal(got.byte_len, 20);
}

// Whatever the channel does, what is delivered are whole messages as they were sent, by their
// bytes' positions; without loss, duplication and reordering all of them.
static void whole_messages_arrive_or_none(void **state)
{
	enum { N = 400, PACKETS = N * 4 };
	uint64_t complete = 0, lost = 0;

	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct rng g = rng_stream(seed, 3);
		struct rc_request sent[PACKETS * 2];
		unsigned n = 0, loss = rng_below(&g, 100), dup = rng_below(&g, 50),
			 reorder = rng_below(&g, 50);
		uint32_t length = 1 + rng_below(&g, 4 * MTU);
		struct rc_wqe sq[1];
		struct rc_requester q = requester(sq, WR_WRITE, length, N);
		if (seed % 4 == 0)
			loss = dup = reorder = 0;
		while (rc_can_send(&q)) {
			struct rc_request r;
			uc_tx_next(&q, 0, &r);
			if (rng_below(&g, 1000) < loss)
				continue;
			sent[n++] = r;
			if (rng_below(&g, 1000) < dup)
				sent[n++] = r;
			if (n > 1 && rng_below(&g, 1000) < reorder) {
				struct rc_request other = sent[n - 2];
				sent[n - 2] = sent[n - 1];
				sent[n - 1] = other;
			}
		}
		struct uc_responder u = responder(NULL);
		uint64_t next = 0, first = 0; // positions: expected next, of the message's start
		for (unsigned i = 0; i < n; i++) {
			const struct rc_request *r = &sent[i];
			struct rc_packet p = {.opcode = r->opcode,
				.psn = r->psn,
				.payload = r->payload,
				.remote_addr = r->remote_addr,
				.dma_len = r->dma_len};
			int res = uc_rx_request(&u, 0, &p, &got);
			if ((res & RC_RX_RESULT) != OK)
				continue;
			if (r->place & RC_FIRST)
				next = first = r->pos;
			assert_int_equal(r->pos, next); // no hole in what is taken
			assert_int_equal(got.addr, r->pos);
			next += r->payload;
			if (!(res & RC_RX_MESSAGE))
				continue;
			assert_int_equal(next - first, length);
			complete++;
		}
		if (seed % 4 == 0)
			assert_int_equal(u.r.messages, N);
		lost += u.r.messages < N;
	}
	assert_true(complete > 10000 && lost > 50);
}

// ---- UD --------------------------------------------------------------------------------------

static void a_datagram_is_one_packet(void **state)
{
	struct rc_wqe sq[2];
	struct rc_requester q;
	struct rc_request r;
	struct rc_wr w = {.op = WR_SEND, .length = MTU, .repeat = 1};

	ud_requester_init(&q, MTU, 5, sq, 2);
	assert_int_equal(ud_post_send(&q, &w), 0);
	w.op = WR_SEND_IMM;
	w.length = 0;
	assert_int_equal(ud_post_send(&q, &w), 0);
	ud_tx_next(&q, 0, &r);
	assert_int_equal(r.opcode, 0x64);
	assert_int_equal(r.psn, 5);
	ud_tx_next(&q, 0, &r);
	assert_int_equal(r.opcode, 0x65);
	w.length = MTU + 1;
	assert_int_equal(ud_post_send(&q, &w), -EINVAL);
	w = (struct rc_wr){.op = WR_WRITE, .length = 1, .repeat = 1};
	assert_int_equal(ud_post_send(&q, &w), -EINVAL);
}

static void a_datagram_lies_behind_its_grh(void **state)
{
	struct rc_recv ring[4];
	struct rc_rq rq;
	struct ud_receiver u = {.qkey = 0x11111111, .rq = &rq};
	struct rc_packet p = {.opcode = 0x65, .payload = 60, .imm = 9};

	rc_rq_init(&rq, ring, 4, false);
	assert_int_equal(ud_rx(&u, 0, &p, 0x11111111, &got), RC_RX_NOT_READY);
	rc_post_recv(&rq, &(struct rc_recv){.wr_id = 1, .addr = 1000, .length = 100});
	assert_int_equal(ud_rx(&u, 0, &p, 0x11111112, &got), RC_RX_ACCESS);
	p.payload = 61; // and 40 is more than 100
	assert_int_equal(ud_rx(&u, 0, &p, 0x11111111, &got), RC_RX_LENGTH);
	p.payload = 60;
	assert_int_equal(ud_rx(&u, 0, &p, 0x11111111, &got),
		OK | RC_RX_MESSAGE | RC_RX_DATA | RC_RX_RECV_DONE);
	assert_int_equal(got.addr, 1040);
	assert_int_equal(got.byte_len, 100);
	assert_int_equal(got.wr_id, 1);
	assert_true(got.with_imm);
	assert_int_equal(got.imm, 9);
	assert_int_equal(u.out_of_buffer + u.qkey_violations + u.too_long, 3);
	assert_int_equal(u.bytes, 60);
}

static void an_ipv4_header_stands_in_the_second_half(void **state)
{
	uint8_t v4[20] = {0x45, [19] = 4}, v6[40] = {0x60, [39] = 6}, grh[40], zero[20] = {0};

	ud_put_grh(grh, v4);
	assert_memory_equal(grh, zero, 20);
	assert_memory_equal(grh + 20, v4, 20);
	ud_put_grh(grh, v6);
	assert_memory_equal(grh, v6, 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_completes_with_its_last_packet),
		cmocka_unit_test(what_needs_an_answer_is_not_carried),
		cmocka_unit_test(a_gap_drops_its_message_and_no_other),
		cmocka_unit_test(errors_are_silent_and_cost_one_message),
		cmocka_unit_test(a_dropped_send_leaves_its_receive_to_the_next),
		cmocka_unit_test(whole_messages_arrive_or_none),
		cmocka_unit_test(a_datagram_is_one_packet),
		cmocka_unit_test(a_datagram_lies_behind_its_grh),
		cmocka_unit_test(an_ipv4_header_stands_in_the_second_half),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
