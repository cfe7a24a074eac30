/* SPDX-License-Identifier: BSD-3-Clause */
// The passive half of our own test of everything; see app_target.h. Its memory is used by the peer
// alone, except that SENDs are answered: TARGET_ECHOES buffers take turns, each posted as a
// receive, sent back when it is filled, and posted again when that has completed.
//
// The rkey opens the memory of all connections of this target: one that writes where it should not
// is found out by the others.
#include "pipelines/app_target.h"
#include "pipelines/app_priv.h"

struct target {
	struct app app;
	uint8_t greeting[TARGET_GREETING_BYTES];
	struct {
		uint32_t echoing; // answers not completed
	} s[APP_CONNECTIONS];
};

static struct target *self(struct app *app)
{
	return (struct target *)app;
}

static uint32_t echo_at(const struct app *app, uint64_t buffer)
{
	return app_align(TARGET_DATA_AT + app->cfg.size) +
	       (uint32_t)buffer * app_align(app->cfg.size);
}

static uint32_t slot_bytes(const struct app_config *cfg)
{
	return app_align(TARGET_DATA_AT + cfg->size) + TARGET_ECHOES * app_align(cfg->size);
}

static const void *opened(struct app *app, unsigned slot, uint8_t *private_len)
{
	struct target *t = self(app);

	t->s[slot].echoing = 0;
	for (uint64_t i = 0; i < TARGET_ECHOES; i++)
		app_post_recv(app, slot, i, echo_at(app, i), app->cfg.size);
	put_be64(t->greeting, app_addr(app, slot, 0));
	put_be32(t->greeting + 8, app->mr.rkey);
	put_be32(t->greeting + 12, TARGET_DATA_AT + app->cfg.size);
	*private_len = TARGET_GREETING_BYTES;
	return t->greeting;
}

static void established(struct app *app, unsigned slot, const struct app_cm_event *ev)
{
}

static void completed(struct app *app, unsigned slot, const struct app_wc *wc)
{
	struct target *t = self(app);

	if (!wc->recv) {
		t->s[slot].echoing--;
		app_post_recv(app, slot, wc->wr_id, echo_at(app, wc->wr_id), app->cfg.size);
		return;
	}
	t->s[slot].echoing++;
	app_message(app, wc->byte_len);
	app_post_send(app, slot,
		(struct app_wr){
			.wr_id = wc->wr_id,
			.op = wc->has_imm ? WR_SEND_IMM : WR_SEND,
			.local = echo_at(app, wc->wr_id),
			.length = wc->byte_len,
			.imm = wc->imm,
		});
}

// An answer may have arrived and its acknowledgement not.
static bool may_end(const struct app *app, unsigned slot)
{
	return ((const struct target *)app)->s[slot].echoing <= 1;
}

const struct app_ops app_target_ops = {
	.bytes = sizeof(struct target),
	.server = true,
	.transport = CM_RC,
	.size_min = 1,
	.size_max = 1 << 20,
	.count_max = INT32_MAX,
	.slot_bytes = slot_bytes,
	.opened = opened,
	.established = established,
	.completed = completed,
	.may_end = may_end,
};
