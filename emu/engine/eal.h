/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Starting DPDK so that it just works: no NIC, no hugetlbfs mount, no configuration file, no root.

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "emu/core/frame.h"

struct eal_config {
	unsigned n_lcores;
	size_t memory_bytes; // what pools and rings will need
	bool pci;            // probe PCI devices
	bool pin;            // one CPU per lcore, else lcores float over all allowed CPUs
	const char *extra;   // arguments passed on, split at white space; may be NULL
};

struct eal_info {
	bool hugepages;
};

// Once per process. Takes 2 MiB hugepages if enough are free, else starts with --no-huge. On
// failure writes one line to `err` and returns a negative errno.
int eal_start(const struct eal_config *config, struct eal_info *info, FILE *err);
void eal_stop(void);

// Bytes of memory a frame pool of `n` frames with `room` bytes of data takes.
size_t frame_pool_bytes(unsigned n, unsigned room);
// A pool of `n` frames with `room` bytes of data each. Returns NULL and sets rte_errno.
struct rte_mempool *frame_pool_create(const char *name, unsigned n, unsigned room);
