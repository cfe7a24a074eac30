/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Materialise on observation: the complete bytes of a frame whose payload and ICRC exist only as a
// recipe (FRAME_F_SYNTH), for a capture or a real port.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emu/core/frame.h"

// Writes the first min(f->len, cap) bytes of the frame and returns how many. Given room for all, a
// synthetic frame comes out as a valid RoCE packet: its headers, payload of the flow's pattern,
// pad, ICRC. A frame that really has its bytes is copied.
//
// A synthetic frame has head_len bytes up to and including its last extension header; its len is
// head_len + payload_len + BTH pad + ICRC (+ nothing: IP length ends the packet, and what len has
// beyond it is zero Ethernet padding, or the frame's tail).
unsigned frame_materialise(const struct frame *f, uint8_t *out, size_t cap);

// A synthetic frame with all its bytes, in a frame of `pool` (of full ones) in place of `f`, which
// is freed. NULL, and `f` as it was, without a pool or a frame of it.
struct frame *frame_complete(struct rte_mempool *pool, struct frame *f);

// The recipe by itself, for one who keeps it after the frame is gone.
struct frame_recipe {
	uint64_t payload_pos;
	uint32_t flow;
	uint16_t len; // of the whole frame
	uint16_t head_len;
	uint16_t payload_len;
	uint8_t l3_off;
	uint8_t bth_off;
	bool synth; // false: head_len == len and the rest does not matter
	uint8_t tail_len;
	uint8_t tail[FRAME_TAIL_BYTES]; // its last bytes
};

struct frame_recipe frame_recipe_of(const struct frame *f);
// `head`: the frame's first r->head_len bytes.
unsigned recipe_materialise(
	const struct frame_recipe *r, const uint8_t *head, uint8_t *out, size_t cap);

// Payload of a built-in NIC's flow: byte x of flow f is byte x mod 8 (little-endian) of
// mix64(mix64(f + 1) + (x / 8) * 0x9e3779b97f4a7c15), a SplitMix64 stream per flow that can be
// entered anywhere. Any byte lost, moved, repeated or of another flow shows.
void payload_pattern_fill(uint32_t flow, uint64_t pos, uint8_t *out, size_t n);

// How many of the `n` bytes at `p` match from the start; n when all do.
size_t payload_pattern_check(uint32_t flow, uint64_t pos, const uint8_t *p, size_t n);
