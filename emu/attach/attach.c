/* SPDX-License-Identifier: BSD-3-Clause */
#include "emu/attach/attach.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emu/attach/attach_priv.h"
#include "emu/attach/job.h"
#include "emu/attach/netif.h"

// A received frame: Ethernet with two tags, and what AF_PACKET's rounding adds.
#define FRAME_EXTRA 1024

static bool wants_session(const struct sc_host *h)
{
	return h->attach.kind == SC_ATTACH_GUEST || h->attach.kind == SC_ATTACH_NETNS;
}

uint32_t attach_data_room(const struct scenario *sc)
{
	uint32_t room = 0;

	for (uint32_t i = 0; i < sc->n_hosts; i++) {
		if (sc->hosts[i].kind == SC_HOST_ATTACH)
			room = RTE_MAX(
				room, RTE_PKTMBUF_HEADROOM + sc->hosts[i].attach.mtu + FRAME_EXTRA);
	}
	return room;
}

// ---- ports by kind --------------------------------------------------------------------------

static int open_vhost(const struct attach_set *set, const struct attached *a, unsigned i,
	struct port *port, FILE *err)
{
	const char *path = a->host->attach.path;
	char text[512];

	if (a->host->attach.kind == SC_ATTACH_GUEST)
		snprintf(text, sizeof(text), "%s/%s.%u.sock", set->dir, a->node->name, i);
	else if (path != NULL && i == 0)
		snprintf(text, sizeof(text), "%s", path);
	else if (path != NULL)
		snprintf(text, sizeof(text), "%s.%u", path, i);
	else if (i == 0)
		snprintf(text, sizeof(text), "%s/%s.sock", set->ctx.run_dir, a->node->name);
	else
		snprintf(text, sizeof(text), "%s/%s.%u.sock", set->ctx.run_dir, a->node->name, i);
	return port_vhost_open(port, text, set->ctx.pool, err);
}

static int open_tap(const struct attach_set *set, const struct attached *a, unsigned i,
	struct port *port, FILE *err)
{
	const struct sc_port *p = &a->node->ports[i];
	char text[2][ADDRESS_TEXT], name[16];
	const char *addresses[2] = {text[0], text[1]};
	unsigned n = endpoint_addresses(&set->ctx.sc->endpoints[p->endpoint], text);

	if (a->host->attach.ifname != NULL && i == 0)
		snprintf(name, sizeof(name), "%s", a->host->attach.ifname);
	else
		snprintf(name, sizeof(name), "fab%u.%u", a->host->node, i);
	struct tap_config cfg = {.ifname = name,
		.mac = p->mac,
		.mtu = a->host->attach.mtu,
		.addresses = addresses,
		.n_addresses = n};
	return port_tap_open(port, &cfg, set->ctx.pool, err);
}

static int open_netns(
	const struct attach_set *set, struct attached *a, unsigned i, struct port *port, FILE *err)
{
	char host_if[IF_NAME_BYTES], inner[32];
	const char *name = attached_netns(a);

	if (!a->netns_made) {
		int e = netns_create(name, err);
		if (e < 0)
			return e;
		a->netns_made = true;
	}
	snprintf(
		host_if, sizeof(host_if), "f%d.%u.%u", (int)getpid(), a->host->node % 1000, i % 10);
	inner_name(set->ctx.sc, a->host, i, inner, sizeof(inner));
	int e = netns_add_veth(
		name, host_if, inner, a->node->ports[i].mac, a->host->attach.mtu, err);
	if (e < 0)
		return e;
	return port_netdev_open(port, host_if, a->host->attach.mtu, false, set->ctx.pool, err);
}

static int open_netdev(const struct attach_set *set, const struct attached *a, unsigned i,
	struct port *port, FILE *err)
{
	const char *ifname = a->host->attach.ifname;

	if (ifname == NULL || a->node->n_ports > 1) {
		fprintf(err, "%s: a netdev host has one port, with its interface in `ifname`\n",
			a->node->name);
		return -EINVAL;
	}
	return port_netdev_open(port, ifname, a->host->attach.mtu, true, set->ctx.pool, err);
}

static int open_dpdk(const struct attach_set *set, const struct attached *a, unsigned i,
	struct port *port, FILE *err)
{
	const char *devargs = a->host->attach.devargs;

	if (devargs == NULL || a->node->n_ports > 1) {
		fprintf(err, "%s: a dpdk host has one port, with its device in `devargs`\n",
			a->node->name);
		return -EINVAL;
	}
	return port_dpdk_open(port, devargs, a->host->attach.mtu, set->ctx.pool, err);
}

static int open_port(
	struct attach_set *set, struct attached *a, unsigned i, struct port *port, FILE *err)
{
	switch (a->host->attach.kind) {
	case SC_ATTACH_VHOST_USER:
	case SC_ATTACH_GUEST:
		return open_vhost(set, a, i, port, err);
	case SC_ATTACH_TAP:
		return open_tap(set, a, i, port, err);
	case SC_ATTACH_NETDEV:
		return open_netdev(set, a, i, port, err);
	case SC_ATTACH_NETNS:
		return open_netns(set, a, i, port, err);
	case SC_ATTACH_DPDK:
		return open_dpdk(set, a, i, port, err);
	}
	return -EINVAL;
}

static int open_host(struct attach_set *set, struct attached *a, FILE *err)
{
	a->ports = calloc(a->node->n_ports, sizeof(*a->ports));
	if (a->ports == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < a->node->n_ports; i++) {
		int e = open_port(set, a, i, &a->ports[i], err);
		if (e < 0)
			return e;
		a->n_open++;
	}
	return wants_session(a->host) ? attach_start_session(set, a, err) : 0;
}

// ---- the set --------------------------------------------------------------------------------

static int open_all(struct attach_set *set, FILE *err)
{
	bool sessions = false;
	int e = 0;

	for (unsigned i = 0; i < set->n_hosts; i++)
		sessions |= wants_session(set->hosts[i].host);
	if (sessions)
		e = attach_make_dir(set, err);
	for (unsigned i = 0; e == 0 && i < set->n_hosts; i++)
		e = open_host(set, &set->hosts[i], err);
	if (e == 0 && sessions)
		e = attach_start_monitor(set);
	return e;
}

int attach_open(const struct attach_context *ctx, struct attach_set **out, FILE *err)
{
	const struct scenario *sc = ctx->sc;
	struct attach_set *set = calloc(1, sizeof(*set));

	if (set == NULL)
		return -ENOMEM;
	set->ctx = *ctx;
	pthread_mutex_init(&set->lock, NULL);
	set->hosts = calloc(sc->n_hosts + 1, sizeof(*set->hosts));
	if (set->hosts == NULL) {
		free(set);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < sc->n_hosts; i++) {
		if (sc->hosts[i].kind != SC_HOST_ATTACH)
			continue;
		set->hosts[set->n_hosts++] = (struct attached){
			.host = &sc->hosts[i],
			.node = &sc->nodes[sc->hosts[i].node],
			.session = {.pid = -1, .in = -1, .out = -1, .log = -1},
		};
	}
	signal(SIGPIPE, SIG_IGN); // a guest that dies while we talk to it is not our end
	int e = open_all(set, err);
	if (e < 0) {
		attach_close(set);
		return e;
	}
	*out = set;
	return 0;
}

const struct edge_ops *attach_port(
	const struct attach_set *set, uint32_t node, unsigned port, void **arg)
{
	for (unsigned i = 0; i < set->n_hosts; i++) {
		const struct attached *a = &set->hosts[i];

		if (a->host->node == node && port < a->n_open) {
			*arg = a->ports[port].arg;
			return a->ports[port].ops;
		}
	}
	return NULL;
}

void attach_close(struct attach_set *set)
{
	if (set == NULL)
		return;
	attach_stop_sessions(set);
	for (unsigned i = 0; i < set->n_hosts; i++) {
		struct attached *a = &set->hosts[i];

		for (unsigned k = 0; k < a->n_open; k++)
			a->ports[k].close(a->ports[k].arg);
		if (a->netns_made)
			netns_remove(attached_netns(a)); // its veth pairs go with it
		free(a->ports);
	}
	attach_remove_dir(set);
	pthread_mutex_destroy(&set->lock);
	free(set->hosts);
	free(set);
}
