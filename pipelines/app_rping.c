/* SPDX-License-Identifier: BSD-3-Clause */
// rping, as rdma-core has it. The client offers a buffer, the server READs it and says "go ahead";
// the client offers another, the server WRITEs there what it has read and says "go ahead" again:
//
//	client                          server
//	SEND {addr, rkey, len}  ---->
//	                        <----   READ of len bytes
//	                        <----   SEND (16 bytes, contents mean nothing)
//	SEND {addr, rkey, len}  ---->
//	                        <----   WRITE of the text and its final 0
//	                        <----   SEND
//
// The data of ping n is known, so both sides check it: "rdma-ping-n: ", then letters from a start
// that moves on by one each time, then 0.
#include <stdio.h>

#include "pipelines/app_priv.h"

#define INFO_BYTES   16 // be64 addr, be32 rkey, be32 length
#define BUFFER_MAX   65536
#define SIZE_MIN     26 // the header of the largest ping number, and a 0
#define LETTER_FIRST 65
#define LETTER_LAST  122

// A slot's memory.
#define SEND_AT   0
#define RECV_AT   64
#define DATA_AT   128 // server: what was read; client: what it offers for the READ
#define SECOND_AT (DATA_AT + BUFFER_MAX) // server: what it should be; client: for the WRITE
#define SLOT_SIZE (SECOND_AT + BUFFER_MAX)

enum wr { WR_ID_RECV, WR_ID_SEND, WR_ID_DATA };

enum phase { READ_OFFER, READING, WRITE_OFFER, WRITING }; // what is awaited or under way

struct rping {
	struct app app;
	struct {
		uint32_t ping;
		uint32_t len; // server: of the buffer offered
		uint8_t phase;
	} s[APP_CONNECTIONS];
};

static struct rping *self(struct app *app)
{
	return (struct rping *)app;
}

static uint32_t slot_bytes(const struct app_config *cfg)
{
	return SLOT_SIZE;
}

static void fill(uint8_t *buf, uint32_t size, uint32_t ping)
{
	unsigned letters = LETTER_LAST - LETTER_FIRST + 1;
	uint32_t head = (uint32_t)snprintf((char *)buf, size, "rdma-ping-%u: ", ping);

	for (uint32_t i = head; i < size; i++)
		buf[i] = (uint8_t)(LETTER_FIRST + (ping + i - head) % letters);
	buf[size - 1] = 0;
}

static const void *opened(struct app *app, unsigned slot, uint8_t *private_len)
{
	self(app)->s[slot].ping = 0;
	self(app)->s[slot].phase = READ_OFFER;
	app_post_recv(app, slot, WR_ID_RECV, RECV_AT, INFO_BYTES);
	*private_len = 0;
	return NULL;
}

static void send_info(struct app *app, unsigned slot)
{
	app_post_send(app, slot,
		(struct app_wr){
			.wr_id = WR_ID_SEND,
			.op = WR_SEND,
			.local = SEND_AT,
			.length = INFO_BYTES,
		});
}

// ---- server -----------------------------------------------------------------------------------

static void server_established(struct app *app, unsigned slot, const struct app_cm_event *ev)
{
}

static void server_move_data(struct app *app, unsigned slot, enum wr_op op, uint32_t len)
{
	const uint8_t *info = app_mem(app, slot, RECV_AT);

	app_post_send(app, slot,
		(struct app_wr){
			.wr_id = WR_ID_DATA,
			.op = (uint8_t)op,
			.local = DATA_AT,
			.remote_addr = get_be64(info),
			.rkey = get_be32(info + 8),
			.length = len,
		});
}

static void server_got_offer(struct app *app, unsigned slot)
{
	struct rping *r = self(app);
	uint32_t len = get_be32(app_mem(app, slot, RECV_AT) + 12);
	bool reads = r->s[slot].phase == READ_OFFER, writes = r->s[slot].phase == WRITE_OFFER;

	if (len < SIZE_MIN || len > BUFFER_MAX || !(reads || writes)) {
		app_break(app, slot, APP_ST_UNEXPECTED, 0);
		return;
	}
	r->s[slot].len = len;
	r->s[slot].phase = reads ? READING : WRITING;
	if (reads) {
		server_move_data(app, slot, WR_READ, len);
	} else {
		const char *text = (const char *)app_mem(app, slot, DATA_AT);
		server_move_data(app, slot, WR_WRITE, (uint32_t)strnlen(text, len - 1) + 1);
	}
	app_post_recv(app, slot, WR_ID_RECV, RECV_AT, INFO_BYTES);
}

static void server_moved(struct app *app, unsigned slot)
{
	struct rping *r = self(app);
	uint32_t len = r->s[slot].len;

	app_message(app, len);
	if (r->s[slot].phase == READING) {
		fill(app_mem(app, slot, SECOND_AT), len, r->s[slot].ping);
		if (memcmp(app_mem(app, slot, DATA_AT), app_mem(app, slot, SECOND_AT), len) != 0)
			app_mismatch(app);
		r->s[slot].phase = WRITE_OFFER;
	} else {
		r->s[slot].phase = READ_OFFER;
		r->s[slot].ping++;
	}
	send_info(app, slot);
}

static void server_completed(struct app *app, unsigned slot, const struct app_wc *wc)
{
	if (wc->recv && wc->byte_len != INFO_BYTES)
		app_break(app, slot, APP_ST_UNEXPECTED, 0);
	else if (wc->recv)
		server_got_offer(app, slot);
	else if (wc->wr_id == WR_ID_DATA)
		server_moved(app, slot);
}

static bool server_may_end(const struct app *app, unsigned slot)
{
	return ((const struct rping *)app)->s[slot].phase == READ_OFFER;
}

// ---- client -----------------------------------------------------------------------------------

static void client_offer(struct app *app, unsigned slot, uint32_t buffer_at)
{
	uint8_t *info = app_mem(app, slot, SEND_AT);

	put_be64(info, app_addr(app, slot, buffer_at));
	put_be32(info + 8, app->mr.rkey);
	put_be32(info + 12, app->cfg.size);
	send_info(app, slot);
}

static void client_ping(struct app *app, unsigned slot)
{
	struct rping *r = self(app);

	fill(app_mem(app, slot, DATA_AT), app->cfg.size, r->s[slot].ping);
	memset(app_mem(app, slot, SECOND_AT), 0xff, app->cfg.size);
	r->s[slot].phase = READING;
	client_offer(app, slot, DATA_AT);
}

static void client_established(struct app *app, unsigned slot, const struct app_cm_event *ev)
{
	client_ping(app, slot);
}

static void client_written(struct app *app, unsigned slot)
{
	struct rping *r = self(app);
	uint32_t size = app->cfg.size;

	if (memcmp(app_mem(app, slot, DATA_AT), app_mem(app, slot, SECOND_AT), size) != 0)
		app_mismatch(app);
	app_message(app, size);
	if (++r->s[slot].ping == app->cfg.count)
		app_finish(app, slot);
	else
		client_ping(app, slot);
}

static void client_completed(struct app *app, unsigned slot, const struct app_wc *wc)
{
	struct rping *r = self(app);

	if (!wc->recv)
		return;
	if (wc->byte_len != INFO_BYTES) {
		app_break(app, slot, APP_ST_UNEXPECTED, 0);
		return;
	}
	app_post_recv(app, slot, WR_ID_RECV, RECV_AT, INFO_BYTES);
	if (r->s[slot].phase == READING) {
		r->s[slot].phase = WRITING;
		app_message(app, app->cfg.size);
		client_offer(app, slot, SECOND_AT);
	} else {
		client_written(app, slot);
	}
}

// It is the client that ends it.
static bool client_may_end(const struct app *app, unsigned slot)
{
	return false;
}

const struct app_ops app_rping_server_ops = {
	.bytes = sizeof(struct rping),
	.server = true,
	.transport = CM_RC,
	.size_min = SIZE_MIN,
	.size_max = BUFFER_MAX - 1,
	.count_max = INT32_MAX,
	.slot_bytes = slot_bytes,
	.opened = opened,
	.established = server_established,
	.completed = server_completed,
	.may_end = server_may_end,
};

const struct app_ops app_rping_client_ops = {
	.bytes = sizeof(struct rping),
	.transport = CM_RC,
	.size_min = SIZE_MIN,
	.size_max = BUFFER_MAX - 1,
	.count_max = INT32_MAX,
	.slot_bytes = slot_bytes,
	.opened = opened,
	.established = client_established,
	.completed = client_completed,
	.may_end = client_may_end,
};
