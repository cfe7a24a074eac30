/* SPDX-License-Identifier: BSD-3-Clause */
// The scenario's captures, and one of everything for --pcap.

#include <errno.h>
#include <rte_lcore.h>
#include <stdlib.h>
#include <string.h>

#include "emu/capture/capture.h"
#include "emu/fabric/internal.h"

#define NOTE_MAX 2048

// ---- opening -----------------------------------------------------------------------------------

static int open_capture(struct fabric *f, struct capture_config *cfg)
{
	struct fabric_capture *fc = &f->captures[f->n_captures];
	char why[256] = "";

	cfg->path = fc->path;
	cfg->lossless = f->s->clock == SC_CLOCK_VIRTUAL;
	cfg->n_producers = rte_lcore_count();
	cfg->fault_names = f->fault_names;
	cfg->n_fault_names = f->s->n_faults;
	int rc = capture_open(&fc->c, cfg, why, sizeof(why));
	if (rc < 0) {
		fprintf(f->opt.err, "fabemu: capture %s: %s\n", fc->path,
			why[0] ? why : strerror(-rc));
		return rc;
	}
	f->n_captures++;
	return 0;
}

static struct capture_tap tap_of(
	const struct fabric *f, const struct sc_tap *t, enum sc_direction dir)
{
	return (struct capture_tap){
		.node = f->nodes[t->node],
		.port = t->port,
		.rx = dir != SC_DIR_TX,
		.tx = dir != SC_DIR_RX,
		.peer = f->s->nodes[sc_peer(f->s, t->node, t->port).node].name,
		.rate_bps = f->nodes[t->node]->ports[t->port].out->rate_bps,
	};
}

static int open_with_taps(struct fabric *f, const struct sc_tap *sc_taps, uint32_t n,
	enum sc_direction dir, struct capture_config *cfg)
{
	struct capture_tap *taps = calloc(n + 1, sizeof(*taps));

	if (taps == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		taps[i] = tap_of(f, &sc_taps[i], dir);
	cfg->taps = taps;
	cfg->n_taps = n;
	int rc = open_capture(f, cfg);
	free(taps);
	return rc;
}

static int open_scenario_capture(struct fabric *f, const struct sc_capture *c)
{
	struct fabric_capture *fc = &f->captures[f->n_captures];
	struct capture_config cfg = {
		.filter = c->filter,
		.snaplen = c->snaplen,
		.max_bytes = c->max_size,
		.ring_files = c->ring,
	};

	if (c->file[0] == '/')
		snprintf(fc->path, sizeof(fc->path), "%s", c->file);
	else
		snprintf(fc->path, sizeof(fc->path), "%s/%s", f->opt.out_dir, c->file);
	return open_with_taps(f, c->taps, c->n_taps, c->dir, &cfg);
}

static int open_everything(struct fabric *f)
{
	struct capture_config cfg = {0};
	uint32_t n = 0;

	for (uint32_t i = 0; i < f->s->n_nodes; i++)
		n += f->s->nodes[i].n_ports;
	struct sc_tap *taps = calloc(n + 1, sizeof(*taps));
	if (taps == NULL)
		return -ENOMEM;
	n = 0;
	for (uint32_t i = 0; i < f->s->n_nodes; i++)
		for (uint16_t p = 0; p < f->s->nodes[i].n_ports; p++)
			taps[n++] = (struct sc_tap){.node = i, .port = p};
	snprintf(f->captures[f->n_captures].path, sizeof(f->captures[0].path), "%s",
		f->opt.pcap_file);
	int rc = open_with_taps(f, taps, n, SC_DIR_BOTH, &cfg);
	free(taps);
	return rc;
}

int captures_create(struct fabric *f)
{
	f->captures = calloc(f->s->n_captures + 2, sizeof(*f->captures));
	f->fault_names = calloc(f->s->n_faults + 1, sizeof(*f->fault_names));
	if (f->captures == NULL || f->fault_names == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->s->n_faults; i++)
		f->fault_names[i] = f->s->faults[i].name;
	for (uint32_t i = 0; i < f->s->n_captures; i++) {
		int rc = open_scenario_capture(f, &f->s->captures[i]);
		if (rc < 0)
			return rc;
	}
	return f->opt.pcap_file != NULL ? open_everything(f) : 0;
}

// ---- while running -----------------------------------------------------------------------------

void captures_window(void *arg, simtime_t t)
{
	struct fabric *f = arg;

	for (unsigned i = 0; i < f->n_captures; i++)
		capture_watermark(f->captures[i].c, t);
}

void captures_note(struct fabric *f, const struct deadlock_report *r, unsigned number)
{
	const struct scenario *s = f->s;
	char text[NOTE_MAX];
	size_t pos = (size_t)snprintf(text, sizeof(text),
		"deadlock #%u: cycle of %u, formed at %.3f us, nothing moved since:", number,
		r->n_members, (double)r->formed_at / SIM_US);

	for (uint32_t i = 0; i < r->n_listed && pos < sizeof(text); i++) {
		const struct dl_member *m = &r->members[i];
		pos += (size_t)snprintf(text + pos, sizeof(text) - pos,
			" %s:%s PG%u (%llu B, XOFF since %.3f us%s) waits for",
			s->nodes[m->pg.node].name, s->nodes[m->pg.node].ports[m->pg.port].name,
			m->pg.prio, (unsigned long long)m->bytes, (double)m->xoff_since / SIM_US,
			i == r->trigger ? ", the trigger" : "");
	}
	if (pos < sizeof(text))
		snprintf(text + pos, sizeof(text) - pos, " the first");
	const struct dl_member *t = &r->members[r->trigger];
	for (unsigned i = 0; i < f->n_captures; i++)
		capture_note(f->captures[i].c, f->nodes[t->pg.node], t->pg.port, text);
}

// ---- the end -----------------------------------------------------------------------------------

void captures_close(struct fabric *f)
{
	for (unsigned i = 0; i < f->n_captures; i++) {
		struct fabric_capture *fc = &f->captures[i];
		if (fc->c != NULL)
			capture_close(fc->c, &fc->status);
		fc->c = NULL;
	}
}

int collect_captures(struct fabric *f, struct run_capture **store, struct run_results *r)
{
	*store = calloc(f->n_captures + 1, sizeof(**store));
	if (*store == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < f->n_captures; i++) {
		const struct fabric_capture *fc = &f->captures[i];
		const char *base = strrchr(fc->path, '/');
		(*store)[i] = (struct run_capture){
			.name = base != NULL ? base + 1 : fc->path,
			.file = fc->path,
			.frames = fc->status.frames,
			.bytes = fc->status.bytes,
			.lost = fc->status.lost_ring + fc->status.lost_disk,
			.error = fc->status.error < 0 ? fc->status.message : NULL,
		};
	}
	r->captures = *store;
	r->n_captures = f->n_captures;
	return 0;
}
