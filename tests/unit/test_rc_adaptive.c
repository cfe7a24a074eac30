/* SPDX-License-Identifier: BSD-3-Clause */
// The adaptive retransmission timer of the RC requester.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "models/rc.h"

#define ACK     (0x1fu << 24)
#define TIMEOUT (16 * SIM_MS)

static struct rc_wqe sq[2];

static struct rc_requester requester(simtime_t timeout)
{
	struct rc_requester q;
	struct rc_config cfg = {
		.payload = 1024,
		.window = 1000,
		.ack_every = 1,
		.timeout = timeout,
		.retry_cnt = 2,
		.adaptive = true,
	};
	struct rc_wr w = {.op = WR_WRITE, .length = 1024, .repeat = 1000};

	rc_requester_init(&q, &cfg, sq, 2);
	assert_int_equal(rc_post_send(&q, &w), 0);
	return q;
}

static void send(struct rc_requester *q, simtime_t now)
{
	struct rc_request r;

	rc_tx_next(q, now, &r);
}

static void silence_doubles_the_timeout_and_then_costs_retries(void **state)
{
	struct rc_requester q = requester(TIMEOUT);
	// Without a sample from T / 16 on; at T two retries, then the end.
	static const int ms[] = {1, 2, 4, 8, 16, 16, 16};
	simtime_t now = 0;

	send(&q, now);
	for (unsigned i = 0; i < 7; i++) {
		now += ms[i] * SIM_MS;
		assert_int_equal(q.deadline, now);
		assert_int_equal(rc_timeout(&q, now), i < 6 ? RC_ACK_REWOUND : RC_ACK_ERROR);
		assert_int_equal(q.retry_left, i < 4 ? 2 : i < 5 ? 1 : 0);
		if (i < 6)
			send(&q, now);
	}
	assert_int_equal(q.adaptive.retrans, 4);
	assert_int_equal(q.adaptive.reached, 1);
	assert_int_equal(q.status, WC_RETRY_EXC_ERR);
}

static void round_trips_set_the_timeout(void **state)
{
	struct rc_requester q = requester(TIMEOUT);

	send(&q, 0);
	send(&q, 0);
	rc_rx_ack(&q, 100 * SIM_US, 0, ACK);
	// srtt 100 us, rttvar 50 us: 300 us from the last progress.
	assert_int_equal(q.deadline, 400 * SIM_US);
	// The next packet that is timed is the next new one: number 2, not 1.
	send(&q, 150 * SIM_US);
	rc_rx_ack(&q, 200 * SIM_US, 1, ACK);
	assert_int_equal(q.timeout, 300 * SIM_US);
	rc_rx_ack(&q, 250 * SIM_US, 2, ACK);
	// Another 100 us: rttvar 50 - 50 / 4 = 37.5 us, 250 us in all.
	assert_int_equal(q.timeout, 250 * SIM_US);
}

static void a_repetition_is_not_timed(void **state)
{
	struct rc_requester q = requester(TIMEOUT);

	send(&q, 0);
	rc_timeout(&q, SIM_MS);
	send(&q, SIM_MS);
	rc_rx_ack(&q, SIM_MS + 10 * SIM_US, 0, ACK); // of which of both?
	assert_int_equal(q.adaptive.srtt, 0);
	send(&q, 2 * SIM_MS);
	rc_rx_ack(&q, 2 * SIM_MS + 100 * SIM_US, 1, ACK);
	assert_int_equal(q.adaptive.srtt, 100 * SIM_US);
}

static void progress_brings_the_timeout_back(void **state)
{
	struct rc_requester q = requester(TIMEOUT);

	send(&q, 0);
	rc_rx_ack(&q, 100 * SIM_US, 0, ACK);
	send(&q, SIM_MS);
	send(&q, SIM_MS);
	rc_timeout(&q, q.deadline);
	rc_timeout(&q, q.deadline);
	assert_int_equal(q.timeout, 1200 * SIM_US);
	send(&q, 5 * SIM_MS);
	send(&q, 5 * SIM_MS);
	rc_rx_ack(&q, 5 * SIM_MS, 1, ACK);
	assert_int_equal(q.deadline, 5 * SIM_MS + 300 * SIM_US);
}

static void the_timeout_stays_within_its_bounds(void **state)
{
	struct rc_requester q = requester(20 * SIM_US);

	assert_int_equal(q.timeout, 16 * SIM_US); // 20 / 16 is below the least
	send(&q, 0);
	rc_rx_ack(&q, 15 * SIM_US, 0, ACK); // 15 + 4 x 7.5 is above the configured
	assert_int_equal(q.timeout, 20 * SIM_US);
	q = requester(0); // none is none
	send(&q, 0);
	assert_int_equal(q.deadline, SIMTIME_NEVER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(silence_doubles_the_timeout_and_then_costs_retries),
		cmocka_unit_test(round_trips_set_the_timeout),
		cmocka_unit_test(a_repetition_is_not_timed),
		cmocka_unit_test(progress_brings_the_timeout_back),
		cmocka_unit_test(the_timeout_stays_within_its_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
