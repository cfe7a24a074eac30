/* SPDX-License-Identifier: BSD-3-Clause */

// `--set path=value`: changes the tree before anything is made of it, so that an override is
// checked like what stands in the file.

#include <stdlib.h>
#include <string.h>

#include "emu/scenario/doc.h"

struct step {
	const char *name; // NULL: index
	unsigned long index;
};

// Cuts "a.b[2].c" into steps. Returns their number, 0 on a malformed path.
static size_t split_path(
	struct arena *a, const char *path, size_t len, struct step *steps, size_t max)
{
	const char *c = path, *end = path + len;
	size_t n = 0;

	while (c < end) {
		if (n == max)
			return 0;
		if (*c == '[') {
			char *after;
			if (c[1] < '0' || c[1] > '9')
				return 0;
			steps[n++] = (struct step){.index = strtoul(c + 1, &after, 10)};
			if (*after != ']')
				return 0;
			c = after + 1;
			if (c < end && *c != '[' && *c != '.')
				return 0;
		} else {
			size_t w = strcspn(c, ".[=");
			if (w == 0)
				return 0;
			steps[n++] = (struct step){.name = arena_strndup(a, c, w)};
			c += w;
		}
		if (c < end && *c == '.' && ++c == end)
			return 0;
	}
	return n;
}

// Turns a list of names that holds `name` (`switches: [sw1, sw2]`) into a map of empty entries.
static bool list_to_map(struct arena *a, struct ynode *n, const char *name)
{
	bool found = false;

	for (uint32_t i = 0; i < n->n; i++) {
		if (n->items[i]->kind != Y_SCALAR)
			return false;
		found = found || strcmp(n->items[i]->text, name) == 0;
	}
	if (!found)
		return false;
	n->pairs = arena_alloc(a, n->n * sizeof(*n->pairs));
	for (uint32_t i = 0; i < n->n; i++) {
		struct ynode *key = n->items[i], *value = arena_alloc(a, sizeof(*value));

		key->name = key->text;
		*value = *key;
		value->text = "";
		value->plain = true;
		n->pairs[i] = (struct ypair){.key = key, .value = value};
	}
	n->kind = Y_MAP;
	return true;
}

// The slot that holds child `s` of `n`, created empty in a map; NULL after an error.
static struct ynode **descend(
	struct arena *a, struct diag *d, struct ynode *n, const struct step *s, const char *src)
{
	if (ynode_is_null(n)) { // `sw1:` without a value
		n->kind = Y_MAP;
		n->n = 0;
	}
	if (s->name == NULL) {
		if (n->kind == Y_LIST && s->index < n->n)
			return &n->items[s->index];
		diag_pos(d, src, 0, 0, "no element [%lu], the list has %u", s->index,
			n->kind == Y_LIST ? n->n : 0);
		return NULL;
	}
	if (n->kind != Y_MAP && (n->kind != Y_LIST || !list_to_map(a, n, s->name))) {
		diag_pos(d, src, 0, 0, "no '%s' in %s", s->name, ynode_kind_name(n));
		return NULL;
	}
	for (uint32_t i = 0; i < n->n; i++)
		if (strcmp(n->pairs[i].key->text, s->name) == 0)
			return &n->pairs[i].value;

	struct ynode *pair = arena_alloc(a, 2 * sizeof(*pair));
	pair[0] = (struct ynode){.kind = Y_SCALAR,
		.plain = true,
		.src = src,
		.text = s->name,
		.name = s->name,
		.parent = n};
	pair[1] = (struct ynode){.kind = Y_MAP, .src = src, .name = s->name, .parent = n};
	struct ypair *pairs = arena_alloc(a, (n->n + 1) * sizeof(*pairs));
	if (n->n != 0)
		memcpy(pairs, n->pairs, n->n * sizeof(*pairs));
	pairs[n->n] = (struct ypair){.key = &pair[0], .value = &pair[1]};
	n->pairs = pairs;
	return &n->pairs[n->n++].value;
}

bool doc_set(struct arena *a, struct diag *d, struct ynode *root, const char *assignment)
{
	struct step steps[DOC_DEPTH_MAX / 2];
	const char *eq = strchr(assignment, '=');
	const char *src = arena_printf(a, "--set %.200s", assignment);

	if (eq == NULL || eq == assignment) {
		diag_pos(d, src, 0, 0, "expected path=value such as defaults.link.rate=40Gbps");
		return false;
	}
	size_t n = split_path(
		a, assignment, (size_t)(eq - assignment), steps, sizeof(steps) / sizeof(steps[0]));
	if (n == 0 || steps[0].name == NULL) {
		diag_pos(d, src, 0, 0, "malformed path, expected names and [index] joined by dots");
		return false;
	}
	struct ynode *value = doc_parse_value(a, d, src, eq + 1);
	if (value == NULL)
		return false;

	struct ynode *parent = root;
	for (size_t i = 0; i < n; i++) {
		struct ynode **slot = descend(a, d, parent, &steps[i], src);
		if (slot == NULL)
			return false;
		if (i + 1 < n) {
			parent = *slot;
			continue;
		}
		value->parent = parent;
		value->name = (*slot)->name;
		value->index = (*slot)->index;
		*slot = value;
	}
	return true;
}
