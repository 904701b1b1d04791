# SPDX-License-Identifier: MIT
"""Shared by the modules: the error, opening a file, and writing a few tensors as one file."""
from ... import Error as _Error, open as _open, save as _save

__all__ = ["FinalfusionFormatError"]


class FinalfusionFormatError(Exception):
    """The file is not a valid file of the requested kind."""


def opened(file, format="finalfusion", mmap=False):
    """Opens a File of that format."""
    if file is None:
        raise TypeError("expected a path, not None")
    try:
        return _open(file, format=format, warn=False, access="mmap" if mmap else "auto")
    except OSError:
        raise
    except _Error as error:
        raise FinalfusionFormatError(str(error)) from error


def made(file, tensors, attrs):
    """Writes tensors with finalfusion's names; file=None returns the bytes. Vectors are written
    unchanged, and norms only if they are among the tensors."""
    result = _save(file, tensors, format="finalfusion", attrs=attrs, replace=True, as_is=True)
    return result[1] if file is None else None


class Chunk:
    """A chunk of a finalfusion file, which can also be written alone."""

    def _tensors(self):
        """({name: tensor}, attributes) of a file with this chunk alone."""
        raise NotImplementedError

    def write(self, file):
        """Writes a file with this chunk alone."""
        made(file, *self._tensors())
