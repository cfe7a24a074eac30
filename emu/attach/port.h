/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// One real port, of any kind: what vhost.c, tap.c and ethdev.c give to attach.c.

#include <rte_mempool.h>
#include <stdio.h>

#include "pipelines/edge.h"

struct port {
	const struct edge_ops *ops;
	void *arg;
	void (*close)(void *arg);
};

// Each returns 0, or -errno after one line on `err`.

// A vhost-user socket of which we are the server. `path` must not exist. One connection at a time;
// a peer may come back.
int port_vhost_open(struct port *p, const char *path, struct rte_mempool *pool, FILE *err);

// A tap interface. A name that exists (persistent tap) is used as it is; else it is made, with MAC,
// MTU and addresses, and vanishes with us. `netns_fd` >= 0: it is moved there instead of being
// configured.
struct tap_config {
	const char *ifname;
	const uint8_t *mac;
	uint32_t mtu;
	const char *const *addresses; // "10.0.0.1/24"
	unsigned n_addresses;
};
int port_tap_open(
	struct port *p, const struct tap_config *cfg, struct rte_mempool *pool, FILE *err);

// An existing interface: AF_XDP where it works and `xdp` is set, else AF_PACKET. `mtu`: its IP MTU.
int port_netdev_open(struct port *p, const char *ifname, uint32_t mtu, bool xdp,
	struct rte_mempool *pool, FILE *err);

// Any DPDK device by its devargs ("net_pcap0,iface=eth0", "0000:01:00.0").
int port_dpdk_open(
	struct port *p, const char *devargs, uint32_t mtu, struct rte_mempool *pool, FILE *err);
