/* SPDX-License-Identifier: BSD-3-Clause */

// The key table is consistent: what it prints as a default or a range is what it accepts.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emu/scenario/loader.h"

static const struct section *const sections[] = {&sec_top, &sec_defaults, &sec_qos, &sec_pg,
	&sec_queue, &sec_wred, &sec_pfc_wd, &sec_switch, &sec_host, &sec_nic, &sec_attach, &sec_run,
	&sec_replay, &sec_link, &sec_topology, &sec_star, &sec_ring, &sec_leaf_spine, &sec_fat_tree,
	&sec_route, &sec_workload, &sec_event, &sec_storm, &sec_corrupt, &sec_capture};

#define N_SECTIONS (sizeof(sections) / sizeof(sections[0]))

static bool is_word(const struct word *w, const char *name)
{
	for (; w->name != NULL; w++)
		if (strcmp(w->name, name) == 0)
			return true;
	return false;
}

static void check_default(const struct section *s, const struct key *k)
{
	int64_t value = 0;

	if (k->def == NULL || (k->word != NULL && strcmp(k->def, k->word) == 0))
		return;
	if (k->type == K_NUMBER) {
		const char *problem = quantity_parse(k->q, k->def, &value);
		if (problem != NULL || value < k->min || value > k->max)
			fail_msg("%s.%s: default '%s' %s", s->name, k->name, k->def,
				problem != NULL ? problem : "is out of its own range");
	} else if (k->type == K_INT) {
		value = strtol(k->def, NULL, 10);
		assert_in_range(value - k->min, 0, k->max - k->min);
	} else if (k->type == K_ENUM) {
		assert_true(is_word(k->words, k->def));
	} else if (k->type == K_BOOL) {
		assert_true(strcmp(k->def, "yes") == 0 || strcmp(k->def, "no") == 0);
	}
}

static void every_default_is_a_value_the_key_accepts(void **state)
{
	for (size_t i = 0; i < N_SECTIONS; i++)
		for (size_t j = 0; j < sections[i]->n_keys; j++)
			check_default(sections[i], &sections[i]->keys[j]);
}

// A number must fit the field it is stored in, or a large value would be cut silently.
static void every_range_fits_its_field(void **state)
{
	for (size_t i = 0; i < N_SECTIONS; i++)
		for (size_t j = 0; j < sections[i]->n_keys; j++) {
			const struct key *k = &sections[i]->keys[j];

			if (k->type != K_NUMBER)
				continue;
			assert_true(k->min >= 0 && k->max >= k->min);
			if (k->size < 8 && (uint64_t)k->max >> (8 * k->size) != 0)
				fail_msg("%s.%s: %lld does not fit %u bytes", sections[i]->name,
					k->name, (long long)k->max, k->size);
		}
}

static void keys_of_a_section_have_different_names_and_help(void **state)
{
	for (size_t i = 0; i < N_SECTIONS; i++)
		for (size_t j = 0; j < sections[i]->n_keys; j++) {
			const struct key *k = &sections[i]->keys[j];

			assert_true(strlen(k->help) > 2);
			for (size_t m = 0; m < j; m++)
				assert_string_not_equal(k->name, sections[i]->keys[m].name);
		}
}

static void help_prints_every_key(void **state)
{
	char *text = NULL, line[80];
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	scenario_help(out);
	fclose(out);
	for (size_t i = 0; i < N_SECTIONS; i++) {
		const char *at = strstr(text, sections[i]->name);
		assert_non_null(at);
		for (size_t j = 0; j < sections[i]->n_keys; j++) {
			snprintf(line, sizeof(line), "\n    %s ", sections[i]->keys[j].name);
			assert_non_null(strstr(at, line)); // a type or shape follows
		}
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_default_is_a_value_the_key_accepts),
		cmocka_unit_test(every_range_fits_its_field),
		cmocka_unit_test(keys_of_a_section_have_different_names_and_help),
		cmocka_unit_test(help_prints_every_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
