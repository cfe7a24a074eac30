/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// What the parts of the loader share. Order of work (load.c): defaults and QoS profiles, topology
// generators, nodes, links, addresses, routing, workloads, events, captures, expectations: each
// step resolves names against what the steps before it made.

#include <stdlib.h>

#include "emu/scenario/arena.h"
#include "emu/scenario/diag.h"
#include "emu/scenario/doc.h"
#include "emu/scenario/names.h"
#include "emu/scenario/scenario.h"
#include "emu/scenario/schema.h"

// Bounds of what a (perhaps hostile) file can make us build.
#define NODES_MAX    8192u
#define NODE_PORTS   512u // PORT_MAX of emu/core/node.h
#define LINKS_MAX    65536u
#define FLOWS_MAX    1000000u
#define CAPTURES_MAX 64u
#define NAME_LEN_MAX 31u // NODE_NAME_MAX - 1
#define EVENTS_MAX   100000u

// ---- objects of the key table that differ from the resolved ones ------------------------------

struct pg_in {
	struct sc_pg pg;
	int lossless; // SC_UNSET: by pfc_enable
	bool th_set;
	struct ynode *at; // where it was given, for messages
};

struct qos_in {
	struct sc_qos q;
	struct pg_in pg[SC_PRIOS];
	bool wd_prios_set;
};

struct link_in {
	struct sc_link l;
	uint32_t parallel;
	struct ynode *ends; // list of two
};

struct switch_in {
	struct sc_switch sw;
	struct ynode *qos; // name
	struct ynode *ports;
};

struct host_in {
	struct sc_host h;
	struct ynode *ip, *ip6, *mac; // one value or a list, one per port
	struct ynode *apps;
};

// A node while it is being built; its index here is not the final one.
struct node_in {
	const char *name;
	bool is_switch;
	struct ynode *at; // NULL: generated and not mentioned
	struct switch_in sw;
	struct host_in host;
};

struct gen_link {
	uint32_t node[2]; // node_in indexes
	struct sc_link props;
};

struct topo_in {
	uint32_t switches, leaves, spines, k, hosts, hosts_per_switch, parallel;
	const char *prefix;
	struct link_in host_link, fabric_link;
};

struct topologies_in { // which generators were named
	struct ynode *star, *ring, *leaf_spine, *fat_tree;
};

struct route_in {
	struct ynode *sw, *dst, *via, *path, *from;
};

enum work_type { WORK_FLOW, WORK_INCAST, WORK_PERMUTATION, WORK_ALL_TO_ALL };

struct work_in {
	enum work_type type;
	struct ynode *src, *dst, *hosts;
	uint32_t fanin, shift;
	int dscp, priority;
	uint64_t messages; // SC_AUTO: 1 if bytes is given, else endless
	struct ynode *bytes;
	struct sc_flow f;
};

struct storm_in {
	struct ynode *host;
	uint8_t prio_mask;
	simtime_t duration;
};

// A link and which of its directions.
struct lanes_in {
	struct ynode *link;
	enum sc_direction dir; // as its first-named end sees it
};

struct rate_in {
	struct lanes_in at;
	uint64_t rate_bps;
};

struct ber_in {
	struct lanes_in at;
	uint64_t ber_q62;
	enum fec_code fec;
};

struct flap_in {
	struct ynode *link;
	simtime_t period;
	uint64_t duty_q32;
	uint32_t count;
};

struct reboot_in {
	struct ynode *sw;
	simtime_t duration;
};

struct slow_in {
	struct ynode *host;
	uint64_t rate_bps, buffer;
	simtime_t duration;
};

struct gilbert_in {
	uint64_t p, r, h, k;
};

struct fault_in {
	struct fault_rule r;
	const char *name;
	struct lanes_in at;
	struct ynode *op, *flow, *src, *dst, *gilbert;
	uint32_t nth, every, psn, message, packet;
	uint64_t probability;
};

struct app_in {
	struct sc_app a;
	int kind, dscp, mtu;
	uint32_t port, size, count;
	struct ynode *peer;
	const char *interface;
};

struct corrupt_in {
	struct ynode *link;
	uint64_t probability;
};

struct event_in {
	simtime_t at;
	struct ynode *link_down, *link_up, *route, *pause_storm, *flow_start, *flow_stop,
		*set_corrupt, *set_rate, *set_ber, *flap, *reboot, *slow_receiver, *fault;
};

struct capture_in {
	struct sc_capture c;
	struct ynode *taps;
};

struct run_in {
	struct sc_run r;
};

// `defaults:` of a scenario, and where the table's own defaults are first put.
struct protos {
	struct link_in link;
	struct sc_nic nic;
	struct switch_in sw;
	struct qos_in qos;
	struct sc_attach attach;
};

struct loader {
	struct arena *a;
	struct diag d;
	struct scenario *s;
	const char *dir; // folder of the scenario, "" if none: for relative files
	struct ynode *root;
	struct protos def;

	struct names qos_names;
	struct names node_names; // -> nodes[]
	struct node_in *nodes;   // after load_nodes() in the same order as the scenario's
	uint32_t n_nodes;
	uint32_t *part;         // connected part of the fabric, by node (load_workloads.c)
	struct sc_port **ports; // of the scenario's nodes, to be changed until addresses are set
	struct gen_link *gen_links;
	uint32_t n_gen_links;
	struct names link_names;
	struct names flow_names;
	struct names work_names; // -> works[]
	struct work_range {
		uint32_t first, n;
	} * works; // flows of each workload
	uint32_t n_works;
	const char **work_list; // their names
	struct names fault_names;
	struct names app_names;
};

// Top-level sections as nodes.
struct top {
	struct ynode *defaults, *qos, *switches, *hosts, *topology, *links, *routing, *workloads,
		*faults, *events, *captures, *expect;
};

// ---- the key table (keys.c) -------------------------------------------------------------------

extern const struct section sec_top, sec_defaults, sec_qos, sec_pg, sec_queue, sec_wred, sec_pfc_wd,
	sec_switch, sec_host, sec_nic, sec_attach, sec_run, sec_replay, sec_link, sec_topology,
	sec_star, sec_ring, sec_leaf_spine, sec_fat_tree, sec_route, sec_workload, sec_event,
	sec_storm, sec_corrupt, sec_capture, sec_lanes, sec_rate, sec_ber, sec_flap, sec_reboot,
	sec_slow, sec_fault, sec_gilbert, sec_dcqcn, sec_dctcp, sec_timely, sec_swift, sec_hpcc,
	sec_np, sec_queue_stats, sec_app;
extern const struct word fec_words[];                                       // keys_events.c
extern const struct word cc_words[], edge_cc_words[], dcqcn_preset_words[]; // keys_cc.c

// Top level: scenario fields and the sections' nodes.
struct top_in {
	struct scenario s;
	struct top top;
};

// ---- parts ------------------------------------------------------------------------------------

bool load_qos(struct loader *l, struct ynode *qos);           // load_qos.c
void qos_azure(struct qos_in *q);                             // SONiC's AZURE maps
bool load_topology(struct loader *l, struct ynode *topology); // topology.c
bool load_nodes(struct loader *l, struct ynode *switches, struct ynode *hosts); // load_nodes.c
bool load_links(struct loader *l, struct ynode *links);                         // load_links.c
bool load_port_qos(struct loader *l);                                           // load_nodes.c
bool load_addresses(struct loader *l);                                          // load_addresses.c
bool load_routing(struct loader *l, struct ynode *routing);                     // load_routing.c
bool load_workloads(struct loader *l, struct ynode *workloads);                 // load_workloads.c
bool load_apps(struct loader *l);                                               // load_apps.c
bool load_events(struct loader *l, struct ynode *events);                       // load_events.c
bool load_faults(struct loader *l, struct ynode *faults);                       // load_faults.c
bool load_captures(struct loader *l, struct ynode *captures);                   // load_captures.c
bool load_expect(struct loader *l, struct ynode *expect);                       // load_expect.c

bool load_whole(struct loader *l); // load_whole.c
// The `workloads` section, for errors.
const struct ynode *workload_map(const struct loader *l);

// load_cc.c: what `auto` of a NIC's congestion control means.
void resolve_cc(struct sc_nic *nic);
bool check_cc(struct loader *l);
void resolve_attach_cc(struct sc_attach *a);

// load_transport.c: whether a flow's transport carries its operation (`at`: the workload), and
// whether all flows go with the NICs at their ends.
bool transport_carries(struct loader *l, const struct ynode *at, const struct sc_flow *f);
bool check_transport(struct loader *l);

// Adds a node (topology.c and load_nodes.c); returns its node_in index, SC_NONE after an error.
uint32_t add_node(struct loader *l, const char *name, bool is_switch, struct ynode *at);
// Checks a name: letters, digits, _ and -, at most 31.
bool check_name(struct loader *l, const struct ynode *at, const char *name);

// Readers of K_CUSTOM keys.
bool read_length(struct loader *l, struct ynode *v, void *object);
bool read_flow_control(struct loader *l, struct ynode *v, void *object);
bool read_prio_mask(struct loader *l, struct ynode *v, uint8_t *mask);
bool read_attach(struct loader *l, struct ynode *v, void *object);
bool read_replay(struct loader *l, struct ynode *v, void *object);
bool read_run(struct loader *l, struct ynode *v, void *object);
bool read_env(struct loader *l, struct ynode *v, void *object);
bool read_dcqcn(struct loader *l, struct ynode *v, void *object);
bool read_attach_dcqcn(struct loader *l, struct ynode *v, void *object);
bool read_nic_pfc(struct loader *l, struct ynode *v, void *object);
bool read_fault_prio(struct loader *l, struct ynode *v, void *object);
bool read_fault_qp(struct loader *l, struct ynode *v, void *object);
bool read_storm_prio(struct loader *l, struct ynode *v, void *object);
bool read_dscp_to_tc(struct loader *l, struct ynode *v, void *object);
bool read_bounce(struct loader *l, struct ynode *v, void *object);
bool read_pcp_to_tc(struct loader *l, struct ynode *v, void *object);
bool read_tc_to_pg(struct loader *l, struct ynode *v, void *object);
bool read_tc_to_queue(struct loader *l, struct ynode *v, void *object);
bool read_pfc_enable(struct loader *l, struct ynode *v, void *object);
bool read_pfc_tx(struct loader *l, struct ynode *v, void *object);
bool read_pfc_rx(struct loader *l, struct ynode *v, void *object);
bool read_pgs(struct loader *l, struct ynode *v, void *object);
bool read_queues(struct loader *l, struct ynode *v, void *object);
bool read_pg_lossless(struct loader *l, struct ynode *v, void *object);
bool read_pg_dynamic_th(struct loader *l, struct ynode *v, void *object);
bool read_pg_static_th(struct loader *l, struct ynode *v, void *object);
bool read_queue_dynamic_th(struct loader *l, struct ynode *v, void *object);
bool read_queue_static_th(struct loader *l, struct ynode *v, void *object);
bool read_pfcwd_sw_enable(struct loader *l, struct ynode *v, void *object);
bool read_pfc_wd(struct loader *l, struct ynode *v, void *object);
bool read_wred(struct loader *l, struct ynode *v, void *object);

// ---- references (refs.c) ----------------------------------------------------------------------

// Each reports and returns SC_NONE / false when the name is unknown or of the wrong kind.
uint32_t ref_node(struct loader *l, const struct ynode *v);
uint32_t ref_switch(struct loader *l, const struct ynode *v);
// "h1" (its first port) or "h1:eth1".
bool ref_port(struct loader *l, const struct ynode *v, struct sc_end *end);
uint32_t ref_endpoint(struct loader *l, const struct ynode *v);
// A link's name, "node:port", or [a, b]: every link between the two. Calls with each link index
// are collected into an arena array.
bool ref_links(struct loader *l, const struct ynode *v, uint32_t **links, uint32_t *n);
// The same, each with the end that the reference names first (a, node, the link's own first).
struct link_ref {
	uint32_t link;
	uint8_t first;
};
bool ref_links_from(struct loader *l, const struct ynode *v, struct link_ref **refs, uint32_t *n);
// Bit e: the lane that end e sends on.
uint8_t ref_ends(const struct link_ref *r, enum sc_direction dir);
// load_faults.c: one rule, awake from `from` on.
bool load_fault(struct loader *l, struct ynode *v, simtime_t from);
// An address with an optional "/length" (`def_len` without).
bool parse_ip4(struct loader *l, const struct ynode *v, uint8_t def_len, uint32_t *ip,
	uint8_t *len); // load_addresses.c
bool parse_ip6(
	struct loader *l, const struct ynode *v, uint8_t def_len, uint8_t ip[16], uint8_t *len);
// A list, or one value as a list of one: number of items and access.
uint32_t list_count(const struct ynode *v);
struct ynode *list_item(struct ynode *v, uint32_t i);
const struct sc_port *find_port(const struct scenario *s, uint32_t node, const char *name);
bool links_between(struct loader *l, uint32_t a, uint32_t b, uint32_t **links, uint32_t *n);
bool read_route(struct loader *l, struct ynode *v, bool path_allowed, struct sc_route **routes,
	uint32_t *n); // load_routing.c
// "3", "3-4", "0,2,5-6", "all" as a mask of numbers below `limit` (<= 64).
bool read_number_set(
	struct loader *l, const struct ynode *v, const char *text, unsigned limit, uint64_t *mask);

static inline struct sc_pos pos_of(const struct ynode *n)
{
	return n == NULL ? (struct sc_pos){0} : (struct sc_pos){.line = n->line, .col = n->col};
}
