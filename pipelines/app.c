/* SPDX-License-Identifier: BSD-3-Clause */
// What applications have in common: connections come, work and end, and the first failure is
// remembered. Each connection has a slot: a share of the application's memory.
//
//	FREE -> OPEN      asked for, or asking: receives are posted
//	     -> UP        established
//	     -> ENDING    we have ended it and wait for DISCONNECTED
//	     -> FREE
//
// Receives and sends that are flushed when a connection ends are nobody's failure.
#include <assert.h>

#include "pipelines/app_priv.h"

enum app_slot_state { SLOT_FREE, SLOT_OPEN, SLOT_UP, SLOT_ENDING };

#define NO_SLOT APP_CONNECTIONS

static const struct {
	const char *name;
	const struct app_ops *ops;
	uint16_t port;
	uint32_t size, count;
} kinds[] = {
#define X(id, name, port, size, count, help) {name, &app_##id##_ops, port, size, count},
	APPS(X)
#undef X
};

const char *app_name(enum app_kind kind)
{
	return kinds[kind].name;
}

const char *app_status_name(enum app_status status)
{
	static const char *const names[] = {
#define X(id, help) #id,
		APP_STATUSES(X)
#undef X
	};

	return names[status];
}

const char *app_status_help(enum app_status status)
{
	static const char *const helps[] = {
#define X(id, help) help,
		APP_STATUSES(X)
#undef X
	};

	return helps[status];
}

void app_config_default(enum app_kind kind, struct app_config *cfg)
{
	*cfg = (struct app_config){
		.port = kinds[kind].port,
		.size = kinds[kind].size,
		.count = kinds[kind].count,
		.connections = 1,
		.retry_count = 7,
		.rnr_retry = 7,
	};
}

bool app_is_server(enum app_kind kind)
{
	return kinds[kind].ops->server;
}

enum cm_transport app_transport(enum app_kind kind)
{
	return (enum cm_transport)kinds[kind].ops->transport;
}

struct app_limits app_limits(enum app_kind kind)
{
	const struct app_ops *ops = kinds[kind].ops;

	return (struct app_limits){ops->size_min, ops->size_max, ops->count_min, ops->count_max};
}

size_t app_bytes(enum app_kind kind)
{
	return kinds[kind].ops->bytes;
}

// ---- slots ------------------------------------------------------------------------------------

static unsigned slot_of(const struct app *app, unsigned conn)
{
	for (unsigned i = 0; i < app->cfg.connections; i++)
		if (app->slots[i].state != SLOT_FREE && app->slots[i].conn == conn)
			return i;
	return NO_SLOT;
}

static unsigned open_slot(struct app *app, unsigned conn)
{
	for (unsigned i = 0; i < app->cfg.connections; i++) {
		if (app->slots[i].state != SLOT_FREE)
			continue;
		app->slots[i] = (struct app_slot){.conn = (uint8_t)conn, .state = SLOT_OPEN};
		memset(app_mem(app, i, 0), 0, app->ops->slot_bytes(&app->cfg));
		return i;
	}
	return NO_SLOT;
}

static void close_slot(struct app *app, unsigned slot)
{
	app->slots[slot].state = SLOT_FREE;
	app->env->ops->destroy(app->env, app->slots[slot].conn);
}

// ---- results ----------------------------------------------------------------------------------

void app_fail(struct app *app, enum app_status status, int detail)
{
	if (app->status != APP_ST_RUNNING && app->status != APP_ST_DONE)
		return;
	app->status = status;
	app->detail = detail;
}

void app_mismatch(struct app *app)
{
	app->counts.mismatches++;
	app_fail(app, APP_ST_MISMATCH, 0);
}

static void ended_well(struct app *app)
{
	app->counts.ended++;
	if (app->status == APP_ST_RUNNING)
		app->status = APP_ST_DONE;
}

static void hang_up(struct app *app, unsigned slot)
{
	if (app->ops->transport == CM_UD || app->slots[slot].state != SLOT_UP) {
		close_slot(app, slot);
		return;
	}
	app->slots[slot].state = SLOT_ENDING;
	if (app->env->ops->disconnect(app->env, app->slots[slot].conn) != 0)
		close_slot(app, slot);
}

void app_break(struct app *app, unsigned slot, enum app_status status, int detail)
{
	app_fail(app, status, detail);
	if (app->slots[slot].state != SLOT_ENDING)
		hang_up(app, slot);
}

void app_finish(struct app *app, unsigned slot)
{
	ended_well(app);
	hang_up(app, slot);
}

// ---- posting ----------------------------------------------------------------------------------

void app_post_recv(struct app *app, unsigned slot, uint64_t wr_id, uint32_t offset, uint32_t length)
{
	struct app_recv r = {
		.wr_id = wr_id,
		.addr = app_addr(app, slot, offset),
		.length = length,
		.lkey = app->mr.lkey,
	};
	int ret = app->env->ops->post_recv(app->env, app->slots[slot].conn, &r);

	if (ret < 0)
		app_fail(app, APP_ST_LOCAL, ret);
}

void app_post_send(struct app *app, unsigned slot, struct app_wr wr)
{
	wr.local = app_addr(app, slot, (uint32_t)wr.local);
	wr.lkey = app->mr.lkey;
	int ret = app->env->ops->post_send(app->env, app->slots[slot].conn, &wr);

	if (ret < 0)
		app_fail(app, APP_ST_LOCAL, ret);
}

// ---- beginning --------------------------------------------------------------------------------

static int begin_server(struct app *app)
{
	uint16_t ps = app->ops->transport == CM_UD ? CMA_PS_UDP : CMA_PS_TCP;

	return app->env->ops->listen(app->env, cma_service_id(ps, app->cfg.port),
		(enum cm_transport)app->ops->transport);
}

static int begin_client(struct app *app)
{
	uint16_t ps = app->ops->transport == CM_UD ? CMA_PS_UDP : CMA_PS_TCP;
	struct app_request r = {
		.service_id = cma_service_id(ps, app->cfg.port),
		.transport = app->ops->transport,
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = app->cfg.retry_count,
		.rnr_retry = app->cfg.rnr_retry,
	};
	unsigned conn;
	uint8_t len;

	memcpy(r.gid, app->cfg.server_gid, GID_BYTES);
	int ret = app->env->ops->connect(app->env, &r, &conn);
	if (ret == 0)
		app->ops->opened(app, open_slot(app, conn), &len);
	return ret;
}

static bool config_ok(const struct app *app)
{
	const struct app_config *cfg = &app->cfg;

	return cfg->connections >= 1 && cfg->connections <= APP_CONNECTIONS &&
	       cfg->size >= app->ops->size_min && cfg->size <= app->ops->size_max &&
	       cfg->count >= app->ops->count_min && cfg->count <= app->ops->count_max;
}

bool app_start(struct app *app, enum app_kind kind, const struct app_config *cfg,
	const struct app_env *env)
{
	const struct app_ops *ops = kinds[kind].ops;
	int ret = -EINVAL;

	memset(app, 0, ops->bytes);
	app->kind = kind;
	app->ops = ops;
	app->env = env;
	app->cfg = *cfg;
	if (!ops->server)
		app->cfg.connections = 1;
	if (config_ok(app))
		ret = env->ops->reg_mr(env,
			app->cfg.connections * app_align(ops->slot_bytes(&app->cfg)),
			ACCESS_LOCAL_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE |
				ACCESS_REMOTE_ATOMIC,
			&app->mr);
	if (ret == 0)
		ret = ops->server ? begin_server(app) : begin_client(app);
	if (ret < 0)
		app_fail(app, APP_ST_LOCAL, ret);
	return app->status == APP_ST_RUNNING;
}

// ---- connections ------------------------------------------------------------------------------

static void up(struct app *app, unsigned slot, const struct app_cm_event *ev)
{
	app->slots[slot].state = SLOT_UP;
	app->counts.connections++;
	app->ops->established(app, slot, ev);
}

static void requested(struct app *app, const struct app_cm_event *ev)
{
	unsigned slot = open_slot(app, ev->conn);
	uint8_t len = 0;

	if (slot == NO_SLOT) {
		app->env->ops->reject(app->env, ev->conn);
		app->env->ops->destroy(app->env, ev->conn);
		return;
	}
	const void *private_data = app->ops->opened(app, slot, &len);
	int ret = app->env->ops->accept(app->env, ev->conn, private_data, len);
	if (ret < 0)
		app_break(app, slot, APP_ST_LOCAL, ret);
	else if (app->ops->transport == CM_UD)
		up(app, slot, ev);
}

// Established by us or by the peer, and now over. What we have ended was judged then.
static void disconnected(struct app *app, unsigned slot)
{
	if (app->slots[slot].state != SLOT_ENDING) {
		if (app->ops->may_end(app, slot))
			ended_well(app);
		else
			app_fail(app, APP_ST_BROKEN, 0);
	}
	close_slot(app, slot);
}

void app_cm(struct app *app, const struct app_cm_event *ev)
{
	unsigned slot = ev->type == CM_EV_CONNECT_REQUEST ? NO_SLOT : slot_of(app, ev->conn);

	if (slot == NO_SLOT && ev->type != CM_EV_CONNECT_REQUEST)
		return; // of one that is already over
	switch (ev->type) {
	case CM_EV_CONNECT_REQUEST:
		requested(app, ev);
		break;
	case CM_EV_ESTABLISHED:
		up(app, slot, ev);
		break;
	case CM_EV_REJECTED:
		app_fail(app, APP_ST_REFUSED, ev->status);
		close_slot(app, slot);
		break;
	case CM_EV_UNREACHABLE:
		app_fail(app, APP_ST_UNREACHABLE, ev->status);
		close_slot(app, slot);
		break;
	case CM_EV_DISCONNECTED:
		disconnected(app, slot);
		break;
	case CM_EV_TIMEWAIT_EXIT:
		break;
	}
}

void app_wc(struct app *app, unsigned conn, const struct app_wc *wc)
{
	unsigned slot = slot_of(app, conn);

	if (slot == NO_SLOT || app->slots[slot].state == SLOT_ENDING ||
		wc->status == WC_WR_FLUSH_ERR)
		return;
	if (wc->status != WC_SUCCESS)
		app_break(app, slot, APP_ST_COMPLETION, wc->status);
	else
		app->ops->completed(app, slot, wc);
}
