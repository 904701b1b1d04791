#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes vectors/cbor.txt: CBOR as the cbor2 package decodes and canonically encodes it.

    pip install cbor2 && python3 make_cbor_vectors.py > vectors/cbor.txt

A line is: the bytes, TAB, the canonical bytes of the same value, TAB, the value as typed JSON (the
spelling of wire/json.h). The first lines are appendix A of RFC 8949, except for tags and simple values. Random values
follow, each in its canonical spelling and in a random other spelling that cbor2 reads as the same value.
"""
import json
import math
import random
import struct

import cbor2

APPENDIX_A = """
00 01 0a 17 1818 1819 1864 1903e8 1a000f4240 1b000000e8d4a51000 1bffffffffffffffff 20 29 3863 3903e7
f90000 f98000 f93c00 fb3ff199999999999a f93e00 f97bff fa47c35000 fa7f7fffff fb7e37e43c8800759c f90001
f90400 f9c400 fbc010666666666666 f97c00 f97e00 f9fc00 fa7f800000 fa7fc00000 faff800000
fb7ff0000000000000 fb7ff8000000000000 fbfff0000000000000 f4 f5 f6 40 4401020304 60 6161 6449455446
62225c 62c3bc 63e6b0b4 64f0908591 80 83010203 8301820203820405
98190102030405060708090a0b0c0d0e0f101112131415161718181819 a0 a26161016162820203 826161a161626163
a56161614161626142616361436164614461656145 5f42010243030405ff 7f657374726561646d696e67ff 9fff
9f018202039f0405ffff 9f01820203820405ff 83018202039f0405ff 83019f0203ff820405
9f0102030405060708090a0b0c0d0e0f101112131415161718181819ff bf61610161629f0203ffff
826161bf61626163ff bf6346756ef563416d7421ff
"""

# Section 3.4 of the zTensor fact sheet.
FLOATS = [0.0, -0.0, math.inf, -math.inf, math.nan, 5.960464477539063e-08, 65504.0, 65505.0, 0.1,
          struct.unpack(">f", bytes.fromhex("3dcccccd"))[0], 1.5, 2.0 ** -24, 2.0 ** -25, 2.0 ** -14,
          1023 * 2.0 ** -24, 2.0 ** -149, 2.0 ** -150, 3 * 2.0 ** -149, 3.4028234663852886e38,
          3.5e38, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 16777216.0, 16777217.0,
          2049.0, 65520.0, 1 + 2.0 ** -10, 1 + 2.0 ** -11, 1 + 2.0 ** -23, 1 + 2.0 ** -24]

EDGES = [0, 1, 23, 24, 255, 256, 65535, 65536, 2 ** 32 - 1, 2 ** 32, 2 ** 63 - 1, 2 ** 63,
         2 ** 64 - 1, -1, -24, -25, -256, -257, -65536, -65537, -2 ** 32, -2 ** 32 - 1, -2 ** 63]

WORDS = ["", "a", "b", "aa", "ab", "é", "水", "\U00010151", "name", "x" * 23, "y" * 24,
         "line\nquote\"back\\slash\ttab\u0001"]
LONG_WORDS = ["z" * 255, "w" * 256]


def typed(v):
    if v is None or isinstance(v, bool):
        return json.dumps(v)
    if isinstance(v, int):
        return '{"$u64":%d}' % v if v >= 0 else str(v)
    if isinstance(v, float):
        return '{"$f64":"%s"}' % struct.pack(">d", math.nan if v != v else v).hex()
    if isinstance(v, bytes):
        return '{"$bytes":"%s"}' % v.hex()
    if isinstance(v, str):
        return json.dumps(v, ensure_ascii=False)
    if isinstance(v, list):
        return "[%s]" % ",".join(map(typed, v))
    return "{%s}" % ",".join("%s:%s" % (typed(k), typed(x)) for k, x in v.items())


def canonical(v):
    return cbor2.dumps(v, canonical=True)


def sort(v):
    """Members sorted by their encodings, as in a canonical file."""
    if isinstance(v, list):
        return [sort(x) for x in v]
    if isinstance(v, dict):
        return {k: sort(v[k]) for k in sorted(v, key=cbor2.dumps)}
    return v


def same(a, b):
    return typed(a) == typed(b)


def line(data):
    v = cbor2.loads(data)
    print(data.hex(), canonical(v).hex(), typed(v), sep="\t")


def random_value(rng, depth):
    kind = rng.randrange(6 if depth == 0 else 9)
    if kind == 0:
        return rng.choice([None, True, False])
    if kind == 1:
        return rng.choice(EDGES)
    if kind == 2:
        return rng.choice(FLOATS)
    if kind == 3:
        return rng.choice(WORDS)
    if kind == 4:
        return rng.randbytes(rng.choice([0, 1, 23, 24, 40]))
    if kind == 5:
        return rng.getrandbits(rng.randrange(1, 64)) * rng.choice([1, -1])
    n = rng.choice([0, 1, 2, 3, 5, 24])
    if kind == 6:
        return [random_value(rng, depth - 1) for _ in range(n if depth < 3 else min(n, 5))]
    return {rng.choice(WORDS) + str(rng.randrange(100)): random_value(rng, depth - 1)
            for _ in range(min(n, 5))}


def head(rng, major, n):
    widths = [w for w in (0, 1, 2, 4, 8) if n < (24 if w == 0 else 256 ** w)]
    w = rng.choice(widths)
    if w == 0:
        return bytes([major << 5 | n])
    return bytes([major << 5 | {1: 24, 2: 25, 4: 26, 8: 27}[w]]) + n.to_bytes(w, "big")


def pieces(data, rng):
    cut = rng.randrange(len(data) + 1)
    return [data[:cut], data[cut:]]


def other(rng, v):
    """The value in another spelling."""
    if v is None or isinstance(v, bool):
        return cbor2.dumps(v)
    if isinstance(v, int):
        return head(rng, 0, v) if v >= 0 else head(rng, 1, -1 - v)
    if isinstance(v, float):
        return b"\xfb" + struct.pack(">d", v)
    if isinstance(v, (bytes, str)):
        major, data = (2, v) if isinstance(v, bytes) else (3, v.encode())
        if rng.random() < 0.5:
            return head(rng, major, len(data)) + data
        parts = pieces(v, rng)
        parts = parts if major == 2 else [p.encode() for p in parts]
        return bytes([major << 5 | 31]) + b"".join(
            head(rng, major, len(p)) + p for p in parts) + b"\xff"
    if isinstance(v, list):
        body = b"".join(other(rng, x) for x in v)
        return b"\x9f" + body + b"\xff" if rng.random() < 0.5 else head(rng, 4, len(v)) + body
    items = list(v.items())
    rng.shuffle(items)
    body = b"".join(other(rng, k) + other(rng, x) for k, x in items)
    return b"\xbf" + body + b"\xff" if rng.random() < 0.5 else head(rng, 5, len(v)) + body


def main():
    rng = random.Random(8949)
    for text in APPENDIX_A.split():
        line(bytes.fromhex(text))
    for v in FLOATS + EDGES + WORDS + LONG_WORDS:
        line(canonical(v))
    for _ in range(160):
        v = sort(random_value(rng, 3))
        assert same(cbor2.loads(canonical(v)), v)
        line(canonical(v))
        data = other(rng, v)
        assert same(sort(cbor2.loads(data)), v)
        line(data)


if __name__ == "__main__":
    main()
