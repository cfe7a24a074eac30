/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "models/pfc.h"
#include "pcap/codec.h"
#include "pipelines/replay.h"

#define REPLAY_NONE UINT32_MAX

// A frame of the capture, ready to be copied into a buffer.
struct replay_frame {
	uint64_t at;   // of its bytes in the store
	simtime_t due; // after the start of a loop
	uint32_t len;
	uint32_t next; // of the same class, REPLAY_NONE
	uint32_t flow_hash;
	uint32_t dst;
	uint8_t tc;
	uint8_t flags; // enum frame_flag; without FRAME_F_PARSED the first switch parses
	uint8_t l3_off;
	uint8_t l4_off;
	uint8_t opcode;
};

// The capture in memory.
struct replay_store {
	uint8_t *bytes;
	size_t n_bytes, cap_bytes;
	struct replay_frame *frames;
	uint32_t n_frames, cap_frames;
	uint32_t longest;
	uint64_t duration_ns;
	uint64_t control;
};

// Where each class stands.
struct replay_cursor {
	uint32_t first; // of the class, REPLAY_NONE
	uint32_t next;  // to be sent, REPLAY_NONE when all loops are done
	uint64_t loop;
	simtime_t due;
};

struct replay {
	struct node node; // first
	struct replay_store store;
	struct replay_cursor cursor[PRIO_COUNT];
	struct pfc_rx pauses;
	simtime_t period; // of a loop
	uint64_t loops;   // UINT64_MAX: for ever
	simtime_t start;
	uint32_t room; // of a frame buffer
	bool starved;  // waiting for the pool
	const struct endpoint_table *endpoints;
	uint8_t pfc_enable;
	simtime_t pfc_response;
	uint64_t sent;
	uint64_t received;
};

extern const struct node_ops replay_ops; // replay.c

// replay_store.c
int replay_store_load(
	struct replay_store *s, const char *path, const char *filter, char *err, size_t err_bytes);
void replay_store_fini(struct replay_store *s);
