/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Inside of console.c: the larger sections of the result.

#include <stdbool.h>
#include <stdio.h>

#include "emu/report/results.h"

struct console {
	const struct run_results *r;
	FILE *out;
	bool colour;
};

enum console_colour { COLOUR_NONE, COLOUR_BOLD, COLOUR_RED, COLOUR_GREEN, COLOUR_YELLOW };

// Escape sequence, or "" without colour.
const char *console_colour(const struct console *c, enum console_colour which);

void console_print_deadlocks(const struct console *c);
void console_print_apps(const struct console *c);
void console_print_faults(const struct console *c);
void console_print_flows(const struct console *c);
void console_print_pauses(const struct console *c); // who was paused and marked most
void console_print_pgs(const struct console *c);    // how close PGs came to XOFF
