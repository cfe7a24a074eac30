/* SPDX-License-Identifier: BSD-3-Clause */
// fabemu pcap check: streams captures through the checker (pcap/check.h) and reports.

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "emu/cli/commands.h"
#include "emu/cli/pcap.h"
#include "emu/scenario/quantity.h"

#define PCAP_JSON_VERSION 1

static const char usage_text[] =
	"Usage: fabemu pcap check FILE... [OPTION]...\n"
	"\n"
	"Judges captures of RoCE traffic (pcap or pcapng, '-' is standard input) against the "
	"protocol:\n"
	"ICRC, lengths, IP checksum, PSNs, NAKs and the resends that answer them, READs, message\n"
	"order; and measures: retransmissions, ACK latency, CNPs, ECN marks, pauses, messages. "
	"Each\n"
	"place where frames were captured is judged on its own.\n"
	"\n"
	"Options:\n"
	"      --no-payload   don't verify ICRCs: several times as fast\n"
	"      --icrc         verify ICRCs (the default)\n"
	"      --qp N         only this queue pair (decimal or 0x...) and its counterpart\n"
	"      --rate RATE    of links whose interface does not say, for pause times: 100Gbps\n"
	"      --max-qps N    queue pairs to follow, others are counted (default: 16384)\n"
	"  -j, --json         print JSON (pcap/README.md has the schema)\n"
	"  -q, --quiet        print violations only\n"
	"  -v, --verbose      print all queue pairs, findings and opcodes\n"
	"  -h, --help         this text\n"
	"\n"
	"Exit status: 0 no violations; 1 violations; 2 bad usage, or a file that can't be read to "
	"its\n"
	"end (what came before is reported).\n"
	"\n"
	"See also: fabemu pcap export.\n";

struct args {
	struct check_options check;
	bool only_qp;
	uint32_t qp;
	bool json, quiet, verbose;
};

static bool parse_number(const char *text, uint64_t max, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 0);
	return errno == 0 && *text != '\0' && *text != '-' && *end == '\0' && *out <= max;
}

enum { OPT_NO_PAYLOAD = 256, OPT_ICRC, OPT_QP, OPT_RATE, OPT_MAX_QPS };

// False, with a message, when the value is not what the option wants.
static bool set_option(struct args *a, int opt, const char *value)
{
	uint64_t n = 0;
	int64_t rate = 0;

	switch (opt) {
	case OPT_NO_PAYLOAD:
	case OPT_ICRC:
		a->check.icrc = opt == OPT_ICRC;
		return true;
	case 'j':
		return a->json = true;
	case 'q':
		return a->quiet = true;
	case 'v':
		return a->verbose = true;
	case OPT_QP:
		a->only_qp = parse_number(value, QPN_MASK, &n);
		a->qp = (uint32_t)n;
		if (!a->only_qp)
			fprintf(stderr,
				"fabemu pcap check: --qp: expected 0 to 0xffffff, got '%s'\n",
				value);
		return a->only_qp;
	case OPT_MAX_QPS:
		if (parse_number(value, 1u << 24, &n) && n > 0) {
			a->check.flows_max = 2 * (uint32_t)n; // each has two directions
			return true;
		}
		fprintf(stderr, "fabemu pcap check: --max-qps: expected 1 to %u, got '%s'\n",
			1u << 24, value);
		return false;
	case OPT_RATE:
		if (quantity_parse(Q_RATE, value, &rate) == NULL && rate > 0) {
			a->check.rate_bps = (uint64_t)rate;
			return true;
		}
		fprintf(stderr, "fabemu pcap check: --rate: expected %s, got '%s'\n",
			quantity_expected(Q_RATE), value);
		return false;
	default:
		return false;
	}
}

// Returns -1 to go on, else the exit status.
static int parse_args(int argc, char **argv, struct args *a)
{
	static const struct option options[] = {
		{"no-payload", no_argument, NULL, OPT_NO_PAYLOAD},
		{"icrc", no_argument, NULL, OPT_ICRC},
		{"qp", required_argument, NULL, OPT_QP},
		{"rate", required_argument, NULL, OPT_RATE},
		{"max-qps", required_argument, NULL, OPT_MAX_QPS},
		{"json", no_argument, NULL, 'j'},
		{"quiet", no_argument, NULL, 'q'},
		{"verbose", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "jqvh", options, NULL)) != -1) {
		if (opt == 'h') {
			fputs(usage_text, stdout);
			return finish_output("pcap check");
		}
		if (!set_option(a, opt, optarg)) {
			fputs("Try 'fabemu pcap check --help'.\n", stderr);
			return EXIT_USAGE;
		}
	}
	if (optind == argc) {
		fputs("fabemu pcap check: expected a FILE\nTry 'fabemu pcap check --help'.\n",
			stderr);
		return EXIT_USAGE;
	}
	return -1;
}

// ---- what was asked for ----------------------------------------------------------------------

bool pcap_wants_flow(const struct pcap_report *p, uint32_t i)
{
	if (!p->only_qp)
		return true;
	const struct check_flow *f = p->r.flows[i];
	return f->dest_qp == p->qp ||
	       (f->pairing >= CHECK_BY_PSN && p->r.flows[f->peer]->dest_qp == p->qp);
}

bool pcap_wants_finding(const struct pcap_report *p, const struct check_finding *f)
{
	return !p->only_qp || (f->flow != CHECK_NO_FLOW && pcap_wants_flow(p, f->flow));
}

static void count_violations(struct pcap_report *p)
{
	p->violations = p->only_qp ? 0 : p->r.violations;
	for (uint32_t i = 0; p->only_qp && i < p->r.n_findings; i++)
		p->violations += check_is_violation(p->r.findings[i].kind) &&
				 pcap_wants_finding(p, &p->r.findings[i]);
}

// ---- files -----------------------------------------------------------------------------------

static void print_report(struct pcap_report *p, const struct args *a, json_t *files)
{
	count_violations(p);
	if (files != NULL) {
		json_array_append_new(files, pcap_json(p));
		return;
	}
	if (!a->quiet || p->violations != 0)
		pcap_print_text(p, stdout);
}

static int report_file(
	const char *path, struct stream *s, struct check *c, const struct args *a, json_t *files)
{
	uint32_t n = stream_n_interfaces(s);
	const char **names = calloc(n + 1, sizeof(*names));

	if (names == NULL) {
		fputs("fabemu pcap check: out of memory\n", stderr);
		return EXIT_USAGE;
	}
	for (uint32_t i = 0; i < n; i++)
		names[i] = stream_interface(s, i)->name;
	struct pcap_report p = {.path = path,
		.error = stream_error(s)[0] != '\0' ? stream_error(s) : NULL,
		.r = check_result(c),
		.interfaces = names,
		.n_interfaces = n,
		.icrc = a->check.icrc,
		.only_qp = a->only_qp,
		.qp = a->qp,
		.verbose = a->verbose};
	if (p.error == NULL && p.r.out_of_memory)
		p.error = "out of memory: the report is incomplete";
	print_report(&p, a, files);
	if (p.error != NULL)
		fprintf(stderr, "fabemu pcap check: %s\n", p.error);
	free(names);
	return p.error != NULL ? EXIT_USAGE : p.violations != 0 ? EXIT_EXPECTATION : EXIT_HELD;
}

static int check_file(const char *path, const struct args *a, json_t *files)
{
	char err[512];
	struct stream *s;
	struct stream_frame f;

	if (stream_open(&s, path, err, sizeof(err)) < 0) {
		fprintf(stderr, "fabemu pcap check: %s\n", err);
		return EXIT_USAGE;
	}
	struct check *c = check_new(&a->check);
	if (c == NULL) {
		fputs("fabemu pcap check: out of memory\n", stderr);
		stream_close(s);
		return EXIT_USAGE;
	}
	while (stream_next(s, &f) == 1)
		check_frame(c, s, &f);
	check_end(c, s);
	int status = report_file(path, s, c, a, files);
	check_free(c);
	stream_close(s);
	return status;
}

static int print_json(json_t *files, int status)
{
	json_t *o = json_pack("{s:s, s:i, s:i, s:o}", "schema", "fabemu-pcap-check",
		"schema_version", PCAP_JSON_VERSION, "exit_status", status, "files", files);

	if (o == NULL || json_dumpf(o, stdout, JSON_INDENT(1)) < 0) {
		fputs("fabemu pcap check: cannot write JSON\n", stderr);
		json_decref(o);
		return EXIT_USAGE;
	}
	putchar('\n');
	json_decref(o);
	return status;
}

int cmd_pcap_check(int argc, char **argv)
{
	struct args a = {.check = {.icrc = true}};
	int status = parse_args(argc, argv, &a);

	if (status >= 0)
		return status;
	json_t *files = a.json ? json_array() : NULL;
	status = EXIT_HELD;
	for (int i = optind; i < argc; i++) {
		int one = check_file(argv[i], &a, files);
		status = one > status ? one : status;
	}
	if (files != NULL)
		status = print_json(files, status);
	int written = finish_output("pcap check");
	return written != EXIT_HELD ? written : status;
}
