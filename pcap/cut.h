/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Choosing frames of a capture: those of some queue pairs, with their CNPs and the connection
// management that set them up, and those near a frame.

#include <stdbool.h>
#include <stdint.h>

#include "pcap/check.h"
#include "pcap/filter.h"

struct cut;

// Frames in a window of time, or of numbers, both ends included.
struct cut_window {
	bool by_time, by_number;
	int64_t from_ns, to_ns;
	uint64_t from, to;
};

// NULL: out of memory. `filter` may be NULL, and stays the caller's.
struct cut *cut_new(const struct cut_window *window, const struct frame_filter *filter);
// Frames of this flow, at any tap; without any such call, of all. False: out of memory.
bool cut_add_flow(struct cut *c, const struct check_flow *f);
// In the file's order: connection management is understood as it goes by.
bool cut_wants(struct cut *c, const struct stream_frame *f);
void cut_free(struct cut *c);
