/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// A rig whose tap remembers every frame as anyone on the wire would see it: made whole and parsed.

#include "nic_rig.h"
#include "pcap/icrc.h"
#include "pipelines/materialise.h"

#define SEEN_MAX 2048

// A frame the tap saw, as anyone on the wire would see it.
struct seen {
	struct pkt p; // data: `bytes`
	uint8_t bytes[1200];
	simtime_t at; // last bit
	enum rig_side from;
	uint32_t flow;
	uint64_t pos; // of the payload in the flow's stream
	uint8_t tc;
	bool hash_ok, offsets_ok, icrc_ok, payload_ok;
};

static struct seen seen[SEEN_MAX];
static unsigned n_seen;

static inline bool record(struct rig *r, enum rig_side from, struct frame *f)
{
	assert_in_range(n_seen, 0, SEEN_MAX - 1);
	struct seen *s = &seen[n_seen++];

	assert_int_equal(frame_materialise(f, s->bytes, sizeof(s->bytes)), f->len);
	assert_int_equal(pkt_parse(s->bytes, f->len, &s->p), PKT_OK);
	s->at = r->tap.now;
	s->from = from;
	s->flow = f->flow;
	s->pos = f->payload_pos;
	s->tc = f->tc;
	s->hash_ok = pkt_flow_hash(&s->p) == f->flow_hash;
	s->offsets_ok = s->p.l3_off == f->l3_off && s->p.l4_off == f->l4_off &&
			s->p.opcode == f->opcode && s->p.payload_len == f->payload_len &&
			s->p.payload_off == f->head_len && s->p.end == f->len;
	s->icrc_ok = pkt_icrc_valid(&s->p);
	s->payload_ok = payload_pattern_check(f->flow, f->payload_pos, s->bytes + s->p.payload_off,
				s->p.payload_len) == s->p.payload_len;
	return true;
}

static inline struct rig *tapped(const struct nic_config *cfg)
{
	struct rig *r = rig_new(cfg, true);

	n_seen = 0;
	r->on_frame = record;
	return r;
}

static inline void add(struct rig *r, const struct nic_flow_config *flow)
{
	assert_int_equal(nic_add_flow(r->nic[0], r->nic[1], flow), 0);
}

static inline void end(struct rig *r)
{
	char why[200];

	if (!rig_end(r, why, sizeof(why)))
		fail_msg("%s", why);
}

static inline struct nic_flow_result result(struct rig *r, uint32_t flow)
{
	struct nic_flow_result res;

	assert_int_equal(nic_flow_result(r->nic[0], flow, &res), 0);
	return res;
}

// The `i`-th frame from a side.
static inline const struct seen *nth(enum rig_side from, unsigned i)
{
	for (unsigned k = 0; k < n_seen; k++)
		if (seen[k].from == from && i-- == 0)
			return &seen[k];
	fail_msg("no such frame");
	return NULL;
}
