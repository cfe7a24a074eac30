/* SPDX-License-Identifier: BSD-3-Clause */
// The requester of the RC transport against a scripted responder.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "models/rc.h"

#define ACK       (0x1fu << 24) // AETH: ACK, unlimited credits
#define NAK_SEQ   (0x60u << 24)
#define NAK_INV   (0x61u << 24)
#define RNR(t)    ((0x20u | (t)) << 24)
#define TIMEOUT   (1000 * SIM_NS)
#define FIRST_PSN 100

// A requester with one work request of so many equal messages.
struct config {
	struct rc_config rc;
	enum wr_op op;
	uint32_t message_bytes;
	uint64_t messages; // 0 = endless
};

static struct config config(void)
{
	return (struct config){
		.rc = {.payload = 1024,
			.window = 1000,
			.ack_every = 1,
			.timeout = TIMEOUT,
			.retry_cnt = 2,
			.rnr_retry = 1,
			.psn = FIRST_PSN},
		.op = WR_WRITE,
		.message_bytes = 1024,
		.messages = 8,
	};
}

static struct rc_requester started(struct config cfg)
{
	static struct rc_wqe sq[1];
	struct rc_requester q;
	struct rc_wr wr = {
		.op = (uint8_t)cfg.op,
		.length = cfg.message_bytes,
		.repeat = cfg.messages ? cfg.messages : RC_ENDLESS,
		.signaled = true,
	};

	rc_requester_init(&q, &cfg.rc, sq, 1);
	assert_int_equal(rc_post_send(&q, &wr), 0);
	return q;
}

static struct rc_request send(struct rc_requester *q, simtime_t now)
{
	struct rc_request r;

	assert_true(rc_can_send(q));
	rc_tx_next(q, now, &r);
	return r;
}

static void send_n(struct rc_requester *q, simtime_t now, unsigned n)
{
	while (n-- > 0)
		send(q, now);
}

static void assert_packet(struct rc_request r, uint8_t opcode, uint16_t bytes, uint64_t pos)
{
	assert_int_equal(r.opcode, opcode);
	assert_int_equal(r.payload, bytes);
	assert_int_equal(r.pos, pos);
}

// ---- requester: cutting -----------------------------------------------------------------------

static void a_write_is_cut_into_first_middle_last(void **state)
{
	struct config cfg = config();

	cfg.message_bytes = 2500; // 1024 + 1024 + 452
	cfg.rc.ack_every = 64;
	struct rc_requester q = started(cfg);
	struct rc_request r = send(&q, 0);
	assert_packet(r, 0x06, 1024, 0);
	assert_int_equal(r.place, RC_FIRST);
	assert_int_equal(r.dma_len, 2500);
	assert_false(r.ack_req);
	r = send(&q, 0);
	assert_packet(r, 0x07, 1024, 1024);
	assert_int_equal(r.place, RC_MIDDLE);
	assert_false(r.ack_req);
	r = send(&q, 0);
	assert_packet(r, 0x08, 452, 2048);
	assert_true(r.ack_req);
	r = send(&q, 0); // the second message begins where the first ended
	assert_packet(r, 0x06, 1024, 2500);
	assert_int_equal(r.psn, FIRST_PSN + 3);
}

static void a_send_of_two_full_packets_has_no_middle(void **state)
{
	struct config cfg = config();

	cfg.op = WR_SEND;
	cfg.message_bytes = 2048;
	struct rc_requester q = started(cfg);
	assert_packet(send(&q, 0), 0x00, 1024, 0);
	assert_packet(send(&q, 0), 0x02, 1024, 1024);
	assert_packet(send(&q, 0), 0x00, 1024, 2048);
}

static void a_message_of_one_packet_is_an_only(void **state)
{
	struct config cfg = config();

	cfg.message_bytes = 1;
	struct rc_requester q = started(cfg);
	assert_packet(send(&q, 0), 0x0a, 1, 0);
	cfg.op = WR_SEND;
	cfg.message_bytes = 1024;
	q = started(cfg);
	assert_packet(send(&q, 0), 0x04, 1024, 0);
}

static void a_flow_ends_after_its_messages(void **state)
{
	struct rc_requester q = started(config());

	send_n(&q, 0, 8);
	assert_false(rc_can_send(&q));
	assert_false(rc_done(&q));
	assert_int_equal(rc_rx_ack(&q, 1, FIRST_PSN + 7, ACK), RC_ACK_PROGRESS | RC_ACK_COMPLETED);
	assert_true(rc_done(&q));
	assert_int_equal(q.deadline, SIMTIME_NEVER);
}

static void an_endless_flow_wraps_its_psn(void **state)
{
	struct config cfg = config();

	cfg.messages = 0;
	cfg.rc.psn = 0xfffffe;
	struct rc_requester q = started(cfg);
	assert_int_equal(send(&q, 0).psn, 0xfffffe);
	assert_int_equal(send(&q, 0).psn, 0xffffff);
	assert_int_equal(send(&q, 0).psn, 0x000000);
	assert_int_equal(send(&q, 0).psn, 0x000001);
	// One ACK beyond the wrap takes all up to it, one from before it nothing more.
	assert_int_equal(rc_rx_ack(&q, 0, 0x000000, ACK), RC_ACK_PROGRESS);
	assert_int_equal(q.una, 3);
	assert_int_equal(rc_rx_ack(&q, 0, 0xffffff, ACK), RC_ACK_STALE);
	assert_int_equal(q.una, 3);
	// Far beyond: 2^24 + 5 packets later the PSN is that of packet 5.
	for (uint64_t i = 4; i < (1u << 24) + 5; i++) {
		uint32_t psn = send(&q, 0).psn;
		rc_rx_ack(&q, 0, psn, ACK);
	}
	assert_int_equal(send(&q, 0).psn, 3);
	assert_int_equal(q.una, (1u << 24) + 5);
}

static void acknowledgements_are_asked_for_every_nth_packet(void **state)
{
	struct config cfg = config();

	cfg.message_bytes = 8 * 1024;
	cfg.rc.ack_every = 3;
	struct rc_requester q = started(cfg);
	// Packets 2 and 5 by count, 7 as the last of the message; the count starts again after it.
	static const bool asked[] = {0, 0, 1, 0, 0, 1, 0, 1, 0, 0, 1};
	for (unsigned i = 0; i < sizeof(asked); i++)
		assert_int_equal(send(&q, 0).ack_req, asked[i]);
}

static void the_count_to_the_next_request_starts_again_with_a_repetition(void **state)
{
	struct config cfg = config();

	cfg.message_bytes = 100 * 1024;
	cfg.rc.ack_every = 3;
	struct rc_requester q = started(cfg);
	send_n(&q, 0, 2);
	rc_timeout(&q, TIMEOUT);
	assert_false(send(&q, TIMEOUT).ack_req);
	assert_false(send(&q, TIMEOUT).ack_req);
	assert_true(send(&q, TIMEOUT).ack_req);
}

static void a_full_window_asks_for_its_acknowledgement(void **state)
{
	struct config cfg = config();

	cfg.message_bytes = 100 * 1024;
	cfg.rc.ack_every = 64;
	cfg.rc.window = 4;
	struct rc_requester q = started(cfg);
	for (unsigned i = 0; i < 3; i++)
		assert_false(send(&q, 0).ack_req);
	assert_true(send(&q, 0).ack_req);
	assert_false(rc_can_send(&q));
	rc_rx_ack(&q, 0, FIRST_PSN + 1, ACK); // two of four: two more may go
	send(&q, 0);
	assert_true(send(&q, 0).ack_req);
	assert_false(rc_can_send(&q));
}

static void a_stopped_flow_asks_once_for_what_is_open(void **state)
{
	struct config cfg = config();

	cfg.message_bytes = 100 * 1024;
	cfg.rc.ack_every = 64;
	struct rc_requester q = started(cfg);
	send_n(&q, 0, 5);
	rc_stop(&q);
	assert_true(send(&q, 0).ack_req);
	assert_false(rc_can_send(&q));
	rc_rx_ack(&q, 0, FIRST_PSN + 5, ACK);
	assert_false(rc_can_send(&q));
	rc_start(&q); // goes on where it stopped
	assert_int_equal(send(&q, 0).psn, FIRST_PSN + 6);
}

static void a_flow_stopped_with_all_asked_sends_nothing_more(void **state)
{
	struct rc_requester q = started(config());

	send_n(&q, 0, 5);
	rc_stop(&q);
	assert_false(rc_can_send(&q));
	rc_rx_nak(&q, 0, FIRST_PSN + 2, NAK_SEQ); // but repeats what was lost
	assert_int_equal(send(&q, 0).psn, FIRST_PSN + 2);
	send_n(&q, 0, 2);
	assert_false(rc_can_send(&q));
}

// ---- requester: acknowledgements --------------------------------------------------------------

static void acks_of_the_past_and_of_the_never_sent_are_ignored(void **state)
{
	struct rc_requester q = started(config());

	send_n(&q, 0, 4);
	rc_rx_ack(&q, 5, FIRST_PSN + 1, ACK);
	simtime_t deadline = q.deadline;
	assert_int_equal(rc_rx_ack(&q, 9, FIRST_PSN + 1, ACK), RC_ACK_STALE);
	assert_int_equal(rc_rx_ack(&q, 9, FIRST_PSN - 1, ACK), RC_ACK_STALE);
	assert_int_equal(rc_rx_ack(&q, 9, FIRST_PSN + 4, ACK), RC_ACK_STALE);
	assert_int_equal(q.una, 2);
	assert_int_equal(q.deadline, deadline);
}

static void a_nak_acknowledges_what_is_before_and_repeats_from_its_psn(void **state)
{
	struct config cfg = config();

	cfg.message_bytes = 2500; // packets 3..5 are message 1
	struct rc_requester q = started(cfg);
	send_n(&q, 0, 7);
	assert_int_equal(
		rc_rx_ack(&q, 1, FIRST_PSN + 4, NAK_SEQ), RC_ACK_PROGRESS | RC_ACK_REWOUND);
	assert_int_equal(q.una, 4);
	struct rc_request r = send(&q, 1);
	assert_packet(r, 0x07, 1024, 2500 + 1024);
	assert_int_equal(r.psn, FIRST_PSN + 4);
	assert_true(r.again);
	assert_packet(send(&q, 1), 0x08, 452, 2500 + 2048);
	assert_true(send(&q, 1).again);
	assert_false(send(&q, 1).again); // packet 7 is new
}

static void a_second_nak_for_the_same_gap_costs_no_retry(void **state)
{
	struct rc_requester q = started(config());

	send_n(&q, 0, 5);
	rc_rx_ack(&q, 1, FIRST_PSN, NAK_SEQ);
	assert_int_equal(q.retry_left, 1);
	assert_int_equal(rc_rx_ack(&q, 1, FIRST_PSN, NAK_SEQ), RC_ACK_STALE);
	assert_int_equal(q.retry_left, 1);
	send(&q, 2); // now it tells of another loss
	assert_int_equal(rc_rx_ack(&q, 3, FIRST_PSN, NAK_SEQ), RC_ACK_REWOUND);
	assert_int_equal(q.retry_left, 0);
}

static void a_nak_for_a_psn_not_sent_yet_only_acknowledges(void **state)
{
	struct rc_requester q = started(config());

	send_n(&q, 0, 3);
	assert_int_equal(rc_rx_ack(&q, 1, FIRST_PSN + 3, NAK_SEQ), RC_ACK_PROGRESS);
	assert_int_equal(q.una, 3);
	assert_int_equal(q.retry_left, 2);
	assert_int_equal(rc_rx_ack(&q, 1, FIRST_PSN + 4, NAK_SEQ), RC_ACK_STALE);
}

static void a_late_ack_skips_what_would_be_repeated(void **state)
{
	struct config cfg = config();

	cfg.message_bytes = 2500;
	struct rc_requester q = started(cfg);
	send_n(&q, 0, 6);
	assert_int_equal(rc_timeout(&q, TIMEOUT), RC_ACK_REWOUND);
	send(&q, TIMEOUT); // packet 0 again
	rc_rx_ack(&q, TIMEOUT, FIRST_PSN + 3, ACK);
	struct rc_request r = send(&q, TIMEOUT);
	assert_int_equal(r.psn, FIRST_PSN + 4);
	assert_packet(r, 0x07, 1024, 2500 + 1024);
}

static void an_invalid_request_ends_the_queue_pair(void **state)
{
	struct rc_requester q = started(config());

	send_n(&q, 0, 3);
	assert_int_equal(rc_rx_ack(&q, 1, FIRST_PSN + 1, NAK_INV), RC_ACK_PROGRESS | RC_ACK_ERROR);
	assert_int_equal(q.status, 9); // IBV_WC_REM_INV_REQ_ERR
	assert_false(rc_can_send(&q));
	assert_int_equal(rc_rx_ack(&q, 1, FIRST_PSN + 2, ACK), RC_ACK_STALE);
}

// ---- requester: timers ------------------------------------------------------------------------

static void ack_timeouts_are_the_standards(void **state)
{
	assert_int_equal(rc_ack_timeout(0), 0);
	assert_int_equal(rc_ack_timeout(1), 8192 * SIM_NS);               // 8.192 us
	assert_int_equal(rc_ack_timeout(14), INT64_C(67108864) * SIM_NS); // 67.1 ms
	assert_int_equal(rc_ack_timeout(31), INT64_C(8796093022208) * SIM_NS);
}

static void the_timer_runs_from_the_oldest_and_from_each_progress(void **state)
{
	struct rc_requester q = started(config());

	assert_int_equal(q.deadline, SIMTIME_NEVER);
	send(&q, 10);
	send(&q, 20);
	assert_int_equal(q.deadline, 10 + TIMEOUT);
	rc_rx_ack(&q, 500, FIRST_PSN, ACK);
	assert_int_equal(q.deadline, 500 + TIMEOUT);
	assert_int_equal(rc_timeout(&q, 499 + TIMEOUT), RC_ACK_STALE);
	rc_rx_ack(&q, 600, FIRST_PSN + 1, ACK);
	assert_int_equal(q.deadline, SIMTIME_NEVER);
}

static void retries_run_out_after_retry_cnt_plus_one_timeouts(void **state)
{
	struct rc_requester q = started(config());

	send_n(&q, 0, 3);
	// retry_cnt 2: two repetitions at T and 2 T, failure at 3 T.
	for (unsigned i = 1; i <= 2; i++) {
		assert_int_equal(q.deadline, i * TIMEOUT);
		assert_int_equal(rc_timeout(&q, q.deadline), RC_ACK_REWOUND);
		for (unsigned k = 0; k < 3; k++)
			assert_int_equal(send(&q, i * TIMEOUT).psn, FIRST_PSN + k);
	}
	assert_int_equal(q.deadline, 3 * TIMEOUT);
	assert_int_equal(rc_timeout(&q, q.deadline), RC_ACK_ERROR);
	assert_int_equal(q.status, 12); // IBV_WC_RETRY_EXC_ERR
	assert_false(rc_can_send(&q));
	assert_int_equal(q.deadline, SIMTIME_NEVER);
}

static void progress_gives_the_retries_back(void **state)
{
	struct rc_requester q = started(config());

	send_n(&q, 0, 3);
	rc_timeout(&q, q.deadline);
	rc_timeout(&q, q.deadline);
	assert_int_equal(q.retry_left, 0);
	rc_rx_ack(&q, q.deadline - 1, FIRST_PSN, ACK);
	assert_int_equal(q.retry_left, 2);
}

static void without_a_timeout_a_loss_waits_for_ever(void **state)
{
	struct config cfg = config();

	cfg.rc.timeout = 0;
	struct rc_requester q = started(cfg);
	send(&q, 0);
	send(&q, 0);
	rc_rx_ack(&q, 5, FIRST_PSN, ACK);
	rc_rx_ack(&q, 5, FIRST_PSN + 1, NAK_SEQ);
	assert_int_equal(q.deadline, SIMTIME_NEVER);
}

static void an_rnr_nak_waits_for_its_timer(void **state)
{
	struct rc_requester q = started(config());

	send_n(&q, 0, 3);
	// Timer value 14 is 1.28 ms.
	assert_int_equal(rc_rx_ack(&q, 50, FIRST_PSN + 1, RNR(14)),
		RC_ACK_PROGRESS | RC_ACK_REWOUND | RC_ACK_RNR);
	assert_int_equal(q.rnr_until, 50 + 1280 * SIM_US);
	assert_int_equal(q.deadline, SIMTIME_NEVER);
	assert_false(rc_can_send(&q));
	rc_rnr_expired(&q, q.rnr_until - 1);
	assert_false(rc_can_send(&q));
	rc_rnr_expired(&q, q.rnr_until);
	assert_int_equal(send(&q, 50 + 1280 * SIM_US).psn, FIRST_PSN + 1);
}

static void rnr_retries_run_out(void **state)
{
	struct rc_requester q = started(config()); // rnr_retry 1

	send(&q, 0);
	rc_rx_ack(&q, 0, FIRST_PSN, RNR(1));
	rc_rnr_expired(&q, q.rnr_until);
	send(&q, 0);
	assert_int_equal(rc_rx_ack(&q, 0, FIRST_PSN, RNR(1)), RC_ACK_ERROR);
	assert_int_equal(q.status, 13); // IBV_WC_RNR_RETRY_EXC_ERR
}

static void seven_rnr_retries_are_endless(void **state)
{
	struct config cfg = config();

	cfg.rc.rnr_retry = 7;
	struct rc_requester q = started(cfg);
	for (unsigned i = 0; i < 100; i++) {
		send(&q, 0);
		assert_int_equal(rc_rx_ack(&q, 0, FIRST_PSN, RNR(31)), RC_ACK_REWOUND | RC_ACK_RNR);
		rc_rnr_expired(&q, q.rnr_until);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_write_is_cut_into_first_middle_last),
		cmocka_unit_test(a_send_of_two_full_packets_has_no_middle),
		cmocka_unit_test(a_message_of_one_packet_is_an_only),
		cmocka_unit_test(a_flow_ends_after_its_messages),
		cmocka_unit_test(an_endless_flow_wraps_its_psn),
		cmocka_unit_test(acknowledgements_are_asked_for_every_nth_packet),
		cmocka_unit_test(the_count_to_the_next_request_starts_again_with_a_repetition),
		cmocka_unit_test(a_full_window_asks_for_its_acknowledgement),
		cmocka_unit_test(a_stopped_flow_asks_once_for_what_is_open),
		cmocka_unit_test(a_flow_stopped_with_all_asked_sends_nothing_more),
		cmocka_unit_test(acks_of_the_past_and_of_the_never_sent_are_ignored),
		cmocka_unit_test(a_nak_acknowledges_what_is_before_and_repeats_from_its_psn),
		cmocka_unit_test(a_second_nak_for_the_same_gap_costs_no_retry),
		cmocka_unit_test(a_nak_for_a_psn_not_sent_yet_only_acknowledges),
		cmocka_unit_test(a_late_ack_skips_what_would_be_repeated),
		cmocka_unit_test(an_invalid_request_ends_the_queue_pair),
		cmocka_unit_test(ack_timeouts_are_the_standards),
		cmocka_unit_test(the_timer_runs_from_the_oldest_and_from_each_progress),
		cmocka_unit_test(retries_run_out_after_retry_cnt_plus_one_timeouts),
		cmocka_unit_test(progress_gives_the_retries_back),
		cmocka_unit_test(without_a_timeout_a_loss_waits_for_ever),
		cmocka_unit_test(an_rnr_nak_waits_for_its_timer),
		cmocka_unit_test(rnr_retries_run_out),
		cmocka_unit_test(seven_rnr_retries_are_endless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
