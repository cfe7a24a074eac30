/* SPDX-License-Identifier: BSD-3-Clause */

// Scenarios as buffer-dependency graphs, up-down routes, and single failures.

#include "emu/fabric/cbd_study.h"
#include "emu/fabric/levels.h"
#include "scenario_harness.h"

#define RING "topology: {ring: {switches: 4, hosts_per_switch: 1}}\n"

static enum cbd_verdict verdict_of(const char *yaml, const char *set, bool workload)
{
	struct scenario *s = load_with(yaml, set, NULL, NULL);
	struct cbd_study st;

	assert_int_equal(cbd_study_create(s, false, &st), 0);
	enum cbd_verdict v = workload ? st.cases[0].workload.verdict : st.cases[0].any.verdict;
	cbd_study_free(&st);
	scenario_free(s);
	return v;
}

static void a_ring_with_shortest_paths_has_a_cycle_each_way_and_priority(void **state)
{
	struct scenario *s = load(RING);
	struct cbd_study st;

	assert_int_equal(cbd_study_create(s, false, &st), 0);
	// Opposite hosts are two hops apart both ways: clockwise and back, priorities 3 and 4.
	assert_int_equal(st.cases[0].any.verdict, CBD_POSSIBLE);
	assert_int_equal(st.cases[0].any.n_cycles, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(st.cases[0].any.cycle[i].n, 4);
	assert_int_equal(st.cases[0].workload.verdict, CBD_FREE); // there is none
	cbd_study_free(&st);
	scenario_free(s);
}

static void up_down_paths_have_none_in_any_topology(void **state)
{
	static const char *const topologies[] = {
		RING,
		"topology: {ring: {switches: 5, hosts_per_switch: 2}}\n",
		"topology: {leaf_spine: {leaves: 4, spines: 3, hosts_per_leaf: 2}}\n",
		"topology: {fat_tree: {k: 4}}\n",
		"switches: [a, b, c, d]\nhosts: [h1, h2, h3]\n" // all joined to all
		"links: [[a, h1], [b, h2], [c, h3], [a, b], [a, c], [a, d], [b, c], [b, d], [c, "
		"d]]\n",
	};

	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(verdict_of(topologies[i], "paths=up-down", false), CBD_FREE);
}

static void up_down_paths_reach_everyone_and_never_turn_up(void **state)
{
	struct scenario *s =
		load_with("topology: {fat_tree: {k: 4}}\npaths: up-down\n", NULL, NULL, NULL);
	struct routes *r;
	uint8_t level[32];
	uint32_t queue[32];

	assert_int_equal(routes_compute(s, NULL, &r), 0);
	levels_find(s, level, queue);
	assert_int_equal(level[node_by_name(s, "edge1")], 0);
	assert_int_equal(level[node_by_name(s, "agg1")], 1);
	assert_int_equal(level[node_by_name(s, "core1")], 2);
	for (uint32_t e = 0; e < s->n_endpoints; e++)
		for (uint32_t sw = 0; sw < s->n_switches; sw++) {
			uint16_t n;
			const uint16_t *ports = routes_ports(r, sw, e, &n);
			assert_true(n > 0);
			// A fat tree's shortest paths are up-down: edge and agg switches split
			// over 2.
			for (uint16_t i = 1; i < n; i++)
				assert_int_equal(level_is_up(s, level, sw, ports[i]),
					level_is_up(s, level, sw, ports[0]));
		}
	routes_free(r);
	scenario_free(s);
}

static void up_down_loses_a_host_rather_than_bounce(void **state)
{
	// leaf1 has only spine2 left, leaf2 only spine1: by leaf3 it is down, up, down.
	struct scenario *s =
		load("topology: {leaf_spine: {leaves: 3, spines: 2, hosts_per_leaf: 1}}\n"
		     "paths: up-down\n");
	bool down[16] = {false};
	struct routes *r;
	uint16_t n;

	uint32_t leaf1 = node_by_name(s, "leaf1"), leaf2 = node_by_name(s, "leaf2");
	down[s->nodes[leaf1].ports[1].link] = true;
	down[s->nodes[leaf2].ports[2].link] = true;
	assert_int_equal(routes_compute(s, down, &r), 0);
	routes_ports(r, leaf1, 1, &n);
	assert_int_equal(n, 0);
	routes_ports(r, leaf1, 2, &n);
	assert_int_equal(n, 1);
	routes_free(r);
	scenario_free(s);
}

// leaf1-spine1 is down for good; leaf2-spine2's failure then makes paths between the two bounce.
static const char two_failures[] =
	"topology: {leaf_spine: {leaves: 4, spines: 2, hosts_per_leaf: 1}}\n"
	"events:\n"
	"  - {at: 1ms, link_down: [leaf1, spine1]}\n"
	"  - {at: 2ms, link_down: [leaf2, spine2]}\n";

static void events_are_looked_at_in_turn(void **state)
{
	struct scenario *s = load(two_failures);
	struct cbd_study st;

	assert_int_equal(cbd_study_create(s, false, &st), 0);
	assert_int_equal(st.n_cases, 3);
	assert_int_equal(st.cases[0].any.verdict, CBD_FREE);
	assert_int_equal(st.cases[1].any.verdict, CBD_FREE);
	assert_int_equal(st.cases[1].n_bounces, 0);
	assert_int_equal(st.cases[2].at, 2 * SIM_MS);
	// At leaf3 and leaf4, from spine2 to spine1 for leaf2 and back for leaf1.
	assert_int_equal(st.cases[2].n_bounces, 4);
	assert_int_equal(st.cases[2].any.verdict, CBD_POSSIBLE);
	cbd_study_free(&st);
	scenario_free(s);
}

static void bounced_traffic_in_its_own_priority_is_free(void **state)
{
	static const char qos[] =
		"defaults: {qos: {pfc_enable: [2, 3], dscp_to_tc: {all: 1, 3: 3, 2: 2},\n"
		"  tc_to_pg: {2: 2}, bounce: {3: 2}}}\n"
		"duration: 5ms\n"
		"workloads: {a: {src: h1, dst: h2, dscp: 3}, b: {src: h2, dst: h1, dscp: 3}}\n";
	char yaml[1024];
	struct scenario *s;
	struct cbd_study st;

	snprintf(yaml, sizeof(yaml), "%s%s", two_failures, qos);
	s = load(yaml);
	assert_int_equal(cbd_study_create(s, false, &st), 0);
	assert_int_equal(st.cases[2].workload.verdict, CBD_FREE);
	// Hosts could send DSCP 2 themselves, whose bounces stay in PG 2.
	assert_int_equal(st.cases[2].any.verdict, CBD_POSSIBLE);
	assert_int_equal(st.cases[2].any.cycle[0].hop[0].v.pg, 2);
	cbd_study_free(&st);
	scenario_free(s);
}

static void a_failure_that_opens_a_cycle_is_named(void **state)
{
	// The first failure is there from the start; which others make it a bounce both ways?
	struct scenario *s =
		load("switches: [leaf1, leaf2, leaf3, leaf4, spine1, spine2]\n"
		     "hosts: [h1, h2, h3, h4]\n"
		     "links: [[leaf1, h1], [leaf2, h2], [leaf3, h3], [leaf4, h4],\n"
		     "  [leaf1, spine2], [leaf2, spine1], [leaf2, spine2],\n"
		     "  [leaf3, spine1], [leaf3, spine2], [leaf4, spine1], [leaf4, spine2]]\n");
	struct cbd_study st;

	assert_int_equal(cbd_study_create(s, true, &st), 0);
	assert_int_equal(st.cases[0].any.verdict, CBD_FREE);
	assert_int_equal(st.n_links, 7);
	assert_int_equal(st.n_host_links, 4);
	// Whichever of leaf2, 3, 4 loses spine2 is two bounces from leaf1: three failures.
	assert_int_equal(st.n_any_free, 4);
	assert_int_equal(st.n_cases, 1 + 3);
	for (uint32_t i = 1; i < 4; i++) {
		const struct sc_link *l = &s->links[st.cases[i].link];
		assert_int_equal(st.cases[i].when, CBD_FAILURE);
		assert_string_equal(s->nodes[l->end[1].node].name, "spine2");
		assert_string_not_equal(s->nodes[l->end[0].node].name, "leaf1");
		assert_int_equal(st.cases[i].any.verdict, CBD_POSSIBLE);
		assert_true(st.cases[i].n_bounces > 0);
	}
	assert_int_equal(st.n_work_free, 7); // there is no workload
	cbd_study_free(&st);
	scenario_free(s);
}

static void a_lossy_fabric_cannot_deadlock(void **state)
{
	assert_int_equal(verdict_of(RING, "defaults.qos.pfc_enable=[]", false), CBD_FREE);
	assert_int_equal(verdict_of(RING, "defaults.link.flow_control=none", false), CBD_FREE);
}

#define WORK                                                                                      \
	"duration: 1ms\nworkloads: {a: {src: h1, dst: h3, dscp: 4}, b: {src: h2, dst: h4, dscp: " \
	"4}}\n"

static void a_queue_that_no_pause_stops_does_not_wait(void **state)
{
	// Class 4 fills PG 3, which pauses priority 3, but waits in queue 4.
	assert_int_equal(
		verdict_of(RING WORK "defaults: {qos: {pfc_enable: [3], tc_to_pg: {4: 3}}}\n", NULL,
			true),
		CBD_FREE);
	assert_int_equal(
		verdict_of(RING WORK "defaults: {qos: {pfc_enable: [3, 4]}}\n", NULL, true),
		CBD_POSSIBLE);
}

static void fat_trees_are_free_with_any_link_failed(void **state)
{
	struct scenario *s = load("topology: {fat_tree: {k: 4}}\n");
	struct cbd_study st;

	assert_int_equal(cbd_study_create(s, true, &st), 0);
	assert_int_equal(st.n_cases, 1);
	assert_int_equal(st.cases[0].any.verdict, CBD_FREE);
	assert_int_equal(st.n_links, 32);
	assert_int_equal(st.n_host_links, 16);
	assert_int_equal(st.n_any_free, 32);
	assert_int_equal(st.n_with_bounce, 0);
	cbd_study_free(&st);
	scenario_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_ring_with_shortest_paths_has_a_cycle_each_way_and_priority),
		cmocka_unit_test(up_down_paths_have_none_in_any_topology),
		cmocka_unit_test(up_down_paths_reach_everyone_and_never_turn_up),
		cmocka_unit_test(up_down_loses_a_host_rather_than_bounce),
		cmocka_unit_test(events_are_looked_at_in_turn),
		cmocka_unit_test(bounced_traffic_in_its_own_priority_is_free),
		cmocka_unit_test(a_failure_that_opens_a_cycle_is_named),
		cmocka_unit_test(a_lossy_fabric_cannot_deadlock),
		cmocka_unit_test(a_queue_that_no_pause_stops_does_not_wait),
		cmocka_unit_test(fat_trees_are_free_with_any_link_failed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
