# SPDX-License-Identifier: BSD-3-Clause
"""Writes captures of scripted RoCE talks, without anything of fabemu's: ICRCs by zlib.crc32.

A Talk is two hosts, A (10.0.0.1, queue pair 0x11) and B (10.0.0.2, queue pair 0x22), at one tap.
Every method adds one frame, 1 us after the last, and returns its number.
"""

import struct

import check_capture

A, B = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
A_QP, B_QP = 0x11, 0x22
SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_ONLY = 0, 1, 2, 4
WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_ONLY = 6, 7, 8, 10
READ_REQUEST, RESP_FIRST, RESP_MIDDLE, RESP_LAST, RESP_ONLY = 12, 13, 14, 15, 16
ACK, ATOMIC_ACK, FETCH_ADD = 17, 18, 20
CNP = 0x81
UNLIMITED, RNR_NAK, NAK_SEQ = 0x1f, 0x20, 0x60


def ones_sum(data):
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total


def mapped(address):
    return bytes(10) + b"\xff\xff" + address


def bth(opcode, qp, psn, ack_req=False, pad=0):
    return struct.pack("!BBHII", opcode, 0x40 | pad << 4, 0xffff, qp,
                       (0x80000000 if ack_req else 0) | (psn & 0xffffff))


def frame(src, dst, body, version=4, tos=2, ttl=64, ip_id=0, sport=0xc123):
    """Ethernet frame of BTH..payload `body`; version 4 or 6 (RoCEv2), 1 (RoCEv1)."""
    macs = b"\2\0\0\0\0" + dst[3:] + b"\2\0\0\0\0" + src[3:]
    if version == 1:
        grh = struct.pack("!IHBB", 6 << 28 | tos << 20, len(body) + 4, 0x1b, ttl)
        grh += mapped(src) + mapped(dst)
        icrc = check_capture.icrc(grh, b"", body)
        return macs + b"\x89\x15" + grh + body + struct.pack("<I", icrc)
    udp = struct.pack("!HHHH", sport, 4791, 8 + len(body) + 4, 0)
    if version == 6:
        ip = struct.pack("!IHBB", 6 << 28 | tos << 20, len(udp) + len(body) + 4, 17, ttl)
        ip += mapped(src) + mapped(dst)
        return macs + b"\x86\xdd" + ip + udp + body + struct.pack(
            "<I", check_capture.icrc(ip, udp, body))
    ip = bytearray(struct.pack("!BBHHHBBH", 0x45, tos, 20 + len(udp) + len(body) + 4, ip_id,
                               0x4000, ttl, 17, 0) + src + dst)
    struct.pack_into("!H", ip, 10, ~ones_sum(ip) & 0xffff)
    icrc = check_capture.icrc(bytes(ip), udp, body)
    return macs + b"\x08\0" + bytes(ip) + udp + body + struct.pack("<I", icrc)


def pfc(mac, quanta):
    """PFC frame; quanta by priority."""
    vector = sum(1 << p for p in quanta)
    body = b"".join(struct.pack("!H", quanta.get(p, 0)) for p in range(8))
    head = b"\x01\x80\xc2\0\0\x01" + mac + b"\x88\x08\x01\x01" + struct.pack("!H", vector)
    return (head + body).ljust(60, b"\0")


class Talk:
    """A scripted exchange; `version` as for frame()."""

    def __init__(self, version=4):
        self.frames = []  # (time_ns, bytes)
        self.now = 1000000
        self.version = version
        self.msn = 0

    def wait(self, us):
        self.now += int(us * 1000)

    def add(self, data):
        self.now += 1000
        self.frames.append((self.now, bytes(data)))
        return len(self.frames)

    def a(self, opcode, psn, payload=b"", ext=b"", ack_req=False, **kw):
        """A to B."""
        return self.add(frame(A, B, bth(opcode, B_QP, psn, ack_req, -len(payload) % 4) + ext +
                              payload + bytes(-len(payload) % 4), self.version, **kw))

    def b(self, opcode, psn, payload=b"", ext=b"", **kw):
        """B to A."""
        return self.add(frame(B, A, bth(opcode, A_QP, psn, pad=-len(payload) % 4) + ext +
                              payload + bytes(-len(payload) % 4), self.version, **kw))

    def send(self, psn, **kw):
        """One SEND_ONLY of 64 bytes."""
        return self.a(SEND_ONLY, psn, bytes(64), ack_req=True, **kw)

    def ack(self, psn, msn=None, syndrome=UNLIMITED):
        if msn is None:
            self.msn += 1
            msn = self.msn
        return self.b(ACK, psn, ext=struct.pack("!I", syndrome << 24 | msn))

    def nak(self, psn, syndrome=NAK_SEQ):
        return self.ack(psn, self.msn, syndrome)

    def read(self, psn, size):
        return self.a(READ_REQUEST, psn, ext=struct.pack("!QII", 0x1000, 7, size))

    def response(self, opcode, psn, payload):
        aeth = b"" if opcode == RESP_MIDDLE else struct.pack("!I", UNLIMITED << 24 | self.msn)
        return self.b(opcode, psn, payload, aeth)


# ---- files -------------------------------------------------------------------------------------

def pcap(frames, order="<", ns=True, snaplen=65535):
    magic = 0xa1b23c4d if ns else 0xa1b2c3d4
    out = [struct.pack(order + "IHHIIII", magic, 2, 4, 0, 0, snaplen, 1)]
    for time, data in frames:
        fraction = time % 10**9 // (1 if ns else 1000)
        out.append(struct.pack(order + "IIII", time // 10**9, fraction,
                               min(len(data), snaplen), len(data)) + data[:snaplen])
    return b"".join(out)


def block(order, kind, body):
    body += bytes(-len(body) % 4)
    return struct.pack(order + "II", kind, len(body) + 12) + body + struct.pack(
        order + "I", len(body) + 12)


def option(order, code, value):
    return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def section(frames, order="<", interfaces=(("eth0", 0),), tsresol=9, simple=False, lost=0):
    """A pcapng section; frames are (time_ns, bytes[, interface[, comment]])."""
    out = [block(order, 0x0a0d0d0a, struct.pack(order + "IHHq", 0x1a2b3c4d, 1, 0, -1)),
           block(order, 0x0bad, b"what nobody knows is skipped")]
    for name, speed in interfaces:
        out.append(block(order, 1, struct.pack(order + "HHI", 1, 0, 0) +
                         option(order, 2, name.encode()) +
                         (option(order, 8, struct.pack(order + "Q", speed)) if speed else b"") +
                         option(order, 9, bytes([tsresol])) + bytes(4)))
    for f in frames:
        time, data, where = f[0], f[1], f[2] if len(f) > 2 else 0
        if simple:
            out.append(block(order, 3, struct.pack(order + "I", len(data)) + data))
            continue
        ticks = time << (tsresol & 0x7f) if tsresol & 0x80 else time * 10**tsresol
        ticks //= 10**9
        comment = option(order, 1, f[3].encode()) + bytes(4) if len(f) > 3 else b""
        out.append(block(order, 6, struct.pack(
            order + "IIIII", where, ticks >> 32, ticks & 0xffffffff, len(data), len(data)) +
            data + bytes(-len(data) % 4) + comment))
    if lost:
        out.append(block(order, 5, struct.pack(order + "III", 0, 0, 0) +
                         option(order, 5, struct.pack(order + "Q", lost)) + bytes(4)))
    return b"".join(out)
