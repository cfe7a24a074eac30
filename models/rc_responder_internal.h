/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Shared by the files of the responder: rc_responder.c takes packets, rc_resource.c READs and
// atomics, rc_respond.c sends.

#include "models/rc_responder.h"

// An invalid request; nothing, if the QP has ended already.
int rc_rx_invalid(struct rc_responder *r);
// The QP ends with a NAK; returns `result` with its flags.
int rc_rx_fatal(struct rc_responder *r, uint8_t syndrome, enum rc_rx_result result);

// The expected packet is such a request.
int rc_read_request(struct rc_responder *r, const struct rc_packet *p);
int rc_atomic_request(
	struct rc_responder *r, const struct rc_packet *p, enum wr_op op, struct rc_accept *out);
// A READ again, of all or a part of what the first asked for; or an atomic.
int rc_duplicate_rd_atomic(struct rc_responder *r, const struct rc_packet *p, enum wr_op op);
