# SPDX-License-Identifier: MIT
"""Storage: the matrix of vectors, dense or quantized."""
import numpy as _np

from .io import Chunk as _Chunk, opened as _opened
from .norms import float_array as _float_array

__all__ = ["NdArray", "PQ", "QuantizedArray", "Storage", "load_ndarray", "load_quantized_array",
           "load_storage"]


class Storage(_Chunk):
    """Rows of numbers."""


class NdArray(_np.ndarray, Storage):
    """A dense matrix. Its slices are NdArrays; an index or a list returns a plain array."""

    def __new__(cls, array):
        return _float_array(cls, array, 2)

    def __getitem__(self, key):
        some = _np.asarray(self)[key]
        return some.view(NdArray) if isinstance(key, slice) else some

    def __iter__(self):
        return iter(_np.asarray(self))

    def _tensors(self):
        return {"embeddings": _np.asarray(self)}, None


class PQ:
    """Codebooks (m × centroids × dimensions of a piece), and an optional projection."""

    def __init__(self, quantizers, projection=None):
        self._books = quantizers
        self._dims = quantizers.shape[0] * quantizers.shape[2]
        if projection is not None and projection.shape != (self._dims, self._dims):
            raise AssertionError(f"the projection must be a square matrix of {self._dims} rows, not {projection.shape}")
        self._projection = projection

    @property
    def n_centroids(self):
        return self._books.shape[1]

    @property
    def projection(self):
        return self._projection

    @property
    def reconstructed_len(self):
        return self._dims

    @property
    def subquantizers(self):
        return self._books

    def reconstruct(self, quantized, out=None):
        """The vectors that codes stand for."""
        shape = (*quantized.shape[:-1], self._dims)
        if out is not None and out.shape != shape:
            raise AssertionError(f"out must have the shape {shape}, not {out.shape}")
        found = self._books[_np.arange(len(self._books)), quantized].reshape(shape)
        if self._projection is not None:
            found = found @ self._projection.T
        if out is None:
            return found
        out[...] = found
        return out


class QuantizedArray(Storage):
    """Codes of the pieces of vectors, and optional norms."""

    def __init__(self, pq, quantized_embeddings, norms=None):
        self._pq, self._codes, self._norms = pq, quantized_embeddings, norms

    @property
    def shape(self):
        return (self._codes.shape[0], self._pq.reconstructed_len)

    @property
    def quantized_len(self):
        return self._codes.shape[1]

    @property
    def quantizer(self):
        return self._pq

    def embedding(self, key, out=None):
        found = self._pq.reconstruct(self._codes[key], out)
        if self._norms is not None:
            found *= self._norms[key, None]
        return found

    def __getitem__(self, key):
        if key is None:
            raise TypeError("None is not a row number")
        if not isinstance(key, slice):
            return self.embedding(key)
        return QuantizedArray(self._pq, self._codes[key],
                              None if self._norms is None else self._norms[key])

    def __iter__(self):
        return (self.embedding(i) for i in range(len(self)))

    def __len__(self):
        return len(self._codes)

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            raise ValueError("a quantized matrix cannot be an array without a copy")
        found = self.embedding(slice(None))
        return found if dtype is None else found.astype(dtype)

    def dot(self, other):
        return _np.asarray(self).dot(other)

    def _tensors(self):
        def floats(array):
            return ("f32", _np.ascontiguousarray(array, "<f4"))
        parts = {"codes": ("u8", _np.ascontiguousarray(self._codes, "u1")),
                 "codebooks": floats(self._pq.subquantizers)}
        if self._pq.projection is not None:
            parts["projection"] = floats(self._pq.projection)
        if self._norms is not None:
            parts["norms"] = floats(self._norms)
        return {"embeddings": ("pq/1", parts, self.shape)}, None


def storage_of(file, mmap=False):
    """The storage of an open File, or None."""
    if "embeddings" not in file:
        return None
    tensor = file["embeddings"]
    if tensor.layout == "dense":
        return NdArray(tensor.numpy(copy=None if mmap else True))
    parts = {role: part.numpy(copy=None if mmap else True) for role, part in tensor.parts.items()}
    rows, dims = tensor.shape
    m = parts["codes"].size // rows if rows else 1
    turn, norms = parts.get("projection"), parts.get("norms")
    pq = PQ(parts["codebooks"].reshape(m, -1, dims // m),
            None if turn is None else turn.reshape(dims, dims))
    return QuantizedArray(pq, parts["codes"].reshape(rows, m), norms)


def _load(file, kind, mmap):
    with _opened(file, mmap=mmap) as f:
        found = storage_of(f, mmap)
    if not isinstance(found, kind):
        raise ValueError(f"the file has no {kind.__name__}")
    return found


def load_storage(file, mmap=False):
    return _load(file, Storage, mmap)


def load_ndarray(file, mmap=False):
    return _load(file, NdArray, mmap)


def load_quantized_array(file, mmap=False):
    return _load(file, QuantizedArray, mmap)
