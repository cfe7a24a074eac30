# SPDX-License-Identifier: BSD-3-Clause
"""The wall clock as a plain forwarder: a `net_pcap` source that repeats 432 small RoCEv2 frames for
ever, one switch with the whole pipeline on, a `net_null` sink; and dpdk-testpmd with the same source
and sink in the same run, as the ceiling of what this machine's drivers allow; and OVS-DPDK, where it is
installed.
"""

import os
import re
import shutil
import signal
import statistics
import struct
import subprocess
import tempfile
import time
import zlib

import harness
import ovs_dpdk

FRAMES = 432
REQUIRED_MPPS = 6.0
SECONDS = 3

SCENARIO = """\
name: forwarder
clock: wall
duration: {seconds}s
poll: busy
lcores: 1
lag_bound: 1000s
deadlock: {{detect: no}}
switches: [sw1]
hosts:
  source:
    ip: 10.0.0.1
    attach: {{kind: dpdk, counters: no, devargs: "net_pcap0,rx_pcap={pcap},infinite_rx=1"}}
  sink:
    ip: 10.0.0.2
    attach: {{kind: dpdk, counters: no, devargs: "net_null0,no-rx=1"}}
links:
  - {{ends: [sw1, source], rate: 400Gbps}}
  - {{ends: [sw1, sink], rate: 400Gbps}}
"""


def checksum(header):
    total = sum(struct.unpack("!%dH" % (len(header) // 2), header))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def roce_frame(i):
    """RC SEND Only of 8 bytes from one of 16 queue pairs: 66 bytes without FCS, valid ICRC."""
    payload = struct.pack("!Q", i)
    qp = i % 16
    bth = struct.pack("!BBHII", 0x04, 0x40, 0xffff, 0x11 + qp, i // 16)
    udp_len = 8 + len(bth) + len(payload) + 4
    udp = struct.pack("!HHHH", 49152 + qp, 4791, udp_len, 0)
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, (3 << 2) | 2, 20 + udp_len, 0, 0x4000, 64, 17, 0,
                     bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]))
    ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    # ICRC (IBTA annex 17): 8 bytes of ones, then the packet with its variant fields as ones.
    masked_ip = ip[:1] + b"\xff" + ip[2:8] + b"\xff" + ip[9:10] + b"\xff\xff" + ip[12:]
    masked = (b"\xff" * 8 + masked_ip + udp[:6] + b"\xff\xff" + bth[:4] + b"\xff" + bth[5:] +
              payload)
    icrc = struct.pack("<I", zlib.crc32(masked))
    eth = bytes.fromhex("020000000001" "020000000002" "0800")
    return eth + ip + udp + bth + payload + icrc


def write_pcap(path):
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for i in range(FRAMES):
            frame = roce_frame(i)
            f.write(struct.pack("<IIII", 0, i, len(frame), len(frame)) + frame)


def fabemu_mpps(exe, tmp, pcap):
    scenario = os.path.join(tmp, "forwarder.yaml")
    with open(scenario, "w", encoding="utf-8") as f:
        f.write(SCENARIO.format(seconds=SECONDS, pcap=pcap))
    out = os.path.join(tmp, "run")
    p = harness.fabemu(exe, "run", scenario, "--out", out, "--quiet", timeout=120)
    if p.returncode != 0:
        harness.die("forwarder: exit status %d" % p.returncode, p.stdout, p.stderr)
    s = harness.read_summary(out)
    if s["drops"]["total"] != 0:
        harness.die("forwarder: frames were dropped: %s" %
                    {k: v for k, v in s["drops"].items() if v})
    port = next(x for x in s["ports"] if x["node"] == "sw1" and x["peer"].startswith("sink:"))
    return port["counters"]["tx_packets"] / s["wall_seconds"] / 1e6


def testpmd_mpps(pcap, mode):
    p = subprocess.Popen(
        ["dpdk-testpmd", "--no-huge", "--no-shconf", "-m", "512", "--no-pci", "-l", "0,1",
         "--vdev=net_pcap0,rx_pcap=%s,infinite_rx=1" % pcap, "--vdev=net_null0,no-rx=1", "--",
         "--forward-mode=" + mode, "--auto-start", "--total-num-mbufs=65536",
         "--no-lsc-interrupt", "--stats-period=1"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    time.sleep(SECONDS + 2)
    p.send_signal(signal.SIGINT)
    out = p.communicate(timeout=30)[0]
    rates = [int(x) for x in re.findall(r"Tx-pps:\s+(\d+)", out)]
    rates = [x for x in rates if x > 0]
    return statistics.median(rates) / 1e6 if rates else None


def bench(exe, runs):
    with tempfile.TemporaryDirectory(prefix="fabemu-forwarder-") as tmp:
        pcap = os.path.join(tmp, "source.pcap")
        write_pcap(pcap)
        ours = [fabemu_mpps(exe, tmp, pcap) for _ in range(runs)]
        median = statistics.median(ours)
        print("%-28s %8s %12s %8s" % ("wall-clock forwarder", "Mpps", "range", "ratio"))
        print("%-28s %8.2f %5.1f-%-6.1f %8s" % ("fabemu, whole pipeline", median, min(ours),
                                               max(ours), "1"))
        if shutil.which("dpdk-testpmd") is None:
            print("dpdk-testpmd is not installed (package dpdk-dev): no ratio")
        else:
            for mode in ("io", "macswap"):
                mpps = testpmd_mpps(pcap, mode)
                if mpps is None:
                    print("dpdk-testpmd %s gave no figures" % mode)
                else:
                    print("%-28s %8.2f %12s %8.2f" % ("dpdk-testpmd " + mode, mpps, "",
                                                      mpps / median), flush=True)
        if not ovs_dpdk.installed():
            print("OVS-DPDK is not installed (package openvswitch-switch-dpdk): no ratio")
        else:
            mpps, why = ovs_dpdk.mpps(pcap, tmp, SECONDS)
            if mpps is None:
                print("OVS-DPDK gave no figures: %s" % why)
            else:
                print("%-28s %8.2f %12s %8.2f" % ("OVS-DPDK, one flow rule", mpps, "",
                                                  mpps / median), flush=True)
    return median >= REQUIRED_MPPS
