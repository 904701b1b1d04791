# SPDX-License-Identifier: MIT
"""Maps the n-grams of words to rows: by a hash, or by a list."""
from functools import reduce as _reduce

__all__ = ["ExplicitIndexer", "FastTextIndexer", "FinalfusionHashIndexer", "ngrams"]

_MASK32, _MASK64 = (1 << 32) - 1, (1 << 64) - 1


def ngrams(word, min_n=3, max_n=6, bracket=True):
    """The n-grams of a word from its first character on, the longest first."""
    if word is None:
        raise TypeError("None has no n-grams")
    if not 0 < min_n <= max_n:
        raise AssertionError(f"n-grams cannot have {min_n} to {max_n} characters")
    text = f"<{word}>" if bracket else word
    return [text[i:i + n] for i in range(len(text) - min_n + 1) for n in range(max_n, min_n - 1, -1)
            if i + n <= len(text)]


class _Indexer:
    """The base of all indexers. Calling an indexer returns the index of an n-gram."""

    def __init__(self, min_n, max_n):
        if not 0 < min_n <= max_n:
            raise AssertionError(f"n-grams cannot have {min_n} to {max_n} characters")
        self._min_n, self._max_n = min_n, max_n

    @property
    def min_n(self):
        return self._min_n

    @property
    def max_n(self):
        return self._max_n

    def subword_indices(self, word, offset=0, bracket=True, with_ngrams=False):
        """Indices of the n-grams that have one, plus the offset; with_ngrams: (n-gram, index)."""
        found = ((ngram, self(ngram)) for ngram in ngrams(word, self.min_n, self.max_n, bracket))
        return [(ngram, index + offset) if with_ngrams else index + offset
                for ngram, index in found if index is not None]

    def _same(self, other):
        return type(other) is type(self) and \
            (self.min_n, self.max_n, self.upper_bound) == (other.min_n, other.max_n, other.upper_bound)

    def __eq__(self, other):
        return self._same(other)

    __hash__ = None  # type: ignore[assignment]


def _fnv64(data):
    return _reduce(lambda h, byte: (h ^ byte) * 0x100000001b3 & _MASK64, data, 0xcbf29ce484222325)


class FinalfusionHashIndexer(_Indexer):
    """2 ** bucket_exp buckets, by FNV-1a of the length and the code points."""

    def __init__(self, bucket_exp=21, min_n=3, max_n=6):
        super().__init__(min_n, max_n)
        if not 0 < bucket_exp < 64:
            raise AssertionError(f"the exponent of the buckets must be from 1 to 63, not {bucket_exp}")
        self._exp = bucket_exp

    @property
    def buckets_exp(self):
        return self._exp

    @property
    def upper_bound(self):
        return 1 << self._exp

    def __call__(self, ngram):
        data = len(ngram).to_bytes(8, "little") + ngram.encode("utf-32-le", "surrogatepass")
        return _fnv64(data) & self.upper_bound - 1

    def __repr__(self):
        return f"FinalfusionHashIndexer(buckets_exp={self._exp}, min_n={self.min_n}, " \
               f"max_n={self.max_n})"


class FastTextIndexer(_Indexer):
    """fastText's buckets: by FNV-1a of the bytes, which are signed as in fastText."""

    def __init__(self, n_buckets=2000000, min_n=3, max_n=6):
        super().__init__(min_n, max_n)
        if not 0 < n_buckets <= _MASK32:
            raise AssertionError(f"the number of buckets must be from 1 to 2**32 - 1, not {n_buckets}")
        self._n = n_buckets

    @property
    def n_buckets(self):
        return self._n

    @property
    def upper_bound(self):
        return self._n

    def __call__(self, ngram):
        h = 2166136261
        for byte in ngram.encode():
            h = (h ^ (byte - 256 & _MASK32 if byte > 127 else byte)) * 16777619 & _MASK32
        return h % self._n

    def __repr__(self):
        return f"FastTextIndexer(n_buckets={self._n}, min_n={self.min_n}, max_n={self.max_n})"


class ExplicitIndexer(_Indexer):
    """A list of n-grams; several may have the same index."""

    def __init__(self, ngrams, min_n=3, max_n=6, ngram_index=None):
        super().__init__(min_n, max_n)
        if ngram_index is None:
            ngram_index = {ngram: i for i, ngram in enumerate(ngrams)}
        if len(ngram_index) != len(ngrams) or any(ngram not in ngram_index for ngram in ngrams):
            raise AssertionError("the n-grams are not unique, or differ from those of the index")
        used = set(ngram_index.values())
        if used and max(used) + 1 != len(used):
            raise AssertionError("some indices have no n-gram")
        self._ngrams, self._index, self._bound = ngrams, ngram_index, len(used)

    @property
    def ngrams(self):
        return self._ngrams

    @property
    def ngram_index(self):
        return self._index

    @property
    def upper_bound(self):
        return self._bound

    def __call__(self, ngram):
        return self._index.get(ngram)

    def __getitem__(self, ngram):
        return self._index[ngram]

    def __iter__(self):
        return iter(self._ngrams)

    def __len__(self):
        return len(self._index)

    def __contains__(self, item):
        if isinstance(item, str):
            return item in self._index
        return hasattr(item, "__iter__") and all(each in self for each in item)

    def __eq__(self, other):
        return self._same(other) and self._ngrams == other._ngrams and self._index == other._index

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self):
        return f"ExplicitIndexer({len(self)} n-grams, min_n={self.min_n}, max_n={self.max_n})"
