/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// What a scenario's links and QoS profiles mean for buffers and lanes: delays, PFC masks and
// response times, headroom. Pure functions of the scenario, used to build the fabric and by `fabemu
// check`.

#include "emu/scenario/scenario.h"
#include "models/headroom.h"
#include "models/mmu.h"

// Delay of the lane that carries what `node` sends on `port`: propagation plus the forwarding
// latency of a sending switch, at least 1 ps.
simtime_t lane_delay(const struct scenario *s, uint32_t node, uint16_t port);

// The QoS profile of a switch; for hosts the default one.
const struct sc_qos *qos_of(const struct scenario *s, uint32_t node);
const struct sc_qos *port_qos(const struct scenario *s, uint32_t node, uint16_t port);

// Priorities whose PFC this port obeys and sends; 0 on links without PFC.
uint8_t port_pfc_rx(const struct scenario *s, uint32_t node, uint16_t port);
uint8_t port_pfc_tx(const struct scenario *s, uint32_t node, uint16_t port);

// Time from the arrival of a PFC frame until this port stops.
simtime_t port_pfc_response(const struct scenario *s, uint32_t node, uint16_t port);

// Longest frame on the port's link, with FCS: the link's IP MTU, Ethernet header and one tag.
uint32_t port_max_frame(const struct scenario *s, uint32_t node, uint16_t port);

// The exact headroom a lossless PG of a switch port needs, with its parts.
struct headroom_exact port_headroom(const struct scenario *s, uint32_t node, uint16_t port);

// The buffer profile of a switch port's PG and queue, headroom resolved (SC_AUTO: as above).
struct mmu_pg_profile pg_profile(
	const struct scenario *s, uint32_t node, uint16_t port, unsigned pg);
struct mmu_queue_profile queue_profile(
	const struct scenario *s, uint32_t node, uint16_t port, unsigned queue);
