/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Two built-in NICs back to back, or with a tap between them that sees every frame, may lose it,
// and may say something itself:
//
//	a.port0 ---- lane ---- [tap.port0 | tap.port1] ---- lane ---- b.port0
//
// A minimal executor stands for the engine (node_run.h).

#include <errno.h>
#include <rte_eal.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node_run.h"
#include "pcap/build.h"
#include "pcap/codec.h"
#include "pipelines/nic.h"

#define RIG_RATE  UINT64_C(100000000000) // 100 Gb/s: 80 ps per byte
#define RIG_BYTE  (80 * SIM_PS)
#define RIG_DELAY (1 * SIM_US)
#define RIG_POOL  4095

#define RIG_A_IP 0x0a000001
#define RIG_B_IP 0x0a000002

enum rig_side { RIG_A, RIG_B };

// What the tap does with a frame that comes from side `from`: true lets it pass. It may keep one in
// rig->held (and return false), and send it by rig_release() while a later one passes.
struct rig;
typedef bool (*rig_tap)(struct rig *r, enum rig_side from, struct frame *f);

struct rig {
	struct node tap; // first: the tap's ops get it back
	struct node *nic[2];
	struct lane lane[4]; // a out, a in, b out, b in
	struct group_head group;
	struct rte_mempool *pool;
	rig_tap on_frame;
	void *arg;
	struct frame *held;
	simtime_t now;
};

static inline void rig_tap_arrive(struct node *n, unsigned port, struct frame *f)
{
	struct rig *r = (struct rig *)n;

	if (r->on_frame == NULL || r->on_frame(r, port == 0 ? RIG_A : RIG_B, f))
		node_send(n, 1 - port, f);
	else if (r->held != f)
		node_drop(n, port, f, DROP_LANE_ERROR);
}

// Sends what was held to side `to`.
static inline void rig_release(struct rig *r, enum rig_side to)
{
	node_send(&r->tap, to == RIG_A ? 0 : 1, r->held);
	r->held = NULL;
}

static inline void rig_tap_depart(struct node *n, unsigned port)
{
}

static inline void rig_tap_timer(struct node *n, uint32_t kind, uint32_t arg)
{
}

// Once per process.
static inline struct rte_mempool *rig_pool(void)
{
	static struct rte_mempool *pool;
	char *argv[] = {(char[]){"test"}, (char[]){"--no-huge"}, (char[]){"--no-shconf"},
		(char[]){"--no-pci"}, (char[]){"-m"}, (char[]){"64"}, (char[]){"--no-telemetry"},
		(char[]){"--iova-mode=va"}, (char[]){"--log-level=error"}, (char[]){"-l"},
		(char[]){"0"}};

	if (pool != NULL)
		return pool;
	if (rte_eal_init(RTE_DIM(argv), argv) < 0)
		abort();
	pool = rte_pktmbuf_pool_create(
		"heads", RIG_POOL, 32, sizeof(struct frame), FRAME_HEAD_ROOM, SOCKET_ID_ANY);
	if (pool == NULL)
		abort();
	return pool;
}

static inline struct nic_port_config rig_port(enum rig_side side)
{
	uint8_t last = side == RIG_A ? 0xa : 0xb;
	struct nic_port_config p = {
		.mac = {2, 0, 0, 0, 0, last},
		.next_hop_mac = {2, 0, 0, 0, 0, (uint8_t)(last ^ 1)},
		.ip4 = side == RIG_A ? RIG_A_IP : RIG_B_IP,
		.has_ip6 = true,
		.ip6 = {0xfd, [15] = last},
		.endpoint = side,
		.pfc_enable = 0xff,
	};

	return p;
}

static inline void rig_lane(struct rig *r, struct lane *l, struct node *src, unsigned src_port,
	struct node *dst, unsigned dst_port)
{
	lane_join(l, src, src_port, dst, dst_port, RIG_RATE, RIG_DELAY, 1024);
}

static inline void rig_adopt(struct rig *r, struct node *n, uint32_t index)
{
	n->group = (struct group *)&r->group;
	n->pool.heads = r->pool;
	n->index = index;
}

// `cfg` as nic_config_default() or a change of it; name, ports and index are filled in. With a tap
// each way takes two lanes, without one.
static inline struct rig *rig_new(const struct nic_config *cfg, bool tapped)
{
	static const struct node_ops tap_ops = {.name = "tap",
		.arrive = rig_tap_arrive,
		.depart = rig_tap_depart,
		.timer = rig_tap_timer};
	struct rig *r = aligned_alloc(64, (sizeof(*r) + 63) & ~(size_t)63);

	memset(r, 0, sizeof(*r));
	r->pool = rig_pool();
	r->group.wake = no_wake;
	node_init(&r->tap, &tap_ops, "tap", 2, 16);
	rig_adopt(r, &r->tap, 2);
	for (unsigned i = 0; i < 2; i++) {
		struct nic_config c = *cfg;
		struct nic_port_config port = rig_port((enum rig_side)i);
		c.name = i == 0 ? "a" : "b";
		c.n_ports = 1;
		if (cfg->ports != NULL)
			port = cfg->ports[i];
		c.ports = &port;
		c.index = i;
		if (nic_create(&c, &r->nic[i]) < 0)
			abort();
		rig_adopt(r, r->nic[i], i);
	}
	if (tapped) {
		rig_lane(r, &r->lane[0], r->nic[0], 0, &r->tap, 0);
		rig_lane(r, &r->lane[1], &r->tap, 0, r->nic[0], 0);
		rig_lane(r, &r->lane[2], r->nic[1], 0, &r->tap, 1);
		rig_lane(r, &r->lane[3], &r->tap, 1, r->nic[1], 0);
	} else {
		rig_lane(r, &r->lane[0], r->nic[0], 0, r->nic[1], 0);
		rig_lane(r, &r->lane[2], r->nic[1], 0, r->nic[0], 0);
	}
	return r;
}

// A flow of one WRITE of `bytes` from a to b, on class 3.
static inline struct nic_flow_config rig_flow(uint32_t flow, uint32_t bytes)
{
	return (struct nic_flow_config){
		.flow = flow,
		.op = WR_WRITE,
		.message_bytes = bytes,
		.messages = 1,
		.qps = 1,
		.stop = SIMTIME_NEVER,
		.dscp = 26,
		.tc = 3,
		.pcp = -1,
	};
}

static inline void rig_start(struct rig *r)
{
	for (unsigned i = 0; i < 2; i++)
		r->nic[i]->ops->start(r->nic[i]);
}

// Runs all events up to and at `until`.
static inline void rig_run(struct rig *r, simtime_t until)
{
	struct node *nodes[] = {r->nic[0], r->nic[1], &r->tap};

	run_events(nodes, 3, until);
	r->now = until;
	for (unsigned i = 0; i < 3; i++)
		nodes[i]->now =
			until > nodes[i]->now && until != SIMTIME_NEVER ? until : nodes[i]->now;
}

// Ends the run: invariants hold, every frame is accounted for, the pool is full again.
static inline bool rig_end(struct rig *r, char *why, size_t len)
{
	bool ok = true;
	uint64_t in = 0, out = 0;

	why[0] = 0;
	for (unsigned i = 0; i < 4; i++) {
		struct lane *l = &r->lane[i];
		for (; l->slots != NULL && !lane_empty(l); l->head++, out++)
			frame_free(l->slots[l->head & l->mask].f);
	}
	struct node *nodes[] = {r->nic[0], r->nic[1], &r->tap};
	for (unsigned i = 0; i < 3; i++) {
		in += nodes[i]->created;
		out += nodes[i]->delivered + nodes[i]->consumed + nodes[i]->dropped;
	}
	for (unsigned i = 0; i < 2 && ok; i++) {
		ok = r->nic[i]->ops->check(r->nic[i], false, why, len);
		out += r->nic[i]->ops->held(r->nic[i]);
		r->nic[i]->ops->drain(r->nic[i]);
	}
	if (ok && in != out) {
		snprintf(why, len, "frames in %lu, out %lu", in, out);
		ok = false;
	}
	if (ok && rte_mempool_avail_count(r->pool) != RIG_POOL) {
		snprintf(why, len, "pool: %u", rte_mempool_avail_count(r->pool));
		ok = false;
	}
	for (unsigned i = 0; i < 4; i++)
		lane_fini(&r->lane[i]);
	nic_destroy(r->nic[0]);
	nic_destroy(r->nic[1]);
	node_fini(&r->tap);
	free(r);
	return ok;
}
