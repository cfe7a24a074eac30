/* SPDX-License-Identifier: BSD-3-Clause */

#include "emu/report/format.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct unit {
	double scale;
	const char *name;
};

// The largest unit of which there is at least one; four significant digits, no trailing zeros.
static char *format_scaled(double v, const struct unit *units, size_t n, char *buf)
{
	size_t i = 0;

	while (i + 1 < n && fabs(v) < units[i].scale)
		i++;
	double scaled = v / units[i].scale;
	int before = fabs(scaled) >= 100 ? 3 : fabs(scaled) >= 10 ? 2 : 1;
	char digits[FORMAT_MAX - 8];

	snprintf(digits, sizeof(digits), "%.*f", 4 - before, scaled);
	if (strchr(digits, '.') != NULL) {
		size_t len = strlen(digits);
		while (digits[len - 1] == '0')
			digits[--len] = '\0';
		if (digits[len - 1] == '.')
			digits[--len] = '\0';
	}
	snprintf(buf, FORMAT_MAX, "%s %s", digits, units[i].name);
	return buf;
}

char *format_time(simtime_t t, char *buf)
{
	static const struct unit units[] = {
		{SIM_S, "s"}, {SIM_MS, "ms"}, {SIM_US, "us"}, {SIM_NS, "ns"}, {SIM_PS, "ps"}};

	if (t == SIMTIME_NEVER)
		return strcpy(buf, "-");
	return format_scaled((double)t, units, sizeof(units) / sizeof(units[0]), buf);
}

char *format_bytes(double bytes, char *buf)
{
	static const struct unit units[] = {
		{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {1, "B"}};

	return format_scaled(bytes, units, sizeof(units) / sizeof(units[0]), buf);
}

char *format_rate(double bps, char *buf)
{
	static const struct unit units[] = {
		{1e12, "Tb/s"}, {1e9, "Gb/s"}, {1e6, "Mb/s"}, {1e3, "kb/s"}, {1, "b/s"}};

	return format_scaled(bps, units, sizeof(units) / sizeof(units[0]), buf);
}

char *format_count(uint64_t n, char *buf)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%lu", (unsigned long)n);
	char *out = buf;

	for (int i = 0; i < len; i++) {
		if (i > 0 && (len - i) % 3 == 0)
			*out++ = ',';
		*out++ = digits[i];
	}
	*out = '\0';
	return buf;
}
