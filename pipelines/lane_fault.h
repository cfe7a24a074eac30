/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Faults in the way of a lane's frames: rules (models/fault.h) and bit errors (models/fec.h). See
// lane_fault.c. Created and changed only while nothing runs.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emu/core/node.h"
#include "models/fault.h"
#include "models/fec.h"

struct endpoint_table;

struct lane_fault_rule {
	const struct fault_rule *rule; // must outlive the lane
	uint32_t index;                // of the scenario's rules: events, comments
};

struct lane_fault_config {
	const struct lane_fault_rule *rules; // copied
	uint32_t n_rules;
	const struct endpoint_table *endpoints; // to tell hosts from addresses; may be NULL
	uint64_t seed;                          // of the run
};

// Puts them in the way of `l`. Returns 0, -EINVAL (a rule that contradicts itself) or -ENOMEM.
int lane_fault_create(struct lane *l, const struct lane_fault_config *cfg);
// Frees what lane_fault_create() made, if it did; the lane holds no frames any more.
void lane_fault_destroy(struct lane *l);

// Bit errors from now on; `l` has faults in its way.
void lane_fault_set_ber(struct lane *l, enum fec_code code, double ber);

// What rule `i` of the lane did, false past the last.
struct lane_fault_result {
	uint32_t index;
	uint64_t matched; // frames it is for
	uint64_t applied; // of these, done something to
	uint64_t unknown; // frames of queue pairs beyond FAULT_QPS_MAX
};
bool lane_fault_result(const struct lane *l, uint32_t i, struct lane_fault_result *out);
