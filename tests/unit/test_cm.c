/* SPDX-License-Identifier: BSD-3-Clause */
// Connection management as two kernels did it (the captured rping), and with each message lost or
// doubled. Refusals, stale connections and datagram services: test_cm_refuse.c. Times: 4.096 us is
// the unit; a REQ is repeated after 2 * 2^18 + 2^20 units (packet lifetime there and back, response
// time) = 6.442450944 s, a REP after 2^20 units = 4.294967296 s, TIMEWAIT lasts 2^19 = 2.147483648
// s.
#include "tests/unit/cm_rig.h"

#include <errno.h>
#include <stdlib.h>

#include "pcap/codec.h"
#include "tests/unit/frames.h"

#define REQ_INTERVAL (simtime_t)(6442450944 * SIM_NS)
#define REP_INTERVAL (simtime_t)(4294967296 * SIM_NS)
#define TIMEWAIT     (simtime_t)(2147483648 * SIM_NS)

// The captured exchange: REQ, RTU, DREQ from A; REP, DREP from B.
enum { REQ, REP, RTU, DREQ, DREP, CAPTURED };

static void load(const char *name, uint8_t (*mads)[MAD_BYTES], unsigned want)
{
	struct capture_file c;
	const uint8_t *frame;
	uint32_t len;
	unsigned n = 0;

	capture_load(&c, name);
	while (capture_next(&c, &frame, &len)) {
		struct pkt p;
		if (pkt_parse(frame, len, &p) != PKT_OK || p.bth_off == 0 || p.dest_qp != GSI_QPN)
			continue;
		assert_true(n < want);
		memcpy(mads[n++], frame + p.payload_off, MAD_BYTES);
	}
	assert_int_equal(n, want);
	capture_unload(&c);
}

#define TID_AT       8
#define LOCAL_ID_AT  MAD_HEADER_BYTES
#define REMOTE_ID_AT (MAD_HEADER_BYTES + 4)

// The next message of an end is `want` but for the numbers that each end makes up itself.
static void expect_mad(struct rig_end *e, const uint8_t *want, bool own_tid, bool remote_id)
{
	struct cm_out o;

	assert_true(cm_next_mad(&e->cm, &o));
	memcpy(o.mad + LOCAL_ID_AT, want + LOCAL_ID_AT, 4);
	if (own_tid)
		memcpy(o.mad + TID_AT, want + TID_AT, 8);
	if (remote_id)
		memcpy(o.mad + REMOTE_ID_AT, want + REMOTE_ID_AT, 4);
	for (unsigned i = 0; i < MAD_BYTES; i++)
		if (o.mad[i] != want[i])
			fail_msg("byte %u: %02x, the kernel's is %02x", i, o.mad[i], want[i]);
}

static void give(struct rig *r, struct rig_end *to, const struct rig_end *from, uint8_t *mad,
	const struct cm_id *addressee)
{
	if (addressee != NULL)
		put_be32(mad + REMOTE_ID_AT, addressee->comm_id);
	cm_rx(&to->cm, r->now, from->gid, to->gid, mad, MAD_BYTES);
}

static void as_server_it_says_what_the_kernel_said(void **state)
{
	uint8_t k[CAPTURED][MAD_BYTES];
	struct cm_accept acc = rig_answer();
	struct rig r;

	load("rxe-mtu1024.pcap", k, CAPTURED);
	rig_setup(&r);
	give(&r, &r.b, &r.a, k[REQ], NULL);
	const struct cm_event *e = rig_event(&r.b, CM_EV_CONNECT_REQUEST);
	struct cm_id *id = e->id;
	assert_int_equal(e->listener, 77);
	assert_int_equal(e->private_len, 92 - 36);
	assert_int_equal(id->conn.remote_qpn, 0x1a);
	assert_int_equal(id->conn.sq_psn, 0xd89201); // what the peer wants to receive first
	assert_int_equal(id->conn.mtu, 3);
	assert_int_equal(id->conn.remote_port, 0x9ca5);
	assert_int_equal(id->conn.ack_timeout, 19);
	assert_memory_equal(id->conn.remote_gid, r.a.gid, GID_BYTES);
	assert_memory_equal(id->conn.local_gid, r.b.gid, GID_BYTES);

	assert_int_equal(cm_accept(&r.b.cm, r.now, id, &acc), 0);
	expect_mad(&r.b, k[REP], false, false);
	give(&r, &r.b, &r.a, k[RTU], id);
	rig_event(&r.b, CM_EV_ESTABLISHED);
	give(&r, &r.b, &r.a, k[DREQ], id);
	assert_int_equal(rig_event(&r.b, CM_EV_DISCONNECTED)->status, 0);
	expect_mad(&r.b, k[DREP], false, false);
	assert_int_equal(id->state, CM_TIMEWAIT);
}

static void as_client_it_says_what_the_kernel_said(void **state)
{
	uint8_t k[CAPTURED][MAD_BYTES];
	struct cm_connect c;
	struct cm_id *id;
	struct rig r;

	load("rxe-mtu1024.pcap", k, CAPTURED);
	rig_setup(&r);
	c = rig_request(&r);
	assert_int_equal(cm_connect(&r.a.cm, r.now, &c, &id), 0);
	expect_mad(&r.a, k[REQ], true, false);
	give(&r, &r.a, &r.b, k[REP], id);
	const struct cm_event *e = rig_event(&r.a, CM_EV_ESTABLISHED);
	assert_int_equal(e->private_len, 196);
	assert_int_equal(e->id->user, 5);
	assert_int_equal(id->conn.remote_qpn, 0x1a);
	assert_int_equal(id->conn.rq_psn, 0xd89201);
	assert_int_equal(id->conn.sq_psn, 0x501c3b);
	assert_int_equal(id->conn.rnr_retry, 7);
	assert_int_equal(id->conn.ack_timeout, 19);
	expect_mad(&r.a, k[RTU], true, false);
	assert_int_equal(cm_disconnect(&r.a.cm, r.now, id), 0);
	expect_mad(&r.a, k[DREQ], true, false);
	give(&r, &r.a, &r.b, k[DREP], id);
	rig_event(&r.a, CM_EV_DISCONNECTED);
	assert_int_equal(id->state, CM_TIMEWAIT);
}

// rdma-cm.pcap, from 10.0.0.2 to 10.0.0.1 and back: udaddy, and requests where nobody listens.
enum { SIDR_REQ = 0, SIDR_REP = 1, REQ_IN_VAIN = 7, REJ = 8, SIDR_REQ_IN_VAIN = 9, SIDR_NO = 10 };
#define OTHERS 11

static void other_answers_are_the_kernels_too(void **state)
{
	struct cm_accept acc = {.qpn = 0x11, .qkey = CM_UD_QKEY};
	uint8_t k[OTHERS][MAD_BYTES];
	struct cm_connect c;
	struct cm_id *id;
	struct rig r;

	load("rdma-cm.pcap", k, OTHERS);
	rig_setup(&r);
	give(&r, &r.b, &r.a, k[SIDR_REQ], NULL);
	id = rig_event(&r.b, CM_EV_CONNECT_REQUEST)->id;
	assert_int_equal(id->conn.remote_port, 0xe3a7);
	assert_int_equal(cm_accept(&r.b.cm, 0, id, &acc), 0);
	expect_mad(&r.b, k[SIDR_REP], false, false);

	give(&r, &r.b, &r.a, k[REQ_IN_VAIN], NULL); // port 9999
	expect_mad(&r.b, k[REJ], false, false);
	cm_unlisten(&r.b.cm, UD_SERVICE);
	give(&r, &r.b, &r.a, k[SIDR_REQ_IN_VAIN], NULL);
	expect_mad(&r.b, k[SIDR_NO], false, false);

	c = rig_request(&r);
	c.service_id = UD_SERVICE;
	c.transport = CM_UD;
	c.port = 0xe3a7;
	assert_int_equal(cm_connect(&r.a.cm, 0, &c, &id), 0);
	expect_mad(&r.a, k[SIDR_REQ], true, false);
	put_be32(k[SIDR_REP] + LOCAL_ID_AT, id->comm_id);
	give(&r, &r.a, &r.b, k[SIDR_REP], NULL);
	rig_event(&r.a, CM_EV_ESTABLISHED);
	assert_int_equal(id->conn.remote_qpn, 0x11);
	assert_int_equal(id->conn.qkey, CM_UD_QKEY);
}

static void private_data_reaches_the_other_side(void **state)
{
	struct cm_accept acc = rig_answer();
	struct cm_connect c;
	struct cm_id *a;
	struct rig r;

	rig_setup(&r);
	c = rig_request(&r);
	c.private_data = "question";
	c.private_len = 8;
	acc.private_data = "answer";
	acc.private_len = 6;
	assert_int_equal(cm_connect(&r.a.cm, 0, &c, &a), 0);
	rig_move(&r);
	const struct cm_event *e = rig_event(&r.b, CM_EV_CONNECT_REQUEST);
	assert_memory_equal(e->private_data, "question\0", 9);
	assert_int_equal(cm_accept(&r.b.cm, 0, e->id, &acc), 0);
	rig_move(&r);
	assert_memory_equal(rig_event(&r.a, CM_EV_ESTABLISHED)->private_data, "answer\0", 7);

	// 92 bytes less 36 of rdma_cm's header.
	assert_int_equal(cm_private_room(SERVICE, CM_RC), 56);
	c.private_len = 57;
	assert_int_equal(cm_connect(&r.a.cm, 0, &c, &a), -EINVAL);
}

// READs: what one serves the other may have outstanding, and no more than was asked.
static void read_depths_cross_over_and_are_bounded(void **state)
{
	struct cm_accept acc = rig_answer();
	struct cm_connect c;
	struct cm_id *a;
	struct rig r;

	rig_setup(&r);
	c = rig_request(&r);
	c.responder_resources = 4; // A serves 4
	c.initiator_depth = 9;     // A may have 9
	assert_int_equal(cm_connect(&r.a.cm, 0, &c, &a), 0);
	rig_move(&r);
	struct cm_id *b = rig_event(&r.b, CM_EV_CONNECT_REQUEST)->id;
	assert_int_equal(b->conn.initiator_depth, 4);
	assert_int_equal(b->conn.responder_resources, 9);
	acc.responder_resources = 6;
	acc.initiator_depth = 16;
	assert_int_equal(cm_accept(&r.b.cm, 0, b, &acc), 0);
	rig_move(&r);
	assert_int_equal(b->conn.responder_resources, 6);
	assert_int_equal(b->conn.initiator_depth, 4);
	assert_int_equal(a->conn.initiator_depth, 6);
	assert_int_equal(a->conn.responder_resources, 4);
}

static void disconnect_and_wait(struct rig *r, struct rig_pair p)
{
	assert_int_equal(cm_disconnect(&r->a.cm, r->now, p.a), 0);
	rig_move(r);
	rig_run(r, r->now + 10 * REQ_INTERVAL);
	rig_event(&r->a, CM_EV_DISCONNECTED);
	rig_event(&r->b, CM_EV_DISCONNECTED);
	rig_event(&r->a, CM_EV_TIMEWAIT_EXIT);
	rig_event(&r->b, CM_EV_TIMEWAIT_EXIT);
	rig_no_event(&r->a);
	rig_no_event(&r->b);
	assert_int_equal(cm_destroy(&r->a.cm, r->now, p.a), 0);
	assert_int_equal(cm_destroy(&r->b.cm, r->now, p.b), 0);
	assert_int_equal(cm_in_use(&r->a.cm), 0);
	assert_int_equal(cm_in_use(&r->b.cm), 0);
	assert_true(r->a.cm.deadline == SIMTIME_NEVER && r->b.cm.deadline == SIMTIME_NEVER);
}

static void nothing_is_left_of_a_connection(void **state)
{
	struct rig r;

	rig_setup(&r);
	disconnect_and_wait(&r, rig_connected(&r));
	assert_int_equal(r.a.cm.counters.tx_retries + r.b.cm.counters.tx_retries, 0);
}

static void timewait_lasts_as_long_as_a_packet_and_its_ack(void **state)
{
	struct rig r;

	rig_setup(&r);
	struct rig_pair p = rig_connected(&r);
	cm_disconnect(&r.a.cm, r.now, p.a);
	rig_move(&r);
	rig_event(&r.a, CM_EV_DISCONNECTED);
	rig_event(&r.b, CM_EV_DISCONNECTED);
	rig_run(&r, TIMEWAIT - 1);
	rig_no_event(&r.a);
	rig_run(&r, TIMEWAIT);
	rig_event(&r.a, CM_EV_TIMEWAIT_EXIT);
	rig_event(&r.b, CM_EV_TIMEWAIT_EXIT);
	assert_int_equal(p.a->state, CM_IDLE);
}

// One message is lost n times: the connection comes all the same, with as many repetitions.
static void connect_with_losses(int attr, unsigned n, unsigned a_retries, unsigned b_retries)
{
	struct cm_accept acc = rig_answer();
	struct cm_connect c;
	struct rig_pair p;
	struct rig r;

	rig_setup(&r);
	r.lose_attr = attr;
	r.lose = n;
	c = rig_request(&r);
	assert_int_equal(cm_connect(&r.a.cm, 0, &c, &p.a), 0);
	rig_move(&r);
	while (r.b.n_ev == 0) {
		rig_run(&r, r.a.cm.deadline);
	}
	p.b = rig_event(&r.b, CM_EV_CONNECT_REQUEST)->id;
	assert_int_equal(cm_accept(&r.b.cm, r.now, p.b, &acc), 0);
	rig_move(&r);
	rig_run(&r, r.now + 20 * REQ_INTERVAL);
	rig_event(&r.a, CM_EV_ESTABLISHED);
	rig_event(&r.b, CM_EV_ESTABLISHED);
	assert_int_equal(r.a.cm.counters.tx_retries, a_retries);
	assert_int_equal(r.b.cm.counters.tx_retries, b_retries);
	disconnect_and_wait(&r, p);
}

static void lost_req_is_repeated(void **state)
{
	connect_with_losses(CM_ATTR_REQ, 3, 3, 0);
}

// B repeats at 4.29 s; A at 6.44 s, to which B answers at once. Three losses: the first REP, the
// one at 4.29, that of 6.44 (answering A), and so the one at 8.59 s gets through.
static void lost_rep_is_repeated(void **state)
{
	connect_with_losses(CM_ATTR_REP, 1, 0, 1);
	connect_with_losses(CM_ATTR_REP, 3, 1, 2);
}

static void lost_rtu_is_repeated_with_the_next_rep(void **state)
{
	connect_with_losses(CM_ATTR_RTU, 2, 0, 2);
}

static void end_with_losses(int attr, unsigned n, unsigned retries)
{
	struct rig r;

	rig_setup(&r);
	struct rig_pair p = rig_connected(&r);
	r.lose_attr = attr;
	r.lose = n;
	assert_int_equal(cm_disconnect(&r.a.cm, r.now, p.a), 0);
	rig_move(&r);
	rig_run(&r, 20 * REQ_INTERVAL);
	assert_int_equal(rig_event(&r.a, CM_EV_DISCONNECTED)->status, 0);
	assert_int_equal(rig_event(&r.b, CM_EV_DISCONNECTED)->status, 0);
	rig_event(&r.a, CM_EV_TIMEWAIT_EXIT);
	rig_event(&r.b, CM_EV_TIMEWAIT_EXIT);
	assert_int_equal(r.a.cm.counters.tx_retries, retries);
	assert_int_equal(r.b.cm.counters.tx_retries, 0);
}

static void lost_dreq_is_repeated(void **state)
{
	end_with_losses(CM_ATTR_DREQ, 2, 2);
}

// B has forgotten the connection by the time of the repeated DREQ (6.4 s against 2.1 s of TIMEWAIT)
// and agrees without.
static void lost_drep_is_repeated_with_the_next_dreq(void **state)
{
	end_with_losses(CM_ATTR_DREP, 1, 1);
}

// Every message arrives three times: one event each, and the peer's answers to copies do no harm.
static void copies_are_not_news(void **state)
{
	struct rig r;

	rig_setup(&r);
	r.copies = 3;
	disconnect_and_wait(&r, rig_connected(&r));
	assert_true(r.a.cm.counters.rx_duplicates > 0 && r.b.cm.counters.rx_duplicates > 0);
}

static void nobody_there_is_unreachable_after_all_retries(void **state)
{
	struct cm_connect c;
	struct cm_id *id;
	struct rig r;

	rig_setup(&r);
	r.lose_attr = CM_ATTR_REQ;
	r.lose = 1000;
	c = rig_request(&r);
	assert_int_equal(cm_connect(&r.a.cm, 0, &c, &id), 0);
	rig_move(&r);
	rig_run(&r, 16 * REQ_INTERVAL - 1);
	rig_no_event(&r.a);
	assert_int_equal(r.sent[CM_ATTR_REQ], 16); // once, and 15 times again
	rig_run(&r, 16 * REQ_INTERVAL);
	assert_int_equal(rig_event(&r.a, CM_EV_UNREACHABLE)->status, -ETIMEDOUT);
	assert_int_equal(r.sent[CM_ATTR_REJ], 1); // whoever has heard may forget
	assert_int_equal(id->state, CM_IDLE);
	assert_int_equal(cm_destroy(&r.a.cm, r.now, id), 0);
	assert_int_equal(cm_in_use(&r.a.cm), 0);
}

// A hears nothing of the REPs and goes on asking, each time moving B to repeat; then it gives up,
// and tells B, which named itself to A never.
static void who_gives_up_tells_the_other(void **state)
{
	struct cm_accept acc = rig_answer();
	struct cm_id *a;
	struct rig r;

	rig_setup(&r);
	struct cm_id *b = rig_ask(&r, &a);
	r.lose_attr = CM_ATTR_REP;
	r.lose = 1000;
	cm_accept(&r.b.cm, 0, b, &acc);
	assert_int_equal(cm_destroy(&r.a.cm, r.now, a), 0);
	rig_move(&r);
	assert_int_equal(rig_event(&r.b, CM_EV_REJECTED)->status, CM_REJ_TIMEOUT);
	assert_int_equal(b->state, CM_TIMEWAIT);
	assert_int_equal(cm_in_use(&r.a.cm), 0);
}

// B's RTU never comes: after 16 REPs in 4.29 s each it says so to A, which is established.
static void passive_side_gives_up_too(void **state)
{
	struct cm_accept acc = rig_answer();
	struct cm_id *a;
	struct rig r;

	rig_setup(&r);
	struct cm_id *b = rig_ask(&r, &a);
	r.lose_attr = CM_ATTR_RTU;
	r.lose = 1000;
	cm_accept(&r.b.cm, 0, b, &acc);
	rig_move(&r);
	rig_event(&r.a, CM_EV_ESTABLISHED);
	rig_run(&r, 16 * REP_INTERVAL - 1);
	assert_int_equal(r.sent[CM_ATTR_REP], 16);
	assert_int_equal(r.sent[CM_ATTR_RTU], 16);
	rig_no_event(&r.b);
	rig_run(&r, 16 * REP_INTERVAL);
	assert_int_equal(rig_event(&r.b, CM_EV_UNREACHABLE)->status, -ETIMEDOUT);
	assert_int_equal(rig_event(&r.a, CM_EV_DISCONNECTED)->status, CM_REJ_TIMEOUT);
	assert_int_equal(a->state, CM_TIMEWAIT);
	assert_int_equal(b->state, CM_TIMEWAIT);
}

static void data_on_the_queue_pair_stands_for_the_rtu(void **state)
{
	struct cm_accept acc = rig_answer();
	struct cm_id *a;
	struct rig r;

	rig_setup(&r);
	struct cm_id *b = rig_ask(&r, &a);
	r.lose_attr = CM_ATTR_RTU;
	r.lose = 1;
	cm_accept(&r.b.cm, 0, b, &acc);
	rig_move(&r);
	rig_no_event(&r.b);
	assert_int_equal(cm_established(&r.b.cm, 0, b), 0);
	rig_event(&r.b, CM_EV_ESTABLISHED);
	assert_int_equal(cm_established(&r.b.cm, 0, b), 0);
	rig_no_event(&r.b);
	assert_true(r.b.cm.deadline == SIMTIME_NEVER);
}

// B's application takes 20 s. A's second REQ is answered with an MRA of 2^24 units = 68.7 s, which
// puts A's next REQ off to 68.7 + 6.4 s after it.
static void mra_makes_the_client_wait(void **state)
{
	struct cm_accept acc = rig_answer();
	struct cm_id *a;
	struct rig r;

	rig_setup(&r);
	struct cm_id *b = rig_ask(&r, &a);
	rig_run(&r, REQ_INTERVAL);
	assert_int_equal(r.sent[CM_ATTR_MRA], 1);
	assert_int_equal(a->state, CM_MRA_REQ_RCVD);
	assert_int_equal(b->state, CM_MRA_REQ_SENT);
	assert_true(a->deadline == REQ_INTERVAL + (simtime_t)(68719476736 * SIM_NS) + REQ_INTERVAL);
	rig_run(&r, 20 * SIM_S);
	assert_int_equal(r.sent[CM_ATTR_REQ], 2);
	assert_int_equal(cm_accept(&r.b.cm, r.now, b, &acc), 0);
	rig_move(&r);
	rig_event(&r.a, CM_EV_ESTABLISHED);
	rig_event(&r.b, CM_EV_ESTABLISHED);
}

static void both_may_disconnect_at_once(void **state)
{
	struct rig r;

	rig_setup(&r);
	struct rig_pair p = rig_connected(&r);
	assert_int_equal(cm_disconnect(&r.a.cm, 0, p.a), 0);
	assert_int_equal(cm_disconnect(&r.b.cm, 0, p.b), 0);
	rig_move(&r);
	rig_event(&r.a, CM_EV_DISCONNECTED);
	rig_event(&r.b, CM_EV_DISCONNECTED);
	assert_int_equal(cm_disconnect(&r.a.cm, 0, p.a), 0); // nothing left to end
	rig_no_event(&r.a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_server_it_says_what_the_kernel_said),
		cmocka_unit_test(as_client_it_says_what_the_kernel_said),
		cmocka_unit_test(other_answers_are_the_kernels_too),
		cmocka_unit_test(private_data_reaches_the_other_side),
		cmocka_unit_test(read_depths_cross_over_and_are_bounded),
		cmocka_unit_test(nothing_is_left_of_a_connection),
		cmocka_unit_test(timewait_lasts_as_long_as_a_packet_and_its_ack),
		cmocka_unit_test(lost_req_is_repeated),
		cmocka_unit_test(lost_rep_is_repeated),
		cmocka_unit_test(lost_rtu_is_repeated_with_the_next_rep),
		cmocka_unit_test(lost_dreq_is_repeated),
		cmocka_unit_test(lost_drep_is_repeated_with_the_next_dreq),
		cmocka_unit_test(copies_are_not_news),
		cmocka_unit_test(nobody_there_is_unreachable_after_all_retries),
		cmocka_unit_test(who_gives_up_tells_the_other),
		cmocka_unit_test(passive_side_gives_up_too),
		cmocka_unit_test(data_on_the_queue_pair_stands_for_the_rtu),
		cmocka_unit_test(mra_makes_the_client_wait),
		cmocka_unit_test(both_may_disconnect_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
