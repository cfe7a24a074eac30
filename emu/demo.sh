#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Reproduces a PFC deadlock: three switches in a ring, each flow crossing two of its links. Prints the
# ring and leaves the capture, annotated frame by frame, in demo/.
set -eu
cd "$(dirname "$0")/.."
emu/setup.sh
build/emu/fabemu run configs/pfc-deadlock.yaml --out demo "$@"
