/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// The two forms in which `fabemu check` shows a resolved fabric.

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "emu/fabric/cbd_study.h"
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
int check_print_json(
	const struct scenario *s, const struct routes *r, const struct cbd_study *st, FILE *out);

// check_deadlock.c: which deadlocks are possible.
void check_print_deadlock(const struct scenario *s, const struct cbd_study *st, FILE *out);
json_t *check_deadlock_json(const struct scenario *s, const struct cbd_study *st);

// check_graph.c: the buffer-dependency graph as a picture, by the name's end: .dot and .gv are
// written, others made by Graphviz. Returns 0 or -1, having said why on stderr.
int check_draw_graph(const struct scenario *s, const struct cbd_study *st, const char *file);
// Whether the name's end is one that can be drawn.
bool check_can_draw(const char *file);
