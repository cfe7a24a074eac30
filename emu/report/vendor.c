/* SPDX-License-Identifier: BSD-3-Clause */

#include "emu/report/vendor.h"

#include <stdio.h>
#include <string.h>

#include "pipelines/edge.h"
#include "pipelines/nic.h"

// ---- the vocabularies ---------------------------------------------------------------------------

// A counter is the sum of up to three of a device's own, by their places in its array.
#define PARTS 3
#define NONE  (-1) // the device cannot know: it has no such counter
#define NEVER (-2) // 0, as it does not do what is counted

#define NIC(field)  (int)(offsetof(struct nic_counters, field) / sizeof(uint64_t))
#define EDGE(field) (int)(offsetof(struct edge_counters, field) / sizeof(uint64_t))

struct device_row {
	const char *name;
	const char *help; // NULL: that of the NIC's counter
	int nic[PARTS], edge[PARTS];
};

#define ONE(x)                \
	{                     \
		x, NONE, NONE \
	}
#define NO                       \
	{                        \
		NONE, NONE, NONE \
	}
#define BOTH(field)                                             \
	{                                                       \
#field, NULL, ONE(NIC(field)), ONE(EDGE(field)) \
	}
#define NIC_ONLY(field)                           \
	{                                         \
#field, NULL, ONE(NIC(field)), NO \
	}
#define NIC_AS(field, at_edge)                                    \
	{                                                         \
#field, NULL, ONE(NIC(field)), ONE(EDGE(at_edge)) \
	}
#define NEITHER(name, help)                         \
	{                                           \
#name, help, ONE(NEVER), ONE(NEVER) \
	}

// mlx5's drivers/infiniband/hw/mlx5/counters.c, in its order. (Its vport_* are those of switchdev
// representors, and `lifespan` beside them is a setting.)
static const struct device_row hw_rows[] = {
	BOTH(rx_write_requests),
	BOTH(rx_read_requests),
	BOTH(rx_atomic_requests),
	NEITHER(rx_dct_connect, "connects to a DC target: there is no DC"),
	BOTH(out_of_buffer),
	BOTH(out_of_sequence),
	BOTH(duplicate_request),
	BOTH(rnr_nak_retry_err),
	BOTH(packet_seq_err),
	BOTH(implied_nak_seq_err),
	BOTH(local_ack_timeout_err),
	NIC_AS(rp_cnp_ignored, edge_cnp_swallowed),
	NIC_AS(rp_cnp_handled, edge_cnp_handled),
	NIC_AS(np_ecn_marked_roce_packets, edge_ce_seen),
	NIC_AS(np_cnp_sent, edge_cnp_sent),
	NIC_ONLY(resp_local_length_error),
	NIC_ONLY(resp_cqe_error),
	NIC_ONLY(req_cqe_error),
	BOTH(req_remote_invalid_request),
	BOTH(req_remote_access_errors),
	BOTH(resp_remote_access_errors),
	NIC_ONLY(resp_cqe_flush_error),
	NIC_ONLY(req_cqe_flush_error),
	NIC_ONLY(req_transport_retries_exceeded),
	NIC_ONLY(req_rnr_retries_exceeded),
	NIC_ONLY(roce_adp_retrans),
	NIC_ONLY(roce_adp_retrans_to),
	NEITHER(roce_slow_restart, "slow restarts after idling: not done"),
	NEITHER(roce_slow_restart_cnps, "CNPs for slow restarts: not done"),
	NEITHER(roce_slow_restart_trans, "moves to slow restart: not done"),
	BOTH(rx_icrc_encapsulated),
	NIC_AS(cc_rx_ce_pkts, edge_ce_seen),
	BOTH(cc_rx_cnp_pkts),
	NIC_AS(cc_tx_cnp_pkts, edge_cnp_sent),
	BOTH(rdma_tx_packets),
	BOTH(rdma_rx_packets),
	BOTH(rdma_tx_bytes),
	BOTH(rdma_rx_bytes),
};

// The kernel's drivers/infiniband/sw/rxe/rxe_hw_counters.c, in its order, but for what nothing here
// counts: ack_deferred, send_err, link_downed.
static const struct device_row rxe_rows[] = {
	{"sent_pkts", "RoCE packets sent", ONE(NIC(rdma_tx_packets)), ONE(EDGE(rdma_tx_packets))},
	{"rcvd_pkts", "RoCE packets received", ONE(NIC(rdma_rx_packets)),
		ONE(EDGE(rdma_rx_packets))},
	BOTH(duplicate_request),
	{"out_of_seq_request", "gaps among requests that were answered with a NAK",
		ONE(NIC(seq_naks_sent)), ONE(EDGE(seq_naks_sent))},
	{"rcvd_rnr_err", "RNR NAKs received", ONE(NIC(rnr_nak_retry_err)),
		ONE(EDGE(rnr_nak_retry_err))},
	{"send_rnr_err", "RNR NAKs sent", ONE(NIC(out_of_buffer)), ONE(EDGE(out_of_buffer))},
	{"rcvd_seq_err", "NAKs for a PSN sequence error received", ONE(NIC(packet_seq_err)),
		ONE(EDGE(packet_seq_err))},
	{"retry_exceeded_err", "QPs that ran out of retries",
		ONE(NIC(req_transport_retries_exceeded)), NO},
	{"retry_rnr_exceeded_err", "QPs that ran out of RNR retries",
		ONE(NIC(req_rnr_retries_exceeded)), NO},
	{"completer_retry_err", "times requests were repeated, but after an RNR NAK",
		{NIC(packet_seq_err), NIC(implied_nak_seq_err), NIC(local_ack_timeout_err)},
		ONE(EDGE(go_backs))},
	{"rdma_sends", "SEND messages sent", NO, ONE(EDGE(rdma_sends))},
	{"rdma_recvs", "messages received that use a receive", NO, ONE(EDGE(rdma_recvs))},
};

// By priority `p` of port counters `c`. X(name, value, help)
#define ETHTOOL_PRIO(X)                                                                    \
	X("rx_prio%u_bytes", c->prio[p].rx_bytes, "bytes received, FCS included")          \
	X("rx_prio%u_packets", c->prio[p].rx_frames, "frames received")                    \
	X("tx_prio%u_bytes", c->prio[p].tx_bytes, "bytes sent, FCS included")              \
	X("tx_prio%u_packets", c->prio[p].tx_frames, "frames sent")                        \
	X("rx_prio%u_pause", c->rx_pause[p], "PFC frames received that name the priority") \
	X("tx_prio%u_pause", c->tx_pause[p], "PFC frames sent that name the priority")     \
	X("rx_prio%u_pause_duration", (uint64_t)(c->rx_pauses.duration[p] / SIM_US),       \
		"us this port was paused, of pauses that have ended")                      \
	X("tx_prio%u_pause_duration", (uint64_t)(c->tx_pauses.duration[p] / SIM_US),       \
		"us this port paused its peer, of pauses that have ended")                 \
	X("rx_prio%u_pause_transition", c->rx_pauses.transitions[p],                       \
		"pauses of this port that ended")                                          \
	X("tx_prio%u_pause_transition", c->tx_pauses.transitions[p],                       \
		"pauses of its peer that ended")                                           \
	X("rx_prio%u_buf_discard", c->rx_buf_discard[p],                                   \
		"frames the receive buffer had no room for")                               \
	X("rx_prio%u_cong_discard", (uint64_t)0,                                           \
		"drops of a device shared by several hosts: it is not shared")

// X(name, value, help)
#define ETHTOOL_PORT(X)                                                                      \
	X("rx_discards_phy", sum(c->rx_buf_discard),                                         \
		"frames the receive buffer had no room for, all priorities")                 \
	X("tx_pause_storm_warning_events", c->tx_pauses.storm_warnings,                      \
		"pauses of its peer that lasted 6.8 s or longer")                            \
	X("tx_pause_storm_error_events", c->tx_pauses.storm_errors,                          \
		"pauses of its peer that lasted 8 s or longer")                              \
	X("rx_global_pause", c->rx_global_pause, "802.3x PAUSE frames received, not obeyed") \
	X("rx_global_pause_duration", (uint64_t)0, "us paused by them: not obeyed")          \
	X("tx_global_pause", (uint64_t)0, "802.3x PAUSE frames sent: none are")              \
	X("tx_global_pause_duration", (uint64_t)0, "us its peer was paused by them: never")

static uint64_t sum(const uint64_t *by_prio)
{
	uint64_t all = 0;

	for (unsigned p = 0; p < PRIO_COUNT; p++)
		all += by_prio[p];
	return all;
}

// ---- of devices ---------------------------------------------------------------------------------

static const struct {
	const struct device_row *rows;
	unsigned n;
} device_sets[VENDOR_SET_COUNT] = {
	[VENDOR_HW_COUNTERS] = {hw_rows, sizeof(hw_rows) / sizeof(hw_rows[0])},
	[VENDOR_RXE] = {rxe_rows, sizeof(rxe_rows) / sizeof(rxe_rows[0])},
};

static struct vendor_row device_row(enum vendor_set set, unsigned row)
{
	const struct device_row *r = &device_sets[set].rows[row];
	const char *help =
		r->help != NULL ? r->help : device_counter_help(DEVICE_NIC, (unsigned)r->nic[0]);

	return (struct vendor_row){r->name, help, r->nic[0] != NONE, r->edge[0] != NONE};
}

static bool device_value(
	enum vendor_set set, const struct run_port *port, unsigned row, uint64_t *value)
{
	const struct device_row *r = &device_sets[set].rows[row];
	const int *parts = port->device == DEVICE_NIC ? r->nic : r->edge;

	*value = 0;
	for (unsigned i = 0; i < PARTS && parts[i] != NONE; i++)
		*value += parts[i] != NEVER ? port->device_ctr[parts[i]] : 0;
	return parts[0] != NONE;
}

// ---- ethtool -S ---------------------------------------------------------------------------------

#define X(name, value, help) {name, help, true, true},
static const struct vendor_row ethtool_rows[] = {ETHTOOL_PRIO(X) ETHTOOL_PORT(X)};
static const struct vendor_row by_prio_only[] = {ETHTOOL_PRIO(X)};
#undef X

#define N_ROWS    (sizeof(ethtool_rows) / sizeof(ethtool_rows[0]))
#define N_BY_PRIO (sizeof(by_prio_only) / sizeof(by_prio_only[0]))
#define FIRST_SUM (N_BY_PRIO * PRIO_COUNT)

static uint64_t ethtool_value(const struct port_counters *c, unsigned row, unsigned p)
{
#define X(name, value, help) value,
	const uint64_t values[] = {ETHTOOL_PRIO(X) ETHTOOL_PORT(X)};
#undef X
	return values[row];
}

// ---- all of them --------------------------------------------------------------------------------

// The row of a counter, and its priority.
static unsigned row_of(enum vendor_set set, unsigned id, unsigned *prio)
{
	*prio = 0;
	if (set != VENDOR_ETHTOOL)
		return id;
	if (id >= FIRST_SUM)
		return (unsigned)(N_BY_PRIO + (id - FIRST_SUM));
	*prio = id % PRIO_COUNT;
	return id / PRIO_COUNT;
}

bool vendor_has(enum vendor_set set, const struct run_node *node, const struct run_port *port)
{
	if (set == VENDOR_ETHTOOL)
		return node->kind == RUN_NODE_HOST && port->ctr != NULL;
	return port->device != DEVICE_NONE && port->device_ctr != NULL;
}

unsigned vendor_rows(enum vendor_set set)
{
	return set == VENDOR_ETHTOOL ? N_ROWS : device_sets[set].n;
}

struct vendor_row vendor_row(enum vendor_set set, unsigned row)
{
	return set == VENDOR_ETHTOOL ? ethtool_rows[row] : device_row(set, row);
}

unsigned vendor_count(enum vendor_set set)
{
	return set == VENDOR_ETHTOOL ? FIRST_SUM + N_ROWS - N_BY_PRIO : device_sets[set].n;
}

char *vendor_name(enum vendor_set set, unsigned id, char *buf)
{
	unsigned prio;
	const char *name = vendor_row(set, row_of(set, id, &prio)).name;
	const char *gap = strstr(name, "%u");

	if (gap == NULL)
		snprintf(buf, COUNTER_NAME_MAX, "%s", name);
	else
		snprintf(buf, COUNTER_NAME_MAX, "%.*s%u%s", (int)(gap - name), name, prio, gap + 2);
	return buf;
}

bool vendor_value(enum vendor_set set, const struct run_port *port, unsigned id, uint64_t *value)
{
	unsigned prio, row = row_of(set, id, &prio);

	if (set != VENDOR_ETHTOOL)
		return device_value(set, port, row, value);
	*value = ethtool_value(port->ctr, row, prio);
	return true;
}
