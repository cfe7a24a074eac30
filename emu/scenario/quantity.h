/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Numbers with units, read exactly (no floating point on the way) and written back for people.
//
//	rate         100Gbps, 2.5Gbps, 800Mb/s           bits per second
//	time         1us, 2.5ms, 600ns, 0                picoseconds
//	size         32MB, 1518B, 64KiB, 0               bytes; KB MB GB decimal, KiB MiB GiB binary
//	length       5m, 2km, 0                          millimetres
//	probability  1e-5, 0.5%, 0                       fraction x 2^32
//	bit errors   1e-5, 0                     fraction x 2^62
//	factor       100, 0.5, 2x                        thousandths
//	count        16, 1000000                         (no unit)
//
// Zero needs no unit; everything else does.

#include <stdint.h>
#include <stdio.h>

enum quantity {
	Q_COUNT,
	Q_RATE,
	Q_TIME,
	Q_SIZE,
	Q_LENGTH,
	Q_PROBABILITY,
	Q_FACTOR,
	Q_BER,
};

// Reads all of `text`. Returns NULL and the value, or what is wrong ("has no unit") without the
// text itself. Values are at most INT64_MAX.
const char *quantity_parse(enum quantity q, const char *text, int64_t *value);

// What a correct value looks like: "a rate such as 100Gbps (bps, Kbps, Mbps, Gbps, Tbps)".
const char *quantity_expected(enum quantity q);
// One word for tables: "rate".
const char *quantity_name(enum quantity q);

// Writes the value in the largest unit that keeps it exact or short ("100Gbps", "1.518KB").
// `buf` of at least QUANTITY_MAX bytes; returns it.
#define QUANTITY_MAX 40
char *quantity_format(enum quantity q, int64_t value, char *buf);
