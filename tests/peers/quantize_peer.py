#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares Tenfold's quantizers with the finalfusion package, which reads their files, and with
quantizers in numpy (scikit-learn's k-means if it is installed), which must not lose less.

    quantize_peer.py TENFOLD

Needs finalfusion and numpy.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from finalfusion import Embeddings, load_finalfusion
from finalfusion.norms import Norms
from finalfusion.storage import NdArray, QuantizedArray
from finalfusion.subword import FastTextIndexer, FinalfusionHashIndexer
from finalfusion.vocab import FastTextVocab, FinalfusionBucketVocab, SimpleVocab

try:
    from sklearn.cluster import KMeans
except ImportError:
    KMeans = None

TENFOLD = sys.argv[1]
METHODS = ("pq", "gaussian_opq", "opq")
checked = {"files": 0, "rows": 0, "losses": 0}
rng = np.random.default_rng(12)


def run(*arguments, ok=True):
    r = subprocess.run([TENFOLD, *map(str, arguments)], capture_output=True, check=False)
    if ok and r.returncode != 0:
        sys.exit(f"{arguments}: {r.stderr.decode()}")
    return r


# ---------------------------------------------------------------- the same with numpy
def kmeans(x, k, rounds):
    """Lloyd's, from random rows; an empty cluster keeps its centroid."""
    if KMeans:
        trained = KMeans(k, init="random", n_init=1, max_iter=rounds, tol=0, algorithm="lloyd",
                         random_state=int(rng.integers(1 << 30))).fit(x)
        return trained.cluster_centers_
    c = x[rng.choice(len(x), k, replace=False)]
    for _ in range(rounds):
        c = kmeans_round(x, c)
    return c


def nearest(x, c):
    return ((c * c).sum(1) / 2 - x @ c.T).argmin(1)


def kmeans_round(x, c):
    codes = nearest(x, c)
    counts = np.bincount(codes, minlength=len(c))
    sums = np.stack([np.bincount(codes, x[:, i], len(c)) for i in range(x.shape[1])], 1)
    return np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], c)


def pieces(x, m):
    return np.split(x, m, axis=1)


def quantized(x, books):
    return np.hstack([c[nearest(p, c)] for p, c in zip(pieces(x, len(books)), books)])


def gaussian(x, m):
    values, vectors = np.linalg.eigh(np.cov(x.T))
    logs = np.log(values / values[0])
    buckets, products = [[] for _ in range(m)], np.zeros(m)
    for i in np.argsort(-values):
        b = min((b for b in range(m) if len(buckets[b]) < x.shape[1] // m), key=lambda b: products[b])
        buckets[b].append(i)
        products[b] += logs[i]
    return vectors[:, sum(buckets, [])]


def reconstructed(x, method, m, k, rounds):
    if method == "pq":
        return quantized(x, [kmeans(p, k, rounds) for p in pieces(x, m)])
    turn = gaussian(x, m)
    if method == "gaussian_opq":
        return quantized(x @ turn, [kmeans(p, k, rounds) for p in pieces(x @ turn, m)]) @ turn.T
    books = [p[rng.choice(len(x), k, replace=False)] for p in pieces(x @ turn, m)]
    for _ in range(rounds):
        books = [kmeans_round(p, c) for p, c in zip(pieces(x @ turn, m), books)]
        u, _, vt = np.linalg.svd(x.T @ quantized(x @ turn, books))
        turn = u @ vt
    return quantized(x @ turn, books) @ turn.T


def mean_square(x, y):
    return ((x - y) ** 2).sum(1).mean()


# ---------------------------------------------------------------- matrices to quantize
def vectors(rows, d):
    """Some directions matter more than others, and there are clusters."""
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0] * np.linspace(3, .2, d)
    centres = rng.standard_normal((20, d))
    return ((rng.standard_normal((rows, d)) + centres[rng.integers(0, 20, rows)]) @ turn).astype(np.float32)


def embeddings():
    words = ["Tübingen", "New York"] + [f"word{i}" for i in range(700)]
    for name, vocab in (("simple", SimpleVocab(words)),
                        ("bucket", FinalfusionBucketVocab(words, FinalfusionHashIndexer(9, 3, 5))),
                        ("fasttext", FastTextVocab(words, FastTextIndexer(301, 2, 4)))):
        matrix = vectors(vocab.upper_bound, 24)
        matrix[5] = 0
        norms = Norms(rng.random(len(words)).astype(np.float32)) if name != "simple" else None
        yield name, Embeddings(NdArray(matrix), vocab, norms)


def rows_of(storage):
    return np.stack([np.asarray(storage[i]) for i in range(len(storage))])


def check_file(path, e, method, as_is):
    out, dense = path.with_suffix(f".{method}{as_is:d}.fifu"), path.with_suffix(".dense.fifu")
    arguments = ["-q", method, "-b", 6, "-s", 12, "-i", 15, "--json"] + ["--as-is"] * as_is
    told = json.loads(run("quantize", path, out, *arguments).stdout)
    theirs = load_finalfusion(str(out))
    storage = theirs.storage
    assert isinstance(storage, QuantizedArray) and theirs.vocab == e.vocab
    assert (storage.quantizer.projection is None) == (method == "pq")
    assert (theirs.norms is None) == (e.norms is None)
    assert e.norms is None or np.array_equal(theirs.norms, e.norms)
    before, after = np.asarray(e.storage), rows_of(storage)
    lengths = np.linalg.norm(before, axis=1)
    assert (storage._norms is None) == as_is
    assert as_is or np.allclose(storage._norms, lengths, rtol=1e-6)
    assert as_is or (after[5] == 0).all()
    run("reconstruct", "--as-is", "--force", out, dense)
    assert np.allclose(np.asarray(load_finalfusion(str(dense)).storage), after, atol=1e-5)
    euclidean = np.linalg.norm(before - after, axis=1).mean()
    some = lengths > 0
    cosine = ((before * after).sum(1)[some] / lengths[some] / np.linalg.norm(after, axis=1)[some]).mean()
    assert abs(told["euclidean"] - euclidean) < 1e-4, (told, euclidean)
    assert abs(told["cosine"] - cosine) < 1e-4, (told, cosine)
    assert (told["rows"], told["dims"], told["bits"], told["subquantizers"]) == (*before.shape, 6, 12)
    checked["files"] += 1
    checked["rows"] += len(before)


# ---------------------------------------------------------------- the size of the loss
def check_loss(folder, method):
    path, out = folder / "loss.fifu", folder / "loss.out.fifu"
    x = vectors(2000, 32)
    words = SimpleVocab([f"w{i}" for i in range(len(x))])
    Embeddings(NdArray(x), words).write(str(path))
    for m, bits in ((16, 6), (8, 8)):
        ours, theirs = [], []
        for seed in range(4):  # the loss depends on where training begins, by about 1 %
            run("quantize", "--force", path, out, "-q", method, "-b", bits, "-s", m, "-i", 10, "--as-is",
                "--seed", seed)
            ours.append(mean_square(x, rows_of(load_finalfusion(str(out)).storage)))
            theirs.append(mean_square(x, reconstructed(x, method, m, 2 ** bits, 10)))
        assert np.mean(ours) <= np.mean(theirs) * 1.02, (method, m, bits, ours, theirs)
        checked["losses"] += 1


with tempfile.TemporaryDirectory() as temp:
    folder = pathlib.Path(temp)
    methods = METHODS
    for name, e in embeddings():
        path = folder / f"{name}.fifu"
        e.write(str(path))
        without = run("quantize", path, folder / "tried.fifu", "-q", "opq", "-i", 1, "-b", 2, "--force", ok=False)
        if b"not built in" in without.stderr:
            methods = METHODS[:1]
        for method in methods:
            check_file(path, e, method, False)
            check_file(path, e, method, True)
    for method in methods:
        check_loss(folder, method)
print(", ".join(f"{n} {what}" for what, n in checked.items()))
