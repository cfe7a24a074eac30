/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// What every node that takes in frames of others makes of the parser's answers.

#include <stdbool.h>

#include "emu/core/drop.h"
#include "pcap/codec.h"

// Why a frame that the parser refused is dropped; `err` is not PKT_OK.
static inline enum drop_reason parse_drop_reason(enum pkt_error err)
{
	switch (err) {
#define X(id, drop)        \
	case PKT_ERR_##id: \
		return DROP_##drop;
		PKT_ERRORS(X)
#undef X
	case PKT_OK:
		break;
	}
	return DROP_MALFORMED_ETH;
}

// Neighbour discovery, router solicitation to redirect (RFC 4861 section 4), of whose frame `have`
// bytes are present.
static inline bool is_neighbour_discovery(const struct pkt *p, uint32_t have)
{
	enum { ND_FIRST = 133, ND_LAST = 137 };

	return p->ip_version == 6 && p->proto == IP_PROTO_ICMPV6 && p->l4_off != 0 &&
	       p->l4_off < have && p->data[p->l4_off] >= ND_FIRST && p->data[p->l4_off] <= ND_LAST;
}
