/* SPDX-License-Identifier: BSD-3-Clause */
// Headroom: what still arrives after a PG has decided to say XOFF.
//
// SONiC's formula (cfgmgr/buffer_headroom_mellanox.lua, "the well-known formula" of
// doc/qos/dynamically-headroom-calculation.md), for profiles that look like a real switch's:
//
//	wcf   = ceil(cell > 128 ? cell/64 : 2*cell/(1+cell))   cells' worst case factor
//	sp    = 100*64 / ((spp*64 + (100-spp)*lossless_mtu)/100)   small packets, percent
//	occ   = (100 - sp + sp*wcf)/100
//	cable = 2*m*speed*1e9/198000000/8000                   both ways at 1.98e8 m/s
//	prop  = port_mtu + cable + 2*gearbox + mac_phy + peer + tile
//	xoff  = roundup1024(lossless_mtu + prop*occ), + 2048 unless that reaches the worst case
//	xon   = roundup1024(pipeline_latency)
//
// The emulator's own links have no unknowns, so their headroom is exact:
//
//	trigger arrives                                        last frame begun by the peer
//	   |--wait--|pause_frame|--pause_delay--|--response--|
//	            a frame of max length       |            peer stops; what it has begun it ends
//	            had just begun          PFC arrives      |--data_delay--> arrives here
//
// The trigger's last bit left the peer data_delay before it arrived. From then until the peer stops
// it may start frames back to back, during
//
//	exposed = data_delay + wait + pause_frame + pause_delay + response
//
// A frame that ends within `exposed` is in flight_cells; one more may start in the very last
// instant (ties go to the departure) and is finished: last_cells. The trigger itself goes to the
// headroom too (mmu.c): trigger_cells. With frames of one size b this is exact:
//
//	frames after the trigger = floor(exposed / wire(b)) + 1
//
// With mixed sizes the most cells per time come from the size b that maximises cells(b) / wire(b);
// flight_cells = floor(exposed * that ratio) bounds every mixture, and last and trigger are of the
// longest size. Every sequence of frames fits, and a sequence exists that needs it all but for a
// cell or two.
//
// Wire bytes are the frame with FCS + 20 (preamble, gap). Cable and forwarding latency are in the
// lane delays.

#include "models/headroom.h"

#include <math.h>
#include <stddef.h>

#include "models/pfc.h"

#define KB             1024.0
#define METRES_PER_S   198000000.0
#define SMALL_PACKET   64.0
#define XOFF_MARGIN    2048u
#define WIRE_OVERHEAD  20u
#define PFC_WIRE_BYTES (PFC_FRAME_BYTES + 4u + WIRE_OVERHEAD)
#define TABLE_MAX_MBPS 800000u

struct headroom_sonic_input headroom_sonic_defaults(
	uint32_t speed_mbps, double cable_m, uint32_t cell_bytes)
{
	return (struct headroom_sonic_input){
		.speed_mbps = speed_mbps,
		.cable_m = cable_m,
		.cell_bytes = cell_bytes,
		.port_mtu = 9100,
		.lossless_mtu = 1024,
		.small_packet_percent = 50,
		.mac_phy_delay_kb = 0.8,
		.peer_response_kb = 3.8,
		.pipeline_latency_kb = 19,
	};
}

static double round_up_kb(double bytes)
{
	return ceil(bytes / KB) * KB;
}

// Bytes the peer sends while it reacts: from the standard's table if it has the speed.
static double peer_bytes(const struct headroom_sonic_input *in)
{
	static const uint32_t known[] = {
		100, 1000, 10000, 25000, 40000, 50000, 100000, 200000, 400000, 800000};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i] == in->speed_mbps)
			return (double)pfc_response_quanta(in->speed_mbps * UINT64_C(1000000)) *
			       PFC_QUANTUM_BYTES;
	return in->peer_response_kb * KB;
}

struct headroom_sonic headroom_sonic(const struct headroom_sonic_input *in)
{
	struct headroom_sonic h = {0};
	double cell = in->cell_bytes;
	double small = in->small_packet_percent;
	double worst = ceil(cell > 128 ? cell / SMALL_PACKET : 2 * cell / (1 + cell));
	double mean = (small * SMALL_PACKET + (100 - small) * in->lossless_mtu) / 100;
	double small_share = 100 * SMALL_PACKET / mean;

	h.cell_occupancy = (100 - small_share + small_share * worst) / 100;
	h.cable_bytes = 2 * in->cable_m * in->speed_mbps * 1e9 / METRES_PER_S / 8000;
	h.peer_bytes = peer_bytes(in);
	double gearbox = in->speed_mbps * in->gearbox_delay / (8 * KB);
	h.propagation_bytes = in->port_mtu + h.cable_bytes + 2 * gearbox +
			      in->mac_phy_delay_kb * KB + h.peer_bytes + in->tile_bytes;

	double xoff = round_up_kb(in->lossless_mtu + h.propagation_bytes * h.cell_occupancy);
	double most = round_up_kb(in->lossless_mtu + h.propagation_bytes * worst);
	if (!in->shared_headroom && small != 100 && xoff + XOFF_MARGIN < most)
		xoff += XOFF_MARGIN;
	h.xoff_bytes = (uint64_t)xoff;
	h.xon_bytes = (uint64_t)round_up_kb(in->pipeline_latency_kb * KB);
	h.size_bytes = in->shared_headroom ? h.xon_bytes : h.xoff_bytes + h.xon_bytes;
	return h;
}

static uint32_t cells_of(uint32_t bytes, uint32_t cell)
{
	return (bytes + cell - 1) / cell;
}

// a better than b: more cells per time on the wire. Compared without rounding.
static bool denser(uint32_t a, uint32_t b, uint32_t cell)
{
	return (uint64_t)cells_of(a, cell) * (b + WIRE_OVERHEAD) >
	       (uint64_t)cells_of(b, cell) * (a + WIRE_OVERHEAD);
}

// Only the shortest frame of each number of cells can be the worst.
static uint32_t worst_frame(uint32_t min, uint32_t max, uint32_t cell)
{
	uint32_t worst = min;

	for (uint32_t b = cells_of(min, cell) * cell + 1; b <= max; b += cell)
		if (denser(b, worst, cell))
			worst = b;
	return worst;
}

struct headroom_exact headroom_exact(const struct headroom_exact_input *in)
{
	struct headroom_exact h = {0};
	uint64_t bt = byte_time_fp(in->rate_bps);
	uint32_t cell = in->cell_bytes;
	uint32_t min = in->min_frame_bytes < in->max_frame_bytes ? in->min_frame_bytes
								 : in->max_frame_bytes;

	h.wait = serialization_time(bt, in->max_frame_bytes + WIRE_OVERHEAD);
	h.pause_frame = serialization_time(bt, PFC_WIRE_BYTES);
	h.pause_delay = in->pause_delay;
	h.response = in->response;
	h.data_delay = in->data_delay;
	h.exposed = h.wait + h.pause_frame + h.pause_delay + h.response + h.data_delay;

	h.worst_frame_bytes = worst_frame(min, in->max_frame_bytes, cell);
	uint64_t wire = (uint64_t)serialization_time(bt, h.worst_frame_bytes + WIRE_OVERHEAD);
	uint64_t per_frame = cells_of(h.worst_frame_bytes, cell);
	wire = wire ? wire : 1;
	if (min == in->max_frame_bytes)
		h.flight_cells = (uint32_t)((uint64_t)h.exposed / wire * per_frame);
	else
		h.flight_cells = (uint32_t)((unsigned __int128)h.exposed * per_frame / wire);
	h.trigger_cells = h.last_cells = cells_of(in->max_frame_bytes, cell);
	h.cells = (uint64_t)h.trigger_cells + h.flight_cells + h.last_cells;
	h.bytes = h.cells * cell;
	return h;
}
