/* SPDX-License-Identifier: BSD-3-Clause */
// The table of congestion control algorithms, and what they have in common: a rate between 1 b/s
// and the line's, and the lowest it ever was. `none` is the absence of all: line rate, no window,
// no event that means anything to it.

#include "models/cc.h"

#include <string.h>

static void none_init(struct cc *cc, simtime_t now)
{
}

static const struct cc_ops none_ops = {.init = none_init};

static const struct cc_ops *const ops_of[CC_ALGORITHM_COUNT] = {
#define X(id, name, word, help) [CC_##id] = &name##_ops,
	CC_ALGORITHMS(X)
#undef X
};

static const char *const words[CC_ALGORITHM_COUNT] = {
#define X(id, name, word, help) word,
	CC_ALGORITHMS(X)
#undef X
};

const struct cc_ops *cc_ops_of(enum cc_algorithm a)
{
	return ops_of[a];
}

const char *cc_name(enum cc_algorithm a)
{
	return words[a];
}

enum cc_algorithm cc_by_name(const char *name)
{
	unsigned a = 0;

	while (a < CC_ALGORITHM_COUNT && strcmp(words[a], name) != 0)
		a++;
	return (enum cc_algorithm)a;
}

void cc_init(struct cc *cc, const struct cc_params *params, uint64_t line_bps, uint32_t payload,
	simtime_t now)
{
	memset(cc, 0, sizeof(*cc));
	cc->payload = payload;
	cc->params = params;
	cc->ops = ops_of[params->algorithm];
	cc->line_bps = cc->rate_bps = cc->min_rate_bps = line_bps;
	cc->deadline = SIMTIME_NEVER;
	cc->ops->init(cc, now);
}

void cc_set_rate(struct cc *cc, uint64_t bps)
{
	cc->rate_bps = bps < 1 ? 1 : bps > cc->line_bps ? cc->line_bps : bps;
	if (cc->rate_bps < cc->min_rate_bps)
		cc->min_rate_bps = cc->rate_bps;
}
