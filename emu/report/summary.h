/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// summary.json: the machine-readable result of a run. Schema: emu/report/README.md.

#include <stdio.h>

#include "emu/report/results.h"

// Writes DIR/summary.json: complete or, on error, not at all (an earlier one stays as it was).
// Returns 0, or negative errno with one line for the user in `err`; the run then ends with
// status 3.
int summary_write(const struct run_results *r, const char *dir, char *err, size_t len);

// The same document on a stream (--json). Returns 0 or negative errno.
int summary_print(const struct run_results *r, FILE *out);
