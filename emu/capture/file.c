/* SPDX-License-Identifier: BSD-3-Clause */
// The capture's files: making them, turning the ring of numbered ones, writing records.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emu/capture/internal.h"

static const char section_comment[] =
	"fabemu: time stamps are emulated time since the start of the run";

void capture_fail(struct capture *c, int error, const char *what)
{
	struct capture_status *s = &c->status;

	if (s->error != 0)
		return;
	snprintf(s->message, sizeof(s->message), "%s: %s", what, strerror(-error));
	__atomic_store_n(&s->error, error, __ATOMIC_RELEASE);
}

static bool is_ring(const struct capture *c)
{
	return c->max_bytes != 0 && c->ring_files > 1;
}

// Name of file `number` (from 1): the path itself, or for a ring x.pcapng -> x.00001.pcapng.
static void file_name(const struct capture *c, unsigned number, char *out, size_t bytes)
{
	const char *base = strrchr(c->path, '/');
	const char *dot = strrchr(base ? base : c->path, '.');

	if (!is_ring(c)) {
		snprintf(out, bytes, "%s", c->path);
		return;
	}
	int stem = dot ? (int)(dot - c->path) : (int)strlen(c->path);
	snprintf(out, bytes, "%.*s.%05u%s", stem, c->path, number, dot ? dot : "");
}

void capture_file_next(struct capture *c)
{
	struct pcapng_interface *ifs = calloc(c->n_ifs, sizeof(*ifs));
	char name[4096];

	if (ifs == NULL) {
		capture_fail(c, -ENOMEM, "cannot start a file");
		return;
	}
	for (unsigned i = 0; i < c->n_ifs; i++)
		ifs[i] = (struct pcapng_interface){
			.name = c->ifs[i].name,
			.description = c->ifs[i].description,
			.filter = c->filter_text,
			.speed_bps = c->ifs[i].rate_bps,
			.snaplen = c->snaplen,
			.linktype = LINKTYPE_ETHERNET_NG,
		};
	file_name(c, c->status.files + 1, name, sizeof(name));
	int err = pcapng_create(&c->file, name, section_comment, ifs, c->n_ifs);
	free(ifs);
	if (err < 0) {
		c->file = NULL;
		capture_fail(c, err, "cannot create");
		return;
	}
	__atomic_store_n(&c->status.files, c->status.files + 1, __ATOMIC_RELAXED);
	if (is_ring(c) && c->status.files > c->ring_files) {
		file_name(c, c->status.files - c->ring_files, name, sizeof(name));
		unlink(name);
	}
}

static uint64_t to_ns(simtime_t t)
{
	return (uint64_t)(t / SIM_NS);
}

// Notes that no written frame has carried.
static void write_pending_notes(struct capture *c)
{
	unsigned n = __atomic_load_n(&c->n_notes, __ATOMIC_ACQUIRE);

	for (unsigned i = 0; i < n; i++)
		if (!(c->notes_written >> i & 1))
			pcapng_event(c->file, to_ns(c->note_at[i]), c->notes[i]);
}

void capture_file_end(struct capture *c, bool last)
{
	struct capture_status *s = &c->status;

	if (c->file == NULL)
		return;
	if (last)
		write_pending_notes(c);
	uint64_t lost = 0;
	for (unsigned i = 0; i < c->n_rings; i++)
		lost += __atomic_load_n(&c->rings[i].lost, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < c->n_ifs; i++) {
		// rings are shared by interfaces: the capture's losses stand at the first one
		pcapng_statistics(c->file, i,
			&(struct pcapng_counts){.last_ns = to_ns(c->last_at),
				.received = c->ifs[i].frames,
				.dropped = i == 0 ? lost : 0});
	}
	int err = pcapng_flush(c->file);
	uint64_t lost_on_disk = pcapng_frames_lost(c->file);
	tally(&s->bytes, pcapng_bytes(c->file));
	tally(&s->frames, -lost_on_disk);
	tally(&s->lost_disk, lost_on_disk);
	int close_err = pcapng_close(c->file);
	c->file = NULL;
	if (err < 0 || close_err < 0)
		capture_fail(c, err < 0 ? err : close_err, "cannot write");
}

// True when a frame of `caplen` may still go into the current file (turning the ring if need be).
static bool within_limit(struct capture *c, uint32_t caplen)
{
	if (c->max_bytes == 0 || pcapng_bytes(c->file) + caplen + 64 <= c->max_bytes)
		return true;
	if (!is_ring(c))
		return false;
	capture_file_end(c, false);
	if (c->status.error == 0)
		capture_file_next(c);
	return c->file != NULL;
}

static void compose_comment(
	const struct capture *c, const struct record *r, const char *extra, char *out, size_t bytes)
{
	capture_comment(c, out, bytes, (enum observe_what)r->what, r->a, r->b);
	for (int i = 0; i < 2; i++) {
		const char *more = i == 0 ? extra : r->note ? c->notes[r->note - 1] : NULL;
		size_t at = strlen(out);
		if (more != NULL)
			snprintf(out + at, bytes - at, "%s%s", at ? "; " : "", more);
	}
}

void capture_write_record(struct capture *c, const struct record *r, const char *extra)
{
	static __thread uint8_t bytes[PCAPNG_FRAME_MAX];
	char comment[CAPTURE_COMMENT_MAX];
	struct capture_status *s = &c->status;

	if (s->error != 0) {
		tally(&s->lost_disk, 1);
		return;
	}
	struct frame_recipe recipe = r->recipe;
	if (!recipe.synth)
		recipe.head_len = (uint16_t)r->have; // cut by the snap length on the data path
	uint32_t want = c->copy_all || c->snaplen == 0 ? recipe.len
						       : RTE_MIN(c->snaplen, (uint32_t)recipe.len);
	uint32_t caplen = recipe_materialise(&recipe, r->data, bytes, want);
	if (!frame_filter_match(c->filter, bytes, caplen, recipe.len)) {
		tally(&s->filtered, 1);
		return;
	}
	if (c->snaplen != 0)
		caplen = RTE_MIN(caplen, c->snaplen);
	compose_comment(c, r, extra, comment, sizeof(comment));
	if (!within_limit(c, caplen + (uint32_t)strlen(comment))) {
		tally(&s->past_limit, s->error == 0);
		tally(&s->lost_disk, s->error != 0);
		return;
	}
	int err = pcapng_write(
		c->file, &(struct pcapng_frame){
				 .interface = r->interface,
				 .dir = c->ifs[r->interface].dir == OBSERVE_RX ? PCAPNG_INBOUND
									       : PCAPNG_OUTBOUND,
				 .time_ns = to_ns(r->at),
				 .data = bytes,
				 .caplen = caplen,
				 .len = recipe.len,
				 .comment = comment[0] ? comment : NULL,
			 });
	if (err < 0) {
		tally(&s->lost_disk, 1);
		capture_fail(c, err, "cannot write");
		return;
	}
	if (r->note)
		c->notes_written |= UINT64_C(1) << (r->note - 1);
	c->ifs[r->interface].frames++;
	tally(&s->frames, 1);
}
