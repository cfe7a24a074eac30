/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Applications in a built-in NIC: RDMA programs as state machines. They speak what well-known
// programs of rdma-core speak (rping, cmatose, udaddy), so that such a program in a real endpoint
// can be at the other end; target and initiator are ours and check every byte.
//
//	NIC (struct app_env)                    application
//	app_start                 -->           listens, or connects
//	app_cm(event)             -->           accepts, posts, begins
//	app_wc(completion)        -->           goes on
//	env->ops: connect, accept, post ..  <-- what it does in answer
//
// An application may call its environment from within any of these. It has no time of its own and
// allocates nothing after app_start().

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "models/cm.h"
#include "models/verbs.h"

#define APP_CONNECTIONS 16
#define NIC_APPS_MAX    16u // per NIC
#define APP_GRH_BYTES   40  // before every datagram in its receive buffer
#define APP_DEPTH       256 // work requests an application may have in either queue of a pair

// ---- what the NIC does for it -----------------------------------------------------------------

// Memory of the NIC's, registered.
struct app_mr {
	uint8_t *bytes;
	uint64_t addr; // as work requests and the peer know it
	uint32_t length;
	uint32_t lkey, rkey;
};

struct app_dest {
	uint8_t gid[GID_BYTES];
	uint32_t qpn, qkey;
};

struct app_wr {
	uint64_t wr_id;
	uint64_t local; // address
	uint64_t remote_addr;
	uint64_t compare, swap_add;
	uint32_t length;
	uint32_t lkey, rkey;
	uint32_t imm;
	uint8_t op;                  // enum wr_op; always signaled
	const struct app_dest *dest; // UD; need not live longer than the call
};

struct app_wc {
	uint64_t wr_id;
	uint32_t byte_len; // of a receive; with APP_GRH_BYTES for UD
	uint32_t imm;
	uint8_t status; // enum wc_status
	bool recv;      // of the receive queue
	bool has_imm;
	uint32_t src_qpn; // UD receives
	uint8_t src_gid[GID_BYTES];
};

struct app_recv {
	uint64_t wr_id;
	uint64_t addr;
	uint32_t length, lkey;
};

struct app_request {
	uint64_t service_id;
	uint8_t gid[GID_BYTES]; // of the peer
	uint8_t transport;      // enum cm_transport
	uint8_t responder_resources, initiator_depth, retry_count, rnr_retry;
};

// All return 0 or a negative errno. `conn` is a small number, below APP_CONNECTIONS, that the NIC
// gives: a queue pair and its connection, from connect() or CONNECT_REQUEST until destroy().
struct app_env;
struct app_env_ops {
	// `access`: enum access_flag. Only from app_start().
	int (*reg_mr)(
		const struct app_env *env, uint32_t bytes, unsigned access, struct app_mr *out);
	int (*listen)(const struct app_env *env, uint64_t service_id, enum cm_transport transport);
	int (*connect)(const struct app_env *env, const struct app_request *r, unsigned *conn);
	// Grants all the READs that the peer asked for and the NIC can serve, and RNR retries
	// without end (7), as librdmacm does.
	int (*accept)(const struct app_env *env, unsigned conn, const void *private_data,
		uint8_t private_len);
	int (*reject)(const struct app_env *env, unsigned conn);
	int (*disconnect)(const struct app_env *env, unsigned conn); // not for UD
	int (*destroy)(const struct app_env *env, unsigned conn);    // queue pair and connection
	int (*post_send)(const struct app_env *env, unsigned conn, const struct app_wr *wr);
	int (*post_recv)(const struct app_env *env, unsigned conn, const struct app_recv *r);
	uint32_t (*qpn)(const struct app_env *env, unsigned conn);
};

struct app_env {
	const struct app_env_ops *ops;
	void *nic;
	unsigned app; // which of the NIC's applications this is: the NIC's own
};

struct app_cm_event {
	enum cm_event_type type;
	unsigned conn;
	int status; // as of struct cm_event
	const struct cm_conn *peer;
	const uint8_t *private_data;
	uint8_t private_len;
};

// ---- applications -----------------------------------------------------------------------------

// X(id, name, port, size, count, help): name in scenarios; defaults of the programs they imitate.
#define APPS(X)                                                                                   \
	X(rping_server, "rping-server", 7174, 64, 0,                                              \
		"rping -s: READs the client's data and WRITEs it back")                           \
	X(rping_client, "rping-client", 7174, 64, 10, "rping -c -V")                              \
	X(cmatose_server, "cmatose-server", 7471, 100, 10,                                        \
		"ucmatose: SENDs first, then disconnects")                                        \
	X(cmatose_client, "cmatose-client", 7471, 100, 10, "ucmatose -s: SENDs what it was sent") \
	X(udaddy_server, "udaddy-server", 7174, 100, 10, "udaddy: answers datagrams")             \
	X(udaddy_client, "udaddy-client", 7174, 100, 10, "udaddy -s: sends datagrams first")      \
	X(target, "target", 7300, 4096, 0, "memory for WRITE, READ and atomics; echoes SENDs")    \
	X(initiator, "initiator", 7300, 4096, 10,                                                 \
		"uses a target in every way and checks every byte")

enum app_kind {
#define X(id, name, port, size, count, help) APP_##id,
	APPS(X)
#undef X
		APP_KINDS,
};

// How it went: X(id, help). The first failure counts.
#define APP_STATUSES(X)                                                \
	X(RUNNING, "not over yet")                                     \
	X(DONE, "all done")                                            \
	X(REFUSED, "the peer refused the connection")                  \
	X(UNREACHABLE, "the peer does not answer")                     \
	X(BROKEN, "the connection ended before all was done")          \
	X(COMPLETION, "a work request failed")                         \
	X(UNEXPECTED, "the peer sent what the protocol does not have") \
	X(MISMATCH, "data differed from what it should be")            \
	X(LOCAL, "the NIC could not do what was asked")

enum app_status {
#define X(id, help) APP_ST_##id,
	APP_STATUSES(X)
#undef X
};

const char *app_name(enum app_kind kind);
const char *app_status_name(enum app_status status); // "DONE"
const char *app_status_help(enum app_status status);

struct app_config {
	uint8_t server_gid[GID_BYTES]; // clients
	uint16_t port;
	uint32_t size;        // bytes of a message
	uint32_t count;       // messages or rounds; rping: pings, 0 = without end
	uint32_t connections; // servers: at once, 1..APP_CONNECTIONS
	uint8_t retry_count, rnr_retry;
};

// The program's own defaults: port, size, count; one connection, retry counts 7.
void app_config_default(enum app_kind kind, struct app_config *cfg);

bool app_is_server(enum app_kind kind);
enum cm_transport app_transport(enum app_kind kind);

// Limits of size and count.
struct app_limits {
	uint32_t size_min, size_max;
	uint32_t count_min, count_max;
};
struct app_limits app_limits(enum app_kind kind);

struct app_counts {
	uint64_t connections; // established
	uint64_t ended;       // of these, as the protocol wants it
	uint64_t messages;    // SENDs and datagrams received, READs and WRITEs completed
	uint64_t bytes;       // in them
	uint64_t mismatches;  // messages whose data or length were wrong
};

struct app {
	struct app_config cfg;
	struct app_counts counts;
	enum app_status status; // of a server: DONE as soon as one connection ended well
	int detail;             // REFUSED: reason; COMPLETION: enum wc_status; LOCAL: errno
	enum app_kind kind;
	// its own
	const struct app_ops *ops;
	const struct app_env *env;
	struct app_mr mr;
	struct app_slot {
		uint8_t conn;
		uint8_t state; // enum app_slot_state
	} slots[APP_CONNECTIONS];
};

// Bytes of an application's state, which is the caller's memory, aligned as by malloc().
size_t app_bytes(enum app_kind kind);

// Begins. False when it failed at once: see status.
bool app_start(struct app *app, enum app_kind kind, const struct app_config *cfg,
	const struct app_env *env);
void app_cm(struct app *app, const struct app_cm_event *ev);
void app_wc(struct app *app, unsigned conn, const struct app_wc *wc);
