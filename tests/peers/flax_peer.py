#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trees of the package flax are written again with the same bytes; flax reads the trees that Tenfold writes.

Without flax, the package msgpack reads the bytes. TENFOLD_JAX names a directory with flax; if it is set, flax must be there.

  flax_peer.py TENFOLD
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

WANTED = os.environ.get("TENFOLD_JAX")
if WANTED:
    sys.path.insert(0, WANTED)
try:
    import msgpack
    import numpy as np
except ImportError as missing:
    print(f"SKIPPED: {missing}; .venv/bin/pip install msgpack")
    sys.exit(0)
try:
    from flax import __version__ as flax_version, serialization
except ImportError:
    if WANTED:
        raise
    serialization = None
    print("flax is not here: msgpack alone judges")

TENFOLD = sys.argv[1]
rng = np.random.default_rng(7)


def array(a, code=1):
    return msgpack.ExtType(code, msgpack.packb((a.shape, a.dtype.name, a.tobytes()), use_bin_type=True))


def leaf(v):
    return array(v) if isinstance(v, np.ndarray) else array(np.asarray(v), 3) if isinstance(v, np.generic) else v


def tree(v):
    return {k: tree(x) for k, x in v.items()} if isinstance(v, dict) else leaf(v)


def tenfold(*args):
    subprocess.run([TENFOLD, *map(str, args)], check=True)


values = {"params": {f"layer_{i}": {"kernel": rng.normal(size=(3, 4)).astype(t), "bias": np.zeros(0, t)}
                     for i, t in enumerate(("float32", "float64", "float16", "int64", "uint8"))},
          "step": 7, "big": 2 ** 63, "small": -2 ** 63, "lr": 1e-3, "none": None, "scalar": np.float32(2), "name": "ä" * 40, "e": {}}
data = serialization.msgpack_serialize(values) if serialization else msgpack.packb(tree(values), use_bin_type=True)
with tempfile.TemporaryDirectory() as name:
    a, b, c = (Path(name) / n for n in ("a.msgpack", "b.zt", "c.msgpack"))
    a.write_bytes(data)
    tenfold("convert", "-q", a, b)
    tenfold("convert", "-q", b, c)
    assert c.read_bytes() == data, "not the bytes that the package wrote"
    if serialization:
        read = serialization.msgpack_restore(c.read_bytes())
        assert read["step"] == 7
        for layer, arrays in values["params"].items():
            for key, wanted in arrays.items():
                got = read["params"][layer][key]
                assert got.dtype == wanted.dtype and np.array_equal(got, wanted), (layer, key)
print(f"{'flax ' + flax_version if serialization else 'msgpack'}: {len(data)} bytes, the same again")
