# SPDX-License-Identifier: MIT
"""Rarely called methods of File and Tensor: for notebooks, pickles and torch."""
import html
import os

from . import _tenfold


def _size(n):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024 or unit == "GiB":
            return f"{n:,} B" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1024


def _table(head, rows):
    text = "<table><tr>" + "".join(f"<th>{html.escape(h)}</th>" for h in head) + "</tr>"
    for row in rows:
        text += "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>"
    return text + "</table>"


def _row(tensor):
    return (tensor.name, tensor.dtype or tensor.layout, list(tensor.shape), _size(tensor.nbytes))


def file_html(file):
    if file.closed:
        return "<p>a closed file</p>"
    most = 50
    names = file.names()
    text = f"<p><b>{html.escape(str(file.path or 'memory'))}</b>: {html.escape(file.format)} " \
           f"{html.escape(file.version)}, {len(names):,} tensors, {_size(file.size)}</p>"
    text += _table(("name", "dtype", "shape", "size"), (_row(file[n]) for n in names[:most]))
    if len(names) > most:
        text += f"<p>… and {len(names) - most:,} more</p>"
    return text


def _bars(bins):
    """A histogram as a small drawing."""
    top = max(bins) or 1
    width, height = 6 * len(bins), 48
    bars = "".join(f'<rect x="{6 * i}" y="{height - height * n / top:.1f}" width="5" '
                   f'height="{height * n / top:.1f}"/>' for i, n in enumerate(bins))
    return f'<svg width="{width}" height="{height}" fill="steelblue">{bars}</svg>'


def tensor_html(tensor):
    """A table, and a histogram of up to 1,048,576 numbers from its beginning."""
    text = _table(("name", "dtype", "shape", "size"), [_row(tensor)])
    try:
        import numpy
        if tensor.layout != "dense" or not tensor.shape:
            return text
        rows = max(1, (1 << 20) // max(1, tensor.size // max(1, tensor.shape[0])))
        numbers = numpy.asarray(tensor[:rows], dtype=numpy.float64).reshape(-1)
        numbers = numbers[numpy.isfinite(numbers)]
        if numbers.size:
            bins = numpy.histogram(numbers, bins=32)[0].tolist()
            text += f"<p>{numbers.min():.6g} … {numbers.max():.6g}, mean {numbers.mean():.6g}</p>" \
                    + _bars(bins)
    except (ImportError, TypeError, ValueError, NotImplementedError):
        pass
    return text


def tensor_get_dtype(tensor):
    from .compat.safetensors import _NAMES
    return _NAMES.get(tensor.dtype, tensor.dtype)


def tensor_torch(tensor, device):
    from .torch import _tensor
    return _tensor(tensor.read(), device)


def _state(path):
    """The size and time of a file, or of each file in a directory."""
    s = os.stat(path)
    if not os.path.isdir(path):
        return (s.st_size, s.st_mtime_ns)
    with os.scandir(path) as entries:
        return tuple(sorted((e.name, e.stat().st_size, e.stat().st_mtime_ns) for e in entries
                            if e.is_file()))


def _header(file):
    """A hash of the index of the file: names, types, shapes and places of the tensors."""
    import hashlib
    digest = hashlib.blake2b(file.format.encode(), digest_size=16)
    for name in file.names():
        t = file[name]
        digest.update(repr((name, t.dtype, t.layout, t.shape, t.location and t.location[1:])).encode(
            "utf-8", "surrogateescape"))
    return digest.digest()


def pinned(path, format=None):
    """A hash of the description of the input in a plan: sizes, times or ETags of all files, and
    their headers. It changes when the input changes."""
    import hashlib
    from .jobs import plan
    # The items come last, one per line, and strings in JSON contain no line breaks.
    head = plan("hash", path, 1, read_format=format).text.partition('\n"items":')[0]
    return hashlib.sha256(head.encode("utf-8", "surrogateescape")).hexdigest()


def _url_state(path, file):
    """The size of a remote file and, by a plan, its ETag. Plans do not support the options and
    limits of open(), so a file with these has only the size."""
    plain = not file._options.get("options") and not file._options.get("limits")
    return (file.size, pinned(path, file._options.get("format")) if plain else None)


def file_reduce(file):
    """Pickles a file by its path. Unpickling opens it again, if it is still the same file."""
    if file.closed or file.path is None or not isinstance(file._source, (str, bytes, os.PathLike)):
        raise TypeError("only an open File that was opened by its path can be pickled")
    path = os.fsdecode(file._source)
    if _tenfold.is_url(path):
        return _again, (path, dict(file._options), _url_state(path, file), _header(file))
    path = os.path.abspath(path)
    return _again, (path, dict(file._options), _state(path), _header(file))


def _again(path, options, state, header):  # named in pickles of earlier versions
    """Opens a pickled file again."""
    from . import ChangedError, File
    remote = _tenfold.is_url(path)
    file = File(path, options) if remote or _state(path) == state else None
    if file is None or remote and _url_state(path, file) != state:
        raise ChangedError("the file has changed since it was pickled", status="ECHANGED", code=-15,
                           path=_tenfold.shown(path))
    if _header(file) != header:
        raise ChangedError("the file has other tensors than when it was pickled", status="ECHANGED",
                           code=-15, path=_tenfold.shown(path))
    return file
