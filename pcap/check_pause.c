/* SPDX-License-Identifier: BSD-3-Clause */
// Pauses (802.1Qbb, 802.3 annexes 31B and 31D): a frame names classes and a time in quanta of 512
// bit times of the link; 0 resumes. A class is paused from its first XOFF until an XON or until the
// latest XOFF's time has run out. Per interface and sender, since one interface of a mirror port
// may show pauses of both ends.
#include <stdlib.h>

#include "pcap/check_priv.h"

#define QUANTUM_BITS 512
#define NS_PER_S     UINT64_C(1000000000)
#define MAC_OFF      6 // of the sender, in the frame

static struct check_pause *find(
	struct check *c, const struct stream *st, uint32_t interface, const uint8_t *mac)
{
	for (uint32_t i = 0; i < c->r.n_pauses; i++)
		if (c->pauses[i].interface == interface &&
			memcmp(c->pauses[i].src_mac, mac, 6) == 0)
			return &c->pauses[i];
	if (c->r.n_pauses == c->opt.flows_max)
		return NULL;
	if (c->r.n_pauses == c->cap_pauses) {
		uint32_t cap = c->cap_pauses != 0 ? 2 * c->cap_pauses : 16;
		struct check_pause *more = realloc(c->pauses, cap * sizeof(*more));
		if (more == NULL) {
			c->out_of_memory = true;
			return NULL;
		}
		c->pauses = more;
		c->cap_pauses = cap;
	}
	uint64_t speed = stream_interface(st, interface)->speed_bps;
	struct check_pause *p = &c->pauses[c->r.n_pauses++];
	*p = (struct check_pause){
		.interface = interface, .rate_bps = speed != 0 ? speed : c->opt.rate_bps};
	memcpy(p->src_mac, mac, 6);
	return p;
}

// Ends a pause that ran out before `now`.
static void expire(const struct check_pause *p, struct check_pause_class *k, int64_t now)
{
	if (k->paused && p->rate_bps != 0 && k->until_ns <= now) {
		k->paused_ns += k->until_ns - k->since_ns;
		k->paused = false;
	}
}

static void apply(
	const struct check_pause *p, struct check_pause_class *k, uint16_t quanta, int64_t now)
{
	expire(p, k, now);
	if (quanta == 0) {
		k->xon++;
		if (k->paused)
			k->paused_ns += now - k->since_ns;
		k->paused = false;
		return;
	}
	k->xoff++;
	k->quanta += quanta;
	if (!k->paused) {
		k->pauses++;
		k->since_ns = now;
	}
	k->paused = true;
	if (p->rate_bps != 0)
		k->until_ns = now + (int64_t)(quanta * QUANTUM_BITS * NS_PER_S / p->rate_bps);
	else
		k->until_ns = now;
}

void check_pause_frame(
	struct check *c, const struct stream *st, const struct stream_frame *f, const struct pkt *p)
{
	struct check_pause *e = find(c, st, f->interface, f->data + MAC_OFF);

	if (e == NULL)
		return;
	if (p->kind == PKT_PAUSE) {
		apply(e, &e->classes[PFC_CLASSES], pause_parse(p), f->time_ns);
		return;
	}
	struct pfc pfc = pfc_parse(p);
	for (unsigned i = 0; i < PFC_CLASSES; i++)
		if (pfc.classes >> i & 1)
			apply(e, &e->classes[i], pfc.quanta[i], f->time_ns);
}

// Pauses under way last until the capture's end, or until their time runs out.
void check_pause_end(struct check *c)
{
	int64_t end = INT64_MIN;

	for (uint32_t i = 0; i < c->r.n_taps; i++)
		end = c->taps[i].last_ns > end ? c->taps[i].last_ns : end;
	for (uint32_t i = 0; i < c->r.n_pauses; i++) {
		struct check_pause *p = &c->pauses[i];
		for (unsigned k = 0; k < CHECK_PAUSE_CLASSES; k++) {
			expire(p, &p->classes[k], end);
			if (p->classes[k].paused)
				p->classes[k].paused_ns += end - p->classes[k].since_ns;
			p->classes[k].paused = false;
		}
	}
}
