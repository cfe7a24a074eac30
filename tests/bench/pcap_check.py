#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""pcap_check.py FABEMU [--megabytes N] [--runs N]: how fast `fabemu pcap check` reads.

Makes captures of an incast with payloads of 1,024 and 4,096 bytes, brings them into the page cache,
and checks each with and without ICRCs. Prints medians of the runs: gigabytes of file and millions
of frames a second, gigabytes a second of processor time (what a busy machine takes away does not
count there), peak memory.
"""

import argparse
import os
import re
import statistics
import subprocess
import tempfile
import time

SCENARIO = """\
defaults:
  link: {rate: 100Gbps, length: 5m}
  qos: {pfc_enable: [3]}
  nic: {mtu: %d}
topology:
  star: {hosts: 3}
workloads:
  in: {type: incast, dst: h3, bytes: %dMB}
captures:
  - {file: big.pcapng}
"""


def make(exe, directory, mtu, megabytes):
    # each packet is captured at four interfaces: two links, both ends
    scenario = os.path.join(directory, "s.yaml")
    with open(scenario, "w", encoding="utf-8") as f:
        f.write(SCENARIO % (mtu, max(1, megabytes // 8)))
    out = os.path.join(directory, str(mtu))
    subprocess.run([exe, "run", scenario, "--out", out, "--quiet"], check=True,
                   stdout=subprocess.DEVNULL)
    return os.path.join(out, "big.pcapng")


def once(exe, path, *args):
    """Seconds, processor seconds, peak memory in bytes, frames."""
    start = time.monotonic()
    p = subprocess.Popen([exe, "pcap", "check", path, *args], stdout=subprocess.PIPE, text=True)
    text = p.stdout.read()
    _, status, usage = os.wait4(p.pid, 0)
    seconds = time.monotonic() - start
    if status != 0:
        raise SystemExit("%s: status %d\n%s" % (path, status, text))
    frames = int(re.search(r"in ([\d,]+) frames", text).group(1).replace(",", ""))
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, frames


def main():
    a = argparse.ArgumentParser()
    a.add_argument("fabemu")
    a.add_argument("--megabytes", type=int, default=1500)
    a.add_argument("--runs", type=int, default=5)
    args = a.parse_args()
    print("%-8s %-14s %8s %8s %10s %12s %9s" % (
        "payload", "", "file", "GB/s", "M frames/s", "GB/s of CPU", "memory"))
    with tempfile.TemporaryDirectory() as directory:
        for mtu in (1024, 4096):
            path = make(args.fabemu, directory, mtu, args.megabytes)
            size = os.path.getsize(path)
            with open(path, "rb") as f:
                while f.read(1 << 20):
                    pass
            for name, flags in (("--no-payload", ["--no-payload"]), ("with ICRCs", [])):
                runs = [once(args.fabemu, path, *flags) for _ in range(args.runs)]
                seconds = statistics.median(r[0] for r in runs)
                cpu = statistics.median(r[1] for r in runs)
                print("%-8d %-14s %5.2f GB %8.2f %10.2f %12.2f %6.1f MB" % (
                    mtu, name, size / 1e9, size / seconds / 1e9, runs[0][3] / seconds / 1e6,
                    size / cpu / 1e9, max(r[2] for r in runs) / 1e6))
            os.unlink(path)


if __name__ == "__main__":
    main()
