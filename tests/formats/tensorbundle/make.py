#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the fixtures of TensorFlow's checkpoints, and the expected results (Python's own library only).

Tables follow the description of LevelDB, entries the numbers in tensor_bundle.proto.
"""
import hashlib
import json
import math
import pathlib
import shutil
import struct

HERE = pathlib.Path(__file__).parent
BAD, SHORT, UNSUPPORTED = "TNF_EFORMAT", "TNF_ETRUNCATED", "TNF_EUNSUPPORTED"
expect = {"valid": {}, "reject": {}, "parts": ["*.data-0*"]}
MAGIC = bytes.fromhex("57fb808b247547db")
TYPES = {1: ("f32", 4), 2: ("f64", 8), 3: ("i32", 4), 4: ("u8", 1), 5: ("i16", 2), 6: ("i8", 1), 8: ("c64", 8), 9: ("i64", 8),
         10: ("bool", 1), 11: ("i8", 1), 12: ("u8", 1), 13: ("i32", 4), 14: ("bf16", 2), 15: ("i16", 2), 16: ("u16", 2), 17: ("u16", 2),
         18: ("c128", 16), 19: ("f16", 2), 22: ("u32", 4), 23: ("u64", 8), 24: ("f8_e5m2", 1), 25: ("f8_e4m3fn", 1),
         26: ("f8_e4m3fnuz", 1), 28: ("f8_e5m2fnuz", 1)}
SMALL = {29: ("i4", 4), 30: ("u4", 4), 31: ("i2", 2), 32: ("u2", 2), 33: ("f4_e2m1", 4)}
QUANTIZED = (11, 12, 13, 15, 16)


def missing(n):
    return "1 byte is missing" if n == 1 else f"{n} bytes are missing"


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


assert crc32c(b"123456789") == 0xE3069283


def masked(crc):
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(n):
    n %= 1 << 64
    out = b""
    while n >= 128:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def num(field, n):
    return varint(field << 3) + varint(n) if n else b""


def text(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


# ----------------------------------------------------------------------- table

def block(entries, interval=16):
    out, restarts, last = b"", [], b""
    for i, (key, value) in enumerate(entries):
        shared = 0
        if i % interval == 0:
            restarts.append(len(out))
        else:
            while shared < min(len(key), len(last)) and key[shared] == last[shared]:
                shared += 1
        out += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        last = key
    return out + b"".join(struct.pack("<I", r) for r in restarts or [0]) + struct.pack("<I", len(restarts or [0]))


def table(entries, per_block=1000, kind=0):
    out, index = b"", []

    def put(data):
        nonlocal out
        handle = varint(len(out)) + varint(len(data))
        out += data + bytes([kind]) + struct.pack("<I", masked(crc32c(data + bytes([kind]))))
        return handle

    for i in range(0, len(entries), per_block):
        part = entries[i:i + per_block]
        index.append((part[-1][0], put(block(part))))
    footer = put(block([])) + put(block(index, 1))
    return out + footer.ljust(40, b"\0") + MAGIC


def header(shards=1, endian=0, consumer=0):
    return num(1, shards) + num(2, endian) + text(3, num(1, 1) + num(2, consumer))


def shape_of(dims):
    return text(2, b"".join(text(2, num(1, d)) for d in dims))


def entry(type_, dims, offset, size, crc, shard=0, slices=b""):
    return num(1, type_) + shape_of(dims) + num(3, shard) + num(4, offset) + num(5, size) \
        + (varint(6 << 3 | 5) + struct.pack("<I", masked(crc)) if crc is not None else b"") + slices


def filled(n, seed=5):
    return bytes((seed + 7 * i) % 251 for i in range(n))


class Bundle:
    def __init__(self, shards=1):
        self.entries, self.data, self.told = {}, [b""] * shards, []

    def put(self, name, type_, dims, data, crc=None, shard=0):
        self.entries[name.encode() if isinstance(name, str) else name] = entry(type_, dims, len(self.data[shard]), len(data),
                                                                            crc32c(data) if crc is None else crc, shard)
        self.data[shard] += data

    def dense(self, name, type_, dims, shard=0):
        dtype, width = TYPES[type_]
        n = math.prod(dims) * width
        data = bytes(i % 2 for i in range(n)) if type_ == 10 else filled(n)
        self.put(name, type_, dims, data, shard=shard)
        self.told.append({"name": name, "dtype": dtype, "shape": list(dims), "sha256": hashlib.sha256(data).hexdigest(),
                          "attrs": {"tensorbundle.dtype": type_} if type_ in QUANTIZED else {}})

    def write(self, folder, stem, per_block=1000, **more):
        folder.mkdir(parents=True, exist_ok=True)
        rows = [(b"", header(len(self.data), **more))] + sorted(self.entries.items())
        (folder / f"{stem}.index").write_bytes(table(rows, per_block))
        for i, data in enumerate(self.data):
            (folder / f"{stem}.data-{i:05}-of-{len(self.data):05}").write_bytes(data)


def valid(name, bundle, per_block=1000, **more):
    bundle.write(HERE / "valid" / name, "ckpt", per_block, **more)
    size = sum(p.stat().st_size for p in (HERE / "valid" / name).iterdir())
    expect["valid"][f"{name}/ckpt.index"] = {"format": "tensorbundle", "version": "", "warnings": 0, "lenient": False, "size": size,
                                             "attrs": {"tensorbundle.shards": len(bundle.data)},
                                             "tensors": sorted(bundle.told, key=lambda t: t["name"].encode())}


def reject(name, data, code, offset, message, lenient="rejects"):
    (HERE / "reject" / name).write_bytes(data)
    expect["reject"][name] = {"code": code, "offset": offset, "message": message, "lenient": lenient}


def signed(x):
    v = ~x if x < 0 else x
    n = 1
    while v >= 1 << 7 * n - 1:
        n += 1
    bits = ((1 << n) - 1) << 8 * n - n | v
    out = bits.to_bytes(n, "big")
    return bytes(b ^ 255 for b in out) if x < 0 else out


assert [signed(x).hex() for x in (0, 63, 64, 8191, 8192, -1)] == ["80", "bf", "c040", "dfff", "e02000", "7f"]


def slice_key(name, extents):
    out = b"\0" + name.encode().replace(b"\xff", b"\xff\0") + b"\0\1" + bytes([1, len(extents)])
    return out + b"".join(signed(s) + signed(-1 if n is None else n) for s, n in extents)


def add_sliced(bundle, name, dims, parts):
    """Slices of f32, each by (start, length) on every axis; length None: the whole axis."""
    whole = list(range(math.prod(dims)))
    slices = b""
    for i, extents in enumerate(parts):
        lengths = [d if n is None else n for d, (_, n) in zip(dims, extents)]
        picked = []
        for k in range(math.prod(lengths)):
            at, rest = 0, k
            index = []
            for n in reversed(lengths):
                index.append(rest % n)
                rest //= n
            for d, (start, _), j in zip(dims, extents, reversed(index)):
                at = at * d + start + j
            picked.append(whole[at])
        bundle.put(slice_key(name, extents), 1, lengths, struct.pack(f"<{len(picked)}f", *picked), shard=i % len(bundle.data))
        slices += text(7, b"".join(text(1, num(1, s) + (b"" if n is None else num(2, n))) for s, n in extents))
    bundle.entries[name.encode()] = entry(1, dims, 0, 0, None, slices=slices)
    bundle.told.append({"name": name, "dtype": "f32", "shape": list(dims),
                        "sha256": hashlib.sha256(struct.pack(f"<{len(whole)}f", *whole)).hexdigest()})


def make_valid():
    b = Bundle()
    for t in TYPES:
        b.dense(f"t/{t}", t, [2, 3])
    valid("types", b)
    b = Bundle()
    for i, dims in enumerate([[], [0], [1], [0, 3], [3, 0], [2, 1, 3]]):
        b.dense(f"s{i}", 1, dims)
    valid("shapes", b)
    b = Bundle()
    for t, (dtype, bits) in SMALL.items():
        for n in (1, 5, 8):
            codes = bytes((3 + 5 * i + 0xF0 * (i % 2)) & 255 for i in range(n))
            packed = sum((c & (1 << bits) - 1) << bits * i for i, c in enumerate(codes)).to_bytes((n * bits + 7) // 8, "little")
            b.put(f"{dtype}_{n}", t, [n], codes)
            b.told.append({"name": f"{dtype}_{n}", "dtype": dtype, "shape": [n], "sha256": hashlib.sha256(packed).hexdigest()})
    valid("small_types", b)
    b = Bundle()
    strings = [b"", b"a", b"\xff\0", b"x" * 300]
    lengths = b"".join(struct.pack("<I", len(s)) for s in strings)
    check = struct.pack("<I", masked(crc32c(lengths)))
    b.put("s", 7, [2, 2], b"".join(varint(len(s)) for s in strings) + check + b"".join(strings),
          crc32c(lengths + check + b"".join(strings)))
    b.told.append({"name": "s", "layout": "strings/1", "shape": [2, 2],
                   "parts": {"offsets": hashlib.sha256(struct.pack("<5Q", 0, 0, 1, 3, 303)).hexdigest(),
                             "bytes": hashlib.sha256(b"".join(strings)).hexdigest()}})
    valid("strings", b)
    b = Bundle(3)
    for i in range(50):
        b.dense(f"model/layer_{i}/kernel/.ATTRIBUTES/VARIABLE_VALUE", 1, [i % 4 + 1], i % 3)
    valid("blocks", b, per_block=7)
    b = Bundle(2)
    b.dense("beside", 3, [2])
    add_sliced(b, "rows", [5, 3], [[(0, 2), (0, None)], [(2, 3), (0, None)]])
    add_sliced(b, "columns", [4, 5], [[(0, None), (0, 2)], [(0, None), (2, 3)]])
    add_sliced(b, "grid", [4, 100], [[(0, 1), (0, 64)], [(0, 1), (64, 36)], [(1, 3), (0, 64)], [(1, 3), (64, 36)]])
    valid("slices", b)
    valid("empty", Bundle())


def make_reject():
    b = Bundle()
    b.dense("w", 1, [2, 3])
    rows = [(b"", header())] + sorted(b.entries.items())
    whole = table(rows)
    for at in (20, 47):
        reject(f"cut_{at:02}.index", whole[:at], SHORT, at, missing(48 - at))
    reject("cut_1.index", whole[:-1], BAD, len(whole) - 9, "magic of a table")
    reject("magic.index", whole[:-1] + b"\0", BAD, len(whole) - 8, "magic of a table")
    reject("block_crc.index", whole[:4] + b"\2" + whole[5:], BAD, 0, "does not match its checksum")
    reject("compressed.index", table(rows, kind=1), UNSUPPORTED, None, "compressed")
    reject("no_header.index", table(sorted(b.entries.items())), BAD, None, "header is missing")
    reject("v1.index", table([(b"", text(1, b"abc"))]), UNSUPPORTED, None, "V1 checkpoint")
    reject("shards_0.index", table([(b"", header(0))]), BAD, None, "0 shards")
    reject("shards_many.index", table([(b"", header(100001))]), BAD, None, "100001 shards")
    reject("endian_2.index", table([(b"", header(1, 2))]), BAD, None, "byte order 2")
    reject("consumer.index", table([(b"", header(1, 0, 2))]), UNSUPPORTED, None, "version 2")
    reject("keys_descend.index", table([(b"", header()), (b"b", entry(1, [0], 0, 0, 0)), (b"a", b"")]), BAD, None, "ascend")
    reject("key_twice.index", table([(b"", header()), (b"b", entry(1, [0], 0, 0, 0)), (b"b", b"")]), BAD, None, "ascend")

    def one(name, value, code, message):
        reject(f"{name}.index", table([(b"", header()), (b"w", value)]), code, None, message)

    one("size_lies", entry(1, [5], 0, 24, 0), BAD, "5 elements of the type 1 do not have 24 bytes")
    one("dims_wrap", entry(1, [2 ** 32, 2 ** 32], 0, 0, 0), BAD, "2^64")
    one("dim_negative", entry(1, [-1], 0, 4, 0), BAD, "a dimension is -1")
    one("shard_beyond", entry(1, [1], 0, 4, 0, shard=1), BAD, "shard number 1 (from 0)")
    one("offset_wraps", entry(1, [1], 2 ** 64 - 2, 4, 0), BAD, "beyond 2^63")
    one("type_0", entry(0, [1], 0, 4, 0), UNSUPPORTED, "unknown type 0")
    one("type_99", entry(99, [1], 0, 4, 0), UNSUPPORTED, "unknown type 99")
    one("rank_unknown", num(1, 1) + text(2, num(3, 1)), BAD, "unknown shape")
    one("slice_missing", entry(1, [2], 0, 0, None, slices=text(7, text(1, num(2, 2)))), BAD, "is missing")
    one("slice_outside", entry(1, [2], 0, 0, None, slices=text(7, text(1, num(2, 3)))), BAD, "outside its tensor")
    one("entry_cut", b"\x08", BAD, "past its message")
    good = Bundle()
    good.dense("w", 1, [2, 3])
    for name, change in (("verify_crc", lambda d: b"\xff" + d[1:]), ("verify_cut", lambda d: d[:-4])):
        good.write(HERE / "reject" / name, "ckpt")
        path = HERE / "reject" / name / "ckpt.data-00000-of-00001"
        path.write_bytes(change(path.read_bytes()))
        expect["reject"][f"{name}/ckpt.index"] = {"code": "TNF_EDIGEST" if name == "verify_crc" else SHORT, "offset": None, "message": "",
                                                  "lenient": "opens"}
    # Strings whose lengths are lost: they are listed like all others, and verify reports them.
    good.put("s", 7, [3], b"\1\1\1" + bytes(4) + b"abc")
    good.write(HERE / "reject" / "verify_cut_strings", "ckpt")
    path = HERE / "reject" / "verify_cut_strings" / "ckpt.data-00000-of-00001"
    path.write_bytes(path.read_bytes()[:-8])
    expect["reject"]["verify_cut_strings/ckpt.index"] = {"code": SHORT, "offset": 26, "message": "8 bytes are missing", "lenient": "opens"}


for kind in ("valid", "reject"):
    for path in (HERE / kind).iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
make_valid()
make_reject()
(HERE / "expect.json").write_text(json.dumps(expect, indent=1, sort_keys=True) + "\n", encoding="utf-8")
