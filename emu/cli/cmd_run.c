/* SPDX-License-Identifier: BSD-3-Clause */
// fabemu run: load, build, run, judge, report.

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "emu/cli/commands.h"
#include "emu/fabric/fabric.h"
#include "emu/report/console.h"
#include "emu/report/expect.h"
#include "emu/report/progress.h"
#include "emu/report/summary.h"
#include "emu/scenario/scenario.h"

#define SETS_MAX    256
#define PROGRESS_NS 100000000

struct run_args {
	const char *scenario;
	const char *out_dir;
	const char *pcap;
	const char *eal;
	unsigned lcores;
	bool json;
	bool quiet;
	const char *sets[SETS_MAX];
	size_t n_sets;
	char clock[64], seed[64], duration[64];
};

static const char usage_text[] =
	"Usage: fabemu run SCENARIO [OPTION]...\n"
	"\n"
	"Runs a scenario and judges its expectations. Writes one directory with summary.json and "
	"the\n"
	"scenario's captures, and prints the result.\n"
	"\n"
	"Options:\n"
	"  -o, --out DIR          directory of the results (default: fabemu-run-NAME)\n"
	"  -c, --clock CLOCK      virtual or wall, instead of the scenario's\n"
	"  -s, --seed N           seed of all random numbers\n"
	"  -d, --duration TIME    end after this emulated time, e.g. 10ms\n"
	"      --set PATH=VALUE   change any key of the scenario; may be repeated, e.g.\n"
	"                         --set defaults.link.rate=40Gbps --set switches.sw1.buffer=1MB\n"
	"  -l, --lcores N         polling cores (default: the scenario's, else 1); results do not\n"
	"                         depend on it under the virtual clock\n"
	"  -p, --pcap FILE        capture every port, both directions, to this pcapng file\n"
	"  -j, --json             print summary.json on standard output instead of the result\n"
	"  -q, --quiet            print the verdict only\n"
	"      --eal \"ARGS\"       pass arguments to DPDK's EAL\n"
	"  -h, --help             this text\n"
	"\n"
	"Exit status: 0 all expectations held; 1 an expectation failed; 2 bad usage or scenario;\n"
	"3 the run itself failed; 4 the host could not keep up (lag beyond the scenario's bound).\n"
	"\n"
	"SIGINT and SIGTERM end a run early: captures and results so far are complete and valid.\n"
	"\n"
	"See also: fabemu help scenario, fabemu check, fabemu doctor.\n";

// ---- arguments ---------------------------------------------------------------------------------

static bool add_set(struct run_args *a, const char *set)
{
	if (a->n_sets == SETS_MAX) {
		fprintf(stderr, "fabemu run: --set: more than %d\n", SETS_MAX);
		return false;
	}
	a->sets[a->n_sets++] = set;
	return true;
}

static bool add_key(struct run_args *a, char *buf, size_t len, const char *key, const char *value)
{
	if ((size_t)snprintf(buf, len, "%s=%s", key, value) >= len) {
		fprintf(stderr, "fabemu run: --%s: value too long\n", key);
		return false;
	}
	return add_set(a, buf);
}

static bool parse_lcores(struct run_args *a, const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*text == '\0' || *end != '\0' || n < 1 || n > ENGINE_LCORES_MAX) {
		fprintf(stderr, "fabemu run: --lcores: '%s', expected a number from 1 to %d\n",
			text, ENGINE_LCORES_MAX);
		return false;
	}
	a->lcores = (unsigned)n;
	return true;
}

enum { OPT_SET = 256, OPT_EAL };

static bool take_option(struct run_args *a, int opt)
{
	switch (opt) {
	case 'o':
		a->out_dir = optarg;
		return true;
	case 'c':
		return add_key(a, a->clock, sizeof(a->clock), "clock", optarg);
	case 's':
		return add_key(a, a->seed, sizeof(a->seed), "seed", optarg);
	case 'd':
		return add_key(a, a->duration, sizeof(a->duration), "duration", optarg);
	case 'l':
		return parse_lcores(a, optarg);
	case 'p':
		a->pcap = optarg;
		return true;
	case 'j':
		a->json = true;
		return true;
	case 'q':
		a->quiet = true;
		return true;
	case OPT_SET:
		return add_set(a, optarg);
	case OPT_EAL:
		a->eal = optarg;
		return true;
	default:
		fputs("Try 'fabemu run --help'.\n", stderr);
		return false;
	}
}

// Returns -1 to go on, else the exit status.
static int parse_args(int argc, char **argv, struct run_args *a)
{
	static const struct option options[] = {
		{"out", required_argument, NULL, 'o'},
		{"clock", required_argument, NULL, 'c'},
		{"seed", required_argument, NULL, 's'},
		{"duration", required_argument, NULL, 'd'},
		{"set", required_argument, NULL, OPT_SET},
		{"lcores", required_argument, NULL, 'l'},
		{"pcap", required_argument, NULL, 'p'},
		{"json", no_argument, NULL, 'j'},
		{"quiet", no_argument, NULL, 'q'},
		{"eal", required_argument, NULL, OPT_EAL},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "o:c:s:d:l:p:jqh", options, NULL)) != -1) {
		if (opt == 'h') {
			fputs(usage_text, stdout);
			return EXIT_HELD;
		}
		if (!take_option(a, opt))
			return EXIT_USAGE;
	}
	if (argc - optind != 1) {
		fprintf(stderr,
			"fabemu run: expected one SCENARIO, got %d arguments\n"
			"Try 'fabemu run --help'.\n",
			argc - optind);
		return EXIT_USAGE;
	}
	a->scenario = argv[optind];
	return -1;
}

// ---- run ---------------------------------------------------------------------------------------

static struct fabric *running; // for the signal handler
static volatile sig_atomic_t got_signal;

static void on_signal(int sig)
{
	got_signal = sig;
	if (running != NULL)
		fabric_request_stop(running);
}

static void catch_signals(void)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	sigemptyset(&sa.sa_mask);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
}

struct watcher {
	const struct fabric *f;
	bool quiet;
	volatile bool done;
};

static uint64_t monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static simtime_t worst_lag(const struct fabric *f)
{
	simtime_t p99 = 0;

	for (unsigned i = 0; i < f->lcores; i++)
		if (engine_lag(f->engine, i) != NULL)
			p99 = simtime_max(p99, lag_quantile(engine_lag(f->engine, i), 0.99));
	return p99;
}

// Frames put on links so far, all ports together.
static uint64_t frames_sent(const struct fabric *f)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < f->s->n_nodes; i++)
		for (unsigned p = 0; p < f->nodes[i]->n_ports; p++)
			n += port_total(f->nodes[i]->ports[p].ctr).tx_frames;
	return n;
}

static void *watch(void *arg)
{
	struct watcher *w = arg;
	const struct fabric *f = w->f;
	struct progress p;

	progress_start(&p, stderr, w->quiet, monotonic_ns());
	while (!w->done) {
		struct timespec nap = {.tv_nsec = PROGRESS_NS};
		nanosleep(&nap, NULL);
		struct engine_progress now = engine_progress(f->engine);
		struct progress_snapshot s = {
			.wall_ns = monotonic_ns(),
			.emulated = now.now,
			.duration = f->s->duration ? f->s->duration : SIMTIME_NEVER,
			.done = -1,
			.frames = frames_sent(f),
			.wall_clock = f->s->clock == SC_CLOCK_WALL,
			.lag_p99 = worst_lag(f),
		};
		progress_update(&p, &s);
	}
	progress_end(&p);
	return NULL;
}

static void run_watched(struct fabric *f, bool quiet)
{
	struct watcher w = {.f = f, .quiet = quiet || !isatty(STDERR_FILENO)};
	pthread_t thread;
	bool watching = !w.quiet && pthread_create(&thread, NULL, watch, &w) == 0;

	running = f;
	if (got_signal)
		fabric_request_stop(f);
	fabric_run(f);
	running = NULL;
	w.done = true;
	if (watching)
		pthread_join(thread, NULL);
}

static int report(
	const struct run_args *a, const struct scenario *s, struct fabric *f, struct run_results *r)
{
	char why[512] = "";

	if (fabric_collect(f, r) < 0 || expect_judge(s, r) < 0) {
		fprintf(stderr, "fabemu run: out of memory for the results\n");
		return EXIT_RUN_FAILED;
	}
	if (got_signal)
		r->interrupted = got_signal == SIGINT ? "SIGINT" : "SIGTERM";
	int rc = summary_write(r, a->out_dir, why, sizeof(why));
	if (rc < 0) {
		fprintf(stderr, "fabemu run: %s\n", why);
		r->failure = why;
	}
	if (a->json)
		summary_print(r, stdout);
	else
		console_print(r, stdout, a->quiet, console_wants_colour(stdout));
	int status = run_exit_status(r);
	if (!a->json && !a->quiet && rc == 0)
		printf("\nresults: %s/summary.json\n", a->out_dir);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		fprintf(stderr, "fabemu run: standard output: %s\n", strerror(errno));
		status = EXIT_RUN_FAILED;
	}
	expect_free(r);
	return status;
}

static int run_scenario(const struct run_args *a, const struct scenario *s)
{
	struct fabric_options opt = {
		.lcores = a->lcores,
		.out_dir = a->out_dir,
		.eal_args = a->eal,
		.pcap_file = a->pcap,
		.err = stderr,
		.stop = &got_signal,
	};
	struct run_results *r = calloc(1, sizeof(*r));
	struct fabric *f = NULL;
	int status = EXIT_RUN_FAILED;

	if (r == NULL) {
		fprintf(stderr, "fabemu run: out of memory\n");
		return status;
	}
	catch_signals();
	int rc = fabric_create(s, &opt, &f);
	if (rc == 0) {
		run_watched(f, a->quiet || a->json);
		status = report(a, s, f, r);
		fabric_destroy(f);
	} else if (rc == -EINVAL) {
		status = EXIT_USAGE;
	}
	free(r);
	return status;
}

static bool make_out_dir(struct run_args *a, const struct scenario *s, char *buf, size_t len)
{
	if (a->out_dir == NULL) {
		snprintf(buf, len, "fabemu-run-%s", s->name);
		for (char *p = buf; *p; p++)
			if (*p == '/' || *p == ' ')
				*p = '-';
		a->out_dir = buf;
	}
	if (mkdir(a->out_dir, 0777) < 0 && errno != EEXIST) {
		fprintf(stderr, "fabemu run: --out %s: %s\n", a->out_dir, strerror(errno));
		return false;
	}
	if (access(a->out_dir, W_OK | X_OK) < 0) {
		fprintf(stderr, "fabemu run: --out %s: %s\n", a->out_dir, strerror(errno));
		return false;
	}
	return true;
}

int cmd_run(int argc, char **argv)
{
	struct run_args a = {0};
	char out_dir[512];

	int status = parse_args(argc, argv, &a);
	if (status >= 0)
		return status;

	struct scenario_overrides ov = {.set = a.sets, .n_set = a.n_sets};
	struct scenario *s = NULL;
	if (scenario_load(a.scenario, &ov, &s, stderr) < 0)
		return EXIT_USAGE;
	status = EXIT_USAGE;
	if (expect_check(s, stderr) == 0 && make_out_dir(&a, s, out_dir, sizeof(out_dir)))
		status = run_scenario(&a, s);
	scenario_free(s);
	return status;
}
