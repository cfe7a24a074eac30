/* SPDX-License-Identifier: BSD-3-Clause */

#include "emu/scenario/schema.h"

#include <string.h>
#include <strings.h>

#include "emu/scenario/loader.h"

// ---- storing ----------------------------------------------------------------------------------

static void store(const struct key *k, void *object, int64_t value)
{
	char *field = (char *)object + k->offset;
	uint64_t u = (uint64_t)value;

	switch (k->size) {
	case 1:
		*(uint8_t *)field = (uint8_t)u;
		break;
	case 2:
		*(uint16_t *)field = (uint16_t)u;
		break;
	case 4:
		*(uint32_t *)field = (uint32_t)u;
		break;
	default:
		memcpy(field, &u, sizeof(u));
	}
}

static bool bool_by_name(const char *text, bool *out)
{
	static const char *const yes[] = {"yes", "true", "on"}, *const no[] = {
									"no", "false", "off"};

	for (size_t i = 0; i < 3; i++) {
		if (strcasecmp(text, yes[i]) == 0 || strcasecmp(text, no[i]) == 0) {
			*out = strcasecmp(text, yes[i]) == 0;
			return true;
		}
	}
	return false;
}

const struct word *word_by_name(const struct word *w, const char *name)
{
	for (; w->name != NULL; w++)
		if (strcasecmp(w->name, name) == 0)
			return w;
	return NULL;
}

static void store_default(const struct key *k, void *object)
{
	int64_t value = 0;
	bool b = false;

	if (k->word != NULL && strcmp(k->def, k->word) == 0) {
		store(k, object, k->word_value);
		return;
	}
	switch (k->type) {
	case K_BOOL:
		bool_by_name(k->def, &b);
		store(k, object, b);
		break;
	case K_NUMBER:
		quantity_parse(k->q, k->def, &value);
		store(k, object, value);
		break;
	case K_INT:
		store(k, object, strtol(k->def, NULL, 10));
		break;
	case K_ENUM:
		store(k, object, word_by_name(k->words, k->def)->value);
		break;
	case K_STRING:
		memcpy((char *)object + k->offset, &k->def, sizeof(k->def));
		break;
	case K_SECTION:
	case K_NODE:
	case K_CUSTOM:
		break; // the text only documents what the reader's owner does
	}
}

void schema_defaults(const struct section *s, void *object)
{
	for (size_t i = 0; i < s->n_keys; i++) {
		const struct key *k = &s->keys[i];

		if (k->type == K_SECTION)
			schema_defaults(k->sub, (char *)object + k->offset);
		else if (k->def != NULL)
			store_default(k, object);
	}
}

// ---- reading ----------------------------------------------------------------------------------

bool schema_bool(struct loader *l, const struct ynode *v, bool *out)
{
	if (v->kind == Y_SCALAR && bool_by_name(v->text, out))
		return true;
	if (v->kind == Y_SCALAR)
		diag_at(&l->d, v, "'%.80s' is not a truth value, expected yes or no", v->text);
	else
		diag_at(&l->d, v, "is %s, expected yes or no", ynode_kind_name(v));
	return false;
}

bool schema_number(struct loader *l, const struct ynode *v, enum quantity q, int64_t min,
	int64_t max, int64_t *out)
{
	char lo[QUANTITY_MAX], hi[QUANTITY_MAX];

	if (v->kind != Y_SCALAR || ynode_is_null(v)) {
		diag_at(&l->d, v, "is %s, expected %s", ynode_kind_name(v), quantity_expected(q));
		return false;
	}
	const char *problem = quantity_parse(q, v->text, out);
	if (problem != NULL) {
		diag_at(&l->d, v, "'%.80s' %s, expected %s", v->text, problem,
			quantity_expected(q));
		return false;
	}
	if (*out < min || *out > max) {
		diag_at(&l->d, v, "'%.80s' is out of range, expected %s to %s", v->text,
			quantity_format(q, min, lo), quantity_format(q, max, hi));
		return false;
	}
	return true;
}

static bool read_int(struct loader *l, const struct key *k, const struct ynode *v, void *object)
{
	char *end = NULL;
	long value = v->kind == Y_SCALAR ? strtol(v->text, &end, 10) : 0;

	if (end == NULL || end == v->text || *end != '\0' || value < k->min || value > k->max) {
		diag_at(&l->d, v,
			"'%.80s' is not in range, expected a whole number from %lld to %lld%s%s",
			v->kind == Y_SCALAR ? v->text : ynode_kind_name(v), (long long)k->min,
			(long long)k->max, k->word != NULL ? " or " : "",
			k->word != NULL ? k->word : "");
		return false;
	}
	store(k, object, value);
	return true;
}

static const char *nth_word(const void *ctx, size_t i)
{
	return ((const struct word *)ctx)[i].name;
}

static bool read_enum(struct loader *l, const struct key *k, const struct ynode *v, void *object)
{
	char list[200] = "";

	if (v->kind == Y_SCALAR) {
		const struct word *w = word_by_name(k->words, v->text);
		if (w != NULL) {
			store(k, object, w->value);
			return true;
		}
	}
	for (const struct word *w = k->words; w->name != NULL; w++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
			w == k->words ? "" : ", ", w->name);
	const char *meant = v->kind == Y_SCALAR ? diag_suggest(v->text, nth_word, k->words) : NULL;
	diag_at(&l->d, v, "'%.80s' is unknown, expected one of: %s%s%s%s",
		v->kind == Y_SCALAR ? v->text : ynode_kind_name(v), list,
		meant != NULL ? "; did you mean " : "", meant != NULL ? meant : "",
		meant != NULL ? "?" : "");
	return false;
}

static bool read_string(struct loader *l, const struct key *k, struct ynode *v, void *object)
{
	const char *text = v->text;

	if (v->kind != Y_SCALAR || ynode_is_null(v) || text[0] == '\0') {
		diag_at(&l->d, v, "is %s, expected a text", ynode_kind_name(v));
		return false;
	}
	memcpy((char *)object + k->offset, &text, sizeof(text));
	return true;
}

static bool read_key(struct loader *l, const struct key *k, struct ynode *v, void *object)
{
	int64_t value;
	bool b;

	if (k->word != NULL && v->kind == Y_SCALAR && strcasecmp(v->text, k->word) == 0) {
		store(k, object, k->word_value);
		return true;
	}
	switch (k->type) {
	case K_BOOL:
		if (!schema_bool(l, v, &b))
			return false;
		store(k, object, b);
		return true;
	case K_NUMBER:
		if (!schema_number(l, v, k->q, k->min, k->max, &value))
			return false;
		store(k, object, value);
		return true;
	case K_INT:
		return read_int(l, k, v, object);
	case K_ENUM:
		return read_enum(l, k, v, object);
	case K_STRING:
		return read_string(l, k, v, object);
	case K_SECTION:
		return schema_apply(l, k->sub, v, (char *)object + k->offset);
	case K_NODE:
		memcpy((char *)object + k->offset, &v, sizeof(v));
		return true;
	case K_CUSTOM:
		return k->read(l, v, object);
	}
	return false;
}

static const struct key *find_key(const struct section *s, const char *name)
{
	for (size_t i = 0; i < s->n_keys; i++)
		if (strcmp(s->keys[i].name, name) == 0)
			return &s->keys[i];
	return NULL;
}

static const char *nth_key(const void *ctx, size_t i)
{
	const struct section *s = ctx;
	return i < s->n_keys ? s->keys[i].name : NULL;
}

static void report_unknown(
	struct loader *l, const struct section *s, const struct ynode *map, const struct ynode *key)
{
	const char *meant = diag_suggest(key->text, nth_key, s);
	char list[400] = "";

	if (meant != NULL) {
		diag_key(&l->d, map, key->text, "unknown key in %s; did you mean %s?", s->name,
			meant);
		return;
	}
	for (size_t i = 0; i < s->n_keys; i++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
			i == 0 ? "" : ", ", s->keys[i].name);
	diag_key(&l->d, map, key->text, "unknown key in %s, expected one of: %s", s->name, list);
}

bool schema_apply(struct loader *l, const struct section *s, struct ynode *map, void *object)
{
	bool ok = true;

	if (ynode_is_null(map))
		return true;
	if (map->kind != Y_MAP) {
		diag_at(&l->d, map, "is %s, expected a mapping with the keys of %s",
			ynode_kind_name(map), s->name);
		return false;
	}
	for (uint32_t i = 0; i < map->n && !diag_full(&l->d); i++) {
		const struct ypair *p = &map->pairs[i];
		const struct key *k = find_key(s, p->key->text);

		if (k == NULL) {
			report_unknown(l, s, map, p->key);
			ok = false;
		} else if (!read_key(l, k, p->value, object)) {
			ok = false;
		}
	}
	return ok;
}

bool schema_require(struct loader *l, const struct section *s, const struct ynode *map)
{
	bool ok = true;

	for (size_t i = 0; i < s->n_keys; i++) {
		const struct key *k = &s->keys[i];

		if (!k->required || ynode_get(map, k->name) != NULL)
			continue;
		diag_key(&l->d, map, k->name, "missing, expected in every entry of %s: %s", s->name,
			k->help);
		ok = false;
	}
	return ok;
}

// ---- help -------------------------------------------------------------------------------------

static void print_range(const struct key *k, FILE *out)
{
	char lo[QUANTITY_MAX], hi[QUANTITY_MAX];

	if (k->type == K_ENUM) {
		for (const struct word *w = k->words; w->name != NULL; w++)
			fprintf(out, "%s%s", w == k->words ? " " : "|", w->name);
	} else if (k->type == K_NUMBER) {
		fprintf(out, " %s..%s", quantity_format(k->q, k->min, lo),
			k->max == INT64_MAX ? "" : quantity_format(k->q, k->max, hi));
	} else if (k->type == K_INT) {
		fprintf(out, " %lld..%lld", (long long)k->min, (long long)k->max);
	} else if (k->shape != NULL) {
		fprintf(out, " %s", k->shape);
	}
	if (k->word != NULL)
		fprintf(out, "|%s", k->word);
}

static const char *type_name(const struct key *k)
{
	static const char *const names[] = {
		"yes/no", "", "number", "word", "text", "section", "", ""};
	return k->type == K_NUMBER ? quantity_name(k->q) : names[k->type];
}

#define HELP_COLUMNS 96

// Breaks `text` at spaces so that lines with their indent stay readable.
static void print_wrapped(const char *text, unsigned indent, FILE *out)
{
	while (*text != '\0') {
		size_t len = strlen(text), room = HELP_COLUMNS - indent;

		if (len > room) {
			len = room;
			while (len > 0 && text[len] != ' ')
				len--;
			if (len == 0)
				len = strcspn(text, " ");
		}
		fprintf(out, "%*s%.*s\n", (int)indent, "", (int)len, text);
		text += len;
		text += strspn(text, " ");
	}
}

void schema_print(const struct section *s, FILE *out)
{
	fprintf(out, "%s\n", s->name);
	print_wrapped(s->help, 4, out);
	fputc('\n', out);
	for (size_t i = 0; i < s->n_keys; i++) {
		const struct key *k = &s->keys[i];

		fprintf(out, "    %s", k->name);
		if (type_name(k)[0] != '\0')
			fprintf(out, " <%s>", type_name(k));
		print_range(k, out);
		if (k->required)
			fprintf(out, "  (required)");
		else if (k->def != NULL)
			fprintf(out, "  (default %s)", k->def[0] != '\0' ? k->def : "none");
		fputc('\n', out);
		print_wrapped(k->help, 8, out);
	}
	fputc('\n', out);
}
