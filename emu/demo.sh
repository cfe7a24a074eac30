#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Reproduces a PFC deadlock: four greedy flows around a ring of four switches. Prints the
# ring and leaves the capture, annotated frame by frame, in demo/.
set -eu
cd "$(dirname "$0")/.."
emu/setup.sh
build/emu/fabemu run configs/pfc-deadlock.yaml --out demo --pcap demo/deadlock.pcapng "$@"
