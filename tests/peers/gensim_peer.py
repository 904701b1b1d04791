#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares Tenfold with gensim, in both directions.

    gensim_peer.py TENFOLD

Tenfold reads the same values from gensim's files: text and binary, with and without a header.
gensim reads Tenfold's files, also those converted through other formats, with the same words,
values, neighbours, analogies and accuracy. Needs gensim and numpy.
"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np
from gensim.models import KeyedVectors

TENFOLD = sys.argv[1]
WORDS = ["Tübingen", "a", "ordinary", "实验", "x" * 300, "</s>", "1", "0.5", "nan", "#", "'", '"', "x\u00a0y"]
WORDS += [f"word{i}" for i in range(500)]
DIMS = 25
checked = {"files": 0, "values": 0, "neighbours": 0, "analogies": 0}
rng = np.random.default_rng(11)


def run(*arguments):
    r = subprocess.run([TENFOLD, *map(str, arguments)], capture_output=True, check=False)
    if r.returncode != 0:
        sys.exit(f"{arguments}: {r.stderr.decode()}")
    return r.stdout


def matrix():
    m = rng.standard_normal((len(WORDS), DIMS)).astype(np.float32)
    # Floats of all sizes, and floats that are hard to print and to read.
    bits = rng.integers(0, 0x7F800000, (20, DIMS), dtype=np.uint32) | (rng.integers(0, 2, (20, DIMS), dtype=np.uint32) << 31)
    m[20:40] = bits.view(np.float32)
    m[40] = 0
    m[41, :8] = [np.inf, -np.inf, -0.0, 1e-45, 3.4028235e38, 1.1754944e-38, 16777216, 0.1]
    return m


def same(what, words, got, want_words, want):
    if list(words) != list(want_words):
        sys.exit(f"{what}: other words")
    if got.shape != want.shape or not np.array_equal(got.view(np.uint32), want.view(np.uint32)):
        bad = np.argwhere(got.view(np.uint32) != want.view(np.uint32))[:3]
        sys.exit(f"{what}: other values at {bad.tolist()}: {[(got[tuple(i)], want[tuple(i)]) for i in bad]}")
    checked["files"] += 1
    checked["values"] += got.size


def ours(path, what, want):
    words = json.loads(run("cat", "--json", path, "vocab"))["values"]
    got = np.frombuffer(run("cat", "--raw", path, "embeddings"), np.float32).reshape(-1, DIMS)
    same(what, words, got, WORDS, want)


def theirs(path, what, want, **how):
    kv = KeyedVectors.load_word2vec_format(str(path), **how)
    same(what, kv.index_to_key, kv.vectors, WORDS, want)
    return kv


def neighbours(path, kv):
    for word in ("Tübingen", "word17", "</s>"):
        told = json.loads(run("similar", "--json", "-k", "10", path, word))["results"]
        for mine, (name, score) in zip(told, kv.most_similar(word, topn=10)):
            if abs(mine["score"] - score) > 1e-6 or (mine["word"] != name and abs(mine["score"] - score) > 1e-7):
                sys.exit(f"{path}: {word}: {mine} instead of {name} {score}")
            checked["neighbours"] += 1


def triples(n):
    return [[WORDS[i] for i in rng.choice(len(WORDS), 3, replace=False)] for _ in range(n)]


def analogies(path, kv):
    """most_similar() averages unit vectors and leaves the three words out."""
    asked = triples(300)
    lines = "".join("\t".join(t) + "\n" for t in asked).encode()
    r = subprocess.run([TENFOLD, "analogy", "--json", "-k", "5", path], input=lines, capture_output=True, check=True)
    for (a, b, c), line in zip(asked, r.stdout.decode().splitlines(), strict=True):
        told = json.loads(line)
        want = kv.most_similar(positive=[b, c], negative=[a], topn=5)
        if told["query"] != [a, b, c]:
            sys.exit(f"{path}: {a} {b} {c}: {line}")
        for mine, (name, score) in zip(told["results"], want, strict=True):
            if abs(mine["score"] - score) > 2e-6 or (mine["word"] != name and mine is told["results"][0]):
                sys.exit(f"{path}: {a} {b} {c}: {mine} instead of {name} {score}")
        checked["analogies"] += 1


def accuracy(tmp, path, kv):
    """Half of the questions with gensim's own answers, half with any word."""
    asked = triples(80)
    answers = [kv.most_similar(positive=[b, c], negative=[a], topn=1)[0][0] if i % 2 else "word1"
               for i, (a, b, c) in enumerate(asked)]
    plain = [(t, d) for t, d in zip(asked, answers) if not any(x.isspace() for x in "".join(t) + d)]
    (tmp / "questions").write_text(": some\n" + "".join(f"{a} {b} {c} {d}\n" for (a, b, c), d in plain), encoding="utf-8")
    told = json.loads(run("accuracy", "--json", path, tmp / "questions"))["total"]
    _, sections = kv.evaluate_word_analogies(str(tmp / "questions"), restrict_vocab=None, case_insensitive=False)
    correct, wrong = len(sections[0]["correct"]), len(sections[0]["incorrect"])
    if (told["correct"], told["asked"]) != (correct, correct + wrong) or correct < 20 or wrong < 20:
        sys.exit(f"{path}: accuracy {told}, gensim: {correct} and {wrong}")


def unit_and_back(tmp, kv):
    """Converted to finalfusion, the answers are the same; converted back, the vectors are the
    same."""
    run("convert", "--force", tmp / "n.bin", tmp / "n.fifu")
    rows = np.frombuffer(run("cat", "--raw", tmp / "n.fifu", "embeddings"), np.float32).reshape(-1, DIMS)
    if not np.allclose(rows, kv.get_normed_vectors(), atol=1e-6):
        sys.exit("n.fifu: rows are not gensim's unit vectors")
    analogies(tmp / "n.fifu", kv)
    run("convert", "--force", "--unnormalize", "-t", "word2vec", tmp / "n.fifu", tmp / "back.bin")
    back = KeyedVectors.load_word2vec_format(str(tmp / "back.bin"), binary=True)
    if not np.allclose(back.vectors, kv.vectors, rtol=2e-7, atol=0):
        sys.exit("back.bin: other vectors")
    (tmp / "list").write_text("word3\nword1\nnowhere\n", encoding="utf-8")
    run("select", "-i", "--force", tmp / "n.bin", tmp / "some.vec", tmp / "list")
    some = KeyedVectors.load_word2vec_format(str(tmp / "some.vec"))
    same("select", some.index_to_key, some.vectors, ["word3", "word1"], kv[["word3", "word1"]])


def gensim_writes(tmp, kv, m):
    kv.save_word2vec_format(str(tmp / "g.bin"), binary=True)
    ours(tmp / "g.bin", "gensim's binary", m)
    kv.save_word2vec_format(str(tmp / "g.vec"), binary=False)
    ours(tmp / "g.vec", "gensim's text", m)
    kv.save_word2vec_format(str(tmp / "g.txt"), binary=False, write_header=False)
    ours(tmp / "g.txt", "gensim's text without a header", m)
    # Read and written again: the same bytes.
    for name, kind in (("g.bin", "word2vec"), ("g.vec", "textdims"), ("g.txt", "text")):
        run("convert", "-t", kind, tmp / name, tmp / ("again." + name))
        if (tmp / ("again." + name)).read_bytes() != (tmp / name).read_bytes():
            sys.exit(f"{name}: not the same bytes when written again")


def tenfold_writes(tmp, m):
    kv = None
    for source in ("g.bin", "g.vec"):
        run("convert", "--force", "--as-is", tmp / source, tmp / "x.fifu")
        run("convert", "--force", "-t", "word2vec", tmp / "x.fifu", tmp / "t.bin")
        run("convert", "--force", "-t", "word2vec", "-o", "newline=none", tmp / "x.fifu", tmp / "tn.bin")
        run("convert", "--force", "-t", "textdims", tmp / "x.fifu", tmp / "t.vec")
        run("convert", "--force", "-t", "text", tmp / "x.fifu", tmp / "t.txt")
        run("convert", "--force", "-t", "textdims", "-o", "numbers=python", "-o", "trailing=yes", tmp / "x.fifu", tmp / "p.vec")
        kv = theirs(tmp / "t.bin", "our binary", m, binary=True)
        theirs(tmp / "tn.bin", "our binary without newlines", m, binary=True)
        theirs(tmp / "t.vec", "our text", m, binary=False)
        theirs(tmp / "t.txt", "our text without a header", m, binary=False, no_header=True)
        theirs(tmp / "p.vec", "our text as Python has it", m, binary=False)
    return kv


def odd_binary(tmp):
    """Words that gensim distinguishes, while other readers trim them."""
    words = ["x", "x\u00a0", "\u2003x", "x\t"]
    data = f"{len(words)} 2\n".encode() + b"".join(w.encode() + b" " + struct.pack("<2f", i, 1) + b"\n" for i, w in enumerate(words))
    (tmp / "odd.bin").write_bytes(data)
    kv = KeyedVectors.load_word2vec_format(str(tmp / "odd.bin"), binary=True)
    mine = json.loads(run("cat", "--json", tmp / "odd.bin", "vocab"))["values"]
    if mine != words or kv.index_to_key != words:
        sys.exit(f"odd words: {mine}, gensim: {kv.index_to_key}")
    checked["files"] += 1


def main():
    m = matrix()
    kv = KeyedVectors(DIMS)
    kv.add_vectors(WORDS, m)
    with tempfile.TemporaryDirectory() as name:
        tmp = pathlib.Path(name)
        gensim_writes(tmp, kv, m)
        tenfold_writes(tmp, m)
        odd_binary(tmp)
        clean = KeyedVectors(DIMS)
        lengths = np.exp(rng.standard_normal((len(WORDS), 1)))  # so that it matters whether these words count
        clean.add_vectors(WORDS, (lengths * rng.standard_normal((len(WORDS), DIMS))).astype(np.float32))
        clean.save_word2vec_format(str(tmp / "n.bin"), binary=True)
        clean.save_word2vec_format(str(tmp / "n.vec"), binary=False)
        for path in (tmp / "n.bin", tmp / "n.vec"):
            neighbours(path, clean)
            analogies(path, clean)
            accuracy(tmp, path, clean)
        unit_and_back(tmp, clean)
    print("gensim:", ", ".join(f"{n} {what}" for what, n in checked.items()))


if __name__ == "__main__":
    main()
