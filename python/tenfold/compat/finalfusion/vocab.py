# SPDX-License-Identifier: MIT
"""Vocabularies: words and their rows, and rows for the subwords of unknown words."""
from ..._values import _strings
from .io import Chunk as _Chunk, FinalfusionFormatError as _FormatError, opened as _opened
from .subword import ExplicitIndexer, FastTextIndexer, FinalfusionHashIndexer, ngrams as _ngrams

__all__ = ["ExplicitVocab", "FastTextVocab", "FinalfusionBucketVocab", "SimpleVocab", "SubwordVocab",
           "Vocab", "load_explicit_vocab", "load_fasttext_vocab", "load_finalfusion_bucket_vocab",
           "load_simple_vocab", "load_vocab"]


class Vocab(_Chunk):
    """Words and their rows."""

    _kind = ""  # in the attributes of a file

    def __init__(self, words):
        self._words = words
        self._index = {word: i for i, word in enumerate(words)}
        if len(self._index) != len(words):
            raise AssertionError("the words are not unique")

    @property
    def words(self):
        return self._words

    @property
    def word_index(self):
        return self._index

    @property
    def upper_bound(self):
        """The number of rows that a matrix for the vocabulary needs."""
        return len(self._index)

    def idx(self, item, default=None):
        """The row of a word, or a list of the rows of its subwords, or the default."""
        return self._index.get(item, default)

    def __getitem__(self, item):
        found = self.idx(item)
        if found is None:
            raise KeyError(item)
        return found

    def __contains__(self, item):
        """Does the vocabulary have this word, or all of these words?"""
        if isinstance(item, str):
            return item in self._index
        return hasattr(item, "__iter__") and all(word in self for word in item)

    def __iter__(self):
        return iter(self._words)

    def __len__(self):
        return len(self._index)

    def __eq__(self, other):
        return isinstance(other, type(self)) and self._words == other._words

    __hash__ = None  # type: ignore[assignment]

    def _tensors(self):
        return {"vocab": _strings(self._words)}, {"finalfusion.vocab": self._kind}


class SimpleVocab(Vocab):
    """Words alone."""

    _kind = "simple"


class SubwordVocab(Vocab):
    """Words, and an indexer for the n-grams of unknown words."""

    _indexers: type

    def __init__(self, words, indexer):
        if not isinstance(indexer, self._indexers):
            raise AssertionError(f"expected a {self._indexers.__name__}, not a "
                                 f"{type(indexer).__name__}")
        super().__init__(words)
        self._indexer = indexer

    @property
    def subword_indexer(self):
        return self._indexer

    @property
    def min_n(self):
        return self._indexer.min_n

    @property
    def max_n(self):
        return self._indexer.max_n

    @property
    def upper_bound(self):
        return len(self) + self._indexer.upper_bound

    def idx(self, item, default=None):
        row = self._index.get(item)
        return self.subword_indices(item) or default if row is None else row

    def subwords(self, item, bracket=True):
        return _ngrams(item, self.min_n, self.max_n, bracket)

    def subword_indices(self, item, bracket=True, with_ngrams=False):
        return self._indexer.subword_indices(item, len(self._words), bracket, with_ngrams)

    def __eq__(self, other):
        return super().__eq__(other) and self._indexer == other._indexer

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self):
        return f"{type(self).__name__}({len(self)} words, {self._indexer!r})"

    def _tensors(self):
        tensors, attrs = super()._tensors()
        attrs.update({"finalfusion.min_n": self.min_n, "finalfusion.max_n": self.max_n,
                      "finalfusion.buckets": self._indexer.upper_bound})
        return tensors, attrs


class _Buckets(SubwordVocab):
    def __init__(self, words, indexer=None):
        super().__init__(words, self._indexers() if indexer is None else indexer)

    def to_explicit(self):
        """An ExplicitVocab of the n-grams of the words. Those that share a bucket share a row."""
        rows, index = {}, {}
        for word in self._words:
            for ngram in self.subwords(word):
                if ngram not in index:
                    index[ngram] = rows.setdefault(self._indexer(ngram), len(rows))
        return ExplicitVocab(self._words,
                             ExplicitIndexer(list(index), self.min_n, self.max_n, index))


class FinalfusionBucketVocab(_Buckets):
    _kind, _indexers = "bucket", FinalfusionHashIndexer


class FastTextVocab(_Buckets):
    _kind, _indexers = "fasttext", FastTextIndexer


class ExplicitVocab(SubwordVocab):
    _kind, _indexers = "explicit", ExplicitIndexer

    def _tensors(self):
        from array import array
        tensors, attrs = super()._tensors()
        del attrs["finalfusion.buckets"]
        index = self._indexer.ngram_index
        tensors["ngrams"] = _strings(self._indexer.ngrams)
        tensors["ngrams.index"] = array("Q", [index[n] for n in self._indexer.ngrams])
        return tensors, attrs


def _explicit(file, words, low, high):
    ngrams = file["ngrams"].strings()
    rows = file["ngrams.index"].read().tolist() if "ngrams.index" in file else range(len(ngrams))
    return ExplicitVocab(words, ExplicitIndexer(ngrams, low, high, dict(zip(ngrams, rows))))


def vocab_of(file):
    """The vocabulary of an open File, or None."""
    if "vocab" not in file:
        return None
    words, attrs = file["vocab"].strings(), file.attrs
    kind = attrs.get("finalfusion.vocab", "simple")
    if kind == "simple":
        return SimpleVocab(words)
    low, high = attrs["finalfusion.min_n"], attrs["finalfusion.max_n"]
    if kind == "explicit":
        return _explicit(file, words, low, high)
    buckets = attrs["finalfusion.buckets"]
    if kind == "bucket":
        return FinalfusionBucketVocab(words, FinalfusionHashIndexer(buckets.bit_length() - 1, low, high))
    if kind == "fasttext":
        return FastTextVocab(words, FastTextIndexer(buckets, low, high))
    raise _FormatError(f"a vocabulary of the kind {kind!r} is not supported")


def _load(file, kind):
    with _opened(file) as f:
        found = vocab_of(f)
    if not isinstance(found, kind):
        raise ValueError(f"the file has no {kind.__name__}")
    return found


def load_vocab(file):
    return _load(file, Vocab)


def load_simple_vocab(file):
    return _load(file, SimpleVocab)


def load_finalfusion_bucket_vocab(file):
    return _load(file, FinalfusionBucketVocab)


def load_fasttext_vocab(file):
    return _load(file, FastTextVocab)


def load_explicit_vocab(file):
    return _load(file, ExplicitVocab)
