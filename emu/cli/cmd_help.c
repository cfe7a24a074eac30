/* SPDX-License-Identifier: BSD-3-Clause */
// fabemu help: the vocabularies, printed from the tables the program itself works with.

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "emu/cli/commands.h"
#include "emu/core/drop.h"
#include "emu/core/event.h"
#include "emu/report/counters.h"
#include "emu/report/expect_path.h"
#include "emu/report/vendor.h"
#include "emu/scenario/diag.h"
#include "emu/scenario/scenario.h"

static const char scenario_intro[] =
	"A scenario is a YAML file that describes a fabric, its traffic, what happens to it and "
	"what\n"
	"is expected of it. A small one:\n"
	"\n"
	"    topology:\n"
	"      star: {hosts: 3, host_link: {rate: 100Gbps, length: 5m}}\n"
	"    workloads:\n"
	"      incast: {type: incast, dst: h3, bytes: 10MB}\n"
	"    expect:\n"
	"      - flows.complete == yes\n"
	"      - drops.total == 0\n"
	"\n"
	"Quantities carry units: 100Gbps, 1us, 32MB, 5m, 0.5%; only 0 does without. A reference "
	"is\n"
	"a node (sw1), a port (sw1:eth0), a link (its name, a port of it, or [sw1, sw2]). Any key "
	"can\n"
	"be changed from the command line: --set defaults.link.rate=40Gbps, --set "
	"links[2].delay=1us.\n"
	"\n";

static const char expect_intro[] = "Expectations decide the exit status. Each is `path op value` "
				   "with op one of == != < <= > >=;\n"
				   "`path: value` means ==. NAME, NODE and PORT may be patterns "
				   "(*, ?): every match must hold.\n"
				   "\n"
				   "    expect:\n"
				   "      - deadlock == no\n"
				   "      - flow.victim.goodput < 10Gbps\n"
				   "      - counter.sw1.eth0.tx_prio3_pause > 0\n"
				   "      - host.h1.exit: 0\n"
				   "\n";

static void help_scenario(void)
{
	fputs(scenario_intro, stdout);
	scenario_help(stdout);
}

static void help_drops(void)
{
	puts("Why a frame ended before its destination. Counted per port and priority.\n");
	for (int i = 0; i < DROP_REASON_COUNT; i++)
		printf("  %-18s %s\n", drop_reason_name((enum drop_reason)i),
			drop_reason_help((enum drop_reason)i));
}

static void help_events(void)
{
	static const struct {
		const char *name, *a, *b;
	} events[] = {
#define X(id, name, a, b) {name, a, b},
		EVENT_KINDS(X)
#undef X
	};

	puts("Events of a run's results and what their two values mean (0: nothing).\n");
	for (size_t i = 0; i < EVENT_KIND_COUNT; i++)
		printf("  %-15s %s, %s\n", events[i].name, events[i].a, events[i].b);
	puts("\nWhat a scenario can make happen is told by 'fabemu help scenario' under events[].");
}

static void help_device(enum device_kind kind, const char *title)
{
	printf("\n%s\n\n", title);
	for (unsigned i = 0; i < device_counter_count(kind); i++)
		printf("  %-31s %s\n", device_counter_name(kind, i), device_counter_help(kind, i));
}

static void help_vendor(enum vendor_set set, const char *title)
{
	printf("\n%s\n\n", title);
	for (unsigned i = 0; i < vendor_rows(set); i++) {
		struct vendor_row row = vendor_row(set, i);
		const char *who = row.nic && row.edge ? ""
				  : row.nic           ? " (built-in NIC only)"
						      : " (edge only)";
		printf("  %-31s %s%s\n", row.name, row.help, who);
	}
}

static void help_counters(void)
{
	puts("Counters of a port; %u stands for a priority from 0 to 7.\n");
#define X(name, field, help) printf("  %-31s %s\n", name, help);
	PORT_SUM_COUNTERS(X)
	PORT_COUNTERS(X)
	PORT_TRAFFIC_COUNTERS(X)
	PORT_PRIO_COUNTERS(X)
#undef X
	printf("  %-31s %s\n", "drop_REASON", "frames dropped here, see 'fabemu help drops'");
	printf("  %-31s %s\n", "drops", "the sum of these");
	help_device(DEVICE_NIC, "Of a built-in NIC, on its first port:");
	help_device(DEVICE_EDGE, "Of the edge of a real endpoint:");
	help_vendor(VENDOR_HW_COUNTERS,
		"In summary.json, hw_counters of a built-in NIC or an edge (mlx5's names):");
	help_vendor(VENDOR_RXE,
		"In summary.json, rxe_counters of a built-in NIC or an edge (rxe's hw_counters):");
	help_vendor(VENDOR_ETHTOOL,
		"In summary.json, ethtool of every host's port (names and units of mlx5's ethtool "
		"-S):");
}

static void help_expect(void)
{
	static const char *const units[] = {[EXPECT_COUNT] = "a number",
		[EXPECT_YES_NO] = "yes or no",
		[EXPECT_BYTES] = "a size such as 1MB",
		[EXPECT_TIME] = "a time such as 10us",
		[EXPECT_RATE] = "a rate such as 10Gbps"};

	fputs(expect_intro, stdout);
#define X(id, first, last, n, unit, form) printf("  %-28s %s\n", form, units[unit]);
	EXPECT_PATHS(X)
#undef X
	puts("\nREASON is total or one of 'fabemu help drops', a counter one of 'fabemu help "
	     "counters'.");
}

static const struct topic {
	const char *name;
	void (*print)(void);
	const char *help;
} topics[] = {
	{"scenario", help_scenario, "every section and key of a scenario file"},
	{"expect", help_expect, "what `expect:` can ask for"},
	{"drops", help_drops, "reasons for dropping a frame"},
	{"events", help_events, "kinds of events in the results"},
	{"counters", help_counters, "counters of a port"},
};

#define N_TOPICS (sizeof(topics) / sizeof(topics[0]))

static void print_topics(FILE *out)
{
	fputs("\nUsage: fabemu help [TOPIC | COMMAND]\n\nTopics:\n", out);
	for (size_t i = 0; i < N_TOPICS; i++)
		fprintf(out, "  %-9s %s\n", topics[i].name, topics[i].help);
}

static const char *nth_topic(const void *ctx, size_t i)
{
	return i < N_TOPICS ? topics[i].name : NULL;
}

static int help_about(char *name)
{
	static char help_option[] = "--help";

	for (size_t i = 0; i < N_TOPICS; i++)
		if (strcmp(topics[i].name, name) == 0) {
			topics[i].print();
			return finish_output("help");
		}
	if (strcmp(name, "help") != 0) {
		char *argv[] = {name, help_option, NULL};
		optind = 1;
		int status = run_command(name, 2, argv);
		if (status >= 0)
			return status;
	}
	const char *meant = diag_suggest(name, nth_topic, NULL);
	fprintf(stderr, "fabemu help: no topic or command '%s'%s%s%s\n", name,
		meant != NULL ? "; did you mean " : "", meant != NULL ? meant : "",
		meant != NULL ? "?" : "");
	print_topics(stderr);
	return EXIT_USAGE;
}

int cmd_help(int argc, char **argv)
{
	static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {0}};
	int opt;

	while ((opt = getopt_long(argc, argv, "h", options, NULL)) != -1)
		if (opt != 'h') {
			fputs("Try 'fabemu help'.\n", stderr);
			return EXIT_USAGE;
		}
	if (argc - optind > 1) {
		fprintf(stderr, "fabemu help: expected one TOPIC, got %d\n", argc - optind);
		return EXIT_USAGE;
	}
	if (optind < argc)
		return help_about(argv[optind]);
	print_usage(stdout);
	print_topics(stdout);
	return finish_output("help");
}
