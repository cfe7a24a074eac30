/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// What the two formats of a stream share: a window on the file, and the interfaces.

#include <errno.h>

#include "pcap/stream.h"
#include "pcap/wire.h"

struct stream {
	int fd; // -1: `buf` is the whole file and not ours
	bool swapped;
	bool pcapng;
	bool eof;
	int read_error; // errno that ended reading, 0: none
	uint8_t *buf;
	size_t size;     // of buf
	size_t at;       // where the next block or record starts
	size_t have;     // end of the bytes read
	uint64_t base;   // offset in the file of buf[0]
	uint64_t number; // of the last frame
	int64_t last_ns; // time of the last frame, for blocks without one
	uint32_t n_sections;
	uint32_t section_base; // first interface of the section
	uint32_t n_ifs;
	uint32_t cap_ifs;
	struct stream_interface *ifs;
	char *path;
	char error[512];
};

static inline uint16_t stream_u16(const struct stream *s, const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return s->swapped ? __builtin_bswap16(v) : v;
}

static inline uint32_t stream_u32(const struct stream *s, const uint8_t *p)
{
	uint32_t v = get_le32(p);

	return s->swapped ? __builtin_bswap32(v) : v;
}

static inline uint64_t stream_u64(const struct stream *s, const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return s->swapped ? __builtin_bswap64(v) : v;
}

// Makes `n` bytes from the current position contiguous. Returns how many of them there are.
size_t stream_need(struct stream *s, size_t n);
// Notes what is wrong at the current position; returns -EIO.
int stream_fail(struct stream *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
// A new interface with the formats' defaults, NULL when there are too many.
struct stream_interface *stream_add_interface(struct stream *s);
int64_t stream_time_ns(const struct stream_interface *i, uint64_t ticks);

// The formats: each reads on from a block boundary, as stream_next().
int stream_pcap_begin(struct stream *s);
int stream_pcap_next(struct stream *s, struct stream_frame *f);
int stream_pcapng_next(struct stream *s, struct stream_frame *f);
// Whether the file starts as pcap does.
bool stream_is_pcap(uint32_t magic);
#define STREAM_SHB 0x0a0d0d0au
