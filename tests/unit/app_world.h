/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// For unit tests: verbs without a network. A few NICs, each with one application and a real
// connection manager; work requests are carried out at once and whole, in an order that is random
// between connections, with the checks of keys, bounds and access that a NIC makes.

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emu/core/rng.h"
#include "pipelines/app.h"

#define NICS      4
#define MEMORY    (4 << 20)
#define CONNS     APP_CONNECTIONS
#define PENDING   4096
#define MEM_BASE  UINT64_C(0x100000000)
#define KEY_OF(n) (0x1000u + (n))

struct fake_conn {
	bool used, broken;
	struct cm_id *id;
	uint32_t qpn;
	struct app_recv recvs[APP_DEPTH];
	unsigned head, tail;
};

struct fake_nic {
	struct world *w;
	unsigned self;
	uint8_t gid[GID_BYTES];
	struct cm cm;
	struct cm_id ids[32];
	struct fake_conn conns[CONNS];
	uint8_t *memory;
	uint32_t used;
	struct app_env env;
	struct app *app;
};

struct fake_wr {
	unsigned nic, conn;
	struct app_wr wr;
	struct app_dest dest;
};

struct world {
	struct rng rng;
	struct fake_nic nics[NICS];
	struct fake_wr pending[PENDING];
	unsigned n;
	uint32_t next_qpn;
	simtime_t now;
	unsigned done; // work requests
	// what to do wrong: at the so manyeth work request
	unsigned corrupt_at, fail_at;
	unsigned lose_datagrams; // so many
};

static inline struct fake_nic *fake_of(const struct app_env *env)
{
	return (struct fake_nic *)env->nic;
}

static inline int fake_reg_mr(
	const struct app_env *env, uint32_t bytes, unsigned access, struct app_mr *out)
{
	struct fake_nic *nic = fake_of(env);

	if (bytes > MEMORY)
		return -ENOMEM;
	nic->used = bytes;
	*out = (struct app_mr){nic->memory, MEM_BASE * (nic->self + 1), bytes,
		KEY_OF(nic->self) + 100, KEY_OF(nic->self)};
	return 0;
}

static inline int fake_listen(
	const struct app_env *env, uint64_t service_id, enum cm_transport transport)
{
	return cm_listen(&fake_of(env)->cm, service_id, transport, 0);
}

static inline unsigned fake_open(struct fake_nic *nic, struct cm_id *id)
{
	for (unsigned i = 0; i < CONNS; i++) {
		if (nic->conns[i].used)
			continue;
		memset(&nic->conns[i], 0, sizeof(nic->conns[i]));
		nic->conns[i].used = true;
		nic->conns[i].id = id;
		nic->conns[i].qpn = ++nic->w->next_qpn;
		return i;
	}
	fail();
	return 0;
}

static inline int fake_connect(
	const struct app_env *env, const struct app_request *r, unsigned *conn)
{
	struct fake_nic *nic = fake_of(env);
	struct cm_connect c = {
		.service_id = r->service_id,
		.transport = r->transport,
		.mtu = 3,
		.responder_resources = r->responder_resources,
		.initiator_depth = r->initiator_depth,
		.retry_count = r->retry_count,
		.rnr_retry = r->rnr_retry,
	};

	*conn = fake_open(nic, NULL);
	c.qpn = nic->conns[*conn].qpn;
	c.user = *conn;
	memcpy(c.local_gid, nic->gid, GID_BYTES);
	memcpy(c.remote_gid, r->gid, GID_BYTES);
	return cm_connect(&nic->cm, nic->w->now, &c, &nic->conns[*conn].id);
}

static inline int fake_accept(
	const struct app_env *env, unsigned conn, const void *private_data, uint8_t private_len)
{
	struct fake_nic *nic = fake_of(env);
	struct cm_accept a = {
		.qpn = nic->conns[conn].qpn,
		.qkey = CM_UD_QKEY,
		.responder_resources = CM_AS_ASKED,
		.initiator_depth = CM_AS_ASKED,
		.private_data = private_data,
		.private_len = private_len,
	};

	return cm_accept(&nic->cm, nic->w->now, nic->conns[conn].id, &a);
}

static inline int fake_reject(const struct app_env *env, unsigned conn)
{
	struct fake_nic *nic = fake_of(env);

	return cm_reject(&nic->cm, nic->w->now, nic->conns[conn].id, CM_REJ_CONSUMER, NULL, 0);
}

static inline int fake_disconnect(const struct app_env *env, unsigned conn)
{
	struct fake_nic *nic = fake_of(env);

	nic->conns[conn].broken = true;
	return cm_disconnect(&nic->cm, nic->w->now, nic->conns[conn].id);
}

static inline int fake_destroy(const struct app_env *env, unsigned conn)
{
	struct fake_nic *nic = fake_of(env);

	assert_true(nic->conns[conn].used);
	nic->conns[conn].used = false;
	return cm_destroy(&nic->cm, nic->w->now, nic->conns[conn].id);
}

static inline int fake_post_send(const struct app_env *env, unsigned conn, const struct app_wr *wr)
{
	struct fake_nic *nic = fake_of(env);
	struct world *w = nic->w;

	assert_true(nic->conns[conn].used && w->n < PENDING);
	struct fake_wr *p = &w->pending[w->n++];
	*p = (struct fake_wr){.nic = nic->self, .conn = conn, .wr = *wr};
	if (wr->dest != NULL)
		p->dest = *wr->dest;
	return 0;
}

static inline int fake_post_recv(const struct app_env *env, unsigned conn, const struct app_recv *r)
{
	struct fake_conn *c = &fake_of(env)->conns[conn];

	assert_true(c->used);
	if (c->head - c->tail == APP_DEPTH)
		return -ENOMEM;
	c->recvs[c->head++ % APP_DEPTH] = *r;
	return 0;
}

static inline uint32_t fake_qpn(const struct app_env *env, unsigned conn)
{
	return fake_of(env)->conns[conn].qpn;
}

static const struct app_env_ops fake_ops = {fake_reg_mr, fake_listen, fake_connect, fake_accept,
	fake_reject, fake_disconnect, fake_destroy, fake_post_send, fake_post_recv, fake_qpn};

static inline void world_setup(struct world *w, uint64_t seed)
{
	memset(w, 0, sizeof(*w));
	w->rng = rng_stream(seed, 3);
	for (unsigned i = 0; i < NICS; i++) {
		struct fake_nic *nic = &w->nics[i];
		struct cm_config cfg = {.guid = 1 + i,
			.seed = i,
			.mtu = 5,
			.response_timeout = CM_RESPONSE_TIMEOUT,
			.max_retries = CM_MAX_RETRIES,
			.packet_lifetime = CM_PACKET_LIFETIME,
			.ack_delay = CM_ACK_DELAY,
			.service_timeout = CM_SERVICE_TIMEOUT};
		nic->w = w;
		nic->self = i;
		nic->memory = calloc(1, MEMORY);
		nic->env = (struct app_env){&fake_ops, nic, 0};
		gid_from_ipv4(nic->gid, 0x0a000001 + i);
		cm_init(&nic->cm, &cfg, nic->ids, 32);
	}
}

static inline void world_teardown(struct world *w)
{
	for (unsigned i = 0; i < NICS; i++) {
		free(w->nics[i].memory);
		free(w->nics[i].app);
	}
}

static inline struct app *world_start(
	struct world *w, unsigned i, enum app_kind kind, const struct app_config *cfg)
{
	w->nics[i].app = malloc(app_bytes(kind));
	app_start(w->nics[i].app, kind, cfg, &w->nics[i].env);
	return w->nics[i].app;
}

// A client of the application on NIC 0, with sizes and counts as there.
static inline struct app *world_client(
	struct world *w, unsigned i, enum app_kind kind, uint32_t size, uint32_t count)
{
	struct app_config cfg;

	app_config_default(kind, &cfg);
	memcpy(cfg.server_gid, w->nics[0].gid, GID_BYTES);
	cfg.size = size;
	cfg.count = count;
	return world_start(w, i, kind, &cfg);
}

static inline struct app *world_server(
	struct world *w, enum app_kind kind, uint32_t size, uint32_t count, uint32_t connections)
{
	struct app_config cfg;

	app_config_default(kind, &cfg);
	cfg.size = size;
	cfg.count = count;
	cfg.connections = connections;
	return world_start(w, 0, kind, &cfg);
}

// ---- carrying out -----------------------------------------------------------------------------

static inline struct fake_nic *nic_by_gid(struct world *w, const uint8_t *gid)
{
	for (unsigned i = 0; i < NICS; i++)
		if (memcmp(w->nics[i].gid, gid, GID_BYTES) == 0)
			return &w->nics[i];
	return NULL;
}

static inline int conn_by_qpn(const struct fake_nic *nic, uint32_t qpn)
{
	for (int i = 0; i < CONNS; i++)
		if (nic->conns[i].used && nic->conns[i].qpn == qpn)
			return i;
	return -1;
}

// Bytes of a NIC's memory, NULL when key or bounds are wrong.
static inline uint8_t *fake_at(struct fake_nic *nic, uint64_t addr, uint64_t len, bool key_ok)
{
	uint64_t base = MEM_BASE * (nic->self + 1);

	return key_ok && addr >= base && addr - base + len <= nic->used
		       ? nic->memory + (addr - base)
		       : NULL;
}

static inline void complete(struct fake_nic *nic, unsigned conn, struct app_wc wc)
{
	app_wc(nic->app, conn, &wc);
}

// False: no receive posted, later.
static inline bool do_send(
	struct world *w, struct fake_wr *p, struct fake_nic *to, unsigned conn, uint8_t *status)
{
	struct fake_conn *c = &to->conns[conn];
	bool ud = p->wr.dest != NULL;
	uint32_t skip = ud ? APP_GRH_BYTES : 0;

	if (c->head == c->tail)
		return false;
	struct app_recv r = c->recvs[c->tail++ % APP_DEPTH];
	struct fake_nic *from = &w->nics[p->nic];
	assert_int_equal(r.lkey, KEY_OF(to->self) + 100);
	if (r.length < p->wr.length + skip) {
		c->broken = true;
		complete(to, conn, (struct app_wc){.status = WC_LOC_LEN_ERR, .recv = true});
		*status = WC_REM_INV_REQ_ERR;
		return true;
	}
	uint8_t *dst = fake_at(to, r.addr, r.length, true);
	const uint8_t *src = fake_at(from, p->wr.local, p->wr.length, true);
	assert_non_null(dst);
	assert_non_null(src);
	memcpy(dst + skip, src, p->wr.length);
	if (w->done == w->corrupt_at)
		dst[skip] ^= 1;
	struct app_wc wc = {.wr_id = r.wr_id,
		.byte_len = p->wr.length + skip,
		.recv = true,
		.has_imm = p->wr.op == WR_SEND_IMM,
		.imm = p->wr.op == WR_SEND_IMM ? p->wr.imm : 0,
		.src_qpn = from->conns[p->conn].qpn};
	memcpy(wc.src_gid, from->gid, GID_BYTES);
	complete(to, conn, wc);
	return true;
}

static inline enum wc_status do_rdma(struct world *w, struct fake_wr *p, struct fake_nic *to)
{
	struct fake_nic *from = &w->nics[p->nic];
	uint8_t *local = fake_at(from, p->wr.local, p->wr.length, true);
	uint8_t *remote =
		fake_at(to, p->wr.remote_addr, p->wr.length, p->wr.rkey == KEY_OF(to->self));
	uint64_t old;

	assert_non_null(local);
	if (remote == NULL)
		return WC_REM_ACCESS_ERR;
	switch (p->wr.op) {
	case WR_WRITE:
		memcpy(remote, local, p->wr.length);
		break;
	case WR_READ:
		memcpy(local, remote, p->wr.length);
		break;
	default:
		assert_int_equal(p->wr.length, 8);
		assert_int_equal(p->wr.remote_addr % 8, 0);
		memcpy(&old, remote, 8);
		memcpy(local, &old, 8);
		if (p->wr.op == WR_FETCH_ADD)
			old += p->wr.swap_add;
		else if (old == p->wr.compare)
			old = p->wr.swap_add;
		memcpy(remote, &old, 8);
	}
	if (w->done == w->corrupt_at)
		(p->wr.op == WR_WRITE ? remote : local)[0] ^= 1;
	return WC_SUCCESS;
}

// Carries out pending request i.
static inline void world_do(struct world *w, unsigned i)
{
	struct fake_wr p = w->pending[i];
	struct fake_nic *from = &w->nics[p.nic];
	struct fake_conn *c = &from->conns[p.conn];
	struct app_wc wc = {.wr_id = p.wr.wr_id};
	const uint8_t *gid = p.wr.dest ? p.dest.gid : c->id->conn.remote_gid;
	uint32_t qpn = p.wr.dest ? p.dest.qpn : c->id->conn.remote_qpn;
	bool sends = p.wr.op == WR_SEND || p.wr.op == WR_SEND_IMM;

	if (!c->used || c->broken) {
		memmove(&w->pending[i], &w->pending[i + 1], (--w->n - i) * sizeof(p));
		wc.status = WC_WR_FLUSH_ERR;
		if (c->used)
			complete(from, p.conn, wc);
		return;
	}
	struct fake_nic *to = nic_by_gid(w, gid);
	assert_non_null(to);
	int remote = conn_by_qpn(to, qpn);
	if (p.wr.dest != NULL) {
		assert_int_equal(p.dest.qkey, CM_UD_QKEY);
		if (w->lose_datagrams > 0) {
			w->lose_datagrams--;
			remote = -1;
		}
	}
	w->done++;
	if (w->done == w->fail_at)
		wc.status = WC_RETRY_EXC_ERR;
	else if (sends && remote >= 0 && !do_send(w, &p, to, (unsigned)remote, &wc.status)) {
		w->done--;
		return; // stays
	} else if (!sends)
		wc.status = (uint8_t)do_rdma(w, &p, to);
	// posted meanwhile: behind it
	memmove(&w->pending[i], &w->pending[i + 1], (--w->n - i) * sizeof(p));
	if (wc.status != WC_SUCCESS)
		c->broken = true;
	complete(from, p.conn, wc);
}

static inline bool move_mads(struct world *w)
{
	bool any = false;
	struct cm_out o;

	for (unsigned i = 0; i < NICS; i++)
		while (cm_next_mad(&w->nics[i].cm, &o)) {
			struct fake_nic *to = nic_by_gid(w, o.dst_gid);
			any = true;
			if (to != NULL)
				cm_rx(&to->cm, w->now, o.src_gid, o.dst_gid, o.mad, MAD_BYTES);
		}
	return any;
}

static inline bool hear(struct world *w)
{
	bool any = false;
	struct cm_event e;

	for (unsigned i = 0; i < NICS; i++) {
		struct fake_nic *nic = &w->nics[i];
		while (cm_next_event(&nic->cm, &e)) {
			any = true;
			if (e.type == CM_EV_CONNECT_REQUEST)
				e.id->user = fake_open(nic, e.id);
			struct app_cm_event ev = {.type = e.type,
				.conn = (unsigned)e.id->user,
				.status = e.status,
				.peer = &e.id->conn,
				.private_data = e.private_data,
				.private_len = e.private_len};
			app_cm(nic->app, &ev);
		}
	}
	return any;
}

// The first request of a random connection.
static inline bool work(struct world *w)
{
	if (w->n == 0)
		return false;
	unsigned i = rng_below(&w->rng, w->n);
	for (unsigned k = 0; k < i; k++)
		if (w->pending[k].nic == w->pending[i].nic &&
			w->pending[k].conn == w->pending[i].conn) {
			i = k;
			break;
		}
	world_do(w, i);
	return true;
}

// Until all is quiet, timers included when `time`.
static inline void world_run(struct world *w, bool time)
{
	for (unsigned i = 0; i < 2000000; i++) {
		if (move_mads(w) | hear(w) | work(w))
			continue;
		simtime_t next = SIMTIME_NEVER;
		for (unsigned k = 0; k < NICS; k++)
			next = simtime_min(next, w->nics[k].cm.deadline);
		if (!time || next == SIMTIME_NEVER)
			return;
		w->now = next;
		for (unsigned k = 0; k < NICS; k++)
			cm_tick(&w->nics[k].cm, next);
	}
	fail_msg("does not come to rest");
}
