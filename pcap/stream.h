/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Reading captures of any size, pcap and pcapng, whatever wrote them: frames with their interface,
// time, direction and comment, one after the other, in bounded memory. For what libpcap does not
// tell (interfaces, comments) and where it is too slow; see pcap/stream.c.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STREAM_NAME_BYTES        64
#define STREAM_INTERFACES_MAX    65536
#define STREAM_COMMENT_MAX       4096
#define STREAM_FRAME_MAX         (256 * 1024) // libpcap's largest snap length
#define STREAM_LINKTYPE_ETHERNET 1

// Interfaces are numbered through the whole file: each section of a pcapng file begins new ones.
struct stream_interface {
	char name[STREAM_NAME_BYTES]; // "" when the file does not say
	uint64_t speed_bps;           // 0 when the file does not say
	uint64_t lost;                // frames the capture says it lost
	uint64_t ticks_per_s;         // of time stamps
	int64_t offset_s;
	uint32_t section; // from 0
	uint32_t snaplen;
	uint16_t linktype;
};

enum stream_dir { STREAM_NO_DIR, STREAM_INBOUND, STREAM_OUTBOUND };

struct stream_frame {
	const uint8_t *data; // valid until the next call
	uint32_t caplen;     // bytes at data
	uint32_t len;        // of the frame on the wire
	int64_t time_ns;     // since the file's epoch
	uint64_t number;     // in the file, from 1
	uint32_t interface;  // index for stream_interface()
	uint8_t dir;         // enum stream_dir
	uint16_t comment_len;
	const char *comment; // UTF-8, not terminated; NULL: none
};

struct stream;

// Opens a capture; "-" is standard input. Returns 0, or a negative errno with one line in `err`
// that says file, offset and what was expected.
int stream_open(struct stream **out, const char *path, char *err, size_t err_bytes);
// The same for bytes in memory, which stay the caller's and must outlive the stream.
int stream_open_memory(
	struct stream **out, const uint8_t *bytes, size_t n, char *err, size_t err_bytes);

// 1 with a frame, 0 at the end, or -EIO: the file is damaged or cut behind the frames given so far,
// and stream_error() says where.
int stream_next(struct stream *s, struct stream_frame *f);
const char *stream_error(const struct stream *s);

uint32_t stream_n_interfaces(const struct stream *s);
const struct stream_interface *stream_interface(const struct stream *s, uint32_t i);
// Bytes read so far, and sections begun (1 for pcap).
uint64_t stream_bytes(const struct stream *s);
uint32_t stream_n_sections(const struct stream *s);
void stream_close(struct stream *s);
