#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that every frame of a capture is what a receiver would accept.

Reads pcap and pcapng by itself and judges with nothing of fabemu: IP checksums and lengths, the
ICRC of every RoCE frame by zlib.crc32, PFC frames; then asks tshark for anything malformed and
scapy's RoCE layer for the ICRCs of a sample, where they are installed.

usage: check_capture.py [--hops] [--quiet] FILE...

--hops   also: each frame that a node sent was received by it with a TTL one higher, wherever the
         capture has both sides of the node (interfaces named "NODE:PORT rx" and "... tx").

Exit status: 0 all valid, 1 violations (printed, at most 20 per file), 2 cannot read.
"""

import collections
import shutil
import struct
import subprocess
import sys
import zlib

EXT = {"RDETH": 4, "DETH": 8, "XRCETH": 4, "RETH": 16, "ATOMIC": 28, "AETH": 4, "ATOMICACK": 8,
       "IMM": 4, "IETH": 4}
# Extension headers by operation (low five bits), for RC.
RC = {0: "", 1: "", 2: "", 3: "IMM", 4: "", 5: "IMM", 6: "RETH", 7: "", 8: "", 9: "IMM",
      10: "RETH", 11: "RETH IMM", 12: "RETH", 13: "AETH", 14: "", 15: "AETH", 16: "AETH",
      17: "AETH", 18: "AETH ATOMICACK", 19: "ATOMIC", 20: "ATOMIC", 22: "IETH", 23: "IETH"}
OP_NAMES = {0: "SEND_FIRST", 1: "SEND_MIDDLE", 2: "SEND_LAST", 3: "SEND_LAST_IMM", 4: "SEND_ONLY",
            5: "SEND_ONLY_IMM", 6: "WRITE_FIRST", 7: "WRITE_MIDDLE", 8: "WRITE_LAST",
            9: "WRITE_LAST_IMM", 10: "WRITE_ONLY", 11: "WRITE_ONLY_IMM", 12: "READ_REQUEST",
            13: "READ_RESPONSE_FIRST", 14: "READ_RESPONSE_MIDDLE", 15: "READ_RESPONSE_LAST",
            16: "READ_RESPONSE_ONLY", 17: "ACKNOWLEDGE", 18: "ATOMIC_ACKNOWLEDGE", 19: "CMP_SWAP",
            20: "FETCH_ADD", 22: "SEND_LAST_INV", 23: "SEND_ONLY_INV"}
NO_PAYLOAD = {12, 17, 18, 19, 20}

Frame = collections.namedtuple("Frame", "number interface time data length comment")


class Bad(Exception):
    """What is wrong with a frame."""


# ---- files -------------------------------------------------------------------------------------

def read_pcap(data):
    """Classic pcap, either byte order, micro- or nanoseconds."""
    magic = data[:4]
    order = "<" if magic[0] in (0xd4, 0x4d) else ">"
    unit = 1 if magic in (b"\x4d\x3c\xb2\xa1", b"\xa1\xb2\x3c\x4d") else 1000
    if struct.unpack(order + "I", data[20:24])[0] & 0xffff != 1:
        raise OSError("link type is not Ethernet")
    at, number = 24, 0
    while at < len(data):
        if at + 16 > len(data):
            raise OSError("the file ends within a record header")
        sec, frac, caplen, length = struct.unpack(order + "IIII", data[at:at + 16])
        at += 16
        if at + caplen > len(data):
            raise OSError("the file ends within frame %d" % (number + 1))
        number += 1
        yield Frame(number, "", sec * 10**9 + frac * unit, data[at:at + caplen], length, "")
        at += caplen


def options(body, order):
    """Options of a pcapng block as {code: [values]}."""
    out, at = collections.defaultdict(list), 0
    while at + 4 <= len(body):
        code, length = struct.unpack(order + "HH", body[at:at + 4])
        if code == 0:
            break
        if at + 4 + length > len(body):
            raise OSError("an option runs over the end of its block")
        out[code].append(body[at + 4:at + 4 + length])
        at += 4 + (length + 3) // 4 * 4
    return out


def read_pcapng(data):
    order, at, number, interfaces = "<", 0, 0, []
    while at < len(data):
        if at + 12 > len(data):
            raise OSError("the file ends within a block header")
        kind = struct.unpack(order + "I", data[at:at + 4])[0]
        if kind == 0x0a0d0d0a:
            order = "<" if data[at + 8:at + 12] == b"\x4d\x3c\x2b\x1a" else ">"
            interfaces = []
        total = struct.unpack(order + "I", data[at + 4:at + 8])[0]
        if total < 12 or total % 4 or at + total > len(data):
            raise OSError("the file ends within a block, at byte %d" % at)
        if struct.unpack(order + "I", data[at + total - 4:at + total])[0] != total:
            raise OSError("the two lengths of the block at byte %d differ" % at)
        body = data[at + 8:at + total - 4]
        if kind == 1:
            link = struct.unpack(order + "H", body[:2])[0]
            opts = options(body[8:], order)
            resolution = opts[9][0][0] if opts[9] else 6
            if resolution & 0x80:
                raise OSError("time stamps in powers of two are not supported")
            name = opts[2][0].decode() if opts[2] else "if%d" % len(interfaces)
            interfaces.append((name, link, 10**9 // 10**resolution if resolution <= 9 else 0))
        elif kind == 6:
            index, high, low, caplen, length = struct.unpack(order + "IIIII", body[:20])
            if index >= len(interfaces):
                raise OSError("frame %d names interface %d of %d" % (
                    number + 1, index, len(interfaces)))
            name, link, unit = interfaces[index]
            if caplen > len(body) - 20:
                raise OSError("frame %d is longer than its block" % (number + 1))
            opts = options(body[20 + (caplen + 3) // 4 * 4:], order)
            number += 1
            if link == 1:
                yield Frame(number, name, (high << 32 | low) * unit, body[20:20 + caplen], length,
                            "; ".join(c.decode() for c in opts[1]))
        at += total


def read_capture(path):
    with open(path, "rb") as f:
        data = f.read()
    if data[:4] == b"\x0a\x0d\x0d\x0a":
        return read_pcapng(data)
    if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\xc3\xd4", b"\x4d\x3c\xb2\xa1",
                    b"\xa1\xb2\x3c\x4d"):
        return read_pcap(data)
    raise OSError("neither pcap nor pcapng")


# ---- frames ------------------------------------------------------------------------------------

def be16(b, at):
    return b[at] << 8 | b[at + 1]


def need(condition, text):
    if not condition:
        raise Bad(text)


def checksum_ok(header):
    total = sum(struct.unpack("!%dH" % (len(header) // 2), header))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total == 0xffff


def icrc(ip, udp, bth):
    """ICRC over IP header (bytes), UDP header (bytes, empty for RoCEv1) and the rest."""
    ip = bytearray(ip)
    if ip[0] >> 4 == 4:
        ip[1] = ip[8] = ip[10] = ip[11] = 0xff
    else:
        ip[0] |= 0x0f
        ip[1] = ip[2] = ip[3] = ip[7] = 0xff
    if udp:
        udp = bytearray(udp)
        udp[6] = udp[7] = 0xff
    bth = bytearray(bth)
    bth[4] = 0xff
    return zlib.crc32(b"\xff" * 8 + bytes(ip) + bytes(udp) + bytes(bth)) & 0xffffffff


def extension_bytes(opcode):
    """Length of the extension headers of an opcode; None when it is unknown."""
    transport, op = opcode & 0xe0, opcode & 0x1f
    if opcode == 0x81:
        return 16
    if transport == 0x60:
        return {4: 8, 5: 12}.get(op)
    if transport == 0x00 or (transport == 0x20 and op <= 11):
        return sum(EXT[h] for h in RC[op].split()) if op in RC else None
    return None


def opcode_name(opcode):
    if opcode == 0x81:
        return "CNP"
    transport = {0x00: "RC", 0x20: "UC", 0x60: "UD"}.get(opcode & 0xe0)
    op = OP_NAMES.get(opcode & 0x1f)
    return "%s %s" % (transport, op) if transport and op else "opcode 0x%02x" % opcode


def check_roce(ip, udp, body):
    """`body`: BTH up to and including the ICRC. Returns the opcode's name."""
    need(len(body) >= 16, "RoCE: %d bytes, BTH and ICRC need 16" % len(body))
    opcode, pad = body[0], body[1] >> 4 & 3
    need(body[1] & 0x0f == 0, "BTH: version %d" % (body[1] & 0x0f))
    extension = extension_bytes(opcode)
    need(extension is not None, "BTH: unknown opcode 0x%02x" % opcode)
    payload = len(body) - 12 - extension - pad - 4
    need(payload >= 0, "BTH: %d bytes short of headers, pad and ICRC" % -payload)
    need((payload + pad) % 4 == 0, "BTH: payload %d and pad %d are no multiple of 4" % (payload,
                                                                                        pad))
    sack = (opcode == 0x11 and payload == 12 and body[12] == 0x60 and body[16] == 0x53)
    need(opcode == 0x81 or opcode & 0x1f not in NO_PAYLOAD or payload == 0 or sack,
         "BTH: %s with payload" % opcode_name(opcode))
    want, found = icrc(ip, udp, body[:-4]), struct.unpack("<I", body[-4:])[0]
    need(want == found, "ICRC 0x%08x, expected 0x%08x" % (found, want))
    return opcode_name(opcode)


def check_udp(frame, ip, payload, counts):
    need(len(payload) >= 8, "UDP: header cut")
    length = be16(payload, 4)
    need(8 <= length <= len(payload), "UDP: length %d of %d" % (length, len(payload)))
    if be16(payload, 2) != 4791:
        counts["udp"] += 1
        return None
    need(length == len(payload), "RoCE: UDP length %d, IP payload %d" % (length, len(payload)))
    name = check_roce(ip, payload[:8], payload[8:])
    counts["roce"] += 1
    counts[name] += 1
    return payload


def check_ip(frame, packet, counts):
    """Returns (what identifies a RoCE packet on its way, ttl), or None."""
    version = packet[0] >> 4
    if version == 4:
        need(len(packet) >= 20, "IP: header cut")
        header = (packet[0] & 15) * 4
        total = be16(packet, 2)
        need(header >= 20 and header <= total <= len(packet),
             "IP: header %d, total %d, present %d" % (header, total, len(packet)))
        need(checksum_ok(packet[:header]), "IP: checksum wrong")
        counts["ipv4"] += 1
        protocol, ttl, ends = packet[9], packet[8], packet[12:20]
        fragment = be16(packet, 6) & 0x3fff
    else:
        need(version == 6 and len(packet) >= 40, "IP: version %d or header cut" % version)
        header, fragment = 40, 0
        total = 40 + be16(packet, 4)
        need(total <= len(packet), "IP: total %d, present %d" % (total, len(packet)))
        counts["ipv6"] += 1
        protocol, ttl, ends = packet[6], packet[7], packet[8:40]
    need(ttl > 0, "IP: TTL 0")
    if protocol != 17 or fragment:
        return None
    roce = check_udp(frame, packet[:header], packet[header:total], counts)
    return ((ends, roce), ttl) if roce else None


def check_control(body, counts):
    opcode = be16(body, 0)
    need(opcode in (1, 0x101), "MAC control: opcode 0x%04x" % opcode)
    if opcode == 1:
        counts["pause"] += 1
        return
    vector = be16(body, 2)
    need(vector >> 8 == 0 and vector != 0, "PFC: class vector 0x%04x" % vector)
    quanta = struct.unpack("!8H", body[4:20])
    need(all(q == 0 or vector >> i & 1 for i, q in enumerate(quanta)),
         "PFC: quanta of a class not in the vector")
    counts["pfc"] += 1


def check_frame(frame, counts):
    data = frame.data
    need(len(data) <= frame.length, "captured more than the frame")
    if len(data) < frame.length:
        counts["cut"] += 1
        return None
    need(len(data) >= 14, "Ethernet: header cut")
    at, kind = 14, be16(data, 12)
    while kind in (0x8100, 0x88a8):
        need(len(data) >= at + 4, "802.1Q: tag cut")
        kind = be16(data, at + 2)
        at += 4
        counts["tagged"] += 1
    if kind in (0x0800, 0x86dd):
        need((data[at] >> 4 if len(data) > at else 0) == (4 if kind == 0x0800 else 6),
             "IP: version contradicts the Ethernet type")
        return check_ip(frame, data[at:], counts)
    if kind == 0x8808:
        need(data[:6] == b"\x01\x80\xc2\x00\x00\x01", "MAC control: wrong destination")
        need(len(data) >= 60, "MAC control: %d bytes, expected 60" % len(data))
        check_control(data[at:], counts)
    elif kind == 0x0806:
        need(len(data) >= at + 28, "ARP: cut")
        counts["arp"] += 1
    elif kind == 0x8915:
        total = 40 + be16(data, at + 4)
        need(at + total <= len(data), "GRH: total %d, present %d" % (total, len(data) - at))
        counts[check_roce(data[at:at + 40], b"", data[at + 40:at + total])] += 1
        counts["roce1"] += 1
    else:
        counts["other"] += 1
    return None


# ---- others' opinions --------------------------------------------------------------------------

def ask_tshark(path):
    if shutil.which("tshark") is None:
        return None
    p = subprocess.run(["tshark", "-r", path, "-Y", "_ws.malformed", "-T", "fields", "-e",
                        "frame.number"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                       check=False)
    if p.returncode != 0:
        return ["tshark: %s" % p.stderr.strip().split("\n")[-1]]
    return ["frame %s: tshark finds it malformed" % n for n in p.stdout.split()]


def ask_scapy(frames):
    """Has scapy rebuild the ICRC of some IPv4 frames without IP options."""
    try:
        import logging
        logging.getLogger("scapy").setLevel(logging.ERROR)
        from scapy.contrib.roce import BTH
        from scapy.layers.l2 import Ether
    except ImportError:
        return None
    errors = []
    for f in frames:
        packet = Ether(f.data[:14 + be16(f.data, 16)])  # it would count a trailer in
        if BTH not in packet:
            errors.append("frame %d: scapy finds no BTH" % f.number)
            continue
        found = packet[BTH].icrc
        packet[BTH].icrc = None
        rebuilt = Ether(bytes(packet))[BTH].icrc
        if rebuilt != found:
            errors.append("frame %d: ICRC 0x%08x, scapy says 0x%08x" % (f.number, found, rebuilt))
    return errors


# ---- a file ------------------------------------------------------------------------------------

def check_hops(passed):
    """`passed`: {(node, packet): {"rx": {ttl: frame number}, "tx": ...}}."""
    errors = []
    switches = {node for (node, _), sides in passed.items() if "rx" in sides and "tx" in sides}
    for (node, _), sides in passed.items():
        if node not in switches:
            continue
        for ttl, number in sides.get("tx", {}).items():
            if ttl + 1 not in sides.get("rx", {}):
                errors.append("frame %d: sent by %s with TTL %d, received with %s" % (
                    number, node, ttl, sorted(sides.get("rx", {})) or "no copy"))
    return errors, len(switches)


def check_file(path, hops, quiet):
    counts = collections.Counter()
    interfaces, comments = collections.Counter(), collections.Counter()
    errors, sample = [], []
    passed = collections.defaultdict(lambda: collections.defaultdict(dict))
    for f in read_capture(path):
        counts["frames"] += 1
        interfaces[f.interface] += 1
        if f.comment:
            comments[" ".join(f.comment.split()[:2])] += 1
        try:
            packet = check_frame(f, counts)
        except (Bad, IndexError) as e:
            errors.append("frame %d (%s): %s" % (f.number, f.interface or "-", e or "cut"))
            continue
        if packet is None:
            continue
        if be16(f.data, 12) == 0x0800 and (counts["roce"] % 97 == 1 or counts["roce"] < 20):
            sample.append(f)
        if hops and f.interface:
            node, side = f.interface.split(":")[0], f.interface.split()[-1]
            passed[node, packet[0]][side][packet[1]] = f.number
    notes = []
    for name, found in (("tshark", ask_tshark(path)), ("scapy", ask_scapy(sample[:300]))):
        if found is None:
            notes.append("%s not installed" % name)
        else:
            errors += found
    if hops:
        found, switches = check_hops(passed)
        errors += found
        notes.append("hops of %d nodes" % switches)
    if not quiet or errors:
        report(path, counts, interfaces, comments, notes, errors)
    return not errors


def report(path, counts, interfaces, comments, notes, errors):
    print("%s: %d frames on %d interfaces: %s" % (
        path, counts["frames"], len(interfaces),
        ", ".join("%s %d" % (k, n) for k, n in sorted(counts.items()) if k != "frames")))
    for text, n in sorted(comments.items()):
        print("  comment \"%s ...\": %d" % (text, n))
    if notes:
        print("  " + ", ".join(notes))
    for e in errors[:20]:
        print("  " + e)
    if len(errors) > 20:
        print("  and %d more" % (len(errors) - 20))
    print("  %s" % ("valid" if not errors else "%d violations" % len(errors)))


def main():
    flags = [a for a in sys.argv[1:] if a.startswith("--")]
    files = [a for a in sys.argv[1:] if not a.startswith("--")]
    if not files or set(flags) - {"--hops", "--quiet"}:
        print(__doc__, file=sys.stderr)
        return 2
    ok = True
    for path in files:
        try:
            ok &= check_file(path, "--hops" in flags, "--quiet" in flags)
        except OSError as e:
            print("%s: %s" % (path, e), file=sys.stderr)
            return 2
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
