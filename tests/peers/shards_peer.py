#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares split, merge and diff with huggingface_hub, safetensors, ztensor and numpy.

    shards_peer.py TENFOLD

The index of a split has the bytes that huggingface_hub makes for the same tensors in the same order,
and the safetensors package reads the shards. The ztensor package opens and verifies a split zTensor
model as a whole. diff reports the same differences of values as numpy. Needs huggingface_hub,
safetensors, ztensor and numpy.
"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import ztensor
    from huggingface_hub import split_state_dict_into_shards_factory
    from safetensors import safe_open
    from safetensors.numpy import load_file, save_file
except ImportError as missing:
    sys.exit(f"a package is not installed: {missing}")

TENFOLD = sys.argv[1]
TYPES = [np.float64, np.float32, np.float16, np.int64, np.int32, np.int16, np.int8, np.uint8, np.bool_]
checked = {"splits": 0, "shards": 0, "ztensor": 0, "diffs": 0}


def run(*arguments, codes=(0,)):
    r = subprocess.run([TENFOLD, *map(str, arguments)], capture_output=True, check=False)
    if r.returncode not in codes:
        sys.exit(f"tenfold {' '.join(map(str, arguments))}: {r.returncode} {r.stderr.decode()}")
    return r.stdout


def same(what, ours, theirs):
    if ours != theirs:
        sys.exit(f"{what}: {ours!r} is not {theirs!r}")


def model(rng):
    """Tensors of many sizes, some of them empty, under names of all kinds."""
    tensors = {}
    for i in range(rng.randint(2, 40)):
        shape = [rng.choice([0, 1, 2, 3, 5, 8]) for _ in range(rng.randint(0, 3))]
        name = rng.choice(["layers.%d.w", "ü%d", "a b%d", "q\"%d\\", "%d", "日本%d", "\U0001f600%d"]) % i
        data = np.array(np.random.default_rng(rng.getrandbits(32)).integers(0, 2, shape))
        tensors[name] = data.astype(rng.choice(TYPES))
    return tensors


def split_like_theirs(directory, path, size):
    """Compares our split with huggingface_hub's; returns the names of our files."""
    run("split", "-q", "--no-sync", path, "-o", directory, "--max-size", size)
    with safe_open(path, "np") as f:
        names = json.loads(run("ls", "--json", path))["tensors"]
        tensors = {t["name"]: f.get_tensor(t["name"]) for t in names}
        metadata = f.metadata()
    theirs = split_state_dict_into_shards_factory(
        tensors, get_storage_size=lambda t: t.nbytes, filename_pattern="model{suffix}.safetensors",
        max_shard_size=size)
    files = set(theirs.filename_to_tensors)
    if len(files) > 1:
        index = {"metadata": theirs.metadata, "weight_map": theirs.tensor_to_filename}
        same("index", (directory / "model.safetensors.index.json").read_text(),
             json.dumps(index, indent=2, sort_keys=True) + "\n")
        files.add("model.safetensors.index.json")
    same("files", {p.name for p in directory.iterdir()}, files)
    for name, inside in theirs.filename_to_tensors.items():
        shard = load_file(directory / name)
        same(name, set(shard), set(inside))
        for tensor, data in shard.items():
            same(tensor, (data.dtype, data.shape, data.tobytes()),
                 (tensors[tensor].dtype, tensors[tensor].shape, tensors[tensor].tobytes()))
        with safe_open(directory / name, "np") as f:
            same("metadata", f.metadata(), metadata)
        checked["shards"] += 1
    checked["splits"] += 1


def check_split(rng, where, number):
    path, directory = where / f"{number}.safetensors", where / f"{number}"
    save_file(model(rng), path, rng.choice([None, {"format": "pt"}, {"format": "np", "ä": "\n"}]))
    split_like_theirs(directory, path, rng.choice([1, 8, 40, 200, 5000]))
    same("diff", run("diff", path, directory)[:8], b"the same")
    merged = where / f"{number}.merged.safetensors"
    run("merge", "--no-sync", "-o", merged, directory)
    same("merged", merged.read_bytes(), path.read_bytes())


def check_ztensor(rng, where, number):
    path, directory = where / f"z{number}.safetensors", where / f"z{number}"
    tensors = {n: t for n, t in model(rng).items() if t.dtype != np.bool_}
    save_file(tensors, path)
    run("split", "-q", "--no-sync", path, "-t", "ztensor", "-o", directory, "--max-size", 40)
    root = str(directory / "model.zt")
    ztensor.verify(root, True)
    with ztensor.open(root) as opened:
        same("names", set(opened.keys()), set(tensors))
        for name, data in tensors.items():
            same(name, (list(opened[name].shape), opened[name].tobytes()),
                 (list(data.shape), data.tobytes()))
    checked["ztensor"] += 1


def check_diff(rng, where, number):
    """Two arrays that differ in some elements."""
    random_numbers = np.random.default_rng(rng.getrandbits(32))
    dtype = rng.choice([np.float64, np.float32, np.float16])
    a = random_numbers.normal(size=(7, rng.randint(1, 300))).astype(dtype)
    b = a + (random_numbers.random(a.shape) < 0.2) * random_numbers.normal(size=a.shape) * 1e-2
    b = b.astype(dtype)
    for odd in (np.nan, np.inf, -np.inf):
        for x in (a, b):
            x[random_numbers.random(a.shape) < 0.01] = odd
    left, right = where / f"a{number}.safetensors", where / f"b{number}.safetensors"
    save_file({"w": a}, left)
    save_file({"w": b}, right)
    rtol, atol = rng.choice([(0, 0), (1e-3, 0), (0, 1e-3), (1e-2, 1e-4)])
    told = json.loads(run("diff", "--json", "--rtol", rtol, "--atol", atol, left, right, codes=(0, 1)))
    x, y = a.astype(np.float64), b.astype(np.float64)
    close = np.isclose(x, y, rtol=rtol, atol=atol, equal_nan=True)
    same("allclose", told["same"], bool(close.all()))
    checked["diffs"] += 1
    if told["same"]:
        return
    d = told["differences"][0]
    same("different", d["different"], int((~close).sum()))
    same("first", d["first"], list(map(int, np.argwhere(~close)[0])))
    finite = np.isfinite(x) & np.isfinite(y)
    x, y = x[finite], y[finite]
    e = np.abs(x - y)
    ours = [d["max_abs"], d["mean_abs"], d["nmse"], d["cosine"]]
    theirs = [e.max(), e.mean(), (e * e).sum() / (x * x).sum(),
              (x * y).sum() / np.sqrt((x * x).sum() * (y * y).sum())]
    if not np.allclose(ours, theirs, rtol=1e-12, atol=0):
        sys.exit(f"sums: {ours} are not {theirs}")


def main():
    rng = random.Random(7)
    with tempfile.TemporaryDirectory() as scratch:
        where = pathlib.Path(scratch)
        for i in range(60):
            check_split(rng, where, i)
            check_diff(rng, where, i)
        for i in range(20):
            check_ztensor(rng, where, i)
    print(", ".join(f"{n} {what}" for what, n in checked.items()))


main()
