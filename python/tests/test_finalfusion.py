# SPDX-License-Identifier: MIT
"""tenfold.compat.finalfusion compared with the package finalfusion: the results of every documented
method, and files of each that the other reads."""
import unittest

import support
from support import numpy as np

try:
    import finalfusion
    import finalfusion.compat
    import finalfusion.metadata
    import finalfusion.norms
    import finalfusion.storage.quantized
    import finalfusion.subword
    import finalfusion.vocab
except ImportError:
    finalfusion = None

if np is not None:
    import tenfold.compat.finalfusion as ours

WORDS = ["Tübingen", "New York", "a", "ordinary", "实验", "x" * 40, "Grüße"]


def answer(call):
    """The result of a call as plain values, or the class of its error."""
    try:
        found = call()
    except Exception as error:
        return "OSError" if isinstance(error, OSError) else type(error).__name__
    if isinstance(found, np.ndarray):
        return found.tolist()
    return found


class Names:
    """The two packages under the same names."""

    def __init__(self, package):
        self.top, self.compat, self.vocab = package, package.compat, package.vocab
        self.storage, self.subword, self.norms = package.storage, package.subword, package.norms
        self.metadata = package.metadata
        self.pq = package.storage.PQ if package is ours else package.storage.quantized.PQ
        self.result = package.embeddings.SimilarityResult


def vocabs(p):
    """One vocabulary of each kind."""
    grams = ["<ord", "ord", "ordi", "dina", "ary>"]
    index = {"<ord": 0, "ord": 1, "ordi": 1, "dina": 2, "ary>": 3}
    return [p.vocab.SimpleVocab(list(WORDS)),
            p.vocab.FinalfusionBucketVocab(list(WORDS), p.subword.FinalfusionHashIndexer(5, 3, 5)),
            p.vocab.FastTextVocab(list(WORDS), p.subword.FastTextIndexer(37, 2, 4)),
            p.vocab.ExplicitVocab(list(WORDS), p.subword.ExplicitIndexer(grams, 3, 4, index))]


def storages(p, rows, seed=3):
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((rows, 6)).astype("f4")
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    books = rng.standard_normal((3, 4, 2)).astype("f4")
    codes = rng.integers(0, 4, (rows, 3)).astype("u1")
    turn = np.linalg.qr(rng.standard_normal((6, 6)))[0].astype("f4")
    norms = rng.random(rows).astype("f4")
    return [p.storage.NdArray(matrix), p.storage.QuantizedArray(p.pq(books, None), codes, None),
            p.storage.QuantizedArray(p.pq(books, turn), codes, norms)]


@unittest.skipIf(np is None or finalfusion is None, "needs numpy and finalfusion")
class Beside(support.Case):
    def setUp(self):
        super().setUp()
        self.both = [Names(finalfusion), Names(ours)]

    def same(self, call, *things, close=False):
        """call(object) has the same result for the objects of both packages."""
        a, b = (answer(lambda thing=thing: call(thing)) for thing in things)
        if close and not isinstance(a, (str, type(None))):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
        else:
            self.assertEqual(a, b)

    def test_ngrams(self):
        for word in (*WORDS, "", "ab", "abcdefgh"):
            for how in ((), (1, 2), (3, 6, False), (2, 2, True), (4, 3), (0, 2)):
                self.same(lambda p: p.subword.ngrams(word, *how), *self.both)
        self.same(lambda p: p.subword.ngrams(None), *self.both)

    def test_indexers(self):
        makers = [lambda p: p.subword.FinalfusionHashIndexer(7, 2, 5),
                  lambda p: p.subword.FinalfusionHashIndexer(),
                  lambda p: p.subword.FastTextIndexer(1000, 3, 6),
                  lambda p: p.subword.FastTextIndexer(),
                  lambda p: p.subword.ExplicitIndexer(["abc", "bcd", "<Gr"], 3, 4),
                  lambda p: p.subword.ExplicitIndexer(["abc", "bcd"], 3, 3, {"abc": 0, "bcd": 0})]
        for make in makers:
            a, b = (make(p) for p in self.both)
            for name in ("min_n", "max_n", "upper_bound", "buckets_exp", "n_buckets", "ngrams",
                         "ngram_index"):
                self.same(lambda i, name=name: getattr(i, name), a, b)
            for word in (*WORDS, "abcd", "", "é"):
                self.same(lambda i, word=word: i(word), a, b)
                for how in (dict(), dict(offset=10), dict(bracket=False), dict(with_ngrams=True)):
                    self.same(lambda i, word=word, how=how: i.subword_indices(word, **how), a, b)
            self.same(lambda i: i.subword_indices(None), a, b)
            self.assertEqual(b, make(self.both[1]))
            self.assertNotEqual(b, self.both[1].subword.FastTextIndexer(3))
        for wrong in (lambda p: p.subword.FinalfusionHashIndexer(0),
                      lambda p: p.subword.FinalfusionHashIndexer(64),
                      lambda p: p.subword.FinalfusionHashIndexer(4, 5, 4),
                      lambda p: p.subword.FastTextIndexer(0), lambda p: p.subword.FastTextIndexer(1 << 32),
                      lambda p: p.subword.ExplicitIndexer(["a", "a"]),
                      lambda p: p.subword.ExplicitIndexer(["a", "b"], 1, 1, {"a": 0, "b": 2})):
            self.same(wrong, *self.both)
        a, b = (p.subword.ExplicitIndexer(["abc", "bcd"]) for p in self.both)
        for call in (len, list, lambda i: "abc" in i, lambda i: ["abc", "x"] in i, lambda i: 3 in i,
                     lambda i: i["bcd"], lambda i: i["nope"]):
            self.same(call, a, b)

    def test_vocabularies(self):
        for a, b in zip(*(vocabs(p) for p in self.both)):
            for call in (len, list, lambda v: v.words, lambda v: v.word_index, lambda v: v.upper_bound,
                         lambda v: v.min_n, lambda v: v.max_n, lambda v: "a" in v, lambda v: "b" in v,
                         lambda v: ["a", "Grüße"] in v, lambda v: ["a", "b"] in v, lambda v: None in v,
                         lambda v: v.subwords("ordinal"), lambda v: v.subwords("ordinal", False),
                         lambda v: v.subword_indices("ordinal"), lambda v: v.idx("ordinal"),
                         lambda v: v.subword_indices("ordinal", with_ngrams=True),
                         lambda v: v["ordinal"], lambda v: v["a"], lambda v: v.idx("a"),
                         lambda v: v.idx("zzzzz", 7), lambda v: v["§"], lambda v: v == v,
                         lambda v: v == 3):
                self.same(call, a, b)
            self.same(lambda v: type(v)(["a", "a"], *([v.subword_indexer] if hasattr(
                v, "subword_indexer") else [])), a, b)
            if hasattr(a, "to_explicit"):
                x, y = a.to_explicit(), b.to_explicit()
                self.same(lambda v: (v.words, v.subword_indexer.ngrams, v.subword_indexer.ngram_index,
                                     v.upper_bound), x, y)
        self.same(lambda p: p.vocab.FinalfusionBucketVocab(["a"], p.subword.FastTextIndexer()), *self.both)
        self.same(lambda p: p.vocab.FinalfusionBucketVocab(["a"]).upper_bound, *self.both)
        self.same(lambda p: p.vocab.FastTextVocab(["a"]).upper_bound, *self.both)

    def test_storage(self):
        for i, (a, b) in enumerate(zip(*(storages(p, 9) for p in self.both))):
            for call in (lambda s: s.shape, len, lambda s: s[2], lambda s: s[[1, 3]], lambda s: s[-1],
                         lambda s: np.asarray(s[2:5]), lambda s: s[2:5].shape, lambda s: s[20],
                         lambda s: np.asarray(s), lambda s: s.quantized_len,
                         lambda s: s.quantizer.n_centroids, lambda s: s.quantizer.reconstructed_len,
                         lambda s: s.quantizer.subquantizers.tolist(),
                         lambda s: s.embedding(np.array([1, 2]), out=np.zeros((2, 6), "f4"))):
                self.same(call, a, b, close=True)
            self.assertIs(type(b[2:5]), type(b))
            self.assertIs(type(b[2]), np.ndarray)
            if i < 2:  # the package ignores the norms of rows
                self.same(lambda s: np.stack(list(s)), a, b, close=True)
        self.same(lambda p: p.storage.NdArray(np.zeros(3, "f4")), *self.both)
        self.same(lambda p: p.storage.NdArray(np.zeros((3, 2), "f8")), *self.both)
        self.same(lambda p: p.norms.Norms(np.zeros((3, 2), "f4")), *self.both)
        self.same(lambda p: p.norms.Norms(np.arange(5, dtype="f4"))[1:3], *self.both)
        self.same(lambda p: type(p.norms.Norms(np.arange(5, dtype="f4"))[1:3]).__name__, *self.both)

    def all_embeddings(self):
        """(theirs, ours) with every vocabulary and storage, with and without norms."""
        made = []
        for p in self.both:
            some = []
            for vocab in vocabs(p):
                for i, storage in enumerate(storages(p, vocab.upper_bound)):
                    norms = p.norms.Norms(np.arange(1, 8, dtype="f4")) if i < 2 else None
                    meta = p.metadata.Metadata({"a": 1, "t": {"x y": "q\"\n", "l": [1.5, 2.0]}}) \
                        if i else None
                    some.append(p.top.Embeddings(storage, vocab, norms, meta))
            made.append(some)
        return zip(*made)

    def test_embeddings(self):
        for a, b in self.all_embeddings():
            for word in ("a", "Grüße", "ordinal", "§"):
                self.same(lambda e: e.embedding(word), a, b, close=True)
                self.same(lambda e: e[word], a, b, close=True)
                self.same(lambda e: word in e, a, b)
                self.same(lambda e: e.embedding(word, np.zeros(6, "f4")), a, b, close=True)
                self.same(lambda e: e.embedding(word, np.zeros(6, "f4"), np.ones(6, "f4")), a, b,
                          close=True)
                self.same(lambda e: e.embedding(word, default=3), a, b, close=True)
                for part in (0, 1):
                    self.same(lambda e: e.embedding_with_norm(word)[part], a, b, close=True)
                    self.same(lambda e: e.embedding_with_norm(
                        word, np.zeros(6, "f4"), (np.ones(6, "f4"), 3.0))[part], a, b, close=True)
            self.same(lambda e: [entry[0] for entry in e], a, b)
            self.same(lambda e: len(next(iter(e))), a, b)
            self.same(lambda e: [type(c).__name__ for c in e.chunks()], a, b)
            self.same(lambda e: e.metadata, a, b)

    def results(self, call, a, b):
        x, y = call(a), call(b)
        if x is None or y is None:
            self.assertIs(x, y)
            return
        scores = [r.similarity for r in x]
        np.testing.assert_allclose(scores, [r.similarity for r in y], rtol=1e-4, atol=1e-5)
        # Among equal hits, it is undefined which one is first and which one is last.
        if all(one - next_one > 1e-4 for one, next_one in zip(scores, scores[1:])):
            self.assertEqual([r.word for r in x][:-1], [r.word for r in y][:-1])

    def test_queries(self):
        for a, b in self.all_embeddings():
            if not isinstance(b.storage, ours.NdArray):
                a._storage = finalfusion.storage.NdArray(np.asarray(a.storage))  # the package's class has no dot()
            vector = np.asarray(b.storage)[3]
            for call in (lambda e: e.word_similarity("a", 3), lambda e: e.word_similarity("ordinal", 3),
                         lambda e: e.word_similarity("§", 3), lambda e: e.embedding_similarity(vector, 4),
                         lambda e: e.embedding_similarity(vector, 2, {"a", "ordinary"}),
                         lambda e: e.analogy("a", "Grüße", "ordinary", 3),
                         lambda e: e.analogy("a", "Grüße", "ordinary", 3, set()),
                         lambda e: e.analogy("a", "Grüße", "ordinary", 2, {"实验"}),
                         lambda e: e.analogy("a", "§", "ordinary")):
                self.results(call, a, b)
        x = ours.SimilarityResult("a", 0.5)
        self.assertEqual(x < ours.SimilarityResult("b", 0.6), True)
        self.assertEqual(x == ours.SimilarityResult("b", 0.5), True)

    def test_refusals(self):
        for call in (lambda p: p.top.Embeddings(storages(p, 6)[0], vocabs(p)[0]),
                     lambda p: p.top.Embeddings(np.zeros((7, 2), "f4"), vocabs(p)[0]),
                     lambda p: p.top.Embeddings(storages(p, 7)[0], WORDS),
                     lambda p: p.top.Embeddings(storages(p, 7)[0], vocabs(p)[0], np.ones(7, "f4")),
                     lambda p: p.top.Embeddings(storages(p, 7)[0], vocabs(p)[0], None, {}),
                     lambda p: p.top.Embeddings(storages(p, 7)[0], vocabs(p)[0]).bucket_to_explicit(),
                     lambda p: p.top.load_finalfusion(None), lambda p: p.top.load_vocab("nowhere"),
                     lambda p: p.compat.write_fasttext(self.path("x"), p.top.Embeddings(
                         storages(p, 39)[0], vocabs(p)[1]))):
            self.same(call, *self.both)

    def test_explicit(self):
        for a, b in self.all_embeddings():
            if isinstance(b.vocab, (ours.FinalfusionBucketVocab, ours.FastTextVocab)):
                if isinstance(b.storage, ours.NdArray):
                    x, y = a.bucket_to_explicit(), b.bucket_to_explicit()
                    np.testing.assert_array_equal(x.storage, y.storage)
                    self.same(lambda e: e.vocab.words, x, y)

    def test_files_both_ways(self):
        for i, (a, b) in enumerate(self.all_embeddings()):
            mine, theirs = self.path(f"{i}.ours"), self.path(f"{i}.theirs")
            a.write(theirs)
            b.write(mine)
            # An explicit vocabulary: the package writes a wrong chunk length.
            if not isinstance(b.vocab, ours.ExplicitVocab) and not (b.metadata or a.metadata):
                with open(mine, "rb") as x, open(theirs, "rb") as y:
                    self.assertEqual(x.read(), y.read(), i)
            for path, mmap in ((mine, False), (theirs, False), (mine, True)):
                x, y = (p.top.load_finalfusion(path, mmap) for p in self.both)
                np.testing.assert_allclose(np.asarray(x.storage), np.asarray(y.storage), rtol=1e-5,
                                           atol=1e-6)
                self.same(lambda e: (e.vocab.words, e.vocab.upper_bound, type(e.vocab).__name__,
                                     type(e.storage).__name__, e.metadata), x, y)
                self.same(lambda e: e.norms, x, y)
                self.assertEqual(y.vocab, b.vocab)
                self.results(lambda e: e.word_similarity("a", 3), b, y)
            for load in (lambda p: p.top.load_vocab(mine).words,
                         lambda p: np.asarray(p.top.load_storage(mine)).shape,
                         lambda p: p.norms.load_norms(mine), lambda p: p.top.load_metadata(mine),
                         lambda p: p.top.load_metadata(theirs),
                         lambda p: p.vocab.load_simple_vocab(mine).words,
                         lambda p: p.vocab.load_explicit_vocab(mine).words,
                         lambda p: p.vocab.load_fasttext_vocab(mine).words,
                         lambda p: p.vocab.load_finalfusion_bucket_vocab(mine).words,
                         lambda p: p.storage.load_ndarray(mine).shape,
                         lambda p: p.storage.load_quantized_array(mine).shape):
                self.same(load, *self.both)

    def test_one_chunk(self):
        """The package reads chunks that are written alone."""
        for p in self.both[1:]:
            for i, chunk in enumerate([*vocabs(p), *storages(p, 5), p.norms.Norms(np.ones(4, "f4")),
                                       p.metadata.Metadata({"a": True})]):
                path = self.path(f"chunk{i}")
                chunk.write(path)
                name = "vocab" if i < 4 else "storage" if i < 7 else "norms" if i == 7 else "metadata"
                x, y = (getattr(getattr(q, name), f"load_{name}")(path) for q in self.both)
                if name == "vocab":
                    self.assertEqual(x.words, y.words)
                elif name == "metadata":
                    self.assertEqual(x, y)
                else:
                    np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-5)

    def test_other_formats(self):
        for name, load, write in (("bin", "load_word2vec", "write_word2vec"),
                                  ("txt", "load_text", "write_text"),
                                  ("dims", "load_text_dims", "write_text_dims"),
                                  ("ft", "load_fasttext", "write_fasttext")):
            words = [w for w in WORDS if " " not in w]  # the package writes files that it cannot read
            made = []
            for p in self.both:
                matrix = np.random.default_rng(5).standard_normal((6, 4)).astype("f4")
                matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
                e = p.top.Embeddings(p.storage.NdArray(matrix), p.vocab.SimpleVocab(words),
                                     p.norms.Norms(np.arange(1, 7, dtype="f4")))
                path = self.path(f"{len(made)}.{name}")
                getattr(p.compat, write)(path, e)
                made.append(path)
            # The package marks a fastText model without subwords as pruned, which fastText refuses.
            for path in made[name == "ft":]:
                x, y = (getattr(p.compat, load)(path) for p in self.both)
                self.same(lambda e: e.vocab.words, x, y)
                np.testing.assert_allclose(x.storage, y.storage, rtol=1e-5, atol=1e-6)
                np.testing.assert_allclose(x.norms, y.norms, rtol=1e-5)
                if name == "ft":
                    self.same(lambda e: {k: e.metadata[k] for k in ("dims", "model", "loss", "buckets")},
                              x, y)

    def test_words_that_are_no_text(self):
        path = self.write("w.bin", b"2 2\na " + bytes(8) + b"\xff\xfe " + bytes(8))
        self.same(lambda p: p.compat.load_word2vec(path), *self.both)
        self.assertEqual(ours.load_word2vec(path, lossy=True).vocab.words, ["a", "\ufffd\ufffd"])

if __name__ == "__main__":
    unittest.main()
