#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the fixtures of Paddle's parameters, and the expected results (Python's own library only).

Python's own pickler makes the pickles. Classes of this script replace those of NumPy's arrays.
"""
import hashlib
import io
import json
import pathlib
import pickle
import shutil
import struct
import sys
import types

HERE = pathlib.Path(__file__).parent
expect = {"valid": {}, "reject": {}}


def stand_in(module, name):
    for i in range(1, module.count(".") + 2):
        part = ".".join(module.split(".")[:i])
        sys.modules.setdefault(part, types.ModuleType(part))
    thing = type(name, (), {"__module__": module, "__qualname__": name}) if name in ("ndarray", "dtype") else types.FunctionType(
        (lambda *a: None).__code__, {}, name)
    thing.__module__, thing.__qualname__ = module, name
    setattr(sys.modules[module], name, thing)
    return thing


RECONSTRUCT, NDARRAY, DTYPE = stand_in("numpy.core.multiarray", "_reconstruct"), stand_in("numpy", "ndarray"), stand_in("numpy", "dtype")
KINDS = {"f4": "f32", "f8": "f64", "i8": "i64", "f2": "f16", "u1": "u8", "b1": "bool"}


class Type:
    def __init__(self, code):
        self.code = code

    def __reduce__(self):
        order = "|" if self.code[1] == "1" else "<"
        return DTYPE, (self.code, False, True), (3, order, None, None, None, -1, -1, 0)


class Array:
    def __init__(self, code, shape, data):
        self.code, self.shape, self.data = code, shape, data

    def __reduce__(self):
        return RECONSTRUCT, (NDARRAY, (0,), b"b"), (1, self.shape, Type(self.code), False, self.data)


def valid(name, protocol, arrays, more=None):
    out = io.BytesIO()
    whole = {k: Array(*a) for k, a in arrays.items()}
    pickle.Pickler(out, protocol).dump(whole | {"StructuredToParameterName@@": {k: f"{k}_0" for k in arrays}} | (more or {}))
    (HERE / "valid" / name).write_bytes(out.getvalue())
    expect["valid"][name] = {"format": "paddle", "tensors": [
        {"name": k, "dtype": KINDS[c], "shape": list(s), "sha256": hashlib.sha256(d).hexdigest()} for k, (c, s, d) in arrays.items()]}


def reject(name, data, code, message):
    (HERE / "reject" / name).write_bytes(data)
    expect["reject"][name] = {"code": code, "offset": None, "message": message, "lenient": "rejects"}


class Evil:
    def __reduce__(self):
        return print, ("run",)


for kind in ("valid", "reject"):
    shutil.rmtree(HERE / kind, ignore_errors=True)
    (HERE / kind).mkdir()
ARRAYS = {"linear.weight": ("f4", (2, 3), struct.pack("<6f", *range(6))), "linear.bias": ("f4", (3,), struct.pack("<3f", 7, 8, 9)),
          "count": ("i8", (), struct.pack("<q", -5)), "half": ("f2", (2,), b"\x00\x3c\x00\x40"), "none": ("f4", (0, 3), b""),
          "mask": ("b1", (2,), b"\1\0"), "bytes": ("u1", (4,), bytes(range(4)))}
for p in (2, 3, 4, 5):
    valid(f"protocol_{p}.pdparams", p, ARRAYS)
valid("empty.pdparams", 4, {})
valid("optimizer.pdopt", 4, {"w_moment1_0": ("f4", (1,), struct.pack("<f", 1))}, {"LR_Scheduler": {"last_epoch": 3, "last_lr": 0.1}})
reject("list.pdparams", pickle.dumps([1, 2], 4), "TNF_EFORMAT", "not a dict")
whole = (HERE / "valid" / "protocol_4.pdparams").read_bytes()
for at in (10, len(whole) // 2, len(whole) - 1):
    reject(f"cut_{at}.pdparams", whole[:at], "TNF_ETRUNCATED", "")
(HERE / "expect.json").write_text(json.dumps(expect, indent=1, sort_keys=True) + "\n", encoding="utf-8")
