/* SPDX-License-Identifier: BSD-3-Clause */
// fabemu pcap export: two passes over a capture. The first finds what the cut is about (which flows
// make a queue pair, when an event was), the second writes the frames that belong to it into a
// temporary file beside OUT, which takes OUT's place once it is complete.

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu/cli/commands.h"
#include "emu/cli/pcap.h"
#include "emu/cli/pcap_export.h"
#include "pcap/cut.h"
#include "pcap/pcapng.h"

#define AROUND_DEFAULT_NS 10000
#define ERR_BYTES         512
#define PATH_BYTES        4096

// ---- first pass ------------------------------------------------------------------------------

struct centre {
	bool found;
	uint64_t frame;
	int64_t time_ns;
};

static bool is_centre(const struct pcap_export_args *a, const struct stream_frame *f)
{
	if (a->has_around)
		return f->number == a->around;
	return a->comment != NULL && f->comment != NULL &&
	       memmem(f->comment, f->comment_len, a->comment, strlen(a->comment)) != NULL;
}

static struct check *first_pass(
	const struct pcap_export_args *a, struct stream *s, struct centre *at)
{
	struct check *c = check_new(&(struct check_options){.icrc = a->has_event});
	struct stream_frame f;

	while (c != NULL && stream_next(s, &f) == 1) {
		check_frame(c, s, &f);
		if (!at->found && is_centre(a, &f))
			*at = (struct centre){true, f.number, f.time_ns};
	}
	if (c == NULL)
		return NULL;
	check_end(c, s);
	struct check_result r = check_result(c);
	if (a->has_event && a->event <= r.n_findings) {
		const struct check_finding *e = &r.findings[a->event - 1];
		*at = (struct centre){true, e->frame, e->time_ns};
	}
	return c;
}

static bool of_host(const struct pcap_export_args *a, const struct check_flow *f)
{
	for (unsigned i = 0; i < a->n_hosts; i++)
		if (f->addr_bytes != a->host_bytes[i] ||
			(memcmp(f->src, a->hosts[i], f->addr_bytes) != 0 &&
				memcmp(f->dst, a->hosts[i], f->addr_bytes) != 0))
			return false;
	return true;
}

// Which flows are meant. Returns how many, -1: out of memory.
static int add_flows(
	const struct pcap_export_args *a, const struct check_result *r, struct cut *cut)
{
	int n = 0;

	for (uint32_t i = 0; i < r->n_flows; i++) {
		const struct check_flow *f = r->flows[i];
		bool qp = !a->has_qp || f->dest_qp == a->qp ||
			  (f->pairing >= CHECK_BY_PSN && r->flows[f->peer]->dest_qp == a->qp);
		if (!qp || !of_host(a, f))
			continue;
		if (!cut_add_flow(cut, f))
			return -1;
		n++;
	}
	return n;
}

static struct cut_window window_of(const struct pcap_export_args *a, const struct centre *at)
{
	if (!at->found)
		return (struct cut_window){.by_time = false};
	if (a->has_frames)
		return (struct cut_window){.by_number = true,
			.from = at->frame > a->frames ? at->frame - a->frames : 0,
			.to = at->frame + a->frames};
	return (struct cut_window){.by_time = true,
		.from_ns = at->time_ns - a->before_ns,
		.to_ns = at->time_ns + a->after_ns};
}

// ---- second pass -----------------------------------------------------------------------------

// The interfaces of the file as those of the new one.
static struct pcapng *create(const struct stream *s, const char *path, int *err)
{
	uint32_t n = stream_n_interfaces(s);
	struct pcapng_interface *ifs = calloc(n + 1, sizeof(*ifs));
	struct pcapng *w = NULL;

	*err = -ENOMEM;
	for (uint32_t i = 0; ifs != NULL && i < n; i++) {
		const struct stream_interface *from = stream_interface(s, i);
		ifs[i] = (struct pcapng_interface){.name = from->name,
			.speed_bps = from->speed_bps,
			.snaplen = from->snaplen,
			.linktype = from->linktype};
	}
	if (ifs != NULL)
		*err = pcapng_create(&w, path, "cut by fabemu pcap export", ifs, n);
	free(ifs);
	return *err == 0 ? w : NULL;
}

static int write_frame(struct pcapng *w, const struct stream_frame *f)
{
	char comment[STREAM_COMMENT_MAX + 1];

	if (f->comment != NULL) {
		memcpy(comment, f->comment, f->comment_len);
		comment[f->comment_len] = '\0';
	}
	return pcapng_write(w, &(struct pcapng_frame){.interface = f->interface,
				       .dir = (enum pcapng_dir)(f->dir & 3),
				       .time_ns = (uint64_t)f->time_ns,
				       .data = f->data,
				       .caplen = f->caplen,
				       .len = f->len,
				       .comment = f->comment != NULL ? comment : NULL});
}

// Writes the frames wanted. Returns how many, or a negative errno.
static int64_t second_pass(const struct pcap_export_args *a, struct pcapng *w, struct cut *cut)
{
	char err[ERR_BYTES];
	struct stream *s;
	struct stream_frame f;
	int64_t n = 0;

	if (stream_open(&s, a->file, err, sizeof(err)) < 0)
		return -EIO;
	while (n >= 0 && stream_next(s, &f) == 1) {
		if (!cut_wants(cut, &f))
			continue;
		int ret = write_frame(w, &f);
		n = ret < 0 ? ret : n + 1;
	}
	stream_close(s);
	return n;
}

static int write_out(const struct pcap_export_args *a, const struct stream *first, struct cut *cut)
{
	char part[PATH_BYTES];
	int err;

	if (snprintf(part, sizeof(part), "%s.%d.part", a->out, (int)getpid()) >=
		(int)sizeof(part)) {
		fprintf(stderr, "fabemu pcap export: %s: the name is too long\n", a->out);
		return EXIT_USAGE;
	}
	struct pcapng *w = create(first, part, &err);
	int64_t n = err;
	if (w != NULL) {
		n = second_pass(a, w, cut);
		err = pcapng_close(w);
		n = n >= 0 && err < 0 ? err : n;
	}
	if (n > 0 && rename(part, a->out) == 0) {
		printf("%s: %lld frames\n", a->out, (long long)n);
		return finish_output("pcap export");
	}
	if (n > 0)
		n = -errno;
	if (w != NULL)
		unlink(part);
	if (n == 0)
		fprintf(stderr, "fabemu pcap export: %s: no frame is what was asked for\n",
			a->file);
	else
		fprintf(stderr, "fabemu pcap export: %s: %s\n", a->out, strerror((int)-n));
	return n == 0 ? EXIT_USAGE : EXIT_RUN_FAILED;
}

static int select_and_write(const struct pcap_export_args *a, const struct stream *s,
	const struct check *c, const struct centre *at, const struct frame_filter *filter)
{
	struct check_result r = check_result(c);
	struct cut_window window = window_of(a, at);
	struct cut *cut = cut_new(&window, filter);
	int flows = cut == NULL ? -1 : 1;
	int status = EXIT_USAGE;

	if (cut != NULL && (a->has_qp || a->n_hosts != 0))
		flows = add_flows(a, &r, cut);
	if (flows < 0)
		fputs("fabemu pcap export: out of memory\n", stderr);
	else if (flows == 0)
		fprintf(stderr,
			"fabemu pcap export: %s: no such queue pair (see 'fabemu pcap check')\n",
			a->file);
	else
		status = write_out(a, s, cut);
	if (cut != NULL)
		cut_free(cut);
	return status;
}

static int export(
	const struct pcap_export_args *a, struct stream *s, const struct frame_filter *filter)
{
	struct centre at = {false, 0, 0};
	struct check *c = first_pass(a, s, &at);
	int status;

	if (c == NULL) {
		fputs("fabemu pcap export: out of memory\n", stderr);
		return EXIT_USAGE;
	}
	if (!at.found && (a->has_around || a->has_event || a->comment != NULL)) {
		fprintf(stderr, "fabemu pcap export: %s: no such %s\n", a->file,
			a->has_around  ? "frame"
			: a->has_event ? "event"
				       : "comment");
		status = EXIT_USAGE;
	} else {
		status = select_and_write(a, s, c, &at, filter);
	}
	if (stream_error(s)[0] != '\0') {
		fprintf(stderr, "fabemu pcap export: %s\n", stream_error(s));
		status = status == EXIT_HELD ? EXIT_USAGE : status;
	}
	check_free(c);
	return status;
}

static bool is_regular(const char *path)
{
	struct stat st;

	return stat(path, &st) != 0 || S_ISREG(st.st_mode); // a missing file is told of by open
}

int cmd_pcap_export(int argc, char **argv)
{
	struct pcap_export_args a = {.before_ns = AROUND_DEFAULT_NS, .after_ns = AROUND_DEFAULT_NS};
	int status = pcap_export_parse(argc, argv, &a);
	struct frame_filter *filter = NULL;
	char err[ERR_BYTES];
	struct stream *s;

	if (status >= 0)
		return status;
	if (strcmp(a.file, "-") == 0 || !is_regular(a.file)) {
		fprintf(stderr, "fabemu pcap export: %s: expected a file, it is read twice\n",
			a.file);
		return EXIT_USAGE;
	}
	if ((a.filter != NULL && frame_filter_new(&filter, a.filter, err, sizeof(err)) < 0) ||
		stream_open(&s, a.file, err, sizeof(err)) < 0) {
		fprintf(stderr, "fabemu pcap export: %s\n", err);
		frame_filter_free(filter);
		return EXIT_USAGE;
	}
	status = export(&a, s, filter);
	stream_close(s);
	frame_filter_free(filter);
	return status;
}
