/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Loss recovery beyond go-back-N for a reliable connection, at either end; see models/sr.c.
//
// The receiver's half (struct sr_receiver) stands beside an rc_responder whose `keeps` is set: it
// keeps request packets that came too early and hands them out when their turn comes. It serves two
// settings: tolerance of reordering with a sender that goes back N, and selective repeat.
//
//	result = rc_rx_request(r, packet)
//	RC_RX_GAP:       sr_keep(s, r, packet)
//	RC_RX_IN_ORDER:  if (s->n_kept != 0)
//				while (sr_next(s, r, &p)) rc_rx_request(r, &p);
//				sr_caught_up(s, r)
//
// The sender's half (struct sr_sender) stands beside an rc_requester and makes it repeat single
// packets: use sr_rx_ack(), sr_timeout(), sr_rnr_expired() in place of the rc_ functions, and call
// sr_sent() after each packet that was sent again. READs and atomics are not for it.

#include <stdbool.h>
#include <stdint.h>

#include "emu/core/simtime.h"
#include "models/rc.h"

#define SR_WINDOW_MAX 65536 // packets

// ---- receiver --------------------------------------------------------------------------------

struct sr_receiver {
	uint32_t n_kept;
	uint32_t window;    // keeps packets at most so far ahead of the expected one
	uint32_t tolerance; // a gap is reported when a packet more than so far ahead has come,
	simtime_t max_age;  // or any when the gap is older than this
	simtime_t gap_at;   // when what was before the packet now missing had all come, and more
	uint32_t mask;      // of both rings
	uint64_t *have;     // bit of each slot
	struct rc_packet *kept;
	uint32_t newest;  // PSN furthest ahead of those kept, valid while n_kept
	uint32_t trigger; // PSN that came early last
	uint32_t told;    // `newest` as it was when a SACK was last made
	bool selective;   // tell of every early packet, with a SACK
};

// Slots that a window takes: a power of two, a multiple of 64.
uint32_t sr_slots(uint32_t window);

struct sr_receiver_config {
	uint32_t window;    // 1..SR_WINDOW_MAX
	uint32_t tolerance; // packets
	simtime_t max_age;  // SIMTIME_NEVER: no limit
	bool selective;
};

// `have`: sr_slots(window) / 64 words, `kept`: sr_slots(window) packets; the caller's memory. Sets
// r->keeps.
void sr_receiver_init(struct sr_receiver *s, struct rc_responder *r,
	const struct sr_receiver_config *cfg, uint64_t *have, struct rc_packet *kept);

enum sr_verdict {
	SR_DROPPED,   // too far ahead
	SR_DUPLICATE, // has been kept before
	SR_KEPT,
	SR_VERDICT = 0x3,
	SR_RESPOND = 1 << 2, // flag: a NAK is to be sent
};

// A packet for which rc_rx_request() said RC_RX_GAP.
int sr_keep(
	struct sr_receiver *s, struct rc_responder *r, simtime_t now, const struct rc_packet *p);
// The kept packet that `r` expects now, to be given to rc_rx_request(); false when it is not there.
bool sr_next(struct sr_receiver *s, const struct rc_responder *r, struct rc_packet *out);
// To be called when sr_next() has said false after packets were taken: withdraws a NAK that has
// become unnecessary, or renews it for the next gap. True when a response is to be sent.
bool sr_caught_up(struct sr_receiver *s, struct rc_responder *r, simtime_t now);
// What a NAK that is sent now says beyond its PSN. False: nothing.
bool sr_sack(struct sr_receiver *s, const struct rc_responder *r, struct roce_sack *out);

// ---- sender ----------------------------------------------------------------------------------

struct sr_config {
	simtime_t rto_low;  // with at most SR_FEW packets in flight
	simtime_t rto_high; // with more; >= rto_low; 0: none of both
	simtime_t patience; // local ACK timeout: how much silence a retry is worth; 0: any
};

#define SR_FEW 3 // N of the paper

struct sr_sender {
	uint64_t *sacked; // ring of bits by sequence
	uint32_t mask;
	bool recovering;
	bool probing;     // the timeout's packet was not acknowledged yet
	uint64_t swept;   // no bit is set below it
	uint64_t high;    // one beyond the newest known to be there
	uint64_t suspect; // all before it that is not known to be there is lost: after a timeout
	uint64_t again;   // what was lost before it has been sent again
	uint64_t recover; // recovery ends when all before it is acknowledged
	simtime_t rto_low, rto_high, patience;
	simtime_t spend_at; // a timeout from then on takes a retry
	uint64_t recoveries;
};

// `sacked`: sr_slots(q->window) / 64 words. `q` was just initialised with a window of at most
// SR_WINDOW_MAX; its timeout is replaced.
void sr_sender_init(
	struct sr_sender *s, struct rc_requester *q, const struct sr_config *cfg, uint64_t *sacked);

// An ACKNOWLEDGE packet came in, as rc_rx_ack(); `sack` is NULL without one.
int sr_rx_ack(struct sr_sender *s, struct rc_requester *q, simtime_t now, uint32_t psn,
	uint32_t aeth, const struct roce_sack *sack);
// A packet was sent again: rc_tx_next() gave it with `again`.
void sr_sent(struct sr_sender *s, struct rc_requester *q);
// As rc_timeout(). RC_ACK_STALE also when it turns out that the longer timeout applies.
int sr_timeout(struct sr_sender *s, struct rc_requester *q, simtime_t now);
void sr_rnr_expired(struct sr_sender *s, struct rc_requester *q, simtime_t now);
