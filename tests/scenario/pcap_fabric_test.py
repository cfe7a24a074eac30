#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""pcap_fabric_test.py FABEMU CAPTURE.pcap...: fabemu's own captures judged, and cut.

What `fabemu pcap check` counts in a capture must be what the run itself counted. And what
`fabemu pcap export` cuts must be the frames asked for, bytes, times, names and comments unchanged.
"""

import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import harness

sys.path.insert(0, os.path.join(harness.ROOT, "tests"))
import check_capture  # noqa: E402
import roce_writer as w  # noqa: E402

EXE = ""
CAPTURES = []
PFC_NS = 2  # a pause's start and end are cut to nanoseconds in the capture


class Runs:
    """Captures of scenarios in configs/, made once."""

    def __init__(self):
        self.dir = tempfile.TemporaryDirectory()
        self.done = {}

    def get(self, name, *sets):
        if name not in self.done:
            out = os.path.join(self.dir.name, name)
            p = harness.fabemu(EXE, "run", os.path.join(harness.ROOT, "configs", name + ".yaml"),
                               "--out", out, "--pcap", out + ".pcapng", "--quiet", *sets)
            assert p.returncode == 0, p.stderr
            c = harness.fabemu(EXE, "pcap", "check", "--json", out + ".pcapng")
            self.done[name] = (out + ".pcapng", harness.read_summary(out), c.returncode,
                               json.loads(c.stdout)["files"][0])
        return self.done[name]


RUNS = None


class Own(unittest.TestCase):
    def test_lossy_incast(self):
        _, summary, status, r = RUNS.get("incast-lossy")
        self.assertEqual(status, 0, r["findings"][:5])
        self.assertEqual(r["frames"], sum(t["frames"] for t in r["taps"]))
        ips = {"10.0.0.%d" % i: "h%d" % i for i in range(1, 10)}
        seen = 0
        for q in r["qps"]:
            if not q["messages"] or q["tap"] != ips[q["src"]] + ":eth0":
                continue
            f = next(f for f in summary["flows"] if f["src"] == ips[q["src"]])
            self.assertEqual(q["messages"]["write"]["completed"], f["messages_done"])
            self.assertEqual(q["payload_bytes"], f["bytes_done"])
            self.assertEqual(q["resent_packets"], f["retransmissions"], f["name"])
            self.assertEqual(q["resends"]["nak"], f["naks"], f["name"])
            self.assertEqual(q["resends"]["timeout"], f["timeouts"], f["name"])
            self.assertEqual(q["frames"], f["packets"])
            seen += 1
        self.assertEqual(seen, 8)
        self.assertGreater(r["counts"]["nak"], 0)
        # the receiver's port sees what was not dropped: every gap is one that a NAK names
        naks = sum(q["naks"] for q in r["qps"] if q["tap"] == "h9:eth0")
        self.assertEqual(naks, sum(f["naks"] for f in summary["flows"]))

    def pauses(self, name, durations):
        _, summary, status, r = RUNS.get(name)
        self.assertEqual(status, 0, r["findings"][:5])
        got = {(p["interface"], p["priority"]): p for p in r["pauses"]}
        checked = 0
        for port in summary["ports"]:
            for way in ("rx", "tx"):
                n = port["counters"].get("%s_prio3_pause" % way, 0)
                p = got.pop(("%s:%s %s" % (port["node"], port["port"], way), 3), None)
                self.assertEqual(n, p["xoff"] + p["xon"] if p else 0, port["port"])
                if p is None or not durations:
                    continue
                want = port["counters"]["%s_prio3_pause_duration" % way] / 1000
                self.assertLessEqual(abs(p["paused_ns"] - want), PFC_NS * p["pauses"])
                checked += 1
        self.assertEqual(got, {})
        return checked

    def test_pauses_of_an_incast(self):
        # 8 senders, at both ends of their links
        self.assertEqual(self.pauses("incast-pfc", True), 16)

    def test_pauses_of_a_deadlock(self):
        self.pauses("pfc-deadlock", False)

    def test_loop(self):
        _, _, status, r = RUNS.get("routing-loop-above")
        self.assertEqual(status, 0, r["findings"][:5])
        at = {q["tap"]: q for q in r["qps"] if q["messages"]}
        # into the loop each packet goes once, within it as often as its TTL allows
        self.assertEqual(at["h1:eth0"]["looped"], 0)
        self.assertGreater(at["sw2:eth1"]["looped"], 10 * at["h1:eth0"]["frames"])
        self.assertEqual(at["sw2:eth1"]["resent_packets"], 0)


    def clean(self, name):
        _, summary, status, r = RUNS.get(name)
        self.assertEqual(status, 0, [f for f in r["findings"] if f["violation"]][:5])
        return summary, r

    def test_spraying(self):
        _, r = self.clean("packet-spraying")
        at = {q["tap"]: q for q in r["qps"] if q["src"] == "10.0.0.1" and
              "RC WRITE_MIDDLE" in q["opcodes"]}
        self.assertEqual(at["h1:eth0"]["gaps"], 0)
        self.assertGreater(at["spine1:eth0"]["gaps"], 100)  # sees every fourth packet
        self.assertGreater(at["h5:eth0"]["reordered"], 0)

    def test_every_operation_on_a_bad_link(self):
        _, r = self.clean("rdma-operations")
        reads = [q for q in r["qps"] if q["tap"] == "h1:eth0" and "read" in q["messages"]]
        self.assertEqual(sorted(q["messages"]["read"]["completed"] for q in reads), [20, 50])
        self.assertEqual({q["roce"] for q in reads}, {1, 2})
        swaps = [q for q in r["qps"] if q["tap"] == "h1:eth0" and "atomic" in q["messages"]]
        self.assertEqual([q["messages"]["atomic"]["completed"] for q in swaps], [2000, 2000])

    def test_receiver_not_ready(self):
        _, r = self.clean("receiver-not-ready")
        self.assertGreater(sum(q["resends"]["rnr"] for q in r["qps"]), 0)

    def test_selective_repeat(self):
        self.clean("loss-recovery")


    def fault(self, name, tap):
        """Resends of the requests that pass a tap, by cause, and how many packets they were."""
        _, r = self.clean("fault-" + name)
        q = [q for q in r["qps"] if q["tap"] == tap + ":eth0" and q["resent_packets"]]
        return {k: n for k, n in q[0]["resends"].items() if n}, q[0]["resent_packets"]

    def test_faults(self):
        # what each file's own expectations say
        self.assertEqual(self.fault("drop-nth", "h1"), ({"nak": 1}, 7))
        self.assertEqual(self.fault("drop-again", "h1"), ({"nak": 1, "timeout": 1}, 14))
        self.assertEqual(self.fault("duplicate", "h2"), ({"duplicate": 1}, 1))
        self.assertEqual(self.fault("read-hole", "h1")[0], {"implied": 1})
        self.assertEqual(self.fault("reorder", "h1")[1], 8)

    def test_damage(self):
        for name, kind in (("corrupt", "icrc"), ("truncate", "length")):
            path, _, status, r = RUNS.get("fault-" + name)
            self.assertEqual((status, {f["kind"] for f in r["findings"] if f["violation"]}),
                             (1, {kind}))
            # the frames that the independent checker refuses
            want = set()
            for f in check_capture.read_capture(path):
                try:
                    check_capture.check_frame(f, collections.Counter())
                except check_capture.Bad:
                    want.add(f.number)
            self.assertEqual({f["frame"] for f in r["findings"] if f["violation"]}, want)


class Export(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.out = os.path.join(self.dir.name, "out.pcapng")

    def export(self, path, *args):
        p = harness.fabemu(EXE, "pcap", "export", path, "--out", self.out, *args)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(os.listdir(self.dir.name), ["out.pcapng"])
        c = harness.fabemu(EXE, "pcap", "check", self.out)
        self.assertEqual(c.returncode, 0, c.stdout)
        if shutil.which("tshark") is not None:
            t = subprocess.run(["tshark", "-r", self.out, "-Y", "_ws.malformed"], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
            self.assertEqual((t.returncode, t.stdout), (0, ""), t.stderr)
        return list(check_capture.read_capture(self.out))

    def same(self, frames, want):
        self.assertEqual([f[1:] for f in frames], [f[1:] for f in want])
        self.assertTrue(frames)

    @staticmethod
    def goes_to(frame, *ends):
        """Whether a frame is RoCEv2 over untagged IPv4 to one of (source, queue pair)."""
        d = frame.data
        return d[12:14] == b"\x08\0" and d[23] == 17 and d[36:38] == b"\x12\xb7" and (
            ".".join(map(str, d[26:30])), int.from_bytes(d[47:50], "big")) in ends

    def test_a_queue_pair_with_its_connection_management(self):
        frames = self.export(CAPTURES[0], "--qp", "0x1a")
        # queue pair 0x1a on both sides, and five datagrams on queue pair 1: REQ, REP, RTU, DREQ, DREP
        want = [f._replace(interface="if0") for f in check_capture.read_capture(CAPTURES[0])
                if self.goes_to(f, ("10.0.0.1", 0x1a), ("10.0.0.2", 0x1a), ("10.0.0.1", 1),
                                ("10.0.0.2", 1))]
        self.same(frames, want)
        self.assertEqual(len(frames), 65)

    def test_a_queue_pair_at_all_its_taps(self):
        path, _, _, r = RUNS.get("incast-lossy")
        q = next(q for q in r["qps"] if q["tap"] == "h2:eth0" and q["messages"])
        frames = self.export(path, "--qp", str(q["dest_qp"]))
        want = [f for f in check_capture.read_capture(path)
                if self.goes_to(f, (q["src"], q["dest_qp"]), (q["dst"], q["src_qp"]))]
        self.same(frames, want)
        self.assertEqual(len({f.interface for f in frames}), 8)  # 2 links, 2 ends, 2 directions

    def test_the_surroundings_of_a_comment(self):
        path = RUNS.get("incast-lossy")[0]
        frames = self.export(path, "--comment", "queue_full", "--before", "300ns", "--after", "1us")
        everything = list(check_capture.read_capture(path))
        at = next(f for f in everything if "queue_full" in f.comment).time
        self.same(frames, [f for f in everything if at - 300 <= f.time <= at + 1000])

    def test_the_surroundings_of_a_finding(self):
        path, _, _, r = RUNS.get("incast-lossy")
        e = next(f for f in r["findings"] if f["kind"] == "nak")
        frames = self.export(path, "--event", str(e["event"]), "--frames", "7")
        want = [f for f in check_capture.read_capture(path)
                if abs(f.number - e["frame"]) <= 7]
        self.same(frames, want)
        self.assertEqual(len(frames), 15)

    def test_a_filter_within_the_surroundings_of_a_frame(self):
        path = RUNS.get("pfc-deadlock")[0]
        everything = list(check_capture.read_capture(path))
        xoff = next(f for f in everything if "PFC XOFF" in f.comment)
        frames = self.export(path, "--around", str(xoff.number), "--after", "2us", "--filter",
                             "ether proto 0x8808")
        want = [f for f in everything if f.data[12:14] == b"\x88\x08" and
                xoff.time - 10000 <= f.time <= xoff.time + 2000]
        self.same(frames, want)

    def test_congestion_notifications_go_with_their_queue_pair(self):
        t = w.Talk()
        for psn in range(3):
            t.send(psn)
            t.ack(psn)
        t.b(w.CNP, 0, ext=bytes(16))
        t.add(w.frame(w.A, w.B, w.bth(w.SEND_ONLY, 0x33, 1) + bytes(64)))
        path = os.path.join(self.dir.name, "in")
        with open(path, "wb") as f:
            f.write(w.section([(time, d, 0, "frame %d" % i) for i, (time, d) in
                               enumerate(t.frames)]))
        source = list(check_capture.read_capture(path))
        p = harness.fabemu(EXE, "pcap", "export", path, "--out", self.out, "--qp", "0x22")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.same(list(check_capture.read_capture(self.out)), source[:7])

    def fails(self, status, text, *args):
        p = harness.fabemu(EXE, "pcap", "export", *args)
        self.assertEqual((p.returncode, p.stdout), (status, ""))
        self.assertIn(text, p.stderr)
        self.assertEqual(os.listdir(self.dir.name), [])

    def test_nothing_is_left_when_it_fails(self):
        self.fails(2, "no such queue pair", CAPTURES[0], "--out", self.out, "--qp", "0xabcd")
        self.fails(2, "no such frame", CAPTURES[0], "--out", self.out, "--around", "1000000")
        self.fails(2, "no such comment", CAPTURES[0], "--out", self.out, "--comment", "x")
        self.fails(2, "no frame is", CAPTURES[0], "--out", self.out, "--filter", "port 9")
        self.fails(2, "filter", CAPTURES[0], "--out", self.out, "--filter", "nonsense (")
        self.fails(2, "expected --out", CAPTURES[0], "--qp", "1")
        self.fails(2, "expected one of", CAPTURES[0], "--out", self.out, "--around", "1", "--event",
                   "1")
        self.fails(2, "No such file", self.out + ".missing", "--out", self.out, "--qp", "1")
        self.fails(3, "No such file", CAPTURES[0], "--out", self.out + "/x", "--qp", "0x11")


if __name__ == "__main__":
    EXE, CAPTURES = sys.argv[1], sys.argv[2:]
    RUNS = Runs()
    unittest.main(argv=sys.argv[:1])
