/* SPDX-License-Identifier: BSD-3-Clause */
// A stream is a window of one megabyte that moves over the file by large reads: what is in the page
// cache is copied once, into memory that stays in the processor's cache, and walked in place. That
// is several times as fast as a call and a copy per packet, works on pipes, and unlike a mapping
// it cannot be pulled away by whoever truncates the file. The window grows only for a block that
// is larger, up to BLOCK_MAX.
//
// This file moves the window and has classic pcap (draft-ietf-opsawg-pcap):
//
//	| magic 4 | version 2+2 | 0 4 | 0 4 | snap length 4 | link type 4 |
//	| seconds 4 | fraction 4 | captured 4 | length 4 | bytes ... | ...
//
// The magic says byte order and whether fractions are micro- or nanoseconds. pcapng is in
// pcap/stream_pcapng.c.
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "pcap/stream_priv.h"

#define WINDOW_BYTES (1u << 20)
#define NS_PER_S     UINT64_C(1000000000)

#define PCAP_US_MAGIC       0xa1b2c3d4u
#define PCAP_NS_MAGIC       0xa1b23c4du
#define PCAP_HEADER         24
#define PCAP_RECORD         16
#define IF_FIRST_CHUNK      16
#define TICKS_PER_S_DEFAULT 1000000 // microseconds, when a file does not say

int stream_fail(struct stream *s, const char *format, ...)
{
	int n = snprintf(s->error, sizeof(s->error), "%s: offset %llu, after frame %llu: ", s->path,
		(unsigned long long)(s->base + s->at), (unsigned long long)s->number);
	va_list ap;

	if (n < 0 || (size_t)n >= sizeof(s->error))
		return -EIO;
	va_start(ap, format);
	vsnprintf(s->error + n, sizeof(s->error) - (size_t)n, format, ap);
	va_end(ap);
	return -EIO;
}

// Moves what is left to the window's start and reads until `n` bytes are there.
static size_t refill(struct stream *s, size_t n)
{
	size_t left = s->have - s->at;

	if (s->fd < 0 || s->eof)
		return left;
	if (n > s->size) {
		uint8_t *larger = realloc(s->buf, n);
		if (larger == NULL)
			return left;
		s->buf = larger;
		s->size = n;
	}
	memmove(s->buf, s->buf + s->at, left);
	s->base += s->at;
	s->at = 0;
	s->have = left;
	while (s->have < n) {
		ssize_t got = read(s->fd, s->buf + s->have, s->size - s->have);
		if (got > 0) {
			s->have += (size_t)got;
		} else if (got == 0 || errno != EINTR) {
			s->eof = true;
			s->read_error = got < 0 ? errno : 0;
			break;
		}
	}
	return s->have;
}

size_t stream_need(struct stream *s, size_t n)
{
	size_t left = s->have - s->at;

	if (__builtin_expect(left < n, 0))
		left = refill(s, n);
	return left < n ? left : n;
}

struct stream_interface *stream_add_interface(struct stream *s)
{
	if (s->n_ifs == s->cap_ifs) {
		uint32_t cap = s->cap_ifs != 0 ? 2 * s->cap_ifs : IF_FIRST_CHUNK;
		struct stream_interface *more = s->n_ifs == STREAM_INTERFACES_MAX
							? NULL
							: realloc(s->ifs, cap * sizeof(*more));
		if (more == NULL)
			return NULL;
		s->ifs = more;
		s->cap_ifs = cap;
	}
	struct stream_interface *i = &s->ifs[s->n_ifs++];
	*i = (struct stream_interface){
		.ticks_per_s = TICKS_PER_S_DEFAULT, .section = s->n_sections - 1};
	return i;
}

int64_t stream_time_ns(const struct stream_interface *i, uint64_t ticks)
{
	uint64_t ns = ticks;

	if (i->ticks_per_s != NS_PER_S)
		ns = (uint64_t)((unsigned __int128)ticks * NS_PER_S / i->ticks_per_s);
	return (int64_t)(ns + (uint64_t)i->offset_s * NS_PER_S);
}

// ---- classic pcap ----------------------------------------------------------------------------

bool stream_is_pcap(uint32_t magic)
{
	uint32_t other = __builtin_bswap32(magic);

	return magic == PCAP_US_MAGIC || magic == PCAP_NS_MAGIC || other == PCAP_US_MAGIC ||
	       other == PCAP_NS_MAGIC;
}

int stream_pcap_begin(struct stream *s)
{
	if (stream_need(s, PCAP_HEADER) < PCAP_HEADER)
		return stream_fail(s, "expected a pcap header of 24 bytes, the file ends");
	const uint8_t *h = s->buf + s->at;
	uint32_t magic = get_le32(h);
	s->swapped = magic != PCAP_US_MAGIC && magic != PCAP_NS_MAGIC;
	s->n_sections = 1;
	struct stream_interface *i = stream_add_interface(s);
	if (i == NULL)
		return stream_fail(s, "out of memory");
	if (stream_u32(s, h) == PCAP_NS_MAGIC)
		i->ticks_per_s = NS_PER_S;
	i->snaplen = stream_u32(s, h + 16);
	i->linktype = (uint16_t)stream_u32(s, h + 20); // the upper bits tell of an FCS
	if (i->linktype != STREAM_LINKTYPE_ETHERNET)
		return stream_fail(s, "link type %u, expected Ethernet (1)", i->linktype);
	s->at += PCAP_HEADER;
	return 0;
}

int stream_pcap_next(struct stream *s, struct stream_frame *f)
{
	size_t got = stream_need(s, PCAP_RECORD);

	if (got == 0)
		return 0;
	if (got < PCAP_RECORD)
		return stream_fail(s,
			"the file ends within a record header: expected 16 bytes, "
			"%zu are there",
			got);
	const uint8_t *h = s->buf + s->at;
	uint32_t caplen = stream_u32(s, h + 8);
	if (caplen > STREAM_FRAME_MAX)
		return stream_fail(
			s, "record of %u bytes, expected at most %u", caplen, STREAM_FRAME_MAX);
	got = stream_need(s, PCAP_RECORD + caplen);
	if (got < PCAP_RECORD + caplen)
		return stream_fail(s,
			"the file ends within a frame: expected %u bytes, %zu are there", caplen,
			got - PCAP_RECORD);
	h = s->buf + s->at;
	uint64_t unit = NS_PER_S / s->ifs[0].ticks_per_s;
	*f = (struct stream_frame){
		.data = h + PCAP_RECORD,
		.caplen = caplen,
		.len = stream_u32(s, h + 12),
		.time_ns = (int64_t)(stream_u32(s, h) * NS_PER_S + stream_u32(s, h + 4) * unit),
		.number = ++s->number,
	};
	s->at += PCAP_RECORD + caplen;
	return 1;
}

// ---- the stream ------------------------------------------------------------------------------

static int begin(struct stream *s)
{
	size_t got = stream_need(s, 4);
	if (s->read_error != 0)
		return stream_fail(s, "%s", strerror(s->read_error));
	if (got < 4)
		return stream_fail(
			s, "expected a pcap or pcapng file, found %zu bytes", s->have - s->at);
	uint32_t magic = get_le32(s->buf + s->at);
	if (stream_is_pcap(magic))
		return stream_pcap_begin(s);
	s->pcapng = magic == STREAM_SHB;
	if (!s->pcapng)
		return stream_fail(s, "expected a pcap or pcapng file, found magic 0x%08x",
			__builtin_bswap32(magic));
	return 0;
}

static int open_stream(struct stream *s, const char *path, char *err, size_t err_bytes)
{
	int ret = 0;

	s->path = strdup(path);
	if (s->path == NULL || s->buf == NULL) {
		snprintf(err, err_bytes, "%s: out of memory", path);
		return -ENOMEM;
	}
	ret = begin(s);
	if (ret < 0)
		snprintf(err, err_bytes, "%s", s->error);
	return ret;
}

int stream_open(struct stream **out, const char *path, char *err, size_t err_bytes)
{
	int fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		int ret = -errno;
		snprintf(err, err_bytes, "%s: %s", path, strerror(-ret));
		return ret;
	}
	struct stream *s = calloc(1, sizeof(*s));
	if (s == NULL) {
		close(fd);
		snprintf(err, err_bytes, "%s: out of memory", path);
		return -ENOMEM;
	}
	s->fd = fd;
	s->size = WINDOW_BYTES;
	s->buf = malloc(s->size);
	int ret = open_stream(s, path, err, err_bytes);
	if (ret < 0) {
		stream_close(s);
		return ret;
	}
	*out = s;
	return 0;
}

int stream_open_memory(
	struct stream **out, const uint8_t *bytes, size_t n, char *err, size_t err_bytes)
{
	struct stream *s = calloc(1, sizeof(*s));

	if (s == NULL) {
		snprintf(err, err_bytes, "out of memory");
		return -ENOMEM;
	}
	s->fd = -1;
	s->buf = (uint8_t *)(uintptr_t)bytes; // only read
	s->size = s->have = n;
	int ret = open_stream(s, "memory", err, err_bytes);
	if (ret < 0) {
		stream_close(s);
		return ret;
	}
	*out = s;
	return 0;
}

int stream_next(struct stream *s, struct stream_frame *f)
{
	if (s->error[0] != '\0')
		return -EIO;
	int ret = s->pcapng ? stream_pcapng_next(s, f) : stream_pcap_next(s, f);
	if (ret != 1 && s->read_error != 0)
		return stream_fail(s, "%s", strerror(s->read_error));
	return ret;
}

const char *stream_error(const struct stream *s)
{
	return s->error;
}

uint32_t stream_n_interfaces(const struct stream *s)
{
	return s->n_ifs;
}

const struct stream_interface *stream_interface(const struct stream *s, uint32_t i)
{
	return &s->ifs[i];
}

uint64_t stream_bytes(const struct stream *s)
{
	return s->base + s->at;
}

uint32_t stream_n_sections(const struct stream *s)
{
	return s->n_sections;
}

void stream_close(struct stream *s)
{
	if (s->fd >= 0) {
		close(s->fd);
		free(s->buf);
	}
	free(s->ifs);
	free(s->path);
	free(s);
}
