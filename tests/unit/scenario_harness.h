/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Loading scenarios from texts in tests.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emu/scenario/scenario.h"

// The scenario of a text with up to three overrides; what is wrong goes into the failure message.
static inline struct scenario *load_with(
	const char *yaml, const char *set1, const char *set2, const char *set3)
{
	const char *sets[] = {set1, set2, set3};
	struct scenario_overrides ov = {.set = sets, .n_set = !!set1 + !!set2 + !!set3};
	char *text = NULL;
	size_t len = 0;
	FILE *err = open_memstream(&text, &len);
	struct scenario *s;

	int rc = scenario_load_text("dir/t.yaml", yaml, strlen(yaml), &ov, &s, err);
	fclose(err);
	if (rc != 0)
		fail_msg("rc %d: %s", rc, text);
	assert_string_equal(text, "");
	free(text);
	return s;
}

static inline struct scenario *load(const char *yaml)
{
	return load_with(yaml, NULL, NULL, NULL);
}

// What loading a text with an override complains of (caller frees); fails if it loads.
static inline char *complaint_of(const char *yaml, const char *set)
{
	struct scenario_overrides ov = {.set = &set, .n_set = 1};
	char *text = NULL;
	size_t len = 0;
	FILE *err = open_memstream(&text, &len);
	struct scenario *s;

	int rc = scenario_load_text("t.yaml", yaml, strlen(yaml), &ov, &s, err);
	fclose(err);
	assert_int_not_equal(rc, 0);
	return text;
}

static inline uint32_t node_by_name(const struct scenario *s, const char *name)
{
	for (uint32_t i = 0; i < s->n_nodes; i++)
		if (strcmp(s->nodes[i].name, name) == 0)
			return i;
	fail_msg("no node %s", name);
	return SC_NONE;
}
