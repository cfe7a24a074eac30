/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Writing pcapng (draft-ietf-opsawg-pcapng): one section, named interfaces with nanosecond stamps,
// frames with direction and comment, statistics at the end.
//
// Whatever happens to the disk, the file ends behind a whole block. The first error stays: later
// calls return it and write nothing.

#include <stddef.h>
#include <stdint.h>

#define LINKTYPE_ETHERNET_NG  1
#define PCAPNG_COMMENT_MAX    4096 // longer comments are cut
#define PCAPNG_FRAME_MAX      65535
#define PCAPNG_INTERFACES_MAX 16384

struct pcapng;

enum pcapng_dir { PCAPNG_NO_DIR = 0, PCAPNG_INBOUND = 1, PCAPNG_OUTBOUND = 2 };

struct pcapng_interface {
	const char *name;
	const char *description; // NULL: none
	const char *filter;      // libpcap expression that chose the frames, NULL: none
	uint64_t speed_bps;      // 0: not said
	uint32_t snaplen;        // 0: unlimited; libpcap wants the same in all of a file
	uint16_t linktype;
};

struct pcapng_frame {
	uint32_t interface;
	enum pcapng_dir dir;
	uint64_t time_ns;
	const uint8_t *data;
	uint32_t caplen;     // bytes at data, <= PCAPNG_FRAME_MAX
	uint32_t len;        // of the frame on the wire
	const char *comment; // UTF-8, NULL: none
};

// Creates or truncates `path` and writes the section header (with `comment`, if not NULL) and the
// interfaces, so that an unwritable place is known at once. Returns 0 or a negative errno.
int pcapng_create(struct pcapng **out, const char *path, const char *comment,
	const struct pcapng_interface *ifs, unsigned n_ifs);

// 0, -EINVAL (no such interface, too long) or the first error of the file.
int pcapng_write(struct pcapng *w, const struct pcapng_frame *f);

// A line of text with a time but without a frame, as a systemd journal entry block, which Wireshark
// shows among the frames and libpcap skips.
int pcapng_event(struct pcapng *w, uint64_t time_ns, const char *text);

struct pcapng_counts {
	uint64_t first_ns, last_ns; // what the capture covers
	uint64_t received;          // frames the capture took
	uint64_t dropped;           // frames it lost
};

// Interface statistics, for the end of the file.
int pcapng_statistics(struct pcapng *w, uint32_t interface, const struct pcapng_counts *n);

// Bytes of the file so far, buffered ones included.
uint64_t pcapng_bytes(const struct pcapng *w);
// Frames that pcapng_write() accepted and that then did not reach the disk.
uint64_t pcapng_frames_lost(const struct pcapng *w);

int pcapng_flush(struct pcapng *w);
// The first error, 0 when there was none.
int pcapng_error(const struct pcapng *w);
// Flushes, closes, frees. Returns 0 or the first error.
int pcapng_close(struct pcapng *w);
