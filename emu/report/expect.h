/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// The scenario's `expect:` entries, checked before a run and judged after it.

#include <stdio.h>

#include "emu/report/results.h"
#include "emu/scenario/scenario.h"

// Before the run: does every expectation name something this fabric has? Writes one line per
// problem ("file:line:col: expect: ...") to `err`. Returns 0 or -EINVAL.
int expect_check(const struct scenario *s, FILE *err);

// After the run: fills r->expectations, one entry per `expect:` entry and, when its path is a
// pattern, the worst match of it. Call expect_free() when done. Returns 0 or -ENOMEM.
int expect_judge(const struct scenario *s, struct run_results *r);
void expect_free(struct run_results *r);
