# SPDX-License-Identifier: MIT
"""k-means on pieces of two dimensions with scikit-learn, or numpy if that is not installed:
quantize_peers.py FILE ROUNDS ITERATIONS. Only a few pieces are trained, and the time is multiplied to
estimate that of all. Prints one JSON object."""
import json
import struct
import sys
import time

import numpy

K, PIECES = 256, 3


def matrix_of(path):
    """Maps the rows of a file of emb_data.py, which are at its end."""
    with open(path, "rb") as f:
        f.seek(16)
        _, _, length = struct.unpack("<IIQ", f.read(16))
        at = 20 + 12 + length
        f.seek(at + 12)
        rows, d, _ = struct.unpack("<QII", f.read(16))
    return numpy.memmap(path, numpy.float32, "r", at + 28 + 4 - (at + 28) % 4, (rows, d))


def by_numpy(x, iterations, rng):
    c = x[rng.choice(len(x), K, replace=False)]
    for _ in range(iterations):
        codes = ((c * c).sum(1) / 2 - x @ c.T).argmin(1)
        counts = numpy.bincount(codes, minlength=K)
        sums = numpy.stack([numpy.bincount(codes, x[:, i], K) for i in range(x.shape[1])], 1)
        c = numpy.where(counts[:, None] > 0, sums / numpy.maximum(counts, 1)[:, None], c).astype(x.dtype)


def by_sklearn(x, iterations, rng):
    from sklearn.cluster import KMeans
    KMeans(K, init="random", n_init=1, max_iter=iterations, tol=0, algorithm="lloyd",
           random_state=int(rng.integers(1 << 30))).fit(x)


def main():
    path, rounds, iterations = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    x = numpy.array(matrix_of(path))
    x /= numpy.linalg.norm(x, axis=1, keepdims=True)
    rng = numpy.random.default_rng(1)
    try:
        import sklearn
        work, name = by_sklearn, "scikit-learn " + sklearn.__version__
    except ImportError:
        work, name = by_numpy, "numpy " + numpy.__version__
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        for piece in range(PIECES):
            work(numpy.ascontiguousarray(x[:, 2 * piece:2 * piece + 2]), iterations, rng)
        seconds.append((time.perf_counter() - start) * (x.shape[1] // 2) / PIECES)
    print(json.dumps({"seconds": seconds, "name": name}))


main()
