#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""capture_test.py FABEMU CAPTURE.pcap...: what captures and replays promise, end to end.

- A capture is the same, byte by byte, on one and on two lcores.
- The captures given are replayed through two switches: each RoCE frame comes out once, its bytes as
  sent but for MAC addresses, TTL (two lower) and IP checksum.
- Malformed frames are dropped by the first switch, each for the reason it should be.
- A disk that is full ends the capture and not the run; the file is valid up to there.
- Filters, snap lengths, rings of files and comments do what they say.
"""

import collections
import glob
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

import harness

sys.path.insert(0, os.path.join(harness.ROOT, "tests"))
import check_capture  # noqa: E402

INCAST = """\
defaults:
  link: {rate: 100Gbps, delay: 600ns}
  qos:
    pfc_enable: [%(pfc)s]
    pg: {3: {static_th: 30KB}}
    queue: {3: {wred: {kmin: 40KB, kmax: 100KB, pmax: 50%%}}}
topology:
  leaf_spine: {leaves: 2, spines: 2, hosts_per_leaf: 4}
workloads:
  in: {type: incast, dst: h1, bytes: 100KB}
captures:
  - {file: all.pcapng}
"""
LOSSLESS = INCAST % {"pfc": "3"}
LOSSY = INCAST % {"pfc": ""}

REPLAY = """\
defaults:
  link: {rate: 25Gbps, delay: 1us, mtu: 4200}
switches: [sw1, sw2]
hosts:
  a:
    ip: 10.0.0.1/24
    replay: {file: %(file)s, filter: "src host 10.0.0.1 and udp port 4791"}
  b:
    ip: 10.0.0.2/24
    replay: {file: %(file)s, filter: "src host 10.0.0.2 and udp port 4791"}
links:
  - [a, sw1]
  - [sw1, sw2]
  - [sw2, b]
captures:
  - {file: out.pcapng, taps: [a, b], direction: rx}
"""


def run(exe, tmp, text, *args, status=(0,), **kw):
    """Runs a scenario given as text; returns (run directory, summary)."""
    scenario, out = os.path.join(tmp, "s.yaml"), os.path.join(tmp, "out")
    with open(scenario, "w", encoding="utf-8") as f:
        f.write(text)
    shutil.rmtree(out, ignore_errors=True)
    p = harness.fabemu(exe, "run", scenario, "--out", out, "--quiet", *args, **kw)
    if p.returncode not in status:
        harness.die("exit status %d" % p.returncode, text, p.stdout, p.stderr)
    return out, harness.read_summary(out)


def valid(path):
    errors = harness.capture_errors(path)
    if errors:
        harness.die(*errors)
    return list(check_capture.read_capture(path))


def expect(condition, text):
    if not condition:
        harness.die(text)


# ---- tests -------------------------------------------------------------------------------------

def same_on_any_number_of_lcores(exe, tmp):
    files = []
    for lcores in ("1", "2"):
        out, _ = run(exe, tmp, LOSSLESS, "--lcores", lcores)
        with open(os.path.join(out, "all.pcapng"), "rb") as f:
            files.append(f.read())
    expect(len(files[0]) > 1000000, "only %d bytes captured" % len(files[0]))
    expect(files[0] == files[1], "captures of 1 and 2 lcores differ")
    frames = valid(os.path.join(out, "all.pcapng"))
    times = [f.time for f in frames]
    expect(times == sorted(times), "frames are not in time order")
    # 8 hosts and 2 spines with 2 links to each of 2 leaves: 12 links, two ends, two directions
    names = set(re.findall(rb"[a-z]+\d+:eth\d+ [rt]x", files[0]))
    expect(len(names) == 48, "%d interfaces: %s" % (len(names), names))


def fingerprint(data):
    """What routers leave alone of an IPv4 frame, and its TTL."""
    ip = bytearray(data[14:])
    ttl = ip[8]
    ip[8] = ip[10] = ip[11] = 0
    return bytes(ip), ttl


def replayed_frames_arrive_whole(exe, tmp, capture):
    out, summary = run(exe, tmp, REPLAY % {"file": capture})
    sent = collections.Counter()
    for f in check_capture.read_capture(capture):
        if f.data[12:14] == b"\x08\x00" and f.data[23] == 17 and f.data[36:38] == b"\x12\xb7":
            packet, ttl = fingerprint(f.data)
            sent[packet, ttl - 2] += 1
    received = collections.Counter(fingerprint(f.data) for f in valid(
        os.path.join(out, "out.pcapng")))
    expect(sum(sent.values()) > 1000, "too few frames in %s" % capture)
    expect(received == sent, "%s: %d frames sent, %d received, %d of them as sent" % (
        capture, sum(sent.values()), sum(received.values()), sum((sent & received).values())))
    expect(summary["frames"]["delivered"] == sum(sent.values()), "delivered: %d" %
           summary["frames"]["delivered"])


def roce_frame(payload=32):
    """A valid RC SEND_ONLY from 10.0.0.1 to 10.0.0.2."""
    udp = 8 + 12 + payload + 4
    ip = bytearray(struct.pack("!BBHHHBBH4B4B", 0x45, 2, 20 + udp, 7, 0x4000, 64, 17, 0,
                               10, 0, 0, 1, 10, 0, 0, 2))
    set_checksum(ip, 0)
    udp = struct.pack("!HHHH", 0xc001, 4791, udp, 0)
    bth = struct.pack("!BBHII", 4, 0, 0xffff, 0x11, 5) + bytes(range(payload))
    icrc = struct.pack("<I", check_capture.icrc(ip, udp, bth))
    return bytearray(b"\2\0\0\0\0\1" + b"\2\0\0\0\0\2" + b"\x08\0" + ip + udp + bth + icrc)


def set_checksum(packet, at):
    packet[at + 10:at + 12] = b"\0\0"
    total = sum(struct.unpack("!10H", packet[at:at + 20]))
    total = (total & 0xffff) + (total >> 16)
    struct.pack_into("!H", packet, at + 10, ~((total & 0xffff) + (total >> 16)) & 0xffff)


def changed(at, value, fix=True):
    f = roce_frame()
    f[at] = value
    if fix:
        set_checksum(f, 14)
    return f


def malformed_frames_are_dropped_for_their_reason(exe, tmp):
    good = roce_frame()
    frames = [(good, "delivered")] * 10
    # Short ones are padded with zeros, as Ethernet does: 13 bytes become an IP packet of version 0.
    frames += [(good[:n], "malformed_eth" if n < 13 else "malformed_ip")
               for n in range(1, len(good))]
    # IP total length 76, UDP length 56
    frames += [(changed(12, 0x12), "malformed_eth"), (changed(14, 0x55), "malformed_ip"),
               (changed(14, 0x44), "malformed_ip"), (changed(17, 77), "malformed_ip"),
               (changed(17, 19), "malformed_ip"), (changed(24, 0x99, False), "ip_checksum"),
               (changed(17, 75), "malformed_udp"), (changed(39, 57), "malformed_udp"),
               (changed(39, 7), "malformed_udp"), (changed(43, 1), "malformed_bth"),
               (changed(22, 1), "ttl_expired"), (changed(33, 9), "no_route")]
    rng = random.Random(1)
    for _ in range(3000):  # 0x08 0x00, then nothing like an IPv4 header
        f = bytearray(rng.getrandbits(8) for _ in range(rng.randrange(14, 200)))
        f[0] &= 0xfe
        f[12:15] = b"\x08\0" + bytes([rng.getrandbits(8) & 0x3f])
        frames.append((f, "malformed_ip"))
    rng.shuffle(frames)
    path = os.path.join(tmp, "bad.pcap")
    with open(path, "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for f, _ in frames:
            out.write(struct.pack("<IIII", 0, 0, len(f), len(f)) + f)
    text = re.sub(r', filter: "[^"]*"', "", REPLAY % {"file": path}, count=1)
    text = re.sub(r"  b:\n.*\n.*\n", "  b:\n    ip: 10.0.0.2/24\n", text)
    text = re.sub(r"captures:.*", "", text, flags=re.S).replace("replay: {", "replay: {speed: as-fast, ")
    _, summary = run(exe, tmp, text.replace("  b:\n    ip", "  b:\n    nic: {}\n    ip"))
    want = collections.Counter(reason for _, reason in frames)
    del want["delivered"]
    want["no_qp"] = 10  # the good ones reach a NIC that knows nothing of them
    got = {r: n for r, n in summary["drops"].items() if n and r != "total"}
    expect(got == dict(want), "drops %s, expected %s" % (got, dict(want)))
    errors = harness.conservation_errors(summary)
    expect(not errors, errors)


def capture_broken_off(exe, tmp, path, error):
    """A run whose second capture goes to `path` and fails there; returns that capture's summary."""
    whole = run(exe, tmp, LOSSLESS)[1]
    _, summary = run(exe, tmp, LOSSLESS, "--pcap", path, status=(3,))
    expect(summary["digest"] == whole["digest"], "the run went another way")
    first, second = summary["captures"]
    expect(first["error"] is None and error in (second["error"] or ""), "errors: %s, %s" % (
        first["error"], second["error"]))
    return second


def a_full_disk_does_not_stop_the_run(exe, tmp):
    disk = os.path.join(tmp, "disk")
    os.mkdir(disk)
    # Not RLIMIT_FSIZE: it would also limit the memory files of EAL.
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "none", disk], check=False,
                             stderr=subprocess.DEVNULL).returncode == 0
    if not mounted:
        print("a full disk was not tried: mount is not permitted")
        return
    try:
        path = os.path.join(disk, "x.pcapng")
        capture = capture_broken_off(exe, tmp, path, "No space left")
        size = os.path.getsize(path)
        expect(512 * 1024 - 10000 < size <= 512 * 1024, "%d bytes" % size)
        expect(len(valid(path)) == capture["frames"], "the summary counts other frames")
    finally:
        subprocess.run(["umount", disk], check=True)


def a_reader_gone_does_not_stop_the_run(exe, tmp):
    path = os.path.join(tmp, "fifo")
    os.mkfifo(path)
    reader = subprocess.Popen(["head", "-c", "300000", path], stdout=subprocess.DEVNULL)
    capture_broken_off(exe, tmp, path, "Broken pipe")
    reader.wait()


def an_unwritable_capture_does_not_stop_the_run(exe, tmp):
    _, summary = run(exe, tmp, LOSSLESS, "--pcap", os.path.join(tmp, "missing", "x.pcapng"),
                     status=(3,))
    errors = [c["error"] for c in summary["captures"]]
    expect(errors[0] is None and "No such file" in errors[1], "errors: %s" % errors)
    expect(summary["frames"]["delivered"] > 0, "nothing ran")


def options_do_what_they_say(exe, tmp):
    text = LOSSLESS + """\
  - {file: acks.pcapng, filter: "udp[8] = 17", snaplen: 80B}
  - {file: ring.pcapng, taps: [leaf1], max_size: 100KB, ring: 3}
"""
    out, summary = run(exe, tmp, text)
    frames = list(check_capture.read_capture(os.path.join(out, "acks.pcapng")))
    expect(frames and all(f.data[42] == 17 for f in frames), "the filter let others pass")
    files = sorted(glob.glob(os.path.join(out, "ring.*.pcapng")))
    expect(len(files) == 3, "ring: %s" % files)
    for f in files:
        valid(f)
        expect(os.path.getsize(f) <= 110000, "%s: %d bytes" % (f, os.path.getsize(f)))


def counted(summary, prefix):
    """Sum over all ports and priorities of a counter of the summary."""
    return sum(value for port in summary["ports"] for name, value in port["counters"].items()
               if name.startswith(prefix[0]) and name.endswith(prefix[1]))


def comments_tell_what_the_counters_count(exe, tmp):
    for text in (LOSSLESS, LOSSY):
        out, summary = run(exe, tmp, text, status=(0, 1))
        comments = collections.Counter()
        for f in valid(os.path.join(out, "all.pcapng")):
            for part in f.comment.split("; "):
                comments[" ".join(part.split()[:2]).rstrip(":")] += 1
        dropped = sum(n for c, n in comments.items() if c.startswith("dropped"))
        told = {
            "PFC frames": comments["PFC XOFF"] + comments["PFC XON"],
            "marks": comments["ECN marked"],
            "drops": dropped,
        }
        count = {
            "PFC frames": counted(summary, ("tx_prio", "_pause")),
            "marks": counted(summary, ("tx_prio", "_ecn_marked")),
            "drops": summary["drops"]["total"],
        }
        expect(told == count, "told %s, counted %s" % (told, count))
        expect(count["marks"] > 0, "nothing was marked")
        expect((count["PFC frames"] > 0) == (text is LOSSLESS), "PFC: %s" % count)
        expect((count["drops"] > 0) == (text is LOSSY), "drops: %s" % count)


def main(exe, captures):
    with tempfile.TemporaryDirectory(prefix="fabemu-capture-") as tmp:
        same_on_any_number_of_lcores(exe, tmp)
        for c in captures:
            replayed_frames_arrive_whole(exe, tmp, os.path.abspath(c))
        malformed_frames_are_dropped_for_their_reason(exe, tmp)
        a_full_disk_does_not_stop_the_run(exe, tmp)
        a_reader_gone_does_not_stop_the_run(exe, tmp)
        an_unwritable_capture_does_not_stop_the_run(exe, tmp)
        options_do_what_they_say(exe, tmp)
        comments_tell_what_the_counters_count(exe, tmp)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
