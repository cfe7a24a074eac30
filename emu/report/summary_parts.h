/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Inside of summary.c: the larger sections of summary.json. Each returns a new value, or NULL.

#include <jansson.h>

#include "emu/report/results.h"

#define SUMMARY_EVENTS_MAX 2000 // of the event log, first ones

json_t *summary_time(simtime_t t); // null for SIMTIME_NEVER
// A string or null; bytes that are not UTF-8 (file names may have them) become '?'.
json_t *summary_text(const char *s);
json_t *summary_deadlock(const struct run_results *r);
json_t *summary_flows(const struct run_results *r);
json_t *summary_ports(const struct run_results *r);
json_t *summary_pgs(const struct run_results *r);
json_t *summary_queues(const struct run_results *r);
json_t *summary_watchdogs(const struct run_results *r);
json_t *summary_events(const struct run_results *r);
