/* SPDX-License-Identifier: BSD-3-Clause */
// Model check of selective repeat and of tolerance of reordering: a requester and a responder
// joined by a channel that loses, duplicates and reorders, in both directions, with receives that
// run out. Whatever it does, the receiver takes every packet exactly once and in order, as a
// formula predicts; and in the end either everything is through and acknowledged, or the queue pair
// failed after really using up its retries. Two more properties hold in gentler channels:
//   - no packet that arrived is ever sent again by selective repeat when nothing but requests is
//     lost, each packet asks for its acknowledgement and the timeout exceeds a round trip;
//   - nothing is reported, nor sent again, when no packet is overtaken by more than is tolerated.
// A failure prints its seed; SR_SEED=n repeats one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "emu/core/rng.h"
#include "models/sr.h"

#define STEPS_WANTED UINT64_C(10000000)
#define IN_FLIGHT    512
#define WINDOW       128
#define WRS          8

enum kind {
	SELECTIVE, // selective repeat, with or without tolerance, in any channel
	TOLERANT,  // go-back-N with tolerance, in any channel
	THRIFTY,   // selective repeat, only requests are lost
	PATIENT,   // reordering within the tolerance, nothing lost
	KINDS,
};

struct in_flight {
	struct rc_packet req;
	uint64_t pos; // of the request's payload in the stream of all work requests
	struct rc_ack ack;
	uint8_t sack[ROCE_SACK_BYTES];
	bool has_sack;
};

static uint64_t current_seed;

// A bag of packets in order of sending.
struct channel {
	struct in_flight p[IN_FLIGHT];
	unsigned n;
	uint32_t loss, dup; // per 1024
};

struct world {
	struct rng rng;
	enum kind kind;
	struct rc_config cfg;
	struct rc_wqe sq[WRS];
	struct rc_wr wr[WRS];
	uint64_t start[WRS + 1]; // stream position where each work request begins
	unsigned n_wrs, posted;
	struct rc_requester q;
	struct sr_sender tx;
	struct rc_responder r;
	struct sr_receiver rx;
	struct rc_rq rq;
	struct rc_recv recvs[64];
	uint64_t sacked[WINDOW * 2 / 64], have[WINDOW * 2 / 64];
	struct rc_packet kept[WINDOW * 2];
	struct channel there, back;
	uint32_t reorder, receives; // per 1024
	simtime_t patience;
	simtime_t now;
	uint64_t delivered; // packets, in order
	unsigned retries;   // since the last progress
	uint64_t again, duplicates, naks;
	bool respond;
	uint64_t steps;
};

static bool selective(const struct world *w)
{
	return w->kind == SELECTIVE || w->kind == THRIFTY;
}

static void put(struct world *w, struct channel *c, const struct in_flight *p)
{
	unsigned copies = 1;

	if (rng_below(&w->rng, 1024) < c->loss)
		copies = 0;
	else if (rng_below(&w->rng, 1024) < c->dup)
		copies = 2;
	while (copies-- > 0 && c->n < IN_FLIGHT) // a full channel loses too
		c->p[c->n++] = *p;
}

// Of a patient channel: one no further ahead of what is expected than is tolerated.
static unsigned choose(struct world *w, const struct channel *c)
{
	unsigned i = rng_below(&w->rng, 1024) < w->reorder ? rng_below(&w->rng, c->n) : 0;

	if (w->kind == PATIENT && c == &w->there)
		while (psn_diff(c->p[i].req.psn, w->r.epsn) > (int32_t)w->rx.tolerance)
			i--;
	return i;
}

static struct in_flight take(struct world *w, struct channel *c)
{
	unsigned i = choose(w, c);
	struct in_flight p = c->p[i];

	for (c->n--; i < c->n; i++)
		c->p[i] = c->p[i + 1];
	return p;
}

// ---- set-up ------------------------------------------------------------------------------------

static void setup_channel(struct world *w)
{
	struct rng *g = &w->rng;
	bool rough = w->kind == SELECTIVE || w->kind == TOLERANT;

	w->there.loss = w->kind != PATIENT && rng_below(g, 3) ? rng_below(g, 200) : 0;
	w->back.loss = rough && rng_below(g, 2) ? rng_below(g, 200) : 0;
	w->there.dup = rough && rng_below(g, 2) ? rng_below(g, 200) : 0;
	w->back.dup = rough && rng_below(g, 2) ? rng_below(g, 200) : 0;
	w->reorder = w->kind != THRIFTY && rng_below(g, 3) ? rng_below(g, 500) : 0;
	w->receives = rough && rng_below(g, 2) ? 20 + rng_below(g, 200) : 0;
	w->cfg.timeout = rough ? 100 + rng_below(g, 400) : INT64_C(1) << 40;
}

static void setup_work(struct world *w)
{
	struct rng *g = &w->rng;
	enum wr_op ops[] = {WR_WRITE, WR_SEND, WR_SEND_IMM, WR_WRITE_IMM};

	w->n_wrs = 1 + rng_below(g, WRS);
	for (unsigned i = 0; i < w->n_wrs; i++) {
		w->wr[i] = (struct rc_wr){
			.op = (uint8_t)ops[rng_below(g, 4)],
			.length = rng_below(g, 1000),
			.repeat = 1 + rng_below(g, 20),
			.signaled = rng_below(g, 2),
		};
		w->start[i + 1] = w->start[i] + w->wr[i].length * w->wr[i].repeat;
	}
}

static void setup_ends(struct world *w)
{
	struct rng *g = &w->rng;
	struct rc_responder_config r = {
		.psn = w->cfg.psn, .ack_every = 1 + rng_below(g, 20), .payload = w->cfg.payload};
	struct sr_config sr = {.rto_low = w->cfg.timeout / (1 + rng_below(g, 3)),
		.rto_high = w->cfg.timeout,
		.patience = w->patience};
	uint32_t ahead = selective(w) ? w->cfg.window : 1 + rng_below(g, WINDOW);
	uint32_t tolerance = w->kind == SELECTIVE ? rng_below(g, 2) * rng_below(g, 30) : 0;

	if (w->receives != 0) {
		rc_rq_init(&w->rq, w->recvs, 64, true);
		r.rq = &w->rq;
	}
	rc_requester_init(&w->q, &w->cfg, w->sq, WRS);
	rc_responder_init(&w->r, &r);
	struct sr_receiver_config rx = {.window = ahead,
		.tolerance = selective(w) ? tolerance : ahead,
		.max_age =
			w->kind == PATIENT || rng_below(g, 2) ? SIMTIME_NEVER : rng_below(g, 500),
		.selective = selective(w)};
	sr_receiver_init(&w->rx, &w->r, &rx, w->have, w->kept);
	if (selective(w))
		sr_sender_init(&w->tx, &w->q, &sr, w->sacked);
}

static void setup(struct world *w, uint64_t seed)
{
	*w = (struct world){.rng = rng_stream(seed, 1)};
	struct rng *g = &w->rng;

	w->kind = (enum kind)rng_below(g, KINDS);
	setup_channel(w);
	w->cfg.payload = (uint16_t)(1 + rng_below(g, 100));
	w->cfg.window = 1 + rng_below(g, w->kind == THRIFTY ? ROCE_SACK_SPAN : WINDOW - 1);
	w->cfg.ack_every = w->kind == THRIFTY ? 1 : 1 + rng_below(g, 20);
	w->cfg.retry_cnt = w->kind == THRIFTY ? 7 : (uint8_t)rng_below(g, 8);
	w->cfg.rnr_retry = RC_RNR_INFINITE;
	// Half of the runs cross the wrap at 2^24.
	w->cfg.psn =
		rng_below(g, 2) ? psn_add(0, PSN_MASK - rng_below(g, 50)) : rng_below(g, 1u << 24);
	w->patience = rng_below(g, 2) ? 1 : rng_below(g, 2000);
	setup_work(w);
	setup_ends(w);
}

// ---- receiver ----------------------------------------------------------------------------------

// Where packet number `n` of the stream stands, by division.
static void expected(const struct world *w, uint64_t n, uint64_t *pos, uint32_t *payload)
{
	unsigned i = 0;
	uint64_t pkts;

	for (;; i++) {
		uint64_t each = (w->wr[i].length + w->cfg.payload - 1) / w->cfg.payload;
		pkts = each == 0 ? 1 : each;
		if (n < pkts * w->wr[i].repeat)
			break;
		n -= pkts * w->wr[i].repeat;
	}
	uint64_t offset = n % pkts * w->cfg.payload, rest = w->wr[i].length - offset;
	*pos = w->start[i] + n / pkts * w->wr[i].length + offset;
	*payload = rest < w->cfg.payload ? (uint32_t)rest : w->cfg.payload;
}

// Stream positions travel in a field that plain SENDs and WRITEs do not use.
static void taken(struct world *w, const struct rc_packet *p)
{
	uint64_t pos;
	uint32_t payload;

	expected(w, w->delivered, &pos, &payload);
	assert_int_equal(p->compare, pos);
	assert_int_equal(p->payload, payload);
	w->delivered++;
}

static int give(struct world *w, const struct rc_packet *p)
{
	struct rc_accept out;
	int res = rc_rx_request(&w->r, w->now, p, &out);

	assert_int_not_equal(res & RC_RX_RESULT, RC_RX_INVALID);
	if ((res & RC_RX_RESULT) == RC_RX_IN_ORDER)
		taken(w, p);
	w->duplicates += (res & RC_RX_RESULT) == RC_RX_DUPLICATE;
	w->respond |= (res & RC_RX_RESPOND) != 0;
	return res & RC_RX_RESULT;
}

static void at_receiver(struct world *w)
{
	struct in_flight p = take(w, &w->there);
	int res = give(w, &p.req), kept;

	if (res == RC_RX_GAP) {
		kept = sr_keep(&w->rx, &w->r, w->now, &p.req);
		w->duplicates += (kept & SR_VERDICT) == SR_DUPLICATE;
		w->respond |= (kept & SR_RESPOND) != 0;
	} else if (w->rx.n_kept != 0 && res == RC_RX_IN_ORDER) {
		while (sr_next(&w->rx, &w->r, &p.req))
			give(w, &p.req);
		w->respond |= sr_caught_up(&w->rx, &w->r, w->now);
	}
}

static void respond(struct world *w)
{
	struct in_flight p = {0};
	struct roce_sack sack;

	p.has_sack = w->r.nak == AETH_NAK_PSN_SEQ && sr_sack(&w->rx, &w->r, &sack);
	if (p.has_sack)
		roce_sack_put(p.sack, &sack);
	rc_tx_ack(&w->r, &p.ack);
	w->naks += p.ack.syndrome == AETH_NAK_PSN_SEQ;
	put(w, &w->back, &p);
	w->respond = false;
}

// ---- sender ------------------------------------------------------------------------------------

static void after_retry(struct world *w, int res)
{
	if (res & RC_ACK_PROGRESS)
		w->retries = 0;
	if (res & (RC_ACK_REWOUND | RC_ACK_ERROR) && !(res & RC_ACK_RNR))
		w->retries++;
}

static void at_sender(struct world *w)
{
	struct in_flight p = take(w, &w->back);
	uint32_t aeth = RC_AETH(p.ack.syndrome, p.ack.msn);
	struct roce_sack sack;

	if (!selective(w)) {
		after_retry(w, rc_rx_ack(&w->q, w->now, p.ack.psn, aeth));
		return;
	}
	assert_true(!p.has_sack || roce_sack_get(p.sack, sizeof(p.sack), &sack));
	after_retry(
		w, sr_rx_ack(&w->tx, &w->q, w->now, p.ack.psn, aeth, p.has_sack ? &sack : NULL));
}

static void send(struct world *w)
{
	struct in_flight p = {0};
	struct rc_request out;

	rc_tx_next(&w->q, w->now, &out);
	p.req = (struct rc_packet){.opcode = out.opcode,
		.ack_req = out.ack_req,
		.psn = out.psn,
		.payload = out.payload,
		.dma_len = out.dma_len,
		.compare = w->start[out.wr->wr_id] + out.pos};
	put(w, &w->there, &p);
	w->again += out.again;
	if (out.again && selective(w))
		sr_sent(&w->tx, &w->q);
}

static void timers(struct world *w)
{
	struct rc_requester *q = &w->q;

	if (w->now >= q->deadline)
		after_retry(
			w, selective(w) ? sr_timeout(&w->tx, q, w->now) : rc_timeout(q, w->now));
	if (w->now >= q->rnr_until && selective(w))
		sr_rnr_expired(&w->tx, q, w->now);
	else if (w->now >= q->rnr_until)
		rc_rnr_expired(q, w->now);
}

static void post(struct world *w)
{
	struct rc_recv recv = {.length = 1000};

	if (w->posted < w->n_wrs && rng_below(&w->rng, 8) == 0) {
		w->wr[w->posted].wr_id = w->posted;
		if (rc_post_send(&w->q, &w->wr[w->posted]) == 0)
			w->posted++;
	}
	if (rng_below(&w->rng, 1024) < w->receives)
		rc_post_recv(&w->rq, &recv);
}

static void check(const struct world *w)
{
	const struct rc_requester *q = &w->q;

	assert_true(q->una <= w->delivered); // acknowledged only what arrived
	assert_true(w->delivered <= q->max);
	assert_true(q->max - q->una <= q->window);
	assert_true(q->nxt <= q->max && q->nxt >= q->una);
	if (q->state == RC_READY && q->una < q->max && !rc_can_send(q))
		assert_int_not_equal(q->deadline, SIMTIME_NEVER); // nothing waits without a timer
	assert_int_equal(w->r.epsn, psn_add(w->cfg.psn, w->delivered));
	assert_true(w->rx.n_kept <= w->rx.window);
}

static bool all_done(const struct world *w)
{
	return w->posted == w->n_wrs && rc_done(&w->q);
}

// One thing happens, chosen at random among what can. False when nothing is left to happen.
static bool step(struct world *w)
{
	struct rc_requester *q = &w->q;

	w->now++;
	w->steps++;
	post(w);
	switch (rng_below(&w->rng, 4)) {
	case 0:
		if (rc_can_send(q))
			send(w);
		break;
	case 1:
		if (w->there.n != 0)
			at_receiver(w);
		break;
	case 2:
		if (w->respond)
			respond(w);
		break;
	default:
		if (w->back.n != 0)
			at_sender(w);
		break;
	}
	// Only the timer can go on: time passes quickly.
	if (!rc_can_send(q) && w->there.n == 0 && !w->respond && w->back.n == 0)
		w->now = q->deadline != SIMTIME_NEVER    ? q->deadline
			 : q->rnr_until != SIMTIME_NEVER ? q->rnr_until
							 : w->now;
	timers(w);
	return !all_done(w) && q->state != RC_ERROR;
}

static uint64_t run(uint64_t seed, unsigned done[KINDS], unsigned *failed)
{
	struct world *w = calloc(1, sizeof(*w));

	setup(w, seed);
	while (step(w))
		check(w);
	check(w);
	if (all_done(w)) {
		assert_int_equal(w->r.bytes, w->start[w->n_wrs]);
		assert_int_equal(w->rx.n_kept, 0);
		done[w->kind]++;
	} else {
		assert_int_equal(w->q.status, WC_RETRY_EXC_ERR);
		if (!selective(w) || w->patience == 1) // each timeout takes a retry
			assert_int_equal(w->retries, w->cfg.retry_cnt + 1);
		else
			assert_true(w->retries > w->cfg.retry_cnt);
		(*failed)++;
	}
	if (w->kind == THRIFTY)
		assert_int_equal(w->duplicates, 0);
	if (w->kind == PATIENT)
		assert_int_equal(w->again + w->naks, 0);
	uint64_t steps = w->steps;
	free(w);
	return steps;
}

static void delivery_is_in_order_and_once_whatever_the_channel_does(void **state)
{
	const char *env = getenv("SR_SEED");
	uint64_t seed = env ? strtoull(env, NULL, 0) : 1, steps = 0;
	unsigned done[KINDS] = {0}, failed = 0;

	do {
		current_seed = seed++;
		steps += run(current_seed, done, &failed);
	} while (!env && steps < STEPS_WANTED);
	printf("%u selective, %u tolerant, %u thrifty, %u patient done, %u failed, %llu steps\n",
		done[SELECTIVE], done[TOLERANT], done[THRIFTY], done[PATIENT], failed,
		(unsigned long long)steps);
	for (int i = 0; !env && i < KINDS; i++)
		assert_true(done[i] > 200); // each was really tried
	if (!env)
		assert_true(failed > 80);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(delivery_is_in_order_and_once_whatever_the_channel_does),
	};

	int failures = cmocka_run_group_tests(tests, NULL, NULL);

	if (failures)
		printf("repeat with SR_SEED=%llu\n", (unsigned long long)current_seed);
	return failures;
}
