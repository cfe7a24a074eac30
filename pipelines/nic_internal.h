/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// State of the built-in NIC, shared by its files:
//
//	nic.c       life, timers, invariants        nic_tx.c    which frame goes next, its headers
//	nic_flow.c  flows and their queue pairs     nic_rx.c    arriving frames
//	nic_qp.c    making queue pairs              nic_extra.c all but WRITE and SEND over RC
//	nic_pfc.c   pauses felt and storms made     nic_recovery.c  selective repeat, tolerance
//	nic_cc.c    congestion control: rates, CNPs  nic_feedback.c  what ACKs tell it
//
// A queue pair that has something to send is in one FIFO of its port and class; what it sends is
// decided when its turn comes. Acknowledgements likewise: the queue pair waits in a FIFO and the
// frame is made with the newest state, so that ACKs merge while the port is paused or busy and the
// NIC needs no memory for them.

#include <stdalign.h>

#include "models/cc.h"
#include "models/np.h"
#include "models/pfc.h"
#include "models/rc.h"
#include "models/sr.h"
#include "models/uc.h"
#include "models/ud.h"
#include "pcap/mad.h"
#include "pipelines/nic.h"

#define NIC_QPN_FIRST 0x100 // below: reserved and management queue pairs

// Ethernet 14, 802.1Q 4, IPv6 40, UDP 8, BTH 12, rounded up to a copy of whole vectors.
#define NIC_TEMPLATE_BYTES 80

enum nic_timer {
	NIC_TIMER_FLOW_START, // arg: index in flows[]
	NIC_TIMER_FLOW_STOP,
	NIC_TIMER_ACK,    // arg: queue pair index
	NIC_TIMER_RNR,    //
	NIC_TIMER_PACE,   //
	NIC_TIMER_PFC,    // arg: see nic_pfc.c
	NIC_TIMER_RESUME, // arg: port * 8 + priority
	NIC_TIMER_STORM,  // arg: port
	NIC_TIMER_POOL,   //
	NIC_TIMER_SLOW,   //
	NIC_TIMER_SLOW_END,
	NIC_TIMER_CC,          // arg: queue pair index
	NIC_TIMER_VERBS_START, // arg: application
	NIC_TIMER_VERBS_ACK,   // arg: verbs_qp.index
	NIC_TIMER_VERBS_RNR,   //
	NIC_TIMER_VERBS_CM,    //
};

enum nic_ready { NIC_IDLE, NIC_QUEUED, NIC_PACED };

// All that is the same in every frame of a queue pair that stands at the same place in its message:
// the constant middle part of `struct frame`, and the headers up to the BTH with their lengths and
// checksum (the IPv4 identification of a DF packet may be constant, RFC 6864). Making a frame is
// copying this and writing the PSN.
#define NIC_FRAME_OFFSET offsetof(struct frame, flow_hash)
#define NIC_FRAME_BYTES  32
static_assert(NIC_FRAME_OFFSET + NIC_FRAME_BYTES == offsetof(struct frame, payload_pos),
	"flow_hash .. flow are one block");

struct nic_shape {
	alignas(RTE_CACHE_LINE_MIN_SIZE) uint8_t frame[NIC_FRAME_BYTES];
	uint8_t head[NIC_TEMPLATE_BYTES];
};

// Shapes: those of enum rc_place, and the acknowledgement.
enum { NIC_SHAPE_ACK = RC_ONLY + 1, NIC_SHAPES };

// What a queue pair has for more than going back N.
struct nic_recovery {
	struct nic_shape sack; // a NAK with a SACK
	struct sr_sender tx;   // valid if `selective`
	struct sr_receiver rx; // valid if its resp.keeps
	bool selective;        // it sends, and repeats selectively
	uint64_t *sacked, *have;
	struct rc_packet *kept;
};

// What a queue pair has for more than WRITE and SEND over RC with a receive always there.
struct nic_extra {
	struct uc_responder uc;
	struct ud_receiver ud;
	struct rc_rq rq;
	struct rc_recv *ring; // NULL: a receive is always there
	struct rc_resource *resources;
	uint32_t recv_depth;
	simtime_t recv_interval; // between receives posted again, 0: at once
	simtime_t recv_at;       // when the last one was, or could have been
	uint32_t message_bytes;
	uint64_t word;            // what atomics work on
	uint32_t next_answer;     // PSN of the next answer that is none again
	uint64_t answers;         // sent
	uint64_t answers_again;   // of these, sent before
	uint64_t bytes, messages; // delivered here; UC, UD, and answers
	simtime_t last_at;        // when `bytes` grew last
};

// A packet sent that asked for an acknowledgement.
struct nic_probe {
	uint64_t seq;
	simtime_t at;
};

#define NIC_PROBES 256u // per queue pair; while all wait nothing more is timed

// A queue pair's sender, if its rate or window is controlled.
struct nic_cc {
	struct cc cc;
	unsigned needs;           // enum cc_needs
	uint8_t ttl;              // that the flow's packets begin with
	uint32_t oldest, newest;  // free-running: probes[oldest..newest) wait
	struct nic_probe *probes; // [NIC_PROBES], NULL: no RTTs are needed
	uint64_t byte_time;       // of its rate on the wire, 0: the line's
	uint64_t rate_bps;        // that byte_time is for
	uint64_t window_bytes;    // that the transport's window is for
	simtime_t pace_at;        // when its rate allows the next packet
	simtime_t app_at;         // when the flow's own rate does
	uint32_t pace_frac;       // of pace_at, as nic_qp's
	simtime_t timer_at; // when the next NIC_TIMER_CC comes; SIMTIME_NEVER: none is on its way
	bool sent;          // something since the last of them
	uint64_t cnps;
};

// A queue pair's receiver, if the sender wants to know how its packets came.
struct nic_echo {
	bool ce;                        // one since the last acknowledgement was marked
	uint8_t tail[FRAME_TAIL_BYTES]; // telemetry of the newest, if wanted
};

// A queue pair's receiver, on a NIC that sends CNPs.
struct nic_np {
	struct nic_shape cnp;
	struct np_clock clock;
	struct nic_qp *next_cnp;
	bool queued;
	uint8_t psn_off; // in the CNP's frame
};

struct nic_qp {
	// scheduling
	struct nic_qp *next_ready;
	struct nic_qp *next_ack;
	uint32_t flow; // global index
	uint16_t port;
	uint8_t transport; // enum qp_transport
	bool plain;        // it sends WRITEs or SENDs over RC
	uint8_t tc;
	uint8_t psn_off; // of the BTH's last word, in a frame
	uint8_t ready;   // enum nic_ready
	bool ack_queued;
	bool answers;          // answers to READs or atomics wait
	bool ended;            // requester: done or failed
	bool paced;            // pace_time or cc
	bool ack_tells;        // its ACKs are for more than the transport: rec or cc
	uint64_t pace_time;    // byte time of its rate, 0: not limited
	uint64_t payload_base; // of the QP's stream in the flow's
	simtime_t timer_at; // when the next NIC_TIMER_ACK comes; SIMTIME_NEVER: none is on its way
	struct nic_recovery *rec; // NULL: it goes back N and keeps nothing
	struct nic_cc *cc;        // NULL: it sends as fast as pace_time lets it

	alignas(RTE_CACHE_LINE_MIN_SIZE) struct rc_requester req;
	struct nic_shape shape[NIC_SHAPES];
	alignas(RTE_CACHE_LINE_MIN_SIZE) struct rc_responder resp;

	simtime_t pace_at;
	uint32_t pace_frac; // of a picosecond, in units of 2^-BYTE_TIME_SHIFT
	uint32_t qpn;
	bool ipv6; // GIDs are IPv6 addresses
	bool roce1;

	// cold
	struct nic_extra *extra; // NULL: see there
	struct nic_np *np;       // NULL: no CNPs
	struct nic_echo *echo;   // NULL: ACKs are for the transport only
	uint32_t flow_local;     // index in the sender's flows[]
	uint64_t retransmitted;
	uint64_t timeouts;
	uint64_t naks;
	uint8_t peer_ip[16]; // 4 bytes for IPv4
};

static_assert((sizeof(struct nic_qp) & (sizeof(struct nic_qp) - 1)) != 0,
	"queue pairs a power of two apart would compete for the same cache sets");

struct nic_flow {
	struct nic_flow_config cfg;
	uint32_t first_qp, peer_first_qp;
	struct nic *peer;
	struct rc_wqe *sq; // [cfg.qps]: each queue pair's send queue, one work request
	uint32_t msg_pkts; // packets per message
	uint32_t qps_left; // neither done nor failed
	uint8_t status;
	bool started, stopped;
	simtime_t started_at, ended_at;
	simtime_t paused_before; // nic_paused_total() at the start
	uint64_t pauses_before;  // n_pauses likewise
	uint64_t pauses;         // at the end
	simtime_t paused;        // at the end
};

struct nic_qp_fifo {
	struct nic_qp *head, *tail;
};

struct nic_port {
	uint8_t ack_mask;   // classes with an acknowledgement waiting
	uint8_t ready_mask; // classes with data waiting
	uint8_t next_tc;    // where the next round of data starts
	bool down;
	bool pool_wait; // a NIC_TIMER_POOL is on its way
	bool pfc_due;   // a PFC frame is to be sent
	bool cnp_due;   // a CNP waits
	bool verbs_due; // something of an application's waits
	struct pfc_rx pauses;
	uint64_t n_pauses[PRIO_COUNT]; // times each priority became paused
	struct nic_qp_fifo ready[PRIO_COUNT];
	struct nic_qp_fifo acks[PRIO_COUNT];
	struct nic_qp_fifo cnps;
	struct np *np; // NULL: none are sent

	struct nic_slow *slow; // slow receiver, NULL: never was
	struct pfc_tx storm;   // pauses it makes
	simtime_t storm_end;
	uint8_t storm_prios; // that a storm pauses,
	uint8_t slow_prios;  // and a full receive buffer
	struct nic_port_config cfg;
};

struct nic {
	struct node node;
	struct nic_port *ports;
	struct nic_qp *qps;
	uint32_t n_qps;
	uint32_t qpn_first;
	struct nic_counters ctr;

	uint32_t cap_qps;
	uint32_t n_flows, cap_flows;
	struct nic_flow *flows;
	struct nic_config cfg;
	struct rng rng;
	struct verbs *verbs; // NULL: no applications
};

static inline struct nic *nic_of(struct node *n)
{
	return (struct nic *)n;
}

// Makes `f` the frame of that shape; returns where what follows the BTH goes.
static inline uint8_t *nic_put_shape(
	const struct nic_qp *qp, const struct nic_shape *s, struct frame *f, uint32_t psn_word)
{
	uint8_t *data = (uint8_t *)(f + 1); // data_off is 0

	memcpy((uint8_t *)f + NIC_FRAME_OFFSET, s->frame, NIC_FRAME_BYTES);
	memcpy(data, s->head, NIC_TEMPLATE_BYTES);
	put_be32(data + qp->psn_off, psn_word);
	return data + qp->psn_off + 4;
}

static inline bool nic_qp_can_send(const struct nic_qp *qp)
{
	return rc_can_send(&qp->req) || qp->answers;
}

// A NIC_TIMER_ACK comes no later than the deadline. (As a rule deadlines move on: then the timer
// that is on its way comes early and is armed again.)
static inline void nic_arm_ack_timer(struct nic *nic, struct nic_qp *qp)
{
	if (likely(qp->timer_at <= qp->req.deadline))
		return;
	qp->timer_at = qp->req.deadline;
	node_timer(&nic->node, qp->timer_at, NIC_TIMER_ACK, (uint32_t)(qp - nic->qps));
}

// A request of so many payload bytes is about to be sent.
static inline void nic_request_sent(struct nic *nic, struct nic_qp *qp, uint32_t bytes, bool again)
{
	nic->ctr.rdma_tx_packets++;
	nic->ctr.rdma_tx_bytes += bytes;
	if (unlikely(again)) {
		qp->retransmitted++;
		nic->ctr.retransmitted_packets++;
		if (qp->rec != NULL && qp->rec->selective)
			sr_sent(&qp->rec->tx, &qp->req);
	}
	nic_arm_ack_timer(nic, qp);
}

static inline void nic_fifo_push_ready(struct nic_port *p, struct nic_qp *qp)
{
	struct nic_qp_fifo *q = &p->ready[qp->tc];

	qp->ready = NIC_QUEUED;
	qp->next_ready = NULL;
	if (q->head == NULL)
		q->head = qp;
	else
		q->tail->next_ready = qp;
	q->tail = qp;
	p->ready_mask |= (uint8_t)(1u << qp->tc);
}

// Flows have something to send in a class that is not paused.
static inline bool nic_flows_due(const struct nic_port *p)
{
	return ((p->ack_mask | p->ready_mask) & (uint8_t)~p->pauses.paused) != 0;
}

static inline void nic_fifo_push_ack(struct nic_port *p, struct nic_qp *qp)
{
	struct nic_qp_fifo *q = &p->acks[qp->tc];

	qp->ack_queued = true;
	qp->next_ack = NULL;
	if (q->head == NULL)
		q->head = qp;
	else
		q->tail->next_ack = qp;
	q->tail = qp;
	p->ack_mask |= (uint8_t)(1u << qp->tc);
}

// nic_tx.c: sends what is most urgent; ops->depart.
void nic_depart(struct node *n, unsigned port);
// There was no frame to be had: the port tries again a little later.
void nic_wait_for_pool(struct nic *nic, unsigned port);
// Lets `qp` take its turn when it may and can send; does not send.
void nic_qp_wake(struct nic *nic, struct nic_qp *qp);

// Sends now if the port is free, else as soon as it is.
static inline void nic_kick(struct nic *nic, unsigned port)
{
	struct node *n = &nic->node;

	if (node_depart_pending(n, port))
		return;
	if (node_lane_idle(n, port))
		nic_depart(n, port);
	else
		node_want_depart(n, port, n->now);
}

// nic_rx.c: ops->arrive, and what it does when the frame is through the receive buffer.
void nic_arrive(struct node *n, unsigned port, struct frame *f);
void nic_take(struct nic *nic, unsigned port, struct frame *f);

// nic_slow.c: puts a frame into the receive buffer, or drops it; false: it need not wait.
bool nic_slow_hold(struct nic *nic, unsigned port, struct frame *f);
void nic_slow_timer(struct nic *nic, unsigned port);
void nic_slow_end(struct nic *nic, unsigned port);
uint64_t nic_slow_held(const struct nic *nic);
void nic_slow_drain(struct nic *nic);
void nic_slow_free(struct nic *nic);

// Where the memory of the responder `qpn` is said to be.
#define NIC_REMOTE_ADDR(qpn) (UINT64_C(0x7f0000000000) + ((uint64_t)(qpn) << 20))
#define NIC_RKEY(qpn)        (0x1000 + (qpn))
#define NIC_QKEY             0x11111111

// nic_rx.c: what follows from an answer, by RC_ACK_* bits other than progress.
void nic_qp_answered(struct nic *nic, struct nic_qp *qp, int result);

// nic_qp.c
// The GID of a port: its IPv6 address, or its IPv4 address mapped (RFC 4291, 2.5.5.2).
void nic_port_gid(const struct nic_port_config *p, bool ipv6, uint8_t gid[GID_BYTES]);
// Room for so many more queue pairs. 0 or -ENOMEM.
int nic_reserve_qps(struct nic *nic, unsigned more);
// The i-th queue pair of a flow at both ends. 0 or -ENOMEM.
int nic_make_pair(struct nic *src, struct nic *dst, uint32_t flow_local, unsigned i);

// nic_extra.c
// For a queue pair just made. 0 or -ENOMEM. `sends`: the end that posts work requests.
bool nic_needs_extra(const struct nic *nic, const struct nic_flow_config *flow, bool sends);
int nic_extra_make(struct nic *nic, struct nic_qp *qp, const struct nic_flow_config *flow);
void nic_extra_free(struct nic_qp *qp);
// As rc_post_send().
int nic_extra_post(struct nic_qp *qp, const struct rc_wr *wr);
// Sends a request, or an answer, in `f`; of queue pairs that are not `plain`.
void nic_extra_request(struct nic *nic, unsigned port, struct nic_qp *qp, struct frame *f);
void nic_extra_answer(struct nic *nic, unsigned port, struct nic_qp *qp, struct frame *f);
// A packet that is none of a plain SEND or WRITE over RC. False: not for such a queue pair.
bool nic_extra_received(
	struct nic *nic, struct nic_qp *qp, const uint8_t *bth, uint8_t opcode, uint32_t payload);

// nic_flow.c
void nic_flow_begin(struct nic *nic, struct nic_flow *flow);
void nic_flow_halt(struct nic *nic, struct nic_flow *flow);
void nic_qp_done(struct nic *nic, struct nic_qp *qp);
void nic_qp_failed(struct nic *nic, struct nic_qp *qp);

// nic_pfc.c
struct pfc;
void nic_pfc_init(struct nic *nic, unsigned port);
// storm_prios or slow_prios changed.
void nic_pause_update(struct nic *nic, unsigned port);
void nic_pfc_received(struct nic *nic, unsigned port, const struct pfc *pfc);
void nic_pfc_timer(struct nic *nic, uint32_t arg);
void nic_resume_timer(struct nic *nic, uint32_t arg);
void nic_storm_timer(struct nic *nic, unsigned port);
void nic_pfc_send(struct nic *nic, unsigned port, struct frame *f);
void nic_pfc_link_down(struct nic *nic, unsigned port);
// Time until now in which a priority of a port was paused.
simtime_t nic_paused_total(const struct nic *nic, unsigned port, unsigned prio);

// nic_cc.c
// Notification points of all ports. 0 or -ENOMEM.
int nic_cc_init(struct nic *nic);
void nic_cc_fini(struct nic *nic);
void nic_cc_start(struct nic *nic);
// For a queue pair just made; `sends`: data. Its CNP's shape is still to be filled in. 0 or
// -ENOMEM.
int nic_cc_make(struct nic *nic, struct nic_qp *qp, bool sends);
// What the algorithm at `sender` must be told by acknowledgements: enum cc_needs.
unsigned nic_cc_feedback(const struct nic *sender, const struct nic_flow_config *flow);
void nic_cc_free(struct nic_qp *qp);
// A packet with CE arrived for it.
void nic_cc_ce(struct nic *nic, unsigned port, struct nic_qp *qp);
// A CNP arrived for it.
void nic_cc_cnp(struct nic *nic, struct nic_qp *qp);
// Sends a waiting CNP in `f`.
void nic_cc_send_cnp(struct nic *nic, unsigned port, struct frame *f);
// `f` of a paced queue pair is about to be sent, `payload` bytes count against its flow's rate:
// when may the next go?
void nic_cc_pace(struct nic *nic, struct nic_qp *qp, uint32_t payload, struct frame *f);
// After an event: what the algorithm says now is done.
void nic_cc_obey(struct nic *nic, struct nic_qp *qp);
void nic_cc_timer(struct nic *nic, struct nic_qp *qp);
void nic_cc_drain(struct nic *nic);

// nic_feedback.c
// The receiver's side of a queue pair just made, for a sender that needs `feedback`. 0 or -ENOMEM.
int nic_echo_make(struct nic_qp *qp, unsigned feedback);
// A packet arrived: keeps its telemetry.
void nic_echo_take(struct nic_qp *qp, const struct frame *f);
// Writes what is to be echoed into an acknowledgement with that BTH.
void nic_echo_put(struct nic_qp *qp, struct frame *f, uint8_t *bth);
// A request was sent for the first time and asks for an acknowledgement.
void nic_probe_sent(struct nic_qp *qp, uint64_t seq, simtime_t now);
// An acknowledgement came; una was `before`, and rc_rx_ack() said `result`.
void nic_cc_acked(struct nic *nic, struct nic_qp *qp, const struct frame *f, const uint8_t *bth,
	uint64_t before, int result);
// The retransmission timer expired and the transport went back.
void nic_cc_timed_out(struct nic *nic, struct nic_qp *qp);

// nic_recovery.c
// For a queue pair just made: what its NIC's settings ask for, if anything. `sends`: it is the
// requester of a flow, else the responder to one with that window. 0 or -ENOMEM.
int nic_recovery_make(struct nic *nic, struct nic_qp *qp, bool sends, uint32_t peer_window);
void nic_recovery_free(struct nic_qp *qp);
// An ACKNOWLEDGE packet, when qp->rec is there; as rc_rx_ack().
int nic_recovery_ack(struct nic *nic, struct nic_qp *qp, const struct frame *f, const uint8_t *bth,
	uint32_t psn);
// As rc_timeout() and rc_rnr_expired(), for all queue pairs.
int nic_recovery_timeout(struct nic_qp *qp, simtime_t now);
void nic_recovery_rnr_expired(struct nic_qp *qp, simtime_t now);
// A packet that came too early, with resp.keeps: RC_RX_GAP or RC_RX_DUPLICATE, and RC_RX_RESPOND.
int nic_recovery_early(struct nic *nic, struct nic_qp *qp, const struct rc_packet *p);
// Makes `f` a NAK, with a SACK if there is one; returns where the AETH goes.
uint8_t *nic_recovery_sack(struct nic_qp *qp, struct frame *f, const struct rc_ack *a);

// nic_verbs*.c: applications. NULL: none.
struct verbs;
void verbs_start(struct nic *nic);
void verbs_timer(struct nic *nic, enum nic_timer kind, uint32_t arg);
void verbs_drain(struct nic *nic);
void verbs_free(struct nic *nic);
bool verbs_check(const struct nic *nic, char *why, size_t len);
// Whether something of theirs may be sent now.
bool verbs_can_send(const struct nic *nic, unsigned port);
// Sends it, unless it is the turn of flows that wait. False: nothing was sent.
bool verbs_depart(struct nic *nic, unsigned port);
// A packet for none of the flows' queue pairs. False: for none of the applications' either.
bool verbs_received(struct nic *nic, unsigned port, struct frame *f, const uint8_t *bth,
	uint8_t opcode, uint32_t payload);

// nic_extra.c, for queue pairs of all kinds: a request as the wire has it, its extension headers,
// and what its result counts as.
struct rc_packet nic_packet_of(const uint8_t *bth, uint8_t opcode, uint32_t payload);
uint8_t *nic_put_extensions(uint8_t *p, const struct rc_request *r, uint32_t qkey, uint32_t qpn);
void nic_count_request(struct nic *nic, const struct rc_packet *p, int result);
// nic_rx.c
void nic_count_nak(struct nic *nic, uint8_t syndrome);
