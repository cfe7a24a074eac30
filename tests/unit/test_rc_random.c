/* SPDX-License-Identifier: BSD-3-Clause */
// Model check of the RC transport: a requester and a responder joined by a channel that loses,
// duplicates and reorders, in both directions. Whatever it does, the receiver gets a prefix of the
// stream exactly once and in order, packet by packet as a formula with divisions predicts; and in
// the end either everything is through and acknowledged, or the queue pair failed after really
// using up its retries. A failure prints its seed; RC_SEED=n repeats one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "emu/core/rng.h"
#include "models/rc.h"

#define STEPS_WANTED UINT64_C(10000000)
#define IN_FLIGHT    512

struct in_flight {
	struct rc_request req;
	struct rc_ack ack;
};

static uint64_t current_seed;

// A bag of packets in order of sending.
struct channel {
	struct in_flight p[IN_FLIGHT];
	unsigned n;
};

struct world {
	struct rng rng;
	struct rc_config cfg;
	struct rc_wr wr;
	struct rc_wqe sq[1];
	struct rc_requester q;
	struct rc_responder r;
	struct channel there, back;
	uint32_t loss, dup, reorder; // per 1024
	simtime_t now;
	uint64_t delivered; // packets, in order
	unsigned retries;   // since the last progress
	bool respond;
	uint64_t steps;
};

static void put(struct world *w, struct channel *c, struct in_flight p)
{
	unsigned copies = 1;

	if (rng_below(&w->rng, 1024) < w->loss)
		copies = 0;
	else if (rng_below(&w->rng, 1024) < w->dup)
		copies = 2;
	while (copies-- > 0 && c->n < IN_FLIGHT) // a full channel loses too
		c->p[c->n++] = p;
}

static struct in_flight take(struct world *w, struct channel *c)
{
	unsigned i = rng_below(&w->rng, 1024) < w->reorder ? rng_below(&w->rng, c->n) : 0;
	struct in_flight p = c->p[i];

	for (c->n--; i < c->n; i++)
		c->p[i] = c->p[i + 1];
	return p;
}

static void setup(struct world *w, uint64_t seed)
{
	*w = (struct world){.rng = rng_stream(seed, 1)};
	struct rng *g = &w->rng;

	w->cfg = (struct rc_config){
		.payload = (uint16_t)(1 + rng_below(g, 100)),
		.window = 1 + rng_below(g, 100),
		.ack_every = 1 + rng_below(g, 20),
		.timeout = 100 + rng_below(g, 400),
		.retry_cnt = (uint8_t)rng_below(g, 8),
		.rnr_retry = RC_RNR_INFINITE,
		// Half of the runs cross the wrap at 2^24.
		.psn = rng_below(g, 2) ? psn_add(0, PSN_MASK - rng_below(g, 50))
				       : rng_below(g, 1u << 24),
	};
	w->loss = rng_below(g, 3) ? rng_below(g, 200) : 0;
	w->dup = rng_below(g, 2) ? rng_below(g, 200) : 0;
	w->reorder = rng_below(g, 2) ? rng_below(g, 300) : 0;
	w->wr = (struct rc_wr){
		.op = rng_below(g, 2) ? WR_WRITE : WR_SEND,
		.length = 1 + rng_below(g, 1000),
		.repeat = 1 + rng_below(g, 60),
		.signaled = true,
	};
	rc_requester_init(&w->q, &w->cfg, w->sq, 1);
	rc_post_send(&w->q, &w->wr);
	struct rc_responder_config r = {
		.psn = w->cfg.psn, .ack_every = 1 + rng_below(g, 20), .payload = w->cfg.payload};
	rc_responder_init(&w->r, &r);
}

// The receiver's application: is this the packet number `delivered` of the stream?
static void delivered(struct world *w, const struct rc_request *p)
{
	const struct rc_config *c = &w->cfg;
	uint32_t length = w->wr.length;
	uint64_t pkts = (length + c->payload - 1) / c->payload;
	uint64_t msg = w->delivered / pkts, idx = w->delivered % pkts;
	uint64_t rest = length - idx * c->payload;

	assert_int_equal(p->pos, msg * length + idx * c->payload);
	assert_int_equal(p->payload, rest < c->payload ? rest : c->payload);
	assert_true(msg < w->wr.repeat);
	w->delivered++;
}

static void at_receiver(struct world *w)
{
	struct in_flight p = take(w, &w->there);
	const struct rc_request *q = &p.req;
	struct rc_packet in = {
		.opcode = q->opcode, .psn = q->psn, .ack_req = q->ack_req, .payload = q->payload};
	struct rc_accept out;
	int res = rc_rx_request(&w->r, w->now, &in, &out);

	assert_int_not_equal(res & RC_RX_RESULT, RC_RX_INVALID);
	if ((res & RC_RX_RESULT) == RC_RX_IN_ORDER)
		delivered(w, q);
	w->respond |= (res & RC_RX_RESPOND) != 0;
}

static void after_retry(struct world *w, int res)
{
	if (res & RC_ACK_PROGRESS)
		w->retries = 0;
	if (res & (RC_ACK_REWOUND | RC_ACK_ERROR))
		w->retries++;
}

static void at_sender(struct world *w)
{
	struct in_flight p = take(w, &w->back);
	int res = rc_rx_ack(&w->q, w->now, p.ack.psn, RC_AETH(p.ack.syndrome, p.ack.msn));

	after_retry(w, res);
}

static void check(const struct world *w)
{
	const struct rc_requester *q = &w->q;

	assert_true(q->una <= w->delivered); // acknowledged only what arrived
	assert_true(w->delivered <= q->max);
	assert_true(q->max - q->una <= q->window);
	assert_true(q->nxt <= q->max && q->nxt >= q->una);
	assert_true(q->nxt - q->una <= q->window);
	if (q->state == RC_READY && q->una < q->max)
		assert_int_not_equal(q->deadline, SIMTIME_NEVER); // nothing waits without a timer
	assert_int_equal(w->r.epsn, psn_add(w->cfg.psn, w->delivered));
}

// One thing happens, chosen at random among what can. False when nothing is left to happen.
static bool step(struct world *w)
{
	struct rc_requester *q = &w->q;

	w->now++;
	w->steps++;
	switch (rng_below(&w->rng, 4)) {
	case 0:
		if (rc_can_send(q)) {
			struct in_flight p = {0};
			rc_tx_next(q, w->now, &p.req);
			put(w, &w->there, p);
		}
		break;
	case 1:
		if (w->there.n != 0)
			at_receiver(w);
		break;
	case 2:
		if (w->respond) {
			struct in_flight p = {0};
			rc_tx_ack(&w->r, &p.ack);
			put(w, &w->back, p);
			w->respond = false;
		}
		break;
	default:
		if (w->back.n != 0)
			at_sender(w);
		break;
	}
	if (w->now >= q->deadline)
		after_retry(w, rc_timeout(q, w->now));
	return !rc_done(q) && q->state != RC_ERROR;
}

static uint64_t run(uint64_t seed, unsigned *done, unsigned *failed)
{
	struct world *w = calloc(1, sizeof(*w));

	setup(w, seed);
	while (step(w))
		check(w);
	check(w);
	if (rc_done(&w->q)) {
		assert_int_equal(w->r.messages, w->wr.repeat);
		assert_int_equal(w->r.bytes, w->wr.repeat * w->wr.length);
		(*done)++;
	} else {
		assert_int_equal(w->q.status, WC_RETRY_EXC_ERR);
		assert_int_equal(w->retries, w->cfg.retry_cnt + 1);
		(*failed)++;
	}
	uint64_t steps = w->steps;
	free(w);
	return steps;
}

static void delivery_is_in_order_and_once_whatever_the_channel_does(void **state)
{
	const char *env = getenv("RC_SEED");
	uint64_t seed = env ? strtoull(env, NULL, 0) : 1, steps = 0;
	unsigned done = 0, failed = 0;

	do {
		current_seed = seed++;
		steps += run(current_seed, &done, &failed);
	} while (!env && steps < STEPS_WANTED);
	printf("%u done, %u failed, %llu steps\n", done, failed, (unsigned long long)steps);
	if (!env)
		assert_true(done > 100 && failed > 100); // both ends were really tried
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(delivery_is_in_order_and_once_whatever_the_channel_does),
	};

	int failures = cmocka_run_group_tests(tests, NULL, NULL);

	if (failures)
		printf("repeat with RC_SEED=%llu\n", (unsigned long long)current_seed);
	return failures;
}
