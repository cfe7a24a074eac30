/* SPDX-License-Identifier: BSD-3-Clause */
// The responder of the RC transport with memory, receives, READs and atomics, against a scripted
// requester.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "models/rc_responder.h"

#define MTU      1024
#define NAK_SEQ  0x60
#define NAK_INV  0x61
#define NAK_ACC  0x62
#define ADDR     UINT64_C(0x5000)
#define LENGTH   8192
#define OK       (RC_RX_IN_ORDER | RC_RX_DATA)
#define ANSWERED (RC_RX_IN_ORDER | RC_RX_MESSAGE | RC_RX_RESPOND)
#define FATAL    (RC_RX_RESPOND | RC_RX_FAILED)

static struct rc_mr mrs[4];
static struct rc_memory memory;
static uint32_t key;
static struct rc_recv ring[4];
static struct rc_rq rq;
static struct rc_resource resources[2];
static struct rc_accept got;

// A responder with one region, `recvs` receives of 2000 bytes and two resources.
static struct rc_responder responder(unsigned recvs, uint8_t access)
{
	struct rc_responder r;
	struct rc_responder_config cfg = {
		.ack_every = 100,
		.payload = MTU,
		.min_rnr_timer = 12,
		.memory = &memory,
		.rq = &rq,
		.resources = resources,
		.max_dest_rd_atomic = 2,
	};

	for (unsigned i = 0; i < 4; i++)
		mrs[i] = (struct rc_mr){0};
	memory = (struct rc_memory){.mr = mrs, .n = 4};
	key = rc_mr_register(&memory, ADDR, LENGTH, access, 5)->rkey;
	rc_rq_init(&rq, ring, 4, false);
	for (unsigned i = 0; i < recvs; i++)
		rc_post_recv(
			&rq, &(struct rc_recv){
				     .wr_id = 100 + i, .addr = 0x100000 * (i + 1), .length = 2000});
	rc_responder_init(&r, &cfg);
	return r;
}

static struct rc_packet packet(uint8_t opcode, uint32_t psn, uint32_t bytes)
{
	return (struct rc_packet){
		.opcode = opcode,
		.psn = psn,
		.payload = bytes,
		.remote_addr = ADDR,
		.rkey = key,
		.dma_len = bytes,
		.imm = 0xabcd,
	};
}

static int receive(struct rc_responder *r, struct rc_packet p)
{
	return rc_rx_request(r, 0, &p, &got);
}

static int rx(struct rc_responder *r, uint8_t opcode, uint32_t psn, uint32_t bytes)
{
	return receive(r, packet(opcode, psn, bytes));
}

static struct rc_packet read_of(uint32_t psn, uint64_t addr, uint32_t bytes)
{
	struct rc_packet p = packet(0x0c, psn, 0);

	p.remote_addr = addr;
	p.dma_len = bytes;
	return p;
}

static void assert_says(struct rc_responder *r, uint8_t opcode, uint32_t psn, uint8_t syndrome)
{
	struct rc_response a;

	assert_int_not_equal(rc_resp_pending(r), RC_RESP_NONE);
	rc_tx_response(r, &a);
	assert_int_equal(a.opcode, opcode);
	assert_int_equal(a.psn, psn);
	assert_int_equal(a.syndrome, syndrome);
}

static void assert_response(
	struct rc_responder *r, uint8_t opcode, uint32_t psn, uint64_t addr, uint16_t bytes)
{
	struct rc_response a;

	assert_int_equal(rc_resp_pending(r), RC_RESP_DATA);
	rc_tx_response(r, &a);
	assert_int_equal(a.opcode, opcode);
	assert_int_equal(a.psn, psn);
	assert_int_equal(a.addr, addr);
	assert_int_equal(a.payload, bytes);
}

static void assert_quiet(struct rc_responder *r)
{
	assert_int_equal(rc_resp_pending(r), RC_RESP_NONE);
}

// ---- SEND ------------------------------------------------------------------------------------

static void a_send_fills_a_receive(void **state)
{
	struct rc_responder r = responder(1, 0);

	assert_int_equal(rx(&r, 0x00, 0, MTU), OK);
	assert_int_equal(got.addr, 0x100000);
	struct rc_packet last = packet(0x03, 1, 300); // with immediate
	last.solicited = true;
	assert_int_equal(receive(&r, last), OK | RC_RX_MESSAGE | RC_RX_RECV_DONE);
	assert_int_equal(got.addr, 0x100000 + MTU);
	assert_int_equal(got.wr_id, 100);
	assert_int_equal(got.byte_len, MTU + 300);
	assert_int_equal(got.imm, 0xabcd);
	assert_true(got.with_imm && got.solicited);
	assert_false(got.with_inv);
	assert_int_equal(got.wc_status, WC_SUCCESS);
}

static void without_a_receive_a_send_is_not_ready(void **state)
{
	struct rc_responder r = responder(0, 0);

	assert_int_equal(rx(&r, 0x04, 0, 10), RC_RX_NOT_READY | RC_RX_RESPOND);
	assert_says(&r, ROCE_ACK, 0, 0x20 | 12);
	// What was sent behind it is dropped without a word.
	assert_int_equal(rx(&r, 0x04, 1, 10), RC_RX_GAP);
	assert_quiet(&r);
	assert_int_equal(rx(&r, 0x04, 0, 10), RC_RX_NOT_READY | RC_RX_RESPOND);
	assert_says(&r, ROCE_ACK, 0, 0x20 | 12);
	rc_post_recv(&rq, &(struct rc_recv){.length = 10});
	assert_int_equal(rx(&r, 0x04, 0, 10), OK | RC_RX_MESSAGE | RC_RX_RECV_DONE);
	// The gap after it is news again.
	assert_int_equal(rx(&r, 0x04, 2, 10), RC_RX_GAP | RC_RX_RESPOND);
	assert_says(&r, ROCE_ACK, 1, NAK_SEQ);
}

static void a_send_longer_than_its_receive_ends_both(void **state)
{
	struct rc_responder r = responder(2, 0);
	struct rc_recv left;

	assert_int_equal(rx(&r, 0x00, 0, MTU), OK);
	assert_int_equal(rx(&r, 0x02, 1, MTU), RC_RX_LENGTH | RC_RX_RECV_DONE | FATAL);
	assert_int_equal(got.wr_id, 100);
	assert_int_equal(got.wc_status, WC_LOC_LEN_ERR);
	assert_says(&r, ROCE_ACK, 1, NAK_INV);
	assert_true(rc_flush_recv(&r, &left));
	assert_int_equal(left.wr_id, 101);
	assert_false(rc_flush_recv(&r, &left));
}

static void a_receive_taken_is_flushed_first(void **state)
{
	struct rc_responder r = responder(2, 0);
	struct rc_recv left;

	rx(&r, 0x00, 0, MTU);
	rc_responder_error(&r);
	assert_true(rc_flush_recv(&r, &left));
	assert_int_equal(left.wr_id, 100);
	assert_true(rc_flush_recv(&r, &left));
	assert_int_equal(left.wr_id, 101);
	assert_int_equal(rx(&r, 0x02, 1, 10), RC_RX_INVALID);
	assert_quiet(&r);
}

static void a_send_can_invalidate_a_key(void **state)
{
	struct rc_responder r = responder(2, ACCESS_REMOTE_WRITE);
	struct rc_packet p = packet(0x17, 0, 10);

	p.imm = key;
	assert_int_equal(receive(&r, p), OK | RC_RX_MESSAGE | RC_RX_RECV_DONE);
	assert_true(got.with_inv);
	assert_int_equal(got.imm, key);
	assert_int_equal(rx(&r, 0x0a, 1, 10), RC_RX_ACCESS | FATAL);
	r = responder(2, 0);
	p.imm = key + 1;
	assert_int_equal(receive(&r, p), RC_RX_INVALID | FATAL);
}

// ---- lengths and memory ----------------------------------------------------------------------

static void packets_have_the_length_of_their_place(void **state)
{
	static const struct {
		uint8_t opcode;
		uint32_t bytes;
		bool ok;
	} second[] = {
		{0x01, MTU, true},
		{0x01, MTU - 1, false},
		{0x01, MTU + 1, false},
		{0x02, 1, true},
		{0x02, 0, false},
	};

	for (unsigned i = 0; i < sizeof(second) / sizeof(second[0]); i++) {
		struct rc_responder r = responder(1, 0);
		r.rq->ring[0].length = 100000;
		assert_int_equal(rx(&r, 0x00, 0, MTU), OK);
		int want = second[i].ok ? RC_RX_IN_ORDER : RC_RX_INVALID;
		assert_int_equal(rx(&r, second[i].opcode, 1, second[i].bytes) & RC_RX_RESULT, want);
	}
	struct rc_responder r = responder(1, 0);
	assert_int_equal(rx(&r, 0x00, 0, MTU - 1), RC_RX_INVALID | FATAL);
	r = responder(1, 0);
	assert_int_equal(rx(&r, 0x04, 0, MTU + 1), RC_RX_INVALID | FATAL);
}

static void a_write_goes_where_its_reth_says(void **state)
{
	struct rc_responder r = responder(1, ACCESS_REMOTE_WRITE);
	struct rc_packet p = packet(0x06, 0, MTU);

	p.dma_len = 2 * MTU + 5;
	p.remote_addr = ADDR + 100;
	assert_int_equal(receive(&r, p), OK);
	assert_int_equal(got.addr, ADDR + 100);
	assert_int_equal(rx(&r, 0x07, 1, MTU), OK);
	assert_int_equal(got.addr, ADDR + 100 + MTU);
	// With immediate it takes a receive at its end; the length is that of the WRITE.
	assert_int_equal(rx(&r, 0x09, 2, 5), OK | RC_RX_MESSAGE | RC_RX_RECV_DONE);
	assert_int_equal(got.wr_id, 100);
	assert_int_equal(got.byte_len, 2 * MTU + 5);
	assert_int_equal(got.wc_op, WR_WRITE_IMM);
}

static void a_write_with_immediate_waits_at_its_last_packet(void **state)
{
	struct rc_responder r = responder(0, ACCESS_REMOTE_WRITE);
	struct rc_packet p = packet(0x06, 0, MTU);

	p.dma_len = MTU + 5;
	assert_int_equal(receive(&r, p), OK);
	assert_int_equal(rx(&r, 0x09, 1, 5), RC_RX_NOT_READY | RC_RX_RESPOND);
	rc_post_recv(&rq, &(struct rc_recv){.wr_id = 9});
	assert_int_equal(rx(&r, 0x09, 1, 5), OK | RC_RX_MESSAGE | RC_RX_RECV_DONE);
	assert_int_equal(got.addr, ADDR + MTU);
}

static void a_write_is_as_long_as_it_says(void **state)
{
	static const struct {
		uint32_t dma_len, bytes;
		uint8_t opcode; // of the second packet
		bool ok;
	} table[] = {
		{MTU + 10, 10, 0x08, true}, {MTU + 10, 9, 0x08, false}, {MTU + 10, 11, 0x08, false},
		{2 * MTU, MTU, 0x07, false}, // all of it and no end
	};

	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct rc_responder r = responder(0, ACCESS_REMOTE_WRITE);
		struct rc_packet p = packet(0x06, 0, MTU);
		p.dma_len = table[i].dma_len;
		assert_int_equal(receive(&r, p), OK);
		assert_int_equal(rx(&r, table[i].opcode, 1, table[i].bytes) & RC_RX_RESULT,
			table[i].ok ? RC_RX_IN_ORDER : RC_RX_INVALID);
	}
	struct rc_responder r = responder(0, ACCESS_REMOTE_WRITE);
	struct rc_packet p = packet(0x0a, 0, 10);
	p.dma_len = 11;
	assert_int_equal(receive(&r, p), RC_RX_INVALID | FATAL);
}

static void memory_is_reached_as_it_was_registered(void **state)
{
	static const struct {
		uint8_t access, opcode;
		int64_t off;
		uint32_t bytes;
		int32_t key_off;
		bool ok;
	} table[] = {
		{ACCESS_REMOTE_WRITE, 0x0a, 0, 10, 0, true},
		{ACCESS_REMOTE_WRITE, 0x0a, LENGTH - 10, 10, 0, true},
		{ACCESS_REMOTE_WRITE, 0x0a, LENGTH - 10, 11, 0, false},
		{ACCESS_REMOTE_WRITE, 0x0a, -1, 10, 0, false},
		{ACCESS_REMOTE_WRITE, 0x0a, LENGTH, 1, 0, false},
		{ACCESS_REMOTE_WRITE, 0x0a, 0, 10, 1, false},     // the variant
		{ACCESS_REMOTE_WRITE, 0x0a, 0, 10, 0x100, false}, // no such slot
		{ACCESS_REMOTE_WRITE, 0x0a, 0, 10, 0x40000, false},
		{ACCESS_REMOTE_WRITE, 0x0a, -5000, 0, 77, true}, // zero bytes: nothing is checked
		{ACCESS_REMOTE_READ, 0x0a, 0, 10, 0, false},
		{ACCESS_REMOTE_READ, 0x0c, 0, LENGTH, 0, true},
		{ACCESS_REMOTE_READ, 0x0c, 1, LENGTH, 0, false},
		{ACCESS_REMOTE_WRITE, 0x0c, 0, 10, 0, false},
		{ACCESS_REMOTE_ATOMIC, 0x13, 8, 8, 0, true},
		{ACCESS_REMOTE_ATOMIC, 0x14, LENGTH, 8, 0, false},
		{ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ, 0x14, 8, 8, 0, false},
	};

	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct rc_responder r = responder(0, table[i].access);
		struct rc_packet p =
			packet(table[i].opcode, 0, table[i].opcode == 0x0a ? table[i].bytes : 0);
		p.remote_addr = ADDR + (uint64_t)table[i].off;
		p.dma_len = table[i].bytes;
		p.rkey = key + (uint32_t)table[i].key_off;
		int res = receive(&r, p);
		if (table[i].ok) {
			assert_int_equal(res & RC_RX_RESULT, RC_RX_IN_ORDER);
			continue;
		}
		assert_int_equal(res, RC_RX_ACCESS | FATAL);
		assert_says(&r, ROCE_ACK, 0, NAK_ACC);
		assert_int_equal(rx(&r, 0x04, 0, 1), RC_RX_INVALID); // nothing more is taken
		assert_quiet(&r);
	}
}

static void a_region_may_end_at_the_last_address(void **state)
{
	struct rc_responder r = responder(0, 0);

	key = rc_mr_register(&memory, UINT64_MAX - 99, 100, ACCESS_REMOTE_WRITE, 1)->rkey;
	struct rc_packet p = packet(0x0a, 0, 100);
	p.remote_addr = UINT64_MAX - 99;
	assert_int_equal(receive(&r, p) & RC_RX_RESULT, RC_RX_IN_ORDER);
	p = packet(0x0a, 1, 101);
	p.remote_addr = UINT64_MAX - 99;
	assert_int_equal(receive(&r, p) & RC_RX_RESULT, RC_RX_ACCESS);
}

// ---- READ ------------------------------------------------------------------------------------

static void a_read_is_answered_packet_by_packet(void **state)
{
	struct rc_responder r = responder(0, ACCESS_REMOTE_READ);

	assert_int_equal(receive(&r, read_of(0, ADDR + 8, 2 * MTU + 100)), ANSWERED | RC_RX_READ);
	assert_response(&r, 0x0d, 0, ADDR + 8, MTU);
	assert_response(&r, 0x0e, 1, ADDR + 8 + MTU, MTU);
	assert_response(&r, 0x0f, 2, ADDR + 8 + 2 * MTU, 100);
	assert_quiet(&r);
	assert_int_equal(receive(&r, read_of(3, ADDR, MTU)), ANSWERED | RC_RX_READ);
	assert_response(&r, 0x10, 3, ADDR, MTU);
	assert_int_equal(receive(&r, read_of(4, ADDR, 0)), ANSWERED | RC_RX_READ);
	assert_response(&r, 0x10, 4, ADDR, 0);
}

static void acks_wait_behind_responses(void **state)
{
	struct rc_responder r = responder(0, ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE);
	struct rc_packet w = packet(0x0a, 2, 10);

	w.ack_req = true;
	receive(&r, read_of(0, ADDR, 2 * MTU));
	assert_response(&r, 0x0d, 0, ADDR, MTU);
	assert_true(receive(&r, w) & RC_RX_RESPOND);
	assert_int_equal(receive(&r, packet(0x0a, 4, 10)), RC_RX_GAP | RC_RX_RESPOND);
	assert_response(&r, 0x0f, 1, ADDR + MTU, MTU); // first
	assert_says(&r, ROCE_ACK, 3, NAK_SEQ);         // then the NAK, for 2 too
	assert_quiet(&r);
}

static void a_part_of_a_read_is_executed_again(void **state)
{
	struct rc_responder r = responder(0, ACCESS_REMOTE_READ);
	struct rc_response a;

	receive(&r, read_of(0, ADDR, 4 * MTU));
	for (unsigned i = 0; i < 4; i++)
		rc_tx_response(&r, &a);
	assert_int_equal(
		receive(&r, read_of(2, ADDR + 2 * MTU, 2 * MTU)), RC_RX_DUPLICATE | RC_RX_RESPOND);
	assert_response(&r, 0x0d, 2, ADDR + 2 * MTU, MTU);
	assert_response(&r, 0x0f, 3, ADDR + 3 * MTU, MTU);
	assert_quiet(&r);
	assert_int_equal(r.epsn, 4);
	assert_int_equal(r.msn, 1);
}

static void a_repetition_outside_the_first_range_is_dropped(void **state)
{
	struct rc_responder r = responder(0, ACCESS_REMOTE_READ);
	struct rc_response a;

	receive(&r, read_of(0, ADDR, 4 * MTU));
	for (unsigned i = 0; i < 4; i++)
		rc_tx_response(&r, &a);
	assert_int_equal(receive(&r, read_of(2, ADDR + MTU, 2 * MTU)), RC_RX_DUPLICATE);
	assert_int_equal(receive(&r, read_of(2, ADDR + 2 * MTU, 2 * MTU + 1)), RC_RX_DUPLICATE);
	struct rc_packet p = read_of(0, ADDR, 4 * MTU);
	p.rkey++;
	assert_int_equal(receive(&r, p), RC_RX_DUPLICATE);
	assert_quiet(&r);
}

static void a_repetition_goes_before_younger_answers(void **state)
{
	struct rc_responder r = responder(0, ACCESS_REMOTE_READ);

	receive(&r, read_of(0, ADDR, MTU));
	receive(&r, read_of(1, ADDR + MTU, 2 * MTU));
	assert_response(&r, 0x10, 0, ADDR, MTU);
	assert_response(&r, 0x0d, 1, ADDR + MTU, MTU);
	assert_int_equal(receive(&r, read_of(0, ADDR, MTU)), RC_RX_DUPLICATE | RC_RX_RESPOND);
	assert_response(&r, 0x10, 0, ADDR, MTU);
	assert_response(&r, 0x0f, 2, ADDR + 2 * MTU, MTU);
	assert_quiet(&r);
}

static void more_reads_than_agreed_are_invalid(void **state)
{
	struct rc_responder r = responder(0, ACCESS_REMOTE_READ); // two at a time

	receive(&r, read_of(0, ADDR, MTU));
	receive(&r, read_of(1, ADDR, MTU));
	assert_int_equal(receive(&r, read_of(2, ADDR, MTU)), RC_RX_INVALID | FATAL);
	assert_response(&r, 0x10, 0, ADDR, MTU); // those before it are answered
	assert_response(&r, 0x10, 1, ADDR, MTU);
	assert_says(&r, ROCE_ACK, 2, NAK_INV);

	r = responder(0, ACCESS_REMOTE_READ);
	for (uint32_t psn = 0; psn < 5; psn++) {
		receive(&r, read_of(psn, ADDR, MTU));
		assert_response(&r, 0x10, psn, ADDR, MTU);
	}
	// The third from the end is forgotten: a ghost.
	assert_int_equal(receive(&r, read_of(2, ADDR, MTU)), RC_RX_DUPLICATE);
	assert_int_equal(receive(&r, read_of(3, ADDR, MTU)), RC_RX_DUPLICATE | RC_RX_RESPOND);
}

// ---- atomics ---------------------------------------------------------------------------------

static void an_atomic_is_replayed_not_repeated(void **state)
{
	struct rc_responder r = responder(0, ACCESS_REMOTE_ATOMIC);
	struct rc_packet p = packet(0x13, 0, 0);
	struct rc_response a;

	p.compare = 1;
	p.swap_add = 2;
	assert_int_equal(receive(&r, p), ANSWERED | RC_RX_ATOMIC);
	assert_int_equal(got.atomic.addr, ADDR);
	assert_true(got.atomic.cmp_swap);
	assert_int_equal(got.atomic.compare, 1);
	assert_int_equal(got.atomic.swap_add, 2);
	rc_atomic_done(&r, 0x1122);
	for (unsigned i = 0; i < 2; i++) { // the answer is lost: the same again
		assert_int_equal(rc_resp_pending(&r), RC_RESP_DATA);
		rc_tx_response(&r, &a);
		assert_int_equal(a.opcode, 0x12);
		assert_int_equal(a.psn, 0);
		assert_int_equal(a.original, 0x1122);
		assert_quiet(&r);
		assert_int_equal(receive(&r, p), RC_RX_DUPLICATE | RC_RX_RESPOND);
	}
	p.opcode = 0x14; // another operation with its PSN
	assert_int_equal(receive(&r, p), RC_RX_DUPLICATE);
}

static void atomics_are_aligned(void **state)
{
	struct rc_responder r = responder(0, ACCESS_REMOTE_ATOMIC);
	struct rc_packet p = packet(0x14, 0, 0);

	p.remote_addr = ADDR + 4;
	assert_int_equal(receive(&r, p), RC_RX_INVALID | FATAL);
	assert_says(&r, ROCE_ACK, 0, NAK_INV);
}

// ---- credits ---------------------------------------------------------------------------------

static void acks_tell_how_many_receives_there_are(void **state)
{
	struct rc_responder r = responder(3, 0);
	struct rc_packet p = packet(0x00, 0, MTU);

	r.credits = true;
	p.ack_req = true;
	receive(&r, p);
	assert_says(&r, ROCE_ACK, 0, 3); // this message's receive is one of them
	p = packet(0x02, 1, 10);
	p.ack_req = true;
	receive(&r, p);
	assert_says(&r, ROCE_ACK, 1, 2);
	r.credits = false;
	receive(&r, p);
	assert_says(&r, ROCE_ACK, 1, 0x1f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_send_fills_a_receive),
		cmocka_unit_test(without_a_receive_a_send_is_not_ready),
		cmocka_unit_test(a_send_longer_than_its_receive_ends_both),
		cmocka_unit_test(a_receive_taken_is_flushed_first),
		cmocka_unit_test(a_send_can_invalidate_a_key),
		cmocka_unit_test(packets_have_the_length_of_their_place),
		cmocka_unit_test(a_write_goes_where_its_reth_says),
		cmocka_unit_test(a_write_with_immediate_waits_at_its_last_packet),
		cmocka_unit_test(a_write_is_as_long_as_it_says),
		cmocka_unit_test(memory_is_reached_as_it_was_registered),
		cmocka_unit_test(a_region_may_end_at_the_last_address),
		cmocka_unit_test(a_read_is_answered_packet_by_packet),
		cmocka_unit_test(acks_wait_behind_responses),
		cmocka_unit_test(a_part_of_a_read_is_executed_again),
		cmocka_unit_test(a_repetition_outside_the_first_range_is_dropped),
		cmocka_unit_test(a_repetition_goes_before_younger_answers),
		cmocka_unit_test(more_reads_than_agreed_are_invalid),
		cmocka_unit_test(an_atomic_is_replayed_not_repeated),
		cmocka_unit_test(atomics_are_aligned),
		cmocka_unit_test(acks_tell_how_many_receives_there_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
