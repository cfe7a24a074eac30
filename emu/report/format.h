/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Quantities as a person reads them: three or more significant digits and a unit.

#include <stddef.h>
#include <stdint.h>

#include "emu/core/simtime.h"

#define FORMAT_MAX 32

// Each writes into buf[FORMAT_MAX] and returns it.
char *format_time(simtime_t t, char *buf);   // "104.2 us", "-" for SIMTIME_NEVER
char *format_bytes(double bytes, char *buf); // "1.2 MB" (powers of ten)
char *format_rate(double bps, char *buf);    // "94.1 Gb/s"
char *format_count(uint64_t n, char *buf);   // "1,234,567"
