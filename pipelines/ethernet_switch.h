/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// An Ethernet switch with a shared buffer, PFC, ECN, ECMP routing and eight queues per port, as a
// node. See ethernet_switch.c for its stages.
//
// Create it, attach the lanes of all ports and set the node's pools, set routes, run. The config is
// copied; only the endpoint table must outlive the switch.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emu/core/node.h"
#include "models/load_balance.h"
#include "models/mmu.h"
#include "models/pfc_wd.h"
#include "models/qos_map.h"
#include "models/sched.h"
#include "models/wred.h"
#include "pipelines/endpoint.h"

struct ethernet_switch_port_config {
	char name[24];
	uint8_t mac[6];
	uint8_t peer_mac[6]; // next hop behind the port
	bool up;             // the peer is a switch of a higher level
	bool host_port;      // the peer is a host: its MAC may be learned from its ARP and ND
	uint16_t mtu;        // largest IP packet sent
	uint8_t pfc_rx;      // priorities whose PFC is obeyed; 0 on a lane without flow control
	uint8_t pfc_tx;      // priorities for which PFC is sent
	uint16_t pause_quanta;
	simtime_t pfc_response; // from the last bit of a PFC frame to the end of sending
	struct qos_map qos;
	struct mmu_pg_profile pg[QOS_CLASSES];
	struct mmu_queue_profile queue[QOS_CLASSES];
	struct wred_profile wred[QOS_CLASSES];
	struct sched_queue_config sched[QOS_CLASSES];
	uint8_t wd_prios; // priorities whose queue the PFC watchdog watches
	struct pfc_wd_config wd;
};

struct ethernet_switch_config {
	const char *name;
	uint16_t n_ports;
	const struct ethernet_switch_port_config *ports; // [n_ports]
	struct mmu_config mmu;
	uint32_t ecmp_seed;
	enum lb_mode load_balancing; // among equal-cost ports; 0: ECMP
	simtime_t flowlet_gap;       // LB_FLOWLET
	const uint8_t *bounce; // [QOS_DSCPS] DSCP after a bounce (from up to up), NULL: it stays
	const struct endpoint_table *endpoints; // complete
	uint32_t log_events;                    // room for events
};

// SONiC's defaults for one port: AZURE maps, PFC on priorities 3 and 4 both ways with full quanta
// and the standard's response time for the rate, all queues DWRR (3, 4: weight 15, else 14),
// dynamic thresholds (PG alpha 1, lossy PG and queues alpha 8), no WRED. `xoff_bytes` (headroom) of
// the lossless PGs is left 0: it depends on the link, see models/headroom.h.
void ethernet_switch_port_defaults(struct ethernet_switch_port_config *p, uint64_t rate_bps);

// Returns 0 and the switch as a node, or -EINVAL (the reason, one line, in `why`) or -ENOMEM.
int ethernet_switch_create(
	const struct ethernet_switch_config *cfg, struct node **out, char *why, size_t why_len);
void ethernet_switch_destroy(struct node *n);

// The equal-cost ports towards an endpoint; n = 0 removes the route. 0, -EINVAL or -ENOMEM. Only
// while nothing runs (set-up, timeline).
int ethernet_switch_set_route(
	struct node *n, uint32_t endpoint, const uint16_t *ports, unsigned n_ports);
// The same for what comes in by port `in` only, which goes before the above.
int ethernet_switch_set_route_from(
	struct node *n, unsigned in, uint32_t endpoint, const uint16_t *ports, unsigned n_ports);
// The ports of a route; returns how many.
unsigned ethernet_switch_route(const struct node *n, uint32_t endpoint, const uint16_t **ports);

// Loses all frames it holds (reason `reboot`); its links must then go down, which clears what PFC
// it was told and has told. Routes are the caller's.
void ethernet_switch_reboot(struct node *n);

void ethernet_switch_set_peer_mac(struct node *n, unsigned port, const uint8_t mac[6]);

// ---- what is inside, for results, the live view and the deadlock detector -----------------------
// All cheap reads without effect on the run; call them while the node does not run (between windows
// or at the end), except where a torn value does no harm.

struct ethernet_switch_pg_view {
	bool lossless;
	bool xoff;              // XOFF asserted
	uint8_t priorities;     // that it pauses then
	simtime_t xoff_since;   // when the PG crossed its threshold, SIMTIME_NEVER if not asserted
	uint64_t bytes;         // held, in whole cells
	uint64_t shared_bytes;  // of them in the shared pool
	uint64_t headroom_used; // bytes, of them in the headroom
	uint64_t headroom_size;
	uint64_t limit_bytes; // reserved + shared threshold at this moment
	uint64_t xoffs;       // times XOFF was asserted
	uint64_t peak_bytes;  // watermarks
	uint64_t headroom_peak;
	int64_t min_slack_bytes; // how close it came to XOFF (or dropping); negative: beyond
};

struct ethernet_switch_queue_view {
	bool paused;         // by the peer's PFC
	uint32_t frames;     // waiting
	uint64_t bytes;      // waiting, with FCS
	uint64_t peak_bytes; // watermark, in whole cells
	uint64_t tx_frames;  // left it since the start: progress
	uint64_t tx_bytes;
	uint64_t ecn_marked;
};

struct ethernet_switch_pool_view {
	uint64_t buffer_bytes;
	uint64_t shared_size, shared_used, shared_peak;
	uint64_t headroom_size, headroom_used, headroom_peak;
};

void ethernet_switch_pg(
	const struct node *n, unsigned port, unsigned pg, struct ethernet_switch_pg_view *out);
void ethernet_switch_queue(const struct node *n, unsigned port, unsigned queue,
	struct ethernet_switch_queue_view *out);
// Bytes waiting, with FCS, and in `tx_frames` what left it since the start: for those who look
// often, in constant time (the view above counts frames by walking the queue).
uint64_t ethernet_switch_queue_bytes(
	const struct node *n, unsigned port, unsigned queue, uint64_t *tx_frames);
void ethernet_switch_pool(const struct node *n, struct ethernet_switch_pool_view *out);

// Since when the peer of `port` pauses it, or it its peer, for a priority; SIMTIME_NEVER: not.
simtime_t ethernet_switch_paused_since(const struct node *n, unsigned port, unsigned prio);
simtime_t ethernet_switch_pausing_since(const struct node *n, unsigned port, unsigned prio);
// The queue that a priority's PFC pauses, and the PG whose XOFF pauses a priority.
unsigned ethernet_switch_prio_queue(const struct node *n, unsigned port, unsigned prio);
unsigned ethernet_switch_prio_pg(const struct node *n, unsigned port, unsigned prio);

// Frames that came in by (in_port, pg) and wait in (out_port, queue): one edge of the wait-for
// graph. Found by walking the queues, so that the data path keeps no matrix.
struct ethernet_switch_wait {
	uint16_t in_port;
	uint16_t out_port;
	uint8_t pg;
	uint8_t queue;
	uint32_t frames;
	uint64_t bytes;
};

// Calls `fn` once for each such pair that holds frames, ordered by (out_port, queue, in_port, pg).
// `paused_only`: only queues that are paused now.
void ethernet_switch_waits(const struct node *n, bool paused_only,
	void (*fn)(void *arg, const struct ethernet_switch_wait *w), void *arg);

// ---- the PFC watchdog ---------------------------------------------------------------------------

// A watched queue. The counters are SONiC's PFC_WD_QUEUE_STATS_*: of the time stormed only; `last`:
// of the last storm.
struct ethernet_switch_wd_traffic {
	uint64_t tx_packets, tx_dropped_packets; // of the queue
	uint64_t rx_packets, rx_dropped_packets; // of the priority's PG at the same port
};

struct ethernet_switch_wd_view {
	uint8_t queue;
	uint8_t prio;
	enum pfc_wd_action action;
	bool stormed;
	uint64_t deadlock_detected, deadlock_restored;
	struct ethernet_switch_wd_traffic all, last;
};

// Reads the counters of all watched queues and acts; to be called once per poll interval while the
// node does not run (n->now is the time).
void ethernet_switch_wd_poll(struct node *n);
// The i-th watched queue of a port; false: there are not so many.
bool ethernet_switch_wd(
	const struct node *n, unsigned port, unsigned i, struct ethernet_switch_wd_view *out);

// Adds the pauses that are still open at `now` to the ports' pause durations; once, at the end.
void ethernet_switch_close_pauses(struct node *n, simtime_t now);
