#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs every test in build/ and, with sanitizers, in build-asan/; then the static checks. Prints one
line per failure and, last, `N passed, N failed, N skipped`. Called by tests/run.sh.
"""

import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Instrumented code makes gcc warn about paths that are not there, so warnings are no errors here.
SANITIZED = ["-Db_sanitize=address,undefined", "-Dbuildtype=debugoptimized", "-Doptimization=1",
             "-Db_lundef=false", "-Dwerror=false"]
# A sanitizer's finding ends the process; DPDK and glib keep their own memory to the end.
SANITIZER_ENV = {
    "ASAN_OPTIONS": "abort_on_error=1:detect_leaks=1",
    "UBSAN_OPTIONS": "halt_on_error=1:abort_on_error=1:print_stacktrace=1",
    "LSAN_OPTIONS": "suppressions=" + os.path.join(ROOT, "tests", "lsan.supp"),
    "FABEMU_TEST_TIMEOUT": "900",
}
PASSED, SKIPPED = ("OK", "EXPECTEDFAIL"), ("SKIP",)


class Count:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def add(self, result, name, output=""):
        if result in PASSED:
            self.passed += 1
        elif result in SKIPPED:
            self.skipped += 1
            last = output.strip().splitlines()
            print("skipped: %s: %s" % (name, last[-1] if last else ""))
        else:
            self.failed += 1
            print("FAILED (%s): %s\n%s" % (result, name, output.strip()[-4000:]))


def call(args, **kw):
    return subprocess.run(args, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", check=False, **kw)


def build(directory, options, count):
    if not os.path.exists(os.path.join(ROOT, directory, "build.ninja")):
        p = call(["meson", "setup", directory, *options])
        if p.returncode != 0:
            count.add("FAIL", "meson setup " + directory, p.stdout)
            return False
    p = call(["ninja", "-C", directory])
    count.add("OK" if p.returncode == 0 else "FAIL", "build of " + directory, p.stdout)
    return p.returncode == 0


def meson_tests(directory, count, *args, env=None):
    log = os.path.join(ROOT, directory, "meson-logs", "testlog.json")
    if os.path.exists(log):
        os.remove(log)
    print("running the tests in %s/" % directory, flush=True)
    p = call(["meson", "test", "-C", directory, "--no-rebuild", "--num-processes", "2", *args],
             env={**os.environ, **(env or {})})
    if not os.path.exists(log):
        count.add("FAIL", "meson test in " + directory, p.stdout)
        return
    with open(log, encoding="utf-8") as f:
        for line in f:
            t = json.loads(line)
            output = (t.get("stdout") or "") + (t.get("stderr") or "")
            count.add(t["result"], "%s: %s" % (directory, t["name"]), output)


def sources():
    p = call(["git", "ls-files", "*.c", "*.h"])
    return p.stdout.split()


def static_checks(count):
    p = call(["clang-format", "--dry-run", "-Werror", *sources()])
    count.add("OK" if p.returncode == 0 else "FAIL", "clang-format", p.stdout)
    p = call(["cppcheck", "--quiet", "--error-exitcode=1", "--std=c11", "--inline-suppr", "-j2",
              "--enable=warning,portability", "--suppressions-list=tests/cppcheck.supp", "-I.",
              "--check-level=normal" if "check-level" in call(["cppcheck", "--help"]).stdout
              else "--max-configs=4", *[s for s in sources() if s.endswith(".c")]])
    count.add("OK" if p.returncode == 0 else "FAIL", "cppcheck", p.stdout)


def main():
    count = Count()
    quick = "--quick" in sys.argv[1:]
    meson_tests("build", count)
    if not quick:
        if build("build-asan", SANITIZED, count):
            # Not the guests: they run in real time, which instrumented code cannot keep.
            meson_tests("build-asan", count, "--no-suite", "guest", "-t", "4", env=SANITIZER_ENV)
        static_checks(count)
    print("%d passed, %d failed, %d skipped" % (count.passed, count.failed, count.skipped))
    return 1 if count.failed or not count.passed else 0


if __name__ == "__main__":
    sys.exit(main())
