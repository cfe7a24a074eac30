/* SPDX-License-Identifier: BSD-3-Clause */
// Selective repeat at the sender against scripts worked out by hand. PSNs start at 0, so that a
// packet's number is its PSN.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "models/sr.h"

#define RTO_LOW  (10 * SIM_US)
#define RTO_HIGH (40 * SIM_US)
#define PATIENCE (100 * SIM_US)
#define NONE     (-1)

struct sender {
	struct rc_requester q;
	struct sr_sender s;
	struct rc_wqe sq[1];
	uint64_t sacked[4];
	simtime_t now;
};

// One message of 1000 packets, which asks for an ACK only where sending stops.
static void sender_up(struct sender *t, uint32_t window)
{
	struct rc_config cfg = {.payload = 100,
		.window = window,
		.ack_every = 100000,
		.timeout = 1,
		.retry_cnt = 2,
		.rnr_retry = RC_RNR_INFINITE};
	struct sr_config sr = {.rto_low = RTO_LOW, .rto_high = RTO_HIGH, .patience = PATIENCE};
	struct rc_wr wr = {.op = WR_WRITE, .length = 100000, .repeat = 1};

	memset(t, 0, sizeof(*t));
	rc_requester_init(&t->q, &cfg, t->sq, 1);
	sr_sender_init(&t->s, &t->q, &sr, t->sacked);
	assert_int_equal(rc_post_send(&t->q, &wr), 0);
}

static int tx(struct sender *t)
{
	struct rc_request r;

	if (!rc_can_send(&t->q))
		return NONE;
	rc_tx_next(&t->q, t->now, &r);
	assert_int_equal(r.pos, (uint64_t)r.psn * 100);
	if (r.again)
		sr_sent(&t->s, &t->q);
	return (int)r.psn;
}

static void sends(struct sender *t, int first, int last)
{
	for (int i = first; i <= last; i++)
		assert_int_equal(tx(t), i);
}

static int ack(struct sender *t, uint32_t psn)
{
	return sr_rx_ack(
		&t->s, &t->q, t->now, psn, RC_AETH(AETH_ACK | AETH_CREDIT_INVALID, 0), NULL);
}

static int nak(struct sender *t, uint32_t psn, uint32_t top, uint64_t bitmap)
{
	struct roce_sack sack = {.top = top, .bitmap = bitmap};

	return sr_rx_ack(&t->s, &t->q, t->now, psn, RC_AETH(AETH_NAK_PSN_SEQ, 0), &sack);
}

// 0..7 in flight, 2 is lost, 3 tells of it: 2 goes again, then what the window of 8 has room for.
static void one_lost_packet_is_sent_again_alone(void **state)
{
	struct sender t;

	sender_up(&t, 8);
	sends(&t, 0, 7);
	assert_int_equal(tx(&t), NONE);
	assert_int_equal(nak(&t, 2, 3, 1), RC_ACK_PROGRESS | RC_ACK_REWOUND);
	sends(&t, 2, 2);
	sends(&t, 8, 9);
	assert_int_equal(tx(&t), NONE);
	assert_true(t.s.recovering);
	ack(&t, 7);
	assert_false(t.s.recovering);
	sends(&t, 10, 15);
}

// 1, 4 and 5 of 0..15 are lost. What 7 tells: 7, 6, 3 and 2 are there, bits 0, 1, 4, 5.
static void lost_packets_are_sent_again_in_order_and_once(void **state)
{
	struct sender t;

	sender_up(&t, 16);
	sends(&t, 0, 15);
	nak(&t, 1, 7, 0x33);
	sends(&t, 1, 1);
	assert_int_equal(nak(&t, 1, 8, 0x67), RC_ACK_STALE); // 8 tells the same
	sends(&t, 4, 5);
	nak(&t, 1, 15, 0x33ff); // so does 15
	sends(&t, 16, 16);      // window: 1..16
	assert_int_equal(tx(&t), NONE);
	assert_int_equal(t.s.recoveries, 1);
}

static void a_loss_told_of_later_joins_the_recovery(void **state)
{
	struct sender t;

	sender_up(&t, 16);
	sends(&t, 0, 15);
	nak(&t, 1, 2, 1);
	sends(&t, 1, 1);
	nak(&t, 1, 9, 0x7d); // 9, 7, 6, 5, 4, 3; and 8 not
	sends(&t, 8, 8);
	sends(&t, 16, 16);
	assert_int_equal(t.s.recoveries, 1);
}

// A second loss of the same packet is left to the timeout, whatever else is told.
static void a_packet_lost_twice_waits_for_the_timeout(void **state)
{
	struct sender t;

	sender_up(&t, 8);
	sends(&t, 0, 7);
	nak(&t, 0, 1, 1);
	sends(&t, 0, 0); // lost again
	for (uint32_t top = 2; top < 8; top++)
		nak(&t, 0, top, (UINT64_C(1) << top) - 1);
	assert_int_equal(tx(&t), NONE);
	t.now = t.q.deadline;
	assert_int_equal(sr_timeout(&t.s, &t.q, t.now), RC_ACK_REWOUND);
	sends(&t, 0, 0);
	assert_int_equal(tx(&t), NONE);
	ack(&t, 7);
	sends(&t, 8, 15);
}

static void nak_without_sack_repeats_the_packet_it_names(void **state)
{
	struct sender t;

	sender_up(&t, 8);
	sends(&t, 0, 7);
	sr_rx_ack(&t.s, &t.q, 0, 5, RC_AETH(AETH_NAK_PSN_SEQ, 0), NULL);
	sends(&t, 5, 5);
	sends(&t, 8, 12);
}

// Slots of the ring are used again after 128 packets: what was known of 11 must not be taken for
// knowledge of 139.
static void knowledge_of_acknowledged_packets_is_forgotten(void **state)
{
	struct sender t;

	sender_up(&t, 64);
	assert_int_equal(t.s.mask, 127);
	sends(&t, 0, 63);
	nak(&t, 10, 20, 0x3ff); // 11..20 are there
	sends(&t, 10, 10);
	sends(&t, 64, 73);
	ack(&t, 73);
	sends(&t, 74, 137);
	ack(&t, 137);
	sends(&t, 138, 201);
	nak(&t, 139, 140, 1);
	sends(&t, 139, 139);
	sends(&t, 202, 202);
}

// ---- timeouts ----------------------------------------------------------------------------------

static void few_packets_in_flight_time_out_early(void **state)
{
	struct sender t;

	sender_up(&t, SR_FEW);
	sends(&t, 0, 2);
	assert_int_equal(t.q.deadline, RTO_LOW);
	t.now = RTO_LOW - 1;
	assert_int_equal(sr_timeout(&t.s, &t.q, t.now), RC_ACK_STALE);
	t.now = RTO_LOW;
	assert_int_equal(sr_timeout(&t.s, &t.q, t.now), RC_ACK_REWOUND);
	sends(&t, 0, 0);
	assert_int_equal(tx(&t), NONE);
}

static void many_packets_in_flight_time_out_late(void **state)
{
	struct sender t;

	sender_up(&t, SR_FEW + 1);
	sends(&t, 0, 3);
	t.now = t.q.deadline;
	assert_int_equal(sr_timeout(&t.s, &t.q, t.now), RC_ACK_STALE);
	assert_int_equal(t.q.deadline, RTO_HIGH);
	t.now = RTO_HIGH;
	assert_int_equal(sr_timeout(&t.s, &t.q, t.now), RC_ACK_REWOUND);
	assert_int_equal(t.q.deadline, 2 * RTO_HIGH);
	// An ACK leaves three in flight, from its own time on.
	sends(&t, 0, 0);
	t.now += SIM_US;
	ack(&t, 0);
	assert_int_equal(t.q.deadline, RTO_HIGH + SIM_US + RTO_LOW);
}

// 5, 6 and 7, the last, are lost. After the timeout 5 alone; its ACK proves the loss of the rest.
static void a_lost_tail_costs_one_timeout(void **state)
{
	struct sender t;

	sender_up(&t, 8);
	sends(&t, 0, 7);
	rc_stop(&t.q);
	ack(&t, 4);
	t.now = RTO_LOW;
	assert_int_equal(sr_timeout(&t.s, &t.q, t.now), RC_ACK_REWOUND);
	sends(&t, 5, 5);
	assert_int_equal(tx(&t), NONE);
	ack(&t, 5);
	sends(&t, 6, 7);
	assert_int_equal(tx(&t), NONE);
	ack(&t, 7);
	assert_int_equal(t.q.deadline, SIMTIME_NEVER);
}

static void lost_acknowledgements_cost_one_packet(void **state)
{
	struct sender t;

	sender_up(&t, 8);
	sends(&t, 0, 7);
	t.now = RTO_HIGH;
	sr_timeout(&t.s, &t.q, t.now);
	sends(&t, 0, 0);
	assert_int_equal(tx(&t), NONE);
	ack(&t, 7);
	sends(&t, 8, 15);
	assert_false(t.s.recovering);
}

// Timeouts at 40, 80, ... us. The first takes a retry, then one at the first timeout 100 us later,
// 160 us, and with none left of 2 the one at 280 us is the end.
static void timeouts_use_up_the_retries_as_the_ack_timeout_passes(void **state)
{
	struct sender t;

	sender_up(&t, 8);
	sends(&t, 0, 7);
	for (int i = 1; i < 7; i++) {
		t.now = i * RTO_HIGH;
		assert_int_equal(sr_timeout(&t.s, &t.q, t.now), RC_ACK_REWOUND);
		assert_int_equal(t.q.retry_left, i < 4 ? 1 : 0);
		sends(&t, 0, 0);
		assert_int_equal(tx(&t), NONE);
	}
	t.now = 7 * RTO_HIGH;
	assert_int_equal(sr_timeout(&t.s, &t.q, t.now), RC_ACK_ERROR);
	assert_int_equal(t.q.status, WC_RETRY_EXC_ERR);
	assert_int_equal(tx(&t), NONE);
}

static void progress_gives_the_retries_back(void **state)
{
	struct sender t;

	sender_up(&t, 8);
	sends(&t, 0, 7);
	t.now = RTO_HIGH;
	sr_timeout(&t.s, &t.q, t.now);
	sends(&t, 0, 0);
	ack(&t, 0);
	assert_int_equal(t.q.retry_left, 2);
	t.now = t.q.deadline;
	assert_int_equal(sr_timeout(&t.s, &t.q, t.now), RC_ACK_REWOUND);
	assert_int_equal(t.q.retry_left, 1); // a new silence, so at once
}

// The receiver had 3 and told so, but found no receive for it when its turn came: it goes again.
static void rnr_nak_repeats_even_what_was_told_to_be_there(void **state)
{
	struct sender t;

	sender_up(&t, 8);
	sends(&t, 0, 7);
	nak(&t, 2, 7, 0x1f);
	sends(&t, 2, 2);
	int result = sr_rx_ack(&t.s, &t.q, t.now, 3, RC_AETH(AETH_RNR_NAK | 1, 0), NULL);
	assert_true(result & RC_ACK_RNR);
	assert_int_equal(tx(&t), NONE);
	t.now = t.q.rnr_until;
	sr_rnr_expired(&t.s, &t.q, t.now);
	sends(&t, 3, 3);
	sends(&t, 8, 10); // window: 3..10
	ack(&t, 10);
	sends(&t, 11, 18);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_lost_packet_is_sent_again_alone),
		cmocka_unit_test(lost_packets_are_sent_again_in_order_and_once),
		cmocka_unit_test(a_loss_told_of_later_joins_the_recovery),
		cmocka_unit_test(a_packet_lost_twice_waits_for_the_timeout),
		cmocka_unit_test(nak_without_sack_repeats_the_packet_it_names),
		cmocka_unit_test(knowledge_of_acknowledged_packets_is_forgotten),
		cmocka_unit_test(few_packets_in_flight_time_out_early),
		cmocka_unit_test(many_packets_in_flight_time_out_late),
		cmocka_unit_test(a_lost_tail_costs_one_timeout),
		cmocka_unit_test(lost_acknowledgements_cost_one_packet),
		cmocka_unit_test(timeouts_use_up_the_retries_as_the_ack_timeout_passes),
		cmocka_unit_test(progress_gives_the_retries_back),
		cmocka_unit_test(rnr_nak_repeats_even_what_was_told_to_be_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
