/* SPDX-License-Identifier: BSD-3-Clause */
// cmatose (in Debian ucmatose), as rdma-core has it: the server SENDs `count` messages of `size`
// bytes, the client answers with as many, the server disconnects. Each posts all its receives
// first, because the program connects with an RNR retry count of 0. What is in the messages is not
// defined; their length is.
//
// A connection is over for the server when all its SENDs are acknowledged and all answers are here.
#include "pipelines/app_priv.h"

enum wr { WR_ID_RECV, WR_ID_SEND };

struct cmatose {
	struct app app;
	struct {
		uint32_t received, sent; // completed
	} s[APP_CONNECTIONS];
};

static struct cmatose *self(struct app *app)
{
	return (struct cmatose *)app;
}

// One message, and a place for all that come in.
static uint32_t slot_bytes(const struct app_config *cfg)
{
	return 2 * cfg->size;
}

static const void *opened(struct app *app, unsigned slot, uint8_t *private_len)
{
	self(app)->s[slot].received = 0;
	self(app)->s[slot].sent = 0;
	for (uint32_t i = 0; i < app->cfg.count; i++)
		app_post_recv(app, slot, WR_ID_RECV, app->cfg.size, app->cfg.size);
	*private_len = 0;
	return NULL;
}

static void send_all(struct app *app, unsigned slot)
{
	for (uint32_t i = 0; i < app->cfg.count; i++)
		app_post_send(app, slot,
			(struct app_wr){
				.wr_id = WR_ID_SEND,
				.op = WR_SEND,
				.length = app->cfg.size,
			});
}

static bool all_done(const struct app *app, unsigned slot)
{
	const struct cmatose *c = (const struct cmatose *)app;

	return c->s[slot].received == app->cfg.count && c->s[slot].sent == app->cfg.count;
}

static void count(struct app *app, unsigned slot, const struct app_wc *wc)
{
	if (!wc->recv) {
		self(app)->s[slot].sent++;
		return;
	}
	self(app)->s[slot].received++;
	app_message(app, wc->byte_len);
	if (wc->byte_len != app->cfg.size)
		app_mismatch(app);
}

static void server_established(struct app *app, unsigned slot, const struct app_cm_event *ev)
{
	send_all(app, slot);
}

static void server_completed(struct app *app, unsigned slot, const struct app_wc *wc)
{
	count(app, slot, wc);
	if (all_done(app, slot))
		app_finish(app, slot);
}

static bool server_may_end(const struct app *app, unsigned slot)
{
	return false;
}

static void client_established(struct app *app, unsigned slot, const struct app_cm_event *ev)
{
}

static void client_completed(struct app *app, unsigned slot, const struct app_wc *wc)
{
	count(app, slot, wc);
	if (wc->recv && self(app)->s[slot].received == app->cfg.count)
		send_all(app, slot);
}

// The server disconnects once it has all answers; their acknowledgements may be lost to us.
static bool client_may_end(const struct app *app, unsigned slot)
{
	return ((const struct cmatose *)app)->s[slot].received == app->cfg.count;
}

const struct app_ops app_cmatose_server_ops = {
	.bytes = sizeof(struct cmatose),
	.server = true,
	.transport = CM_RC,
	.size_min = 1,
	.size_max = 1 << 20,
	.count_min = 1,
	.count_max = APP_DEPTH,
	.slot_bytes = slot_bytes,
	.opened = opened,
	.established = server_established,
	.completed = server_completed,
	.may_end = server_may_end,
};

const struct app_ops app_cmatose_client_ops = {
	.bytes = sizeof(struct cmatose),
	.transport = CM_RC,
	.size_min = 1,
	.size_max = 1 << 20,
	.count_min = 1,
	.count_max = APP_DEPTH,
	.slot_bytes = slot_bytes,
	.opened = opened,
	.established = client_established,
	.completed = client_completed,
	.may_end = client_may_end,
};
