/* SPDX-License-Identifier: BSD-3-Clause */

// Builds the document of emu/report/README.md. Every key is always present, so that a reader need
// not test for it; what did not happen is null. A failed allocation inside jansson leaves NULL,
// which its *_new functions refuse, so it surfaces as a failed write and not as a missing key.

#include "emu/report/summary.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "emu/report/summary_parts.h"

static json_t *scenario_json(const struct run_results *r)
{
	return json_pack("{s:o, s:o, s:o, s:I, s:s, s:f}", "name", summary_text(r->scenario),
		"file", summary_text(r->file), "description", summary_text(r->description), "seed",
		(json_int_t)r->seed, "clock", r->wall_clock ? "wall" : "virtual", "time_scale",
		r->time_scale);
}

static json_t *frames_json(const struct run_results *r)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I}", "created", (json_int_t)r->frames.created,
		"delivered", (json_int_t)r->frames.delivered, "consumed",
		(json_int_t)r->frames.consumed, "dropped", (json_int_t)r->frames.dropped, "inside",
		(json_int_t)r->frames.inside);
}

static json_t *drops_json(const struct run_results *r)
{
	json_t *o = json_object();
	uint64_t total = 0;

	for (unsigned i = 0; i < DROP_REASON_COUNT; i++) {
		json_object_set_new(o, drop_reason_name(i), json_integer((json_int_t)r->drops[i]));
		total += r->drops[i];
	}
	json_object_set_new(o, "total", json_integer((json_int_t)total));
	return o;
}

static json_t *invariants_json(const struct run_results *r)
{
	json_t *a = json_array();

	for (unsigned i = 0; i < r->n_invariants; i++) {
		const struct run_invariant *v = &r->invariants[i];
		json_array_append_new(a, json_pack("{s:s, s:b, s:o}", "name", v->name, "ok", v->ok,
						 "text", summary_text(v->text)));
	}
	return a;
}

static json_t *lag_json(const struct run_results *r)
{
	json_t *lcores = json_array();

	for (unsigned i = 0; i < r->n_lag; i++) {
		const struct run_lag *l = &r->lag[i];
		json_array_append_new(lcores,
			json_pack("{s:i, s:I, s:I, s:I, s:I}", "lcore", (int)l->lcore, "p50_ps",
				(json_int_t)l->p50, "p99_ps", (json_int_t)l->p99, "max_ps",
				(json_int_t)l->max, "samples", (json_int_t)l->samples));
	}
	return json_pack("{s:o, s:o}", "bound_ps", summary_time(r->lag_bound), "lcores", lcores);
}

static json_t *expectations_json(const struct run_results *r)
{
	json_t *a = json_array();

	for (unsigned i = 0; i < r->n_expectations; i++) {
		const struct run_expectation *e = &r->expectations[i];
		json_array_append_new(
			a, json_pack("{s:b, s:i, s:s, s:s, s:s}", "ok", e->ok, "line", e->line,
				   "what", e->what, "expected", e->expected, "got", e->got));
	}
	return a;
}

static json_t *guests_json(const struct run_results *r)
{
	json_t *a = json_array();

	for (unsigned i = 0; i < r->n_guests; i++) {
		const struct run_guest *g = &r->guests[i];
		json_array_append_new(
			a, json_pack("{s:s, s:o, s:o, s:o, s:o}", "host", g->name, "command",
				   summary_text(g->command), "exit_status",
				   g->exit_status < 0 ? json_null() : json_integer(g->exit_status),
				   "signal", g->signal == 0 ? json_null() : json_integer(g->signal),
				   "log", summary_text(g->log)));
	}
	return a;
}

static json_t *faults_json(const struct run_results *r)
{
	json_t *a = json_array();

	for (unsigned i = 0; i < r->n_faults; i++) {
		const struct run_fault *f = &r->faults[i];
		json_array_append_new(
			a, json_pack("{s:s, s:s, s:i, s:I, s:I, s:I}", "rule", f->name, "action",
				   f->action, "lanes", (int)f->lanes, "matched",
				   (json_int_t)f->matched, "applied", (json_int_t)f->applied,
				   "unknown", (json_int_t)f->unknown));
	}
	return a;
}

static json_t *app_time(simtime_t t)
{
	return t == SIMTIME_NEVER ? json_null() : json_integer((json_int_t)t);
}

static json_t *app_json(const struct run_app *a)
{
	json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s}", "name", a->name, "host", a->host, "type",
		a->type, "status", a->status, "detail", a->detail);

	json_object_set_new(o, "connections", json_integer((json_int_t)a->connections));
	json_object_set_new(o, "messages", json_integer((json_int_t)a->messages));
	json_object_set_new(o, "bytes", json_integer((json_int_t)a->bytes));
	json_object_set_new(o, "mismatches", json_integer((json_int_t)a->mismatches));
	json_object_set_new(o, "start_ps", app_time(a->started));
	json_object_set_new(o, "end_ps", app_time(a->ended));
	json_object_set_new(o, "ack_timeout", json_integer(a->ack_timeout));
	json_object_set_new(o, "retransmitted", json_integer((json_int_t)a->retransmitted));
	json_object_set_new(o, "timeouts", json_integer((json_int_t)a->timeouts));
	json_object_set_new(o, "naks", json_integer((json_int_t)a->naks));
	return o;
}

static json_t *apps_json(const struct run_results *r)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < r->n_apps; i++)
		json_array_append_new(list, app_json(&r->apps[i]));
	return list;
}

static json_t *captures_json(const struct run_results *r)
{
	json_t *a = json_array();

	for (unsigned i = 0; i < r->n_captures; i++) {
		const struct run_capture *c = &r->captures[i];
		json_array_append_new(
			a, json_pack("{s:o, s:o, s:I, s:I, s:I, s:o}", "name",
				   summary_text(c->name), "file", summary_text(c->file), "frames",
				   (json_int_t)c->frames, "bytes", (json_int_t)c->bytes, "lost",
				   (json_int_t)c->lost, "error", summary_text(c->error)));
	}
	return a;
}

static json_t *host_json(const struct run_results *r)
{
	const struct run_host *h = &r->host;

	return json_pack("{s:s?, s:s?, s:s?, s:i, s:b, s:I}", "cpu", h->cpu, "kernel", h->kernel,
		"dpdk", h->dpdk, "lcores", (int)h->lcores, "hugepages", h->hugepages,
		"peak_rss_bytes", (json_int_t)h->peak_rss_bytes);
}

static void add_run(json_t *o, const struct run_results *r)
{
	enum run_verdict v = run_verdict(r);
	char digest[24];

	snprintf(digest, sizeof(digest), "0x%016lx", (unsigned long)r->digest);
	json_object_set_new(o, "schema", json_string(SUMMARY_SCHEMA));
	json_object_set_new(o, "schema_version", json_integer(SUMMARY_SCHEMA_VERSION));
	json_object_set_new(o, "fabemu_version", json_string(r->version));
	json_object_set_new(o, "verdict", json_string(run_verdict_name(v)));
	json_object_set_new(o, "exit_status", json_integer(run_exit_status(r)));
	json_object_set_new(o, "failure", summary_text(r->failure));
	json_object_set_new(o, "interrupted", summary_text(r->interrupted));
	json_object_set_new(o, "scenario", scenario_json(r));
	json_object_set_new(o, "digest", json_string(digest));
	json_object_set_new(o, "emulated_ps", summary_time(r->emulated));
	json_object_set_new(o, "duration_ps", summary_time(r->duration));
	json_object_set_new(o, "wall_seconds", json_real(r->wall_seconds));
	json_object_set_new(o, "setup_seconds", json_real(r->setup_seconds));
	json_object_set_new(o, "events", json_integer((json_int_t)r->events));
	json_object_set_new(o, "data_hops", json_integer((json_int_t)r->data_hops));
}

// Every section of the document, or NULL.
static json_t *summary_json(const struct run_results *r)
{
	json_t *o = json_object();
	int bad = 0;

	add_run(o, r);
	bad |= json_object_set_new(o, "frames", frames_json(r));
	bad |= json_object_set_new(o, "drops", drops_json(r));
	bad |= json_object_set_new(o, "pool_empty", json_integer((json_int_t)r->pool_empty));
	bad |= json_object_set_new(o, "deadlock", summary_deadlock(r));
	bad |= json_object_set_new(o, "flows", summary_flows(r));
	bad |= json_object_set_new(o, "ports", summary_ports(r));
	bad |= json_object_set_new(o, "priority_groups", summary_pgs(r));
	bad |= json_object_set_new(o, "queues", summary_queues(r));
	bad |= json_object_set_new(o, "pfc_watchdog", summary_watchdogs(r));
	bad |= json_object_set_new(o, "event_log", summary_events(r));
	bad |= json_object_set_new(o, "expectations", expectations_json(r));
	bad |= json_object_set_new(o, "invariants", invariants_json(r));
	bad |= json_object_set_new(o, "lag", lag_json(r));
	bad |= json_object_set_new(o, "apps", apps_json(r));
	bad |= json_object_set_new(o, "faults", faults_json(r));
	bad |= json_object_set_new(o, "guests", guests_json(r));
	bad |= json_object_set_new(o, "captures", captures_json(r));
	bad |= json_object_set_new(o, "host", host_json(r));
	if (bad) {
		json_decref(o);
		return NULL;
	}
	return o;
}

#define DUMP_FLAGS (JSON_INDENT(1) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(15))

int summary_print(const struct run_results *r, FILE *out)
{
	json_t *o = summary_json(r);
	int err = 0;

	if (o == NULL)
		return -ENOMEM;
	errno = 0;
	if (json_dumpf(o, out, DUMP_FLAGS) != 0 || fputc('\n', out) == EOF || fflush(out) != 0)
		err = errno != 0 ? -errno : -EIO;
	json_decref(o);
	return err;
}

static int write_file(const struct run_results *r, const char *path)
{
	FILE *f = fopen(path, "we");

	if (f == NULL)
		return -errno;
	int err = summary_print(r, f);
	if (err == 0 && fsync(fileno(f)) != 0 && errno != EINVAL && errno != EROFS)
		err = -errno;
	if (fclose(f) != 0 && err == 0)
		err = -errno;
	if (err < 0)
		unlink(path);
	return err;
}

int summary_write(const struct run_results *r, const char *dir, char *err, size_t len)
{
	char path[PATH_MAX], tmp[PATH_MAX];
	int ret = -ENAMETOOLONG;

	if (snprintf(path, sizeof(path), "%s/summary.json", dir) < (int)sizeof(path) &&
		snprintf(tmp, sizeof(tmp), "%s/.summary.json.tmp", dir) < (int)sizeof(tmp))
		ret = write_file(r, tmp);
	if (ret == 0 && rename(tmp, path) != 0) {
		ret = -errno;
		unlink(tmp);
	}
	if (ret < 0)
		snprintf(err, len, "%s/summary.json: cannot write the results: %s", dir,
			strerror(-ret));
	return ret;
}
