/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// The job file of a host: what guest/session is to set up and run, in the words it defines.

#include <stdbool.h>
#include <stdint.h>

#include "emu/scenario/scenario.h"

#define ADDRESS_TEXT 64 // "fd00:...:1/64"

// Addresses of an endpoint with prefix length; returns how many (1 or 2).
unsigned endpoint_addresses(const struct sc_endpoint *ep, char text[2][ADDRESS_TEXT]);

// Name of port `port` inside guest or namespace: `ifname` for the first if given, else the port's
// own in a namespace, eth0, eth1 .. in a guest (what its kernel calls them).
void inner_name(
	const struct scenario *sc, const struct sc_host *h, unsigned port, char *name, size_t len);

// Writes `<dir>/<host>.job`. `rdma`: add an rxe device on each port. Returns 0 or -errno.
int job_write(const struct scenario *sc, const struct sc_host *h, const char *dir, bool rdma);
