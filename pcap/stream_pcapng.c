/* SPDX-License-Identifier: BSD-3-Clause */
// pcapng (draft-ietf-opsawg-pcapng) as a stream. A file is blocks:
//
//	| type 4 | total length 4 | body ... | total length 4 |
//
// A section header block (SHB) sets the byte order and forgets all interfaces; interface
// descriptions (IDB) number them from 0; enhanced (EPB), simple (SPB) and the obsolete packet
// blocks (OPB) have the frames; interface statistics (ISB) tell what the capture lost. All others
// are skipped, as the format wants it of a reader. Options are | code 2 | length 2 | value, padded
// |.
#include <stdio.h>
#include <stdlib.h>

#include "pcap/stream_priv.h"

#define BLOCK_HEAD       8
#define BLOCK_MIN        12
#define BLOCK_MAX        (64u << 20)
#define BYTE_ORDER_MAGIC 0x1a2b3c4du

enum { BLOCK_IDB = 1, BLOCK_OPB = 2, BLOCK_SPB = 3, BLOCK_ISB = 5, BLOCK_EPB = 6 };

// Fixed parts of block bodies.
enum {
	SHB_FIXED = 16,
	IDB_FIXED = 8,
	EPB_FIXED = 20,
	OPB_FIXED = 20,
	SPB_FIXED = 4,
	ISB_FIXED = 12
};

enum {
	OPT_COMMENT = 1,
	IDB_NAME = 2,
	IDB_SPEED = 8,
	IDB_TSRESOL = 9,
	IDB_TSOFFSET = 14,
	PACKET_FLAGS = 2,
	ISB_IFDROP = 5,
};

struct block {
	uint32_t type;
	const uint8_t *body;
	uint32_t bytes; // of the body
};

struct option {
	uint16_t code, bytes;
	const uint8_t *value;
};

// Steps through options from `*at`. False at the end, or where they stop making sense.
static bool next_option(
	const struct stream *s, const struct block *b, uint32_t *at, struct option *o)
{
	if (*at + 4 > b->bytes)
		return false;
	o->code = stream_u16(s, b->body + *at);
	o->bytes = stream_u16(s, b->body + *at + 2);
	o->value = b->body + *at + 4;
	if (o->code == 0 || *at + 4 + o->bytes > b->bytes)
		return false;
	*at += 4 + ((o->bytes + 3u) & ~3u);
	return true;
}

// Resolution of time stamps: a power of ten, or of two when the top bit is set.
static uint64_t resolution(uint8_t v)
{
	uint64_t ticks = 1;
	unsigned n = v & 0x7f;

	if (v & 0x80)
		return n < 63 ? UINT64_C(1) << n : 0;
	if (n > 18)
		return 0;
	while (n-- > 0)
		ticks *= 10;
	return ticks;
}

static int read_interface(struct stream *s, const struct block *b)
{
	struct option o;
	uint32_t at = IDB_FIXED;

	if (b->bytes < IDB_FIXED)
		return stream_fail(s, "interface block of %u bytes, expected 8 or more", b->bytes);
	struct stream_interface *i = stream_add_interface(s);
	if (i == NULL)
		return stream_fail(s, "more interfaces than fit");
	i->linktype = stream_u16(s, b->body);
	i->snaplen = stream_u32(s, b->body + 4);
	while (next_option(s, b, &at, &o)) {
		if (o.code == IDB_NAME)
			snprintf(i->name, sizeof(i->name), "%.*s", o.bytes, (const char *)o.value);
		else if (o.code == IDB_SPEED && o.bytes == 8)
			i->speed_bps = stream_u64(s, o.value);
		else if (o.code == IDB_TSRESOL && o.bytes == 1)
			i->ticks_per_s = resolution(o.value[0]);
		else if (o.code == IDB_TSOFFSET && o.bytes == 8)
			i->offset_s = (int64_t)stream_u64(s, o.value);
	}
	if (i->ticks_per_s == 0)
		return stream_fail(s, "time stamp resolution of an interface is out of range");
	return 0;
}

static int read_section(struct stream *s, const struct block *b)
{
	if (b->bytes < SHB_FIXED)
		return stream_fail(s, "section header of %u bytes, expected 16 or more", b->bytes);
	uint16_t major = stream_u16(s, b->body + 4);
	if (major != 1)
		return stream_fail(s, "pcapng version %u, expected 1", major);
	s->n_sections++;
	s->section_base = s->n_ifs;
	return 0;
}

static void read_statistics(struct stream *s, const struct block *b)
{
	struct option o;
	uint32_t at = ISB_FIXED;

	if (b->bytes < ISB_FIXED)
		return;
	uint32_t i = stream_u32(s, b->body);
	if (i >= s->n_ifs - s->section_base)
		return;
	while (next_option(s, b, &at, &o))
		if (o.code == ISB_IFDROP && o.bytes == 8)
			s->ifs[s->section_base + i].lost = stream_u64(s, o.value);
}

static void read_packet_options(
	const struct stream *s, const struct block *b, uint32_t at, struct stream_frame *f)
{
	struct option o;

	while (next_option(s, b, &at, &o)) {
		if (o.code == OPT_COMMENT && f->comment == NULL && o.bytes <= STREAM_COMMENT_MAX) {
			f->comment = (const char *)o.value;
			f->comment_len = o.bytes;
		} else if (o.code == PACKET_FLAGS && o.bytes == 4) {
			f->dir = stream_u32(s, o.value) & 3;
		}
	}
}

// A frame of `caplen` bytes at `at` of the body, of interface `i` of the section.
static int give_frame(struct stream *s, const struct block *b, uint32_t i, uint32_t caplen,
	uint32_t at, struct stream_frame *f)
{
	if (i >= s->n_ifs - s->section_base)
		return stream_fail(s, "frame of interface %u, expected one of %u", i,
			s->n_ifs - s->section_base);
	if (caplen > STREAM_FRAME_MAX || at + caplen > b->bytes)
		return stream_fail(s, "frame of %u bytes in a block body of %u", caplen, b->bytes);
	f->interface = s->section_base + i;
	f->caplen = caplen;
	f->data = b->body + at;
	f->number = ++s->number;
	uint32_t options = at + ((caplen + 3) & ~3u);
	if (options + 4 <= b->bytes && b->type != BLOCK_SPB)
		read_packet_options(s, b, options, f);
	return 1;
}

static int read_packet(struct stream *s, const struct block *b, struct stream_frame *f)
{
	bool old = b->type == BLOCK_OPB;

	if (b->bytes < EPB_FIXED)
		return stream_fail(s, "packet block of %u bytes, expected 20 or more", b->bytes);
	*f = (struct stream_frame){.len = stream_u32(s, b->body + 16)};
	uint64_t ticks = (uint64_t)stream_u32(s, b->body + 4) << 32 | stream_u32(s, b->body + 8);
	uint32_t i = old ? stream_u16(s, b->body) : stream_u32(s, b->body);
	int ret = give_frame(s, b, i, stream_u32(s, b->body + 12), EPB_FIXED, f);
	if (ret == 1)
		s->last_ns = f->time_ns = stream_time_ns(&s->ifs[f->interface], ticks);
	return ret;
}

// Has neither time nor length of the captured part.
static int read_simple_packet(struct stream *s, const struct block *b, struct stream_frame *f)
{
	if (b->bytes < SPB_FIXED)
		return stream_fail(
			s, "simple packet block of %u bytes, expected 4 or more", b->bytes);
	uint32_t len = stream_u32(s, b->body), caplen = len;
	if (s->n_ifs > s->section_base) {
		uint32_t snaplen = s->ifs[s->section_base].snaplen;
		caplen = snaplen != 0 && snaplen < caplen ? snaplen : caplen;
	}
	if (caplen > b->bytes - SPB_FIXED)
		caplen = b->bytes - SPB_FIXED;
	*f = (struct stream_frame){.len = len, .time_ns = s->last_ns};
	return give_frame(s, b, 0, caplen, SPB_FIXED, f);
}

// The section header's own magic says how to read its length.
static int detect_byte_order(struct stream *s)
{
	if (stream_need(s, BLOCK_MIN) < BLOCK_MIN)
		return stream_fail(s, "the file ends within a section header");
	uint32_t magic = get_le32(s->buf + s->at + 8);
	if (magic != BYTE_ORDER_MAGIC && __builtin_bswap32(magic) != BYTE_ORDER_MAGIC)
		return stream_fail(s, "byte-order magic 0x%08x, expected 0x1a2b3c4d", magic);
	s->swapped = magic != BYTE_ORDER_MAGIC;
	return 0;
}

// 1 with the next block, 0 at the end.
static int next_block(struct stream *s, struct block *b)
{
	size_t got = stream_need(s, BLOCK_HEAD);

	if (got == 0)
		return 0;
	if (got < BLOCK_HEAD)
		return stream_fail(
			s, "the file ends within a block: expected 8 bytes, %zu are there", got);
	if (get_le32(s->buf + s->at) == STREAM_SHB && detect_byte_order(s) < 0)
		return -EIO;
	uint32_t total = stream_u32(s, s->buf + s->at + 4);
	if (total < BLOCK_MIN || total % 4 != 0 || total > BLOCK_MAX)
		return stream_fail(s, "block of %u bytes, expected a multiple of 4 from 12 to %u",
			total, BLOCK_MAX);
	got = stream_need(s, total);
	if (got < total)
		return stream_fail(s,
			"the file ends within a block: expected %u bytes, %zu are there", total,
			got);
	const uint8_t *p = s->buf + s->at;
	if (stream_u32(s, p + total - 4) != total)
		return stream_fail(s, "block lengths differ: %u before, %u behind", total,
			stream_u32(s, p + total - 4));
	*b = (struct block){stream_u32(s, p), p + BLOCK_HEAD, total - BLOCK_MIN};
	return 1;
}

int stream_pcapng_next(struct stream *s, struct stream_frame *f)
{
	struct block b;
	int ret;

	while ((ret = next_block(s, &b)) == 1) {
		switch (b.type) {
		case BLOCK_EPB:
		case BLOCK_OPB:
			ret = read_packet(s, &b, f);
			break;
		case BLOCK_SPB:
			ret = read_simple_packet(s, &b, f);
			break;
		case BLOCK_IDB:
			ret = read_interface(s, &b);
			break;
		case STREAM_SHB:
			ret = read_section(s, &b);
			break;
		case BLOCK_ISB:
			read_statistics(s, &b);
			ret = 0;
			break;
		default:
			ret = 0;
		}
		if (ret < 0)
			return ret;
		s->at += b.bytes + BLOCK_MIN;
		if (ret == 1)
			return 1;
	}
	return ret;
}
