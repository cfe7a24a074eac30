/* SPDX-License-Identifier: BSD-3-Clause */
// DCQCN's notification point (SIGCOMM 2015, section 3.1): on a packet with CE it sends a CNP to the
// queue pair it came from, unless the last one was less than min_time_between_cnps (N) ago. "The
// last one" is that of the same queue pair, of the same source address, or of the whole port.
//
// Scope `ip` keeps the addresses in sets of four ways by hash. One whose time is over is as good as
// none, so only addresses that were answered within N take room; when more than four such meet in a
// set the one whose time is over first gives way, and its next CNP may come early. With 1024 ways
// and N of some microseconds that needs thousands of senders at once.
//
// Invariant: with scopes `qp` and `port`, two CNPs of one scope are never closer than N.

#include "models/np.h"

#include <string.h>

#include "emu/core/rng.h"

const char *np_scope_name(enum np_scope scope)
{
	static const char *const words[] = {
#define X(id, word, help) word,
		NP_SCOPES(X)
#undef X
	};

	return words[scope];
}

void np_init(struct np *np, const struct np_params *params)
{
	memset(np, 0, sizeof(*np));
	np->params = *params;
}

static struct np_clock *clock_of_ip(struct np *np, const uint8_t ip[16])
{
	uint64_t a, b;

	memcpy(&a, ip, 8);
	memcpy(&b, ip + 8, 8);
	struct np_ip_clock *set = np->ips[mix64(a ^ mix64(b)) % NP_IP_SETS], *oldest = set;

	for (unsigned i = 0; i < NP_IP_WAYS; i++) {
		if (memcmp(set[i].ip, ip, sizeof(set[i].ip)) == 0)
			return &set[i].clock;
		if (set[i].clock.next < oldest->clock.next)
			oldest = &set[i];
	}
	memcpy(oldest->ip, ip, sizeof(oldest->ip));
	oldest->clock.next = 0;
	return &oldest->clock;
}

bool np_ce(struct np *np, struct np_clock *qp, const uint8_t ip[16], simtime_t now)
{
	struct np_clock *c = qp;

	if (!np->params.enable)
		return false;
	if (np->params.scope == NP_SCOPE_IP)
		c = clock_of_ip(np, ip);
	else if (np->params.scope == NP_SCOPE_PORT)
		c = &np->port;
	if (now < c->next)
		return false;
	c->next = now + np->params.min_time_between_cnps;
	return true;
}
