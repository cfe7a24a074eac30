/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Why a frame ended before its destination. One table: enum, counter name and explanation.

#define DROP_REASONS(X)                                                                            \
	X(MALFORMED_ETH, "malformed_eth", "Ethernet header or VLAN tag cut short or unknown type") \
	X(MALFORMED_IP, "malformed_ip", "IP header lengths or version contradict the frame")       \
	X(IP_CHECKSUM, "ip_checksum", "IPv4 header checksum wrong")                                \
	X(MALFORMED_UDP, "malformed_udp", "UDP header or length contradicts the IP payload")       \
	X(MALFORMED_BTH, "malformed_bth", "RoCE headers cut short or of an unknown version")       \
	X(MALFORMED_CONTROL, "malformed_control",                                                  \
		"MAC control frame with unknown opcode or length")                                 \
	X(TTL_EXPIRED, "ttl_expired", "TTL or hop limit ran out")                                  \
	X(NO_ROUTE, "no_route", "no route to the destination address")                             \
	X(NOT_ROUTABLE, "not_routable",                                                            \
		"multicast, broadcast or link-local: answered or ended here")                      \
	X(PG_HEADROOM_FULL, "pg_headroom_full", "lossless PG: headroom exhausted")                 \
	X(PG_SHARED_FULL, "pg_shared_full", "lossy PG: shared buffer threshold reached")           \
	X(QUEUE_FULL, "queue_full", "egress queue limit reached (lossy)")                          \
	X(POOL_FULL, "pool_full", "the switch's buffer is full")                                   \
	X(WRED, "wred", "WRED dropped a not-ECT frame")                                            \
	X(LINK_DOWN, "link_down", "the link is down")                                              \
	X(MTU_EXCEEDED, "mtu_exceeded", "frame longer than the egress port's MTU")                 \
	X(LANE_ERROR, "lane_error", "bit error or injected loss on a lane")                        \
	X(WATCHDOG, "watchdog", "queue in drop state of the PFC watchdog")                         \
	X(NOT_FOR_US, "not_for_us", "NIC: destination MAC or address is another's")                \
	X(NO_QP, "no_qp", "NIC: no such queue pair, or wrong state or transport")                  \
	X(BAD_ICRC, "bad_icrc", "NIC: invariant CRC wrong")                                        \
	X(UNSUPPORTED, "unsupported", "NIC: not RoCE or an opcode it does not speak")              \
	X(RX_OVERRUN, "rx_overrun", "NIC or edge: receive buffer full")                            \
	X(REAL_PORT_TX, "real_port_tx", "real port refused the frame")                             \
	X(EDGE_BUFFER_FULL, "edge_buffer_full", "edge: held more than its buffer while paused")    \
	X(NO_MBUF, "no_mbuf", "frame pool exhausted")                                              \
	X(FAULT, "fault", "dropped by a rule of faults: or events:")                               \
	X(REBOOT, "reboot", "was in the buffer of a switch that rebooted")

enum drop_reason {
#define X(id, name, help) DROP_##id,
	DROP_REASONS(X)
#undef X
		DROP_REASON_COUNT,
};

// Counter name of a reason ("pg_headroom_full"), and one line of help. NULL when out of range.
const char *drop_reason_name(enum drop_reason reason);
const char *drop_reason_help(enum drop_reason reason);
// -1 when the name is unknown.
int drop_reason_by_name(const char *name);
