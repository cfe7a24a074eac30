#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""pcap_files_test.py FABEMU CAPTURE.pcap...: what `fabemu pcap check` makes of whole captures.

Several taps and queue pairs, congestion and pauses; every form of file gives the same report; the
kernel's captures, counted again here by hand.
"""

import collections
import json
import os
import struct
import subprocess
import sys
import unittest

import harness
from pcap_base import CAPTURES, EXE, Base, exchange, w
from roce_writer import Talk

import check_capture  # noqa: E402  (pcap_base knows where)


class Fabric(Base):
    def test_congestion(self):
        t = Talk()
        for i in range(8):
            t.send(i, tos=3 if i % 4 == 0 else 2)
            if i in (0, 4):
                t.b(w.CNP, 0, ext=bytes(16), tos=0)
        r = self.judge(t)
        a = next(q for q in r["qps"] if q["dest_qp"] == w.B_QP)
        b = next(q for q in r["qps"] if q["dest_qp"] == w.A_QP)
        self.assertEqual(a["ecn"], {"not_ect": 0, "ect0": 6, "ect1": 0, "ce": 2})
        # frames 2 and 7 of frames that are 1 us apart
        self.assertEqual((b["cnps"], b["cnp_interval_ns"]["min"]), (2, 5000))

    def test_pauses(self):
        mac = b"\2\0\0\0\0\1"
        t = Talk()
        t.add(w.pfc(mac, {3: 1000}))           # at 100 Gb/s a quantum is 5.12 ns
        t.wait(2)
        t.add(w.pfc(mac, {3: 0}))              # 3 us later
        t.wait(9)
        t.add(w.pfc(mac, {3: 100, 4: 65535}))  # 512 ns; 335.5 us
        t.wait(999)
        t.send(1)                              # 1,000 us later
        data = w.section(t.frames, interfaces=(("eth0", 100 * 10**9),))
        for args, rate in (((), data), (("--rate", "100Gbps"), w.pcap(t.frames))):
            r = self.check(rate, *args, status=0)
            p = {p["priority"]: p for p in r["pauses"]}
            self.assertEqual((p[3]["xoff"], p[3]["xon"], p[3]["pauses"]), (2, 1, 2))
            self.assertEqual(p[3]["paused_ns"], 3000 + 512)
            self.assertEqual(p[4]["paused_ns"], 65535 * 512 // 100)
            self.assertEqual(p[3]["quanta"], 1100)

    def test_two_queue_pairs_that_cannot_be_told_apart(self):
        t = Talk()
        for psn in range(5):
            t.send(psn)
            t.add(w.frame(w.A, w.B, w.bth(w.SEND_ONLY, 0x33, psn, True) + bytes(64)))
        t.ack(0)
        r = self.judge(t)
        b = next(q for q in r["qps"] if q["dest_qp"] == w.A_QP)
        self.assertEqual((b["paired_by"], b["src_qp"], b["unjudged"]), ("ambiguous", None, 1))

    def test_more_queue_pairs_than_followed(self):
        t = Talk()
        for qp in range(2, 12):
            t.add(w.frame(w.A, w.B, w.bth(w.SEND_ONLY, qp, 1) + bytes(64)))
        r = self.check(w.pcap(t.frames), "--max-qps", "2", status=0)
        # two queue pairs are four directions: six of ten packets are others'
        self.assertEqual((len(r["qps"]), r["taps"][0]["not_followed"]), (4, 6))

    def test_only_one_queue_pair(self):
        t = Talk()
        exchange(t, 1, 3)
        t.add(w.frame(w.A, w.B, w.bth(w.SEND_LAST, 0x33, 8) + bytes(64)))
        t.add(w.frame(w.A, w.B, w.bth(w.SEND_LAST, 0x33, 9) + bytes(64)))
        self.check(w.pcap(t.frames), status=1)
        r = self.check(w.pcap(t.frames), "--qp", "0x11", status=0)
        self.assertEqual({q["dest_qp"] for q in r["qps"]}, {w.A_QP, w.B_QP})

    def test_each_tap_is_judged_on_its_own(self):
        t = Talk()
        exchange(t, 1, 4)
        frames = []
        for i, (time, data) in enumerate(t.frames):
            frames.append((time, data, 0))
            if i != 2:  # PSN 2 passes the first tap only
                frames.append((time + 500, data, 1))
        r = self.check(w.section(frames, interfaces=(("here", 0), ("there", 0))), status=1)
        found = [(f["kind"], f["tap"]) for f in r["findings"] if f["violation"]]
        self.assertEqual(found, [("lost-acked", "there")])

    def test_directions_of_a_port_are_one_tap(self):
        t = Talk()
        exchange(t, 1, 4)
        frames = [(time, data, i % 2) for i, (time, data) in enumerate(t.frames)]
        r = self.check(w.section(frames, interfaces=(("p1 rx", 0), ("p1 tx", 0))), status=0)
        self.assertEqual([x["name"] for x in r["taps"]], ["p1"])
        self.assertEqual({q["paired_by"] for q in r["qps"]}, {"psn"})


class Files(Base):
    """The same talk in every form gives the same report."""

    def talk(self, version=4):
        t = Talk(version)
        exchange(t, 1, 5)
        t.send(7)
        t.nak(6)
        exchange(t, 6, 9)
        return t

    def reduced(self, r, scale=1):
        """What does not depend on the form."""
        return [(q["frames"], q["messages"], q["resends"], q["payload_bytes"], q["src_qp"],
                 q["ack_latency_ns"] and q["ack_latency_ns"]["max"] // scale) for q in r["qps"]]

    def test_forms(self):
        t = self.talk()
        want = self.reduced(self.check(w.pcap(t.frames), status=0))
        self.assertEqual(sum(m[0] for m in want), len(t.frames))
        forms = [w.pcap(t.frames, order, ns) for order in "<>" for ns in (True, False)]
        forms += [w.section(t.frames, order, tsresol=r) for order in "<>" for r in (9, 12, 6)]
        for data in forms:
            self.assertEqual(self.reduced(self.check(data, status=0)), want)
        # 2^-30 s is 0.93 ns
        binary = self.check(w.section(t.frames, tsresol=0x80 | 30), status=0)
        self.assertEqual(self.reduced(binary, 1100)[0][:5], want[0][:5])

    def test_simple_packet_blocks(self):
        t = self.talk()
        r = self.check(w.section(t.frames, simple=True), status=0)
        self.assertEqual(r["frames"], len(t.frames))

    def test_several_sections(self):
        t = self.talk()
        r = self.check(w.section(t.frames, "<") + w.section(t.frames, ">"), status=0)
        self.assertEqual([x["name"] for x in r["taps"]], ["eth0", "eth0 #2"])
        self.assertEqual([x["frames"] for x in r["taps"]], [len(t.frames)] * 2)

    def test_roce_v1_and_ipv6(self):
        want = [m[:3] for m in self.reduced(self.check(w.pcap(self.talk().frames)))]
        for version in (1, 6):
            r = self.check(w.pcap(self.talk(version).frames), status=0)
            self.assertEqual([m[:3] for m in self.reduced(r)], want)
            self.assertEqual(r["qps"][0]["src"], "::ffff:10.0.0.1")
            self.assertEqual(r["qps"][0]["roce"], 1 if version == 1 else 2)

    def test_tags(self):
        t = self.talk()
        want = self.reduced(self.check(w.pcap(t.frames)))
        t.frames = [(time, d[:12] + b"\x88\xa8\0\5\x81\0\x60\7" + d[12:]) for time, d in t.frames]
        self.assertEqual(self.reduced(self.check(w.pcap(t.frames), status=0)), want)

    def test_cut_frames(self):
        t = self.talk()
        want = self.reduced(self.check(w.pcap(t.frames)))
        r = self.check(w.pcap(t.frames, snaplen=60), status=0)
        self.assertEqual(self.reduced(r), want)
        # SENDs are 122 bytes long, acknowledgements 62
        self.assertEqual(r["taps"][0]["icrc_unjudged"], len(t.frames))

    def test_losses_of_the_capture_are_told(self):
        r = self.check(w.section(self.talk().frames, lost=17), status=0)
        self.assertEqual(r["taps"][0]["lost_by_capture"], 17)

    def test_what_a_lossy_capture_misses_is_no_violation(self):
        t = Talk()
        exchange(t, 1, 3)
        t.ack(4)
        exchange(t, 5, 6)
        self.check(w.section(t.frames), status=1)
        r = self.check(w.section(t.frames, lost=1), status=0)
        self.assertEqual((r["counts"]["partial"], r["counts"]["lost-acked"]), (1, 0))

    def test_cut_file(self):
        t = self.talk()
        for data in (w.pcap(t.frames), w.section(t.frames)):
            r = self.check(data[:-10], status=2)
            self.assertEqual(r["frames"], len(t.frames) - 1)
            self.assertRegex(r["error"], r"offset \d+, after frame %d: .*expected \d+ bytes" % (
                len(t.frames) - 1))

    def test_unreadable(self):
        cases = ((b"no capture", "expected a pcap or pcapng file, found magic 0x6e6f2063"),
                 (b"", "found 0 bytes"),
                 (w.pcap([])[:20] + struct.pack("<I", 113), "link type 113, expected Ethernet"),
                 (w.section([])[:8] + bytes(20), "byte-order magic"))
        for data, text in cases:
            path = os.path.join(self.dir.name, "bad")
            with open(path, "wb") as f:
                f.write(data)
            p = harness.fabemu(EXE, "pcap", "check", path)
            self.assertEqual(p.returncode, 2)
            self.assertIn(path, p.stderr)
            self.assertIn(text, p.stderr)

    def test_directory(self):
        p = harness.fabemu(EXE, "pcap", "check", self.dir.name)
        self.assertEqual(p.returncode, 2)
        self.assertIn("Is a directory", p.stderr)

    def test_several_files(self):
        path = os.path.join(self.dir.name, "x")
        with open(path, "wb") as f:
            f.write(w.pcap(self.talk().frames))
        p = harness.fabemu(EXE, "pcap", "check", "--json", path, path)
        self.assertEqual(len(json.loads(p.stdout)["files"]), 2)

    def test_standard_input(self):
        data = w.pcap(self.talk().frames)
        p = subprocess.run([EXE, "pcap", "check", "--json", "-"], input=data, check=False,
                           stdout=subprocess.PIPE)
        self.assertEqual(json.loads(p.stdout)["files"][0]["bytes"],
                         sum(len(d) for _, d in self.talk().frames))

    def test_usage(self):
        for args in ((), ("--qp", "x", "f"), ("--rate", "7", "f"), ("--nonsense", "f")):
            p = harness.fabemu(EXE, "pcap", "check", *args)
            self.assertEqual((p.returncode, p.stdout), (2, ""))
            self.assertIn("--help", p.stderr)


class Kernel(Base):
    """Two kernel rxe endpoints; what they did is in tests/data/README.md."""

    # (opcode kind, messages, bytes each) by queue pair of the receiver, on 10.0.0.1 and .2 alike
    WANT = {0x11: {"send": (20, 8192)}, 0x14: {"write": (16, 65536)}, 0x15: {"write": (16, 65536)},
            0x16: {"read": (8, 65536)}, 0x17: {"atomic": (16, 8)}, 0x18: {"send": (16, 16384)},
            0x19: {"write": (20, 8)}}

    def test_nothing_is_wrong(self):
        for path in CAPTURES:
            r = self.check(path, status=0)
            self.assertEqual(r["violations"], 0)
            counted = collections.Counter()
            for f in check_capture.read_capture(path):
                if f.data[12:14] == b"\x08\0" and f.data[23] == 17 and f.data[36:38] == b"\x12\xb7":
                    counted[f.data[26:30], int.from_bytes(f.data[47:50], "big"), f.data[42]] += 1
            reported = {}
            for q in r["qps"]:
                src = bytes(map(int, q["src"].split(".")))
                for name, n in q["opcodes"].items():
                    reported[src, q["dest_qp"], name] = n
            self.assertEqual(sum(counted.values()), sum(reported.values()))
            self.assertEqual(sorted(counted.values()), sorted(reported.values()))
            for (src, qp, opcode), n in counted.items():
                name = check_capture.opcode_name(opcode)
                name = name.replace("CMP_SWAP", "COMPARE_SWAP")
                self.assertEqual(reported.get((src, qp, name)), n, (src, qp, name))

    def test_messages(self):
        for path in CAPTURES:
            seen = set()
            for q in self.check(path, status=0)["qps"]:
                for kind, m in q["messages"].items():
                    if q["dest_qp"] not in self.WANT or "RC" not in list(q["opcodes"])[0]:
                        continue
                    n, size = self.WANT[q["dest_qp"]][kind]
                    self.assertEqual((m["sent"], m["completed"], m["bytes"]), (n, n, n * size))
                    seen.add(q["dest_qp"])
                if q["dest_qp"] == 0x1a:  # rping over rdma_cm
                    self.assertEqual(q["paired_by"], "cm")
            self.assertEqual(seen, set(self.WANT))

    def test_table(self):
        p = harness.fabemu(EXE, "pcap", "check", *CAPTURES)
        self.assertEqual(p.returncode, 0)
        self.assertEqual(p.stdout.count("no violations"), len(CAPTURES))
        self.assertLessEqual(max(map(len, p.stdout.replace(CAPTURES[0], "").split("\n"))), 110)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
