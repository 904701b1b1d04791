#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the fixtures of .fvecs, .ivecs and .bvecs, and the expected results (Python's own library only)."""
import hashlib
import json
import pathlib
import struct

HERE = pathlib.Path(__file__).parent
BAD, SHORT = "TNF_EFORMAT", "TNF_ETRUNCATED"
WIDTH = {"fvecs": 4, "ivecs": 4, "bvecs": 1, "fvec": 4}
TYPE = {"fvecs": "f32", "ivecs": "i32", "bvecs": "u8", "fvec": "f32"}
expect = {"valid": {}, "reject": {}}


def missing(n):
    return "1 byte is missing" if n == 1 else f"{n} bytes are missing"


def filled(n, seed=5):
    return bytes((seed + 7 * i) % 251 for i in range(n))


def records(rows, d):
    return b"".join(struct.pack("<i", d) + row for row in rows)


def rows_of(n, d, width):
    data = filled(n * d * width)
    return [data[i * d * width:(i + 1) * d * width] for i in range(n)]


def file(n, d, kind):
    return records(rows_of(n, d, WIDTH[kind]), d)


def valid(name, kind, n, d, data=None, lenient=False, warnings=0):
    rows = rows_of(n, d, WIDTH[kind])
    path = f"{name}.{kind}"
    (HERE / "valid" / path).write_bytes(records(rows, d) if data is None else data)
    expect["valid"][path] = {
        "format": "vecs", "version": "", "warnings": warnings, "lenient": lenient,
        "attrs": {"vecs.kind": kind if kind.endswith("s") else kind + "s"},
        "tensors": [{"name": "vectors", "dtype": TYPE[kind], "shape": [n, d], "order": "C",
                     "sha256": hashlib.sha256(b"".join(rows)).hexdigest()}]}


def reject(name, data, code, offset, message, lenient="rejects"):
    (HERE / "reject" / name).write_bytes(data)
    expect["reject"][name] = {"code": code, "offset": offset, "message": message, "lenient": lenient}


for kind in ("fvecs", "ivecs", "bvecs"):
    valid("one", kind, 1, 1)
    valid("row", kind, 1, 100)
    valid("some", kind, 5, 7)
    valid("many", kind, 300, 3)
    valid("wide", kind, 3, 1200)
valid("short_name", "fvec", 4, 2)
valid("lenient_cut", "fvecs", 4, 6, data=file(5, 6, "fvecs")[:-3], lenient=True, warnings=1)

whole = file(5, 7, "fvecs")
for at in (1, 2, 3):
    reject(f"cut_{at}.fvecs", whole[:at], SHORT, at, missing(4 - at))
for at in (4, 5, 31):
    reject(f"cut_{at}.fvecs", whole[:at], SHORT, at, missing(32 - at))
for at in (33, 100, 159):
    reject(f"cut_{at}.fvecs", whole[:at], SHORT, at, missing(-at % 32), "opens")
reject("long.fvecs", whole + b"\0", SHORT, 161, "31 bytes are missing", "opens")
reject("negative.fvecs", struct.pack("<i", -1) + filled(60), BAD, 0, "-1 elements")
reject("negative_large.bvecs", struct.pack("<i", -2 ** 31) + filled(60), BAD, 0, "-2147483648 elements")
reject("none.fvecs", struct.pack("<i", 0) + filled(60), BAD, 0, "0 elements")
reject("huge.fvecs", struct.pack("<i", 2 ** 31 - 1) + filled(60), SHORT, 64, "8589934528 bytes are missing")
reject("huge.bvecs", struct.pack("<i", 2 ** 31 - 1) + filled(60), SHORT, 64, "2147483587 bytes are missing")
rows = rows_of(5, 7, 4)
for i in range(1, 5):
    ragged = bytearray(whole)
    ragged[i * 32] = 6
    reject(f"ragged_{i}.fvecs", bytes(ragged), BAD, i * 32, f"vector {i} has 6 elements, but the first one has 7")
late = bytearray(file(300, 3, "bvecs"))
late[201 * 7] = 9  # between the rows that are checked when the file is opened
reject("verify_ragged.bvecs", bytes(late), BAD, 201 * 7, "vector 201 has 9 elements, but the first one has 3", "opens")
reject("fbin.fvecs", struct.pack("<II", 3, 5) + filled(60), SHORT, 68, "this looks like an fbin file", "rejects")
for rare, bytes_of_one in (("hvecs", 2), ("i8vecs", 1), ("dvecs", 8)):
    reject(f"rare.{rare}", (struct.pack("<i", 4) + bytes(4 * bytes_of_one)) * 3, "TNF_EUNSUPPORTED", 0, "has no agreed type")
(HERE / "expect.json").write_text(json.dumps(expect, indent=1, sort_keys=True) + "\n", encoding="utf-8")
