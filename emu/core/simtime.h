/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Emulated time: signed 64-bit picoseconds since the start of the run (range: 106 days). One bit at
// 100 Gb/s lasts 10 ps and one byte at 800 Gb/s lasts 10 ps, so the usual line rates are exact.

#include <stdint.h>

typedef int64_t simtime_t;

#define SIM_PS ((simtime_t)1)
#define SIM_NS ((simtime_t)1000)
#define SIM_US ((simtime_t)1000000)
#define SIM_MS ((simtime_t)1000000000)
#define SIM_S  ((simtime_t)1000000000000)

#define SIMTIME_NEVER INT64_MAX

static inline simtime_t simtime_min(simtime_t a, simtime_t b)
{
	return a < b ? a : b;
}

static inline simtime_t simtime_max(simtime_t a, simtime_t b)
{
	return a > b ? a : b;
}

// Byte times of a line in 48.16 fixed point picoseconds, so that the data path multiplies and never
// divides. Exact for rates that divide 8e12; otherwise off by less than 2^-17 ps per byte.
#define BYTE_TIME_SHIFT 16

// rate_bps > 0. The largest usable length is 16 KiB at 1 kb/s (63 bits).
static inline uint64_t byte_time_fp(uint64_t rate_bps)
{
	return (uint64_t)((((unsigned __int128)8 * SIM_S << BYTE_TIME_SHIFT) + rate_bps / 2) /
			  rate_bps);
}

// Time on the wire of `bytes` bytes.
static inline simtime_t serialization_time(uint64_t byte_time, uint32_t bytes)
{
	return (simtime_t)((byte_time * bytes) >> BYTE_TIME_SHIFT);
}

// The same for one after another: what is below a picosecond is kept in `frac`, in units of
// 2^-BYTE_TIME_SHIFT, so that many small steps add up to what they are together.
static inline simtime_t serialization_step(uint64_t byte_time, uint32_t bytes, uint32_t *frac)
{
	uint64_t t = byte_time * bytes + *frac;

	*frac = t & ((1u << BYTE_TIME_SHIFT) - 1);
	return (simtime_t)(t >> BYTE_TIME_SHIFT);
}
