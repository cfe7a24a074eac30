/* SPDX-License-Identifier: BSD-3-Clause */

#include "emu/scenario/doc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct reader {
	struct arena *a;
	struct diag *d;
	const char *src;
	bool is_set; // text of a --set: no positions
	yaml_document_t *doc;
	bool *open; // by libyaml node: being expanded (an alias to it is a recursion)
	uint32_t n_nodes;
};

static uint32_t line_of(const struct reader *r, yaml_mark_t m)
{
	return r->is_set ? 0 : (uint32_t)m.line + 1;
}

static void error_at(struct reader *r, yaml_mark_t m, const char *problem)
{
	diag_pos(r->d, r->src, line_of(r, m), m.column + 1, "%s", problem);
}

// ---- libyaml document -> tree -----------------------------------------------------------------

// Where in its parent a node stands, known before its children so that messages about them have it.
struct place {
	struct ynode *parent;
	const char *name; // key, NULL in a list
	uint32_t index;
};

static struct ynode *expand(struct reader *r, int id, struct place at, unsigned depth);

static struct ynode *expand_scalar(struct reader *r, yaml_node_t *y, struct ynode *n)
{
	const char *text = (const char *)y->data.scalar.value;
	size_t len = y->data.scalar.length;

	if (memchr(text, '\0', len) != NULL) {
		error_at(r, y->start_mark, "a value contains a NUL character");
		return NULL;
	}
	n->kind = Y_SCALAR;
	n->plain = y->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	n->text = arena_strndup(r->a, text, len);
	return n;
}

static struct ynode *expand_list(struct reader *r, yaml_node_t *y, struct ynode *n, unsigned depth)
{
	size_t count = (size_t)(y->data.sequence.items.top - y->data.sequence.items.start);

	n->kind = Y_LIST;
	n->items = arena_alloc(r->a, count * sizeof(*n->items));
	for (size_t i = 0; i < count; i++) {
		struct place at = {.parent = n, .index = (uint32_t)i};
		struct ynode *item = expand(r, y->data.sequence.items.start[i], at, depth);
		if (item == NULL)
			return NULL;
		n->items[n->n++] = item;
	}
	return n;
}

static int by_key(const void *a, const void *b)
{
	const struct ypair *const *pa = a, *const *pb = b;
	int c = strcmp((*pa)->key->text, (*pb)->key->text);
	return c != 0 ? c : ((*pa) > (*pb)) - ((*pa) < (*pb));
}

// Reports keys that occur twice. The pairs stay in file order.
static bool check_duplicates(struct reader *r, const struct ynode *map)
{
	struct ypair **sorted = arena_alloc(r->a, map->n * sizeof(struct ypair *));
	bool ok = true;

	for (uint32_t i = 0; i < map->n; i++)
		sorted[i] = &map->pairs[i];
	qsort(sorted, map->n, sizeof(struct ypair *), by_key);
	for (uint32_t i = 1; i < map->n; i++) {
		const struct ynode *first = sorted[i - 1]->key, *second = sorted[i]->key;
		if (strcmp(first->text, second->text) != 0)
			continue;
		diag_at(r->d, sorted[i]->value, "duplicate key at line %u, first given at line %u",
			second->line, first->line);
		ok = false;
	}
	return ok;
}

static struct ynode *expand_map(struct reader *r, yaml_node_t *y, struct ynode *n, unsigned depth)
{
	size_t count = (size_t)(y->data.mapping.pairs.top - y->data.mapping.pairs.start);

	n->kind = Y_MAP;
	n->pairs = arena_alloc(r->a, count * sizeof(*n->pairs));
	for (size_t i = 0; i < count; i++) {
		yaml_node_pair_t *p = &y->data.mapping.pairs.start[i];
		struct place at = {.parent = n};
		struct ynode *key = expand(r, p->key, at, depth);
		if (key == NULL)
			return NULL;
		if (key->kind != Y_SCALAR) {
			diag_pos(r->d, r->src, key->line, key->col,
				"a key is %s, expected a plain word", ynode_kind_name(key));
			return NULL;
		}
		key->name = at.name = key->text;
		struct ynode *value = expand(r, p->value, at, depth);
		if (value == NULL)
			return NULL;
		n->pairs[n->n++] = (struct ypair){.key = key, .value = value};
	}
	return check_duplicates(r, n) ? n : NULL;
}

static struct ynode *expand(struct reader *r, int id, struct place at, unsigned depth)
{
	yaml_node_t *y = yaml_document_get_node(r->doc, id);

	if (r->open[id]) {
		error_at(r, y->start_mark, "an alias contains itself");
		return NULL;
	}
	if (depth >= DOC_DEPTH_MAX) {
		error_at(r, y->start_mark, "nested too deeply");
		return NULL;
	}
	if (++r->n_nodes > DOC_NODES_MAX) {
		error_at(r, y->start_mark, "too many values (after expanding aliases)");
		return NULL;
	}

	struct ynode *n = arena_alloc(r->a, sizeof(*n));
	*n = (struct ynode){.src = r->src,
		.line = line_of(r, y->start_mark),
		.col = (uint32_t)y->start_mark.column + 1,
		.parent = at.parent,
		.name = at.name,
		.index = at.index};
	r->open[id] = true;
	if (y->type == YAML_SCALAR_NODE)
		n = expand_scalar(r, y, n);
	else if (y->type == YAML_SEQUENCE_NODE)
		n = expand_list(r, y, n, depth + 1);
	else
		n = expand_map(r, y, n, depth + 1);
	r->open[id] = false;
	return n;
}

// Line of a byte offset, for reader errors, which carry no mark.
static size_t line_at(const char *text, size_t len, size_t offset)
{
	size_t line = 1;

	for (size_t i = 0; i < offset && i < len; i++)
		line += text[i] == '\n';
	return line;
}

static void syntax_error(struct reader *r, const yaml_parser_t *p, const char *text, size_t len)
{
	const char *problem = p->problem != NULL ? p->problem : "syntax error";

	if (p->error == YAML_READER_ERROR)
		diag_pos(r->d, r->src, r->is_set ? 0 : line_at(text, len, p->problem_offset), 1,
			"not valid UTF-8 text: %s", problem);
	else
		diag_pos(r->d, r->src, line_of(r, p->problem_mark), p->problem_mark.column + 1,
			"YAML syntax: %s%s%s", problem, p->context != NULL ? ", " : "",
			p->context != NULL ? p->context : "");
}

static struct ynode *read_document(struct reader *r, yaml_parser_t *p, const char *text, size_t len)
{
	yaml_document_t doc, second;
	struct ynode *root = NULL;

	if (!yaml_parser_load(p, &doc)) {
		syntax_error(r, p, text, len);
		return NULL;
	}
	r->doc = &doc;
	size_t count = (size_t)(doc.nodes.top - doc.nodes.start);
	if (count == 0) {
		root = arena_alloc(r->a, sizeof(*root));
		*root = (struct ynode){.kind = Y_MAP, .src = r->src, .line = 1, .col = 1};
	} else {
		r->open = arena_alloc(r->a, count + 1);
		root = expand(r, 1, (struct place){0}, 0);
	}
	yaml_document_delete(&doc);
	if (root == NULL || count == 0)
		return root;

	if (!yaml_parser_load(p, &second)) {
		syntax_error(r, p, text, len);
		return NULL;
	}
	yaml_node_t *more = yaml_document_get_root_node(&second);
	if (more != NULL) {
		error_at(r, more->start_mark, "a second document, expected one per file");
		root = NULL;
	}
	yaml_document_delete(&second);
	return root;
}

static struct ynode *parse(
	struct arena *a, struct diag *d, const char *src, bool is_set, const char *text, size_t len)
{
	struct reader r = {.a = a, .d = d, .src = src, .is_set = is_set};
	yaml_parser_t p;

	if (len > DOC_BYTES_MAX) {
		diag_pos(d, src, 0, 0, "the file is larger than %u bytes", DOC_BYTES_MAX);
		return NULL;
	}
	if (!yaml_parser_initialize(&p)) {
		diag_pos(d, src, 0, 0, "out of memory");
		return NULL;
	}
	yaml_parser_set_input_string(&p, (const unsigned char *)text, len);
	struct ynode *root = read_document(&r, &p, text, len);
	yaml_parser_delete(&p);
	return root;
}

struct ynode *doc_parse_value(struct arena *a, struct diag *d, const char *src, const char *text)
{
	struct ynode *value = parse(a, d, src, true, text, strlen(text));

	if (value != NULL && text[0] == '\0') { // an empty text parses as an empty map
		value->kind = Y_SCALAR;
		value->plain = true;
		value->text = "";
	}
	if (value != NULL)
		value->line = 0;
	return value;
}

struct ynode *doc_parse(
	struct arena *a, struct diag *d, const char *file, const char *text, size_t len)
{
	struct ynode *root = parse(a, d, arena_strdup(a, file), false, text, len);

	if (root != NULL && root->kind != Y_MAP) {
		diag_at(d, root, "the file is %s, expected sections (clock, hosts, links, ...)",
			ynode_kind_name(root));
		return NULL;
	}
	return root;
}

// ---- access -----------------------------------------------------------------------------------

struct ynode *ynode_get(const struct ynode *map, const char *key)
{
	if (map == NULL || map->kind != Y_MAP)
		return NULL;
	for (uint32_t i = 0; i < map->n; i++)
		if (strcmp(map->pairs[i].key->text, key) == 0)
			return map->pairs[i].value;
	return NULL;
}

struct ynode *ynode_key_node(const struct ynode *map, const char *key)
{
	if (map->kind != Y_MAP)
		return NULL;
	for (uint32_t i = 0; i < map->n; i++)
		if (strcmp(map->pairs[i].key->text, key) == 0)
			return map->pairs[i].key;
	return NULL;
}

bool ynode_is_null(const struct ynode *n)
{
	return n->kind == Y_SCALAR && n->plain &&
	       (n->text[0] == '\0' || strcmp(n->text, "~") == 0 || strcmp(n->text, "null") == 0);
}

const char *ynode_kind_name(const struct ynode *n)
{
	static const char *const names[] = {"a value", "a list", "a mapping"};
	return n->kind == Y_SCALAR && ynode_is_null(n) ? "empty" : names[n->kind];
}

void ynode_path(const struct ynode *n, char *buf, size_t len)
{
	const struct ynode *chain[DOC_DEPTH_MAX + 8];
	size_t depth = 0, used = 0;

	buf[0] = '\0';
	for (; n->parent != NULL && depth < sizeof(chain) / sizeof(chain[0]); n = n->parent)
		chain[depth++] = n;
	while (depth-- > 0 && used < len) {
		const struct ynode *c = chain[depth];
		int w = c->name != NULL ? snprintf(buf + used, len - used, "%s%.60s",
						  used > 0 ? "." : "", c->name)
					: snprintf(buf + used, len - used, "[%u]", c->index);
		used += (size_t)w;
	}
}
