/* SPDX-License-Identifier: BSD-3-Clause */
// udaddy, as rdma-core has it: the client asks for the server's queue pair (SIDR) and sends it
// `count` datagrams of `size` bytes with its own queue pair number as immediate data; the server
// answers with as many to where the first came from. Nothing is repeated: a lost datagram leaves
// both waiting, as it does the programs.
//
// Receive buffers begin with the 40 bytes of a global routing header.
#include "pipelines/app_priv.h"

enum wr { WR_ID_RECV, WR_ID_SEND };

struct udaddy {
	struct app app;
	struct {
		struct app_dest peer;
		uint32_t received, sent;
	} s[APP_CONNECTIONS];
};

static struct udaddy *self(struct app *app)
{
	return (struct udaddy *)app;
}

// One datagram, and a place for all that come in.
static uint32_t slot_bytes(const struct app_config *cfg)
{
	return 2 * cfg->size + APP_GRH_BYTES;
}

static const void *opened(struct app *app, unsigned slot, uint8_t *private_len)
{
	memset(&self(app)->s[slot], 0, sizeof(self(app)->s[slot]));
	for (uint32_t i = 0; i < app->cfg.count; i++)
		app_post_recv(app, slot, WR_ID_RECV, app->cfg.size, app->cfg.size + APP_GRH_BYTES);
	*private_len = 0;
	return NULL;
}

static void send_all(struct app *app, unsigned slot)
{
	struct udaddy *u = self(app);
	uint32_t qpn = app->env->ops->qpn(app->env, app->slots[slot].conn);

	for (uint32_t i = 0; i < app->cfg.count; i++)
		app_post_send(app, slot,
			(struct app_wr){
				.wr_id = WR_ID_SEND,
				.op = WR_SEND_IMM,
				.length = app->cfg.size,
				.imm = qpn,
				.dest = &u->s[slot].peer,
			});
}

static void count(struct app *app, unsigned slot, const struct app_wc *wc)
{
	if (!wc->recv) {
		self(app)->s[slot].sent++;
		return;
	}
	self(app)->s[slot].received++;
	app_message(app, wc->byte_len - APP_GRH_BYTES);
	if (wc->byte_len != app->cfg.size + APP_GRH_BYTES || !wc->has_imm)
		app_mismatch(app);
}

static bool all_done(const struct app *app, unsigned slot)
{
	const struct udaddy *u = (const struct udaddy *)app;

	return u->s[slot].received == app->cfg.count && u->s[slot].sent == app->cfg.count;
}

static void server_established(struct app *app, unsigned slot, const struct app_cm_event *ev)
{
}

static void server_completed(struct app *app, unsigned slot, const struct app_wc *wc)
{
	struct udaddy *u = self(app);

	count(app, slot, wc);
	if (wc->recv && u->s[slot].received == 1) {
		u->s[slot].peer = (struct app_dest){.qpn = wc->imm, .qkey = CM_UD_QKEY};
		memcpy(u->s[slot].peer.gid, wc->src_gid, GID_BYTES);
	}
	if (wc->recv && u->s[slot].received == app->cfg.count)
		send_all(app, slot);
	if (all_done(app, slot))
		app_finish(app, slot);
}

static void client_established(struct app *app, unsigned slot, const struct app_cm_event *ev)
{
	struct app_dest *peer = &self(app)->s[slot].peer;

	*peer = (struct app_dest){.qpn = ev->peer->remote_qpn, .qkey = ev->peer->qkey};
	memcpy(peer->gid, ev->peer->remote_gid, GID_BYTES);
	send_all(app, slot);
}

static void client_completed(struct app *app, unsigned slot, const struct app_wc *wc)
{
	count(app, slot, wc);
	if (all_done(app, slot))
		app_finish(app, slot);
}

// Datagrams have no peer that could.
static bool may_end(const struct app *app, unsigned slot)
{
	return false;
}

const struct app_ops app_udaddy_server_ops = {
	.bytes = sizeof(struct udaddy),
	.server = true,
	.transport = CM_UD,
	.size_min = 1,
	.size_max = 4096,
	.count_min = 1,
	.count_max = APP_DEPTH,
	.slot_bytes = slot_bytes,
	.opened = opened,
	.established = server_established,
	.completed = server_completed,
	.may_end = may_end,
};

const struct app_ops app_udaddy_client_ops = {
	.bytes = sizeof(struct udaddy),
	.transport = CM_UD,
	.size_min = 1,
	.size_max = 4096,
	.count_min = 1,
	.count_max = APP_DEPTH,
	.slot_bytes = slot_bytes,
	.opened = opened,
	.established = client_established,
	.completed = client_completed,
	.may_end = may_end,
};
