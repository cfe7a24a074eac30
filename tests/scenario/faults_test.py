#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""faults_test.py FABEMU [SEEDS]: faults of links, switches and NICs do what they say.

Each case is a scenario with expectations worked out here; then random rules over random fabrics,
whose invariants must hold, whose digest must not depend on the number of lcores, and whose flows
must complete or fail with the status of a loss.
"""

import json
import os
import random
import sys
import tempfile

import harness

PAIR = """
defaults:
  link: {rate: 100Gbps, length: 100m}
  nic: {mtu: 1024, ack_every: 1, timeout: 8, window: 512}
topology: {star: {hosts: 2}}
"""

TWO_PATHS = """
defaults:
  link: {rate: 100Gbps, length: 100m}
  nic: {mtu: 1024, timeout: 8, window: 64}
topology: {leaf_spine: {leaves: 2, spines: 2, hosts_per_leaf: 1}}
workloads: {f: {src: h1, dst: h2, bytes: 1MB, messages: 10}}
"""


def run(exe, text, tmp, *args):
    path = os.path.join(tmp, "case.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    out = os.path.join(tmp, "run")
    p = harness.fabemu(exe, "run", path, "--out", out, "--quiet", *args)
    if p.returncode not in (0, 1):
        harness.die("exit status %d" % p.returncode, text, p.stdout, p.stderr)
    s = harness.read_summary(out)
    errors = harness.schema_errors(s) + harness.conservation_errors(s)
    if errors:
        harness.die(text, *errors)
    return s, p


def hold(exe, tmp, name, text, *expect):
    s, p = run(exe, text + "\nexpect:\n" + "".join("  - %s\n" % e for e in expect), tmp)
    if s["verdict"] != "held":
        harness.die(name, p.stdout, p.stderr)
    return s


def links(exe, tmp):
    # A link that fails in one direction: acknowledgements are lost, nobody is told, so it is the
    # retries that end it: 8 timeouts of 1.05 ms.
    hold(exe, tmp, "one way", PAIR + """
workloads: {f: {src: h1, dst: h2, bytes: 10KB}}
events: [{at: 0, link_down: {link: "h2:eth0", direction: tx}}]
""", "flows.failed == 1", "counter.h1.eth0.req_transport_retries_exceeded == 1",
         "counter.h2.eth0.rdma_rx_bytes > 0", "counter.h1.eth0.rdma_rx_packets == 0")
    hold(exe, tmp, "one way and back", PAIR + """
workloads: {f: {src: h1, dst: h2, bytes: 10KB}}
events:
  - {at: 0, link_down: {link: "h2:eth0", direction: tx}}
  - {at: 1500us, link_up: {link: "h2:eth0", direction: tx}}
""", "flows.complete == yes", "makespan > 2ms", "counter.h1.eth0.local_ack_timeout_err == 2")

    # Down 300 us of each ms, three times. Both paths exist, so the flow moves over and back.
    s = hold(exe, tmp, "flap", TWO_PATHS + """
events: [{at: 100us, flap: {link: [leaf1, spine1], period: 1ms, duty: 70%, count: 3}}]
""", "flows.complete == yes")
    log = [(e["at_ps"] // 10**6, e["kind"]) for e in s["event_log"]["first"]
           if e["kind"].startswith("link_") and e["port"].startswith("leaf1")]
    want = [(100, "link_down"), (400, "link_up"), (1100, "link_down"), (1400, "link_up"),
            (2100, "link_down"), (2400, "link_up")]
    if log != want:
        harness.die("flap: %s instead of %s" % (log, want))

    # 1 MB takes 977 packets x 1106 bytes on the wire (the first 16 more): 86.5 us at 100 Gb/s,
    # 865 us at 10 Gb/s from the start.
    for rate, low, high in ((100, 86, 92), (10, 864, 870)):
        hold(exe, tmp, "rate", PAIR + """
workloads: {f: {src: h1, dst: h2, bytes: 1MB}}
events: [{at: 0, set_rate: {link: [h1, sw1], rate: %dGbps, direction: tx}}]
""" % rate, "flow.f.fct > %dus" % low, "flow.f.fct < %dus" % high)

    # RS(544,514) at a pre-FEC BER of 1e-4 loses a codeword in 7e17; at 5e-3 almost each.
    hold(exe, tmp, "corrected", PAIR.replace("length: 100m", "length: 100m, ber: 1e-4") + """
workloads: {f: {src: h1, dst: h2, bytes: 10MB}}
""", "drops.total == 0", "flows.complete == yes")
    hold(exe, tmp, "beyond repair", PAIR + """
workloads: {f: {src: h1, dst: h2, bytes: 10MB}}
events:
  - {at: 100us, set_ber: {link: "h1:eth0", ber: 5e-3, direction: tx}}
  - {at: 200us, set_ber: {link: "h1:eth0", ber: 0, direction: tx}}
""", "drops.lane_error > 400", "counter.sw1.eth0.drop_lane_error > 400", "flows.complete == yes")


def post_fec_loss(exe, tmp):
    """RS(528,514) at 7e-4: loss as the model says, over real frames."""
    from fractions import Fraction
    from math import comb, sqrt

    s = 1 - (1 - Fraction(7, 10000)) ** 10
    p = float(sum(comb(528, i) * s**i * (1 - s) ** (528 - i) for i in range(8, 529)))
    # SENDs over UC: nothing is repeated, 100,000 packets of 14+20+8+12+1024+4 bytes, + FCS and
    # preamble 1094 on the wire: they touch 1 + 1093/640 codewords on average, so the loss is
    # close to the mean of 1-(1-P)^2 and 1-(1-P)^3 by that share.
    n = 100000
    share = 1093 / 640 - 1
    want = (1 - share) * (1 - (1 - p) ** 2) + share * (1 - (1 - p) ** 3)
    got, _ = run(exe, PAIR + """
workloads: {f: {src: h1, dst: h2, bytes: 1024B, messages: %d, op: SEND, transport: UC}}
events: [{at: 0, set_ber: {link: "h1:eth0", ber: 7e-4, fec: rs528, direction: tx}}]
""" % n, tmp)
    lost = got["drops"]["lane_error"] / n
    # Neighbours share a codeword: at most the double variance. 5 sigma.
    if abs(lost - want) > 5 * sqrt(2 * want * (1 - want) / n):
        harness.die("post-FEC loss %g, expected %g" % (lost, want))


def nodes(exe, tmp):
    # The buffer of the switch is full of a 2:1 incast when it reboots.
    incast = """
defaults:
  link: {rate: 100Gbps, length: 100m}
  nic: {mtu: 1024, timeout: 8, window: 512}
topology: {star: {hosts: 3}}
workloads: {f: {type: incast, dst: h3, bytes: 2MB}}
"""
    s = hold(exe, tmp, "reboot", incast + "events: [{at: 50us, reboot: {switch: sw1, duration: 2ms}}]",
             "drops.reboot > 100", "flows.complete == yes", "makespan > 2ms",
             "counter.h1.eth0.local_ack_timeout_err >= 1")
    if sum(e["kind"] == "reboot" for e in s["event_log"]["first"]) != 2:
        harness.die("reboot: not two events")

    # A receiver at a tenth of the line rate: lossless, the sender is paused and nothing is lost.
    slow = PAIR + """
workloads: {f: {src: h1, dst: h2, bytes: 4MB, priority: %d}}
events: [{at: 0, slow_receiver: {host: h2, rate: 10Gbps}}]
"""
    # (By default half of 256 KiB is left when it pauses: enough for 3.6 us at 100 Gb/s, 45 KB, of
    # way, 802.3's response time and way back.)
    # 4 MB in 3907 packets of 1086 bytes (+ FCS): 3.39 ms at 10 Gb/s.
    hold(exe, tmp, "slow, lossless", slow % 3, "drops.total == 0",
         "counter.h2.eth0.tx_prio3_pause > 1", "flow.f.retransmissions == 0",
         "makespan > 3.3ms", "makespan < 3.5ms", "flows.complete == yes")
    hold(exe, tmp, "slow, lossy", slow % 1, "drops.rx_overrun > 0",
         "counter.h2.eth0.rx_prio1_buf_discard > 0", "counter.h2.eth0.tx_prio1_pause == 0",
         "flow.f.retransmissions > 0", "flows.complete == yes")
    hold(exe, tmp, "slow for a while", PAIR + """
workloads: {f: {src: h1, dst: h2, bytes: 4MB}}
events: [{at: 0, slow_receiver: {host: h2, rate: 1Gbps, duration: 1ms}}]
""", "makespan > 1ms", "makespan < 1.5ms", "flows.complete == yes", "drops.total == 0")


def rules(exe, tmp):
    flow = "workloads: {f: {src: h1, dst: h2, bytes: 1MB, messages: 4, qps: 2}}\n"
    # Everything 50 us later: one round trip more than without, and nothing else changes.
    plain, _ = run(exe, PAIR + "workloads: {f: {src: h1, dst: h2, bytes: 10KiB}}\n", tmp)
    late, _ = run(exe, PAIR + """workloads: {f: {src: h1, dst: h2, bytes: 10KiB}}
faults: [{link: "h1:eth0", direction: tx, action: delay, delay: 50us}]
""", tmp)
    diff = late["flows"][0]["fct_ps"] - plain["flows"][0]["fct_ps"]
    if diff != 50 * 10**6 or late["flows"][0]["retransmissions"] != 0:
        harness.die("delay of 50 us cost %d ps" % diff)

    # All is duplicated: the wire carries each twice, so half the rate; 1 MB takes 173 us.
    hold(exe, tmp, "all twice", PAIR + """workloads: {f: {src: h1, dst: h2, bytes: 1MB}}
faults: [{name: d, link: "h1:eth0", direction: tx, action: duplicate, op: data}]
""", "flow.f.fct > 172us", "flow.f.fct < 180us", "flow.f.retransmissions == 0",
         "counter.h2.eth0.duplicate_request == 977", "fault.d.applied == 977")

    # QP by order of appearance: only the second queue pair's packets can be lost.
    s = hold(exe, tmp, "second QP", PAIR + flow + """
faults: [{name: x, link: "h1:eth0", direction: tx, action: drop, op: data, qp: 2, every: 100,
          count: 5}]
""", "fault.x.applied == 5", "drops.fault == 5", "flows.complete == yes")
    matched = s["faults"][0]["matched"]
    if not 4 * 977 <= matched < s["flows"][0]["packets"] - 4 * 977 + 1:
        harness.die("second QP: %d packets matched" % matched)
    if sum(e["kind"] == "fault" for e in s["event_log"]["first"]) != 5:
        harness.die("second QP: not five fault events")

    # By event, by flow, by probability; CE without any switch congested.
    hold(exe, tmp, "marked", PAIR + flow + """
events: [{at: 20us, fault: {name: ce, link: [h1, sw1], direction: tx, action: ecn, op: data,
          flow: f, probability: 10%}}]
""", "fault.ce.applied > 300", "counter.h2.eth0.np_ecn_marked_roce_packets > 300",
         "drops.total == 0")
    hold(exe, tmp, "FCS", PAIR + flow + """
faults: [{name: fcs, link: [h1, sw1], direction: tx, action: fcs, nth: 5}]
""", "fault.fcs.applied == 1", "counter.sw1.eth0.drop_lane_error == 1", "flows.complete == yes")


def capture(exe, tmp):
    s, _ = run(exe, PAIR + """workloads: {f: {src: h1, dst: h2, bytes: 10KiB}}
faults:
  - {name: lose, link: "h1:eth0", direction: tx, action: drop, op: data, nth: 4}
  - {name: flip, link: "h1:eth0", direction: tx, action: corrupt, op: data, nth: 12}
captures: [{file: c.pcapng}]
""", tmp)
    with open(next(iter(harness.capture_files(s, os.path.join(tmp, "run")))), "rb") as f:
        data = f.read()
    # Each once, where the frame was sent; the damaged one is dropped with its own reason.
    for text, times in ((b"fault lose: dropped", 1), (b"fault flip: corrupted", 1),
                        (b"dropped: bad_icrc", 1), (b"dropped: fault", 0)):
        if data.count(text) != times:
            harness.die("capture: %r %d times" % (text, data.count(text)))


def check(exe, tmp):
    path = os.path.join(tmp, "check.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(PAIR + """workloads: {f: {src: h1, dst: h2}}
duration: 1ms
faults:
  - {name: one, link: [sw1, h2], direction: tx, action: drop, op: data, qp: 2, psn: 7, iter: 2}
""")
    p = harness.fabemu(exe, "check", path)
    want = ("fault one  drop: data of QP #2 to appear: PSN first+7, transmission 2; "
            "on sw1:eth1 -> h2:eth0")
    if want not in p.stdout:
        harness.die("check says", p.stdout, p.stderr, "without", want)
    lanes = json.loads(harness.fabemu(exe, "check", path, "--json").stdout)["faults"][0]["lanes"]
    if lanes != [{"from": "sw1:eth1", "to": "h2:eth0"}]:
        harness.die("check --json says %s" % lanes)


# ---- random ------------------------------------------------------------------------------------

def random_rule(r, fabric_links):
    f = {"link": r.choice(fabric_links), "direction": r.choice(["tx", "rx", "both"]),
         "action": r.choice(["drop", "corrupt", "fcs", "ecn", "delay", "reorder", "duplicate",
                             "truncate"])}
    if f["action"] == "delay":
        f["delay"] = "%dus" % r.choice([1, 5, 40])
    elif f["action"] == "reorder":
        f["packets"] = r.randint(1, 20)
        f["delay"] = "%dus" % r.choice([1, 10, 50])
    elif f["action"] == "truncate":
        f["length"] = "%dB" % r.choice([60, 64, 100, 1000])
    if r.random() < 0.7:
        f["op"] = r.choice(["any", "data", "data", "ack", "nak", "pfc", "[data, ack]"])
    if r.random() < 0.3:
        f["qp"] = r.choice([1, 2, "each"])
    pick = r.choice(["nth", "every", "psn", "packet", "probability", "gilbert"])
    f[pick] = {"nth": r.randint(1, 200), "every": r.randint(20, 200), "psn": r.randint(0, 300),
               "packet": r.randint(1, 50), "probability": "%d%%" % r.randint(1, 5),
               "gilbert": "{p: 1%, r: 30%}"}[pick]
    if r.random() < 0.3:
        f["iter"] = r.randint(1, 2)
    if r.random() < 0.3:
        f["count"] = r.randint(1, 20)
    if r.random() < 0.3:
        f["from"] = "%dus" % r.randint(1, 100)
    return "  - {%s}\n" % ", ".join("%s: %s" % kv for kv in f.items())


def random_scenario(seed):
    r = random.Random(seed)
    spines, leaves, hosts = r.randint(1, 2), r.randint(2, 3), r.randint(1, 3)
    n = leaves * hosts
    fabric_links = ["[leaf%d, spine%d]" % (r.randint(1, leaves), r.randint(1, spines))
                    for _ in range(4)] + ['"h%d:eth0"' % r.randint(1, n) for _ in range(4)]
    text = "seed: %d\nduration: 200ms\n" % seed
    text += "defaults:\n  link: {rate: 100Gbps, length: %dm}\n" % r.choice([10, 100, 300])
    text += "  switch: {buffer: 8MB}\n"
    text += "  nic: {timeout: 6, retry_cnt: %d, ack_every: %d, window: 256, recovery: %s}\n" % (
        r.randint(1, 7), r.choice([1, 4, 16]), r.choice(["go-back-N", "selective-repeat"]))
    text += "topology: {leaf_spine: {leaves: %d, spines: %d, hosts_per_leaf: %d}}\n" % (
        leaves, spines, hosts)
    text += "workloads:\n"
    for i in range(r.randint(1, 5)):
        src, dst = r.sample(range(1, n + 1), 2)
        text += "  f%d: {src: h%d, dst: h%d, bytes: %dB, messages: %d, op: %s, qps: %d, priority: %d}\n" % (
            i, src, dst, r.randint(1, 300000), r.randint(1, 4), r.choice(["WRITE", "SEND"]),
            r.randint(1, 3), r.choice([1, 3]))
    text += "faults:\n" + "".join(random_rule(r, fabric_links) for _ in range(r.randint(1, 6)))
    if r.random() < 0.5:
        text += "events:\n"
        for _ in range(r.randint(1, 3)):
            at = "%dus" % r.randint(1, 200)
            text += "  - {at: %s, %s}\n" % (at, r.choice([
                "flap: {link: %s, period: 100us, count: 2}" % r.choice(fabric_links),
                "reboot: {switch: leaf1, duration: 100us}",
                "slow_receiver: {host: h1, rate: 20Gbps, buffer: 32KiB, duration: 300us}",
                "set_ber: {link: %s, ber: 3e-3, fec: rs544}" % r.choice(fabric_links),
                "set_rate: {link: %s, rate: 40Gbps}" % r.choice(fabric_links)]))
    return text


def random_rules(exe, tmp, seeds):
    applied = 0
    for seed in range(seeds):
        text = random_scenario(seed)
        s, _ = run(exe, text, tmp, "--lcores", "1")
        two, _ = run(exe, text, tmp, "--lcores", "2")
        if s["digest"] != two["digest"] or s["faults"] != two["faults"]:
            harness.die(text, "seed %d: 1 and 2 lcores differ" % seed)
        for f in s["flows"]:
            if f["state"] == "failed" and f["error"] not in (
                    "IBV_WC_RETRY_EXC_ERR", "IBV_WC_RNR_RETRY_EXC_ERR"):
                harness.die(text, "seed %d: flow %s: %s" % (seed, f["name"], f["error"]))
            if f["state"] not in ("completed", "failed"):
                harness.die(text, "seed %d: flow %s is %s" % (seed, f["name"], f["state"]))
        applied += sum(f["applied"] for f in s["faults"])
    if applied < 10 * seeds:
        harness.die("only %d faults in %d runs: nothing was tested" % (applied, seeds))


def main(exe, seeds=15):
    with tempfile.TemporaryDirectory(prefix="fabemu-faults-") as tmp:
        links(exe, tmp)
        post_fec_loss(exe, tmp)
        nodes(exe, tmp)
        rules(exe, tmp)
        capture(exe, tmp)
        check(exe, tmp)
        random_rules(exe, tmp, int(seeds))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
