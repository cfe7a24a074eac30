/* SPDX-License-Identifier: BSD-3-Clause */
// Blocks are built whole in a buffer that always starts at a block boundary of the file. When a
// write comes up short, the blocks in the buffer tell where the last whole one ends, and the file
// is cut back to there.
//
//	| type 4 | total length 4 | body, options ... | total length 4 |
//
// All numbers are in the machine's byte order, which the section header's magic declares.
#include "pcap/pcapng.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_BYTES (256 * 1024)
// Room any block needs besides frame and comment.
#define BLOCK_SLACK 512

enum block_type {
	BLOCK_IDB = 1,
	BLOCK_ISB = 5,
	BLOCK_EPB = 6,
	BLOCK_JOURNAL = 9,
	BLOCK_SHB = 0x0a0d0d0a
};

#define SHB_MAGIC      0x1a2b3c4du
#define TSRESOL_NS     9
#define IF_FILTER_PCAP 0 // first byte of if_filter: a libpcap expression

enum option_code {
	OPT_END = 0,
	OPT_COMMENT = 1,
	SHB_USERAPPL = 4,
	IF_NAME = 2,
	IF_DESCRIPTION = 3,
	IF_SPEED = 8,
	IF_TSRESOL = 9,
	IF_FILTER = 11,
	EPB_FLAGS = 2,
	ISB_STARTTIME = 2,
	ISB_ENDTIME = 3,
	ISB_IFRECV = 4,
	ISB_IFDROP = 5,
};

struct pcapng {
	int fd;
	int error; // negative errno, sticky
	unsigned n_ifs;
	uint32_t used;    // of buf
	uint32_t block;   // where the block under construction starts
	uint64_t written; // bytes of whole blocks in the file
	uint64_t lost;
	uint8_t buf[BUFFER_BYTES];
};

// ---- blocks in the buffer --------------------------------------------------------------------

static void put(struct pcapng *w, const void *bytes, size_t n)
{
	memcpy(w->buf + w->used, bytes, n);
	w->used += (uint32_t)n;
}

static void put32(struct pcapng *w, uint32_t v)
{
	put(w, &v, sizeof(v));
}

static void put16(struct pcapng *w, uint16_t v)
{
	put(w, &v, sizeof(v));
}

static void put_pad(struct pcapng *w)
{
	while (w->used & 3)
		w->buf[w->used++] = 0;
}

static void option(struct pcapng *w, enum option_code code, const void *value, size_t n)
{
	put16(w, (uint16_t)code);
	put16(w, (uint16_t)n);
	put(w, value, n);
	put_pad(w);
}

static void option_string(struct pcapng *w, enum option_code code, const char *s)
{
	if (s != NULL && *s != '\0')
		option(w, code, s, strnlen(s, PCAPNG_COMMENT_MAX));
}

static void option_time(struct pcapng *w, enum option_code code, uint64_t ns)
{
	uint32_t halves[2] = {(uint32_t)(ns >> 32), (uint32_t)ns};

	option(w, code, halves, sizeof(halves));
}

static void block_begin(struct pcapng *w, enum block_type type)
{
	w->block = w->used;
	put32(w, type);
	put32(w, 0); // total length, by block_end()
}

static void block_end(struct pcapng *w, bool options)
{
	if (options)
		put32(w, OPT_END);
	uint32_t total = w->used + 4 - w->block;
	put32(w, total);
	memcpy(w->buf + w->block + 4, &total, sizeof(total));
}

// ---- the file --------------------------------------------------------------------------------

// Bytes of whole blocks among the first `n` of the buffer; counts frames beyond as lost.
static uint32_t whole_blocks(struct pcapng *w, uint32_t n)
{
	uint32_t at = 0, good = 0;

	while (at < w->used) {
		uint32_t type, total;
		memcpy(&type, w->buf + at, sizeof(type));
		memcpy(&total, w->buf + at + 4, sizeof(total));
		at += total;
		if (at <= n)
			good = at;
		else
			w->lost += type == BLOCK_EPB;
	}
	return good;
}

int pcapng_flush(struct pcapng *w)
{
	uint32_t done = 0;

	while (w->error == 0 && done < w->used) {
		ssize_t n = write(w->fd, w->buf + done, w->used - done);
		if (n > 0)
			done += (uint32_t)n;
		else if (n == 0)
			w->error = -ENOSPC;
		else if (errno != EINTR)
			w->error = -errno;
	}
	uint32_t good = done == w->used ? done : whole_blocks(w, done);
	w->written += good;
	// What cannot be cut (a pipe) has nothing to be cut back either.
	if (good != done && ftruncate(w->fd, (off_t)w->written) < 0 && errno != EINVAL)
		w->error = -errno;
	w->used = 0;
	return w->error;
}

// Room for a block with `n` bytes besides its fixed parts.
static int reserve(struct pcapng *w, size_t n)
{
	if (w->used + n + BLOCK_SLACK > BUFFER_BYTES)
		return pcapng_flush(w);
	return w->error;
}

static void write_section(struct pcapng *w, const char *comment)
{
	static const uint64_t unknown_length = UINT64_MAX;

	block_begin(w, BLOCK_SHB);
	put32(w, SHB_MAGIC);
	put16(w, 1); // version 1.0
	put16(w, 0);
	put(w, &unknown_length, sizeof(unknown_length));
	option_string(w, OPT_COMMENT, comment);
	option_string(w, SHB_USERAPPL, "fabemu");
	block_end(w, true);
}

static void write_interface(struct pcapng *w, const struct pcapng_interface *i)
{
	static const uint8_t resolution = TSRESOL_NS;

	block_begin(w, BLOCK_IDB);
	put16(w, i->linktype);
	put16(w, 0);
	put32(w, i->snaplen);
	option_string(w, IF_NAME, i->name);
	option_string(w, IF_DESCRIPTION, i->description);
	if (i->speed_bps != 0)
		option(w, IF_SPEED, &i->speed_bps, sizeof(i->speed_bps));
	option(w, IF_TSRESOL, &resolution, sizeof(resolution));
	if (i->filter != NULL && *i->filter != '\0') {
		char value[PCAPNG_COMMENT_MAX + 1] = {IF_FILTER_PCAP};
		size_t n = strnlen(i->filter, PCAPNG_COMMENT_MAX);
		memcpy(value + 1, i->filter, n);
		option(w, IF_FILTER, value, n + 1);
	}
	block_end(w, true);
}

int pcapng_create(struct pcapng **out, const char *path, const char *comment,
	const struct pcapng_interface *ifs, unsigned n_ifs)
{
	if (n_ifs > PCAPNG_INTERFACES_MAX)
		return -EINVAL;
	struct pcapng *w = malloc(sizeof(*w));
	if (w == NULL)
		return -ENOMEM;
	memset(w, 0, offsetof(struct pcapng, buf));
	w->n_ifs = n_ifs;
	w->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (w->fd < 0) {
		int err = -errno;
		free(w);
		return err;
	}
	write_section(w, comment);
	for (unsigned i = 0; i < n_ifs && reserve(w, 4 * PCAPNG_COMMENT_MAX) == 0; i++)
		write_interface(w, &ifs[i]);
	int err = pcapng_flush(w);
	if (err < 0) {
		pcapng_close(w);
		return err;
	}
	*out = w;
	return 0;
}

int pcapng_write(struct pcapng *w, const struct pcapng_frame *f)
{
	if (f->interface >= w->n_ifs || f->caplen > PCAPNG_FRAME_MAX)
		return -EINVAL;
	int err = reserve(w, f->caplen + PCAPNG_COMMENT_MAX);
	if (err < 0)
		return err;

	uint32_t flags = f->dir;
	block_begin(w, BLOCK_EPB);
	put32(w, f->interface);
	put32(w, (uint32_t)(f->time_ns >> 32));
	put32(w, (uint32_t)f->time_ns);
	put32(w, f->caplen);
	put32(w, f->len);
	put(w, f->data, f->caplen);
	put_pad(w);
	option_string(w, OPT_COMMENT, f->comment);
	if (flags != 0)
		option(w, EPB_FLAGS, &flags, sizeof(flags));
	block_end(w, flags != 0 || f->comment != NULL);
	return 0;
}

int pcapng_event(struct pcapng *w, uint64_t time_ns, const char *text)
{
	char entry[PCAPNG_COMMENT_MAX + 128];
	int err = reserve(w, sizeof(entry));

	if (err < 0)
		return err;
	int n = snprintf(entry, sizeof(entry),
		"__REALTIME_TIMESTAMP=%llu\nSYSLOG_IDENTIFIER=fabemu\nMESSAGE=%.*s\n",
		(unsigned long long)(time_ns / 1000), PCAPNG_COMMENT_MAX, text);
	block_begin(w, BLOCK_JOURNAL);
	put(w, entry, (size_t)n);
	put_pad(w);
	block_end(w, false);
	return 0;
}

int pcapng_statistics(struct pcapng *w, uint32_t interface, const struct pcapng_counts *n)
{
	if (interface >= w->n_ifs)
		return -EINVAL;
	int err = reserve(w, 0);
	if (err < 0)
		return err;
	block_begin(w, BLOCK_ISB);
	put32(w, interface);
	put32(w, (uint32_t)(n->last_ns >> 32));
	put32(w, (uint32_t)n->last_ns);
	option_time(w, ISB_STARTTIME, n->first_ns);
	option_time(w, ISB_ENDTIME, n->last_ns);
	option(w, ISB_IFRECV, &n->received, sizeof(n->received));
	option(w, ISB_IFDROP, &n->dropped, sizeof(n->dropped));
	block_end(w, true);
	return 0;
}

uint64_t pcapng_bytes(const struct pcapng *w)
{
	return w->written + w->used;
}

uint64_t pcapng_frames_lost(const struct pcapng *w)
{
	return w->lost;
}

int pcapng_error(const struct pcapng *w)
{
	return w->error;
}

int pcapng_close(struct pcapng *w)
{
	if (w->error == 0)
		pcapng_flush(w);
	int err = w->error;
	if (close(w->fd) < 0 && err == 0)
		err = -errno;
	free(w);
	return err;
}
