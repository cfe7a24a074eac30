/* SPDX-License-Identifier: BSD-3-Clause */
// How many frames a scenario can have in flight, and the pools for them.
//
// A frame is in a switch buffer, on a lane, or in an edge's queue. Sizing for minimum-size frames
// everywhere would take gigabytes for nothing, so buffers and lanes are counted as if full of
// frames of half a kilobyte, within bounds; a fabric that needs more says so (no_mbuf, pool_empty)
// and `pool:` in the scenario gives it more.

#include <errno.h>
#include <rte_errno.h>
#include <rte_mempool.h>
#include <string.h>

#include "emu/attach/attach.h"
#include "emu/engine/eal.h"
#include "emu/fabric/internal.h"
#include "pipelines/replay.h"

#define TYPICAL_BYTES 512
#define HEADS_MIN     4096u
#define HEADS_MAX     (384u << 10)
#define FULL_MIN      4096u
#define FULL_MAX      (32u << 10)
#define EDGE_FRAMES   2048u // queues and bursts of one real port
#define CACHED        1024u // frames that can sit unused in the per-lcore caches

static uint64_t frames_on_link(const struct sc_link *l)
{
	// Both directions; a window's worth of slack is in the bounds.
	uint64_t bits = (uint64_t)((double)l->rate_bps * (double)l->delay / (double)SIM_S);

	return 2 * (bits / 8 / TYPICAL_BYTES + 16);
}

static bool has_outside_traffic(const struct scenario *s)
{
	for (uint32_t i = 0; i < s->n_hosts; i++)
		if (s->hosts[i].kind != SC_HOST_NIC)
			return true;
	return s->n_apps > 0 || faults_need_bytes(s);
}

void pools_size(struct fabric *f)
{
	const struct scenario *s = f->s;
	uint64_t n = HEADS_MIN;
	uint64_t edges = 0;

	for (uint32_t i = 0; i < s->n_switches; i++)
		n += s->switches[i].buffer / TYPICAL_BYTES;
	for (uint32_t i = 0; i < s->n_links; i++)
		n += frames_on_link(&s->links[i]);
	for (uint32_t i = 0; i < s->n_hosts; i++)
		edges += s->hosts[i].kind == SC_HOST_NIC ? 0 : EDGE_FRAMES;

	n += faults_held(s) / TYPICAL_BYTES;

	uint64_t heads = RTE_MIN(n, HEADS_MAX);
	uint64_t full =
		has_outside_traffic(s) ? RTE_MIN(RTE_MAX(n + edges, FULL_MIN), FULL_MAX) : 0;
	f->pool_heads_size = (s->pool_heads ? s->pool_heads : (unsigned)heads) + CACHED * f->lcores;
	f->pool_full_size =
		full == 0 ? 0 : (s->pool_full ? s->pool_full : (unsigned)full) + CACHED * f->lcores;
}

unsigned full_frame_room(const struct fabric *f)
{
	uint32_t mtu = 1500;

	for (uint32_t i = 0; i < f->s->n_links; i++)
		mtu = RTE_MAX(mtu, f->s->links[i].mtu);
	// Ethernet header with two tags, and the headroom drivers expect in front.
	unsigned room = RTE_PKTMBUF_HEADROOM + mtu + 22;

	return RTE_ALIGN(RTE_MAX(room, attach_data_room(f->s)), RTE_CACHE_LINE_SIZE);
}

size_t pools_bytes(const struct fabric *f)
{
	return frame_pool_bytes(f->pool_heads_size, FRAME_HEAD_ROOM) +
	       (f->pool_full_size ? frame_pool_bytes(f->pool_full_size, full_frame_room(f)) : 0);
}

static int no_memory(struct fabric *f, const char *what, unsigned n)
{
	fprintf(f->opt.err,
		"fabemu: no memory for a pool of %u %s frames (%s); set pool: smaller\n", n, what,
		rte_strerror(rte_errno));
	return -ENOMEM;
}

int pools_create(struct fabric *f)
{
	f->pool.heads = frame_pool_create("frame_heads", f->pool_heads_size, FRAME_HEAD_ROOM);
	if (f->pool.heads == NULL)
		return no_memory(f, "header", f->pool_heads_size);
	if (f->pool_full_size > 0) {
		f->pool.full =
			frame_pool_create("frame_full", f->pool_full_size, full_frame_room(f));
		if (f->pool.full == NULL)
			return no_memory(f, "full", f->pool_full_size);
	}
	return 0;
}
