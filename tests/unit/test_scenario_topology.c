/* SPDX-License-Identifier: BSD-3-Clause */

// Topology generators and `--set`.

#include "scenario_harness.h"

// Number of links between two nodes.
static unsigned links_between(const struct scenario *s, const char *a, const char *b)
{
	uint32_t na = node_by_name(s, a), nb = node_by_name(s, b);
	unsigned n = 0;

	for (uint16_t p = 0; p < s->nodes[na].n_ports; p++)
		n += sc_peer(s, na, p).node == nb;
	return n;
}

static void a_star_is_one_switch_with_hosts(void **state)
{
	struct scenario *s = load("topology: {star: {hosts: 5, host_link: {rate: 25Gbps}}}\n");

	assert_int_equal(s->n_switches, 1);
	assert_int_equal(s->n_hosts, 5);
	assert_int_equal(s->n_links, 5);
	assert_int_equal(s->links[4].rate_bps, 25000000000);
	assert_int_equal(links_between(s, "sw1", "h5"), 1);
	scenario_free(s);
}

static void a_ring_joins_each_switch_to_the_next(void **state)
{
	struct scenario *s = load("topology: {ring: {switches: 4, hosts_per_switch: 2}}\n");

	assert_int_equal(s->n_switches, 4);
	assert_int_equal(s->n_hosts, 8);
	assert_int_equal(s->n_links, 12);
	assert_int_equal(links_between(s, "sw1", "sw2"), 1);
	assert_int_equal(links_between(s, "sw4", "sw1"), 1);
	assert_int_equal(links_between(s, "sw1", "sw3"), 0);
	assert_int_equal(links_between(s, "sw2", "h3"), 1);
	assert_int_equal(links_between(s, "sw2", "h4"), 1);
	scenario_free(s);
}

static void leaf_spine_has_host_ports_before_uplinks(void **state)
{
	struct scenario *s = load(
		"defaults: {link: {rate: 100Gbps, delay: 1us}}\n"
		"topology: {leaf_spine: {leaves: 3, spines: 2, hosts_per_leaf: 4, parallel: 2,\n"
		"  fabric_link: {rate: 400Gbps, length: 100m}}}\n");
	uint32_t leaf2 = node_by_name(s, "leaf2");

	assert_int_equal(s->n_switches, 5);
	assert_int_equal(s->n_hosts, 12);
	assert_int_equal(s->n_links, 12 + 3 * 2 * 2);
	assert_int_equal(s->nodes[leaf2].n_ports, 8);
	assert_int_equal(sc_peer(s, leaf2, 0).node, node_by_name(s, "h5"));
	assert_int_equal(sc_peer(s, leaf2, 4).node, node_by_name(s, "spine1"));
	assert_int_equal(sc_peer(s, leaf2, 7).node, node_by_name(s, "spine2"));
	const struct sc_link *up = &s->links[s->nodes[leaf2].ports[4].link];
	assert_int_equal(up->rate_bps, 400000000000);
	assert_int_equal(up->delay, 500 * SIM_NS);
	const struct sc_link *down = &s->links[s->nodes[leaf2].ports[0].link];
	assert_int_equal(down->rate_bps, 100000000000);
	assert_int_equal(down->delay, SIM_US);
	scenario_free(s);
}

// k = 4: 4 pods of 2 edge and 2 agg, 4 core, 16 hosts; 16 + 16 + 16 links.
static void a_fat_tree_of_4_has_16_hosts(void **state)
{
	struct scenario *s = load("topology: {fat_tree: {k: 4}}\n");

	assert_int_equal(s->n_switches, 8 + 8 + 4);
	assert_int_equal(s->n_hosts, 16);
	assert_int_equal(s->n_links, 48);
	for (uint32_t i = 0; i < s->n_switches; i++)
		assert_int_equal(s->nodes[i].n_ports, 4);
	assert_int_equal(links_between(s, "edge3", "h5"), 1);
	assert_int_equal(links_between(s, "edge3", "agg3"), 1);
	assert_int_equal(links_between(s, "edge3", "agg1"), 0); // another pod
	// agg 1 and 3 are the first of their pods: core 1, 2; agg 2 the second: core 3, 4
	assert_int_equal(links_between(s, "agg1", "core1"), 1);
	assert_int_equal(links_between(s, "agg1", "core2"), 1);
	assert_int_equal(links_between(s, "agg1", "core3"), 0);
	assert_int_equal(links_between(s, "agg2", "core4"), 1);
	assert_int_equal(links_between(s, "agg3", "core2"), 1);
	scenario_free(s);
}

static void generators_and_explicit_parts_combine(void **state)
{
	struct scenario *s =
		load("topology:\n"
		     "  star: {hosts: 2, prefix: a-}\n"
		     "  ring: {switches: 3, hosts_per_switch: 0, prefix: b-}\n"
		     "switches:\n  a-sw1: {latency: 1us, buffer: 1MB}\n  extra:\n"
		     "hosts: [x]\nlinks: [[a-sw1, extra], [extra, b-sw2], [extra, x]]\n");

	assert_int_equal(s->n_switches, 5);
	assert_int_equal(s->n_hosts, 3);
	assert_int_equal(s->n_links, 2 + 3 + 3);
	assert_int_equal(s->switches[node_by_name(s, "a-sw1")].latency, SIM_US);
	assert_int_equal(s->switches[node_by_name(s, "b-sw1")].latency, 600 * SIM_NS);
	scenario_free(s);
}

// Different seeds per switch, or hashing would be polarised; the same ones again for the same seed.
static void switches_hash_differently_but_reproducibly(void **state)
{
	static const char yaml[] = "topology: {ring: {switches: 3}}\n";
	struct scenario *s = load(yaml), *t = load(yaml), *u = load_with(yaml, "seed=2", 0, 0);

	assert_int_not_equal(s->switches[0].ecmp_seed, s->switches[1].ecmp_seed);
	assert_int_equal(s->switches[1].ecmp_seed, t->switches[1].ecmp_seed);
	assert_int_not_equal(s->switches[1].ecmp_seed, u->switches[1].ecmp_seed);
	scenario_free(s);
	scenario_free(t);
	scenario_free(u);
}

// ---- --set
// ----------------------------------------------------------------------------------------

#define NET                                                                         \
	"defaults: {link: {rate: 100Gbps}}\nswitches: [sw1]\nhosts: {h1: , h2: }\n" \
	"links: [{ends: [sw1, h1]}, {ends: [sw1, h2]}]\n"                           \
	"workloads: {f: {src: h1, dst: h2, bytes: 1MB}}\n"

static void set_changes_defaults_and_items(void **state)
{
	struct scenario *s = load_with(
		NET, "defaults.link.rate=40Gbps", "links[1].delay=1us", "workloads.f.bytes=2MB");

	assert_int_equal(s->links[0].rate_bps, 40000000000);
	assert_int_equal(s->links[1].delay, SIM_US);
	assert_int_equal(s->links[0].delay, 25 * SIM_NS);
	assert_int_equal(s->flows[0].bytes, 2000000);
	scenario_free(s);
}

static void set_makes_what_is_missing_on_the_way(void **state)
{
	struct scenario *s = load_with(NET, "defaults.qos.pg.3.xoff=100KB",
		"hosts.h2.nic.ack_every=1", "defaults.nic.mtu=4096");

	assert_int_equal(s->qos[0].pg[3].xoff, 100000);
	assert_int_equal(s->hosts[1].nic.ack_every, 1);
	assert_int_equal(s->hosts[0].nic.ack_every, 16);
	assert_int_equal(s->hosts[0].nic.mtu, 4096);
	scenario_free(s);
}

static void set_takes_yaml_values_and_the_last_wins(void **state)
{
	struct scenario *s = load_with(NET, "defaults.qos.pfc_enable=[3]", "seed=5", "seed=6");

	assert_int_equal(s->qos[0].pfc_tx, 1 << 3);
	assert_int_equal(s->seed, 6);
	scenario_free(s);
}

static void set_reaches_an_entry_of_a_list_of_names(void **state)
{
	struct scenario *s =
		load_with(NET, "switches.sw1.buffer=1MB", "switches.sw1.latency=1us", NULL);

	assert_int_equal(s->switches[0].buffer, 1000000);
	assert_int_equal(s->switches[0].latency, SIM_US);
	scenario_free(s);
}

static void set_reaches_a_generated_node(void **state)
{
	struct scenario *s =
		load_with("topology: {star: {hosts: 2}}\n", "switches.sw1.buffer=1MB", NULL, NULL);

	assert_int_equal(s->switches[0].buffer, 1000000);
	scenario_free(s);
}

static void a_wrong_set_is_refused_with_its_text(void **state)
{
	static const struct {
		const char *set, *says;
	} bad[] = {
		{"seed", "--set seed: expected path=value"},
		{"=5", "--set =5: expected path=value"},
		{"a..b=1", "malformed path"},
		{".a=1", "malformed path"},
		{"a.=1", "malformed path"},
		{"[0]=1", "malformed path"},
		{"links[x].rate=1Gbps", "malformed path"},
		{"links[0=1", "malformed path"},
		{"sed=1", "--set sed=1: sed: unknown key"},
		{"defaults.link.rte=1Gbps", "defaults.link.rte: unknown key"},
		{"defaults.link.rate=1", "defaults.link.rate: '1' has no unit"},
		{"defaults.link.rate=", "defaults.link.rate: is empty"},
		{"links[2].rate=1Gbps", "no element [2], the list has 2"},
		{"links.rate=1Gbps", "no 'rate' in a list"},
		{"switches.sw3.buffer=1MB", "no 'sw3' in a list"},
		{"seed.x=1", "seed: is a mapping, expected a whole number"},
		{"hosts.h3.nic.mtu=1024", "hosts.h3: h3 has no link"},
		{"workloads.g.bytes=1MB", "workloads.g.src: missing"},
		{"seed=[1", "--set seed=[1: YAML syntax"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char *text = complaint_of(NET, bad[i].set);
		if (strstr(text, bad[i].says) == NULL || strncmp(text, "--set ", 6) != 0)
			fail_msg("--set %s: expected '%s', got: %s", bad[i].set, bad[i].says, text);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_star_is_one_switch_with_hosts),
		cmocka_unit_test(a_ring_joins_each_switch_to_the_next),
		cmocka_unit_test(leaf_spine_has_host_ports_before_uplinks),
		cmocka_unit_test(a_fat_tree_of_4_has_16_hosts),
		cmocka_unit_test(generators_and_explicit_parts_combine),
		cmocka_unit_test(switches_hash_differently_but_reproducibly),
		cmocka_unit_test(set_changes_defaults_and_items),
		cmocka_unit_test(set_makes_what_is_missing_on_the_way),
		cmocka_unit_test(set_takes_yaml_values_and_the_last_wins),
		cmocka_unit_test(set_reaches_an_entry_of_a_list_of_names),
		cmocka_unit_test(set_reaches_a_generated_node),
		cmocka_unit_test(a_wrong_set_is_refused_with_its_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
