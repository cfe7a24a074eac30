/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Who is behind an address: the fabric-wide table of host ports. Built once before the run,
// read-only afterwards, so every lcore may look things up. An endpoint is one host port; it may
// have several addresses (IPv4 and IPv6). Its index is what frames carry (`dst`) and routes are
// for.

#include <stdbool.h>
#include <stdint.h>

struct node;

struct endpoint {
	struct node *node; // the host; NULL in tests
	uint16_t port;     // of the host
	uint8_t mac[6];
	uint32_t ipv4; // first IPv4 address, host order; 0: none
};

struct endpoint_slot {
	uint8_t addr[16]; // IPv4 as ::ffff:a.b.c.d
	uint32_t index;   // ENDPOINT_NONE: free
};

#define ENDPOINT_NONE UINT32_MAX // == FRAME_NO_DST

struct endpoint_table {
	struct endpoint *ep;
	struct endpoint_slot *slot;
	uint32_t mask; // slots - 1
	uint32_t n;
	uint32_t cap;
	uint32_t n_addrs;
};

// Room for `n_endpoints` with `n_addrs` addresses in all. 0 or -ENOMEM.
int endpoint_table_init(struct endpoint_table *t, uint32_t n_endpoints, uint32_t n_addrs);
void endpoint_table_fini(struct endpoint_table *t);

// Adds a host port without addresses; its index, or -ENOSPC.
int64_t endpoint_add(
	struct endpoint_table *t, struct node *node, uint16_t port, const uint8_t mac[6]);

// Gives endpoint `index` another address. 0, -EEXIST when the address is taken, -ENOSPC, -EINVAL.
// `ipv4` in host order; `ipv6` 16 bytes in wire order.
int endpoint_add_ipv4(struct endpoint_table *t, uint32_t index, uint32_t ipv4);
int endpoint_add_ipv6(struct endpoint_table *t, uint32_t index, const uint8_t ipv6[16]);

// Index of the endpoint with that address, given as it stands in a packet (wire order, any
// alignment), or ENDPOINT_NONE.
uint32_t endpoint_find_ipv4(const struct endpoint_table *t, const uint8_t addr[4]);
uint32_t endpoint_find_ipv6(const struct endpoint_table *t, const uint8_t addr[16]);
