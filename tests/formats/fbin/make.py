#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the fixtures of .fbin and similar formats, and the expected results (Python's own library
only)."""
import hashlib
import json
import pathlib
import struct

HERE = pathlib.Path(__file__).parent
BAD, SHORT = "TNF_EFORMAT", "TNF_ETRUNCATED"
TYPE = {"fbin": "f32", "ibin": "i32", "u8bin": "u8", "i8bin": "i8", "f16bin": "f16", "hbin": "f16"}
WIDTH = {"f32": 4, "i32": 4, "u8": 1, "i8": 1, "f16": 2}
expect = {"valid": {}, "reject": {}}


def missing(n):
    return "1 byte is missing" if n == 1 else f"{n} bytes are missing"


def filled(n, seed=5):
    return bytes((seed + 7 * i) % 251 for i in range(n))


def file(n, d, kind, wide=False):
    return struct.pack("<QQ" if wide else "<II", n, d) + filled(n * d * WIDTH[TYPE[kind]])


def tensor(name, dtype, n, d, data):
    return {"name": name, "dtype": dtype, "shape": [n, d], "order": "C", "sha256": hashlib.sha256(data).hexdigest()}


def valid(name, kind, n, d, data=None, tensors=None, attrs=None, **more):
    path = f"{name}.{kind}"
    dtype = TYPE.get(kind)
    (HERE / "valid" / path).write_bytes(file(n, d, kind) if data is None else data)
    expect["valid"][path] = {
        "format": "fbin", "version": "", "warnings": 0, "lenient": False, "attrs": attrs or {"fbin.kind": kind},
        "tensors": tensors or [tensor("vectors", dtype, n, d, filled(n * d * WIDTH[dtype]))], **more}


def reject(name, data, code, offset, message, lenient="rejects"):
    (HERE / "reject" / name).write_bytes(data)
    expect["reject"][name] = {"code": code, "offset": offset, "message": message, "lenient": lenient}


for kind in TYPE:
    valid("some", kind, 6, 5)
    valid("one", kind, 1, 1)
    valid("no_rows", kind, 0, 5)
    valid("nothing", kind, 0, 0)
    valid("wide_header", kind, 6, 5, data=file(6, 5, kind, wide=True), attrs={"fbin.kind": kind, "fbin.header": 64})
ids, distances = filled(4 * 12), filled(4 * 12, 99)
valid("truth", "ibin", 3, 4, data=struct.pack("<II", 3, 4) + ids + distances, attrs={"fbin.kind": "groundtruth"},
      tensors=[tensor("vectors", "i32", 3, 4, ids), tensor("distances", "f32", 3, 4, distances)])
valid("lenient_crop", "fbin", 4, 5, data=struct.pack("<II", 1000, 5) + filled(80), lenient=True, warnings=1)
valid("lenient_long", "fbin", 4, 5, data=file(4, 5, "fbin") + b"more", lenient=True, warnings=1)

whole = file(6, 5, "fbin")
for at in range(1, 8):
    reject(f"cut_{at}.fbin", whole[:at], SHORT, at, missing(8 - at))
for at in (9, 100, 127):
    reject(f"cut_{at}.fbin", whole[:at], SHORT, at, missing(128 - at))
for at in (8, 28, 108):
    reject(f"cut_{at}.fbin", whole[:at], SHORT, at, missing(128 - at), "opens")
reject("long_1.fbin", whole + b"\0", BAD, 128, "1 byte follows", "opens")
reject("no_columns.fbin", struct.pack("<II", 6, 0), BAD, 4, "there are vectors (6), but that they have no elements")
reject("no_columns_long.fbin", struct.pack("<II", 7, 0) + filled(6), BAD, 4, "there are vectors (7), but that they have no elements")
reject("wraps.fbin", struct.pack("<II", 2 ** 31, 2 ** 31) + filled(8), BAD, 0, "exceed 2^64 bytes")
reject("largest.fbin", struct.pack("<II", 2 ** 32 - 1, 2 ** 32 - 1) + filled(8), BAD, 0, "exceed 2^64 bytes")
reject("largest.u8bin", struct.pack("<II", 2 ** 32 - 1, 2 ** 32 - 1) + filled(8), SHORT, 16, "missing")
reject("wide_wraps.u8bin", struct.pack("<QQ", 2 ** 33, 2 ** 31) + filled(8), BAD, 8, "16 bytes follow the 0 vectors", "opens")
# A ground truth of range search that was cut: n, total, counts, ids.
reject("range_truth.ibin", struct.pack("<II", 2, 3) + filled(8 + 12), SHORT, 28, "4 bytes are missing", "rejects")
fvecs = b"".join(struct.pack("<i", 7) + filled(28) for _ in range(5))
reject("fvecs.fbin", fvecs, SHORT, 160, "a file of the vecs family")
(HERE / "expect.json").write_text(json.dumps(expect, indent=1, sort_keys=True) + "\n", encoding="utf-8")
