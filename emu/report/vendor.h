/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// What a user of mlx5 or rxe looks at, by its names and in its units: the hw_counters of both, of a
// built-in NIC or the edge of a real endpoint, and mlx5's `ethtool -S` counters of every host port.
// They are views of our own figures (counters.h, which has them in ps). Names whose event nothing
// here counts are not listed: a 0 would say that it did not happen.

#include "emu/report/results.h"

enum vendor_set { VENDOR_HW_COUNTERS, VENDOR_RXE, VENDOR_ETHTOOL, VENDOR_SET_COUNT };

// Of a row: its name ("%u" for the priority), what it means, who has it.
struct vendor_row {
	const char *name;
	const char *help;
	bool nic, edge;
};

// True if `port` of `node` has the set.
bool vendor_has(enum vendor_set set, const struct run_node *node, const struct run_port *port);

// Counters are numbered; a row by priority is eight of them.
unsigned vendor_count(enum vendor_set set);
// buf[COUNTER_NAME_MAX]; returns it.
char *vendor_name(enum vendor_set set, unsigned id, char *buf);
// Of a port that has the set; false: its device cannot know this one.
bool vendor_value(enum vendor_set set, const struct run_port *port, unsigned id, uint64_t *value);

unsigned vendor_rows(enum vendor_set set);
struct vendor_row vendor_row(enum vendor_set set, unsigned row);
