/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// The two forms in which `fabemu check` shows a resolved fabric.

#include <stdio.h>

#include "emu/fabric/routes.h"
#include "emu/scenario/scenario.h"

// The buffer of a switch: what its ports' PGs are guaranteed, and whether it fits.
struct switch_budget {
	uint64_t buffer_bytes;
	uint64_t reserved_bytes;
	uint64_t headroom_bytes;
	uint64_t shared_bytes;
	bool fits;
};

struct switch_budget switch_budget(const struct scenario *s, uint32_t sw);

void check_print_text(const struct scenario *s, const struct routes *r, FILE *out);
// One line, for people: what the rule does to what, and where.
void check_print_fault(const struct scenario *s, const struct sc_fault *f, FILE *out);
// Returns 0 or -ENOMEM.
int check_print_json(const struct scenario *s, const struct routes *r, FILE *out);
