/* SPDX-License-Identifier: BSD-3-Clause */
// Reading a capture into memory: all errors a file can hold show before the run, and the data path
// never waits for a disk.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pcap/reader.h"
#include "pipelines/replay_internal.h"

#define INITIAL_FRAMES 1024
#define INITIAL_BYTES  ((size_t)1 << 20)

void replay_store_fini(struct replay_store *s)
{
	free(s->bytes);
	free(s->frames);
	*s = (struct replay_store){0};
}

static bool grow(struct replay_store *s, uint32_t len)
{
	if (s->n_bytes + len > s->cap_bytes) {
		size_t cap = s->cap_bytes ? 2 * s->cap_bytes : INITIAL_BYTES;
		uint8_t *bytes = realloc(s->bytes, cap);
		if (bytes == NULL)
			return false;
		s->bytes = bytes;
		s->cap_bytes = cap;
	}
	if (s->n_frames == s->cap_frames) {
		uint32_t cap = s->cap_frames ? 2 * s->cap_frames : INITIAL_FRAMES;
		struct replay_frame *frames = realloc(s->frames, cap * sizeof(*frames));
		if (frames == NULL)
			return false;
		s->frames = frames;
		s->cap_frames = cap;
	}
	return true;
}

static bool is_mac_control(const struct reader_frame *f)
{
	return f->caplen >= ETH_HEADER_BYTES && get_be16(f->data + 12) == ETHERTYPE_CONTROL;
}

static int add(struct replay_store *s, const struct reader_frame *f, int64_t *first, int64_t *last,
	const char *path, char *err, size_t err_bytes)
{
	if (f->caplen < f->len) {
		snprintf(err, err_bytes,
			"%s: frame %" PRIu64 ": only %u of its %u bytes were captured; capture "
			"again without a snap length",
			path, f->number, f->caplen, f->len);
		return -EINVAL;
	}
	if (f->len > UINT16_MAX || f->len == 0) {
		snprintf(err, err_bytes, "%s: frame %" PRIu64 ": %u bytes, expected 1 to 65535",
			path, f->number, f->len);
		return -EINVAL;
	}
	if (s->n_bytes + f->len > REPLAY_BYTES_MAX || s->n_frames == REPLAY_NONE - 1) {
		snprintf(err, err_bytes,
			"%s: more than %" PRIu64 " MiB of frames; choose some with a filter", path,
			REPLAY_BYTES_MAX >> 20);
		return -EFBIG;
	}
	if (!grow(s, f->len)) {
		snprintf(err, err_bytes, "%s: out of memory", path);
		return -ENOMEM;
	}
	if (s->n_frames == 0)
		*first = *last = f->time_ns;
	// A capture merged from several interfaces may step back in time; its order counts.
	*last = f->time_ns > *last ? f->time_ns : *last;
	s->duration_ns = (uint64_t)(*last - *first);
	memcpy(s->bytes + s->n_bytes, f->data, f->len);
	s->frames[s->n_frames++] = (struct replay_frame){
		.at = s->n_bytes,
		.len = f->len,
		.due = (simtime_t)s->duration_ns, // nanoseconds, until scaled
		.dst = FRAME_NO_DST,
	};
	s->n_bytes += f->len;
	s->longest = f->len > s->longest ? f->len : s->longest;
	return 0;
}

int replay_store_load(
	struct replay_store *s, const char *path, const char *filter, char *err, size_t err_bytes)
{
	int64_t first = 0, last = 0;
	struct reader_frame f;
	struct reader *r;
	int more, ret = 0;

	*s = (struct replay_store){0};
	if ((ret = reader_open(&r, path, filter, err, err_bytes)) < 0)
		return ret;
	while (ret == 0 && (more = reader_next(r, &f)) != 0) {
		if (more < 0) {
			snprintf(err, err_bytes, "%s", reader_error(r));
			ret = -EINVAL;
		} else if (is_mac_control(&f)) {
			s->control++;
		} else {
			ret = add(s, &f, &first, &last, path, err, err_bytes);
		}
	}
	reader_close(r);
	if (ret == 0 && s->n_frames == 0) {
		snprintf(err, err_bytes, "%s: no frame to replay%s%s", path,
			filter ? " matches " : "", filter ? filter : "");
		ret = -EINVAL;
	}
	if (ret < 0)
		replay_store_fini(s);
	return ret;
}

int replay_scan(
	const char *path, const char *filter, struct replay_scan *out, char *err, size_t err_bytes)
{
	struct replay_store s;
	int ret = replay_store_load(&s, path, filter, err, err_bytes);

	if (ret < 0)
		return ret;
	*out = (struct replay_scan){
		.frames = s.n_frames,
		.bytes = s.n_bytes,
		.longest = s.longest,
		.duration_ns = s.duration_ns,
		.control = s.control,
	};
	replay_store_fini(&s);
	return 0;
}
