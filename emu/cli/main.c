/* SPDX-License-Identifier: BSD-3-Clause */
// fabemu: picks the subcommand.

#include <stdio.h>
#include <string.h>

#include "emu/cli/commands.h"
#include "emu/scenario/diag.h"

static struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
	char full_name[20]; // argv[0] of the command, for getopt's messages
} commands[] = {
	{"run", cmd_run, "run a scenario and judge its expectations", "fabemu run"},
	{"check", cmd_check, "validate a scenario and print the fabric it describes",
		"fabemu check"},
	{"pcap", cmd_pcap, "judge captures of RoCE traffic, cut lessons out of them",
		"fabemu pcap"},
	{"doctor", cmd_doctor, "say what this machine can do and what is missing", "fabemu doctor"},
	{"help", cmd_help, "explain scenario files, results and commands", "fabemu help"},
	{"version", cmd_version, "print the version", "fabemu version"},
};

#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

void print_usage(FILE *out)
{
	fputs("Usage: fabemu COMMAND [ARGUMENT]...\n"
	      "\n"
	      "Emulates a lossless RDMA fabric, packet by packet: switches with finite buffers, "
	      "PFC\n"
	      "and ECN between real soft-RoCE endpoints or built-in RoCE NICs.\n"
	      "\n"
	      "Commands:\n",
		out);
	for (size_t i = 0; i < N_COMMANDS; i++)
		fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].help);
	fputs("\n"
	      "'fabemu COMMAND --help' tells a command's options, 'fabemu help scenario' every key "
	      "of\n"
	      "a scenario file. Exit status: 0 expectations held; 1 an expectation failed; 2 bad "
	      "usage\n"
	      "or scenario; 3 the run itself failed; 4 the host could not keep up.\n"
	      "\n"
	      "Try: fabemu run configs/pfc-deadlock.yaml\n",
		out);
}

int run_command(const char *name, int argc, char **argv)
{
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (strcmp(commands[i].name, name) == 0) {
			argv[0] = commands[i].full_name;
			return commands[i].run(argc, argv);
		}
	return -1;
}

static const char *nth_command(const void *ctx, size_t i)
{
	return i < N_COMMANDS ? commands[i].name : NULL;
}

int main(int argc, char **argv)
{
	static char help[] = "help", version[] = "version";
	char *alone[] = {NULL, NULL};

	if (argc < 2) {
		print_usage(stderr);
		return EXIT_USAGE;
	}
	const char *name = argv[1];
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
		alone[0] = help;
		return cmd_help(1, alone);
	}
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
		alone[0] = version;
		return cmd_version(1, alone);
	}

	int status = run_command(name, argc - 1, argv + 1);
	if (status >= 0)
		return status;
	const char *meant = diag_suggest(name, nth_command, NULL);
	fprintf(stderr, "fabemu: '%s' is no command%s%s%s\nTry 'fabemu --help'.\n", name,
		meant != NULL ? "; did you mean " : "", meant != NULL ? meant : "",
		meant != NULL ? "?" : "");
	return EXIT_USAGE;
}
