/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Linux network interfaces and namespaces, as far as attaching needs them. Links and addresses are
// configured by iproute2's `ip`, the rest by ioctl. Functions return 0 or -errno after one line on
// `err`; those without `err` do their best.

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#define IF_NAME_BYTES 16 // IFNAMSIZ

// Runs a program without a shell and waits; its standard error goes into the message. Arguments end
// with NULL. Returns 0, -ENOENT when the program is missing, -EIO when it failed.
int run_program(FILE *err, const char *program, ...) __attribute__((sentinel));

// MAC, MTU, addresses ("10.0.0.1/24"), up.
int netif_configure(const char *ifname, const uint8_t mac[6], uint32_t mtu,
	const char *const *addresses, unsigned n_addresses, FILE *err);
int netif_set_mtu(const char *ifname, uint32_t mtu, FILE *err);
void netif_set_queue(const char *ifname, unsigned frames);
// Checksum, segmentation and merging offloads off: what leaves the interface is as on a wire.
void netif_offloads_off(const char *ifname);
// The host's own stack keeps quiet on the interface: no IPv6 addresses, no router solicitations.
void netif_no_host_stack(const char *ifname);

// Namespaces named as `ip netns` does, so that people can use that on them.
// A namespace left behind by a run that was killed is removed first; one of somebody else: -EEXIST.
int netns_create(const char *name, FILE *err);
void netns_remove(const char *name);
// File descriptor for setns(), or -errno.
int netns_open(const char *name);
// A veth pair: `host_if` here, `ns_if` with `mac` inside; up on our side, offloads off on both.
int netns_add_veth(const char *netns, const char *host_if, const char *ns_if, const uint8_t mac[6],
	uint32_t mtu, FILE *err);
