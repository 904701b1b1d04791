# SPDX-License-Identifier: MIT
"""What the modules share: the error, opening, and the writing of a few tensors as one file."""
from ... import Error as _Error, open as _open, save as _save

__all__ = ["FinalfusionFormatError"]


class FinalfusionFormatError(Exception):
    """The file is not what was asked for."""


def opened(file, format="finalfusion", mmap=False):
    """An open File of that format."""
    if file is None:
        raise TypeError("expected a path, not None")
    try:
        return _open(file, format=format, warn=False, access="mmap" if mmap else "auto")
    except OSError:
        raise
    except _Error as error:
        raise FinalfusionFormatError(str(error)) from error


def made(file, tensors, attrs):
    """Writes tensors under finalfusion's names; file=None gives the bytes. Vectors stay as they are:
    norms that are not among the tensors are none."""
    told = _save(file, tensors, format="finalfusion", attrs=attrs, replace=True, as_is=True)
    return told[1] if file is None else None


class Chunk:
    """A part of a file of finalfusion that can be written alone."""

    def _tensors(self):
        """({name: tensor}, attributes) of a file with nothing else."""
        raise NotImplementedError

    def write(self, file):
        """Writes a file with this alone."""
        made(file, *self._tensors())
