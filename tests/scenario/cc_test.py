#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""cc_test.py FABEMU: DCTCP, TIMELY, Swift and HPCC against what their papers say of the steady state.

N long flows share one port of a star. The round-trip time without a queue is worked out here from the
links; the queue's mean is over time. DCQCN has dcqcn_test.py.
"""

import json
import math
import os
import sys
import tempfile
import unittest

import harness

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import check_capture  # noqa: E402

EXE = ""

PAYLOAD = 1024
FRAME = 14 + 20 + 8 + 12 + PAYLOAD + 4  # of a middle packet, without FCS
OVERHEAD = 4 + 20                       # FCS; preamble and gap
ACK = 14 + 20 + 8 + 12 + 4 + 4
TRAILER = 42

STAR = """
defaults:
  link: {rate: %(rate)s, delay: %(delay)s}
  nic: %(nic)s
  qos:
    pfc_enable: [3]
    queue: {3: {wred: %(wred)s}}
duration: %(duration)s
queue_stats: {interval: 1us, from: %(warm)s}
topology: {star: {hosts: %(hosts)d}}
workloads:
  incast: {type: incast, dst: h%(hosts)d, bytes: 2GB}
"""


def simulate(text, *args):
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "scenario.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        out = os.path.join(tmp, "out")
        p = harness.fabemu(EXE, "run", path, "--out", out, *args)
        assert p.returncode == 0, p.stdout + p.stderr
        s = harness.read_summary(out)
        errors = harness.conservation_errors(s) + harness.schema_errors(s)
        for c in harness.capture_files(s, out):
            errors += harness.capture_errors(c)
        assert not errors, "\n".join(errors)
        s["frames_of"] = {os.path.basename(c): [f.data for f in check_capture.read_capture(c)]
                          for c in harness.capture_files(s, out)}
        return s


def star(flows, nic, rate="100Gbps", delay="1us", wred="{ecn: no}", duration="10ms", warm="5ms"):
    s = simulate(STAR % {"hosts": flows + 1, "nic": nic, "rate": rate, "delay": delay, "wred": wred,
                         "duration": duration, "warm": warm})
    queue = [q for q in s["queues"] if q["port"] == "sw1:eth%d" % flows and q["queue"] == 3][0]
    return s, queue


def base_rtt(bps, delay, trailer=0):
    """From the start of a packet's transmission to the arrival of its ACK, nothing in the way."""
    return 4 * delay + 2 * 8 * (FRAME + trailer + OVERHEAD + ACK + trailer + OVERHEAD) / bps


def delivered_share(s, bps, trailer=0):
    """Of the time, how long the receiver's line was busy with data, over the whole run."""
    bits = sum(f["goodput_bps"] for f in s["flows"])
    return bits * (FRAME + trailer + OVERHEAD) / PAYLOAD / bps


class Dctcp(unittest.TestCase):
    """Alizadeh et al. 2010, section 3.3: the queue swings between K + N - A and K + N packets,
    A = N (W* + 1) alpha / 2, W* = (C RTT + K) / N, alpha = sqrt(2 / W*)."""

    def check(self, flows):
        bps, delay, k = 10e9, 10e-6, 71000
        s, queue = star(flows, "{cc: dctcp}", "10Gbps", "10us", "{kmin: 71KB, kmax: 71KB, pmax: 100%}",
                        "60ms", "20ms")
        buffered = FRAME + 4
        pipe = bps * base_rtt(bps, delay) / 8 / (FRAME + OVERHEAD)
        w = (pipe + k / buffered) / flows
        swing = flows * (w + 1) * math.sqrt(2 / w) / 2
        top = (k / buffered + flows) * buffered
        self.assertAlmostEqual(queue["mean_bytes"], top - swing / 2 * buffered, delta=0.1 * top)
        self.assertAlmostEqual(queue["max_bytes"], top, delta=0.1 * top)
        self.assertEqual(sum(f["pauses"] + f["timeouts"] for f in s["flows"]), 0)
        self.assertGreater(delivered_share(s, bps), 0.98)

    def test_two(self):
        self.check(2)

    def test_four(self):
        self.check(4)

    def test_without_marks_slow_start_goes_to_the_nics_window(self):
        """8192 packets per queue pair, all but what fills the pipe in the queue."""
        _, queue = star(2, "{cc: dctcp}", "10Gbps", "10us", duration="60ms", warm="40ms")
        pipe = 10e9 * base_rtt(10e9, 10e-6) / 8
        expected = 2 * 8192 * (FRAME + 4) - pipe
        self.assertAlmostEqual(queue["mean_bytes"], expected, delta=0.01 * expected)


class Swift(unittest.TestCase):
    """The delay stands at the target: the queue is what the target leaves, (T - RTT) C."""

    NIC = "{cc: swift, swift: {base_target: 25us, hop_scale: 0, fs_range: %s}}"

    def test_queue_is_the_rest_of_the_target(self):
        for flows in (2, 8):
            s, queue = star(flows, self.NIC % "0")
            expected = (25e-6 - base_rtt(100e9, 1e-6)) * 100e9 / 8
            self.assertAlmostEqual(queue["mean_bytes"], expected, delta=0.1 * expected)
            self.assertEqual(sum(f["pauses"] for f in s["flows"]), 0)

    def test_smaller_windows_have_larger_targets(self):
        """Flow scaling: the window w of each of N flows solves w N packets = C T(w)."""
        flows, span, least, most = 8, 40e-6, 0.1, 100
        a = span / (least ** -0.5 - most ** -0.5)

        def target(w):
            return 25e-6 + min(span, max(0, a * w ** -0.5 - a * most ** -0.5))

        low, high = 0.1, 1000.0
        for _ in range(60):
            w = (low + high) / 2
            if w * flows * (FRAME + OVERHEAD) * 8 / 100e9 < target(w):
                low = w
            else:
                high = w
        expected = (target(w) - base_rtt(100e9, 1e-6)) * 100e9 / 8
        _, queue = star(flows, self.NIC % "40us", duration="20ms", warm="10ms")
        self.assertAlmostEqual(queue["mean_bytes"], expected, delta=0.1 * expected)

    def test_a_target_per_hop(self):
        """One switch on the way back is one hop: 5 us more."""
        _, queue = star(4, "{cc: swift, swift: {base_target: 20us, hop_scale: 5us, fs_range: 0}}")
        expected = (25e-6 - base_rtt(100e9, 1e-6)) * 100e9 / 8
        self.assertAlmostEqual(queue["mean_bytes"], expected, delta=0.1 * expected)

    def test_more_flows_than_packets_fit(self):
        """64 flows where 60 packets fill pipe and target: windows below one packet, by pacing."""
        s, queue = star(64, "{cc: swift, swift: {base_target: 5500ns, hop_scale: 0, fs_range: 0, "
                        "initial_cwnd: 1}}", duration="20ms", warm="10ms")
        self.assertEqual(sum(f["pauses"] + f["timeouts"] for f in s["flows"]), 0)
        self.assertTrue(all(f["cc_min_rate_bps"] < 100e9 for f in s["flows"]))
        self.assertLess(queue["mean_bytes"], 64 * FRAME)


class Timely(unittest.TestCase):
    def test_keeps_the_rtt_below_t_high(self):
        s, queue = star(4, "{cc: timely, timely: {initial_rate: 2.5Gbps}}", "10Gbps", "2us",
                        duration="60ms", warm="10ms")
        self.assertLess(queue["max_bytes"], 500e-6 * 10e9 / 8)
        self.assertEqual(sum(f["pauses"] for f in s["flows"]), 0)
        self.assertGreater(delivered_share(s, 10e9), 0.8)

    def test_starts_at_line_rate_unless_told(self):
        s, _ = star(1, "{cc: timely}", "10Gbps", "2us", duration="2ms", warm="1ms")
        self.assertGreater(delivered_share(s, 10e9), 0.95)


class Hpcc(unittest.TestCase):
    """The port is eta full and its queue next to empty (section 3.2)."""

    def test_utilisation_is_eta_and_the_queue_empty(self):
        for eta in (0.95, 0.8):
            for flows in (2, 8):
                s, queue = star(flows, "{cc: hpcc, hpcc: {base_rtt: 5us, eta: %g}}" % eta)
                self.assertAlmostEqual(delivered_share(s, 100e9, TRAILER), eta, delta=0.03)
                self.assertLess(queue["mean_bytes"], 10000)
                self.assertEqual(sum(f["pauses"] for f in s["flows"]), 0)

    def test_each_switch_writes_a_record(self):
        s = simulate("""
defaults:
  link: {rate: 25Gbps, delay: 1us}
  nic: {cc: hpcc}
topology: {leaf_spine: {leaves: 2, spines: 1, hosts_per_leaf: 1}}
captures:
  - {file: h1.pcapng, taps: h1}
  - {file: h2.pcapng, taps: h2}
workloads:
  w: {src: h1, dst: h2, bytes: 64KB}
""")
        for name, hops_of_data in (("h1.pcapng", 0), ("h2.pcapng", 3)):
            data, acks = 0, 0
            for frame in s["frames_of"][name]:
                length = 14 + int.from_bytes(frame[16:18], "big")
                trailer = frame[length:]
                self.assertEqual(len(trailer), TRAILER)
                hops = trailer[0] >> 4
                if frame[42] == 0x11:
                    acks += 1
                    self.assertEqual(hops, 3)  # as its packet had arrived
                else:
                    data += 1
                    self.assertEqual(hops, hops_of_data)
                for i in range(hops):
                    self.assertEqual(trailer[2 + 8 * i] >> 4, 7)  # 25 Gb/s
                self.assertFalse(any(trailer[2 + 8 * hops:]))
            self.assertEqual((data, acks), (63, 63))


class All(unittest.TestCase):
    """What holds for each of them."""

    TEXT = """
defaults:
  link: {rate: 100Gbps, delay: 1us}
  nic: {cc: %s}
  qos: {queue: {3: {wred: {kmin: 50KB, kmax: 100KB, pmax: 50%%}}}}
topology: {leaf_spine: {leaves: 2, spines: 2, hosts_per_leaf: 4, fabric_link: {corrupt: 1e-3}}}
faults:
  - {name: twice, link: "leaf1:eth0", direction: rx, action: duplicate, op: data, every: 31}
  - {name: flip, link: "leaf1:eth1", direction: rx, action: corrupt, op: data, every: 37}
  - {name: cut, link: "leaf1:eth2", direction: rx, action: truncate, length: 500B, op: data, every: 41}
captures: [{file: all.pcapng, taps: h1}]
workloads:
  p: {type: permutation, bytes: 300KB, messages: 3}
"""

    def test_recovers_from_losses_the_same_on_one_and_two_lcores(self):
        for cc in ("dctcp", "timely", "swift", "hpcc"):
            runs = [simulate(self.TEXT % cc, "--lcores", str(n)) for n in (1, 2)]
            self.assertEqual(runs[0]["digest"], runs[1]["digest"], cc)
            for f in runs[0]["flows"]:
                self.assertEqual(f["state"], "completed", (cc, f))
            self.assertGreater(sum(f["retransmissions"] for f in runs[0]["flows"]), 0, cc)

    def refused(self, text, *words):
        with tempfile.TemporaryDirectory() as tmp:
            path = os.path.join(tmp, "s.yaml")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            p = harness.fabemu(EXE, "check", path)
            self.assertNotEqual(p.returncode, 0, text)
            for word in words:
                self.assertIn(word, p.stderr)

    def test_what_cannot_work_is_refused(self):
        base = "defaults: {link: {rate: %s}, nic: %s}\ntopology: {star: {hosts: 2}}\n" \
               "workloads: {w: {src: h1, dst: h2, bytes: 1KB%s}}\n"
        for cc in ("dctcp", "swift", "hpcc"):
            self.refused(base % ("100Gbps", "{cc: %s, ack_every: 4}" % cc, ""), cc, "ack_every: 1")
        for more in (", op: READ", ", transport: UC", ", transport: UD, op: SEND"):
            for cc in ("dctcp", "timely", "swift", "hpcc"):
                self.refused(base % ("100Gbps", "{cc: %s}" % cc, more), "acknowledgements",
                             "expected cc none or dcqcn")
        self.refused(base % ("100Gbps", "{cc: hpcc}", ", roce: v1"), "RoCE v1", "hpcc")
        self.refused(base % ("37Gbps", "{cc: hpcc}", ""), "37Gbps", "h1", "25, 40")
        for cc, params, word in (
                ("timely", "t_low: 2us, t_high: 1us", "t_low <= t_high"),
                ("dctcp", "min_window: 20", "min_window <= initial_window"),
                ("swift", "fs_min_cwnd: 5, fs_max_cwnd: 5", "fs_min_cwnd < fs_max_cwnd"),
                ("swift", "max_cwnd: 5", "initial_cwnd <= max_cwnd"),
                ("hpcc", "eta: 1.5", "eta"),
                ("dctcp", "g: 0", "g"),
                ("timely", "beta: 2", "beta")):
            self.refused(base % ("100Gbps", "{cc: %s, %s: {%s}}" % (cc, cc, params), ""), word)

    def test_check_shows_the_parameters(self):
        text = "defaults: {nic: {cc: %s}}\ntopology: {star: {hosts: 2}}\n" \
               "workloads: {w: {src: h1, dst: h2, bytes: 1KB}}\n"
        for cc, key, value in (("dctcp", "initial_window", 10), ("timely", "t_high", 500000000),
                               ("swift", "base_target", 25000000), ("hpcc", "w_ai", 80)):
            with tempfile.TemporaryDirectory() as tmp:
                path = os.path.join(tmp, "s.yaml")
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text % cc)
                p = harness.fabemu(EXE, "check", path)
                self.assertIn(key, p.stdout)
                p = harness.fabemu(EXE, "check", "--json", path)
                self.assertEqual(json.loads(p.stdout)["hosts"][0]["nic"]["cc"][key], value)


if __name__ == "__main__":
    EXE = sys.argv.pop(1)
    unittest.main(verbosity=2)
