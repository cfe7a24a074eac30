#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""pcap_check_test.py FABEMU CAPTURE.pcap...: what `fabemu pcap check` finds, and what it does not.

Scripted talks (roce_writer.py) with one thing wrong each, and the legal things that resemble them;
the kernel's captures, counted again here by hand; every form of file.
"""

import collections
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest

import harness

sys.path.insert(0, os.path.join(harness.ROOT, "tests"))
import check_capture  # noqa: E402
import roce_writer as w  # noqa: E402
from roce_writer import Talk  # noqa: E402

EXE = ""
CAPTURES = []


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


class Packets(Base):
    """What a packet must be by itself."""

    def damaged(self, change, kind, opcode=w.SEND_ONLY, size=64):
        t = Talk()
        exchange(t, 10, 11)
        n = t.a(opcode, 12, bytes(size))
        time, data = t.frames[-1]
        t.frames[-1] = (time, bytes(change(bytearray(data))))
        t.send(12)
        t.ack(12)
        exchange(t, 13, 14)
        self.judge(t, (kind, n))

    def test_wrong_icrc(self):
        def change(d):
            d[60] ^= 1
            return d
        self.damaged(change, "icrc")

    def test_without_payload_checks_a_wrong_icrc_passes(self):
        t = Talk()
        t.send(1)
        time, data = t.frames[0]
        t.frames[0] = (time, data[:-1] + bytes([data[-1] ^ 1]))
        self.check(w.pcap(t.frames), "--no-payload", status=0)
        self.check(w.pcap(t.frames), status=1)

    def test_wrong_ip_checksum(self):
        def change(d):
            d[25] ^= 1
            return d
        self.damaged(change, "ip-checksum")

    def test_udp_longer_than_its_packet(self):
        def change(d):
            d[39] += 4
            return d
        self.damaged(change, "length")

    def test_payload_that_fills_no_word(self):
        t = Talk()
        n = t.add(w.frame(w.A, w.B, w.bth(w.SEND_ONLY, w.B_QP, 5) + bytes(63)))
        self.judge(t, ("length", n))

    def test_acknowledgement_with_payload(self):
        t = Talk()
        t.send(1)
        n = t.b(w.ACK, 1, bytes(64), struct.pack("!I", 0x1f000001))
        self.judge(t, ("length", n))

    def test_first_packet_of_no_mtu(self):
        t = Talk()
        n = t.a(w.SEND_FIRST, 1, bytes(1000))
        self.judge(t, ("mtu", n))

    def test_version_of_the_bth(self):
        body = bytearray(w.bth(w.SEND_ONLY, w.B_QP, 5))
        body[1] |= 1
        t = Talk()
        n = t.add(w.frame(w.A, w.B, bytes(body)))
        self.judge(t, ("bth", n))

    def test_opcode_of_nobody_is_a_note(self):
        t = Talk()
        n = t.a(0xc5, 1, bytes(16))
        self.judge(t, notes=[("opcode", n)])

    def test_pfc_of_an_unknown_kind(self):
        t = Talk()
        data = bytearray(w.pfc(b"\2\0\0\0\0\1", {3: 5}))
        data[15] = 9
        n = t.add(data)
        self.judge(t, ("mac-control", n))


class Messages(Base):
    def write(self, t, psn, size, dma):
        """A WRITE of 256-byte packets."""
        parts = (size + 255) // 256
        for i in range(parts):
            op = w.WRITE_FIRST if i == 0 else w.WRITE_LAST if i == parts - 1 else w.WRITE_MIDDLE
            ext = struct.pack("!QII", 0, 1, dma) if i == 0 else b""
            n = t.a(op, psn + i, bytes(min(256, size - 256 * i)), ext, ack_req=i == parts - 1)
        t.ack(psn + parts - 1)
        return n

    def test_messages_are_measured(self):
        t = Talk()
        self.write(t, 0xfffffe, 1000, 1000)  # across the wrap of the PSNs
        self.write(t, 2, 600, 600)
        r = self.judge(t)
        q = next(q for q in r["qps"] if q["messages"])
        self.assertEqual(q["messages"]["write"], {"sent": 2, "completed": 2, "bytes": 1600,
                                                  "min_bytes": 600, "max_bytes": 1000})
        self.assertEqual((q["mtu"], q["src_qp"], q["payload_bytes"]), (256, w.A_QP, 1600))
        # the ACK comes 1 us after the last packet, both times
        self.assertEqual((q["ack_latency_ns"]["min"], q["ack_latency_ns"]["max"]), (1000, 1000))

    def test_length_of_a_write(self):
        t = Talk()
        n = self.write(t, 5, 1000, 1004)
        self.judge(t, ("dma-length", n))

    def test_middle_without_first(self):
        t = Talk()
        exchange(t, 1, 2)
        n = t.a(w.SEND_LAST, 3, bytes(16))
        self.judge(t, ("opcode-order", n))

    def test_first_within_a_message(self):
        t = Talk()
        t.a(w.SEND_FIRST, 1, bytes(256))
        n = t.a(w.SEND_ONLY, 2, bytes(16))
        self.judge(t, ("opcode-order", n))

    def test_mtu_changes(self):
        t = Talk()
        t.a(w.SEND_FIRST, 1, bytes(256))
        n = t.a(w.SEND_MIDDLE, 2, bytes(512))
        self.judge(t, ("mtu", n))

    def test_capture_that_begins_within_a_message(self):
        t = Talk()
        t.ack(3)
        t.a(w.SEND_MIDDLE, 5, bytes(256))
        t.a(w.SEND_LAST, 6, bytes(16), ack_req=True)
        t.ack(4)
        t.ack(6)
        self.judge(t)


class Losses(Base):
    """Go-back-N."""

    def lost_before(self):
        """PSNs 1 to 5, of which 3 is lost before the tap and 4, 5 dropped by the responder."""
        t = Talk()
        exchange(t, 1, 2)
        self.gap = t.send(4)
        t.send(5)
        self.nak = t.nak(3)
        return t

    def test_resend_from_the_nak(self):
        t = self.lost_before()
        t.send(6)
        exchange(t, 3, 8)
        r = self.judge(t, notes=[("gap", self.gap), ("nak", self.nak)])
        q = next(q for q in r["qps"] if q["dest_qp"] == w.B_QP)
        # 3, 4, 5 and 6 again; 3 is the second request behind the NAK and comes 2 us after it
        self.assertEqual((q["resent_packets"], q["resends"]["nak"], q["nak_packets_max"]), (4, 1, 2))
        self.assertEqual(q["nak_to_resend_ns"]["max"], 2000)
        self.assertEqual((q["gaps"], q["gap_packets"]), (1, 1))
        self.assertEqual(q["messages"]["send"]["completed"], 8)

    def test_lost_behind_the_tap(self):
        t = Talk()
        exchange(t, 1, 2)
        for psn in (3, 4, 5):
            t.send(psn)
        t.nak(3)
        exchange(t, 3, 7)
        r = self.judge(t)
        self.assertEqual(sum(q["gaps"] for q in r["qps"]), 0)

    def test_nak_ignored(self):
        t = self.lost_before()
        exchange(t, 6, 8)
        self.judge(t, ("nak-unanswered", self.nak), ("lost-acked", self.gap))

    def test_resend_from_the_wrong_psn(self):
        t = self.lost_before()
        resend = t.send(4)
        t.send(5)
        t.ack(5)
        exchange(t, 6, 7)
        self.judge(t, ("resend-psn", resend), ("lost-acked", self.gap))

    def test_resend_whose_first_packet_is_lost_again(self):
        t = self.lost_before()
        t.send(4)
        t.send(5)
        t.wait(500)
        exchange(t, 3, 7)  # by the timer
        self.judge(t)

    def test_second_nak_for_a_gap(self):
        t = self.lost_before()
        again = t.nak(3)
        exchange(t, 3, 6)
        self.judge(t, ("nak-repeated", again))

    def test_nak_for_what_was_acknowledged(self):
        t = Talk()
        exchange(t, 1, 4)
        n = t.nak(2)
        exchange(t, 5, 6)
        self.judge(t, ("nak-acked", n))

    def test_nak_at_the_end(self):
        t = self.lost_before()
        self.judge(t, notes=[("nak-open", self.nak)])

    def test_removed_packet(self):
        t = Talk()
        exchange(t, 1, 3)
        behind = t.send(5)
        t.ack(5)
        exchange(t, 6, 7)
        self.judge(t, ("lost-acked", behind))

    def test_timer(self):
        t = Talk()
        exchange(t, 1, 2)
        t.send(3)
        t.send(4)
        t.wait(1000)
        n = t.send(3)
        t.ack(3)
        exchange(t, 4, 5)
        r = self.judge(t, notes=[("timeout", n)])
        q = next(q for q in r["qps"] if q["dest_qp"] == w.B_QP)
        self.assertEqual((q["resends"]["timeout"], q["resent_packets"]), (1, 2))

    def test_copies_by_a_loop_are_not_resends(self):
        t = Talk()
        exchange(t, 1, 2)
        for ttl in (64, 62, 60):
            t.send(3, ttl=ttl, ip_id=77)
        r = self.judge(t)
        q = next(q for q in r["qps"] if q["dest_qp"] == w.B_QP)
        self.assertEqual((q["looped"], q["resent_packets"]), (2, 0))

    def test_late_packet(self):
        t = Talk()
        exchange(t, 1, 2)
        t.send(4)
        n = t.send(3)
        t.ack(4, 4)
        self.judge(t, notes=[("reordered", n)])

    def test_nak_overtaken_where_packets_reorder(self):
        t = Talk()
        exchange(t, 1, 2)
        t.send(4)
        late = t.send(3)
        t.ack(4, 4)
        t.msn = 4
        exchange(t, 5, 6)
        n = t.nak(3)
        exchange(t, 7, 8)
        self.judge(t, notes=[("reordered", late), ("overtaken", n)])

    def test_tap_on_one_of_two_paths(self):
        t = Talk()
        for psn in range(1, 101):
            if psn % 2:
                t.send(psn)
            t.ack(psn)
        t.send(101)
        r = self.judge(t)
        # 50 of 100 are missing: each a gap, acknowledged; the last gap is closed by PSN 101
        self.assertEqual(r["counts"]["partial"], 50)

    def test_acknowledgement_of_what_was_not_sent(self):
        t = Talk()
        exchange(t, 1, 6)
        n = t.ack(1000)
        exchange(t, 7, 8)
        self.judge(t, ("ack-unsent", n))

    def test_acknowledgement_ahead_of_its_request(self):
        t = Talk()
        exchange(t, 1, 6)
        n = t.ack(7)
        t.send(7)
        exchange(t, 8, 9)
        self.judge(t, notes=[("reordered", n)])

    def test_msn_goes_back(self):
        t = Talk()
        exchange(t, 1, 6)
        t.send(7)
        n = t.ack(7, 3)
        self.judge(t, ("msn-backwards", n))

    def rnr(self, wait_us):
        t = Talk()
        exchange(t, 1, 2)
        t.send(3)
        t.nak(3, w.RNR_NAK | 12)  # 640 us
        t.wait(wait_us)
        n = t.send(3)
        t.ack(3)
        return t, n

    def test_rnr_timer_respected(self):
        t, _ = self.rnr(640)
        r = self.judge(t)
        self.assertEqual(sum(q["resends"]["rnr"] for q in r["qps"]), 1)

    def test_rnr_timer_not_respected(self):
        t, n = self.rnr(600)  # resent 601 us after
        self.judge(t, ("rnr-early", n))

    def test_connection_of_the_same_queue_pair_anew(self):
        t = Talk()
        exchange(t, 1, 3)
        t.msn = 0
        n = t.send(5000000)
        t.ack(5000000)
        self.judge(t, notes=[("restart", n)])


class Reads(Base):
    def test_read(self):
        t = Talk()
        t.read(10, 600)
        t.msn = 1
        t.response(w.RESP_FIRST, 10, bytes(256))
        t.response(w.RESP_MIDDLE, 11, bytes(256))
        t.response(w.RESP_LAST, 12, bytes(88))
        t.read(13, 64)
        t.response(w.RESP_ONLY, 13, bytes(64))
        r = self.judge(t)
        q = next(q for q in r["qps"] if q["messages"])
        self.assertEqual(q["messages"]["read"]["completed"], 2)
        self.assertEqual(q["read_latency_ns"]["count"], 2)

    def test_request_behind_a_read_of_unknown_mtu(self):
        t = Talk()
        t.read(10, 10000)
        t.send(20)  # 10 responses: the MTU is 1024
        r = self.judge(t)
        self.assertEqual(r["qps"][0]["mtu"], 1024)

    def test_short_response(self):
        t = Talk()
        t.read(10, 600)
        t.response(w.RESP_FIRST, 10, bytes(256))
        t.response(w.RESP_MIDDLE, 11, bytes(256))
        n = t.response(w.RESP_LAST, 12, bytes(80))
        self.judge(t, ("response-order", n))

    def test_response_that_ends_early(self):
        t = Talk()
        t.read(10, 1000)
        t.response(w.RESP_FIRST, 10, bytes(256))
        n = t.response(w.RESP_LAST, 11, bytes(232))
        self.judge(t, ("response-order", n), ("response-order", n))

    def test_response_unasked(self):
        t = Talk()
        exchange(t, 1, 5)
        t.send(6)
        n = t.response(w.RESP_ONLY, 6, bytes(16))
        self.judge(t, ("response-unasked", n))

    def test_hole_in_the_responses_and_the_implied_nak(self):
        t = Talk()
        t.read(10, 1024)
        t.response(w.RESP_FIRST, 10, bytes(256))
        hole = t.response(w.RESP_MIDDLE, 12, bytes(256))
        t.response(w.RESP_LAST, 13, bytes(256))
        t.read(11, 768)
        t.response(w.RESP_FIRST, 11, bytes(256))
        t.response(w.RESP_MIDDLE, 12, bytes(256))
        t.response(w.RESP_LAST, 13, bytes(256))
        exchange(t, 14, 15)
        r = self.judge(t, notes=[("read-hole", hole)])
        q = next(q for q in r["qps"] if q["dest_qp"] == w.B_QP)
        self.assertEqual(q["resends"]["implied"], 1)
        self.assertEqual(q["messages"]["read"]["completed"], 1)

    def test_read_again_from_a_hole_is_as_long_as_asked_for(self):
        t = Talk()
        t.read(10, 1000)
        t.response(w.RESP_FIRST, 10, bytes(256))
        t.response(w.RESP_MIDDLE, 12, bytes(256))
        t.read(11, 744)
        t.response(w.RESP_FIRST, 11, bytes(256))
        t.response(w.RESP_MIDDLE, 12, bytes(256))
        t.response(w.RESP_LAST, 13, bytes(232))
        r = self.judge(t)
        b = next(q for q in r["qps"] if q["dest_qp"] == w.A_QP)
        self.assertEqual(b["payload_bytes"], 1000)

    def test_atomic(self):
        t = Talk()
        t.a(w.FETCH_ADD, 5, ext=bytes(28), ack_req=True)
        t.b(w.ATOMIC_ACK, 5, ext=struct.pack("!I", 0x1f000001) + bytes(8))
        r = self.judge(t)
        q = next(q for q in r["qps"] if q["messages"])
        self.assertEqual(q["messages"]["atomic"]["completed"], 1)

    def test_atomic_answer_to_a_send(self):
        t = Talk()
        t.send(5)
        n = t.b(w.ATOMIC_ACK, 5, ext=struct.pack("!I", 0x1f000001) + bytes(8))
        self.judge(t, ("response-unasked", n))


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
    EXE, CAPTURES = sys.argv[1], sys.argv[2:]
    unittest.main(argv=sys.argv[:1])
