# SPDX-License-Identifier: MIT
"""Word vectors of files of any format: vectors of words, neighbours and analogies.

    from tenfold.embeddings import Embeddings
    e = Embeddings("wiki.fifu")
    e["Berlin"]
    e.similar(["Berlin", "Paris"], k=10)
    e.analogy("man", "king", "woman")
"""
from _collections_abc import Sequence as _Sequence
from typing import NamedTuple

import numpy as _np

from . import File as _File, _tenfold, open as _open

__all__ = ["Embeddings", "Hit"]


class Hit(NamedTuple):
    """A hit of a search."""
    word: "str | None"
    similarity: float
    row: int


class Words(_Sequence):
    """The words in the order of their rows. Each str is made on demand."""

    __slots__ = ("_emb", "_n")

    def __init__(self, emb, n):
        self._emb, self._n = emb, n

    def __len__(self):
        return self._n

    def __getitem__(self, i):
        if isinstance(i, slice):
            return [self._emb.word(row) for row in range(*i.indices(self._n))]
        row = i + self._n if i < 0 else i
        if not 0 <= row < self._n:
            raise IndexError(i)
        return self._emb.word(row)

    def __iter__(self):
        return iter(self._emb.words())

    def __contains__(self, word):
        return isinstance(word, str) and self._emb.find(word) is not None

    def index(self, word, *limits):
        row = self._emb.find(word)
        if row is None or limits:
            return super().index(word, *limits)
        return row

    def __repr__(self):
        return f"<{self._n} words>"


class Embeddings:
    """Word vectors of a file: a File, or any source of tenfold.open().

    embeddings, vocab   names of the tensors, if they cannot be detected
    The other keywords are those of tenfold.open().
    """

    def __init__(self, source, *, embeddings=None, vocab=None, threads=0, **opening):
        self.file = source if isinstance(source, _File) else _open(source, **opening)
        self._emb = _tenfold.Embeddings(self.file, {"embeddings": embeddings, "vocab": vocab,
                                                    "threads": threads})
        self.info = self._emb.info
        self.dims = self.info["dims"]

    # ------------------------------------------------------------------ words

    @property
    def words(self):
        """A sequence of the words."""
        return Words(self._emb, self.info["words"] if self.info["has_words"] else 0)

    def __len__(self):
        return self.info["words"]

    def __iter__(self):
        return iter(self.words)

    def __contains__(self, word):
        """Does the word have a vector, of its own or by its subwords?"""
        if self._emb.find(word) is not None:
            return True
        return self.info["subwords"] != "none" and self._emb.vectors([word])[1][0][0]

    def index(self, word, default=None):
        """The row of a word of the vocabulary."""
        row = self._emb.find(word)
        return default if row is None else row

    def ngrams(self, word):
        """[(n-gram, row or None), …] of any word."""
        return self._emb.ngrams(word)

    # ---------------------------------------------------------------- vectors

    def embedding(self, word, out=None, default=None):
        """The vector of a word, or the default. `out`: an array to fill with it."""
        array, found = self._emb.vectors([word])
        if not found[0][0]:
            if default is None or out is None:
                return default
            out[...] = default
            return out
        vector = array.numpy()[0]
        if out is None:
            return vector
        out[...] = vector
        return out

    def embedding_with_norm(self, word, out=None, default=None):
        """(vector, its length before it was normalised), or the default."""
        array, found = self._emb.vectors([word])
        if not found[0][0]:
            return default
        vector = array.numpy()[0]
        if out is not None:
            out[...] = vector
            vector = out
        return vector, found[0][3]

    def __getitem__(self, word):
        vector = self.embedding(word)
        if vector is None:
            raise KeyError(word)
        return vector

    def vectors(self, words):
        """The vectors of many words as one matrix. KeyError for a word without a vector."""
        words = list(words)
        array, found = self._emb.vectors(words)
        for word, (is_found, *_) in zip(words, found):
            if not is_found:
                raise KeyError(word)
        return array.numpy()

    @property
    def matrix(self):
        """All rows. If the file is mapped and not quantized, a read-only array without a copy."""
        tensor = self.file[self.info["embeddings"]]
        if not self.info["quantized"]:
            return tensor.numpy()
        return self._emb.rows(range(self.info["rows"])).numpy()

    @property
    def norms(self):
        """The lengths of the vectors before they were normalised, or None."""
        return self.file["norms"].numpy() if self.info["has_norms"] and "norms" in self.file else None

    @property
    def metadata(self):
        """The attributes of the file."""
        return self.file.attrs

    # ---------------------------------------------------------------- queries

    def similar(self, words, k=10, metric="cosine", *, skip=(), threads=0):
        """The neighbours of a word (a list of Hits), or of several words (a list of lists). None
        for a word without a vector."""
        one = isinstance(words, str)
        hits, found = self._emb.similar([words] if one else list(words),
                                        self._how(k, metric, skip, threads))
        lists = [[Hit(*h) for h in each] if f[0] else None for each, f in zip(hits, found)]
        return lists[0] if one else lists

    def nearest(self, matrix, k=10, metric="cosine", *, skip=(), threads=0):
        """The words nearest to a vector (a list of Hits), or to each row of a matrix."""
        matrix = _np.ascontiguousarray(matrix, dtype=_np.float32)
        if matrix.ndim not in (1, 2) or matrix.shape[-1] != self.dims:
            raise ValueError(f"each vector must have {self.dims} numbers, not "
                             f"{matrix.shape[-1] if matrix.ndim else 0}")
        hits = self._emb.nearest(matrix, self._how(k, metric, skip, threads))[0]
        lists = [[Hit(*h) for h in each] for each in hits]
        return lists[0] if matrix.ndim == 1 else lists

    def analogy(self, a, b, c, k=1, skip=None, *, raw=False, threads=0):
        """Solves "a is to b as c is to ?". The results leave out the three words, or those of
        `skip`. None if one of the three has no vector."""
        how = self._how(k, "cosine", skip or (), threads)
        how["keep_asked"] = skip is not None
        how["raw"] = raw
        hits, found = self._emb.analogy([a, b, c], how)
        return [Hit(*h) for h in hits[0]] if all(f[0] for f in found) else None

    def _how(self, k, metric, skip, threads):
        rows = [self._emb.find(w) if isinstance(w, str) else w for w in skip]
        return {"k": k, "metric": metric, "skip": [r for r in rows if r is not None],
                "threads": threads}

    # ------------------------------------------------------------------- save

    def quantize(self, path, *, format="finalfusion", method="pq", bits=0, subquantizers=0,
                 iterations=0, attempts=0, seed=0, threads=0, as_is=False, replace=False,
                 progress=None):
        """Saves the file with a quantized matrix. The result has the losses: cosine and
        euclidean."""
        from ._plain import progress as _progress
        return self._emb.quantize(path, {
            "format": format, "method": method, "bits": bits, "subquantizers": subquantizers,
            "iterations": iterations, "attempts": attempts, "seed": seed, "threads": threads,
            "as_is": as_is, "replace": replace, "progress": _progress(progress)})

    def __repr__(self):
        return f"<tenfold.Embeddings: {len(self)} words, {self.dims} dimensions, " \
               f"subwords: {self.info['subwords']}>"
