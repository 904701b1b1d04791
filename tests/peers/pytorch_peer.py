#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random checkpoints both ways between torch and Tenfold.

  pytorch_peer.py TENFOLD

torch may be the distribution's: where this Python has none, /usr/bin/python3 is asked.
"""
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

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
    return t if rng.random() < 0.5 else t.contiguous().clone()


def random_tree(rng):
    tree = {f"layer.{i}.{rng.choice(['weight', 'bias'])}": random_tensor(rng) for i in range(rng.randrange(1, 6))}
    if rng.random() < 0.5:
        tied = rng.choice(list(tree))
        tree["tied"] = tree[tied]
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
    """Elements row by row; bfloat16, which NumPy does not have, is compared by torch alone."""
    return None if t.dtype == torch.bfloat16 else t.numpy().tobytes()


def check(tree, scratch, zipped):
    source, there, back = scratch / "a.pt", scratch / "a.zt", scratch / "b.pt"
    torch.save(tree, str(source), _use_new_zipfile_serialization=zipped)
    for name, t in flat(tree):
        code, out, err = run("cat", "--raw", source, name)
        assert code == 0, (name, err)
        want = raw(t)
        assert want is None or out == want, (name, t.dtype, t.shape, t.stride())
    for way in (["-t", "pytorch", source, back], None):
        if way is None:
            code, _, err = run("convert", "-q", "--force", "--no-sync", "-t", "ztensor2", source, there)
            assert code == 0, err
            way = ["-t", "pytorch", there, back]
        code, _, err = run("convert", "-q", "--force", "--no-sync", *way)
        assert code == 0, err
        loaded = torch.load(str(back), weights_only=True)
        have, want = dict(flat(loaded)), dict(flat(tree))
        assert have.keys() == want.keys(), (have.keys(), want.keys())
        for name, t in want.items():
            assert have[name].dtype == t.dtype and have[name].shape == t.shape, name
            assert torch.equal(have[name], t), name
        assert loaded.get("epoch") == tree.get("epoch") and loaded.get("names") == tree.get("names")


def main():
    n = int(os.environ.get("TENFOLD_ROUNDS", "40"))
    with tempfile.TemporaryDirectory() as name:
        for seed in range(n):
            rng = random.Random(seed)
            torch.manual_seed(seed)
            check(random_tree(rng), Path(name), seed % 3 > 0)
    print(f"pytorch: {n} checkpoints of torch {torch.__version__}, both ways")


if __name__ == "__main__":
    main()
