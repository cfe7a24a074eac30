/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// What this machine can do for real endpoints: asked by `kind: guest` to choose, and by doctor.

#include <stdbool.h>
#include <stddef.h>

// The cache that guest/prepare.sh fills: $FABEMU_CACHE, $XDG_CACHE_HOME/fabemu, ~/.cache/fabemu.
void probe_cache_path(char *path, size_t len, const char *file);
// A file of the guest folder (prepare.sh, session): $FABEMU_GUEST_DIR, else where it was installed,
// else the source tree. False when it is nowhere.
bool probe_guest_file(char *path, size_t len, const char *file);
// Full path of a program in $PATH (and the sbin folders); false when it is not there.
bool probe_program(const char *name, char *path, size_t len);

bool probe_qemu(char *path, size_t len);
bool probe_qemu_kernel(void); // vmlinuz and initrd.gz are in the cache
bool probe_uml_kernel(void);  // likewise for User Mode Linux

enum probe_kvm {
	KVM_ABSENT,        // no /dev/kvm
	KVM_NO_PERMISSION, // may not open it
	KVM_UNTESTED,      // present; no QEMU or kernel to try it with
	KVM_BROKEN,        // present, but a stock kernel does not boot with it
	KVM_WORKS,
};

// Boots the prepared kernel with KVM for up to a few seconds if need be; the answer is remembered
// in the cache until the next boot.
enum probe_kvm probe_kvm(void);
// Boots the User Mode Linux kernel as far as its init: does this CPU and kernel suit it?
bool probe_uml_works(void);

// Whether rxe devices work per network namespace on the running kernel (Linux 7.1 and later): makes
// a namespace with a veth pair and tries.
bool probe_netns_rxe(void);
