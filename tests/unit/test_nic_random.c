/* SPDX-License-Identifier: BSD-3-Clause */
// Random flows both ways between two built-in NICs of any loss recovery over a path that loses and
// reorders: each ends complete, or with its retries used up; every frame is accounted for. A
// failure prints its seed; NIC_SEED=n repeats one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "nic_chance.h"

static void end(struct rig *r)
{
	char why[200];

	if (!rig_end(r, why, sizeof(why)))
		fail_msg("%s", why);
}

static struct nic_config random_config(uint64_t seed)
{
	struct nic_config cfg = nic_config_default();

	cfg.seed = seed;
	cfg.timeout = 1; // 8.192 us
	cfg.retry_cnt = 7;
	cfg.ack_every = 1 + rng_below(&chance, 20);
	cfg.window = 1 + rng_below(&chance, 200);
	cfg.recovery = rng_below(&chance, 2) ? NIC_SELECTIVE_REPEAT : NIC_GO_BACK_N;
	cfg.ooo = rng_below(&chance, 2) * rng_below(&chance, 40);
	cfg.ooo_time = rng_below(&chance, 2) * rng_below(&chance, 1000) * SIM_NS;
	cfg.bdp_cap = rng_below(&chance, 2) * rng_below(&chance, 100000);
	cfg.max_rd_atomic = (uint8_t)(1 + rng_below(&chance, 8));
	cfg.adaptive = cfg.recovery == NIC_GO_BACK_N && rng_below(&chance, 4) == 0;
	if (rng_below(&chance, 3) == 0) {
		cfg.recv_depth = 1 + rng_below(&chance, 20);
		cfg.recv_rate = rng_below(&chance, 2) * 100000;
		cfg.min_rnr_timer = (uint8_t)(1 + rng_below(&chance, 10));
		cfg.rnr_retry = rng_below(&chance, 2) ? 7 : 6;
	}
	cfg.rto_low = 5 * SIM_US;
	cfg.rto_high = cfg.rto_low + rng_below(&chance, 10) * SIM_US;
	return cfg;
}

// Any operation and transport that goes with the recovery.
static void random_op(const struct nic_config *cfg, struct nic_flow_config *f)
{
	bool keeps = cfg->recovery == NIC_SELECTIVE_REPEAT || cfg->ooo != 0;

	f->transport = (enum qp_transport)(rng_below(&chance, 2) * rng_below(&chance, 3));
	f->roce1 = cfg->recovery != NIC_SELECTIVE_REPEAT && rng_below(&chance, 4) == 0;
	do
		f->op = (enum wr_op)rng_below(&chance, WR_SEND_INV);
	while (wr_is_rd_atomic(f->op) && (keeps || f->transport != QP_RC));
	if (f->transport == QP_UD) {
		f->op = rng_below(&chance, 2) ? WR_SEND : WR_SEND_IMM;
		f->message_bytes = 1 + f->message_bytes % NIC_DEFAULT_PAYLOAD;
	}
	if (f->op == WR_CMP_SWAP || f->op == WR_FETCH_ADD)
		f->message_bytes = 8;
}

// Whether what a flow says of itself can be.
static void check_result(
	const struct nic_config *cfg, const struct nic_flow_config *f, struct nic_flow_result res)
{
	uint64_t bytes = f->messages * f->message_bytes * f->qps;

	assert_true(res.delivered_bytes <= bytes);
	if (f->transport != QP_RC)
		assert_true(res.done); // whatever arrived
	else if (res.done)
		assert_int_equal(res.delivered_bytes, bytes);
	else if (res.status != WC_RNR_RETRY_EXC_ERR || cfg->recv_depth == 0)
		assert_int_equal(res.status, WC_RETRY_EXC_ERR); // eight losses in a row
}

static void random_loss_run(uint64_t seed)
{
	chance = rng_stream(seed, 1);
	struct nic_config cfg = random_config(seed);
	struct rig *r = rig_new(&cfg, true);
	struct nic_flow_config flow[4];

	r->on_frame = chance_path;
	loss_per_1024 = rng_below(&chance, 150);
	holds_per_1024 = rng_below(&chance, 2) * rng_below(&chance, 300);
	for (uint32_t i = 0; i < 4; i++) { // two each way
		flow[i] = rig_flow(i, 1 + rng_below(&chance, 20000));
		random_op(&cfg, &flow[i]);
		flow[i].messages = 1 + rng_below(&chance, 10);
		flow[i].qps = 1 + rng_below(&chance, 3);
		flow[i].tc = (uint8_t)rng_below(&chance, 8);
		flow[i].ipv6 = rng_below(&chance, 2);
		flow[i].rate_bps = rng_below(&chance, 3) ? 0 : UINT64_C(20000000000);
		assert_int_equal(nic_add_flow(r->nic[i & 1], r->nic[1 - (i & 1)], &flow[i]), 0);
	}
	rig_start(r);
	rig_run(r, 100 * SIM_MS);
	for (uint32_t i = 0; i < 4; i++) {
		struct nic_flow_result res;
		assert_int_equal(nic_flow_result(r->nic[i & 1], i, &res), 0);
		check_result(&cfg, &flow[i], res);
	}
	assert_int_equal(nic_open_flows(r->nic[0]) + nic_open_flows(r->nic[1]), 0);
	if (r->held != NULL)
		node_drop(&r->tap, held_from == RIG_A ? 0 : 1, r->held, DROP_LANE_ERROR);
	end(r);
}

static void flows_survive_loss_and_reordering(void **state)
{
	run_seeds(random_loss_run, 400);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flows_survive_loss_and_reordering),
	};
	int failures = cmocka_run_group_tests(tests, NULL, NULL);

	if (failures)
		printf("repeat with NIC_SEED=%lu\n", current_seed);
	return failures;
}
