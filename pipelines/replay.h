/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// A host that replays a capture as its traffic: one port, frames in the capture's order and timing
// (scaled) or as fast as the lane takes them, any number of times. It obeys PFC per priority: a
// paused priority waits, the others go on. What it receives ends there, delivered.
//
// What it does not replay: MAC control frames (PFC of the captured network means nothing here; they
// are counted).

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emu/core/node.h"
#include "pipelines/endpoint.h"

#define REPLAY_REAL_SPEED 1000
// Captures are held in memory; longer ones are refused.
#define REPLAY_BYTES_MAX ((uint64_t)2 << 30)

struct replay_scan {
	uint64_t frames; // to be replayed per loop
	uint64_t bytes;
	uint32_t longest;     // frame, bytes without FCS
	uint64_t duration_ns; // from first to last
	uint64_t control;     // MAC control frames left out
};

// Reads a capture as replay_create() would. Returns 0, or with one line in `err` -EINVAL (no file,
// no Ethernet capture, bad filter, damaged, cut by a snap length, nothing matches), -EFBIG or
// -ENOMEM.
int replay_scan(
	const char *path, const char *filter, struct replay_scan *out, char *err, size_t err_bytes);

struct replay_config {
	const char *name;
	const char *path;
	const char *filter;   // libpcap expression, NULL: every frame
	uint32_t speed_milli; // 1000: as captured, 2000: twice as fast; 0: as fast as the lane
			      // allows
	uint32_t loops;    // 0: for ever; the pause between two is the mean gap of the capture
	simtime_t start;   // of the first frame
	bool rewrite_macs; // source: own; destination: next hop, unless multicast
	uint8_t mac[6];
	uint8_t next_hop_mac[6];
	const struct endpoint_table *endpoints; // complete at the start of the run; NULL: leave it
						// to the first switch to find destinations
	uint8_t pfc_enable;                     // priorities whose PFC it obeys
	simtime_t pfc_response;                 // from the arrival of a PFC frame to its effect
	uint8_t dscp_to_tc[64];                 // of IP frames
	uint8_t pcp_to_tc[8];                   // of tagged frames that are not IP
};

// A node without lanes; needs a pool of full frames (node->pool.full). A frame longer than the
// pool's room is dropped when its turn comes (mtu_exceeded). Errors as replay_scan().
int replay_create(const struct replay_config *cfg, struct node **out, char *err, size_t err_bytes);
void replay_destroy(struct node *n);

struct replay_stats {
	uint64_t frames;   // in the capture, to be replayed per loop
	uint64_t sent;     // so far
	uint64_t control;  // left out per loop
	uint64_t received; // frames delivered here
	bool done;         // all loops sent
};
struct replay_stats replay_get_stats(const struct node *n);
