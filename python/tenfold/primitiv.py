# SPDX-License-Identifier: MIT
"""Models and optimizers of primitiv: parameters by path, statistics, configs.

    from tenfold import primitiv
    primitiv.save("model.primitiv", {("encoder", "w"): w, primitiv.Statistic("encoder.w", "Adam.m1"): m1})
    primitiv.load("model.primitiv", {("encoder", "w"): w})      # fills w
    for key, array in primitiv.read("model.primitiv").items(): ...

The key of a parameter is its path, a tuple of names from the root of the model; or the name of its
tensor, "encoder.w", in which a dot within a name is "\\\\.". The only tensor of a Tensor or
Parameter file has the path (). Arrays have 32-bit floats, in any order of memory.
"""
from typing import NamedTuple

from . import File as _File, _tenfold, open as _open
from ._errors import InvalidError, NotFoundError

__all__ = ["Batch", "Loaded", "MismatchError", "Optimizer", "Shape", "Statistic", "find", "join", "load",
           "load_optimizer", "load_shape", "read", "save", "save_optimizer", "save_shape", "split"]


if not hasattr(_tenfold, "primitiv_load"):
    raise ImportError("this build of Tenfold has no primitiv format")


class Statistic:
    """The key of a statistic of a parameter: Statistic(("encoder", "w"), "Adam.m1")."""

    __slots__ = ("path", "key")

    def __init__(self, path, key):
        if not isinstance(key, str):
            raise TypeError(f"the key of a statistic must be a str, not {type(key).__name__}")
        object.__setattr__(self, "path", _path(path))
        object.__setattr__(self, "key", key)

    def __setattr__(self, name, value):
        raise AttributeError(f"{name} cannot be changed")

    def __eq__(self, other):
        return isinstance(other, Statistic) and (self.path, self.key) == (other.path, other.key)

    def __hash__(self):
        return hash((Statistic, self.path, self.key))

    def __reduce__(self):
        return Statistic, (self.path, self.key)

    def __repr__(self):
        return f"Statistic({self.path!r}, {self.key!r})"


class Batch(NamedTuple):
    """An array whose last axis is the batch."""
    array: object


class Loaded(NamedTuple):
    """The result of load(): keys that the file lacks, names of its tensors that no key takes."""
    missing: list
    extra: list


class Shape(NamedTuple):
    """A shape of primitiv. A batch of 1 means that there is none."""
    dims: "tuple[int, ...]"
    batch: int = 1


class Optimizer(NamedTuple):
    """The configs of an optimizer, and its class if the keys name it: "Adam"."""
    name: "str | None"
    uints: dict
    floats: dict


class MismatchError(NotFoundError):
    """Nothing was loaded: the file lacks the keys `missing`, or no key takes its parameters in
    `extra`."""

    missing = ()
    extra = ()


# ----------------------------------------------------------------------- keys


def join(path):
    """The name of the tensor with that path: join(("a.b", "w")) is "a\\\\.b.w"."""
    return _tenfold.primitiv_join(tuple(path))


def split(name):
    """The path of the tensor with that name."""
    return _tenfold.primitiv_split(name)


def _path(path):
    if isinstance(path, str):
        return split(path)
    path = tuple(path)
    for name in path:
        if not isinstance(name, str):
            raise TypeError(f"the names of a path must be str, not {type(name).__name__}")
    return path


def _key(key):
    """(path, statistic or None)"""
    return (key.path, key.key) if isinstance(key, Statistic) else (_path(key), None)


def _buffer(value):
    """An object with the buffer protocol over the memory of the value."""
    try:
        return memoryview(value)
    except TypeError:
        if not hasattr(value, "__dlpack__"):
            raise TypeError("the values must be arrays of 32-bit floats, not "
                            f"{type(value).__name__}") from None
    return _tenfold.from_dlpack(value.detach() if hasattr(value, "detach") else value)


def _items(arrays):
    items = []
    for key, value in arrays.items():
        batched = isinstance(value, Batch)
        items.append((*_key(key), batched, _buffer(value.array if batched else value)))
    return items


class _Opened:
    """A source as a File, which is closed at the end if it was opened here."""

    def __init__(self, source):
        self.own = not isinstance(source, _File)
        self.file = _open(source) if self.own else source

    def __enter__(self):
        return self.file

    def __exit__(self, *why):
        if self.own:
            self.file.close()


# ----------------------------------------------------------------------- read


def find(file, path, statistic=None):
    """The Tensor of a parameter in an open File, or of its statistic. NotFoundError if there is
    none."""
    return _tenfold.primitiv_find(file, _path(path), statistic)


def _text(value):
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def _key_of(tensor, nameless):
    statistic = _text(tensor.attrs.get("primitiv.stat"))
    owner = tensor.name
    if statistic is not None:
        owner = _text(tensor.attrs.get("primitiv.of")) or owner.removesuffix("@" + statistic)
    path = () if nameless else split(owner)
    return path if statistic is None else Statistic(path, statistic)


def read(source):
    """All parameters and statistics of a file: a dict of arrays with their own memory. Keys are
    paths and Statistics. An array with a batch is a Batch."""
    with _Opened(source) as file:
        nameless = file.attrs.get("primitiv.type") in ("tensor", "parameter")
        found = {}
        for name, array in file.read_all().items():
            tensor = file[name]
            batch = tensor.attrs.get("primitiv.batch", 1) > 1
            found[_key_of(tensor, nameless)] = Batch(array) if batch else array
        return found


def load(source, into, *, need_all=False, allow_extra=False):
    """Fills arrays from a file: all of them or, on any error, none.

    source       a path, a File, or any other source of tenfold.open()
    into         {key: array}, where an array is a writable buffer of 32-bit floats with the shape
                 of the parameter or statistic; or a Batch of such an array
    need_all     False: the file may lack keys, and their arrays are not changed
    allow_extra  False: MismatchError if the file has a parameter that no key takes. Statistics
                 without a key are always allowed.
    """
    keys, items = list(into), _items(into)
    missing, extra = [], []
    with _Opened(source) as file:
        try:
            _tenfold.primitiv_load(file, items, need_all, allow_extra, missing, extra)
        except NotFoundError as error:
            raise _mismatch(error, [keys[i] for i in missing], extra) from None
    return Loaded([keys[i] for i in missing], extra)


def _mismatch(error, missing, extra):
    made = MismatchError(error.message, status=error.status, code=error.code, path=error.path)
    made.missing, made.extra = missing, extra
    return made


def load_shape(source):
    """The Shape that a Shape file has. NotFoundError if it is another kind of file."""
    with _Opened(source) as file:
        if file.attrs.get("primitiv.type") != "shape":
            raise NotFoundError("the file is not a Shape file", status="ENOTFOUND", code=-8,
                                path=file.path)
        return Shape(tuple(file.attrs["primitiv.dims"]), file.attrs["primitiv.batch"])


def _configs(file, kind, real):
    tree = file.attrs.get(f"primitiv.{kind}_configs", {})
    found = {}
    for key, value in tree["$pairs"] if "$pairs" in tree else tree.items():
        key = _text(key)
        exact = None if "\0" in key else _tenfold.primitiv_config(file, key, real)
        found[key] = value if exact is None else exact
    return found


def load_optimizer(source, uints=None, floats=None):
    """The Optimizer of a file. With keys (`uints`, `floats`) only these, and NotFoundError if one
    of them is missing."""
    with _Opened(source) as file:
        if "primitiv.uint_configs" not in file.attrs and "primitiv.float_configs" not in file.attrs:
            raise NotFoundError("the file has no optimizer", status="ENOTFOUND", code=-8,
                                path=file.path)
        found = [_configs(file, "uint", False), _configs(file, "float", True)]
        for i, (wanted, what) in enumerate(((uints, "integer"), (floats, "float"))):
            for key in wanted or ():
                if key not in found[i]:
                    raise NotFoundError(f"the optimizer has no {what} config {key!r}",
                                        status="ENOTFOUND", code=-8, path=file.path)
            if wanted is not None:
                found[i] = {key: found[i][key] for key in wanted}
        return Optimizer(_tenfold.primitiv_optimizer(file), *found)


# ---------------------------------------------------------------------- write


def _how(format, replace, sync, allow_loss, progress, options):
    from ._plain import progress as _progress
    return {"format": format, "replace": replace, "sync": sync, "allow_loss": allow_loss,
            "progress": _progress(progress), "options": options or None}


def save(path, arrays, *, format=None, replace=False, sync=True, allow_loss=False, progress=None, **options):
    """Saves {key: array} as a Model file, whose parameters are sorted by their paths; as a Parameter
    file if the only path is (), or a Tensor file with type="tensor". The keywords are those of tenfold.save();
    with format="safetensors" and so on the result is a file of another format."""
    items = _items(arrays)
    if len({tuple(item[0]) for item in items}) > 1 and any(item[0] == () for item in items):
        raise InvalidError("a file with the path () has no other parameters")
    _tenfold.primitiv_save(path, items,
                           _how(format, replace, sync, allow_loss, progress, options))


def save_shape(path, dims, batch=1, *, format=None, replace=False, sync=True, allow_loss=False, **options):
    """Saves a shape as a Shape file."""
    _tenfold.primitiv_save_shape(path, tuple(dims), batch,
                                 _how(format, replace, sync, allow_loss, None, options))


def save_optimizer(path, uints, floats, *, format=None, replace=False, sync=True, allow_loss=False,
                   **options):
    """Saves the configs of an optimizer, in that order: {"Optimizer.epoch": 5},
    {"Adam.alpha": 0.001, …}."""
    _tenfold.primitiv_save_optimizer(path, dict(uints), dict(floats),
                                     _how(format, replace, sync, allow_loss, None, options))
