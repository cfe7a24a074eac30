# SPDX-License-Identifier: BSD-3-Clause
"""What the scenario, command line and bench tests share: running fabemu, reading its results."""

import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCHEMA = os.path.join(ROOT, "emu", "report", "summary.schema.json")
CHECK_CAPTURE = os.path.join(ROOT, "tests", "check_capture.py")
SKIP = 77  # meson: the test was skipped

# An address-sanitizer build is several times slower than the optimised one.
TIMEOUT = float(os.environ.get("FABEMU_TEST_TIMEOUT", "240"))


def fabemu(exe, *args, timeout=TIMEOUT, **kw):
    """Runs fabemu to its end; returns the CompletedProcess with text output."""
    return subprocess.run([exe, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=timeout, check=False, **kw)


def read_summary(directory):
    with open(os.path.join(directory, "summary.json"), encoding="utf-8") as f:
        return json.load(f)


def schema_errors(summary):
    """Where a summary departs from the documented schema: a list of texts."""
    import jsonschema

    with open(SCHEMA, encoding="utf-8") as f:
        validator = jsonschema.Draft7Validator(json.load(f))
    return ["%s: %s" % ("/".join(map(str, e.absolute_path)), e.message)
            for e in validator.iter_errors(summary)]


def conservation_errors(summary):
    """Facts that hold in every summary, recomputed from it."""
    errors = []
    frames, drops = summary["frames"], summary["drops"]
    ended = sum(frames[k] for k in ("delivered", "consumed", "dropped", "inside"))
    if frames["created"] != ended:
        errors.append("%d frames created, %d accounted for" % (frames["created"], ended))
    if sum(n for reason, n in drops.items() if reason != "total") != drops["total"]:
        errors.append("drops by reason do not add up to the total")
    if frames["dropped"] != drops["total"]:
        errors.append("%d frames dropped, %d by reason" % (frames["dropped"], drops["total"]))
    for i in summary["invariants"]:
        if not i["ok"]:
            errors.append("invariant %s: %s" % (i["name"], i["text"]))
    if summary["deadlock"]["found"] != bool(summary["deadlock"]["cycles"]):
        errors.append("deadlock.found contradicts deadlock.cycles")
    return errors


def capture_files(summary, directory):
    for c in summary["captures"]:
        if c["error"] is None and c["file"]:
            yield os.path.join(directory, c["file"])


def capture_errors(path):
    """What the independent checker finds wrong with a capture."""
    p = subprocess.run(["/usr/bin/python3", CHECK_CAPTURE, path], stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT, check=False)
    return [] if p.returncode == 0 else ["%s: %s" % (path, p.stdout.strip())]


def needs_guest(config):
    """Scenarios with guests need QEMU or UML and a kernel: tests/guest runs those."""
    with open(config, encoding="utf-8") as f:
        return any(line.split("#")[0].split(":", 1)[-1].strip().rstrip("}").strip() == "guest"
                   or "kind: guest" in line.split("#")[0] for line in f)


def is_virtual(config):
    with open(config, encoding="utf-8") as f:
        return not any(line.split("#")[0].replace(" ", "").startswith("clock:wall") for line in f)


def die(*messages):
    for m in messages:
        print(m, file=sys.stderr)
    sys.exit(1)
