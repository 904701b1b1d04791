# SPDX-License-Identifier: MIT
"""Embeddings and the replacements of gensim and finalfusion, against numpy and these packages."""
import os
import unittest
import warnings

import support
from support import numpy as np

if np is not None:
    from tenfold.embeddings import Embeddings
import tenfold

try:
    import gensim.models
except ImportError:
    gensim = None
try:
    import finalfusion
except ImportError:
    finalfusion = None


@unittest.skipIf(np is None, "needs numpy")
class EmbCase(support.Case):
    def setUp(self):
        super().setUp()
        rng = np.random.default_rng(7)
        self.words = [f"w{i}" for i in range(300)] + ["Grüße"]
        self.matrix = rng.standard_normal((301, 8)).astype("f4")
        self.file = self.write("v.bin", b"301 8\n" + b"".join(
            w.encode() + b" " + row.tobytes() for w, row in zip(self.words, self.matrix)))

    def unit(self):
        return self.matrix / np.linalg.norm(self.matrix, axis=1, keepdims=True)


class Own(EmbCase):
    def test_words(self):
        e = Embeddings(self.file, format="word2vec")
        self.assertEqual((len(e), e.dims), (301, 8))
        self.assertEqual(list(e), self.words)
        self.assertEqual(e.words[-1], "Grüße")
        self.assertEqual(e.words[2:4], ["w2", "w3"])
        self.assertEqual(e.words.index("w7"), 7)
        self.assertIn("w5", e)
        self.assertNotIn("nope", e)
        with self.assertRaises(IndexError):
            e.words[301]

    def test_vectors(self):
        e = Embeddings(self.file, format="word2vec")
        np.testing.assert_array_equal(e["Grüße"], self.matrix[300])
        np.testing.assert_array_equal(e.vectors(["w1", "w0"]), self.matrix[[1, 0]])
        np.testing.assert_array_equal(e.matrix, self.matrix)
        with self.assertRaises(KeyError):
            e["nope"]
        with self.assertRaises(KeyError):
            e.vectors(["w1", "nope"])
        self.assertIsNone(e.embedding("nope"))
        out = np.zeros(8, "f4")
        self.assertIs(e.embedding("w3", out), out)
        np.testing.assert_array_equal(out, self.matrix[3])

    def test_queries(self):
        e = Embeddings(self.file, format="word2vec")
        scores = self.unit() @ self.unit()[5]
        order = [i for i in np.argsort(-scores) if i != 5][:4]
        hits = e.similar("w5", 4)
        self.assertEqual([h.row for h in hits], order)
        np.testing.assert_allclose([h.similarity for h in hits], scores[order], rtol=1e-5)
        many = e.similar(["w5", "nope", "w6"], 4)
        self.assertEqual(many[0], hits)
        self.assertIsNone(many[1])
        near = e.nearest(self.matrix[:3], 1)
        self.assertEqual([h[0].word for h in near], ["w0", "w1", "w2"])
        self.assertEqual(e.nearest(self.matrix[4], 2, skip=["w4"])[0].row != 4, True)
        query = self.unit()[1] - self.unit()[0] + self.unit()[2]
        scores = self.unit() @ (query / np.linalg.norm(query))
        order = [i for i in np.argsort(-scores) if i not in (0, 1, 2)][:3]
        self.assertEqual([h.row for h in e.analogy("w0", "w1", "w2", 3)], order)
        self.assertIsNone(e.analogy("w0", "nope", "w2"))
        self.assertEqual(len(e.similar("w0", 10000)), 300)
        with self.assertRaises(ValueError):
            e.nearest(np.zeros(7), 1)
        with self.assertRaises(ValueError):
            e.similar("w0", metric="nonsense")

    def test_quantize(self):
        e = Embeddings(self.file, format="word2vec")
        told = e.quantize(self.path("q.fifu"), bits=4, subquantizers=4)
        self.assertGreater(told["cosine"], 0.5)
        q = Embeddings(self.path("q.fifu"))
        self.assertTrue(q.info["quantized"])
        self.assertEqual(q.matrix.shape, (301, 8))

    def test_outlives_its_file(self):
        e = Embeddings(self.file, format="word2vec")
        matrix = e.matrix
        e.file.close()
        np.testing.assert_array_equal(e["w1"], self.matrix[1])
        del e
        np.testing.assert_array_equal(matrix, self.matrix)


class Gensim(EmbCase):
    def setUp(self):
        super().setUp()
        from tenfold.compat.gensim import KeyedVectors
        self.ours = KeyedVectors.load_word2vec_format(self.file, binary=True)

    def test_alone(self):
        kv = self.ours
        self.assertEqual(kv.index_to_key, self.words)
        self.assertEqual(kv.key_to_index["w9"], 9)
        np.testing.assert_array_equal(kv["w1"], self.matrix[1])
        np.testing.assert_array_equal(kv[["w1", "w2"]], self.matrix[1:3])
        with self.assertRaisesRegex(KeyError, "Key 'nope' not present"):
            kv["nope"]
        kv.save_word2vec_format(self.path("out.txt"))
        with open(self.path("out.txt"), encoding="utf8") as f:
            self.assertEqual(f.readline(), "301 8\n")

    @unittest.skipIf(gensim is None, "needs gensim")
    def test_every_method(self):
        """The results of both, or the class and text of the error."""
        theirs = gensim.models.KeyedVectors.load_word2vec_format(self.file, binary=True)
        v, words = self.matrix, ["w1", "w2", "w3", "w9"]

        def answer(kv, call):
            try:
                found = call(kv)
            except (KeyError, ValueError, ZeroDivisionError, TypeError) as error:
                return f"{type(error).__name__}: {error}"
            return found

        calls = [lambda k: k["w1"], lambda k: k[words], lambda k: k["nope"], lambda k: k[3], lambda k: len(k),
                 lambda k: "w1" in k, lambda k: "nope" in k, lambda k: k.has_index_for("w2"),
                 lambda k: k.get_index("w3"), lambda k: k.get_index("nope", 7), lambda k: k.get_index("nope"),
                 lambda k: k.get_index(5), lambda k: k.get_index(-5), lambda k: k.get_vector("w4"),
                 lambda k: k.get_vector("w4", norm=True), lambda k: k.get_vector("nope"),
                 lambda k: k.get_mean_vector(words), lambda k: k.get_mean_vector([]),
                 lambda k: k.get_mean_vector(words, [1, 2, 3, -4], post_normalize=True),
                 lambda k: k.get_mean_vector(["w1", "nope"]), lambda k: k.get_mean_vector(words, [1]),
                 lambda k: k.get_mean_vector(["nope"], ignore_missing=False),
                 lambda k: k.get_mean_vector(["w1", 3 * v[2]], pre_normalize=False),
                 lambda k: k.get_mean_vector(["w1", 3 * v[2]]), lambda k: k.vectors, lambda k: k.vector_size,
                 lambda k: k.key_to_index, lambda k: k.index_to_key, lambda k: k.get_normed_vectors(),
                 lambda k: k.most_similar("w5", topn=0), lambda k: k.most_similar("nope"),
                 lambda k: k.most_similar([]), lambda k: k.most_similar(negative=["w1"], topn=4),
                 lambda k: k.most_similar(["w1", 3 * v[2]], topn=5), lambda k: k.most_similar(v[3], topn=2),
                 lambda k: k.most_similar([("w1", 2.0), (v[3], -0.5)], topn=5),
                 lambda k: k.most_similar("w5", clip_start=10, clip_end=60, topn=5),
                 lambda k: k.most_similar("w5", restrict_vocab=20, topn=5), lambda k: k.most_similar(4, topn=3),
                 lambda k: k.similar_by_word("w6", 3), lambda k: k.similar_by_key("w6", 3, 50),
                 lambda k: k.similar_by_vector(v[9], 3), lambda k: k.similar_by_word("nope"),
                 lambda k: k.most_similar_cosmul("w1", topn=3), lambda k: k.most_similar_cosmul([]),
                 lambda k: k.most_similar_cosmul(negative="w1"), lambda k: k.most_similar_cosmul("w1", topn=0),
                 lambda k: k.most_similar_cosmul(["w1", "w2"], "w3", topn=None),
                 lambda k: k.most_similar_cosmul("nope"), lambda k: k.rank_by_centrality(words),
                 lambda k: k.rank_by_centrality(words, use_norm=False), lambda k: k.doesnt_match(words),
                 lambda k: k.doesnt_match([]), lambda k: k.cosine_similarities(v[1], v[2:5]),
                 lambda k: k.distances("w1"), lambda k: k.distances("w1", ["w2", "w3"]),
                 lambda k: k.distances(v[3], ["w2"]), lambda k: k.distances("nope"),
                 lambda k: k.distance("w1", "w2"), lambda k: k.similarity("w1", "w2"),
                 lambda k: k.similarity("w1", "nope"), lambda k: k.n_similarity(words, ["w8"]),
                 lambda k: k.n_similarity([], words), lambda k: k.closer_than("w1", "w2"),
                 lambda k: k.words_closer_than("w1", "w2"), lambda k: k.rank("w1", "w2"),
                 lambda k: k.rank("w1", "nope"), lambda k: k.most_similar_to_given("w1", words[1:]),
                 lambda k: k.relative_cosine_similarity("w1", "w2"), lambda k: k.word_vec("w7")]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for i, call in enumerate(calls):
                a, b = answer(theirs, call), answer(self.ours, call)
                if isinstance(a, (np.ndarray, float, np.floating)):
                    np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5, err_msg=str(i))
                elif isinstance(a, list) and a and isinstance(a[0], tuple):
                    number = 0 if isinstance(a[0][1], str) else 1
                    self.assertEqual([x[1 - number] for x in a], [x[1 - number] for x in b], i)
                    np.testing.assert_allclose([x[number] for x in b], [x[number] for x in a], atol=1e-5)
                else:
                    self.assertEqual(a, b, i)

    @unittest.skipIf(gensim is None, "needs gensim")
    def test_against_gensim(self):
        theirs = gensim.models.KeyedVectors.load_word2vec_format(self.file, binary=True)
        asked = [dict(positive="w5"), dict(positive=["w1", "w2"], negative=["w3"]),
                 dict(positive=[("w1", 0.5), "w4"]), dict(positive=[self.matrix[8]]),
                 dict(positive=["w5"], restrict_vocab=50), dict(positive="w7", topn=3)]
        for how in asked:
            a, b = theirs.most_similar(**how), self.ours.most_similar(**how)
            self.assertEqual([w for w, _ in a], [w for w, _ in b], how)
            np.testing.assert_allclose([s for _, s in a], [s for _, s in b], atol=1e-6)
        np.testing.assert_allclose(theirs.most_similar("w5", topn=None),
                                   self.ours.most_similar("w5", topn=None), atol=1e-6)
        self.assertAlmostEqual(theirs.similarity("w1", "w2"), self.ours.similarity("w1", "w2"), 6)
        words = ["w1", "w2", "w3", "w9"]
        self.assertEqual(theirs.doesnt_match(words), self.ours.doesnt_match(words))
        a = theirs.most_similar_cosmul(["w1", "w2"], ["w3"])
        b = self.ours.most_similar_cosmul(["w1", "w2"], ["w3"])
        self.assertEqual([w for w, _ in a], [w for w, _ in b])
        for how in (dict(binary=True), dict(), dict(write_header=False)):
            theirs.save_word2vec_format(self.path("a"), **how)
            self.ours.save_word2vec_format(self.path("b"), **how)
            self.assertEqual(self.bytes_of("a"), self.bytes_of("b"), how)
        self.assertAlmostEqual(theirs.n_similarity(words[:2], words[2:]),
                               self.ours.n_similarity(words[:2], words[2:]), 6)


class Finalfusion(EmbCase):
    def setUp(self):
        super().setUp()
        self.fifu = self.path("v.fifu")
        tenfold.convert(self.file, self.fifu, source_format="word2vec")
        from tenfold.compat import finalfusion as ours
        self.package = ours
        self.ours = ours.load_finalfusion(self.fifu)

    def test_alone(self):
        e = self.ours
        self.assertEqual(e.storage.shape, (301, 8))
        self.assertEqual(e.vocab.words, self.words)
        self.assertEqual(e.vocab["w3"], 3)
        self.assertEqual(len(e.norms), 301)
        self.assertIsNone(e.word_similarity("nope"))
        with self.assertRaises(TypeError):
            self.package.load_finalfusion(None)
        with self.assertRaises(IOError):
            self.package.load_finalfusion("foo")
        with self.assertRaises(self.package.FinalfusionFormatError):
            self.package.load_finalfusion(self.file)
        with self.assertRaises(AssertionError):
            self.package.Embeddings(e.storage[:10], e.vocab)
        e.write(self.path("again.fifu"))
        self.assertTrue(tenfold.diff(self.fifu, self.path("again.fifu")).same)

    def test_what_is_set_is_written(self):
        e, p = self.ours, self.package
        with self.assertRaises(TypeError):
            e.metadata = {"a": 1}
        e.metadata = p.Metadata({"author": "me"})
        e.write(self.path("told.fifu"))
        self.assertEqual(p.load_metadata(self.path("told.fifu")), {"author": "me"})
        with self.assertRaises(tenfold.LossyError):
            p.write_word2vec(self.path("w.bin"), e, allow_loss=False)
        self.assertFalse(os.path.exists(self.path("w.bin")))
        again = p.load_finalfusion(self.path("told.fifu"))
        again.metadata = None
        again.write(self.path("untold.fifu"))
        with self.assertRaises(ValueError):
            p.load_metadata(self.path("untold.fifu"))
        with self.assertRaises(AssertionError):
            e.norms = np.ones(301, "f4")
        e.norms = p.Norms(np.full(301, 2, "f4"))
        e.write(self.path("norms.fifu"))
        np.testing.assert_array_equal(p.load_norms(self.path("norms.fifu")), np.full(301, 2, "f4"))
        e.norms = None
        with self.assertRaises(TypeError):
            e.embedding_with_norm("w1")
        e.storage[5] = e.storage[7]  # a search sees the changed vectors
        self.assertEqual(e.word_similarity("w7", 1)[0].word, "w5")

    def test_no_loss_in_silence(self):
        """A text of vectors cannot hold norms: their loss is reported or refused, never hidden."""
        with_text = self.path("texts.fifu")
        tenfold.convert(self.fifu, with_text)
        tenfold.meta(with_text, {"finalfusion.metadata": {"author": "me"}})
        e = self.package.load_finalfusion(with_text)
        with self.assertWarnsRegex(tenfold.LossWarning, "does not keep everything") as told:
            self.package.write_word2vec(self.path("w.bin"), e)
        self.assertFalse(told.warning.report.lossless)
        with self.assertRaises(tenfold.LossyError):
            self.package.write_word2vec(self.path("no.bin"), e, allow_loss=False)
        self.assertFalse(os.path.exists(self.path("no.bin")))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.package.write_word2vec(self.path("w.bin"), e, allow_loss=True)
            e.write(self.path("whole.fifu"))
        from tenfold.compat.gensim import KeyedVectors
        with self.assertWarns(tenfold.LossWarning):
            KeyedVectors(with_text).save_word2vec_format(self.path("k.txt"))
        with self.assertRaises(NotImplementedError):
            KeyedVectors(with_text, limit=3).save_word2vec_format(self.path("k.txt"))

    @unittest.skipIf(finalfusion is None, "needs finalfusion")
    def test_against_finalfusion(self):
        theirs = finalfusion.load_finalfusion(self.fifu)
        np.testing.assert_array_equal(theirs["w5"], self.ours["w5"])
        np.testing.assert_allclose(theirs.norms, self.ours.norms)
        a, b = theirs.embedding_with_norm("w6"), self.ours.embedding_with_norm("w6")
        np.testing.assert_array_equal(a[0], b[0])
        self.assertAlmostEqual(float(a[1]), float(b[1]), 5)
        for name, args in (("word_similarity", ("w5", 5)), ("analogy", ("w1", "w2", "w3", 4)),
                           ("analogy", ("w1", "w2", "w3", 4, set())),
                           ("embedding_similarity", (self.unit()[9], 5))):
            a, b = getattr(theirs, name)(*args), getattr(self.ours, name)(*args)
            self.assertEqual([r.word for r in a], [r.word for r in b], (name, args))
            np.testing.assert_allclose([r.similarity for r in a], [r.similarity for r in b],
                                       atol=1e-5)
        self.assertEqual(len(self.ours.word_similarity("w5", 10000)), 300)


if __name__ == "__main__":
    unittest.main()
