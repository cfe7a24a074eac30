/* SPDX-License-Identifier: BSD-3-Clause */
// Second thoughts. Some violations are none on paths that a tap does not see whole:
//
//   - Where frames overtake each other (spraying, adaptive routing), a responder asks for a packet
//     that is only late and then acknowledges it before it is sent again; a sender that hears of
//     that in time rightly does not resend; a NAK may be overtaken by a later ACK.
//   - Where a flow takes several paths, a tap on one of them misses what takes the others.
//   - A capture that lost frames, and says so, has no say on what is missing.
//
// Whether a path is so shows in all that passed it, which is known at the end. So these violations
// are counted by flow, and told as notes if anything between the same two addresses was reordered,
// at any tap, or if a good part of the flow is missing here.
#include <stdlib.h>

#include "pcap/check_priv.h"

// A flow is seen in part when so many packets are missing, and one for every PARTIAL_SEEN seen.
#define PARTIAL_MIN  16
#define PARTIAL_SEEN 4

static const struct {
	enum check_kind kind, note;
} doubts[] = {
#define X(kind, note) {CHECK_##kind, CHECK_##note},
	CHECK_DOUBTFUL(X)
#undef X
};

void doubt_note(struct flow *f, enum check_kind kind)
{
	for (unsigned i = 0; i < CHECK_DOUBTS; i++)
		f->doubts[i] += doubts[i].kind == kind;
}

static uint32_t place(const struct check *c, const struct flow *f)
{
	return flow_hash_pair(c, 0, f->f.src, f->f.dst, f->f.addr_bytes);
}

static bool is_partial(const struct flow *f)
{
	return f->lost_packets >= PARTIAL_MIN && f->lost_packets * PARTIAL_SEEN >= f->f.frames;
}

static bool is_explained(const struct check *c, const struct flow *f, unsigned doubt, bool reorders)
{
	bool partial =
		is_partial(f) || (f->f.pairing >= CHECK_BY_PSN && is_partial(c->flows[f->f.peer]));

	switch (doubts[doubt].kind) {
	case CHECK_LOST_ACKED:
		return partial || reorders;
	case CHECK_ACK_UNSENT:
		return partial;
	default:
		return doubts[doubt].note == CHECK_OVERTAKEN && reorders;
	}
}

// Tells violations of one kind of a flow as notes.
static void explain(struct check *c, struct flow *f, unsigned i)
{
	uint64_t n = f->doubts[i];

	c->r.counts[doubts[i].kind] -= n;
	c->r.counts[doubts[i].note] += n;
	c->r.violations -= n;
	c->taps[f->f.tap].violations -= n;
	f->doubts[i] = 0;
	for (uint32_t k = 0; n != 0 && k < c->r.n_findings; k++)
		if (c->findings[k].flow == f->index && c->findings[k].kind == doubts[i].kind)
			c->findings[k].kind = doubts[i].note;
}

void doubt_settle(struct check *c, bool lossy)
{
	bool *reorders = calloc(c->n_buckets, sizeof(*reorders));

	if (reorders == NULL) {
		c->out_of_memory = true;
		return;
	}
	for (uint32_t i = 0; i < c->r.n_flows; i++)
		if (c->flows[i]->f.reordered != 0)
			reorders[place(c, c->flows[i])] = true;
	for (uint32_t i = 0; i < c->r.n_flows; i++)
		for (unsigned k = 0; k < CHECK_DOUBTS; k++)
			if (lossy ||
				is_explained(c, c->flows[i], k, reorders[place(c, c->flows[i])]))
				explain(c, c->flows[i], k);
	free(reorders);
}
