/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Reading captures, pcap and pcapng, as a stream of Ethernet frames. By libpcap.

#include <stddef.h>
#include <stdint.h>

struct reader;

struct reader_frame {
	const uint8_t *data; // valid until the next call
	uint32_t caplen;     // bytes at data
	uint32_t len;        // of the frame on the wire; more than caplen if it was cut
	int64_t time_ns;     // since the Unix epoch, or whatever the file's epoch is
	uint64_t number;     // in the file, from 1, frames that the filter skips counted
};

// `filter`: libpcap expression, NULL for all frames. Returns 0, or a negative errno with one line
// in `err` that names the file: cannot be opened, no capture, not Ethernet, bad filter.
int reader_open(
	struct reader **out, const char *path, const char *filter, char *err, size_t err_bytes);

// 1 with a frame, 0 at the end, or -EIO: the file is damaged behind the frames given so far, and
// reader_error() says where.
int reader_next(struct reader *r, struct reader_frame *f);
const char *reader_error(const struct reader *r);
void reader_close(struct reader *r);
