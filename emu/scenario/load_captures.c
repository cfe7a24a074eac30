/* SPDX-License-Identifier: BSD-3-Clause */

// Captures: which ports each file taps. A port named twice is tapped once.

#include <string.h>

#include "emu/scenario/loader.h"

struct tap_list {
	struct sc_tap *taps;
	uint32_t n;
	bool *seen;           // by port, all nodes' ports in a row
	uint32_t *first_port; // by node
};

static void add_tap(struct loader *l, struct tap_list *t, uint32_t node, uint16_t port)
{
	bool *seen = &t->seen[t->first_port[node] + port];

	if (*seen)
		return;
	*seen = true;
	t->taps = arena_grow(l->a, t->taps, t->n, sizeof(*t->taps));
	t->taps[t->n++] = (struct sc_tap){.node = node, .port = port};
}

static void add_node_taps(struct loader *l, struct tap_list *t, uint32_t node)
{
	for (uint16_t p = 0; p < l->s->nodes[node].n_ports; p++)
		add_tap(l, t, node, p);
}

static bool add_taps(struct loader *l, struct tap_list *t, const struct ynode *v)
{
	const char *text = v->kind == Y_SCALAR ? v->text : "";
	uint32_t link = names_find(&l->link_names, text);
	struct sc_end e;

	if (strcmp(text, "all") == 0) {
		for (uint32_t i = 0; i < l->s->n_nodes; i++)
			add_node_taps(l, t, i);
		return true;
	}
	if (link != SC_NONE) {
		// one end, both directions: the other would show each frame again
		e = l->s->links[link].end[0];
		add_tap(l, t, e.node, e.port);
		return true;
	}
	if (!ref_port(l, v, &e))
		return false;
	if (strchr(text, ':') != NULL)
		add_tap(l, t, e.node, e.port);
	else
		add_node_taps(l, t, e.node);
	return true;
}

static bool load_capture(struct loader *l, struct ynode *v, struct names *files)
{
	struct scenario *s = l->s;
	struct capture_in in = {0};
	struct tap_list t = {.first_port = arena_alloc(l->a, s->n_nodes * sizeof(uint32_t))};
	uint32_t n_ports = 0;

	schema_defaults(&sec_capture, &in);
	if (!schema_apply(l, &sec_capture, v, &in) || !schema_require(l, &sec_capture, v))
		return false;
	for (uint32_t i = 0; i < s->n_nodes; i++) {
		t.first_port[i] = n_ports;
		n_ports += s->nodes[i].n_ports;
	}
	t.seen = arena_alloc(l->a, n_ports);
	if (in.taps == NULL)
		for (uint32_t i = 0; i < s->n_nodes; i++)
			add_node_taps(l, &t, i);
	for (uint32_t i = 0; in.taps != NULL && i < list_count(in.taps); i++)
		if (!add_taps(l, &t, list_item(in.taps, i)))
			return false;
	if (t.n == 0) {
		diag_at(&l->d, in.taps, "is empty, expected at least one node or port");
		return false;
	}
	if (in.c.ring != 0 && in.c.max_size == 0) {
		diag_key(&l->d, v, "ring", "needs max_size, the size of each file");
		return false;
	}
	if (!names_add(files, in.c.file, s->n_captures)) {
		diag_key(&l->d, v, "file", "'%.60s' is another capture's file already", in.c.file);
		return false;
	}
	in.c.taps = t.taps;
	in.c.n_taps = t.n;
	in.c.pos = pos_of(v);
	s->captures = arena_grow(l->a, s->captures, s->n_captures, sizeof(*s->captures));
	s->captures[s->n_captures++] = in.c;
	return true;
}

bool load_captures(struct loader *l, struct ynode *captures)
{
	struct names files;
	bool ok = true;

	if (captures == NULL || ynode_is_null(captures))
		return true;
	if (captures->kind != Y_LIST || captures->n > CAPTURES_MAX) {
		diag_at(&l->d, captures, "is %s of %u, expected a list of at most %u captures",
			ynode_kind_name(captures), captures->n, CAPTURES_MAX);
		return false;
	}
	names_init(&files, l->a);
	for (uint32_t i = 0; i < captures->n && !diag_full(&l->d); i++)
		ok = load_capture(l, captures->items[i], &files) && ok;
	return ok;
}
