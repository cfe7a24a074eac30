#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""bench.py FABEMU [--runs N] [--callgrind] [--no-forwarder] [--only NAME]...

Measures the simulator on the four workloads of configs/bench/ and the wall-clock forwarder, and
prints tables. Speed is in data packet-hops per second of the event loop: one data packet sent on
one link; its ACK's hops come on top and are not counted. Each figure is the median of N runs, since
machines drift; instructions (--callgrind, slow) do not.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "scenario"))
import forwarder  # noqa: E402  (beside this file)
import harness  # noqa: E402

# name: (data packet-hops, required Mhops/s, csg-htsim's khops/s on the same workload with PFC and
# no congestion control, measured on one 2 GHz EPYC core)
WORKLOADS = {
    "incast2": (400000, 3.0, 1111),
    "incast16": (400000, 2.5, 1000),
    "perm64": (2048000, 2.0, 463),
    "a2a64": (974848, 2.0, 209),
}
INSTRUCTIONS_LIMIT = 1100  # per data packet-hop on perm64


def config(name):
    return os.path.join(harness.ROOT, "configs", "bench", name + ".yaml")


def run(exe, name, lcores, tmp):
    out = os.path.join(tmp, name)
    p = harness.fabemu(exe, "run", config(name), "--out", out, "--quiet", "--lcores", str(lcores),
                       timeout=1800)
    if p.returncode != 0:
        harness.die("%s: exit status %d" % (name, p.returncode), p.stdout, p.stderr)
    s = harness.read_summary(out)
    if s["data_hops"] != WORKLOADS[name][0]:
        harness.die("%s: %d data packet-hops, expected %d: not the workload it should be" %
                    (name, s["data_hops"], WORKLOADS[name][0]))
    return s


def speed(s):
    return s["data_hops"] / s["wall_seconds"] / 1e6


def instructions(exe, name, tmp):
    """Instructions per data packet-hop: of the event loop, all that it calls included."""
    out = os.path.join(tmp, "callgrind.out")
    subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=" + out,
                    "--toggle-collect=engine_run", exe, "run", config(name), "--out",
                    os.path.join(tmp, "callgrind"), "--quiet", "--lcores", "1"],
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, timeout=3600, check=True)
    with open(out, encoding="utf-8") as f:
        total = int(re.search(r"^(?:totals|summary): (\d+)", f.read(), re.M).group(1))
    return total / WORKLOADS[name][0]


def bench_simulator(exe, names, runs, callgrind):
    print("%-9s %10s %14s %8s %8s %9s %9s %7s %9s %9s" % (
        "workload", "data hops", "Mhops/s (range)", "required", "htsim x", "makespan", "2 lcores",
        "2/1", "memory", "instr/hop"))
    ok = True
    for name in names:
        hops, required, htsim = WORKLOADS[name]
        with tempfile.TemporaryDirectory(prefix="fabemu-bench-") as tmp:
            one = [run(exe, name, 1, tmp) for _ in range(runs)]
            two = [run(exe, name, 2, tmp) for _ in range(runs)]
            insns = instructions(exe, name, tmp) if callgrind else None
        if len({s["digest"] for s in one + two}) != 1:
            harness.die("%s: digests differ between runs" % name)
        speeds = [speed(s) for s in one]
        median, double = statistics.median(speeds), statistics.median(map(speed, two))
        makespan = max(f["end_ps"] for f in one[0]["flows"]) / 1e6
        peak = max(s["host"]["peak_rss_bytes"] for s in one) / 1e6
        print("%-9s %10d %6.2f (%.1f-%.1f) %8.1f %8.1f %7.1fus %9.2f %7.2f %6.0f MB %9s" % (
            name, hops, median, min(speeds), max(speeds), required, 1000 * median / htsim,
            makespan, double, double / median, peak, "%.0f" % insns if insns else "-"), flush=True)
        ok = ok and median >= required and (insns is None or insns <= INSTRUCTIONS_LIMIT)
    return ok


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[1])
    parser.add_argument("fabemu")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--callgrind", action="store_true",
                        help="also count instructions per data packet-hop (valgrind; slow)")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--no-forwarder", action="store_true")
    which.add_argument("--only-forwarder", action="store_true")
    parser.add_argument("--only", action="append", choices=list(WORKLOADS))
    args = parser.parse_args()
    ok = True
    if not args.only_forwarder:
        ok = bench_simulator(args.fabemu, args.only or WORKLOADS, args.runs, args.callgrind)
        print()
    if not args.no_forwarder:
        ok = forwarder.bench(args.fabemu, args.runs) and ok
    print("%s" % ("All required figures are reached." if ok else
                    "Some required figures are missed on this machine now."))
    return 0


if __name__ == "__main__":
    sys.exit(main())
