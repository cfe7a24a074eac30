/* SPDX-License-Identifier: BSD-3-Clause */
#include "emu/attach/session.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MARK           "@fabemu@ "
#define FAILED_TO_EXEC 127

// ---- starting -------------------------------------------------------------------------------

// As fork(), without its handlers: what follows in the child is system calls only.
static pid_t raw_fork(unsigned long namespaces)
{
	return (pid_t)syscall(SYS_clone, namespaces | SIGCHLD, 0, 0, 0, 0);
}

// The EAL pins this process's threads to its lcores; what runs beside them may use every core.
static void use_all_cores(void)
{
	cpu_set_t all;

	memset(&all, 0xff, sizeof(all));
	sched_setaffinity(0, sizeof(all), &all);
}

// First process of the PID namespace: waits for the real one (`child`) and whatever is left to it.
static void act_as_init(pid_t child)
{
	int status = 0, st;
	pid_t pid;

	for (int fd = 0; fd < 3; fd++)
		close(fd);
	while ((pid = waitpid(-1, &st, 0)) > 0 || errno == EINTR) {
		if (pid == child) {
			status = st;
			break; // leaving ends the namespace and all that is left in it
		}
	}
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

// What `ip netns exec` does, so that /sys and /etc/hosts are the namespace's.
static void enter_netns(int fd)
{
	if (setns(fd, CLONE_NEWNET) < 0)
		_exit(FAILED_TO_EXEC);
	if (unshare(CLONE_NEWNS) == 0) {
		mount("", "/", "none", MS_SLAVE | MS_REC, NULL);
		umount2("/sys", MNT_DETACH);
		mount("sysfs", "/sys", "sysfs", 0, NULL);
	}
}

static void child(const struct session_spec *spec, int in, int out, pid_t parent, bool own_pids)
{
	sigset_t none;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	// In a PID namespace of our own the parent is outside and reads as 0.
	if (!own_pids && getppid() != parent)
		_exit(FAILED_TO_EXEC);
	use_all_cores();
	if (spec->netns_fd >= 0)
		enter_netns(spec->netns_fd);
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	syscall(SYS_close_range, 3u, ~0u, 0u);
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (own_pids) {
		pid_t pid = raw_fork(0);
		if (pid != 0)
			act_as_init(pid);
	}
	execve(spec->argv[0], spec->argv, spec->envp);
	_exit(FAILED_TO_EXEC);
}

int session_start(struct session *s, const struct session_spec *spec, FILE *err)
{
	int in[2] = {-1, -1}, out[2] = {-1, -1};
	pid_t self = getpid();

	*s = (struct session){.name = spec->name, .pid = -1, .in = -1, .out = -1, .log = -1};
	s->n_run = spec->n_run;
	s->status = malloc((spec->n_run + 1) * sizeof(*s->status));
	if (s->status == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < spec->n_run; i++)
		s->status[i] = -1;
	s->log = open(spec->log_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (s->log < 0 || pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0) {
		int e = errno;
		fprintf(err, "%s: cannot write the console log %s: %s\n", spec->name,
			spec->log_path, strerror(e));
		session_kill(s);
		return -e;
	}
	clock_gettime(CLOCK_MONOTONIC, &s->started);
	// A PID namespace needs privileges; without it the process group has to do.
	s->pid = raw_fork(CLONE_NEWPID);
	if (s->pid == 0)
		child(spec, in[0], out[1], self, true);
	if (s->pid < 0) {
		s->pid = raw_fork(0);
		if (s->pid == 0)
			child(spec, in[0], out[1], self, false);
	}
	int e = errno;
	close(in[0]);
	close(out[1]);
	s->in = in[1];
	s->out = out[0];
	if (s->pid < 0) {
		fprintf(err, "%s: cannot start a process: %s\n", spec->name, strerror(e));
		session_kill(s);
		return -e;
	}
	setpgid(s->pid, s->pid);
	fcntl(s->out, F_SETFL, O_NONBLOCK);
	fcntl(s->in, F_SETFL, O_NONBLOCK);
	return 0;
}

// ---- listening ------------------------------------------------------------------------------

static void fail(struct session *s, const char *why)
{
	if (s->state == SESSION_FAILED)
		return;
	snprintf(s->failure, sizeof(s->failure), "%s", why);
	s->state = SESSION_FAILED;
}

static void remember(struct session *s, const char *line)
{
	size_t have = strlen(s->tail), add = strlen(line) + 1;

	if (add >= sizeof(s->tail))
		return;
	while (have + add >= sizeof(s->tail)) {
		char *next = strchr(s->tail, '\n');
		size_t cut = next != NULL ? (size_t)(next - s->tail) + 1 : have;
		memmove(s->tail, s->tail + cut, have - cut + 1);
		have -= cut;
	}
	snprintf(s->tail + have, sizeof(s->tail) - have, "%s\n", line);
}

static void hear(struct session *s, const char *line)
{
	const char *said = strstr(line, MARK);
	unsigned run;
	int status;

	if (said == NULL) {
		if (line[0] != '\0')
			remember(s, line);
		return;
	}
	said += strlen(MARK);
	if (strcmp(said, "ready") == 0) {
		if (s->state == SESSION_BOOTING)
			s->state = SESSION_READY;
	} else if (sscanf(said, "exit %u %d", &run, &status) == 2) {
		if (run < s->n_run)
			s->status[run] = status;
	} else if (strcmp(said, "done") == 0) {
		if (s->state == SESSION_RUNNING)
			s->state = SESSION_DONE;
	} else if (strncmp(said, "failed ", 7) == 0) {
		fail(s, said + 7);
	}
}

bool session_read(struct session *s)
{
	char buf[4096];
	ssize_t got = read(s->out, buf, sizeof(buf));

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (got <= 0) {
		if (s->state != SESSION_DONE)
			fail(s, "ended by itself before its commands did");
		return false;
	}
	if (write(s->log, buf, (size_t)got) != got) {
		// A full disk loses the log, not the run.
	}
	for (ssize_t i = 0; i < got; i++) {
		char c = buf[i];
		if (c == '\n' || s->line_len == sizeof(s->line) - 1) {
			s->line[s->line_len] = '\0';
			hear(s, s->line);
			s->line_len = 0;
		}
		if (c != '\n' && c != '\r' && c != '\0')
			s->line[s->line_len++] = c;
	}
	return true;
}

void session_say(struct session *s, const char *word)
{
	char line[32];
	int len = snprintf(line, sizeof(line), "%s\n", word);

	if (s->in < 0)
		return;
	if (strcmp(word, "go") == 0 && s->state == SESSION_READY)
		s->state = SESSION_RUNNING;
	if (write(s->in, line, (size_t)len) < 0 && errno != EAGAIN) {
		close(s->in);
		s->in = -1;
	}
}

// ---- ending ---------------------------------------------------------------------------------

void session_terminate(struct session *s)
{
	if (s->pid > 0)
		kill(-s->pid, SIGTERM);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void session_kill(struct session *s)
{
	if (s->pid > 0) {
		kill(-s->pid, SIGKILL);
		kill(s->pid, SIGKILL);
		while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
			;
		s->pid = -1;
	}
	close_fd(&s->in);
	close_fd(&s->out);
	close_fd(&s->log);
	free(s->status);
	s->status = NULL;
	s->n_run = 0;
}
