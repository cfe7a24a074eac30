/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// DCQCN's notification point: whether a packet that came with CE is answered by a CNP. CNPs are
// spaced by min_time_between_cnps, counted per queue pair, per source address or per port: NICs
// differ in this (Lumina, SIGCOMM 2023, section 6).
// See np.c.

#include <stdbool.h>
#include <stdint.h>

#include "emu/core/simtime.h"

#define NP_SCOPES(X)                               \
	X(QP, "qp", "per queue pair")              \
	X(IP, "ip", "per source address and port") \
	X(PORT, "port", "per port")

enum np_scope {
#define X(id, word, help) NP_SCOPE_##id,
	NP_SCOPES(X)
#undef X
};

#define NP_CNP_DSCP_DEFAULT 48
#define NP_CNP_PRIO_DEFAULT 6
#define NP_INTERVAL_DEFAULT (4 * SIM_US)

struct np_params {
	bool enable;
	enum np_scope scope;
	simtime_t min_time_between_cnps;
	uint8_t cnp_dscp;
	uint8_t cnp_802p_prio; // PCP of CNPs that carry a tag
};

// When the next CNP may be sent. All zero: at once.
struct np_clock {
	simtime_t next;
};

#define NP_IP_SETS 256
#define NP_IP_WAYS 4

struct np_ip_clock {
	uint8_t ip[16];
	struct np_clock clock;
};

// The notification point of one port.
struct np {
	struct np_params params;
	struct np_clock port;
	struct np_ip_clock ips[NP_IP_SETS][NP_IP_WAYS];
};

const char *np_scope_name(enum np_scope scope);

void np_init(struct np *np, const struct np_params *params);

// A packet with CE arrived for a queue pair whose clock is `qp`, from the address `ip` (16 bytes in
// network order, IPv4 padded with zeros): true if a CNP is due for it now, which then counts as
// sent.
bool np_ce(struct np *np, struct np_clock *qp, const uint8_t ip[16], simtime_t now);
