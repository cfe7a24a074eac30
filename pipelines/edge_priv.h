/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// The edge node's state, shared by its own files only.

#include <inttypes.h>

#include "emu/core/observe.h"
#include "models/pfc.h"
#include "pipelines/edge.h"
#include "pipelines/edge_cc.h"
#include "pipelines/edge_watch.h"

#define EDGE_BURST 32

// Timer arguments: port in the upper half, then what the kind needs.
enum edge_timer { TIMER_PAUSE, TIMER_EXPIRE, TIMER_REFRESH, TIMER_ASK, TIMER_CC };
#define ARG_PORT_SHIFT 20 // PORT_MAX is 512
#define ARG_PRIO_SHIFT 16 // below: quanta; TIMER_CC: a slot

struct pkt;

struct edge_port {
	const struct edge_ops *ops;
	void *real; // ops' argument

	// from the real port towards the fabric
	struct frame_queue rx_queue[PRIO_COUNT];
	uint32_t rx_bytes[PRIO_COUNT]; // and held by cc
	struct edge_watch *watch;      // NULL: nothing is counted
	struct edge_cc *cc;            // NULL: off
	uint32_t last_ip4;             // destination looked up last, host order; 0: none
	uint32_t last_dst;
	uint8_t backlog;   // priorities with queued frames
	uint8_t full;      // priorities whose queue has reached its limit
	uint8_t last_prio; // that sent, for round robin
	bool refresh_armed;
	struct pfc_rx pfc_rx;

	// from the fabric towards the real port
	struct frame_queue tx_fifo;
	uint32_t tx_count;
	uint32_t tx_bytes[PRIO_COUNT]; // in the FIFO, by class
	struct pfc_tx pfc_tx;

	bool mac_known;
	bool next_hop_known;
	uint8_t mac[6];
	uint8_t next_hop[6];
	uint32_t ip4;
	struct edge_counters ctr;
};

struct edge {
	struct node node;
	const struct endpoint_table *endpoints;
	simtime_t pause_response;
	uint32_t rx_limit; // bytes per port and priority
	uint32_t tx_limit;
	int roce_dscp;
	uint8_t pfc_mask;
	bool trust_pcp;
	struct edge_cc_config cc;
	uint8_t dscp_to_tc[64];
	uint8_t pcp_to_tc[PRIO_COUNT];
	struct edge_port port[];
};

// edge_rx.c: frames from the real port into the queues; how many came in.
unsigned edge_take_in(struct edge *e, unsigned port);
// A frame that enters counts against its priority's limit until it is sent. Then it is queued, at
// once or when its limiter lets it go.
void edge_charge(struct edge *e, struct edge_port *p, struct frame *f);
void edge_queue(struct edge *e, unsigned port, struct frame *f);
// The endpoint index of a packet's destination, or FRAME_NO_DST.
uint32_t edge_destination(const struct edge *e, struct edge_port *port, const struct pkt *p);
// The node's depart operation: PFC first, then a frame of a priority that is not paused.
void edge_depart(struct node *n, unsigned port);

// edge_tx.c: the node's arrive operation, and offering what waits to the real port (how many left).
void edge_arrive(struct node *n, unsigned port, struct frame *f);
unsigned edge_flush(struct edge *e, unsigned port);
// Asks an endpoint of unknown MAC for it; its answer, or anything else it sends, tells.
void edge_ask_mac(struct edge *e, unsigned port);

// edge_pfc.c: a MAC control frame from the switch ends here. Sends the PFC frame that is due; false
// when there was no buffer for it. Then what its timers lead to.
void edge_control(struct edge *e, unsigned port, struct frame *f);
bool edge_say_pause(struct edge *e, unsigned port);
void edge_apply_pause(struct edge *e, unsigned port, unsigned prio, uint16_t quanta);
void edge_expire_pause(struct edge *e, unsigned port, unsigned prio);
void edge_refresh(struct edge *e, unsigned port);
