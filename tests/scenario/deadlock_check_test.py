#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""deadlock_check_test.py FABEMU: what `fabemu check` says about deadlocks before a run."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

import harness

EXE = ""
CONFIGS = os.path.join(harness.ROOT, "configs")

LEAF_SPINE = """\
topology: {leaf_spine: {leaves: 2, spines: 2, hosts_per_leaf: 1}}
"""


class DeadlockCheck(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory(prefix="fabemu-check-")
        self.addCleanup(self.tmp.cleanup)

    def path(self, name):
        return os.path.join(self.tmp.name, name)

    def scenario(self, text):
        with open(self.path("s.yaml"), "w", encoding="utf-8") as f:
            f.write(text)
        return self.path("s.yaml")

    def check(self, *args, status=0, env=None):
        p = subprocess.run([EXE, "check", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           text=True, timeout=harness.TIMEOUT, check=False, env=env)
        self.assertEqual(p.returncode, status, p.stderr)
        return p

    def test_a_ring_names_its_cycle(self):
        p = self.check(os.path.join(CONFIGS, "pfc-deadlock.yaml"))
        self.assertIn("deadlock possible", p.stdout)
        self.assertIn("sw1:eth2 pg 3 -> sw2:eth1 pg 3 -> sw3:eth1 pg 3 -> sw4:eth1 pg 3", p.stdout)

    def test_json_holds_the_same(self):
        p = self.check("--json", os.path.join(CONFIGS, "pfc-deadlock.yaml"))
        d = json.loads(p.stdout)["deadlock"]
        self.assertEqual(d["workload"]["verdict"], "possible")
        self.assertFalse(d["any_traffic"]["proven_free"])
        cycle = d["workload"]["cycles"][0]
        self.assertEqual(cycle["length"], 4)
        self.assertEqual([m["port"] for m in cycle["members"]],
                         ["sw1:eth2", "sw2:eth1", "sw3:eth1", "sw4:eth1"])
        self.assertEqual(cycle["members"][0]["waits_at"], "sw1:eth1")
        self.assertIsNone(d["failures"])

    def test_a_clos_is_proven_free_with_any_link_failed(self):
        p = self.check("--json", "--failures", "1", self.scenario(LEAF_SPINE))
        d = json.loads(p.stdout)["deadlock"]
        self.assertTrue(d["any_traffic"]["proven_free"])
        self.assertEqual(d["failures"]["links"], 4)
        self.assertEqual(d["failures"]["any_traffic_free"], 4)
        self.assertEqual(d["failures"]["cases"], [])
        p = self.check("--failures", "1", self.scenario(LEAF_SPINE))
        self.assertIn("any traffic between hosts: proven free of deadlock", p.stdout)

    def test_what_deadlocks_was_said_to_be_possible(self):
        """No scenario of the catalogue deadlocks where the check has proven that none can."""
        folder, found = os.path.join(CONFIGS, "deadlock"), 0
        for name in sorted(os.listdir(folder)):
            if not name.endswith(".yaml"):
                continue
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                deadlocks = "  - deadlock == yes\n" in f.read()
            d = json.loads(self.check("--json", os.path.join(folder, name)).stdout)["deadlock"]
            possible = [c for c in [d] + d["events"] if c["workload"]["verdict"] == "possible"]
            found += deadlocks
            if deadlocks:
                self.assertTrue(possible, name)
            elif name.startswith("d11") or "cure-up-down" in name or "cure-tagger" in name or \
                    "cure-remap" in name or name.startswith("d09"):
                self.assertFalse(possible, name)  # cures that need no luck
        self.assertGreaterEqual(found, 7)

    def test_graph_source_marks_cycles(self):
        dot = self.path("g.dot")
        self.check("--quiet", "--graph", dot, os.path.join(CONFIGS, "pfc-deadlock.yaml"))
        with open(dot, encoding="utf-8") as f:
            text = f.read()
        self.assertTrue(text.startswith("digraph"))
        self.assertEqual(text.count("subgraph cluster_"), 4)
        self.assertEqual(text.count("[color=red penwidth=3]"), 4)

    def test_a_picture_is_made_by_graphviz(self):
        fake = self.path("dot")
        with open(fake, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\n[ \"$1\" = -Tsvg ] && [ \"$2\" = -o ] || exit 1\n"
                    "{ echo '<svg>'; cat; } > \"$3\"\n")
        os.chmod(fake, 0o755)
        env = dict(os.environ, PATH=self.tmp.name + ":/usr/bin:/bin")
        svg = self.path("g.svg")
        self.check("--quiet", "--graph", svg, self.scenario(LEAF_SPINE), env=env)
        with open(svg, encoding="utf-8") as f:
            self.assertTrue(f.read().startswith("<svg>\ndigraph"))

    def test_without_graphviz_the_error_says_what_to_do(self):
        env = dict(os.environ, PATH=self.path("nothing"))
        p = self.check("--quiet", "--graph", self.path("g.svg"), self.scenario(LEAF_SPINE),
                       status=3, env=env)
        self.assertIn("needs Graphviz", p.stderr)
        self.assertEqual(len(p.stderr.splitlines()), 1)

    def test_bad_options_are_bad_usage(self):
        for args in (["--graph", "x.txt"], ["--failures", "2"], ["--failures", "x"]):
            p = self.check(*args, self.scenario(LEAF_SPINE), status=2)
            self.assertIn("expected", p.stderr)


if __name__ == "__main__":
    EXE = sys.argv.pop(1)
    unittest.main()
