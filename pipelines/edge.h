/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// The edge: the host node that stands for a real endpoint (a guest's vhost-user port, a tap, a
// netdev) in the fabric. It behaves towards the fabric as a good RoCE NIC would, because the real
// endpoint does not: a kernel rxe knows neither PFC nor CNPs.
//
//	real port --rx--> parse, DSCP, priority --> queue[8] --lane--> switch   (obeys PFC)
//	real port <--tx-- burst, buffer[8]     <-- swallow PFC/CNP <--lane-- switch (sends PFC)
//
// Back-pressure both ways: no frame is taken from the real port while a queue towards the fabric is
// full (a vhost-user guest then simply waits; nothing is lost), and a real port that takes frames
// too slowly makes the edge pause the switch.

#include <stdbool.h>
#include <stdint.h>

#include "emu/core/node.h"
#include "models/cc.h"
#include "models/np.h"

struct endpoint_table;

// A real port. Called on the node's lcore only; must not block.
struct edge_ops {
	// Takes up to `n` frames from the port: mbufs of the pool the port was opened with,
	// complete Ethernet frames without FCS, VLAN tag (if any) in place, no checksum left to
	// fill. The caller owns them.
	unsigned (*rx)(void *port, struct rte_mbuf **m, unsigned n);
	// Offers `n` frames. The port owns the first `returned` of them, the rest stays the
	// caller's (to be offered again). It may use their bytes later but never their pools'
	// lcore caches from another thread.
	unsigned (*tx)(void *port, struct rte_mbuf **m, unsigned n);
	// True while the port cannot exchange frames (guest not connected): what is offered to it
	// is then dropped (real_port_tx) rather than pausing the fabric for ever. NULL: always up.
	bool (*down)(void *port);
};

// What happened to the endpoint's queue pairs, as seen from here; mlx5's names where it has one.
// X(field, help)
#define EDGE_SEEN(X)                                                                       \
	X(rx_write_requests, "RDMA WRITE messages received")                               \
	X(rx_read_requests, "RDMA READ requests received")                                 \
	X(rx_atomic_requests, "atomic requests received")                                  \
	X(out_of_buffer, "RNR NAKs it sent")                                               \
	X(out_of_sequence, "request packets that came after a gap")                        \
	X(duplicate_request, "request packets received again")                             \
	X(rnr_nak_retry_err, "RNR NAKs received")                                          \
	X(packet_seq_err, "NAKs for a PSN sequence error received")                        \
	X(implied_nak_seq_err, "holes in what answered its READs")                         \
	X(local_ack_timeout_err, "times it repeated requests without having been told to") \
	X(req_remote_invalid_request, "NAKs for an invalid request received")              \
	X(req_remote_access_errors, "NAKs for a remote access error received")             \
	X(resp_remote_access_errors, "NAKs for a remote access error sent")                \
	X(rdma_tx_packets, "RoCE packets sent")                                            \
	X(rdma_rx_packets, "RoCE packets received")                                        \
	X(rdma_tx_bytes, "payload bytes sent")                                             \
	X(rdma_rx_bytes, "payload bytes received, repetitions included")                   \
	X(rx_icrc_encapsulated, "RoCE packets received with a wrong ICRC")                 \
	X(cc_rx_cnp_pkts, "CNPs that came for it")                                         \
	X(go_backs, "times it repeated requests, but after an RNR NAK")                    \
	X(seq_naks_sent, "NAKs for a PSN sequence error it sent")                          \
	X(rdma_sends, "SEND messages it sent")                                             \
	X(rdma_recvs, "messages received that use a receive: SENDs and WRITEs with immediate")

// What the edge did on its endpoint's behalf. X(field, help)
#define EDGE_COUNTERS(X)                                                                       \
	X(edge_rx_frames, "frames taken from the real port")                                   \
	X(edge_rx_bytes, "their bytes, without FCS")                                           \
	X(edge_tx_frames, "frames given to the real port")                                     \
	X(edge_tx_bytes, "their bytes, without FCS")                                           \
	X(edge_rx_held, "times reading the real port was suspended: queue to the fabric full") \
	X(edge_tx_busy, "times the real port took fewer frames than offered")                  \
	X(edge_dscp_rewritten, "RoCE frames whose DSCP was set to roce_dscp")                  \
	X(edge_cnp_swallowed, "CNPs that ended here: a kernel rxe does not react to them")     \
	X(edge_control_from_port, "PAUSE/PFC frames from the real port, ignored")              \
	X(edge_local_in, "ARP and ND frames taken from the real port")                         \
	X(edge_materialised, "frames whose payload and ICRC were made for the real port")      \
	X(edge_rx_malformed, "frames from the real port the parser refused (also in drops)")   \
	X(edge_linearised, "frames that arrived in several buffers and were joined")           \
	X(edge_ect_set, "RoCE data frames that were set to ECT(0)")                            \
	X(edge_ce_seen, "RoCE frames that arrived with CE")                                    \
	X(edge_cnp_sent, "CNPs sent for them on the endpoint's behalf")                        \
	X(edge_cnp_unsent, "CNPs not sent: the sender's QP not known yet, or no room")         \
	X(edge_cnp_handled, "CNPs for the endpoint by which a QP was slowed down")             \
	X(edge_cnp_unmatched, "CNPs for a QP not known yet: all unknown ones slow down")       \
	X(edge_qps_paired, "times it was learnt which QP is at the other end of which")        \
	X(edge_cc_held, "frames held until their QP's rate allowed them")                      \
	X(edge_cc_untracked, "frames of more QPs than there is room for: not limited")         \
	X(edge_cc_limited, "QPs limited, as of their last packet")                             \
	X(edge_cc_rate, "their rates now, added up, b/s")                                      \
	X(edge_cc_rate_min, "lowest rate of a QP until now, b/s; 0: none was limited")         \
	EDGE_SEEN(X)

struct edge_counters {
#define X(field, help) uint64_t field;
	EDGE_COUNTERS(X)
#undef X
};

#define EDGE_NO_DSCP (-1)

// What a NIC with DCQCN would do for the endpoint. All zero: nothing.
struct edge_cc_config {
	struct cc_params cc; // CC_NONE or CC_DCQCN: limits what it sends
	struct np_params np; // answers what it gets with CE
	bool ect0;           // its RoCE data becomes ECT(0) if it is not ECT
};

// One port of a host: a fabric port and the real port behind it.
struct edge_port_config {
	const struct edge_ops *ops;
	void *port;              // ops' argument; must outlive the node
	uint8_t mac[6];          // of this port, and of the endpoint until it sends with another
	bool learn_mac;          // the endpoint's MAC is not `mac`: ask for it (ARP) and learn it
	uint32_t ip4;            // of the endpoint, host byte order; 0: none
	uint8_t next_hop_mac[6]; // of the switch port it is connected to; all zero: as sent
	uint16_t mtu;            // IP MTU; longer frames are dropped (mtu_exceeded)
};

struct edge_config {
	const char *name;
	const struct edge_port_config *ports; // copied
	unsigned n_ports;
	const struct endpoint_table *endpoints; // to fill frame.dst; must outlive the node
	uint8_t pfc_mask;                       // priorities that obey and send PFC
	int roce_dscp; // 0..63: RoCE frames get this DSCP; EDGE_NO_DSCP: left as sent
	uint8_t dscp_to_tc[64];
	uint8_t pcp_to_tc[8];     // tagged frames that are not IP,
	bool trust_pcp;           // or all tagged frames
	uint32_t rx_queue_bytes;  // per port and priority, towards the fabric; 0: default
	uint32_t tx_buffer_bytes; // per port and priority, towards the real port; 0: default
	simtime_t pause_response; // from the arrival of a PFC frame to its effect
	bool counters;            // EDGE_SEEN; cc needs and so implies it
	struct edge_cc_config cc;
};

#define EDGE_RX_QUEUE_BYTES  (128u << 10)
#define EDGE_TX_BUFFER_BYTES (1u << 20)

// Creates the node. The engine attaches lanes and pools (pool.full holds what real ports receive).
// Returns 0, -ENOMEM or -EINVAL (a map entry above 7, an MTU of 0, no ports, an algorithm
// that needs more than CNPs).
int edge_create(const struct edge_config *cfg, struct node **out);
void edge_destroy(struct node *n);

const struct edge_counters *edge_counters(const struct node *n, unsigned port);

// Name and value of counter `i` of a port, false past the last: for reports and `expect:`.
bool edge_counter_at(
	const struct node *n, unsigned port, unsigned i, const char **name, uint64_t *value);
