/* SPDX-License-Identifier: BSD-3-Clause */

// The deadlock detector on random graphs against brute force.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "emu/core/rng.h"
#include "models/deadlock.h"

#define RN 8 // vertices: all 2^RN subsets are tried

struct random_graph {
	bool wait[RN][RN];
	uint64_t bytes[RN][RN];
	uint64_t xon[RN];
	bool host[RN];
};

static void make_random(struct random_graph *g, struct rng *r)
{
	memset(g, 0, sizeof(*g));
	uint32_t density = 1 + rng_below(r, 4); // expected out-degree 0.5 .. 2
	for (uint32_t a = 0; a < RN; a++) {
		g->host[a] = rng_below(r, 8) == 0;
		g->xon[a] = rng_below(r, 3) * 10;
		for (uint32_t b = 0; b < RN; b++) {
			g->wait[a][b] = a != b && rng_below(r, 2 * RN) < density;
			g->bytes[a][b] = 1 + rng_below(r, 20);
		}
	}
}

// The largest stuck set as the union of all sets that fulfil its definition.
static unsigned brute_stuck(const struct random_graph *g)
{
	unsigned all = 0;

	for (unsigned set = 1; set < 1u << RN; set++) {
		bool holds = true;
		for (unsigned a = 0; a < RN && holds; a++) {
			uint64_t stuck = 0;
			if (!(set >> a & 1))
				continue;
			for (unsigned b = 0; b < RN; b++)
				stuck += (set >> b & 1) && g->wait[a][b] ? g->bytes[a][b] : 0;
			holds = !g->host[a] && stuck > g->xon[a];
		}
		if (holds)
			all |= set;
	}
	return all;
}

// dist[a][b]: shortest non-empty path within `set`, 99 when none (Floyd and Warshall).
static void brute_distances(const struct random_graph *g, unsigned set, unsigned dist[RN][RN])
{
	for (unsigned a = 0; a < RN; a++) {
		for (unsigned b = 0; b < RN; b++)
			dist[a][b] = g->wait[a][b] && (set >> a & 1) && (set >> b & 1) ? 1 : 99;
	}
	for (unsigned k = 0; k < RN; k++) {
		for (unsigned a = 0; a < RN; a++) {
			for (unsigned b = 0; b < RN; b++) {
				unsigned via = dist[a][k] + dist[k][b];
				dist[a][b] = via < dist[a][b] ? via : dist[a][b];
			}
		}
	}
}

static void check_report(
	const struct deadlock_report *r, const struct random_graph *g, unsigned dist[RN][RN])
{
	unsigned v = r->members[0].pg.node, shortest = 99, stuck = 0, behind = 0;

	for (unsigned a = 0; a < RN; a++) {
		bool same = dist[a][v] < 99 && dist[v][a] < 99;
		stuck += same;
		if (same && dist[a][a] < shortest)
			shortest = dist[a][a];
		behind += dist[a][v] < 99 && dist[a][a] == 99;
	}
	assert_int_equal(r->n_members, shortest);
	assert_int_equal(r->n_stuck, stuck);
	assert_int_equal(r->n_behind, behind);
	for (uint32_t k = 0; k < r->n_members; k++) {
		unsigned a = r->members[k].pg.node;
		unsigned b = r->members[(k + 1) % r->n_members].pg.node;
		assert_true(g->wait[a][b] && dist[a][v] < 99);
	}
}

static void random_graphs_agree_with_brute_force(void **state)
{
	struct rng r = rng_stream(20221, 1);
	const struct deadlock_config cfg = {
		.max_pgs = RN, .max_waits = RN * RN, .stuck_for = SIM_US, .storm_for = SIM_US};
	unsigned with = 0, without = 0;

	for (int round = 0; round < 3000; round++) {
		struct random_graph g;
		struct deadlock d;
		unsigned dist[RN][RN], expected = 0;

		make_random(&g, &r);
		brute_distances(&g, brute_stuck(&g), dist);
		for (unsigned a = 0; a < RN; a++) { // count components by their lowest vertex
			bool lowest = dist[a][a] < 99;
			for (unsigned b = 0; b < a; b++)
				lowest = lowest && !(dist[a][b] < 99 && dist[b][a] < 99);
			expected += lowest;
		}
		assert_int_equal(deadlock_init(&d, &cfg), 0);
		deadlock_begin(&d, 1000 * SIM_US);
		for (uint32_t a = 0; a < RN; a++) {
			deadlock_add_pg(&d, &(struct dl_asserting){.pg = {.node = a},
						    .host = g.host[a],
						    .xoff_since = SIM_US,
						    .xon_bytes = g.xon[a]});
			for (uint32_t b = 0; b < RN; b++) {
				struct dl_wait w = {.from = {.node = a},
					.to = {.node = b},
					.bytes = g.bytes[a][b],
					.paused_since = SIM_US};
				if (g.wait[a][b])
					deadlock_add_wait(&d, &w);
			}
		}
		assert_int_equal(deadlock_end(&d), expected);
		for (uint32_t i = 0; i < d.n_reports; i++)
			check_report(&d.reports[i], &g, dist);
		with += expected > 0;
		without += expected == 0;
		deadlock_fini(&d);
	}
	assert_true(with > 300 && without > 300); // both kinds were really tried
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_graphs_agree_with_brute_force),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
