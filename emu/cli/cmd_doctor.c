/* SPDX-License-Identifier: BSD-3-Clause */
// fabemu doctor: what this machine can do, and what brings the rest.

#include <getopt.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/cli/commands.h"
#include "emu/cli/doctor.h"

static const char usage_text[] =
	"Usage: fabemu doctor [OPTION]...\n"
	"\n"
	"Looks at what this machine offers to an emulation and prints one line for each: ok, "
	"limited\n"
	"(works, with a drawback) or missing, with what brings it. Nothing is changed. The first "
	"time,\n"
	"a kernel is booted for a few seconds to see whether KVM and User Mode Linux really work.\n"
	"\n"
	"Built-in NICs under the virtual clock need nothing of this.\n"
	"\n"
	"Options:\n"
	"  -r, --require FEATURE  exit with 1 if the feature is missing; may be repeated. A "
	"feature is\n"
	"                         the name at the start of a line, e.g. guest or udp4791\n"
	"  -j, --json             print JSON\n"
	"  -h, --help             this text\n"
	"\n"
	"Exit status: 0; 1 a required feature is missing; 2 bad usage.\n"
	"\n"
	"Example: fabemu doctor --require guest --json\n";

struct check {
	const char *name;
	const char *group;
	const char *what;
	doctor_fn *look;
};

static const struct check checks[] = {
#define X(id, group, what) {#id, group, what, doctor_check_##id},
	DOCTOR_CHECKS(X)
#undef X
};

static const char *const status_name[] = {
	[DOCTOR_OK] = "ok",
	[DOCTOR_LIMITED] = "limited",
	[DOCTOR_MISSING] = "missing",
};

struct doctor_args {
	bool json;
	bool required[DOCTOR_CHECK_COUNT];
};

void doctor_say(
	struct doctor_result *r, enum doctor_status status, const char *fix, const char *fmt, ...)
{
	va_list ap;

	r->status = status;
	snprintf(r->fix, sizeof(r->fix), "%s", fix);
	va_start(ap, fmt);
	vsnprintf(r->detail, sizeof(r->detail), fmt, ap);
	va_end(ap);
}

static void print_text(const struct doctor_result *results)
{
	const char *group = "";

	for (unsigned i = 0; i < DOCTOR_CHECK_COUNT; i++) {
		const struct check *c = &checks[i];
		const struct doctor_result *r = &results[i];

		if (strcmp(group, c->group) != 0) {
			printf("%s%s\n", *group ? "\n" : "", c->group);
			group = c->group;
		}
		printf("  %-13s%-9s%s\n", c->name, status_name[r->status], r->detail);
		if (r->fix[0] != '\0')
			printf("  %-22s-> %s\n", "", r->fix);
	}
}

static int print_json(const struct doctor_result *results)
{
	json_t *root = json_object(), *list = json_array();

	for (unsigned i = 0; i < DOCTOR_CHECK_COUNT; i++) {
		json_array_append_new(
			list, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "name", checks[i].name,
				      "group", checks[i].group, "what", checks[i].what, "status",
				      status_name[results[i].status], "detail", results[i].detail,
				      "fix", results[i].fix));
	}
	json_object_set_new(root, "doctor", json_integer(1)); // version of this format
	json_object_set_new(root, "checks", list);
	int e = json_dumpf(root, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(root);
	return e;
}

static int find_check(const char *name)
{
	for (int i = 0; i < DOCTOR_CHECK_COUNT; i++) {
		if (strcmp(checks[i].name, name) == 0)
			return i;
	}
	return -1;
}

// Returns -1 to go on, else the exit status.
static int parse_args(int argc, char **argv, struct doctor_args *a)
{
	static const struct option options[] = {
		{"require", required_argument, NULL, 'r'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int opt, i;

	while ((opt = getopt_long(argc, argv, "r:jh", options, NULL)) != -1) {
		switch (opt) {
		case 'r':
			i = find_check(optarg);
			if (i < 0) {
				fprintf(stderr,
					"fabemu doctor: --require: no feature '%s'; 'fabemu "
					"doctor' "
					"lists them\n",
					optarg);
				return EXIT_USAGE;
			}
			a->required[i] = true;
			break;
		case 'j':
			a->json = true;
			break;
		case 'h':
			fputs(usage_text, stdout);
			return finish_output("doctor");
		default:
			fputs("Try 'fabemu doctor --help'.\n", stderr);
			return EXIT_USAGE;
		}
	}
	if (optind != argc) {
		fprintf(stderr, "fabemu doctor: unexpected argument '%s'\n", argv[optind]);
		return EXIT_USAGE;
	}
	return -1;
}

int cmd_doctor(int argc, char **argv)
{
	struct doctor_result results[DOCTOR_CHECK_COUNT] = {0};
	struct doctor_args a = {0};
	int status = parse_args(argc, argv, &a);

	if (status >= 0)
		return status;
	for (unsigned i = 0; i < DOCTOR_CHECK_COUNT; i++)
		checks[i].look(&results[i]);
	if (a.json)
		print_json(results);
	else
		print_text(results);
	status = finish_output("doctor");
	for (unsigned i = 0; status == EXIT_HELD && i < DOCTOR_CHECK_COUNT; i++) {
		if (a.required[i] && results[i].status == DOCTOR_MISSING) {
			fprintf(stderr, "fabemu doctor: %s is missing: %s\n", checks[i].name,
				results[i].detail);
			status = EXIT_EXPECTATION;
		}
	}
	return status;
}
