/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Communication management of one port: how two queue pairs come to be connected, and apart again,
// with the messages of pcap/mad.h and the habits of Linux's ib_cm and rdma_cm. A pure state
// machine; see cm.c for the protocol.
//
//	application                      wire
//	cm_listen, cm_connect            cm_rx(received MAD)
//	cm_accept, cm_reject             cm_next_mad: MADs to send from queue pair 1
//	cm_disconnect, cm_destroy        cm_tick at cm->deadline
//	cm_next_event
//
// After each call the caller takes out all MADs and events: their queues are short, and what finds
// them full is refused (-EAGAIN) or, when it came from the wire, lost and repeated by the peer.

#include <stdbool.h>
#include <stdint.h>

#include "emu/core/simtime.h"
#include "pcap/mad.h"

#define CM_LISTENERS   16
#define CM_QUEUE       32
#define CM_IDS_MAX     4096
#define CM_PRIVATE_MAX 224
#define CM_AS_ASKED    255         // of cm_accept: as many as the peer asked for
#define CM_MTU_MAX     5           // path MTUs are 1..5: 128 << n bytes
#define CM_UD_QKEY     0x01234567u // RDMA_UDP_QKEY: of all UD queue pairs of rdma_cm

// States of an ID (IBTA vol. 1, 12.9.5 and 12.9.6), named as in enum ib_cm_state:
// X(id, help).
#define CM_STATES(X)                                                   \
	X(FREE, "slot not in use")                                     \
	X(IDLE, "nothing sent, or over")                               \
	X(REQ_SENT, "asked, waits for REP")                            \
	X(MRA_REQ_RCVD, "asked, peer says it takes time")              \
	X(REQ_RCVD, "was asked, the application decides")              \
	X(MRA_REQ_SENT, "was asked, told the peer that it takes time") \
	X(REP_SENT, "accepted, waits for RTU")                         \
	X(MRA_REP_RCVD, "accepted, peer says it takes time")           \
	X(ESTABLISHED, "connected")                                    \
	X(DREQ_SENT, "disconnecting, waits for DREP")                  \
	X(TIMEWAIT, "over; packets may still be on the way")           \
	X(SIDR_REQ_SENT, "asked for a datagram service")               \
	X(SIDR_REQ_RCVD, "was asked for a datagram service")           \
	X(SIDR_REP_SENT, "answered for a datagram service; repeats it if asked")

enum cm_state {
#define X(id, help) CM_##id,
	CM_STATES(X)
#undef X
};

const char *cm_state_name(enum cm_state state);

// What an application hears, with the names of rdma_cm: X(id, name).
#define CM_EVENTS(X)                                        \
	X(CONNECT_REQUEST, "RDMA_CM_EVENT_CONNECT_REQUEST") \
	X(ESTABLISHED, "RDMA_CM_EVENT_ESTABLISHED")         \
	X(REJECTED, "RDMA_CM_EVENT_REJECTED")               \
	X(UNREACHABLE, "RDMA_CM_EVENT_UNREACHABLE")         \
	X(DISCONNECTED, "RDMA_CM_EVENT_DISCONNECTED")       \
	X(TIMEWAIT_EXIT, "RDMA_CM_EVENT_TIMEWAIT_EXIT")

enum cm_event_type {
#define X(id, name) CM_EV_##id,
	CM_EVENTS(X)
#undef X
};

const char *cm_event_name(enum cm_event_type type);

// X(id, help)
#define CM_COUNTERS(X)                                                     \
	X(rx_mads, "MADs received")                                        \
	X(tx_mads, "MADs sent")                                            \
	X(tx_retries, "MADs sent again because no answer came")            \
	X(rx_duplicates, "MADs received that had been received before")    \
	X(rx_unmatched, "MADs received that belong to nothing known here") \
	X(rx_malformed, "MADs received that cannot be understood")         \
	X(rx_no_room, "MADs received and dropped for want of room")

struct cm_counters {
#define X(id, help) uint64_t id;
	CM_COUNTERS(X)
#undef X
};

// A connection as this end sees it: what its queue pair must be set to.
struct cm_conn {
	uint8_t local_gid[GID_BYTES], remote_gid[GID_BYTES];
	uint32_t local_qpn, remote_qpn;
	uint32_t rq_psn; // first that comes in
	uint32_t sq_psn; // first to send
	uint32_t qkey;   // UD
	uint32_t flow_label;
	uint16_t remote_port;        // rdma_cm: the caller's port
	uint8_t transport;           // enum cm_transport
	uint8_t mtu;                 // 1..CM_MTU_MAX
	uint8_t responder_resources; // READs and atomics of the peer's that we serve at a time
	uint8_t initiator_depth;     // READs and atomics of ours that the peer serves at a time
	uint8_t ack_timeout;         // exponent, see rc_ack_timeout()
	uint8_t retry_count;
	uint8_t rnr_retry;
	uint8_t traffic_class, hop_limit;
};

// One side of a connection, or a question for a datagram service. The application has it from
// cm_connect() or a CONNECT_REQUEST until cm_destroy().
struct cm_id {
	struct cm_conn conn; // remote part: from CONNECT_REQUEST or ESTABLISHED on
	uint64_t user;       // the application's
	uint64_t service_id;
	uint8_t state; // enum cm_state
	// the machine's own
	bool orphan; // the application has let go of it
	bool active; // we asked
	uint8_t retries_left, max_retries;
	uint32_t comm_id, remote_comm_id;
	uint64_t remote_guid;
	uint64_t tid;
	simtime_t deadline;     // SIMTIME_NEVER: nothing due
	simtime_t interval;     // between repetitions
	uint8_t msg[MAD_BYTES]; // last message sent: to repeat
};

struct cm_event {
	enum cm_event_type type;
	struct cm_id *id;
	uint64_t listener; // CONNECT_REQUEST: `user` of the listener
	int status;        // REJECTED: reason (enum cm_rej_reason) or, of a datagram service, enum
			   // cm_sidr_status; UNREACHABLE: -ETIMEDOUT
	uint8_t private_len; // the whole field of the message: what was not used is zero
	uint8_t private_data[CM_PRIVATE_MAX];
};

struct cm_out {
	uint8_t src_gid[GID_BYTES], dst_gid[GID_BYTES];
	uint8_t mad[MAD_BYTES];
};

struct cm_listener {
	uint64_t service_id;
	uint64_t user;
	uint8_t transport;
	bool used;
};

// Time exponents stand for 4.096 us * 2^n; the defaults are rdma_cm's for RoCE.
#define CM_RESPONSE_TIMEOUT 20 // 4.3 s
#define CM_MAX_RETRIES      15
#define CM_PACKET_LIFETIME  18 // 1.07 s
#define CM_ACK_DELAY        15 // 134 ms
#define CM_SERVICE_TIMEOUT  24 // 69 s

struct cm_config {
	uint64_t guid; // of the adapter: tells peers' connections apart
	uint64_t seed; // of communication IDs
	uint8_t mtu;   // largest path MTU, 1..CM_MTU_MAX
	uint8_t response_timeout;
	uint8_t max_retries; // of REQ, REP, DREQ, SIDR_REQ: 0..15
	uint8_t packet_lifetime;
	uint8_t ack_delay;
	uint8_t service_timeout; // what an MRA asks for
};

struct cm {
	struct cm_config cfg;
	struct cm_id *ids; // the caller's memory
	unsigned n_ids;
	uint32_t salt;
	simtime_t deadline; // when cm_tick() is due
	struct cm_listener listeners[CM_LISTENERS];
	struct cm_counters counters;
	struct cm_out out[CM_QUEUE];
	struct cm_event events[CM_QUEUE];
	struct cm_event unheard;                       // where an orphan's event goes
	unsigned out_head, out_tail, ev_head, ev_tail; // count up
};

// n_ids: 1..CM_IDS_MAX
void cm_init(struct cm *cm, const struct cm_config *cfg, struct cm_id *ids, unsigned n_ids);

// ---- application ------------------------------------------------------------------------------

// Requests for this service become CONNECT_REQUEST events. 0, -EADDRINUSE, -ENOMEM (too many).
int cm_listen(struct cm *cm, uint64_t service_id, enum cm_transport transport, uint64_t user);
void cm_unlisten(struct cm *cm, uint64_t service_id);

struct cm_connect {
	uint8_t local_gid[GID_BYTES], remote_gid[GID_BYTES];
	uint64_t service_id;
	uint64_t user;
	uint32_t qpn, psn; // ours; psn: the first we want to receive. Not for UD.
	uint32_t flow_label;
	uint16_t port; // ours, for rdma_cm's header
	uint8_t transport;
	uint8_t mtu;
	uint8_t responder_resources, initiator_depth;
	uint8_t retry_count, rnr_retry;
	uint8_t traffic_class, hop_limit;
	uint8_t private_len; // at most cm_private_room()
	const void *private_data;
};

// Asks for a connection, or with CM_UD for the queue pair behind a service. 0, -ENOMEM (no ID
// free), -EINVAL (private data too long, MTU), -EAGAIN.
int cm_connect(struct cm *cm, simtime_t now, const struct cm_connect *c, struct cm_id **out);

// Bytes of private data that fit into a request.
unsigned cm_private_room(uint64_t service_id, enum cm_transport transport);

struct cm_accept {
	uint32_t qpn, psn;                            // ours
	uint32_t qkey;                                // UD
	uint8_t responder_resources, initiator_depth; // at most what was asked for
	uint8_t rnr_retry;                            // the peer's
	uint8_t private_len;
	const void *private_data;
};

// Answers to a CONNECT_REQUEST. 0, -EINVAL (not asked any more; private data too long), -EAGAIN.
int cm_accept(struct cm *cm, simtime_t now, struct cm_id *id, const struct cm_accept *a);
int cm_reject(struct cm *cm, simtime_t now, struct cm_id *id, uint16_t reason,
	const void *private_data, uint8_t private_len);

// The queue pair of an accepted connection received something: the peer is ready, whatever happened
// to its RTU (IBTA 11.6.3.2, communication established).
int cm_established(struct cm *cm, simtime_t now, struct cm_id *id);

// Ends a connection; DISCONNECTED comes when the peer has agreed or does not answer. 0 also when
// there is nothing left to end.
int cm_disconnect(struct cm *cm, simtime_t now, struct cm_id *id);

// The application forgets the ID: no more events, `id` is no longer valid. A connection is ended.
// 0 or -EAGAIN.
int cm_destroy(struct cm *cm, simtime_t now, struct cm_id *id);

bool cm_next_event(struct cm *cm, struct cm_event *out);

// ---- wire -------------------------------------------------------------------------------------

// A MAD came to queue pair 1.
void cm_rx(struct cm *cm, simtime_t now, const uint8_t src_gid[GID_BYTES],
	const uint8_t dst_gid[GID_BYTES], const uint8_t *mad, uint32_t len);

bool cm_next_mad(struct cm *cm, struct cm_out *out);

// To be called at or after cm->deadline.
void cm_tick(struct cm *cm, simtime_t now);

// IDs in use, those that the application has let go of included.
unsigned cm_in_use(const struct cm *cm);

// 4.096 us * 2^exponent (IBTA 12.7), exponent 0..31.
static inline simtime_t cm_time(unsigned exponent)
{
	return (simtime_t)4096 * SIM_NS << exponent;
}
