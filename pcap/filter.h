/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// libpcap filter expressions ("udp port 4791 and host 10.0.0.1") over Ethernet frames.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct frame_filter;

// Compiles `expr`. Returns 0, or -EINVAL or -ENOMEM with one line in `err`.
int frame_filter_new(struct frame_filter **out, const char *expr, char *err, size_t err_bytes);
void frame_filter_free(struct frame_filter *f);
// `data` holds `caplen` of the frame's `len` bytes. A NULL filter matches everything.
bool frame_filter_match(
	const struct frame_filter *f, const uint8_t *data, uint32_t caplen, uint32_t len);
