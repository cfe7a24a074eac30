/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// How a guest is started: which hypervisor, and its command line.

#include <stdio.h>

#include "emu/scenario/scenario.h"

enum guest_machine { GUEST_KVM, GUEST_UML, GUEST_TCG };

// The machine for `accel` (auto: KVM when it really works, else UML when built, else TCG).
// Returns it, or -errno after a line on `err` that names what is missing.
int guest_choose(const struct scenario *sc, const struct sc_host *h, FILE *err);

struct guest_command {
	char **argv; // NULL-terminated
	unsigned n, cap;
	char **envp;
};

// The command line for a guest whose ports are the vhost-user sockets `<dir>/<host>.<port>.sock`
// and whose job is `<dir>/<host>.job`. Returns 0 or -ENOMEM.
int guest_command_build(struct guest_command *c, enum guest_machine machine,
	const struct scenario *sc, const struct sc_host *h, const char *dir);
void guest_command_free(struct guest_command *c);
