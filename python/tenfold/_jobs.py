# SPDX-License-Identifier: MIT
"""The functions of the package except open(): save, convert, verify and so on."""
from . import File, _tenfold, open as _open
from ._plain import progress as _progress
from ._results import Difference, Fetched, Problem, Report, Statistics, Verification

__all__ = ["convert", "diff", "fetch", "formats", "hash", "info", "merge", "meta", "plan", "repair", "save",
           "split", "stat", "types", "undo", "verify"]


def _opened(source, **how):
    """A File, and whether the caller must close it."""
    if isinstance(source, File):
        return source, False
    return _open(source, **how), True


class _Files:
    """Several sources as Files. At the end it closes those that it opened."""

    def __init__(self, sources, **how):
        self.files, self.own = [], []
        try:
            for source in sources:
                file, own = _opened(source, **how)
                self.files.append(file)
                if own:
                    self.own.append(file)
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self):
        return self.files

    def __exit__(self, *why):
        for file in self.own:
            file.close()


def _saving(format, allow_loss, replace, order, dtype, sync, progress, options):
    how = {"format": format, "replace": replace, "order": order, "dtype": dtype, "sync": sync,
           "progress": _progress(progress), "options": options or None}
    if allow_loss is True:
        how["allow_loss"] = True
    elif allow_loss:
        kinds = [allow_loss] if isinstance(allow_loss, str) else list(allow_loss)
        how["allow_loss"] = True
        how["loss"] = ",".join(kinds)
    return how


def save(path, tensors, *, format=None, attrs=None, tensor_attrs=None, allow_loss=(), replace=False,
         order=None, dtype=None, sync=True, progress=None, as_is=False, **options):
    """Saves a mapping of names to arrays. The format comes from the extension.

    Values: anything with DLPack, the buffer protocol or __array__; a Tensor of an open file; a
    tenfold.Stream; a list of str, which is a tensor of strings. Arrays that are not contiguous are
    written in C order.

    path          None: returns (report, bytes), and `format` is required
    attrs         a dict of attributes of the file
    tensor_attrs  {name: attributes}
    allow_loss    True, or the kinds that may be lost: "tensor", "attribute", "extra"
    replace       True: an existing file is replaced
    order         "C" or "F"
    dtype         save floats as this type: "f16", "bf16" …
    sync          False skips fsync: faster, but a power cut may lose the file
    progress      called with (done, total) bytes, or a bar of tqdm
    **options     options of the format: align=64 …
    """
    how = _saving(format, allow_loss, replace, order, dtype, sync, progress, options)
    how["attrs"] = dict(attrs) if attrs is not None else None
    how["tensor_attrs"] = tensor_attrs
    how["as_is"] = as_is
    items = list(tensors.items())
    result = _tenfold.save(items, path, how)
    if path is None:
        return Report(*result[0]), result[1]
    return Report(*result)


def _names(files, rename):
    """A dict of new names, from a dict or a function."""
    if not rename:
        return None
    if not callable(rename):
        return dict(rename)
    return {name: rename(name) for file in files for name in file.names()}


def _patterns(patterns):
    if patterns is None:
        return None
    return [patterns] if isinstance(patterns, str) else list(patterns)


def _convert(sources, dst, how, rename, opening):
    with _Files(sources, **opening) as files:
        how["rename"] = _names(files, rename)
        result = _tenfold.convert(files, dst, how)
    return (Report(*result[0]), result[1]) if dst is None and not how.get("dry_run") else \
        Report(*(result[0] if dst is None else result))


def convert(src, dst, *, format=None, attrs=None, allow_loss=(), replace=False, order=None,
            dtype=None, sync=True, progress=None, select=None, exclude=None, rename=None,
            lenient=False, source_format=None, as_is=False, fold=None, normalize=False,
            unnormalize=False, append=False, into=None, keep_rest=False, scales=None, **options):
    """Converts a file (a File, or any source of open()) to another format. Raises LossyError, which
    has the plan in .report, if something would be lost and allow_loss does not permit it.

    select, exclude  patterns of names, as in the shell
    rename           a dict or a function of new names
    append           add to the file dst, which must exist
    into             a model (such as ONNX) that is written with the data of src. Names, shapes and
                     types must be the same; keep_rest keeps tensors of it that src does not have
    scales           the suffix of the names of scales ("_scale_inv"), by which tensors are multiplied
    The other keywords are those of save().
    """
    how = _saving(format, allow_loss, replace, order, dtype, sync, progress, options)
    how.update(attrs=attrs, select=_patterns(select), exclude=_patterns(exclude), as_is=as_is,
               fold=fold, normalize=normalize, unnormalize=unnormalize, scales=scales,
               mode="append" if append else None)
    opening = {"lenient": lenient, "format": source_format}
    if into is None:
        return _convert([src], dst, how, rename, opening)
    with _Files([into], lenient=lenient) as model:
        how.update(into=model[0], keep_rest=keep_rest)
        return _convert([src], dst, how, rename, opening)


def plan(src, format, **keywords):
    """The report of convert() without writing anything. It includes the native items."""
    how = _saving(format, True, True, keywords.pop("order", None), keywords.pop("dtype", None), True,
                  None, None)
    rename = keywords.pop("rename", None)
    how.update(select=_patterns(keywords.pop("select", None)),
               exclude=_patterns(keywords.pop("exclude", None)), dry_run=True, all_items=True,
               options=keywords or None)
    return _convert([src], None, how, rename, {})


def merge(sources, dst, *, format=None, clash="refuse", clash_attrs="refuse", allow_loss=(),
          replace=False, order=None, dtype=None, sync=True, progress=None, select=None, exclude=None,
          rename=None, tensors_only=False, **options):
    """Merges several files into one. `clash` decides about tensors of the same name: refuse, same,
    first, last or rename."""
    how = _saving(format, allow_loss, replace, order, dtype, sync, progress, options)
    how.update(select=_patterns(select), exclude=_patterns(exclude), clash=clash,
               clash_attrs=clash_attrs, tensors_only=tensors_only)
    return _convert(list(sources), dst, how, rename, {})


def split(src, directory, *, max_bytes=5_000_000_000, format="safetensors", stem=None, allow_loss=(),
          replace=False, order=None, dtype=None, sync=True, progress=None, select=None, exclude=None,
          rename=None, **options):
    """Splits a file into several of at most max_bytes, with an index."""
    how = _saving(format, allow_loss, replace, order, dtype, sync, progress, options)
    how.update(select=_patterns(select), exclude=_patterns(exclude), mode="split",
               max_bytes=max_bytes, stem=stem)
    return _convert([src], directory, how, rename, {})


def verify(src, *, values=False, canonical=False, threads=0, progress=None, **opening):
    """Checks digests and all rules about the data; `values` also counts NaN and infinite numbers.
    If a file cannot be opened because of its contents, the result has that as a problem."""
    from ._errors import FormatError, LimitError, UnsupportedError
    try:
        file, own = _opened(src, **opening)
    except (FormatError, LimitError, UnsupportedError) as error:
        problem = Problem(error.status, error.offset, error.message, error.rule, None)
        return Verification(0, 0, [problem], {})
    try:
        checked, undigested, problems, counts = _tenfold.verify(file, values, canonical, threads,
                                                                _progress(progress))
    finally:
        if own:
            file.close()
    return Verification(checked, undigested, [Problem(*p) for p in problems], dict(counts))


def hash(src, tensors=False, *, threads=0, progress=None):
    """The content hash: the same content has the same hash in any format. `tensors`: a dict of the
    hashes of the tensors."""
    with _Files([src]) as (file,):
        whole, each = _tenfold.hash(file, bool(tensors), threads, _progress(progress))
    return dict(each) if tensors else whole


_IGNORE = {"values": 1, "attrs": 2, "extras": 4, "dtype": 8, "kind": 16}


def diff(a, b, *, rtol=0.0, atol=0.0, map=None, ignore=(), numeric=None, nan_differs=False,
         trust_digests=False, brief=False, threads=0, progress=None):
    """The differences of two files of any formats. `map` maps names of tensors in a to names in b;
    `ignore`: any of values, attrs, extras, dtype, kind."""
    words = [ignore] if isinstance(ignore, str) else ignore
    how = {"rtol": float(rtol), "atol": float(atol), "ignore": sum(_IGNORE[w] for w in words),
           "numeric": bool(rtol or atol) if numeric is None else numeric,
           "nan_differs": nan_differs, "trust_digests": trust_digests, "brief": brief,
           "threads": threads, "progress": _progress(progress)}
    with _Files([a, b]) as (first, second):
        how["map"] = _names([first], map)
        return Difference(*_tenfold.diff(first, second, how))


def stat(src, names=None, *, bins=32, threads=0, progress=None):
    """Statistics of tensors by name: counts, range, mean, deviation and a histogram; None for
    tensors that are not numeric."""
    with _Files([src]) as (file,):
        found = _tenfold.stat(file, _patterns(names), bins, threads, _progress(progress))
    return {name: Statistics(**counts, bins=histogram) if counts else None
            for name, counts, histogram in found}


def repair(src, dst, *, format=None, replace=False, sync=True, progress=None, **options):
    """Saves the intact tensors of a damaged file: (number of tensors, list of losses)."""
    file = File(src, {"salvage": True})
    try:
        how = _saving(format or file.format, (), replace, None, None, sync, progress, options)
        how["allow_loss"] = True
        return _tenfold.repair(file, dst, how)
    finally:
        file.close()


def fetch(url, directory, *, replace=False, progress=None, **options):
    """Downloads a file, all files of a directory (s3, gs, az, hf), or an index and its shards, to a
    directory. Returns a list of (name, bytes, fetched); fetched is False for files that already
    existed unchanged. Each file appears when it is complete and verified. After an interruption,
    the next call fetches the rest.

    progress   called with (done, total) bytes of the current file, or a bar of tqdm
    **options  as -o of the command: anonymous, connections, endpoint, netrc, private, region
    """
    files, found = _tenfold.fetch(url, directory, {
        "replace": replace, "progress": _progress(progress), "options": options or None})
    if found:
        import warnings
        from ._errors import FormatWarning
        for _, message in found:
            warnings.warn(f"{_tenfold.shown(url)}: {message}", FormatWarning, stacklevel=2)
    return [Fetched(*file) for file in files]


def undo(path):
    """Undoes an interrupted change of attributes. Returns False if there was none."""
    return _tenfold.undo(path)


def meta(path, set=None, *, remove=(), tensor=None, in_place=False, rewrite=False, progress=None):
    """The attributes of a file, or of one of its tensors. `set` and `remove` change them first, in
    place where that is possible."""
    from os import fspath
    keys = [remove] if isinstance(remove, str) else list(remove)
    change = {**(set or {}), **{key: None for key in keys}}
    if change:
        file = File(fspath(path), {"to_change": True})
        try:
            _tenfold.edit(file, path, change, tensor,
                          {"in_place": in_place, "rewrite": rewrite, "progress": _progress(progress)})
        finally:
            file.close()
    with _Files([path]) as (file,):
        return file[tensor].attrs if tensor is not None else file.attrs


def info(src):
    """A description of a file, as a dict."""
    with _Files([src]) as (file,):
        return {"path": file.path, "format": file.format, "version": file.version,
                "size": file.size, "payload": file.payload, "tensors": len(file),
                "shards": file.shards, "attrs": file.attrs, "warnings": file.warnings}


_CAN = {1: "read", 2: "write", 4: "append", 8: "edit"}


def formats():
    """The formats that this build reads and writes: {name: description}."""
    result = {}
    for each in _tenfold.formats():
        each["can"] = [word for bit, word in _CAN.items() if each["caps"] & bit]
        del each["caps"]
        each["extensions"] = each["extensions"].split()
        for key in ("types", "layouts"):
            each[key] = each[key].split() if each[key] is not None else None
        result[each["name"]] = each
    return result


def types():
    """All element types: {id: number of bits}."""
    return dict(_tenfold.types())
