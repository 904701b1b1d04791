#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prepares a fastText model for queries: tenfold convert, compared with loading the model in gensim.

    fasttext.py TENFOLD [WORDS [BUCKETS [ROUNDS]]]

Makes a model of that size (200,000 words and 500,000 buckets of 300 numbers: 1.1 GB) in the system's
directory for temporary files. Needs numpy and gensim. Prints wall-clock and CPU seconds.
"""
import os
import pathlib
import resource
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np

TENFOLD = sys.argv[1]
WORDS, BUCKETS, ROUNDS = (int(a) if a else d for a, d in zip(sys.argv[2:5] + [""] * 3, (200_000, 500_000, 3)))
DIMS = 300


def make(path):
    rng = np.random.default_rng(1)
    letters = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", np.uint8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Ii12id", 793712314, 12, DIMS, 5, 5, 5, 5, 1, 2, 2, BUCKETS, 3, 6, 100, 1e-4))
        f.write(struct.pack("<iiiqq", WORDS, WORDS, 0, 10**9, -1))
        for i in range(WORDS):
            word = letters[rng.integers(0, 26, int(rng.integers(3, 8)))].tobytes() + b"%x" % i
            f.write(word + b"\0" + struct.pack("<qB", WORDS - i + 5, 0))
        f.write(struct.pack("<Bqq", 0, WORDS + BUCKETS, DIMS))
        for at in range(0, WORDS + BUCKETS, 10_000):
            f.write(rng.standard_normal((min(10_000, WORDS + BUCKETS - at), DIMS), dtype=np.float32).tobytes())
        f.write(struct.pack("<Bqq", 0, 0, DIMS))


def timed(*command):
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    clock, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def row(what, times):
    print(f"{what:44} {min(t[0] for t in times):8.2f} s {min(t[1] for t in times):8.2f} s")
    return min(t[0] for t in times)


with tempfile.TemporaryDirectory() as directory:
    model, out = pathlib.Path(directory) / "model.bin", pathlib.Path(directory) / "vectors.fifu"
    make(model)
    print(f"{WORDS:,} words, {BUCKETS:,} buckets, {os.path.getsize(model) / 1e9:.1f} GB".ljust(44), "     clock processors")
    load = ("from gensim.models.fasttext import load_facebook_vectors as l; import sys; "
            "v = l(sys.argv[1]) if len(sys.argv) > 1 else None")
    idle = timed(sys.executable, "-c", load)
    theirs = [timed(sys.executable, "-c", load, model) for _ in range(ROUNDS)]
    theirs = [(a - idle[0], b - idle[1]) for a, b in theirs]  # without what importing it takes
    ours = [timed(TENFOLD, "convert", "-q", "--allow-loss", "--no-sync", "--force", model, out) for _ in range(ROUNDS)]
    asked = [timed(TENFOLD, "vector", model, "hello") for _ in range(ROUNDS)]
    best = row("gensim: load_facebook_vectors", theirs)
    print(f"{'':44} ratio {best / row('tenfold convert model.bin vectors.fifu', ours):.1f}")
    row("tenfold vector model.bin WORD (open and ask)", asked)
