/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// The words of the verbs: what a queue pair is asked to do, and how it ends. Values and names are
// those of libibverbs, so that what is printed here can be looked up there.

#include <stdbool.h>
#include <stdint.h>

// enum ibv_wc_status: X(id, value, name, help)
#define WC_STATUSES(X)                                                                            \
	X(SUCCESS, 0, "IBV_WC_SUCCESS", "completed")                                              \
	X(LOC_LEN_ERR, 1, "IBV_WC_LOC_LEN_ERR", "message longer than the receive buffer")         \
	X(LOC_QP_OP_ERR, 2, "IBV_WC_LOC_QP_OP_ERR", "request the queue pair cannot carry out")    \
	X(LOC_PROT_ERR, 4, "IBV_WC_LOC_PROT_ERR", "local memory not registered or not permitted") \
	X(WR_FLUSH_ERR, 5, "IBV_WC_WR_FLUSH_ERR", "flushed: the queue pair was in error")         \
	X(BAD_RESP_ERR, 7, "IBV_WC_BAD_RESP_ERR", "response not expected")                        \
	X(LOC_ACCESS_ERR, 8, "IBV_WC_LOC_ACCESS_ERR", "RDMA of the peer broke off a receive")     \
	X(REM_INV_REQ_ERR, 9, "IBV_WC_REM_INV_REQ_ERR", "peer: invalid request")                  \
	X(REM_ACCESS_ERR, 10, "IBV_WC_REM_ACCESS_ERR", "peer: memory access not permitted")       \
	X(REM_OP_ERR, 11, "IBV_WC_REM_OP_ERR", "peer: could not complete the operation")          \
	X(RETRY_EXC_ERR, 12, "IBV_WC_RETRY_EXC_ERR", "no acknowledgement after all retries")      \
	X(RNR_RETRY_EXC_ERR, 13, "IBV_WC_RNR_RETRY_EXC_ERR", "peer never had a receive buffer")   \
	X(REM_INV_RD_REQ_ERR, 15, "IBV_WC_REM_INV_RD_REQ_ERR", "peer: invalid RD request")        \
	X(GENERAL_ERR, 21, "IBV_WC_GENERAL_ERR", "other error")

enum wc_status {
#define X(id, value, name, help) WC_##id = value,
	WC_STATUSES(X)
#undef X
};

// "IBV_WC_RETRY_EXC_ERR", and one line of help; NULL for values not in the table.
const char *wc_status_name(enum wc_status status);
const char *wc_status_help(enum wc_status status);

// Operations of a send queue, in the order of enum ibv_wr_opcode: X(id, name).
#define WR_OPS(X)                            \
	X(WRITE, "RDMA_WRITE")               \
	X(WRITE_IMM, "RDMA_WRITE_WITH_IMM")  \
	X(SEND, "SEND")                      \
	X(SEND_IMM, "SEND_WITH_IMM")         \
	X(READ, "RDMA_READ")                 \
	X(CMP_SWAP, "ATOMIC_CMP_AND_SWP")    \
	X(FETCH_ADD, "ATOMIC_FETCH_AND_ADD") \
	X(SEND_INV, "SEND_WITH_INV")

enum wr_op {
#define X(id, name) WR_##id,
	WR_OPS(X)
#undef X
		WR_OP_COUNT,
};

const char *wr_op_name(enum wr_op op); // as IBV_WR_* without the prefix
const char *wr_op_word(enum wr_op op); // the id: "WRITE", as scenarios have it

enum qp_transport { QP_RC, QP_UC, QP_UD };

const char *qp_transport_name(enum qp_transport t); // "RC"

// READ and the atomics: answered by a response of their own, limited in number.
static inline bool wr_is_rd_atomic(enum wr_op op)
{
	return (unsigned)op - WR_READ <= WR_FETCH_ADD - WR_READ;
}

// Consumes a receive of the peer.
static inline bool wr_needs_recv(enum wr_op op)
{
	return op == WR_SEND || op == WR_SEND_IMM || op == WR_SEND_INV || op == WR_WRITE_IMM;
}

// enum ibv_access_flags
enum access_flag {
	ACCESS_LOCAL_WRITE = 1 << 0,
	ACCESS_REMOTE_WRITE = 1 << 1,
	ACCESS_REMOTE_READ = 1 << 2,
	ACCESS_REMOTE_ATOMIC = 1 << 3,
};
