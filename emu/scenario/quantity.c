/* SPDX-License-Identifier: BSD-3-Clause */

// A quantity is `digits[.digits][e[+-]digits] unit`. The digits are kept as an integer and a power
// of ten, so 0.1us is exactly 100000 ps. A value that is not a whole number of base units (0.5ps)
// is refused rather than rounded, except probabilities, which have 32 fractional bits, and bit
// error rates, which have 62.

#include "emu/scenario/quantity.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "emu/core/simtime.h"

#define PROBABILITY_ONE 4294967296.0          // 2^32
#define BER_ONE         4611686018427387904.0 // 2^62

struct unit {
	const char *name;
	int64_t scale; // base units
	bool shown;    // used when writing
};

static const struct unit rate_units[] = {{"Tbps", 1000000000000, true}, {"Gbps", 1000000000, true},
	{"Mbps", 1000000, true}, {"Kbps", 1000, true}, {"bps", 1, true},
	{"Tb/s", 1000000000000, false}, {"Gb/s", 1000000000, false}, {"Mb/s", 1000000, false},
	{"Kb/s", 1000, false}, {"b/s", 1, false}, {"kbps", 1000, false}, {NULL, 0, false}};
static const struct unit time_units[] = {{"s", SIM_S, true}, {"ms", SIM_MS, true},
	{"us", SIM_US, true}, {"ns", SIM_NS, true}, {"ps", SIM_PS, true},
	{"min", 60 * SIM_S, false}, {NULL, 0, false}};
static const struct unit size_units[] = {{"GB", 1000000000, true}, {"MB", 1000000, true},
	{"KB", 1000, true}, {"B", 1, true}, {"GiB", 1 << 30, false}, {"MiB", 1 << 20, false},
	{"KiB", 1 << 10, false}, {"kB", 1000, false}, {NULL, 0, false}};
static const struct unit length_units[] = {
	{"km", 1000000, true}, {"m", 1000, true}, {"cm", 10, false}, {NULL, 0, false}};
static const struct unit factor_units[] = {{"", 1000, true}, {"x", 1000, false}, {NULL, 0, false}};
static const struct unit count_units[] = {{"", 1, true}, {NULL, 0, false}};

static const struct {
	const char *name;
	const char *expected;
	const struct unit *units;
} kinds[] = {
	[Q_COUNT] = {"count", "a whole number", count_units},
	[Q_RATE] = {"rate", "a rate such as 100Gbps (units: bps Kbps Mbps Gbps Tbps)", rate_units},
	[Q_TIME] = {"time", "a time such as 600ns (units: ps ns us ms s)", time_units},
	[Q_SIZE] = {"size", "a size such as 32MB (units: B KB MB GB KiB MiB GiB)", size_units},
	[Q_LENGTH] = {"length", "a length such as 5m (units: m km)", length_units},
	[Q_PROBABILITY] = {"probability", "a probability from 0 to 1 such as 1e-5 or 0.5%", NULL},
	[Q_BER] = {"bit error rate", "a bit error rate from 0 to 1 such as 1e-5", NULL},
	[Q_FACTOR] = {"factor", "a factor such as 100 or 0.5", factor_units},
};

// The number in front: mantissa x 10^exponent. Returns the rest of the text, NULL if no number.
static const char *scan_number(const char *s, uint64_t *mantissa, int *exponent)
{
	bool digits = false, point = false;

	*mantissa = 0;
	*exponent = 0;
	for (; isdigit((unsigned char)*s) || (*s == '.' && !point); s++) {
		if (*s == '.') {
			point = true;
			continue;
		}
		digits = true;
		if (*mantissa > (UINT64_MAX - 9) / 10) {
			if (*s != '0' || !point)
				return NULL; // more digits than any quantity has
			continue;
		}
		*mantissa = *mantissa * 10 + (uint64_t)(*s - '0');
		*exponent -= point;
	}
	if (!digits)
		return NULL;
	if ((*s == 'e' || *s == 'E') &&
		(isdigit((unsigned char)s[1]) ||
			((s[1] == '-' || s[1] == '+') && isdigit((unsigned char)s[2])))) {
		char *end;
		long e = strtol(s + 1, &end, 10);
		if (e < -30 || e > 30)
			return NULL;
		*exponent += (int)e;
		s = end;
	}
	while (*s == ' ')
		s++;
	return s;
}

// mantissa x 10^exponent x scale as a whole number, or what is wrong.
static const char *scale_exact(uint64_t mantissa, int exponent, uint64_t scale, int64_t *value)
{
	unsigned __int128 v = (unsigned __int128)mantissa * scale;

	for (; exponent > 0 && v <= INT64_MAX; exponent--)
		v *= 10;
	for (; exponent < 0 && v % 10 == 0 && v != 0; exponent++)
		v /= 10;
	if (v > INT64_MAX)
		return "is too large";
	if (exponent < 0 && v != 0)
		return "is finer than the smallest unit";
	*value = (int64_t)v;
	return NULL;
}

static const char *parse_fraction(const char *text, double scale, int64_t *value)
{
	char *end;

	if ((!isdigit((unsigned char)*text) && *text != '.') || strpbrk(text, "xX") != NULL)
		return "is not a number"; // strtod would take inf, nan, hexadecimal
	double p = strtod(text, &end);
	if (*end == '%') {
		p /= 100;
		end++;
	}
	if (*end != '\0')
		return "is not a number";
	if (!(p >= 0 && p <= 1))
		return "is out of range";
	*value = (int64_t)(p * scale + 0.5);
	return NULL;
}

const char *quantity_parse(enum quantity q, const char *text, int64_t *value)
{
	uint64_t mantissa;
	int exponent;

	if (q == Q_PROBABILITY)
		return parse_fraction(text, PROBABILITY_ONE, value);
	if (q == Q_BER)
		return parse_fraction(text, BER_ONE, value);
	if (*text == '-')
		return "is negative";
	const char *unit = scan_number(text, &mantissa, &exponent);
	if (unit == NULL)
		return "is not a number";
	if (mantissa == 0 && *unit == '\0') {
		*value = 0;
		return NULL;
	}
	for (const struct unit *u = kinds[q].units; u->name != NULL; u++)
		if (strcmp(unit, u->name) == 0)
			return scale_exact(mantissa, exponent, (uint64_t)u->scale, value);
	if (*unit == '\0')
		return "has no unit";
	return q == Q_COUNT ? "has a unit" : "has a wrong unit";
}

const char *quantity_expected(enum quantity q)
{
	return kinds[q].expected;
}

const char *quantity_name(enum quantity q)
{
	return kinds[q].name;
}

// The largest unit of which the value is a whole multiple of a thousandth, three decimals being
// short enough; for sizes a whole multiple (32MB, 1MiB) is preferred, and bytes up to 9999B.
static const struct unit *choose_unit(enum quantity q, int64_t value)
{
	const struct unit *best = NULL, *whole = NULL;

	for (const struct unit *u = kinds[q].units; u->name != NULL; u++)
		if (value % u->scale == 0 && u->name[0] != 'k' &&
			(whole == NULL || u->scale > whole->scale))
			whole = u;
	if (q == Q_SIZE && (whole->scale > 1 || value < 10000))
		return whole;
	for (const struct unit *u = kinds[q].units; u->name != NULL; u++) {
		if (!u->shown)
			continue;
		best = u;
		if (value >= u->scale && (u->scale < 1000 || value % (u->scale / 1000) == 0))
			break;
	}
	return best;
}

char *quantity_format(enum quantity q, int64_t value, char *buf)
{
	if (q == Q_PROBABILITY || q == Q_BER) {
		snprintf(buf, QUANTITY_MAX, "%.6g",
			(double)value / (q == Q_BER ? BER_ONE : PROBABILITY_ONE));
		return buf;
	}
	if (value == 0) {
		snprintf(buf, QUANTITY_MAX, "0");
		return buf;
	}
	const struct unit *u = choose_unit(q, value);
	int64_t whole = value / u->scale, rest = value % u->scale;
	if (rest == 0) {
		snprintf(buf, QUANTITY_MAX, "%lld%s", (long long)whole, u->name);
		return buf;
	}
	int n = snprintf(buf, QUANTITY_MAX, "%lld.%03lld", (long long)whole,
		(long long)(rest * 1000 / u->scale));
	while (buf[n - 1] == '0')
		n--;
	snprintf(buf + n, (size_t)(QUANTITY_MAX - n), "%s", u->name);
	return buf;
}
