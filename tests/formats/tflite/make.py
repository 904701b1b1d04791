#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the fixtures of TFLite, and the expected results (Python's own library only)."""
import hashlib
import json
import pathlib
import shutil
import struct

from flat import *

HERE = pathlib.Path(__file__).parent
BAD, SHORT = "TNF_EFORMAT", "TNF_ETRUNCATED"
expect = {"valid": {}, "reject": {}}
TYPES = {"f32": 0, "f16": 1, "i32": 2, "u8": 3, "i64": 4, "bool": 6, "i16": 7, "c64": 8, "i8": 9, "f64": 10, "c128": 11, "u64": 12, "u32": 15, "u16": 16,
         "i4": 17, "bf16": 18, "i2": 19, "u4": 20}
BITS = {"f32": 32, "f16": 16, "i32": 32, "u8": 8, "i64": 64, "bool": 8, "i16": 16, "c64": 64, "i8": 8, "f64": 64, "c128": 128, "u64": 64, "u32": 32,
        "u16": 16, "i4": 4, "bf16": 16, "i2": 2, "u4": 4}


def told(name, dtype, shape, data=None, **more):
    return {"name": name, "dtype": dtype, "shape": list(shape), **({} if data is None else {"sha256": hashlib.sha256(data).hexdigest()}), **more}


def valid(name, data, tensors, **more):
    (HERE / "valid" / name).write_bytes(data)
    expect["valid"][name] = {"format": "tflite", "version": "3", "warnings": 0, "tensors": tensors, **more}


def reject(name, data, code, message, offset=None):
    (HERE / "reject" / name).write_bytes(data)
    expect["reject"][name] = {"code": code, "offset": offset, "message": message, "lenient": "rejects"}


def make():
    data = struct.pack("<4f", 1, 2, 3, 4)
    one = model([[tensor("w", 0, [2, 2], 1)]], [buffer(data)])
    attrs = {"tflite.version": 3, "tflite.description": "made by hand"}
    valid("one.tflite", one, [told("w", "f32", [2, 2], data)], attrs=attrs)
    valid("empty.tflite", model([], []), [], attrs=attrs)
    valid("activations.tflite", model([[tensor("x", 0, [1], 0), tensor("w", 0, [2, 2], 1), tensor("y", 0, [1], 2)]], [buffer(data), buffer(b"")]),
          [told("w", "f32", [2, 2], data)], attrs={"tflite.activations": 2})
    items, buffers, tensors = [], [], []
    for i, (name, code) in enumerate(TYPES.items()):
        raw = bytes(k % 2 if name == "bool" else k + 1 for k in range((5 * BITS[name] + 7) // 8))
        if BITS[name] < 8:
            raw = raw[:-1] + bytes([raw[-1] & (1 << 5 * BITS[name] % 8) - 1])
        items.append(tensor(name, code, [5], i + 1))
        buffers.append(buffer(raw))
        tensors.append(told(name, name, [5], raw))
    valid("types.tflite", model([items], buffers), tensors)
    valid("quantized.tflite", model([[tensor("q", 9, [2, 3], 1, ([0.5, 0.25], [1, -1], 0))]], [buffer(bytes(range(6)))]),
          [told("q", "i8", [2, 3], bytes(range(6)), attrs={"tflite.scale": [0.5, 0.25], "tflite.zero_point": [1, -1], "tflite.axis": 0})])
    valid("names.tflite", model([[tensor("a", 0, [2, 2], 1), tensor("a", 0, [2, 2], 2), tensor("", 0, [4], 1)], [tensor("a", 0, [4], 2)]], [buffer(data), buffer(data)]),
          [told("a", "f32", [2, 2], data), told("a#0.1", "f32", [2, 2], data), told("#0.2", "f32", [4], data, attrs={"tflite.alias": "a"}),
           told("a#1.0", "f32", [4], data, attrs={"tflite.alias": "a#0.1"})])
    strings = ["", "a", "äö"]
    raw, at = b"", 4 + 4 * 4
    head = struct.pack("<I", 3)
    for s in strings:
        head += struct.pack("<I", at + len(raw))
        raw += s.encode()
    head += struct.pack("<I", at + len(raw))
    valid("strings.tflite", model([[tensor("s", 5, [3], 1)]], [buffer(head + raw)]), [{"name": "s", "layout": "strings/1", "shape": [3], "strings": strings}])
    valid("unknown.tflite", model([[tensor("u", 42, [1], 1)]], [buffer(b"xyz")]), [told("u", "tflite.42", [1])], problems=True)
    valid("scalar.tflite", model([[tensor("s", 2, [], 1)]], [buffer(b"\1\0\0\0")]), [told("s", "i32", [], b"\1\0\0\0")])
    valid("metadata.tflite", model([], [buffer(b"1.5.0")], [("min_runtime_version", 1)]), [])
    flat = model([[tensor("w", 0, [2, 2], 1)]], [buffer(None, 2, 16)])
    at = -(-len(flat) // 16) * 16
    flat = model([[tensor("w", 0, [2, 2], 1)]], [buffer(None, at, 16)])
    large = flat.ljust(at, b"\0") + data
    valid("behind.tflite", large, [told("w", "f32", [2, 2], data)])
    reject("behind_cut.tflite", large[:-3], SHORT, "beyond the file")
    for n in (7, 12, 40, 100):
        reject(f"cut_{n}.tflite", one[:n], SHORT if n < 8 else BAD, "")
    reject("root.tflite", struct.pack("<I", 0xFFFFFFF0) + one[4:], BAD, "outside")
    reject("root_zero.tflite", bytes(4) + one[4:], BAD, "")
    root = struct.unpack("<I", one[:4])[0]
    for name, value in (("far", -2 ** 31), ("before", 2 ** 31 - 1)):
        reject(f"vtable_{name}.tflite", one[:root] + struct.pack("<i", value) + one[root + 4:], BAD, "outside")
    vtable = root - struct.unpack("<i", one[root:root + 4])[0]
    for n in (0, 3, 5, 65534):
        reject(f"vtable_{n}.tflite", one[:vtable] + struct.pack("<H", n) + one[vtable + 2:], BAD, "vtable")
    reject("shape.tflite", model([[tensor("w", 0, [2, 3], 1)]], [buffer(data)]), BAD, "16 bytes")
    reject("negative.tflite", model([[tensor("w", 0, [-1], 1)]], [buffer(data)]), BAD, "-1")
    reject("buffer.tflite", model([[tensor("w", 0, [4], 9)]], [buffer(data)]), BAD, "buffer 9 does not exist")
    reject("strings_short.tflite", model([[tensor("s", 5, [3], 1)]], [buffer(struct.pack("<I", 3))]), BAD, "ends too early")
    reject("strings_back.tflite", model([[tensor("s", 5, [1], 1)]], [buffer(struct.pack("<3I", 1, 12, 4))]), BAD, "before its beginning")
    reject("strings_many.tflite", model([[tensor("s", 5, [2], 1)]], [buffer(struct.pack("<3I", 1, 12, 12))]), BAD, "does not have 1 strings")


for kind in ("valid", "reject"):
    shutil.rmtree(HERE / kind, ignore_errors=True)
    (HERE / kind).mkdir()
make()
(HERE / "expect.json").write_text(json.dumps(expect, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
