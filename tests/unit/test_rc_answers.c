/* SPDX-License-Identifier: BSD-3-Clause */
// The requester of the RC transport beyond WRITE and SEND: READs, atomics, fences, credits, NAK
// codes and completions, against a scripted responder.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "models/rc.h"

#define ACK        (0x1fu << 24)            // AETH: ACK, unlimited credits
#define CREDITS(c) ((uint32_t)(c) << 24)    // ACK with a credit code
#define NAK(code)  ((0x60u | (code)) << 24) // 0 sequence, 1 invalid, 2 access, 3 operation
#define RNR(t)     ((0x20u | (t)) << 24)
#define TIMEOUT    (1000 * SIM_NS)
#define MTU        1024
#define ADDR       UINT64_C(0x10000)

enum { R_FIRST = 0x0d, R_MIDDLE, R_LAST, R_ONLY, A_ACK = 0x12 };

static struct rc_wqe sq[8];

static struct rc_requester requester(void)
{
	struct rc_requester q;
	struct rc_config cfg = {
		.payload = MTU,
		.window = 1000,
		.ack_every = 1,
		.timeout = TIMEOUT,
		.retry_cnt = 2,
		.rnr_retry = 1,
		.max_rd_atomic = 2,
	};

	rc_requester_init(&q, &cfg, sq, 8);
	return q;
}

static struct rc_wr wr(enum wr_op op, uint32_t length)
{
	static uint64_t id;

	return (struct rc_wr){
		.wr_id = ++id,
		.repeat = 1,
		.remote_addr = ADDR,
		.length = length,
		.rkey = 7,
		.op = (uint8_t)op,
		.signaled = true,
	};
}

static uint64_t post(struct rc_requester *q, struct rc_wr w)
{
	assert_int_equal(rc_post_send(q, &w), 0);
	return w.wr_id;
}

static struct rc_request send(struct rc_requester *q)
{
	struct rc_request r;

	assert_true(rc_can_send(q));
	rc_tx_next(q, 0, &r);
	return r;
}

static int answer(struct rc_requester *q, uint8_t opcode, uint32_t psn, uint32_t bytes,
	struct rc_read_place *out)
{
	return rc_rx_read(q, 1, opcode, psn, opcode == R_MIDDLE ? 0 : ACK, bytes, out);
}

static void assert_done(struct rc_requester *q, uint64_t id, enum wc_status status)
{
	struct rc_wc wc;

	assert_true(rc_poll(q, &wc));
	assert_int_equal(wc.wr_id, id);
	assert_int_equal(wc.status, status);
}

static void assert_none(struct rc_requester *q)
{
	struct rc_wc wc;

	assert_false(rc_poll(q, &wc));
}

// ---- READ ------------------------------------------------------------------------------------

static void a_read_is_one_packet_and_takes_the_psns_of_its_responses(void **state)
{
	struct rc_requester q = requester();
	struct rc_read_place place;
	uint64_t id = post(&q, wr(WR_READ, 2500)); // 1024 + 1024 + 452: PSNs 0, 1, 2

	post(&q, wr(WR_WRITE, 10));
	struct rc_request r = send(&q);
	assert_int_equal(r.opcode, 0x0c);
	assert_int_equal(r.psn, 0);
	assert_int_equal(r.payload, 0);
	assert_int_equal(r.dma_len, 2500);
	assert_int_equal(r.remote_addr, ADDR);
	assert_int_equal(send(&q).psn, 3);

	assert_int_equal(answer(&q, R_FIRST, 0, 1024, &place), RC_ACK_DATA | RC_ACK_PROGRESS);
	assert_int_equal(place.pos, 0);
	assert_int_equal(answer(&q, R_MIDDLE, 1, 1024, &place), RC_ACK_DATA | RC_ACK_PROGRESS);
	assert_int_equal(place.pos, 1024);
	assert_false(place.last);
	assert_none(&q);
	assert_int_equal(answer(&q, R_LAST, 2, 452, &place),
		RC_ACK_DATA | RC_ACK_PROGRESS | RC_ACK_COMPLETED);
	assert_int_equal(place.pos, 2048);
	assert_int_equal(place.length, 452);
	assert_true(place.last);
	assert_done(&q, id, WC_SUCCESS);
	assert_none(&q);
}

static void a_read_of_nothing_is_answered_with_nothing(void **state)
{
	struct rc_requester q = requester();
	struct rc_read_place place;
	uint64_t id = post(&q, wr(WR_READ, 0));

	assert_int_equal(send(&q).dma_len, 0);
	assert_true(answer(&q, R_ONLY, 0, 0, &place) & RC_ACK_COMPLETED);
	assert_done(&q, id, WC_SUCCESS);
}

static void a_hole_in_the_responses_is_a_nak_once(void **state)
{
	struct rc_requester q = requester();
	struct rc_read_place place;

	post(&q, wr(WR_READ, 5 * MTU));
	send(&q);
	answer(&q, R_FIRST, 0, MTU, &place);
	// 1 is lost; 2 and 3 tell of it.
	assert_int_equal(answer(&q, R_MIDDLE, 2, MTU, &place), RC_ACK_IMPLIED | RC_ACK_REWOUND);
	assert_int_equal(answer(&q, R_MIDDLE, 3, MTU, &place), RC_ACK_STALE);
	struct rc_request r = send(&q); // the rest is asked for
	assert_int_equal(r.psn, 1);
	assert_int_equal(r.remote_addr, ADDR + MTU);
	assert_int_equal(r.dma_len, 4 * MTU);
	assert_int_equal(r.pos, MTU);
	assert_true(r.again);
	assert_int_equal(answer(&q, R_LAST, 4, MTU, &place), RC_ACK_STALE);
	assert_int_equal(q.retry_left, 1);
	// The rest begins with a FIRST; one of the first answer would do as well.
	assert_int_equal(answer(&q, R_FIRST, 1, MTU, &place), RC_ACK_DATA | RC_ACK_PROGRESS);
	assert_int_equal(place.pos, MTU);
	assert_int_equal(answer(&q, R_MIDDLE, 2, MTU, &place), RC_ACK_DATA | RC_ACK_PROGRESS);
	assert_int_equal(q.retry_left, 2);
}

static void an_ack_beyond_a_read_says_that_its_response_is_lost(void **state)
{
	struct rc_requester q = requester();
	struct rc_read_place place;

	post(&q, wr(WR_WRITE, 10));     // 0
	post(&q, wr(WR_READ, 2 * MTU)); // 1, 2
	post(&q, wr(WR_WRITE, 10));     // 3
	for (unsigned i = 0; i < 3; i++)
		send(&q);
	// It acknowledges the WRITE before the READ and nothing else.
	assert_int_equal(rc_rx_ack(&q, 1, 3, ACK),
		RC_ACK_PROGRESS | RC_ACK_COMPLETED | RC_ACK_IMPLIED | RC_ACK_REWOUND);
	assert_int_equal(q.una, 1);
	assert_int_equal(send(&q).opcode, 0x0c);
	answer(&q, R_FIRST, 1, MTU, &place);
	answer(&q, R_LAST, 2, MTU, &place);
	assert_int_equal(send(&q).psn, 3);
	assert_int_equal(rc_rx_ack(&q, 1, 3, ACK), RC_ACK_PROGRESS | RC_ACK_COMPLETED);
	assert_true(rc_done(&q));
}

static void a_nak_beyond_a_read_repeats_the_read(void **state)
{
	struct rc_requester q = requester();

	post(&q, wr(WR_READ, MTU)); // 0
	post(&q, wr(WR_WRITE, 10)); // 1
	send(&q);
	send(&q);
	assert_int_equal(rc_rx_ack(&q, 1, 1, NAK(0)), RC_ACK_IMPLIED | RC_ACK_REWOUND);
	assert_int_equal(q.una, 0);
	assert_int_equal(send(&q).opcode, 0x0c);
}

static void only_so_many_reads_are_outstanding(void **state)
{
	struct rc_requester q = requester(); // max_rd_atomic 2
	struct rc_read_place place;
	struct rc_wr many = wr(WR_READ, MTU);

	many.repeat = 5;
	post(&q, many);
	assert_int_equal(send(&q).remote_addr, ADDR);
	assert_int_equal(send(&q).remote_addr, ADDR + MTU);
	assert_false(rc_can_send(&q));
	answer(&q, R_ONLY, 0, MTU, &place);
	assert_int_equal(send(&q).remote_addr, ADDR + 2 * MTU);
	assert_false(rc_can_send(&q));
	rc_timeout(&q, TIMEOUT + 1); // repeated: 1 and 2 again, not 3
	assert_int_equal(send(&q).psn, 1);
	assert_int_equal(send(&q).psn, 2);
	assert_false(rc_can_send(&q));
}

static void a_fence_waits_for_reads(void **state)
{
	struct rc_requester q = requester();
	struct rc_read_place place;
	struct rc_wr fenced = wr(WR_SEND, 10);

	fenced.fence = true;
	post(&q, wr(WR_READ, MTU));
	post(&q, wr(WR_WRITE, 10)); // has none: goes
	post(&q, fenced);
	send(&q);
	send(&q);
	assert_false(rc_can_send(&q));
	answer(&q, R_ONLY, 0, MTU, &place);
	assert_int_equal(send(&q).opcode, 0x04);
}

static void a_response_not_asked_for_ends_the_queue_pair(void **state)
{
	static const struct {
		enum wr_op op;
		uint32_t length;
		uint8_t opcode;
		uint32_t bytes;
	} bad[] = {
		{WR_WRITE, 10, R_ONLY, 10},      // no READ
		{WR_READ, MTU, R_FIRST, MTU},    // it ends here
		{WR_READ, 2 * MTU, R_ONLY, MTU}, // it does not
		{WR_READ, 2 * MTU, R_FIRST, 10}, // not full
		{WR_READ, 10, R_ONLY, 11},
		{WR_READ, 10, A_ACK, 0},
		{WR_FETCH_ADD, 8, R_ONLY, 8},
	};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct rc_requester q = requester();
		struct rc_read_place place;
		uint64_t id = post(&q, wr(bad[i].op, bad[i].length));
		send(&q);
		assert_int_equal(answer(&q, bad[i].opcode, 0, bad[i].bytes, &place), RC_ACK_ERROR);
		assert_done(&q, id, WC_BAD_RESP_ERR);
	}
}

static void responses_of_the_past_and_of_the_never_sent_are_ignored(void **state)
{
	struct rc_requester q = requester();
	struct rc_read_place place;

	post(&q, wr(WR_READ, 2 * MTU));
	send(&q);
	answer(&q, R_FIRST, 0, MTU, &place);
	assert_int_equal(answer(&q, R_FIRST, 0, MTU, &place), RC_ACK_STALE);
	assert_int_equal(answer(&q, R_LAST, 2, MTU, &place), RC_ACK_STALE);
	assert_int_equal(answer(&q, R_FIRST, 0xffffff, MTU, &place), RC_ACK_STALE);
	assert_int_equal(q.una, 1);
}

static void reads_and_atomics_need_the_peers_resources(void **state)
{
	struct rc_requester q = requester();
	struct rc_wr w = wr(WR_READ, 10);

	q.max_rd_atomic = 0;
	assert_int_equal(rc_post_send(&q, &w), -EINVAL);
	q.max_rd_atomic = 1;
	assert_int_equal(rc_post_send(&q, &w), 0);
	w = wr(WR_CMP_SWAP, 4); // atomics are 8 bytes
	assert_int_equal(rc_post_send(&q, &w), -EINVAL);
	w.length = 8;
	assert_int_equal(rc_post_send(&q, &w), 0);
	w = wr(WR_WRITE, (UINT32_C(1) << 31) + 1);
	assert_int_equal(rc_post_send(&q, &w), -EINVAL);
}

// ---- atomics ---------------------------------------------------------------------------------

static void an_atomic_is_answered_with_the_original(void **state)
{
	struct rc_requester q = requester();
	struct rc_read_place place;
	struct rc_wr w = wr(WR_CMP_SWAP, 8);

	w.repeat = 2;
	uint64_t id = post(&q, w);
	struct rc_request r = send(&q);
	assert_int_equal(r.opcode, 0x13);
	assert_int_equal(r.remote_addr, ADDR);
	r = send(&q);
	assert_int_equal(r.psn, 1);
	assert_int_equal(r.remote_addr, ADDR); // the same word again
	assert_int_equal(answer(&q, A_ACK, 0, 0, &place), RC_ACK_DATA | RC_ACK_PROGRESS);
	assert_int_equal(place.pos, 0);
	assert_int_equal(place.length, 8);
	assert_true(answer(&q, A_ACK, 1, 0, &place) & RC_ACK_COMPLETED);
	assert_int_equal(place.pos, 8);
	assert_done(&q, id, WC_SUCCESS);
}

// ---- credits (IBTA table 45: code 2 is 2 messages, code 5 is 6) -------------------------------

static void sends_stop_one_packet_beyond_the_credits(void **state)
{
	struct rc_requester q = requester();
	struct rc_wr w = wr(WR_SEND, 2 * MTU);

	w.repeat = 10;
	post(&q, w); // message m: packets 2 m, 2 m + 1
	send(&q);
	send(&q);
	// One message complete, credits for two more: messages 1 and 2, and the first of 3.
	assert_int_equal(rc_rx_ack(&q, 1, 1, CREDITS(2) | 1), RC_ACK_PROGRESS);
	for (unsigned i = 0; i < 4; i++)
		send(&q);
	struct rc_request r = send(&q);
	assert_int_equal(r.psn, 6);
	assert_true(r.ack_req);
	assert_false(rc_can_send(&q));
	// An ACK of the same PSN with more credits opens again; one with fewer does not shut.
	assert_int_equal(rc_rx_ack(&q, 1, 5, CREDITS(2) | 3), RC_ACK_PROGRESS);
	assert_int_equal(send(&q).psn, 7);
	assert_true(rc_can_send(&q));
	rc_rx_ack(&q, 1, 5, CREDITS(0) | 3);
	assert_int_equal(send(&q).psn, 8);
}

static void unlimited_credits_lift_the_limit(void **state)
{
	struct rc_requester q = requester();
	struct rc_wr w = wr(WR_SEND, 10);

	w.repeat = 10;
	post(&q, w);
	send(&q);
	rc_rx_ack(&q, 1, 0, CREDITS(0) | 1);
	send(&q);
	assert_false(rc_can_send(&q));
	rc_rx_ack(&q, 1, 1, ACK | 2);
	for (unsigned i = 2; i < 10; i++)
		send(&q);
}

static void writes_need_no_credits(void **state)
{
	struct rc_requester q = requester();
	struct rc_wr w = wr(WR_WRITE, 10);

	w.repeat = 10;
	post(&q, w);
	send(&q);
	rc_rx_ack(&q, 1, 0, CREDITS(0) | 1);
	for (unsigned i = 1; i < 10; i++)
		send(&q);
}

static void a_write_with_immediate_needs_one_for_its_last_packet(void **state)
{
	struct rc_requester q = requester();

	post(&q, wr(WR_WRITE, 10));
	post(&q, wr(WR_WRITE_IMM, 3 * MTU));
	send(&q);
	rc_rx_ack(&q, 1, 0, CREDITS(0) | 1);
	for (unsigned i = 0; i < 3; i++)
		send(&q);
}

static void credit_codes_are_table_45(void **state)
{
	static const struct {
		uint8_t code;
		uint32_t n;
	} some[] = {{0, 0}, {1, 1}, {4, 4}, {5, 6}, {6, 8}, {10, 32}, {20, 1024}, {30, 32768}};

	for (unsigned i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
		assert_int_equal(rc_credits(some[i].code), some[i].n);
		assert_int_equal(rc_credit_code(some[i].n), some[i].code);
	}
	assert_int_equal(rc_credit_code(5), 4); // never more than there are
	assert_int_equal(rc_credit_code(100000), 30);
}

// ---- ends ------------------------------------------------------------------------------------

static void each_nak_code_has_its_status(void **state)
{
	static const uint8_t status[] = {0, 9, 10, 11, 15}; // IBV_WC_REM_*_ERR by NAK code

	for (unsigned code = 1; code <= 4; code++) {
		struct rc_requester q = requester();
		uint64_t before = post(&q, wr(WR_WRITE, 10));
		uint64_t id = post(&q, wr(WR_WRITE, 10)), after = post(&q, wr(WR_SEND, 10));
		send(&q);
		send(&q);
		assert_int_equal(rc_rx_ack(&q, 1, 1, NAK(code)),
			RC_ACK_PROGRESS | RC_ACK_COMPLETED | RC_ACK_ERROR);
		assert_done(&q, before, WC_SUCCESS); // acknowledged by the NAK
		assert_done(&q, id, status[code]);
		assert_done(&q, after, WC_WR_FLUSH_ERR);
		assert_none(&q);
		assert_false(rc_can_send(&q));
	}
}

static void reserved_syndromes_change_nothing(void **state)
{
	static const uint32_t odd[] = {NAK(5), NAK(31), 0x40u << 24, 0x80u << 24, 0xe0u << 24};

	for (unsigned i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		struct rc_requester q = requester();
		post(&q, wr(WR_WRITE, 10));
		send(&q);
		assert_int_equal(rc_rx_ack(&q, 1, 0, odd[i]), RC_ACK_STALE);
		assert_int_equal(q.una, 0);
		assert_int_equal(q.state, RC_READY);
	}
}

static void a_queue_pair_in_error_flushes_what_is_posted(void **state)
{
	struct rc_requester q = requester();
	struct rc_wr unsignaled = wr(WR_SEND, 10), late = wr(WR_SEND, 10);

	unsignaled.signaled = false;
	post(&q, unsignaled);
	assert_int_equal(rc_error(&q, WC_WR_FLUSH_ERR), RC_ACK_ERROR);
	assert_int_equal(rc_error(&q, WC_GENERAL_ERR), RC_ACK_STALE);
	assert_done(&q, unsignaled.wr_id, WC_WR_FLUSH_ERR); // flushed ones always have an entry
	assert_int_equal(rc_post_send(&q, &late), -EPIPE);
	assert_done(&q, late.wr_id, WC_WR_FLUSH_ERR);
	assert_none(&q);
}

static void unsignaled_requests_complete_silently_and_free_their_place(void **state)
{
	struct rc_requester q = requester();
	struct rc_wr w = wr(WR_WRITE, 10);

	w.signaled = false;
	for (unsigned i = 0; i < 8; i++)
		post(&q, w);
	assert_int_equal(rc_post_send(&q, &w), -ENOMEM);
	for (unsigned i = 0; i < 8; i++)
		send(&q);
	rc_rx_ack(&q, 1, 6, ACK);
	for (unsigned i = 0; i < 7; i++)
		post(&q, w);
	assert_int_equal(rc_post_send(&q, &w), -ENOMEM);
	assert_none(&q);
}

static void nothing_is_taken_behind_an_endless_request(void **state)
{
	struct rc_requester q = requester();
	struct rc_wr w = wr(WR_WRITE, 10);

	w.repeat = RC_ENDLESS;
	post(&q, w);
	assert_int_equal(rc_post_send(&q, &w), -ENOMEM);
}

static void a_message_of_nothing_is_one_packet(void **state)
{
	struct rc_requester q = requester();

	post(&q, wr(WR_SEND, 0));
	post(&q, wr(WR_WRITE_IMM, 0));
	struct rc_request r = send(&q);
	assert_int_equal(r.opcode, 0x04);
	assert_int_equal(r.payload, 0);
	r = send(&q);
	assert_int_equal(r.opcode, 0x0b);
	assert_int_equal(r.dma_len, 0);
	assert_int_equal(rc_rx_ack(&q, 1, 1, ACK), RC_ACK_PROGRESS | RC_ACK_COMPLETED);
}

static void immediate_and_invalidate_mark_the_last_packet(void **state)
{
	struct rc_requester q = requester();
	static const struct {
		enum wr_op op;
		uint8_t first, last, only;
	} table[] = {
		{WR_SEND_IMM, 0x00, 0x03, 0x05},
		{WR_SEND_INV, 0x00, 0x16, 0x17},
		{WR_WRITE_IMM, 0x06, 0x09, 0x0b},
	};

	for (unsigned i = 0; i < 3; i++) {
		post(&q, wr(table[i].op, MTU + 1));
		assert_int_equal(send(&q).opcode, table[i].first);
		assert_int_equal(send(&q).opcode, table[i].last);
		post(&q, wr(table[i].op, MTU));
		assert_int_equal(send(&q).opcode, table[i].only);
	}
}

static void the_solicited_event_is_on_the_last_packet(void **state)
{
	struct rc_requester q = requester();
	struct rc_wr w = wr(WR_SEND, 2 * MTU);

	w.solicited = true;
	post(&q, w);
	assert_false(send(&q).solicited);
	assert_true(send(&q).solicited);
}

static void after_an_rnr_nak_a_read_is_repeated_too(void **state)
{
	struct rc_requester q = requester();

	post(&q, wr(WR_READ, MTU));
	post(&q, wr(WR_SEND, 10));
	send(&q);
	send(&q);
	// The SEND was refused; the READ before it was executed, but its response is not here.
	assert_int_equal(rc_rx_ack(&q, 1, 1, RNR(1)), RC_ACK_REWOUND | RC_ACK_RNR);
	assert_int_equal(q.una, 0);
	rc_rnr_expired(&q, q.rnr_until);
	assert_int_equal(send(&q).opcode, 0x0c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_read_is_one_packet_and_takes_the_psns_of_its_responses),
		cmocka_unit_test(a_read_of_nothing_is_answered_with_nothing),
		cmocka_unit_test(a_hole_in_the_responses_is_a_nak_once),
		cmocka_unit_test(an_ack_beyond_a_read_says_that_its_response_is_lost),
		cmocka_unit_test(a_nak_beyond_a_read_repeats_the_read),
		cmocka_unit_test(only_so_many_reads_are_outstanding),
		cmocka_unit_test(a_fence_waits_for_reads),
		cmocka_unit_test(a_response_not_asked_for_ends_the_queue_pair),
		cmocka_unit_test(responses_of_the_past_and_of_the_never_sent_are_ignored),
		cmocka_unit_test(reads_and_atomics_need_the_peers_resources),
		cmocka_unit_test(an_atomic_is_answered_with_the_original),
		cmocka_unit_test(sends_stop_one_packet_beyond_the_credits),
		cmocka_unit_test(unlimited_credits_lift_the_limit),
		cmocka_unit_test(writes_need_no_credits),
		cmocka_unit_test(a_write_with_immediate_needs_one_for_its_last_packet),
		cmocka_unit_test(credit_codes_are_table_45),
		cmocka_unit_test(each_nak_code_has_its_status),
		cmocka_unit_test(reserved_syndromes_change_nothing),
		cmocka_unit_test(a_queue_pair_in_error_flushes_what_is_posted),
		cmocka_unit_test(unsignaled_requests_complete_silently_and_free_their_place),
		cmocka_unit_test(nothing_is_taken_behind_an_endless_request),
		cmocka_unit_test(a_message_of_nothing_is_one_packet),
		cmocka_unit_test(immediate_and_invalidate_mark_the_last_packet),
		cmocka_unit_test(the_solicited_event_is_on_the_last_packet),
		cmocka_unit_test(after_an_rnr_nak_a_read_is_repeated_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
