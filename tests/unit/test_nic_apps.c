/* SPDX-License-Identifier: BSD-3-Clause */
// Applications in two built-in NICs joined by a cable: connected by rdma_cm's messages, every byte
// checked, over paths that lose and reorder, and refused or unreachable when they should be. A
// failure of the random case prints its seed; NIC_SEED=n repeats one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "nic_chance.h"
#include "pcap/icrc.h"
#include "pipelines/nic_apps.h"

#define FULL_FRAMES 2047
#define FULL_ROOM   (RTE_PKTMBUF_HEADROOM + 4096 + 128)

static struct rte_mempool *full_pool(void)
{
	static struct rte_mempool *pool;

	rig_pool();
	if (pool == NULL)
		pool = rte_pktmbuf_pool_create(
			"full", FULL_FRAMES, 32, sizeof(struct frame), FULL_ROOM, SOCKET_ID_ANY);
	assert_non_null(pool);
	return pool;
}

static struct rig *new_rig(bool tapped, uint64_t seed)
{
	struct nic_config cfg = nic_config_default();

	cfg.seed = seed;
	cfg.ack_every = 8;
	struct rte_mempool *full = full_pool();
	struct rig *r = rig_new(&cfg, tapped);
	for (unsigned i = 0; i < 2; i++)
		r->nic[i]->pool.full = full;
	r->tap.pool.full = full;
	return r;
}

static void end(struct rig *r)
{
	char why[200];

	if (!rig_end(r, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(rte_mempool_avail_count(full_pool()), FULL_FRAMES);
}

static struct nic_app_config app_of(enum app_kind kind, bool ipv6)
{
	struct nic_app_config c = {.kind = kind, .ipv6 = ipv6, .dscp = 26, .tc = 3, .mtu = 1024};
	struct nic_port_config b = rig_port(RIG_B);

	app_config_default(kind, &c.app);
	if (ipv6)
		memcpy(c.app.server_gid, b.ip6, GID_BYTES);
	else
		gid_from_ipv4(c.app.server_gid, RIG_B_IP);
	c.rdma_cm_timeout = 4 * SIM_MS; // exponent 10: repeats soon
	return c;
}

struct pair {
	enum app_kind server, client;
};

static const struct pair pairs[] = {
	{APP_rping_server, APP_rping_client},
	{APP_cmatose_server, APP_cmatose_client},
	{APP_udaddy_server, APP_udaddy_client},
	{APP_target, APP_initiator},
};

static struct nic_app_result result(struct rig *r, enum rig_side side)
{
	struct nic_app_result out;

	assert_int_equal(nic_app_result(r->nic[side], 0, &out), 0);
	return out;
}

static void begin(struct rig *r, const struct pair *p, bool ipv6, uint32_t size, uint32_t count)
{
	struct nic_app_config s = app_of(p->server, ipv6), c = app_of(p->client, ipv6);

	s.app.size = c.app.size = size;
	c.app.count = count;
	if (s.app.count != 0)
		s.app.count = count;
	c.start = 10 * SIM_US;
	assert_int_equal(nic_add_app(r->nic[RIG_B], &s), 0);
	assert_int_equal(nic_add_app(r->nic[RIG_A], &c), 0);
	rig_start(r);
}

static void each_program_talks_to_its_like(void **state)
{
	for (unsigned i = 0; i < RTE_DIM(pairs); i++) {
		for (unsigned ipv6 = 0; ipv6 < 2; ipv6++) {
			struct rig *r = new_rig(false, 1);
			begin(r, &pairs[i], ipv6,
				pairs[i].client == APP_udaddy_client ? 1000 : 5000, 10);
			rig_run(r, 10 * SIM_S);
			struct nic_app_result c = result(r, RIG_A), s = result(r, RIG_B);
			if (c.status != APP_ST_DONE || s.status != APP_ST_DONE)
				fail_msg("%s: %s (%d), %s: %s (%d)", app_name(pairs[i].client),
					app_status_name(c.status), c.detail,
					app_name(pairs[i].server), app_status_name(s.status),
					s.detail);
			assert_int_equal(c.counts.mismatches + s.counts.mismatches, 0);
			assert_int_equal(c.counts.connections, 1);
			assert_true(c.counts.messages >= 10 && c.ended < 10 * SIM_S);
			assert_int_equal(nic_open_apps(r->nic[RIG_A]), 0);
			assert_int_equal(c.retransmitted + s.retransmitted, 0);
			end(r);
		}
	}
}

static uint64_t bad_frames;

// What passes is a whole RoCE packet with a right ICRC.
static bool random_path(struct rig *r, enum rig_side from, struct frame *f)
{
	struct pkt p;

	if (pkt_parse(frame_data(f), f->len, &p) != PKT_OK || p.bth_off == 0 || !pkt_icrc_valid(&p))
		bad_frames++;
	return chance_path(r, from, f);
}

static void random_run(uint64_t seed)
{
	chance = rng_stream(seed, 7);
	loss_per_1024 = rng_below(&chance, 60);
	holds_per_1024 = rng_below(&chance, 60);
	const struct pair *p = &pairs[rng_below(&chance, RTE_DIM(pairs))];
	bool ud = p->client == APP_udaddy_client;
	struct rig *r = new_rig(true, seed);

	if (ud) // a datagram that is lost stays lost
		loss_per_1024 = 0;
	r->on_frame = random_path;
	begin(r, p, rng_below(&chance, 2), 1 + 8 * rng_below(&chance, ud ? 100 : 2000) + 63,
		1 + rng_below(&chance, 30));
	for (simtime_t t = 0; t < 200 * SIM_S && nic_open_apps(r->nic[RIG_A]) != 0; t += SIM_MS) {
		rig_run(r, t);
		release_held(r);
	}
	rig_run(r, 300 * SIM_S);
	release_held(r);
	rig_run(r, 301 * SIM_S);
	struct nic_app_result c = result(r, RIG_A), s = result(r, RIG_B);
	if (c.status != APP_ST_DONE)
		fail_msg("seed %lu: %s: %s (%d), server %s (%d)", seed, app_name(p->client),
			app_status_name(c.status), c.detail, app_status_name(s.status), s.detail);
	assert_int_equal(c.counts.mismatches + s.counts.mismatches, 0);
	assert_int_equal(bad_frames, 0);
	end(r);
}

static void programs_survive_loss_and_reordering(void **state)
{
	run_seeds(random_run, 60);
}

static void nobody_listening_refuses(void **state)
{
	struct rig *r = new_rig(false, 3);
	struct nic_app_config s = app_of(APP_target, false), c = app_of(APP_initiator, false);

	s.app.port = 1; // another
	assert_int_equal(nic_add_app(r->nic[RIG_B], &s), 0);
	assert_int_equal(nic_add_app(r->nic[RIG_A], &c), 0);
	rig_start(r);
	rig_run(r, SIM_S);
	assert_int_equal(result(r, RIG_A).status, APP_ST_REFUSED);
	assert_int_equal(
		result(r, RIG_A).detail, CM_REJ_INVALID_SERVICE_ID); // 8: invalid service ID
	assert_int_equal(nic_open_apps(r->nic[RIG_A]), 0);
	end(r);
}

static bool swallow(struct rig *r, enum rig_side from, struct frame *f)
{
	return false;
}

static void silence_is_unreachable(void **state)
{
	struct rig *r = new_rig(true, 4);
	const struct pair p = {APP_target, APP_initiator};

	r->on_frame = swallow;
	begin(r, &p, false, 4096, 1);
	rig_run(r, 100 * SIM_S);
	assert_int_equal(result(r, RIG_A).status, APP_ST_UNREACHABLE);
	assert_int_equal(nic_open_apps(r->nic[RIG_A]), 0);
	end(r);
}

static bool swallow_rc(struct rig *r, enum rig_side from, struct frame *f)
{
	struct pkt p;

	return pkt_parse(frame_data(f), f->len, &p) == PKT_OK && p.opcode >= ROCE_UD;
}

// Connected, then every RC packet is lost: retries run out, and the program hears it by name.
static void lost_requests_end_in_retry_exceeded(void **state)
{
	struct rig *r = new_rig(true, 5);
	const struct pair p = {APP_target, APP_initiator};

	r->on_frame = swallow_rc;
	begin(r, &p, false, 4096, 1);
	rig_run(r, 100 * SIM_S);
	struct nic_app_result c = result(r, RIG_A);
	assert_int_equal(c.status, APP_ST_COMPLETION);
	assert_int_equal(c.detail, WC_RETRY_EXC_ERR);
	assert_int_equal(c.timeouts, 8); // retry_cnt 7, and the last straw
	end(r);
}

static void bad_settings_are_refused(void **state)
{
	struct rig *r = new_rig(false, 6);
	struct nic_app_config c = app_of(APP_target, false);

	c.mtu = 1000;
	assert_int_equal(nic_add_app(r->nic[RIG_A], &c), -EINVAL);
	c.mtu = 1024;
	c.port = 1;
	assert_int_equal(nic_add_app(r->nic[RIG_A], &c), -EINVAL);
	c.port = 0;
	c.app.connections = APP_CONNECTIONS + 1;
	assert_int_equal(nic_add_app(r->nic[RIG_A], &c), -EINVAL);
	assert_int_equal(nic_app_result(r->nic[RIG_A], 0, &(struct nic_app_result){0}), -ENOENT);
	end(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_program_talks_to_its_like),
		cmocka_unit_test(programs_survive_loss_and_reordering),
		cmocka_unit_test(nobody_listening_refuses),
		cmocka_unit_test(silence_is_unreachable),
		cmocka_unit_test(lost_requests_end_in_retry_exceeded),
		cmocka_unit_test(bad_settings_are_refused),
	};
	int failures = cmocka_run_group_tests(tests, NULL, NULL);

	if (failures)
		printf("repeat with NIC_SEED=%lu\n", current_seed);
	return failures;
}
