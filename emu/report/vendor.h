/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// What a user of mlx5 looks at, by the vendor's names and in the vendor's units: the hw_counters of
// a built-in NIC and the `ethtool -S` counters of every host port. They are views of our own
// figures (counters.h, which has them in ps). Names whose event nothing here counts are not listed:
// a 0 would say that it did not happen.

#include "emu/report/results.h"

enum vendor_set { VENDOR_HW_COUNTERS, VENDOR_ETHTOOL, VENDOR_SET_COUNT };

// Of a row: its name ("%u" for the priority), which of our figures it is, what it means.
struct vendor_row {
	const char *name;
	const char *source;
	const char *help;
};

// True if `port` of `node` has the set.
bool vendor_has(enum vendor_set set, const struct run_node *node, const struct run_port *port);

// Counters are numbered; a row by priority is eight of them.
unsigned vendor_count(enum vendor_set set);
// buf[COUNTER_NAME_MAX]; returns it.
char *vendor_name(enum vendor_set set, unsigned id, char *buf);
// Of a port that has the set.
uint64_t vendor_value(enum vendor_set set, const struct run_port *port, unsigned id);

unsigned vendor_rows(enum vendor_set set);
struct vendor_row vendor_row(enum vendor_set set, unsigned row);
