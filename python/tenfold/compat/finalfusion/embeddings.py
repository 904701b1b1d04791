# SPDX-License-Identifier: MIT
"""Vectors and a vocabulary, perhaps with norms and metadata."""
import os as _os
from functools import total_ordering as _total_ordering

import numpy as _np

from ...embeddings import Embeddings as _Own
from .io import FinalfusionFormatError as _FormatError, made as _made, opened as _opened
from .metadata import Metadata as _Metadata, metadata_of as _metadata_of
from .norms import Norms as _Norms, norms_of as _norms_of
from .storage import NdArray as _NdArray, Storage as _Storage, storage_of as _storage_of
from .vocab import (FastTextVocab as _FastTextVocab, FinalfusionBucketVocab as _BucketVocab,
                    Vocab as _Vocab, vocab_of as _vocab_of)

__all__ = ["Embeddings", "SimilarityResult", "load_finalfusion"]


@_total_ordering
class SimilarityResult:
    """A word and how similar it is; ordered by similarity."""

    __slots__ = ("word", "similarity")

    def __init__(self, word, similarity):
        self.word, self.similarity = word, similarity

    def __eq__(self, other):
        return self.similarity == other.similarity

    def __lt__(self, other):
        return self.similarity < other.similarity

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self):
        return f"SimilarityResult(word={self.word!r}, similarity={self.similarity!r})"


class Embeddings:
    """Vectors and a vocabulary, perhaps with norms and metadata."""

    def __init__(self, storage, vocab, norms=None, metadata=None, origin="<memory>"):
        if not isinstance(storage, _Storage) or not isinstance(vocab, _Vocab):
            raise AssertionError("expected a Storage and a Vocab")
        if storage.shape[0] != vocab.upper_bound:
            raise AssertionError("the storage must have as many rows as the vocabulary needs")
        if metadata is not None and not isinstance(metadata, _Metadata):
            raise AssertionError("expected Metadata or None")
        self._storage, self._vocab, self._metadata, self.origin = storage, vocab, metadata, origin
        self.norms = norms
        self._own = None

    @property
    def storage(self):
        return self._storage

    @property
    def vocab(self):
        return self._vocab

    @property
    def norms(self):
        return self._norms

    @norms.setter
    def norms(self, norms):
        if norms is not None and (not isinstance(norms, _Norms) or len(norms) != len(self._vocab)):
            raise AssertionError("expected one norm for each word")
        self._norms = norms

    @property
    def metadata(self):
        return self._metadata

    @metadata.setter
    def metadata(self, metadata):
        if metadata is not None and not isinstance(metadata, _Metadata):
            raise TypeError("expected Metadata or None")
        self._metadata = metadata

    def chunks(self):
        """The chunks to write, in their order in the file."""
        return [c for c in (self._metadata, self._vocab, self._storage, self._norms) if c is not None]

    # ---------------------------------------------------------------- vectors

    def _vector(self, row, out=None):
        """The vector of a result of vocab.idx(), and its length."""
        found = self._storage[row]
        if not isinstance(row, list):
            norm = None if self._norms is None else self._norms[row]
        else:
            found = _np.add.reduce(found, 0)
            norm = _np.linalg.norm(found)
            if norm:
                found /= norm
        if out is None:
            return found, norm
        out[:] = found
        return out, norm

    def embedding(self, word, out=None, default=None):
        row = self._vocab.idx(word)
        if row is not None:
            return self._vector(row, out)[0]
        if out is None or default is None:
            return default
        out[:] = default
        return out

    def embedding_with_norm(self, word, out=None, default=None):
        if self._norms is None:
            raise TypeError("these embeddings have no norms")
        row = self._vocab.idx(word)
        if row is not None:
            return self._vector(row, out)
        if out is None or default is None:
            return default
        out[:] = default[0]
        return out, default[1]

    def __getitem__(self, item):
        return self._vector(self._vocab[item])[0]

    def __contains__(self, item):
        return item in self._vocab

    def __iter__(self):
        if self._norms is None:
            return zip(self._vocab, self._storage)
        return zip(self._vocab, self._storage, self._norms)

    def __len__(self):
        return len(self._vocab)

    # ---------------------------------------------------------------- queries

    def _search_engine(self):
        """The tenfold.embeddings.Embeddings for queries, or None. A matrix in memory may have been
        changed since it was loaded, so numpy searches it; a mapped file and codes do not change."""
        if self._own is None and not isinstance(self._storage, _NdArray):
            self._own = _Own(_opened(memoryview(_made(None, *self._tensors()))))
        return self._own

    def _nearest(self, query, k, skip):
        index, words = self._vocab.word_index, self._vocab.words
        rows = {index[word] for word in skip if word in index}
        own = self._search_engine()
        if own is not None:
            hits = own.nearest(query, k, "dot", skip=rows)
            return [SimilarityResult(words[h.row], h.similarity) for h in hits]
        scores = _np.asarray(self._storage)[:len(words)].dot(query)
        most = min(k + len(rows), len(words))
        best = scores.argpartition(-most)[-most:] if most else []
        best = sorted((i for i in best if i not in rows), key=lambda i: -scores[i])[:k]
        return [SimilarityResult(words[i], scores[i]) for i in best]

    def word_similarity(self, query, k=10):
        vector = self.embedding(query)
        return None if vector is None else self._nearest(vector, k, {query})

    def embedding_similarity(self, query, k=10, skip=None):
        return self._nearest(query, k, set() if skip is None else skip)

    def analogy(self, word1, word2, word3, k=1, skip=None):
        a, b, c = (self.embedding(word) for word in (word1, word2, word3))
        if a is None or b is None or c is None:
            return None
        query = c + (b - a)
        query = query / (_np.linalg.norm(query) or 1)
        return self._nearest(query, k, {word1, word2, word3} if skip is None else skip)

    # ------------------------------------------------------------------- save

    def _tensors(self):
        tensors, attrs = {}, {}
        for chunk in self.chunks():
            chunk_tensors, chunk_attrs = chunk._tensors()
            tensors.update(chunk_tensors)
            attrs.update(chunk_attrs or {})
        return tensors, attrs

    def write(self, file):
        """Writes a finalfusion file, which keeps everything."""
        _made(file, *self._tensors())

    def bucket_to_explicit(self):
        """Embeddings whose vocabulary lists its n-grams, with the rows of these alone."""
        old = self._vocab
        if not isinstance(old, (_FastTextVocab, _BucketVocab)):
            raise TypeError("only embeddings with buckets can be converted to explicit n-grams")
        vocab = old.to_explicit()
        n, indexer = len(vocab), vocab.subword_indexer
        rows = [0] * vocab.upper_bound
        rows[:n] = range(n)
        for ngram in indexer:
            rows[n + indexer[ngram]] = n + old.subword_indexer(ngram)
        return Embeddings(_NdArray(_np.ascontiguousarray(self._storage[rows])), vocab, self._norms)


def load_finalfusion(file, mmap=False):
    with _opened(file, mmap=mmap) as f:
        vocab, storage = _vocab_of(f), _storage_of(f, mmap)
        if vocab is None or storage is None:
            raise _FormatError(f"the file has no {'vocabulary' if vocab is None else 'storage'}")
        made = Embeddings(storage, vocab, _norms_of(f), _metadata_of(f), origin_of(file))
        if mmap:
            made._own = _Own(f)
        return made


def origin_of(file):
    """The name of a source."""
    if isinstance(file, (str, bytes, _os.PathLike)):
        return _os.fspath(file)
    return str(file) if isinstance(file, int) else "<memory>"
