# SPDX-License-Identifier: MIT
"""Load parameters on demand, within a budget of memory. Works with any file, by gpt.rs' rules.

    from tenfold.params import Params
    with Params("model.bin", budget=2 << 30) as params:
        w = params["blocks.0.attention.w_qkv"]      # read now, or found in the cache
        w.numpy()                                   # a read-only view, without a copy
        packed = params.derived("blocks.0.attention.w_qkv", "packed", pack).value

A parameter is in use as long as its Param, or a view of it, exists. Others are kept as far as the
budget allows. Any number of threads may use a source at once.
"""
from typing import NamedTuple

from . import File as _File, _tenfold, open as _open

__all__ = ["Form", "Param", "Params", "Stats", "check_path", "config", "join_path", "next_namespace",
           "param_id", "param_key"]

_MOST = (1 << 64) - 1


class Stats(NamedTuple):
    """The statistics of a source.

    hits            loads that read nothing
    misses          loads that read the file
    evictions       parameters and forms that were removed from the cache
    loaded_bytes    bytes read in all
    cached_bytes    bytes in the cache now
    pinned_bytes    of those, bytes that are never evicted
    cached          parameters in the cache now
    in_use          parameters in use now
    budget          the smallest of the budgets; None if there is none
    ahead           parameters that were read ahead and not yet loaded
    ahead_bytes     their bytes
    derived         derived forms in the cache now
    derived_bytes   of cached_bytes, the bytes of these forms
    derived_in_use  forms in use now
    derived_hits    requests of forms that made nothing
    made            forms made
    """
    hits: int
    misses: int
    evictions: int
    loaded_bytes: int
    cached_bytes: int
    pinned_bytes: int
    cached: int
    in_use: int
    budget: "int | None"
    ahead: int
    ahead_bytes: int
    derived: int
    derived_bytes: int
    derived_in_use: int
    derived_hits: int
    made: int


# ------------------------------------------------------------------------ ids


def _number(id):
    return int.from_bytes(id, "little")


def _bytes(id):
    return id.to_bytes(16, "little")  # OverflowError if it has more than 128 bits


def param_id(name):
    """The base id of a parameter name: the first 16 bytes of its BLAKE3 hash, as an int. The name
    must be ASCII."""
    return _number(_tenfold.params_id(name))


def param_key(namespace, base_id):
    """The stable key of a parameter in a namespace."""
    return _number(_tenfold.params_key(_bytes(namespace), _bytes(base_id)))


def next_namespace():
    """The next namespace of this process: 1, 2, …"""
    return _number(_tenfold.params_next_namespace())


def check_path(path):
    """InvalidError unless the path has segments of ASCII with dots between them, none of them
    empty."""
    _tenfold.params_check_path(path)


def join_path(segments):
    """The path with these segments: join_path(["blocks", "0", "w"]) is "blocks.0.w"."""
    return _tenfold.params_join_path(tuple(segments))


def config(file):
    """The keywords of Params that the config of a gpt.rs checkpoint requests, by its
    runtime.weight_streaming: Params(file, **config(file))."""
    own = not isinstance(file, _File)
    file = _open(file) if own else file
    try:
        told = _tenfold.params_config(file)
    finally:
        if own:
            file.close()
    if told.pop("budget_zero"):
        told["budget"], told["budget_percent"], told["budget_cap"] = 0, None, None
        return {key: value for key, value in told.items() if value or key == "budget"}
    return {key: value for key, value in told.items() if value}


# ---------------------------------------------------------------------- loads


class Param(_tenfold.Param):
    """A loaded parameter: read-only memory with a type and a shape. It has the buffer protocol,
    DLPack, and numpy(). The tensor of a layout that is not dense gives its bytes, as u8.

    name     the name of the tensor
    base_id  the hash of the name
    key      the base id in the namespace of the source
    """

    __slots__ = ("name", "base_id", "key", "__weakref__")

    def __new__(cls, array, name, base_id, key):
        self = super().__new__(cls, array)
        self.name, self.base_id, self.key = name, _number(base_id), _number(key)
        return self

    @property
    def shape(self):
        return self.array.shape

    @property
    def dtype(self):
        return self.array.dtype

    @property
    def nbytes(self):
        return self.array.nbytes

    def numpy(self):
        """A read-only numpy array, without a copy; it keeps the parameter in use."""
        return self.array.numpy()

    def tobytes(self):
        return self.array.tobytes()

    def tolist(self):
        return self.array.tolist()

    def __array__(self, dtype=None, copy=None):
        array = self.numpy()
        if dtype is not None and dtype != array.dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, **how):
        return self.array.__dlpack__(**how)

    def __dlpack_device__(self):
        return (1, 0)

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.release()

    def __repr__(self):
        try:
            return f"<tenfold.Param {self.name!r}: {self.dtype}, {self.shape}>"
        except ValueError:
            return f"<tenfold.Param {self.name!r}: released>"


class Form:
    """A derived form of a parameter. It is in use until it is released or collected.

    value    what make() returned
    nbytes   the bytes that it takes in the budget
    """

    __slots__ = ("_form", "kind", "nbytes", "base_id", "key", "__weakref__")

    def __init__(self, form):
        self._form = form
        self.nbytes, self.kind, base_id, key = form.told
        self.base_id, self.key = _number(base_id), _number(key)

    @property
    def value(self):
        if self._form is None:
            raise ValueError("the form was released")
        return self._form.value

    def release(self):
        self._form = None

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.release()

    def __repr__(self):
        return f"<tenfold.Form {self.kind!r}: {self.nbytes} bytes>"


def _size(value):
    """The bytes of a form."""
    nbytes = getattr(value, "nbytes", None)
    if isinstance(nbytes, int):
        return nbytes
    try:
        return memoryview(value).nbytes
    except TypeError:
        raise TypeError(f"the size of the form, a {type(value).__name__}, is unknown: "
                        "derived() needs nbytes=") from None


class Params:
    """A parameter source: a file with a cache.

    source           a File, or any source of tenfold.open(); a File must stay open
    namespace        a number of up to 128 bits, for keys; None: the next one of this process
    budget           bytes that the cache may hold; 0: nothing is kept; None: not set
    budget_percent   the same as a fraction of all parameters' bytes, 0 to 1
    budget_cap       upper bound of the budget
    small_bytes      parameters and forms up to this size are never evicted
    prefetch_layers  load and keep "blocks.0." … "blocks.<n-1>." now
    prefetch_prefix  load and keep all names with this prefix now
    resolver         a mapping that keeps derived forms, by (key, kind), instead of the source: a
                     dict, or any object with get() and __setitem__() that threads may share
    The other keywords are those of tenfold.open(). Without a budget, only what is small or
    prefetched is kept after its use.
    """

    def __init__(self, source, *, namespace=None, budget=None, budget_percent=None, budget_cap=None,
                 small_bytes=0, prefetch_layers=0, prefetch_prefix=None, resolver=None, **opening):
        self._own = not isinstance(source, _File)
        self._file = _open(source, **opening) if self._own else source
        how = {"namespace": None if namespace is None else _bytes(namespace), "budget": budget,
               "budget_percent": budget_percent, "budget_cap": budget_cap,
               "small_bytes": small_bytes, "prefetch_layers": prefetch_layers,
               "prefetch_prefix": prefetch_prefix,
               "budget_zero": 0 in (budget, budget_percent, budget_cap)}
        try:
            self._params = _tenfold.Params(self._file, how, resolver)
        except BaseException:
            if self._own:
                self._file.close()
            raise

    def close(self):
        """Ends loads, and drops everything that is not in use. What is in use stays."""
        self._params.close()
        if self._own:
            self._file.close()

    @property
    def closed(self):
        return self._params.closed

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.close()

    def __repr__(self):
        return "<tenfold.Params: closed>" if self.closed else f"<tenfold.Params of {self.file!r}>"

    @property
    def file(self):
        """The File."""
        return self._file

    @property
    def namespace(self):
        """The namespace of the keys."""
        return _number(self._params.namespace)

    def __contains__(self, name):
        return name in self.file

    def __iter__(self):
        return iter(self.file)

    def __len__(self):
        return len(self.file)

    # ------------------------------------------------------------------ loads

    def load(self, name):
        """The Param with that name (a str) or base id (an int): read now, or found in the cache.
        NotFoundError if there is none."""
        return Param(*self._params.load(name if isinstance(name, str) else _bytes(name)))

    def load_id(self, base_id):
        """The Param with that base id."""
        return Param(*self._params.load(_bytes(base_id)))

    __getitem__ = load

    def prefetch(self, prefix):
        """Loads and pins every parameter whose name begins with `prefix`, as far as the budget
        allows."""
        self._params.prefetch(prefix)

    def ahead(self, names=None):
        """Reads parameters ahead, which will be loaded soon, in that order; None: all, in file
        order. Returns immediately; a thread reads them, and pauses while they exceed the budget."""
        if isinstance(names, str):
            raise TypeError("names must be a list of str")
        self._params.ahead(None if names is None else tuple(names))

    def trim(self):
        """Drops everything that is not in use, pinned or not, and what was read ahead."""
        self._params.trim()

    @property
    def stats(self):
        """The Stats as of now."""
        told = self._params.stats()
        if told["budget"] == _MOST:
            told["budget"] = None
        return Stats(**told)

    # ---------------------------------------------------------- derived forms

    def derived(self, name, kind, make, *, nbytes=None):
        """The Form of that kind of a parameter, such as packed weights: made now by make(param), or
        found in the memo. If several threads request it, one makes it and the others wait.

        name    a name, or a base id as int
        make    a function of the Param, which is released afterwards. It may use this source, but not
                request the form that it makes. Its exceptions are those of derived().
        nbytes  the bytes that the form takes in the budget; None: value.nbytes, or the size of the
                value's buffer
        """
        def run(base_id):
            with self.load_id(_number(base_id)) as param:
                return make(param)

        size = _size if nbytes is None else lambda value: nbytes
        return Form(self._params.derive(name if isinstance(name, str) else _bytes(name), kind, run,
                                        size))

    def find_derived(self, key, kind):
        """The Form of the parameter with that key (param.key), or None: it is not made."""
        form = self._params.find(_bytes(key), kind)
        return None if form is None else Form(form)
