/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// The result of a run for a person.

#include <stdbool.h>
#include <stdio.h>

#include "emu/report/results.h"

// True if `out` is a terminal and NO_COLOR is not set (no-color.org).
bool console_wants_colour(FILE *out);

// Prints the result; with `quiet` only the line of the verdict and, if it is not "held", why.
void console_print(const struct run_results *r, FILE *out, bool quiet, bool colour);
