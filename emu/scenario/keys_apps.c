/* SPDX-License-Identifier: BSD-3-Clause */

// The key table of applications in built-in NICs.

#include "emu/scenario/keys.h"

// clang-format off

static const struct word app_words[] = {
#define X(id, name, port, size, count, help) {name, APP_##id},
	APPS(X)
#undef X
	{NULL, 0}};
static const struct word app_mtus[] = {{"256", 256}, {"512", 512}, {"1024", 1024}, {"2048", 2048},
	{"4096", 4096}, {"nic", 0}, {NULL, 0}};

SECTION(sec_app, "hosts.NAME.apps.APP",
	"An RDMA program in a built-in NIC, connected by rdma_cm: with its like in another, or with the "
	"program it imitates in a real endpoint. Its data is real and checked.",
	ENUM(struct app_in, kind, "type", app_words, NULL,
		"rping, cmatose (ucmatose), udaddy: rdma-core's examples; target and initiator use WRITE, "
		"READ, atomics and SEND", .required = true),
	NODE(struct app_in, peer, "peer", NULL, "host or host:port", "clients: where the server is"),
	NUM(struct app_in, port, "port", Q_COUNT, "auto", 1, 65535,
		"rdma_cm port; auto: the program's own", .word = "auto", .word_value = 0),
	NUM(struct app_in, size, "size", Q_SIZE, "auto", 1, 1 << 30,
		"bytes of a message; auto: the program's own", .word = "auto", .word_value = 0),
	NUM(struct app_in, count, "count", Q_COUNT, "auto", 0, UINT32_MAX - 1,
		"messages or rounds; auto: the program's own", .word = "auto", .word_value = UINT32_MAX),
	NUM(struct app_in, a.connections, "connections", Q_COUNT, "1", 1, APP_CONNECTIONS,
		"servers: at a time"),
	NUM(struct app_in, a.start, "start", Q_TIME, "0", 0, YEAR, "clients: when it connects"),
	INT(struct app_in, dscp, "dscp", "3", 0, 63, "DSCP of its packets"),
	BOOL(struct app_in, a.ipv6, "ipv6", "no", "use the IPv6 addresses"),
	ENUM(struct app_in, mtu, "mtu", app_mtus, "nic", "path MTU; nic: the NIC's"),
	TEXT(struct app_in, interface, "interface", NULL, "which port of its host (default the first)"),
	NUM(struct app_in, a.cm_timeout, "cm_timeout", Q_TIME, "auto", 4 * SIM_US, 1000 * SIM_S,
		"time rdma_cm's messages and acknowledgements may take, rounded up to 4.096 us x 2^n; auto: "
		"rdma_cm's own, 4.3 s and 1 s", .word = "auto", .word_value = 0));
