/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Judging a capture of RoCE traffic: frames are given in the order of the file, counts, times and
// findings come out. See pcap/README.md for what is looked at and pcap/check.c for how.
//
// A *tap* is a place where frames were captured: an interface of the file, or both directions of a
// port that fabemu captured ("sw1:eth0 rx" and "sw1:eth0 tx"). Each tap is judged on its own: one
// packet may have passed several. A *flow* is what one address sends to one queue pair of another,
// at one tap; two flows in opposite directions are a connection once they are paired.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pcap/histogram.h"
#include "pcap/stream.h"
#include "pcap/wire.h"

// X(id, name, violation, help). Violations contradict the protocol or the capture itself; notes are
// unusual and legal.
#define CHECK_FINDINGS(X)                                                                          \
	X(ICRC, "icrc", true, "the ICRC is wrong")                                                 \
	X(IP_CHECKSUM, "ip-checksum", true, "the IPv4 header checksum is wrong")                   \
	X(LENGTH, "length", true, "lengths of headers, payload and pad contradict each other")     \
	X(BTH, "bth", true, "a base transport header that no receiver accepts")                    \
	X(CONTROL, "mac-control", true, "a malformed PAUSE or PFC frame")                          \
	X(OPCODE_ORDER, "opcode-order", true, "first, middle and last packets out of order")       \
	X(MTU, "mtu", true, "a first or middle packet that does not fill the path MTU")            \
	X(DMA_LENGTH, "dma-length", true, "a message is not as long as its RETH says")             \
	X(LOST_ACKED, "lost-acked", true, "acknowledged, but never seen here after what followed") \
	X(ACK_UNSENT, "ack-unsent", true, "acknowledges a PSN that was not sent")                  \
	X(RESPONSE, "response-unasked", true, "a response that no request asked for")              \
	X(RESPONSE_ORDER, "response-order", true, "READ responses of the wrong kind or length")    \
	X(MSN, "msn-backwards", true, "the message sequence number went back")                     \
	X(NAK_UNANSWERED, "nak-unanswered", true, "no resend from the PSN that a NAK asked for")   \
	X(RESEND_PSN, "resend-psn", true, "the resend began behind the PSN that a NAK asked for")  \
	X(NAK_REPEATED, "nak-repeated", true, "a second NAK for one gap")                          \
	X(NAK_ACKED, "nak-acked", true, "a NAK for a PSN that was acknowledged before")            \
	X(RNR_EARLY, "rnr-early", true, "resent before the RNR NAK's timer was over")              \
	X(GAP, "gap", false, "PSNs that did not pass here in their turn")                          \
	X(TIMEOUT, "timeout", false, "a resend that no NAK asked for")                             \
	X(NAK, "nak", false, "a NAK for a PSN sequence error")                                     \
	X(RNR, "rnr", false, "a NAK for a receiver that is not ready")                             \
	X(NAK_FATAL, "nak-fatal", false, "a NAK that ends the connection")                         \
	X(READ_HOLE, "read-hole", false, "READ responses that did not pass here in their turn")    \
	X(REORDERED, "reordered", false, "a packet behind ones that were sent after it")           \
	X(OVERTAKEN, "overtaken", false, "NAKs and resends out of turn, on a path that reorders")  \
	X(PARTIAL, "partial", false, "missing here: other paths, or lost by the capture")          \
	X(RESTART, "restart", false, "the PSNs start anew: another connection of the same QP")     \
	X(OPCODE, "opcode", false, "an opcode of a manufacturer or of none")                       \
	X(NAK_OPEN, "nak-open", false, "the capture ends before a NAK is answered")

enum check_kind {
#define X(id, name, violation, help) CHECK_##id,
	CHECK_FINDINGS(X)
#undef X
		CHECK_KINDS,
};

const char *check_kind_name(enum check_kind kind);
const char *check_kind_help(enum check_kind kind);
bool check_is_violation(enum check_kind kind);

struct check_options {
	bool icrc;             // verify ICRCs
	uint64_t rate_bps;     // of links whose interface does not say, 0: unknown
	uint32_t flows_max;    // 0: CHECK_FLOWS_DEFAULT
	uint32_t findings_max; // kept with their text, 0: CHECK_FINDINGS_DEFAULT; all are counted
};

#define CHECK_FLOWS_DEFAULT    16384
#define CHECK_FINDINGS_DEFAULT 10000

#define CHECK_TEXT_BYTES 160
#define CHECK_NO_FLOW    UINT32_MAX

struct check_finding {
	enum check_kind kind;
	uint32_t tap;
	uint32_t flow; // index, CHECK_NO_FLOW
	uint64_t frame;
	int64_t time_ns;
	char text[CHECK_TEXT_BYTES];
};

// Why packets were sent again.
#define CHECK_CAUSES(X)       \
	X(NAK, "nak")         \
	X(RNR, "rnr")         \
	X(IMPLIED, "implied") \
	X(TIMEOUT, "timeout") \
	X(DUPLICATE, "duplicate")

enum check_cause {
#define X(id, name) CHECK_BY_##id,
	CHECK_CAUSES(X)
#undef X
		CHECK_CAUSE_COUNT,
};

const char *check_cause_name(enum check_cause cause);

enum check_message { CHECK_SEND, CHECK_WRITE, CHECK_READ, CHECK_ATOMIC, CHECK_MESSAGES };

const char *check_message_name(enum check_message m);

enum check_pairing { CHECK_UNPAIRED, CHECK_AMBIGUOUS, CHECK_BY_PSN, CHECK_BY_CM };

const char *check_pairing_name(enum check_pairing p);

struct check_messages {
	uint64_t sent;      // whole, the first time
	uint64_t bytes;     //
	uint64_t completed; // acknowledged
	uint32_t min_bytes, max_bytes;
};

struct check_flow {
	// who to whom
	uint32_t tap;
	uint8_t addr_bytes; // 4 or 16
	bool roce1;
	uint8_t src[16], dst[16];
	uint32_t dest_qp;
	uint16_t sport;
	uint8_t transport; // enum roce_transport of the first packet
	enum check_pairing pairing;
	uint32_t peer;  // the flow in the other direction when paired
	uint32_t mtu;   // path MTU, 0: not known yet
	bool selective; // NAKs say what has arrived

	// what passed
	uint64_t frames, wire_bytes;
	uint64_t payload_bytes; // new: repetitions are not counted
	int64_t first_ns, last_ns;
	uint64_t ops[32]; // by the low five bits of the opcode
	uint64_t ecn[4];  // by enum ecn
	uint64_t cnps;
	struct check_messages messages[CHECK_MESSAGES];

	// requests
	uint64_t gaps, gap_packets;
	uint64_t resent_packets;
	uint64_t resends[CHECK_CAUSE_COUNT]; // rounds
	uint64_t looped;                     // seen again with a lower TTL
	uint64_t reordered;
	uint64_t restarts;

	// responses, by who sends them
	uint64_t acks, naks, rnr_naks, fatal_naks;
	uint64_t duplicate_acks;
	uint64_t read_holes;
	uint64_t unjudged; // responses that could not be held against requests

	// times; NULL before the first sample
	struct histogram *ack_latency;  // of this flow's requests
	struct histogram *read_latency; // request to first response
	struct histogram *nak_to_resend;
	uint64_t nak_packets_sum, nak_packets_max; // requests between NAK and resend
	struct histogram *cnp_interval;
};

// Pauses that one sender asks for at a tap. Priority 8 is link PAUSE.
#define CHECK_PAUSE_CLASSES (PFC_CLASSES + 1)
struct check_pause {
	uint32_t interface; // of the file
	uint8_t src_mac[6];
	uint64_t rate_bps; // 0: unknown, then nothing runs out
	struct check_pause_class {
		uint64_t xoff, xon;
		uint64_t pauses; // times that the class went from running to paused
		uint64_t quanta; // asked for
		int64_t paused_ns;
		int64_t since_ns, until_ns; // of the pause under way
		bool paused;
	} classes[CHECK_PAUSE_CLASSES];
};

struct check_tap {
	char name[STREAM_NAME_BYTES + 16];
	uint64_t frames, bytes;
	uint64_t lost; // frames the capture says it lost
	uint64_t roce, other, cut;
	uint64_t pauses;        // PAUSE and PFC frames
	uint64_t unjudged_icrc; // RoCE frames cut before their ICRC
	uint64_t ecn[4];        // of RoCE frames
	uint64_t cnps;
	uint64_t violations;
	uint64_t flows_refused; // packets of flows beyond flows_max
	int64_t first_ns, last_ns;
};

struct check_result {
	uint64_t frames, bytes;
	bool out_of_memory; // something was not followed or kept
	uint64_t foreign;   // frames of interfaces that are not Ethernet
	uint64_t violations;
	uint64_t counts[CHECK_KINDS];
	uint32_t n_taps, n_flows, n_pauses, n_findings;
	const struct check_tap *taps;
	struct check_flow *const *flows;
	const struct check_pause *pauses;
	const struct check_finding *findings;
};

struct check;

// NULL: out of memory.
struct check *check_new(const struct check_options *options);
// A frame of `s`, in order.
void check_frame(struct check *c, const struct stream *s, const struct stream_frame *f);
// After the last frame: what only the end can tell.
void check_end(struct check *c, const struct stream *s);
// Valid until the next call.
struct check_result check_result(const struct check *c);
void check_free(struct check *c);

// "10.0.0.1", "fe80::1"
void check_address(char *out, size_t bytes, const uint8_t *address, unsigned addr_bytes);
