/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// What stands behind the applications of a NIC (pipelines/nic_apps.h), shared by its files:
//
//	nic_verbs.c      life, timers, completions      nic_verbs_tx.c  frames that leave
//	nic_verbs_env.c  what applications call, CM     nic_verbs_rx.c  frames that arrive
//
// Their queue pairs are the same models as those of flows (models/rc.h, models/ud.h) with memory
// and receives that are checked, and frames that carry their payload. All that an application is
// told comes from verbs_settle(), which runs when the event at hand has been dealt with, so that
// whatever the application does in answer finds the queue pairs at rest.

#include "models/cm.h"
#include "models/rc.h"
#include "models/ud.h"
#include "pipelines/nic_apps.h"
#include "pipelines/nic_internal.h"

#define VERBS_QPN_FIRST 0x800000u // above those of flows
#define VERBS_QPS       256u      // per NIC: applications x connections
#define VERBS_RESOURCES 16u       // READs and atomics served at a time, per queue pair
#define VERBS_CM_IDS    64u       // connections and those in TimeWait
#define VERBS_MADS      64u       // that wait to be sent
#define VERBS_RNR_TIMER 12        // 0.64 ms, libibverbs' usual min_rnr_timer

static_assert(VERBS_QPS == NIC_APPS_MAX * APP_CONNECTIONS, "every connection has its own");

struct verbs_qp {
	struct verbs_qp *next; // of those that have something to send
	struct cm_id *id;      // NULL: the connection manager has none of it
	uint32_t qpn, peer_qpn;
	uint32_t generation; // of the slot: no two users have the same number
	uint16_t index;      // in verbs.qps
	uint16_t port;
	uint16_t sport;
	uint8_t transport; // enum cm_transport
	bool used;
	bool connected; // may send and receive; UD always
	bool queued;
	uint8_t peer_gid[GID_BYTES];
	simtime_t timer_at; // when the next NIC_TIMER_VERBS_ACK comes; SIMTIME_NEVER: none
	struct rc_requester req;
	struct rc_responder resp;
	struct ud_receiver ud;
	struct rc_rq rq;
	struct rc_wqe sq[APP_DEPTH];
	struct app_dest dest[APP_DEPTH]; // UD, by place in sq
	struct rc_recv ring[APP_DEPTH];
	struct rc_resource resources[VERBS_RESOURCES];
};

struct verbs_app {
	struct nic_app_config cfg;
	struct app_env env;
	struct app *app;
	uint8_t *memory; // its region's bytes
	const struct rc_mr *mr;
	bool running; // app_start() was called
	simtime_t started, ended;
	unsigned ack_timeout;
	uint64_t retransmitted, timeouts, naks;
};

struct verbs_port {
	struct verbs_qp *head, *tail; // queue pairs that have something to send
	bool gave; // the last turn was ours: the next is the flows', if they want it
};

struct verbs {
	struct nic *nic;
	struct verbs_app apps[NIC_APPS_MAX];
	unsigned n_apps;
	struct verbs_qp *qps[VERBS_QPS]; // NULL: no application has so many
	struct verbs_port *ports;
	struct rc_memory memory;
	struct rc_mr mrs[NIC_APPS_MAX];
	struct rng rng;
	bool settling;
	simtime_t cm_timer_at; // SIMTIME_NEVER: none on its way
	uint32_t gsi_psn;
	struct cm_out mads[VERBS_MADS];
	uint32_t mad_head, mad_tail; // count up
	struct cm_id ids[VERBS_CM_IDS];
	struct cm cm;
};

// Where an application's region is.
#define VERBS_MEMORY_BASE   UINT64_C(0x7e0000000000)
#define VERBS_MEMORY_STRIDE (UINT64_C(1) << 32)
#define VERBS_MEMORY(app)   (VERBS_MEMORY_BASE + (app)*VERBS_MEMORY_STRIDE)

// `user` of a connection manager's ID, and the index of its queue pair.
#define VERBS_USER(app, conn) ((uint64_t)(app)*APP_CONNECTIONS + (conn))

// nic_verbs.c
// Code of a path MTU, 0: none (IBTA table 106: 1 is 256 bytes, 5 is 4096).
uint8_t verbs_mtu_code(uint16_t bytes);
// Bytes of a registered region, NULL when [addr, addr + len) is in none.
uint8_t *verbs_at(struct verbs *v, uint64_t addr, uint32_t len);
// Completions, events and MADs until nothing is left to tell; then sends.
void verbs_settle(struct verbs *v);
void verbs_arm_ack_timer(struct verbs *v, struct verbs_qp *qp);
static inline struct verbs_app *verbs_app_of(struct verbs *v, const struct verbs_qp *qp)
{
	return &v->apps[qp->index / APP_CONNECTIONS];
}
static inline unsigned verbs_conn_of(const struct verbs_qp *qp)
{
	return qp->index % APP_CONNECTIONS;
}

// nic_verbs_env.c
extern const struct app_env_ops verbs_env_ops;
void verbs_cm_event(struct verbs *v, const struct cm_event *e);
// The port that has this GID, -1: none.
int verbs_port_of(const struct nic *nic, const uint8_t gid[GID_BYTES]);

// nic_verbs_tx.c
// The queue pair takes a turn when it has something to send.
void verbs_wake(struct verbs *v, struct verbs_qp *qp);

// nic_verbs_rx.c
// What follows from an answer, by RC_ACK_* bits.
void verbs_answered(struct verbs *v, struct verbs_qp *qp, int result);
