#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""determinism_test.py FABEMU CONFIG...: under the virtual clock the digest of a run depends on the
scenario and the seed and on nothing else: not on the number of lcores, not on the run.

That the seed does matter where there is randomness is shown with a link that damages frames.
"""

import os
import sys
import tempfile

import harness

RANDOM = """\
name: random
seed: 1
duration: 200us
switches: [sw1]
hosts: [h1, h2]
defaults:
  link: {corrupt: 1%}
links:
  - [sw1, h1]
  - [sw1, h2]
workloads:
  flow: {src: h1, dst: h2, bytes: 10MB}
expect:
  - drops.lane_error > 0
"""


def run(exe, config, tmp, *args):
    """Digest and the results that must be equal too."""
    out = os.path.join(tmp, "run")
    p = harness.fabemu(exe, "run", config, "--out", out, "--quiet", *args)
    if p.returncode not in (0, 1):
        harness.die("%s %s: exit status %d" % (config, args, p.returncode), p.stdout, p.stderr)
    s = harness.read_summary(out)
    return {k: s[k] for k in ("digest", "emulated_ps", "frames", "drops", "flows", "deadlock",
                              "priority_groups", "ports", "event_log")}


def same(name, a, b, how):
    for key in a:
        if a[key] != b[key]:
            harness.die("%s: %s differs %s" % (name, key, how))


def main(exe, configs):
    with tempfile.TemporaryDirectory(prefix="fabemu-determinism-") as tmp:
        for config in configs:
            if harness.needs_guest(config) or not harness.is_virtual(config):
                continue
            name = os.path.basename(config)
            first = run(exe, config, tmp, "--lcores", "1")
            if int(first["digest"], 16) == 0:
                harness.die("%s: the digest is zero" % name)
            same(name, first, run(exe, config, tmp, "--lcores", "1"), "from run to run")
            same(name, first, run(exe, config, tmp, "--lcores", "2"), "between 1 and 2 lcores")
            print("%s: %s" % (name, first["digest"]))
        config = os.path.join(tmp, "random.yaml")
        with open(config, "w", encoding="utf-8") as f:
            f.write(RANDOM)
        digests = {run(exe, config, tmp, "--seed", str(s))["digest"] for s in (1, 2, 3, 1)}
        if len(digests) != 3:
            harness.die("seeds 1, 2, 3 gave %d different digests" % len(digests))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
