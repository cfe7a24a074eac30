/* SPDX-License-Identifier: BSD-3-Clause */
// The active half of our own test of everything; see app_target.h for what a round is. WRITE and
// READ are posted together, and so are the three atomics: their order is the transport's to keep.
// SEND comes when those have completed, and the round ends with its echo.
#include "pipelines/app_priv.h"
#include "pipelines/app_target.h"

// A slot's memory. Results of atomics are a word each.
#define RESULTS_AT 0
#define DATA_AT    64 // written, then sent

enum wr { WR_ID_WRITE, WR_ID_READ, WR_ID_ADD, WR_ID_SWAP, WR_ID_SWAP_NOT, WR_ID_SEND, WR_ID_RECV };

struct initiator {
	struct app app;
	uint64_t remote_addr;
	uint32_t rkey;
	uint32_t round;
	bool sent, echoed; // of the SEND and its echo
};

static struct initiator *self(struct app *app)
{
	return (struct initiator *)app;
}

static uint32_t back_at(const struct app *app) // what is READ, and the echo
{
	return DATA_AT + app_align(app->cfg.size);
}

static uint32_t slot_bytes(const struct app_config *cfg)
{
	return DATA_AT + 2 * app_align(cfg->size);
}

static const void *opened(struct app *app, unsigned slot, uint8_t *private_len)
{
	self(app)->round = 0;
	*private_len = 0;
	return NULL;
}

static void post_data(struct app *app, unsigned slot, enum wr id, enum wr_op op, uint32_t local)
{
	struct initiator *t = self(app);

	app_post_send(app, slot,
		(struct app_wr){
			.wr_id = id,
			.op = (uint8_t)op,
			.local = local,
			.length = app->cfg.size,
			.remote_addr = t->remote_addr + TARGET_DATA_AT,
			.rkey = t->rkey,
			.imm = t->round,
		});
}

static void post_atomic(struct app *app, unsigned slot, enum wr id, enum wr_op op, uint64_t compare,
	uint64_t swap_add)
{
	struct initiator *t = self(app);

	app_post_send(app, slot,
		(struct app_wr){
			.wr_id = id,
			.op = (uint8_t)op,
			.local = RESULTS_AT + 8 * (id - WR_ID_ADD),
			.length = 8,
			.remote_addr = t->remote_addr +
				       (op == WR_FETCH_ADD ? TARGET_ADD_AT : TARGET_SWAP_AT),
			.rkey = t->rkey,
			.compare = compare,
			.swap_add = swap_add,
		});
}

static void begin_round(struct app *app, unsigned slot)
{
	target_fill(app_mem(app, slot, DATA_AT), app->cfg.size, TARGET_WRITTEN, self(app)->round);
	memset(app_mem(app, slot, back_at(app)), 0, app->cfg.size);
	post_data(app, slot, WR_ID_WRITE, WR_WRITE, DATA_AT);
	post_data(app, slot, WR_ID_READ, WR_READ, back_at(app));
}

static uint64_t swapped_before(uint32_t round)
{
	return round == 0 ? 0 : target_swap(round - 1);
}

static void begin_atomics(struct app *app, unsigned slot)
{
	uint32_t n = self(app)->round;

	post_atomic(app, slot, WR_ID_ADD, WR_FETCH_ADD, 0, n + 1);
	post_atomic(app, slot, WR_ID_SWAP, WR_CMP_SWAP, swapped_before(n), target_swap(n));
	post_atomic(app, slot, WR_ID_SWAP_NOT, WR_CMP_SWAP, target_swap(n) + 1, 1);
}

static void begin_echo(struct app *app, unsigned slot)
{
	uint32_t n = self(app)->round;

	target_fill(app_mem(app, slot, DATA_AT), app->cfg.size, TARGET_SENT, n);
	memset(app_mem(app, slot, back_at(app)), 0, app->cfg.size);
	self(app)->sent = self(app)->echoed = false;
	app_post_recv(app, slot, WR_ID_RECV, back_at(app), app->cfg.size);
	post_data(app, slot, WR_ID_SEND, n % 2 ? WR_SEND_IMM : WR_SEND, DATA_AT);
}

static void check_back(struct app *app, unsigned slot, enum target_pattern what)
{
	const uint8_t *back = app_mem(app, slot, back_at(app));

	app_message(app, app->cfg.size);
	if (target_check(back, app->cfg.size, what, self(app)->round) != app->cfg.size)
		app_mismatch(app);
}

static void check_result(struct app *app, unsigned slot, enum wr id, uint64_t want)
{
	uint64_t got;

	memcpy(&got, app_mem(app, slot, RESULTS_AT + 8 * (id - WR_ID_ADD)), 8);
	app_message(app, 8);
	if (got != want)
		app_mismatch(app);
}

static void check_echo(struct app *app, unsigned slot, const struct app_wc *wc)
{
	struct initiator *t = self(app);
	bool want_imm = t->round % 2;

	check_back(app, slot, TARGET_SENT);
	if (wc->byte_len != app->cfg.size || wc->has_imm != want_imm ||
		(want_imm && wc->imm != t->round))
		app_mismatch(app);
}

// The buffer that was sent is ours again only when the SEND has completed.
static void end_round(struct app *app, unsigned slot)
{
	struct initiator *t = self(app);

	if (!t->sent || !t->echoed)
		return;
	if (++t->round == app->cfg.count)
		app_finish(app, slot);
	else
		begin_round(app, slot);
}

static void completed(struct app *app, unsigned slot, const struct app_wc *wc)
{
	uint32_t n = self(app)->round;

	switch (wc->wr_id) {
	case WR_ID_WRITE:
		app_message(app, app->cfg.size);
		break;
	case WR_ID_READ:
		check_back(app, slot, TARGET_WRITTEN);
		begin_atomics(app, slot);
		break;
	case WR_ID_ADD:
		check_result(app, slot, WR_ID_ADD, target_sum(n));
		break;
	case WR_ID_SWAP:
		check_result(app, slot, WR_ID_SWAP, swapped_before(n));
		break;
	case WR_ID_SWAP_NOT:
		check_result(app, slot, WR_ID_SWAP_NOT, target_swap(n));
		begin_echo(app, slot);
		break;
	case WR_ID_SEND:
		self(app)->sent = true;
		end_round(app, slot);
		break;
	case WR_ID_RECV:
		check_echo(app, slot, wc);
		self(app)->echoed = true;
		end_round(app, slot);
		break;
	}
}

static void established(struct app *app, unsigned slot, const struct app_cm_event *ev)
{
	struct initiator *t = self(app);

	if (ev->private_len < TARGET_GREETING_BYTES ||
		get_be32(ev->private_data + 12) < TARGET_DATA_AT + app->cfg.size) {
		app_break(app, slot, APP_ST_UNEXPECTED, 0);
		return;
	}
	t->remote_addr = get_be64(ev->private_data);
	t->rkey = get_be32(ev->private_data + 8);
	begin_round(app, slot);
}

static bool may_end(const struct app *app, unsigned slot)
{
	return false;
}

const struct app_ops app_initiator_ops = {
	.bytes = sizeof(struct initiator),
	.transport = CM_RC,
	.size_min = 1,
	.size_max = 1 << 20,
	.count_min = 1,
	.count_max = INT32_MAX,
	.slot_bytes = slot_bytes,
	.opened = opened,
	.established = established,
	.completed = completed,
	.may_end = may_end,
};
