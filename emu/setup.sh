#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Makes fabemu ready to run on this machine: installs what is missing (Debian, Ubuntu) and builds it
# in build/. Does nothing when all that is done already.
#
#   emu/setup.sh             what a run needs
#   emu/setup.sh --tests     what the tests need as well
set -eu
cd "$(dirname "$0")/.."

packages='build-essential pkg-config meson ninja-build libdpdk-dev libpcap-dev libyaml-dev
libsqlite3-dev libjansson-dev'
if [ "${1-}" = --tests ]; then
	packages="$packages libcmocka-dev xz-utils tshark python3 python3-scapy python3-jsonschema
clang-format cppcheck git iproute2 qemu-system-x86 busybox-static cpio
kmod rdma-core ibverbs-utils perftest rdmacm-utils libibverbs-dev librdmacm-dev"
fi

missing=
for p in $packages; do
	if ! dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed'; then
		missing="$missing $p"
	fi
done
if [ -n "$missing" ]; then
	if ! command -v apt-get >/dev/null; then
		echo "emu/setup.sh: this is not Debian or Ubuntu; install the equivalents of:$missing" >&2
		exit 1
	fi
	as_root=
	if [ "$(id -u)" != 0 ]; then
		if ! command -v sudo >/dev/null; then
			echo "emu/setup.sh: needs root to install; run: apt-get install$missing" >&2
			exit 1
		fi
		as_root=sudo
	fi
	echo "installing:$missing"
	export DEBIAN_FRONTEND=noninteractive
	$as_root apt-get update -qq
	# shellcheck disable=SC2086 # a list of names
	$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
		$missing >/dev/null
fi

if [ ! -f build/build.ninja ]; then
	meson setup build >build.log 2>&1 || { cat build.log >&2; exit 1; }
	rm -f build.log
fi
ninja -C build --quiet
