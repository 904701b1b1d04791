#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The Python package compared with safetensors in one run: the best CPU times, and ratios.

    PYTHONPATH=build/release/python .venv/bin/python bench/python.py [--large GIB]
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import safetensors
import safetensors.numpy

import tenfold
import tenfold.compat.safetensors as ours
import tenfold.numpy


def best(function, seconds=0.6, clock=time.process_time):
    """Returns the shortest time of one call."""
    shortest, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = clock()
        function()
        shortest = min(shortest, clock() - start)
    return shortest


def each(function, n=2000):
    """Returns the shortest time per call of n consecutive calls."""
    def many():
        for _ in range(n):
            function()
    return best(many) / n


def unit(seconds):
    for scale, name in ((1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1, "s")):
        if seconds < scale * 1000 or scale == 1:
            return f"{seconds / scale:.3g} {name}"


def line(what, theirs, mine, goal):
    print(f"| {what} | {unit(theirs)} | {unit(mine)} | {theirs / mine:.2f} | {goal} |", flush=True)


def import_time(module):
    import compileall
    compileall.compile_dir(os.path.dirname(tenfold.__file__), quiet=2)
    code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    return min(float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True,
                                    text=True).stdout) for _ in range(15))


def small(folder):
    path = os.path.join(folder, "small.safetensors")
    tensors = {f"layers.{i}.weight": np.full((16, 16), i, "f4") for i in range(1000)}
    safetensors.numpy.save_file(tensors, path)
    with open(path, "rb") as f:
        data = f.read()

    def keys(package):
        with package.safe_open(path, "np") as f:
            f.keys()

    def all_of(package):
        with package.safe_open(path, "np") as f:
            for key in f.keys():
                f.get_tensor(key)

    line("open + keys", best(lambda: keys(safetensors)), best(lambda: keys(ours)), "≤ 0.3 ms")
    line("open + keys + get all", best(lambda: all_of(safetensors)), best(lambda: all_of(ours)),
         "≤ 1.2 ms, 2.5x")
    line("load_file", best(lambda: safetensors.numpy.load_file(path)),
         best(lambda: tenfold.numpy.load_file(path)), "≤ 1.2 ms")
    line("load(bytes)", best(lambda: safetensors.numpy.load(data)),
         best(lambda: tenfold.numpy.load(data)), "≤ 1 ms")
    line("save(bytes)", best(lambda: safetensors.numpy.save(tensors)),
         best(lambda: tenfold.numpy.save(tensors)), "-")
    name = "layers.500.weight"
    with safetensors.safe_open(path, "np") as a, ours.safe_open(path, "np") as b, \
            tenfold.open(path) as f:
        theirs = each(lambda: a.get_tensor(name))
        line("one get_tensor of 1 KiB", theirs, each(lambda: b.get_tensor(name)), "≤ 0.6 µs")
        line("the same as a view", theirs, each(lambda: f[name].numpy()), "≤ 0.35 µs")
        s, t = a.get_slice(name), b.get_slice(name)
        line("one slice", each(lambda: s[2:8, 3:9]), each(lambda: t[2:8, 3:9]), "≤ 0.8 µs")


def many(folder):
    path = os.path.join(folder, "many.safetensors")
    one = np.zeros(4, "f4")
    safetensors.numpy.save_file({f"layers.{i}.weight": one for i in range(100000)}, path)

    def keys(package):
        with package.safe_open(path, "np") as f:
            f.keys()
    line("100,000 tensors: open + keys", best(lambda: keys(safetensors), 2),
         best(lambda: keys(ours), 2), "≤ 60 ms, 3x")


def rows(folder):
    path = os.path.join(folder, "row.safetensors")
    safetensors.numpy.save_file({"w": np.zeros((4096, 4096), "f4")}, path)

    def read(package):
        def count():
            with open("/proc/self/io", encoding="ascii") as f:
                return int(f.readline().split()[1])
        with package.safe_open(path, "np", backend="pread") as f:
            s = f.get_slice("w")
            before = count()
            s[7]
            return count() - before
    a, b = read(safetensors), read(ours)
    print(f"| bytes read for one row of 64 MiB, pread | {a:,} | {b:,} | {a / max(b, 1):.0f} | 16 KiB |")


def large(folder, gib):
    path = os.path.join(folder, "large.safetensors")
    n = int(gib * 16)
    tensors = {f"w{i}": np.random.default_rng(i).integers(0, 255, (64, 1 << 20), "u1")
               for i in range(n)}
    tenfold.numpy.save_file(tensors, path, sync=False)
    del tensors
    wall = time.perf_counter
    def run(load):
        return best(lambda: load(path), 6, wall)
    line(f"load_file of {gib} GiB, wall time, {os.cpu_count()} cores",
         run(safetensors.numpy.load_file), run(tenfold.numpy.load_file), "1.7x on 2, 5x on 16")


def words(folder):
    from tenfold.embeddings import Embeddings
    n, dims, k = 50000, 300, 10
    rng = np.random.default_rng(1)
    matrix = rng.standard_normal((n, dims), dtype="f4")
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    path = os.path.join(folder, "words.vec.bin")
    with open(path, "wb") as f:
        f.write(f"{n} {dims}\n".encode())
        for i in range(n):
            f.write(f"w{i} ".encode() + matrix[i].tobytes())
    e = Embeddings(path, format="word2vec")
    queries = matrix[:64].copy()

    def by_numpy():
        scores = queries @ matrix.T
        top = np.argpartition(-scores, k, axis=1)[:, :k]
        return np.take_along_axis(scores, top, 1)
    wall = time.perf_counter
    line("64 nearest of 50,000 x 300, wall time", best(by_numpy, 3, wall),
         best(lambda: e.nearest(queries, k), 3, wall), "2x numpy")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--large", type=float, default=0, help="GiB of the large file")
    args = parser.parse_args()
    print(f"safetensors {safetensors.__version__}, tenfold {tenfold.__version__}, "
          f"Python {sys.version.split()[0]}, numpy {np.__version__}, {os.cpu_count()} cores\n")
    print("| 1,000 tensors of 16 x 16 f32, CPU time | safetensors | tenfold | ratio | goal |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        line("import, over a bare interpreter", import_time("safetensors"), import_time("tenfold"),
             "< 3 ms")
        small(folder)
        many(folder)
        rows(folder)
        try:
            words(folder)
        except ImportError:
            pass
        if args.large:
            large(folder, args.large)


if __name__ == "__main__":
    main()
