/* SPDX-License-Identifier: BSD-3-Clause */
// The writer's thread: empties the rings, and writes what can no longer be preceded by anything.
//
// Virtual clock: that is what lies before the watermark. It is read before the rings, and each ring
// is then emptied of all it held: what the lcores produced before the watermark was set is merged
// before anything is written.
//
// Wall clock: there is no such promise; a frame is held back for two rounds of ROUND_NS, far longer
// than one lcore's loop is behind another's unless the host stalls, and then the order of a few
// frames suffers, nothing else.
#include <errno.h>
#include <time.h>

#include "emu/capture/internal.h"

#define ROUND_NS 20000000
#define IDLE_NS  500000

static int64_t host_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// Takes what the ring holds now. What comes meanwhile waits for the next turn, so that a busy
// producer does not keep the writer here.
static unsigned drain_ring(struct capture *c, struct byte_ring *ring)
{
	const uint64_t end = byte_ring_end(ring);
	const struct record *r;
	unsigned n = 0;

	while (ring->head != end && (r = byte_ring_peek(ring)) != NULL) {
		uint32_t bytes = r->bytes;
		c->last_at = simtime_max(c->last_at, r->at);
		if (merge_add(&c->merge, r) < 0) {
			tally(&c->status.lost_disk, 1);
			capture_fail(c, -ENOMEM, "cannot hold frames back");
		}
		byte_ring_release(ring, bytes);
		n++;
	}
	return n;
}

static unsigned drain(struct capture *c)
{
	unsigned n = 0;

	for (unsigned i = 0; i < c->n_rings; i++)
		n += drain_ring(c, &c->rings[i]);
	return n;
}

// The drop of a frame that was seen arriving at the same instant: one frame, one comment more.
static bool is_drop_of(const struct record *drop, const struct record *r)
{
	return drop != NULL && drop->what == OBS_DROP && drop->interface == r->interface &&
	       drop->at == r->at && drop->frame == r->frame && drop->seq == r->seq + 1;
}

static void emit_before(struct capture *c, simtime_t t)
{
	char extra[CAPTURE_COMMENT_MAX];
	const struct record *first;

	while ((first = merge_first(&c->merge)) != NULL && first->at < t) {
		struct record *r = merge_take(&c->merge), *drop = NULL;

		first = merge_first(&c->merge);
		if (r->what != OBS_DROP && is_drop_of(first, r)) {
			drop = merge_take(&c->merge);
			capture_comment(c, extra, sizeof(extra), OBS_DROP, drop->a, drop->b);
		}
		capture_write_record(c, r, drop ? extra : NULL);
		merge_give_back(&c->merge, r);
		if (drop != NULL)
			merge_give_back(&c->merge, drop);
	}
}

// Wall clock: what was the latest frame two rounds ago is old enough.
static simtime_t old_enough(struct capture *c, int64_t *round_start)
{
	int64_t now = host_ns();

	if (now - *round_start >= ROUND_NS) {
		*round_start = now;
		c->horizon[1] = c->horizon[0];
		c->horizon[0] = c->last_at;
		if (c->file != NULL && pcapng_flush(c->file) < 0)
			capture_fail(c, pcapng_error(c->file), "cannot write");
	}
	return c->horizon[1] + 1;
}

void *capture_writer(void *arg)
{
	struct capture *c = arg;
	int64_t round_start = host_ns();

	while (!__atomic_load_n(&c->stop, __ATOMIC_ACQUIRE)) {
		simtime_t t = c->lossless ? __atomic_load_n(&c->watermark, __ATOMIC_ACQUIRE)
					  : old_enough(c, &round_start);
		unsigned n = drain(c);
		emit_before(c, t);
		if (n == 0)
			nanosleep(&(struct timespec){.tv_nsec = IDLE_NS}, NULL);
	}
	while (drain(c) > 0)
		;
	emit_before(c, SIMTIME_NEVER);
	capture_file_end(c, true);
	return NULL;
}
