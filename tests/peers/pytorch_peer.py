#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random checkpoints between torch and Tenfold, in both directions.

  pytorch_peer.py TENFOLD

torch may be the distribution's: if this Python does not have it, /usr/bin/python3 is used. `./dev peers` uses a
current one, in the directory TENFOLD_TORCH, for memory-mapped loading, new types and directories of distributed
checkpoints.
"""
import os
import random
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

sys.path[:0] = [os.environ["TENFOLD_TORCH"]] if "TENFOLD_TORCH" in os.environ else []
try:
    import torch
except ImportError:
    if sys.executable != "/usr/bin/python3" and os.path.exists("/usr/bin/python3") and "TENFOLD_PEER" not in os.environ:
        os.environ["TENFOLD_PEER"] = "1"
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
    print("pytorch: no torch here: skipped")
    sys.exit(0)

TENFOLD = sys.argv[1]
TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
         torch.uint8, torch.bool, torch.complex64]
CURRENT = hasattr(torch, "float8_e4m3fn") and hasattr(torch, "uint16")
NEW = [torch.uint16, torch.uint32, torch.uint64, torch.float8_e4m3fn, torch.float8_e5m2] if CURRENT else []
warnings.simplefilter("ignore")


def run(*args):
    done = subprocess.run([TENFOLD, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    return done.returncode, done.stdout, done.stderr.decode()


def random_tensor(rng):
    shape = [rng.randrange(0, 5) for _ in range(rng.randrange(0, 4))]
    t = (torch.randn([n + 2 for n in shape]) * 10).to(rng.choice(TYPES))
    for axis, n in enumerate(shape):
        t = t.narrow(axis, rng.randrange(0, 3), n)
    if t.dim() > 1 and rng.random() < 0.5:
        t = t.transpose(0, -1)
    return rng.choice([t, t, t.clone(), t.contiguous().clone()])  # a view with an order of its own, rows first


def random_compressed(rng, dense):
    """By rows or columns, of numbers or of blocks, one matrix or a batch; perhaps without cells."""
    dense = dense * rng.choice([0, 1, 1])
    if rng.random() < 0.5:
        dense = torch.stack([dense, 2 * dense, -dense])  # the same number of cells in each
    kind = rng.choice(["csr", "csc", "bsr", "bsc"])
    return getattr(dense, f"to_sparse_{kind}")(*([(2, 3)] if kind[0] == "b" else []))


def random_special(rng):
    """Tensors that are not plain: sparse, quantized, of a type that only current versions have."""
    kind = rng.randrange(6 if CURRENT else 4)
    dense = torch.randn(4, 6) * (torch.rand(4, 6) < 0.4)
    if kind == 0:
        return dense.to_sparse().coalesce()
    if kind == 1:
        return dense.to_sparse_csr() if hasattr(dense, "to_sparse_csr") else dense.to_sparse().coalesce()
    if kind == 2:
        return torch.quantize_per_tensor(dense, 0.1, 3, rng.choice([torch.qint8, torch.qint32]))
    if kind == 3:
        return torch.quantize_per_channel(dense, torch.rand(4).double() + 0.01, torch.arange(4), 0, torch.quint8)
    if kind == 4:
        return random_compressed(rng, dense)
    return torch.randint(0, 255, (rng.randrange(1, 9) * 8,), dtype=torch.uint8).view(rng.choice(NEW))


def random_tree(rng):
    tree = {f"layer.{i}.{rng.choice(['weight', 'bias'])}": random_tensor(rng) for i in range(rng.randrange(1, 6))}
    if rng.random() < 0.5:
        tied = rng.choice(list(tree))
        tree["tied"] = tree[tied]
    if rng.random() < 0.5:
        tree["special"] = random_special(rng)
    if rng.random() < 0.5:
        tree = {"state_dict": tree, "epoch": rng.randrange(9), "names": ["a", ("b", 3)]}
    return tree


def flat(tree, prefix=""):
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{key}.")
        elif isinstance(value, torch.Tensor):
            yield prefix + key, value


def raw(t):
    """Elements row by row; torch alone compares types that NumPy does not have."""
    odd = t.is_quantized or t.layout != torch.strided or t.dtype in [torch.bfloat16, *NEW]
    return None if odd else t.numpy().tobytes()


def same(a, b):
    if a.dtype != b.dtype or a.shape != b.shape or a.layout != b.layout:
        return False
    if a.is_quantized:
        return a.qscheme() == b.qscheme() and torch.equal(a.int_repr(), b.int_repr()) and torch.equal(a.dequantize(), b.dequantize())
    if a.dtype in NEW:
        return torch.equal(a.view(torch.uint8), b.view(torch.uint8))
    if a.layout not in (torch.strided, torch.sparse_coo) and a.values().shape != b.values().shape:
        return False
    return torch.equal(a.to_dense(), b.to_dense()) if a.layout != torch.strided else torch.equal(a, b)


def storages(tree):
    """Which tensors share their bytes."""
    plain = {k: v for k, v in flat(tree) if v.layout == torch.strided and v.numel()}
    place = {k: (v.untyped_storage() if hasattr(v, "untyped_storage") else v.storage()).data_ptr() for k, v in plain.items()}
    return {(a, b) for a in place for b in place if a < b and place[a] == place[b]}


def check(tree, scratch, zipped):
    source, there, back = scratch / "a.pt", scratch / "a.zt", scratch / "b.pt"
    torch.save(tree, str(source), _use_new_zipfile_serialization=zipped)
    for name, t in flat(tree):
        want = raw(t)
        if want is None:
            continue
        code, out, err = run("cat", "--raw", source, name)
        assert code == 0, (name, err)
        assert want is None or out == want, (name, t.dtype, t.shape, t.stride())
    for way in (["-t", "pytorch", source, back], None):
        if way is None:
            code, _, err = run("convert", "-q", "--force", "--no-sync", "-t", "ztensor2", source, there)
            assert code == 0, err
            way = ["-t", "pytorch", there, back]
        code, _, err = run("convert", "-q", "--force", "--no-sync", *way)
        assert code == 0, err
        # The old form only holds plain tensors.
        loaded = torch.load(str(back), weights_only=CURRENT or "special" not in str(list(dict(flat(tree)))))
        if CURRENT:
            mapped = dict(flat(torch.load(str(back), weights_only=True, mmap=True)))
            assert all(same(mapped[name], t) for name, t in flat(loaded)), "mapped it is another"
        have, want = dict(flat(loaded)), dict(flat(tree))
        assert have.keys() == want.keys(), (have.keys(), want.keys())
        for name, t in want.items():
            assert same(have[name], t), name
        assert "tied" not in want or storages(loaded) & {("tied", n) for n in want} | {(n, "tied") for n in want}, "no longer tied"
        assert loaded.get("epoch") == tree.get("epoch") and loaded.get("names") == tree.get("names")


def check_folder(tree, scratch):
    """A distributed checkpoint of one process."""
    import torch.distributed.checkpoint as dcp
    folder = scratch / "dcp"
    tree = {k: v for k, v in tree.items() if not isinstance(v, torch.Tensor) or (v.layout == torch.strided and not v.is_quantized)}
    dcp.save(tree, checkpoint_id=str(folder), no_dist=True)
    for name, t in flat(tree):
        want = raw(t)
        code, out, err = run("cat", "--raw", folder, name)
        assert code == 0, (name, err)
        assert want is None or out == want, (name, t.dtype, t.shape)


def main():
    n = int(os.environ.get("TENFOLD_ROUNDS", "40"))
    with tempfile.TemporaryDirectory() as name:
        for seed in range(n):
            rng = random.Random(seed)
            torch.manual_seed(seed)
            check(random_tree(rng), Path(name), seed % 3 > 0)
            if CURRENT and seed % 10 == 0:
                check_folder({f"w.{i}": random_tensor(rng).clone() for i in range(3)}, Path(name))
    print(f"pytorch: {n} checkpoints of torch {torch.__version__}, both ways")


if __name__ == "__main__":
    main()
