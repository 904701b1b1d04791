# SPDX-License-Identifier: MIT
"""Metadata: a dict, which is TOML in the file."""
import json as _json
import tomllib as _tomllib

from .io import Chunk as _Chunk, FinalfusionFormatError as _FormatError, opened as _opened

__all__ = ["Metadata", "load_metadata"]

KEY = "finalfusion.metadata"


def _value(value):
    """A value as TOML. Strings are as in JSON, except that DEL must be escaped, too."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        text = repr(value)
        return text if text[-1] != "f" or text[-3:] != "inf" else text
    if isinstance(value, str):
        return _json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_value(str(k))} = {_value(v)}" for k, v in value.items()) + "}"
    if hasattr(value, "isoformat"):  # dates and times
        return value.isoformat()
    raise TypeError(f"metadata of finalfusion cannot hold a {type(value).__name__}")


def _key(key):
    bare = key and all(c.isascii() and (c.isalnum() or c in "-_") for c in key)
    return key if bare else _value(key)


def to_toml(tree, path=()):
    """Plain values first, then a table for each dict."""
    lines = [f"[{'.'.join(path)}]"] if path else []
    lines += [f"{_key(str(k))} = {_value(v)}" for k, v in tree.items() if not isinstance(v, dict)]
    text = "".join(line + "\n" for line in lines)
    for k, v in tree.items():
        if isinstance(v, dict):
            text += ("\n" if text else "") + to_toml(v, (*path, _key(str(k))))
    return text


class Metadata(dict, _Chunk):
    """The metadata of a file."""

    def _tensors(self):
        return {}, {KEY: to_toml(self)}


def metadata_of(file):
    """The Metadata of an open File, or None."""
    found = file.attrs.get(KEY)
    if found is None:
        return None
    if isinstance(found, dict):  # as earlier versions of this module wrote it
        return Metadata(found)
    try:
        return Metadata(_tomllib.loads(found))
    except _tomllib.TOMLDecodeError as error:
        raise _FormatError(f"the metadata is not valid TOML: {error}") from error


def load_metadata(file):
    with _opened(file) as f:
        found = metadata_of(f)
    if found is None:
        raise ValueError("the file has no metadata")
    return found
