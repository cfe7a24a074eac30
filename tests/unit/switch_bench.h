/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// A bench for the Ethernet switch: one switch with a peer on each port, run event by event without
// the engine. Peer i is endpoint i, 10.0.0.(i+1) and fd00::(i+1), at 100 Gb/s (80 ps a byte) and
// DELAY each way. A peer records what it gets, sends what a test hands it, and can be a greedy
// source that obeys PFC `response` after it came.

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_eal.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "models/pfc.h"
#include "node_run.h"
#include "pcap/build.h"
#include "pcap/codec.h"
#include "pipelines/ethernet_switch.h"

#define PORTS       4
#define BYTE_PS     80
#define DELAY       (500 * SIM_NS)
#define POOL_FRAMES 16383
#define ROOM        2048
#define RECORDS     8192
#define CELL        100
#define WIRE(len)   ((simtime_t)((len) + ETH_OVERHEAD_BYTES) * BYTE_PS)

struct record {
	simtime_t at;
	uint16_t len;
	uint8_t bytes[96];
};

struct source {
	unsigned to; // peer
	uint16_t len;
	uint8_t dscp, ecn, prio;
	uint64_t left;
};

struct peer {
	struct node n; // first
	unsigned index;
	struct record rec[RECORDS];
	unsigned n_rec;
	struct source src;
	simtime_t response;
	uint8_t paused;
};

struct bench {
	struct endpoint_table eps;
	struct node *sw;
	struct peer peer[PORTS];
	struct lane up[PORTS]; // peer -> switch
	struct lane down[PORTS];
	struct group_head group;
};

static struct rte_mempool *pool;
static struct bench *b;
static char why[256];
static const uint8_t *bench_bounce; // the switch's next config's

// ---- frames -------------------------------------------------------------------------------------

static inline uint32_t peer_ip(unsigned i)
{
	return 0x0a000001 + i;
}

static inline void peer_ip6(unsigned i, uint8_t out[16])
{
	memset(out, 0, 16);
	out[0] = 0xfd;
	out[15] = (uint8_t)(i + 1);
}

static const uint8_t *peer_mac(unsigned i)
{
	static uint8_t mac[6] = {2, 0, 0, 0, 1, 0};
	mac[5] = (uint8_t)i;
	return mac;
}

static const uint8_t *port_mac(unsigned i)
{
	static uint8_t mac[6] = {2, 0, 0, 0, 0, 0};
	mac[5] = (uint8_t)i;
	return mac;
}

// A whole UDP frame of `len` bytes into `out`.
static inline void udp_frame(uint8_t *out, unsigned from, unsigned to, uint16_t len, uint8_t dscp,
	uint8_t ecn, uint8_t ttl)
{
	memset(out, 0, len);
	uint8_t *p = eth_put(out, port_mac(from), peer_mac(from), ETHERTYPE_IPV4);
	p = ipv4_put(p, (uint8_t)(dscp << 2 | ecn), len - ETH_HEADER_BYTES, 1, ttl, IP_PROTO_UDP,
		peer_ip(from), peer_ip(to));
	udp_put(p, 1000, 2000, len - ETH_HEADER_BYTES - IPV4_HEADER_BYTES);
}

static inline void send_bytes(unsigned from, const uint8_t *bytes, uint16_t len)
{
	struct node *n = &b->peer[from].n;
	struct frame *f = node_new_frame(n, 0);

	assert_non_null(f);
	memcpy(frame_data(f), bytes, len);
	f->len = f->head_len = len;
	node_send(n, 0, f);
}

static inline void send_udp(unsigned from, unsigned to, uint16_t len, uint8_t dscp, uint8_t ecn)
{
	uint8_t bytes[ROOM];

	udp_frame(bytes, from, to, len, dscp, ecn, 64);
	send_bytes(from, bytes, len);
}

static inline void send_pfc(unsigned from, uint8_t classes, uint16_t quanta)
{
	uint8_t bytes[ETH_MIN_NO_FCS];
	uint16_t q[PFC_CLASSES];

	for (int i = 0; i < PFC_CLASSES; i++)
		q[i] = quanta;
	pfc_build(bytes, peer_mac(from), classes, q);
	send_bytes(from, bytes, sizeof(bytes));
}

// ---- peers --------------------------------------------------------------------------------------

static inline void peer_pump(struct peer *p)
{
	if (p->src.left > 0 && !(p->paused >> p->src.prio & 1))
		node_want_depart(&p->n, 0, p->n.now);
}

static void peer_arrive(struct node *n, unsigned port, struct frame *f)
{
	struct peer *p = (struct peer *)n;
	struct record *r = &p->rec[p->n_rec];
	struct pkt pkt;

	assert_true(p->n_rec < RECORDS);
	*r = (struct record){.at = n->now, .len = f->len};
	memcpy(r->bytes, frame_data(f), RTE_MIN(f->head_len, sizeof(r->bytes)));
	p->n_rec++;
	assert_int_equal(pkt_parse_head(frame_data(f), f->head_len, f->len, &pkt), PKT_OK);
	if (pkt.kind == PKT_PFC) {
		struct pfc c = pfc_parse(&pkt);
		for (unsigned i = 0; i < PFC_CLASSES; i++)
			if (c.classes >> i & 1)
				node_timer(n, n->now + p->response, c.quanta[i] != 0, i);
	}
	node_consume(n, port, f);
}

static void peer_timer(struct node *n, uint32_t xoff, uint32_t prio)
{
	struct peer *p = (struct peer *)n;

	p->paused = xoff ? p->paused | (uint8_t)(1u << prio) : p->paused & (uint8_t) ~(1u << prio);
	peer_pump(p);
}

static void peer_depart(struct node *n, unsigned port)
{
	struct peer *p = (struct peer *)n;

	if (p->src.left == 0 || (p->paused >> p->src.prio & 1))
		return;
	p->src.left--;
	send_udp(p->index, p->src.to, p->src.len, p->src.dscp, p->src.ecn);
	peer_pump(p);
}

static const struct node_ops peer_ops = {
	.name = "peer", .arrive = peer_arrive, .depart = peer_depart, .timer = peer_timer};

static inline void source(unsigned from, struct source src)
{
	b->peer[from].src = src;
	peer_pump(&b->peer[from]);
}

// ---- the run ------------------------------------------------------------------------------------

static inline struct node *bench_node(unsigned i)
{
	return i < PORTS ? &b->peer[i].n : b->sw;
}

// Executes all events up to and including `until`; every node's clock then stands there.
static inline void run(simtime_t until)
{
	struct node *nodes[PORTS + 1];

	for (unsigned i = 0; i <= PORTS; i++)
		nodes[i] = bench_node(i);
	run_nodes(nodes, PORTS + 1, until);
}

static inline void connect_lane(
	struct lane *l, struct node *src, unsigned sport, struct node *dst, unsigned dport)
{
	lane_join(l, src, sport, dst, dport, UINT64_C(100000000000), DELAY, 4096);
}

// Ports of the bench: SONiC's defaults but a static threshold of 2000 bytes (20 cells) for PG 3 and
// 4, 3000 bytes (30 cells) of headroom, and no response time.
static inline void bench_ports(struct ethernet_switch_port_config p[PORTS])
{
	for (unsigned i = 0; i < PORTS; i++) {
		ethernet_switch_port_defaults(&p[i], UINT64_C(100000000000));
		snprintf(p[i].name, sizeof(p[i].name), "swp%u", i);
		memcpy(p[i].mac, port_mac(i), 6);
		memcpy(p[i].peer_mac, peer_mac(i), 6);
		p[i].host_port = true;
		p[i].mtu = 1500;
		p[i].pfc_response = 0;
		for (unsigned pg = 3; pg <= 4; pg++) {
			p[i].pg[pg].th = (struct mmu_threshold){.static_th_bytes = 2000};
			p[i].pg[pg].xoff_bytes = 3000;
			p[i].pg[pg].xon_offset_bytes = 1000;
		}
	}
}

static inline void bench_start(const struct ethernet_switch_port_config ports[PORTS])
{
	b = aligned_alloc(64, (sizeof(*b) + 63) / 64 * 64);
	assert_non_null(b);
	memset(b, 0, sizeof(*b));
	b->group.wake = no_wake;
	assert_int_equal(endpoint_table_init(&b->eps, PORTS, 2 * PORTS), 0);
	for (uint16_t i = 0; i < PORTS; i++) {
		uint8_t ip6[16];
		peer_ip6(i, ip6);
		assert_int_equal(endpoint_add(&b->eps, &b->peer[i].n, 0, peer_mac(i)), i);
		assert_int_equal(endpoint_add_ipv4(&b->eps, i, peer_ip(i)), 0);
		assert_int_equal(endpoint_add_ipv6(&b->eps, i, ip6), 0);
	}
	struct ethernet_switch_config cfg = {.name = "sw",
		.n_ports = PORTS,
		.ports = ports,
		.mmu = {.buffer_bytes = 10000000, .cell_bytes = CELL},
		.bounce = bench_bounce,
		.endpoints = &b->eps,
		.log_events = 64};
	if (ethernet_switch_create(&cfg, &b->sw, why, sizeof(why)) != 0)
		fail_msg("%s", why);
	b->sw->pool.heads = pool;
	b->sw->group = (struct group *)&b->group;
	b->sw->rng = rng_stream(1, 1);
	for (uint16_t i = 0; i < PORTS; i++) {
		struct peer *p = &b->peer[i];
		p->index = i;
		assert_int_equal(node_init(&p->n, &peer_ops, "peer", 1, 8), 0);
		p->n.pool.heads = pool;
		p->n.group = (struct group *)&b->group;
		connect_lane(&b->up[i], &p->n, 0, b->sw, i);
		connect_lane(&b->down[i], b->sw, i, &p->n, 0);
		assert_int_equal(ethernet_switch_set_route(b->sw, i, &i, 1), 0);
	}
	b->sw->ops->start(b->sw);
}

static inline void bench_default(void)
{
	struct ethernet_switch_port_config ports[PORTS];

	bench_ports(ports);
	bench_start(ports);
}

// Frames made = ended + held; accounting right before and after draining; no frame lost.
static inline void bench_stop(void)
{
	uint64_t made = 0, ended;

	for (unsigned i = 0; i < PORTS; i++)
		b->peer[i].src.left = 0;
	run(b->sw->now + 500 * SIM_US); // all that can move arrives
	ended = b->sw->ops->held(b->sw);
	for (unsigned i = 0; i <= PORTS; i++) {
		struct node *n = bench_node(i);
		made += n->created;
		ended += n->delivered + n->consumed + n->dropped;
	}
	assert_int_equal(made, ended);
	if (!b->sw->ops->check(b->sw, false, why, sizeof(why)))
		fail_msg("%s", why);
	b->sw->ops->drain(b->sw);
	if (!b->sw->ops->check(b->sw, true, why, sizeof(why)))
		fail_msg("drained: %s", why);
	assert_int_equal(rte_mempool_avail_count(pool), POOL_FRAMES);
	for (unsigned i = 0; i < PORTS; i++) {
		node_fini(&b->peer[i].n);
		lane_fini(&b->up[i]);
		lane_fini(&b->down[i]);
	}
	ethernet_switch_destroy(b->sw);
	endpoint_table_fini(&b->eps);
	free(b);
}

static inline struct port_counters *counters(unsigned port)
{
	return b->sw->ports[port].ctr;
}

// Bytes of the i-th frame a peer got, and a short form for the last.
static inline const struct record *got(unsigned peer, unsigned i)
{
	assert_true(i < b->peer[peer].n_rec);
	return &b->peer[peer].rec[i];
}

static inline bool is_pfc(const struct record *r)
{
	return r->bytes[12] == 0x88 && r->bytes[13] == 0x08;
}

static int eal_up(void **state)
{
	char *argv[] = {(char[]){"test"}, (char[]){"--no-huge"}, (char[]){"--no-shconf"},
		(char[]){"--no-pci"}, (char[]){"--no-telemetry"}, (char[]){"-m"}, (char[]){"128"},
		(char[]){"--log-level=error"}, (char[]){"-l"}, (char[]){"0"}};

	if (rte_eal_init(sizeof(argv) / sizeof(argv[0]), argv) < 0)
		return -1;
	pool = rte_pktmbuf_pool_create(
		"heads", POOL_FRAMES, 0, sizeof(struct frame), ROOM, SOCKET_ID_ANY);
	return pool != NULL ? 0 : -1;
}

static int eal_down(void **state)
{
	rte_mempool_free(pool);
	return rte_eal_cleanup();
}
