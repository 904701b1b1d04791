#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the fixtures of HDF5 and what is expected of them. Files of h5py need that package; without it they stay as they are."""
import hashlib
import json
import pathlib
import struct

from compose import *

HERE = pathlib.Path(__file__).parent
BAD, SHORT, UNSUPPORTED, LIMIT = "TNF_EFORMAT", "TNF_ETRUNCATED", "TNF_EUNSUPPORTED", "TNF_ELIMIT"
expect = {"valid": {}, "reject": {}}


def sha(data):
    return hashlib.sha256(data).hexdigest()


def valid(name, data, tensors, version="2", warnings=0, **attrs):
    (HERE / "valid" / name).write_bytes(data)
    told(name, len(data), tensors, version, warnings, attrs)


def told(name, size, tensors, version, warnings, attrs):
    expect["valid"][name] = {"format": "hdf5", "version": version, "warnings": warnings, "lenient": False, "size": size,
                             "attrs": attrs, "tensors": tensors}


def reject(name, data, code, offset, message, lenient="rejects"):
    (HERE / "reject" / name).write_bytes(data)
    expect["reject"][name] = {"code": code, "offset": offset, "message": message, "lenient": lenient}


def tensor(name, dtype, shape, data, **attrs):
    return {"name": name, "dtype": dtype, "shape": list(shape), "sha256": None if data is None else sha(data), "attrs": attrs}


def make_composed():
    four = struct.pack("<4f", 1, 2, 3, 4)
    valid("nothing.h5", file([header(GROUP)]), [])
    valid("compact.h5", one(space(2, 2), datatype(), compact(four)), [tensor("w", "f32", [2, 2], four)])
    valid("scalar.h5", one(space(), datatype(), compact(four[:4])), [tensor("w", "f32", [], four[:4])])
    valid("zero.h5", one(space(0, 3), datatype(), layout(NOWHERE, 0)), [tensor("w", "f32", [0, 3], b"")])
    fill = message(5, struct.pack("<BBI", 3, 0x2A, 4) + four[8:12])
    valid("fill.h5", one(space(3), datatype(), fill, layout(NOWHERE, 0)), [tensor("w", "f32", [3], four[8:12] * 3)])
    valid("big.h5", one(space(2), datatype(integer(16, big=True)), compact(b"\1\2\3\4")), [tensor("w", "i16", [2], b"\2\1\4\3")])
    valid("user_block.h5", b"#!/bin/sh".ljust(1024, b"\0") + one(space(4), datatype(), compact(four)), [tensor("w", "f32", [4], four)])
    array = struct.pack("<BBBBI", 0x3A, 0, 0, 0, 8) + b"\1" + struct.pack("<I", 2) + floating()
    valid("array_type.h5", one(space(2), datatype(array), compact(four)), [tensor("w", "f32", [2, 2], four)])
    valid("attrs.h5", one(space(4), datatype(), compact(four), attribute(b"n"), root=[attribute(b"v", None, (2, ), b"\1\0\0\0\xff\xff\xff\xff")]),
          [tensor("w", "f32", [4], four, **{"hdf5.attrs": {"n": 1}})], **{"hdf5.attrs": {"v": [1, -1]}})
    valid("links.h5", one(space(4), datatype(), compact(four), root=[soft(b"s", b"/w"), external(b"x", b"../other.h5", b"/y")]),
          [tensor("w", "f32", [4], four)], warnings=1, **{"hdf5.links": {"s": "/w", "x": {"file": "../other.h5", "path": "/y"}}})
    valid("latin1.h5", one(space(4), datatype(), compact(four), name=b"w\xe4"), [tensor("w\\xe4", "f32", [4], four)])
    del expect["valid"]["latin1.h5"]["tensors"]


def make_rejected():
    good = one(space(4), datatype(), compact(bytes(16)))
    head = len(header(GROUP, link(b"w", 0)))
    for n in (8, 40, 47):
        reject(f"cut_{n}.h5", good[:n], SHORT, None, "missing")
    for n in (60, 48 + head, len(good) - 1):
        reject(f"cut_{n}.h5", good[:n], SHORT, n, f"{len(good) - n} bytes are missing")
    for at in (9, 20, 44):
        reject(f"superblock_{at}.h5", good[:at] + bytes([good[at] ^ 1]) + good[at + 1:], [BAD, UNSUPPORTED][at == 9], None, "")
    reject("version_9.h5", good[:8] + b"\x09" + good[9:], UNSUPPORTED, 8, "version 9")
    reject("root_sum.h5", good[:60] + bytes([good[60] ^ 1]) + good[61:], BAD, 48, "checksum")
    reject("sizes_4.h5", file([header(GROUP)], sizes=(4, 4)), UNSUPPORTED, 0, "addresses of 4")
    reject("root_outside.h5", file([header(GROUP)], root=2**40), BAD, 0, "outside")
    reject("header_long.h5", file([header(GROUP, size=2**31)]), BAD, 48, "past the file")
    reject("no_layout_data.h5", one(space(4), datatype(), layout(0, 4)), BAD, None, "has only 4")
    reject("data_outside.h5", one(space(4), datatype(), layout(2**40, 16)), BAD, None, "outside", "opens")
    reject("rank_33.h5", one(space(*[1] * 33), datatype(), compact(bytes(4))), LIMIT, None, "33 dimensions")
    reject("shape_wraps.h5", one(space(2**33, 2**33), datatype(), compact(bytes(4))), BAD, None, "2^64")
    reject("bytes_wrap.h5", one(space(2**62, 1), datatype(), compact(b"")), BAD, None, "2^64")
    reject("type_class_13.h5", one(space(4), datatype(b"\x1d" + bytes(3) + b"\4\0\0\0"), compact(bytes(16))), UNSUPPORTED, None, "class 13")
    reject("type_cut.h5", one(space(4), datatype(floating()[:12]), compact(bytes(16))), BAD, None, "cut")
    reject("message_past.h5", file([header(GROUP, b"\1\xff\x7f\0")]), BAD, None, "runs past")
    reject("continued_in_itself.h5", file([header(GROUP, message(0x10, struct.pack("<QQ", 48, 24)))]), BAD, None, "")
    reject("twice.h5", one(space(4), datatype(), compact(bytes(16)), root=[link(b"w", 48)]), BAD, 48, "two links")


def make_h5py():
    import h5py
    import numpy as np
    for libver, version in (("earliest", "0"), ("latest", "3")):
        rng = np.random.default_rng(5)
        name = f"h5py_{libver}.h5"
        tensors = []
        with h5py.File(HERE / "valid" / name, "w", libver=libver) as f:

            def put(path, array, **how):
                d = f.create_dataset(path, data=array, track_times=False, **how)
                if array.dtype.kind in "fiucb":
                    ids = {"f": "f", "i": "i", "u": "u", "c": "c", "b": "b"}
                    dtype = "bool" if array.dtype.kind == "b" else f"{ids[array.dtype.kind]}{8 * array.dtype.itemsize}"
                    tensors.append(tensor(path, dtype, array.shape, array.astype(array.dtype.newbyteorder("<")).tobytes()))
                return d

            whole = rng.standard_normal((13, 11)).astype("<f4")
            put("a/contiguous", whole)
            put("a/big", whole.astype(">f8"))
            put("a/c", (whole + 1j * whole).astype("c8"))
            put("a/half", whole.astype("f2"))
            put("bits", whole > 0)
            put("c/deflate", whole, chunks=(4, 3), compression="gzip", shuffle=True)
            put("c/fletcher", whole.astype("i8"), chunks=(5, 11), fletcher32=True)
            put("c/grow", whole, chunks=(2, 2), maxshape=(None, 11))
            put("c/grow2", whole, chunks=(3, 4), maxshape=(None, None))
            put("c/lzf", np.zeros((40, ), "i2"), chunks=(16, ), compression="lzf")
            put("c/one", whole, chunks=(13, 11), compression="gzip")
            put("c/plain", whole.astype("u1"), chunks=(4, 4))
            f["text"] = np.array(["", "a", "\u00e4\u20ac", "x" * 40], dtype=h5py.string_dtype())
            f["fixed"] = np.array([b"one", b"seven"])
            for i in range(12):
                f["a"].attrs[f"k{i}"] = i
            f.attrs["names"] = ["x", "y"]
            f.create_group("empty")
            f["tied"] = f["a/half"]
        tensors.append({"name": "text", "layout": "strings/1", "shape": [4], "strings": ["", "a", "\u00e4\u20ac", "x" * 40]})
        tensors.append({"name": "fixed", "layout": "strings/1", "shape": [2], "strings": ["one", "seven"]})
        tied = next(t for t in tensors if t["name"] == "a/half")
        tensors.append({**tied, "name": "tied", "attrs": {"hdf5.alias": "a/half"}})
        tensors.sort(key=lambda t: t["name"].split("/"))
        told(name, (HERE / "valid" / name).stat().st_size, tensors, version, 0,
             {"hdf5.attrs": {"names": ["x", "y"]}, "hdf5.groups": {"a": {f"k{i}": i for i in sorted(range(12), key=str)}, "empty": {}}})


def main():
    for folder in ("valid", "reject"):
        (HERE / folder).mkdir(exist_ok=True)
    make_composed()
    make_rejected()
    try:
        make_h5py()
    except ImportError:
        old = json.loads((HERE / "expect.json").read_text())["valid"]
        expect["valid"].update({k: v for k, v in old.items() if k.startswith("h5py")})
    (HERE / "expect.json").write_text(json.dumps(expect, indent=1, sort_keys=True) + "\n")


main()
