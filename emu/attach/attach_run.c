/* SPDX-License-Identifier: BSD-3-Clause */
// Guests and namespaces: starting their sessions, listening to them, ending them.

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rte_lcore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emu/attach/attach_priv.h"
#include "emu/attach/guest.h"
#include "emu/attach/job.h"
#include "emu/attach/netif.h"
#include "emu/attach/probe.h"

#define TERM_GRACE_MS 1000
#define STEP_MS       20

extern char **environ;

static void nap(int ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	nanosleep(&t, NULL);
}

// ---- starting -------------------------------------------------------------------------------

static int start_guest(
	struct attach_set *set, struct attached *a, struct session_spec *spec, FILE *err)
{
	struct guest_command c;
	int machine = guest_choose(set->ctx.sc, a->host, err);

	if (machine < 0)
		return machine;
	int e = job_write(set->ctx.sc, a->host, set->dir, true);
	if (e == 0)
		e = guest_command_build(
			&c, (enum guest_machine)machine, set->ctx.sc, a->host, set->dir);
	if (e < 0)
		return e;
	spec->argv = c.argv;
	spec->envp = c.envp;
	e = session_start(&a->session, spec, err);
	guest_command_free(&c);
	return e;
}

static int start_namespace(
	struct attach_set *set, struct attached *a, struct session_spec *spec, FILE *err)
{
	char shell[] = "/bin/sh", script[128], job[256];
	int e = job_write(set->ctx.sc, a->host, set->dir, probe_netns_rxe());

	if (e < 0)
		return e;
	snprintf(script, sizeof(script), "%s/session", set->dir);
	snprintf(job, sizeof(job), "%s/%s.job", set->dir, a->node->name);
	char *argv[] = {shell, script, job, NULL};
	spec->argv = argv;
	spec->envp = environ;
	spec->netns_fd = netns_open(attached_netns(a));
	if (spec->netns_fd < 0)
		return spec->netns_fd;
	e = session_start(&a->session, spec, err);
	close(spec->netns_fd);
	return e;
}

int attach_start_session(struct attach_set *set, struct attached *a, FILE *err)
{
	char log[512];
	struct session_spec spec = {
		.name = a->node->name,
		.log_path = log,
		.netns_fd = -1,
		.n_run = a->host->attach.n_run,
	};

	snprintf(log, sizeof(log), "%s/%s.console", set->ctx.run_dir, a->node->name);
	int e = a->host->attach.kind == SC_ATTACH_GUEST ? start_guest(set, a, &spec, err)
							: start_namespace(set, a, &spec, err);
	a->has_session = e == 0;
	return e;
}

// ---- listening ------------------------------------------------------------------------------

static void listen_once(struct attach_set *set, struct pollfd *p)
{
	unsigned n = 0;

	p[n++] = (struct pollfd){.fd = set->wake[0], .events = POLLIN};
	for (unsigned i = 0; i < set->n_hosts; i++)
		p[n++] = (struct pollfd){.fd = set->hosts[i].session.out, .events = POLLIN};
	if (poll(p, n, -1) < 0)
		return;
	pthread_mutex_lock(&set->lock);
	for (unsigned i = 0; i < set->n_hosts; i++) {
		struct session *s = &set->hosts[i].session;

		if (p[i + 1].revents != 0 && s->out >= 0 && !session_read(s)) {
			close(s->out);
			s->out = -1;
		}
	}
	pthread_mutex_unlock(&set->lock);
}

static void *monitor(void *arg)
{
	struct attach_set *set = arg;
	struct pollfd *p = calloc(set->n_hosts + 1, sizeof(*p));

	while (p != NULL) {
		listen_once(set, p);
		if (p[0].revents != 0)
			break;
	}
	free(p);
	return NULL;
}

int attach_start_monitor(struct attach_set *set)
{
	if (pipe2(set->wake, O_CLOEXEC) < 0)
		return -errno;
	// A control thread: off the lcores where possible.
	int e = rte_ctrl_thread_create(&set->monitor, "fabemu-consoles", NULL, monitor, set);
	set->monitored = e == 0;
	return e;
}

static bool any_open(struct attach_set *set, enum sc_attach_kind kind)
{
	bool open = false;

	pthread_mutex_lock(&set->lock);
	for (unsigned i = 0; i < set->n_hosts; i++)
		open |= set->hosts[i].has_session && set->hosts[i].host->attach.kind == kind &&
			set->hosts[i].session.out >= 0;
	pthread_mutex_unlock(&set->lock);
	return open;
}

static void terminate_namespaces(struct attach_set *set)
{
	for (unsigned i = 0; i < set->n_hosts; i++) {
		if (set->hosts[i].has_session && set->hosts[i].host->attach.kind == SC_ATTACH_NETNS)
			session_terminate(&set->hosts[i].session);
	}
	for (int ms = 0; ms < TERM_GRACE_MS && any_open(set, SC_ATTACH_NETNS); ms += STEP_MS)
		nap(STEP_MS);
}

void attach_stop_sessions(struct attach_set *set)
{
	// Programs in a namespace may have something to tidy up; a guest's disk is read-only.
	if (set->monitored)
		terminate_namespaces(set);
	if (set->monitored) {
		if (write(set->wake[1], "", 1) == 1)
			pthread_join(set->monitor, NULL);
		close(set->wake[0]);
		close(set->wake[1]);
		set->monitored = false;
	}
	for (unsigned i = 0; i < set->n_hosts; i++) {
		if (set->hosts[i].has_session)
			session_kill(&set->hosts[i].session);
		set->hosts[i].has_session = false;
	}
}

// ---- what the run asks --------------------------------------------------------------------------

static double seconds_since(const struct timespec *t)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - t->tv_sec) + (double)(now.tv_nsec - t->tv_nsec) * 1e-9;
}

static void say_console(const struct attach_set *set, const struct attached *a, FILE *err)
{
	char text[SESSION_TAIL];

	snprintf(text, sizeof(text), "%s", a->session.tail);
	fprintf(err, "  its console (%s/%s.console) ended with:\n", set->ctx.run_dir,
		a->node->name);
	char *save = NULL;
	for (char *l = strtok_r(text, "\n", &save); l != NULL; l = strtok_r(NULL, "\n", &save))
		fprintf(err, "  | %s\n", l);
}

// 0: all ready; 1: not yet; else -errno, said.
static int check_ready(struct attach_set *set, FILE *err)
{
	int e = 0;

	for (unsigned i = 0; i < set->n_hosts; i++) {
		struct attached *a = &set->hosts[i];
		double limit = (double)a->host->attach.ready_timeout / (double)SIM_S;

		if (!a->has_session || a->session.state == SESSION_READY)
			continue;
		if (a->session.state == SESSION_FAILED) {
			fprintf(err, "%s: not ready: %s\n", a->node->name, a->session.failure);
			say_console(set, a, err);
			return -ECHILD;
		}
		if (seconds_since(&a->session.started) > limit) {
			fprintf(err, "%s: not ready after %.0f s (ready_timeout)\n", a->node->name,
				limit);
			say_console(set, a, err);
			return -ETIMEDOUT;
		}
		e = 1;
	}
	return e;
}

int attach_wait_ready(struct attach_set *set, const volatile sig_atomic_t *stop, FILE *err)
{
	for (;;) {
		pthread_mutex_lock(&set->lock);
		int e = check_ready(set, err);
		pthread_mutex_unlock(&set->lock);
		if (e <= 0)
			return e;
		if (stop != NULL && *stop)
			return -EINTR;
		nap(STEP_MS);
	}
}

void attach_go(struct attach_set *set)
{
	pthread_mutex_lock(&set->lock);
	for (unsigned i = 0; i < set->n_hosts; i++) {
		if (set->hosts[i].has_session)
			session_say(&set->hosts[i].session, "go");
	}
	pthread_mutex_unlock(&set->lock);
}

static pthread_mutex_t *lock_of(const struct attach_set *set)
{
	return &((struct attach_set *)(uintptr_t)set)->lock;
}

enum attach_state attach_state(const struct attach_set *set)
{
	unsigned with_commands = 0, running = 0, failed = 0;

	pthread_mutex_lock(lock_of(set));
	for (unsigned i = 0; i < set->n_hosts; i++) {
		const struct attached *a = &set->hosts[i];

		if (!a->has_session)
			continue;
		with_commands += a->host->attach.n_run != 0;
		running += a->host->attach.n_run != 0 && a->session.state != SESSION_DONE;
		failed += a->session.state == SESSION_FAILED;
	}
	pthread_mutex_unlock(lock_of(set));
	if (failed != 0)
		return ATTACH_FAILED;
	if (with_commands == 0)
		return ATTACH_IDLE;
	return running != 0 ? ATTACH_RUNNING : ATTACH_DONE;
}

static const struct attached *find(const struct attach_set *set, uint32_t node)
{
	for (unsigned i = 0; i < set->n_hosts; i++) {
		if (set->hosts[i].host->node == node)
			return set->hosts[i].has_session ? &set->hosts[i] : NULL;
	}
	return NULL;
}

bool attach_run_status(const struct attach_set *set, uint32_t node, unsigned run, int *status)
{
	const struct attached *a = find(set, node);

	if (a == NULL || run >= a->host->attach.n_run)
		return false;
	pthread_mutex_lock(lock_of(set));
	*status = a->session.status[run];
	pthread_mutex_unlock(lock_of(set));
	return *status >= 0;
}

int attach_host_exit(const struct attach_set *set, uint32_t node)
{
	const struct attached *a = find(set, node);
	int result = 0;

	if (a == NULL)
		return -1;
	for (unsigned i = 0; i < a->host->attach.n_run; i++) {
		int status;

		if (!attach_run_status(set, node, i, &status)) {
			if (!a->host->attach.run[i].background)
				return -1;
		} else if (status != 0 && result == 0) {
			result = status;
		}
	}
	return result;
}

const char *attach_host_failure(const struct attach_set *set, uint32_t node)
{
	const struct attached *a = find(set, node);

	if (a == NULL)
		return NULL;
	pthread_mutex_lock(lock_of(set));
	bool failed = a->session.state == SESSION_FAILED;
	pthread_mutex_unlock(lock_of(set));
	return failed ? a->session.failure : NULL; // written once, before the state
}
