/* SPDX-License-Identifier: BSD-3-Clause */
// What happened to a frame, in words.
#include <inttypes.h>
#include <stdio.h>

#include "emu/capture/internal.h"
#include "models/fault.h"

void capture_comment(const struct capture *c, char *out, size_t bytes, enum observe_what what,
	uint64_t a, uint64_t b)
{
	const char *reason, *done;

	switch (what) {
	case OBS_PASS:
		out[0] = '\0';
		break;
	case OBS_DROP:
		reason = drop_reason_name((enum drop_reason)a);
		snprintf(out, bytes, "dropped: %s", reason ? reason : "unknown reason");
		break;
	case OBS_ECN:
		snprintf(
			out, bytes, "ECN marked at queue %" PRIu64 " with %" PRIu64 " bytes", a, b);
		break;
	case OBS_PFC_XOFF:
		snprintf(out, bytes, "PFC XOFF by PG %" PRIu64 " at %" PRIu64 " bytes", a, b);
		break;
	case OBS_PFC_XON:
		snprintf(out, bytes, "PFC XON by PG %" PRIu64 " at %" PRIu64 " bytes", a, b);
		break;
	case OBS_DEADLOCK:
		snprintf(out, bytes, "deadlock #%" PRIu64, a);
		break;
	case OBS_FAULT:
		done = fault_action_done((enum fault_action)b);
		if (a < c->n_fault_names)
			snprintf(out, bytes, "fault %s: %s", c->fault_names[a], done ? done : "?");
		else
			snprintf(out, bytes, "fault %" PRIu64 ": %s", a, done ? done : "?");
		break;
	}
}
