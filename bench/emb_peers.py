# SPDX-License-Identifier: MIT
"""Embeddings with other packages: emb_peers.py open|batch FILE ROUNDS [MORE]. "open" uses the package
finalfusion. "batch" uses numpy with its BLAS: it multiplies blocks and keeps the best ten rows of each by
argpartition. Prints one JSON object; only the work is timed."""
import json
import struct
import sys
import time

import numpy

K = 10


def matrix_of(path):
    """Maps the rows of words in a file of emb_data.py."""
    with open(path, "rb") as f:
        f.seek(12 + 8)
        _, length, words = struct.unpack("<IQQ", f.read(20))
        at = 20 + 12 + length
        f.seek(at + 12)
        rows, d, _ = struct.unpack("<QII", f.read(16))
    start = at + 28 + 4 - (at + 28) % 4
    return numpy.memmap(path, numpy.float32, "r", start, (rows, d))[:words]


def batch(path, queries):
    x = matrix_of(path)
    x = numpy.array(x)  # as it would be after loading
    x /= numpy.linalg.norm(x, axis=1, keepdims=True)
    q = x[numpy.arange(queries) * 977 % len(x)]

    def work():
        best, rows = None, None
        for at in range(0, len(x), 1 << 16):
            scores = q @ x[at:at + (1 << 16)].T
            k = min(K, scores.shape[1])
            part = numpy.argpartition(scores, -k, axis=1)[:, -k:]
            values = numpy.take_along_axis(scores, part, 1)
            best = values if best is None else numpy.concatenate([best, values], 1)
            rows = part + at if rows is None else numpy.concatenate([rows, part + at], 1)
        order = numpy.argsort(-best, axis=1)[:, :K]
        return numpy.take_along_axis(rows, order, 1)
    return work


def opened(path):
    import finalfusion
    return lambda: finalfusion.load_finalfusion(path, mmap=True)


def main():
    what, path, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    work = opened(path) if what == "open" else batch(path, int(sys.argv[4]))
    seconds = []
    for i in range(rounds + (what == "batch")):
        start = time.perf_counter()
        held = work()
        seconds.append(time.perf_counter() - start)
        del held
    print(json.dumps({"seconds": seconds[what == "batch":], "numpy": numpy.__version__}))


main()
