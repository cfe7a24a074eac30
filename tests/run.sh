#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Installs what the tests need, builds, and runs them all: unit and scenario tests, the same under
# AddressSanitizer and UndefinedBehaviorSanitizer, clang-format and cppcheck. The last line counts.
#
#   tests/run.sh            everything
#   tests/run.sh --quick    without sanitizers and static checks
set -eu
cd "$(dirname "$0")/.."
emu/setup.sh --tests
# Kernel and initramfs of the guests; without them their tests say so and are skipped.
emu/attach/guest/prepare.sh --qemu >/dev/null || echo 'tests/run.sh: no guests will be tested' >&2
exec python3 tests/run_all.py "$@"
