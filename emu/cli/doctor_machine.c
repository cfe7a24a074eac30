/* SPDX-License-Identifier: BSD-3-Clause */
// doctor: what the emulation itself runs on, and optional programs.

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "emu/attach/probe.h"
#include "emu/cli/doctor.h"

#define SLEEP_NS       50000
#define SLEEPS         101
#define LATE_LIMIT_US  300 // of the median sleep
#define MEMORY_MIN_MIB 1024
#define LINE_BYTES     8192

// First line of a file that starts with `key`, without it; false when there is none.
static bool read_field(const char *path, const char *key, char *value, size_t len)
{
	char line[LINE_BYTES];
	bool found = false;
	FILE *f = fopen(path, "re");

	if (f == NULL)
		return false;
	while (!found && fgets(line, sizeof(line), f) != NULL) {
		if (strncmp(line, key, strlen(key)) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(value, len, "%s", line + strlen(key));
		found = true;
	}
	fclose(f);
	return found;
}

void doctor_check_cores(struct doctor_result *r)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;

	if (n >= 2)
		doctor_say(r, DOCTOR_OK, "", "%d processors", n);
	else
		doctor_say(
			r, DOCTOR_LIMITED, "", "one processor: guests and the emulation share it");
}

void doctor_check_memory(struct doctor_result *r)
{
	char text[64] = "0";

	read_field("/proc/meminfo", "MemAvailable:", text, sizeof(text));
	unsigned long mib = strtoul(text, NULL, 10) / 1024;
	if (mib >= MEMORY_MIN_MIB)
		doctor_say(r, DOCTOR_OK, "", "%lu MiB available", mib);
	else
		doctor_say(r, DOCTOR_LIMITED, "set `pool:` and `memory:` of guests smaller",
			"%lu MiB available", mib);
}

void doctor_check_tsc(struct doctor_result *r)
{
	char flags[LINE_BYTES] = "";

	read_field("/proc/cpuinfo", "flags", flags, sizeof(flags));
	bool constant = strstr(flags, " constant_tsc") != NULL;
	bool nonstop = strstr(flags, " nonstop_tsc") != NULL;
	if (constant && nonstop)
		doctor_say(r, DOCTOR_OK, "", "invariant TSC");
	else if (constant)
		doctor_say(r, DOCTOR_LIMITED, "", "TSC may stop in deep idle (no nonstop_tsc)");
	else
		doctor_say(r, DOCTOR_MISSING, "use the virtual clock",
			"the TSC's rate may change: the wall clock would drift");
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void doctor_check_timer(struct doctor_result *r)
{
	struct timespec nap = {.tv_nsec = SLEEP_NS};
	int64_t late[SLEEPS];
	long slack = prctl(PR_GET_TIMERSLACK);

	for (unsigned i = 0; i < SLEEPS; i++) {
		int64_t start = now_ns();
		nanosleep(&nap, NULL);
		late[i] = now_ns() - start - SLEEP_NS;
	}
	qsort(late, SLEEPS, sizeof(late[0]), compare);
	int64_t median = late[SLEEPS / 2] / 1000, worst = late[SLEEPS - 1] / 1000;
	bool good = median <= LATE_LIMIT_US;
	doctor_say(r, good ? DOCTOR_OK : DOCTOR_LIMITED, good ? "" : "poll: busy, or time_scale",
		"a sleep of %d us ends %lld us late (worst of %d: %lld us; timer slack %ld us)",
		SLEEP_NS / 1000, (long long)median, SLEEPS, (long long)worst, slack / 1000);
}

void doctor_check_hugepages(struct doctor_result *r)
{
	char text[64] = "0";

	read_field(
		"/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "", text, sizeof(text));
	unsigned long n = strtoul(text, NULL, 10);
	if (n > 0)
		doctor_say(r, DOCTOR_OK, "", "%lu free pages of 2 MiB", n);
	else
		doctor_say(r, DOCTOR_LIMITED, "sysctl -w vm.nr_hugepages=512",
			"none: fabemu runs without, a little slower");
}

// A program of an optional or required package.
static void look_for(struct doctor_result *r, const char *program, const char *fix)
{
	char path[512];

	if (probe_program(program, path, sizeof(path)))
		doctor_say(r, DOCTOR_OK, "", "%s", path);
	else
		doctor_say(r, DOCTOR_MISSING, fix, "no %s", program);
}

void doctor_check_tshark(struct doctor_result *r)
{
	look_for(r, "tshark", "apt-get install tshark");
}

void doctor_check_dot(struct doctor_result *r)
{
	look_for(r, "dot", "apt-get install graphviz");
}
