/* SPDX-License-Identifier: BSD-3-Clause */
// Model check of the RC transport: a requester with random work requests and a responder with
// random receives, joined by a channel that loses, duplicates and reorders in both directions.
// Whatever it does,
//   - what the responder takes are the packets of the work requests, each once, in order, with the
//     place its data belongs to; atomics execute once;
//   - READ data and the atomics' original values come once, in order, from the right place;
//   - receives complete in order, with what was sent;
//   - completions come in posting order, after their work is done;
// and in the end all is through, or the queue pair failed after really using up its retries and
// completed the rest flushed. The model is a walk over the work requests without any arithmetic on
// sequence numbers.
//
// A failure is made smaller as long as it stays one, then printed as RC_CASE=..., which repeats it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emu/core/rng.h"
#include "models/rc.h"

#define STEPS_WANTED UINT64_C(12000000)
#define STEPS_MAX    UINT64_C(3000000) // of one case: it hangs
#define IN_FLIGHT    512
#define WRS          24
#define MESSAGES_MAX 40 // of one work request
#define SQ           8
#define RQ           16
#define REMOTE       UINT64_C(0x100000)

// A case: all else follows from the seed.
struct rc_case {
	uint64_t seed;
	uint32_t wrs;
	uint32_t loss, dup, reorder; // per 1024
	uint32_t starve;             // per 1024: how seldom receives are posted
};

struct in_flight {
	struct rc_packet req;
	uint64_t wr_id, pos;
	struct rc_response resp;
};

// A bag of packets in order of sending.
struct channel {
	struct in_flight p[IN_FLIGHT];
	unsigned n;
};

// A place in the work requests: message and byte of one of them.
struct cursor {
	uint32_t wr;
	uint64_t msg;
	uint32_t byte;
};

struct world {
	struct rc_case c;
	struct rng rng;
	struct rc_config cfg;
	struct rc_requester q;
	struct rc_responder r;
	struct rc_wqe sq[SQ];
	struct rc_recv ring[RQ];
	struct rc_rq rq;
	struct rc_resource res[8];
	struct rc_wr wr[WRS];
	uint64_t original[WRS][MESSAGES_MAX]; // what each atomic gave
	uint64_t counter;                     // what the atomics work on
	struct channel there, back;
	uint32_t posted, completed; // work requests
	uint64_t recvs, recv_done;
	struct cursor taken; // by the responder
	struct cursor got;   // READ data and atomics at the requester
	unsigned retries;    // since the last progress
	unsigned rnrs;
	uint64_t una;
	simtime_t tick; // between two things that happen
	uint64_t adapted;
	simtime_t now;
	uint64_t steps;
	char why[160];
};

#define CHECK(w, cond)                                                                         \
	do {                                                                                   \
		if (!(cond) && (w)->why[0] == 0)                                               \
			snprintf((w)->why, sizeof((w)->why), "line %d: " #cond " ", __LINE__); \
	} while (0)

static void put(struct world *w, struct channel *c, const struct in_flight *p)
{
	unsigned copies = 1;

	if (rng_below(&w->rng, 1024) < w->c.loss)
		copies = 0;
	else if (rng_below(&w->rng, 1024) < w->c.dup)
		copies = 2;
	while (copies-- > 0 && c->n < IN_FLIGHT) // a full channel loses too
		c->p[c->n++] = *p;
}

static struct in_flight take(struct world *w, struct channel *c)
{
	unsigned i = rng_below(&w->rng, 1024) < w->c.reorder ? rng_below(&w->rng, c->n) : 0;
	struct in_flight p = c->p[i];

	c->n--;
	memmove(&c->p[i], &c->p[i + 1], (c->n - i) * sizeof(p));
	return p;
}

// ---- making a case ---------------------------------------------------------------------------

static struct rc_case make_case(uint64_t seed)
{
	struct rng g = rng_stream(seed, 2);

	return (struct rc_case){
		.seed = seed,
		.wrs = 1 + rng_below(&g, WRS),
		.loss = rng_below(&g, 3) ? rng_below(&g, 150) : 0,
		.dup = rng_below(&g, 2) ? rng_below(&g, 200) : 0,
		.reorder = rng_below(&g, 2) ? rng_below(&g, 200) : 0,
		.starve = rng_below(&g, 2) ? rng_below(&g, 1024) : 0,
	};
}

static void make_wrs(struct world *w)
{
	struct rng *g = &w->rng;
	uint32_t kinds = 1 + rng_below(g, WR_OP_COUNT); // some cases have few operations

	for (uint32_t i = 0; i < WRS; i++) {
		struct rc_wr *x = &w->wr[i];
		*x = (struct rc_wr){
			.wr_id = i,
			.repeat = 1 + rng_below(g, rng_below(g, 2) ? 3 : MESSAGES_MAX),
			.remote_addr = REMOTE * (i + 1),
			.length = rng_below(g, rng_below(g, 2) ? 300 : 1500),
			.imm = (uint32_t)rng_next(g),
			.op = (uint8_t)rng_below(g, kinds),
			.signaled = rng_below(g, 3) != 0,
			.solicited = rng_below(g, 2),
			.fence = rng_below(g, 4) == 0,
			.swap_add = 1,
		};
		if (x->op == WR_CMP_SWAP || x->op == WR_FETCH_ADD)
			x->length = RC_ATOMIC_BYTES;
	}
	w->wr[w->c.wrs - 1].signaled = true;
}

static void setup(struct world *w, const struct rc_case *c)
{
	memset(w, 0, sizeof(*w));
	w->c = *c;
	w->rng = rng_stream(c->seed, 1);
	struct rng *g = &w->rng;
	bool adaptive = rng_below(g, 4) == 0;

	// An adaptive timeout is at least 16 us.
	w->tick = adaptive ? 200 * SIM_NS : 1;
	w->cfg = (struct rc_config){
		.payload = (uint16_t)(10 + rng_below(g, 200)),
		.window = 1 + rng_below(g, 100),
		.ack_every = 1 + rng_below(g, 20),
		.timeout = (200 + rng_below(g, 400)) * w->tick,
		.retry_cnt = (uint8_t)rng_below(g, 8),
		.rnr_retry = (uint8_t)(rng_below(g, 2) ? RC_RNR_INFINITE : rng_below(g, 7)),
		.max_rd_atomic = (uint8_t)(1 + rng_below(g, 8)),
		.adaptive = adaptive,
		// Half of the cases cross the wrap at 2^24.
		.psn = rng_below(g, 2) ? psn_add(0, PSN_MASK - rng_below(g, 50))
				       : rng_below(g, 1u << 24),
	};
	struct rc_responder_config r = {
		.psn = w->cfg.psn,
		.ack_every = 1 + rng_below(g, 20),
		.payload = w->cfg.payload,
		.min_rnr_timer = (uint8_t)(1 + rng_below(g, 31)),
		.credits = rng_below(g, 2),
		.rq = &w->rq,
		.resources = w->res,
		.max_dest_rd_atomic =
			(uint8_t)(w->cfg.max_rd_atomic + rng_below(g, 9 - w->cfg.max_rd_atomic)),
	};
	rc_rq_init(&w->rq, w->ring, RQ, false);
	make_wrs(w);
	rc_requester_init(&w->q, &w->cfg, w->sq, SQ);
	rc_responder_init(&w->r, &r);
}

// ---- the model -------------------------------------------------------------------------------

static void next_message(struct world *w, struct cursor *at)
{
	at->byte = 0;
	if (++at->msg == w->wr[at->wr].repeat) {
		at->msg = 0;
		at->wr++;
	}
}

static uint64_t position(const struct world *w, const struct cursor *at)
{
	return at->msg * w->wr[at->wr].length + at->byte;
}

// Bytes of the packet at a cursor.
static uint32_t due(const struct world *w, const struct cursor *at)
{
	uint32_t rest = w->wr[at->wr].length - at->byte;

	return rest < w->cfg.payload ? rest : w->cfg.payload;
}

// A packet with data has been taken at `at`: on to the next.
static void advance(struct world *w, struct cursor *at, uint32_t payload)
{
	at->byte += payload;
	if (at->byte == w->wr[at->wr].length)
		next_message(w, at);
}

static void recv_done(struct world *w, const struct rc_wr *x, const struct rc_accept *a)
{
	CHECK(w, a->wr_id == w->recv_done);
	CHECK(w, a->wc_status == WC_SUCCESS && a->byte_len == x->length);
	CHECK(w, a->with_imm == (x->op == WR_SEND_IMM || x->op == WR_WRITE_IMM));
	CHECK(w, a->with_inv == (x->op == WR_SEND_INV));
	CHECK(w, (!a->with_imm && !a->with_inv) || a->imm == x->imm);
	CHECK(w, a->solicited == x->solicited);
	w->recv_done++;
}

// The responder has taken a packet: is it the one that is due, and does all follow that must?
static void taken(struct world *w, const struct in_flight *p, int res, const struct rc_accept *a)
{
	struct cursor *at = &w->taken;
	const struct rc_wr *x = &w->wr[at->wr];
	enum wr_op op = (enum wr_op)x->op;

	CHECK(w, at->wr < w->posted && p->wr_id == at->wr);
	CHECK(w, p->pos == position(w, at));
	if (op == WR_READ) {
		CHECK(w, res & RC_RX_READ && at->byte == 0);
		CHECK(w, p->req.remote_addr == x->remote_addr + p->pos);
		CHECK(w, p->req.dma_len == x->length);
		next_message(w, at);
	} else if (wr_is_rd_atomic(op)) {
		CHECK(w, res & RC_RX_ATOMIC && a->atomic.addr == x->remote_addr);
		CHECK(w, a->atomic.cmp_swap == (op == WR_CMP_SWAP));
		w->original[at->wr][at->msg] = w->counter;
		rc_atomic_done(&w->r, w->counter++);
		next_message(w, at);
	} else {
		bool write = op == WR_WRITE || op == WR_WRITE_IMM;
		CHECK(w, p->req.payload == due(w, at));
		CHECK(w, !write || a->addr == x->remote_addr + p->pos);
		CHECK(w, write || a->addr == at->byte); // all receives are at 0
		bool last = at->byte + p->req.payload == x->length;
		CHECK(w, last == ((res & RC_RX_MESSAGE) != 0));
		CHECK(w, (last && wr_needs_recv(op)) == ((res & RC_RX_RECV_DONE) != 0));
		if (res & RC_RX_RECV_DONE)
			recv_done(w, x, a);
		advance(w, at, p->req.payload);
	}
}

// What is awaited next is that of a READ or an atomic.
static void skip_to_answers(struct world *w)
{
	while (w->got.wr < w->posted && !wr_is_rd_atomic((enum wr_op)w->wr[w->got.wr].op))
		w->got.wr++;
}

// Data of a READ or an original value has come to the requester.
static void got(struct world *w, const struct in_flight *p, const struct rc_read_place *place)
{
	struct cursor *at = &w->got;

	skip_to_answers(w);
	const struct rc_wr *x = &w->wr[at->wr];
	CHECK(w, at->wr < w->posted && place->wr->wr_id == at->wr);
	CHECK(w, place->pos == position(w, at));
	if (x->op != WR_READ) {
		CHECK(w, p->resp.original == w->original[at->wr][at->msg]);
		CHECK(w, at->wr < w->taken.wr || at->msg < w->taken.msg); // executed
		next_message(w, at);
		return;
	}
	CHECK(w, p->resp.addr == x->remote_addr + place->pos);
	CHECK(w, place->length == due(w, at) && p->resp.payload == place->length);
	CHECK(w, place->last == (at->byte + place->length == x->length));
	advance(w, at, place->length);
}

// ---- what can happen -------------------------------------------------------------------------

static void send_request(struct world *w)
{
	struct rc_request r;
	struct in_flight p = {0};

	rc_tx_next(&w->q, w->now, &r);
	p.wr_id = r.wr->wr_id;
	p.pos = r.pos;
	skip_to_answers(w);
	if (r.wr->fence)
		CHECK(w, w->got.wr >= r.wr->wr_id);
	p.req = (struct rc_packet){
		.opcode = r.opcode,
		.ack_req = r.ack_req,
		.solicited = r.solicited,
		.psn = r.psn,
		.payload = r.payload,
		.imm = r.wr->imm,
		.rkey = r.wr->rkey,
		.dma_len = r.dma_len,
		.remote_addr = r.remote_addr,
		.compare = r.wr->compare,
		.swap_add = r.wr->swap_add,
	};
	put(w, &w->there, &p);
}

static void at_receiver(struct world *w)
{
	struct in_flight p = take(w, &w->there);
	struct rc_accept a;
	int res = rc_rx_request(&w->r, w->now, &p.req, &a);

	switch (res & RC_RX_RESULT) {
	case RC_RX_IN_ORDER:
		taken(w, &p, res, &a);
		break;
	case RC_RX_DUPLICATE:
	case RC_RX_GAP:
		break;
	case RC_RX_NOT_READY:
		CHECK(w, rc_rq_count(&w->rq) == 0);
		break;
	default:
		CHECK(w, !"nothing sent is invalid");
	}
}

static void after(struct world *w, int res)
{
	if (w->q.una != w->una)
		w->retries = w->rnrs = 0;
	w->una = w->q.una;
	if (res & RC_ACK_RNR || (res & RC_ACK_ERROR && w->q.status == WC_RNR_RETRY_EXC_ERR))
		w->rnrs++;
	else if (res & (RC_ACK_REWOUND | RC_ACK_ERROR))
		w->retries += w->adapted == w->q.adaptive.retrans; // those are free
	w->adapted = w->q.adaptive.retrans;
}

static void at_sender(struct world *w)
{
	struct in_flight p = take(w, &w->back);
	uint32_t aeth = RC_AETH(p.resp.syndrome, p.resp.msn);
	struct rc_read_place place;
	int res;

	if (p.resp.opcode == ROCE_ACK) {
		res = rc_rx_ack(&w->q, w->now, p.resp.psn, aeth);
	} else {
		res = rc_rx_read(
			&w->q, w->now, p.resp.opcode, p.resp.psn, aeth, p.resp.payload, &place);
		if (res & RC_ACK_DATA)
			got(w, &p, &place);
	}
	after(w, res);
}

static void completions(struct world *w)
{
	struct rc_wc wc;
	bool failed = false;

	while (rc_poll(&w->q, &wc)) {
		// In error every one not acknowledged has an entry.
		while (!failed && w->completed < wc.wr_id && !w->wr[w->completed].signaled)
			w->completed++;
		CHECK(w, wc.wr_id == w->completed && wc.op == w->wr[w->completed].op);
		w->completed++;
		if (wc.status == WC_SUCCESS)
			CHECK(w, !failed && w->taken.wr >= w->completed);
		else
			CHECK(w, wc.status == (failed ? WC_WR_FLUSH_ERR : w->q.status));
		failed |= wc.status != WC_SUCCESS;
	}
}

static void post(struct world *w)
{
	struct rc_recv recv = {.wr_id = w->recvs, .length = 4096};

	if (w->posted < w->c.wrs && rng_below(&w->rng, 2)) {
		int rc = rc_post_send(&w->q, &w->wr[w->posted]);
		CHECK(w, rc == 0 || rc == -12);
		w->posted += rc == 0;
	} else if (rng_below(&w->rng, 1024) >= w->c.starve && rc_post_recv(&w->rq, &recv)) {
		w->recvs++;
	}
}

static void check(struct world *w)
{
	const struct rc_requester *q = &w->q;

	CHECK(w, q->max - q->una <= RC_WINDOW_MAX);
	CHECK(w, q->nxt <= q->max && q->nxt >= q->una);
	CHECK(w, q->rd_out <= q->max_rd_atomic);
	if (q->state == RC_READY && q->una < q->max)
		CHECK(w, q->deadline != SIMTIME_NEVER || rc_can_send(q)); // all waits end
	if (q->state == RC_RNR_WAIT)
		CHECK(w, q->rnr_until != SIMTIME_NEVER && !rc_can_send(q));
}

// One thing happens, chosen at random among what can. False when nothing is left to happen.
static bool step(struct world *w)
{
	struct rc_requester *q = &w->q;
	struct in_flight p = {0};

	w->now += w->tick;
	w->steps++;
	switch (rng_below(&w->rng, 6)) {
	case 0:
	case 1:
		if (rc_can_send(q))
			send_request(w);
		break;
	case 2:
		if (w->there.n != 0)
			at_receiver(w);
		break;
	case 3:
		if (rc_resp_pending(&w->r) != RC_RESP_NONE) {
			rc_tx_response(&w->r, &p.resp);
			put(w, &w->back, &p);
		}
		break;
	case 4:
		if (w->back.n != 0)
			at_sender(w);
		break;
	default:
		post(w);
	}
	if (w->now >= q->deadline)
		after(w, rc_timeout(q, w->now));
	// RNR timers are long: time jumps when nothing else can happen.
	if (q->state == RC_RNR_WAIT && w->there.n == 0 && w->back.n == 0)
		w->now = q->rnr_until;
	rc_rnr_expired(q, w->now);
	completions(w);
	check(w);
	return q->state != RC_ERROR && (w->posted < w->c.wrs || !rc_done(q));
}

// ---- running cases ---------------------------------------------------------------------------

static void at_end(struct world *w)
{
	const struct rc_requester *q = &w->q;

	CHECK(w, w->completed == w->posted);
	if (q->state != RC_ERROR) {
		CHECK(w, w->taken.wr == w->c.wrs && q->status == WC_SUCCESS);
	} else if (q->status == WC_RNR_RETRY_EXC_ERR) {
		CHECK(w, q->rnr_retry != RC_RNR_INFINITE && w->rnrs == q->rnr_retry + 1u);
	} else {
		CHECK(w, q->status == WC_RETRY_EXC_ERR && w->retries == q->retry_cnt + 1u);
	}
}

// True when all held.
static bool run(struct world *w, const struct rc_case *c)
{
	setup(w, c);
	while (w->why[0] == 0 && step(w))
		CHECK(w, w->steps < STEPS_MAX);
	at_end(w);
	return w->why[0] == 0;
}

static void shrink(struct world *w, struct rc_case *c)
{
	uint32_t *knobs[] = {&c->reorder, &c->dup, &c->starve, &c->loss};

	for (unsigned i = 0; i < 4; i++) {
		uint32_t old = *knobs[i];
		*knobs[i] = 0;
		if (run(w, c))
			*knobs[i] = old;
	}
	for (uint32_t n = 1; n < c->wrs; n++) {
		struct rc_case less = *c;
		less.wrs = n;
		if (!run(w, &less))
			*c = less;
	}
	run(w, c);
}

static void print_failure(const struct world *w)
{
	print_error("%s (status %u, retries %u, %u, RNR %u, %u)\nafter %llu steps: repeat with "
		    "RC_CASE=%llu,%u,%u,%u,%u,%u\n",
		w->why, w->q.status, w->retries, w->q.retry_cnt, w->rnrs, w->q.rnr_retry,
		(unsigned long long)w->steps, (unsigned long long)w->c.seed, w->c.wrs, w->c.loss,
		w->c.dup, w->c.reorder, w->c.starve);
}

static void everything_happens_once_and_in_order_whatever_the_channel_does(void **state)
{
	struct world *w = malloc(sizeof(*w));
	const char *env = getenv("RC_CASE");
	uint64_t steps = 0;
	unsigned done = 0, retry = 0, rnr = 0;

	for (uint64_t seed = 1; steps < STEPS_WANTED; seed++) {
		struct rc_case c = make_case(seed);
		if (env != NULL)
			sscanf(env, "%lu,%u,%u,%u,%u,%u", &c.seed, &c.wrs, &c.loss, &c.dup,
				&c.reorder, &c.starve);
		if (!run(w, &c)) {
			if (env == NULL)
				shrink(w, &c);
			print_failure(w);
			free(w);
			fail();
		}
		steps += env != NULL ? STEPS_WANTED : w->steps;
		done += w->q.state != RC_ERROR;
		retry += w->q.status == WC_RETRY_EXC_ERR;
		rnr += w->q.status == WC_RNR_RETRY_EXC_ERR;
	}
	printf("%u done, %u out of retries, %u out of RNR retries, %llu steps\n", done, retry, rnr,
		(unsigned long long)steps);
	if (env == NULL)
		assert_true(done > 100 && retry > 100 && rnr > 20); // all ends were really reached
	free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_happens_once_and_in_order_whatever_the_channel_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
