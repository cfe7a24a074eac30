/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// The key table: every key of a scenario is declared once (keys.c) with its type, unit, default,
// range and help; reading, defaults, error messages and `fabemu help scenario` come from it.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "emu/scenario/doc.h"
#include "emu/scenario/quantity.h"

struct loader;
struct section;

enum key_type {
	K_BOOL,    // yes or no, stored as bool
	K_NUMBER,  // a quantity, stored unsigned in the field's size
	K_INT,     // a small whole number with sign, stored as int
	K_ENUM,    // one of `words`, stored as int
	K_STRING,  // stored as const char *
	K_SECTION, // a mapping, `sub` applied to the struct at the offset
	K_NODE,    // the value itself, stored as struct ynode * for a later step
	K_CUSTOM,  // read(loader, value, object)
};

struct word {
	const char *name; // NULL ends
	int value;
};

struct key {
	const char *name;
	enum key_type type;
	enum quantity q;  // K_NUMBER
	const char *def;  // as one would write it; NULL: none
	int64_t min, max; // K_NUMBER, K_INT
	const char *help;
	uint32_t offset, size; // of the field
	bool required;
	const char *word;          // K_NUMBER, K_INT: a word accepted instead of a number,
	int64_t word_value;        // and what is stored for it
	const struct word *words;  // K_ENUM
	const struct section *sub; // K_SECTION
	bool (*read)(struct loader *l, struct ynode *v, void *object); // K_CUSTOM
	const char *shape; // K_CUSTOM, K_NODE: what a value looks like
};

struct section {
	const char *name; // as `fabemu help scenario` shows it: "links[]", "switches.NAME"
	const char *help;
	const struct key *keys;
	size_t n_keys;
};

// The word of that name in a table; NULL when there is none.
const struct word *word_by_name(const struct word *w, const char *name);
// Stores the default of every key that has one.
void schema_defaults(const struct section *s, void *object);
// Reads the keys present in `map` (null counts as an empty map) into the object. Unknown keys,
// wrong types, units and ranges are reported. False if there was any error.
bool schema_apply(struct loader *l, const struct section *s, struct ynode *map, void *object);
// Reports required keys that are absent.
bool schema_require(struct loader *l, const struct section *s, const struct ynode *map);

// A scalar as a yes/no; a quantity within a range. Report and return false when they are not.
bool schema_bool(struct loader *l, const struct ynode *v, bool *out);
bool schema_number(struct loader *l, const struct ynode *v, enum quantity q, int64_t min,
	int64_t max, int64_t *out);

void schema_print(const struct section *s, FILE *out);
