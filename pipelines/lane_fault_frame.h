/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Between lane_fault.c and lane_fault_frame.c: looking at a frame and changing it.

#include "emu/core/node.h"
#include "models/fault.h"

struct endpoint_table;

// What rules ask of a frame.
struct fault_packet lane_fault_look(const struct endpoint_table *endpoints, const struct frame *f);

// Sets CE. False when the frame is not IP or is marked already.
bool lane_fault_mark(struct frame *f);

// These give back the frame to use instead of `f`, which may be the same, or NULL when there was no
// buffer for its bytes (dropped and counted). `done`: whether there was anything to do.
struct frame *lane_fault_corrupt(
	struct node *n, unsigned port, struct frame *f, struct rng *rng, bool *done);
struct frame *lane_fault_truncate(
	struct node *n, unsigned port, struct frame *f, uint16_t length, bool *done);

// Another frame with the same bytes, counted as created; NULL without a buffer (counted).
struct frame *lane_fault_copy(struct node *n, unsigned port, const struct frame *f);
