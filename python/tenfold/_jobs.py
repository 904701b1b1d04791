# SPDX-License-Identifier: MIT
"""save, convert, verify and the rest: the functions of the package that do more than open."""
from . import File, _tenfold, open as _open
from ._plain import progress as _progress
from ._results import Difference, Fetched, Problem, Report, Statistics, Verification

__all__ = ["convert", "diff", "fetch", "formats", "hash", "info", "merge", "meta", "plan", "repair", "save",
           "split", "stat", "types", "undo", "verify"]


def _opened(source, **how):
    """A File, and whether it is ours to close."""
    if isinstance(source, File):
        return source, False
    return _open(source, **how), True


class _Files:
    """Several sources as Files; those that were opened here are closed at the end."""

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

    path          None: the bytes are returned beside the report (then `format` is needed)
    attrs         a dict of attributes of the file
    tensor_attrs  {name: attributes}
    allow_loss    True, or kinds of things that may be lost: "tensor", "attribute", "extra"
    replace       an existing file may be replaced
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
    told = _tenfold.save(items, path, how)
    if path is None:
        return Report(*told[0]), told[1]
    return Report(*told)


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
        told = _tenfold.convert(files, dst, how)
    return (Report(*told[0]), told[1]) if dst is None and not how.get("dry_run") else \
        Report(*(told[0] if dst is None else told))


def convert(src, dst, *, format=None, attrs=None, allow_loss=(), replace=False, order=None,
            dtype=None, sync=True, progress=None, select=None, exclude=None, rename=None,
            lenient=False, source_format=None, as_is=False, fold=None, normalize=False,
            unnormalize=False, append=False, into=None, keep_rest=False, scales=None, **options):
    """Converts a file (a path, a File, anything open() takes) to another format. Refuses to lose
    anything unless allow_loss says so: LossyError has the plan in .report.

    select, exclude  patterns of names, as in the shell
    rename           a dict or a function of new names
    append           add to the file at dst, which must be there
    into             a model (as ONNX) that is written with the data of src: names, shapes and types
                     must be the same; keep_rest keeps its tensors that src does not have
    scales           the ending of the names of scales ("_scale_inv"): tensors are multiplied by them
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
    """What convert() would do: the report, with the native items as well; nothing is written."""
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
    """Several files into one. `clash` says what happens to tensors of the same name: refuse, same,
    first, last, rename."""
    how = _saving(format, allow_loss, replace, order, dtype, sync, progress, options)
    how.update(select=_patterns(select), exclude=_patterns(exclude), clash=clash,
               clash_attrs=clash_attrs, tensors_only=tensors_only)
    return _convert(list(sources), dst, how, rename, {})


def split(src, directory, *, max_bytes=5_000_000_000, format="safetensors", stem=None, allow_loss=(),
          replace=False, order=None, dtype=None, sync=True, progress=None, select=None, exclude=None,
          rename=None, **options):
    """One file into several of at most max_bytes, with an index."""
    how = _saving(format, allow_loss, replace, order, dtype, sync, progress, options)
    how.update(select=_patterns(select), exclude=_patterns(exclude), mode="split",
               max_bytes=max_bytes, stem=stem)
    return _convert([src], directory, how, rename, {})


def verify(src, *, values=False, canonical=False, threads=0, progress=None, **opening):
    """Checks digests and all rules about the data; `values` also counts NaN and infinite numbers.
    A file that does not open, for a reason that lies in it, is a problem as well."""
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
    """The differences of two files of any formats. `map` gives tensors of a their names in b;
    `ignore`: some of values, attrs, extras, dtype, kind."""
    words = [ignore] if isinstance(ignore, str) else ignore
    how = {"rtol": float(rtol), "atol": float(atol), "ignore": sum(_IGNORE[w] for w in words),
           "numeric": bool(rtol or atol) if numeric is None else numeric,
           "nan_differs": nan_differs, "trust_digests": trust_digests, "brief": brief,
           "threads": threads, "progress": _progress(progress)}
    with _Files([a, b]) as (first, second):
        how["map"] = _names([first], map)
        return Difference(*_tenfold.diff(first, second, how))


def stat(src, names=None, *, bins=32, threads=0, progress=None):
    """Statistics of tensors by name: counts, range, mean, deviation, a histogram; None for those
    that are not numbers."""
    with _Files([src]) as (file,):
        told = _tenfold.stat(file, _patterns(names), bins, threads, _progress(progress))
    return {name: Statistics(**counts, bins=histogram) if counts else None
            for name, counts, histogram in told}


def repair(src, dst, *, format=None, replace=False, sync=True, progress=None, **options):
    """Saves what is whole in a damaged file: (number of tensors, list of losses)."""
    file = File(src, {"salvage": True})
    try:
        how = _saving(format or file.format, (), replace, None, None, sync, progress, options)
        how["allow_loss"] = True
        return _tenfold.repair(file, dst, how)
    finally:
        file.close()


def fetch(url, directory, *, replace=False, progress=None, **options):
    """Downloads a file, all files of a folder (s3, gs, az, hf), or an index and its shards, into a
    directory: a list of (name, bytes, fetched), fetched=False for what was there already, unchanged.
    Each file appears when it is whole and verified; after an interruption the rest is fetched.

    progress   called with (done, total) bytes of the file that is fetched, or a bar of tqdm
    **options  those of the command's -o: anonymous, connections, endpoint, netrc, private, region
    """
    files, told = _tenfold.fetch(url, directory, {
        "replace": replace, "progress": _progress(progress), "options": options or None})
    if told:
        import warnings
        from ._errors import FormatWarning
        for _, message in told:
            warnings.warn(f"{_tenfold.shown(url)}: {message}", FormatWarning, stacklevel=2)
    return [Fetched(*file) for file in files]


def undo(path):
    """Undoes a change of attributes that was interrupted: was there something to do?"""
    return _tenfold.undo(path)


def meta(path, set=None, *, remove=(), tensor=None, in_place=False, rewrite=False, progress=None):
    """The attributes of a file, or of one of its tensors; with `set` or `remove` they are changed
    first, in the file itself where that is possible."""
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
    """What is known of a file, as a dict."""
    with _Files([src]) as (file,):
        return {"path": file.path, "format": file.format, "version": file.version,
                "size": file.size, "payload": file.payload, "tensors": len(file),
                "shards": file.shards, "attrs": file.attrs, "warnings": file.warnings}


_CAN = {1: "read", 2: "write", 4: "append", 8: "edit"}


def formats():
    """What this build reads and writes: a dict of names to what is known of each."""
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
    """All element types: a dict of ids to bits."""
    return dict(_tenfold.types())
