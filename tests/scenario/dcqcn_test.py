#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""dcqcn_test.py FABEMU: DCQCN against its fluid model, its fairness, and an ns-3 model's incasts.

The fluid model is that of Zhu, Ghobadi, Misra, Padhye, "ECN or Delay: Lessons Learnt from Analysis of
DCQCN and TIMELY", CoNEXT 2016, section 3.1. Its fixed point is solved here; a run's queue, averaged
over time, must lie near it. The model's marks reach the sender a fixed time after they are made, so
frames are marked as they leave the queue (mark_at: dequeue).
"""

import math
import os
import sys
import tempfile
import unittest

import harness

EXE = ""

TAU = 50e-6        # between CNPs
TAU_ALPHA = 55e-6  # between updates of alpha
T, B, F = 55e-6, 10e6, 5
R_AI = 40e6
G = 1 / 256
PACKET = 1000


def completions(log_keep, packets):
    """Per packet, how often a counter of `packets` packets runs out without a mark, times 1 / p."""
    exponent = -packets * log_keep
    return math.exp(-exponent) / -math.expm1(-exponent) if exponent < 700 else 0.0


def imbalance(p, rate):
    """dRt/dt at dRc/dt = 0 and dalpha/dt = 0, without its factor of Rc: what additive increase adds
    less what decreases take. `rate` in packets per second."""
    keep = math.log1p(-p)
    alpha = -math.expm1(TAU_ALPHA * rate * keep)
    cut = -math.expm1(TAU * rate * keep)     # that a CNP comes within TAU
    by_bytes = p * completions(keep, B / PACKET)
    by_time = p * completions(keep, T * rate)
    # dRc/dt = -Rc alpha cut / 2 tau + (Rt - Rc) / 2 * Rc (by_bytes + by_time) = 0
    gap = alpha * cut / TAU / (by_bytes + by_time)  # Rt - Rc
    added = R_AI / 8 / PACKET * rate * (math.exp(F * B / PACKET * keep) * by_bytes +
                                        math.exp(F * T * rate * keep) * by_time)
    return added - gap / TAU * cut


def fixed_point(flows, line_bps, kmin, kmax, pmax):
    """Bytes in the queue at the fixed point; kmax if the marking probability would have to be above
    pmax."""
    rate = line_bps / 8 / PACKET / flows
    low, high = 1e-7, 0.02
    for _ in range(100):
        p = math.sqrt(low * high)
        if imbalance(p, rate) > 0:
            low = p
        else:
            high = p
    return kmin + (kmax - kmin) * low / pmax if low <= pmax else kmax


def scenario(flows, line, wred, duration, more=""):
    return """\
description: DCQCN
defaults:
  link: {rate: %s, delay: 1us}
  nic:
    mtu: 1024
    packet_payload: %dB
    cc: dcqcn
    dcqcn: {preset: paper}
  qos:
    pfc_enable: [3]
    queue: {3: {wred: {%s, mark_at: dequeue}}}
topology:
  star: {hosts: %d}
workloads:
  incast: {type: incast, dst: h%d}
duration: %s
%s""" % (line, PACKET, wred, flows + 1, flows + 1, duration, more)


def simulate(text):
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "dcqcn.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        p = harness.fabemu(EXE, "run", path, "-o", os.path.join(tmp, "out"), "-q")
        if p.returncode != 0:
            raise AssertionError(p.stdout + p.stderr)
        summary = harness.read_summary(os.path.join(tmp, "out"))
    errors = harness.schema_errors(summary) + harness.conservation_errors(summary)
    if errors:
        raise AssertionError("; ".join(errors))
    return summary


WRED_40 = "kmin: 5KB, kmax: 200KB, pmax: 1%"
WRED_100 = "kmin: 100KB, kmax: 400KB, pmax: 20%"


class FixedPoint(unittest.TestCase):
    def test_the_equations_have_the_published_fixed_points(self):
        for flows, kilobytes in ((2, 20.2), (4, 41.8), (10, 122.6)):
            q = fixed_point(flows, 40e9, 5e3, 200e3, 0.01)
            self.assertAlmostEqual(q / 1e3, kilobytes, delta=0.06, msg=flows)
        for flows, kilobytes in ((2, 100.4), (16, 105.1), (64, 129.2)):
            q = fixed_point(flows, 100e9, 100e3, 400e3, 0.2)
            self.assertAlmostEqual(q / 1e3, kilobytes, delta=0.06, msg=flows)
        self.assertEqual(fixed_point(16, 40e9, 5e3, 200e3, 0.01), 200e3)

    def mean_queue(self, flows, line, wred):
        s = simulate(scenario(flows, line, wred, "200ms",
                              "queue_stats: {interval: 1us, from: 100ms}\n"))
        port = "sw1:eth%d" % flows
        return next(q["mean_bytes"] for q in s["queues"] if q["port"] == port and q["queue"] == 3)

    def near(self, flows, line, wred, expected, tolerance):
        q = self.mean_queue(flows, line, wred)
        self.assertAlmostEqual(q, expected, delta=tolerance * expected, msg="%d flows" % flows)

    def test_at_40g_the_queue_is_there(self):
        for flows, tolerance in ((2, 0.35), (4, 0.30), (10, 0.30)):
            self.near(flows, "40Gbps", WRED_40, fixed_point(flows, 40e9, 5e3, 200e3, 0.01),
                      tolerance)

    def test_at_40g_sixteen_flows_fill_it_to_kmax(self):
        self.near(16, "40Gbps", WRED_40, 200e3, 0.30)

    def test_at_100g_the_queue_is_there(self):
        for flows, tolerance in ((2, 0.35), (16, 0.30), (64, 0.30)):
            self.near(flows, "100Gbps", WRED_100, fixed_point(flows, 100e9, 100e3, 400e3, 0.2),
                      tolerance)


class Fairness(unittest.TestCase):
    """At 40 Gb/s and Pmax 1 % a flow has a mark or so in 10 ms, and their number varies: Jain's index
    of such windows is 0.98 to 1. At 100 Gb/s and 20 % there are enough of them."""

    def jain(self, flows):
        """Over 10 ms, after 150 ms: the same run, ended twice."""
        done = [[f["bytes_done"] for f in
                 simulate(scenario(flows, "100Gbps", WRED_100, d))["flows"]]
                for d in ("150ms", "160ms")]
        rates = [b - a for a, b in zip(*done)]
        return sum(rates) ** 2 / (len(rates) * sum(x * x for x in rates))

    def test_flows_share_fairly_over_10_ms(self):
        for flows in (2, 4, 8, 16):
            self.assertGreaterEqual(self.jain(flows), 0.99, "%d flows" % flows)


INCAST = """\
description: incast under DCQCN and PFC, as HPCC's ns-3 model has it with the paper's timers
defaults:
  link: {rate: 100Gbps, delay: 1us}
  nic:
    mtu: 1024
    packet_payload: 1000B
    ack_every: 1
    cc: dcqcn
    dcqcn:
      preset: alibaba
      rpg_time_reset: 55us
      dce_tcp_rtt: 50us
      rate_reduce_monitor_period: 50us
  qos:
    pfc_enable: [3]
    queue: {3: {wred: {kmin: 400KB, kmax: 1600KB, pmax: 20%%, mark_at: dequeue}}}
seed: %d
topology:
  star: {hosts: %d}
workloads:
  incast: {type: incast, dst: h%d, bytes: %s}
"""


class Incast(unittest.TestCase):
    """Of the makespan in an ns-3 model with the same settings, links and flows. Marks are random, so
    is the makespan (by 3 % or so): the mean of three seeds counts."""

    def run_incast(self, flows, size):
        makespans, pauses = [], 0
        for seed in (1, 2, 3):
            s = simulate(INCAST % (seed, flows + 1, flows + 1, size))
            makespans.append(max(f["end_ps"] for f in s["flows"]) / 1e6)
            pauses += sum(f["pauses"] for f in s["flows"])
            self.assertEqual(s["drops"]["total"], 0)
        return sum(makespans) / len(makespans), pauses

    def test_two_to_one(self):
        us, pauses = self.run_incast(2, "100MB")
        self.assertAlmostEqual(us, 17500, delta=0.05 * 17500)
        self.assertEqual(pauses, 0)

    def test_sixteen_to_one(self):
        us, pauses = self.run_incast(16, "12.5MB")
        self.assertAlmostEqual(us, 18400, delta=0.05 * 18400)
        self.assertLessEqual(pauses, 48)


if __name__ == "__main__":
    EXE = sys.argv.pop(1)
    unittest.main(verbosity=2)
