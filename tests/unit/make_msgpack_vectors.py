#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes vectors/msgpack.txt: MessagePack of the packages msgpack and u-msgpack-python.

    pip install msgpack u-msgpack-python && python3 make_msgpack_vectors.py > vectors/msgpack.txt

A line is: the bytes, TAB, the shortest bytes of the same value, TAB, the value as typed JSON (the
spelling of wire/json.h), with the widths of the bytes in the first column. Both packages write the
shortest bytes, and both read the other spellings as the same values.
"""
import json
import math
import random
import struct

import msgpack
import umsgpack


class Single(float):
    """A float that is stored in 32 bits."""


EDGES = [0, 1, 127, 128, 255, 256, 65535, 65536, 2 ** 32 - 1, 2 ** 32, 2 ** 63 - 1, 2 ** 63,
         2 ** 64 - 1, -1, -32, -33, -128, -129, -32768, -32769, -2 ** 31, -2 ** 31 - 1, -2 ** 63]
FLOATS = [0.0, -0.0, 1.0, -3.0, 0.1, math.inf, -math.inf, math.nan, 5e-324, 1e308, Single(1.0),
          Single(0.5), Single(-0.0), Single(math.inf), Single(2.0 ** -149)]
WORDS = ["", "x", "key", "é", "水", "\U00010151", "x" * 31, "y" * 32, "line\nquote\"\u0001"]
LENGTHS = {"str": [0, 1, 31, 32, 255, 256], "bin": [0, 1, 255, 256],
           "ext": [0, 1, 2, 3, 4, 5, 8, 9, 16, 17, 255, 256], "array": [0, 1, 15, 16, 17],
           "map": [0, 1, 15, 16, 17]}


def be(n, width):
    return (n % 256 ** width).to_bytes(width, "big")


def integer(v, rng):
    """A random spelling, or the shortest if rng is None; and its typed JSON."""
    forms = []
    if 0 <= v < 128:
        forms.append((bytes([v]), "u8"))
    if -32 <= v < 0:
        forms.append((be(v, 1), "i8"))
    for i, width in enumerate((1, 2, 4, 8)):
        if 0 <= v < 256 ** width:
            forms.append((bytes([0xCC + i]) + be(v, width), "u%d" % (8 * width)))
    for i, width in enumerate((1, 2, 4, 8)):
        if -256 ** width // 2 <= v < 256 ** width // 2:
            forms.append((bytes([0xD0 + i]) + be(v, width), "i%d" % (8 * width)))
    data, dtype = rng.choice(forms) if rng else forms[0]
    return data, (str(v) if dtype == "i64" else '{"$%s":%d}' % (dtype, v))


def length(n, rng, short, limit, wide):
    """A head: short|n below limit, else the markers of wide with 1, 2 or 4 bytes."""
    forms = [bytes([short | n])] if short and n < limit else []
    widths = (1, 2, 4) if len(wide) == 3 else (2, 4)
    forms += [bytes([m]) + be(n, w) for m, w in zip(wide, widths) if n < 256 ** w]
    return rng.choice(forms) if rng else forms[0]


def spell(v, rng):
    """(bytes, typed JSON) of a value."""
    if v is None:
        return b"\xc0", "null"
    if isinstance(v, bool):
        return (b"\xc3" if v else b"\xc2"), json.dumps(v)
    if isinstance(v, int):
        return integer(v, rng)
    if isinstance(v, Single):
        return b"\xca" + struct.pack(">f", v), '{"$f32":"%s"}' % struct.pack(">f", v).hex()
    if isinstance(v, float):
        return b"\xcb" + struct.pack(">d", v), '{"$f64":"%s"}' % struct.pack(">d", v).hex()
    if isinstance(v, str):
        data = v.encode()
        return (length(len(data), rng, 0xA0, 32, (0xD9, 0xDA, 0xDB)) + data,
                json.dumps(v, ensure_ascii=False))
    if isinstance(v, bytes):
        return length(len(v), rng, 0, 0, (0xC4, 0xC5, 0xC6)) + v, '{"$bytes":"%s"}' % v.hex()
    if isinstance(v, msgpack.ExtType):
        n = len(v.data)
        fixed = n in (1, 2, 4, 8, 16) and not (rng and rng.random() < 0.5)
        head = (bytes([0xD4 + n.bit_length() - 1]) if fixed
                else length(n, rng, 0, 0, (0xC7, 0xC8, 0xC9)))
        return (head + be(v.code, 1) + v.data,
                '{"$map":{"$ext":[{"$i8":%d},{"$bytes":"%s"}]}}' % (v.code, v.data.hex()))
    if isinstance(v, list):
        parts = [spell(x, rng) for x in v]
        return (length(len(v), rng, 0x90, 16, (0xDC, 0xDD)) + b"".join(p[0] for p in parts),
                "[%s]" % ",".join(p[1] for p in parts))
    parts = [(spell(k, rng), spell(x, rng)) for k, x in v.items()]
    head = length(len(v), rng, 0x80, 16, (0xDE, 0xDF))
    data = head + b"".join(k[0] + x[0] for k, x in parts)
    if all(isinstance(k, str) for k in v):
        return data, "{%s}" % ",".join("%s:%s" % (k[1], x[1]) for k, x in parts)
    return data, '{"$map":{"$pairs":[%s]}}' % ",".join("[%s,%s]" % (k[1], x[1]) for k, x in parts)


def for_umsgpack(v):
    if isinstance(v, msgpack.ExtType):
        return umsgpack.Ext(v.code, v.data)
    if isinstance(v, list):
        return [for_umsgpack(x) for x in v]
    if isinstance(v, dict):
        return {k: for_umsgpack(x) for k, x in v.items()}
    return v


def has_single(v):
    if isinstance(v, (list, dict)):
        return any(map(has_single, v.values() if isinstance(v, dict) else v))
    return isinstance(v, Single)


def plain(v):
    if isinstance(v, umsgpack.Ext):
        return msgpack.ExtType(v.type, v.data)
    if isinstance(v, list):
        return [plain(x) for x in v]
    if isinstance(v, dict):
        return {k: plain(x) for k, x in v.items()}
    return v


def same(a, b):
    return repr(plain(a)) == repr(plain(b))


def line(v, rng=None):
    data, typed = spell(v, rng)
    shortest = spell(v, None)[0]
    if not has_single(v):
        assert msgpack.packb(v) == shortest
        assert umsgpack.packb(for_umsgpack(v)) == shortest
    elif isinstance(v, Single):
        assert msgpack.packb(float(v), use_single_float=True) == shortest
    assert same(msgpack.unpackb(data, strict_map_key=False), v if not has_single(v) else
                msgpack.unpackb(shortest, strict_map_key=False))
    assert same(umsgpack.unpackb(data), umsgpack.unpackb(shortest))
    print(data.hex(), shortest.hex(), typed, sep="\t")


def random_value(rng, depth):
    kind = rng.randrange(7 if depth == 0 else 10)
    if kind == 0:
        return rng.choice([None, True, False])
    if kind in (1, 2):
        return rng.choice(EDGES) if kind == 1 else rng.getrandbits(63) >> rng.randrange(63)
    if kind == 3:
        return rng.choice(FLOATS)
    if kind == 4:
        return rng.choice(WORDS)
    if kind == 5:
        return rng.randbytes(rng.randrange(20))
    if kind == 6:
        return msgpack.ExtType(rng.randrange(128), rng.randbytes(rng.choice(LENGTHS["ext"][:10])))
    n = rng.choice([0, 1, 2, 3, 5, 16])
    if kind == 7:
        return [random_value(rng, depth - 1) for _ in range(n if depth < 3 else min(n, 5))]
    if kind == 8:
        return {rng.choice(WORDS) + str(rng.randrange(100)): random_value(rng, depth - 1)
                for _ in range(n)}
    return {rng.choice([rng.choice(EDGES), rng.choice(WORDS), True, None, 0.5]):
            random_value(rng, depth - 1) for _ in range(min(n, 3))}


def main():
    rng = random.Random(0xC1)
    for v in [None, True, False] + EDGES + FLOATS + WORDS:
        line(v)
    for n in LENGTHS["str"]:
        line("s" * n)
    for n in LENGTHS["bin"]:
        line(b"b" * n)
    for n in LENGTHS["ext"]:
        line(msgpack.ExtType(n % 128, b"e" * n))
    for n in LENGTHS["array"]:
        line([None] * n)
    for n in LENGTHS["map"]:
        line({"k%d" % i: None for i in range(n)})
    for v in EDGES:
        for _ in range(4):
            line(v, rng)
    for _ in range(150):
        v = random_value(rng, 3)
        line(v)
        line(v, rng)


if __name__ == "__main__":
    main()
