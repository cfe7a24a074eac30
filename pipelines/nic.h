/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// The built-in RoCE NIC: a host node with one or more ports, RC queue pairs bound to a port, and
// the flows that load them. Frames carry all real headers; payload and ICRC are a recipe
// (FRAME_F_SYNTH). A NIC makes its frames at the moment they go on the wire, so it never holds any.
//
// Order on a port: PFC frames, then CNPs, then acknowledgements, then data, round-robin over the
// priorities and within each over its queue pairs. A paused priority sends nothing.

#include <rte_byteorder.h>
#include <stdbool.h>
#include <stdint.h>

#include "emu/core/node.h"
#include "models/cc.h"
#include "models/np.h"
#include "models/verbs.h"

#define NIC_DEFAULT_TTL       64
#define NIC_DEFAULT_PAYLOAD   1024
#define NIC_DEFAULT_TIMEOUT   14 // 67.1 ms, what most applications set
#define NIC_DEFAULT_RETRY     7
#define NIC_DEFAULT_RD_ATOMIC 16
#define NIC_DEFAULT_RNR_TIMER 12 // 0.64 ms
#define NIC_RECV_DEPTH_MAX    65536
#define NIC_DEFAULT_RTO_LOW   (100 * SIM_US) // IRN's
#define NIC_DEFAULT_RTO_HIGH  (320 * SIM_US)
#define NIC_PAYLOAD_MAX       9000

struct nic_port_config {
	uint8_t mac[6];
	uint8_t next_hop_mac[6]; // of the switch port at the other end
	uint32_t ip4;            // host byte order, 0: none
	bool has_ip6;
	uint8_t ip6[16];        // network order
	uint32_t endpoint;      // index of these addresses (pipelines/endpoint.h)
	uint8_t pfc_enable;     // bit per priority whose PFC it obeys
	uint8_t pfc_send;       // bit per priority it pauses when its receive buffer fills
	simtime_t pfc_response; // from the arrival of a PFC frame until it takes effect, >= 0
};

enum nic_recovery_kind { NIC_GO_BACK_N, NIC_SELECTIVE_REPEAT };

struct nic_config {
	const char *name;
	unsigned n_ports;
	const struct nic_port_config *ports; // [n_ports], copied
	uint64_t seed;                       // of the run; starting PSNs and QPNs come from it
	uint32_t index;                      // node index in the fabric
	uint16_t payload;   // bytes per packet, 1..NIC_PAYLOAD_MAX; a real NIC's: the path MTU
	uint32_t ack_every; // packets between ACK requests, and between unasked ACKs (>= 1)
	uint32_t window;    // unacknowledged packets per QP, 1..2^23 - 1; 0 = 2^23 - 1
	uint8_t timeout;    // local ACK timeout 4.096 us * 2^timeout, 0 = none, <= 31
	uint8_t retry_cnt;  // 0..7
	uint8_t rnr_retry;  // 0..7, 7 = for ever
	bool ecn_capable;   // ECT(0) in data and ACKs
	bool adaptive;      // adaptive retransmission timer, models/rc_adaptive.h; with go-back-N
	uint8_t max_rd_atomic; // READs and atomics outstanding per QP, as requester and responder,
			       // >= 1
	// Receives of each queue pair that takes messages: so many are posted, one that has
	// completed again after at least 1 / recv_rate seconds since the last. Without one there is
	// an RNR NAK.
	uint32_t recv_depth;   // 0: a receive is always there; else <= 65536
	uint32_t recv_rate;    // per second, 0: again at once
	uint8_t min_rnr_timer; // timer code of RNR NAKs, 0..31
	// Loss recovery, see models/sr.h. Both ends of a flow must have the same.
	enum nic_recovery_kind recovery;
	uint32_t ooo; // packets that may come this far ahead of a missing one before it is reported
	simtime_t ooo_time; // or for this long; 0: however long
	uint64_t bdp_cap;   // payload bytes in flight per QP, in whole packets; 0: `window` only
	// Selective repeat: when it repeats, 0 < low <= high; `timeout` and `retry_cnt` still say
	// when a QP fails.
	simtime_t rto_low, rto_high;
	struct cc_params cc; // congestion control of what its queue pairs send
	struct np_params np; // CNPs for what they receive
	uint8_t cnp_tc;      // class of cnp_dscp = PFC priority of CNPs
	unsigned log_cap;    // events kept
};

// A configuration with the defaults of this file, ack_every 1, ECT(0) and no ports.
struct nic_config nic_config_default(void);

// A node without lanes. Returns 0, -EINVAL (a field out of range) or -ENOMEM.
int nic_create(const struct nic_config *cfg, struct node **out);
void nic_destroy(struct node *n);

// ---- flows -----------------------------------------------------------------------------------

struct nic_flow_config {
	uint32_t flow;     // global index, goes into frame->flow
	unsigned src_port; // of the source node
	unsigned dst_port; // of the destination node
	bool ipv6;         // else IPv4; both ports must have such an address
	bool roce1;        // RoCE v1: GRH, Ethertype 0x8915; not with selective repeat
	enum qp_transport transport;
	enum wr_op op; // one that the transport carries, not SEND_INV; the data of a READ
		       // comes from dst; READ and atomics: not with selective repeat or `ooo`
	uint32_t message_bytes; // 1..2^31; UD: one packet; atomics: 8
	uint64_t messages;      // per QP, 0 = endless
	unsigned qps;           // queue pairs, >= 1
	uint64_t rate_bps;      // payload bits of all QPs together; 0 = as fast as the line allows
	simtime_t start;        // SIMTIME_NEVER: by nic_flow_start() only
	simtime_t stop;         // no new packet from then on; SIMTIME_NEVER: none
	uint8_t dscp;
	uint8_t tc;         // its traffic class = PFC priority, of data and ACKs
	int pcp;            // 0..7: with an 802.1Q tag of VLAN 0; -1: untagged
	uint8_t ttl;        // 0 = NIC_DEFAULT_TTL
	uint16_t udp_sport; // of the first QP, + 1 for each next; 0 = from the QPNs, as rdma-core
};

// Creates the flow's queue pairs on both nodes (built-in NICs, also one and the same). Before the
// run only. Returns 0, -EINVAL (missing address, port or value out of range), -EEXIST (flow index
// taken) or -ENOMEM.
int nic_add_flow(struct node *src, struct node *dst, const struct nic_flow_config *cfg);

// From the timeline, with src->now set: begin or continue sending; send nothing new (what is in
// flight is still acknowledged and repeated if lost). Unknown flows return -ENOENT.
int nic_flow_start(struct node *src, uint32_t flow);
int nic_flow_stop(struct node *src, uint32_t flow);

struct nic_flow_result {
	bool started;
	bool done;       // all bytes sent and acknowledged; UC and UD: sent
	uint8_t status;  // enum wc_status, the first error of its QPs
	simtime_t start; // first start
	simtime_t acked; // when the sender got the last acknowledgement; SIMTIME_NEVER if not done
	simtime_t arrived; // when the receiver got the last byte in order; SIMTIME_NEVER if not all
	simtime_t fct;     // acked - start, SIMTIME_NEVER if not done
	uint64_t bytes;    // asked for, 0 = endless
	// At the receiver of the data (of a READ or atomic the one who asks), in order, once; UC
	// and UD: of complete messages.
	uint64_t delivered_bytes;
	uint64_t delivered_messages; // complete at the receiver
	uint64_t completed_messages; // acknowledged to the sender
	uint64_t goodput_bps;        // delivered bytes from start to the last of them
	uint64_t sent_packets; // with payload (READ, atomics: answers), retransmissions included
	uint64_t retransmitted_packets;
	uint64_t timeouts;
	uint64_t naks; // received by the sender
	// Of its priority at src_port of src, of a READ too: times it became paused, and for how
	// long while it had data to send.
	uint64_t pauses;
	simtime_t paused;
	// Congestion control: of the QPs together the rate now, 0 without; of each the lowest ever.
	uint64_t cc_rate_bps, cc_min_rate_bps;
	uint64_t cnps; // handled
};

// Of a flow that nic_add_flow() gave to `src`. Reads the receiving node too: call it when nothing
// runs, or accept torn figures. Returns 0 or -ENOENT.
int nic_flow_result(const struct node *src, uint32_t flow, struct nic_flow_result *out);

// Flows of `src` that are still to end by themselves: finite, started or with a start time, neither
// done, failed nor stopped. When it is 0 on all NICs nothing more will happen but by the timeline.
uint32_t nic_open_flows(const struct node *src);

// ---- faults and counters ---------------------------------------------------------------------

// The NIC pauses its peer on the priorities of `prio_mask` for exactly `duration` from now
// (src->now set): XOFF, refreshed before it runs out, XON at the end. A second call replaces the
// first.
int nic_pause_storm(struct node *n, unsigned port, uint8_t prio_mask, simtime_t duration);

// For `duration` from now the NIC takes in no more than `rate_bps`, with a receive buffer of so
// many bytes per priority: see nic_slow.c. A second call replaces the first. 0, -EINVAL or -ENOMEM.
int nic_slow_receiver(struct node *n, unsigned port, uint64_t rate_bps, uint32_t buffer_bytes,
	simtime_t duration);

// Names and meanings of mlx5's hw_counters.
#define NIC_COUNTERS(X)                                                         \
	X(rx_write_requests, "RDMA WRITE messages received")                    \
	X(rx_read_requests, "RDMA READ requests received")                      \
	X(rx_atomic_requests, "atomic requests received")                       \
	X(out_of_buffer, "messages refused for want of a receive")              \
	X(out_of_sequence, "request packets that came after a gap")             \
	X(out_of_order_kept, "of these, packets kept for their turn")           \
	X(out_of_order_distance, "PSNs by which one of them was early at most") \
	X(duplicate_request, "request packets received again")                  \
	X(packet_seq_err, "NAKs for a PSN sequence error received")             \
	X(implied_nak_seq_err, "answers to READs found missing by later ones")  \
	X(local_ack_timeout_err, "acknowledgements that did not come in time")  \
	X(req_transport_retries_exceeded, "QPs that ran out of retries")        \
	X(rnr_nak_retry_err, "RNR NAKs received")                               \
	X(req_rnr_retries_exceeded, "QPs that ran out of RNR retries")          \
	X(req_remote_invalid_request, "NAKs for an invalid request received")   \
	X(resp_invalid_request, "request packets out of message order")         \
	X(req_remote_access_errors, "NAKs for a remote access error received")  \
	X(resp_remote_access_errors, "requests for memory not permitted")       \
	X(resp_local_length_error, "messages longer than their receive")        \
	X(resp_cqe_error, "receives completed with an error")                   \
	X(resp_cqe_flush_error, "receives completed flushed")                   \
	X(req_cqe_flush_error, "work requests completed flushed")               \
	X(roce_adp_retrans, "adaptive retransmissions")                         \
	X(roce_adp_retrans_to, "times they reached the configured timeout")     \
	X(req_cqe_error, "work requests completed with an error")               \
	X(np_ecn_marked_roce_packets, "RoCE packets received with CE")          \
	X(np_cnp_sent, "CNPs sent for them")                                    \
	X(rp_cnp_handled, "CNPs received that throttled a sender")              \
	X(rp_cnp_ignored, "CNPs received without DCQCN")                        \
	X(cc_rx_ce_pkts, "packets received with CE")                            \
	X(cc_rx_cnp_pkts, "CNPs received")                                      \
	X(cc_tx_cnp_pkts, "CNPs sent")                                          \
	X(rx_icrc_encapsulated, "RoCE packets received with a wrong ICRC")      \
	X(rdma_tx_packets, "RoCE packets sent")                                 \
	X(rdma_rx_packets, "RoCE packets received")                             \
	X(rdma_tx_bytes, "payload bytes sent")                                  \
	X(rdma_rx_bytes, "payload bytes received, repetitions included")        \
	X(retransmitted_packets, "request packets sent again")                  \
	X(acks_sent, "acknowledgements sent")                                   \
	X(naks_sent, "NAKs sent")                                               \
	X(seq_naks_sent, "of these, for a PSN sequence error")                  \
	X(pool_waits, "times sending waited for a free frame")

struct nic_counters {
#define X(name, help) uint64_t name;
	NIC_COUNTERS(X)
#undef X
};

const struct nic_counters *nic_counters(const struct node *n);
// Value by name; false when there is no such counter.
bool nic_counter_by_name(const struct node *n, const char *name, uint64_t *value);
