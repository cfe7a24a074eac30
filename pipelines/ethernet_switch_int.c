/* SPDX-License-Identifier: BSD-3-Clause */
// In-band telemetry: what a port says of itself to a packet that leaves by it (pcap/int.h).
//
// All queues of the port count together, as HPCC's qlen and txBytes are a port's. Bytes sent are
// those on the wire, preamble and gap included, up to and with this packet: then a port that never
// rests has sent rate x time. What waits is what is behind the packet.

#include "pcap/int.h"
#include "pipelines/ethernet_switch_state.h"

static_assert(FRAME_TAIL_BYTES == INT_BYTES, "the tail is the telemetry");

void switch_int_push(struct ethernet_switch *s, unsigned out, struct frame *f)
{
	const struct switch_port *p = &s->port[out];
	struct int_hop hop = {
		.rate_bps = s->node.ports[out].out->rate_bps,
		.at_ns = (uint64_t)(s->node.now / SIM_NS),
	};

	for (unsigned q = 0; q < QOS_CLASSES; q++) {
		hop.queue_bytes += p->queue[q].bytes;
		hop.tx_bytes += p->queue[q].tx_bytes +
				p->queue[q].tx_frames * (ETH_PREAMBLE_BYTES + ETH_IFG_BYTES);
	}
	int_push(frame_tail(f), (uint16_t)(s->node.index & INT_PATH_MASK), &hop);
}
