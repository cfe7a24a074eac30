/* SPDX-License-Identifier: BSD-3-Clause */

// What a scenario's text becomes: defaults, names, addresses, flows, events.

#include "scenario_harness.h"

#define NET "switches: [sw1]\nhosts: [h1, h2]\nlinks: [[sw1, h1], [sw1, h2]]\n"

static void a_small_scenario_gets_the_documented_defaults(void **state)
{
	struct scenario *s = load(NET);

	assert_string_equal(s->name, "t");
	assert_int_equal(s->clock, SC_CLOCK_VIRTUAL);
	assert_int_equal(s->seed, 1);
	assert_int_equal(s->duration, 0);
	assert_int_equal(s->time_scale_milli, 1000);
	assert_int_equal(s->group_target, 500 * SIM_NS);
	assert_true(s->deadlock.detect && s->deadlock.stop);
	assert_int_equal(s->deadlock.check_interval, 10 * SIM_US);
	assert_int_equal(s->deadlock.stuck_for, SIM_MS);
	assert_int_equal(s->links[0].rate_bps, 100000000000);
	assert_int_equal(s->links[0].delay, 25 * SIM_NS); // 5 m
	assert_int_equal(s->links[0].mtu, 9100);
	assert_int_equal(s->links[0].flow_control, SC_FC_PFC);
	assert_int_equal(s->switches[0].latency, 600 * SIM_NS);
	assert_int_equal(s->switches[0].buffer, 32000000);
	assert_int_equal(s->hosts[0].nic.mtu, 1024);
	assert_int_equal(s->hosts[0].nic.payload, 1024);
	assert_int_equal(s->hosts[0].nic.retry_cnt, 7);
	assert_int_equal(s->hosts[0].nic.timeout, 14);
	assert_int_equal(s->hosts[0].nic.pfc_rx, 0xff);
	scenario_free(s);
}

// sonic-buildimage files/build_templates/qos_config.j2
static void the_default_profile_is_sonics_azure(void **state)
{
	struct scenario *s = load(NET);
	const struct sc_qos *q = &s->qos[0];
	static const uint8_t pg[] = {0, 0, 0, 3, 4, 0, 0, 7};

	assert_string_equal(q->name, "default");
	for (unsigned d = 0; d < SC_DSCPS; d++) {
		unsigned tc = d == 3    ? 3
			      : d == 4  ? 4
			      : d == 5  ? 2
			      : d == 8  ? 0
			      : d == 46 ? 5
			      : d == 48 ? 6
					: 1;
		assert_int_equal(q->dscp_to_tc[d], tc);
	}
	assert_int_equal(q->pcp_to_tc[0], 1);
	assert_int_equal(q->pcp_to_tc[1], 0);
	assert_int_equal(q->pcp_to_tc[5], 5);
	assert_memory_equal(q->tc_to_pg, pg, sizeof(pg));
	assert_int_equal(q->pfc_tx, 0x18);
	assert_int_equal(q->pfc_rx, 0x18);
	assert_true(q->pg[3].lossless && q->pg[4].lossless && !q->pg[0].lossless);
	assert_int_equal(q->pg[3].xoff, SC_AUTO);
	assert_int_equal(q->pg[3].dynamic_th, 0);
	assert_int_equal(q->pg[0].dynamic_th, 3);
	assert_int_equal(q->queue[3].weight, 15);
	assert_int_equal(q->queue[0].weight, 14);
	assert_int_equal(q->queue[7].sched, SC_SCHED_STRICT);
	assert_false(q->queue[3].ecn || q->queue[3].wred_drop);
	scenario_free(s);
}

static void a_profile_starts_from_the_default_one(void **state)
{
	struct scenario *s =
		load("defaults: {qos: {cell_size: 208B}}\n"
		     "qos:\n"
		     "  default: {pfc_enable: [3], queue: {3: {wred: {kmin: 100KB, kmax: "
		     "400KB, pmax: 1%}}}}\n"
		     "  lossy: {pfc_enable: [], pg: {all: {static_th: 1MB}}}\n"
		     "switches: {sw1: {qos: lossy, buffer: 1MB}}\n"
		     "hosts: [h1]\nlinks: [[sw1, h1]]\n");
	const struct sc_qos *lossy = &s->qos[s->switches[0].qos];

	assert_int_equal(s->n_qos, 2);
	assert_int_equal(s->qos[0].pfc_tx, 1 << 3);
	assert_true(s->qos[0].pg[3].lossless);
	assert_false(s->qos[0].pg[4].lossless);
	assert_string_equal(lossy->name, "lossy");
	assert_int_equal(lossy->cell_size, 208);
	assert_int_equal(lossy->pfc_tx, 0);
	assert_false(lossy->pg[3].lossless);
	assert_false(lossy->pg[3].dynamic);
	assert_int_equal(lossy->pg[5].static_th, 1000000);
	assert_true(lossy->queue[3].ecn); // inherited from default
	assert_int_equal(lossy->queue[3].kmin, 100000);
	assert_int_equal(lossy->queue[3].kmax, 400000);
	assert_int_equal(lossy->queue[3].pmax_q32, 42949673); // 0.01 x 2^32 = 42949672.96
	assert_int_equal(s->switches[0].buffer, 1000000);
	scenario_free(s);
}

static void pfc_masks_can_differ_by_direction(void **state)
{
	struct scenario *s = load(NET "defaults: {qos: {pfc_tx: [3], pfc_rx: all}}\n");

	assert_int_equal(s->qos[0].pfc_tx, 1 << 3);
	assert_int_equal(s->qos[0].pfc_rx, 0xff);
	scenario_free(s);
}

static void ports_are_numbered_in_the_order_of_links(void **state)
{
	struct scenario *s = load("switches: [a, b]\nhosts: [h]\n"
				  "links:\n"
				  "  - [a, b]\n"
				  "  - {ends: [a:swp7, h], length: 100m}\n"
				  "  - {ends: [b, a], parallel: 2, rate: 25Gbps}\n");
	const struct sc_node *a = &s->nodes[node_by_name(s, "a")];

	assert_int_equal(s->n_links, 4);
	assert_int_equal(a->n_ports, 4);
	assert_string_equal(a->ports[0].name, "eth0");
	assert_string_equal(a->ports[1].name, "swp7");
	assert_string_equal(a->ports[2].name, "eth2");
	assert_string_equal(a->ports[3].name, "eth3");
	assert_string_equal(s->links[0].name, "a:eth0-b:eth0");
	assert_string_equal(s->links[1].name, "a:swp7-h:eth0");
	assert_int_equal(s->links[1].delay, 500 * SIM_NS); // 100 m at 5 ns/m
	assert_int_equal(s->links[3].rate_bps, 25000000000);
	struct sc_end peer = sc_peer(s, node_by_name(s, "a"), 3);
	assert_int_equal(peer.node, node_by_name(s, "b"));
	assert_int_equal(peer.port, 2);
	scenario_free(s);
}

static void switches_come_before_hosts_and_hosts_have_endpoints(void **state)
{
	struct scenario *s = load("hosts: [h1, h2]\nswitches: [z, y]\n"
				  "links: [[h1, z], [h1, y], [h2, y], [z, y]]\n");

	assert_string_equal(s->nodes[0].name, "z");
	assert_string_equal(s->nodes[1].name, "y");
	assert_string_equal(s->nodes[2].name, "h1");
	assert_true(sc_is_host(s, 2) && !sc_is_host(s, 1));
	assert_int_equal(s->n_endpoints, 3);
	assert_int_equal(s->hosts[0].first_endpoint, 0);
	assert_int_equal(s->hosts[1].first_endpoint, 2);
	assert_int_equal(s->nodes[2].ports[1].endpoint, 1);
	assert_int_equal(s->nodes[0].ports[0].endpoint, SC_NONE);
	scenario_free(s);
}

static void addresses_are_given_or_assigned_without_clashes(void **state)
{
	struct scenario *s =
		load("switches: [s]\nhosts:\n  h1:\n  h2: {ip: 10.0.0.1/24, ip6: 'fd00::1'}\n"
		     "  h3: {ip: [192.168.1.5], mac: '02:00:00:00:00:01'}\n"
		     "links: [[s, h1], [s, h2], [s, h3], [s, h1]]\n");

	assert_int_equal(s->n_endpoints, 4);               // h1 has two ports
	assert_int_equal(s->endpoints[0].ip4, 0x0a000002); // .1 is taken
	assert_int_equal(s->endpoints[1].ip4, 0x0a000003);
	assert_int_equal(s->endpoints[2].ip4, 0x0a000001);
	assert_int_equal(s->endpoints[2].ip4_len, 24);
	assert_int_equal(s->endpoints[3].ip4, 0xc0a80105);
	assert_true(s->endpoints[0].has_ip6);
	assert_int_equal(s->endpoints[0].ip6[0], 0xfd);
	assert_int_equal(s->endpoints[0].ip6[15], 2);
	assert_int_equal(s->endpoints[2].ip6[15], 1);
	assert_int_equal(s->nodes[node_by_name(s, "h3")].ports[0].mac[5], 1);
	scenario_free(s);
}

static void a_flow_takes_what_the_workload_says(void **state)
{
	struct scenario *s = load(
		NET "workloads:\n"
		    "  f: {src: h1, dst: h2, op: SEND, bytes: 64KB, messages: 10, rate: 5Gbps,\n"
		    "      start: 1ms, stop: 2ms, dscp: 46, ttl: 9, qps: 4, udp_sport: 50000}\n"
		    "  g: {src: h2, dst: h1, stop: 5ms}\n"
		    "  e: {src: h2, dst: h1, bytes: 1B, start: event, priority: 4}\n");
	const struct sc_flow *f = &s->flows[0], *g = &s->flows[1], *e = &s->flows[2];

	assert_string_equal(f->name, "f");
	assert_int_equal(f->src, 0);
	assert_int_equal(f->dst, 1);
	assert_int_equal(f->op, WR_SEND);
	assert_int_equal(f->bytes, 64000);
	assert_int_equal(f->messages, 10);
	assert_int_equal(f->rate_bps, 5000000000);
	assert_int_equal(f->start, SIM_MS);
	assert_int_equal(f->stop, 2 * SIM_MS);
	assert_int_equal(f->dscp, 46);
	assert_int_equal(f->priority, 5); // AZURE: 46 -> 5
	assert_int_equal(f->ttl, 9);
	assert_int_equal(f->qps, 4);
	assert_int_equal(f->udp_sport, 50000);
	assert_false(f->open || f->on_demand);
	assert_true(g->open); // neither bytes nor messages: endless
	assert_int_equal(g->messages, 0);
	assert_int_equal(g->bytes, 1 << 20);
	assert_int_equal(g->dscp, 3);
	assert_int_equal(g->ttl, 64);
	assert_int_equal(g->pcp, SC_UNSET);
	assert_true(e->on_demand);
	assert_int_equal(e->start, 0);
	assert_int_equal(e->dscp, 4);
	scenario_free(s);
}

static void generators_make_named_flows(void **state)
{
	struct scenario *s = load("topology: {star: {hosts: 4}}\nworkloads:\n"
				  "  in: {type: incast, dst: h2, bytes: 1MB}\n"
				  "  two: {type: incast, dst: h2, fanin: 2, bytes: 1MB}\n"
				  "  perm: {type: permutation, shift: 3, bytes: 1MB}\n"
				  "  all: {type: all_to_all, hosts: [h1, h2, h3], bytes: 1MB}\n");

	assert_int_equal(s->n_flows, 3 + 2 + 4 + 6);
	assert_string_equal(s->flows[0].name, "in-h1-h2");
	assert_string_equal(s->flows[1].name, "in-h3-h2");
	assert_string_equal(s->flows[3].name, "two-h1-h2");
	assert_string_equal(s->flows[5].name, "perm-h1-h4"); // 1 + 3
	assert_string_equal(s->flows[6].name, "perm-h2-h1"); // 2 + 3 wraps
	assert_string_equal(s->flows[9].name, "all-h1-h2");
	assert_string_equal(s->flows[14].name, "all-h3-h2");
	assert_int_equal(s->flows[14].workload, 3);
	scenario_free(s);
}

static void a_flow_can_use_any_port_of_its_hosts(void **state)
{
	struct scenario *s = load("switches: [s]\nhosts: [h1, h2]\n"
				  "links: [[s, h1], [s, h1], [s, h2]]\nworkloads:\n"
				  "  f: {src: 'h1:eth1', dst: h2, bytes: 1MB}\n"
				  "  all: {type: all_to_all, bytes: 1MB}\n");

	assert_int_equal(s->flows[0].src, 1);
	// a host does not send to itself: 2 ports x h2, both ways
	assert_int_equal(s->n_flows, 1 + 4);
	assert_string_equal(s->flows[2].name, "all-h1_eth1-h2");
	scenario_free(s);
}

static void routes_name_neighbours_ports_prefixes_and_paths(void **state)
{
	struct scenario *s =
		load("switches: [a, b, c]\nhosts: [h1, h2]\n"
		     "links: [[a, h1], [a, b], [a, b], [b, c], [c, h2], [a, c]]\nrouting:\n"
		     "  - {switch: a, dst: h2, via: b}\n"
		     "  - {switch: a, dst: h2, via: [b, 'a:eth3']}\n"
		     "  - {dst: 10.0.0.0/8, path: [a, b, c]}\n"
		     "  - {switch: c, dst: [h1, h2], via: drop}\n");
	const struct sc_route *r = s->routes;

	assert_int_equal(s->n_routes, 5);
	assert_int_equal(r[0].n_ports, 2); // both parallel links
	assert_int_equal(r[0].ports[0], 1);
	assert_int_equal(r[0].ports[1], 2);
	assert_int_equal(r[0].n_endpoints, 1);
	assert_int_equal(r[1].n_ports, 3);
	assert_int_equal(r[1].ports[2], 3);
	assert_int_equal(r[2].sw, 0);
	assert_int_equal(r[2].n_endpoints, 2);
	assert_int_equal(r[3].sw, 1);
	assert_int_equal(r[3].ports[0], 2); // b: two from a, then c
	assert_int_equal(r[4].n_ports, 0);
	assert_int_equal(r[4].n_endpoints, 2);
	scenario_free(s);
}

static void events_are_ordered_by_time_and_expanded(void **state)
{
	struct scenario *s =
		load("switches: [a, b]\nhosts: [h1, h2]\n"
		     "links: [[a, h1], [b, h2], {ends: [a, b], name: trunk}, [a, b]]\n"
		     "workloads: {w: {type: all_to_all, bytes: 1MB}}\nevents:\n"
		     "  - {at: 3ms, link_up: [a, b]}\n"
		     "  - {at: 1ms, pause_storm: {host: h2, priority: [3, 4], duration: 5us}}\n"
		     "  - {at: 1ms, link_down: trunk}\n"
		     "  - {at: 2ms, flow_stop: w}\n"
		     "  - {at: 0, set_corrupt: {link: 'h1:eth0', probability: 100%}}\n"
		     "  - {at: 4ms, route: {switch: a, dst: h2, via: 'a:eth1'}}\n");
	const struct sc_event *e = s->events;

	assert_int_equal(s->n_events, 1 + 1 + 1 + 2 + 2 + 1);
	assert_int_equal(e[0].kind, SC_EVENT_SET_CORRUPT);
	assert_int_equal(e[0].link, 0);
	assert_int_equal(e[0].corrupt_q32, INT64_C(1) << 32);
	assert_int_equal(e[1].kind, SC_EVENT_PAUSE_STORM); // file order at 1 ms
	assert_int_equal(e[1].node, node_by_name(s, "h2"));
	assert_int_equal(e[1].prio_mask, 0x18);
	assert_int_equal(e[1].duration, 5 * SIM_US);
	assert_int_equal(e[2].kind, SC_EVENT_LINK_DOWN);
	assert_int_equal(e[2].link, 2);
	assert_int_equal(e[3].kind, SC_EVENT_FLOW_STOP);
	assert_int_equal(e[4].flow, 1);
	assert_int_equal(e[5].kind, SC_EVENT_LINK_UP); // both links between a and b
	assert_int_equal(e[5].link, 2);
	assert_int_equal(e[6].link, 3);
	assert_int_equal(e[7].kind, SC_EVENT_ROUTE);
	assert_int_equal(e[7].route.ports[0], 1);
	scenario_free(s);
}

static void captures_tap_each_port_once(void **state)
{
	struct scenario *s = load(NET "captures:\n"
				      "  - {file: all.pcapng}\n"
				      "  - {file: some.pcapng, taps: [sw1, 'sw1:eth0', h1], "
				      "direction: rx, filter: udp, snaplen: 128B,\n"
				      "     max_size: 1MB, ring: 3}\n"
				      "  - {file: link.pcapng, taps: 'sw1:eth0-h1:eth0'}\n");

	assert_int_equal(s->captures[0].n_taps, 4);
	assert_int_equal(s->captures[1].n_taps, 3);
	assert_int_equal(s->captures[1].dir, SC_DIR_RX);
	assert_string_equal(s->captures[1].filter, "udp");
	assert_int_equal(s->captures[1].snaplen, 128);
	assert_int_equal(s->captures[1].ring, 3);
	assert_int_equal(s->captures[2].n_taps, 1);
	assert_null(s->captures[0].filter);
	scenario_free(s);
}

static void expectations_keep_path_operator_and_base_units(void **state)
{
	struct scenario *s = load(NET "duration: 1ms\n"
				      "workloads: {f: {src: h1, dst: h2}}\nexpect:\n"
				      "  - deadlock: no\n"
				      "  - drops.total == 0\n"
				      "  - flow.f.goodput >= 1.5Gbps\n"
				      "  - {flow.f.fct: \"< 10us\", flows.failed: 0}\n"
				      "  - counter.sw1.eth0.rx_prio3_pause_duration > 3us\n"
				      "  - counter.sw1.*.tx_packets!=7\n");
	const struct sc_expect *e = s->expects;

	assert_int_equal(s->n_expects, 7);
	assert_string_equal(e[0].path, "deadlock");
	assert_int_equal(e[0].op, SC_EQ);
	assert_true(e[0].value == 0);
	assert_int_equal(e[2].op, SC_GE);
	assert_true(e[2].value == 1.5e9);
	assert_int_equal(e[2].n_parts, 3);
	assert_string_equal(e[2].part[1], "f");
	assert_string_equal(e[2].text, "flow.f.goodput >= 1.5Gbps");
	assert_int_equal(e[3].op, SC_LT);
	assert_true(e[3].value == 10e6); // ps
	assert_true(e[5].value == 3e6);
	assert_int_equal(e[6].op, SC_NE);
	assert_true(e[6].value == 7);
	assert_int_equal(e[1].pos.line, 8);
	scenario_free(s);
}

static void edges_of_real_endpoints_may_run_dcqcn(void **state)
{
	struct scenario *s = load(
		"clock: wall\ndefaults: {attach: {kind: tap, cc: dcqcn, dcqcn: {preset: paper}}}\n"
		"switches: [s]\nhosts:\n"
		"  a: {attach: {np: {cnp_dscp: 40}}}\n"
		"  b: {attach: {ecn: keep, np: {enable: no}, dcqcn: {rpg_threshold: 3}}}\n"
		"  c: {attach: {cc: none, ecn: ect0}}\nlinks: [[s, a], [s, b], [s, c]]\n");
	const struct sc_attach *a = &s->hosts[0].attach, *b = &s->hosts[1].attach,
			       *c = &s->hosts[2].attach;

	assert_int_equal(a->nic.cc.algorithm, CC_DCQCN);
	assert_int_equal(a->nic.cc.dcqcn.rpg_threshold, 5); // the paper's
	assert_int_equal(a->nic.np.cnp_dscp, 40);
	assert_int_equal(a->nic.np.min_time_between_cnps, 50 * SIM_US);
	assert_true(a->nic.np.enable && a->ect0);
	assert_int_equal(b->nic.cc.dcqcn.rpg_threshold, 3);
	assert_int_equal(b->nic.cc.dcqcn.rpg_time_reset, 55 * SIM_US);
	assert_false(b->nic.np.enable || b->ect0);
	assert_int_equal(c->nic.cc.algorithm, CC_NONE);
	assert_false(c->nic.np.enable);
	assert_true(c->ect0);
	scenario_free(s);
}

static void real_endpoints_and_replays_are_described(void **state)
{
	struct scenario *s = load(
		"clock: wall\ntime_scale: 100\npoll: busy\nlag_bound: 5ms\n"
		"defaults: {attach: {memory: 256MiB}}\nswitches: [s]\nhosts:\n"
		"  g: {attach: {kind: guest, roce_dscp: 3, accel: tcg, env: {A: b c}, run: [true,\n"
		"      {command: sleep 1, background: yes, after: 1s, timeout: never}]}}\n"
		"  r: {replay: {file: x.pcap, filter: udp, speed: 2.5x, loops: 3}}\n"
		"  q: {replay: /abs.pcap}\n"
		"links: [[s, g], [s, r], [s, q]]\n");
	const struct sc_attach *a = &s->hosts[0].attach;

	assert_int_equal(a->nic.cc.algorithm, CC_NONE);
	assert_false(a->nic.np.enable);
	assert_false(a->ect0);

	assert_int_equal(s->time_scale_milli, 100000);
	assert_int_equal(s->poll, SC_POLL_BUSY);
	assert_int_equal(s->hosts[0].kind, SC_HOST_ATTACH);
	assert_int_equal(a->kind, SC_ATTACH_GUEST);
	assert_int_equal(a->memory, 256 << 20);
	assert_int_equal(a->roce_dscp, 3);
	assert_int_equal(a->accel, SC_ACCEL_TCG);
	assert_int_equal(a->n_env, 1);
	assert_string_equal(a->env[0], "A=b c");
	assert_int_equal(a->n_run, 2);
	assert_string_equal(a->run[0].command, "true");
	assert_int_equal(a->run[0].timeout, 60 * SIM_S);
	assert_true(a->run[1].background);
	assert_int_equal(a->run[1].after, SIM_S);
	assert_int_equal(a->run[1].timeout, 0);
	assert_int_equal(s->hosts[1].kind, SC_HOST_REPLAY);
	assert_string_equal(s->hosts[1].replay.file, "dir/x.pcap"); // beside the scenario
	assert_int_equal(s->hosts[1].replay.speed_milli, 2500);
	assert_int_equal(s->hosts[1].replay.loops, 3);
	assert_string_equal(s->hosts[2].replay.file, "/abs.pcap");
	scenario_free(s);
}

static void an_alias_repeats_a_value(void **state)
{
	struct scenario *s = load("switches: [s]\nhosts: [h1, h2]\nlinks:\n"
				  "  - {ends: [s, h1], rate: &slow 1Gbps}\n"
				  "  - {ends: [s, h2], rate: *slow}\n");

	assert_int_equal(s->links[1].rate_bps, 1000000000);
	scenario_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_small_scenario_gets_the_documented_defaults),
		cmocka_unit_test(the_default_profile_is_sonics_azure),
		cmocka_unit_test(a_profile_starts_from_the_default_one),
		cmocka_unit_test(pfc_masks_can_differ_by_direction),
		cmocka_unit_test(ports_are_numbered_in_the_order_of_links),
		cmocka_unit_test(switches_come_before_hosts_and_hosts_have_endpoints),
		cmocka_unit_test(addresses_are_given_or_assigned_without_clashes),
		cmocka_unit_test(a_flow_takes_what_the_workload_says),
		cmocka_unit_test(generators_make_named_flows),
		cmocka_unit_test(a_flow_can_use_any_port_of_its_hosts),
		cmocka_unit_test(routes_name_neighbours_ports_prefixes_and_paths),
		cmocka_unit_test(events_are_ordered_by_time_and_expanded),
		cmocka_unit_test(captures_tap_each_port_once),
		cmocka_unit_test(expectations_keep_path_operator_and_base_units),
		cmocka_unit_test(edges_of_real_endpoints_may_run_dcqcn),
		cmocka_unit_test(real_endpoints_and_replays_are_described),
		cmocka_unit_test(an_alias_repeats_a_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
