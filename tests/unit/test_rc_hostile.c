/* SPDX-License-Identifier: BSD-3-Clause */
// Peers that send anything: whatever comes, the responder touches only memory it was told of and
// answers only from it, and the requester keeps its counts in order and completes everything once.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "emu/core/rng.h"
#include "models/uc.h"

#define MTU     256
#define ADDR    UINT64_C(0x10000)
#define LENGTH  2000
#define RECV    700
#define RECV_AT UINT64_C(0x900000)

static struct rng g;
static uint32_t key;

static uint64_t near(uint64_t x, uint32_t span)
{
	return x + rng_below(&g, 2 * span) - span;
}

static struct rc_packet any_packet(uint32_t epsn)
{
	static const uint32_t sizes[] = {0, 1, 8, MTU - 1, MTU, MTU, MTU, MTU + 1, 5000};
	struct rc_packet p = {
		.ack_req = rng_below(&g, 2),
		.psn = rng_below(&g, 3) ? epsn : psn_add(epsn, near(1000000, 12) - 1000000),
		.payload = sizes[rng_below(&g, 9)],
		.rkey = rng_below(&g, 8) ? key : (uint32_t)rng_next(&g),
		.dma_len = rng_below(&g, 2) ? sizes[rng_below(&g, 9)] : rng_below(&g, 2500),
		.remote_addr = rng_below(&g, 8) ? ADDR + 8 * rng_below(&g, 260) : rng_next(&g),
		.imm = rng_below(&g, 50) ? 1 : key,
	};

	do
		p.opcode = (uint8_t)rng_below(&g, 32);
	while (!rc_is_request(p.opcode));
	if (!rc_opcode_rules[p.opcode].plain && rng_below(&g, 20))
		p.payload = 0;
	return p;
}

static bool inside(uint64_t addr, uint64_t bytes, uint64_t from, uint64_t length)
{
	return addr >= from && addr + bytes <= from + length;
}

static void check_taken(const struct rc_packet *p, int res, const struct rc_accept *a)
{
	if (res & RC_RX_DATA && p->payload != 0)
		assert_true(inside(a->addr, p->payload, ADDR, LENGTH) ||
			    inside(a->addr, p->payload, RECV_AT, RECV));
	if (res & RC_RX_ATOMIC)
		assert_true(inside(a->atomic.addr, 8, ADDR, LENGTH) && a->atomic.addr % 8 == 0);
	if (res & RC_RX_RECV_DONE && a->wc_status == WC_SUCCESS && a->wc_op == WR_SEND)
		assert_in_range(a->byte_len, 0, RECV);
}

static void drain(struct rc_responder *r)
{
	struct rc_response out;

	for (unsigned i = rng_below(&g, 12); i > 0 && rc_resp_pending(r) != RC_RESP_NONE; i--) {
		rc_tx_response(r, &out);
		if (out.opcode >= ROCE_READ_RESP_FIRST && out.opcode <= ROCE_READ_RESP_ONLY &&
			out.payload != 0)
			assert_true(inside(out.addr, out.payload, ADDR, LENGTH));
	}
}

static void a_responder_touches_only_what_is_registered(void **state)
{
	uint64_t taken = 0, failed = 0;

	for (uint64_t seed = 1; seed <= 20000; seed++) {
		struct rc_mr mrs[3] = {{0}};
		struct rc_memory memory = {.mr = mrs, .n = 3};
		struct rc_recv ring[4];
		struct rc_rq rq;
		struct rc_resource res[3];
		struct rc_responder_config cfg = {
			.ack_every = 3,
			.payload = MTU,
			.memory = &memory,
			.rq = &rq,
			.resources = res,
			.max_dest_rd_atomic = 3,
			.credits = true,
		};
		struct uc_responder u;
		struct rc_responder r;
		g = rng_stream(seed, 4);
		key = rc_mr_register(&memory, ADDR, LENGTH, 0xf, 9)->rkey;
		rc_rq_init(&rq, ring, 4, false);
		rc_responder_init(&r, &cfg);
		uc_responder_init(&u, &cfg);
		bool uc = seed % 4 == 0;
		for (unsigned i = 0; i < 200; i++) {
			struct rc_recv recv = {.addr = RECV_AT, .length = RECV};
			struct rc_accept a = {0};
			struct rc_packet p = any_packet(uc ? u.r.epsn : r.epsn);
			int got;
			if (rng_below(&g, 3) == 0)
				rc_post_recv(&rq, &recv);
			if (uc) {
				p.opcode |= ROCE_UC;
				if (!uc_is_request(p.opcode))
					continue;
				got = uc_rx_request(&u, 0, &p, &a);
			} else {
				got = rc_rx_request(&r, 0, &p, &a);
			}
			check_taken(&p, got, &a);
			if (got & RC_RX_ATOMIC)
				rc_atomic_done(&r, 0);
			taken += (got & RC_RX_RESULT) == RC_RX_IN_ORDER;
			failed += (got & RC_RX_FAILED) != 0;
			drain(&r);
		}
	}
	assert_true(taken > 50000 && failed > 5000); // it was really tried
}

static void post_something(struct rc_requester *q, uint64_t *posted)
{
	struct rc_wr w = {
		.wr_id = *posted,
		.repeat = 1 + rng_below(&g, 3),
		.length = rng_below(&g, 3 * MTU),
		.op = (uint8_t)rng_below(&g, WR_OP_COUNT),
		.signaled = true,
		.fence = rng_below(&g, 4) == 0,
	};

	if (w.op == WR_CMP_SWAP || w.op == WR_FETCH_ADD)
		w.length = RC_ATOMIC_BYTES;
	int rc = rc_post_send(q, &w);
	*posted += rc == 0 || rc == -32; // EPIPE: to be flushed
}

static void a_requester_completes_everything_once(void **state)
{
	uint64_t ok = 0, errors = 0;

	for (uint64_t seed = 1; seed <= 20000; seed++) {
		struct rc_wqe sq[4];
		struct rc_requester q;
		struct rc_config cfg = {.payload = MTU,
			.window = 40,
			.ack_every = 4,
			.timeout = 50,
			.retry_cnt = 7,
			.rnr_retry = 7,
			.max_rd_atomic = 2,
			.adaptive = seed % 3 == 0,
			.psn = 0xfffff0};
		struct rc_read_place place;
		struct rc_request r;
		struct rc_wc wc;
		uint64_t posted = 0, polled = 0;
		g = rng_stream(seed, 5);
		rc_requester_init(&q, &cfg, sq, 4);
		for (simtime_t now = 0; now < 200; now++) {
			uint32_t psn = psn_add(q.psn0, q.una + rng_below(&g, 12) - 3);
			uint32_t syndrome = rng_below(&g, 16)  ? 0x1f
					    : rng_below(&g, 2) ? rng_below(&g, 32)
							       : rng_below(&g, 256);
			uint32_t aeth = RC_AETH(syndrome, rng_below(&g, 40));
			post_something(&q, &posted);
			while (rc_can_send(&q) && rng_below(&g, 4))
				rc_tx_next(&q, now, &r);
			if (rng_below(&g, 16))
				rc_rx_ack(&q, now, psn, aeth);
			else
				rc_rx_read(&q, now,
					(uint8_t)(ROCE_READ_RESP_FIRST + rng_below(&g, 6)), psn,
					aeth, rng_below(&g, 3) ? MTU : rng_below(&g, MTU), &place);
			rc_timeout(&q, now);
			rc_rnr_expired(&q, rng_below(&g, 2) ? q.rnr_until : now);
			assert_true(q.una <= q.nxt && q.nxt <= q.max && q.max <= q.posted);
			assert_true(q.max - q.una <= RC_WINDOW_MAX);
			for (; rc_poll(&q, &wc); polled++) {
				assert_int_equal(wc.wr_id, polled);
				ok += wc.status == WC_SUCCESS;
				errors += wc.status != WC_SUCCESS;
			}
		}
		rc_error(&q, WC_WR_FLUSH_ERR);
		while (rc_poll(&q, &wc))
			polled++;
		assert_int_equal(polled, posted);
	}
	assert_true(ok > 20000 && errors > 20000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_responder_touches_only_what_is_registered),
		cmocka_unit_test(a_requester_completes_everything_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
