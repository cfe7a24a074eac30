/* SPDX-License-Identifier: BSD-3-Clause */

// Reads a scenario: file -> tree (doc.c) -> overrides -> sections in dependency order -> struct
// scenario. After an error in one step the later ones that would only echo it are skipped.

#include <errno.h>
#include <string.h>

#include "emu/scenario/loader.h"

static const char *file_stem(struct arena *a, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash != NULL ? slash + 1 : path;
	const char *dot = strrchr(base, '.');

	return dot != NULL && dot != base ? arena_strndup(a, base, (size_t)(dot - base))
					  : arena_strdup(a, base);
}

static const char *folder_of(struct arena *a, const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? arena_strndup(a, path, (size_t)(slash - path) + 1) : "";
}

static bool load_defaults(struct loader *l, const struct top *top)
{
	schema_defaults(&sec_defaults, &l->def);
	schema_defaults(&sec_dcqcn, &l->def.nic);
	schema_defaults(&sec_dcqcn, &l->def.attach.nic);
	qos_azure(&l->def.qos);
	l->def.nic.pfc_rx = 0xff;
	l->def.link.l.flow_control = SC_FC_PFC;
	return top->defaults == NULL || schema_apply(l, &sec_defaults, top->defaults, &l->def);
}

static bool load_sections(struct loader *l, const struct top *top)
{
	bool ok = load_defaults(l, top);

	if (!load_qos(l, top->qos))
		ok = false;
	if (!ok || !load_topology(l, top->topology) || !load_nodes(l, top->switches, top->hosts))
		return false;
	if (!load_links(l, top->links) || !load_port_qos(l) || !load_addresses(l))
		return false;
	ok = load_routing(l, top->routing);
	ok = load_workloads(l, top->workloads) && ok;
	ok = load_apps(l) && ok;
	if (!ok)
		return false;
	ok = load_faults(l, top->faults);
	ok = load_events(l, top->events) && ok;
	ok = load_captures(l, top->captures) && ok;
	ok = load_expect(l, top->expect) && ok;
	return ok && load_whole(l);
}

static bool load_root(struct loader *l, const char *name, const struct scenario_overrides *ov)
{
	struct top_in in = {0};

	for (size_t i = 0; ov != NULL && i < ov->n_set; i++)
		if (!doc_set(l->a, &l->d, l->root, ov->set[i]))
			return false;

	schema_defaults(&sec_top, &in);
	bool ok = schema_apply(l, &sec_top, l->root, &in);
	*l->s = in.s;
	l->s->arena = l->a;
	l->s->path = arena_strdup(l->a, name);
	if (l->s->name == NULL)
		l->s->name = file_stem(l->a, name);
	return load_sections(l, &in.top) && ok;
}

int scenario_load_text(const char *name, const char *text, size_t len,
	const struct scenario_overrides *ov, struct scenario **out, FILE *err)
{
	struct arena *a = arena_new();
	struct loader *l = arena_alloc(a, sizeof(*l));

	l->a = a;
	l->d.out = err;
	l->s = arena_alloc(a, sizeof(*l->s));
	l->dir = folder_of(a, name);
	names_init(&l->qos_names, a);
	names_init(&l->node_names, a);
	names_init(&l->link_names, a);
	names_init(&l->flow_names, a);
	names_init(&l->work_names, a);
	names_init(&l->fault_names, a);

	l->root = doc_parse(a, &l->d, name, text, len);
	if (l->root == NULL || !load_root(l, name, ov)) {
		arena_free(a);
		*out = NULL;
		return -EINVAL;
	}
	*out = l->s;
	return 0;
}

int scenario_load(
	const char *path, const struct scenario_overrides *ov, struct scenario **out, FILE *err)
{
	FILE *f = fopen(path, "re");
	int rc = 0;

	*out = NULL;
	if (f == NULL) {
		rc = -errno;
		fprintf(err, "%s: cannot open: %s\n", path, strerror(-rc));
		return rc;
	}
	// one byte more than is allowed, so that doc_parse() sees that a file is too large
	char *text = malloc(DOC_BYTES_MAX + 1);
	size_t len = text != NULL ? fread(text, 1, DOC_BYTES_MAX + 1, f) : 0;
	if (text == NULL || ferror(f)) {
		rc = text == NULL ? -ENOMEM : errno != 0 ? -errno : -EIO;
		fprintf(err, "%s: cannot read: %s\n", path, strerror(-rc));
	} else {
		rc = scenario_load_text(path, text, len, ov, out, err);
	}
	free(text);
	fclose(f);
	return rc;
}

void scenario_free(struct scenario *s)
{
	if (s != NULL)
		arena_free(s->arena);
}
