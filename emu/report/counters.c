/* SPDX-License-Identifier: BSD-3-Clause */

#include "emu/report/counters.h"

#include <stdio.h>
#include <string.h>

#include "pipelines/edge.h"
#include "pipelines/nic.h"

// Where a counter's value is: at `offset` in struct port_counters, and for priority p `stride` * p
// further on; summed over the priorities if `sum`.
struct counter {
	const char *name;
	size_t offset;
	size_t stride;
	bool sum;
};

#define TRAFFIC(field) (offsetof(struct port_counters, prio) + offsetof(struct port_traffic, field))

static const struct counter plain[] = {
#define X(name, field, help) {name, TRAFFIC(field), sizeof(struct port_traffic), true},
	PORT_SUM_COUNTERS(X)
#undef X
#define X(name, field, help) {name, offsetof(struct port_counters, field), 0, false},
		PORT_COUNTERS(X)
#undef X
};

static const struct counter per_prio[] = {
#define X(name, field, help) {name, TRAFFIC(field), sizeof(struct port_traffic), false},
	PORT_TRAFFIC_COUNTERS(X)
#undef X
#define X(name, field, help) {name, offsetof(struct port_counters, field), sizeof(uint64_t), false},
		PORT_PRIO_COUNTERS(X)
#undef X
};

#define N_PLAIN    (sizeof(plain) / sizeof(plain[0]))
#define N_PER_PRIO (sizeof(per_prio) / sizeof(per_prio[0]))
#define FIRST_DROP (N_PLAIN + N_PER_PRIO * PRIO_COUNT)
#define DROPS_SUM  (FIRST_DROP + DROP_REASON_COUNT)

unsigned port_counter_count(void)
{
	return DROPS_SUM + 1;
}

char *port_counter_name(unsigned id, char *buf)
{
	if (id < N_PLAIN) {
		snprintf(buf, COUNTER_NAME_MAX, "%s", plain[id].name);
	} else if (id < FIRST_DROP) {
		unsigned k = id - N_PLAIN;
		const char *name = per_prio[k / PRIO_COUNT].name;
		const char *gap = strstr(name, "%u");
		snprintf(buf, COUNTER_NAME_MAX, "%.*s%u%s", (int)(gap - name), name, k % PRIO_COUNT,
			gap + 2);
	} else if (id < DROPS_SUM) {
		snprintf(buf, COUNTER_NAME_MAX, "drop_%s", drop_reason_name(id - FIRST_DROP));
	} else {
		snprintf(buf, COUNTER_NAME_MAX, "drops");
	}
	return buf;
}

// All fields are 64 bits wide; durations are never negative.
static uint64_t value(const struct port_counters *c, const struct counter *k, unsigned prio)
{
	uint64_t v;

	memcpy(&v, (const char *)c + k->offset + prio * k->stride, sizeof(v));
	return v;
}

uint64_t port_counter_value(const struct port_counters *c, unsigned id)
{
	uint64_t sum = 0;

	if (id < N_PLAIN) {
		for (unsigned p = 0; p < (plain[id].sum ? PRIO_COUNT : 1u); p++)
			sum += value(c, &plain[id], p);
		return sum;
	}
	if (id < FIRST_DROP) {
		unsigned k = id - N_PLAIN;
		return value(c, &per_prio[k / PRIO_COUNT], k % PRIO_COUNT);
	}
	if (id < DROPS_SUM)
		return c->drops[id - FIRST_DROP];
	for (unsigned i = 0; i < DROP_REASON_COUNT; i++)
		sum += c->drops[i];
	return sum;
}

bool port_counter_is_time(unsigned id)
{
	if (id < N_PLAIN || id >= FIRST_DROP)
		return false;
	size_t offset = per_prio[(id - N_PLAIN) / PRIO_COUNT].offset;
	return offset == offsetof(struct port_counters, rx_pauses.duration) ||
	       offset == offsetof(struct port_counters, tx_pauses.duration);
}

// ---- devices ------------------------------------------------------------------------------------

#define X(name, help) #name,
static const char *const nic_names[] = {NIC_COUNTERS(X)};
static const char *const edge_names[] = {EDGE_COUNTERS(X)};
#undef X
#define X(name, help) help,
static const char *const nic_helps[] = {NIC_COUNTERS(X)};
static const char *const edge_helps[] = {EDGE_COUNTERS(X)};
#undef X

static_assert(sizeof(struct nic_counters) == sizeof(nic_names) / sizeof(char *) * sizeof(uint64_t),
	"an array of counters");
static_assert(
	sizeof(struct edge_counters) == sizeof(edge_names) / sizeof(char *) * sizeof(uint64_t),
	"an array of counters");

static const struct {
	const char *const *names;
	const char *const *helps;
	unsigned n;
} devices[DEVICE_KIND_COUNT] = {
	[DEVICE_NIC] = {nic_names, nic_helps, sizeof(nic_names) / sizeof(nic_names[0])},
	[DEVICE_EDGE] = {edge_names, edge_helps, sizeof(edge_names) / sizeof(edge_names[0])},
};

unsigned device_counter_count(enum device_kind kind)
{
	return devices[kind].n;
}

const char *device_counter_name(enum device_kind kind, unsigned id)
{
	return devices[kind].names[id];
}

const char *device_counter_help(enum device_kind kind, unsigned id)
{
	return devices[kind].helps[id];
}
