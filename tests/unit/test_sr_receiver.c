/* SPDX-License-Identifier: BSD-3-Clause */
// The receiver that keeps early packets, and the SACK, against scripts worked out by hand.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "models/sr.h"

#define MAX_AGE (5 * SIM_US)

struct receiver {
	struct rc_responder r;
	struct sr_receiver s;
	uint64_t have[2];
	struct rc_packet kept[128];
	simtime_t now;
};

static void receiver_up(struct receiver *t, uint32_t window, uint32_t tolerance, bool selective)
{
	struct rc_responder_config cfg = {.ack_every = 1, .payload = 100};

	memset(t, 0, sizeof(*t));
	rc_responder_init(&t->r, &cfg);
	sr_receiver_init(&t->s, &t->r,
		&(struct sr_receiver_config){.window = window,
			.tolerance = tolerance,
			.max_age = MAX_AGE,
			.selective = selective},
		t->have, t->kept);
}

// A SEND of one packet arrives: what sr_keep() says, or SR_VERDICT | SR_RESPOND if it was its turn.
static int rx(struct receiver *t, uint32_t psn)
{
	struct rc_packet p = {.opcode = ROCE_SEND_ONLY, .psn = psn, .payload = 1};
	struct rc_accept out;
	int result = rc_rx_request(&t->r, 0, &p, &out);

	if ((result & RC_RX_RESULT) == RC_RX_GAP)
		return sr_keep(&t->s, &t->r, t->now, &p);
	while (sr_next(&t->s, &t->r, &p))
		rc_rx_request(&t->r, 0, &p, &out);
	sr_caught_up(&t->s, &t->r, t->now);
	return SR_VERDICT | SR_RESPOND;
}

static void answers(struct receiver *t, uint8_t syndrome, uint32_t psn)
{
	struct rc_ack a;

	assert_int_equal(rc_resp_pending(&t->r), RC_RESP_ACK);
	rc_tx_ack(&t->r, &a);
	assert_int_equal(a.syndrome, syndrome);
	assert_int_equal(a.psn, psn);
}

#define ACK (AETH_ACK | AETH_CREDIT_INVALID)

static void early_packets_are_taken_when_the_missing_one_comes(void **state)
{
	struct receiver t;

	receiver_up(&t, 10, 10, false);
	for (uint32_t psn = 1; psn <= 10; psn++)
		assert_int_equal(rx(&t, psn), SR_KEPT);
	assert_int_equal(rc_resp_pending(&t.r), RC_RESP_NONE);
	assert_int_equal(rx(&t, 5), SR_DUPLICATE);
	assert_int_equal(t.r.messages, 0);
	rx(&t, 0);
	assert_int_equal(t.r.messages, 11);
	assert_int_equal(t.s.n_kept, 0);
	answers(&t, ACK, 10);
}

static void a_gap_beyond_the_tolerance_is_reported_once(void **state)
{
	struct receiver t;

	receiver_up(&t, 4, 4, false);
	assert_int_equal(rx(&t, 4), SR_KEPT);
	assert_int_equal(rx(&t, 5), SR_DROPPED | SR_RESPOND);
	answers(&t, AETH_NAK_PSN_SEQ, 0);
	assert_int_equal(rx(&t, 6), SR_DROPPED);
	assert_int_equal(rx(&t, 3), SR_KEPT);
	rx(&t, 0); // progress: the gap before 3 is another one
	answers(&t, ACK, 0);
	assert_int_equal(rx(&t, 5), SR_KEPT);
	assert_int_equal(rx(&t, 6), SR_DROPPED | SR_RESPOND);
	answers(&t, AETH_NAK_PSN_SEQ, 1);
}

// The gap before 1 is MAX_AGE old when 2 comes, and a picosecond more when 3 does. The gap before 5
// is counted from when 0 came.
static void a_gap_is_tolerated_for_a_time(void **state)
{
	struct receiver t;

	receiver_up(&t, 16, 16, false);
	t.now = SIM_US;
	assert_int_equal(rx(&t, 1), SR_KEPT);
	t.now += MAX_AGE;
	assert_int_equal(rx(&t, 2), SR_KEPT);
	t.now++;
	assert_int_equal(rx(&t, 3), SR_KEPT | SR_RESPOND);
	answers(&t, AETH_NAK_PSN_SEQ, 0);
	assert_int_equal(rx(&t, 5), SR_KEPT);
	rx(&t, 0);
	answers(&t, ACK, 3);
	t.now += MAX_AGE;
	assert_int_equal(rx(&t, 6), SR_KEPT);
	t.now++;
	assert_int_equal(rx(&t, 7), SR_KEPT | SR_RESPOND);
	answers(&t, AETH_NAK_PSN_SEQ, 4);
}

static void a_nak_not_sent_yet_is_withdrawn_when_the_gap_closes(void **state)
{
	struct receiver t;

	receiver_up(&t, 16, 0, true);
	assert_int_equal(rx(&t, 1), SR_KEPT | SR_RESPOND);
	rx(&t, 0);
	answers(&t, ACK, 1);
}

static void selective_repeat_reports_every_early_packet(void **state)
{
	struct receiver t;

	receiver_up(&t, 16, 2, true);
	assert_int_equal(rx(&t, 2), SR_KEPT); // tolerated
	assert_int_equal(rx(&t, 3), SR_KEPT | SR_RESPOND);
	answers(&t, AETH_NAK_PSN_SEQ, 0);
	assert_int_equal(rx(&t, 4), SR_KEPT | SR_RESPOND);
	answers(&t, AETH_NAK_PSN_SEQ, 0);
	assert_int_equal(rx(&t, 4), SR_DUPLICATE | SR_RESPOND);
	answers(&t, AETH_NAK_PSN_SEQ, 0);
}

// 0 and 3 are missing. When 0 has come, the gap before 4..6 is still more than is tolerated.
static void the_next_gap_is_reported_when_one_closes(void **state)
{
	struct receiver t;

	receiver_up(&t, 16, 2, true);
	for (uint32_t psn = 1; psn <= 6; psn++)
		if (psn != 3)
			rx(&t, psn);
	answers(&t, AETH_NAK_PSN_SEQ, 0);
	rx(&t, 0);
	answers(&t, AETH_NAK_PSN_SEQ, 3);
}

// 1, 2, 4 and 70 are there: seen from 70 the bits 0 and 66, 68, 69, of which 64 are told.
static void sack_tells_the_newest_first_and_then_what_came_last(void **state)
{
	struct receiver t;
	struct roce_sack sack;

	receiver_up(&t, 100, 0, true);
	assert_false(sr_sack(&t.s, &t.r, &sack));
	rx(&t, 2);
	rx(&t, 4);
	rx(&t, 70);
	rx(&t, 1);
	assert_true(sr_sack(&t.s, &t.r, &sack));
	assert_int_equal(sack.top, 70);
	assert_int_equal(sack.bitmap, 1);
	rx(&t, 3);
	assert_true(sr_sack(&t.s, &t.r, &sack));
	assert_int_equal(sack.top, 3);
	assert_int_equal(sack.bitmap, 7); // 3, 2, 1
}

static void what_is_too_far_ahead_is_dropped(void **state)
{
	struct receiver t;

	receiver_up(&t, 100, 0, true);
	assert_int_equal(rx(&t, 100), SR_KEPT | SR_RESPOND);
	assert_int_equal(rx(&t, 101) & SR_VERDICT, SR_DROPPED);
	assert_int_equal(t.s.n_kept, 1);
}

// A READ takes the numbers of its responses, 0..9 here: 5, which a confused peer sent too, is
// passed over. Its slot is also that of 69.
static void a_packet_passed_over_is_not_taken_for_another(void **state)
{
	struct receiver t;

	receiver_up(&t, 63, 63, false);
	assert_int_equal(rx(&t, 5), SR_KEPT);
	t.r.epsn = 10;
	for (uint32_t psn = 10; psn < 69; psn++)
		rx(&t, psn);
	assert_int_equal(t.r.epsn, 69);
	assert_int_equal(t.r.messages, 59);
	assert_int_equal(rx(&t, 133), SR_DROPPED | SR_RESPOND);
	assert_int_equal(rx(&t, 70), SR_KEPT);
	rx(&t, 69);
	assert_int_equal(t.r.epsn, 71);
}

static void slots_hold_the_window_and_the_expected_packet(void **state)
{
	assert_int_equal(sr_slots(1), 64);
	assert_int_equal(sr_slots(63), 64);
	assert_int_equal(sr_slots(64), 128);
	assert_int_equal(sr_slots(SR_WINDOW_MAX), 2 * SR_WINDOW_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(early_packets_are_taken_when_the_missing_one_comes),
		cmocka_unit_test(a_gap_beyond_the_tolerance_is_reported_once),
		cmocka_unit_test(a_gap_is_tolerated_for_a_time),
		cmocka_unit_test(a_nak_not_sent_yet_is_withdrawn_when_the_gap_closes),
		cmocka_unit_test(selective_repeat_reports_every_early_packet),
		cmocka_unit_test(the_next_gap_is_reported_when_one_closes),
		cmocka_unit_test(sack_tells_the_newest_first_and_then_what_came_last),
		cmocka_unit_test(what_is_too_far_ahead_is_dropped),
		cmocka_unit_test(a_packet_passed_over_is_not_taken_for_another),
		cmocka_unit_test(slots_hold_the_window_and_the_expected_packet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
