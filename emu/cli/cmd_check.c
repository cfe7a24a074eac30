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
	"flows.\n"
	"Needs neither root nor hugepages. Errors are printed one a line, as file:line:column: "
	"key:\n"
	"what is wrong and what was expected.\n"
	"\n"
	"Options:\n"
	"      --set PATH=VALUE  change a key of the scenario first; may be repeated\n"
	"  -j, --json            print JSON\n"
	"  -q, --quiet           print nothing but errors\n"
	"  -h, --help            this text\n"
	"\n"
	"Exit status: 0 the scenario is valid; 2 it is not, or bad usage.\n"
	"\n"
	"See also: fabemu help scenario, fabemu run.\n";

struct check_args {
	const char *scenario;
	const char *sets[SETS_MAX];
	size_t n_sets;
	bool json;
	bool quiet;
};

// Returns -1 to go on, else the exit status.
static int parse_args(int argc, char **argv, struct check_args *a)
{
	enum { OPT_SET = 256 };
	static const struct option options[] = {
		{"set", required_argument, NULL, OPT_SET},
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
	struct routes *r;

	if (a->quiet)
		return EXIT_HELD;
	if (routes_compute(s, NULL, &r) < 0) {
		fputs("fabemu check: out of memory\n", stderr);
		return EXIT_RUN_FAILED;
	}
	int rc = 0;
	if (a->json)
		rc = check_print_json(s, r, stdout);
	else
		check_print_text(s, r, stdout);
	routes_free(r);
	if (rc < 0) {
		fputs("fabemu check: out of memory\n", stderr);
		return EXIT_RUN_FAILED;
	}
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
	status = ok ? print_fabric(s, &a) : EXIT_USAGE;
	scenario_free(s);
	return status;
}
