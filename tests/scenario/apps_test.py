#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""apps_test.py FABEMU: RDMA programs in built-in NICs with given packets lost, repeated or overtaken.

A round of rping with 2000 bytes and a path MTU of 1024 (a: client, b: server):

    a SEND, b READ (2 responses), b SEND, a SEND, b WRITE (2 packets), b SEND

Each of b's steps waits for the one before. Counts below follow from that and from the transport's rules.
"""

import collections
import os
import sys
import tempfile
import unittest

import harness

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import check_capture  # noqa: E402

EXE = ""

SCENARIO = """
defaults: {nic: {mtu: 1024, ack_every: 4}}
duration: 2s
switches: [sw1]
hosts:
  a: {ip: 10.0.0.1, ip6: "fd00::1", apps: {c: {type: %(kind)s-client, peer: b, cm_timeout: 1ms, %(more)s}}}
  b: {ip: 10.0.0.2, ip6: "fd00::2"%(server)s}
links: [[a, sw1], [sw1, b]]
captures: [{file: a.pcapng, taps: a}]
faults: [%(fault)s]
"""
SERVER = ", apps: {s: {type: %(kind)s-server, cm_timeout: 1ms, %(more)s}}"

MADS = {0x10: "REQ", 0x12: "REJ", 0x13: "REP", 0x14: "RTU", 0x15: "DREQ", 0x16: "DREP", 0x17: "SIDR_REQ",
        0x18: "SIDR_REP"}


def rule(link, direction, action, **match):
    keys = "".join(", %s: %s" % m for m in match.items())
    return '{link: "%s:eth0", direction: %s, action: %s%s}' % (link, direction, action, keys)


def mads(frames):
    """How often each message of the connection manager passed, lost ones included."""
    seen = collections.Counter()
    for f in frames:
        v6 = f.data[12:14] == b"\x86\xdd"
        bth = 14 + (40 if v6 else 20) + 8
        if f.data[bth] == 0x64 and f.data[bth + 5:bth + 8] == b"\0\0\1":
            seen[MADS[int.from_bytes(f.data[bth + 36:bth + 38], "big")]] += 1
    return seen


class Programs(unittest.TestCase):
    def simulate(self, kind="rping", fault="", more="size: 2000B, count: 5", server="", lcores=(1,)):
        """The same on each number of lcores; `server`: its keys if not the client's, None: there is none. Returns apps by name, counters by host, and MADs."""
        digests = set()
        for n in lcores:
            with tempfile.TemporaryDirectory() as tmp:
                path, out = os.path.join(tmp, "s.yaml"), os.path.join(tmp, "out")
                with open(path, "w", encoding="utf-8") as f:
                    f.write(SCENARIO % {"kind": kind, "more": more, "fault": fault, "server":
                                        "" if server is None else
                                        SERVER % {"kind": kind, "more": server or more}})
                p = harness.fabemu(EXE, "run", path, "--out", out, "--lcores", str(n))
                self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
                s = harness.read_summary(out)
                errors = harness.conservation_errors(s) + harness.schema_errors(s)
                self.assertEqual(errors, [])
                digests.add(s["digest"])
                capture = os.path.join(out, "a.pcapng")
                if n == 1:
                    self.assertEqual(harness.capture_errors(capture), [])
                seen = mads(check_capture.read_capture(capture))
        self.assertEqual(len(digests), 1)
        for fault_result in s["faults"]:
            self.assertGreater(fault_result["applied"], 0)
        ctr = {p["node"]: collections.Counter(p["hw_counters"]) for p in s["ports"]
               if "hw_counters" in p}
        return {a["name"]: a for a in s["apps"]}, ctr, seen

    def done(self, apps):
        for a in apps.values():
            self.assertEqual((a["status"], a["mismatches"]), ("DONE", 0), a)

    # ---- rping, nothing lost

    def test_clean_rounds(self):
        for more in ("size: 2000B, count: 5", "size: 2000B, count: 5, ipv6: yes"):
            apps, ctr, seen = self.simulate(more=more, lcores=(1, 2))
            self.done(apps)
            self.assertEqual(ctr["a"]["rx_read_requests"], 5)
            self.assertEqual(ctr["a"]["rx_write_requests"], 5)
            self.assertEqual(sum(a["retransmitted"] + a["timeouts"] + a["naks"] for a in apps.values()), 0)
            self.assertEqual(dict(seen), {"REQ": 1, "REP": 1, "RTU": 1, "DREQ": 1, "DREP": 1})

    # ---- the transport under them

    def check_rping(self, fault, server, client, at_a, at_b):
        apps, ctr, _ = self.simulate(fault=fault)
        self.done(apps)
        keys = ("retransmitted", "timeouts", "naks")
        self.assertEqual(tuple(apps["s"][k] for k in keys), server)
        self.assertEqual(tuple(apps["c"][k] for k in keys), client)
        names = ("out_of_sequence", "duplicate_request", "packet_seq_err", "implied_nak_seq_err",
                 "local_ack_timeout_err")
        for host, expected in (("a", at_a), ("b", at_b)):
            self.assertEqual({n: ctr[host][n] for n in names if ctr[host][n]}, expected, host)

    def test_first_read_response_lost(self):
        """The second one tells: an implied NAK, and the READ is asked for again as a whole."""
        self.check_rping(rule("a", "tx", "drop", op="RC_READ_RESPONSE_FIRST", nth=1), (1, 0, 0), (0, 0, 0),
                         {"duplicate_request": 1}, {"implied_nak_seq_err": 1})

    def test_last_read_response_lost(self):
        """Nothing follows it: the timer, and the rest is asked for."""
        self.check_rping(rule("a", "tx", "drop", op="RC_READ_RESPONSE_LAST", nth=1), (1, 1, 0), (0, 0, 0),
                         {"duplicate_request": 1}, {"local_ack_timeout_err": 1})

    def test_first_write_packet_lost(self):
        """The last one comes early: a NAK, and both go again."""
        self.check_rping(rule("b", "tx", "drop", op="RC_WRITE_FIRST", nth=1), (2, 0, 1), (0, 0, 0),
                         {"out_of_sequence": 1}, {"packet_seq_err": 1})

    def test_last_write_packet_lost(self):
        """Nothing follows it: the timer; the first one, not acknowledged yet, arrives twice."""
        self.check_rping(rule("b", "tx", "drop", op="RC_WRITE_LAST", nth=1), (2, 1, 0), (0, 0, 0),
                         {"duplicate_request": 1}, {"local_ack_timeout_err": 1})

    def test_repeated_packet_lost_again(self):
        """The NAK's answer is lost as well: the timer after it."""
        fault = rule("b", "tx", "drop", op="RC_WRITE_FIRST", count=2)
        # The WRITE: 2 + 2 repetitions. The second WRITE_LAST is early too, and silent (one NAK per gap).
        self.check_rping(fault, (4, 1, 1), (0, 0, 0), {"out_of_sequence": 2},
                         {"packet_seq_err": 1, "local_ack_timeout_err": 1})

    def test_send_comes_twice(self):
        self.check_rping(rule("a", "tx", "duplicate", op="RC_SEND_ONLY", nth=3), (0, 0, 0), (0, 0, 0), {},
                         {"duplicate_request": 1})

    def test_lost_ack_is_made_up_for_by_the_next(self):
        self.check_rping(rule("b", "tx", "drop", op="ack", nth=1), (0, 0, 0), (0, 0, 0), {}, {})

    def test_write_packets_overtake(self):
        """As lost, but that the first one comes after the NAK was sent: it is in order then."""
        apps, ctr, _ = self.simulate(fault=rule("b", "tx", "reorder", op="RC_WRITE_FIRST", nth=1))
        self.done(apps)
        self.assertEqual(ctr["a"]["out_of_sequence"], 1)
        self.assertEqual(ctr["b"]["packet_seq_err"], 1)
        self.assertEqual(apps["s"]["retransmitted"], 2)
        self.assertEqual(apps["s"]["timeouts"], 0)

    # ---- the connection manager

    def test_lost_request(self):
        apps, _, seen = self.simulate(fault=rule("a", "tx", "drop", qpn=1, nth=1))
        self.done(apps)
        self.assertEqual(dict(seen), {"REQ": 2, "REP": 1, "RTU": 1, "DREQ": 1, "DREP": 1})

    def test_lost_reply(self):
        apps, _, seen = self.simulate(fault=rule("b", "tx", "drop", qpn=1, nth=1))
        self.done(apps)
        # The server repeats it before the client asks again; the first one never got here.
        self.assertEqual(dict(seen), {"REQ": 1, "REP": 1, "RTU": 1, "DREQ": 1, "DREP": 1})

    def test_lost_ready_to_use(self):
        """The client's first SEND says it too (IBTA 12.9.7.1, communication established)."""
        apps, _, seen = self.simulate(fault=rule("a", "tx", "drop", qpn=1, nth=2))
        self.done(apps)
        self.assertEqual((seen["REQ"], seen["DREQ"]), (1, 1))

    def test_lost_disconnect_request(self):
        apps, _, seen = self.simulate(fault=rule("a", "tx", "drop", qpn=1, nth=3))
        self.done(apps)
        self.assertEqual((seen["DREQ"], seen["DREP"]), (2, 1))

    def test_lost_disconnect_reply(self):
        """The request comes again, and is answered again though the connection is gone."""
        apps, _, seen = self.simulate(fault=rule("b", "tx", "drop", qpn=1, nth=2))
        self.done(apps)
        self.assertEqual((seen["DREQ"], seen["DREP"]), (2, 1))  # the first one never got here

    def test_request_comes_twice(self):
        apps, _, seen = self.simulate(fault=rule("a", "tx", "duplicate", qpn=1, nth=1))
        self.done(apps)
        self.assertEqual(apps["s"]["connections"], 1)
        self.assertEqual(seen["DREQ"], 1)

    def test_unreachable(self):
        """15 repetitions (rdma_cm's CMA_MAX_CM_RETRIES), then the program is told."""
        apps, _, seen = self.simulate(fault=rule("a", "tx", "drop", qpn=1))
        self.assertEqual(apps["c"]["status"], "UNREACHABLE")
        self.assertEqual(dict(seen), {"REQ": 16, "REJ": 1})  # to whom it may concern: timed out

    def test_nobody_listens(self):
        apps, _, seen = self.simulate(more="size: 2000B, port: 7999", server="size: 2000B")
        self.assertEqual(apps["c"]["status"], "REFUSED")
        self.assertEqual(dict(seen), {"REQ": 1, "REJ": 1})

    def test_nobody_is_there(self):
        """A host without programs has no connection manager."""
        apps, ctr, seen = self.simulate(server=None)
        self.assertEqual(apps["c"]["status"], "UNREACHABLE")
        self.assertEqual(seen["REQ"], 16)

    # ---- cmatose and udaddy

    def test_cmatose_with_losses(self):
        """Each side sends its messages; every 7th data packet is lost, none of the content is."""
        for more in ("size: 3000B, count: 10", "size: 3000B, count: 10, ipv6: yes"):
            apps, ctr, _ = self.simulate("cmatose", rule("a", "tx", "drop", op="data", every=7), more,
                                         lcores=(1, 2))
            self.done(apps)
            self.assertEqual((apps["c"]["messages"], apps["s"]["messages"]), (10, 10))
            self.assertGreater(apps["c"]["retransmitted"], 0)

    def test_udaddy(self):
        for more in ("size: 900B, count: 10", "size: 900B, count: 10, ipv6: yes"):
            apps, _, seen = self.simulate("udaddy", more=more, lcores=(1, 2))
            self.done(apps)
            self.assertEqual((apps["c"]["messages"], apps["s"]["messages"]), (10, 10))
            self.assertEqual(dict(seen), {"SIDR_REQ": 1, "SIDR_REP": 1})

    def test_udaddy_lost_lookup(self):
        apps, _, seen = self.simulate("udaddy", rule("a", "tx", "drop", qpn=1, nth=1), "size: 900B, count: 10")
        self.done(apps)
        self.assertEqual(dict(seen), {"SIDR_REQ": 2, "SIDR_REP": 1})

    def test_udaddy_loses_a_datagram_for_good(self):
        """The server has one message less, and both wait for it until the run ends."""
        fault = rule("a", "tx", "drop", op="UD_SEND_ONLY_IMM", nth=4)
        apps, _, seen = self.simulate("udaddy", fault, "size: 900B, count: 10")
        self.assertEqual(apps["s"]["messages"], 9)
        self.assertNotEqual(apps["s"]["status"], "DONE")
        self.assertEqual(apps["s"]["retransmitted"] + apps["c"]["retransmitted"], 0)
        self.assertEqual(dict(seen), {"SIDR_REQ": 1, "SIDR_REP": 1})


if __name__ == "__main__":
    EXE = sys.argv.pop(1)
    unittest.main(verbosity=2)
