/* SPDX-License-Identifier: BSD-3-Clause */

// Expectations: `path op value` as one text, or `path: value` (equality) and `path: "op value"` as
// a mapping. Whether the path names something of this fabric is checked by emu/report/expect.h.

#include <ctype.h>
#include <string.h>

#include "emu/report/expect_path.h"
#include "emu/scenario/loader.h"

#define FORM "expected path op value such as `drops.total == 0` (ops: == != < <= > >=)"

static const char *skip_space(const char *c)
{
	while (isspace((unsigned char)*c))
		c++;
	return c;
}

static bool read_op(const char **c, enum sc_cmp *op)
{
	static const struct {
		const char *text;
		enum sc_cmp op;
	} ops[] = {{"==", SC_EQ}, {"!=", SC_NE}, {"<=", SC_LE}, {">=", SC_GE}, {"<", SC_LT},
		{">", SC_GT}, {"=", SC_EQ}};

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		size_t len = strlen(ops[i].text);
		if (strncmp(*c, ops[i].text, len) != 0)
			continue;
		*op = ops[i].op;
		*c += len;
		return true;
	}
	return false;
}

static void split_path(struct loader *l, struct sc_expect *e)
{
	char *copy = arena_strdup(l->a, e->path);
	const char **part = NULL;

	for (char *c = copy; c != NULL;) {
		part = arena_grow(l->a, part, e->n_parts, sizeof(*part));
		part[e->n_parts++] = c;
		c = strchr(c, '.');
		if (c != NULL)
			*c++ = '\0';
	}
	e->part = part;
}

// The unit follows from the path; a counter is a count, or a time where it is a duration.
static bool read_value(
	struct loader *l, const struct ynode *v, struct sc_expect *e, const char *text)
{
	static const enum quantity by_unit[] = {[EXPECT_COUNT] = Q_COUNT,
		[EXPECT_YES_NO] = Q_COUNT,
		[EXPECT_BYTES] = Q_SIZE,
		[EXPECT_TIME] = Q_TIME,
		[EXPECT_RATE] = Q_RATE};
	enum expect_path path = expect_path_of(e);
	enum expect_unit unit = expect_unit_of(path);
	enum quantity q = by_unit[unit];
	int64_t value;

	if (unit == EXPECT_YES_NO) {
		struct ynode as = *v;
		bool yes;

		as.text = text;
		as.kind = Y_SCALAR;
		if (!schema_bool(l, &as, &yes))
			return false;
		e->value = yes;
		return true;
	}
	if (path == EXPECT_PATH_COUNTER && isalpha((unsigned char)text[strlen(text) - 1]))
		q = Q_TIME;
	const char *problem = quantity_parse(q, text, &value);
	if (problem != NULL) {
		diag_at(&l->d, v, "%s: '%.60s' %s, expected %s", e->path, text, problem,
			quantity_expected(q));
		return false;
	}
	e->value = (double)value;
	return true;
}

static bool push_expect(struct loader *l, const struct ynode *v, const char *path, enum sc_cmp op,
	const char *value)
{
	static const char *const text[] = {"==", "!=", "<", "<=", ">", ">="};
	struct scenario *s = l->s;
	struct sc_expect e = {.path = path, .op = op, .pos = pos_of(v)};

	if (*value == '\0') {
		diag_at(&l->d, v, "has no value, " FORM);
		return false;
	}
	split_path(l, &e);
	if (!read_value(l, v, &e, value))
		return false;
	e.text = arena_printf(l->a, "%s %s %s", path, text[op], value);
	s->expects = arena_grow(l->a, s->expects, s->n_expects, sizeof(*s->expects));
	s->expects[s->n_expects++] = e;
	return true;
}

static char *trimmed(struct loader *l, const char *text)
{
	size_t len;

	text = skip_space(text);
	len = strlen(text);
	while (len > 0 && isspace((unsigned char)text[len - 1]))
		len--;
	return arena_strndup(l->a, text, len);
}

// "drops.total == 0"
static bool load_text(struct loader *l, const struct ynode *v)
{
	const char *text = skip_space(v->text);
	size_t len = strcspn(text, " \t=!<>");
	const char *c = skip_space(text + len);
	enum sc_cmp op;

	if (len == 0 || !read_op(&c, &op)) {
		diag_at(&l->d, v, "'%.80s' is not an assertion, " FORM, v->text);
		return false;
	}
	return push_expect(l, v, arena_strndup(l->a, text, len), op, trimmed(l, c));
}

// `drops.total: 0`
static bool load_pair(struct loader *l, const struct ypair *p)
{
	const struct ynode *v = p->value;
	enum sc_cmp op = SC_EQ;

	if (v->kind != Y_SCALAR) {
		diag_at(&l->d, v, "is %s, " FORM, ynode_kind_name(v));
		return false;
	}
	const char *c = skip_space(v->text);
	read_op(&c, &op);
	return push_expect(l, v, p->key->text, op, trimmed(l, c));
}

static bool load_entry(struct loader *l, struct ynode *v)
{
	bool ok = true;

	if (v->kind == Y_SCALAR)
		return load_text(l, v);
	if (v->kind == Y_LIST) {
		diag_at(&l->d, v, "is a list, " FORM);
		return false;
	}
	for (uint32_t i = 0; i < v->n; i++)
		ok = load_pair(l, &v->pairs[i]) && ok;
	return ok;
}

bool load_expect(struct loader *l, struct ynode *expect)
{
	bool ok = true;

	if (expect == NULL || ynode_is_null(expect))
		return true;
	for (uint32_t i = 0; i < (expect->kind == Y_LIST ? expect->n : 1) && !diag_full(&l->d); i++)
		ok = load_entry(l, expect->kind == Y_LIST ? expect->items[i] : expect) && ok;
	return ok;
}
