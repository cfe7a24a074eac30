#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The checker itself: accepts captured frames, finds one changed bit.

usage: check_capture_test.py CAPTURE.pcap...
"""

import os
import random
import sys
import tempfile

import check_capture

# Bits that may change on the way without anyone noticing, by byte of an IPv4 RoCEv2 frame: MAC
# addresses; UDP checksum; FECN, BECN and reserved bits of the BTH.
UNNOTICED = set(range(12)) | {40, 41, 46}


def outcome(path):
    """(exit status as check_capture would give, without its output)"""
    stdout, sys.stdout = sys.stdout, open(os.devnull, "w", encoding="utf-8")
    try:
        return 0 if check_capture.check_file(path, False, True) else 1
    finally:
        sys.stdout.close()
        sys.stdout = stdout


def flipped_bits_missed(data, tries):
    """Flips one bit of a RoCE frame at a time; yields those the frame check does not see."""
    rng = random.Random(1)
    frames = [f for f in check_capture.read_pcap(data)
              if f.data[12:14] == b"\x08\x00" and f.data[23] == 17]
    for _ in range(tries):
        f = rng.choice(frames)
        byte = rng.choice([i for i in range(12, len(f.data)) if i not in UNNOTICED])
        broken = bytearray(f.data)
        broken[byte] ^= 1 << rng.randrange(8)
        if byte in (36, 37):  # destination port: no longer RoCE, nothing to check
            continue
        try:
            check_capture.check_frame(f._replace(data=bytes(broken)),
                                      check_capture.collections.Counter())
        except (check_capture.Bad, IndexError):
            continue
        if check_capture.be16(broken, 12) == 0x0800:
            yield f.number, byte


def main():
    failed = []
    for path in sys.argv[1:]:
        if outcome(path) != 0:
            failed.append("%s: judged invalid" % path)
        with open(path, "rb") as f:
            data = f.read()
        failed += ["%s: frame %d byte %d: change not found" % (path, n, b)
                   for n, b in flipped_bits_missed(data, 2000)]
        # Last byte of the file: part of a frame; then a file cut within it.
        for name, broken in (("changed", data[:-1] + bytes([data[-1] ^ 1])), ("cut", data[:-1])):
            with tempfile.NamedTemporaryFile(suffix=".pcap") as t:
                t.write(broken)
                t.flush()
                try:
                    seen = outcome(t.name)
                except OSError:
                    seen = 2
            last = list(check_capture.read_pcap(data))[-1].data
            roce = last[12:14] == b"\x08\x00" and last[23] == 17
            if name == "cut" and seen != 2 or name == "changed" and roce and seen != 1:
                failed.append("%s: last byte %s: judged %d" % (path, name, seen))
    print("\n".join(failed) or "as expected")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
