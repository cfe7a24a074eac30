#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""dcqcn_test.py FABEMU: the edges of real endpoints run DCQCN for them.

Two kernel rxe guests write into a third through a slow link, with DCQCN at their edges and without.
Judged by what was marked, answered, held and paused, and by the order in which frames arrived.
"""

import collections
import os
import struct
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import endpoints_test as guests  # noqa: E402
from endpoints_test import check, counters, harness  # noqa: E402

CONFIG = os.path.join(guests.ROOT, "configs", "rxe-dcqcn.yaml")
SENDERS = ("send1", "send2")
DATA_BYTES = 1000  # a frame that is longer carries data
EPB = 6            # pcapng: enhanced packet block


def senders_of_data(path):
    """The IPv4 source address of each long frame of a capture, in order."""
    with open(path, "rb") as f:
        raw = f.read()
    at, found = 0, []
    while at + 12 <= len(raw):
        kind, size = struct.unpack_from("<II", raw, at)
        if kind == EPB and struct.unpack_from("<I", raw, at + 24)[0] > DATA_BYTES:
            found.append(raw[at + 28 + 26:at + 28 + 30])  # Ethernet 14, IPv4 source at 12
        at += size
    return found


def while_both_send(order):
    """Frames per sender from the first of the later one to the last of the one that ends first."""
    each = set(order)
    check(len(each) == 2, "%d senders in the capture" % len(each))
    first = max(order.index(s) for s in each)
    last = min(len(order) - order[::-1].index(s) for s in each)
    return collections.Counter(order[first:last])


def run(exe, tmp, *args):
    out, s = guests.run(exe, tmp, CONFIG, *args)
    check(all(g["exit_status"] == 0 for g in s["guests"]), "%s" % s["guests"])
    marks = counters(s, "sw1", "eth0").get("tx_prio3_ecn_marked", 0)
    pauses = sum(counters(s, h).get("rx_prio3_pause", 0) for h in SENDERS)
    edges = {h: collections.Counter(counters(s, h)) for h in SENDERS + ("recv",)}
    check(marks > 0 and edges["recv"]["edge_ce_seen"] == marks, "%d marks, %s" % (marks, edges["recv"]))
    for h in SENDERS:
        check(edges[h]["edge_ect_set"] >= 300 * 16, "%s sent too few ECT frames: %s" % (h, edges[h]))
    return out, edges, marks, pauses


def main(exe):
    exe = os.path.abspath(exe)
    guests.need(exe, "guest", "rdma_tools")
    with tempfile.TemporaryDirectory(prefix=guests.PREFIX) as tmp:
        out, edges, marks, pauses = run(exe, tmp)
        sent = edges["recv"]["edge_cnp_sent"]
        handled = sum(edges[h]["edge_cnp_handled"] for h in SENDERS)
        check(0 < handled <= sent <= marks, "%d marks, %d CNPs, %d handled" % (marks, sent, handled))
        for h in SENDERS:
            e = edges[h]
            check(e["edge_qps_paired"] > 0, "%s: its QP was not learnt" % h)
            check(e["edge_cnp_handled"] > 0 and e["edge_cc_held"] > 0, "%s: not slowed down: %s" % (h, e))
            check(0 < e["edge_cc_rate_min"] < 25000000, "%s: not below the slow link's rate: %s" % (h, e))
        share = while_both_send(senders_of_data(os.path.join(out, "recv.pcapng")))
        check(sum(share.values()) >= 1000, "they hardly sent at the same time: %s" % share)
        check(min(share.values()) * 2 >= max(share.values()), "unfair: %s" % share)

        out, edges, marks_alone, pauses_alone = run(exe, tmp, "--set", "defaults.attach.cc=none")
        for h, e in edges.items():
            check(e["edge_cnp_sent"] + e["edge_cnp_handled"] + e["edge_cc_held"] == 0, "%s: %s" % (h, e))
        check(marks < marks_alone, "%d marks with DCQCN, %d without" % (marks, marks_alone))
        check(2 * pauses < pauses_alone, "%d pauses with DCQCN, %d without" % (pauses, pauses_alone))
        print("DCQCN: %d marks, %d CNPs, %d pauses, share %s; without: %d marks, %d pauses"
              % (marks, sent, pauses, sorted(share.values()), marks_alone, pauses_alone))
    guests.nothing_left()


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except guests.Skip as skip:
        print("skipped: %s" % skip)
        sys.exit(harness.SKIP)
    except AssertionError as failed:
        print(failed, file=sys.stderr)
        sys.exit(1)
