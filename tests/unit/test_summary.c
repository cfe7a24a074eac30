/* SPDX-License-Identifier: BSD-3-Clause */

// summary.json: read back by jansson; its keys; nothing half-written.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "emu/report/summary.h"
#include "pipelines/edge.h"
#include "pipelines/nic.h"
#include "tests/unit/report_fixture.h"

struct dirs {
	struct report_fixture x;
	char dir[64];
	char path[96];
};

static int setup(void **state)
{
	struct dirs *d = calloc(1, sizeof(*d));

	assert_non_null(d);
	fixture_init(&d->x);
	strcpy(d->dir, "/tmp/test_summary.XXXXXX");
	assert_non_null(mkdtemp(d->dir));
	snprintf(d->path, sizeof(d->path), "%s/summary.json", d->dir);
	*state = d;
	return 0;
}

static int teardown(void **state)
{
	struct dirs *d = *state;

	unlink(d->path);
	assert_int_equal(rmdir(d->dir), 0); // nothing else was left there
	free(d);
	return 0;
}

static json_t *write_and_read(struct dirs *d)
{
	char err[256] = "";
	json_error_t why;

	assert_int_equal(summary_write(&d->x.r, d->dir, err, sizeof(err)), 0);
	assert_string_equal(err, "");
	json_t *o = json_load_file(d->path, JSON_REJECT_DUPLICATES, &why);
	if (o == NULL)
		fail_msg("%s", why.text);
	return o;
}

static const json_t *at(const json_t *o, const char *key)
{
	const json_t *v =
		json_is_array(o) ? json_array_get(o, (size_t)atoi(key)) : json_object_get(o, key);

	if (v == NULL)
		fail_msg("no key %s", key);
	return v;
}

static json_int_t integer(const json_t *o, const char *key)
{
	assert_true(json_is_integer(at(o, key)));
	return json_integer_value(at(o, key));
}

static const char *string(const json_t *o, const char *key)
{
	assert_true(json_is_string(at(o, key)));
	return json_string_value(at(o, key));
}

static void every_key_of_the_schema_is_there(void **state)
{
	static const char *const keys[] = {"schema", "schema_version", "fabemu_version", "verdict",
		"exit_status", "failure", "interrupted", "scenario", "digest", "emulated_ps",
		"duration_ps", "wall_seconds", "setup_seconds", "events", "data_hops", "frames",
		"drops", "pool_empty", "deadlock", "flows", "ports", "priority_groups", "queues",
		"pfc_watchdog", "event_log", "expectations", "invariants", "lag", "apps", "faults",
		"guests", "captures", "host"};
	json_t *o = write_and_read(*state);

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		at(o, keys[i]);
	assert_int_equal(json_object_size(o), sizeof(keys) / sizeof(keys[0]));
	assert_string_equal(string(o, "schema"), "fabemu-summary");
	assert_int_equal(integer(o, "schema_version"), 1);
	assert_string_equal(string(o, "verdict"), "held");
	assert_int_equal(integer(o, "exit_status"), 0);
	assert_string_equal(string(o, "digest"), "0xf0123456789abcde");
	assert_int_equal(integer(o, "emulated_ps"), 20000000);
	assert_true(json_is_null(at(o, "duration_ps")));
	assert_true(json_is_null(at(o, "failure")));
	json_decref(o);
}

static void drops_have_every_reason_and_a_total(void **state)
{
	json_t *o = write_and_read(*state);
	const json_t *drops = at(o, "drops");

	assert_int_equal(json_object_size(drops), DROP_REASON_COUNT + 1);
	assert_int_equal(integer(drops, "no_route"), 2);
	assert_int_equal(integer(drops, "pg_headroom_full"), 0);
	assert_int_equal(integer(drops, "total"), 2);
	json_decref(o);
}

static void flows_have_times_or_null(void **state)
{
	json_t *o = write_and_read(*state);
	const json_t *victim = at(at(o, "flows"), "0"), *cut = at(at(o, "flows"), "2");

	assert_string_equal(string(victim, "state"), "completed");
	assert_int_equal(integer(victim, "fct_ps"), 10000000);
	assert_true(json_real_value(at(victim, "goodput_bps")) == 100e9);
	assert_int_equal(integer(victim, "paused_ps"), 3000000);
	assert_string_equal(string(cut, "state"), "not_started");
	assert_true(json_is_null(at(cut, "start_ps")));
	assert_true(json_is_null(at(cut, "fct_ps")));
	json_decref(o);
}

static void deadlock_names_its_ring(void **state)
{
	struct dirs *d = *state;

	fixture_deadlock(&d->x);
	json_t *o = write_and_read(d);
	const json_t *dl = at(o, "deadlock"), *cycle = at(at(dl, "cycles"), "0");
	const json_t *second = at(at(cycle, "members"), "1");

	assert_true(json_is_true(at(dl, "found")));
	assert_int_equal(integer(cycle, "priority"), 3);
	assert_int_equal(integer(cycle, "formed_at_ps"), 8000000);
	assert_int_equal(integer(cycle, "detected_at_ps"), 18000000);
	assert_true(json_is_null(at(cycle, "ended_at_ps")));
	assert_int_equal(integer(cycle, "length"), 2);
	assert_int_equal(integer(cycle, "behind"), 1);
	assert_string_equal(string(at(cycle, "trigger"), "port"), "sw2:eth0");
	assert_int_equal(json_array_size(at(cycle, "members")), 2);
	assert_string_equal(string(second, "port"), "sw2:eth0");
	assert_int_equal(integer(second, "bytes"), 130000);
	assert_int_equal(integer(second, "xoff_since_ps"), 5000000);
	assert_string_equal(string(second, "waits_at"), "sw2:eth0");
	assert_int_equal(integer(second, "waiting_bytes"), 100000);
	json_decref(o);
}

static void ports_show_counters_that_are_not_zero(void **state)
{
	json_t *o = write_and_read(*state);
	const json_t *port = at(at(o, "ports"), "1"), *counters = at(port, "counters");

	assert_int_equal(json_array_size(at(o, "ports")), 5);
	assert_string_equal(string(port, "node"), "sw1");
	assert_string_equal(string(port, "port"), "eth1");
	assert_int_equal(json_object_size(counters), 5);
	assert_int_equal(integer(counters, "rx_packets"), 101);
	assert_int_equal(integer(counters, "rx_prio0_packets"), 10);
	assert_int_equal(integer(counters, "rx_prio3_packets"), 91);
	assert_int_equal(integer(counters, "rx_prio3_pause"), 7);
	assert_int_equal(integer(counters, "rx_prio3_pause_duration"), 1500000);
	assert_int_equal(integer(at(at(o, "priority_groups"), "0"), "peak_bytes"), 90000);
	json_decref(o);
}

// h1's only port gets a NIC's counters, each its own number plus 1000, so that a name with
// another's figure is seen.
static struct nic_counters numbered_counters(void)
{
	struct nic_counters ctr;
	uint64_t v[sizeof(ctr) / sizeof(uint64_t)] = {0};

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++)
		v[i] = 1000 + i;
	memcpy(&ctr, v, sizeof(ctr));
	return ctr;
}

// The list is mlx5's (drivers/infiniband/hw/mlx5/counters.c), written out here once more.
static void hw_counters_have_every_name(void **state)
{
	static const char *const names[] = {"rx_write_requests", "rx_read_requests",
		"rx_atomic_requests", "rx_dct_connect", "out_of_buffer", "out_of_sequence",
		"duplicate_request", "rnr_nak_retry_err", "packet_seq_err", "implied_nak_seq_err",
		"local_ack_timeout_err", "rp_cnp_ignored", "rp_cnp_handled",
		"np_ecn_marked_roce_packets", "np_cnp_sent", "resp_local_length_error",
		"resp_cqe_error", "req_cqe_error", "req_remote_invalid_request",
		"req_remote_access_errors", "resp_remote_access_errors", "resp_cqe_flush_error",
		"req_cqe_flush_error", "req_transport_retries_exceeded", "req_rnr_retries_exceeded",
		"roce_adp_retrans", "roce_adp_retrans_to", "roce_slow_restart",
		"roce_slow_restart_cnps", "roce_slow_restart_trans", "rx_icrc_encapsulated",
		"cc_rx_ce_pkts", "cc_rx_cnp_pkts", "cc_tx_cnp_pkts", "rdma_tx_packets",
		"rdma_rx_packets", "rdma_tx_bytes", "rdma_rx_bytes"};
	struct dirs *d = *state;
	struct nic_counters ctr = numbered_counters();

	d->x.ports[4].device = DEVICE_NIC;
	d->x.ports[4].device_ctr = (const uint64_t *)&ctr;
	json_t *o = write_and_read(d);
	const json_t *hw = at(at(at(o, "ports"), "4"), "hw_counters");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		at(hw, names[i]);
	assert_int_equal(json_object_size(hw), sizeof(names) / sizeof(names[0]));
	assert_int_equal(integer(hw, "np_cnp_sent"), ctr.np_cnp_sent);
	assert_int_equal(integer(hw, "packet_seq_err"), ctr.packet_seq_err);
	assert_int_equal(integer(hw, "rdma_rx_bytes"), ctr.rdma_rx_bytes);
	assert_int_equal(integer(hw, "rx_dct_connect"), 0);
	assert_null(json_object_get(at(at(o, "ports"), "1"), "hw_counters")); // a switch's
	json_decref(o);
}

// What an edge can know of mlx5's list, and rxe's list (rxe_hw_counters.c) on both kinds of device.
static void edges_have_what_can_be_seen_from_outside(void **state)
{
	static const char *const rxe[] = {"sent_pkts", "rcvd_pkts", "duplicate_request",
		"out_of_seq_request", "rcvd_rnr_err", "send_rnr_err", "rcvd_seq_err",
		"completer_retry_err"};
	struct dirs *d = *state;
	struct edge_counters ctr = {.edge_ce_seen = 3,
		.edge_cnp_sent = 2,
		.edge_cnp_handled = 5,
		.edge_cnp_swallowed = 7,
		.duplicate_request = 11,
		.seq_naks_sent = 13,
		.go_backs = 17,
		.rdma_tx_packets = 19,
		.rdma_sends = 23};
	struct nic_counters nic = {.packet_seq_err = 1,
		.implied_nak_seq_err = 2,
		.local_ack_timeout_err = 4,
		.req_transport_retries_exceeded = 8,
		.rdma_rx_packets = 16};

	d->x.ports[4].device = DEVICE_EDGE;
	d->x.ports[4].device_ctr = (const uint64_t *)&ctr;
	json_t *o = write_and_read(d);
	const json_t *hw = at(at(at(o, "ports"), "4"), "hw_counters");
	assert_int_equal(integer(hw, "np_ecn_marked_roce_packets"), 3);
	assert_int_equal(integer(hw, "cc_tx_cnp_pkts"), 2);
	assert_int_equal(integer(hw, "rp_cnp_handled"), 5);
	assert_int_equal(integer(hw, "rp_cnp_ignored"), 7);
	assert_int_equal(integer(hw, "duplicate_request"), 11);
	assert_int_equal(integer(hw, "rx_dct_connect"), 0);
	assert_null(json_object_get(hw, "req_cqe_error")); // nobody outside sees completions
	assert_int_equal(json_object_size(hw), 38 - 9);
	const json_t *seen = at(at(at(o, "ports"), "4"), "rxe_counters");
	for (size_t i = 0; i < sizeof(rxe) / sizeof(rxe[0]); i++)
		at(seen, rxe[i]);
	assert_int_equal(integer(seen, "out_of_seq_request"), 13);
	assert_int_equal(integer(seen, "completer_retry_err"), 17);
	assert_int_equal(integer(seen, "sent_pkts"), 19);
	assert_int_equal(integer(seen, "rdma_sends"), 23);
	assert_null(json_object_get(seen, "retry_exceeded_err"));
	json_decref(o);

	d->x.ports[4].device = DEVICE_NIC;
	d->x.ports[4].device_ctr = (const uint64_t *)&nic;
	o = write_and_read(d);
	seen = at(at(at(o, "ports"), "4"), "rxe_counters");
	for (size_t i = 0; i < sizeof(rxe) / sizeof(rxe[0]); i++)
		at(seen, rxe[i]);
	assert_int_equal(integer(seen, "completer_retry_err"), 7);
	assert_int_equal(integer(seen, "retry_exceeded_err"), 8);
	assert_int_equal(integer(seen, "rcvd_pkts"), 16);
	assert_null(json_object_get(seen, "rdma_sends"));
	json_decref(o);
}

static void ethtool_counts_in_the_vendors_units(void **state)
{
	static const char *const by_prio[] = {"rx_prio%d_bytes", "rx_prio%d_packets",
		"tx_prio%d_bytes", "tx_prio%d_packets", "rx_prio%d_pause", "tx_prio%d_pause",
		"rx_prio%d_pause_duration", "tx_prio%d_pause_duration",
		"rx_prio%d_pause_transition", "tx_prio%d_pause_transition", "rx_prio%d_buf_discard",
		"rx_prio%d_cong_discard"};
	struct dirs *d = *state;
	struct port_counters *c = &d->x.ctr[4];
	char name[COUNTER_NAME_MAX];

	c->rx_pauses.duration[3] = 2999 * SIM_NS; // 2 whole us
	c->tx_pauses.duration[5] = 7 * SIM_US;
	c->rx_pauses.transitions[3] = 21;
	c->tx_pauses.transitions[5] = 22;
	c->tx_pauses.storm_warnings = 3;
	c->tx_pauses.storm_errors = 2;
	c->rx_buf_discard[0] = 4;
	c->rx_buf_discard[7] = 5; // rx_discards_phy: 4 + 5
	c->rx_global_pause = 11;
	json_t *o = write_and_read(d);
	const json_t *e = at(at(at(o, "ports"), "4"), "ethtool");
	for (size_t i = 0; i < sizeof(by_prio) / sizeof(by_prio[0]); i++) {
		const char *gap = strchr(by_prio[i], '%');
		for (int p = 0; p < PRIO_COUNT; p++) {
			snprintf(name, sizeof(name), "%.*s%d%s", (int)(gap - by_prio[i]),
				by_prio[i], p, gap + 2);
			at(e, name);
		}
	}
	assert_int_equal(json_object_size(e), 12 * 8 + 7);
	assert_int_equal(integer(e, "rx_prio3_pause_transition"), 21);
	assert_int_equal(integer(e, "tx_prio5_pause_transition"), 22);
	assert_int_equal(integer(e, "tx_pause_storm_warning_events"), 3);
	assert_int_equal(integer(e, "tx_pause_storm_error_events"), 2);
	assert_int_equal(integer(e, "tx_global_pause"), 0);
	at(e, "rx_global_pause_duration");
	at(e, "tx_global_pause_duration");
	assert_int_equal(integer(e, "rx_prio3_packets"), 94); // the fixture's 90 + 4
	assert_int_equal(integer(e, "rx_prio3_pause_duration"), 2);
	assert_int_equal(integer(e, "tx_prio5_pause_duration"), 7);
	assert_int_equal(integer(e, "rx_prio7_buf_discard"), 5);
	assert_int_equal(integer(e, "rx_discards_phy"), 9);
	assert_int_equal(integer(e, "rx_global_pause"), 11);
	assert_null(json_object_get(at(at(o, "ports"), "1"), "ethtool")); // a switch's
	json_decref(o);
}

static void events_and_failures_are_told(void **state)
{
	struct dirs *d = *state;

	d->x.invariants[0] =
		(struct run_invariant){.name = "buffer_accounting", .text = "sw1: 80 bytes left"};
	d->x.captures[0].error = "No space left on device";
	json_t *o = write_and_read(d);

	assert_string_equal(string(o, "verdict"), "run_failed");
	assert_int_equal(integer(o, "exit_status"), 3);
	assert_string_equal(string(at(at(o, "invariants"), "0"), "text"), "sw1: 80 bytes left");
	assert_string_equal(string(at(at(o, "captures"), "0"), "error"), "No space left on device");
	const json_t *e = at(at(at(o, "event_log"), "first"), "0");
	assert_string_equal(string(e, "kind"), "pfc_xoff_sent");
	assert_string_equal(string(e, "port"), "sw2:eth0");
	assert_int_equal(integer(e, "at_ps"), 6000000);
	json_decref(o);
}

static void names_that_are_not_utf8_do_not_spoil_it(void **state)
{
	struct dirs *d = *state;

	d->x.r.file = "caf\xe9.yaml";
	json_t *o = write_and_read(d);
	assert_string_equal(string(at(o, "scenario"), "file"), "caf?.yaml");
	json_decref(o);
}

static void a_new_summary_replaces_the_old_one_whole(void **state)
{
	struct dirs *d = *state;

	json_decref(write_and_read(d));
	d->x.r.seed = 77;
	json_t *o = write_and_read(d);
	assert_int_equal(integer(at(o, "scenario"), "seed"), 77);
	json_decref(o);
}

static void failed_write_leaves_nothing_half_written(void **state)
{
	struct dirs *d = *state;
	char err[256] = "", tmp[96];

	json_decref(write_and_read(d));
	// The temporary file is a link to a full disk: the old summary stays.
	snprintf(tmp, sizeof(tmp), "%s/.summary.json.tmp", d->dir);
	assert_int_equal(symlink("/dev/full", tmp), 0);
	assert_int_equal(summary_write(&d->x.r, d->dir, err, sizeof(err)), -28); // ENOSPC
	assert_non_null(strstr(err, "No space left on device"));
	assert_non_null(strstr(err, d->path));
	assert_int_equal(access(tmp, F_OK), -1);
	json_t *o = json_load_file(d->path, 0, NULL);
	assert_non_null(o);
	json_decref(o);
}

static void unwritable_directory_is_one_line(void **state)
{
	struct dirs *d = *state;
	char err[256] = "";

	assert_int_equal(
		summary_write(&d->x.r, "/nonexistent/run", err, sizeof(err)), -2); // ENOENT
	assert_string_equal(err, "/nonexistent/run/summary.json: cannot write the results: No such "
				 "file or directory");
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(every_key_of_the_schema_is_there),
		T(drops_have_every_reason_and_a_total),
		T(flows_have_times_or_null),
		T(deadlock_names_its_ring),
		T(ports_show_counters_that_are_not_zero),
		T(hw_counters_have_every_name),
		T(edges_have_what_can_be_seen_from_outside),
		T(ethtool_counts_in_the_vendors_units),
		T(events_and_failures_are_told),
		T(names_that_are_not_utf8_do_not_spoil_it),
		T(a_new_summary_replaces_the_old_one_whole),
		T(failed_write_leaves_nothing_half_written),
		T(unwritable_directory_is_one_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
