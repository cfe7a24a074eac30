/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// What `fabemu doctor` looks at: one table, from which the check, its name for --require, the
// printed line and the JSON come.

#include <stddef.h>

enum doctor_status {
	DOCTOR_OK,
	DOCTOR_LIMITED, // works, with a drawback the detail names
	DOCTOR_MISSING,
};

struct doctor_result {
	enum doctor_status status;
	char detail[160]; // what was found
	char fix[160];    // what brings what is missing; "" when there is nothing to do
};

// X(id, group, what it is good for)
#define DOCTOR_CHECKS(X)                                                             \
	X(cores, "emulation", "processors to run on")                                \
	X(memory, "emulation", "memory available")                                   \
	X(tsc, "emulation", "a time stamp counter that keeps its rate")              \
	X(timer, "emulation", "how late a short sleep ends")                         \
	X(hugepages, "emulation", "2 MiB pages for frame pools")                     \
	X(kvm, "guests", "hardware virtualization that runs a stock kernel")         \
	X(qemu, "guests", "QEMU")                                                    \
	X(guest_kernel, "guests", "kernel and initramfs with rxe for QEMU guests")   \
	X(uml, "guests", "User Mode Linux kernel with rxe: fast guests without KVM") \
	X(guest, "guests", "any way to run `attach: {kind: guest}` hosts")           \
	X(rdma_tools, "guests", "RDMA programs to run in guests")                    \
	X(rxe, "real endpoints", "rdma_rxe for the running kernel")                  \
	X(netns_rxe, "real endpoints", "rxe devices per network namespace")          \
	X(netns, "real endpoints", "permission to make network namespaces")          \
	X(tun, "real endpoints", "tap interfaces")                                   \
	X(af_packet, "real endpoints", "raw access to interfaces")                   \
	X(af_xdp, "real endpoints", "fast raw access to interfaces")                 \
	X(udp4791, "real endpoints", "RoCEv2's UDP port not filtered by a firewall") \
	X(tshark, "optional", "Wireshark's decoder for captures")                    \
	X(dot, "optional", "graphviz, to draw fabrics and deadlocks")

enum doctor_check {
#define X(id, group, what) DOCTOR_##id,
	DOCTOR_CHECKS(X)
#undef X
		DOCTOR_CHECK_COUNT,
};

typedef void doctor_fn(struct doctor_result *r);

#define X(id, group, what) doctor_fn doctor_check_##id;
DOCTOR_CHECKS(X)
#undef X

void doctor_say(struct doctor_result *r, enum doctor_status status, const char *fix,
	const char *fmt, ...) __attribute__((format(printf, 4, 5)));
