/* SPDX-License-Identifier: BSD-3-Clause */
// Routes. The data path reads two words: the endpoint's route word and a port. In a regular fabric
// thousands of endpoints share a handful of groups, so groups are stored once; set-up searches them
// linearly.

#include "models/ecmp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_PORTS  64
#define POSITION_MAX (UINT32_MAX >> 8)

int ecmp_init(struct ecmp *e, uint32_t n_endpoints, uint32_t seed)
{
	*e = (struct ecmp){.n_endpoints = n_endpoints, .cap_ports = FIRST_PORTS, .seed = seed};
	e->route = calloc(n_endpoints ? n_endpoints : 1, sizeof(*e->route));
	e->ports = calloc(e->cap_ports, sizeof(*e->ports));
	if (e->route == NULL || e->ports == NULL) {
		ecmp_fini(e);
		return -ENOMEM;
	}
	return 0;
}

void ecmp_fini(struct ecmp *e)
{
	free(e->route);
	free(e->ports);
	*e = (struct ecmp){0};
}

// Any place where the n ports stand one after another will do, whatever group put them there.
static uint32_t find(const struct ecmp *e, const uint16_t *ports, unsigned n)
{
	for (uint32_t at = 0; at + n <= e->n_ports; at++)
		if (memcmp(e->ports + at, ports, n * sizeof(*ports)) == 0)
			return at;
	return UINT32_MAX;
}

static int append(struct ecmp *e, const uint16_t *ports, unsigned n)
{
	if (e->n_ports + n > e->cap_ports) {
		uint32_t cap = 2 * e->cap_ports + n;
		uint16_t *bigger = realloc(e->ports, cap * sizeof(*bigger));
		if (bigger == NULL || cap > POSITION_MAX) {
			e->ports = bigger ? bigger : e->ports;
			return -ENOMEM;
		}
		e->ports = bigger;
		e->cap_ports = cap;
	}
	memcpy(e->ports + e->n_ports, ports, n * sizeof(*ports));
	e->n_ports += n;
	return 0;
}

int ecmp_set(struct ecmp *e, uint32_t endpoint, const uint16_t *ports, unsigned n)
{
	if (endpoint >= e->n_endpoints || n > ECMP_WIDTH_MAX)
		return -EINVAL;
	if (n == 0) {
		e->route[endpoint] = 0;
		return 0;
	}
	uint32_t at = find(e, ports, n);
	if (at == UINT32_MAX) {
		at = e->n_ports;
		if (append(e, ports, n) < 0)
			return -ENOMEM;
	}
	e->route[endpoint] = at << 8 | n;
	return 0;
}

unsigned ecmp_group(const struct ecmp *e, uint32_t endpoint, const uint16_t **ports)
{
	uint32_t r = endpoint < e->n_endpoints ? e->route[endpoint] : 0;

	*ports = e->ports + (r >> 8);
	return r & ECMP_WIDTH_MAX;
}
