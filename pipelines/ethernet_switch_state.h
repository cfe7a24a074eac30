/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// State of an Ethernet switch, private to pipelines/ethernet_switch*.c. Laid out by who touches it:
// a frame's arrival reads the first line of its ingress port, one PG line and one queue line of the
// egress port; its departure the egress port's first lines, the queue line and the PG line.

#include <stdalign.h>

#include "models/ecmp.h"
#include "models/pfc.h"
#include "models/pfc_wd.h"
#include "pipelines/ethernet_switch.h"

struct switch_queue {
	struct frame_queue fifo;
	uint32_t bytes;      // waiting, with FCS
	uint32_t mark_above; // WRED is asked beyond this at enqueue; UINT32_MAX: never
	struct mmu_queue mmu;
	uint64_t tx_frames;
	uint64_t tx_bytes;
};

static_assert(sizeof(struct switch_queue) == 64, "one line per queue");

struct switch_pg {
	alignas(64) struct mmu_pg mmu;
	simtime_t xoff_since; // SIMTIME_NEVER when not asserted
};

static_assert(sizeof(struct switch_pg) == 64, "one line per PG");

// What goes before data on a port.
enum switch_urgent {
	URGENT_PFC = 1 << 0,   // pfc_tx may have something to say
	URGENT_LOCAL = 1 << 1, // a reply to ARP or ND waits
};

// The PFC watchdog of one queue of a port.
struct switch_wd {
	struct pfc_wd_config cfg;
	struct pfc_wd wd;
	uint8_t prio, queue, pg;
	struct ethernet_switch_wd_view count;
	// when the storm under way was detected
	simtime_t since;
	uint64_t tx_base, rx_base;
};

struct switch_port {
	// ingress and egress, every frame
	const struct qos_map *qos;
	uint8_t nonempty;         // queues with frames
	uint8_t paused;           // queues paused by the peer
	uint8_t urgent;           // enum switch_urgent
	uint8_t marks_at_dequeue; // queues with such a WRED profile
	uint16_t mtu;
	bool up;
	bool above; // the peer is a switch of a higher level
	bool host_port;
	uint8_t macs[12]; // destination and source of frames sent: the peer's, ours
	uint8_t pg_prios[QOS_CLASSES];
	struct sched sched;

	alignas(64) struct switch_queue queue[QOS_CLASSES];
	alignas(64) struct switch_pg pg[QOS_CLASSES];

	// rarely
	uint64_t xoffs[QOS_CLASSES]; // times each PG crossed its threshold
	struct pfc_tx pfc_tx;
	struct pfc_rx pfc_rx;
	simtime_t pfc_response;
	bool refresh_armed; // a refresh timer is running
	bool retry_armed;   // a timer for a PFC frame that found no mbuf
	uint8_t pfc_tx_mask;
	uint8_t pfc_rx_mask;
	uint16_t pause_quanta;
	struct frame_queue local; // ARP and ND replies
	struct wred wred[QOS_CLASSES];
	uint64_t ecn_marked[QOS_CLASSES];  // by queue
	uint64_t rx_xoffs[PFC_PRIORITIES]; // PFC frames that pause it, obeyed or not
	uint64_t on2off[PFC_PRIORITIES];   // pauses that ended
	struct switch_wd *wd;              // [n_wd]
	uint8_t n_wd;
	uint8_t wd_queues; // queues in drop state
	uint8_t wd_pgs;    // PGs whose arrivals are dropped
};

struct ethernet_switch {
	struct node node; // first
	struct switch_port *port;
	const struct endpoint_table *endpoints;
	struct ecmp ecmp;
	struct load_balancer lb;
	bool plain;         // frames are routed by ECMP and go on as they came
	struct ecmp **from; // [n_ports] routes of what comes in there, or NULL; NULL: no such
	bool bounces;
	uint8_t bounce[QOS_DSCPS]; // DSCP after a bounce
	struct mmu mmu;
	uint64_t buffer_bytes;
	struct qos_map *maps; // distinct ones of the ports
	unsigned n_maps;
	struct ethernet_switch_wait *scratch; // [n_ports * QOS_CLASSES], for walks
	struct switch_wd *watchdogs;          // of all ports
	unsigned n_dropping;                  // ports with a queue in drop state
};

static inline struct ethernet_switch *switch_of(struct node *n)
{
	return (struct ethernet_switch *)n;
}

static inline const struct ethernet_switch *switch_of_const(const struct node *n)
{
	return (const struct ethernet_switch *)n;
}

static inline unsigned switch_ready(const struct switch_port *p)
{
	return p->nonempty & ~(unsigned)p->paused;
}

extern const struct node_ops ethernet_switch_ops; // ethernet_switch.c
extern const struct node_ops ethernet_switch_stormed_ops;

// frame->note within a switch: queue bytes when it marked the frame; or this: it did not, but is to
// add its telemetry; or 0.
#define NOTE_INT UINT64_MAX

// Writes the port's record into the tail of a FRAME_INT that is about to be sent.
void switch_int_push(struct ethernet_switch *s, unsigned out, struct frame *f); // ..._int.c

// ---- ethernet_switch_pfc.c ----------------------------------------------------------------------

enum switch_timer { TIMER_PFC_REFRESH, TIMER_PFC_RETRY, TIMER_PFC_APPLY, TIMER_PFC_EXPIRE };

void switch_timer(struct node *n, uint32_t kind, uint32_t arg);
// PG `pg` of `port` has just crossed its XOFF threshold, or may send XON.
void switch_xoff(struct ethernet_switch *s, unsigned port, unsigned pg);
void switch_xon(struct ethernet_switch *s, unsigned port, unsigned pg);
// Sends what is urgent on `port`, one frame. False if there was nothing to send after all.
bool switch_send_urgent(struct ethernet_switch *s, unsigned port);
// A frame of kind FRAME_CONTROL arrived.
void switch_control(struct ethernet_switch *s, unsigned port, struct frame *f);
void switch_pfc_start(struct ethernet_switch *s);
void switch_link(struct node *n, unsigned port, bool up);
// Obeys and sends PFC for a priority no more, or, as configured, again.
void switch_pfc_enable(struct ethernet_switch *s, unsigned port, unsigned prio, bool on);

// ---- ethernet_switch_wd.c -----------------------------------------------------------------------

int switch_wd_init(struct ethernet_switch *s, const struct ethernet_switch_config *cfg);
void switch_wd_start(struct ethernet_switch *s);
// Ends a frame whose PG or queue is in drop state. False: neither is.
bool switch_wd_drops(struct ethernet_switch *s, unsigned in, unsigned out, struct frame *f);

// ---- ethernet_switch_parse.c --------------------------------------------------------------------

// Fills in the (parse) fields of `f` and its kind. False: malformed, dropped and gone.
bool switch_parse(struct ethernet_switch *s, unsigned port, struct frame *f);
// Ends a frame without a route for the right reason.
void switch_drop_unroutable(struct ethernet_switch *s, unsigned port, struct frame *f);

// ---- ethernet_switch_local.c --------------------------------------------------------------------

// A frame of kind FRAME_LOCAL arrived: answers or ends it.
void switch_local(struct ethernet_switch *s, unsigned port, struct frame *f);

// ---- ethernet_switch_view.c ---------------------------------------------------------------------

uint64_t switch_held(const struct node *n);
void switch_drain(struct node *n);
bool switch_check(const struct node *n, bool drained, char *why, size_t len);
