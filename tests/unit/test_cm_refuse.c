/* SPDX-License-Identifier: BSD-3-Clause */
// Requests that are refused, connections that one side has forgotten, datagram services.
#include "tests/unit/cm_rig.h"

#include <errno.h>

// The status with which A's request ends.
static int refused(struct rig *r, const struct cm_connect *c)
{
	struct cm_id *id;

	assert_int_equal(cm_connect(&r->a.cm, r->now, c, &id), 0);
	rig_move(r);
	rig_no_event(&r->b);
	int status = rig_event(&r->a, CM_EV_REJECTED)->status;
	assert_int_equal(id->state, CM_IDLE);
	assert_int_equal(cm_destroy(&r->a.cm, r->now, id), 0);
	assert_int_equal(cm_in_use(&r->a.cm) + cm_in_use(&r->b.cm), 0);
	return status;
}

static void what_cannot_be_granted_is_refused_with_the_reason(void **state)
{
	struct cm_connect c;
	struct rig r;

	rig_setup(&r);
	c = rig_request(&r);
	c.service_id = cma_service_id(CMA_PS_TCP, 7175);
	assert_int_equal(refused(&r, &c), 8);

	c = rig_request(&r);
	c.transport = CM_UC;
	assert_int_equal(refused(&r, &c), 9);

	c = rig_request(&r);
	c.mtu = 3;
	r.b.cm.cfg.mtu = 2;
	assert_int_equal(refused(&r, &c), 26);
	cm_unlisten(&r.b.cm, SERVICE);
	assert_int_equal(refused(&r, &c), 8);
	c.mtu = 4; // more than our own
	struct cm_id *id;
	assert_int_equal(cm_connect(&r.a.cm, 0, &c, &id), -EINVAL);
}

// The REJ of an MTU that is too large says what would do (IBTA table 109).
static void refusal_of_the_mtu_names_ours(void **state)
{
	struct cm_connect c;
	struct cm_mad m;
	struct cm_out o;
	struct cm_id *id;
	struct rig r;

	rig_setup(&r);
	r.b.cm.cfg.mtu = 2;
	c = rig_request(&r);
	cm_connect(&r.a.cm, 0, &c, &id);
	rig_move_one(&r, &r.a, &r.b);
	assert_true(cm_next_mad(&r.b.cm, &o));
	assert_int_equal(cm_mad_parse(o.mad, MAD_BYTES, &m), MAD_OK);
	assert_int_equal(m.rej.info_length, 1);
	assert_int_equal(m.rej.info[0], 2);
	assert_int_equal(m.rej.remote_comm_id, id->comm_id);
}

// A request by hand, with one thing wrong.
static uint16_t reason_for(struct rig *r, struct cm_mad *m)
{
	uint8_t bytes[MAD_BYTES];
	struct cm_out o;

	cm_mad_build(m, bytes);
	cm_rx(&r->b.cm, 0, r->a.gid, r->b.gid, bytes, MAD_BYTES);
	assert_true(cm_next_mad(&r->b.cm, &o));
	assert_int_equal(cm_mad_parse(o.mad, MAD_BYTES, m), MAD_OK);
	assert_int_equal(m->hdr.attr_id, CM_ATTR_REJ);
	assert_int_equal(m->rej.message_rejected, CM_ANSWERS_REQ);
	assert_int_equal(cm_in_use(&r->b.cm), 0);
	return m->rej.reason;
}

static void requests_that_contradict_themselves_are_refused(void **state)
{
	struct cm_connect c;
	struct cm_out o;
	struct cm_mad m, good;
	struct cm_id *id;
	struct rig r;

	rig_setup(&r);
	c = rig_request(&r);
	cm_connect(&r.a.cm, 0, &c, &id);
	assert_true(cm_next_mad(&r.a.cm, &o));
	assert_int_equal(cm_mad_parse(o.mad, MAD_BYTES, &good), MAD_OK);

	m = good;
	m.req.primary_remote_gid[15]++; // not the address it came to
	assert_int_equal(reason_for(&r, &m), 12);
	m = good;
	m.req.path_mtu = 0;
	assert_int_equal(reason_for(&r, &m), 26);
	m = good;
	m.req.private_data[0] = 1; // version of rdma_cm's header
	assert_int_equal(reason_for(&r, &m), 28);
	m = good;
	m.req.private_data[1] = 0x50; // IP version
	assert_int_equal(reason_for(&r, &m), 28);
}

static void the_application_may_say_no(void **state)
{
	struct cm_id *a;
	struct rig r;

	rig_setup(&r);
	struct cm_id *b = rig_ask(&r, &a);
	assert_int_equal(cm_reject(&r.b.cm, 0, b, CM_REJ_CONSUMER, "sorry", 5), 0);
	rig_move(&r);
	const struct cm_event *e = rig_event(&r.a, CM_EV_REJECTED);
	assert_int_equal(e->status, 28);
	assert_memory_equal(e->private_data, "sorry\0", 6);
	assert_int_equal(a->state, CM_IDLE);
	assert_int_equal(b->state, CM_IDLE);
	assert_int_equal(cm_reject(&r.b.cm, 0, b, CM_REJ_CONSUMER, NULL, 0), -EINVAL);
	struct cm_accept acc = rig_answer();
	assert_int_equal(cm_accept(&r.b.cm, 0, b, &acc), -EINVAL);
}

// The REJ is lost; the repeated REQ is a new one for B, and refused again.
static void lost_refusal_is_asked_for_again(void **state)
{
	struct cm_id *a;
	struct rig r;

	rig_setup(&r);
	struct cm_id *b = rig_ask(&r, &a);
	r.lose_attr = CM_ATTR_REJ;
	r.lose = 1;
	assert_int_equal(cm_destroy(&r.b.cm, 0, b), 0);
	rig_move(&r);
	rig_no_event(&r.a);
	rig_run(&r, r.a.cm.deadline);
	b = rig_event(&r.b, CM_EV_CONNECT_REQUEST)->id;
	assert_int_equal(cm_destroy(&r.b.cm, r.now, b), 0);
	rig_move(&r);
	assert_int_equal(rig_event(&r.a, CM_EV_REJECTED)->status, CM_REJ_CONSUMER);
	assert_int_equal(cm_in_use(&r.b.cm), 0);
}

static void without_a_free_slot_there_are_no_resources(void **state)
{
	struct cm_connect c;
	struct cm_id *id;
	struct rig r;

	rig_setup(&r);
	for (unsigned i = 0; i < RIG_IDS; i++) {
		c = rig_request(&r);
		c.qpn = 100 + i;
		assert_int_equal(cm_connect(&r.a.cm, 0, &c, &id), 0);
		rig_move(&r);
		rig_event(&r.b, CM_EV_CONNECT_REQUEST);
	}
	assert_int_equal(cm_connect(&r.a.cm, 0, &c, &id), -ENOMEM);
	assert_int_equal(cm_destroy(&r.a.cm, 0, &r.a.ids[0]), 0); // B loses its REJ ..
	struct cm_out o;
	assert_true(cm_next_mad(&r.a.cm, &o));
	c.qpn = 999;
	assert_int_equal(cm_connect(&r.a.cm, 0, &c, &id), 0); // .. so has no slot for this
	rig_move(&r);
	assert_int_equal(rig_event(&r.a, CM_EV_REJECTED)->status, 3);
}

// A was restarted and uses queue pair 0x1a again, under a new ID: B refuses, ends what it thought
// it had (A agrees), and the next attempt succeeds.
static void new_life_of_a_queue_pair_ends_the_old(void **state)
{
	struct cm_config cfg = rig_config(RIG_GUID_A);
	struct cm_connect c;
	struct cm_id *a;
	struct rig r;

	rig_setup(&r);
	struct rig_pair p = rig_connected(&r);
	cfg.seed = 4711;
	cm_init(&r.a.cm, &cfg, r.a.ids, RIG_IDS);
	c = rig_request(&r);
	assert_int_equal(cm_connect(&r.a.cm, 0, &c, &a), 0);
	rig_move(&r);
	assert_int_equal(rig_event(&r.a, CM_EV_REJECTED)->status, CM_REJ_STALE_CONN);
	assert_int_equal(rig_event(&r.b, CM_EV_DISCONNECTED)->status, 0);
	assert_int_equal(p.b->state, CM_TIMEWAIT);
	assert_int_equal(cm_destroy(&r.a.cm, 0, a), 0);
	rig_connected(&r);
}

static void late_copy_of_an_ended_request_is_stale(void **state)
{
	struct cm_accept acc = rig_answer();
	struct cm_connect c;
	struct cm_out req, o;
	struct cm_mad m;
	struct cm_id *a;
	struct rig r;

	rig_setup(&r);
	c = rig_request(&r);
	cm_connect(&r.a.cm, 0, &c, &a);
	assert_true(cm_next_mad(&r.a.cm, &req));
	cm_rx(&r.b.cm, 0, r.a.gid, r.b.gid, req.mad, MAD_BYTES);
	cm_accept(&r.b.cm, 0, rig_event(&r.b, CM_EV_CONNECT_REQUEST)->id, &acc);
	rig_move(&r);
	cm_disconnect(&r.a.cm, 0, a);
	rig_move(&r);
	cm_rx(&r.b.cm, 0, r.a.gid, r.b.gid, req.mad, MAD_BYTES);
	assert_true(cm_next_mad(&r.b.cm, &o));
	assert_int_equal(cm_mad_parse(o.mad, MAD_BYTES, &m), MAD_OK);
	assert_int_equal(m.rej.reason, CM_REJ_STALE_CONN);
}

// A forgot its question before the REP came: B learns at once.
static void answer_to_a_forgotten_question_is_refused(void **state)
{
	struct cm_accept acc = rig_answer();
	struct cm_out rej;
	struct cm_id *a;
	struct rig r;

	rig_setup(&r);
	struct cm_id *b = rig_ask(&r, &a);
	assert_int_equal(cm_destroy(&r.a.cm, 0, a), 0);
	assert_true(cm_next_mad(&r.a.cm, &rej)); // is lost
	cm_accept(&r.b.cm, 0, b, &acc);
	rig_move(&r);
	assert_int_equal(rig_event(&r.b, CM_EV_REJECTED)->status, CM_REJ_INVALID_COMM_ID);
	assert_int_equal(cm_destroy(&r.b.cm, 0, b), 0);
	rig_run(&r, 10 * SIM_S);
	assert_int_equal(cm_in_use(&r.a.cm) + cm_in_use(&r.b.cm), 0);
}

static void end_of_an_unknown_connection_is_agreed_to(void **state)
{
	uint8_t bytes[MAD_BYTES];
	struct cm_mad m;
	struct cm_out o;
	struct rig r;

	rig_setup(&r);
	cm_mad_init(&m, CM_ATTR_DREQ, 42);
	m.dreq.local_comm_id = 1;
	m.dreq.remote_comm_id = 2;
	cm_mad_build(&m, bytes);
	cm_rx(&r.b.cm, 0, r.a.gid, r.b.gid, bytes, MAD_BYTES);
	assert_true(cm_next_mad(&r.b.cm, &o));
	assert_int_equal(cm_mad_parse(o.mad, MAD_BYTES, &m), MAD_OK);
	assert_int_equal(m.hdr.attr_id, CM_ATTR_DREP);
	assert_int_equal(m.hdr.tid, 42);
	assert_int_equal(m.drep.local_comm_id, 2);
	assert_int_equal(m.drep.remote_comm_id, 1);
}

// IDs alone do not speak for a connection.
static void strangers_cannot_end_a_connection(void **state)
{
	uint8_t bytes[MAD_BYTES], stranger[GID_BYTES];
	struct cm_mad m;
	struct rig r;

	rig_setup(&r);
	struct rig_pair p = rig_connected(&r);
	gid_from_ipv4(stranger, 0x0a000063);
	cm_mad_init(&m, CM_ATTR_DREQ, 42);
	m.dreq.local_comm_id = p.a->comm_id;
	m.dreq.remote_comm_id = p.b->comm_id;
	m.dreq.remote_qpn = 0x1a;
	cm_mad_build(&m, bytes);
	cm_rx(&r.b.cm, 0, stranger, r.b.gid, bytes, MAD_BYTES);
	assert_int_equal(p.b->state, CM_ESTABLISHED);
	// nor does a queue pair that is not the connection's
	m.dreq.remote_qpn = 0x1b;
	cm_mad_build(&m, bytes);
	cm_rx(&r.b.cm, 0, r.a.gid, r.b.gid, bytes, MAD_BYTES);
	assert_int_equal(p.b->state, CM_ESTABLISHED);
	rig_no_event(&r.b);
	assert_int_equal(r.b.cm.counters.rx_unmatched, 2);
}

static void noise_is_counted_and_nothing_else(void **state)
{
	uint8_t bytes[MAD_BYTES] = {0};
	struct cm_mad m;
	struct rig r;

	rig_setup(&r);
	cm_rx(&r.b.cm, 0, r.a.gid, r.b.gid, bytes, MAD_BYTES);
	cm_rx(&r.b.cm, 0, r.a.gid, r.b.gid, bytes, 12);
	assert_int_equal(r.b.cm.counters.rx_malformed, 2);
	cm_mad_init(&m, CM_ATTR_LAP, 1);
	cm_mad_build(&m, bytes);
	cm_rx(&r.b.cm, 0, r.a.gid, r.b.gid, bytes, MAD_BYTES);
	assert_int_equal(r.b.cm.counters.rx_unmatched, 1);
	struct cm_out o;
	assert_false(cm_next_mad(&r.b.cm, &o));
	rig_no_event(&r.b);
}

// Nobody takes events out: what comes then is dropped as if lost, and no state has changed.
static void full_queue_drops_what_comes(void **state)
{
	struct rig r;

	rig_setup(&r);
	struct rig_pair p = rig_connected(&r);
	r.b.cm.ev_head = r.b.cm.ev_tail + CM_QUEUE;
	for (unsigned i = 0; i < CM_QUEUE; i++)
		r.b.cm.events[i] = (struct cm_event){.type = CM_EV_REJECTED, .id = p.b};
	assert_int_equal(cm_disconnect(&r.a.cm, 0, p.a), 0);
	struct cm_out o;
	assert_true(cm_next_mad(&r.a.cm, &o));
	cm_rx(&r.b.cm, 0, r.a.gid, r.b.gid, o.mad, MAD_BYTES);
	assert_int_equal(p.b->state, CM_ESTABLISHED);
	assert_int_equal(r.b.cm.counters.rx_no_room, 1);
	assert_false(cm_next_mad(&r.b.cm, &o));
	rig_hear(&r.b);
	rig_run(&r, 10 * SIM_S); // the DREQ comes again
	assert_int_equal(p.b->state, CM_IDLE);
}

// ---- datagram services -------------------------------------------------------------------------

static struct cm_id *resolve(struct rig *r, struct cm_id **a)
{
	struct cm_connect c = rig_request(r);

	c.service_id = UD_SERVICE;
	c.transport = CM_UD;
	c.private_data = "hello";
	c.private_len = 5;
	assert_int_equal(cm_connect(&r->a.cm, r->now, &c, a), 0);
	rig_move(r);
	const struct cm_event *e = rig_event(&r->b, CM_EV_CONNECT_REQUEST);
	assert_int_equal(e->listener, 88);
	assert_memory_equal(e->private_data, "hello\0", 6);
	assert_int_equal(e->id->conn.transport, CM_UD);
	assert_memory_equal(e->id->conn.remote_gid, r->a.gid, GID_BYTES);
	return e->id;
}

static void datagram_service_is_found(void **state)
{
	struct cm_accept acc = {.qpn = 0x77, .qkey = CM_UD_QKEY};
	struct cm_id *a;
	struct rig r;

	rig_setup(&r);
	struct cm_id *b = resolve(&r, &a);
	assert_int_equal(cm_accept(&r.b.cm, 0, b, &acc), 0);
	rig_move(&r);
	rig_event(&r.a, CM_EV_ESTABLISHED);
	assert_int_equal(a->conn.remote_qpn, 0x77);
	assert_int_equal(a->conn.qkey, CM_UD_QKEY);
	rig_no_event(&r.b);
	assert_int_equal(cm_destroy(&r.a.cm, 0, a), 0);
	assert_int_equal(cm_destroy(&r.b.cm, 0, b), 0);
	assert_int_equal(cm_in_use(&r.a.cm), 0);
	assert_int_equal(cm_in_use(&r.b.cm), 1); // might be asked again
	rig_run(&r, 100 * SIM_S);
	assert_int_equal(cm_in_use(&r.b.cm), 0);
}

// The first answer is lost. The question comes again after 4.29 s; the application has let go by
// then and is not troubled.
static void lost_answer_is_given_again(void **state)
{
	struct cm_accept acc = {.qpn = 0x77, .qkey = 9};
	struct cm_id *a;
	struct rig r;

	rig_setup(&r);
	struct cm_id *b = resolve(&r, &a);
	r.lose_attr = CM_ATTR_SIDR_REP;
	r.lose = 2;
	assert_int_equal(cm_accept(&r.b.cm, 0, b, &acc), 0);
	assert_int_equal(cm_destroy(&r.b.cm, 0, b), 0);
	rig_move(&r);
	rig_no_event(&r.a);
	rig_run(&r, 9 * SIM_S);
	rig_event(&r.a, CM_EV_ESTABLISHED);
	assert_int_equal(a->conn.remote_qpn, 0x77);
	rig_no_event(&r.b);
	assert_int_equal(r.sent[CM_ATTR_SIDR_REQ], 3);
}

static void answers_kept_give_way_to_new_questions(void **state)
{
	struct cm_accept acc = {.qpn = 0x77, .qkey = 9};
	struct cm_id *a;
	struct rig r;

	rig_setup(&r);
	for (unsigned i = 0; i < 3 * RIG_IDS; i++) {
		struct cm_id *b = resolve(&r, &a);
		assert_int_equal(cm_accept(&r.b.cm, r.now, b, &acc), 0);
		assert_int_equal(cm_destroy(&r.b.cm, r.now, b), 0);
		rig_move(&r);
		rig_event(&r.a, CM_EV_ESTABLISHED);
		assert_int_equal(cm_destroy(&r.a.cm, r.now, a), 0);
		r.now += SIM_MS;
	}
	assert_int_equal(cm_in_use(&r.b.cm), RIG_IDS);
	struct cm_id *b = rig_ask(&r, &a); // a connection too
	assert_non_null(b);
}

static void datagram_service_may_be_refused(void **state)
{
	struct cm_connect c;
	struct cm_id *a;
	struct rig r;

	rig_setup(&r);
	struct cm_id *b = resolve(&r, &a);
	assert_int_equal(cm_reject(&r.b.cm, 0, b, 0, NULL, 0), 0);
	rig_move(&r);
	assert_int_equal(rig_event(&r.a, CM_EV_REJECTED)->status, CM_SIDR_REJECT);

	cm_unlisten(&r.b.cm, UD_SERVICE);
	c = rig_request(&r);
	c.service_id = UD_SERVICE;
	c.transport = CM_UD;
	assert_int_equal(cm_connect(&r.a.cm, 0, &c, &a), 0);
	rig_move(&r);
	assert_int_equal(rig_event(&r.a, CM_EV_REJECTED)->status, CM_SIDR_UNSUPPORTED);

	r.lose_attr = CM_ATTR_SIDR_REQ;
	r.lose = 1000;
	r.sent[CM_ATTR_SIDR_REQ] = 0;
	assert_int_equal(cm_connect(&r.a.cm, 0, &c, &a), 0);
	rig_move(&r);
	rig_run(&r, 1000 * SIM_S);
	assert_int_equal(rig_event(&r.a, CM_EV_UNREACHABLE)->status, -ETIMEDOUT);
	assert_int_equal(r.sent[CM_ATTR_SIDR_REQ], 16);
}

static void one_listener_per_service(void **state)
{
	struct rig r;

	rig_setup(&r);
	assert_int_equal(cm_listen(&r.b.cm, SERVICE, CM_RC, 1), -EADDRINUSE);
	for (unsigned i = 2; i < CM_LISTENERS; i++)
		assert_int_equal(cm_listen(&r.b.cm, SERVICE + i, CM_RC, 1), 0);
	assert_int_equal(cm_listen(&r.b.cm, SERVICE + 99, CM_RC, 1), -ENOMEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_cannot_be_granted_is_refused_with_the_reason),
		cmocka_unit_test(refusal_of_the_mtu_names_ours),
		cmocka_unit_test(requests_that_contradict_themselves_are_refused),
		cmocka_unit_test(the_application_may_say_no),
		cmocka_unit_test(lost_refusal_is_asked_for_again),
		cmocka_unit_test(without_a_free_slot_there_are_no_resources),
		cmocka_unit_test(new_life_of_a_queue_pair_ends_the_old),
		cmocka_unit_test(late_copy_of_an_ended_request_is_stale),
		cmocka_unit_test(answer_to_a_forgotten_question_is_refused),
		cmocka_unit_test(end_of_an_unknown_connection_is_agreed_to),
		cmocka_unit_test(strangers_cannot_end_a_connection),
		cmocka_unit_test(noise_is_counted_and_nothing_else),
		cmocka_unit_test(full_queue_drops_what_comes),
		cmocka_unit_test(datagram_service_is_found),
		cmocka_unit_test(lost_answer_is_given_again),
		cmocka_unit_test(answers_kept_give_way_to_new_questions),
		cmocka_unit_test(datagram_service_may_be_refused),
		cmocka_unit_test(one_listener_per_service),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
