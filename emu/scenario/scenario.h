/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// The fully resolved description of a fabric: what a scenario file says once names are looked up,
// generators expanded, defaults filled in and units converted. Plain data: indexes instead of
// names, bits per second, bytes, picoseconds. Nothing here needs DPDK or the engine.
//
// Everything hangs off one arena owned by the struct, so it is read-only for everyone and freed by
// one call. Strings and arrays are never NULL when their count is not 0.
//
// Indexes: nodes are numbered switches first (0 .. n_switches-1, in file order), then hosts. An
// endpoint is one port of a host, i.e. one address of the fabric (`struct frame`'s dst).

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "emu/core/simtime.h"
#include "models/cc.h"
#include "models/fault.h"
#include "models/fec.h"
#include "models/load_balance.h"
#include "models/np.h"
#include "models/pfc_wd.h"
#include "models/verbs.h"
#include "pipelines/app.h"

#define SC_PRIOS     8
#define SC_DSCPS     64
#define SC_NONE      UINT32_MAX // no node, port, endpoint, link, flow
#define SC_AUTO      UINT64_MAX // a size the consumer computes (xoff, static_th: the whole pool)
#define SC_PORT_NONE UINT16_MAX
#define SC_UNSET     (-1) // small integers that may be absent

// Where an item stands in the file, 1-based; line 0: it comes from a default or a generator.
struct sc_pos {
	uint32_t line;
	uint32_t col;
};

// ---- switches ---------------------------------------------------------------------------------

enum sc_trust { SC_TRUST_DSCP, SC_TRUST_PCP };

// SONiC BUFFER_PROFILE of an ingress priority group.
struct sc_pg {
	bool lossless;       // default: the priority of this number is in pfc_enable (tx)
	bool dynamic;        // dynamic_th applies, else static_th
	int dynamic_th;      // alpha = 2^dynamic_th: may use alpha x free shared bytes; -8..7
	uint64_t static_th;  // shared bytes it may use
	uint64_t size;       // guaranteed (reserved) bytes
	uint64_t xon;        // resume when shared usage falls to the larger of xon
	uint64_t xon_offset; // and (XOFF threshold - xon_offset)
	uint64_t xoff;       // headroom above the threshold; SC_AUTO: from the link (headroom.h)
};

enum sc_sched { SC_SCHED_STRICT, SC_SCHED_DWRR };

// SONiC QUEUE + BUFFER_PROFILE + WRED_PROFILE + SCHEDULER of an egress queue.
struct sc_queue {
	enum sc_sched sched;
	uint32_t weight;      // DWRR, 1..100
	bool dynamic;         // egress limit of lossy frames, as in sc_pg
	int dynamic_th;       //
	uint64_t static_th;   // SC_AUTO: no limit
	uint64_t size;        // guaranteed bytes
	bool ecn;             // ECT frames are marked between kmin and kmax (sure above kmax)
	bool wred_drop;       // not-ECT frames are dropped by the same curve
	bool mark_at_dequeue; // by what waits when a frame leaves instead of when it comes
	uint64_t kmin;        // bytes; SONiC green_min_threshold
	uint64_t kmax;        // bytes >= kmin; SONiC green_max_threshold
	uint64_t pmax_q32;    // probability at kmax x 2^32; SONiC green_drop_probability
};

// SONiC PFC_WD.
struct sc_pfc_wd {
	bool enabled; // the section was given
	enum pfc_wd_action action;
	enum pfc_wd_condition storm_condition;
	simtime_t detection_time;
	simtime_t restoration_time;
	simtime_t poll_interval; // <= both
	bool big_red_switch;
};

struct sc_qos {
	const char *name;
	struct sc_pos pos;
	enum sc_trust trust;
	uint8_t dscp_to_tc[SC_DSCPS];
	uint8_t pcp_to_tc[SC_PRIOS];
	uint8_t default_tc; // frames without the trusted field (not IP; untagged under pcp)
	uint8_t tc_to_pg[SC_PRIOS];
	uint8_t tc_to_queue[SC_PRIOS];
	// DSCP that a frame goes on with when it came from above and is sent up again.
	uint8_t bounce[SC_DSCPS];
	// Bit p: priority p. PG p pauses priority p of its peer (tx), a received pause of p stops
	// queue p (rx). pfc_enable sets both.
	uint8_t pfc_tx;
	uint8_t pfc_rx;
	uint16_t pfc_quanta; // pause time asked for, in 512-bit times
	uint8_t wd_prios;    // priorities watched, subset of pfc_rx; 0 unless wd.enabled
	struct sc_pfc_wd wd;
	uint64_t pfc_response; // ps until a received pause takes effect; SC_AUTO: by rate, 802.3
	uint32_t cell_size;    // bytes
	uint64_t buffer;       // bytes, the switch's whole buffer
	struct sc_pg pg[SC_PRIOS];
	struct sc_queue queue[SC_PRIOS];
};

struct sc_switch {
	uint32_t node;      // its index in nodes[] (== its own index)
	simtime_t latency;  // forwarding latency: last bit in .. earliest first bit out; >= 0
	uint32_t qos;       // index in qos[]
	uint64_t buffer;    // bytes (the profile's unless the switch overrides it)
	uint64_t ecmp_seed; // different per switch by default, so that hashing is not polarised
	enum lb_mode load_balancing; // among equal-cost ports
	simtime_t flowlet_gap;       // LB_FLOWLET: pause after which a flow may change its path
	uint8_t level;               // 0: where hosts are; SC_LEVEL_AUTO: by distance from hosts
};

#define SC_LEVEL_AUTO UINT8_MAX

// ---- hosts ------------------------------------------------------------------------------------

enum sc_host_kind { SC_HOST_NIC, SC_HOST_REPLAY, SC_HOST_ATTACH };

enum sc_recovery { SC_GO_BACK_N, SC_SELECTIVE_REPEAT };

// Built-in RoCE NIC.
#define NP_INTERVAL_AUTO (-1) // until resolved

struct sc_nic {
	uint32_t mtu;          // IB path MTU: 256, 512, 1024, 2048, 4096
	uint32_t payload;      // bytes of payload per packet, <= 9000; default: mtu
	uint32_t ack_every;    // AckReq on every n-th packet and on the last of a message; 1 = all
	uint32_t window;       // most unacknowledged packets per QP (PSNs); up to 2^23 - 1
	uint8_t retry_cnt;     // 0..7
	uint8_t rnr_retry;     // 0..7, 7 = for ever
	uint8_t timeout;       // 4.096 us x 2^timeout, 0 = never; 0..31
	bool adaptive;         // adaptive retransmission timer
	uint8_t max_rd_atomic; // READs and atomics outstanding per QP, either way
	uint32_t recv_depth;   // receives posted per QP; 0: one is always there
	uint32_t recv_rate;    // posted again per second; 0: at once
	uint8_t min_rnr_timer; // timer value of its RNR NAKs, 0..31
	uint8_t ttl;           // default of flows
	bool ecn;              // send ECT(0)
	enum sc_recovery recovery; // the same at both ends of a flow
	uint32_t ooo;        // packets a missing one may be overtaken by before it is reported
	simtime_t ooo_time;  // and for how long; 0: however long
	uint64_t bdp_cap;    // bytes of payload in flight per QP; 0: only `window`
	simtime_t rto_low;   // selective repeat: when it repeats
	simtime_t rto_high;  // >= rto_low > 0
	struct cc_params cc; // congestion control
	enum dcqcn_preset dcqcn_preset; // that its DCQCN parameters started from
	int np_enable;                  // as np.enable
	struct np_params np;            // CNPs
	uint8_t pfc_rx;                 // priorities on which it obeys PFC
	uint64_t pfc_response;          // ps; SC_AUTO: by rate
};

enum sc_attach_kind {
	SC_ATTACH_VHOST_USER,
	SC_ATTACH_TAP,
	SC_ATTACH_NETDEV,
	SC_ATTACH_NETNS,
	SC_ATTACH_DPDK,
	SC_ATTACH_GUEST,
};

enum sc_accel { SC_ACCEL_AUTO, SC_ACCEL_KVM, SC_ACCEL_UML, SC_ACCEL_TCG };

// A command run in a netns or a guest. Foreground commands run one after the other; a background
// one is started and left running (its status counts when it ended by itself).
struct sc_run {
	const char *command; // for /bin/sh -c
	bool background;
	simtime_t after;   // real time to wait before it starts
	simtime_t timeout; // real time after which it is killed and failed; 0: none
	struct sc_pos pos;
};

struct sc_attach {
	enum sc_attach_kind kind;
	const char *path;        // vhost-user: socket; NULL: in the run directory
	const char *ifname;      // tap, netdev; netns: interface name inside
	const char *netns;       // netns: its name; NULL: the host's name
	const char *devargs;     // dpdk
	uint32_t mtu;            // IP MTU of the endpoint's interface
	uint64_t memory;         // guest, bytes
	uint32_t cpus;           // guest
	enum sc_accel accel;     // guest
	const char *kernel;      // guest: NULL: the one prepared by the project's script
	const char *initrd;      // guest: NULL: likewise
	const char *append;      // guest: more kernel arguments, or NULL
	int roce_dscp;           // rewrite the DSCP of RoCE frames from the endpoint; SC_UNSET
	bool counters;           // count what happens to the endpoint's queue pairs
	bool pfc;                // obey PFC on the endpoint's behalf (hold frames per priority)
	uint64_t buffer;         // bytes the edge holds per priority while paused
	struct sc_nic nic;       // of it cc, dcqcn and np: on the endpoint's behalf
	int ect0;                // its RoCE data becomes ECT(0); SC_UNSET until resolved
	simtime_t ready_timeout; // real time until a guest must be ready
	const struct sc_run *run;
	uint32_t n_run;
	const char *const *env; // "NAME=value"
	uint32_t n_env;
};

struct sc_replay {
	const char *file; // as written; relative names were resolved against the scenario's folder
	const char *filter;   // libpcap expression, or NULL
	uint32_t speed_milli; // 1000: as captured, 2000: twice as fast; 0: as fast as the lane
			      // allows
	uint32_t loops; // >= 1; 0: for ever
	simtime_t start;
};

struct sc_host {
	uint32_t node;
	enum sc_host_kind kind;
	struct sc_nic nic;       // all kinds (attach: pfc_rx, pfc_response apply to the edge)
	struct sc_attach attach; // SC_HOST_ATTACH
	struct sc_replay replay; // SC_HOST_REPLAY
	uint32_t first_endpoint; // its ports' endpoints are consecutive, one per port
};

// ---- topology ---------------------------------------------------------------------------------

struct sc_port {
	const char *name;  // "eth0"; unique in its node
	uint32_t link;     // index in links[]
	uint8_t end;       // which end of the link
	uint8_t mac[6];    // unique, locally administered unless given
	uint32_t endpoint; // hosts; SC_NONE for switches
	uint32_t qos;      // switches: index in qos[]
};

struct sc_node {
	const char *name;
	bool is_switch;
	uint32_t index; // in switches[] or hosts[]
	const struct sc_port *ports;
	uint16_t n_ports;
	struct sc_pos pos;
};

struct sc_endpoint {
	uint32_t node;
	uint16_t port;
	uint32_t ip4;    // host byte order, 0: none; every endpoint has an IPv4 or an IPv6 address
	uint8_t ip4_len; // prefix length for the endpoint's own interface
	bool has_ip6;
	uint8_t ip6[16]; // network order
	uint8_t ip6_len;
};

struct sc_end {
	uint32_t node;
	uint16_t port;
};

enum sc_flow_control { SC_FC_NONE, SC_FC_PFC };

struct sc_link {
	const char *name; // given, or "sw1:eth0-h1:eth0"
	struct sc_end end[2];
	uint64_t rate_bps;
	simtime_t delay;                   // propagation, >= 0; length x 5 ns/m
	uint32_t mtu;                      // IP MTU
	enum sc_flow_control flow_control; // none: PFC is neither sent nor obeyed on it
	uint64_t corrupt_q32; // probability x 2^32 that a frame is corrupted, each direction
	uint64_t ber_q62;     // bit error rate before FEC x 2^62, each direction
	enum fec_code fec;
	struct sc_pos pos;
};

// An explicit route: replaces the computed one for these endpoints at this switch.
struct sc_route {
	uint32_t sw; // node index
	const uint32_t *endpoints;
	uint32_t n_endpoints;
	const uint16_t *ports; // next hops, equal cost; n_ports 0: drop (no_route)
	uint16_t n_ports;
	const uint16_t *from; // only what comes in by these ports; n_from 0: all
	uint16_t n_from;
	struct sc_pos pos;
};

// An application of a built-in NIC (pipelines/app.h).
struct sc_app {
	const char *name;
	uint32_t node;        // its host
	uint16_t iface;       // port of the host
	uint8_t kind;         // enum app_kind
	uint32_t peer;        // clients: endpoint of the server; SC_NONE: a server
	uint16_t port;        // of rdma_cm
	uint32_t size, count; // as in struct app_config
	uint32_t connections;
	simtime_t start;
	uint8_t dscp;
	uint8_t priority; // as in struct sc_flow
	bool ipv6;
	uint16_t mtu;         // payload bytes per packet
	simtime_t cm_timeout; // rdma_cm's messages and acknowledgements
	struct sc_pos pos;
};

// ---- workloads, timeline ----------------------------------------------------------------------

struct sc_flow {
	const char *name;
	uint32_t src; // endpoint; its host's kind is SC_HOST_NIC
	uint32_t dst; // endpoint of another SC_HOST_NIC host
	enum wr_op op;
	enum qp_transport transport;
	bool roce1;        // RoCE v1: GRH and Ethertype 0x8915, switched by MAC
	uint64_t bytes;    // per message, 1 .. 2^31
	uint64_t messages; // per QP; 0: endless
	uint64_t rate_bps; // of payload, all QPs together; 0: as fast as the line allows
	simtime_t start;
	simtime_t stop;     // no new packet after; SIMTIME_NEVER
	uint8_t dscp;       // and, by the switches' maps, its priority
	int pcp;            // 0..7: sent with an 802.1Q tag (VLAN 0); SC_UNSET: untagged
	uint8_t ttl;        // TTL or hop limit
	bool ipv6;          // use the IPv6 addresses
	uint32_t qps;       // >= 1
	uint16_t udp_sport; // of the first QP, +1 for each next; 0: derived by the NIC per QP
	uint8_t priority;   // PFC priority at the source NIC: the QoS default's TC of dscp (or pcp)
	bool on_demand;     // starts only by a flow_start event
	bool open;          // part of the load, not of `flows.complete`: endless flows
	uint32_t workload;  // running number of the workloads: entry it comes from
	struct sc_pos pos;
};

enum sc_event_kind {
	SC_EVENT_LINK_DOWN,
	SC_EVENT_LINK_UP,
	SC_EVENT_ROUTE,
	SC_EVENT_PAUSE_STORM,
	SC_EVENT_FLOW_START,
	SC_EVENT_FLOW_STOP,
	SC_EVENT_SET_CORRUPT,
	SC_EVENT_SET_RATE,
	SC_EVENT_SET_BER,
	SC_EVENT_REBOOT,      // the switch `node` stops; links go down
	SC_EVENT_REBOOT_DONE, // and is back
	SC_EVENT_SLOW_RECEIVER,
};

struct sc_event {
	simtime_t at;
	enum sc_event_kind kind;
	uint32_t link;         // link_down, link_up, set_*
	uint8_t ends;          // of these: bit e: the lane that end e sends on
	uint32_t flow;         // flow_start, flow_stop
	uint32_t node;         // pause_storm, slow_receiver: the host; reboot: the switch
	uint16_t port;         //
	uint8_t prio_mask;     // pause_storm
	simtime_t duration;    // pause_storm, slow_receiver; SIMTIME_NEVER: until the end
	uint64_t corrupt_q32;  // set_corrupt
	uint64_t rate_bps;     // set_rate, slow_receiver (0: as fast as frames come)
	uint64_t ber_q62;      // set_ber
	enum fec_code fec;     //
	uint64_t buffer;       // slow_receiver, bytes per priority
	struct sc_route route; // route
	struct sc_pos pos;
};

// A fault rule and the lanes it is on.
struct sc_fault {
	const char *name;
	struct fault_rule rule;     // flow, endpoints resolved
	const struct sc_end *lanes; // by their senders
	uint32_t n_lanes;
	struct sc_pos pos;
};

enum sc_direction { SC_DIR_BOTH, SC_DIR_RX, SC_DIR_TX };

struct sc_tap {
	uint32_t node;
	uint16_t port;
};

struct sc_capture {
	const char *file; // relative to the run directory unless absolute
	const struct sc_tap *taps;
	uint32_t n_taps;
	enum sc_direction dir;
	const char *filter; // libpcap expression or NULL
	uint32_t snaplen;   // bytes, 0: all
	uint64_t max_size;  // bytes per file, 0: no limit
	uint32_t ring;      // files kept (oldest overwritten), 0: stop at max_size
	struct sc_pos pos;
};

enum sc_cmp { SC_EQ, SC_NE, SC_LT, SC_LE, SC_GT, SC_GE };

// One assertion `path op value`. Paths (parts may be fnmatch patterns: must hold for every match):
//   deadlock                        1 or 0
//   drops.total, drops.<reason>     frames (names: emu/core/drop.h)
//   flows.complete                  1: all flows that have an end completed; flows.failed: number
//   flow.<name>.{goodput|fct|retransmissions|bytes|complete|pauses|paused}
//   counter.<node>.<port>.<counter> port counters (node.h; rx_prio3_pause and so on)
//   host.<name>.exit                exit status of a guest's or netns' commands (0: all 0)
//   lag.{p50|p99|max}, pool_empty, duration, makespan
// Value: number in base units (bits/s, ps, bytes, probability), yes/no as 1/0.
struct sc_expect {
	const char *text; // as a person would write it: "flow.victim.goodput < 10Gbps"
	const char *path;
	const char *const *part; // path split at dots
	uint32_t n_parts;
	enum sc_cmp op;
	double value;
	struct sc_pos pos;
};

// ---- the whole --------------------------------------------------------------------------------

enum sc_clock { SC_CLOCK_VIRTUAL, SC_CLOCK_WALL };
enum sc_poll { SC_POLL_ADAPTIVE, SC_POLL_BUSY };
enum sc_paths { SC_PATHS_SHORTEST, SC_PATHS_UP_DOWN };

struct sc_deadlock {
	bool detect;
	simtime_t check_interval;
	simtime_t stuck_for; // nothing in the cycle moved for this long
	bool stop;           // end the run when one is confirmed,
	simtime_t linger;    // this long after
};

// How long egress queues are: looked at every `interval` from `from` on.
struct sc_queue_stats {
	simtime_t interval; // 0: not
	simtime_t from;
};

struct scenario {
	const char *path;        // file name as given
	const char *name;        // "name:" or the file's base name
	const char *description; // may be ""
	enum sc_clock clock;
	uint64_t seed;
	simtime_t duration;        // emulated; 0: until nothing happens any more
	uint32_t time_scale_milli; // wall clock: 1000 = real time, 100000 = 100 times slower
	simtime_t lag_bound;       // wall clock: largest tolerated lag, real time
	enum sc_poll poll;
	enum sc_paths paths; // that routes are computed as
	simtime_t group_target;
	uint32_t lcores;     // 0: the engine chooses
	uint32_t pool_heads; // frames; 0: sized from the scenario
	uint32_t pool_full;
	struct sc_deadlock deadlock;
	struct sc_queue_stats queue_stats;

	struct sc_qos *qos; // qos[0] is the default profile
	uint32_t n_qos;
	struct sc_node *nodes;
	uint32_t n_nodes;
	struct sc_switch *switches;
	uint32_t n_switches;
	struct sc_host *hosts;
	uint32_t n_hosts;
	struct sc_endpoint *endpoints;
	uint32_t n_endpoints;
	struct sc_link *links;
	uint32_t n_links;
	struct sc_route *routes; // explicit; the fabric computes shortest paths for the rest
	uint32_t n_routes;
	struct sc_flow *flows;
	uint32_t n_flows;
	struct sc_app *apps; // by host
	uint32_t n_apps;
	struct sc_event *events; // by time, ties in file order
	uint32_t n_events;
	struct sc_fault *faults; // those of faults:, then those of events:, in file order
	uint32_t n_faults;
	struct sc_capture *captures;
	uint32_t n_captures;
	struct sc_expect *expects;
	uint32_t n_expects;

	struct arena *arena; // owner of everything above
};

// `--set path=value` arguments, applied to the document in order before it is resolved.
struct scenario_overrides {
	const char *const *set; // "defaults.link.rate=40Gbps"
	size_t n_set;
};

// Loads and resolves `path`. Returns 0 and the scenario, or -EINVAL (what is wrong was written to
// `err`, one line each, "file:line:col: key: problem, expected ...") or another -errno when the
// file cannot be read (also written). `ov` may be NULL.
int scenario_load(
	const char *path, const struct scenario_overrides *ov, struct scenario **out, FILE *err);
// The same for a text in memory; `name` stands for the file in messages.
int scenario_load_text(const char *name, const char *text, size_t len,
	const struct scenario_overrides *ov, struct scenario **out, FILE *err);
void scenario_free(struct scenario *s);

// Prints the key table: every section, key, unit, default, range and help.
void scenario_help(FILE *out);

static inline bool sc_is_host(const struct scenario *s, uint32_t node)
{
	return node >= s->n_switches;
}

static inline const struct sc_host *sc_host_of(const struct scenario *s, uint32_t node)
{
	return &s->hosts[node - s->n_switches];
}

static inline struct sc_end sc_peer(const struct scenario *s, uint32_t node, uint16_t port)
{
	const struct sc_port *p = &s->nodes[node].ports[port];
	return s->links[p->link].end[1 - p->end];
}
