/* SPDX-License-Identifier: BSD-3-Clause */
// DCQCN on behalf of a real endpoint: what its edge learns of queue pairs, holds back, marks and
// answers. The link is 100 Gb/s (80 ps a byte) with DELAY each way; parameters are mlx5's. Every
// data frame is 1000 bytes, 1024 on the wire, 81.92 ns at line rate.
//
// The first CNP finds alpha at 1023/1024 and takes half of it off the rate: 100 Gb/s x (1 -
// 1023/2048) = 50,048,828,125 b/s, at which 1024 bytes take 163,680.16 ps.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_eal.h>
#include <rte_mbuf.h>

#include "node_run.h"
#include "pcap/build.h"
#include "pcap/codec.h"
#include "pcap/icrc.h"
#include "pipelines/edge.h"
#include "pipelines/endpoint.h"

#define BYTE_PS     80
#define DELAY       (500 * SIM_NS)
#define POOL_FRAMES 8191
#define ROOM        (RTE_PKTMBUF_HEADROOM + 2048)
#define RECORDS     4096
#define RX_LIMIT    8192
#define FRAME_BYTES 1000
#define WIRE_PS     ((simtime_t)(FRAME_BYTES + ETH_OVERHEAD_BYTES) * BYTE_PS)
#define SLOW_BPS    UINT64_C(50048828125)
#define MY_IP       0x0a000001
#define PEER_IP     0x0a000002
#define TOS         (3 << 2)
#define CNP_TC      6

// Two connections: the endpoint's queue pairs and the peer's.
#define MY_QP    0x21
#define PEER_QP  0x11
#define MY_QP2   0x22
#define PEER_QP2 0x12

static const uint8_t my_mac[6] = {2, 0, 0, 0, 0, 1};
static const uint8_t switch_mac[6] = {2, 0, 0, 0, 1, 0};
static const uint8_t other_mac[6] = {2, 0, 0, 0, 0, 9};

struct real_port {
	struct rte_mbuf *in[RECORDS];
	unsigned n_in, taken, n_out;
};

struct record {
	simtime_t at;
	uint16_t len;
	uint8_t tc;
	uint32_t dst, dest_qp, psn;
	uint8_t bytes[128];
};

struct rig {
	struct endpoint_table eps;
	struct node *edge;
	struct node sw;
	struct lane up, down;
	struct group_head group;
	struct real_port real;
	unsigned n_rec;
	struct record rec[RECORDS];
};

static struct rte_mempool *pool;
static struct rig *r;
static char why[256];

static unsigned real_rx(void *port, struct rte_mbuf **m, unsigned n)
{
	struct real_port *p = port;
	unsigned k = 0;

	while (k < n && p->taken < p->n_in)
		m[k++] = p->in[p->taken++];
	return k;
}

static unsigned real_tx(void *port, struct rte_mbuf **m, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		rte_pktmbuf_free(m[i]);
	((struct real_port *)port)->n_out += n;
	return n;
}

static const struct edge_ops real_ops = {.rx = real_rx, .tx = real_tx};

// ---- frames -------------------------------------------------------------------------------------

// A frame of RoCE; data has FRAME_BYTES, others have no payload. Returns its length.
static uint16_t roce_bytes(uint8_t *out, bool from_me, uint8_t opcode, uint8_t tos, uint16_t sport,
	uint32_t qpn, uint32_t psn)
{
	bool data = roce_opcodes[opcode].payload;
	uint16_t len = data ? FRAME_BYTES
			    : (uint16_t)(ETH_HEADER_BYTES + IPV4_HEADER_BYTES + UDP_HEADER_BYTES +
					 roce_header_bytes(opcode) + ICRC_BYTES);

	memset(out, 0, len);
	uint8_t *p = eth_put(
		out, from_me ? other_mac : my_mac, from_me ? my_mac : switch_mac, ETHERTYPE_IPV4);
	p = ipv4_put(p, tos, len - ETH_HEADER_BYTES, 1, 64, IP_PROTO_UDP, from_me ? MY_IP : PEER_IP,
		from_me ? PEER_IP : MY_IP);
	p = udp_put(p, sport, ROCE_UDP_PORT, len - ETH_HEADER_BYTES - IPV4_HEADER_BYTES);
	bth_put(p, opcode, BTH_MIG, 0, qpn, false, psn);
	icrc_put(out + len - ICRC_BYTES,
		icrc_compute(out, ETH_HEADER_BYTES, (unsigned)(p - out), len - ICRC_BYTES));
	return len;
}

static void i_send_from(uint16_t sport, uint8_t opcode, uint32_t qpn, uint32_t psn)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	uint8_t bytes[FRAME_BYTES];

	assert_non_null(m);
	uint16_t len = roce_bytes(bytes, true, opcode, TOS, sport, qpn, psn);
	memcpy(rte_pktmbuf_append(m, len), bytes, len);
	r->real.in[r->real.n_in++] = m;
}

static void i_send(uint8_t opcode, uint32_t qpn, uint32_t psn)
{
	i_send_from(0xc001, opcode, qpn, psn);
}

static struct frame *switch_frame(const uint8_t *bytes, uint16_t len, uint8_t tc)
{
	struct frame *f = frame_alloc(pool);

	assert_non_null(f);
	node_adopt(&r->sw, f);
	f->data_off = RTE_PKTMBUF_HEADROOM;
	memcpy(frame_data(f), bytes, len);
	f->len = f->head_len = len;
	f->tc = tc;
	return f;
}

static void peer_sends_from(uint16_t sport, uint8_t opcode, uint8_t tos, uint32_t qpn, uint32_t psn)
{
	uint8_t bytes[FRAME_BYTES];
	uint16_t len = roce_bytes(bytes, false, opcode, tos, sport, qpn, psn);
	struct frame *f = switch_frame(bytes, len, 3);

	f->flags = FRAME_F_PARSED | FRAME_F_ROCE;
	f->l3_off = ETH_HEADER_BYTES;
	f->opcode = opcode;
	node_send(&r->sw, 0, f);
}

static void peer_sends(uint8_t opcode, uint8_t tos, uint32_t qpn, uint32_t psn)
{
	peer_sends_from(0xc001, opcode, tos, qpn, psn);
}

static void switch_pauses(uint8_t classes, uint16_t quanta)
{
	uint8_t bytes[ETH_MIN_NO_FCS];
	uint16_t q[PFC_CLASSES];

	for (int i = 0; i < PFC_CLASSES; i++)
		q[i] = quanta;
	pfc_build(bytes, switch_mac, classes, q);
	struct frame *f = switch_frame(bytes, sizeof(bytes), 0);
	f->kind = FRAME_CONTROL;
	node_send(&r->sw, 0, f);
}

// ---- the run ------------------------------------------------------------------------------------

static void sw_arrive(struct node *n, unsigned port, struct frame *f)
{
	struct record *rec = &r->rec[r->n_rec];
	struct pkt p;

	assert_true(r->n_rec < RECORDS);
	assert_int_equal(pkt_parse(frame_data(f), f->len, &p), PKT_OK);
	*rec = (struct record){.at = n->now,
		.len = f->len,
		.tc = f->tc,
		.dst = f->dst,
		.dest_qp = p.dest_qp,
		.psn = p.psn};
	memcpy(rec->bytes, frame_data(f), RTE_MIN(f->len, sizeof(rec->bytes)));
	r->n_rec++;
	node_consume(n, port, f);
}

static void sw_depart(struct node *n, unsigned port)
{
}

static void sw_timer(struct node *n, uint32_t kind, uint32_t arg)
{
}

static const struct node_ops sw_ops = {
	.name = "switch", .arrive = sw_arrive, .depart = sw_depart, .timer = sw_timer};

static void run(simtime_t until)
{
	struct node *nodes[] = {r->edge, &r->sw};

	run_nodes(nodes, 2, until);
}

static unsigned poll_port(void)
{
	return r->edge->ops->poll(r->edge);
}

static void connect_lane(struct lane *l, struct node *src, struct node *dst)
{
	lane_join(l, src, 0, dst, 0, UINT64_C(100000000000), DELAY, 4096);
}

static void start_as(bool ect0, bool on, struct dcqcn_params dcqcn)
{
	struct edge_port_config port = {.ops = &real_ops, .mtu = 1500, .ip4 = MY_IP};

	r = aligned_alloc(64, (sizeof(*r) + 63) / 64 * 64);
	assert_non_null(r);
	memset(r, 0, sizeof(*r));
	r->group.wake = no_wake;
	assert_int_equal(endpoint_table_init(&r->eps, 2, 4), 0);
	assert_int_equal(endpoint_add(&r->eps, NULL, 0, my_mac), 0);
	assert_int_equal(endpoint_add(&r->eps, NULL, 0, other_mac), 1);
	assert_int_equal(endpoint_add_ipv4(&r->eps, 0, MY_IP), 0);
	assert_int_equal(endpoint_add_ipv4(&r->eps, 1, PEER_IP), 0);
	port.port = &r->real;
	memcpy(port.mac, my_mac, 6);
	memcpy(port.next_hop_mac, switch_mac, 6);
	struct edge_config cfg = {.name = "edge",
		.ports = &port,
		.n_ports = 1,
		.endpoints = &r->eps,
		.pfc_mask = 1 << 3,
		.roce_dscp = EDGE_NO_DSCP,
		.rx_queue_bytes = RX_LIMIT,
		.cc = {.cc = {.algorithm = on ? CC_DCQCN : CC_NONE, .dcqcn = dcqcn},
			.np = {.enable = on,
				.scope = NP_SCOPE_QP,
				.min_time_between_cnps = 4 * SIM_US,
				.cnp_dscp = 48,
				.cnp_802p_prio = 6},
			.ect0 = ect0}};
	for (unsigned i = 0; i < 64; i++)
		cfg.dscp_to_tc[i] = i < 8 ? (uint8_t)i : i == 48 ? CNP_TC : 0;
	assert_int_equal(edge_create(&cfg, &r->edge), 0);
	assert_int_equal(node_init(&r->sw, &sw_ops, "switch", 1, 8), 0);
	struct node *nodes[] = {r->edge, &r->sw};
	for (unsigned i = 0; i < 2; i++) {
		nodes[i]->pool = (struct frame_pool){.heads = pool, .full = pool};
		nodes[i]->group = (struct group *)&r->group;
	}
	connect_lane(&r->up, r->edge, &r->sw);
	connect_lane(&r->down, &r->sw, r->edge);
	r->edge->ops->start(r->edge);
}

static void start_with(bool ect0, bool on)
{
	start_as(ect0, on, dcqcn_preset(DCQCN_MLX5));
}

static void start(void)
{
	start_with(false, true);
}

// Frames made = ended + held, counters equal the queues, and no buffer is lost.
static void stop(void)
{
	uint64_t made, ended;

	made = r->edge->created + r->sw.created;
	ended = r->edge->delivered + r->edge->consumed + r->edge->dropped + r->sw.consumed +
		r->sw.dropped + r->edge->ops->held(r->edge);
	ended += (r->up.tail - r->up.head) + (r->down.tail - r->down.head);
	assert_int_equal(made, ended);
	if (!r->edge->ops->check(r->edge, false, why, sizeof(why)))
		fail_msg("%s", why);
	r->edge->ops->drain(r->edge);
	if (!r->edge->ops->check(r->edge, true, why, sizeof(why)))
		fail_msg("drained: %s", why);
	run(r->edge->now + SIM_MS); // what is on a lane arrives
	poll_port();
	while (r->real.taken < r->real.n_in)
		rte_pktmbuf_free(r->real.in[r->real.taken++]);
	r->edge->ops->drain(r->edge);
	assert_int_equal(rte_mempool_avail_count(pool), POOL_FRAMES);
	edge_destroy(r->edge);
	node_fini(&r->sw);
	lane_fini(&r->up);
	lane_fini(&r->down);
	endpoint_table_fini(&r->eps);
	free(r);
}

static const struct edge_counters *did(void)
{
	return edge_counters(r->edge, 0);
}

// What is under way arrives, and the records start anew.
static void settle(void)
{
	poll_port();
	run(r->edge->now + 10 * SIM_US);
	r->n_rec = 0;
}

// Both connections were used: a request each, and its ACK.
static void learn_both(void)
{
	i_send(ROCE_WRITE_MIDDLE, PEER_QP, 100);
	i_send(ROCE_WRITE_MIDDLE, PEER_QP2, 900);
	settle();
	peer_sends(ROCE_ACK, TOS, MY_QP, 100);
	peer_sends(ROCE_ACK, TOS, MY_QP2, 900);
	settle();
}

static void cnp_for(uint32_t qpn)
{
	peer_sends(ROCE_OP_CNP, 48 << 2, qpn, 0);
	settle();
}

static void data(uint32_t qpn, uint32_t psn, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		i_send(ROCE_WRITE_MIDDLE, qpn, psn + i);
}

// ---- limiters -----------------------------------------------------------------------------------

static void a_cnp_paces_its_queue_pair_to_the_picosecond(void **state)
{
	start();
	learn_both();
	assert_int_equal(did()->edge_qps_paired, 2);
	cnp_for(MY_QP);
	assert_int_equal(did()->edge_cnp_handled, 1);
	assert_int_equal(did()->edge_cnp_unmatched, 0);
	assert_int_equal(did()->edge_cnp_swallowed, 0);
	assert_int_equal(did()->edge_cc_limited, 1);
	assert_int_equal(did()->edge_cc_rate, SLOW_BPS);
	assert_int_equal(did()->edge_cc_rate_min, SLOW_BPS);

	simtime_t t = r->edge->now;
	data(PEER_QP, 101, 5);
	poll_port();
	run(t + 10 * SIM_US);
	assert_int_equal(r->n_rec, 5);
	// k x 163,680.156 ps
	static const simtime_t after[] = {0, 163680, 327360, 491040, 654720};
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(r->rec[i].psn, 101 + i);
		assert_int_equal(r->rec[i].at, t + after[i] + WIRE_PS + DELAY);
	}
	assert_int_equal(did()->edge_cc_held, 4);
	stop();
}

// The other's four leave at line rate behind the one that may go.
static void another_queue_pair_is_not_held_up(void **state)
{
	start();
	learn_both();
	cnp_for(MY_QP);
	simtime_t t = r->edge->now;
	data(PEER_QP, 101, 4);
	data(PEER_QP2, 901, 4);
	poll_port();
	run(t + 10 * SIM_US);
	assert_int_equal(r->n_rec, 8);
	for (unsigned i = 1; i <= 4; i++) {
		assert_int_equal(r->rec[i].dest_qp, PEER_QP2);
		assert_int_equal(r->rec[i].at, t + (i + 1) * WIRE_PS + DELAY);
	}
	assert_int_equal(did()->edge_cc_held, 3);
	stop();
}

// 300 us after the decrease the rate is on its way back to 100 Gb/s: (50.05 + 100) / 2 = 75.02
// Gb/s, then 87.5 ..., and when the two meet, rounded up, the limiter is freed.
static void a_limiter_that_recovered_is_off(void **state)
{
	start();
	learn_both();
	cnp_for(MY_QP);
	run(r->edge->now + 40 * 300 * SIM_US);
	simtime_t t = r->edge->now;
	data(PEER_QP, 101, 3);
	poll_port();
	run(t + 10 * SIM_US);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(r->rec[i].at, t + (i + 1) * WIRE_PS + DELAY);
	assert_int_equal(did()->edge_cc_limited, 0);
	assert_int_equal(did()->edge_cc_rate, 0);
	assert_int_equal(did()->edge_cc_rate_min, SLOW_BPS);
	stop();
}

static void acks_pass_requests_but_not_read_responses(void **state)
{
	start();
	learn_both();
	cnp_for(MY_QP);
	data(PEER_QP, 101, 3);
	i_send(ROCE_ACK, PEER_QP, 5);
	poll_port();
	run(r->edge->now + 10 * SIM_US);
	assert_int_equal(r->n_rec, 4);
	assert_int_equal(r->rec[1].psn, 5);

	settle();
	i_send(ROCE_READ_RESP_MIDDLE, PEER_QP, 6);
	i_send(ROCE_READ_RESP_LAST, PEER_QP, 7);
	i_send(ROCE_ACK, PEER_QP, 8);
	poll_port();
	run(r->edge->now + 10 * SIM_US);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(r->rec[i].psn, 6 + i);
	stop();
}

static void a_pause_stops_a_limiter_without_a_burst_after_it(void **state)
{
	start();
	learn_both();
	cnp_for(MY_QP);
	switch_pauses(1 << 3, 65535);
	settle();
	data(PEER_QP, 101, 3);
	poll_port();
	run(r->edge->now + 20 * SIM_US);
	assert_int_equal(r->n_rec, 0);
	assert_int_equal(r->edge->ops->held(r->edge), 3);
	// The XON is 84 bytes of wire.
	simtime_t t = r->edge->now + 84 * BYTE_PS + DELAY;
	switch_pauses(1 << 3, 0);
	run(t + 10 * SIM_US);
	assert_int_equal(r->n_rec, 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(r->rec[i].at, t + i * 163680 + WIRE_PS + DELAY);
	stop();
}

// 20 frames of 1004 bytes are above the 8192 that a priority may hold. They take 19 x 163.68 ns.
static void what_is_held_counts_against_the_queue_limit(void **state)
{
	start();
	learn_both();
	cnp_for(MY_QP);
	data(PEER_QP, 101, 20);
	assert_int_equal(poll_port(), 20);
	data(PEER_QP2, 901, 1);
	assert_int_equal(poll_port(), 0);
	assert_int_equal(did()->edge_rx_held, 1);
	run(r->edge->now + 4 * SIM_US);
	assert_int_equal(r->n_rec, 20);
	assert_int_equal(poll_port(), 1);
	stop();
}

// ---- who is who ---------------------------------------------------------------------------------

static void a_cnp_for_an_unknown_queue_pair_slows_all_unknown_ones(void **state)
{
	start();
	data(PEER_QP, 100, 1);
	data(PEER_QP2, 900, 1);
	settle();
	peer_sends(ROCE_ACK, TOS, MY_QP2, 900);
	settle();
	cnp_for(MY_QP);
	assert_int_equal(did()->edge_cnp_unmatched, 1);
	assert_int_equal(did()->edge_cnp_handled, 1);
	assert_int_equal(did()->edge_cc_limited, 1);
	data(PEER_QP, 101, 2);
	data(PEER_QP2, 901, 2);
	poll_port();
	run(r->edge->now + 10 * SIM_US);
	assert_int_equal(did()->edge_cc_held, 1);
	assert_int_equal(r->rec[3].dest_qp, PEER_QP);
	stop();
}

static void a_cnp_for_nobody_changes_nothing(void **state)
{
	start();
	learn_both();
	cnp_for(0x99);
	assert_int_equal(did()->edge_cnp_unmatched, 1);
	assert_int_equal(did()->edge_cnp_handled, 0);
	assert_int_equal(did()->edge_cnp_swallowed, 1);
	assert_int_equal(did()->edge_cc_limited, 0);
	stop();
}

static void equal_psns_are_told_apart_by_the_source_port(void **state)
{
	start();
	i_send_from(0xc001, ROCE_WRITE_MIDDLE, PEER_QP, 7);
	i_send_from(0xc002, ROCE_WRITE_MIDDLE, PEER_QP2, 7);
	settle();
	peer_sends_from(0xc003, ROCE_ACK, TOS, MY_QP, 7); // says nothing
	settle();
	assert_int_equal(did()->edge_qps_paired, 0);
	peer_sends_from(0xc002, ROCE_ACK, TOS, MY_QP2, 7);
	settle();
	assert_int_equal(did()->edge_qps_paired, 1);
	cnp_for(MY_QP2);
	data(PEER_QP, 8, 2);
	settle();
	assert_int_equal(did()->edge_cc_held, 0);
	data(PEER_QP2, 8, 2);
	settle();
	assert_int_equal(did()->edge_cc_held, 1);
	stop();
}

// The peer's queue pair is set up anew for another of the endpoint's: PSNs far from the old.
static void a_new_connection_replaces_the_old(void **state)
{
	start();
	learn_both();
	data(PEER_QP, 0x800000, 1);
	settle();
	peer_sends(ROCE_ACK, TOS, 0x31, 0x800000);
	settle();
	assert_int_equal(did()->edge_qps_paired, 3);
	cnp_for(0x31);
	assert_int_equal(did()->edge_cnp_unmatched, 0);
	data(PEER_QP, 0x800001, 2);
	settle();
	assert_int_equal(did()->edge_cc_held, 1);
	stop();
}

// The table has 2048 halves. Those that were quiet for more than a second make room.
static void idle_queue_pairs_make_room(void **state)
{
	start();
	for (uint32_t i = 0; i < 3000; i += 30) {
		for (uint32_t k = 0; k < 30; k++)
			i_send(ROCE_ACK, 0x1000 + i + k, 1);
		settle();
		r->real.n_in = r->real.taken = 0;
	}
	// At least what the whole table has no place for.
	assert_in_range(did()->edge_cc_untracked, 3000 - 2048, 2999);
	uint64_t before = did()->edge_cc_untracked;
	run(r->edge->now + 2 * SIM_S);
	for (uint32_t k = 0; k < 8; k++)
		i_send(ROCE_ACK, 0x10000 + k, 1);
	settle();
	assert_int_equal(did()->edge_cc_untracked, before);
	stop();
}

// ---- ECN and CNPs -------------------------------------------------------------------------------

// 0x450c becomes 0x450e in the header, so its checksum is less by 2.
static void data_becomes_ect0_with_the_checksum_right(void **state)
{
	uint8_t sent[FRAME_BYTES];

	start_with(true, false);
	data(PEER_QP, 100, 1);
	i_send(ROCE_ACK, PEER_QP, 5);
	poll_port();
	run(10 * SIM_US);
	assert_int_equal(r->n_rec, 2);
	assert_int_equal(did()->edge_ect_set, 1);
	const uint8_t *ip = r->rec[0].bytes + ETH_HEADER_BYTES;
	roce_bytes(sent, true, ROCE_WRITE_MIDDLE, TOS, 0xc001, PEER_QP, 100);
	assert_int_equal(ip[1], TOS | ECN_ECT0);
	assert_int_equal(get_be16(ip + 10), get_be16(sent + ETH_HEADER_BYTES + 10) - 2);
	assert_int_equal(ip_ecn(r->rec[1].bytes + ETH_HEADER_BYTES), ECN_NOT_ECT);
	stop();
}

static void ecn_stays_as_sent_unless_asked_for(void **state)
{
	start();
	data(PEER_QP, 100, 1);
	poll_port();
	run(10 * SIM_US);
	assert_int_equal(ip_ecn(r->rec[0].bytes + ETH_HEADER_BYTES), ECN_NOT_ECT);
	assert_int_equal(did()->edge_ect_set, 0);
	stop();
}

// The first mark comes before the endpoint has answered: who sent it is not known yet.
static void a_mark_is_answered_to_the_senders_queue_pair(void **state)
{
	struct pkt p;

	start();
	peer_sends(ROCE_WRITE_MIDDLE, TOS | ECN_CE, MY_QP, 50);
	settle();
	assert_int_equal(did()->edge_cnp_unsent, 1);
	i_send(ROCE_ACK, PEER_QP, 50);
	settle();
	assert_int_equal(did()->edge_qps_paired, 1);
	peer_sends(ROCE_WRITE_MIDDLE, TOS | ECN_CE, MY_QP, 51);
	run(r->edge->now + 10 * SIM_US);
	assert_int_equal(did()->edge_ce_seen, 2);
	assert_int_equal(did()->edge_cnp_sent, 1);
	assert_int_equal(r->n_rec, 1);

	const struct record *c = &r->rec[0];
	assert_int_equal(pkt_parse(c->bytes, c->len, &p), PKT_OK);
	assert_true(pkt_icrc_valid(&p));
	// Ethernet 14, IP 20, UDP 8, BTH 12, reserved 16, ICRC 4
	assert_int_equal(c->len, 74);
	assert_int_equal(p.opcode, ROCE_OP_CNP);
	assert_int_equal(p.dest_qp, PEER_QP);
	assert_true(p.becn);
	assert_int_equal(p.dscp, 48);
	assert_int_equal(p.ecn, ECN_NOT_ECT);
	assert_int_equal(get_be32(c->bytes + p.src_off), MY_IP);
	assert_int_equal(get_be32(c->bytes + p.dst_off), PEER_IP);
	assert_memory_equal(c->bytes, switch_mac, 6);
	assert_memory_equal(c->bytes + 6, my_mac, 6);
	assert_int_equal(c->tc, CNP_TC);
	assert_int_equal(c->dst, 1);
	stop();
}

// 41 marks 100 ns apart are 4 us from the first to the last: two CNPs. Another queue pair has its
// own interval.
static void cnps_keep_their_interval_per_queue_pair(void **state)
{
	start();
	peer_sends(ROCE_WRITE_MIDDLE, TOS, MY_QP, 50);
	peer_sends(ROCE_WRITE_MIDDLE, TOS, MY_QP2, 3000);
	settle();
	i_send(ROCE_ACK, PEER_QP, 50);
	i_send(ROCE_ACK, PEER_QP2, 3000);
	settle();
	simtime_t t = r->edge->now;
	for (uint32_t i = 0; i <= 40; i++) {
		run(t + i * 100 * SIM_NS);
		peer_sends(ROCE_WRITE_MIDDLE, TOS | ECN_CE, MY_QP, 51 + i);
	}
	run(t + 4100 * SIM_NS);
	assert_int_equal(did()->edge_cnp_sent, 1);
	run(t + 10 * SIM_US);
	assert_int_equal(did()->edge_cnp_sent, 2);
	peer_sends(ROCE_WRITE_MIDDLE, TOS | ECN_CE, MY_QP, 92);
	peer_sends(ROCE_WRITE_MIDDLE, TOS | ECN_CE, MY_QP2, 3001);
	settle();
	assert_int_equal(did()->edge_cnp_sent, 4);
	assert_int_equal(did()->edge_ce_seen, 43);
	stop();
}

// The limiter is freed while its frames wait for a pause: the pause's end finds nothing to do. At 1
// Mb/s a frame takes 8.192 ms. The second waits for its time, the third comes while its priority is
// paused. With steps of the whole line every 100 us the limiter needs two of them for its target
// and 37 halvings of the distance, 100 Gb/s, to reach the line: 3.9 ms.
static void a_limiter_may_be_freed_while_its_frames_wait(void **state)
{
	struct dcqcn_params d = dcqcn_preset(DCQCN_MLX5);

	d.rpg_time_reset = 100 * SIM_US;
	d.rpg_ai_rate = d.rpg_hai_rate = UINT64_C(100000000000);
	start_as(false, true, d);
	learn_both();
	for (unsigned i = 0; i < 200; i++)
		cnp_for(MY_QP);
	data(PEER_QP, 101, 2);
	settle();
	assert_int_equal(r->edge->ops->held(r->edge), 1);
	switch_pauses(1 << 3, 65535);
	data(PEER_QP, 103, 1);
	run(r->edge->now + SIM_US);
	poll_port();
	for (unsigned i = 0; i < 60; i++) {
		switch_pauses(1 << 3, 65535);
		run(r->edge->now + 300 * SIM_US);
	}
	switch_pauses(1 << 3, 0);
	run(r->edge->now + 10 * SIM_MS);
	assert_int_equal(r->edge->ops->held(r->edge), 0);
	assert_int_equal(r->n_rec, 2);
	assert_int_equal(did()->edge_cc_limited, 0);
	stop();
}

// An IPv6 packet with CE and a tag of VLAN 5, PCP 3: the CNP has the VLAN, PCP 6.
static void a_tagged_ipv6_mark_is_answered_in_kind(void **state)
{
	static const uint8_t my_ip6[16] = {0xfd, [15] = 1}, peer_ip6[16] = {0xfd, [15] = 2};
	uint8_t b[200] = {0};
	uint16_t l4 = UDP_HEADER_BYTES + BTH_BYTES + 64 + ICRC_BYTES;
	struct pkt p;

	start();
	for (unsigned i = 0; i < 2; i++) {
		bool ack = i == 1;
		uint8_t *q = eth_put(b, my_mac, ack ? my_mac : switch_mac, ETHERTYPE_VLAN);
		q = vlan_put(q, 3 << 13 | 5, ETHERTYPE_IPV6);
		q = ipv6_put(q, TOS | ECN_CE, 0, l4, IP_PROTO_UDP, 64, peer_ip6, my_ip6);
		q = udp_put(q, 0xc001, ROCE_UDP_PORT, l4);
		bth_put(q, ROCE_SEND_MIDDLE, BTH_MIG, 0, MY_QP, false, 50 + i);
		uint16_t len = ETH_HEADER_BYTES + VLAN_TAG_BYTES + IPV6_HEADER_BYTES + l4;
		icrc_put(b + len - ICRC_BYTES, icrc_compute(b, ETH_HEADER_BYTES + VLAN_TAG_BYTES,
						       (unsigned)(q - b), len - ICRC_BYTES));
		struct frame *f = switch_frame(b, len, 3);
		f->flags = FRAME_F_PARSED | FRAME_F_ROCE | FRAME_F_IPV6 | FRAME_F_TAGGED;
		f->opcode = ROCE_SEND_MIDDLE;
		f->l3_off = ETH_HEADER_BYTES + VLAN_TAG_BYTES;
		node_send(&r->sw, 0, f);
		settle();
		// The endpoint's ACK of the first.
		l4 = UDP_HEADER_BYTES + BTH_BYTES + 4 + ICRC_BYTES;
		q = eth_put(b, switch_mac, my_mac, ETHERTYPE_IPV6);
		q = ipv6_put(q, TOS, 0, l4, IP_PROTO_UDP, 64, my_ip6, peer_ip6);
		q = udp_put(q, 0xc001, ROCE_UDP_PORT, l4);
		bth_put(q, ROCE_ACK, BTH_MIG, 0, PEER_QP, false, 50);
		if (!ack) {
			len = ETH_HEADER_BYTES + IPV6_HEADER_BYTES + l4;
			struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
			memcpy(rte_pktmbuf_append(m, len), b, len);
			r->real.in[r->real.n_in++] = m;
			settle();
			assert_int_equal(did()->edge_qps_paired, 1);
			l4 = UDP_HEADER_BYTES + BTH_BYTES + 64 + ICRC_BYTES;
		}
	}
	assert_int_equal(did()->edge_cnp_unsent, 1);
	assert_int_equal(did()->edge_cnp_sent, 1);
	const struct record *c = &r->rec[0];
	assert_int_equal(pkt_parse(c->bytes, c->len, &p), PKT_OK);
	assert_true(pkt_icrc_valid(&p));
	assert_int_equal(p.opcode, ROCE_OP_CNP);
	assert_int_equal(p.dest_qp, PEER_QP);
	assert_int_equal(p.vlan_tci, 6 << 13 | 5);
	assert_int_equal(p.dscp, 48);
	assert_memory_equal(c->bytes + p.src_off, my_ip6, 16);
	assert_memory_equal(c->bytes + p.dst_off, peer_ip6, 16);
	stop();
}

static void an_endpoint_without_it_gets_none_of_it(void **state)
{
	start_with(true, false);
	learn_both();
	cnp_for(MY_QP);
	peer_sends(ROCE_WRITE_MIDDLE, TOS | ECN_CE, MY_QP, 50);
	data(PEER_QP, 101, 5);
	settle();
	assert_int_equal(did()->edge_cnp_swallowed, 1);
	assert_int_equal(did()->edge_cnp_handled + did()->edge_cnp_sent, 0);
	assert_int_equal(did()->edge_cc_held, 0);
	assert_int_equal(did()->edge_ce_seen, 1);
	stop();
}

static int eal_up(void **state)
{
	char *argv[] = {(char[]){"test"}, (char[]){"--no-huge"}, (char[]){"--no-shconf"},
		(char[]){"--no-pci"}, (char[]){"--no-telemetry"}, (char[]){"-m"}, (char[]){"128"},
		(char[]){"--log-level=error"}, (char[]){"-l"}, (char[]){"0"}};

	if (rte_eal_init(RTE_DIM(argv), argv) < 0)
		return -1;
	pool = rte_pktmbuf_pool_create(
		"full", POOL_FRAMES, 0, sizeof(struct frame), ROOM, SOCKET_ID_ANY);
	return pool != NULL ? 0 : -1;
}

static int eal_down(void **state)
{
	rte_mempool_free(pool);
	return rte_eal_cleanup();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cnp_paces_its_queue_pair_to_the_picosecond),
		cmocka_unit_test(another_queue_pair_is_not_held_up),
		cmocka_unit_test(a_limiter_that_recovered_is_off),
		cmocka_unit_test(acks_pass_requests_but_not_read_responses),
		cmocka_unit_test(a_pause_stops_a_limiter_without_a_burst_after_it),
		cmocka_unit_test(what_is_held_counts_against_the_queue_limit),
		cmocka_unit_test(a_cnp_for_an_unknown_queue_pair_slows_all_unknown_ones),
		cmocka_unit_test(a_cnp_for_nobody_changes_nothing),
		cmocka_unit_test(equal_psns_are_told_apart_by_the_source_port),
		cmocka_unit_test(a_new_connection_replaces_the_old),
		cmocka_unit_test(idle_queue_pairs_make_room),
		cmocka_unit_test(data_becomes_ect0_with_the_checksum_right),
		cmocka_unit_test(ecn_stays_as_sent_unless_asked_for),
		cmocka_unit_test(a_mark_is_answered_to_the_senders_queue_pair),
		cmocka_unit_test(cnps_keep_their_interval_per_queue_pair),
		cmocka_unit_test(a_limiter_may_be_freed_while_its_frames_wait),
		cmocka_unit_test(a_tagged_ipv6_mark_is_answered_in_kind),
		cmocka_unit_test(an_endpoint_without_it_gets_none_of_it),
	};

	return cmocka_run_group_tests(tests, eal_up, eal_down);
}
