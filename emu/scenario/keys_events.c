/* SPDX-License-Identifier: BSD-3-Clause */

// The key table of what goes wrong: events and fault rules.

#include "emu/scenario/keys.h"

// clang-format off

const struct word fec_words[] = {
#define X(id, name, n, k) {name, FEC_##id},
	FEC_CODES(X)
#undef X
	{NULL, 0}};

SECTION(sec_storm, "events[].pause_storm", "A host that sends XOFF without end.",
	NODE(struct storm_in, host, "host", NULL, "host or host:port", "who", .required = true),
	CUSTOM(read_storm_prio, "priority", "3", "number or list", "which priorities"),
	NUM(struct storm_in, duration, "duration", Q_TIME, "never", 0, YEAR,
		"how long; never: to the end", .word = "never", .word_value = SIMTIME_NEVER));
SECTION(sec_corrupt, "events[].set_corrupt", "Changes the error rate of links.",
	NODE(struct corrupt_in, link, "link", NULL, "link name, node:port or [a, b]", "which",
		.required = true),
	NUM(struct corrupt_in, probability, "probability", Q_PROBABILITY, NULL, 0, INT64_C(1) << 32,
		"that a frame is damaged", .required = true));
static const struct word lane_directions[] = {{"both", SC_DIR_BOTH}, {"tx", SC_DIR_TX},
	{"rx", SC_DIR_RX}, {NULL, 0}};
#define LINK_REF "link name, node:port or [a, b]"
#define LANES(s, at)                                                                               \
	NODE(s, at.link, "link", NULL, LINK_REF, "which", .required = true),                       \
	ENUM(s, at.dir, "direction", lane_directions, "both",                                      \
		"tx: what the end named first sends (a, node, the link's first end); rx: what it receives")

SECTION(sec_lanes, "events[].link_down", "A link and its direction; link_up likewise.",
	NODE(struct lanes_in, link, "link", NULL, LINK_REF, "which", .required = true),
	ENUM(struct lanes_in, dir, "direction", lane_directions, "both",
		"tx: what the end named first sends; rx: what it receives"));
SECTION(sec_rate, "events[].set_rate", "Links run at another rate from now on.",
	LANES(struct rate_in, at),
	NUM(struct rate_in, rate_bps, "rate", Q_RATE, NULL, RATE_MIN, RATE_MAX, "line rate",
		.required = true));
SECTION(sec_ber, "events[].set_ber", "Links have another bit error rate from now on.",
	LANES(struct ber_in, at),
	NUM(struct ber_in, ber_q62, "ber", Q_BER, NULL, 0, INT64_C(1) << 62,
		"bit error rate before FEC", .required = true),
	ENUM(struct ber_in, fec, "fec", fec_words, "rs544", "see links[]"));
SECTION(sec_flap, "events[].flap", "A link goes down and up again and again.",
	NODE(struct flap_in, link, "link", NULL, LINK_REF, "which", .required = true),
	NUM(struct flap_in, period, "period", Q_TIME, NULL, SIM_NS, YEAR, "from down to down",
		.required = true),
	NUM(struct flap_in, duty_q32, "duty", Q_PROBABILITY, "50%", 1, (INT64_C(1) << 32) - 1,
		"part of each period it is up: down first, then up for the rest"),
	NUM(struct flap_in, count, "count", Q_COUNT, NULL, 1, 10000, "how often", .required = true));
SECTION(sec_reboot, "events[].reboot",
	"A switch stops: what it holds is lost, its links are down, and all forgotten when it is back.",
	NODE(struct reboot_in, sw, "switch", NULL, "name", "which", .required = true),
	NUM(struct reboot_in, duration, "duration", Q_TIME, NULL, SIM_NS, YEAR, "how long",
		.required = true));
SECTION(sec_slow, "events[].slow_receiver",
	"A host's NIC takes in frames slowly: its receive buffer fills, it pauses lossless priorities "
	"and discards the others.",
	NODE(struct slow_in, host, "host", NULL, "host or host:port", "who", .required = true),
	NUM(struct slow_in, rate_bps, "rate", Q_RATE, NULL, RATE_MIN, RATE_MAX,
		"at which it takes in frames", .required = true),
	NUM(struct slow_in, buffer, "buffer", Q_SIZE, "256KiB", 16384, SIZE_MAX_,
		"receive buffer per priority; paused from half of it, resumed at a quarter"),
	NUM(struct slow_in, duration, "duration", Q_TIME, "never", 0, YEAR,
		"how long; never: to the end", .word = "never", .word_value = SIMTIME_NEVER));

static const struct word fault_actions[] = {
#define X(id, name, done, text) {name, FAULT_##id},
	FAULT_ACTIONS(X)
#undef X
	{NULL, 0}};

SECTION(sec_gilbert, "faults[].gilbert",
	"A Gilbert-Elliott chain (netem's gemodel): loses p/(p+r) of the frames, in bursts of 1/r, "
	"unless h or k say otherwise.",
	NUM(struct gilbert_in, p, "p", Q_PROBABILITY, NULL, 0, INT64_C(1) << 32,
		"from the good to the bad state, after each frame", .required = true),
	NUM(struct gilbert_in, r, "r", Q_PROBABILITY, NULL, 0, INT64_C(1) << 32, "back",
		.required = true),
	NUM(struct gilbert_in, h, "h", Q_PROBABILITY, "0", 0, INT64_C(1) << 32,
		"that a frame is spared in the bad state"),
	NUM(struct gilbert_in, k, "k", Q_PROBABILITY, "1", 0, INT64_C(1) << 32,
		"that a frame is spared in the good state"));
SECTION(sec_fault, "faults[]",
	"A rule that does something to some frames of a link: where, which frames match, which of these "
	"are picked, and what is done. Also `fault:` in events[].",
	TEXT(struct fault_in, name, "name", NULL, "for results and captures (default fault1, ...)"),
	LANES(struct fault_in, at),
	ENUM(struct fault_in, r.action, "action", fault_actions, NULL,
		"drop, corrupt (ICRC), fcs (dropped by the next port), ecn, delay, reorder, duplicate, "
		"truncate", .required = true),
	NODE(struct fault_in, op, "op", "any", "kind, opcode, or a list of kinds",
		"data (SEND, WRITE), read_request, read_response, atomic, atomic_ack, ack, nak, rnr, cnp, "
		"other_roce, pfc, other; or one opcode (RC_WRITE_LAST)"),
	CUSTOM(read_fault_qp, "qp", NULL, "1..256 or each",
		"the n-th queue pair to appear in this direction among frames that match the rest; each: "
		"nth and every count for each queue pair (psn, packet and iter always do)"),
	NUM(struct fault_in, r.qpn, "qpn", Q_COUNT, NULL, 0, 0xffffff, "destination queue pair"),
	NODE(struct fault_in, flow, "flow", NULL, "flow", "frames of this flow, answers included"),
	NODE(struct fault_in, src, "src", NULL, "host or host:port", "sent by it"),
	NODE(struct fault_in, dst, "dst", NULL, "host or host:port", "sent to it"),
	CUSTOM(read_fault_prio, "priority", "all", "number or list",
		"traffic class of the frame; of a PFC frame: priorities it names"),
	NUM(struct fault_in, nth, "nth", Q_COUNT, NULL, 1, UINT32_MAX, "pick the n-th"),
	NUM(struct fault_in, every, "every", Q_COUNT, NULL, 1, UINT32_MAX, "pick every n-th"),
	NUM(struct fault_in, psn, "psn", Q_COUNT, NULL, 0, 0xffffff,
		"pick this PSN, counted from the queue pair's first as 0"),
	NUM(struct fault_in, message, "message", Q_COUNT, "1", 1, UINT32_MAX,
		"with packet: of which message of the queue pair, from 1"),
	NUM(struct fault_in, packet, "packet", Q_COUNT, NULL, 1, 1 << 23,
		"pick this packet of the message, from 1"),
	NUM(struct fault_in, probability, "probability", Q_PROBABILITY, NULL, 0, INT64_C(1) << 32,
		"pick each with this probability"),
	NODE(struct fault_in, gilbert, "gilbert", NULL, "section, see faults[].gilbert",
		"pick by a Gilbert-Elliott chain"),
	NUM(struct fault_in, r.iter, "iter", Q_COUNT, "any", 1, 255,
		"only the iter-th transmission of a PSN: 1 the first, 2 its first repetition",
		.word = "any", .word_value = 0),
	NUM(struct fault_in, r.count, "count", Q_COUNT, "all", 1, INT64_MAX,
		"most frames picked, in each direction", .word = "all", .word_value = 0),
	NUM(struct fault_in, r.from, "from", Q_TIME, "0", 0, YEAR,
		"frames before are not counted (but queue pairs and PSNs are noted)"),
	NUM(struct fault_in, r.until, "until", Q_TIME, "never", 0, YEAR, "nor from then on",
		.word = "never", .word_value = SIMTIME_NEVER),
	NUM(struct fault_in, r.delay, "delay", Q_TIME, "100us", SIM_NS, SIM_S,
		"delay: by how much; reorder: the longest a frame waits to be passed"),
	NUM(struct fault_in, r.packets, "packets", Q_COUNT, "1", 1, 1000,
		"reorder: how many matching frames pass it"),
	NUM(struct fault_in, r.length, "length", Q_SIZE, NULL, 60, 9600,
		"truncate: bytes left, FCS not counted"));
SECTION(sec_event, "events[]", "Something that happens at a time: `at` and one of the others.",
	NUM(struct event_in, at, "at", Q_TIME, NULL, 0, YEAR, "when", .required = true),
	NODE(struct event_in, link_down, "link_down", NULL, LINK_REF ", or a section",
		"the link fails; frames on it are lost. In one direction ({link, direction}): silently, "
		"its ends do not notice and routes stay"),
	NODE(struct event_in, link_up, "link_up", NULL, LINK_REF ", or a section",
		"the link works again"),
	NODE(struct event_in, flap, "flap", NULL, "section, see events[].flap",
		"the link goes down and up repeatedly"),
	NODE(struct event_in, set_rate, "set_rate", NULL, "section, see events[].set_rate",
		"links run at another rate"),
	NODE(struct event_in, set_ber, "set_ber", NULL, "section, see events[].set_ber",
		"links get another bit error rate"),
	NODE(struct event_in, reboot, "reboot", NULL, "section, see events[].reboot",
		"a switch reboots"),
	NODE(struct event_in, slow_receiver, "slow_receiver", NULL,
		"section, see events[].slow_receiver", "a NIC takes in frames slowly"),
	NODE(struct event_in, fault, "fault", NULL, "section, see faults[]",
		"a fault rule that begins now"),
	NODE(struct event_in, route, "route", NULL, "section, see routing[]",
		"a switch's route changes (switch, dst, via)"),
	NODE(struct event_in, pause_storm, "pause_storm", NULL, "section, see events[].pause_storm",
		"a NIC goes mad"),
	NODE(struct event_in, flow_start, "flow_start", NULL, "workload or flow",
		"flows with `start: event` start"),
	NODE(struct event_in, flow_stop, "flow_stop", NULL, "workload or flow", "flows stop"),
	NODE(struct event_in, set_corrupt, "set_corrupt", NULL, "section, see events[].set_corrupt",
		"links get another error rate"));
