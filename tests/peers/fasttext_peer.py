#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares Tenfold with fastText itself and with gensim.

    fasttext_peer.py TENFOLD

fastText trains small models of every kind. Tenfold gives the same answers: vectors of known and
unknown words to 1e-6, the same neighbours. Models converted to other formats and back have the same
bytes. fastText and gensim load what Tenfold makes from them, and from other embeddings, with the same
vectors. Needs fasttext-wheel (or fasttext), gensim, finalfusion and numpy.
"""
import json
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile

import fasttext
import numpy as np
from finalfusion import load_fasttext, load_finalfusion
from gensim.models.fasttext import load_facebook_model, load_facebook_vectors

TENFOLD = sys.argv[1]
LOSS = "--allow-loss=tensor"  # only training needs these
TMP = pathlib.Path(tempfile.mkdtemp(prefix="tenfold-fasttext-"))
UNKNOWN = ["unknown", "iddqd", "Überhaus", "häuserbau", "實驗室", "w", "ab", "z" * 60, "der die", "-"]
checked = {"models": 0, "vectors": 0, "neighbours": 0, "bytes": 0, "loaded": 0}
random.seed(11)
fasttext.FastText.eprint = lambda *_: None  # a warning with every model that is loaded


def run(*arguments, codes=(0,)):
    r = subprocess.run([TENFOLD, *map(str, arguments)], capture_output=True, check=False)
    if r.returncode not in codes:
        sys.exit(f"{arguments}: exit {r.returncode}: {r.stderr.decode()}")
    return r


def vectors(path, words):
    out = run("vector", "--json", path, *words, codes=(0, 1)).stdout.decode()  # 1: some have none
    return [json.loads(line) for line in out.splitlines()]


def need(ok, *what):
    if not ok:
        sys.exit(" ".join(map(str, what)))


def close(a, b, what, tolerance=1e-6):
    a, b = np.asarray(a, np.float32), np.asarray(b, np.float32)
    scale = max(1.0, float(np.abs(b).max(initial=0)))
    worst = float(np.abs(a - b).max(initial=0))
    need(a.shape == b.shape and worst <= tolerance * scale, what, "differs by", worst)
    checked["vectors"] += 1


# ---------------------------------------------------------------- models
WORDS = ["über", "unter", "ganz", "und", "der", "die", "das", "haus", "häuser", "auf", "vor", "durch", "實驗",
         "word", "words", "wording", "x", "a"] + [f"w{i}" for i in range(120)]
TEXT, LABELLED = TMP / "text", TMP / "labelled"
TEXT.write_text("".join(" ".join(random.choices(WORDS, k=12)) + "\n" for _ in range(500)), encoding="utf-8")
LABELLED.write_text("".join(f"__label__{random.choice('abc')} " + " ".join(random.choices(WORDS, k=9)) + "\n"
                            for _ in range(500)), encoding="utf-8")
BYTES = TMP / "bytes"
BYTES.write_bytes(b"".join(b" ".join(random.choices([b"zee\xc3n", b"\xff\xfe", b"\x80a", b"rivieren", b"meren", b"\xe5\xae"],
                                                    k=9)) + b"\n" for _ in range(200)))


def unsupervised(name, text=TEXT, **how):
    m = fasttext.train_unsupervised(str(text), minCount=1, epoch=2, verbose=0, thread=1, **how)
    m.save_model(str(TMP / name))
    return name


def supervised(name, quantize=None, **how):
    m = fasttext.train_supervised(str(LABELLED), minCount=1, epoch=3, verbose=0, thread=1, **how)
    if quantize is not None:
        m.quantize(input=str(LABELLED), retrain=False, verbose=0, **quantize)
    m.save_model(str(TMP / name))
    return name


MODELS = [
    unsupervised("skipgram.bin", model="skipgram", dim=13, bucket=1000),
    unsupervised("skipgram2.bin", model="skipgram", dim=32, bucket=999, minn=2, maxn=5),
    unsupervised("cbow.bin", model="cbow", dim=10, bucket=500, minn=1, maxn=4),
    unsupervised("hs.bin", model="skipgram", dim=8, bucket=640, loss="hs", minn=2, maxn=3),
    unsupervised("maxn0.bin", model="skipgram", dim=8, maxn=0),
    *[supervised(f"labels_{loss}.bin", dim=8, loss=loss, minn=2, maxn=4, bucket=1000)
      for loss in ("ns", "hs", "softmax", "ova")],
    supervised("word_ngrams.bin", dim=8, wordNgrams=2, bucket=500),
    supervised("no_ngrams.bin", dim=8),
    *[supervised(f"q{i}.ftz", {"qnorm": qnorm, "dsub": dsub, "cutoff": cutoff}, dim=12, minn=2, maxn=4, bucket=900)
      for i, (qnorm, dsub, cutoff) in enumerate([(False, 2, 0), (True, 3, 0), (True, 2, 600), (False, 4, 300)])],
]
UNEVEN = supervised("uneven.ftz", {"qnorm": True, "dsub": 2}, dim=11, minn=2, maxn=4, bucket=900)
ODD = unsupervised("bytes.bin", BYTES, model="skipgram", dim=6, bucket=300, minn=1, maxn=3)


# ---------------------------------------------------------------- questions
def raw_words(path):
    """The words of a model as bytes; fastText's Python package cannot return all of them."""
    data = path.read_bytes()
    size, nwords = struct.unpack_from("<ii", data, 64)
    at, out = 92, []
    for _ in range(nwords):
        end = data.index(b"\0", at)
        out.append(data[at:end])
        at = end + 10
    return out


def check_questions(name):
    path, model = TMP / name, fasttext.load_model(str(TMP / name))
    words = [w.decode() for w in raw_words(path)]
    for answer, word in zip(vectors(path, words + UNKNOWN), words + UNKNOWN):
        want = model.get_word_vector(word)
        if not want.any() and word not in words:
            need("error" in answer or not any(answer.get("vector", [0])), name, word, "has a vector")
            continue
        need(answer["word"] == word and answer["known"] == (word in words), name, word)
        close(answer["vector"], want, (name, word))
    for word in [*words[:12], *UNKNOWN[:5]]:
        if not model.get_word_vector(word).any():
            continue
        want = model.get_nearest_neighbors(word, k=7)
        have = json.loads(run("similar", "--json", "-k", 7, path, word).stdout)["results"]
        for (score, other), hit in zip(want, have):
            need(hit["word"] == other or abs(hit["score"] - score) < 2e-6, name, word, hit, other)
            need(abs(hit["score"] - score) < 2e-6, name, word, hit, score)
        checked["neighbours"] += 1


def check_bytes(name):
    for by_way_of in ("zt", "safetensors"):
        run("convert", TMP / name, TMP / f"way.{by_way_of}", "--force")
        run("convert", TMP / f"way.{by_way_of}", TMP / "back.bin", "-t", "fasttext", "--force")
        need((TMP / name).read_bytes() == (TMP / "back.bin").read_bytes(), name, "by way of", by_way_of)
        checked["bytes"] += 1


for name_ in [*MODELS, UNEVEN, ODD]:
    if name_ not in (UNEVEN, ODD):
        check_questions(name_)
    check_bytes(name_)
    checked["models"] += 1


# ---------------------------------------------------------------- analogies
def check_analogies(name):
    path, model = TMP / name, fasttext.load_model(str(TMP / name))
    some = [random.sample(WORDS, 3) for _ in range(40)]
    for a, b, c in (("haus", "häuser", "word"), ("der", "die", "das"), ("w1", "w2", "unknown"), *some):
        if not all(model.get_word_vector(w).any() for w in (a, b, c)):
            continue  # a word without any known n-gram
        want = model.get_analogies(b, a, c, k=5)
        have = json.loads(run("analogy", "--json", "-k", 5, path, a, b, c).stdout)["results"]
        for (score, other), hit in zip(want, have):
            # fastText divides by the length plus 1e-8, which matters for short vectors.
            need(abs(hit["score"] - score) < 2e-5, name, a, b, c, hit, other, score)
        need(have[0]["word"] == want[0][1] or want[0][0] - want[1][0] < 2e-5, name, a, b, c, have[0], want[0])
        checked["neighbours"] += 1


# ---------------------------------------------------------------- conversions
def loads_as(path, words, want, tolerance=1e-6):
    """fastText and gensim load the file, with these vectors."""
    model = fasttext.load_model(str(path))
    vectors_, full = load_facebook_vectors(str(path)), load_facebook_model(str(path))
    for word, vector in zip(words, want):
        close(model.get_word_vector(word), vector, (path, word, "in fastText"), tolerance)
        if word != "</s>":  # which gensim brackets like any other
            close(vectors_[word], vector, (path, word, "in gensim"), tolerance)
            close(full.wv[word], vector, (path, word, "in gensim"), tolerance)
    checked["loaded"] += 1


def check_finalfusion(name):
    """Imported as in finalfusion's own package, and converted back."""
    path, fifu, back = TMP / name, TMP / "v.fifu", TMP / "again.bin"
    run("convert", "-q", "--force", path, fifu, codes=(5,))  # counts and output have no place in that format
    run("convert", "--force", LOSS, path, fifu)
    theirs, ours = load_fasttext(str(path)), load_finalfusion(str(fifu))
    need(theirs.vocab.words == ours.vocab.words, name, "other words")
    close(ours.storage, theirs.storage, (name, "rows"), 2e-6)
    close(ours.norms, theirs.norms, (name, "norms"), 2e-6)
    for word in UNKNOWN[:6]:
        want = theirs.embedding(word)
        need((want is None) == (ours.embedding(word) is None), name, word)
        if want is not None and np.isfinite(want).all():  # the package divides zeros by their length
            close(ours.embedding(word), want, (name, word), 5e-6)
            close(vectors(fifu, [word])[0]["vector"], want, (name, word, "asked"), 5e-6)
    model = fasttext.load_model(str(path))
    words = [w for w in theirs.vocab.words if w != "</s>"] + UNKNOWN[:6]
    want = [model.get_word_vector(w) for w in words]
    run("convert", "--force", "-t", "fasttext", fifu, back)
    loads_as(back, words, want, 2e-5)
    run("convert", "--force", LOSS, "--as-is", "--fold", "fasttext", path, fifu)
    run("convert", "--force", "--fold", "fasttext", "-t", "fasttext", fifu, back)
    loads_as(back, ["</s>", *words], [model.get_word_vector("</s>"), *want], 2e-5)
    rows = {w: v["vector"] for w, v in zip(words, vectors(fifu, words))}
    for word in words[:-6]:
        close(rows[word], model.get_word_vector(word), (name, word, "folded as fastText does"))


def check_simple(name):
    """Words without n-grams, from finalfusion and to it."""
    path, fifu, back = TMP / name, TMP / "v.fifu", TMP / "again.bin"
    run("convert", "--force", LOSS, "--as-is", path, fifu)
    model, ours = fasttext.load_model(str(path)), load_finalfusion(str(fifu))
    for word in ours.vocab.words:
        close(ours.embedding(word), model.get_word_vector(word), (name, word), 0)
    run("convert", "--force", LOSS, path, TMP / "unit.fifu")
    unit = load_finalfusion(str(TMP / "unit.fifu"))
    for word in ours.vocab.words:
        v = model.get_word_vector(word)
        close(unit.embedding(word), v / np.linalg.norm(v), (name, word, "of length 1"))
        close(unit.embedding_with_norm(word)[1], np.linalg.norm(v), (name, word, "norm"))
    run("convert", "--force", "-t", "fasttext", TMP / "unit.fifu", back)
    loads_as(back, ours.vocab.words, [model.get_word_vector(w) for w in ours.vocab.words])


def check_dense(name):
    """A quantized model that was made dense has the same vectors."""
    path, back = TMP / name, TMP / "dense.bin"
    run("reconstruct", "--force", path, back, "-t", "fasttext")
    a, b = fasttext.load_model(str(path)), fasttext.load_model(str(back))
    for word in ["haus", "der", *UNKNOWN[:6]]:
        close(b.get_word_vector(word), a.get_word_vector(word), (name, word, "made dense"))
    checked["loaded"] += 1


def check_explicit(name):
    """Like finalfusion's package: buckets become explicit n-grams, from the model itself."""
    theirs = load_fasttext(str(TMP / name)).bucket_to_explicit()
    run("convert", "--force", LOSS, TMP / name, TMP / "v.fifu")
    run("explicit", "--force", TMP / "v.fifu", TMP / "e1.fifu")
    run("explicit", "--force", TMP / name, TMP / "e2.fifu")
    ours, once = load_finalfusion(str(TMP / "e1.fifu")), load_finalfusion(str(TMP / "e2.fifu"))
    need(theirs.storage.shape == ours.storage.shape == once.storage.shape, name, "explicit rows")
    for word in [*theirs.vocab.words, *UNKNOWN[:6]]:
        want = theirs.embedding(word)
        if want is not None and np.isfinite(want).all():
            close(ours.embedding(word), want, (name, word, "explicit"), 5e-6)
            close(once.embedding(word), want, (name, word, "explicit at once"), 5e-6)


for name_ in ("skipgram2.bin", "cbow.bin", "maxn0.bin"):
    check_analogies(name_)
for name_ in ("skipgram.bin", "skipgram2.bin", "hs.bin"):
    check_finalfusion(name_)
    check_explicit(name_)
check_simple("maxn0.bin")
for name_ in ("q0.ftz", "q1.ftz"):
    check_dense(name_)
run("convert", TMP / ODD, TMP / "odd.fifu", codes=(5,))  # words that are not UTF-8
run("convert", LOSS, "--in-option", "lossy=yes", TMP / ODD, TMP / "odd.fifu")
need(len(load_finalfusion(str(TMP / "odd.fifu")).vocab.words) == len(raw_words(TMP / ODD)), "lossy")
run("convert", TMP / "labels_ova.bin", TMP / "labels.fifu", codes=(5,))  # labels have no place there
run("similar", TMP / UNEVEN, "haus", codes=(4,))
shutil.rmtree(TMP)
print(", ".join(f"{n} {what}" for what, n in checked.items()))
