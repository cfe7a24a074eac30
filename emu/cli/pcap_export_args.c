/* SPDX-License-Identifier: BSD-3-Clause */
// The command line of fabemu pcap export.

#include "emu/cli/pcap_export.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/cli/commands.h"
#include "emu/core/simtime.h"
#include "emu/scenario/quantity.h"
#include "pcap/wire.h"

static const char usage_text[] =
	"Usage: fabemu pcap export FILE --out OUT [OPTION]...\n"
	"\n"
	"Cuts a part of a capture into a small pcapng file, with interface names, comments and\n"
	"nanosecond time stamps. What is asked for is combined: all of it must hold for a frame.\n"
	"\n"
	"Options:\n"
	"  -o, --out OUT        file to write; appears when it is complete\n"
	"      --qp N           a queue pair (decimal or 0x...): both directions, CNPs, and the\n"
	"                       connection management that set it up\n"
	"      --host ADDRESS   queue pairs of this host only; may be given twice\n"
	"      --around FRAME   the surroundings of this frame\n"
	"      --event N        of finding #N of 'fabemu pcap check --verbose'\n"
	"      --comment TEXT   of the first frame with this in its comment\n"
	"      --before TIME    how long before it (default: 10us)\n"
	"      --after TIME     how long after it (default: 10us)\n"
	"      --frames N       so many frames before and after it, instead of a time\n"
	"      --filter EXPR    libpcap expression, e.g. 'ether proto 0x8808'\n"
	"  -h, --help           this text\n"
	"\n"
	"Exit status: 0 written; 2 bad usage, a file that can't be read to its end (what came "
	"before\n"
	"is cut), or nothing to write; 3 OUT could not be written.\n";

enum {
	OPT_QP = 256,
	OPT_HOST,
	OPT_AROUND,
	OPT_EVENT,
	OPT_COMMENT,
	OPT_BEFORE,
	OPT_AFTER,
	OPT_FRAMES,
	OPT_FILTER
};

static bool bad(const char *option, const char *expected, const char *value)
{
	fprintf(stderr, "fabemu pcap export: --%s: expected %s, got '%s'\n", option, expected,
		value);
	return false;
}

static bool number(const char *option, const char *value, uint64_t min, uint64_t max, uint64_t *out)
{
	char *end, expected[64];

	errno = 0;
	*out = strtoull(value, &end, 0);
	if (errno == 0 && *value >= '0' && *value <= '9' && *end == '\0' && *out >= min &&
		*out <= max)
		return true;
	snprintf(expected, sizeof(expected), "%llu to %llu", (unsigned long long)min,
		(unsigned long long)max);
	return bad(option, expected, value);
}

static bool duration(const char *option, const char *value, int64_t *ns)
{
	int64_t ps;

	if (quantity_parse(Q_TIME, value, &ps) != NULL)
		return bad(option, quantity_expected(Q_TIME), value);
	*ns = ps / SIM_NS;
	return true;
}

static bool host(struct pcap_export_args *a, const char *value)
{
	if (a->n_hosts == 2)
		return bad("host", "at most two addresses", value);
	uint8_t *to = a->hosts[a->n_hosts], *bytes = &a->host_bytes[a->n_hosts];
	a->n_hosts++;
	*bytes = 4;
	if (inet_pton(AF_INET, value, to) == 1)
		return true;
	*bytes = 16;
	return inet_pton(AF_INET6, value, to) == 1 || bad("host", "an IP address", value);
}

static bool set_option(struct pcap_export_args *a, int opt, const char *value)
{
	switch (opt) {
	case 'o':
		a->out = value;
		return true;
	case OPT_QP:
		return a->has_qp = number("qp", value, 0, QPN_MASK, &a->qp);
	case OPT_HOST:
		return host(a, value);
	case OPT_AROUND:
		return a->has_around = number("around", value, 1, UINT64_MAX, &a->around);
	case OPT_EVENT:
		return a->has_event = number("event", value, 1, UINT32_MAX, &a->event);
	case OPT_COMMENT:
		a->comment = value;
		return true;
	case OPT_BEFORE:
		return duration("before", value, &a->before_ns);
	case OPT_AFTER:
		return duration("after", value, &a->after_ns);
	case OPT_FRAMES:
		return a->has_frames = number("frames", value, 0, UINT32_MAX, &a->frames);
	case OPT_FILTER:
		a->filter = value;
		return true;
	default:
		return false;
	}
}

// What the options together must be. NULL: fine.
static const char *complaint(const struct pcap_export_args *a, int files)
{
	int places = a->has_around + a->has_event + (a->comment != NULL);

	if (files != 1)
		return "expected one FILE";
	if (a->out == NULL)
		return "expected --out OUT";
	if (places > 1)
		return "expected one of --around, --event and --comment";
	if (a->has_frames && places == 0)
		return "--frames: expected --around, --event or --comment with it";
	if (places == 0 && !a->has_qp && a->n_hosts == 0 && a->filter == NULL)
		return "expected --qp, --host, --around, --event, --comment or --filter";
	return NULL;
}

int pcap_export_parse(int argc, char **argv, struct pcap_export_args *a)
{
	static const struct option options[] = {
		{"out", required_argument, NULL, 'o'},
		{"qp", required_argument, NULL, OPT_QP},
		{"host", required_argument, NULL, OPT_HOST},
		{"around", required_argument, NULL, OPT_AROUND},
		{"event", required_argument, NULL, OPT_EVENT},
		{"comment", required_argument, NULL, OPT_COMMENT},
		{"before", required_argument, NULL, OPT_BEFORE},
		{"after", required_argument, NULL, OPT_AFTER},
		{"frames", required_argument, NULL, OPT_FRAMES},
		{"filter", required_argument, NULL, OPT_FILTER},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "o:h", options, NULL)) != -1) {
		if (opt == 'h') {
			fputs(usage_text, stdout);
			return finish_output("pcap export");
		}
		if (!set_option(a, opt, optarg)) {
			fputs("Try 'fabemu pcap export --help'.\n", stderr);
			return EXIT_USAGE;
		}
	}
	const char *what = complaint(a, argc - optind);
	if (what != NULL) {
		fprintf(stderr, "fabemu pcap export: %s\nTry 'fabemu pcap export --help'.\n", what);
		return EXIT_USAGE;
	}
	a->file = argv[optind];
	return -1;
}
