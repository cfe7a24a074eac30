#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""deadlock_check.py FABEMU: time and memory of the static deadlock check of a fat tree of 1,024 hosts
with each link failing in turn.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time

SCENARIO = "topology: {fat_tree: {k: 16}}\n"
SECONDS_MAX = 60  # of processor time: the machine may be busy with other things
BYTES_MAX = 2 << 30


def main(exe):
    with tempfile.TemporaryDirectory(prefix="fabemu-bench-") as tmp:
        path = os.path.join(tmp, "s.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(SCENARIO)
        start = time.monotonic()
        p = subprocess.run([exe, "check", "--json", "--failures", "1", path],
                           stdout=subprocess.PIPE, check=True)
        wall = time.monotonic() - start
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    d = json.loads(p.stdout)["deadlock"]
    seconds, size = used.ru_utime + used.ru_stime, used.ru_maxrss * 1024
    print("1,024 hosts, %d link failures: %.1f s of processor time, %.1f s in all, %.0f MB" %
          (d["failures"]["links"], seconds, wall, size / 1e6))
    free = d["failures"]["any_traffic_free"]
    if not d["any_traffic"]["proven_free"] or free != 2048:
        sys.exit("proven free in %d of 2048 failures" % free)
    if seconds > SECONDS_MAX or size > BYTES_MAX:
        sys.exit("expected at most %d s and %d bytes" % (SECONDS_MAX, BYTES_MAX))


if __name__ == "__main__":
    main(sys.argv[1])
