/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// What the parts of the checker share: check.c looks at frames, check_qp.c finds flows and their
// counterparts, check_seq.c follows requests, check_message.c
// the messages in them, check_resend.c their repetitions and the NAKs that
// ask for them, check_ack.c answers, check_read.c READ responses, check_pause.c pauses,
// check_finding.c keeps what was found.

#include "pcap/check.h"
#include "pcap/codec.h"
#include "pcap/psn.h"

// Power of two. Holes beyond it are forgotten, oldest first.
#define CHECK_HOLES 32
#define CHECK_NAKS  4
#define CHECK_READS 64
// A PSN that is further off than this belongs to another connection of the same queue pair.
#define CHECK_JUMP 65536
// An answer may be captured a little before its request, by another queue of the NIC.
#define CHECK_EARLY_PACKETS 32
#define CHECK_EARLY_NS      10000
// Nobody's acknowledgement timer is shorter: 4.096 us x 2^1 (IBTA 9.7.6.1.3).
#define CHECK_TIMER_MIN_NS 8192
// Requests that a sender who ignores a NAK must have sent for it to be certain.
#define CHECK_IGNORED_PACKETS 4096

// One request packet sent, in a ring by PSN.
struct sent {
	int64_t time_ns;
	uint32_t psn;
	uint16_t ip_id;
	uint8_t op;
	uint8_t ttl;
	bool used, resent, last, ack_req;
	bool done; // an atomic that was answered
};

// PSNs that did not pass in their turn.
struct hole {
	uint32_t psn, n;
	uint64_t frame; // behind the hole
	int64_t time_ns;
	uint64_t acked_frame; // 0: not acknowledged
};

struct read {
	uint32_t psn, n; // n: PSNs of its responses
	uint32_t bytes;
	uint32_t next; // next response's PSN
	uint32_t seen; // responses that passed, repetitions not counted
	int64_t time_ns;
	bool answered, holed, n_sure;
};

// A NAK that waits for the resend it asks for.
struct nak {
	bool pending, rnr;
	bool resent_before; // its packet had been sent again before the NAK passed
	uint32_t psn;
	int64_t time_ns;
	uint64_t frame;
	uint64_t packets;      // requests since
	int64_t rnr_ns;        // time to wait
	uint64_t contradicted; // frame that acknowledges the PSN all the same, 0: none
	uint64_t packets_then;
	uint64_t resend_frame; // first resend, when it began elsewhere
	uint32_t resend_psn;
};

struct seq {
	bool started;
	bool next_sure; // false behind a READ whose responses cannot be counted yet
	uint32_t first, next, una;
	uint32_t unsure_max;  // PSNs behind `next` that may be the READ's
	uint32_t unsure_read; // its PSN
	// message under way: its kind, CHECK_MESSAGES when unknown
	enum check_message kind;
	bool open;
	uint64_t got, want; // want: 0 for SEND
	// repetition under way
	bool in_round;
	uint32_t round_next;
	enum check_cause cause;
	struct nak naks[CHECK_NAKS];
	unsigned n_naks; // pending
	// acknowledgement that came before its request
	uint64_t early_frame;
	uint32_t early_psn;
	int64_t early_ns;
	struct hole holes[CHECK_HOLES];
	unsigned n_holes;
	struct read reads[CHECK_READS];
	uint32_t n_reads; // ever
	struct sent *ring;
	uint32_t ring_size;
	// as responder
	bool msn_known;
	uint32_t msn, msn_psn;
	uint32_t matched; // responses that fitted the counterpart's requests
	int64_t last_cnp_ns;
};

// X(kind, as what it is told when it is explained)
#define CHECK_DOUBTFUL(X)            \
	X(NAK_UNANSWERED, OVERTAKEN) \
	X(RESEND_PSN, OVERTAKEN)     \
	X(NAK_ACKED, OVERTAKEN)      \
	X(LOST_ACKED, PARTIAL)       \
	X(ACK_UNSENT, PARTIAL)       \
	X(RESPONSE, PARTIAL)         \
	X(NAK_REPEATED, PARTIAL)

enum doubt {
#define X(kind, note) DOUBT_##kind,
	CHECK_DOUBTFUL(X)
#undef X
		CHECK_DOUBTS,
};

struct flow {
	struct check_flow f; // first: the result's pointers point here
	struct seq q;
	// violations that reordering, or other paths, explain (check_doubt.c), by enum doubt
	uint64_t doubts[CHECK_DOUBTS];
	uint64_t lost_packets; // acknowledged and never seen
	uint32_t index;
	uint32_t pair_next; // of the same tap and addresses, whichever way
};

#define CM_PENDING 256
struct cm_request {
	bool used;
	uint32_t tap, comm_id, qpn, psn;
	uint8_t path_mtu;
	uint8_t src[16], dst[16];
};

struct check {
	struct check_options opt;
	struct check_result r;
	// taps and the interfaces that lead to them
	struct check_tap *taps;
	uint32_t cap_taps;
	uint32_t *tap_of; // by interface
	uint32_t n_tap_of;
	// flows by hash, and chains of flows between two addresses by another
	struct flow **flows;
	uint32_t *buckets; // index + 1
	uint32_t *pairs;
	uint32_t n_buckets;
	struct flow *last_flow;
	struct check_pause *pauses;
	uint32_t cap_pauses;
	struct check_finding *findings;
	uint32_t cap_findings;
	struct cm_request cm[CM_PENDING];
	uint32_t n_cm;
	bool out_of_memory;
};

// A RoCE packet on its way through the checker.
struct sight {
	const struct stream_frame *frame;
	const struct pkt *p;
	uint32_t tap;
};

// check_finding.c
void check_found(struct check *c, enum check_kind kind, uint32_t tap, struct flow *flow,
	uint64_t frame, int64_t time_ns, const char *format, ...)
	__attribute__((format(printf, 7, 8)));
void check_sample(struct check *c, struct histogram **h, int64_t ns);

// check_doubt.c
void doubt_note(struct flow *f, enum check_kind kind);
// `lossy`: the capture says that it lost frames.
void doubt_settle(struct check *c, bool lossy);

// check_qp.c
// Place in a table of c->n_buckets for two addresses, in either order, at a tap.
uint32_t flow_hash_pair(const struct check *c, uint32_t tap, const uint8_t *src, const uint8_t *dst,
	unsigned addr_bytes);
struct flow *flow_get(struct check *c, const struct sight *s);
struct flow *flow_lookup(struct check *c, uint32_t tap, const uint8_t *src, const uint8_t *dst,
	uint8_t addr_bytes, bool roce1, uint32_t dest_qp, bool create);
// The flow whose requests a response on `f` answers; NULL when that is not known.
struct flow *flow_requester(struct check *c, struct flow *f, const struct sight *s);
void flow_link(struct check *c, struct flow *a, struct flow *b, enum check_pairing how);
// check_cm.c: a management datagram on QP 1.
void check_cm(struct check *c, const struct sight *s);

// check_seq.c
void seq_request(struct check *c, struct flow *f, const struct sight *s);
void seq_start(struct flow *f, uint32_t psn);
struct sent *seq_sent(struct flow *f, uint32_t psn);
struct sent *seq_record(struct check *c, struct flow *f, const struct sight *s);
void seq_mtu(struct flow *f, uint32_t mtu);
// Acknowledges all before `psn`.
void seq_advance(struct flow *f, uint32_t psn);
void seq_end(struct check *c, struct flow *f);

// check_message.c
enum check_message message_of(uint8_t op);
// The next packet of the stream of messages. `in_order`: nothing is missing before it.
void message_packet(struct check *c, struct flow *f, const struct sight *s, bool in_order);

// check_resend.c
void resend_request(struct check *c, struct flow *f, const struct sight *s, uint32_t n);
void resend_hole_open(
	struct check *c, struct flow *f, uint32_t psn, uint32_t n, const struct sight *s);
void resend_acked(struct flow *f, uint32_t psn, const struct sight *s);
// `f`'s responder asks for a resend from the packet's PSN, not before `rnr_ns` if that is not 0.
void resend_nak(struct check *c, struct flow *f, const struct sight *s, int64_t rnr_ns);
void resend_end(struct check *c, struct flow *f);

// check_ack.c
void ack_response(struct check *c, struct flow *f, const struct sight *s);
// check_read.c
void read_request(struct check *c, struct flow *f, const struct sight *s, uint32_t n, bool n_sure);
void read_response(struct check *c, struct flow *q, struct flow *by, const struct sight *s);

// check_pause.c
void check_pause_frame(struct check *c, const struct stream *st, const struct stream_frame *f,
	const struct pkt *p);
void check_pause_end(struct check *c);

// A re-requested part of a READ: which READ it belongs to, NULL: none.
struct read *read_find(struct flow *q, uint32_t psn);

// check_bth.c: the packet alone. CHECK_KINDS: nothing wrong.
enum check_kind bth_judge(const struct pkt *p, char *why, size_t bytes);
