#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""watchdog_test.py FABEMU: the PFC watchdog in a fabric, to the poll. Numbers in the tests' names are
rows of the list of situations that people reported."""

import os
import sys
import tempfile
import unittest

import harness

EXE = ""
US = 1000000  # ps
MS = 1000 * US

# h1 is stormed from 1 ms on, h3 sends to it, h4 to h2. XOFFs are refreshed at half the life of 65535
# quanta of 5.12 ns: every 167.77 us, so a poll of 200 us always sees one.
STORM = """\
name: storm
duration: %(duration)s
defaults:
  link: {rate: 100Gbps, length: 10m}
  switch: {buffer: 2MB}
  nic: {timeout: 8}
  qos:
    pfc_enable: [3, 4]
    pfc_wd: {poll_interval: 200us, detection_time: 400us, restoration_time: 400us, %(wd)s}
switches: [sw1]
hosts: [h1, h2, h3, h4]
links: [[sw1, h1], [sw1, h2], [sw1, h3], [sw1, h4]]
workloads:
  to_h1: {src: h3, dst: h1, bytes: 1GB}
%(more)s
events:
  - {at: 1ms, pause_storm: {host: h1, priority: 3, duration: %(storm)s}}
"""


class Watchdog(unittest.TestCase):
    def run_text(self, text, *args):
        with tempfile.TemporaryDirectory(prefix="fabemu-wd-") as tmp:
            path = os.path.join(tmp, "s.yaml")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            p = harness.fabemu(EXE, "run", path, "--out", os.path.join(tmp, "run"), "--quiet", *args)
            self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
            s = harness.read_summary(os.path.join(tmp, "run"))
            self.assertEqual(harness.schema_errors(s), [])
            self.assertEqual(harness.conservation_errors(s), [])
            return s

    def storm(self, wd="action: drop", storm="3ms", duration="6ms", more=""):
        return self.run_text(STORM % {"wd": wd, "storm": storm, "duration": duration, "more": more})

    def storm_with_times(self, poll, detection, restoration):
        text = STORM % {"wd": "action: drop", "storm": "3ms", "duration": "6ms", "more": ""}
        for name, old, new in (("poll_interval", "200us", poll), ("detection_time", "400us", detection),
                               ("restoration_time", "400us", restoration)):
            text = text.replace("%s: %s" % (name, old), "%s: %s" % (name, new))
        return self.run_text(text)

    def events(self, s, port="sw1:eth0"):
        return [(e["kind"][len("pfc_wd_"):], e["at_ps"]) for e in s["event_log"]["first"]
                if e["kind"].startswith("pfc_wd_") and e["port"] == port]

    def queue(self, s, port="sw1:eth0", queue=3):
        return [w for w in s["pfc_watchdog"] if w["port"] == port and w["queue"] == queue][0]

    def test_detected_and_restored_at_the_poll_that_the_times_say(self):
        s = self.storm()
        # Frames leave until just after 1.0 ms, so the poll at 1.2 ms is the last good one; 400 us
        # run down at 1.4 and 1.6 ms. The last XOFF comes at 1 ms + 17 * 167.77 us = 3.85 ms, seen
        # at 4.0 ms; 400 us run down at 4.2 and 4.4 ms.
        self.assertEqual(self.events(s), [("detected", 1600 * US), ("restored", 4400 * US)])
        w = self.queue(s)
        self.assertEqual((w["deadlock_detected"], w["deadlock_restored"], w["status"]),
                         (1, 1, "operational"))
        self.assertEqual(w["tx_packets"], 0)
        self.assertEqual(w["tx_dropped_packets"], s["drops"]["watchdog"] - w["rx_dropped_packets"])
        self.assertEqual(w["tx_dropped_packets_last"], w["tx_dropped_packets"])

    def test_case_1_stays_stormed_for_as_long_as_the_storm_lasts(self):
        for action in ("drop", "forward"):
            s = self.storm("action: " + action, storm="19ms", duration="19ms")
            self.assertEqual(self.events(s), [("detected", 1600 * US)], action)
            self.assertEqual(self.queue(s)["status"], "stormed")

    def test_case_5_the_other_priority_stays_lossless(self):
        more = "\n".join("  p4%s: {src: h%d, dst: h1, bytes: 5MB, priority: 4}" % (c, n)
                         for c, n in (("a", 2), ("b", 4)))
        s = self.storm(more=more)
        self.assertEqual(self.events(s), [("detected", 1600 * US), ("restored", 4400 * US)])
        for f in s["flows"]:
            if f["priority"] == 4:
                self.assertEqual((f["state"], f["retransmissions"]), ("completed", 0))
        self.assertEqual(self.queue(s, queue=4)["deadlock_detected"], 0)

    def test_case_8_and_11_a_stormed_queue_drops_and_pauses_nobody(self):
        s = self.storm(storm="4ms", duration="5ms")
        # h3 is paused from soon after 1 ms (its PG fills) until the watchdog fires, and no more.
        port = [p for p in s["ports"] if p["node"] == "h3"][0]["counters"]
        self.assertGreater(port["rx_prio3_pause_duration"], 400 * US)
        self.assertLess(port["rx_prio3_pause_duration"], 600 * US)
        self.assertEqual(s["drops"]["total"], s["drops"]["watchdog"])

    def test_case_7_two_ports_are_detected_independently(self):
        text = STORM % {"wd": "action: drop", "storm": "6ms", "duration": "5ms",
                        "more": "  to_h2: {src: h4, dst: h2, bytes: 1GB}"}
        s = self.run_text(text + "  - {at: 2ms, pause_storm: {host: h2, priority: 3, duration: 6ms}}\n")
        self.assertEqual(self.events(s), [("detected", 1600 * US)])
        self.assertEqual(self.events(s, "sw1:eth1"), [("detected", 2600 * US)])

    def test_case_14_all_three_times_are_settings(self):
        # Polls at 0.9, 1.2, 1.5, ...: good at 1.2; 700 us run down to 400 at 1.5, 100 at 1.8, 2.1.
        # Last XOFF at 3.85 ms, seen at 3.9; 300 us run down at 4.2.
        s = self.storm_with_times("300us", "700us", "300us")
        self.assertEqual(self.events(s), [("detected", 2100 * US), ("restored", 4200 * US)])

    def test_forward_sends_in_spite_of_the_storm(self):
        s = self.storm("action: forward")
        w = self.queue(s)
        self.assertEqual(self.events(s), [("detected", 1600 * US), ("restored", 4400 * US)])
        self.assertEqual((w["tx_dropped_packets"], s["drops"]["watchdog"]), (0, 0))
        # The line is full for 2.8 ms: 1106 bytes of wire each.
        self.assertAlmostEqual(w["tx_packets"], 2800 * US / (1106 * 80), delta=100)

    def test_alert_does_nothing_but_tell(self):
        s = self.storm("action: alert")
        # Restored by the first poll that sees no storm: frames leave again after 4 ms.
        self.assertEqual(self.events(s), [("detected", 1600 * US), ("restored", 4200 * US)])
        self.assertEqual(s["drops"]["total"], 0)
        self.assertEqual(self.queue(s)["tx_dropped_packets"], 0)

    def test_big_red_switch_drops_from_the_start_and_for_good(self):
        s = self.storm("big_red_switch: yes", storm="1ms", duration="4ms")
        self.assertEqual(self.events(s), [("detected", 0)] * 2)  # queues 3 and 4
        self.assertEqual({w["status"] for w in s["pfc_watchdog"]}, {"stormed"})
        self.assertEqual(s["flows"][0]["bytes_done"], 0)

    def test_mellanox_and_broadcom_see_a_gapless_storm_too(self):
        # broadcom needs two polls in a pause: 1.2 ms is the first; it was not paused at 1.0 ms.
        # mellanox: frames left until 1.0 ms; the polls at 1.4 and 1.6 ms have all of 200 us each,
        # 400 > 396.
        for condition in ("broadcom", "mellanox"):
            s = self.storm("storm_condition: " + condition)
            self.assertEqual(self.events(s)[0], ("detected", 1600 * US), condition)

    def test_a_ports_own_profile_decides(self):
        text = STORM % {"wd": "action: drop", "storm": "3ms", "duration": "6ms", "more": ""}
        text = text.replace("switches: [sw1]", "qos: {off: {pfcwd_sw_enable: []}}\n"
                            "switches: {sw1: {ports: {eth0: off}}}")
        s = self.run_text(text)
        self.assertEqual(self.events(s), [])
        self.assertEqual(sorted({w["port"] for w in s["pfc_watchdog"]}),
                         ["sw1:eth1", "sw1:eth2", "sw1:eth3"])

    def test_two_lcores_give_the_same_digest(self):
        text = STORM % {"wd": "action: drop", "storm": "3ms", "duration": "6ms", "more": ""}
        digests = {self.run_text(text, "--lcores", n)["digest"] for n in ("1", "2")}
        self.assertEqual(len(digests), 1)


if __name__ == "__main__":
    EXE = os.path.abspath(sys.argv.pop(1))
    unittest.main()
