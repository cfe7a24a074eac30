/* SPDX-License-Identifier: BSD-3-Clause */
// The responder of the RC transport against a scripted requester.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "models/rc.h"

#define ACK     0x1f // AETH syndrome: ACK, unlimited credits
#define NAK_SEQ 0x60
#define NAK_INV 0x61

static struct rc_responder responder(uint32_t psn, uint32_t ack_every)
{
	struct rc_responder r;
	struct rc_responder_config cfg = {.psn = psn, .ack_every = ack_every, .payload = 1024};

	rc_responder_init(&r, &cfg);
	return r;
}

static int receive(struct rc_responder *r, simtime_t now, uint8_t opcode, uint32_t psn,
	bool ack_req, uint32_t payload)
{
	struct rc_packet p = {.opcode = opcode, .psn = psn, .ack_req = ack_req, .payload = payload};
	struct rc_accept a;

	return rc_rx_request(r, now, &p, &a);
}

static struct rc_ack response(struct rc_responder *r)
{
	struct rc_ack a;

	rc_tx_ack(r, &a);
	return a;
}

static void requests_in_order_are_delivered_and_acknowledged(void **state)
{
	struct rc_responder r = responder(0xffffff, 64);

	assert_int_equal(receive(&r, 5, 0x06, 0xffffff, false, 1024), RC_RX_IN_ORDER);
	assert_int_equal(receive(&r, 6, 0x07, 0x000000, false, 1024), RC_RX_IN_ORDER);
	assert_int_equal(receive(&r, 7, 0x08, 0x000001, true, 452),
		RC_RX_IN_ORDER | RC_RX_MESSAGE | RC_RX_RESPOND);
	struct rc_ack a = response(&r);
	assert_int_equal(a.psn, 1);
	assert_int_equal(a.msn, 1);
	assert_int_equal(a.syndrome, ACK);
	assert_int_equal(r.bytes, 2500);
	assert_int_equal(r.last_at, 7);
}

static void unasked_acknowledgements_come_every_nth_packet(void **state)
{
	struct rc_responder r = responder(0, 4);

	for (uint32_t psn = 0; psn < 12; psn++) {
		int respond = receive(&r, 0, 0x04, psn, false, 8) & RC_RX_RESPOND;
		assert_int_equal(respond != 0, psn % 4 == 3);
		if (respond)
			assert_int_equal(response(&r).psn, psn);
	}
}

static void a_gap_is_reported_once_until_it_is_filled(void **state)
{
	struct rc_responder r = responder(10, 1);

	receive(&r, 0, 0x04, 10, true, 8);
	response(&r);
	assert_int_equal(receive(&r, 0, 0x04, 12, true, 8), RC_RX_GAP | RC_RX_RESPOND);
	struct rc_ack a = response(&r);
	assert_int_equal(a.syndrome, NAK_SEQ);
	assert_int_equal(a.psn, 11);
	assert_int_equal(receive(&r, 0, 0x04, 13, true, 8), RC_RX_GAP);
	receive(&r, 0, 0x04, 11, true, 8);
	assert_int_equal(response(&r).syndrome, ACK);
	// 12 was thrown away: the next gap is reported again.
	assert_int_equal(receive(&r, 0, 0x04, 13, true, 8), RC_RX_GAP | RC_RX_RESPOND);
	assert_int_equal(response(&r).psn, 12);
	assert_int_equal(r.bytes, 16);
}

static void a_duplicate_is_acknowledged_again_with_the_newest(void **state)
{
	struct rc_responder r = responder(0, 1);

	for (uint32_t psn = 0; psn < 5; psn++)
		receive(&r, 0, 0x04, psn, true, 8);
	assert_int_equal(receive(&r, 0, 0x04, 1, false, 8), RC_RX_DUPLICATE | RC_RX_RESPOND);
	struct rc_ack a = response(&r);
	assert_int_equal(a.psn, 4);
	assert_int_equal(a.msn, 5);
	assert_int_equal(r.bytes, 40);
	// Half the circle back is the oldest duplicate there can be.
	assert_int_equal(receive(&r, 0, 0x04, psn_add(5, PSN_HALF), false, 8) & RC_RX_RESULT,
		RC_RX_DUPLICATE);
}

static void a_late_response_stands_for_all(void **state)
{
	struct rc_responder r = responder(0, 1);

	receive(&r, 0, 0x04, 1, true, 8); // gap: NAK waits to be sent
	receive(&r, 0, 0x04, 0, true, 8); // the packet comes by another way
	struct rc_ack a = response(&r);
	assert_int_equal(a.syndrome, NAK_SEQ); // 1 was thrown away, so the NAK still stands
	assert_int_equal(a.psn, 1);            // but for what is missing now
	assert_int_equal(response(&r).syndrome, ACK);
}

static void packets_out_of_message_order_are_invalid(void **state)
{
	static const struct {
		uint8_t before, opcode;
		bool ok;
	} table[] = {
		{0x00, 0x01, true},  // SEND_FIRST, SEND_MIDDLE
		{0x00, 0x02, true},  // SEND_LAST
		{0x00, 0x00, false}, // a message inside a message
		{0x00, 0x04, false},
		{0x00, 0x07, false}, // another operation's middle
		{0x06, 0x07, true},
		{0x06, 0x08, true},
		{0x06, 0x02, false},
		{0x06, 0x0a, false},
		{0x04, 0x01, false}, // a middle without a first
		{0x04, 0x08, false},
		{0x0a, 0x06, true},
		{0x0a, 0x04, true},
	};

	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct rc_responder r = responder(0, 64);
		receive(&r, 0, table[i].before, 0, false, 8);
		int got = receive(&r, 0, table[i].opcode, 1, false, 8);
		if (table[i].ok) {
			assert_int_equal(got & RC_RX_RESULT, RC_RX_IN_ORDER);
			continue;
		}
		assert_int_equal(got, RC_RX_INVALID | RC_RX_RESPOND | RC_RX_FAILED);
		struct rc_ack a = response(&r);
		assert_int_equal(a.syndrome, NAK_INV);
		assert_int_equal(a.psn, 1);
		// Nothing more is taken, and nothing more is said.
		assert_int_equal(receive(&r, 0, 0x04, 1, true, 8), RC_RX_INVALID);
		assert_int_equal(receive(&r, 0, 0x04, 0, true, 8), RC_RX_INVALID);
		assert_int_equal(r.bytes, 8);
	}
}

static void requests_are_told_from_responses(void **state)
{
	static const uint8_t spoken[] = {0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09,
		0x0a, 0x0b, 0x0c, 0x13, 0x14, 0x16, 0x17};

	for (unsigned op = 0; op < 256; op++) {
		bool want = false;
		for (unsigned i = 0; i < sizeof(spoken); i++)
			want |= spoken[i] == op;
		assert_int_equal(rc_is_request((uint8_t)op), want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_in_order_are_delivered_and_acknowledged),
		cmocka_unit_test(unasked_acknowledgements_come_every_nth_packet),
		cmocka_unit_test(a_gap_is_reported_once_until_it_is_filled),
		cmocka_unit_test(a_duplicate_is_acknowledged_again_with_the_newest),
		cmocka_unit_test(a_late_response_stands_for_all),
		cmocka_unit_test(packets_out_of_message_order_are_invalid),
		cmocka_unit_test(requests_are_told_from_responses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
