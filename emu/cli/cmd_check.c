/* SPDX-License-Identifier: BSD-3-Clause */
// fabemu check: loads a scenario as a run would and prints the fabric, without EAL, root or ports.

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "emu/cli/check.h"
#include "emu/cli/commands.h"
#include "emu/fabric/buffers.h"
#include "emu/report/expect.h"

#define SETS_MAX 256

static const char usage_text[] =
	"Usage: fabemu check SCENARIO [OPTION]...\n"
	"\n"
	"Validates a scenario and prints the fabric it describes, names resolved, generators "
	"expanded\n"
	"and defaults filled in: ports, rates, delays, buffers, thresholds, headroom, routes, "
	"flows;\n"
	"and which buffers can come to wait for each other in a circle: deadlocks are possible "
	"there,\n"
	"and proven impossible where there is no such cycle.\n"
	"Needs neither root nor hugepages. Errors are printed one a line, as file:line:column: "
	"key:\n"
	"what is wrong and what was expected.\n"
	"\n"
	"Options:\n"
	"      --set PATH=VALUE  change a key of the scenario first; may be repeated\n"
	"      --failures N      1: also with each single link failed, routes computed anew\n"
	"      --graph FILE      draw the buffer-dependency graph: .svg, .png or .pdf with\n"
	"                        Graphviz, .dot or .gv without\n"
	"  -j, --json            print JSON\n"
	"  -q, --quiet           print nothing but errors\n"
	"  -h, --help            this text\n"
	"\n"
	"Exit status: 0 the scenario is valid; 2 it is not, or bad usage; 3 the picture or the "
	"output\n"
	"could not be written.\n"
	"\n"
	"See also: fabemu help scenario, fabemu run.\n";

struct check_args {
	const char *scenario;
	const char *sets[SETS_MAX];
	size_t n_sets;
	const char *graph;
	bool failures;
	bool json;
	bool quiet;
};

static bool parse_failures(const char *text, struct check_args *a)
{
	a->failures = strcmp(text, "1") == 0;
	if (a->failures || strcmp(text, "0") == 0)
		return true;
	fprintf(stderr, "fabemu check: --failures: '%.20s', expected 0 or 1 links at a time\n",
		text);
	return false;
}

// Returns -1 to go on, else the exit status.
static int parse_args(int argc, char **argv, struct check_args *a)
{
	enum { OPT_SET = 256, OPT_FAILURES, OPT_GRAPH };
	static const struct option options[] = {
		{"set", required_argument, NULL, OPT_SET},
		{"failures", required_argument, NULL, OPT_FAILURES},
		{"graph", required_argument, NULL, OPT_GRAPH},
		{"json", no_argument, NULL, 'j'},
		{"quiet", no_argument, NULL, 'q'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "jqh", options, NULL)) != -1) {
		if (opt == 'h') {
			fputs(usage_text, stdout);
			return finish_output("check");
		}
		if (opt == 'j') {
			a->json = true;
		} else if (opt == 'q') {
			a->quiet = true;
		} else if (opt == OPT_SET && a->n_sets < SETS_MAX) {
			a->sets[a->n_sets++] = optarg;
		} else if (opt == OPT_FAILURES) {
			if (!parse_failures(optarg, a))
				return EXIT_USAGE;
		} else if (opt == OPT_GRAPH) {
			a->graph = optarg;
			if (!check_can_draw(optarg))
				return EXIT_USAGE;
		} else {
			fputs("Try 'fabemu check --help'.\n", stderr);
			return EXIT_USAGE;
		}
	}
	if (argc - optind != 1) {
		fprintf(stderr,
			"fabemu check: expected one SCENARIO, got %d arguments\n"
			"Try 'fabemu check --help'.\n",
			argc - optind);
		return EXIT_USAGE;
	}
	a->scenario = argv[optind];
	return -1;
}

struct switch_budget switch_budget(const struct scenario *s, uint32_t sw)
{
	struct switch_budget b = {.buffer_bytes = s->switches[sw].buffer};

	for (uint16_t p = 0; p < s->nodes[sw].n_ports; p++)
		for (unsigned pg = 0; pg < SC_PRIOS; pg++) {
			struct mmu_pg_profile profile = pg_profile(s, sw, p, pg);
			b.reserved_bytes += profile.size_bytes;
			b.headroom_bytes += profile.xoff_bytes;
		}
	uint64_t taken = b.reserved_bytes + b.headroom_bytes;
	b.fits = taken < b.buffer_bytes;
	b.shared_bytes = b.fits ? b.buffer_bytes - taken : 0;
	return b;
}

// Guarantees beyond the buffer are a mistake that a run would refuse: say it with the arithmetic.
static bool check_buffers(const struct scenario *s)
{
	bool ok = true;

	for (uint32_t i = 0; i < s->n_switches; i++) {
		struct switch_budget b = switch_budget(s, i);
		if (b.fits)
			continue;
		const struct sc_node *n = &s->nodes[i];
		fprintf(stderr,
			"%s:%u:%u: switches.%s: guarantees exceed the buffer: reserved %llu B + "
			"headroom "
			"%llu B on %u ports, buffer %llu B; expected a larger `buffer`, shorter "
			"links, or "
			"a smaller `xoff`\n",
			s->path, n->pos.line, n->pos.col, n->name,
			(unsigned long long)b.reserved_bytes, (unsigned long long)b.headroom_bytes,
			n->n_ports, (unsigned long long)b.buffer_bytes);
		ok = false;
	}
	return ok;
}

static int print_fabric(const struct scenario *s, const struct check_args *a)
{
	struct cbd_study st;
	struct routes *r = NULL;
	int rc = routes_compute(s, NULL, &r);

	if (rc == 0)
		rc = cbd_study_create(s, a->failures, &st);
	if (rc < 0) {
		routes_free(r);
		fputs("fabemu check: out of memory\n", stderr);
		return EXIT_RUN_FAILED;
	}
	int drawn = a->graph != NULL ? check_draw_graph(s, &st, a->graph) : 0;
	if (a->json && !a->quiet) {
		rc = check_print_json(s, r, &st, stdout);
	} else if (!a->quiet) {
		check_print_text(s, r, stdout);
		check_print_deadlock(s, &st, stdout);
	}
	cbd_study_free(&st);
	routes_free(r);
	if (rc < 0)
		fputs("fabemu check: out of memory\n", stderr);
	if (rc < 0 || drawn < 0)
		return EXIT_RUN_FAILED;
	return finish_output("check");
}

int cmd_check(int argc, char **argv)
{
	struct check_args a = {0};
	int status = parse_args(argc, argv, &a);

	if (status >= 0)
		return status;
	struct scenario_overrides ov = {.set = a.sets, .n_set = a.n_sets};
	struct scenario *s;
	if (scenario_load(a.scenario, &ov, &s, stderr) < 0)
		return EXIT_USAGE;
	bool ok = check_buffers(s);
	ok = expect_check(s, stderr) == 0 && ok;
	if (!ok)
		status = EXIT_USAGE;
	else if (a.quiet && a.graph == NULL)
		status = EXIT_HELD;
	else
		status = print_fabric(s, &a);
	scenario_free(s);
	return status;
}
