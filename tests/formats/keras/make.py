#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the fixtures of Keras 3's archives, and the expected results (Python's own library only)."""
import hashlib
import io
import json
import pathlib
import struct
import sys
import zipfile

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "hdf5"))
sys.dont_write_bytecode = True
from compose import *  # noqa: E402

BAD, UNSUPPORTED = "TNF_EFORMAT", "TNF_EUNSUPPORTED"
expect = {"valid": {}, "reject": {}}
FOUR = struct.pack("<4f", 1, 2, 3, 4)
WEIGHTS = one(space(2, 2), datatype(), compact(FOUR), name=b"vars", root=[attribute(b"n")])
META, CONFIG = {"keras_version": "3.15.1"}, {"class_name": "Sequential", "config": {"layers": []}}


def archive(members, method=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as z:
        for name, data in members:
            z.writestr(zipfile.ZipInfo(name), data if isinstance(data, bytes) else json.dumps(data), method)
    return out.getvalue()


def valid(name, data, **attrs):
    (HERE / "valid" / name).write_bytes(data)
    tensor = {"name": "vars", "dtype": "f32", "shape": [2, 2], "sha256": hashlib.sha256(FOUR).hexdigest()}
    expect["valid"][name] = {"format": "keras", "version": "2", "warnings": 0, "lenient": False, "size": len(data), "tensors": [tensor],
                             "attrs": {"hdf5.attrs": {"n": 1}, **attrs}}


def reject(name, data, code, message, lenient="rejects"):
    (HERE / "reject" / name).write_bytes(data)
    expect["reject"][name] = {"code": code, "offset": None, "message": message, "lenient": lenient}


for folder in ("valid", "reject"):
    (HERE / folder).mkdir(exist_ok=True)
both = [("metadata.json", META), ("config.json", CONFIG)]
valid("model.keras", archive([*both, ("model.weights.h5", WEIGHTS)]), **{"keras.metadata": META, "keras.config": CONFIG})
valid("assets.keras", archive([*both, ("model.weights.h5", WEIGHTS), ("assets/words.txt", b"a\nb\n")]), **{"keras.metadata": META})
reject("no_weights.keras", archive(both), UNSUPPORTED, "no model.weights.h5")
reject("npz.keras", archive([*both, ("model.weights.npz", b"")]), UNSUPPORTED, "no model.weights.h5")
reject("deflated.keras", archive([*both, ("model.weights.h5", WEIGHTS)], zipfile.ZIP_DEFLATED), UNSUPPORTED, "is compressed")
reject("cut.keras", archive([*both, ("model.weights.h5", WEIGHTS[:100])]), "TNF_ETRUNCATED", "missing")
reject("json.keras", archive([("metadata.json", b"{"), ("config.json", CONFIG), ("model.weights.h5", WEIGHTS)]), "TNF_ETRUNCATED", "JSON")
reject("outside.keras", archive([*both, ("model.weights.h5", file([header(GROUP, link(b"w", 2000))])), ("assets/x", bytes(4000))]), BAD, "outside", "opens")
(HERE / "expect.json").write_text(json.dumps(expect, indent=1, sort_keys=True) + "\n")
