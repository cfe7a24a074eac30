#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Prepares the kernels that `kind: guest` hosts boot, once per machine, into the user's cache:
#
#   <cache>/qemu/vmlinuz, initrd.gz   a stock kernel with rdma_rxe, and busybox + modules
#   <cache>/uml/linux, initrd.gz      a User Mode Linux kernel with rxe built in, and busybox
#
# Nothing is installed on the host: packages are downloaded and unpacked into the cache. Running it
# again does nothing unless --force is given or this script, init or the kernel version changed.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${FABEMU_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/fabemu}

usage() {
	cat <<USAGE
Usage: prepare.sh [--qemu] [--uml] [--force] [--running-kernel] [--kernel FILE --modules DIR]

  --qemu            kernel and initramfs for QEMU guests (default; about 100 MB to download)
  --uml             User Mode Linux kernel, built from Debian's linux-source (about 20 CPU
                    minutes, once): boots in under a second where there is no KVM
  --running-kernel  take /boot/vmlinuz-\$(uname -r) and its modules instead of Debian's package
  --kernel FILE     a kernel image of your own, with --modules DIR (a /lib/modules/VERSION)
  --jobs N          parallel compiler jobs for --uml (default: number of cores)
  --force           do it again even if the cache is up to date

The cache is \$FABEMU_CACHE, else \$XDG_CACHE_HOME/fabemu, else ~/.cache/fabemu (now: $cache).
USAGE
}

die() {
	echo "prepare.sh: $*" >&2
	exit 1
}

# need TOOL PACKAGE: stops with the package that brings the tool.
need() {
	command -v "$1" >/dev/null || die "'$1' is missing: apt-get install $2"
}

# Modules the guest loads, in dependency order of their own kernel; crc32_generic first because
# `rdma link add` fails with ENOENT without a crc32 shash.
modules="crc32_generic crc32_pclmul virtio_pci virtio_mmio virtio_net af_packet 8021q
	9p 9pnet_virtio overlay ib_uverbs rdma_ucm ib_umad rdma_rxe"

# The kernel options rxe, hostfs and vhost-user need on top of UML's defconfig (a tinyconfig panics
# in qdisc_alloc at link-up).
uml_options="UML_PCI_OVER_VIRTIO PCI VIRTIO_UML VIRTIO_NET UML_NET_VECTOR INFINIBAND
	INFINIBAND_USER_ACCESS INFINIBAND_USER_MAD INFINIBAND_ADDR_TRANS RDMA_RXE CRYPTO_CRC32
	CRYPTO_CRC32C CONFIGFS_FS HOSTFS BLK_DEV_INITRD DEVTMPFS TMPFS OVERLAY_FS VLAN_8021Q PACKET
	NET_NS IPV6 HIGH_RES_TIMERS SYSVIPC UNIX INET FUTEX EPOLL TMPFS_XATTR RD_GZIP"

# Downloads a Debian package into the current directory and prints its file name.
fetch_package() {
	need apt-get apt
	apt-get -qq download "$1" 2>/dev/null >&2 || {
		echo "prepare.sh: package lists may be old; running apt-get update" >&2
		apt-get -q update >&2
		apt-get -qq download "$1" >&2 || die "cannot download $1 (is deb.debian.org reachable?)"
	}
	ls -t "${1}"_*.deb | head -n 1
}

# Packs a directory as the initramfs $2, atomically.
pack_initrd() {
	need cpio cpio
	(cd "$1" && find . -print0 | cpio --null --quiet -R 0:0 -o -H newc) | gzip -6 >"$2.new"
	mv "$2.new" "$2"
}

# Directory $1 becomes the root of an initramfs with busybox and our init.
make_root() {
	local busybox
	need busybox busybox-static
	busybox=$(command -v busybox)
	! ldd "$busybox" >/dev/null 2>&1 || die "'busybox' is not static: apt-get install busybox-static"
	mkdir -p "$1"/{bin,proc,sys,dev,run,host,root,rw,modules}
	cp "$busybox" "$1/bin/busybox"
	install -m 755 "$here/init" "$1/init"
}

# Copies the modules needed and what they depend on, uncompressed, with their load order.
# $1: root of the initramfs, $2: directory of modules (.../lib/modules/VERSION)
copy_modules() {
	local root=$1 dir=$2 version base name line file
	need modprobe kmod
	version=$(basename "$dir")
	base=${dir%/lib/modules/*}
	[ -f "$dir/modules.dep.bin" ] || depmod -b "${base:-/}" "$version"
	: >"$root/modules/order"
	for name in $modules; do
		# "insmod /path/x.ko [parameters]" or "builtin x"
		modprobe -d "${base:-/}" -S "$version" --show-depends "$name" 2>/dev/null ||
			case $name in
			rdma_rxe) die "kernel $version has no rdma_rxe (Debian's cloud kernel lacks it)" ;;
			esac
	done | while read -r verb file line; do
		[ "$verb" = insmod ] || continue
		name=$(basename "$file")
		name=${name%.ko*}.ko
		[ ! -e "$root/modules/$name" ] || continue
		case $file in
		*.xz) xz -dc "$file" >"$root/modules/$name" ;;
		*.zst) zstd -qdc "$file" >"$root/modules/$name" ;;
		*.gz) gzip -dc "$file" >"$root/modules/$name" ;;
		*) cp "$file" "$root/modules/$name" ;;
		esac
		echo "$name" >>"$root/modules/order"
	done
	grep -q '^rdma_rxe.ko$' "$root/modules/order" ||
		modprobe -d "${base:-/}" -S "$version" --show-depends rdma_rxe | grep -q builtin ||
		die "kernel $version has no rdma_rxe (Debian's cloud kernel lacks it)"
}

# up_to_date DIR STAMP: true when DIR was made from exactly this.
up_to_date() {
	[ "$force" = no ] && [ -f "$1/stamp" ] && [ "$(cat "$1/stamp")" = "$2" ]
}

scripts_sum() {
	cat "$here/prepare.sh" "$here/init" "$(command -v busybox || echo /dev/null)" | sha256sum |
		cut -c 1-16
}

# Sets `package` to what linux-image-amd64 depends on now.
find_package() {
	need apt-cache apt
	local pattern='s/^ *Depends: \(linux-image-[0-9].*\)$/\1/p'
	package=$(apt-cache depends linux-image-amd64 2>/dev/null | sed -n "$pattern" | head -n 1)
	if [ -z "$package" ]; then
		apt-get -q update >&2
		package=$(apt-cache depends linux-image-amd64 | sed -n "$pattern" | head -n 1)
	fi
	[ -n "$package" ] || die "no package linux-image-amd64 here: use --kernel and --modules"
}

# Kernel and the modules it needs, into the cache.
prepare_qemu_kernel() {
	local out=$1 work image=$kernel dir=$modules_dir
	work=$(mktemp -d "$cache/work.XXXXXX")
	cleanup+=("$work")
	if [ -z "$image" ]; then
		(cd "$work" && dpkg-deb -x "$(fetch_package "$package")" image)
		image=$(ls "$work"/image/boot/vmlinuz-*)
		dir=$(ls -d "$work"/image/lib/modules/*)
	fi
	mkdir -p "$work/new/modules"
	copy_modules "$work/new" "$dir"
	rm -rf "$out/modules"
	mv "$work/new/modules" "$out/modules"
	cp "$image" "$out/vmlinuz.new"
	chmod 644 "$out/vmlinuz.new"
	mv "$out/vmlinuz.new" "$out/vmlinuz"
	echo "kernel $(basename "$dir")"
}

prepare_qemu() {
	local out=$cache/qemu stamp kernel_stamp package= work
	mkdir -p "$out"
	if [ "$running" = yes ]; then
		kernel=/boot/vmlinuz-$(uname -r)
		modules_dir=/lib/modules/$(uname -r)
	fi
	if [ -n "$kernel" ]; then
		[ -r "$kernel" ] || die "cannot read kernel $kernel"
		[ -d "$modules_dir" ] || die "no module directory '$modules_dir' (give --modules)"
		kernel_stamp="$kernel $modules_dir $(stat -c %Y "$kernel")"
	else
		find_package
		kernel_stamp=$package
	fi
	kernel_stamp="$kernel_stamp $(echo "$modules" | sha256sum | cut -c 1-16)"
	stamp="$(scripts_sum) $kernel_stamp"
	if [ "$force" = yes ] || [ ! -f "$out/vmlinuz" ] ||
		[ "$(cat "$out/kernel-stamp" 2>/dev/null)" != "$kernel_stamp" ]; then
		rm -f "$out/stamp" "$out/kernel-stamp"
		prepare_qemu_kernel "$out"
		echo "$kernel_stamp" >"$out/kernel-stamp"
	elif up_to_date "$out" "$stamp" && [ -f "$out/initrd.gz" ]; then
		echo "$out: up to date"
		return
	fi
	work=$(mktemp -d "$cache/work.XXXXXX")
	cleanup+=("$work")
	make_root "$work/root"
	cp -r "$out/modules/." "$work/root/modules/"
	pack_initrd "$work/root" "$out/initrd.gz"
	echo "$stamp" >"$out/stamp"
	echo "$out: ready"
}

build_uml_kernel() {
	local out=$1 work option tarball args=()
	for option in gcc:gcc make:make flex:flex bison:bison bc:bc xz:xz-utils; do
		need "${option%%:*}" "${option##*:}"
	done
	work=$(mktemp -d "$cache/work.XXXXXX")
	cleanup+=("$work")
	(cd "$work" && dpkg-deb -x "$(fetch_package linux-source-6.1)" package && rm -f ./*.deb)
	tarball=$(ls "$work"/package/usr/src/linux-source-*.tar.xz)
	mkdir "$work/src"
	tar -C "$work/src" --strip-components=1 -xf "$tarball"
	cd "$work/src"
	make -s ARCH=um defconfig
	# Hosts with AMX have 11,008 bytes of XSAVE state, which UML 6.1 must save whole (ptrace refuses
	# part of it) but reserves 2,696 for; it lies in thread_info and in signal frames, so stacks grow.
	sed -i 's/DEFINE_LONGS(HOST_FP_SIZE, 2696)/DEFINE_LONGS(HOST_FP_SIZE, 11264)/' \
		arch/x86/um/user-offsets.c
	grep -q 'HOST_FP_SIZE, 11264' arch/x86/um/user-offsets.c ||
		die "UML source has changed: no HOST_FP_SIZE to enlarge"
	for option in $uml_options; do
		args+=(-e "$option")
	done
	./scripts/config "${args[@]}" --set-val KERNEL_STACK_ORDER 4 -d MODULES -d DEBUG_INFO -e DEBUG_INFO_NONE -d DEBUG_KERNEL
	make -s ARCH=um olddefconfig
	for option in RDMA_RXE=y VIRTIO_UML=y VIRTIO_NET=y HOSTFS=y INFINIBAND_USER_ACCESS=y \
		KERNEL_STACK_ORDER=4; do
		grep -q "^CONFIG_$option" .config || die "UML kernel: option $option did not stick"
	done
	make -s ARCH=um -j"$jobs" linux
	strip linux
	mv linux "$out/linux.new"
	mv "$out/linux.new" "$out/linux"
	cd "$here"
}

prepare_uml() {
	local out=$cache/uml stamp kernel_stamp work
	mkdir -p "$out"
	# The kernel depends on the options only; init may change without a rebuild.
	kernel_stamp=$(declare -f build_uml_kernel | cat - <(echo "$uml_options") | sha256sum | cut -c 1-16)
	stamp="$(scripts_sum) $kernel_stamp"
	if [ "$force" = yes ] || [ ! -x "$out/linux" ] ||
		[ "$(cat "$out/kernel-stamp" 2>/dev/null)" != "$kernel_stamp" ]; then
		build_uml_kernel "$out"
		echo "$kernel_stamp" >"$out/kernel-stamp"
	elif up_to_date "$out" "$stamp" && [ -f "$out/initrd.gz" ]; then
		echo "$out: up to date"
		return
	fi
	work=$(mktemp -d "$cache/work.XXXXXX")
	cleanup+=("$work")
	make_root "$work/root"
	pack_initrd "$work/root" "$out/initrd.gz"
	echo "$stamp" >"$out/stamp"
	echo "$out: ready"
}

qemu=no uml=no force=no running=no kernel= modules_dir= jobs=$(nproc) cleanup=()
trap 'rm -rf "${cleanup[@]}"' EXIT
trap 'exit 130' INT TERM
while [ $# -gt 0 ]; do
	case $1 in
	--qemu) qemu=yes ;;
	--uml) uml=yes ;;
	--force) force=yes ;;
	--running-kernel) running=yes ;;
	--kernel) kernel=${2:?--kernel needs a file} && shift ;;
	--modules) modules_dir=${2:?--modules needs a directory} && shift ;;
	--jobs) jobs=${2:?--jobs needs a number} && shift ;;
	-h | --help) usage && exit 0 ;;
	*) usage >&2 && exit 2 ;;
	esac
	shift
done
[ "$uml" = yes ] || qemu=yes
mkdir -p "$cache"
# Two at once would overwrite each other's work; the second waits and finds it done.
exec 9>"$cache/lock.$([ "$uml" = yes ] && echo uml || echo qemu)"
flock 9
[ "$qemu" = no ] || prepare_qemu
[ "$uml" = no ] || prepare_uml
