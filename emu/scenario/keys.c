/* SPDX-License-Identifier: BSD-3-Clause */

// The key table: the fabric, what it carries and the whole (keys.h says how a key is declared).

#include "emu/scenario/keys.h"

// clang-format off

// ---- fabric -----------------------------------------------------------------------------------

#define LINK_PROPS                                                                                 \
	NUM(struct link_in, l.rate_bps, "rate", Q_RATE, "100Gbps", RATE_MIN, RATE_MAX,             \
		"line rate of each direction"),                                                    \
	NUM(struct link_in, l.delay, "delay", Q_TIME, "25ns", 0, SIM_S,                            \
		"propagation delay"),                                                              \
	CUSTOM(read_length, "length", NULL, "<length> 0..100km",                                   \
		"cable length instead of the delay, at 5 ns per metre"),                           \
	NUM(struct link_in, l.mtu, "mtu", Q_COUNT, "9100", 256, 9600,                              \
		"IP MTU in bytes: the longest IP packet that passes"),                                      \
	CUSTOM(read_flow_control, "flow_control", "pfc", "none|pfc",                               \
		"pfc: the ports pause each other as their QoS says; none: they never do"),         \
	NUM(struct link_in, l.corrupt_q32, "corrupt", Q_PROBABILITY, "0", 0, INT64_C(1) << 32,     \
		"probability that a frame is damaged (each direction); the receiver drops it"),    \
	NUM(struct link_in, l.ber_q62, "ber", Q_BER, "0", 0, INT64_C(1) << 62,                     \
		"bit error rate before FEC (each direction)"),                                     \
	ENUM(struct link_in, l.fec, "fec", fec_words, "rs544",                                          \
		"what corrects bit errors: Reed-Solomon (544,514), (528,514) or nothing")

SECTION(sec_link_props, "defaults.link", "What a link is like unless it says otherwise.",
	LINK_PROPS);
SECTION(sec_link, "links[]", "A cable between two ports; `[a, b]` alone is short for `ends`.",
	NODE(struct link_in, ends, "ends", NULL, "[node, node] or [node:port, node:port]",
		"the two nodes it joins; ports are named eth0, eth1, ... in file order unless given",
		.required = true),
	TEXT(struct link_in, l.name, "name", NULL, "for events and captures (default a:eth0-b:eth0)"),
	NUM(struct link_in, parallel, "parallel", Q_COUNT, "1", 1, 64,
		"number of such links side by side"),
	LINK_PROPS);

static const struct word balancings[] = {
#define X(id, name, help) {name, LB_##id},
	LB_MODES(X)
#undef X
	{NULL, 0}};

SECTION(sec_switch, "switches.NAME",
	"A switch. `switches` may be a list of names when none needs settings of its own.",
	NUM(struct switch_in, sw.latency, "latency", Q_TIME, "600ns", 0, SIM_MS * 10,
		"forwarding latency, from a frame's last bit in to its first bit out at the earliest"),
	NODE(struct switch_in, qos, "qos", "`default`", "name of a profile in qos:",
		"its QoS profile"),
	NODE(struct switch_in, ports, "ports", NULL, "{port: name of a profile in qos:}",
		"QoS profiles of single ports instead of the switch's (buffer and cell_size "
		"are the switch's)"),
	NUM(struct switch_in, sw.buffer, "buffer", Q_SIZE, "auto", 4096, SIZE_MAX_,
		"its whole packet buffer; auto: the profile's", AUTO),
	NUM(struct switch_in, sw.ecmp_seed, "ecmp_seed", Q_COUNT, "auto", 0, INT64_MAX,
		"seed of its ECMP hash; auto: a different one per switch", AUTO),
	ENUM(struct switch_in, sw.load_balancing, "load_balancing", balancings, "ecmp",
		"choice among equal-cost ports: ecmp: by a hash of the flow; spray: frame by frame in "
		"turn; random: frame by frame; adaptive: frame by frame by queue length; flowlet: anew "
		"after a gap (spray, random and adaptive reorder, see a NIC's ooo)"),
	NUM(struct switch_in, sw.flowlet_gap, "flowlet_gap", Q_TIME, "50us", 0, SIM_S,
		"flowlet: pause of a flow after which its path is chosen anew"),
	NUM(struct switch_in, sw.level, "level", Q_COUNT, "auto", 0, 15,
		"its height above the hosts, for `paths: up-down`, `bounce` and the deadlock check; auto: "
		"0 with hosts, else one more than its lowest neighbour",
		.word = "auto", .word_value = SC_LEVEL_AUTO));

// ---- QoS --------------------------------------------------------------------------------------

static const struct word trusts[] = {{"dscp", SC_TRUST_DSCP}, {"pcp", SC_TRUST_PCP}, {NULL, 0}};
static const struct word scheds[] = {{"STRICT", SC_SCHED_STRICT}, {"DWRR", SC_SCHED_DWRR}, {NULL, 0}};

static const struct word marks[] = {{"enqueue", false}, {"dequeue", true}, {NULL, 0}};

SECTION(sec_wred, "qos.NAME.queue.N.wred",
	"WRED profile of a queue; giving the section turns ecn on.",
	BOOL(struct sc_queue, ecn, "ecn", "no", "mark ECT frames CE"),
	BOOL(struct sc_queue, wred_drop, "drop", "no", "drop frames that are not ECT by the same curve"),
	NUM(struct sc_queue, kmin, "kmin", Q_SIZE, "1048576B", 0, SIZE_MAX_,
		"queue length where marking starts (SONiC green_min_threshold)"),
	NUM(struct sc_queue, kmax, "kmax", Q_SIZE, "2097152B", 0, SIZE_MAX_,
		"queue length from which every frame is marked (SONiC green_max_threshold)"),
	NUM(struct sc_queue, pmax_q32, "pmax", Q_PROBABILITY, "5%", 0, INT64_C(1) << 32,
		"probability just below kmax (SONiC green_drop_probability)"),
	ENUM(struct sc_queue, mark_at_dequeue, "mark_at", marks, "enqueue",
		"enqueue: by what waits when a frame comes; dequeue: when it leaves, so that the "
		"sender knows of the queue one queueing delay earlier (not with drop)"));
SECTION(sec_queue, "qos.NAME.queue.N",
	"Egress queues: N is a number, a range (0-2), a list (0,5-6) or all. Default: queues 3 and 4 "
	"DWRR weight 15, queue 7 STRICT, others DWRR 14.",
	ENUM(struct sc_queue, sched, "type", scheds, "DWRR", "SONiC SCHEDULER type"),
	NUM(struct sc_queue, weight, "weight", Q_COUNT, "14", 1, 100, "DWRR weight"),
	CUSTOM(read_queue_dynamic_th, "dynamic_th", "3", "-8..7",
		"limit of lossy frames: 2^dynamic_th x free shared bytes"),
	CUSTOM(read_queue_static_th, "static_th", NULL, "<size> or none",
		"limit of lossy frames in bytes, instead of dynamic_th"),
	NUM(struct sc_queue, size, "size", Q_SIZE, "0", 0, SIZE_MAX_, "guaranteed bytes"),
	CUSTOM(read_wred, "wred", NULL, "section, see qos.NAME.queue.N.wred",
		"ECN marking and WRED; without it the queue neither marks nor drops early"));
SECTION(sec_pg, "qos.NAME.pg.N",
	"Ingress priority groups (SONiC BUFFER_PROFILE): N is a number, a range, a list or all.",
	CUSTOM(read_pg_lossless, "lossless", "auto", "yes|no|auto",
		"auto: lossless if priority N is in pfc_enable (tx)"),
	NUM(struct pg_in, pg.size, "size", Q_SIZE, "0", 0, SIZE_MAX_, "guaranteed bytes"),
	CUSTOM(read_pg_dynamic_th, "dynamic_th", "0 if lossless, else 3", "-8..7",
		"threshold: 2^dynamic_th x free shared bytes (XOFF if lossless, else drop)"),
	CUSTOM(read_pg_static_th, "static_th", NULL, "<size> or none",
		"threshold in bytes, instead of dynamic_th"),
	NUM(struct pg_in, pg.xon, "xon", Q_SIZE, "2288B", 0, SIZE_MAX_,
		"XON when usage is down to this, or to xon_offset below the threshold if that is higher"),
	NUM(struct pg_in, pg.xon_offset, "xon_offset", Q_SIZE, "2288B", 0, SIZE_MAX_,
		"see xon"),
	NUM(struct pg_in, pg.xoff, "xoff", Q_SIZE, "auto", 0, SIZE_MAX_,
		"headroom above the threshold for what arrives after XOFF; auto: from rate and delay",
		AUTO));
static const struct word wd_actions[] = {
#define X(id, name, help) {name, PFC_WD_##id},
	PFC_WD_ACTIONS(X)
#undef X
	{NULL, 0}};
static const struct word wd_conditions[] = {
#define X(id, name, help) {name, PFC_WD_CONDITION_##id},
	PFC_WD_CONDITIONS(X)
#undef X
	{NULL, 0}};

SECTION(sec_pfc_wd, "qos.NAME.pfc_wd",
	"The PFC watchdog (SONiC PFC_WD) of the queues of pfcwd_sw_enable; without the section there is "
	"none.",
	ENUM(struct sc_pfc_wd, action, "action", wd_actions, "drop",
		"drop: frames of a stormed queue are dropped; forward: its priority's PFC is off; alert: "
		"only the event"),
	NUM(struct sc_pfc_wd, detection_time, "detection_time", Q_TIME, "200ms", SIM_US, 60 * SIM_S,
		"a queue is stormed when it looked so for this long (SONiC: 100 ms to 5 s)"),
	NUM(struct sc_pfc_wd, restoration_time, "restoration_time", Q_TIME, "200ms", SIM_US,
		60 * SIM_S, "and restored when no XOFF came for this long (SONiC: 100 ms to 60 s)"),
	NUM(struct sc_pfc_wd, poll_interval, "poll_interval", Q_TIME, "200ms", SIM_US, 60 * SIM_S,
		"how often it looks; of several ports' profiles the shortest, for the whole switch"),
	ENUM(struct sc_pfc_wd, storm_condition, "storm_condition", wd_conditions, "generic",
		"what looks like a storm, by ASIC: broadcom, mellanox, or generic (others and virtual)"),
	BOOL(struct sc_pfc_wd, big_red_switch, "big_red_switch", "no",
		"every watched queue is stormed from the start and stays so"));
SECTION(sec_qos, "qos.NAME",
	"A QoS profile in SONiC's words. Profile `default` is what switches use; every other starts as "
	"a copy of it. Built in: SONiC's AZURE maps with priorities 3 and 4 lossless.",
	ENUM(struct qos_in, q.trust, "trust", trusts, "dscp", "which field gives the traffic class"),
	CUSTOM(read_dscp_to_tc, "dscp_to_tc", "AZURE", "{DSCPs: TC, ...}",
		"AZURE: 3->3, 4->4, 5->2, 8->0, 46->5, 48->6, others 1; `all: 1` first starts afresh"),
	CUSTOM(read_pcp_to_tc, "pcp_to_tc", "AZURE", "{PCPs: TC, ...}", "AZURE: 0->1, 1->0, else itself"),
	NUM(struct qos_in, q.default_tc, "default_tc", Q_COUNT, "1", 0, 7,
		"class of frames without the trusted field"),
	CUSTOM(read_tc_to_pg, "tc_to_pg", "AZURE", "{TCs: PG, ...}",
		"AZURE: 3->3, 4->4, 7->7, others 0"),
	CUSTOM(read_tc_to_queue, "tc_to_queue", "identity", "{TCs: queue, ...}", "egress queue"),
	CUSTOM(read_bounce, "bounce", NULL, "{DSCPs: DSCP, ...}",
		"a frame that came from an upper switch and is sent up again goes on with this DSCP, by "
		"that one's queue (SONiC's tunnel remap: {3: 2, 4: 6}; Tagger: one tag per bounce)"),
	CUSTOM(read_pfc_enable, "pfc_enable", "[3, 4]", "[priorities], all, or []",
		"lossless priorities: pauses are sent for them and obeyed (sets pfc_tx and pfc_rx)"),
	CUSTOM(read_pfc_tx, "pfc_tx", NULL, "[priorities]", "send pauses for these only"),
	CUSTOM(read_pfc_rx, "pfc_rx", NULL, "[priorities]", "obey pauses of these only"),
	CUSTOM(read_pfcwd_sw_enable, "pfcwd_sw_enable", "pfc_enable", "[priorities], all, or []",
		"priorities whose queues the PFC watchdog watches, if there is pfc_wd"),
	CUSTOM(read_pfc_wd, "pfc_wd", NULL, "section, see qos.NAME.pfc_wd", "the PFC watchdog"),
	NUM(struct qos_in, q.pfc_quanta, "pfc_quanta", Q_COUNT, "65535", 1, 65535,
		"pause time asked for, in 512-bit times; refreshed before it runs out"),
	NUM(struct qos_in, q.pfc_response, "pfc_response", Q_TIME, "auto", 0, SIM_MS,
		"from a pause's arrival to its effect; auto: 802.3 31B.3.7 by rate", AUTO),
	NUM(struct qos_in, q.cell_size, "cell_size", Q_SIZE, "256B", 16, 16384,
		"buffer is counted in cells of this size"),
	NUM(struct qos_in, q.buffer, "buffer", Q_SIZE, "32MB", 4096, SIZE_MAX_,
		"the switch's whole packet buffer"),
	CUSTOM(read_pgs, "pg", NULL, "{N: section}", "ingress priority groups, see qos.NAME.pg.N"),
	CUSTOM(read_queues, "queue", NULL, "{N: section}", "egress queues, see qos.NAME.queue.N"));

// ---- topology ---------------------------------------------------------------------------------

#define TIERS                                                                                      \
	SUB(struct topo_in, host_link, "host_link", sec_link_props, "links of hosts (as defaults.link)")
#define FABRIC                                                                                     \
	TIERS,                                                                                     \
	SUB(struct topo_in, fabric_link, "fabric_link", sec_link_props,                            \
		"links between switches (as defaults.link)"),                                      \
	NUM(struct topo_in, parallel, "parallel", Q_COUNT, "1", 1, 64,                             \
		"links side by side between two switches")
#define PREFIX TEXT(struct topo_in, prefix, "prefix", "", "put before every name")

SECTION(sec_star, "topology.star", "One switch sw1 with hosts h1, h2, ...", PREFIX,
	NUM(struct topo_in, hosts, "hosts", Q_COUNT, NULL, 1, NODE_PORTS, "number of hosts",
		.required = true), TIERS);
SECTION(sec_ring, "topology.ring", "Switches sw1, sw2, ... in a ring, hosts h1, ... on each in turn.",
	PREFIX,
	NUM(struct topo_in, switches, "switches", Q_COUNT, NULL, 3, 1024, "number of switches",
		.required = true),
	NUM(struct topo_in, hosts_per_switch, "hosts_per_switch", Q_COUNT, "1", 0, NODE_PORTS - 2,
		"hosts on each switch"), FABRIC);
SECTION(sec_leaf_spine, "topology.leaf_spine",
	"leaf1, ... each joined to spine1, ...; hosts h1, ... on the leaves in turn.", PREFIX,
	NUM(struct topo_in, leaves, "leaves", Q_COUNT, NULL, 1, NODE_PORTS, "number of leaves",
		.required = true),
	NUM(struct topo_in, spines, "spines", Q_COUNT, NULL, 1, NODE_PORTS, "number of spines",
		.required = true),
	NUM(struct topo_in, hosts_per_switch, "hosts_per_leaf", Q_COUNT, NULL, 1, NODE_PORTS,
		"hosts on each leaf", .required = true), FABRIC);
SECTION(sec_fat_tree, "topology.fat_tree",
	"k pods of k/2 edge and k/2 agg switches, (k/2)^2 core switches, k^3/4 hosts: edge1, ..., agg1, "
	"..., core1, ..., h1, ...", PREFIX,
	NUM(struct topo_in, k, "k", Q_COUNT, NULL, 2, 30, "ports per switch, even", .required = true),
	FABRIC);
SECTION(sec_topology, "topology", "Generators; explicit switches, hosts and links come on top.",
	NODE(struct topologies_in, star, "star", NULL, "section", "see topology.star"),
	NODE(struct topologies_in, ring, "ring", NULL, "section", "see topology.ring"),
	NODE(struct topologies_in, leaf_spine, "leaf_spine", NULL, "section",
		"see topology.leaf_spine"),
	NODE(struct topologies_in, fat_tree, "fat_tree", NULL, "section", "see topology.fat_tree"));
SECTION(sec_route, "routing[]",
	"A route that replaces the computed shortest paths at one switch, or along a path.",
	NODE(struct route_in, sw, "switch", NULL, "name", "where (with `via`)"),
	NODE(struct route_in, dst, "dst", NULL, "host, host:port, address/len, or a list",
		"destinations", .required = true),
	NODE(struct route_in, via, "via", NULL, "neighbour, switch:port, a list of them, or drop",
		"next hops of equal cost"),
	NODE(struct route_in, from, "from", NULL, "neighbour, switch:port, or a list of them",
		"with switch and via: only for what comes in from there (a tunnel's far end, policy)"),
	NODE(struct route_in, path, "path", NULL, "[switch, switch, ...]",
		"instead of switch and via: each forwards to the next"));

// ---- workloads, timeline ----------------------------------------------------------------------

static const struct word types[] = {{"flow", WORK_FLOW}, {"incast", WORK_INCAST},
	{"permutation", WORK_PERMUTATION}, {"all_to_all", WORK_ALL_TO_ALL}, {NULL, 0}};
static const struct word ops[] = {{"WRITE", WR_WRITE}, {"WRITE_IMM", WR_WRITE_IMM},
	{"SEND", WR_SEND}, {"SEND_IMM", WR_SEND_IMM}, {"READ", WR_READ},
	{"CMP_SWAP", WR_CMP_SWAP}, {"FETCH_ADD", WR_FETCH_ADD}, {NULL, 0}};
static const struct word transports[] = {{"RC", QP_RC}, {"UC", QP_UC}, {"UD", QP_UD}, {NULL, 0}};
static const struct word roce_versions[] = {{"v2", false}, {"v1", true}, {NULL, 0}};

SECTION(sec_workload, "workloads.NAME",
	"Flows between built-in NICs. A single flow has the workload's name, others NAME-SRC-DST.",
	ENUM(struct work_in, type, "type", types, "flow",
		"flow: src to dst; incast: all of src to dst; permutation: host i to host i+shift; "
		"all_to_all: every pair"),
	NODE(struct work_in, src, "src", NULL, "host, host:port or (incast) a list",
		"senders; incast: all other hosts unless given"),
	NODE(struct work_in, dst, "dst", NULL, "host or host:port", "receiver of a flow or incast"),
	NODE(struct work_in, hosts, "hosts", NULL, "list", "of permutation and all_to_all: all unless given"),
	NUM(struct work_in, fanin, "fanin", Q_COUNT, "auto", 1, FLOWS_MAX,
		"incast: the first n senders only", .word = "auto", .word_value = 0),
	NUM(struct work_in, shift, "shift", Q_COUNT, "1", 1, NODES_MAX, "permutation: see type"),
	ENUM(struct work_in, f.op, "op", ops, "WRITE",
		"what src does; the data of a READ comes from dst, atomics work on 8 bytes there"),
	ENUM(struct work_in, f.transport, "transport", transports, "RC",
		"UC: WRITE and SEND, unacknowledged; UD: SEND of one packet"),
	ENUM(struct work_in, f.roce1, "roce", roce_versions, "v2",
		"v1: GRH and Ethertype 0x8915, switched by MAC, priority by PCP, never ECN-marked"),
	NODE(struct work_in, bytes, "bytes", "1MiB", "<size> 1B..2147483648B", "length of a message"),
	NUM(struct work_in, messages, "messages", Q_COUNT, NULL, 1, INT64_MAX,
		"messages per QP (default 1 if bytes is given, else endless)",
		.word = "endless", .word_value = 0),
	NUM(struct work_in, f.rate_bps, "rate", Q_RATE, "line", RATE_MIN, RATE_MAX,
		"payload rate of a flow, all its QPs together; line: as fast as the link allows",
		.word = "line", .word_value = 0),
	NUM(struct work_in, f.start, "start", Q_TIME, "0", 0, YEAR,
		"when it starts; event: when a flow_start event says so",
		.word = "event", .word_value = SIMTIME_NEVER),
	NUM(struct work_in, f.stop, "stop", Q_TIME, "never", 0, YEAR, "no new packets after this",
		.word = "never", .word_value = SIMTIME_NEVER),
	INT(struct work_in, dscp, "dscp", "3", 0, 63, "DSCP of its packets"),
	INT(struct work_in, priority, "priority", NULL, 0, 7,
		"instead of dscp: the lowest DSCP (the same number if it fits) of this traffic class"),
	INT(struct work_in, f.pcp, "pcp", "none", 0, 7, "send with an 802.1Q tag of this PCP",
		.word = "none", .word_value = SC_UNSET),
	NUM(struct work_in, f.ttl, "ttl", Q_COUNT, "auto", 1, 255,
		"TTL of its packets; auto: the NIC's", .word = "auto", .word_value = 0),
	BOOL(struct work_in, f.ipv6, "ipv6", "no", "use the IPv6 addresses"),
	NUM(struct work_in, f.qps, "qps", Q_COUNT, "1", 1, 4096, "queue pairs per flow"),
	NUM(struct work_in, f.udp_sport, "udp_sport", Q_COUNT, "auto", 1024, 65535,
		"UDP source port of the first QP, one up for each next; auto: spread by a hash",
		.word = "auto", .word_value = 0));

static const struct word directions[] = {{"both", SC_DIR_BOTH}, {"rx", SC_DIR_RX},
	{"tx", SC_DIR_TX}, {NULL, 0}};

SECTION(sec_capture, "captures[]", "A pcapng file with what passes at some ports.",
	TEXT(struct capture_in, c.file, "file", NULL, "file name, in the run directory unless absolute",
		.required = true),
	NODE(struct capture_in, taps, "taps", "all", "node, node:port, link name, or a list; or all",
		"where to look"),
	ENUM(struct capture_in, c.dir, "direction", directions, "both",
		"as the tapped port sees it"),
	TEXT(struct capture_in, c.filter, "filter", NULL, "libpcap expression"),
	NUM(struct capture_in, c.snaplen, "snaplen", Q_SIZE, "0", 0, 65535,
		"bytes kept of each frame; 0: all"),
	NUM(struct capture_in, c.max_size, "max_size", Q_SIZE, "0", 0, SIZE_MAX_,
		"largest size of a file; 0: no limit"),
	NUM(struct capture_in, c.ring, "ring", Q_COUNT, "0", 0, 1000,
		"files kept, the oldest is replaced; 0: stop at max_size"));

// ---- the whole --------------------------------------------------------------------------------

static const struct word clocks[] = {{"virtual", SC_CLOCK_VIRTUAL}, {"wall", SC_CLOCK_WALL}, {NULL, 0}};
static const struct word polls[] = {{"adaptive", SC_POLL_ADAPTIVE}, {"busy", SC_POLL_BUSY}, {NULL, 0}};

SECTION(sec_defaults, "defaults", "What links, NICs, switches and QoS profiles are like unless they say otherwise.",
	SUB(struct protos, link, "link", sec_link_props, "see defaults.link"),
	SUB(struct protos, nic, "nic", sec_nic, "see hosts.NAME.nic"),
	SUB(struct protos, sw, "switch", sec_switch, "see switches.NAME"),
	SUB(struct protos, qos, "qos", sec_qos, "see qos.NAME"),
	SUB(struct protos, attach, "attach", sec_attach, "see hosts.NAME.attach"));
SECTION(sec_deadlock, "deadlock", "The deadlock detector.",
	BOOL(struct sc_deadlock, detect, "detect", "yes", "look for deadlocks"),
	NUM(struct sc_deadlock, check_interval, "check_interval", Q_TIME, "10us", SIM_NS, SIM_S,
		"how often"),
	NUM(struct sc_deadlock, stuck_for, "stuck_for", Q_TIME, "1ms", SIM_NS, 10 * SIM_S,
		"a cycle of pauses in which nothing moved for this long is a deadlock"),
	BOOL(struct sc_deadlock, stop, "stop", "yes", "end the run `linger` after one is confirmed"),
	NUM(struct sc_deadlock, linger, "linger", Q_TIME, "100us", 0, 10 * SIM_S, "from a deadlock's confirmation to the end of the run"));
SECTION(sec_pools, "pools", "Sizes of the frame pools; running out is counted and reported.",
	NUM(struct top_in, s.pool_heads, "heads", Q_COUNT, "auto", 1024, 1 << 28,
		"frames of built-in NICs; auto: from the scenario", .word = "auto", .word_value = 0),
	NUM(struct top_in, s.pool_full, "full", Q_COUNT, "auto", 1024, 1 << 28,
		"frames from outside", .word = "auto", .word_value = 0));

static const struct word path_words[] = {
	{"shortest", SC_PATHS_SHORTEST}, {"up-down", SC_PATHS_UP_DOWN}, {NULL, 0}};

static const struct key sec_top_keys[] = {
	TEXT(struct top_in, s.name, "name", NULL, "short name (default the file's)"),
	TEXT(struct top_in, s.description, "description", "", "what the scenario shows"),
	ENUM(struct top_in, s.clock, "clock", clocks, "virtual",
		"virtual: deterministic; wall: in real time, for real endpoints"),
	NUM(struct top_in, s.seed, "seed", Q_COUNT, "1", 0, INT64_MAX, "of every random number"),
	NUM(struct top_in, s.duration, "duration", Q_TIME, "0", 0, YEAR,
		"emulated time after which the run ends; 0: when nothing happens any more"),
	NUM(struct top_in, s.time_scale_milli, "time_scale", Q_FACTOR, "1", 1, 1000000000,
		"wall clock: emulated time passes this many times slower than real time"),
	NUM(struct top_in, s.lag_bound, "lag_bound", Q_TIME, "10ms", SIM_US, 1000 * SIM_S,
		"wall clock: tolerated lag behind real time; 99 % of the events must be within it"),
	ENUM(struct top_in, s.poll, "poll", polls, "adaptive",
		"wall clock: adaptive sleeps when idle, busy never does"),
	NUM(struct top_in, s.group_target, "group_target", Q_TIME, "500ns", 0, SIM_S,
		"nodes joined by links shorter than this are executed as one group"),
	NUM(struct top_in, s.lcores, "lcores", Q_COUNT, "auto", 1, 128, "threads that execute the fabric",
		.word = "auto", .word_value = 0),
	{.name = "pools", .type = K_SECTION, .sub = &sec_pools, .help = "see pools"},
	SUB(struct top_in, s.queue_stats, "queue_stats", sec_queue_stats, "see queue_stats"),
	SUB(struct top_in, s.deadlock, "deadlock", sec_deadlock, "see deadlock"),
	NODE(struct top_in, top.defaults, "defaults", NULL, "section", "see defaults"),
	NODE(struct top_in, top.qos, "qos", NULL, "{NAME: section}", "see qos.NAME"),
	NODE(struct top_in, top.switches, "switches", NULL, "{NAME: section} or a list of names",
		"see switches.NAME"),
	NODE(struct top_in, top.hosts, "hosts", NULL, "{NAME: section} or a list of names",
		"see hosts.NAME"),
	NODE(struct top_in, top.topology, "topology", NULL, "section", "see topology"),
	NODE(struct top_in, top.links, "links", NULL, "list", "see links[]"),
	ENUM(struct top_in, s.paths, "paths", path_words, "shortest",
		"routes: shortest: all shortest paths; up-down: never up again after down, whatever has "
		"failed (no buffer cycles), even if that is longer or no path is left"),
	NODE(struct top_in, top.routing, "routing", NULL, "list", "see routing[]"),
	NODE(struct top_in, top.workloads, "workloads", NULL, "{NAME: section}", "see workloads.NAME"),
	NODE(struct top_in, top.faults, "faults", NULL, "list", "see faults[]"),
	NODE(struct top_in, top.events, "events", NULL, "list", "see events[]"),
	NODE(struct top_in, top.captures, "captures", NULL, "list", "see captures[]"),
	NODE(struct top_in, top.expect, "expect", NULL, "list",
		"assertions `path op value` that decide the exit status, see `fabemu help expect`"),
};
const struct section sec_top = {.name = "the scenario", .help = "Sections and settings of the whole run.",
	.keys = sec_top_keys, .n_keys = sizeof(sec_top_keys) / sizeof(sec_top_keys[0])};

void scenario_help(FILE *out)
{
	static const struct section *const all[] = {&sec_top, &sec_deadlock, &sec_queue_stats, &sec_pools, &sec_defaults,
		&sec_link_props, &sec_topology, &sec_star, &sec_ring, &sec_leaf_spine, &sec_fat_tree,
		&sec_switch, &sec_qos, &sec_pg, &sec_queue, &sec_wred, &sec_pfc_wd, &sec_host, &sec_nic, &sec_dcqcn, &sec_dctcp, &sec_timely, &sec_swift, &sec_hpcc, &sec_np,
		&sec_app, &sec_attach, &sec_run, &sec_replay, &sec_link, &sec_route, &sec_workload, &sec_event,
		&sec_storm, &sec_corrupt, &sec_lanes, &sec_rate, &sec_ber, &sec_flap, &sec_reboot,
		&sec_slow, &sec_fault, &sec_gilbert, &sec_capture};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		schema_print(all[i], out);
}
