/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// How much headroom a lossless PG needs so that nothing is lost after XOFF: the formula SONiC uses
// for real switches, and the emulator's own exact worst case for its own links. See headroom.c.

#include <stdbool.h>
#include <stdint.h>

#include "emu/core/simtime.h"

// ---- SONiC's formula (cfgmgr/buffer_headroom_mellanox.lua) --------------------------------------

struct headroom_sonic_input {
	uint32_t speed_mbps;
	double cable_m;
	uint32_t cell_bytes;
	uint32_t port_mtu;
	uint32_t lossless_mtu;
	uint32_t small_packet_percent; // 0..100, share of bytes in 64-byte packets
	double mac_phy_delay_kb;
	double gearbox_delay;
	double peer_response_kb; // used when the speed is not in the quanta table
	double pipeline_latency_kb;
	uint32_t tile_bytes;  // 0 except on Spectrum-4 and later: speed/1000*120/8
	bool shared_headroom; // a shared headroom pool is configured
};

struct headroom_sonic {
	double cell_occupancy; // occ
	double cable_bytes;
	double peer_bytes;
	double propagation_bytes;
	uint64_t xon_bytes;
	uint64_t xoff_bytes;
	uint64_t size_bytes;
};

// The ASIC defaults of the worked examples: port MTU 9100, lossless MTU 1024, 50 % small packets,
// pipeline latency 19 kB, MAC/PHY delay 0.8 kB, peer response 3.8 kB, no gearbox.
struct headroom_sonic_input headroom_sonic_defaults(
	uint32_t speed_mbps, double cable_m, uint32_t cell_bytes);
struct headroom_sonic headroom_sonic(const struct headroom_sonic_input *in);

// ---- the emulator's own -------------------------------------------------------------------------

struct headroom_exact_input {
	uint64_t rate_bps;        // of the link, both ways
	simtime_t data_delay;     // lane delay peer -> here (propagation + its forwarding latency)
	simtime_t pause_delay;    // lane delay here -> peer
	simtime_t response;       // the peer's PFC response time
	uint32_t cell_bytes;      // of the buffer here
	uint32_t max_frame_bytes; // longest frame either way, with FCS
	uint32_t min_frame_bytes; // shortest lossless frame to expect, with FCS; 64 is always safe
};

// The parts of the sum, in order of what happens; times add up to `exposed`.
struct headroom_exact {
	simtime_t wait;        // a frame of the longest size just began on the way to the peer
	simtime_t pause_frame; // the PFC frame itself
	simtime_t pause_delay; // its way
	simtime_t response;    // until the peer stops
	simtime_t data_delay;  // what is on the wire when the peer stops
	simtime_t exposed;     // from the trigger's departure to the last start of a frame
	uint32_t
		trigger_cells; // the frame that crosses the threshold goes into the headroom itself
	uint32_t flight_cells; // frames completed by the peer during `exposed`
	uint32_t last_cells;   // the frame it began in the last instant
	uint32_t worst_frame_bytes; // the frame size that fills most cells per time
	uint64_t cells;
	uint64_t bytes; // cells * cell_bytes: the xoff to configure
};

struct headroom_exact headroom_exact(const struct headroom_exact_input *in);
