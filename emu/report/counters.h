/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Port counters by name. Names follow mlx5's `ethtool -S` where it has one.

#include <stdbool.h>
#include <stdint.h>

#include "emu/core/node.h"

#define COUNTER_NAME_MAX 40

// Sums over the priorities. X(name, field of struct port_traffic, help)
#define PORT_SUM_COUNTERS(X)                                    \
	X("rx_packets", rx_frames, "frames received")           \
	X("rx_bytes", rx_bytes, "bytes received, FCS included") \
	X("tx_packets", tx_frames, "frames sent")               \
	X("tx_bytes", tx_bytes, "bytes sent, FCS included")

// X(name, field, help)
#define PORT_COUNTERS(X)                                                      \
	X("rx_global_pause", rx_global_pause, "802.3x PAUSE frames received") \
	X("rx_pause_ignored", rx_pause_ignored, "pauses received for priorities without PFC")

// X(name with %u for the priority, field of struct port_traffic, help)
#define PORT_TRAFFIC_COUNTERS(X)                                       \
	X("rx_prio%u_packets", rx_frames, "frames received")           \
	X("rx_prio%u_bytes", rx_bytes, "bytes received, FCS included") \
	X("tx_prio%u_packets", tx_frames, "frames sent")               \
	X("tx_prio%u_bytes", tx_bytes, "bytes sent, FCS included")

// X(name with %u for the priority, field, help)
#define PORT_PRIO_COUNTERS(X)                                                                    \
	X("rx_prio%u_pause", rx_pause, "PFC frames received that name the priority")             \
	X("tx_prio%u_pause", tx_pause, "PFC frames sent that name the priority")                 \
	X("rx_prio%u_pause_duration", rx_pauses.duration, "ps this port was paused")             \
	X("tx_prio%u_pause_duration", tx_pauses.duration, "ps this port paused its peer")        \
	X("rx_prio%u_pause_transition", rx_pauses.transitions, "pauses of this port that ended") \
	X("tx_prio%u_pause_transition", tx_pauses.transitions, "pauses of its peer that ended")  \
	X("tx_prio%u_ecn_marked", ecn_marked, "frames marked CE here")                           \
	X("rx_prio%u_ce", ce_seen, "frames that arrived with CE")                                \
	X("rx_prio%u_discards", prio_drops, "frames dropped here, all reasons")                  \
	X("rx_prio%u_buf_discard", rx_buf_discard, "frames a NIC's receive buffer had no room for")

// Counters are numbered: the tables in this order, those by priority once for each, then
// "drop_<reason>" for each reason of emu/core/drop.h, and "drops", their sum.
unsigned port_counter_count(void);
// buf[COUNTER_NAME_MAX]; returns it.
char *port_counter_name(unsigned id, char *buf);
uint64_t port_counter_value(const struct port_counters *c, unsigned id);
// What a host's device counts besides: a built-in NIC (mlx5's hw_counters, on its first port), the
// edge of a real endpoint. Values are an array in the order of the device's own table.
enum device_kind { DEVICE_NONE, DEVICE_NIC, DEVICE_EDGE, DEVICE_KIND_COUNT };

unsigned device_counter_count(enum device_kind kind);
const char *device_counter_name(enum device_kind kind, unsigned id);
const char *device_counter_help(enum device_kind kind, unsigned id);

// True for counters that hold picoseconds.
bool port_counter_is_time(unsigned id);
