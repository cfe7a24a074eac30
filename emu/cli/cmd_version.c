/* SPDX-License-Identifier: BSD-3-Clause */
// fabemu version

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include <rte_version.h>

#include "emu/cli/commands.h"
#include "emu/fabric/fabemu_version.h"

static const char usage_text[] = "Usage: fabemu version\n"
				 "\n"
				 "Prints the version of fabemu and of the DPDK it runs with.\n"
				 "\n"
				 "Options:\n"
				 "  -h, --help    this text\n";

int finish_output(const char *command)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return EXIT_HELD;
	fprintf(stderr, "fabemu %s: standard output: %s\n", command, strerror(errno));
	return EXIT_RUN_FAILED;
}

int cmd_version(int argc, char **argv)
{
	static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {0}};
	int opt;

	while ((opt = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (opt != 'h') {
			fputs("Try 'fabemu version --help'.\n", stderr);
			return EXIT_USAGE;
		}
		fputs(usage_text, stdout);
		return finish_output("version");
	}
	if (optind != argc) {
		fprintf(stderr, "fabemu version: unexpected argument '%s'\n", argv[optind]);
		return EXIT_USAGE;
	}
	printf("fabemu %s (%s)\n", FABEMU_VERSION, rte_version());
	return finish_output("version");
}
