/* SPDX-License-Identifier: BSD-3-Clause */

// The key table of congestion control, from the models' own tables of parameters, and of what shows
// its effect.

#include "emu/scenario/keys.h"

// clang-format off

const struct word cc_words[] = {
#define X(id, name, word, help) {word, CC_##id},
	CC_ALGORITHMS(X)
#undef X
	{NULL, 0}};

// What the edge of a real endpoint can do from outside: what needs only CNPs.
const struct word edge_cc_words[] = {{"none", CC_NONE}, {"dcqcn", CC_DCQCN}, {NULL, 0}};

const struct word dcqcn_preset_words[] = {
#define X(id, word, help) {word, DCQCN_##id},
	DCQCN_PRESETS(X)
#undef X
	{NULL, 0}};

// Keys by the quantity that a table says: K_<quantity>(field, name, default, low, high, help).
#define K_BOOL_(f, n, d, l, h, t)  BOOL(struct sc_nic, f, n, d, t)
#define K_TIME_(f, n, d, l, h, t)  NUM(struct sc_nic, f, n, Q_TIME, d, l, h, t)
#define K_RATE_(f, n, d, l, h, t)  NUM(struct sc_nic, f, n, Q_RATE, d, l, h, t)
#define K_SIZE_(f, n, d, l, h, t)  NUM(struct sc_nic, f, n, Q_SIZE, d, l, h, t)
#define K_COUNT_(f, n, d, l, h, t) NUM(struct sc_nic, f, n, Q_COUNT, d, l, h, t)
// 0 has a name
#define K_RATE_LINE_(f, n, d, l, h, t) \
	NUM(struct sc_nic, f, n, Q_RATE, d, l, h, t, .word = "line", .word_value = 0)
#define K_RATE_CURRENT_(f, n, d, l, h, t) \
	NUM(struct sc_nic, f, n, Q_RATE, d, l, h, t, .word = "current", .word_value = 0)

#define K_FRACTION_(f, n, d, l, h, t) NUM(struct sc_nic, f, n, Q_PROBABILITY, d, l, h, t)
#define K_FACTOR_(f, n, d, l, h, t)   NUM(struct sc_nic, f, n, Q_FACTOR, d, l, h, t)

#define DCQCN_KEY(field, type, quantity, def, low, high, help) \
	K_##quantity##_(cc.dcqcn.field, #field, def, low, high, help),

SECTION(sec_dcqcn, "hosts.NAME.nic.dcqcn",
	"DCQCN's reaction point, in mlx5's words; defaults are those of mlx5 unless a preset is named.",
	ENUM(struct sc_nic, dcqcn_preset, "preset", dcqcn_preset_words, "mlx5",
		"what the other parameters are unless given: ConnectX as shipped; the paper (SIGCOMM 2015); "
		"HPCC's ns-3 model; the settings it was compared with"),
	DCQCN_PARAMS(DCQCN_KEY));

#define DCTCP_KEY(field, type, quantity, def, low, high, help) \
	K_##quantity##_(cc.dctcp.field, #field, def, low, high, help),
SECTION(sec_dctcp, "hosts.NAME.nic.dctcp",
	"DCTCP (RFC 8257): window by the share of packets whose CE is echoed in the BECN of ACKs.",
	DCTCP_PARAMS(DCTCP_KEY));

#define TIMELY_KEY(field, type, quantity, def, low, high, help) \
	K_##quantity##_(cc.timely.field, #field, def, low, high, help),
SECTION(sec_timely, "hosts.NAME.nic.timely",
	"TIMELY (SIGCOMM 2015): rate by the gradient of the RTT of every ack_every-th packet.",
	TIMELY_PARAMS(TIMELY_KEY));

#define SWIFT_KEY(field, type, quantity, def, low, high, help) \
	K_##quantity##_(cc.swift.field, #field, def, low, high, help),
SECTION(sec_swift, "hosts.NAME.nic.swift",
	"Swift (SIGCOMM 2020): window by the RTT of each packet against a target.",
	SWIFT_PARAMS(SWIFT_KEY));

#define HPCC_KEY(field, type, quantity, def, low, high, help) \
	K_##quantity##_(cc.hpcc.field, #field, def, low, high, help),
SECTION(sec_hpcc, "hosts.NAME.nic.hpcc",
	"HPCC (SIGCOMM 2019): window and rate by the telemetry (INT) that each packet collects.",
	HPCC_PARAMS(HPCC_KEY));

static const struct word autos[] = {{"auto", SC_UNSET}, {"yes", 1}, {"no", 0}, {NULL, 0}};
static const struct word scopes[] = {
#define X(id, word, help) {word, NP_SCOPE_##id},
	NP_SCOPES(X)
#undef X
	{NULL, 0}};

SECTION(sec_np, "hosts.NAME.nic.np", "DCQCN's notification point: CNPs for packets that came with CE.",
	ENUM(struct sc_nic, np_enable, "enable", autos, "auto", "send CNPs; auto: if cc is dcqcn"),
	ENUM(struct sc_nic, np.scope, "scope", scopes, "qp",
		"what CNPs are spaced by: queue pair, source address, or port"),
	NUM(struct sc_nic, np.min_time_between_cnps, "min_time_between_cnps", Q_TIME, "auto", 0, SIM_S,
		"their least spacing; auto: the DCQCN preset's, 4us for mlx5, 50us for paper, else 0",
		.word = "auto", .word_value = NP_INTERVAL_AUTO),
	NUM(struct sc_nic, np.cnp_dscp, "cnp_dscp", Q_COUNT, "48", 0, 63, "DSCP of CNPs"),
	NUM(struct sc_nic, np.cnp_802p_prio, "cnp_802p_prio", Q_COUNT, "6", 0, 7,
		"PCP of CNPs of flows with a tag"));

SECTION(sec_queue_stats, "queue_stats", "Mean and maximum length of egress queues, in the results.",
	NUM(struct sc_queue_stats, interval, "interval", Q_TIME, "none", 10 * SIM_NS, SIM_S,
		"how often to look at them (1us: as good as always, and costs accordingly)",
		.word = "none", .word_value = 0),
	NUM(struct sc_queue_stats, from, "from", Q_TIME, "0", 0, YEAR, "when to begin"));
