/* SPDX-License-Identifier: BSD-3-Clause */
// Names of what the verbs call things: one table each, values as in libibverbs' verbs.h.
#include "models/verbs.h"

#include <stddef.h>

const char *wc_status_name(enum wc_status status)
{
	switch (status) {
#define X(id, value, name, help) \
	case WC_##id:            \
		return name;
		WC_STATUSES(X)
#undef X
	}
	return NULL;
}

const char *wc_status_help(enum wc_status status)
{
	switch (status) {
#define X(id, value, name, help) \
	case WC_##id:            \
		return help;
		WC_STATUSES(X)
#undef X
	}
	return NULL;
}

const char *wr_op_word(enum wr_op op)
{
	static const char *const words[WR_OP_COUNT] = {
#define X(id, name) [WR_##id] = #id,
		WR_OPS(X)
#undef X
	};

	return op < WR_OP_COUNT ? words[op] : NULL;
}

const char *qp_transport_name(enum qp_transport t)
{
	static const char *const names[] = {[QP_RC] = "RC", [QP_UC] = "UC", [QP_UD] = "UD"};

	return t <= QP_UD ? names[t] : NULL;
}

const char *wr_op_name(enum wr_op op)
{
	static const char *const names[WR_OP_COUNT] = {
#define X(id, name) [WR_##id] = name,
		WR_OPS(X)
#undef X
	};

	return op < WR_OP_COUNT ? names[op] : NULL;
}
