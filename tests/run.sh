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
exec python3 tests/run_all.py "$@"
