#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Models of the package onnx are read and written again, in one file and in two; the package finds equal tensors.
onnxruntime, if it is installed, computes with weights that were replaced.

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


def check_external(model, arrays, folder):
    """Models are written in two files, as onnx reads them; models that onnx wrote in two files are
    written in one."""
    source, two, one = folder / "m.onnx", folder / "two.onnx", folder / "one.onnx"
    for align in (1, 4096):
        tenfold("convert", "-q", "--force", "-o", "external=always", "-o", "location=w.bin", "-o", f"align={align}", source, two)
        assert len(two.read_bytes()) < len(source.read_bytes()) + 2000 and (folder / "w.bin").stat().st_size > 500
        again = onnx.load(two)
        for a, b in zip(model.graph.initializer, again.graph.initializer, strict=True):
            if a.data_type != onnx.TensorProto.STRING:
                assert np.array_equal(numpy_helper.to_array(a), numpy_helper.to_array(b)), a.name
        tenfold("convert", "-q", "--force", two, one)
        tenfold("diff", source, one)
    theirs = folder / "theirs.onnx"
    onnx.save(onnx.load(source), theirs, save_as_external_data=True, size_threshold=0, location="theirs.bin", convert_attribute=True)
    tenfold("diff", source, theirs)
    tenfold("convert", "-q", "-o", "external=always", "-o", "location=theirs.bin.2", theirs, folder / "ours.onnx")
    tenfold("diff", theirs, folder / "ours.onnx")


def check_weights(folder):
    """Replaces the weights of a model: the bytes of the graph stay the same, and the results are those of the
    new weights."""
    a, b, bias = (rng.standard_normal(s).astype("f4") for s in ((64, 32), (64, 32), (32,)))
    node = [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Add", ["y", "bias"], ["z"])]
    io = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, s) for n, s in (("x", [None, 64]), ("z", [None, 32]))]
    graph = helper.make_graph(node, "g", io[:1], io[1:], [numpy_helper.from_array(a, "w"), numpy_helper.from_array(bias, "bias")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path, weights, made, two = folder / "net.onnx", folder / "w.npz", folder / "tuned.onnx", folder / "two-tuned.onnx"
    onnx.save(model, path)
    np.savez(weights, w=b)
    tenfold("convert", "-q", "--into", path, "--keep-rest", weights, made)
    tenfold("convert", "-q", "--into", path, "--keep-rest", "-o", "external=always", weights, two)
    want = onnx.load(path)
    want.graph.initializer[0].raw_data = b.tobytes()
    assert made.read_bytes() == want.SerializeToString()
    refused = subprocess.run([TENFOLD, "convert", "--into", path, weights, folder / "no.onnx"], stderr=subprocess.PIPE, text=True)
    assert refused.returncode == 5 and "bias" in refused.stderr, refused
    try:
        import onnxruntime
    except ImportError:
        print("without onnxruntime; .venv/bin/pip install onnxruntime")
        return
    x = rng.standard_normal((5, 64)).astype("f4")
    for file in (made, two):
        session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
        assert np.allclose(session.run(None, {"x": x})[0], x @ b + bias, rtol=1e-4, atol=1e-5), file
    print("onnxruntime", onnxruntime.__version__)


with tempfile.TemporaryDirectory() as scratch:
    made, values = make()
    count = check(made, values, Path(scratch))
    check_external(made, values, Path(scratch))
    check_weights(Path(scratch))
print(f"onnx {onnx.__version__}: {count} tensors, read and written again")
