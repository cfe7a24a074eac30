#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""scenario_test.py FABEMU CONFIG: a scenario of configs/ keeps what its own `expect:` promises.

Its results must follow the documented schema, balance, and its captures must hold only valid
frames.
"""

import os
import sys
import tempfile

import harness


def main(exe, config):
    if harness.needs_guest(config):
        print("boots guests: see tests/guest")
        return harness.SKIP
    with open(config, encoding="utf-8") as f:
        if not any(line.startswith("expect:") for line in f):
            harness.die("%s: has no expect: section, so it could not fail" % config)
    with tempfile.TemporaryDirectory(prefix="fabemu-scenario-") as tmp:
        out = os.path.join(tmp, "run")
        p = harness.fabemu(exe, "run", config, "--out", out, "--quiet")
        if p.returncode != 0:
            harness.die("exit status %d" % p.returncode, p.stdout, p.stderr)
        if p.stderr:
            harness.die("wrote to standard error: " + p.stderr)
        summary = harness.read_summary(out)
        errors = harness.schema_errors(summary) + harness.conservation_errors(summary)
        if summary["verdict"] != "held" or summary["exit_status"] != 0:
            errors.append("summary.json says %s" % summary["verdict"])
        if not summary["expectations"]:
            errors.append("no expectation was judged")
        for capture in harness.capture_files(summary, out):
            errors += harness.capture_errors(capture)
        if errors:
            harness.die(*errors)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
