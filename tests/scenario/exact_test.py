#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""exact_test.py FABEMU: runs whose outcome has a closed form, which must be met to the picosecond and
to the cell.

A lane is held for a frame's wire bytes (preamble, frame, FCS, gap: IEEE 802.3 clauses 3 and 4) and
the frame is received its delay later. A switch forwards `latency` after that.
"""

import os
import sys
import tempfile
import unittest

import harness

EXE = ""

PS_PER_BYTE = 80  # 100 Gb/s
PAYLOAD = 1024
OVERHEAD = 24     # preamble 8, FCS 4, gap 12
# Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4; a WRITE's first packet has a RETH of 16 bytes more and
# an ACK an AETH of 4 bytes.
MIDDLE = 14 + 20 + 8 + 12 + PAYLOAD + 4 + OVERHEAD
FIRST = MIDDLE + 16
ACK = 14 + 20 + 8 + 12 + 4 + 4 + OVERHEAD
DELAY, LATENCY = 1000000, 600000
CELL = 256


def star(hosts, workloads, more=""):
    return """\
name: exact
switches:
  sw1: {latency: %dps}
hosts: [%s]
defaults:
  link: {rate: 100Gbps, delay: %dps}
  nic: {mtu: 1024, ack_every: 1, window: 100000}
%slinks:
%s
workloads:
%s
""" % (LATENCY, ", ".join(hosts), DELAY, more,
       "\n".join("  - [sw1, %s]" % h for h in hosts), workloads)


def ser(wire_bytes):
    return wire_bytes * PS_PER_BYTE


def through_switch(arrivals, sizes):
    """When frames that arrive at a switch at these times arrive at the next node."""
    free, out = 0, []
    for at, size in zip(arrivals, sizes):
        start = max(at + LATENCY, free)
        free = start + ser(size)
        out.append(free + DELAY)
    return out


def sent(sizes, ready=None):
    """When frames of a NIC that are ready at these times (all at 0) arrive at the switch."""
    free, out = 0, []
    for i, size in enumerate(sizes):
        free = max(free, ready[i] if ready else 0) + ser(size)
        out.append(free + DELAY)
    return out


class Exact(unittest.TestCase):
    def results(self, text, *args):
        with tempfile.TemporaryDirectory(prefix="fabemu-exact-") as tmp:
            path = os.path.join(tmp, "s.yaml")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            p = harness.fabemu(EXE, "run", path, "--out", os.path.join(tmp, "run"), "--quiet", *args)
            self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
            return harness.read_summary(os.path.join(tmp, "run"))

    def test_lone_flow_completes_at_the_closed_form(self):
        for packets in (1, 2, 100):
            s = self.results(star(["h1", "h2"], "  one: {src: h1, dst: h2, bytes: %dB}" %
                                  (packets * PAYLOAD)))
            sizes = [FIRST] + [MIDDLE] * (packets - 1)
            received = through_switch(sent(sizes), sizes)
            acks = [ACK] * packets  # one per packet, ready when it is received
            done = through_switch(sent(acks, received), acks)[-1]
            self.assertEqual(s["flows"][0]["fct_ps"], done, "%d packets" % packets)
            self.assertEqual(s["data_hops"], 2 * packets)

    def test_lone_read_completes_when_its_last_response_is_there(self):
        request = FIRST - PAYLOAD
        for packets in (1, 2, 100):
            s = self.results(star(["h1", "h2"], "  one: {src: h1, dst: h2, op: READ, bytes: %dB}" %
                                  (packets * PAYLOAD)))
            asked = through_switch(sent([request]), [request])[0]
            sizes = [MIDDLE] * packets  # the first and the last with an AETH
            for i in {0, packets - 1}:
                sizes[i] += 4
            done = through_switch(sent(sizes, [asked] * packets), sizes)[-1]
            self.assertEqual(s["flows"][0]["fct_ps"], done, "%d packets" % packets)
            self.assertEqual(s["data_hops"], 2 * packets)

    def test_roce_v1_is_longer_by_a_grh_and_shorter_by_ip_and_udp(self):
        more = 40 - 20 - 8
        s = self.results(star(["h1", "h2"], "  one: {src: h1, dst: h2, roce: v1, bytes: %dB}" %
                              (3 * PAYLOAD)))
        sizes = [FIRST + more, MIDDLE + more, MIDDLE + more]
        received = through_switch(sent(sizes), sizes)
        acks = [ACK + more] * 3
        self.assertEqual(s["flows"][0]["fct_ps"], through_switch(sent(acks, received), acks)[-1])

    def test_incast_makespan_is_frames_times_frame_time_plus_path(self):
        packets, flows = 500, 2
        s = self.results(star(["h1", "h2", "h3"],
                              "  in: {type: incast, src: [h1, h2], dst: h3, bytes: %dB}" %
                              (packets * PAYLOAD)))
        # The bottleneck is busy from the first frame on; all frames pass it, then the last ACK
        # goes the way back alone.
        first = ser(FIRST) + DELAY + LATENCY
        busy = flows * (ser(FIRST) + (packets - 1) * ser(MIDDLE))
        back = 2 * (ser(ACK) + DELAY) + LATENCY
        self.assertEqual(max(f["end_ps"] for f in s["flows"]), first + busy + DELAY + back)
        self.assertEqual(s["drops"]["total"], 0)

    def test_two_greedy_flows_share_a_bottleneck_exactly(self):
        duration = 2000000000
        s = self.results(star(["h1", "h2", "h3"],
                              "  in: {type: incast, src: [h1, h2], dst: h3, bytes: 1GB, "
                              "messages: endless}"), "--duration", "%dps" % duration)
        got = [f["bytes_done"] for f in s["flows"]]
        self.assertLessEqual(abs(got[0] - got[1]), PAYLOAD)
        # Frames of two 1 GB messages that fit the bottleneck from its first frame to the end.
        first = ser(FIRST) + DELAY + LATENCY
        frames = 2 + (duration - DELAY - first - 2 * ser(FIRST)) // ser(MIDDLE)
        self.assertEqual(sum(got), frames * PAYLOAD)

    def lossless(self, xoff):
        """An incast behind a static XOFF threshold with this much headroom."""
        return self.results(star(
            ["h1", "h2", "h3"],
            "  in: {type: incast, src: [h1, h2], dst: h3, bytes: 2MB}",
            "  qos: {cell_size: %dB, pg: {3: {static_th: 200KB, xoff: %s}}}\n" % (CELL, xoff)))

    def test_headroom_is_enough_and_one_cell_less_than_what_arrives_is_not(self):
        s = self.lossless("auto")
        self.assertEqual(s["drops"]["total"], 0)
        pgs = [g for g in s["priority_groups"] if g["pg"] == 3 and g["xoffs"] > 0]
        self.assertEqual(len(pgs), 2)  # of h1 and h2
        arrived = max(g["headroom_peak_bytes"] for g in pgs)
        self.assertGreater(arrived, 0)
        self.assertEqual(arrived % CELL, 0)
        self.assertLessEqual(arrived, pgs[0]["headroom_bytes"])
        # On the wire until the peer stops: the pause frame's way (64 bytes with overhead 84), the
        # response time of 100 Gb/s, 394 quanta of 512 bit times (802.3 31B.3.7), the way of what
        # was sent until then, and the frame that each end may have begun.
        latest = ser(84) + DELAY + 394 * 512 * 10 + DELAY + LATENCY + 2 * ser(FIRST)
        frames = latest // ser(MIDDLE) + 1
        cells = -(-(FIRST - OVERHEAD + 4) // CELL)
        self.assertLessEqual(arrived, frames * cells * CELL)
        self.assertEqual(self.lossless("%dB" % arrived)["drops"]["total"], 0)
        s = self.lossless("%dB" % (arrived - CELL))
        self.assertGreater(s["drops"]["pg_headroom_full"], 0)


if __name__ == "__main__":
    EXE = sys.argv.pop(1)
    unittest.main(verbosity=2)
