/* SPDX-License-Identifier: BSD-3-Clause */
// The list of findings: all are counted, as many kept with their text as the options allow. And the
// names of all that the checker counts.
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "pcap/check_priv.h"

static const struct {
	const char *name, *help;
	bool violation;
} kinds[] = {
#define X(id, name, violation, help) {name, help, violation},
	CHECK_FINDINGS(X)
#undef X
};

const char *check_kind_name(enum check_kind kind)
{
	return kinds[kind].name;
}

const char *check_kind_help(enum check_kind kind)
{
	return kinds[kind].help;
}

bool check_is_violation(enum check_kind kind)
{
	return kinds[kind].violation;
}

const char *check_cause_name(enum check_cause cause)
{
	static const char *const names[] = {
#define X(id, name) name,
		CHECK_CAUSES(X)
#undef X
	};

	return names[cause];
}

const char *check_message_name(enum check_message m)
{
	static const char *const names[] = {"send", "write", "read", "atomic"};

	return names[m];
}

const char *check_pairing_name(enum check_pairing p)
{
	static const char *const names[] = {"none", "ambiguous", "psn", "cm"};

	return names[p];
}

// One more finding, NULL when enough are kept.
static struct check_finding *keep(struct check *c)
{
	if (c->r.n_findings == c->opt.findings_max)
		return NULL;
	if (c->r.n_findings == c->cap_findings) {
		uint32_t cap = c->cap_findings != 0 ? 2 * c->cap_findings : 64;
		struct check_finding *more = realloc(c->findings, cap * sizeof(*more));
		if (more == NULL) {
			c->out_of_memory = true;
			return NULL;
		}
		c->findings = more;
		c->cap_findings = cap;
	}
	return &c->findings[c->r.n_findings++];
}

void check_found(struct check *c, enum check_kind kind, uint32_t tap, struct flow *flow,
	uint64_t frame, int64_t time_ns, const char *format, ...)
{
	va_list ap;

	c->r.counts[kind]++;
	if (kinds[kind].violation) {
		c->r.violations++;
		c->taps[tap].violations++;
		if (flow != NULL)
			doubt_note(flow, kind);
	}
	// Notes must not crowd out violations: they get half of the room.
	if (!kinds[kind].violation && c->r.n_findings >= c->opt.findings_max / 2)
		return;
	struct check_finding *f = keep(c);
	if (f == NULL)
		return;
	*f = (struct check_finding){.kind = kind,
		.tap = tap,
		.flow = flow != NULL ? flow->index : CHECK_NO_FLOW,
		.frame = frame,
		.time_ns = time_ns};
	va_start(ap, format);
	vsnprintf(f->text, sizeof(f->text), format, ap);
	va_end(ap);
}

void check_sample(struct check *c, struct histogram **h, int64_t ns)
{
	if (*h == NULL)
		*h = calloc(1, sizeof(**h));
	if (*h == NULL)
		c->out_of_memory = true;
	else
		histogram_add(*h, ns > 0 ? (uint64_t)ns : 0);
}

void check_address(char *out, size_t bytes, const uint8_t *address, unsigned addr_bytes)
{
	if (inet_ntop(addr_bytes == 4 ? AF_INET : AF_INET6, address, out, (socklen_t)bytes) == NULL)
		snprintf(out, bytes, "?");
}
