#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""pcap_check_test.py FABEMU: what `fabemu pcap check` finds in one connection, and what it does not.

Scripted talks (roce_writer.py) with one thing wrong each, and the legal things that resemble them.
"""

import struct
import sys
import unittest

from pcap_base import Base, exchange, w
from roce_writer import Talk


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


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
