/* SPDX-License-Identifier: BSD-3-Clause */
// Selective repeat against peers that say anything: whatever PSNs, syndromes and SACKs come, in any
// order and at any time, both ends keep their invariants and their rings. A failure prints its
// seed; SR_SEED=n repeats one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emu/core/rng.h"
#include "models/sr.h"

#define RUNS   400
#define STEPS  5000
#define WINDOW 200
#define WORDS  (256 / 64)

static uint64_t current_seed;
static struct rng g;

// Often near `at`, sometimes anywhere.
static uint32_t some_psn(uint32_t at)
{
	if (rng_below(&g, 8) == 0)
		return rng_below(&g, 1u << 24);
	return psn_add(at, (uint64_t)rng_below(&g, 2 * WINDOW) + PSN_MASK + 1 - WINDOW / 2);
}

static unsigned bits(const uint64_t *ring)
{
	unsigned n = 0;

	for (unsigned i = 0; i < WORDS; i++)
		n += (unsigned)__builtin_popcountll(ring[i]);
	return n;
}

// ---- sender ------------------------------------------------------------------------------------

struct sender {
	struct rc_requester q;
	struct sr_sender s;
	struct rc_wqe sq[4];
	uint64_t sacked[WORDS];
	simtime_t now;
};

static void sender_up(struct sender *t)
{
	struct rc_config cfg = {.payload = 100,
		.window = 1 + rng_below(&g, WINDOW),
		.ack_every = 1 + rng_below(&g, 20),
		.retry_cnt = 7,
		.rnr_retry = RC_RNR_INFINITE,
		.psn = rng_below(&g, 1u << 24)};
	struct sr_config sr = {.rto_low = 50, .rto_high = 100, .patience = 10000};

	memset(t, 0, sizeof(*t));
	rc_requester_init(&t->q, &cfg, t->sq, 4);
	sr_sender_init(&t->s, &t->q, &sr, t->sacked);
}

static void check_sender(const struct sender *t)
{
	const struct rc_requester *q = &t->q;

	assert_true(q->una <= q->nxt && q->nxt <= q->max && q->max - q->una <= q->window);
	assert_true(t->s.high <= q->max && t->s.again <= q->max && t->s.recover <= q->max);
	assert_true(bits(t->sacked) <= q->window);
	assert_true(q->hold == RC_NEVER || q->nxt < q->max || q->state != RC_READY);
	if (q->state == RC_READY && q->una < q->max && !rc_can_send(q))
		assert_int_not_equal(q->deadline, SIMTIME_NEVER);
}

static void hear(struct sender *t)
{
	static const uint8_t syndromes[] = {AETH_ACK | AETH_CREDIT_INVALID, AETH_NAK_PSN_SEQ,
		AETH_NAK_PSN_SEQ, AETH_NAK_PSN_SEQ, AETH_RNR_NAK | 1, AETH_ACK | 5};
	uint32_t una = psn_add(t->q.psn0, t->q.una);
	struct roce_sack sack = {.top = some_psn(una), .bitmap = rng_next(&g)};
	uint8_t syndrome = syndromes[rng_below(&g, 6)];
	bool told = rng_below(&g, 4) != 0;

	if (rng_below(&g, 200) == 0)
		syndrome = (uint8_t)rng_below(&g, 256);
	sr_rx_ack(&t->s, &t->q, t->now, some_psn(una), RC_AETH(syndrome, rng_below(&g, 1u << 24)),
		told ? &sack : NULL);
}

static void sender_step(struct sender *t)
{
	struct rc_wr wr = {.op = WR_WRITE, .length = rng_below(&g, 5000), .repeat = 1};
	struct rc_request r;

	t->now += rng_below(&g, 10);
	if (rng_below(&g, 10) == 0)
		rc_post_send(&t->q, &wr);
	if (rng_below(&g, 3) == 0)
		hear(t);
	if (rc_can_send(&t->q) && rng_below(&g, 2)) {
		rc_tx_next(&t->q, t->now, &r);
		if (r.again)
			sr_sent(&t->s, &t->q);
	}
	if (t->now >= t->q.deadline)
		sr_timeout(&t->s, &t->q, t->now);
	if (t->now >= t->q.rnr_until)
		sr_rnr_expired(&t->s, &t->q, t->now);
}

static void a_run_of_the_sender(void)
{
	struct sender *t = malloc(sizeof(*t));

	sender_up(t);
	for (int i = 0; i < STEPS && t->q.state != RC_ERROR; i++) {
		sender_step(t);
		check_sender(t);
	}
	free(t);
}

// ---- receiver ----------------------------------------------------------------------------------

static void a_run_of_the_receiver(void)
{
	struct rc_responder_config cfg = {.ack_every = 1, .psn = rng_below(&g, 1u << 24)};
	struct sr_receiver_config rx = {.window = 1 + rng_below(&g, WINDOW),
		.tolerance = rng_below(&g, 20),
		.max_age = rng_below(&g, 2) ? SIMTIME_NEVER : 100,
		.selective = rng_below(&g, 2)};
	uint64_t have[WORDS] = {0};
	struct rc_packet *kept = calloc(256, sizeof(*kept));
	struct sr_receiver s;
	struct rc_responder r;
	struct rc_accept out;
	struct roce_sack sack;
	struct rc_ack ack;
	uint64_t taken = 0;

	rc_responder_init(&r, &cfg);
	sr_receiver_init(&s, &r, &rx, have, kept);
	for (int i = 0; i < STEPS; i++) {
		struct rc_packet p = {.opcode = rng_below(&g, 2) ? ROCE_SEND_ONLY : ROCE_WRITE_ONLY,
			.psn = rng_below(&g, 2) ? r.epsn : some_psn(r.epsn),
			.payload = 1};
		int result = rc_rx_request(&r, i, &p, &out);
		if ((result & RC_RX_RESULT) == RC_RX_GAP)
			sr_keep(&s, &r, i, &p);
		taken += (result & RC_RX_RESULT) == RC_RX_IN_ORDER;
		while ((result & RC_RX_RESULT) == RC_RX_IN_ORDER && sr_next(&s, &r, &p)) {
			assert_int_equal(p.psn, r.epsn);
			result = rc_rx_request(&r, i, &p, &out);
			taken++;
		}
		sr_caught_up(&s, &r, i);
		assert_int_equal(s.n_kept, bits(have));
		assert_int_equal(r.messages, taken);
		if (sr_sack(&s, &r, &sack)) {
			assert_true(rx.selective && sack.bitmap & 1);
			assert_in_range(psn_diff(sack.top, r.epsn), 1, rx.window);
		}
		if (rc_resp_pending(&r) == RC_RESP_ACK && rng_below(&g, 2))
			rc_tx_ack(&r, &ack);
	}
	assert_true(taken > STEPS / 4);
	free(kept);
}

static void both_ends_keep_their_invariants_whatever_they_hear(void **state)
{
	const char *env = getenv("SR_SEED");
	uint64_t first = env ? strtoull(env, NULL, 0) : 1, last = env ? first : RUNS;

	for (current_seed = first; current_seed <= last; current_seed++) {
		g = rng_stream(current_seed, 7);
		a_run_of_the_sender();
		a_run_of_the_receiver();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ends_keep_their_invariants_whatever_they_hear),
	};

	int failures = cmocka_run_group_tests(tests, NULL, NULL);

	if (failures)
		printf("repeat with SR_SEED=%llu\n", (unsigned long long)current_seed);
	return failures;
}
