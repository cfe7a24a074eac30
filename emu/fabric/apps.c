/* SPDX-License-Identifier: BSD-3-Clause */
// The scenario's applications: put into their NICs, and what came of them.

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "emu/fabric/internal.h"
#include "pcap/mad.h"
#include "pipelines/nic_apps.h"

static void server_gid(const struct scenario *s, const struct sc_app *a, uint8_t gid[GID_BYTES])
{
	const struct sc_endpoint *e = &s->endpoints[a->peer];

	if (a->ipv6)
		memcpy(gid, e->ip6, GID_BYTES);
	else
		gid_from_ipv4(gid, e->ip4);
}

int apps_create(struct fabric *f)
{
	const struct scenario *s = f->s;

	f->app_index = calloc(s->n_apps + 1, sizeof(*f->app_index));
	if (f->app_index == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n_apps; i++) {
		const struct sc_app *a = &s->apps[i];
		struct nic_app_config cfg = {
			.kind = (enum app_kind)a->kind,
			.port = a->iface,
			.start = a->start,
			.ipv6 = a->ipv6,
			.dscp = a->dscp,
			.tc = a->priority,
			.mtu = a->mtu,
			.rdma_cm_timeout = a->cm_timeout,
		};
		app_config_default(cfg.kind, &cfg.app);
		cfg.app.port = a->port;
		cfg.app.size = a->size;
		cfg.app.count = a->count;
		cfg.app.connections = a->connections;
		if (a->peer != SC_NONE)
			server_gid(s, a, cfg.app.server_gid);
		int rc = nic_add_app(f->nodes[a->node], &cfg);
		if (rc < 0) {
			fprintf(f->opt.err, "%s:%u:%u: %s: cannot be made: %s\n", s->path,
				a->pos.line, a->pos.col, a->name, strerror(-rc));
			return rc;
		}
		f->app_index[i] = (unsigned)rc;
	}
	return 0;
}

// What `detail` of a result says, for people.
static const char *detail_text(enum app_kind kind, const struct nic_app_result *x)
{
	bool rejected = x->status == APP_ST_REFUSED && app_transport(kind) != CM_UD;

	if (rejected)
		return cm_rej_text((uint16_t)x->detail);
	switch (x->status) {
	case APP_ST_COMPLETION:
		return wc_status_name((enum wc_status)x->detail);
	case APP_ST_LOCAL:
		return strerror(-x->detail);
	default:
		return app_status_help(x->status);
	}
}

int collect_apps(struct fabric *f, struct run_app **store, struct run_results *r)
{
	const struct scenario *s = f->s;

	*store = calloc(s->n_apps + 1, sizeof(**store));
	if (*store == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n_apps; i++) {
		const struct sc_app *a = &s->apps[i];
		struct nic_app_result x;
		int rc = nic_app_result(f->nodes[a->node], f->app_index[i], &x);
		if (rc < 0)
			return rc;
		(*store)[i] = (struct run_app){
			.name = a->name,
			.host = s->nodes[a->node].name,
			.type = app_name((enum app_kind)a->kind),
			.status = app_status_name(x.status),
			.detail = detail_text((enum app_kind)a->kind, &x),
			.done = x.status == APP_ST_DONE,
			.failed = x.status != APP_ST_DONE && x.status != APP_ST_RUNNING,
			.connections = x.counts.connections,
			.messages = x.counts.messages,
			.bytes = x.counts.bytes,
			.mismatches = x.counts.mismatches,
			.started = x.started,
			.ended = x.ended,
			.ack_timeout = x.ack_timeout,
			.retransmitted = x.retransmitted,
			.timeouts = x.timeouts,
			.naks = x.naks,
		};
	}
	r->apps = *store;
	r->n_apps = s->n_apps;
	return 0;
}
