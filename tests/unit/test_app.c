/* SPDX-License-Identifier: BSD-3-Clause */
// The applications against each other on verbs without a network (app_world.h): what they count,
// and that they notice what is wrong.
#include "tests/unit/app_world.h"

#include "pcap/wire.h"
#include "pipelines/app_target.h"

static struct world world;

static int setup(void **state)
{
	world_setup(&world, 1);
	*state = &world;
	return 0;
}

static int teardown(void **state)
{
	world_teardown(&world);
	return 0;
}

// All connections are closed and nothing remains in the managers.
static void nothing_left(struct world *w)
{
	world_run(w, true);
	for (unsigned i = 0; i < NICS; i++) {
		assert_int_equal(cm_in_use(&w->nics[i].cm), 0);
		for (unsigned k = 0; k < CONNS; k++)
			assert_false(w->nics[i].conns[k].used);
	}
}

static void rping_pings(void **state)
{
	struct world *w = *state;
	struct app *s = world_server(w, APP_rping_server, 64, 0, 1);
	struct app *c = world_client(w, 1, APP_rping_client, 1000, 25);

	world_run(w, false);
	assert_int_equal(c->status, APP_ST_DONE);
	assert_int_equal(s->status, APP_ST_DONE);
	// a READ and a WRITE in each ping
	assert_int_equal(s->counts.messages, 50);
	assert_int_equal(s->counts.bytes, 50 * 1000);
	assert_int_equal(c->counts.messages, 50);
	assert_int_equal(c->counts.mismatches + s->counts.mismatches, 0);
	assert_int_equal(s->counts.connections, 1);
	assert_int_equal(s->counts.ended, 1);
	nothing_left(w);
}

// By hand from rping.c: ping 2 begins with 'A' + 2 after its header; letters go from 65 to 122.
static void rping_data_is_that_of_the_program(void **state)
{
	struct world *w = *state;
	struct app *s = world_server(w, APP_rping_server, 64, 0, 1);
	struct app *c = world_client(w, 1, APP_rping_client, 80, 3);

	world_run(w, false);
	assert_int_equal(c->status, APP_ST_DONE);
	assert_int_equal(s->status, APP_ST_DONE);
	// The client's offer is at 128 of its memory, what the server read at 128 of its.
	static const char want[] = "rdma-ping-2: CDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnop"
				   "qrstuvwxyzABCDEFGHIJ"; // 13 + 66, and 0
	assert_int_equal(sizeof(want), 80);
	assert_memory_equal(w->nics[1].memory + 128, want, 80);
	assert_memory_equal(w->nics[0].memory + 128, want, 80);
}

static void server_serves_many_and_refuses_more(void **state)
{
	struct world *w = *state;
	struct app *s = world_server(w, APP_rping_server, 64, 0, 2);
	struct app *c[3];
	unsigned done = 0, refused = 0;

	for (unsigned i = 0; i < 3; i++)
		c[i] = world_client(w, 1 + i, APP_rping_client, 100, 10);
	world_run(w, false);
	for (unsigned i = 0; i < 3; i++) {
		done += c[i]->status == APP_ST_DONE;
		if (c[i]->status == APP_ST_REFUSED) {
			refused++;
			assert_int_equal(c[i]->detail, CM_REJ_CONSUMER);
		}
	}
	assert_int_equal(done, 2);
	assert_int_equal(refused, 1);
	assert_int_equal(s->counts.ended, 2);
	assert_int_equal(s->counts.messages, 2 * 2 * 10);
	nothing_left(w);
}

static void cmatose_exchanges_and_server_disconnects(void **state)
{
	struct world *w = *state;
	struct app *s = world_server(w, APP_cmatose_server, 300, 20, 1);
	struct app *c = world_client(w, 1, APP_cmatose_client, 300, 20);

	world_run(w, false);
	assert_int_equal(s->status, APP_ST_DONE);
	assert_int_equal(c->status, APP_ST_DONE);
	assert_int_equal(s->counts.messages, 20);
	assert_int_equal(s->counts.bytes, 6000);
	assert_int_equal(c->counts.messages, 20);
	nothing_left(w);
}

// The server's messages are a byte shorter than the client expects, whose answers then do not fit.
static void cmatose_notices_wrong_length(void **state)
{
	struct world *w = *state;
	struct app *s = world_server(w, APP_cmatose_server, 300, 20, 1);
	struct app *c = world_client(w, 1, APP_cmatose_client, 301, 20);

	world_run(w, false);
	assert_int_equal(c->counts.mismatches, 20);
	assert_int_equal(c->status, APP_ST_MISMATCH);
	assert_int_equal(s->status, APP_ST_COMPLETION);
	assert_int_equal(s->detail, WC_LOC_LEN_ERR);
	nothing_left(w);
}

static void udaddy_answers(void **state)
{
	struct world *w = *state;
	struct app *s = world_server(w, APP_udaddy_server, 200, 10, 3);
	struct app *c[3];

	for (unsigned i = 0; i < 3; i++)
		c[i] = world_client(w, 1 + i, APP_udaddy_client, 200, 10);
	world_run(w, false);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(c[i]->status, APP_ST_DONE);
		assert_int_equal(c[i]->counts.messages, 10);
		assert_int_equal(c[i]->counts.bytes, 2000);
	}
	assert_int_equal(s->status, APP_ST_DONE);
	assert_int_equal(s->counts.ended, 3);
	assert_int_equal(s->counts.messages, 30);
	assert_int_equal(s->counts.mismatches, 0);
	nothing_left(w);
}

static void udaddy_waits_for_what_is_lost(void **state)
{
	struct world *w = *state;
	struct app *s = world_server(w, APP_udaddy_server, 200, 10, 1);
	struct app *c = world_client(w, 1, APP_udaddy_client, 200, 10);

	w->lose_datagrams = 1;
	world_run(w, true);
	assert_int_equal(s->status, APP_ST_RUNNING);
	assert_int_equal(c->status, APP_ST_RUNNING);
	assert_int_equal(s->counts.messages, 9);
}

static void initiator_checks_a_target(void **state)
{
	struct world *w = *state;
	struct app *s = world_server(w, APP_target, 5000, 0, 3);
	struct app *c[3];

	for (unsigned i = 0; i < 3; i++)
		c[i] = world_client(w, 1 + i, APP_initiator, 5000 - i, 7);
	world_run(w, false);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(c[i]->status, APP_ST_DONE);
		// WRITE, READ, three atomics, echo
		assert_int_equal(c[i]->counts.messages, 7 * 6);
		assert_int_equal(c[i]->counts.bytes, 7 * (3 * (5000 - i) + 24));
	}
	assert_int_equal(s->status, APP_ST_DONE);
	assert_int_equal(s->counts.messages, 3 * 7);
	assert_int_equal(s->counts.ended, 3);
	nothing_left(w);
}

// A round is 7 work requests: WRITE, READ, 3 atomics, SEND and its echo. Whichever of the second
// round's goes wrong, the initiator says so.
static void every_wrong_byte_is_noticed(void **state)
{
	for (unsigned at = 8; at <= 14; at++) {
		struct world w;
		world_setup(&w, at);
		w.corrupt_at = at;
		world_server(&w, APP_target, 100, 0, 1);
		struct app *c = world_client(&w, 1, APP_initiator, 100, 2);
		world_run(&w, false);
		assert_int_equal(c->status, APP_ST_MISMATCH);
		assert_int_equal(c->counts.mismatches, 1);
		world_teardown(&w);
	}
}

// So do both ends of rping: a READ that goes wrong is the server's to notice, and then the client's
// too, who gets it back; a WRITE the client's. Requests of a ping: SEND, READ, SEND, SEND, WRITE,
// SEND.
static void rping_notices_wrong_data(void **state)
{
	for (unsigned at = 2; at <= 5; at += 3) {
		struct world w;
		world_setup(&w, at);
		w.corrupt_at = at;
		struct app *s = world_server(&w, APP_rping_server, 64, 0, 1);
		struct app *c = world_client(&w, 1, APP_rping_client, 64, 2);
		world_run(&w, false);
		assert_int_equal(s->counts.mismatches, at == 2);
		assert_int_equal(c->counts.mismatches, 1);
		assert_int_equal(c->status, APP_ST_MISMATCH);
		world_teardown(&w);
	}
}

// Whichever work request fails, both ends notice and nothing is left.
static void failed_work_ends_the_connection(void **state)
{
	for (unsigned at = 1; at <= 14; at++) {
		struct world w;
		world_setup(&w, at);
		w.fail_at = at;
		struct app *s = world_server(&w, APP_target, 100, 0, 1);
		struct app *c = world_client(&w, 1, APP_initiator, 100, 2);
		world_run(&w, false);
		bool echo = at % 7 == 0; // the target's own
		assert_int_equal(c->status, echo ? APP_ST_BROKEN : APP_ST_COMPLETION);
		if (!echo)
			assert_int_equal(c->detail, WC_RETRY_EXC_ERR);
		if (echo)
			assert_int_equal(s->status, APP_ST_COMPLETION);
		nothing_left(&w);
		world_teardown(&w);
	}
}

static void nobody_listens(void **state)
{
	struct world *w = *state;

	world_server(w, APP_cmatose_server, 64, 1, 1);
	struct app *c = world_client(w, 1, APP_rping_client, 64, 1); // another port
	world_run(w, true);
	assert_int_equal(c->status, APP_ST_REFUSED);
	assert_int_equal(c->detail, CM_REJ_INVALID_SERVICE_ID);
	nothing_left(w);
}

static void nobody_is_there(void **state)
{
	struct world *w = *state;
	struct app_config cfg;

	app_config_default(APP_rping_client, &cfg);
	gid_from_ipv4(cfg.server_gid, 0x0a0000fe);
	struct app *c = world_start(w, 1, APP_rping_client, &cfg);
	world_run(w, true);
	assert_int_equal(c->status, APP_ST_UNREACHABLE);
	nothing_left(w);
}

// The peer of an rping server offers more than its buffer holds: memory is safe, the connection
// ends.
static void rping_server_refuses_what_does_not_fit(void **state)
{
	struct world *w = *state;
	struct app *s = world_server(w, APP_rping_server, 64, 0, 1);
	struct app *c = world_client(w, 1, APP_rping_client, 64, 5);

	c->cfg.size = 70000; // after start: only what it says
	world_run(w, false);
	assert_int_equal(s->status, APP_ST_UNEXPECTED);
	assert_int_equal(c->status, APP_ST_BROKEN);
	nothing_left(w);
}

static void target_smaller_than_wanted_is_not_used(void **state)
{
	struct world *w = *state;

	world_server(w, APP_target, 64, 0, 1);
	struct app *c = world_client(w, 1, APP_initiator, 65, 5);
	world_run(w, false);
	assert_int_equal(c->status, APP_ST_UNEXPECTED);
	nothing_left(w);
}

static void configurations_out_of_bounds_do_not_start(void **state)
{
	struct world *w = *state;
	struct app_config cfg;

	app_config_default(APP_rping_client, &cfg);
	cfg.size = app_limits(APP_rping_client).size_min - 1;
	struct app *a = malloc(app_bytes(APP_rping_client));
	assert_false(app_start(a, APP_rping_client, &cfg, &w->nics[1].env));
	assert_int_equal(a->status, APP_ST_LOCAL);
	assert_int_equal(a->detail, -EINVAL);
	app_config_default(APP_cmatose_server, &cfg);
	cfg.count = APP_DEPTH + 1;
	assert_false(app_start(a, APP_cmatose_server, &cfg, &w->nics[1].env));
	app_config_default(APP_target, &cfg);
	cfg.connections = APP_CONNECTIONS + 1;
	assert_false(app_start(a, APP_target, &cfg, &w->nics[1].env));
	free(a);
}

static void patterns_tell_rounds_and_places_apart(void **state)
{
	uint8_t a[1024];

	target_fill(a, sizeof(a), TARGET_WRITTEN, 3);
	assert_int_equal(target_check(a, sizeof(a), TARGET_WRITTEN, 3), sizeof(a));
	assert_int_equal(target_check(a, sizeof(a), TARGET_WRITTEN, 4), 0);
	assert_int_equal(target_check(a, sizeof(a), TARGET_SENT, 3), 0);
	a[700] ^= 0x80;
	assert_int_equal(target_check(a, sizeof(a), TARGET_WRITTEN, 3), 700);
	assert_memory_not_equal(a, a + 256, 256);
	assert_int_equal(target_sum(0), 0);
	assert_int_equal(target_sum(4), 10);
}

#define with_world(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_world(rping_pings),
		with_world(rping_data_is_that_of_the_program),
		with_world(server_serves_many_and_refuses_more),
		with_world(cmatose_exchanges_and_server_disconnects),
		with_world(cmatose_notices_wrong_length),
		with_world(udaddy_answers),
		with_world(udaddy_waits_for_what_is_lost),
		with_world(initiator_checks_a_target),
		cmocka_unit_test(every_wrong_byte_is_noticed),
		cmocka_unit_test(rping_notices_wrong_data),
		cmocka_unit_test(failed_work_ends_the_connection),
		with_world(nobody_listens),
		with_world(nobody_is_there),
		with_world(rping_server_refuses_what_does_not_fit),
		with_world(target_smaller_than_wanted_is_not_used),
		with_world(configurations_out_of_bounds_do_not_start),
		cmocka_unit_test(patterns_tell_rounds_and_places_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
