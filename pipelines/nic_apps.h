/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Applications in a built-in NIC (pipelines/app.h): RDMA programs with queue pairs of their own,
// real memory and real payload, connected by rdma_cm's messages. They talk to one another and to
// real endpoints.

#include "emu/core/node.h"
#include "pipelines/app.h"

struct nic_app_config {
	enum app_kind kind;
	struct app_config app;
	unsigned port;   // of the node
	simtime_t start; // of a client; servers listen from the beginning
	bool ipv6;       // listens on, or connects from, the port's IPv6 address
	uint8_t dscp;
	uint8_t tc;                // its traffic class = PFC priority
	uint16_t mtu;              // payload bytes per packet, an IB MTU: 256, 512, .. 4096
	simtime_t rdma_cm_timeout; // of the connection's messages; 0: as rdma_cm's, 4.096 us * 2^20
};

// Before the run only; the node's pool.full must have room for frames of mtu + 80 bytes and
// Ethernet. Returns the application's index in the NIC, -EINVAL or -ENOMEM.
int nic_add_app(struct node *n, const struct nic_app_config *cfg);

struct nic_app_result {
	enum app_status status;
	int detail; // see struct app
	struct app_counts counts;
	simtime_t started;       // SIMTIME_NEVER: not yet
	simtime_t ended;         // a client: when it was over, SIMTIME_NEVER: it is not
	unsigned ack_timeout;    // exponent of its last connection, as agreed by rdma_cm
	uint64_t retransmitted;  // request packets
	uint64_t timeouts, naks; // of its queue pairs
};

// 0 or -ENOENT.
int nic_app_result(const struct node *n, unsigned app, struct nic_app_result *out);

// Clients that are not over yet.
unsigned nic_open_apps(const struct node *n);
