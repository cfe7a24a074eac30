/* SPDX-License-Identifier: BSD-3-Clause */

// Does each expectation name something this fabric has? Found before the run, so that a typing
// error costs seconds and never turns into an assertion that cannot fail.

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "emu/report/counters.h"
#include "emu/report/expect.h"
#include "emu/report/expect_path.h"
#include "emu/report/vendor.h"

static void say_where(const struct scenario *s, const struct sc_expect *e, FILE *err)
{
	fprintf(err, "%s:%u:%u: expect: %s: ", s->path, e->pos.line, e->pos.col, e->path);
}

static int complain(const struct scenario *s, const struct sc_expect *e, FILE *err, const char *fmt,
	...) __attribute__((format(printf, 4, 5)));

static int complain(
	const struct scenario *s, const struct sc_expect *e, FILE *err, const char *fmt, ...)
{
	va_list ap;

	say_where(s, e, err);
	va_start(ap, fmt);
	vfprintf(err, fmt, ap);
	va_end(ap);
	fputc('\n', err);
	return -EINVAL;
}

static int check_path(const struct scenario *s, const struct sc_expect *e, FILE *err)
{
	static const char *const forms[] = {
#define X(id, first, last, n, unit, form) form,
		EXPECT_PATHS(X)
#undef X
	};

	say_where(s, e, err);
	fputs("no such result, expected one of", err);
	for (int i = 0; i < EXPECT_PATH_COUNT; i++)
		fprintf(err, "%s %s", i > 0 ? "," : "", forms[i]);
	fputc('\n', err);
	return -EINVAL;
}

static int check_drops(const struct scenario *s, const struct sc_expect *e, FILE *err)
{
	if (expect_matches(e->part[1], "total"))
		return 0;
	for (int i = 0; i < DROP_REASON_COUNT; i++) {
		if (expect_matches(e->part[1], drop_reason_name((enum drop_reason)i)))
			return 0;
	}
	say_where(s, e, err);
	fputs("no such drop reason, expected one of total", err);
	for (int i = 0; i < DROP_REASON_COUNT; i++)
		fprintf(err, ", %s", drop_reason_name((enum drop_reason)i));
	fputc('\n', err);
	return -EINVAL;
}

static int check_flow(const struct scenario *s, const struct sc_expect *e, FILE *err)
{
	for (uint32_t i = 0; i < s->n_flows; i++) {
		if (expect_matches(e->part[1], s->flows[i].name))
			return 0;
	}
	return complain(s, e, err, "no flow is called '%s'; the scenario has %u flows, e.g. '%s'",
		e->part[1], s->n_flows, s->n_flows > 0 ? s->flows[0].name : "(none)");
}

static bool is_counter(const char *part)
{
	char name[COUNTER_NAME_MAX];

	for (unsigned i = 0; i < port_counter_count(); i++) {
		if (expect_matches(part, port_counter_name(i, name)))
			return true;
	}
	for (unsigned kind = 0; kind < DEVICE_KIND_COUNT; kind++) {
		for (unsigned i = 0; i < device_counter_count((enum device_kind)kind); i++) {
			if (expect_matches(part, device_counter_name((enum device_kind)kind, i)))
				return true;
		}
	}
	for (unsigned set = 0; set < VENDOR_SET_COUNT; set++) {
		for (unsigned i = 0; i < vendor_count((enum vendor_set)set); i++) {
			if (strcmp(part, vendor_name((enum vendor_set)set, i, name)) == 0)
				return true;
		}
	}
	return false;
}

static int check_counter(const struct scenario *s, const struct sc_expect *e, FILE *err)
{
	bool node = false;

	if (!is_counter(e->part[3]))
		return complain(s, e, err,
			"no counter is called '%s'; expected a name like rx_packets or "
			"rx_prio3_pause (emu/report/counters.h has them all)",
			e->part[3]);
	for (uint32_t n = 0; n < s->n_nodes; n++) {
		if (!expect_matches(e->part[1], s->nodes[n].name))
			continue;
		node = true;
		for (uint16_t p = 0; p < s->nodes[n].n_ports; p++) {
			if (expect_matches(e->part[2], s->nodes[n].ports[p].name))
				return 0;
		}
	}
	if (!node)
		return complain(s, e, err, "no switch or host is called '%s'", e->part[1]);
	return complain(s, e, err, "'%s' has no port called '%s'", e->part[1], e->part[2]);
}

static int check_queue(const struct scenario *s, const struct sc_expect *e, FILE *err)
{
	if (s->queue_stats.interval == 0)
		return complain(
			s, e, err, "nobody looks at queues; expected an interval in queue_stats");
	if (strlen(e->part[3]) == 1 && (e->part[3][0] < '0' || e->part[3][0] > '7') &&
		e->part[3][0] != '*')
		return complain(s, e, err, "no queue is called '%s'; expected 0 to 7", e->part[3]);
	for (uint32_t n = 0; n < s->n_switches; n++)
		for (uint16_t p = 0; p < s->nodes[n].n_ports; p++)
			if (expect_matches(e->part[1], s->nodes[n].name) &&
				expect_matches(e->part[2], s->nodes[n].ports[p].name))
				return 0;
	return complain(s, e, err, "no switch '%s' has a port called '%s'", e->part[1], e->part[2]);
}

// SONiC's identity of PFC priority and queue holds here too.
static bool watched(const struct scenario *s, const struct sc_port *p, const char *part)
{
	for (unsigned prio = 0; prio < SC_PRIOS; prio++) {
		char number[] = {(char)('0' + prio), 0};
		if ((s->qos[p->qos].wd_prios >> prio & 1) && expect_matches(part, number) &&
			s->links[p->link].flow_control == SC_FC_PFC)
			return true;
	}
	return false;
}

static int check_watchdog(const struct scenario *s, const struct sc_expect *e, FILE *err)
{
	for (uint32_t n = 0; n < s->n_switches; n++)
		for (uint16_t p = 0; p < s->nodes[n].n_ports; p++)
			if (expect_matches(e->part[1], s->nodes[n].name) &&
				expect_matches(e->part[2], s->nodes[n].ports[p].name) &&
				watched(s, &s->nodes[n].ports[p], e->part[3]))
				return 0;
	return complain(s, e, err,
		"no PFC watchdog watches queue %s of %s:%s; expected pfc_wd in its QoS profile",
		e->part[3], e->part[1], e->part[2]);
}

static int check_host(const struct scenario *s, const struct sc_expect *e, FILE *err)
{
	bool host = false;

	for (uint32_t i = 0; i < s->n_hosts; i++) {
		const struct sc_host *h = &s->hosts[i];
		if (!expect_matches(e->part[1], s->nodes[h->node].name))
			continue;
		host = true;
		if (h->kind == SC_HOST_ATTACH && h->attach.n_run > 0)
			return 0;
	}
	if (!host)
		return complain(s, e, err, "no host is called '%s'", e->part[1]);
	return complain(s, e, err, "host '%s' runs no commands (run:), so it has no exit status",
		e->part[1]);
}

static int check_fault(const struct scenario *s, const struct sc_expect *e, FILE *err)
{
	for (uint32_t i = 0; i < s->n_faults; i++)
		if (expect_matches(e->part[1], s->faults[i].name))
			return 0;
	return complain(s, e, err, "no fault rule is called '%s'; the scenario has %u, e.g. '%s'",
		e->part[1], s->n_faults, s->n_faults > 0 ? s->faults[0].name : "(none)");
}

static int check_app(const struct scenario *s, const struct sc_expect *e, FILE *err)
{
	for (uint32_t i = 0; i < s->n_apps; i++)
		if (expect_matches(e->part[1], s->apps[i].name))
			return 0;
	return complain(s, e, err, "no application is called '%s'; the scenario has %u, e.g. '%s'",
		e->part[1], s->n_apps, s->n_apps > 0 ? s->apps[0].name : "(none)");
}

static int check_one(const struct scenario *s, const struct sc_expect *e, FILE *err)
{
	switch (expect_path_of(e)) {
	case EXPECT_PATH_COUNT:
		return check_path(s, e, err);
	case EXPECT_PATH_DEADLOCK:
		if (!s->deadlock.detect)
			return complain(s, e, err,
				"the detector is off (deadlock.detect); turn it on or remove this");
		return 0;
	case EXPECT_PATH_DROPS:
		return check_drops(s, e, err);
	case EXPECT_PATH_FLOWS_COMPLETE:
	case EXPECT_PATH_FLOWS_FAILED:
	case EXPECT_PATH_MAKESPAN:
		if (s->n_flows == 0)
			return complain(s, e, err, "the scenario has no flows");
		return 0;
	case EXPECT_PATH_FLOW_GOODPUT:
	case EXPECT_PATH_FLOW_FCT:
	case EXPECT_PATH_FLOW_RETRANSMISSIONS:
	case EXPECT_PATH_FLOW_BYTES:
	case EXPECT_PATH_FLOW_COMPLETE:
	case EXPECT_PATH_FLOW_PAUSES:
	case EXPECT_PATH_FLOW_PAUSED:
		return check_flow(s, e, err);
	case EXPECT_PATH_APP_DONE:
	case EXPECT_PATH_APP_FAILED:
	case EXPECT_PATH_APP_MESSAGES:
	case EXPECT_PATH_APP_BYTES:
	case EXPECT_PATH_APP_MISMATCHES:
	case EXPECT_PATH_APP_RETRANSMISSIONS:
		return check_app(s, e, err);
	case EXPECT_PATH_COUNTER:
		return check_counter(s, e, err);
	case EXPECT_PATH_FAULT_APPLIED:
	case EXPECT_PATH_FAULT_MATCHED:
		return check_fault(s, e, err);
	case EXPECT_PATH_QUEUE_MEAN:
	case EXPECT_PATH_QUEUE_MAX:
		return check_queue(s, e, err);
	case EXPECT_PATH_WD_DETECTED:
	case EXPECT_PATH_WD_RESTORED:
	case EXPECT_PATH_WD_TX_DROPPED:
	case EXPECT_PATH_WD_RX_DROPPED:
	case EXPECT_PATH_WD_STORMED:
		return check_watchdog(s, e, err);
	case EXPECT_PATH_HOST_EXIT:
		return check_host(s, e, err);
	case EXPECT_PATH_LAG_P50:
	case EXPECT_PATH_LAG_P99:
	case EXPECT_PATH_LAG_MAX:
		if (s->clock != SC_CLOCK_WALL)
			return complain(s, e, err, "there is a lag under 'clock: wall' only");
		return 0;
	case EXPECT_PATH_POOL_EMPTY:
	case EXPECT_PATH_DURATION:
		return 0;
	}
	return 0;
}

int expect_check(const struct scenario *s, FILE *err)
{
	int ret = 0;

	for (uint32_t i = 0; i < s->n_expects; i++) {
		if (check_one(s, &s->expects[i], err) < 0)
			ret = -EINVAL;
	}
	return ret;
}
