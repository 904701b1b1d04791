# SPDX-License-Identifier: MIT
"""Read, write, convert and verify tensor, checkpoint and embedding files.

    import tenfold
    with tenfold.open("model.safetensors") as f:
        f["w"].shape, f["w"][:, ::8]
    tenfold.convert("model.bin", "model.zt")

This module imports only the extension. numpy and torch are imported when they are needed.
"""
from _collections_abc import Mapping as _Mapping
from . import _tenfold
from ._errors import *
from ._errors import __all__ as _error_names
from ._tenfold import Array, Tensor

__version__ = _tenfold.version
__all__ = ["Array", "File", "Stream", "Tensor", "convert", "diff", "fetch", "formats", "hash",
           "info", "merge", "meta", "open", "plan", "repair", "save", "split", "stat", "types", "undo",
           "verify",
           *_error_names]


class File(_tenfold.File, _Mapping):
    """An open file, which open() returns: a mapping of names to Tensors."""

    __slots__ = ("_source", "_options", "__weakref__")

    def __new__(cls, source, options=None):
        self = super().__new__(cls, source, options or {})
        self._source = source
        self._options = options or {}
        return self

    __getitem__ = _tenfold.File.__getitem__
    __len__ = _tenfold.File.__len__
    __iter__ = _tenfold.File.__iter__
    __contains__ = _tenfold.File.__contains__

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.close()

    def __repr__(self):
        where = self.path if self.path is not None else "memory"
        if self.closed:
            return "<tenfold.File: closed>"
        return f"<tenfold.File {where!r}: {self.format}, {len(self)} tensors>"

    def __eq__(self, other):
        return self is other

    __hash__ = object.__hash__

    def read_all(self, names=None, *, threads=0, progress=None, into=None):
        """Reads all tensors (or those named) in parallel: a dict of arrays with memory of their
        own. `into`: a mapping of names to writable buffers, which are filled instead."""
        if progress is not None:
            from ._plain import progress as _progress
            progress = _progress(progress)
        if into is not None and names is None:
            names = list(into)
        return self.load(names, threads, progress, True, into)

    def __reduce__(self):
        from ._more import file_reduce
        return file_reduce(self)

    def _repr_html_(self):
        from ._more import file_html
        return file_html(self)


def _warn(file, warn):
    found = file.warnings
    if not found:
        return
    if callable(warn):
        for offset, message in found:
            warn(offset, message)
    elif warn is not False:
        import warnings
        for offset, message in found:
            at = f" (at byte {offset})" if offset is not None else ""
            warnings.warn(f"{file.path or 'memory'}: {message}{at}", FormatWarning, stacklevel=3)


def open(source, *, format=None, lenient=False, access="auto", limits=None, options=None, warn=None,
         incomplete=False):
    """Opens a file of any format, a model by its directory or index, an open descriptor, bytes, a
    file object, or a list of these as a single file.

    source   a path (str, bytes, os.PathLike) or URL, a descriptor (int), any other bytes-like
             object with the content itself, an object with read() and seek(), or a list of these
    format   the name of the format; None: it is detected
    lenient  only warn about faults that the format's common readers accept
    access   "auto", "mmap" (views of the file) or "pread" (no views)
    limits   a dict: header_bytes, memory, objects, rank, depth, name_bytes, decoded_bytes …
    options  a dict of options of the format
    warn     called with (offset, message) for unusual contents; None: Python's warnings; False: off
    incomplete  open a model although some of its files are missing
    """
    how = {"format": format, "access": access}
    if lenient:
        how["lenient"] = True
    if limits:
        how["limits"] = limits
    if options:
        how["options"] = options
    if incomplete:
        how["incomplete"] = True
    file = File(source, how)
    _warn(file, warn)
    return file


# Functions that reading does not need. They are imported at their first use.
_LATER = {"convert", "diff", "fetch", "formats", "hash", "info", "merge", "meta", "plan", "repair", "save",
          "split", "stat", "types", "undo", "verify"}


def __getattr__(name):
    if name in _LATER:
        from . import _jobs
        for each in _LATER:
            globals()[each] = getattr(_jobs, each)
        return globals()[name]
    if name == "Stream":
        from ._values import Stream
        globals()["Stream"] = Stream
        return Stream
    if name in ("Report", "Verification", "Difference", "Statistics"):
        from . import _results
        return getattr(_results, name)
    if name in ("numpy", "torch", "embeddings", "compat", "dcp", "jobs", "params", "points",
                "primitiv", "run", "spark"):
        import importlib
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(set(globals()) | set(__all__))
