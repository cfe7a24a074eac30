/* SPDX-License-Identifier: BSD-3-Clause */
// A host's session: the job file says exactly what the scenario says, the console's words become
// states and statuses, and nothing outlives session_kill(). The guest script itself is run, by the
// shell of this machine, with its network words replaced.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu/attach/attach.h"
#include "emu/attach/guest.h"
#include "emu/attach/guest_dirs.h"
#include "emu/attach/job.h"
#include "emu/attach/session.h"

extern char **environ;

static char dir[] = "/tmp/fabemu-test-session-XXXXXX";
static struct session s;

static const char scenario_text[] =
	"clock: wall\n"
	"switches: [sw1]\n"
	"hosts:\n"
	"  g1:\n"
	"    ip: 10.1.0.1/24\n"
	"    attach:\n"
	"      kind: guest\n"
	"      accel: tcg\n"
	"      mtu: 1500\n"
	"      memory: 128MiB\n"
	"      append: \"loglevel=3\"\n"
	"      env: {WORD: \"it's $HOME\"}\n"
	"      run:\n"
	"        - {command: \"echo 'a b' > x\", after: 250ms, timeout: 90s}\n"
	"        - {command: \"serve\", background: yes}\n"
	"  g2: {ip: 10.1.0.2/24, attach: {kind: netns, mtu: 9000}}\n"
	"links: [[g1, sw1], [g2, sw1]]\n";

static struct scenario *load(void)
{
	struct scenario *sc;

	assert_int_equal(
		scenario_load_text("test", scenario_text, strlen(scenario_text), NULL, &sc, stderr),
		0);
	return sc;
}

static char *read_all(const char *path)
{
	static char text[16384];
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	return text;
}

// Starts `script` under /bin/sh as a session with `n_run` commands.
static void start_script(char *script, unsigned n_run)
{
	char shell[] = "/bin/sh", option[] = "-c", log[128];
	char *argv[] = {shell, option, script, NULL};
	struct session_spec spec = {.name = "h",
		.argv = argv,
		.envp = environ,
		.log_path = log,
		.netns_fd = -1,
		.n_run = n_run};

	snprintf(log, sizeof(log), "%s/console", dir);
	assert_int_equal(session_start(&s, &spec, stderr), 0);
}

// Reads until `state` is reached; fails after 10 s or when the console closes first.
static void until(enum session_state state)
{
	while (s.state != state) {
		struct pollfd p = {.fd = s.out, .events = POLLIN};

		assert_int_equal(poll(&p, 1, 10000), 1);
		if (!session_read(&s))
			break;
	}
	assert_int_equal(s.state, state);
}

static void the_job_quotes_what_the_scenario_says(void **state)
{
	struct scenario *sc = load();
	char path[128];

	assert_int_equal(job_write(sc, &sc->hosts[0], dir, true), 0);
	snprintf(path, sizeof(path), "%s/g1.job", dir);
	const char *job = read_all(path);
	assert_non_null(strstr(job, "\tguest 'g1'\n"));
	assert_non_null(strstr(job, "\tpeer 'g2' 10.1.0.2\n"));
	assert_non_null(strstr(job, "\tport 'eth0' "));
	assert_non_null(strstr(job, " 1500 10.1.0.1/24"));
	assert_non_null(strstr(job, "\trdma_device rxe0 'eth0'\n"));
	assert_non_null(strstr(job, "\tvariable 'WORD=it'\\''s $HOME'\n"));
	assert_non_null(strstr(job, "\trun 0 fg 0.250 90.000 'echo '\\''a b'\\'' > x'\n"));
	assert_non_null(strstr(job, "\trun 1 bg 0 60.000 'serve'\n")); // the default
	assert_int_equal(job_write(sc, &sc->hosts[1], dir, false), 0);
	snprintf(path, sizeof(path), "%s/g2.job", dir);
	job = read_all(path);
	assert_non_null(strstr(job, "\tnamespace 'g2' '/tmp/fabemu-test-session-"));
	assert_null(strstr(job, "rdma_device"));
	scenario_free(sc);
}

static bool has(const struct guest_command *c, const char *word)
{
	for (unsigned i = 0; i < c->n; i++) {
		if (strstr(c->argv[i], word) != NULL)
			return true;
	}
	return false;
}

static void command_lines_fit_the_machine(void **state)
{
	struct scenario *sc = load();
	struct guest_command c;

	assert_int_equal(guest_command_build(&c, GUEST_TCG, sc, &sc->hosts[0], dir), 0);
	assert_true(has(&c, "tcg"));
	assert_true(has(&c, "size=128M,share=on"));
	assert_true(has(&c, "vectors=0")); // or QEMU 7.2 crashes
	assert_true(has(&c, "/g1.0.sock"));
	assert_true(has(&c, "fabemu.root=9p"));
	assert_true(has(&c, "loglevel=3"));
	assert_null(c.argv[c.n]);
	guest_command_free(&c);
	assert_int_equal(guest_command_build(&c, GUEST_KVM, sc, &sc->hosts[0], dir), 0);
	assert_true(has(&c, "kvm"));
	assert_false(has(&c, "vectors=0"));
	guest_command_free(&c);
	assert_int_equal(guest_command_build(&c, GUEST_UML, sc, &sc->hosts[0], dir), 0);
	assert_true(has(&c, "mem=128M"));
	assert_true(has(&c, "virtio_uml.device="));
	assert_true(has(&c, "fabemu.root=hostfs"));
	guest_command_free(&c);
	assert_int_equal(attach_data_room(sc), RTE_PKTMBUF_HEADROOM + 9000 + 1024);
	scenario_free(sc);
}

static void words_on_the_console_become_states(void **state)
{
	char script[] =
		"echo booting; printf 'half a line'; printf '\\n@fabemu@ ready\\n'; read go;"
		"printf '@fabemu@ exit 1 7\\r\\n@fabemu@ exit 0 0\\n@fabemu@ exit 99 1\\n';"
		"echo '@fabemu@ done'; sleep 1000";

	start_script(script, 2);
	until(SESSION_READY);
	assert_int_equal(s.status[0], -1);
	session_say(&s, "go");
	assert_int_equal(s.state, SESSION_RUNNING);
	until(SESSION_DONE);
	assert_int_equal(s.status[0], 0);
	assert_int_equal(s.status[1], 7);
	assert_non_null(strstr(s.tail, "half a line"));
	session_kill(&s);
}

static void a_session_that_ends_early_has_failed(void **state)
{
	char script[] = "echo '@fabemu@ ready'; read go; exit 3";

	start_script(script, 1);
	until(SESSION_READY);
	session_say(&s, "go");
	until(SESSION_FAILED);
	assert_non_null(strstr(s.failure, "ended by itself"));
	session_say(&s, "stop"); // to nobody: no signal, no error
	session_kill(&s);
}

static void a_reported_failure_is_kept(void **state)
{
	char script[] = "echo '@fabemu@ failed no interface eth7'; exit 1";

	start_script(script, 0);
	until(SESSION_FAILED);
	assert_string_equal(s.failure, "no interface eth7");
	session_kill(&s);
}

static void kill_takes_grandchildren_along(void **state)
{
	char script[512], path[128];

	snprintf(path, sizeof(path), "%s/pids", dir);
	snprintf(script, sizeof(script),
		"sleep 997 & sleep 998 & (trap '' TERM; sleep 999) & cut -d' ' -f1 /proc/self/stat "
		">%s;"
		"echo '@fabemu@ ready'; sleep 1000",
		path);
	start_script(script, 0);
	until(SESSION_READY);
	pid_t pid = s.pid;
	session_terminate(&s);
	session_kill(&s);
	assert_int_equal(kill(-pid, 0), -1);
	assert_int_equal(errno, ESRCH);
}

static void the_guest_script_runs_a_job(void **state)
{
	// Its words for the network need privileges; everything else is what guests run.
	char script[2048], path[512];

	snprintf(path, sizeof(path), "%s/job", dir);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f,
		"setup() {\n hosts=%s/hosts\n peer 'b' 10.0.0.2\n variable 'X=1 2'\n}\n"
		"mount() { :; }\n"
		"commands() {\n run 0 fg 0 0 'test \"$X\" = \"1 2\"'\n run 1 fg 0 0 'exit 5'\n"
		" run 2 fg 0 0.3 'sleep 100'\n run 3 bg 0 0 'exit 6'\n run 4 fg 0.2 0 'kill -9 "
		"$$'\n"
		"}\n",
		dir);
	fclose(f);
	snprintf(script, sizeof(script), "exec /bin/sh '%s' '%s'", GUEST_SOURCE_DIR "/session",
		path);
	start_script(script, 5);
	until(SESSION_READY);
	session_say(&s, "go");
	until(SESSION_DONE);
	assert_int_equal(s.status[0], 0);
	assert_int_equal(s.status[1], 5);
	assert_int_equal(s.status[2], 124); // timeout's status
	assert_int_equal(s.status[3], 6);
	assert_int_equal(s.status[4], 128 + SIGKILL);
	snprintf(path, sizeof(path), "%s/hosts", dir);
	assert_non_null(strstr(read_all(path), "10.0.0.2 b\n"));
	session_kill(&s);
}

static int make_dir(void **state)
{
	signal(SIGPIPE, SIG_IGN);
	return mkdtemp(dir) != NULL ? 0 : -1;
}

static int remove_dir(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_job_quotes_what_the_scenario_says),
		cmocka_unit_test(command_lines_fit_the_machine),
		cmocka_unit_test(words_on_the_console_become_states),
		cmocka_unit_test(a_session_that_ends_early_has_failed),
		cmocka_unit_test(a_reported_failure_is_kept),
		cmocka_unit_test(kill_takes_grandchildren_along),
		cmocka_unit_test(the_guest_script_runs_a_job),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
