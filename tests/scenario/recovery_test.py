#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""recovery_test.py FABEMU: what a loss costs by the NIC's loss recovery, and what packet spraying does
to flows, against figures worked out by hand.

Lossy pair: 100 Gb/s, two links of 1 us and a switch of 600 ns between sender and receiver. A packet
in the middle of a message is 1106 bytes on the wire, 88.48 ns; an ACK 86 bytes, 6.88 ns. From the
moment a lost packet begins until the NAK that the next one causes is back:

    88.48 (the next waits for its turn) + 2 x 1000 + 600 + 2 x 88.48 + 2 x 1000 + 600 + 2 x 6.88
    = 5479.2 ns

in which packets begin at 0, 88.48, ... 61 x 88.48: go-back-N sends 62 packets again per NAK.
"""

import os
import sys
import tempfile
import unittest

import harness

EXE = ""

SLOT = 88480          # ps
RTT_PACKETS = 62
BYTES = 20000000
PACKETS = 19532       # of 1024 bytes, the last one shorter
BDP_CAP = 125         # 128000 / 1024
TIMEOUT = 65536000    # exponent 4
LINE = 100e9 * 1024 / 1106

LOSSY = """\
name: lossy
defaults:
  link: {rate: 100Gbps, delay: 1us}
  switch: {latency: 600ns}
  nic: {bdp_cap: 128KB, timeout: 4, recovery: %s, rto_low: 20us, rto_high: 40us}
switches: [sw1]
hosts: [a, b]
links:
  - [sw1, a]
  - {ends: [sw1, b], corrupt: 1%%}
workloads:
  f: {src: a, dst: b, bytes: 20MB}
"""

BLACKOUT = """\
name: blackout
defaults:
  link: {rate: 100Gbps, delay: 1us}
  nic: {bdp_cap: 128KB, recovery: selective-repeat, rto_low: 20us, rto_high: 40us, retry_cnt: 1}
switches: [sw1]
hosts: [a, b]
links:
  - [sw1, a]
  - {ends: [sw1, b], name: cut}
workloads:
  f: {src: a, dst: b, bytes: 5MB}
events:
  - {at: 100us, link_down: cut}
  - {at: 1100us, link_up: cut}
"""

SPRAY = """\
name: spray
defaults:
  link: {rate: 100Gbps, length: 5m}
  switch: {load_balancing: %s}
  nic: {ooo: %d, recovery: %s}
topology:
  leaf_spine: {leaves: 2, spines: 4, hosts_per_leaf: 4}
workloads:
  p: {type: permutation, shift: 4, bytes: 2MB}
"""


UNEQUAL = """\
name: unequal
defaults:
  link: {rate: 100Gbps, length: 5m}
  switch: {load_balancing: %s, buffer: 1MB}
  nic: {ooo: 4096}
switches: [leaf1, leaf2, spine1, spine2]
hosts: [h1, h2]
links:
  - [h1, leaf1]
  - [h2, leaf2]
  - [leaf1, spine1]
  - {ends: [leaf1, spine2], rate: 25Gbps}
  - [leaf2, spine1]
  - [leaf2, spine2]
workloads:
  f: {src: h1, dst: h2, bytes: 50MB}
"""


class Recovery(unittest.TestCase):
    def results(self, text, *args):
        with tempfile.TemporaryDirectory(prefix="fabemu-recovery-") as tmp:
            path = os.path.join(tmp, "s.yaml")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            p = harness.fabemu(EXE, "run", path, "--out", os.path.join(tmp, "run"), "--quiet", *args)
            self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
            summary = harness.read_summary(os.path.join(tmp, "run"))
            self.assertEqual(harness.schema_errors(summary), [])
            self.assertEqual(harness.conservation_errors(summary), [])
            return summary

    @staticmethod
    def counters(summary, node):
        return next(p["counters"] for p in summary["ports"] if p["node"] == node)

    # ---- loss

    def lossy(self, recovery, seed):
        s = self.results(LOSSY % recovery, "--seed", str(seed))
        flow, b = s["flows"][0], self.counters(s, "b")
        self.assertEqual(flow["state"], "completed")
        self.assertEqual(flow["bytes_done"], BYTES)
        self.assertGreater(b["drop_lane_error"], 100)
        return flow, b

    def test_selective_repeat_sends_again_what_was_lost_and_nothing_else(self):
        for seed in range(1, 6):
            flow, b = self.lossy("selective-repeat", seed)
            self.assertEqual(flow["retransmissions"], b["drop_lane_error"])
            self.assertEqual(b["rdma_rx_bytes"], BYTES)
            # Each packet takes its slot; a timeout idles for at most the timeout and a round trip.
            least = flow["packets"] * SLOT
            most = least + flow["timeouts"] * (40 + 10) * 1000000 + 20 * 1000000
            self.assertTrue(least <= flow["fct_ps"] <= most, flow)

    # After a timeout at most all that may be in flight goes again, and at least the lost packet.
    def test_go_back_n_sends_a_round_trip_again_per_nak(self):
        for seed in range(1, 6):
            flow, b = self.lossy("go-back-N", seed)
            again, naks, timeouts = flow["retransmissions"], flow["naks"], flow["timeouts"]
            self.assertLessEqual(again, 1.01 * naks * RTT_PACKETS + timeouts * BDP_CAP)
            self.assertGreaterEqual(again, 0.97 * naks * RTT_PACKETS)
            self.assertEqual(flow["packets"], PACKETS + again)
            self.assertGreater(b["rdma_rx_bytes"], BYTES)
            least = flow["packets"] * SLOT
            self.assertGreaterEqual(flow["fct_ps"], least)
            self.assertLessEqual(flow["fct_ps"], least + (timeouts + 1) * (TIMEOUT + 6000000))

    # At loss rate p, M packets lost time per loss: 1 / (1 + p M) of the line rate for go-back-N,
    # 1 - p for selective repeat, without timeouts. With p = 1 % and M = 62: 0.617 and 0.99.
    def test_goodput_by_recovery_is_as_the_formulas_say(self):
        for seed in range(1, 6):
            gbn, _ = self.lossy("go-back-N", seed)
            sr, _ = self.lossy("selective-repeat", seed)
            waited = [f["timeouts"] * t for f, t in ((gbn, TIMEOUT), (sr, 40000000))]
            goodput = [BYTES * 8e12 / (f["fct_ps"] - w) for f, w in zip((gbn, sr), waited)]
            self.assertAlmostEqual(goodput[0] / LINE, 1 / (1 + 0.01 * 62), delta=0.07)
            self.assertAlmostEqual(goodput[1] / LINE, 0.99, delta=0.02)

    # Frame by frame by the independent checker, which knows the SACK behind a NAK's AETH.
    def test_a_capture_of_selective_repeat_is_valid(self):
        text = LOSSY % "selective-repeat" + "captures:\n  - {file: a.pcapng, taps: a}\n"
        with tempfile.TemporaryDirectory(prefix="fabemu-recovery-") as tmp:
            path, out = os.path.join(tmp, "s.yaml"), os.path.join(tmp, "run")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text.replace("20MB", "1MB"))
            p = harness.fabemu(EXE, "run", path, "--out", out, "--quiet")
            self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
            self.assertGreater(harness.read_summary(out)["flows"][0]["naks"], 10)
            self.assertEqual(harness.capture_errors(os.path.join(out, "a.pcapng")), [])

    # For 1 ms, 25 times the timeout, all is lost: the window, and a packet per timeout that probes. The
    # QP does not fail, since its local ACK timeout of 67 ms has not passed even once. When the link is
    # back, one more probe tells that all the window was lost. Only the first packet of the window may
    # have arrived, its acknowledgement not having been asked for yet.
    def test_selective_repeat_survives_a_blackout_longer_than_its_timeouts(self):
        s = self.results(BLACKOUT)
        flow, lost = s["flows"][0], s["drops"]["total"]
        self.assertEqual((flow["state"], flow["bytes_done"]), ("completed", 5000000))
        self.assertIn(flow["timeouts"], (24, 25, 26))
        self.assertGreaterEqual(lost, 100 + 24)
        self.assertLessEqual(lost, BDP_CAP + 25)
        self.assertIn(flow["retransmissions"] - lost, (0, 1))

    def test_results_do_not_depend_on_lcores(self):
        for text in (LOSSY % "selective-repeat", SPRAY % ("random", 64, "selective-repeat"),
                     SPRAY % ("adaptive", 8, "go-back-N")):
            one, two = (self.results(text, "--lcores", n) for n in "12")
            for key in ("digest", "flows", "ports", "drops"):
                self.assertEqual(one[key], two[key])

    # ---- spraying

    def spray(self, mode, ooo, recovery="go-back-N"):
        s = self.results(SPRAY % (mode, ooo, recovery))
        self.assertEqual(s["drops"]["total"], 0)
        for f in s["flows"]:
            self.assertEqual((f["state"], f["bytes_done"]), ("completed", 2000000))
        return s, sum(f["retransmissions"] for f in s["flows"]), sum(f["naks"] for f in s["flows"])

    @staticmethod
    def makespan(s):
        return max(f["fct_ps"] for f in s["flows"])

    # A permutation over as many spines as there are hosts on a leaf fits exactly: a flow of 2 MB takes
    # 1954 slots, 172.9 us, and 3 us of way; what its host acknowledges takes under 1 % of the line.
    def test_spraying_removes_the_collisions_of_ecmp(self):
        ecmp, again, _ = self.spray("ecmp", 64)
        self.assertEqual(again, 0)
        sprayed, again, naks = self.spray("spray", 64)
        self.assertEqual((again, naks), (0, 0))
        alone = 1954 * SLOT
        self.assertLess(self.makespan(sprayed), 1.03 * alone + 3000000)
        # Two flows on one path take twice as long. (4 flows choose 4 paths without a collision with
        # probability 4! / 4^4 = 9 %; both directions 1 %. The seed of this test is no such case.)
        self.assertGreater(self.makespan(ecmp), 1.95 * alone)

    # Of two paths one has a quarter of the rate. In turn each gets half of the frames, and PFC slows
    # the sender to twice the slow one: 50 Gb/s. By queue length the two carry what they can, and the
    # host's line is the bottleneck.
    def test_adaptive_balancing_uses_paths_by_what_they_carry(self):
        goodput = {}
        for mode in ("spray", "adaptive"):
            f = self.results(UNEQUAL % mode)["flows"][0]
            self.assertEqual((f["state"], f["retransmissions"]), ("completed", 0))
            goodput[mode] = f["goodput_bps"]
        self.assertAlmostEqual(goodput["spray"] / LINE, 0.5, delta=0.02)
        self.assertGreater(goodput["adaptive"] / LINE, 0.97)

    def test_go_back_n_takes_reordering_for_loss(self):
        s, again, naks = self.spray("spray", 0)
        self.assertGreater(naks, 100)
        self.assertGreater(again, 1000)
        self.assertGreater(self.counters(s, "h5")["out_of_sequence"], 100)
        self.assertNotIn("out_of_order_kept", self.counters(s, "h5"))

    # It repeats less, but what it repeats is as needless.
    def test_selective_repeat_takes_reordering_for_loss_too(self):
        _, gbn, _ = self.spray("spray", 0)
        s, again, naks = self.spray("spray", 0, "selective-repeat")
        self.assertGreater(naks, 100)
        self.assertGreater(again, 0)
        self.assertLess(again, gbn / 10)
        self.assertGreater(self.counters(s, "h5")["duplicate_request"], 0)
        s, again, naks = self.spray("spray", 64, "selective-repeat")
        self.assertEqual((again, naks), (0, 0))
        self.assertGreater(self.counters(s, "h5")["out_of_order_kept"], 0)


if __name__ == "__main__":
    EXE = sys.argv.pop(1)
    unittest.main()
