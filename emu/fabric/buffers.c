/* SPDX-License-Identifier: BSD-3-Clause */
#include "emu/fabric/buffers.h"

#include "emu/core/frame.h"
#include "models/pfc.h"

#define ETH_HEADER_BYTES 14
#define VLAN_TAG_BYTES   4
#define MIN_FRAME_BYTES  64

static const struct sc_link *link_of(const struct scenario *s, uint32_t node, uint16_t port)
{
	return &s->links[s->nodes[node].ports[port].link];
}

simtime_t lane_delay(const struct scenario *s, uint32_t node, uint16_t port)
{
	simtime_t d = link_of(s, node, port)->delay;

	if (!sc_is_host(s, node))
		d += s->switches[node].latency;
	return simtime_max(d, SIM_PS);
}

const struct sc_qos *qos_of(const struct scenario *s, uint32_t node)
{
	return sc_is_host(s, node) ? &s->qos[0] : &s->qos[s->switches[node].qos];
}

const struct sc_qos *port_qos(const struct scenario *s, uint32_t node, uint16_t port)
{
	return sc_is_host(s, node) ? &s->qos[0] : &s->qos[s->nodes[node].ports[port].qos];
}

uint8_t port_pfc_rx(const struct scenario *s, uint32_t node, uint16_t port)
{
	if (link_of(s, node, port)->flow_control != SC_FC_PFC)
		return 0;
	if (!sc_is_host(s, node))
		return port_qos(s, node, port)->pfc_rx;
	const struct sc_host *h = sc_host_of(s, node);
	return h->kind == SC_HOST_ATTACH && !h->attach.pfc ? 0 : h->nic.pfc_rx;
}

uint8_t port_pfc_tx(const struct scenario *s, uint32_t node, uint16_t port)
{
	if (link_of(s, node, port)->flow_control != SC_FC_PFC)
		return 0;
	return sc_is_host(s, node) ? port_pfc_rx(s, node, port) : port_qos(s, node, port)->pfc_tx;
}

simtime_t port_pfc_response(const struct scenario *s, uint32_t node, uint16_t port)
{
	uint64_t t = sc_is_host(s, node) ? sc_host_of(s, node)->nic.pfc_response
					 : port_qos(s, node, port)->pfc_response;

	return t == SC_AUTO ? pfc_response_time(link_of(s, node, port)->rate_bps) : (simtime_t)t;
}

uint32_t port_max_frame(const struct scenario *s, uint32_t node, uint16_t port)
{
	return link_of(s, node, port)->mtu + ETH_HEADER_BYTES + VLAN_TAG_BYTES + ETH_FCS_BYTES;
}

struct headroom_exact port_headroom(const struct scenario *s, uint32_t node, uint16_t port)
{
	struct sc_end peer = sc_peer(s, node, port);
	struct headroom_exact_input in = {
		.rate_bps = link_of(s, node, port)->rate_bps,
		.data_delay = lane_delay(s, peer.node, peer.port),
		.pause_delay = lane_delay(s, node, port),
		.response = port_pfc_response(s, peer.node, peer.port),
		.cell_bytes = qos_of(s, node)->cell_size,
		.max_frame_bytes = port_max_frame(s, node, port),
		.min_frame_bytes = MIN_FRAME_BYTES,
	};

	return headroom_exact(&in);
}

static struct mmu_threshold threshold(
	bool dynamic, int dynamic_th, uint64_t static_th, uint64_t all)
{
	return (struct mmu_threshold){
		.dynamic = dynamic,
		.dynamic_th = (int8_t)dynamic_th,
		.static_th_bytes = static_th == SC_AUTO ? all : static_th,
	};
}

struct mmu_pg_profile pg_profile(
	const struct scenario *s, uint32_t node, uint16_t port, unsigned pg)
{
	const struct sc_pg *p = &port_qos(s, node, port)->pg[pg];
	uint64_t all = s->switches[node].buffer;
	// Without PFC on the link nothing can be held back: the PG is lossy there.
	bool lossless = p->lossless && port_pfc_tx(s, node, port) != 0;
	struct mmu_pg_profile out = {
		.lossless = lossless,
		.size_bytes = p->size,
		.th = threshold(p->dynamic, p->dynamic_th, p->static_th, all),
		.xon_bytes = p->xon,
		.xon_offset_bytes = p->xon_offset,
	};

	if (lossless)
		out.xoff_bytes = p->xoff == SC_AUTO ? port_headroom(s, node, port).bytes : p->xoff;
	return out;
}

struct mmu_queue_profile queue_profile(
	const struct scenario *s, uint32_t node, uint16_t port, unsigned queue)
{
	const struct sc_queue *q = &port_qos(s, node, port)->queue[queue];

	return (struct mmu_queue_profile){
		.size_bytes = q->size,
		.th = threshold(q->dynamic, q->dynamic_th, q->static_th, s->switches[node].buffer),
	};
}
