/* SPDX-License-Identifier: BSD-3-Clause */
// Making and ending a replay.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipelines/replay_internal.h"

#define LOG_EVENTS 4096

static uint8_t class_of(const struct replay_config *cfg, const struct pkt *p)
{
	if (p->ip_version != 0)
		return cfg->dscp_to_tc[p->dscp];
	return p->n_tags != 0 ? cfg->pcp_to_tc[pkt_pcp(p)] : 0;
}

static simtime_t scaled(simtime_t ns, uint32_t speed_milli)
{
	if (speed_milli == 0)
		return 0;
	return (simtime_t)((__int128)ns * SIM_NS * REPLAY_REAL_SPEED / speed_milli);
}

// MACs, times, classes: all that does not depend on the fabric.
static void prepare_frames(struct replay *r, const struct replay_config *cfg)
{
	struct replay_store *s = &r->store;
	uint32_t last[PRIO_COUNT];

	for (unsigned tc = 0; tc < PRIO_COUNT; tc++)
		r->cursor[tc].first = last[tc] = REPLAY_NONE;
	for (uint32_t i = 0; i < s->n_frames; i++) {
		struct replay_frame *f = &s->frames[i];
		uint8_t *bytes = s->bytes + f->at;
		struct pkt p;

		pkt_parse(bytes, f->len, &p); // of a malformed frame, what could be understood
		f->tc = class_of(cfg, &p) & (PRIO_COUNT - 1);
		f->due = scaled(f->due, cfg->speed_milli);
		f->next = REPLAY_NONE;
		if (last[f->tc] == REPLAY_NONE)
			r->cursor[f->tc].first = i;
		else
			s->frames[last[f->tc]].next = i;
		last[f->tc] = i;
		if (cfg->rewrite_macs && f->len >= ETH_HEADER_BYTES) {
			if (!(bytes[0] & 1))
				memcpy(bytes, cfg->next_hop_mac, 6);
			memcpy(bytes + 6, cfg->mac, 6);
		}
	}
	simtime_t length = s->frames[s->n_frames - 1].due;
	r->period = length + (s->n_frames > 1 ? length / (s->n_frames - 1) : 0);
}

int replay_create(const struct replay_config *cfg, struct node **out, char *err, size_t err_bytes)
{
	struct replay *r = calloc(1, sizeof(*r));

	if (r == NULL || node_init(&r->node, &replay_ops, cfg->name, 1, LOG_EVENTS) < 0) {
		free(r);
		snprintf(err, err_bytes, "out of memory");
		return -ENOMEM;
	}
	int ret = replay_store_load(&r->store, cfg->path, cfg->filter, err, err_bytes);
	if (ret < 0) {
		replay_destroy(&r->node);
		return ret;
	}
	r->loops = cfg->loops ? cfg->loops : UINT64_MAX;
	r->start = cfg->start;
	r->endpoints = cfg->endpoints;
	r->pfc_enable = cfg->pfc_enable;
	r->pfc_response = cfg->pfc_response;
	memcpy(r->node.ports[0].mac, cfg->mac, 6);
	prepare_frames(r, cfg);
	*out = &r->node;
	return 0;
}

void replay_destroy(struct node *n)
{
	struct replay *r = (struct replay *)n;

	replay_store_fini(&r->store);
	node_fini(n);
	free(r);
}

struct replay_stats replay_get_stats(const struct node *n)
{
	const struct replay *r = (const struct replay *)n;
	struct replay_stats s = {
		.frames = r->store.n_frames,
		.sent = r->sent,
		.control = r->store.control,
		.received = r->received,
		.done = true,
	};

	for (unsigned tc = 0; tc < PRIO_COUNT; tc++)
		s.done &= r->cursor[tc].next == REPLAY_NONE;
	return s;
}
