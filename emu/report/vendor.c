/* SPDX-License-Identifier: BSD-3-Clause */

#include "emu/report/vendor.h"

#include <stdio.h>
#include <string.h>

#include "pipelines/nic.h"

// ---- the vocabularies ---------------------------------------------------------------------------

// X(field of struct nic_counters, of the same name)
#define HW_COUNTED(X)                     \
	X(rx_write_requests)              \
	X(rx_read_requests)               \
	X(rx_atomic_requests)             \
	X(out_of_buffer)                  \
	X(out_of_sequence)                \
	X(duplicate_request)              \
	X(rnr_nak_retry_err)              \
	X(packet_seq_err)                 \
	X(implied_nak_seq_err)            \
	X(local_ack_timeout_err)          \
	X(rp_cnp_ignored)                 \
	X(rp_cnp_handled)                 \
	X(np_ecn_marked_roce_packets)     \
	X(np_cnp_sent)                    \
	X(resp_local_length_error)        \
	X(resp_cqe_error)                 \
	X(req_cqe_error)                  \
	X(req_remote_invalid_request)     \
	X(req_remote_access_errors)       \
	X(resp_remote_access_errors)      \
	X(resp_cqe_flush_error)           \
	X(req_cqe_flush_error)            \
	X(req_transport_retries_exceeded) \
	X(req_rnr_retries_exceeded)       \
	X(roce_adp_retrans)               \
	X(roce_adp_retrans_to)            \
	X(rx_icrc_encapsulated)           \
	X(cc_rx_ce_pkts)                  \
	X(cc_rx_cnp_pkts)                 \
	X(cc_tx_cnp_pkts)                 \
	X(rdma_tx_packets)                \
	X(rdma_rx_packets)                \
	X(rdma_tx_bytes)                  \
	X(rdma_rx_bytes)

// Always 0, because the NIC has not what they count. X(name, help)
#define HW_NEVER(X)                                                   \
	X(rx_dct_connect, "connects to a DC target: there is no DC")  \
	X(roce_slow_restart, "slow restarts after idling: not done")  \
	X(roce_slow_restart_cnps, "CNPs for slow restarts: not done") \
	X(roce_slow_restart_trans, "moves to slow restart: not done")

// By priority `p` of port counters `c`. X(name, value, help)
#define ETHTOOL_PRIO(X)                                                                    \
	X("rx_prio%u_bytes", c->prio[p].rx_bytes, "bytes received, FCS included")          \
	X("rx_prio%u_packets", c->prio[p].rx_frames, "frames received")                    \
	X("tx_prio%u_bytes", c->prio[p].tx_bytes, "bytes sent, FCS included")              \
	X("tx_prio%u_packets", c->prio[p].tx_frames, "frames sent")                        \
	X("rx_prio%u_pause", c->rx_pause[p], "PFC frames received that name the priority") \
	X("tx_prio%u_pause", c->tx_pause[p], "PFC frames sent that name the priority")     \
	X("rx_prio%u_pause_duration", (uint64_t)(c->rx_pause_duration[p] / SIM_US),        \
		"us this port was paused, of pauses that have ended")                      \
	X("tx_prio%u_pause_duration", (uint64_t)(c->tx_pause_duration[p] / SIM_US),        \
		"us this port paused its peer, of pauses that have ended")                 \
	X("rx_prio%u_buf_discard", c->rx_buf_discard[p],                                   \
		"frames the receive buffer had no "                                        \
		"room for")

// X(name, value, help)
#define ETHTOOL_PORT(X)                                       \
	X("rx_discards_phy", sum(c->rx_buf_discard),          \
		"frames the receive buffer had no room for, " \
		"all priorities")                             \
	X("rx_global_pause", c->rx_global_pause, "802.3x PAUSE frames received, not obeyed")

static uint64_t sum(const uint64_t *by_prio)
{
	uint64_t all = 0;

	for (unsigned p = 0; p < PRIO_COUNT; p++)
		all += by_prio[p];
	return all;
}

// ---- mlx5 hw_counters ---------------------------------------------------------------------------

#define X(name) {#name, offsetof(struct nic_counters, name)},
static const struct {
	const char *name;
	size_t offset;
} counted[] = {HW_COUNTED(X)};
#undef X

#define X(name, help) {#name, "0", help},
static const struct vendor_row never[] = {HW_NEVER(X)};
#undef X

#define N_COUNTED (sizeof(counted) / sizeof(counted[0]))
#define N_NEVER   (sizeof(never) / sizeof(never[0]))

static struct vendor_row hw_row(unsigned row)
{
	if (row >= N_COUNTED)
		return never[row - N_COUNTED];
	unsigned id = (unsigned)(counted[row].offset / sizeof(uint64_t));
	return (struct vendor_row){
		counted[row].name, counted[row].name, device_counter_help(DEVICE_NIC, id)};
}

static uint64_t hw_value(const uint64_t *ctr, unsigned row)
{
	return row < N_COUNTED ? ctr[counted[row].offset / sizeof(uint64_t)] : 0;
}

// ---- ethtool -S ---------------------------------------------------------------------------------

#define X(name, value, help) {name, #value, help},
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

// ---- both ---------------------------------------------------------------------------------------

// The row of a counter, and its priority.
static unsigned row_of(enum vendor_set set, unsigned id, unsigned *prio)
{
	*prio = 0;
	if (set == VENDOR_HW_COUNTERS)
		return id;
	if (id >= FIRST_SUM)
		return (unsigned)(N_BY_PRIO + (id - FIRST_SUM));
	*prio = id % PRIO_COUNT;
	return id / PRIO_COUNT;
}

bool vendor_has(enum vendor_set set, const struct run_node *node, const struct run_port *port)
{
	if (set == VENDOR_HW_COUNTERS)
		return port->device == DEVICE_NIC && port->device_ctr != NULL;
	return node->kind == RUN_NODE_HOST && port->ctr != NULL;
}

unsigned vendor_rows(enum vendor_set set)
{
	return set == VENDOR_HW_COUNTERS ? N_COUNTED + N_NEVER : N_ROWS;
}

struct vendor_row vendor_row(enum vendor_set set, unsigned row)
{
	return set == VENDOR_HW_COUNTERS ? hw_row(row) : ethtool_rows[row];
}

unsigned vendor_count(enum vendor_set set)
{
	return set == VENDOR_HW_COUNTERS ? vendor_rows(set) : FIRST_SUM + N_ROWS - N_BY_PRIO;
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

uint64_t vendor_value(enum vendor_set set, const struct run_port *port, unsigned id)
{
	unsigned prio, row = row_of(set, id, &prio);

	return set == VENDOR_HW_COUNTERS ? hw_value(port->device_ctr, row)
					 : ethtool_value(port->ctr, row, prio);
}
