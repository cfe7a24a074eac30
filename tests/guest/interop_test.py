#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""interop_test.py CASE FABEMU: a built-in NIC and a kernel's rxe on one fabric.

rdma-core's own examples in a guest talk to the applications of a built-in NIC, as clients and as
servers: RC SEND, WRITE, READ, atomics, and UD, connected by rdma_cm. Both ends check the payload.
"""

import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from endpoints_test import (PREFIX, ROOT, Skip, check, console, harness, need, peer_for_guests, run,  # noqa: E402
                            statuses, write)

# The guest's /proc has no clock to wait by but sleep; emulated time begins when it is ready.
HEAD = """
clock: wall
lag_bound: 20s
duration: 400s
defaults:
  link: {rate: 1Gbps, delay: 10us}
  attach: {kind: guest, mtu: 1500, roce_dscp: 3, memory: 256MiB, ready_timeout: 180s}
  nic: {mtu: 1024}
switches: [sw1]
links:
  - [nic, sw1]
  - [sw1, guest]
"""

GUEST_CLIENTS = HEAD + """
hosts:
  nic:
    ip: 10.0.0.1/24
    apps:
      rping: {type: rping-server, size: 4096B}
      cmatose: {type: cmatose-server, size: 3000B, count: 20}
      udaddy: {type: udaddy-server, size: 500B, count: 20}
      target: {type: target, size: 16384B}
  guest:
    ip: 10.0.0.2/24
    attach:
      run:
        - {command: "rping -c -a nic -C 20 -S 4096 -V </dev/null", timeout: 120s}
        - {command: "ucmatose -s nic -C 20 -S 3000 </dev/null", timeout: 120s}
        - {command: "udaddy -s nic -C 20 -S 500 </dev/null", timeout: 120s}
        - {command: "PEER client nic 7300 --size 16384 --count 20 </dev/null", timeout: 120s}
"""

GUEST_SERVERS = HEAD + """
hosts:
  nic:
    ip: 10.0.0.1/24
    apps:
      rping: {type: rping-client, peer: guest, size: 4096B, count: 20, start: 3s, cm_timeout: 100ms}
      rping6: {type: rping-client, peer: guest, port: 7175, ipv6: yes, size: 4096B, count: 20, start: 3s, cm_timeout: 100ms}
      cmatose: {type: cmatose-client, peer: guest, size: 3000B, count: 20, start: 3s, cm_timeout: 100ms}
      udaddy: {type: udaddy-client, peer: guest, size: 500B, count: 20, start: 3s, cm_timeout: 100ms}
      initiator: {type: initiator, peer: guest, size: 16384B, count: 20, start: 3s, cm_timeout: 100ms}
  guest:
    ip: 10.0.0.2/24
    attach:
      run:
        - {command: "ucmatose -C 20 -S 3000 </dev/null", background: yes, timeout: 120s}
        - {command: "udaddy -C 20 -S 500 </dev/null", background: yes, timeout: 120s}
        - {command: "PEER server 10.0.0.2 7300 --size 16384 --count 20 </dev/null", background: yes, timeout: 120s}
        - {command: "rping -s -a 10.0.0.2 -C 20 -S 4096 -V </dev/null", background: yes, timeout: 120s}
        - {command: "rping -s -a fd00::a00:2 -p 7175 -C 20 -S 4096 -V </dev/null", background: yes, timeout: 120s}
        - {command: "sleep 4; while pidof rping ucmatose udaddy verbs_peer; do sleep 1; done", timeout: 120s}
"""

# Packets from the middle of messages, both ways: what follows them shows the gap at once. But a kernel's
# rxe takes a hole in READ responses for nothing: it waits for its timer, seconds, so only a few of those.
FAULTS = "faults:\n" + "".join(
    "  - {name: %s-%s-%s, link: 'guest:eth0', direction: %s, action: %s, op: RC_%s_MIDDLE, every: %d, count: 2}\n"
    % (action, op.split("_")[0].lower(), way, way,
       action if action == "drop" else "reorder, packets: 1", op, every)
    for action, every in (("drop", 23), ("reorder", 31))
    for op in ("WRITE", "READ_RESPONSE", "SEND") for way in ("tx", "rx"))


def apps(summary):
    return {a["name"]: a for a in summary["apps"]}


def judge(summary, out, guest_commands):
    got = statuses(summary, "guest")
    check(got == [0] * guest_commands, "guest: %s\n%s" % (got, console(out, "guest")[-6000:]))
    for a in summary["apps"]:
        check(a["status"] == "DONE" and a["mismatches"] == 0 and a["connections"] == 1, a)


def clients(exe, tmp, peer):
    out, s = run(exe, tmp, write(tmp, GUEST_CLIENTS.replace("PEER", peer)))
    judge(s, out, 4)
    a = apps(s)
    # rping: each ping is a READ and a WRITE of 4096 bytes, and udaddy and ucmatose send what they got.
    check(a["rping"]["messages"] >= 2 * 20 and a["rping"]["bytes"] >= 2 * 20 * 4096, a["rping"])
    check(a["cmatose"]["bytes"] == 20 * 3000, a["cmatose"])
    check(a["udaddy"]["bytes"] == 20 * 500, a["udaddy"])
    check(a["target"]["messages"] == 20, a["target"])
    # A kernel's rdma_cm gives the path of RoCE a packet lifetime of 4.096 us x 2^18 (6.1's
    # CMA_IBOE_PACKET_LIFETIME), and its queue pairs twice that as the local ACK timeout.
    check(a["target"]["ack_timeout"] == 19, a["target"])


def servers(exe, tmp, peer):
    out, s = run(exe, tmp, write(tmp, GUEST_SERVERS.replace("PEER", peer)))
    judge(s, out, 6)
    a = apps(s)
    check(a["cmatose"]["bytes"] == 20 * 3000, a["cmatose"])
    check(a["udaddy"]["bytes"] == 20 * 500, a["udaddy"])
    # A round of the initiator: WRITE, READ, three atomics, and a SEND that comes back.
    check(a["initiator"]["messages"] == 20 * 6, a["initiator"])


def bad_path(exe, tmp, peer):
    """The same both ways through drops and reordering: nothing wrong, nothing missing."""
    for name, text, commands in (("clients", GUEST_CLIENTS, 4), ("servers", GUEST_SERVERS, 6)):
        place = os.path.join(tmp, name)
        os.mkdir(place)
        config = (text + FAULTS).replace("PEER", peer)
        out, s = run(exe, place, write(place, config))
        judge(s, out, commands)
        applied = {f["rule"]: f["applied"] for f in s["faults"]}
        # WRITEs go one way, READ responses the other, SENDs both.
        for action in ("drop", "reorder"):
            for ways in (("write-tx", "write-rx"), ("read-tx", "read-rx"), ("send-tx",), ("send-rx",)):
                check(sum(applied["%s-%s" % (action, w)] for w in ways) > 0, applied)
        a = apps(s)["target" if name == "clients" else "initiator"]
        check(a["retransmitted"] > 0, a)


# The connection manager's datagrams between the two, and those of udaddy. Each loss costs rdma_cm's 4.3 s.
# From the guest: REQ, RTU and DREQ of rping, then of ucmatose. To it: REP and DREP.
CM_FAULTS = """
faults:
  - {name: lose-req, link: "guest:eth0", direction: tx, action: drop, qpn: 1, nth: 1}
  - {name: lose-rep, link: "guest:eth0", direction: rx, action: drop, qpn: 1, nth: 1}
  - {name: req-twice, link: "guest:eth0", direction: tx, action: duplicate, qpn: 1, nth: 5}
  - {name: rep-late, link: "guest:eth0", direction: rx, action: delay, delay: 20ms, qpn: 1, nth: 4}
  - {name: ud-to, link: "guest:eth0", direction: tx, action: reorder, op: UD_SEND_ONLY_IMM, every: 5, count: 3}
  - {name: ud-from, link: "guest:eth0", direction: rx, action: reorder, op: UD_SEND_ONLY_IMM, every: 5, count: 3}
"""

# A datagram lost is lost: udaddy waits for it for ever, at both ends.
UD_LOSS = HEAD + """
hosts:
  nic:
    ip: 10.0.0.1/24
    apps:
      udaddy: {type: udaddy-server, size: 500B, count: 20}
  guest:
    ip: 10.0.0.2/24
    attach:
      run:
        - {command: "timeout 8 udaddy -s nic -C 20 -S 500 </dev/null; test $? = 124", timeout: 60s}
faults:
  - {name: lose, link: "guest:eth0", direction: tx, action: drop, op: UD_SEND_ONLY_IMM, nth: 3}
"""


def cm_path(exe, tmp, peer):
    """Connections come about, and end, though the kernel's or our datagrams for them are lost."""
    out, s = run(exe, tmp, write(tmp, (GUEST_CLIENTS + CM_FAULTS).replace("PEER", peer)))
    judge(s, out, 4)
    check(all(f["applied"] > 0 for f in s["faults"]), s["faults"])
    a = apps(s)
    check(a["udaddy"]["bytes"] == 20 * 500, a["udaddy"])
    check(a["target"]["messages"] == 20, a["target"])

    place = os.path.join(tmp, "ud")
    os.mkdir(place)
    out, s = run(exe, place, write(place, UD_LOSS))
    check(statuses(s, "guest") == [0], console(out, "guest")[-3000:])
    a = apps(s)["udaddy"]
    check(a["messages"] == 19 and a["status"] == "RUNNING" and a["mismatches"] == 0, a)


def config(exe, tmp, peer):
    """The scenario of configs/ holds; the capture of it is a protocol without violations, by both."""
    out, s = run(exe, tmp, os.path.join(ROOT, "configs", "rxe-interop.yaml"))
    check(s["verdict"] == "held", s["expectations"])
    judge(s, out, 5)
    errors = [e for c in harness.capture_files(s, out) for e in harness.capture_errors(c)]
    check(not errors, "\n".join(errors))


CASES = {"interop_config": config, "interop_cm_path": cm_path, "interop_clients": clients,
         "interop_servers": servers, "interop_bad_path": bad_path}


def main(case, exe):
    exe = os.path.abspath(exe)
    try:
        need(exe, "guest", "rdma_tools")
        with tempfile.TemporaryDirectory(prefix=PREFIX) as tmp, peer_for_guests(exe) as peer:
            CASES[case](exe, tmp, peer)
    except Skip as e:
        print("skipped: %s" % e)
        return harness.SKIP
    except AssertionError as e:
        print(e, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
