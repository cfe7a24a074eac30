/* SPDX-License-Identifier: BSD-3-Clause */

#include "models/deadlock_snapshot.h"

#include <stddef.h>

#define KEY_PRIO_BITS 3
#define KEY_PORT_BITS 10

uint32_t dl_pg_key(struct dl_pg p)
{
	return (p.node << (KEY_PORT_BITS + KEY_PRIO_BITS)) | ((uint32_t)p.port << KEY_PRIO_BITS) |
	       p.prio;
}

static uint64_t ends_key(const struct dl_wait *w)
{
	return ((uint64_t)dl_pg_key(w->from) << 32) | dl_pg_key(w->to);
}

// ---- sorting: heap sort of (key, index) pairs, as qsort() may allocate ------------------------

static void sift_down(uint64_t *a, uint32_t root, uint32_t n)
{
	uint64_t key = a[2 * root], index = a[2 * root + 1];

	for (;;) {
		uint32_t kid = 2 * root + 1;
		if (kid >= n)
			break;
		if (kid + 1 < n && a[2 * kid + 2] > a[2 * kid])
			kid++;
		if (a[2 * kid] <= key)
			break;
		a[2 * root] = a[2 * kid];
		a[2 * root + 1] = a[2 * kid + 1];
		root = kid;
	}
	a[2 * root] = key;
	a[2 * root + 1] = index;
}

static void sort_pairs(uint64_t *a, uint32_t n)
{
	for (uint32_t i = n / 2; i-- > 0;)
		sift_down(a, i, n);
	for (uint32_t end = n; end-- > 1;) {
		uint64_t key = a[0], index = a[1];
		a[0] = a[2 * end];
		a[1] = a[2 * end + 1];
		a[2 * end] = key;
		a[2 * end + 1] = index;
		sift_down(a, 0, end);
	}
}

// ---- the snapshot -------------------------------------------------------------------------------

void deadlock_begin(struct deadlock *d, simtime_t now)
{
	d->s->previous = d->now;
	d->now = now;
	d->n_pgs = 0;
	d->n_waits = 0;
}

void deadlock_add_pg(struct deadlock *d, const struct dl_asserting *pg)
{
	if (d->n_pgs < d->cfg.max_pgs)
		d->s->added_pgs[d->n_pgs++] = *pg;
	else
		d->lost++;
}

void deadlock_add_wait(struct deadlock *d, const struct dl_wait *w)
{
	if (d->n_waits < d->cfg.max_waits)
		d->s->added_waits[d->n_waits++] = *w;
	else
		d->lost++;
}

static void sort_pgs(struct deadlock *d)
{
	struct dl_scratch *s = d->s;

	for (uint32_t i = 0; i < d->n_pgs; i++) {
		s->order[2 * i] = dl_pg_key(s->added_pgs[i].pg);
		s->order[2 * i + 1] = i;
	}
	sort_pairs(s->order, d->n_pgs);
	s->n_pgs = 0;
	for (uint32_t i = 0; i < d->n_pgs; i++) {
		if (s->n_pgs > 0 && s->keys[s->n_pgs - 1] == s->order[2 * i])
			continue;
		s->keys[s->n_pgs] = s->order[2 * i];
		s->pgs[s->n_pgs++] = s->added_pgs[s->order[2 * i + 1]];
	}
}

uint32_t dl_find_pg(const struct dl_scratch *s, struct dl_pg pg)
{
	uint64_t key = dl_pg_key(pg);
	uint32_t lo = 0, hi = s->n_pgs;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (s->keys[mid] < key)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < s->n_pgs && s->keys[lo] == key ? lo : UINT32_MAX;
}

static void merge_wait(struct dl_wait *into, const struct dl_wait *w)
{
	into->bytes += w->bytes;
	into->moved += w->moved;
	into->paused_since = simtime_max(into->paused_since, w->paused_since);
}

static void sort_waits(struct deadlock *d)
{
	struct dl_scratch *s = d->s;

	for (uint32_t i = 0; i < d->n_waits; i++) {
		s->order[2 * i] = ends_key(&s->added_waits[i]);
		s->order[2 * i + 1] = i;
	}
	sort_pairs(s->order, d->n_waits);
	s->n_waits = 0;
	for (uint32_t i = 0; i < d->n_waits; i++) {
		const struct dl_wait *w = &s->added_waits[s->order[2 * i + 1]];
		struct wait_state *last = s->n_waits > 0 ? &s->waits[s->n_waits - 1] : NULL;

		if (last != NULL && ends_key(&last->w) == ends_key(w)) {
			merge_wait(&last->w, w);
			continue;
		}
		uint32_t from = dl_find_pg(s, w->from), to = dl_find_pg(s, w->to);
		if (from == UINT32_MAX || to == UINT32_MAX || s->pgs[from].host)
			continue;
		s->waits[s->n_waits++] = (struct wait_state){.w = *w, .from = from, .to = to};
	}
}

// Since when has each wait been stalled? Both lists are in order of ends_key().
static void note_progress(struct deadlock *d)
{
	struct dl_scratch *s = d->s;
	uint32_t j = 0;

	for (uint32_t i = 0; i < s->n_waits; i++) {
		struct wait_state *w = &s->waits[i];
		uint64_t ends = ends_key(&w->w);
		simtime_t since = w->w.paused_since;

		while (j < s->n_memo && s->memo[j].ends < ends)
			j++;
		if (j < s->n_memo && s->memo[j].ends == ends) {
			if (s->memo[j].moved == w->w.moved)
				since = simtime_max(since, s->memo[j].stalled_since);
			else if (w->w.paused_since <= s->previous)
				since = d->now; // it moved although paused: response time
		}
		since = simtime_max(since, s->pgs[w->from].xoff_since);
		w->stalled_since = simtime_max(since, s->pgs[w->to].xoff_since);
	}
	s->n_memo = s->n_waits;
	for (uint32_t i = 0; i < s->n_waits; i++) {
		const struct wait_state *w = &s->waits[i];
		s->memo[i] = (struct progress_memo){
			.ends = ends_key(&w->w),
			.moved = w->w.moved,
			.stalled_since = w->stalled_since,
		};
	}
}

void dl_close_snapshot(struct deadlock *d)
{
	sort_pgs(d);
	sort_waits(d);
	note_progress(d);
}
