#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""cli_test.py FABEMU: what a user meets at the command line: exit statuses, one-line errors, signals,
disks that are full.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import harness

EXE = ""

LONG = """\
name: long
duration: 1000s
switches: [sw1]
hosts: [h1, h2, h3]
links:
  - [sw1, h1]
  - [sw1, h2]
  - [sw1, h3]
workloads:
  load: {type: incast, src: [h1, h2], dst: h3, bytes: 1MB, messages: endless}
captures:
  - {file: out.pcapng, snaplen: 128B, max_size: 20MB}
expect:
  - deadlock == no
"""

SHORT = """\
name: short
switches: [sw1]
hosts: [h1, h2]
links:
  - [sw1, h1]
  - [sw1, h2]
workloads:
  one: {src: h1, dst: h2, bytes: 64KB}
"""


class Cli(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory(prefix="fabemu-cli-")
        self.addCleanup(self.tmp.cleanup)
        self.out = os.path.join(self.tmp.name, "run")

    def scenario(self, text, name="s.yaml"):
        path = os.path.join(self.tmp.name, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def run_text(self, text, *args):
        return harness.fabemu(EXE, "run", self.scenario(text), "--out", self.out, *args)

    def assert_usage(self, p, *says):
        """Bad usage: status 2, nothing on standard output, a short text on standard error."""
        self.assertEqual(p.returncode, 2, p.stderr)
        self.assertEqual(p.stdout, "")
        self.assertTrue(p.stderr.strip())
        self.assertLessEqual(len(p.stderr.splitlines()), 3, p.stderr)
        for s in says:
            self.assertIn(s, p.stderr)

    # ---- usage

    def test_bad_usage_is_status_2(self):
        self.assertEqual(harness.fabemu(EXE).returncode, 2)
        self.assert_usage(harness.fabemu(EXE, "frobnicate"), "frobnicate")
        self.assert_usage(harness.fabemu(EXE, "run"))
        self.assert_usage(harness.fabemu(EXE, "run", "--frobnicate"), "frobnicate")
        self.assert_usage(harness.fabemu(EXE, "run", "a.yaml", "b.yaml"))
        self.assert_usage(harness.fabemu(EXE, "check"))

    def test_missing_scenario_is_named(self):
        self.assert_usage(harness.fabemu(EXE, "run", "/nonexistent.yaml"), "/nonexistent.yaml")
        self.assert_usage(harness.fabemu(EXE, "check", "/nonexistent.yaml"), "/nonexistent.yaml")

    def test_help_and_version_are_status_0(self):
        for args in (["--help"], ["help"], ["version"], ["--version"], ["run", "--help"],
                     ["check", "--help"], ["doctor", "--help"], ["help", "scenario"],
                     ["help", "run"]):
            p = harness.fabemu(EXE, *args)
            self.assertEqual(p.returncode, 0, args)
            self.assertTrue(p.stdout.strip(), args)
            self.assertEqual(p.stderr, "", args)

    def test_malformed_scenario_has_file_line_and_key_and_runs_nothing(self):
        p = self.run_text("name: x\nswitchez: [sw1]\n")
        self.assert_usage(p, "s.yaml:2", "switchez")
        self.assertFalse(os.path.exists(self.out))

    def test_expectation_that_names_nothing_is_found_before_the_run(self):
        p = self.run_text(SHORT + "expect:\n  - flow.two.fct < 1ms\n")
        self.assert_usage(p, "s.yaml:10", "flow.two.fct", "'two'")
        self.assertFalse(os.path.exists(self.out))

    def test_bad_values_of_options_are_status_2(self):
        path = self.scenario(SHORT)
        for args in (["--lcores", "0"], ["--lcores", "many"], ["--seed", "x"],
                     ["--duration", "5 bananas"], ["--clock", "sundial"], ["--set", "nonsense=1"],
                     ["--set", "novalue"]):
            p = harness.fabemu(EXE, "run", path, "--out", self.out, *args)
            self.assertEqual(p.returncode, 2, (args, p.stdout, p.stderr))
            self.assertTrue(p.stderr.strip(), args)

    def test_unwritable_output_directory_is_status_2(self):
        p = harness.fabemu(EXE, "run", self.scenario(SHORT), "--out", "/proc/nowhere/run")
        self.assert_usage(p, "/proc/nowhere/run")

    # ---- verdicts

    def test_expectations_decide_between_0_and_1(self):
        p = self.run_text(SHORT + "expect:\n  - flow.one.complete == yes\n")
        self.assertEqual(p.returncode, 0, p.stderr)
        p = self.run_text(SHORT + "expect:\n  - flow.one.fct < 1ns\n", "--quiet")
        self.assertEqual(p.returncode, 1, p.stderr)
        self.assertIn("FAILED flow.one.fct: expected < 1 ns", p.stdout)
        s = harness.read_summary(self.out)
        self.assertEqual((s["verdict"], s["exit_status"]), ("expectation_failed", 1))

    def test_json_is_the_summary_and_nothing_else(self):
        p = self.run_text(SHORT, "--json")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(json.loads(p.stdout), harness.read_summary(self.out))
        self.assertEqual(harness.schema_errors(json.loads(p.stdout)), [])

    def test_options_override_the_scenario(self):
        p = self.run_text(SHORT, "--quiet", "--seed", "9", "--duration", "3us", "--set",
                          "workloads.one.bytes=1MB")
        self.assertEqual(p.returncode, 0, p.stderr)
        s = harness.read_summary(self.out)
        self.assertEqual(s["scenario"]["seed"], 9)
        self.assertEqual(s["duration_ps"], 3000000)
        self.assertLessEqual(s["emulated_ps"], 3000000)
        self.assertEqual(s["flows"][0]["bytes"], 1000000)

    def test_no_colour_and_no_progress_when_not_on_a_terminal(self):
        p = self.run_text(SHORT)
        self.assertNotIn("\033", p.stdout)
        self.assertEqual(p.stderr, "")

    def test_check_needs_no_engine(self):
        p = harness.fabemu(EXE, "check", self.scenario(SHORT))
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn("sw1", p.stdout)

    def test_check_tells_load_balancing_and_loss_recovery(self):
        text = SHORT + """\
defaults:
  switch: {load_balancing: flowlet, flowlet_gap: 20us}
  nic: {recovery: selective-repeat, ooo: 8, ooo_time: 3us, bdp_cap: 64KB, rto_low: 30us, rto_high: 90us}
"""
        p = harness.fabemu(EXE, "check", self.scenario(text))
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn("load balancing flowlet gap 20us", p.stdout)
        self.assertIn("selective-repeat rto 30us..90us bdp cap 64KB ooo 8 for 3us", p.stdout)
        p = harness.fabemu(EXE, "check", "--json", self.scenario(text))
        nic = json.loads(p.stdout)["hosts"][0]["nic"]
        self.assertEqual(nic["recovery"], "selective-repeat")
        self.assertEqual((nic["ooo"], nic["bdp_cap"]), (8, 64000))
        self.assertEqual((nic["rto_low_ps"], nic["rto_high_ps"]), (30000000, 90000000))
        self.assertEqual(json.loads(p.stdout)["switches"][0]["flowlet_gap_ps"], 20000000)

    # ---- signals and full disks

    def interrupt(self, sig):
        p = subprocess.Popen([EXE, "run", self.scenario(LONG), "--out", self.out, "--quiet"],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
        capture = os.path.join(self.out, "out.pcapng")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and p.poll() is None:
            if os.path.exists(capture) and os.path.getsize(capture) > 100000:
                break
            time.sleep(0.05)
        self.assertIsNone(p.poll(), "ended before it could be interrupted")
        p.send_signal(sig)
        try:
            out, err = p.communicate(timeout=60)
        finally:
            p.kill()
        self.assertEqual(p.returncode, 0, out + err)
        s = harness.read_summary(self.out)
        self.assertEqual(harness.schema_errors(s), [])
        self.assertEqual(harness.conservation_errors(s), [])
        self.assertEqual(s["interrupted"], sig.name)
        self.assertEqual(harness.capture_errors(capture), [])

    def test_sigint_ends_a_run_cleanly(self):
        self.interrupt(signal.SIGINT)

    def test_sigterm_ends_a_run_cleanly(self):
        self.interrupt(signal.SIGTERM)

    def test_capture_on_a_full_disk_fails_the_run_but_not_its_results(self):
        p = self.run_text(SHORT, "--quiet", "--pcap", "/dev/full")
        self.assertEqual(p.returncode, 3, p.stdout + p.stderr)
        self.assertIn("No space left on device", p.stdout + p.stderr)
        s = harness.read_summary(self.out)
        self.assertEqual(harness.schema_errors(s), [])
        self.assertEqual(s["verdict"], "run_failed")
        self.assertIn("No space left", s["captures"][0]["error"])
        self.assertEqual(s["flows"][0]["state"], "completed")

    def test_results_on_a_full_disk_fail_the_run(self):
        os.mkdir(self.out)
        os.symlink("/dev/full", os.path.join(self.out, ".summary.json.tmp"))
        p = self.run_text(SHORT, "--quiet")
        self.assertEqual(p.returncode, 3, p.stdout + p.stderr)
        self.assertIn("No space left on device", p.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.out, "summary.json")))

    def test_standard_output_on_a_full_disk_fails_the_run(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            p = subprocess.run([EXE, "run", self.scenario(SHORT), "--out", self.out],
                               stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE,
                               text=True, timeout=harness.TIMEOUT, check=False)
        self.assertEqual(p.returncode, 3, p.stderr)


if __name__ == "__main__":
    EXE = sys.argv.pop(1)
    unittest.main(verbosity=2)
