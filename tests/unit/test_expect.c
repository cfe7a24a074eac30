/* SPDX-License-Identifier: BSD-3-Clause */

// Expectations: checked against a scenario before the run, judged against results after it.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#undef expect_check // of cmocka's mocks, which are not used here

#include "emu/report/expect.h"
#include "pipelines/nic.h"
#include "tests/unit/report_fixture.h"

// One expectation "a.b.c" op value, as the scenario loader would hand it over.
struct one {
	struct sc_expect e;
	const char *part[5];
	char text[96];
	struct scenario s;
};

static struct scenario *expecting(struct one *o, const char *path, enum sc_cmp op, double value)
{
	memset(o, 0, sizeof(*o));
	snprintf(o->text, sizeof(o->text), "%s", path);
	o->e = (struct sc_expect){.text = path, .path = path, .part = o->part, .op = op};
	o->e.value = value;
	o->e.pos = (struct sc_pos){.line = 12, .col = 3};
	for (char *p = strtok(o->text, "."); p != NULL; p = strtok(NULL, "."))
		o->part[o->e.n_parts++] = p;
	o->s = (struct scenario){.path = "t.yaml", .expects = &o->e, .n_expects = 1};
	o->s.deadlock.detect = true;
	return &o->s;
}

static struct run_expectation judge(
	struct report_fixture *x, const char *path, enum sc_cmp op, double value)
{
	struct run_expectation e;
	struct one o;

	assert_int_equal(expect_judge(expecting(&o, path, op, value), &x->r), 0);
	assert_int_equal(x->r.n_expectations, 1);
	e = x->r.expectations[0];
	assert_int_equal(run_exit_status(&x->r), e.ok ? 0 : 1);
	expect_free(&x->r);
	assert_int_equal(e.line, 12);
	return e;
}

static void holds(struct report_fixture *x, const char *path, enum sc_cmp op, double value)
{
	struct run_expectation e = judge(x, path, op, value);

	if (!e.ok)
		fail_msg("%s: expected %s, got %s", e.what, e.expected, e.got);
}

static void fails(struct report_fixture *x, const char *path, enum sc_cmp op, double value,
	const char *expected, const char *got)
{
	struct run_expectation e = judge(x, path, op, value);

	assert_false(e.ok);
	assert_string_equal(e.expected, expected);
	assert_string_equal(e.got, got);
}

static int setup(void **state)
{
	struct report_fixture *x = malloc(sizeof(*x));

	assert_non_null(x);
	fixture_init(x);
	*state = x;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static void deadlock_is_yes_or_no(void **state)
{
	struct report_fixture *x = *state;

	holds(x, "deadlock", SC_EQ, 0);
	fails(x, "deadlock", SC_EQ, 1, "== yes", "no");
	fixture_deadlock(x);
	holds(x, "deadlock", SC_EQ, 1);
	fails(x, "deadlock", SC_EQ, 0, "== no", "yes");
	x->r.deadlock = NULL; // nobody watched: neither answer is known
	fails(x, "deadlock", SC_EQ, 0, "== no", "nothing of that name");
	fails(x, "deadlock", SC_EQ, 1, "== yes", "nothing of that name");
}

static void drops_by_reason_and_total(void **state)
{
	struct report_fixture *x = *state;

	holds(x, "drops.total", SC_EQ, 2);
	holds(x, "drops.no_route", SC_GE, 1);
	holds(x, "drops.pg_*", SC_EQ, 0);
	fails(x, "drops.total", SC_EQ, 0, "== 0", "2");
	fails(x, "drops.*", SC_LT, 2, "< 2", "2"); // one of them is no_route
	assert_string_equal(judge(x, "drops.*", SC_LT, 2).what, "drops.no_route");
}

// What the samples say; a queue that none of them saw is empty.
static void queues_by_port_and_number(void **state)
{
	struct run_queue q = {
		.node = 0, .port = 1, .queue = 3, .mean_bytes = 20200, .max_bytes = 90000};
	struct report_fixture *x = *state;

	x->r.queues = &q;
	x->r.n_queues = 1;
	holds(x, "queue.sw1.eth1.3.mean", SC_EQ, 20200);
	holds(x, "queue.sw1.eth1.3.max", SC_EQ, 90000);
	holds(x, "queue.sw1.eth1.4.max", SC_EQ, 0);
	holds(x, "queue.*.*.*.max", SC_LE, 90000);
	fails(x, "queue.sw1.*.3.mean", SC_LT, 10000, "< 10 kB", "20.2 kB");
}

static void flows_by_name(void **state)
{
	struct report_fixture *x = *state;

	holds(x, "flow.victim.goodput", SC_EQ, 100e9);
	fails(x, "flow.victim.goodput", SC_LT, 10e9, "< 10 Gb/s", "100 Gb/s");
	holds(x, "flow.load.goodput", SC_EQ, 20e9); // until the end of the run
	holds(x, "flow.victim.fct", SC_EQ, 10e6);
	holds(x, "flow.victim.complete", SC_EQ, 1);
	holds(x, "flow.victim.bytes", SC_EQ, 125000);
	holds(x, "flow.victim.retransmissions", SC_EQ, 0);
	holds(x, "flow.victim.pauses", SC_GT, 1);
	holds(x, "flow.victim.paused", SC_EQ, 3e6);
	fails(x, "flow.cut.fct", SC_LT, 1e12, "< 1 s", "never");
	holds(x, "flow.cut.fct", SC_GT, 1e12);
	fails(x, "flow.*.goodput", SC_GT, 1e9, "> 1 Gb/s", "0 b/s"); // cut never started
	fails(x, "flow.nobody.fct", SC_GT, 0, "> 0 ps", "nothing of that name");
}

static void all_flows_together(void **state)
{
	struct report_fixture *x = *state;

	fails(x, "flows.complete", SC_EQ, 1, "== yes", "no"); // cut; the open one does not count
	fails(x, "makespan", SC_LT, 1e12, "< 1 s", "never");
	x->flows[2].state = FLOW_FAILED;
	holds(x, "flows.failed", SC_EQ, 1);
	x->r.n_flows = 2;
	holds(x, "flows.complete", SC_EQ, 1);
	holds(x, "flows.failed", SC_EQ, 0);
	holds(x, "makespan", SC_EQ, 15e6);
	holds(x, "duration", SC_EQ, 20e6);
}

static void counters_by_dotted_name(void **state)
{
	struct report_fixture *x = *state;

	holds(x, "counter.sw1.eth1.rx_prio3_pause", SC_EQ, 7);
	holds(x, "counter.sw1.eth1.rx_prio4_pause", SC_EQ, 0);
	holds(x, "counter.sw1.eth1.rx_prio3_pause_duration", SC_EQ, 1.5e6);
	fails(x, "counter.sw1.eth1.rx_prio3_pause_duration", SC_LT, 1e6, "< 1 us", "1.5 us");
	holds(x, "counter.sw2.eth0.drop_no_route", SC_EQ, 2);
	holds(x, "counter.sw2.eth0.drops", SC_EQ, 2);
	holds(x, "counter.*.*.rx_packets", SC_GE, 100);
	fails(x, "counter.*.*.rx_packets", SC_LT, 104, "< 104", "104"); // h1:p0
	assert_string_equal(
		judge(x, "counter.*.*.rx_packets", SC_LT, 104).what, "counter.h1.p0.rx_packets");
}

// Where the vendor's name is not ours: mlx5's and rxe's for a NIC, ethtool's sums.
static void counters_by_vendors_names(void **state)
{
	struct report_fixture *x = *state;
	struct nic_counters nic = {
		.packet_seq_err = 1, .local_ack_timeout_err = 4, .rdma_tx_packets = 9};

	x->ports[4].device = DEVICE_NIC;
	x->ports[4].device_ctr = (const uint64_t *)&nic;
	x->ctr[4].rx_buf_discard[2] = 6;
	x->ctr[4].rx_pauses.duration[3] = 5 * SIM_US;
	holds(x, "counter.h1.p0.completer_retry_err", SC_EQ, 5);
	holds(x, "counter.h1.p0.sent_pkts", SC_EQ, 9);
	holds(x, "counter.h1.p0.packet_seq_err", SC_EQ, 1);
	holds(x, "counter.h1.p0.roce_slow_restart", SC_EQ, 0);
	holds(x, "counter.h1.p0.rx_discards_phy", SC_EQ, 6);
	// Ours by the same name, a time; and one figure once, whatever it is called.
	holds(x, "counter.h1.p0.rx_prio3_pause_duration", SC_EQ, 5e6);
	assert_false(judge(x, "counter.h1.p0.sent_*", SC_GE, 0).ok);
}

static void exit_statuses_of_commands(void **state)
{
	struct report_fixture *x = *state;

	x->guests[0] = (struct run_guest){.name = "h1", .command = "true"};
	x->guests[1] = (struct run_guest){.name = "h1", .command = "rping -s"};
	x->r.n_guests = 2;
	holds(x, "host.h1.exit", SC_EQ, 0);
	x->guests[1].exit_status = 3;
	fails(x, "host.h1.exit", SC_EQ, 0, "== 0", "3");
	x->guests[1].exit_status = -1;
	fails(x, "host.h1.exit", SC_EQ, 0, "== 0", "255");
	x->guests[1].signal = 9;
	fails(x, "host.h1.exit", SC_EQ, 0, "== 0", "137"); // 128 + SIGKILL
}

static void faults_are_counted_by_rule(void **state)
{
	struct report_fixture *x = *state;
	static const struct run_fault faults[] = {
		{.name = "lose", .action = "drop", .lanes = 1, .matched = 17, .applied = 1},
		{.name = "late", .action = "delay", .lanes = 2, .matched = 17, .applied = 0}};

	fails(x, "fault.lose.applied", SC_EQ, 1, "== 1", "nothing of that name");
	x->r.faults = faults;
	x->r.n_faults = 2;
	holds(x, "fault.lose.applied", SC_EQ, 1);
	holds(x, "fault.*.matched", SC_EQ, 17);
	fails(x, "fault.l*.applied", SC_GE, 1, ">= 1", "0");
}

static void lag_is_that_of_the_worst_lcore(void **state)
{
	struct report_fixture *x = *state;

	fails(x, "lag.p99", SC_LT, 1e9, "< 1 ms", "nothing of that name"); // virtual clock
	x->lag[0] = (struct run_lag){.p50 = 5 * SIM_US, .p99 = 10 * SIM_US, .max = SIM_MS};
	x->lag[1] = (struct run_lag){.p50 = 6 * SIM_US, .p99 = 20 * SIM_US, .max = SIM_US};
	x->r.n_lag = 2;
	holds(x, "lag.p50", SC_EQ, 6e6);
	holds(x, "lag.p99", SC_EQ, 20e6);
	holds(x, "lag.max", SC_EQ, 1e9);
	x->r.pool_empty = 4;
	fails(x, "pool_empty", SC_EQ, 0, "== 0", "4");
}

static void every_operator(void **state)
{
	struct report_fixture *x = *state;

	// drops.total is 2
	holds(x, "drops.total", SC_NE, 1);
	fails(x, "drops.total", SC_NE, 2, "!= 2", "2");
	holds(x, "drops.total", SC_LE, 2);
	fails(x, "drops.total", SC_LE, 1, "<= 1", "2");
	holds(x, "drops.total", SC_GE, 2);
	fails(x, "drops.total", SC_GE, 3, ">= 3", "2");
	holds(x, "drops.total", SC_GT, 1);
	fails(x, "drops.total", SC_GT, 2, "> 2", "2");
	holds(x, "drops.total", SC_LT, 3);
}

static void exit_status_prefers_what_voids_the_rest(void **state)
{
	struct report_fixture *x = *state;
	struct run_expectation bad = {.ok = false};

	assert_int_equal(run_exit_status(&x->r), 0);
	x->r.expectations = &bad;
	x->r.n_expectations = 1;
	assert_int_equal(run_exit_status(&x->r), 1);
	x->lag[0] = (struct run_lag){.p99 = 20 * SIM_US};
	x->r.n_lag = 1;
	x->r.lag_bound = 20 * SIM_US;
	assert_int_equal(run_exit_status(&x->r), 1);
	x->r.lag_bound = 19 * SIM_US;
	assert_int_equal(run_exit_status(&x->r), 4);
	x->captures[0].error = "No space left on device";
	assert_int_equal(run_exit_status(&x->r), 3);
	x->captures[0].error = NULL;
	x->invariants[0].ok = false;
	assert_int_equal(run_exit_status(&x->r), 3);
	x->invariants[0].ok = true;
	x->r.failure = "frame pool exhausted";
	assert_int_equal(run_exit_status(&x->r), 3);
	x->r.failure = NULL;
	x->r.n_lag = 0;
	x->r.n_expectations = 0;
	x->r.interrupted = "SIGINT"; // asked for, no failure of its own
	assert_int_equal(run_exit_status(&x->r), 0);
}

// ---- before the run
// -------------------------------------------------------------------------------

// What expect_check() says about one path in a scenario with the fixture's names.
static int check(const char *path, char *text, size_t len)
{
	static const struct sc_port eth[] = {{.name = "eth0"}, {.name = "eth1"}},
				    p0[] = {{.name = "p0"}};
	static struct sc_node nodes[] = {
		{.name = "sw1", .is_switch = true, .ports = eth, .n_ports = 2},
		{.name = "h1", .ports = p0, .n_ports = 1},
		{.name = "h2", .ports = p0, .n_ports = 1}};
	static struct sc_host hosts[] = {
		{.node = 1}, {.node = 2, .kind = SC_HOST_ATTACH, .attach = {.n_run = 1}}};
	static struct sc_flow flows[] = {{.name = "victim"}};
	struct one o;

	memset(text, 0, len);
	FILE *err = fmemopen(text, len, "w");
	expecting(&o, path, SC_EQ, 0);
	o.s.nodes = nodes;
	o.s.n_nodes = 3;
	o.s.hosts = hosts;
	o.s.n_hosts = 2;
	o.s.n_switches = 1;
	o.s.flows = flows;
	o.s.n_flows = 1;
	o.s.deadlock.detect = strcmp(path, "deadlock") != 0;
	int ret = expect_check(&o.s, err);
	fclose(err);
	return ret;
}

static void good_paths_pass_the_check(void **state)
{
	static const char *const good[] = {"drops.total", "drops.no_route", "drops.*",
		"flows.complete", "flows.failed", "flow.victim.fct", "flow.v*.goodput",
		"counter.sw1.eth0.rx_packets", "counter.*.*.drops", "counter.h1.p0.tx_prio7_pause",
		"host.h2.exit", "pool_empty", "duration", "makespan"};
	char text[2048];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		if (check(good[i], text, sizeof(text)) != 0)
			fail_msg("%s", text);
		assert_string_equal(text, "");
	}
}

static void bad_paths_are_named_with_their_place(void **state)
{
	static const char *const bad[][2] = {
		{"deadlok", "no such result, expected one of deadlock,"},
		{"drops", "no such result"},
		{"drops.total.x", "no such result"},
		{"drops.wredd", "no such drop reason, expected one of total, malformed_eth"},
		{"flow.vctim.fct",
			"no flow is called 'vctim'; the scenario has 1 flows, e.g. 'victim'"},
		{"flow.victim.speed", "no such result"},
		{"counter.sw9.eth0.rx_packets", "no switch or host is called 'sw9'"},
		{"counter.sw1.eth7.rx_packets", "'sw1' has no port called 'eth7'"},
		{"counter.sw1.eth0.rx_prio8_pause", "no counter is called 'rx_prio8_pause'"},
		{"queue.sw1.eth0.3.mean", "nobody looks at queues"},
		{"fault.x.applied", "no fault rule is called 'x'"},
		{"host.h9.exit", "no host is called 'h9'"},
		{"host.h1.exit", "host 'h1' runs no commands"},
		{"lag.p99", "under 'clock: wall' only"},
		{"deadlock", "the detector is off"},
	};
	char text[2048];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char where[64];
		snprintf(where, sizeof(where), "t.yaml:12:3: expect: %s: ", bad[i][0]);
		assert_int_equal(check(bad[i][0], text, sizeof(text)), -22); // EINVAL
		assert_memory_equal(text, where, strlen(where));
		if (strstr(text, bad[i][1]) == NULL)
			fail_msg("%s does not say '%s'", text, bad[i][1]);
		assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1); // one line
	}
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(deadlock_is_yes_or_no),
		T(drops_by_reason_and_total),
		T(flows_by_name),
		T(queues_by_port_and_number),
		T(all_flows_together),
		T(counters_by_dotted_name),
		T(counters_by_vendors_names),
		T(exit_statuses_of_commands),
		T(faults_are_counted_by_rule),
		T(lag_is_that_of_the_worst_lcore),
		T(every_operator),
		T(exit_status_prefers_what_voids_the_rest),
		cmocka_unit_test(good_paths_pass_the_check),
		cmocka_unit_test(bad_paths_are_named_with_their_place),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
