/* SPDX-License-Identifier: BSD-3-Clause */
// Address -> endpoint: open addressing with linear probing at a load of at most one half, over
// 16-byte keys (an IPv4 address is its IPv4-mapped IPv6 form). The hash is a fixed 64-bit mix:
// addresses come from the scenario, so there is nobody to defend it against.

#include "pipelines/endpoint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "emu/core/rng.h"

#define SLOTS_MIN 16

int endpoint_table_init(struct endpoint_table *t, uint32_t n_endpoints, uint32_t n_addrs)
{
	uint32_t slots = SLOTS_MIN;

	while (slots < 2 * n_addrs)
		slots *= 2;
	*t = (struct endpoint_table){.cap = n_endpoints, .mask = slots - 1};
	t->ep = calloc(n_endpoints ? n_endpoints : 1, sizeof(*t->ep));
	t->slot = calloc(slots, sizeof(*t->slot));
	if (t->ep == NULL || t->slot == NULL) {
		endpoint_table_fini(t);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < slots; i++)
		t->slot[i].index = ENDPOINT_NONE;
	return 0;
}

void endpoint_table_fini(struct endpoint_table *t)
{
	free(t->ep);
	free(t->slot);
	*t = (struct endpoint_table){0};
}

int64_t endpoint_add(
	struct endpoint_table *t, struct node *node, uint16_t port, const uint8_t mac[6])
{
	if (t->n == t->cap)
		return -ENOSPC;
	struct endpoint *e = &t->ep[t->n];
	e->node = node;
	e->port = port;
	memcpy(e->mac, mac, sizeof(e->mac));
	return t->n++;
}

// The slot that holds the address, or the free one where it would go.
static struct endpoint_slot *probe(const struct endpoint_table *t, const uint8_t addr[16])
{
	uint64_t hi, lo;

	memcpy(&hi, addr, sizeof(hi));
	memcpy(&lo, addr + 8, sizeof(lo));
	uint32_t i = (uint32_t)mix64(lo + hi * UINT64_C(0x9e3779b97f4a7c15)) & t->mask;
	while (t->slot[i].index != ENDPOINT_NONE && memcmp(t->slot[i].addr, addr, 16) != 0)
		i = (i + 1) & t->mask;
	return &t->slot[i];
}

static void map_ipv4(uint8_t out[16], const uint8_t addr[4])
{
	memset(out, 0, 10);
	out[10] = out[11] = 0xff;
	memcpy(out + 12, addr, 4);
}

static int add_address(struct endpoint_table *t, uint32_t index, const uint8_t addr[16])
{
	if (index >= t->n)
		return -EINVAL;
	if (t->n_addrs > t->mask / 2)
		return -ENOSPC;
	struct endpoint_slot *s = probe(t, addr);
	if (s->index != ENDPOINT_NONE)
		return -EEXIST;
	memcpy(s->addr, addr, 16);
	s->index = index;
	t->n_addrs++;
	return 0;
}

int endpoint_add_ipv4(struct endpoint_table *t, uint32_t index, uint32_t ipv4)
{
	uint8_t wire[4] = {
		(uint8_t)(ipv4 >> 24), (uint8_t)(ipv4 >> 16), (uint8_t)(ipv4 >> 8), (uint8_t)ipv4};
	uint8_t addr[16];

	map_ipv4(addr, wire);
	int rc = add_address(t, index, addr);
	if (rc == 0 && t->ep[index].ipv4 == 0)
		t->ep[index].ipv4 = ipv4;
	return rc;
}

int endpoint_add_ipv6(struct endpoint_table *t, uint32_t index, const uint8_t ipv6[16])
{
	return add_address(t, index, ipv6);
}

uint32_t endpoint_find_ipv4(const struct endpoint_table *t, const uint8_t addr[4])
{
	uint8_t mapped[16];

	map_ipv4(mapped, addr);
	return probe(t, mapped)->index;
}

uint32_t endpoint_find_ipv6(const struct endpoint_table *t, const uint8_t addr[16])
{
	return probe(t, addr)->index;
}
