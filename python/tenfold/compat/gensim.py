# SPDX-License-Identifier: MIT
"""KeyedVectors as in gensim 4, read-only: for files of any format. If the file has subwords, words
that are not in the vocabulary have vectors, too.

    from tenfold.compat.gensim import KeyedVectors
    kv = KeyedVectors.load_word2vec_format("vectors.bin", binary=True)
    kv.most_similar("Berlin", topn=5)
"""
import numpy as _np

from ..embeddings import Embeddings as _Embeddings
from ._write import written as _written

__all__ = ["KeyedVectors"]


def _pairs(keys):
    """Keys with weights: 'a', ('a', 0.5), a vector, or a list of these."""
    if keys is None:
        return []
    if isinstance(keys, (str, int, _np.integer)) or \
            isinstance(keys, _np.ndarray) and keys.ndim == 1 or \
            isinstance(keys, tuple) and len(keys) == 2 and not isinstance(keys[1], str):
        keys = [keys]
    return [key if isinstance(key, tuple) else (key, 1.0) for key in keys]


class KeyedVectors:
    """Words and their vectors."""

    def __init__(self, source, *, limit=None, datatype=_np.float32, **opening):
        self._emb = source if isinstance(source, _Embeddings) else _Embeddings(source, **opening)
        n = len(self._emb)
        self._n = n if limit is None else min(n, int(limit))
        self._dtype = _np.dtype(datatype)
        self._words = self._index = self._vectors = self._norms = None

    @classmethod
    def load_word2vec_format(cls, fname, fvocab=None, binary=False, encoding="utf8",
                             unicode_errors="strict", limit=None, datatype=_np.float32,
                             no_header=False):
        """A file in a format of word2vec. It is detected from the bytes where that is possible."""
        if fvocab is not None:
            raise NotImplementedError("fvocab is not supported: counts are not read")
        format = "word2vec" if binary else "text" if no_header else "textdims"
        self = cls(fname, limit=limit, datatype=datatype, format=format, warn=False)
        if unicode_errors == "strict" and encoding.lower().replace("-", "") == "utf8":
            for word in self.index_to_key:
                word.encode()
        return self

    @classmethod
    def load(cls, fname, mmap=None):
        """A file of any format that Tenfold reads; gensim's own pickles are not among them."""
        return cls(fname)

    # ------------------------------------------------------------------- words

    @property
    def index_to_key(self):
        if self._words is None:
            self._words = list(self._emb.words[:self._n])
        return self._words

    @property
    def key_to_index(self):
        if self._index is None:
            self._index = {}
            for i, word in enumerate(self.index_to_key):
                self._index.setdefault(word, i)
        return self._index

    def __len__(self):
        return self._n

    def __contains__(self, key):
        return self.has_index_for(key)

    def has_index_for(self, key):
        return self.get_index(key, -1) >= 0

    def get_index(self, key, default=None):
        if isinstance(key, (int, _np.integer)) and 0 <= key < self._n:
            return int(key)
        row = self._emb.index(key) if isinstance(key, str) else None
        if row is not None and row < self._n:
            return row
        if default is not None:
            return default
        raise KeyError(f"Key '{key}' not present")

    # ----------------------------------------------------------------- vectors

    @property
    def vectors(self):
        if self._vectors is None:
            matrix = _np.asarray(self._emb.matrix[:self._n])
            norms = self._emb.norms
            if norms is not None:  # gensim has one matrix, not unit vectors and norms
                matrix = matrix * _np.asarray(norms[:self._n])[:, None]
            self._vectors = matrix.astype(self._dtype, copy=False)
        return self._vectors

    @property
    def vector_size(self):
        return self._emb.dims

    def get_vector(self, key, norm=False):
        row = self.get_index(key, -1)
        if row >= 0:
            vector = self.vectors[row]
        else:
            vector = self._emb.embedding(key) if isinstance(key, str) else None
            if vector is None:
                raise KeyError(f"Key '{key}' not present")
        if not norm:
            return vector
        length = _np.linalg.norm(vector)
        return vector / length if length else vector

    word_vec = get_vector

    def __getitem__(self, key_or_keys):
        if isinstance(key_or_keys, (str, int, _np.integer)):
            return self.get_vector(key_or_keys)
        return _np.vstack([self.get_vector(key) for key in key_or_keys])

    def fill_norms(self, force=False):
        if self._norms is None or force:
            self._norms = _np.linalg.norm(self.vectors, axis=1)

    @property
    def norms(self):
        self.fill_norms()
        return self._norms

    def get_normed_vectors(self):
        lengths = self.norms[:, None]
        return self.vectors / _np.where(lengths == 0, 1, lengths)

    # ----------------------------------------------------------------- queries

    def _unit(self, key):
        if isinstance(key, _np.ndarray):
            length = _np.linalg.norm(key)
            return key / length if length else key
        return self.get_vector(key, norm=True)

    def get_mean_vector(self, keys, weights=None, pre_normalize=True, post_normalize=False,
                        ignore_missing=True):
        """The mean of the vectors of words (as unit vectors, if they are normalised first) and of
        vectors as they are."""
        if len(keys) == 0:
            raise ValueError("cannot compute mean with no input")
        weights = [1.0] * len(keys) if weights is None else weights
        if len(weights) != len(keys):
            raise ValueError("keys and weights array must have same number of elements")
        total, sum_of = _np.zeros(self.vector_size, self._dtype), 0.0
        for key, weight in zip(keys, weights):
            try:
                vector = key if isinstance(key, _np.ndarray) else self.get_vector(key, pre_normalize)
            except KeyError:
                if ignore_missing:
                    continue
                raise KeyError(f"Key '{key}' not present in vocabulary") from None
            total = total + weight * vector
            sum_of += abs(weight)
        if sum_of:
            total = total / sum_of
        length = _np.linalg.norm(total)
        return total / length if post_normalize and length else total

    def most_similar(self, positive=None, negative=None, topn=10, clip_start=0, clip_end=None,
                     restrict_vocab=None):
        """The words nearest to the mean of some, away from others: [(word, cosine), …]."""
        if topn is not None and topn < 1:
            return []
        plus, minus = _pairs(positive), _pairs(negative)
        pairs = plus + [(key, -weight) for key, weight in minus]
        mean = self.get_mean_vector([k for k, _ in pairs], [w for _, w in pairs],
                                    pre_normalize=True, post_normalize=True, ignore_missing=False)
        end = min(self._n, *(n for n in (clip_end, restrict_vocab) if n), self._n)
        queried = {self.get_index(k, -1) for k, _ in pairs if not isinstance(k, _np.ndarray)} - {-1}
        if topn is None:
            lengths = _np.where(self.norms == 0, 1, self.norms)[clip_start:end]
            return self.vectors[clip_start:end] @ mean / lengths
        if clip_start == 0 and end == len(self._emb) and not self._emb.info["has_norms"]:
            hits = self._emb.nearest(mean, topn, skip=queried)
            return [(h.word, float(h.similarity)) for h in hits]
        scores = self.vectors[clip_start:end] @ mean / _np.where(self.norms == 0, 1,
                                                                 self.norms)[clip_start:end]
        best = _np.argsort(-scores, kind="stable")[:topn + len(queried)] + clip_start
        return [(self.index_to_key[i], float(scores[i - clip_start])) for i in best
                if i not in queried][:topn]

    def similar_by_word(self, word, topn=10, restrict_vocab=None):
        return self.most_similar([word], topn=topn, restrict_vocab=restrict_vocab)

    def similar_by_key(self, key, topn=10, restrict_vocab=None):
        return self.most_similar([key], topn=topn, restrict_vocab=restrict_vocab)

    def similar_by_vector(self, vector, topn=10, restrict_vocab=None):
        return self.most_similar([_np.asarray(vector)], topn=topn, restrict_vocab=restrict_vocab)

    def similarity(self, w1, w2):
        return float(_np.dot(self._unit(w1), self._unit(w2)))

    def distance(self, w1, w2):
        return 1 - self.similarity(w1, w2)

    @staticmethod
    def cosine_similarities(vector_1, vectors_all):
        """The cosines of a vector and each row of a matrix."""
        lengths = _np.linalg.norm(vectors_all, axis=1) * _np.linalg.norm(vector_1)
        return _np.dot(vectors_all, vector_1) / lengths

    def distances(self, word_or_vector, other_words=()):
        """The distances from a word or vector to some words, or to all."""
        vector = word_or_vector if isinstance(word_or_vector, _np.ndarray) else \
            self.get_vector(word_or_vector)
        rows = [self.get_index(word) for word in other_words] if other_words else slice(None)
        return 1 - self.cosine_similarities(vector, self.vectors[rows])

    def closer_than(self, key1, key2):
        """The words that are nearer to the first than the second is."""
        distances, first, second = self.distances(key1), self.get_index(key1), self.get_index(key2)
        return [self.index_to_key[i] for i in _np.where(distances < distances[second])[0] if i != first]

    words_closer_than = closer_than

    def rank(self, key1, key2):
        """The rank of the second key among the neighbours of the first, counted from 1."""
        return len(self.closer_than(key1, key2)) + 1

    def most_similar_to_given(self, key1, keys_list):
        return max(keys_list, key=lambda key: self.similarity(key1, key))

    def relative_cosine_similarity(self, wa, wb, topn=10):
        nearest = self.similar_by_word(wa, topn)
        if not nearest:
            raise ValueError("there are no similar words to compare with")
        return self.similarity(wa, wb) / sum(similarity for _, similarity in nearest)

    def n_similarity(self, ws1, ws2):
        if not (len(ws1) and len(ws2)):
            raise ZeroDivisionError("At least one of the passed list is empty.")
        return float(_np.dot(self.get_mean_vector(ws1, pre_normalize=False, post_normalize=True),
                             self.get_mean_vector(ws2, pre_normalize=False, post_normalize=True)))

    def most_similar_cosmul(self, positive=None, negative=None, topn=10, restrict_vocab=None):
        """The most similar words, by products of cosines instead of their sum."""
        if topn is not None and topn < 1:
            return []
        plus, minus = [k for k, _ in _pairs(positive)], [k for k, _ in _pairs(negative)]
        if not plus:
            raise ValueError("cannot compute similarity with no input")
        end = min(self._n, restrict_vocab or self._n)
        unit = self.get_normed_vectors()[:end]

        def product(keys):
            result = _np.ones(end)
            for key in keys:
                vector = key if isinstance(key, _np.ndarray) else self.get_vector(key, norm=True)
                result = result * (1 + unit @ vector) / 2
            return result
        scores = product(plus) / (product(minus) + 0.000001)
        if topn is None:
            return scores
        queried = {self.get_index(k, -1) for k in plus + minus if not isinstance(k, _np.ndarray)}
        best = _np.argsort(-scores, kind="stable")[:topn + len(queried)]
        return [(self.index_to_key[i], float(scores[i])) for i in best if i not in queried][:topn]

    def rank_by_centrality(self, words, use_norm=True):
        words = [w for w in words if w in self]
        if not words:
            raise ValueError("cannot select a word from an empty list")
        vectors = _np.vstack([self._unit(w) if use_norm else self.get_vector(w) for w in words])
        mean = vectors.mean(axis=0)
        mean = mean / (_np.linalg.norm(mean) or 1)
        return sorted(zip(vectors @ mean, words), reverse=True)

    def doesnt_match(self, words):
        return self.rank_by_centrality(words)[-1][1]

    # -------------------------------------------------------------------- save

    def save_word2vec_format(self, fname, fvocab=None, binary=False, total_vec=None, write_header=True,
                             prefix="", append=False, sort_attr="count", *, allow_loss=None):
        """Writes words and vectors in their order. A tenfold.LossWarning lists what the format
        cannot store; allow_loss=False raises an error instead."""
        if fvocab is not None or prefix or append:
            raise NotImplementedError("fvocab, prefix and append are not supported")
        if self._n != len(self._emb) or total_vec not in (None, self._n):
            raise NotImplementedError("only all words can be saved; load the file without a limit")
        format = "word2vec" if binary else "textdims" if write_header else "text"
        numbers = {} if binary else {"numbers": "python"}
        _written(self._emb.file, fname, format, allow_loss, **numbers)
