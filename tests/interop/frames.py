#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Decodes captured iWARP streams: for what Wireshark does not know, and as a second opinion.

Reads lines "stream, source port, payload in hex" in the order of the capture, as tshark prints them.
Checks MPA frames, markers (RFC 5044 section 4.3), the headers of DDP and RDMAP, message numbers and
offsets, and the CRC of each FPDU whose opcode Wireshark 4.0 does not name (8 and 9 of RFC 7306,
experimental F). Prints how many there are of each kind; the first fault ends it.
"""
import struct
import sys
from collections import Counter

KEYS = {b"MPA ID Req Frame", b"MPA ID Rep Frame"}
MARKERS, CRC = 0x80, 0x40
PERIOD = 512
UNNAMED = {0x8, 0x9, 0xF}
# opcode: queue, or None if it is tagged
QUEUE = {0: None, 1: 1, 2: None, 3: 0, 4: 0, 5: 0, 6: 0, 7: 2, 8: 0, 9: 0, 0xA: 1, 0xB: 3, 0xC: 3, 0xF: 0}
IMMEDIATE = 8  # bytes of an immediate: its own message, or at the head of opcode F


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def require(true, what):
    if not true:
        sys.exit(f"frames.py: {what}")


def set_up(data):
    """The MPA frame at the head of a direction: flags, revision, what follows."""
    require(data[:16] in KEYS, "no MPA frame")
    flags, revision, length = struct.unpack(">BBH", data[16:20])
    require(revision in (1, 2), f"revision {revision}")
    return flags, revision, data[20 + length :]


def unmarked(data, counts):
    """Without its markers, each of which points to the start of the FPDU that it is in."""
    out, start, left, at = bytearray(), 0, 0, 0
    while at < len(data):
        if at % PERIOD == 0:
            zero, pointer = struct.unpack(">HH", data[at : at + 4])
            # One in front of an FPDU belongs to it, and says 0.
            require(zero == 0 and pointer == (at - start if left else 0), f"marker at {at}")
            counts["markers"] += 1
            at += 4
            continue
        if left == 0:
            start = at
            length = struct.unpack(">H", data[at : at + 2])[0]
            left = (2 + length + 3) // 4 * 4 + 4
        n = min(left, PERIOD - at % PERIOD, len(data) - at)
        out += data[at : at + n]
        left, at = left - n, at + n
    return bytes(out)


def take_fpdu(fpdu, next_msn, offset, crc, counts):
    length = struct.unpack(">H", fpdu[:2])[0]
    ddp, rdmap = fpdu[2], fpdu[3]
    opcode, last = rdmap & 0xF, bool(ddp & 0x40)
    require(ddp & 3 == 1 and rdmap >> 6 == 1, f"versions {ddp:02x} {rdmap:02x}")
    require(opcode in QUEUE, f"opcode {opcode:x}")
    queue = QUEUE[opcode]
    require(bool(ddp & 0x80) == (queue is None), f"opcode {opcode:x}: tagged or not")
    if queue is not None:
        qn, msn, mo = struct.unpack(">III", fpdu[8:20])
        payload = length - 18
        require(qn == queue, f"opcode {opcode:x} on queue {qn}")
        require(msn == next_msn[qn] and mo == offset[qn], f"queue {qn}: message {msn}, offset {mo}")
        next_msn[qn] += last
        offset[qn] = 0 if last else mo + payload
        if opcode in (0x8, 0x9):
            require(last and payload == IMMEDIATE, f"immediate of {payload} bytes")
        if opcode == 0xF and mo == 0:
            require(payload >= IMMEDIATE, f"Send with immediate of {payload} bytes")
    if crc and opcode in UNNAMED:
        require(struct.unpack("<I", fpdu[-4:])[0] == crc32c(fpdu[:-4]), f"CRC, opcode {opcode:x}")
    counts[f"opcode {opcode:x}"] += 1


def take_stream(directions, counts):
    heads = [set_up(data) for data in directions]
    crc = any(flags & CRC for flags, _, _ in heads)
    for side, (_, revision, data) in enumerate(heads):
        counts[f"revision {revision}"] += 1
        if heads[1 - side][0] & MARKERS:
            data = unmarked(data, counts)
        next_msn, offset, at = [1] * 4, [0] * 4, 0
        while len(data) - at >= 2:
            size = (2 + struct.unpack(">H", data[at : at + 2])[0] + 3) // 4 * 4 + 4
            if len(data) - at < size:
                break  # the end of the connection cut it
            take_fpdu(data[at : at + size], next_msn, offset, crc, counts)
            at += size


def main():
    streams, counts = {}, Counter()
    for line in sys.stdin:
        stream, port, payload = line.split()
        ends = streams.setdefault(stream, {})
        ends[port] = ends.get(port, b"") + bytes.fromhex(payload)
    for ends in streams.values():
        if len(ends) == 2:
            take_stream(list(ends.values()), counts)
    for what, n in sorted(counts.items()):
        print(what, n)


main()
