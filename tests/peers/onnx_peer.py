#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Models of the package onnx, read and written again: the package finds every tensor equal.

  onnx_peer.py TENFOLD
"""
import json
import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy as np
    import onnx
    from onnx import helper, numpy_helper
except ImportError as missing:
    print(f"SKIPPED: {missing}; .venv/bin/pip install onnx")
    sys.exit(0)

TENFOLD = sys.argv[1]
rng = np.random.default_rng(7)
TYPES = ["float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"]


def tenfold(*args):
    return subprocess.run([TENFOLD, *map(str, args)], check=True, stdout=subprocess.PIPE).stdout


def make():
    arrays = {t: (rng.integers(0, 2, (3, 5)) if t == "bool" else rng.integers(-100, 100, (3, 5))).astype(t) for t in TYPES}
    tensors = [numpy_helper.from_array(a, t) for t, a in arrays.items()]
    typed = helper.make_tensor("typed", onnx.TensorProto.INT64, [4], [1, -1, 2 ** 62, -2 ** 63])
    strings = helper.make_tensor("strings", onnx.TensorProto.STRING, [2], [b"a", b"\xff\0"])
    constant = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(arrays["float32"], "x"))
    branch = helper.make_graph([helper.make_node("Constant", [], ["y"], value=numpy_helper.from_array(arrays["int8"], "x"))], "b", [],
                               [helper.make_tensor_value_info("y", onnx.TensorProto.INT8, None)])
    choice = helper.make_node("If", ["bool"], ["z"], name="br", then_branch=branch, else_branch=branch)
    graph = helper.make_graph([constant, choice], "g", [], [], tensors + [typed, strings])
    return helper.make_model(graph, producer_name="peer"), arrays


def check(model, arrays, folder):
    source, there, back = folder / "m.onnx", folder / "m.zt", folder / "back.onnx"
    onnx.save(model, source)
    listed = {t["name"] for t in json.loads(tenfold("ls", "--json", source))["tensors"]}
    assert {"c", "br.then_branch/y", "br.else_branch/y", "typed", "strings"} <= listed, listed
    for name, array in arrays.items():
        assert hashlib.sha256(tenfold("cat", "--raw", source, name)).digest() == hashlib.sha256(array.tobytes()).digest(), name
    tenfold("convert", "-q", source, there)
    tenfold("convert", "-q", there, back)
    again = onnx.load(back)
    assert list(again.graph.node) == list(model.graph.node)
    for a, b in zip(model.graph.initializer, again.graph.initializer, strict=True):
        assert (a.name, a.data_type, list(a.dims)) == (b.name, b.data_type, list(b.dims))
        if a.data_type == onnx.TensorProto.STRING:
            assert list(a.string_data) == list(b.string_data), a.name
            continue
        assert np.array_equal(numpy_helper.to_array(a), numpy_helper.to_array(b)), a.name
    return len(listed)


with tempfile.TemporaryDirectory() as scratch:
    made, values = make()
    count = check(made, values, Path(scratch))
print(f"onnx {onnx.__version__}: {count} tensors, read and written again")
