# SPDX-License-Identifier: MIT
"""TensorFlow's checkpoints: a LevelDB table of protobuf entries."""
import struct

from kit import *

FORMAT, EXTENSION = "tensorbundle", "index"
MAGIC = bytes.fromhex("57fb808b247547db")


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def varint(n):
    n %= 1 << 64
    out = b""
    while n >= 128:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def num(field, n):
    return varint(field << 3) + varint(n)


def text(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def block(entries, restarts=None):
    out = b"".join(e if isinstance(e, bytes) else b"\0" + varint(len(e[0])) + varint(len(e[1])) + e[0] + e[1] for e in entries)
    return out + (struct.pack("<II", 0, 1) if restarts is None else restarts)


def table(data, index=None, footer=None):
    out = data + b"\0" + masked(data + b"\0")
    meta = len(out)
    empty = block([])
    out += empty + b"\0" + masked(empty + b"\0")
    at = len(out)
    inner = block([(b"z", varint(0) + varint(len(data)))]) if index is None else index
    out += inner + b"\0" + masked(inner + b"\0")
    handles = varint(meta) + varint(len(empty)) + varint(at) + varint(len(inner))
    return out + (handles if footer is None else footer).ljust(40, b"\0") + MAGIC


def entry(dims=(0, ), type_=1, offset=0, size=0, shard=0, more=b""):
    shape = b"".join(text(2, num(1, d)) for d in dims)
    return num(1, type_) + text(2, shape) + num(3, shard) + num(4, offset) + num(5, size) + more


HEADER = (b"", num(1, 1) + text(3, num(1, 1)))


def one(value, key=b"w"):
    return table(block([HEADER, (key, value)]))


def make(c):
    whole = one(entry())
    c.accepted("P", "nothing_in_it", whole, 1, "a tensor without elements", warnings=None)
    wrong_things(c, whole)
    for at in (5, 20, 47):
        c.rejected("A", f"cut_{at}", whole[:at], SHORT, at, "missing", f"the first {at} bytes")
    for at in range(49, len(whole), 7):
        c.rejected("A", f"cut_{at}", whole[:at], BAD, at - 8, "does not end", f"the first {at} of {len(whole)} bytes")
    for name, n in HUGE.items():
        c.rejected("C", f"handle_offset_{name}", table(block([HEADER]), footer=varint(0) + varint(8) + varint(n) + varint(20)), BAD, None,
                   "outside", f"an index at {n}")
        c.rejected("C", f"handle_size_{name}", table(block([HEADER]), footer=varint(0) + varint(8) + varint(0) + varint(n)), BAD, None,
                   "outside", f"an index of {n} bytes")
        c.rejected("C", f"block_{name}", table(block([HEADER]), index=block([(b"z", varint(0) + varint(n))])), BAD, None, "outside",
                   f"a block of {n} bytes")
        c.rejected("C", f"key_{name}", table(block([HEADER, b"\0" + varint(n) + b"\0"])), BAD, None, "past its block", f"a key of {n} bytes")
        c.rejected("C", f"value_{name}", table(block([HEADER, b"\0\1" + varint(n) + b"w"])), BAD, None, "past its block", f"a value of {n} bytes")
        c.rejected("C", f"shared_{name}", table(block([HEADER, varint(n) + b"\1\0w"])), BAD, None, "past its block", f"a key that shares {n} bytes")
        c.rejected("D", f"dims_{name}", one(entry((n, n), size=4)), BAD, None, "", f"two dimensions of {n}")
    for n in (2, 2 ** 20, 2 ** 32 - 1):
        c.rejected("C", f"restarts_{n}", table(block([HEADER], struct.pack("<I", n))), BAD, None, "block", f"{n} restarts that are not there")
    c.rejected("D", "wraps", one(entry((2 ** 62, 4), size=0)), BAD, None, "", "bytes that wrap to 0")
    c.rejected("E", "size", one(entry((3, ), size=4)), BAD, None, "do not have 4 bytes", "3 floats in 4 bytes")
    c.rejected("E", "shard", one(entry(shard=1)), BAD, None, "shard number 1 (from 0)", "a shard that there is not")
    c.rejected("F", "shards", table(block([(b"", num(1, 2 ** 31))])), BAD, None, "shards", "2^31 shards")
    c.rejected("F", "dims", one(entry((1, ) * 300, size=4)), LIMIT, None, "dimensions", "300 dimensions")
    c.rejected("H", "key_twice", table(block([HEADER, (b"w", entry()), (b"w", entry())])), BAD, None, "ascend", "one key twice")
    c.rejected("H", "keys_descend", table(block([HEADER, (b"w", entry()), (b"v", entry())])), BAD, None, "ascend", "keys that descend")
    c.accepted("H", "key_escapes", one(entry(), b"\x1b[2J"), 1, "a name that clears the screen", warnings=None)
    for t in (0, 34, 99, 2 ** 32):
        c.rejected("J", f"type_{t}", one(entry(type_=t)), UNSUPPORTED, None, "unknown type", f"the type {t}")
    flipped = bytearray(whole)
    flipped[4] ^= 1
    c.rejected("P", "crc", flipped, BAD, 0, "checksum", "a block with a bit flipped")
    piece = text(7, text(1, num(1, 0) + num(2, 1)))
    c.rejected("E", "slices_missing", one(entry((2, ), more=piece + piece)), BAD, None, "is missing", "slices without entries")
