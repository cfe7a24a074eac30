/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// The parts of `fabemu pcap`.

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "pcap/check.h"

int cmd_pcap_check(int argc, char **argv);
int cmd_pcap_export(int argc, char **argv);

// What came of one file.
struct pcap_report {
	const char *path;
	const char *error; // why it could not be read to its end, NULL
	struct check_result r;
	const char *const *interfaces; // names, by index
	uint32_t n_interfaces;
	bool icrc;    // ICRCs were verified
	bool only_qp; // `qp`, and findings about it, only
	uint32_t qp;
	bool verbose;        // all queue pairs and findings
	uint64_t violations; // of those asked for
};

// Whether flow `i`, or its counterpart, goes to the queue pair asked for.
bool pcap_wants_flow(const struct pcap_report *p, uint32_t i);
bool pcap_wants_finding(const struct pcap_report *p, const struct check_finding *f);

void pcap_print_text(const struct pcap_report *p, FILE *out);
// NULL: out of memory.
json_t *pcap_json(const struct pcap_report *p);
