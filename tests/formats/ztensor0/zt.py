# SPDX-License-Identifier: MIT
"""CBOR and the old zTensor containers, from their description, without Tenfold."""
import hashlib
import json
import struct

U64 = struct.Struct("<Q")
# Our name, the names in 0.1 and 1.0, bytes of an element; in the order of the released list.
TYPES = [("f64", "float64", 8), ("f32", "float32", 4), ("f16", "float16", 2), ("bf16", "bfloat16", 2),
         ("i64", "int64", 8), ("i32", "int32", 4), ("i16", "int16", 2), ("i8", "int8", 1),
         ("u64", "uint64", 8), ("u32", "uint32", 4), ("u16", "uint16", 2), ("u8", "uint8", 1),
         ("bool", "bool", 1)]
WIDTH = {ours: n for ours, _, n in TYPES}
LONG = {ours: name for ours, name, _ in TYPES}


# ------------------------------------------------------------------- CBOR


class Raw(bytes):
    """Bytes that are already encoded."""


class Open(list):
    """A list, or a list of pairs, of indefinite length."""


class Pairs(list):
    """A map, given by its pairs, in this order."""


def head(major, n):
    for code, form in ((24, ">B"), (25, ">H"), (26, ">I"), (27, ">Q")):
        if n < 24:
            return bytes([major << 5 | n])
        if n < 1 << 8 * struct.calcsize(form):
            return bytes([major << 5 | code]) + struct.pack(form, n)
    raise ValueError(n)


def number(x):
    for code, form in ((0xF9, ">e"), (0xFA, ">f"), (0xFB, ">d")):
        try:
            packed = struct.pack(form, x)
        except OverflowError:
            continue
        if struct.unpack(form, packed)[0] == x:
            return bytes([code]) + packed
    raise ValueError(x)


def cbor(v):
    if isinstance(v, Raw):
        return bytes(v)
    if v is None or isinstance(v, bool):
        return {None: b"\xf6", False: b"\xf4", True: b"\xf5"}[v]
    if isinstance(v, int):
        return head(0, v) if v >= 0 else head(1, -1 - v)
    if isinstance(v, float):
        return number(v)
    if isinstance(v, bytes):
        return head(2, len(v)) + v
    if isinstance(v, str):
        return head(3, len(v.encode())) + v.encode()
    if isinstance(v, (dict, Pairs)):
        pairs = list(v.items()) if isinstance(v, dict) else v
        return head(5, len(pairs)) + b"".join(cbor(k) + cbor(x) for k, x in pairs)
    if isinstance(v, Open):
        inside = b"".join(cbor(x) for x in v)
        return b"\x9f" + inside + b"\xff"
    return head(4, len(v)) + b"".join(cbor(x) for x in v)


def open_map(pairs):
    return Raw(b"\xbf" + b"".join(cbor(k) + cbor(v) for k, v in pairs.items()) + b"\xff")


# ------------------------------------------------------------------ bytes


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def crc_text(data):
    return "crc32c:0x%08X" % crc32c(data)


def sha_text(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def swapped(data, width):
    return b"".join(data[i:i + width][::-1] for i in range(0, len(data), width))


def values(dtype, n, start=1):
    """n different legal elements: small numbers."""
    if dtype == "bool":
        return bytes((i + start) % 2 for i in range(n))
    forms = {"f64": "<d", "f32": "<f", "f16": "<e", "i64": "<q", "i32": "<i", "i16": "<h", "i8": "<b",
             "u64": "<Q", "u32": "<I", "u16": "<H", "u8": "<B"}
    if dtype == "bf16":
        return b"".join(struct.pack("<f", i + start)[2:] for i in range(n))
    return b"".join(struct.pack(forms[dtype], i % 100 + start) for i in range(n))


def zstd_raw(data, sized=False):
    """A zstd frame with its data in one raw block. Any decoder reads it, and no library is needed to
    make it."""
    assert len(data) < 1 << 17
    block = struct.pack("<I", len(data) << 3 | 1)[:3] + data
    if sized:  # single segment, content size of 4 bytes
        return b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", len(data)) + block
    return b"\x28\xb5\x2f\xfd\x00\x58" + block


def zstd_run(byte, n, sized=False):
    """The same byte n times, in one run-length block."""
    assert n < 1 << 17
    block = struct.pack("<I", n << 3 | 2 | 1)[:3] + bytes([byte])
    head_ = b"\xa0" + struct.pack("<I", n) if sized else b"\x00\x58"
    return b"\x28\xb5\x2f\xfd" + head_ + block


def tail(index):
    return index + U64.pack(len(index))


class Blobs:
    """Writes a file: blobs at multiples of 64."""

    def __init__(self, magic):
        self.data = bytearray(magic)

    def add(self, blob):
        self.data += bytes(-len(self.data) % 64)
        at = len(self.data)
        self.data += blob
        return at


# ----------------------------------------------------------- expected results


class Folder:
    def __init__(self, here, form):
        self.here, self.form = here, form
        self.expect = {"valid": {}, "reject": {}}
        for kind in ("valid", "reject"):
            (here / kind).mkdir(exist_ok=True)

    def valid(self, name, data, version, tensors, attrs=None, warnings=0, lenient=False, problems=False):
        """data None: the file exists already; a real program wrote it."""
        if data is not None:
            (self.here / "valid" / name).write_bytes(data)
        self.expect["valid"][name] = {"format": self.form, "version": version, "warnings": warnings,
                                      "lenient": lenient, "attrs": attrs or {}, "tensors": tensors}
        if problems:  # verify reports something
            self.expect["valid"][name]["problems"] = True

    def reject(self, name, data, code, offset, message, lenient="rejects"):
        if data is not None:
            (self.here / "reject" / name).write_bytes(data)
        self.expect["reject"][name] = {"code": code, "offset": offset, "message": message,
                                       "lenient": lenient}

    def close(self):
        for kind in ("valid", "reject"):
            lying = {p.name for p in (self.here / kind).iterdir()}
            assert lying == set(self.expect[kind]), lying ^ set(self.expect[kind])
        text = json.dumps(self.expect, indent=1, sort_keys=True, ensure_ascii=True)
        (self.here / "expect.json").write_text(text + "\n")


def listed(name, dtype, shape, data, attrs=None, layout="dense"):
    return {"name": name, "dtype": dtype, "shape": list(shape), "order": "C", "layout": layout,
            "sha256": None if data is None else hashlib.sha256(data).hexdigest(), "attrs": attrs or {}}
