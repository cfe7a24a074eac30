/* SPDX-License-Identifier: BSD-3-Clause */
// fabemu pcap: picks what to do with captures.

#include <getopt.h>
#include <string.h>

#include "emu/cli/commands.h"
#include "emu/cli/pcap.h"
#include "emu/scenario/diag.h"

static const char usage_text[] =
	"Usage: fabemu pcap check FILE... [OPTION]...\n"
	"       fabemu pcap export FILE --out OUT [OPTION]...\n"
	"\n"
	"Works on captures of RoCE traffic, fabemu's or anybody's: pcap and pcapng.\n"
	"\n"
	"  check    judge a capture against the protocol and print what is in it\n"
	"  export   cut a queue pair, or an event's surroundings, into a small capture\n"
	"\n"
	"'fabemu pcap check --help' and 'fabemu pcap export --help' tell the options.\n";

static struct {
	const char *name;
	int (*run)(int argc, char **argv);
	char full_name[24]; // for getopt's messages
} actions[] = {
	{"check", cmd_pcap_check, "fabemu pcap check"},
	{"export", cmd_pcap_export, "fabemu pcap export"},
};

#define N_ACTIONS (sizeof(actions) / sizeof(actions[0]))

static const char *nth_action(const void *ctx, size_t i)
{
	return i < N_ACTIONS ? actions[i].name : NULL;
}

int cmd_pcap(int argc, char **argv)
{
	if (argc < 2) {
		fputs(usage_text, stderr);
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		fputs(usage_text, stdout);
		return finish_output("pcap");
	}
	for (size_t i = 0; i < N_ACTIONS; i++)
		if (strcmp(actions[i].name, argv[1]) == 0) {
			argv[1] = actions[i].full_name;
			optind = 1;
			return actions[i].run(argc - 1, argv + 1);
		}
	const char *meant = diag_suggest(argv[1], nth_action, NULL);
	fprintf(stderr, "fabemu pcap: expected check or export, got '%s'%s%s%s\n", argv[1],
		meant != NULL ? "; did you mean " : "", meant != NULL ? meant : "",
		meant != NULL ? "?" : "");
	return EXIT_USAGE;
}
