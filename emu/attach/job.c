/* SPDX-License-Identifier: BSD-3-Clause */
#include "emu/attach/job.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

unsigned endpoint_addresses(const struct sc_endpoint *ep, char text[2][ADDRESS_TEXT])
{
	char ip[INET6_ADDRSTRLEN];
	unsigned n = 0;

	if (ep->ip4 != 0) {
		struct in_addr a = {.s_addr = htonl(ep->ip4)};
		inet_ntop(AF_INET, &a, ip, sizeof(ip));
		snprintf(text[n++], ADDRESS_TEXT, "%s/%u", ip, ep->ip4_len);
	}
	if (ep->has_ip6) {
		inet_ntop(AF_INET6, ep->ip6, ip, sizeof(ip));
		snprintf(text[n++], ADDRESS_TEXT, "%s/%u", ip, ep->ip6_len);
	}
	return n;
}

void inner_name(
	const struct scenario *sc, const struct sc_host *h, unsigned port, char *name, size_t len)
{
	if (h->attach.kind == SC_ATTACH_GUEST)
		snprintf(name, len, "eth%u", port);
	else if (port == 0 && h->attach.ifname != NULL)
		snprintf(name, len, "%s", h->attach.ifname);
	else
		snprintf(name, len, "%s", sc->nodes[h->node].ports[port].name);
}

// A word of shell that stands for exactly `text`.
static void put_quoted(FILE *f, const char *text)
{
	fputs(" '", f);
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", f);
		else
			fputc(*text, f);
	}
	fputc('\'', f);
}

// Every endpoint of the fabric by its host's name; further ports as host-port.
static void put_peers(FILE *f, const struct scenario *sc)
{
	char text[2][ADDRESS_TEXT], name[128];

	for (uint32_t i = 0; i < sc->n_endpoints; i++) {
		const struct sc_endpoint *ep = &sc->endpoints[i];
		const struct sc_node *node = &sc->nodes[ep->node];
		unsigned n = endpoint_addresses(ep, text);

		if (ep->port == 0)
			snprintf(name, sizeof(name), "%s", node->name);
		else
			snprintf(name, sizeof(name), "%s-%s", node->name,
				node->ports[ep->port].name);
		for (unsigned a = 0; a < n; a++) {
			text[a][strcspn(text[a], "/")] = '\0';
			fprintf(f, "\tpeer");
			put_quoted(f, name);
			fprintf(f, " %s\n", text[a]);
		}
	}
}

static void put_port(
	FILE *f, const struct scenario *sc, const struct sc_host *h, unsigned port, bool rdma)
{
	const struct sc_port *p = &sc->nodes[h->node].ports[port];
	char text[2][ADDRESS_TEXT], name[32];
	unsigned n = endpoint_addresses(&sc->endpoints[p->endpoint], text);

	inner_name(sc, h, port, name, sizeof(name));
	fprintf(f, "\tport");
	put_quoted(f, name);
	fprintf(f, " %02x:%02x:%02x:%02x:%02x:%02x %" PRIu32, p->mac[0], p->mac[1], p->mac[2],
		p->mac[3], p->mac[4], p->mac[5], h->attach.mtu);
	for (unsigned a = 0; a < n; a++)
		fprintf(f, " %s", text[a]);
	fputc('\n', f);
	if (rdma) {
		fprintf(f, "\trdma_device rxe%u", port);
		put_quoted(f, name);
		fputc('\n', f);
	}
}

static void put_seconds(FILE *f, simtime_t t)
{
	fprintf(f, " %" PRId64 ".%03" PRId64, t / SIM_S, t % SIM_S / SIM_MS);
}

static void put_run(FILE *f, unsigned i, const struct sc_run *r)
{
	fprintf(f, "\trun %u %s", i, r->background ? "bg" : "fg");
	if (r->after > 0)
		put_seconds(f, r->after);
	else
		fputs(" 0", f);
	if (r->timeout > 0)
		put_seconds(f, r->timeout);
	else
		fputs(" 0", f);
	put_quoted(f, r->command);
	fputc('\n', f);
}

int job_write(const struct scenario *sc, const struct sc_host *h, const char *dir, bool rdma)
{
	const struct sc_node *node = &sc->nodes[h->node];
	const struct sc_attach *a = &h->attach;
	char path[512];

	snprintf(path, sizeof(path), "%s/%s.job", dir, node->name);
	FILE *f = fopen(path, "we");
	if (f == NULL)
		return -errno;
	fprintf(f, "setup() {\n\t%s", a->kind == SC_ATTACH_GUEST ? "guest" : "namespace");
	put_quoted(f, node->name);
	if (a->kind != SC_ATTACH_GUEST)
		put_quoted(f, dir);
	fputc('\n', f);
	put_peers(f, sc);
	for (unsigned port = 0; port < node->n_ports; port++)
		put_port(f, sc, h, port, rdma);
	for (uint32_t i = 0; i < a->n_env; i++) {
		fprintf(f, "\tvariable");
		put_quoted(f, a->env[i]);
		fputc('\n', f);
	}
	fprintf(f, "}\n\ncommands() {\n\t:\n");
	for (uint32_t i = 0; i < a->n_run; i++)
		put_run(f, i, &a->run[i]);
	fprintf(f, "}\n");
	bool bad = ferror(f) != 0;
	if (fclose(f) != 0 || bad)
		return -EIO;
	return 0;
}
