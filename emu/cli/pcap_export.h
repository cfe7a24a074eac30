/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// What `fabemu pcap export` was asked for.

#include <stdbool.h>
#include <stdint.h>

struct pcap_export_args {
	const char *file, *out, *comment, *filter;
	bool has_qp, has_around, has_event, has_frames;
	uint64_t qp, around, event, frames;
	int64_t before_ns, after_ns;
	uint8_t hosts[2][16];
	uint8_t host_bytes[2];
	unsigned n_hosts;
};

// Returns -1 to go on, else the exit status.
int pcap_export_parse(int argc, char **argv, struct pcap_export_args *a);
