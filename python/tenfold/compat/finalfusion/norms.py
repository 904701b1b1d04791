# SPDX-License-Identifier: MIT
"""Norms: the lengths of vectors before they were normalised."""
import numpy as _np

from .io import Chunk as _Chunk, opened as _opened

__all__ = ["Norms", "load_norms"]


def float_array(cls, array, dims):
    """A float32 array with `dims` dimensions as a view of class `cls`; other arrays are refused."""
    array = _np.asarray(array)
    if array.ndim != dims or array.dtype != _np.float32:
        raise TypeError(f"expected a {dims}-d float32 array, not {array.ndim}-d {array.dtype}")
    return array.view(cls)


class Norms(_np.ndarray, _Chunk):
    """An array of float32. Its slices are Norms, too."""

    def __new__(cls, array):
        return float_array(cls, array, 1)

    def _tensors(self):
        return {"norms": _np.asarray(self)}, None


def norms_of(file):
    """The Norms of an open File, or None."""
    return Norms(file["norms"].numpy(copy=True)) if "norms" in file else None


def load_norms(file):
    with _opened(file) as f:
        found = norms_of(f)
    if found is None:
        raise ValueError("the file has no norms")
    return found
