#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""endpoints_test.py CASE FABEMU: real endpoints behind the fabric.

Each case is a function below. They count frames, statuses and what is left behind, never time.
"""

import contextlib
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "scenario"))
import harness  # noqa: E402

PREFIX = "fabtest%d" % os.getpid()


class Skip(Exception):
    """This machine lacks what the case needs."""


# ---- helpers ------------------------------------------------------------------------------------


def doctor(exe):
    p = harness.fabemu(exe, "doctor", "--json")
    check(p.returncode == 0, "doctor: exit status %d: %s" % (p.returncode, p.stderr))
    return {c["name"]: c for c in json.loads(p.stdout)["checks"]}


def need(exe, *features):
    found = doctor(exe)
    for f in features:
        if found[f]["status"] == "missing":
            raise Skip("%s: %s%s" % (f, found[f]["detail"],
                                     "; " + found[f]["fix"] if found[f]["fix"] else ""))
    return found


def check(ok, message):
    if not ok:
        raise AssertionError(message)


def sh(*args, ok=True):
    p = subprocess.run(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True, check=False)
    check(p.returncode == 0 or not ok, "%s: %s" % (" ".join(args), p.stdout))
    return p.stdout


def write(tmp, text, name="scenario.yaml"):
    path = os.path.join(tmp, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def console(out, host):
    with open(os.path.join(out, host + ".console"), encoding="utf-8", errors="replace") as f:
        return f.read()


def run(exe, tmp, scenario, *args, status=0):
    """Runs a scenario; returns its directory and its summary, which holds in itself."""
    out = os.path.join(tmp, "run")
    p = harness.fabemu(exe, "run", scenario, "--out", out, *args, timeout=500)
    logs = "".join("\n--- %s\n%s" % (c, open(c, errors="replace").read()[-3000:])
                   for c in glob.glob(out + "/*.console"))
    check(p.returncode == status, "exit status %d, expected %d\n%s%s%s"
          % (p.returncode, status, p.stdout, p.stderr, logs))
    summary = harness.read_summary(out)
    errors = harness.conservation_errors(summary)
    check(not errors, "\n".join(errors))
    return out, summary


def counters(summary, node, port="eth0"):
    for p in summary["ports"]:
        if p["node"] == node and p["port"] == port:
            return p["counters"]
    raise AssertionError("no port %s %s in summary.json" % (node, port))


def statuses(summary, host):
    return [g["exit_status"] for g in summary["guests"] if g["host"] == host]


def children_left():
    """Command lines of processes that only we could have started."""
    left = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as f:
                line = f.read().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if PREFIX in line and int(path.split("/")[2]) != os.getpid():
            left.append(line)
    return left


def nothing_left(wait=5):
    end = time.monotonic() + wait
    while True:
        left = ["process: " + c for c in children_left()]
        left += ["namespace: " + n for n in sh("ip", "netns").split("\n") if PREFIX in n]
        if not left or time.monotonic() > end:
            break
        time.sleep(0.1)
    check(not left, "left behind: " + "; ".join(left))


def temp_dirs(pid):
    return glob.glob("/tmp/fabemu-%d-*" % pid)


def pings(out, host):
    return [(int(a), int(b)) for a, b in
            re.findall(r"(\d+) packets transmitted, (\d+) (?:packets )?received",
                       console(out, host))]


# ---- guests -------------------------------------------------------------------------------------


def rxe_guests(exe, tmp):
    """The scenario of configs/: pingpong, write bandwidth and rping through two switches."""
    need(exe, "guest", "rdma_tools")
    config = os.path.join(ROOT, "configs", "rxe-guests.yaml")
    out, s = run(exe, tmp, config)
    check(s["verdict"] == "held", s["verdict"])
    check(statuses(s, "guest1") == [0, 0, 0] and statuses(s, "guest2") == [0, 0, 0],
          "statuses %s" % s["guests"])
    # 200 messages of 64 KiB in 4 KiB packets, all lossless (DSCP 3 by the edge).
    check(counters(s, "guest2")["tx_prio3_packets"] >= 200 * 16, "too few RoCE frames at priority 3")
    c = counters(s, "guest2")
    check(c["edge_dscp_rewritten"] == c["tx_prio3_packets"], "not every RoCE frame got its DSCP: %s" % c)
    check(s["guests"][0]["log"] == "guest1.console", "no log named")
    check(s["drops"]["total"] == s["drops"].get("not_routable", 0), "drops: %s" % s["drops"])
    check("RDMA_Write BW Test" in console(out, "guest2"), "no perftest output on the console")
    errors = [e for c in harness.capture_files(s, out) for e in harness.capture_errors(c)]
    check(not errors, "\n".join(errors))


VERBS_PEER = """
clock: wall
lag_bound: 5s
defaults:
  link: {rate: 1Gbps, delay: 10us}
  attach: {kind: guest, mtu: 4200, roce_dscp: 3, memory: 256MiB, ready_timeout: 180s}
switches: [sw1]
hosts:
  server:
    attach:
      run:
        - {command: "PEER server server 7300 --size 5000 --count 50", timeout: 180s}
        - {command: "PEER server server 7300 --size 100000 --count 5", timeout: 180s}
        - {command: "PEER server server 7300 --size 100 --count 3", timeout: 180s}
  client:
    attach:
      run:
        - {command: "PEER client server 7300 --size 5000 --count 50", after: 2s, timeout: 180s}
        - {command: "PEER client server 7300 --size 100000 --count 5", after: 2s, timeout: 180s}
        - {command: "PEER client server 7300 --size 99 --count 3", after: 2s, timeout: 180s}
links:
  - [server, sw1]
  - [client, sw1]
"""

FAULTS = """
clock: wall
lag_bound: 1s
defaults:
  link: {rate: 1Gbps, delay: 10us}
  attach: {kind: guest, mtu: 4200, roce_dscp: 3, memory: 512MiB, ready_timeout: 180s}
switches: [sw1]
hosts:
  guest1:
    ip: 10.0.0.1/24
    attach:
      run:
        - {command: "ib_write_bw -d rxe0 -x 1 -F -s 65536 -n 20 </dev/null", timeout: 180s}
        - {command: "cd /sys/class/infiniband/rxe0/ports/1/hw_counters && grep . *"}
  guest2:
    ip: 10.0.0.2/24
    attach:
      run:
        - {command: "ib_write_bw -d rxe0 -x 1 -F -s 65536 -n 20 10.0.0.1 </dev/null", after: 3s,
           timeout: 180s}
        - {command: "cd /sys/class/infiniband/rxe0/ports/1/hw_counters && grep . *"}
links: [[guest1, sw1], [sw1, guest2]]
# rxe has at most 128 packets in flight: the 250th is not of the flight that lost the 5th.
faults:
  - {name: lose, link: "guest2:eth0", direction: tx, action: drop, op: data, qp: 1, nth: 5}
  - {name: flip, link: "guest2:eth0", direction: tx, action: corrupt, op: data, qp: 1, nth: 250}
"""


def rxe_faults(exe, tmp):
    """A kernel's queue pair, bound by order of appearance: one packet lost, one damaged."""
    need(exe, "guest", "rdma_tools")
    out, s = run(exe, tmp, write(tmp, FAULTS))
    check(statuses(s, "guest1") == [0, 0] and statuses(s, "guest2") == [0, 0], s["guests"])
    check([f["applied"] for f in s["faults"]] == [1, 1], s["faults"])

    def rxe(host, name):
        return int(re.search(r"^%s:(\d+)" % name, console(out, host), re.M).group(1))

    # The server's rxe misses both (the damaged one fails its ICRC) and says so once each; the
    # client's goes back for each.
    lost = rxe("guest2", "sent_pkts") - rxe("guest1", "rcvd_pkts")
    check(lost == 2, "%d packets lost" % lost)
    gaps, naks = rxe("guest1", "out_of_seq_request"), rxe("guest2", "rcvd_seq_err")
    # Unless a slow guest's timer made the client repeat what the server had: one of those may be
    # what was hit, and a client that is repeating already passes over a NAK.
    repeated = rxe("guest1", "duplicate_request")
    least = 1 if repeated > 0 else 2
    check(least <= gaps <= 2, "server saw %d gaps" % gaps)
    check(least <= naks <= gaps, "server saw %d gaps, client got %d NAKs" % (gaps, naks))
    check(rxe("guest2", "completer_retry_err") >= naks, "client did not retry")
    check(rxe("guest2", "retry_exceeded_err") == 0, "client gave up")
    # What the edges saw of it from outside is what the kernels say of themselves.
    damaged = next(p["hw_counters"] for p in s["ports"] if p["node"] == "guest1")
    check(damaged["rx_icrc_encapsulated"] == 1, damaged)
    for host in ("guest1", "guest2"):
        seen = next(p["rxe_counters"] for p in s["ports"] if p["node"] == host)
        for name in ("duplicate_request", "out_of_seq_request", "rcvd_seq_err", "rcvd_rnr_err",
                     "completer_retry_err", "sent_pkts", "rcvd_pkts"):
            own = rxe(host, name)
            check(seen[name] == own, "%s: %s is %d at the edge, %d in the guest"
                  % (host, name, seen[name], own))


@contextlib.contextmanager
def peer_for_guests(exe):
    """verbs_peer where a guest sees it: the host's /tmp, where the build may be, is not the guest's."""
    built = os.path.join(os.path.dirname(exe), "..", "tests", "guest", "verbs_peer")
    if not os.path.exists(built):
        raise Skip("verbs_peer is not built: needs librdmacm-dev and libibverbs-dev")
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir="/var/tmp") as place:
        os.chmod(place, 0o755)
        yield shutil.copy(built, place)


def verbs_peer(exe, tmp):
    """Our test of all verbs, kernel against kernel: right when it is right, and not when it is not."""
    need(exe, "guest")
    with peer_for_guests(exe) as peer:
        run_verbs_peer(exe, tmp, peer)


def run_verbs_peer(exe, tmp, peer):
    config = write(tmp, VERBS_PEER.replace("PEER", peer))
    out, s = run(exe, tmp, config)
    # The last pair disagrees about the size; the client cannot know, the server must.
    check(statuses(s, "client") == [0, 0, 0], "client: %s\n%s" % (statuses(s, "client"), console(out, "client")))
    check(statuses(s, "server") == [0, 0, 1], "server: %s\n%s" % (statuses(s, "server"), console(out, "server")))
    check("50 rounds of 5000 bytes, 0 wrong" in console(out, "server"), console(out, "server"))
    check("message of 99 bytes" in console(out, "server"), console(out, "server"))


PFC = """
clock: wall
lag_bound: 5s
duration: 200s
defaults:
  link: {rate: 1Gbps, delay: 10us}
  qos: {pg: {3: {static_th: 64KB}}}
  attach: {kind: guest, mtu: 4200, roce_dscp: 3, memory: 256MiB, ready_timeout: 180s}
switches: [sw1]
hosts:
  recv:
    attach:
      run: [{command: "ib_write_bw -d rxe0 -x 1 -F -s 65536 -n 300 -u 18", timeout: 180s}]
  send:
    attach:
      run: [{command: "ib_write_bw -d rxe0 -x 1 -F -s 65536 -n 300 -u 18 recv", after: 2s, timeout: 180s}]
links:
  - {ends: [recv, sw1], rate: 100Mbps}
  - [send, sw1]
"""


def rxe_under_pfc(exe, tmp):
    """A switch pauses a kernel rxe, which knows no PFC: its edge holds the frames, none is lost."""
    need(exe, "guest", "rdma_tools")
    _, s = run(exe, tmp, write(tmp, PFC))
    c = counters(s, "send")
    check(statuses(s, "recv") + statuses(s, "send") == [0, 0], "statuses %s" % s["guests"])
    check(c.get("rx_prio3_pause", 0) > 0, "the edge was never paused: %s" % c)
    check(c["tx_prio3_packets"] >= 300 * 16, "too few frames: %s" % c)
    check(s["drops"]["total"] == s["drops"].get("not_routable", 0), "drops: %s" % s["drops"])


TWO_PORTS = """
clock: wall
lag_bound: 5s
duration: 300s
defaults:
  link: {rate: 1Gbps}
  attach: {kind: guest, mtu: 1500, memory: 256MiB, ready_timeout: 240s, accel: %s}
switches: [sw1, sw2]
hosts:
  two:
    attach:
      run:
        - {command: "ibv_rc_pingpong -d rxe0 -g 1 -n 20", timeout: 200s}
        - {command: "ibv_rc_pingpong -d rxe1 -g 1 -n 20", timeout: 200s}
  one:
    attach:
      run:
        - {command: "ibv_rc_pingpong -d rxe0 -g 1 -n 20 two", after: 5s, timeout: 200s}
        - {command: "ibv_rc_pingpong -d rxe0 -g 1 -n 20 two-eth1", after: 5s, timeout: 200s}
links: [[two, sw1], [two, sw2], [sw1, sw2], [one, sw1]]
expect: [host.two.exit == 0, host.one.exit == 0]
"""


def two_ports(exe, tmp, accel="auto"):
    """A guest with two ports has an rxe device on each; path MTU 1024 of a 1500-byte MTU."""
    need(exe, "guest", "rdma_tools")
    _, s = run(exe, tmp, write(tmp, TWO_PORTS % accel))
    # 4 KiB messages in 1 KiB packets: 20 pingpongs are 80 data frames each way on either port.
    for port in ("eth0", "eth1"):
        c = counters(s, "two", port)
        check(c["edge_tx_frames"] >= 80, "%s: %s" % (port, c))


def qemu_tcg(exe, tmp):
    """The same under QEMU without KVM, which every machine can do."""
    need(exe, "qemu", "guest_kernel", "rdma_tools")
    two_ports(exe, tmp, "tcg")


def guest_fails(exe, tmp):
    """A guest that cannot become ready: status 3 and its console in the message."""
    need(exe, "guest")
    text = PFC.replace("memory: 256MiB", 'append: "fabemu.root=nowhere", memory: 256MiB')
    p = harness.fabemu(exe, "run", write(tmp, text), "--out", os.path.join(tmp, "run"))
    check(p.returncode == 3, "exit status %d" % p.returncode)
    check("not ready" in p.stderr and "fabemu.root" in p.stderr, p.stderr)
    p = harness.fabemu(exe, "run", write(tmp, PFC), "--out", os.path.join(tmp, "run"),
                       env=dict(os.environ, FABEMU_CACHE=os.path.join(tmp, "empty"), PATH="/nowhere"))
    check(p.returncode == 3 and len(p.stderr.strip().split("\n")) <= 2, p.stderr)
    check("apt-get install" in p.stderr or "prepare.sh" in p.stderr, p.stderr)


# ---- namespaces ---------------------------------------------------------------------------------

NETNS = """
clock: wall
lag_bound: 5s
duration: 60s
defaults: {link: {rate: 1Gbps}}
switches: [sw1, sw2]
hosts:
  a: {ip: 198.18.7.1/24, attach: {kind: netns, netns: %(p)s-a, mtu: 1500}}
  b:
    ip: 198.18.7.2/24
    attach:
      kind: netns
      netns: %(p)s-b
      mtu: 1500
      run: [%(run)s]
links: [[a, sw1], [sw1, sw2], [sw2, b]]
"""


def netns(exe, tmp):
    """Two namespaces ping each other, IPv4 and IPv6, by address and name, up to the MTU."""
    need(exe, "netns", "af_packet")
    commands = ["busybox ping -c 7 198.18.7.1", "busybox ping -c 5 -s 1472 198.18.7.1",
                "busybox ping -c 3 -W 1 198.18.7.77 && exit 1 || exit 0",
                "busybox ping -6 -c 4 a", "ip link show lo up | grep -q LOOPBACK"]
    text = NETNS % {"p": PREFIX,
                    "run": ", ".join('{command: "%s", timeout: 30s}' % c for c in commands)}
    out, s = run(exe, tmp, write(tmp, text))
    check(statuses(s, "b") == [0] * 5, "statuses %s\n%s" % (s["guests"], console(out, "b")))
    check(pings(out, "b") == [(7, 7), (5, 5), (3, 0), (4, 4)], "pings %s" % pings(out, "b"))
    # Seven and five requests and replies, none twice, each at both edges.
    check(counters(s, "a")["tx_packets"] >= 16 and counters(s, "b")["tx_packets"] >= 19, "counts")
    nothing_left()


def run_statuses(exe, tmp):
    """Exit statuses of commands: own, signal, timeout, background; they decide expectations."""
    need(exe, "netns", "af_packet")
    runs = ('{command: "exit 7"}, {command: "kill -9 $$"}, {command: "sleep 30", timeout: 1s}, '
            '{command: "sleep 1000", background: yes}, {command: "exit 5", background: yes}, '
            '{command: "test $NAME = value && test $FABEMU_HOST = b", after: 500ms}')
    text = NETNS % {"p": PREFIX, "run": runs}
    text = text.replace("      run:", "      env: {NAME: value}\n      run:")
    out, s = run(exe, tmp, write(tmp, text + "expect: [host.b.exit == 0]\n"), status=1)
    got = [(g["exit_status"], g["signal"]) for g in s["guests"] if g["host"] == "b"]
    check(got[0][0] == 7 and got[1][1] == 9 and got[2][0] == 124, "%s\n%s" % (got, console(out, "b")))
    check(got[3][0] in (None, -1) and got[4][0] == 5 and got[5][0] == 0, "%s" % got)
    nothing_left()


# ---- other ports --------------------------------------------------------------------------------

PORTS = """
clock: wall
lag_bound: 5s
duration: 60s
defaults: {link: {rate: 1Gbps}}
switches: [sw1]
hosts:
  x: {ip: 198.18.7.1/24, attach: %(attach)s}
  b:
    ip: 198.18.7.2/24
    attach:
      kind: netns
      netns: %(p)s-b
      mtu: 1500
      run: [%(run)s]
links: [[x, sw1], [b, sw1]]
"""
PING = '{command: "busybox ping -c 6 198.18.7.1", timeout: 30s}'
PING_BIG = '{command: "busybox ping -c 6 -s 1472 198.18.7.1", timeout: 30s}'


class Veth:
    """A veth pair: `outer` here, `inner` with an address in a namespace of its own."""

    def __init__(self):
        self.ns, self.outer = PREFIX + "-x", "fx%d" % os.getpid()

    def __enter__(self):
        sh("ip", "netns", "add", self.ns)
        sh("ip", "link", "add", self.outer, "type", "veth", "peer", "name", "eth0", "netns", self.ns)
        sh("ip", "-n", self.ns, "addr", "add", "198.18.7.1/24", "dev", "eth0")
        sh("ip", "-n", self.ns, "link", "set", "eth0", "up")
        sh("ip", "link", "set", self.outer, "up")
        return self

    def __exit__(self, *_):
        sh("ip", "netns", "del", self.ns)


def tap_and_netdev(exe, tmp):
    """An endpoint behind a tap, and one behind an interface that was there before."""
    need(exe, "netns", "af_packet", "tun")
    tap = "ft%d" % os.getpid()
    text = PORTS % {"p": PREFIX, "run": PING + ", " + PING_BIG,
                    "attach": "{kind: tap, ifname: %s, mtu: 1500}" % tap}
    out, _ = run(exe, tmp, write(tmp, text))
    check(pings(out, "b") == [(6, 6), (6, 6)], "tap: %s" % pings(out, "b"))
    check(not os.path.exists("/sys/class/net/" + tap), "the tap is still there")
    with Veth() as veth:
        text = PORTS % {"p": PREFIX, "run": PING + ", " + PING_BIG,
                        "attach": "{kind: netdev, ifname: %s, mtu: 1500}" % veth.outer}
        out, _ = run(exe, tmp, write(tmp, text))
        check(pings(out, "b") == [(6, 6), (6, 6)], "netdev: %s" % pings(out, "b"))
        check(os.path.exists("/sys/class/net/" + veth.outer), "the user's interface is gone")
    p = harness.fabemu(exe, "run", write(tmp, text), "--out", os.path.join(tmp, "run"))
    check(p.returncode == 3 and "no such interface" in p.stderr, p.stderr)
    nothing_left()


SEND_TAGGED = """
import socket, struct
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0))
ip = bytes.fromhex("45000020000140004011") + b"\\0\\0" + socket.inet_aton("198.18.7.1") \\
    + socket.inet_aton("198.18.7.2")
words = struct.unpack("!10H", ip)
total = sum(words)
total = (total & 0xffff) + (total >> 16)
ip = ip[:10] + struct.pack("!H", ~(total + (total >> 16)) & 0xffff) + ip[12:]
udp = struct.pack("!HHHH", 1000, 2000, 12, 0) + b"abcd"
for i in range(10):
    s.send(b"\\xff" * 6 + bytes.fromhex("020000000077") + struct.pack("!HHH", 0x8100, 5 << 13, 0x800)
           + ip + udp)
"""


def vlan_priority(exe, tmp):
    """The kernel takes the VLAN tag out of what AF_PACKET sees; the fabric gets it back, PCP and all."""
    need(exe, "netns", "af_packet")
    script = write(tmp, SEND_TAGGED, "send.py")
    with Veth() as veth:
        runs = ('{command: "ip netns exec %s /usr/bin/python3 %s", after: 500ms, timeout: 20s}, '
                '{command: "sleep 1"}' % (veth.ns, script))
        text = PORTS % {"p": PREFIX, "run": runs,
                        "attach": "{kind: netdev, ifname: %s, mtu: 1500}" % veth.outer}
        text += "qos: {default: {trust: pcp}}\n"
        _, s = run(exe, tmp, write(tmp, text))
    check(counters(s, "x").get("tx_prio5_packets", 0) == 10, "%s" % counters(s, "x"))
    check(counters(s, "b").get("rx_prio5_packets", 0) == 10, "%s" % counters(s, "b"))


def vhost_user(exe, tmp):
    """A virtio-user port of another DPDK process, testpmd answering ARP and echo requests."""
    need(exe, "netns", "af_packet")
    testpmd = sh("which", "dpdk-testpmd", ok=False).strip()
    if not testpmd:
        raise Skip("no dpdk-testpmd: apt-get install dpdk")
    sock = os.path.join(tmp, "x.sock")
    start = ("%s --no-huge --no-pci --no-telemetry --file-prefix=%s -m 128 -l 0 "
             "--vdev=net_virtio_user0,path=%s --lcores 0,1@0 -- --forward-mode=icmpecho --auto-start "
             "--total-num-mbufs=4096 --stats-period 1 >%s/testpmd.log 2>&1"
             % (testpmd, PREFIX, sock, tmp)).replace("-l 0 ", "")
    runs = '{command: "%s", background: yes}, ' % start + PING.replace("busybox", "sleep 5; busybox")
    text = PORTS % {"p": PREFIX, "run": runs,
                    "attach": "{kind: vhost-user, path: %s, mtu: 1500}" % sock}
    out, s = run(exe, tmp, write(tmp, text))
    log = open(os.path.join(tmp, "testpmd.log"), errors="replace").read()
    check(pings(out, "b") == [(6, 6)], "%s\n%s\n%s" % (pings(out, "b"), log[-2000:], s["drops"]))
    check(not os.path.exists(sock), "the socket is still there")
    nothing_left()


def dpdk_device(exe, tmp):
    """Any DPDK device: a capture file's frames come in by net_pcap, all of them."""
    need(exe, "netns", "af_packet")
    from scapy.all import IP, UDP, Ether, Raw, wrpcap
    frames = [Ether(src="02:00:00:00:00:77", dst="02:00:00:00:00:78")
              / IP(src="198.18.7.1", dst="198.18.7.2") / UDP(sport=1000, dport=i + 1) / Raw(b"x" * 100)
              for i in range(50)]
    path = os.path.join(tmp, "in.pcap")
    wrpcap(path, frames)
    devargs = "net_pcap0,rx_pcap=%s,tx_pcap=%s/out.pcap" % (path, tmp)
    text = PORTS % {"p": PREFIX, "run": '{command: "sleep 1"}',
                    "attach": '{kind: dpdk, devargs: "%s", mtu: 1500}' % devargs}
    _, s = run(exe, tmp, write(tmp, text))
    check(counters(s, "x")["tx_packets"] == 50, "%s" % counters(s, "x"))
    check(counters(s, "b")["rx_packets"] >= 50, "%s" % counters(s, "b"))
    p = harness.fabemu(exe, "run", write(tmp, text.replace("net_pcap0", "net_nonsense0")), "--out",
                       os.path.join(tmp, "run"))
    check(p.returncode == 3 and "net_nonsense0" in p.stderr, p.stderr)


# ---- ending -------------------------------------------------------------------------------------


def start_long_run(exe, tmp, kind):
    run_text = '{command: "sleep 1000"}'
    text = (NETNS % {"p": PREFIX, "run": run_text}) if kind == "netns" else PFC.replace(
        "ib_write_bw -d rxe0 -x 1 -F -s 65536 -n 300 -u 18", "sleep 1000 #")
    out = os.path.join(tmp, PREFIX + kind)
    p = subprocess.Popen([exe, "run", write(tmp, text), "--out", out], stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    host = "b" if kind == "netns" else "send"
    end = time.monotonic() + 200
    while time.monotonic() < end and p.poll() is None:
        try:
            if "@fabemu@ started" in console(out, host):
                return p, out
        except OSError:
            pass
        time.sleep(0.1)
    p.kill()
    raise AssertionError("the run did not start: %s" % (p.communicate(),))


def processes_of(pid):
    """All descendants of a process, as pids."""
    parents = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, encoding="utf-8", errors="replace") as f:
                text = f.read()
        except OSError:
            continue
        parents[int(path.split("/")[2])] = int(text.rsplit(")", 1)[1].split()[1])
    found = {pid}
    grown = True
    while grown:
        more = {p for p, parent in parents.items() if parent in found} - found
        grown = bool(more)
        found |= more
    return found - {pid}


def gone(pids):
    end = time.monotonic() + 5
    while time.monotonic() < end and any(os.path.exists("/proc/%d" % p) for p in pids):
        time.sleep(0.05)
    return [p for p in pids if os.path.exists("/proc/%d" % p)]


def interrupted(exe, tmp):
    """SIGINT: results are written, guests and namespaces are gone."""
    need(exe, "netns", "af_packet")
    kinds = ["netns"] + (["guest"] if doctor(exe)["guest"]["status"] != "missing" else [])
    for kind in kinds:
        p, out = start_long_run(exe, tmp, kind)
        family = processes_of(p.pid)
        check(len(family) >= 2, "too few processes: %s" % family)
        p.send_signal(signal.SIGINT)
        p.communicate(timeout=30)
        left = gone(family)
        check(not left, "%s: processes left: %s" % (kind, left))
        s = harness.read_summary(out)
        check(s["interrupted"], "summary.json does not say it was interrupted")
        check(not harness.conservation_errors(s), "\n".join(harness.conservation_errors(s)))
        check(not temp_dirs(p.pid), "temporary folder left")
    nothing_left()


def killed(exe, tmp):
    """SIGKILL cannot be caught: no process stays, and the next run cleans up the rest."""
    need(exe, "netns", "af_packet")
    kinds = ["netns"] + (["guest"] if doctor(exe)["guest"]["status"] != "missing" else [])
    for kind in kinds:
        p, _ = start_long_run(exe, tmp, kind)
        family = processes_of(p.pid)
        p.kill()
        p.communicate(timeout=30)
        left = gone(family)
        check(not left, "%s: processes left: %s" % (kind, left))
        last = p.pid
    text = NETNS % {"p": PREFIX, "run": '{command: "true"}'}
    run(exe, tmp, write(tmp, text))
    check(not temp_dirs(last), "the folder of the killed run is still there")
    nothing_left()


# ---- preparation --------------------------------------------------------------------------------


def doctor_case(exe, tmp):
    """doctor: every line has a status, a fix where something is missing; --require decides."""
    found = doctor(exe)
    check(len(found) >= 18, "checks: %s" % list(found))
    for c in found.values():
        check(c["status"] in ("ok", "limited", "missing") and c["detail"], "%s" % c)
        check(c["status"] != "missing" or c["fix"], "no fix for %s" % c["name"])
        p = harness.fabemu(exe, "doctor", "--require", c["name"])
        check(p.returncode == (1 if c["status"] == "missing" else 0), c["name"])
    p = harness.fabemu(exe, "doctor", "--require", "nonsense")
    check(p.returncode == 2 and "nonsense" in p.stderr, p.stderr)
    empty = dict(os.environ, FABEMU_CACHE=os.path.join(tmp, "empty"))
    p = harness.fabemu(exe, "doctor", "--require", "guest", env=empty)
    check(p.returncode == 1 and "prepare.sh" in p.stdout, p.stdout)


def prepare(exe, tmp):
    """prepare.sh: does nothing the second time, and says what is wrong in a line."""
    found = need(exe, "guest_kernel")
    script = os.path.join(ROOT, "emu", "attach", "guest", "prepare.sh")
    cache = os.path.dirname(found["guest_kernel"]["detail"].split()[-1])
    sh(script, "--qemu")
    before = {f: os.stat(f).st_mtime_ns for f in glob.glob(cache + "/qemu/*")}
    check("up to date" in sh(script, "--qemu"), "did it again")
    after = {f: os.stat(f).st_mtime_ns for f in glob.glob(cache + "/qemu/*")}
    check(before == after, "files changed")
    p = subprocess.run([script, "--qemu", "--kernel", "/nonexistent", "--modules", "/"], text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                       env=dict(os.environ, FABEMU_CACHE=os.path.join(tmp, "cache")))
    check(p.returncode == 1 and p.stdout.count("\n") == 1 and "/nonexistent" in p.stdout, p.stdout)


CASES = {f.__name__: f for f in (rxe_guests, rxe_under_pfc, rxe_faults, verbs_peer, two_ports, qemu_tcg, guest_fails, netns, run_statuses,
                                 tap_and_netdev, vlan_priority, vhost_user, dpdk_device,
                                 interrupted, killed, prepare)}
CASES["doctor"] = doctor_case


def main(case, exe):
    with tempfile.TemporaryDirectory(prefix=PREFIX) as tmp:
        try:
            CASES[case](os.path.abspath(exe), tmp)
        except Skip as e:
            print("skipped: %s" % e)
            return harness.SKIP
        except AssertionError as e:
            print(e, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
