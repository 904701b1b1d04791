# SPDX-License-Identifier: MIT
"""load_file, save_file, load and save with safetensors' signatures, for numpy.

Files of any format can be loaded. Files are saved as safetensors, unless `format` is given. Arrays
that are not contiguous or big-endian are saved correctly.
"""
import numpy as _np

from . import File as _File, _tenfold
from ._errors import Error as _Error, LossyError as _LossyError
from ._plain import check_name, progress as _progress, writing as _writing

__all__ = ["load", "load_file", "save", "save_file"]


def _checked(tensors, format):
    if not isinstance(tensors, dict):
        tensors = dict(tensors)
    for name, value in tensors.items():
        if not isinstance(name, str):
            raise TypeError(f"names must be str, not {type(name).__name__} ({name!r})")
        if not hasattr(value, "dtype") and not hasattr(value, "__dlpack__"):
            raise TypeError(f"{name!r} cannot be saved: a {type(value).__name__} is not an array")
        if format == "safetensors":
            _known(name, getattr(value, "dtype", None))
    return list(tensors.items())


def _known(name, dtype):
    """Refuses types that Tenfold would store in a form unknown to readers of safetensors."""
    if str(dtype) in ("complex128", "int4", "uint4", "int2", "uint2"):
        from ._values import unknown
        raise unknown(name, dtype)
    check_name(name)


def _save(items, path, metadata, format, sync=True, **more):
    how = {**_writing(metadata, format), "sync": sync, **more}
    try:
        return _tenfold.save(items, path, how)
    except _LossyError as error:
        for item in error.report or ():
            if item.kind == "tensor":
                from ._values import unknown
                value = dict(items).get(item.name)
                raise unknown(item.name, getattr(value, "dtype", "?")) from error
        raise


def save(tensor_dict, metadata=None, *, format="safetensors"):
    """The bytes of a file with these arrays."""
    return _save(_checked(tensor_dict, format), None, metadata, format)[1]


def save_file(tensor_dict, filename, metadata=None, *, format="safetensors", sync=True,
              progress=None):
    """Saves arrays to a file atomically: it is complete under its name, or does not exist."""
    _save(_checked(tensor_dict, format), filename, metadata, format, sync,
          progress=_progress(progress))


def load(data, *, threads=0):
    """The arrays of a file in memory: bytes, or another bytes-like object."""
    file = _File(data, {"content": True, "compat": True})
    try:
        return file.load(None, threads)
    finally:
        file.close()


def load_file(filename, *, backend="mmap", threads=0, progress=None):
    """The arrays of a file of any format, each in memory of its own and writable."""
    if backend not in ("mmap", "pread"):
        raise _Error(f'backend "{backend}" is invalid (expected one of: "mmap", "pread")')
    file = _open(filename, {"access": "pread" if backend == "pread" else "auto", "compat": True})
    try:
        return file.load(None, threads, _progress(progress))
    finally:
        file.close()


def _open(filename, how):
    try:
        return _File(filename, how)
    except FileNotFoundError as error:
        if getattr(error, "http_status", None):
            raise
        text = f"No such file or directory: {_text(filename)}"
        raise FileNotFoundError(text) from None


def _text(filename):
    import os
    return os.fsdecode(filename) if not isinstance(filename, int) else filename


# As in safetensors, for programs that use it: numpy's types by names in files.
_TYPES = {"F64": _np.float64, "F32": _np.float32, "F16": _np.float16, "I64": _np.int64,
          "U64": _np.uint64, "I32": _np.int32, "U32": _np.uint32, "I16": _np.int16,
          "U16": _np.uint16, "I8": _np.int8, "U8": _np.uint8, "BOOL": bool, "C64": _np.complex64}
