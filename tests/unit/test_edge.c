/* SPDX-License-Identifier: BSD-3-Clause */
// The edge between a real port and the fabric: back-pressure both ways, PFC on the endpoint's
// behalf, DSCP, and what it keeps from either side. The real port is two arrays; the switch is a
// node that records what it gets and sends what a test hands it. The link is 100 Gb/s (80 ps a
// byte) with DELAY each way.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_eal.h>
#include <rte_mbuf.h>

#include "emu/core/step.h"
#include "pcap/build.h"
#include "pcap/codec.h"
#include "pcap/icrc.h"
#include "pipelines/edge.h"
#include "pipelines/endpoint.h"

#define BYTE_PS     80
#define DELAY       (500 * SIM_NS)
#define POOL_FRAMES 8191
#define ROOM        (RTE_PKTMBUF_HEADROOM + 4400)
#define RECORDS     4096
#define RX_LIMIT    8192 // bytes per priority towards the fabric
#define TX_LIMIT    16384
#define FRAME_BYTES 1000
#define HELD_BYTES  (FRAME_BYTES + ETH_FCS_BYTES)
#define WIRE_PS     ((simtime_t)(FRAME_BYTES + ETH_OVERHEAD_BYTES) * BYTE_PS)
#define MY_IP       0x0a000001
#define PEER_IP     0x0a000002

static const uint8_t my_mac[6] = {2, 0, 0, 0, 0, 1};
static const uint8_t switch_mac[6] = {2, 0, 0, 0, 1, 0};
static const uint8_t other_mac[6] = {2, 0, 0, 0, 0, 9};

// ---- the real port ------------------------------------------------------------------------------

struct real_port {
	struct rte_mbuf *in[RECORDS]; // what the endpoint sends
	unsigned n_in, taken;
	unsigned accepts; // frames it takes from now on
	bool down;
	unsigned n_out;
	uint16_t out_len[RECORDS];
	uint8_t out[RECORDS][96];
	uint8_t last[4400]; // the last one whole
};

struct switch_side {
	struct node n; // first
	unsigned n_rec;
	simtime_t at[RECORDS];
	uint16_t len[RECORDS];
	uint8_t tc[RECORDS];
	uint32_t dst[RECORDS];
	uint8_t bytes[RECORDS][96];
};

struct rig {
	struct endpoint_table eps;
	struct node *edge;
	struct switch_side sw;
	struct lane up, down;
	struct group_head group;
	struct real_port real;
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
	struct real_port *p = port;
	unsigned k = 0;

	for (; k < n && p->accepts > 0; k++, p->accepts--) {
		assert_true(p->n_out < RECORDS);
		assert_int_equal(m[k]->nb_segs, 1);
		assert_int_equal(m[k]->pkt_len, m[k]->data_len);
		p->out_len[p->n_out] = m[k]->data_len;
		memcpy(p->out[p->n_out], rte_pktmbuf_mtod(m[k], void *),
			RTE_MIN(m[k]->data_len, 96));
		memcpy(p->last, rte_pktmbuf_mtod(m[k], void *), m[k]->data_len);
		p->n_out++;
		rte_pktmbuf_free(m[k]);
	}
	return k;
}

static bool real_down(void *port)
{
	return ((struct real_port *)port)->down;
}

static const struct edge_ops real_ops = {.rx = real_rx, .tx = real_tx, .down = real_down};

static void endpoint_sends(const uint8_t *bytes, uint16_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	assert_non_null(m);
	memcpy(rte_pktmbuf_append(m, len), bytes, len);
	r->real.in[r->real.n_in++] = m;
}

// ---- the switch -----------------------------------------------------------------------------

static void sw_arrive(struct node *n, unsigned port, struct frame *f)
{
	struct switch_side *s = (struct switch_side *)n;

	assert_true(s->n_rec < RECORDS);
	s->at[s->n_rec] = n->now;
	s->len[s->n_rec] = f->len;
	s->tc[s->n_rec] = f->tc;
	s->dst[s->n_rec] = f->dst;
	memcpy(s->bytes[s->n_rec], frame_data(f), RTE_MIN(f->len, 96));
	s->n_rec++;
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

static struct frame *switch_frame(const uint8_t *bytes, uint16_t len, uint8_t tc)
{
	struct node *n = &r->sw.n;
	struct frame *f = frame_alloc(pool);

	assert_non_null(f);
	node_adopt(n, f);
	f->data_off = RTE_PKTMBUF_HEADROOM;
	memcpy(frame_data(f), bytes, len);
	f->len = f->head_len = len;
	f->tc = tc;
	return f;
}

static void switch_sends(const uint8_t *bytes, uint16_t len, uint8_t tc)
{
	node_send(&r->sw.n, 0, switch_frame(bytes, len, tc));
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
	node_send(&r->sw.n, 0, f);
}

// ---- frames -------------------------------------------------------------------------------------

static void udp_bytes(uint8_t *out, uint16_t len, uint8_t dscp, uint16_t dport)
{
	memset(out, 0, len);
	uint8_t *p = eth_put(out, other_mac, my_mac, ETHERTYPE_IPV4);
	p = ipv4_put(p, (uint8_t)(dscp << 2 | ECN_ECT0), len - ETH_HEADER_BYTES, 1, 64,
		IP_PROTO_UDP, MY_IP, PEER_IP);
	udp_put(p, 0xc001, dport, len - ETH_HEADER_BYTES - IPV4_HEADER_BYTES);
}

static void endpoint_sends_udp(unsigned n, uint8_t dscp)
{
	uint8_t bytes[FRAME_BYTES];

	udp_bytes(bytes, sizeof(bytes), dscp, 2000);
	for (unsigned i = 0; i < n; i++)
		endpoint_sends(bytes, sizeof(bytes));
}

// A RoCE packet without payload; returns its length.
static uint16_t roce_bytes(uint8_t *out, uint8_t opcode, uint8_t tos)
{
	uint16_t ext = (uint16_t)roce_header_bytes(opcode);
	uint16_t len = ETH_HEADER_BYTES + IPV4_HEADER_BYTES + UDP_HEADER_BYTES + ext + ICRC_BYTES;

	memset(out, 0, len);
	uint8_t *p = eth_put(out, other_mac, my_mac, ETHERTYPE_IPV4);
	p = ipv4_put(p, tos, len - ETH_HEADER_BYTES, 1, 64, IP_PROTO_UDP, MY_IP, PEER_IP);
	p = udp_put(p, 0xc001, ROCE_UDP_PORT, (uint16_t)(UDP_HEADER_BYTES + ext + ICRC_BYTES));
	bth_put(p, opcode, BTH_MIG, 0, 0x11, false, 7);
	return len;
}

// ---- the run ------------------------------------------------------------------------------------

static void no_wake(struct group *g, struct node *n, simtime_t at)
{
}

static void run(simtime_t until)
{
	struct node *nodes[] = {r->edge, &r->sw.n};

	for (;;) {
		struct node *first = NULL;
		simtime_t best = SIMTIME_NEVER;
		uint32_t src = 0;
		for (unsigned i = 0; i < 2; i++) {
			uint32_t s;
			simtime_t at = evq_next(&nodes[i]->evq, &s);
			if (at < best) {
				best = at;
				first = nodes[i];
				src = s;
			}
		}
		if (first == NULL || best > until)
			break;
		node_step(first, src, best);
	}
	nodes[0]->now = nodes[1]->now = until;
}

static unsigned poll_port(void)
{
	return r->edge->ops->poll(r->edge);
}

static void connect_lane(struct lane *l, struct node *src, struct node *dst)
{
	assert_int_equal(lane_init(l, 4096), 0);
	l->src = src;
	l->dst = dst;
	l->rate_bps = UINT64_C(100000000000);
	l->byte_time = byte_time_fp(l->rate_bps);
	l->delay = DELAY;
	l->up = true;
	src->ports[0].out = l;
	dst->ports[0].in = l;
}

static void start_with(int roce_dscp, bool learn_mac, simtime_t pause_response)
{
	struct edge_port_config port = {
		.ops = &real_ops, .mtu = 1500, .learn_mac = learn_mac, .ip4 = MY_IP};

	r = aligned_alloc(64, (sizeof(*r) + 63) / 64 * 64);
	assert_non_null(r);
	memset(r, 0, sizeof(*r));
	r->real.accepts = RECORDS;
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
		.pfc_mask = 1 << 3 | 1 << 4,
		.roce_dscp = roce_dscp,
		.rx_queue_bytes = RX_LIMIT,
		.tx_buffer_bytes = TX_LIMIT,
		.pause_response = pause_response};
	for (unsigned i = 0; i < 64; i++)
		cfg.dscp_to_tc[i] = i < 8 ? (uint8_t)i : 0;
	for (unsigned i = 0; i < 8; i++)
		cfg.pcp_to_tc[i] = (uint8_t)i;
	assert_int_equal(edge_create(&cfg, &r->edge), 0);
	assert_int_equal(node_init(&r->sw.n, &sw_ops, "switch", 1, 8), 0);
	struct node *nodes[] = {r->edge, &r->sw.n};
	for (unsigned i = 0; i < 2; i++) {
		nodes[i]->pool = (struct frame_pool){.heads = pool, .full = pool};
		nodes[i]->group = (struct group *)&r->group;
	}
	connect_lane(&r->up, r->edge, &r->sw.n);
	connect_lane(&r->down, &r->sw.n, r->edge);
	r->edge->ops->start(r->edge);
}

static void start(int roce_dscp)
{
	start_with(roce_dscp, false, 0);
}

// Frames made = ended + held, counters equal the queues, and no buffer is lost.
static void stop(void)
{
	uint64_t made, ended;

	run(r->edge->now + 100 * SIM_US); // what is on a lane arrives
	made = r->edge->created + r->sw.n.created;
	ended = r->edge->delivered + r->edge->consumed + r->edge->dropped +
		r->edge->ops->held(r->edge) + r->sw.n.consumed + r->sw.n.dropped;
	assert_int_equal(made, ended);
	if (!r->edge->ops->check(r->edge, false, why, sizeof(why)))
		fail_msg("%s", why);
	r->edge->ops->drain(r->edge);
	if (!r->edge->ops->check(r->edge, true, why, sizeof(why)))
		fail_msg("drained: %s", why);
	while (r->real.taken < r->real.n_in)
		rte_pktmbuf_free(r->real.in[r->real.taken++]);
	assert_int_equal(rte_mempool_avail_count(pool), POOL_FRAMES);
	edge_destroy(r->edge);
	node_fini(&r->sw.n);
	lane_fini(&r->up);
	lane_fini(&r->down);
	endpoint_table_fini(&r->eps);
	free(r);
}

static const struct edge_counters *did(void)
{
	return edge_counters(r->edge, 0);
}

static struct port_counters *port(void)
{
	return r->edge->ports[0].ctr;
}

// ---- from the endpoint --------------------------------------------------------------------------

static void a_frame_enters_described_and_addressed_to_the_switch(void **state)
{
	start(EDGE_NO_DSCP);
	endpoint_sends_udp(1, 3);
	assert_int_equal(poll_port(), 1);
	run(SIM_MS);
	assert_int_equal(r->sw.n_rec, 1);
	assert_int_equal(r->sw.at[0], WIRE_PS + DELAY);
	assert_int_equal(r->sw.tc[0], 3);
	assert_int_equal(r->sw.dst[0], 1);
	assert_memory_equal(r->sw.bytes[0], switch_mac, 6);
	assert_memory_equal(r->sw.bytes[0] + 6, my_mac, 6);
	stop();
}

static void the_line_rate_paces_what_one_poll_took(void **state)
{
	start(EDGE_NO_DSCP);
	endpoint_sends_udp(5, 3);
	assert_int_equal(poll_port(), 5);
	run(SIM_MS);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(r->sw.at[i], (i + 1) * WIRE_PS + DELAY);
	stop();
}

// A frame takes 81.92 ns. At 0 those that start before the response time is over are sent, 0 to 3
// (245.76 ns), whatever arrives; from 327.68 ns on the next four. The pause, 84 bytes of wire, is
// in at 506.72 ns and takes effect at 806.72 ns: number 9 starts at 737.28 ns, number 10 would at
// 819.20 ns.
static void what_no_pause_can_stop_is_sent_at_once(void **state)
{
	start_with(EDGE_NO_DSCP, false, 300 * SIM_NS);
	endpoint_sends_udp(20, 3);
	assert_int_equal(poll_port(), 20);
	switch_pauses(1 << 3, 65535);
	run(0);
	assert_int_equal(r->up.tail, 4);
	run(330 * SIM_NS);
	assert_int_equal(r->up.tail, 8);
	run(10 * SIM_US);
	assert_int_equal(r->sw.n_rec, 10);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(r->sw.at[i], (i + 1) * WIRE_PS + DELAY);
	stop();
}

static void a_pause_holds_its_priority_only(void **state)
{
	start(EDGE_NO_DSCP);
	switch_pauses(1 << 3, 65535);
	run(SIM_US);
	endpoint_sends_udp(2, 3);
	endpoint_sends_udp(1, 4);
	poll_port();
	run(100 * SIM_US);
	assert_int_equal(r->sw.n_rec, 1);
	assert_int_equal(r->sw.tc[0], 4);
	switch_pauses(1 << 3, 0);
	run(200 * SIM_US);
	assert_int_equal(r->sw.n_rec, 3);
	assert_int_equal(port()->rx_pause[3], 2);
	// From the XOFF's arrival to the XON's, both 84 bytes of wire after they were sent.
	assert_int_equal(port()->rx_pauses.duration[3], 100 * SIM_US);
	stop();
}

static void a_pause_ends_by_itself_when_its_quanta_are_over(void **state)
{
	start(EDGE_NO_DSCP);
	switch_pauses(1 << 3, 100);
	run(SIM_US);
	endpoint_sends_udp(1, 3);
	poll_port();
	run(SIM_MS);
	// Arrival of the PFC frame, 100 quanta of 64 byte times, then the frame itself.
	simtime_t resumed = 84 * BYTE_PS + DELAY + 100 * 64 * BYTE_PS;
	assert_int_equal(r->sw.at[0], resumed + WIRE_PS + DELAY);
	stop();
}

static void a_pause_of_a_priority_without_pfc_is_ignored(void **state)
{
	start(EDGE_NO_DSCP);
	switch_pauses(1 << 5, 65535);
	run(SIM_US);
	endpoint_sends_udp(1, 5);
	poll_port();
	run(50 * SIM_US);
	assert_int_equal(r->sw.n_rec, 1);
	assert_int_equal(port()->rx_pause_ignored, 1);
	stop();
}

static void a_full_queue_holds_back_the_port_and_loses_nothing(void **state)
{
	start(EDGE_NO_DSCP);
	switch_pauses(1 << 3, 65535);
	run(SIM_US);
	endpoint_sends_udp(200, 3);
	for (int i = 0; i < 20; i++)
		poll_port();
	// A burst of 32 is taken before the queue is looked at again: 9 frames reach 8192 bytes.
	assert_int_equal(r->real.taken, 32);
	assert_int_equal(did()->edge_rx_held, 1);
	switch_pauses(1 << 3, 0);
	for (int i = 0; i < 100; i++) {
		run(r->edge->now + SIM_US);
		poll_port();
	}
	run(r->edge->now + 100 * SIM_US);
	assert_int_equal(r->real.taken, 200);
	assert_int_equal(r->sw.n_rec, 200);
	assert_int_equal(r->edge->dropped, 0);
	stop();
}

static void malformed_frames_end_here_by_reason(void **state)
{
	uint8_t bytes[FRAME_BYTES];

	start(EDGE_NO_DSCP);
	udp_bytes(bytes, sizeof(bytes), 3, 2000);
	endpoint_sends(bytes, 13);  // not even an Ethernet header
	endpoint_sends(bytes, 500); // IP length beyond the frame
	bytes[14 + 8] ^= 1;         // TTL without its checksum
	endpoint_sends(bytes, sizeof(bytes));
	assert_int_equal(poll_port(), 3);
	run(SIM_MS);
	assert_int_equal(r->sw.n_rec, 0);
	assert_int_equal(did()->edge_rx_malformed, 3);
	assert_int_equal(port()->drops[DROP_MALFORMED_ETH], 1);
	assert_int_equal(port()->drops[DROP_MALFORMED_IP], 1);
	assert_int_equal(port()->drops[DROP_IP_CHECKSUM], 1);
	stop();
}

static void a_frame_beyond_the_mtu_is_dropped(void **state)
{
	uint8_t bytes[1515];

	start(EDGE_NO_DSCP);
	udp_bytes(bytes, 1514, 3, 2000); // 1500 bytes of IP
	endpoint_sends(bytes, 1514);
	udp_bytes(bytes, 1515, 3, 2000);
	endpoint_sends(bytes, 1515);
	poll_port();
	run(SIM_MS);
	assert_int_equal(r->sw.n_rec, 1);
	assert_int_equal(port()->drops[DROP_MTU_EXCEEDED], 1);
	stop();
}

static void a_frame_in_pieces_is_joined(void **state)
{
	uint8_t bytes[FRAME_BYTES];

	start(EDGE_NO_DSCP);
	udp_bytes(bytes, sizeof(bytes), 3, 2000);
	struct rte_mbuf *a = rte_pktmbuf_alloc(pool), *b = rte_pktmbuf_alloc(pool);
	memcpy(rte_pktmbuf_append(a, 40), bytes, 40);
	memcpy(rte_pktmbuf_append(b, FRAME_BYTES - 40), bytes + 40, FRAME_BYTES - 40);
	assert_int_equal(rte_pktmbuf_chain(a, b), 0);
	r->real.in[r->real.n_in++] = a;
	poll_port();
	run(SIM_MS);
	assert_int_equal(r->sw.len[0], FRAME_BYTES);
	assert_memory_equal(r->sw.bytes[0] + 6, bytes + 6, 90);
	assert_int_equal(did()->edge_linearised, 1);
	stop();
}

static void roce_dscp_is_set_and_decides_the_priority(void **state)
{
	uint8_t bytes[128];
	uint16_t len = roce_bytes(bytes, ROCE_ACK, 0x02); // DSCP 0, ECT(0)

	start(3);
	endpoint_sends(bytes, len);
	endpoint_sends_udp(1, 0); // not RoCE: stays
	poll_port();
	run(SIM_MS);
	const uint8_t *roce = r->sw.tc[0] == 3 ? r->sw.bytes[0] : r->sw.bytes[1];
	const uint8_t *plain = r->sw.tc[0] == 3 ? r->sw.bytes[1] : r->sw.bytes[0];
	assert_int_equal(roce[15], 3 << 2 | ECN_ECT0);
	assert_int_equal(ipv4_header_sum(roce + 14, IPV4_HEADER_BYTES), 0xffff);
	assert_int_equal(plain[15], ECN_ECT0);
	assert_int_equal(r->sw.tc[0] + r->sw.tc[1], 3 + 0);
	assert_int_equal(did()->edge_dscp_rewritten, 1);
	stop();
}

static void arp_goes_to_the_switch_as_it_is(void **state)
{
	uint8_t bytes[42] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 0x08, 0x06, 0, 1,
		8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2};

	start(EDGE_NO_DSCP);
	endpoint_sends(bytes, sizeof(bytes));
	poll_port();
	run(SIM_MS);
	assert_int_equal(r->sw.n_rec, 1);
	assert_memory_equal(r->sw.bytes[0], bytes, sizeof(bytes));
	assert_int_equal(did()->edge_local_in, 1);
	stop();
}

static void pause_frames_of_the_endpoint_do_not_enter(void **state)
{
	uint8_t bytes[ETH_MIN_NO_FCS];
	uint16_t q[PFC_CLASSES] = {[3] = 65535};

	start(EDGE_NO_DSCP);
	pfc_build(bytes, my_mac, 1 << 3, q);
	endpoint_sends(bytes, sizeof(bytes));
	poll_port();
	run(SIM_MS);
	assert_int_equal(r->sw.n_rec, 0);
	assert_int_equal(r->edge->created, 0);
	assert_int_equal(did()->edge_control_from_port, 1);
	stop();
}

// ---- to the endpoint ----------------------------------------------------------------------------

static void a_frame_reaches_the_port_with_its_mac(void **state)
{
	uint8_t bytes[FRAME_BYTES];

	start(EDGE_NO_DSCP);
	udp_bytes(bytes, sizeof(bytes), 3, 2000); // to other_mac
	switch_sends(bytes, sizeof(bytes), 3);
	run(SIM_MS);
	poll_port();
	assert_int_equal(r->real.n_out, 1);
	assert_int_equal(r->real.out_len[0], FRAME_BYTES);
	assert_memory_equal(r->real.out[0], my_mac, 6);
	assert_memory_equal(r->real.out[0] + 6, bytes + 6, 90);
	assert_int_equal(r->edge->delivered, 1);
	stop();
}

static void the_endpoints_mac_is_what_it_sends_with(void **state)
{
	static const uint8_t real_mac[6] = {2, 7, 7, 7, 7, 7};
	uint8_t bytes[FRAME_BYTES];

	start(EDGE_NO_DSCP);
	udp_bytes(bytes, sizeof(bytes), 3, 2000);
	memcpy(bytes + 6, real_mac, 6);
	endpoint_sends(bytes, sizeof(bytes));
	poll_port();
	switch_sends(bytes, sizeof(bytes), 3);
	run(SIM_MS);
	poll_port();
	assert_memory_equal(r->real.out[0], real_mac, 6);
	stop();
}

static void an_unknown_endpoint_is_asked_for_its_mac(void **state)
{
	static const uint8_t real_mac[6] = {2, 7, 7, 7, 7, 7};
	static const uint8_t all[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	uint8_t bytes[FRAME_BYTES];

	start_with(EDGE_NO_DSCP, true, 0);
	run(250 * SIM_MS);
	assert_int_equal(r->real.n_out, 3); // at 0, 100 and 200 ms
	assert_int_equal(get_be16(r->real.out[2] + 12), ETHERTYPE_ARP);
	assert_int_equal(get_be16(r->real.out[2] + 14 + 6), 1);      // request
	assert_int_equal(get_be32(r->real.out[2] + 14 + 14), 0);     // a probe: no sender address
	assert_int_equal(get_be32(r->real.out[2] + 14 + 24), MY_IP); // whose is this?
	udp_bytes(bytes, sizeof(bytes), 3, 2000);
	switch_sends(bytes, sizeof(bytes), 3);
	run(260 * SIM_MS);
	poll_port();
	assert_memory_equal(r->real.out[3], all, 6);
	memcpy(bytes + 6, real_mac, 6);
	endpoint_sends(bytes, sizeof(bytes));
	poll_port();
	switch_sends(bytes, sizeof(bytes), 3);
	run(SIM_S);
	poll_port();
	assert_int_equal(r->real.n_out, 5); // asked no more
	assert_memory_equal(r->real.out[4], real_mac, 6);
	assert_int_equal(r->edge->created, 1);
	stop();
}

static void somebody_elses_frames_do_not_teach_the_mac(void **state)
{
	static const uint8_t stranger[6] = {2, 8, 8, 8, 8, 8};
	uint8_t bytes[FRAME_BYTES], *ip = bytes + ETH_HEADER_BYTES;

	start(EDGE_NO_DSCP);
	udp_bytes(bytes, sizeof(bytes), 3, 2000);
	memcpy(bytes + 6, stranger, 6);
	put_be32(ip + 12, MY_IP + 7);
	ipv4_set_checksum(ip, IPV4_HEADER_BYTES);
	endpoint_sends(bytes, sizeof(bytes));
	poll_port();
	switch_sends(bytes, sizeof(bytes), 3);
	run(SIM_MS);
	poll_port();
	assert_memory_equal(r->real.out[0], my_mac, 6);
	stop();
}

static void cnp_and_pfc_are_kept_from_the_endpoint(void **state)
{
	uint8_t bytes[128];
	uint16_t len = roce_bytes(bytes, ROCE_OP_CNP, 48 << 2);

	start(EDGE_NO_DSCP);
	struct frame *f = switch_frame(bytes, len, 6);
	f->flags = FRAME_F_PARSED | FRAME_F_ROCE;
	f->opcode = ROCE_OP_CNP;
	node_send(&r->sw.n, 0, f);
	switch_pauses(1 << 3, 10);
	run(SIM_MS);
	poll_port();
	assert_int_equal(r->real.n_out, 0);
	assert_int_equal(did()->edge_cnp_swallowed, 1);
	assert_int_equal(r->edge->consumed, 2);
	stop();
}

static void a_synthetic_frame_is_completed(void **state)
{
	uint8_t bytes[128];
	uint16_t head = (uint16_t)(roce_bytes(bytes, ROCE_SEND_ONLY, 3 << 2) - ICRC_BYTES);
	uint16_t payload = 256, len = (uint16_t)(head + payload + ICRC_BYTES);
	struct pkt p;

	start(EDGE_NO_DSCP);
	uint8_t *ip = bytes + ETH_HEADER_BYTES;
	put_be16(ip + 2, (uint16_t)(len - ETH_HEADER_BYTES));
	ipv4_set_checksum(ip, IPV4_HEADER_BYTES);
	put_be16(
		ip + IPV4_HEADER_BYTES + 4, (uint16_t)(len - ETH_HEADER_BYTES - IPV4_HEADER_BYTES));
	struct frame *f = switch_frame(bytes, head, 3);
	f->len = len;
	f->payload_len = payload;
	f->flags = FRAME_F_PARSED | FRAME_F_ROCE | FRAME_F_SYNTH;
	f->l3_off = ETH_HEADER_BYTES;
	f->l4_off = ETH_HEADER_BYTES + IPV4_HEADER_BYTES;
	f->opcode = ROCE_SEND_ONLY;
	f->flow = 1;
	node_send(&r->sw.n, 0, f);
	run(SIM_MS);
	poll_port();
	assert_int_equal(r->real.n_out, 1);
	assert_int_equal(pkt_parse(r->real.last, r->real.out_len[0], &p), PKT_OK);
	assert_int_equal(p.payload_len, payload);
	assert_true(pkt_icrc_valid(&p));
	assert_int_equal(did()->edge_materialised, 1);
	stop();
}

static void a_slow_port_pauses_the_switch_before_anything_is_lost(void **state)
{
	uint8_t bytes[FRAME_BYTES];

	start(EDGE_NO_DSCP);
	udp_bytes(bytes, sizeof(bytes), 3, 2000);
	r->real.accepts = 0;
	// 8 x 1004 bytes are below one half of the buffer (8192), 9 are not.
	for (unsigned i = 0; i < 8; i++)
		switch_sends(bytes, sizeof(bytes), 3);
	run(10 * SIM_US);
	assert_int_equal(r->sw.n_rec, 0);
	switch_sends(bytes, sizeof(bytes), 3);
	run(20 * SIM_US);
	assert_int_equal(r->sw.n_rec, 1);
	assert_int_equal(r->sw.bytes[0][12], 0x88);
	assert_int_equal(r->sw.bytes[0][13], 0x08);
	assert_int_equal(get_be16(r->sw.bytes[0] + 16), 1 << 3);
	assert_int_equal(get_be16(r->sw.bytes[0] + 18 + 2 * 3), 65535);
	// The port takes 5: 4 x 1004 bytes are below a quarter (4096): XON.
	r->real.accepts = 5;
	poll_port();
	run(30 * SIM_US);
	assert_int_equal(r->sw.n_rec, 2);
	assert_int_equal(get_be16(r->sw.bytes[1] + 18 + 2 * 3), 0);
	r->real.accepts = RECORDS;
	poll_port();
	assert_int_equal(r->real.n_out, 9);
	assert_int_equal(r->edge->dropped, 0);
	assert_true(did()->edge_tx_busy >= 1);
	stop();
}

static void xoff_is_repeated_while_the_port_stays_slow(void **state)
{
	uint8_t bytes[FRAME_BYTES];

	start(EDGE_NO_DSCP);
	udp_bytes(bytes, sizeof(bytes), 3, 2000);
	r->real.accepts = 0;
	for (unsigned i = 0; i < 9; i++)
		switch_sends(bytes, sizeof(bytes), 3);
	// 65535 quanta of 64 bytes at 80 ps last 335.5 us; the peer must hear again before that.
	run(2 * SIM_MS);
	assert_true(r->sw.n_rec >= 6);
	for (unsigned i = 1; i < r->sw.n_rec; i++)
		assert_true(r->sw.at[i] - r->sw.at[i - 1] < 335 * SIM_US);
	stop();
}

static void beyond_its_buffer_the_edge_drops_and_says_so(void **state)
{
	uint8_t bytes[FRAME_BYTES];

	start(EDGE_NO_DSCP);
	udp_bytes(bytes, sizeof(bytes), 0, 2000);
	r->real.accepts = 0;
	for (unsigned i = 0; i < 20; i++)
		switch_sends(bytes, sizeof(bytes), 0); // priority 0 has no PFC
	run(SIM_MS);
	// 16 x 1004 = 16064 bytes fit in 16384.
	assert_int_equal(port()->drops[DROP_EDGE_BUFFER_FULL], 4);
	assert_int_equal(port()->rx_buf_discard[0], 4);
	assert_int_equal(r->sw.n_rec, 0);
	stop();
}

static void an_absent_endpoint_does_not_pause_the_fabric(void **state)
{
	uint8_t bytes[FRAME_BYTES];

	start(EDGE_NO_DSCP);
	udp_bytes(bytes, sizeof(bytes), 3, 2000);
	r->real.accepts = 0;
	r->real.down = true;
	for (unsigned i = 0; i < 100; i++) {
		switch_sends(bytes, sizeof(bytes), 3);
		run(r->edge->now + SIM_US);
		poll_port();
	}
	run(SIM_MS);
	poll_port();
	assert_int_equal(port()->drops[DROP_REAL_PORT_TX], 100);
	assert_int_equal(r->sw.n_rec, 0);
	stop();
}

static void nonsense_is_refused_at_creation(void **state)
{
	struct edge_port_config p = {.ops = &real_ops, .mtu = 1500};
	struct edge_config cfg = {
		.name = "edge", .ports = &p, .n_ports = 1, .roce_dscp = EDGE_NO_DSCP};
	struct node *n;

	cfg.dscp_to_tc[5] = 8;
	assert_int_equal(edge_create(&cfg, &n), -EINVAL);
	cfg.dscp_to_tc[5] = 0;
	cfg.roce_dscp = 64;
	assert_int_equal(edge_create(&cfg, &n), -EINVAL);
	cfg.roce_dscp = 63;
	p.mtu = 0;
	assert_int_equal(edge_create(&cfg, &n), -EINVAL);
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
		cmocka_unit_test(a_frame_enters_described_and_addressed_to_the_switch),
		cmocka_unit_test(the_line_rate_paces_what_one_poll_took),
		cmocka_unit_test(what_no_pause_can_stop_is_sent_at_once),
		cmocka_unit_test(a_pause_holds_its_priority_only),
		cmocka_unit_test(a_pause_ends_by_itself_when_its_quanta_are_over),
		cmocka_unit_test(a_pause_of_a_priority_without_pfc_is_ignored),
		cmocka_unit_test(a_full_queue_holds_back_the_port_and_loses_nothing),
		cmocka_unit_test(malformed_frames_end_here_by_reason),
		cmocka_unit_test(a_frame_beyond_the_mtu_is_dropped),
		cmocka_unit_test(a_frame_in_pieces_is_joined),
		cmocka_unit_test(roce_dscp_is_set_and_decides_the_priority),
		cmocka_unit_test(arp_goes_to_the_switch_as_it_is),
		cmocka_unit_test(pause_frames_of_the_endpoint_do_not_enter),
		cmocka_unit_test(a_frame_reaches_the_port_with_its_mac),
		cmocka_unit_test(the_endpoints_mac_is_what_it_sends_with),
		cmocka_unit_test(an_unknown_endpoint_is_asked_for_its_mac),
		cmocka_unit_test(somebody_elses_frames_do_not_teach_the_mac),
		cmocka_unit_test(cnp_and_pfc_are_kept_from_the_endpoint),
		cmocka_unit_test(a_synthetic_frame_is_completed),
		cmocka_unit_test(a_slow_port_pauses_the_switch_before_anything_is_lost),
		cmocka_unit_test(xoff_is_repeated_while_the_port_stays_slow),
		cmocka_unit_test(beyond_its_buffer_the_edge_drops_and_says_so),
		cmocka_unit_test(an_absent_endpoint_does_not_pause_the_fabric),
		cmocka_unit_test(nonsense_is_refused_at_creation),
	};

	return cmocka_run_group_tests(tests, eal_up, eal_down);
}
