/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stdio.h>

// The subcommands of fabemu. Each gets its own argv (argv[0] is its name), parses it with
// getopt_long, prints its help with `--help`, and returns the process's exit status.

// Documented exit statuses.
enum exit_status {
	EXIT_HELD = 0,         // expectations held
	EXIT_EXPECTATION = 1,  // an expectation failed
	EXIT_USAGE = 2,        // bad usage or scenario
	EXIT_RUN_FAILED = 3,   // the run itself failed
	EXIT_HOST_TOO_SLOW = 4 // the host could not keep up
};

int cmd_run(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_pcap(int argc, char **argv);
int cmd_help(int argc, char **argv);
int cmd_version(int argc, char **argv);

// main.c: the list of commands; and a command by name (-1: there is none).
void print_usage(FILE *out);
int run_command(const char *name, int argc, char **argv);

// Flushes standard output; EXIT_RUN_FAILED, with a message, when not all of it could be written.
int finish_output(const char *command);
