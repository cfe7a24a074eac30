# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of `fabemu pcap check` share: judging captures given as bytes or paths."""

import json
import os
import sys
import tempfile
import unittest

import harness

sys.path.insert(0, os.path.join(harness.ROOT, "tests"))
import roce_writer as w  # noqa: E402

EXE = sys.argv[1]
CAPTURES = sys.argv[2:]


class Base(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)

    def check(self, data, *args, status=None):
        """Report of a capture given as bytes, or path."""
        path = data
        if isinstance(data, bytes):
            path = os.path.join(self.dir.name, "x.pcap")
            with open(path, "wb") as f:
                f.write(data)
        p = harness.fabemu(EXE, "pcap", "check", "--json", path, *args)
        self.assertIn(p.returncode, (0, 1, 2), p.stderr)
        report = json.loads(p.stdout)
        self.assertEqual(p.returncode, report["exit_status"])
        if status is not None:
            self.assertEqual(p.returncode, status, report["files"][0]["findings"])
        return report["files"][0]

    def judge(self, talk, *want, notes=()):
        """The talk has exactly these violations, as (kind, frame), and at least these notes."""
        r = self.check(w.pcap(talk.frames), status=1 if want else 0)
        found = [(f["kind"], f["frame"]) for f in r["findings"] if f["violation"]]
        self.assertEqual(sorted(found), sorted(want), r["findings"])
        have = [(f["kind"], f["frame"]) for f in r["findings"] if not f["violation"]]
        for n in notes:
            self.assertIn(n, have)
        return r


def exchange(talk, first, last):
    for psn in range(first, last + 1):
        talk.send(psn)
        talk.ack(psn)
