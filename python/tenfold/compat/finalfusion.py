# SPDX-License-Identifier: MIT
"""The names of finalfusion 0.7 over our reader: loading, vectors, similarity, analogies, writing.

    import tenfold.compat.finalfusion as finalfusion
    e = finalfusion.load_finalfusion("wiki.fifu")
    e.word_similarity("Berlin")

Storage, vocabulary and norms are what numpy, lists and dicts are elsewhere. What makes new
vocabularies with subwords by hand (indexers, chunks) is not here: tenfold.convert() does that.
"""
import os as _os
from functools import total_ordering as _total_ordering

import numpy as _np

from .. import Error as _Error, meta as _meta, open as _open, save as _save
from ..embeddings import Embeddings as _Own
from ._write import written as _written

__all__ = ["Embeddings", "FinalfusionFormatError", "Metadata", "NdArray", "Norms", "SimilarityResult",
           "SimpleVocab", "load_fasttext", "load_finalfusion", "load_metadata", "load_norms",
           "load_storage", "load_text", "load_text_dims", "load_vocab", "load_word2vec",
           "write_fasttext", "write_text", "write_text_dims", "write_word2vec"]


class FinalfusionFormatError(Exception):
    """The file is not what was asked for."""


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


class _Floats(_np.ndarray):
    """An array of float32 of a number of dimensions that its class knows."""

    _dims = 0

    def __new__(cls, array):
        array = _np.asarray(array)
        if array.ndim != cls._dims or array.dtype != _np.float32:
            raise TypeError(f"expected float32 in {cls._dims} dimensions, not {array.dtype} in "
                            f"{array.ndim}")
        return array.view(cls)


class NdArray(_Floats):
    """A dense matrix of vectors. A row of it is a plain array."""

    _dims = 2

    def __getitem__(self, key):
        some = _np.asarray(self)[key]
        return some.view(NdArray) if isinstance(some, _np.ndarray) and some.ndim == 2 else some

    def write(self, file):
        _save(file, {"embeddings": _np.asarray(self)}, format="finalfusion", replace=True, as_is=True)


class Norms(_Floats):
    """The lengths of vectors before they were normalised."""

    _dims = 1


class Metadata(dict):
    """The metadata of a file."""


class SimpleVocab:
    """Words and their rows."""

    def __init__(self, words, _own=None):
        self.words = list(words)
        self.word_index = {word: i for i, word in enumerate(self.words)}
        if len(self.word_index) != len(self.words):
            raise AssertionError("the words are not unique")
        self._own = _own

    @property
    def upper_bound(self):
        return self._own.info["rows"] if self._own is not None else len(self.words)

    def idx(self, item, default=None):
        row = self.word_index.get(item)
        if row is None and self._own is not None and self._own.info["subwords"] != "none":
            row = [r for _, r in self._own.ngrams(item) if r is not None] or None
        return default if row is None else row

    def __getitem__(self, item):
        row = self.idx(item)
        if row is None:
            raise KeyError(item)
        return row

    def __contains__(self, item):
        """Is that word there; are all these?"""
        if isinstance(item, str) or not hasattr(item, "__iter__"):
            return item in self.word_index
        return all(word in self.word_index for word in item)

    def __iter__(self):
        return iter(self.words)

    def __len__(self):
        return len(self.words)

    def __eq__(self, other):
        return isinstance(other, SimpleVocab) and self.words == other.words

    __hash__ = None  # type: ignore[assignment]


class Embeddings:
    """Vectors and a vocabulary, perhaps with norms and metadata."""

    def __init__(self, storage, vocab, norms=None, metadata=None, origin="<memory>"):
        if storage is None or vocab is None or storage.shape[0] != vocab.upper_bound:
            raise AssertionError("the storage must have as many rows as the vocabulary needs")
        self._storage, self._vocab, self.origin = storage, vocab, origin
        self.norms, self.metadata = norms, metadata
        self._own = None
        self._loaded = None  # what the file has: (norms, metadata)

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
        if norms is not None and (not isinstance(norms, Norms) or len(norms) != len(self._vocab)):
            raise AssertionError("expected Norms, as many as there are words")
        self._norms = norms

    @property
    def metadata(self):
        return self._metadata

    @metadata.setter
    def metadata(self, metadata):
        if metadata is not None and not isinstance(metadata, Metadata):
            raise TypeError("expected Metadata or None")
        self._metadata = metadata

    # ---------------------------------------------------------------- vectors

    def _found(self, word):
        row = self.vocab.idx(word)
        if row is None or isinstance(row, list) and not row:
            return None
        if not isinstance(row, list):
            return _np.array(self.storage[row]), 1.0 if self.norms is None else self.norms[row]
        vector = _np.add.reduce(_np.asarray(self.storage[row]))
        length = _np.linalg.norm(vector)
        return vector / (length or 1), length

    def embedding(self, word, out=None, default=None):
        found = self._found(word)
        if found is None:
            if out is None or default is None:
                return default
            out[:] = default
            return out
        if out is None:
            return found[0]
        out[:] = found[0]
        return out

    def embedding_with_norm(self, word, out=None, default=None):
        if self.norms is None:
            raise TypeError("these embeddings have no norms")
        found = self._found(word)
        if found is None:
            return default
        if out is None:
            return found
        out[:] = found[0]
        return out, found[1]

    def __getitem__(self, item):
        found = self._found(item)
        if found is None:
            raise KeyError(item)
        return found[0]

    def __contains__(self, item):
        return self.vocab.idx(item) is not None

    def __iter__(self):
        for i, word in enumerate(self.vocab.words):
            vector = self.storage[i]
            yield (word, vector) if self.norms is None else (word, vector, self.norms[i])

    def __len__(self):
        return len(self.vocab)

    # ---------------------------------------------------------------- queries

    def _nearest(self, query, k, skip):
        rows = {self.vocab.word_index[w] for w in skip if w in self.vocab.word_index}
        if self._own is not None:
            hits = self._own.nearest(query, k, "dot", skip=rows)
            return [SimilarityResult(h.word, h.similarity) for h in hits]
        scores = _np.asarray(self.storage[:len(self.vocab)]) @ query
        best = [i for i in _np.argsort(-scores, kind="stable") if i not in rows][:k]
        return [SimilarityResult(self.vocab.words[i], scores[i]) for i in best]

    def word_similarity(self, query, k=10):
        found = self._found(query)
        return None if found is None else self._nearest(found[0], k, {query})

    def embedding_similarity(self, query, k=10, skip=None):
        return self._nearest(_np.asarray(query, _np.float32), k, set() if skip is None else skip)

    def analogy(self, word1, word2, word3, k=1, skip=None):
        found = [self._found(word) for word in (word1, word2, word3)]
        if any(f is None for f in found):
            return None
        query = found[1][0] - found[0][0] + found[2][0]
        query = query / (_np.linalg.norm(query) or 1)
        return self._nearest(query.astype(_np.float32),
                             k, {word1, word2, word3} if skip is None else skip)

    # ------------------------------------------------------------------- save

    def write(self, file):
        """Writes it as finalfusion, which keeps everything."""
        _write(self, file, "finalfusion", False)

    def bucket_to_explicit(self):
        raise NotImplementedError("`tenfold explicit` does that")


def _write(embeddings, file, format, allow_loss=None):
    own = embeddings._own
    if own is None:
        raise NotImplementedError("only embeddings that were loaded can be written; "
                                  "tenfold.save() writes arrays")
    norms, metadata = embeddings._loaded
    if embeddings.norms is not norms:
        raise NotImplementedError("the norms are not those of the file: they cannot be written")
    changed = embeddings.metadata != metadata
    if changed and format != "finalfusion":
        raise NotImplementedError(f"{format} has no place for metadata that were set")
    _written(own.file, file, format, allow_loss)
    if changed:
        key = "finalfusion.metadata"
        if embeddings.metadata is None:
            _meta(file, remove=[key])
        else:
            _meta(file, {key: dict(embeddings.metadata)})


def _load(file, format, lossy=False, mmap=False):
    if file is None:
        raise TypeError("expected a path, not None")
    del lossy
    try:
        own = _Own(_open(file, format=format, warn=False, access="mmap" if mmap else "auto"))
    except OSError:
        raise
    except _Error as error:
        raise FinalfusionFormatError(str(error)) from error
    matrix = own.matrix
    if not mmap:
        matrix = _np.array(matrix)
    vocab = SimpleVocab(own.words, own)
    norms = own.norms
    metadata = own.metadata.get("finalfusion.metadata") if format == "finalfusion" else None
    made = Embeddings(NdArray(matrix), vocab, None if norms is None else Norms(norms),
                      Metadata(metadata) if isinstance(metadata, dict) else None,
                      origin=_os.fspath(file) if not isinstance(file, int) else str(file))
    made._own = own
    made._loaded = (made.norms, None if made.metadata is None else Metadata(made.metadata))
    return made


def load_finalfusion(file, mmap=False):
    return _load(file, "finalfusion", mmap=mmap)


def load_word2vec(file, lossy=False):
    return _load(file, "word2vec", lossy)


def load_text(file, lossy=False):
    return _load(file, "text", lossy)


def load_text_dims(file, lossy=False):
    return _load(file, "textdims", lossy)


def load_fasttext(file, lossy=False):
    return _load(file, "fasttext", lossy)


def load_vocab(file):
    return load_finalfusion(file).vocab


def load_storage(file, mmap=False):
    return load_finalfusion(file, mmap).storage


def _there(thing, what):
    if thing is None:
        raise ValueError(f"the file has no {what}")
    return thing


def load_norms(file):
    return _there(load_finalfusion(file).norms, "norms")


def load_metadata(file):
    return _there(load_finalfusion(file).metadata, "metadata")


def write_word2vec(file, embeddings, *, allow_loss=None):
    """What the format has no place for is told by a tenfold.LossWarning; allow_loss=False refuses."""
    _write(embeddings, file, "word2vec", allow_loss)


def _plain(sep):
    if sep != " ":
        raise NotImplementedError("the separator is a blank")


def write_text(file, embeddings, sep=" ", *, allow_loss=None):
    _plain(sep)
    _write(embeddings, file, "text", allow_loss)


def write_text_dims(file, embeddings, sep=" ", *, allow_loss=None):
    _plain(sep)
    _write(embeddings, file, "textdims", allow_loss)


def write_fasttext(file, embeddings, *, allow_loss=None):
    _write(embeddings, file, "fasttext", allow_loss)
