#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""OCDBT databases of tensorstore, with Zarr 2 and 3 in them: every array is read with the same
bits.

  orbax_peer.py TENFOLD

TENFOLD_JAX names a directory with orbax; if it is set, checkpoints of orbax are read, too.
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

WANTED = os.environ.get("TENFOLD_JAX")
if WANTED:
    sys.path.insert(0, WANTED)
try:
    import numpy as np
    import tensorstore as ts
except ImportError as missing:
    print(f"SKIPPED: {missing}; .venv/bin/pip install tensorstore")
    sys.exit(0)

TENFOLD = sys.argv[1]
rng = np.random.default_rng(13)
TYPES = ["float32", "int16", "uint8", "bfloat16", "float64", "bool"]


def tenfold(*args):
    return subprocess.run([TENFOLD, *map(str, args)], check=True, stdout=subprocess.PIPE).stdout


def fill(path, driver, count, config):
    arrays = {}
    for i in range(count):
        dtype, shape = TYPES[i % len(TYPES)], tuple(int(n) for n in rng.integers(1, 40, i % 4))
        name = f"params.layer_{i}.w{'_long' * (i % 5)}"
        spec = {"driver": driver, "kvstore": {"driver": "ocdbt", "base": f"file://{path}/", "path": f"{name}/", "config": config},
                "dtype" if driver == "zarr" else "schema": dtype if driver == "zarr" else {"dtype": dtype}, "create": True}
        chunk = [max(1, n // 3) for n in shape]
        if driver == "zarr":
            spec |= {"metadata": {"shape": list(shape), "chunks": chunk, "compressor": {"id": "zstd", "level": 1} if i % 2 else None}}
        else:
            spec["schema"] |= {"domain": {"shape": list(shape)}, "chunk_layout": {"read_chunk": {"shape": chunk}}}
        store = ts.open(spec).result()
        kind = np.dtype(store.dtype.numpy_dtype)
        data = rng.integers(0, 2 if dtype == "bool" else 100, shape).astype(kind)
        store.write(data).result()
        arrays[name] = data
    return arrays


def check_orbax(scratch):
    """Checkpoints that orbax itself writes, in a directory of steps."""
    import orbax.checkpoint as ocp
    tree = {"params": {"dense": {"kernel": rng.normal(size=(6, 4)).astype("float32"), "bias": np.zeros(4, "float16")}},
            "opt": [np.arange(3), {"mu": rng.normal(size=(300, 20))}], "step": np.int32(7)}
    wanted = {"params.dense.kernel": tree["params"]["dense"]["kernel"], "params.dense.bias": tree["params"]["dense"]["bias"],
              "opt.0": tree["opt"][0], "opt.1.mu": tree["opt"][1]["mu"], "step": tree["step"]}
    root = Path(scratch) / "steps"
    with ocp.CheckpointManager(root) as manager:
        for step in (9, 100):
            manager.save(step, args=ocp.args.StandardSave(tree))
        manager.wait_until_finished()
    path = root / "100" / "default"
    listed = {t["name"] for t in json.loads(tenfold("ls", "--json", path))["tensors"]}
    assert listed == set(wanted), listed ^ set(wanted)
    tenfold("verify", path)
    for name, data in wanted.items():
        assert tenfold("cat", "--raw", path, name) == np.asarray(data).tobytes(), name
    for folder, said in ((root, "(9, 100)"), (root / "100", "'default'")):
        told = subprocess.run([TENFOLD, "ls", folder], stderr=subprocess.PIPE, text=True)
        assert told.returncode and said in told.stderr, told.stderr
    print("orbax", ocp.__version__)


def main():
    count = 0
    with tempfile.TemporaryDirectory() as scratch:
        for i, (driver, many, config) in enumerate((("zarr", 60, {}), ("zarr3", 30, {}), ("zarr", 60, {"max_decoded_node_bytes": 600}),
                                                    ("zarr", 20, {"max_inline_value_bytes": 0, "compression": None}))):
            path = Path(scratch) / str(i)
            arrays = fill(path, driver, many, config)
            listed = {t["name"]: t for t in json.loads(tenfold("ls", "--json", path))["tensors"]}
            assert set(listed) == set(arrays), set(listed) ^ set(arrays)
            tenfold("verify", path)
            for name, data in arrays.items():
                assert listed[name]["shape"] == list(data.shape), name
                assert tenfold("cat", "--raw", path, name) == data.tobytes(), (driver, name)
            count += len(arrays)
        if WANTED:
            check_orbax(scratch)
    print(f"orbax_peer: {count} arrays")


main()
