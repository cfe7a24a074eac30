/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// What the applications share; see app.c. An application sees its connections as slots, each with a
// piece of one registered memory.

#include <errno.h>
#include <string.h>

#include "pcap/wire.h"
#include "pipelines/app.h"

struct app_ops {
	size_t bytes;
	bool server;
	uint8_t transport; // enum cm_transport
	uint32_t size_min, size_max, count_min, count_max;
	uint32_t (*slot_bytes)(const struct app_config *cfg);
	// The queue pair is there and nothing can have come in yet: posts receives. Returns the
	// private data with which a server accepts.
	const void *(*opened)(struct app *app, unsigned slot, uint8_t *private_len);
	// Data may flow.
	void (*established)(struct app *app, unsigned slot, const struct app_cm_event *ev);
	void (*completed)(struct app *app, unsigned slot, const struct app_wc *wc);
	// Whether all was done that had to be done, now that the peer ends it.
	bool (*may_end)(const struct app *app, unsigned slot);
};

#define X(id, name, port, size, count, help) extern const struct app_ops app_##id##_ops;
APPS(X)
#undef X

#define SLOT_ALIGN 64

static inline uint32_t app_align(uint32_t bytes)
{
	return (bytes + SLOT_ALIGN - 1) & ~(uint32_t)(SLOT_ALIGN - 1);
}

static inline uint32_t app_slot_offset(const struct app *app, unsigned slot)
{
	return slot * app_align(app->ops->slot_bytes(&app->cfg));
}

static inline uint8_t *app_mem(const struct app *app, unsigned slot, uint32_t offset)
{
	return app->mr.bytes + app_slot_offset(app, slot) + offset;
}

static inline uint64_t app_addr(const struct app *app, unsigned slot, uint32_t offset)
{
	return app->mr.addr + app_slot_offset(app, slot) + offset;
}

// Posts; a failure is the application's.
void app_post_recv(
	struct app *app, unsigned slot, uint64_t wr_id, uint32_t offset, uint32_t length);
// wr->local is an offset in the slot's memory.
void app_post_send(struct app *app, unsigned slot, struct app_wr wr);

void app_fail(struct app *app, enum app_status status, int detail);
// Something went wrong on this connection: it is ended.
void app_break(struct app *app, unsigned slot, enum app_status status, int detail);
// All is done on this connection, and we are the side to end it.
void app_finish(struct app *app, unsigned slot);

static inline void app_message(struct app *app, uint32_t bytes)
{
	app->counts.messages++;
	app->counts.bytes += bytes;
}

void app_mismatch(struct app *app);
