# SPDX-License-Identifier: MIT
"""VS files: append, read and delete points, from many processes at once.

    from tenfold import points
    with points.create("space.vsdb", dims=3, resolution="f32") as space:
        ids = space.append(array_of_n_by_3, apps=[{"word": "up"}, ...])
    with points.open("space.vsdb") as space:
        for point in space:
            point.id, point.vector, point.app

Every call takes the lock of the file that the format demands, and releases it before it returns. Its
changes are complete or not there at all. An id, "OFFSET:HASH", identifies a point for every process;
if a compaction moved the point, the id is refused (NotFoundError).
"""
from typing import NamedTuple

from . import _tenfold
from ._errors import InvalidError
from ._results import Problem

__all__ = ["Moves", "Page", "Point", "Points", "Report", "Salvaged", "Space", "create", "open", "salvage"]

if not hasattr(_tenfold, "Points"):
    raise ImportError("this build of Tenfold has no VS format")

_PAGE_POINTS, _PAGE_BYTES = 4096, 4 << 20


class Point(NamedTuple):
    """A point. `vector` is an array of numbers; a list if they are strings or JSON."""
    id: str
    vector: object
    app: object

    @property
    def offset(self):
        """The place of the point in the file, the first half of its id."""
        return int(self.id.partition(":")[0])


class Page(NamedTuple):
    """Points in file order. `vectors` is one array, with a row for each point; a list if they are
    not numbers."""
    ids: list
    vectors: object
    apps: list


class Space(NamedTuple):
    """The properties that all points of a file share.

    dims          the shape of a vector
    resolution    the format's name of a coordinate's type, such as "f32", "string" or "json"
    dtype         the type ("f32" …); None if coordinates are not numbers
    attributes    of the application: a tree, or None
    pack          the file's setting for new vectors: 1 is snappy
    paging        as in the file; its meaning is unknown
    elements      coordinates of a vector
    vector_bytes  bytes of a vector; 0 if vectors differ in size
    """
    dims: "tuple[int, ...]"
    resolution: str
    dtype: "str | None"
    attributes: object
    pack: int
    paging: int
    elements: int
    vector_bytes: int


class Report(NamedTuple):
    """The content of a file in numbers, and its problems; false if there are problems."""
    file_bytes: int
    points: int
    blanks: int
    blank_bytes: int
    unknown: int
    unknown_bytes: int
    trailing: int
    terminal: bool
    stopped_at: int
    problems: list

    def __bool__(self):
        return not self.problems


class Salvaged(NamedTuple):
    """The points before the first damage of a file."""
    points: list
    report: Report


class Moves(dict):
    """What a compaction moved: {old offset: new offset}. moves["37:0badcafe"] is the new id."""

    def __missing__(self, key):
        if isinstance(key, str):
            offset, colon, hash = key.partition(":")
            if colon and offset.isdecimal() and int(offset) in self:
                return f"{self[int(offset)]}:{hash}"
        raise KeyError(key)


def _options(lock, timeout, sync, pack, pack_app, msb, write):
    return {"lock": lock, "timeout": timeout, "sync": sync, "pack": pack, "pack_app": pack_app,
            "msb": msb, "write": write}


def open(path, mode="r", *, lock=True, timeout=None, sync=True, pack="auto", pack_app=False, msb=False):
    """Opens a VS file.

    mode      "r", or "r+" to change it
    lock      False: takes no locks, for file systems without them. Nobody else may use the file.
    timeout   seconds to wait while another program has the lock; None: for ever; 0: not at all.
              Then a call raises BlockingIOError (a SystemIOError).
    sync      False: does not wait for the disk; a power cut may damage the file
    pack      how vectors of new points are stored: "raw", "gzip", "snappy", or "auto", as the file says
    pack_app  compress application data
    msb       numbers in the file have their most significant bits first
    """
    if mode not in ("r", "r+"):
        raise ValueError(f"mode must be 'r' or 'r+', not {mode!r}")
    return Points(path, _options(lock, timeout, sync, pack, pack_app, msb, mode == "r+"), None)


def create(path, dims, resolution="f32", *, attributes=None, lock=True, timeout=None, sync=True,
           pack="auto", pack_app=False, msb=False):
    """Makes a file, and opens it to be changed. ExistsError if there is one that is not empty.

    dims        the shape of a vector, or its length; () means one number for each point
    resolution  "bit", "u8" … "u64", "i8" … "i64", "f16", "f32", "f64", "string" or "json"
    attributes  of the application: None, or a tree of dicts, lists and so on; None is an empty map
    pack        "snappy" is also noted in the file, for later writers
    The other keywords are those of open().
    """
    shape = (dims,) if isinstance(dims, int) else tuple(dims)
    space = {"dims": shape, "resolution": str(resolution), "attributes": attributes}
    return Points(path, _options(lock, timeout, sync, pack, pack_app, msb, True), space)


def salvage(path, *, lock=True, timeout=None, msb=False):
    """The points before the first damage of a file, whose header must be intact, and what is
    damaged."""
    with Points(path, _options(lock, timeout, True, "auto", False, msb, False), None) as p:
        return p.salvage()


class Points:
    """An open VS file, which open() and create() return. Several threads may use it; each call waits
    until the others are done. A process needs its own."""

    def __init__(self, path, options, space):
        self._points = _tenfold.Points(path, options, space)

    # ------------------------------------------------------------------- file

    def close(self):
        """Closes the file, after the calls of other threads."""
        self._points.close()

    @property
    def closed(self):
        return self._points.closed

    @property
    def path(self):
        return self._points.path

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.close()

    def __repr__(self):
        return "<tenfold.Points: closed>" if self.closed else f"<tenfold.Points {self.path!r}>"

    @property
    def space(self):
        """The Space as of the last call; None if the file has none yet, and therefore no points."""
        told = self._points.space()
        return None if told is None else Space(**told)

    # ------------------------------------------------------------------- read

    def __iter__(self):
        return self.after(None)

    def after(self, id):
        """The points after that one, in file order: those that were appended since. The point
        itself may be deleted meanwhile.

        The points are read in pages, and no lock is held between them. So an iteration sees points
        that others append meanwhile, and raises NotFoundError if the file is compacted meanwhile.
        page() reads all points as of one moment."""
        full = True
        while full:
            (ids, vectors, apps), full = self._points.page(id, _PAGE_POINTS, _PAGE_BYTES, True)
            yield from map(Point, ids, vectors, apps)
            id = ids[-1] if ids else id

    def page(self, after=None, limit=None):
        """A Page of all points, or of the next `limit` points after the one with that id."""
        if limit is not None and limit < 1:
            raise ValueError(f"limit must be at least 1, not {limit}")
        return Page(*self._points.page(after, limit or 0, 0, False)[0])

    def read(self, id):
        """The Point with that id. NotFoundError if it was deleted or moved."""
        ids, vectors, apps = self._points.read(id)
        return Point(ids[0], vectors[0], apps[0])

    def verify(self):
        """Follows every block and decodes every point: a Report, which is false if there are
        problems."""
        return _report(*self._points.verify())

    def salvage(self):
        """Like the function salvage()."""
        told, report, damage = self._points.salvage()
        return Salvaged(list(map(Point, *told)), _report(report, [damage] if damage else []))

    # ------------------------------------------------------------------ change

    def append(self, vectors, apps=None):
        """Appends points, all of them or none, and returns their ids.

        vectors  an array with a row for each point, or a list of vectors: arrays, or lists of
                 numbers. An array must have the type of the space, or one that fits into it
                 without a loss. Numbers in lists must be in the range of the type.
        apps     their application data: None, or a list with a value for each point. A value is
                 None (no data), a bool, number, str, bytes, list or dict.
        """
        space = self._points.space()
        if space is None:
            raise InvalidError("the file has no space, so it cannot have points")
        return self._points.append(_rows(vectors, space), None if apps is None else tuple(apps))

    def add(self, vector, app=None):
        """Appends one point, and returns its id."""
        return self.append([vector], None if app is None else [app])[0]

    def delete(self, ids, *, shred=False, unchecked=False):
        """Deletes points by id, all of them or none. NotFoundError if one of them is not there.

        ids        an id, or several
        shred      also overwrite the bytes
        unchecked  ids may be offsets, as int, and whatever is there now is deleted
        """
        if isinstance(ids, (str, int)):
            ids = (ids,)
        self._points.delete(tuple(ids), shred, unchecked)

    def delete_app(self, app, *, shred=False):
        """Deletes all points with that application data, as JSON compares (1 equals 1.0); None:
        those without. Returns their number. NotFoundError if there are none."""
        return self._points.delete_app(app, shred)

    def compact(self, *, drop_unknown=False):
        """Frees the space of deleted points. The result maps old ids and offsets to new ones."""
        return Moves(self._points.compact(drop_unknown))

    def set_attributes(self, attributes, *, in_place=False):
        """Sets the attributes of the application (None: none). In most cases this compacts the file,
        and older ids are refused. With in_place a power cut may leave them half written."""
        self._points.set_attributes(attributes, in_place)


def _report(told, problems):
    return Report(**told, problems=[Problem(*problem, None) for problem in problems])


# -------------------------------------------------------------------- vectors

# The codes of struct for types; bits are bytes of 0 and 1.
_CODES = {"u8": "B", "i8": "b", "u16": "H", "i16": "h", "u32": "I", "i32": "i", "u64": "Q", "i64": "q",
          "f16": "e", "f32": "f", "f64": "d"}


def _rows(vectors, space):
    """What the extension's append() takes: a buffer of all vectors, or a tuple of the vectors."""
    if space["dtype"] is not None and _is_array(vectors):
        return _packed(vectors, space, False)
    return tuple(_packed(vector, space, True) if space["dtype"] is not None and _is_array(vector)
                 else _listed(vector, space) for vector in vectors)


def _is_array(value):
    if isinstance(value, bytes):
        return False
    if hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__"):
        return True
    try:
        memoryview(value)
    except TypeError:
        return False
    return True


def _packed(array, space, one):
    """The bytes of an array of one vector, or of several."""
    try:
        import numpy
    except ImportError:
        return _packed_plain(array, space, one)
    if hasattr(array, "detach"):
        array = array.detach()
    array = numpy.asarray(array)
    _check_shape(array.shape, space, one)
    bits = space["dtype"] == "bit"
    want = numpy.dtype("?" if bits else "<" + _CODES[space["dtype"]])
    if bits and array.dtype.kind in "ui" and ((array == 0) | (array == 1)).all():
        array = array.astype("?")
    if not numpy.can_cast(array.dtype, want, "safe"):
        raise TypeError(f"the space has the type {space['dtype']}; {array.dtype} does not fit into it: "
                        "convert the array")
    array = numpy.ascontiguousarray(array, dtype=want)
    if bits:
        rows = array.reshape(1 if one else len(array), space["elements"])
        array = numpy.packbits(rows, axis=1, bitorder="little")
    return memoryview(array.reshape(-1)).cast("B")


def _packed_plain(array, space, one):
    try:
        view = memoryview(array)
    except TypeError:
        view = memoryview(_tenfold.from_dlpack(array))
    _check_shape(view.shape, space, one)
    if space["dtype"] not in _CODES or view.format.lstrip("@=<") != _CODES[space["dtype"]]:
        raise TypeError(f"the space has the type {space['dtype']}; an array of the format "
                        f"{view.format!r} needs numpy")
    return view.tobytes()


def _check_shape(shape, space, one):
    shape, dims = tuple(shape), tuple(space["dims"])
    row = shape if one else shape[1:]
    if (not one and not shape) or (row != dims and row != (space["elements"],)):
        wanted = dims if one else ("n", *dims)
        raise ValueError(f"the array has the shape {shape}, not ({', '.join(map(str, wanted))})")


def _flat(values):
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _flat(value)
        else:
            yield value


def _number_bytes(values, space):
    """The bytes of a list of numbers, each of which must be in the range of the type."""
    import struct
    if len(values) != space["elements"]:
        raise InvalidError(f"a vector has {len(values)} numbers, not {space['elements']}")
    try:
        if space["dtype"] != "bit":
            return struct.pack(f"<{len(values)}{_CODES[space['dtype']]}", *values)
        packed = bytearray((len(values) + 7) // 8)
        for i, value in enumerate(values):
            if value not in (0, 1):
                raise OverflowError(f"{value!r} is not a bit")
            packed[i // 8] |= int(value) << i % 8
        return packed
    except (struct.error, OverflowError) as error:
        for value in values:
            if not hasattr(value, "__index__") and not (space["dtype"][0] == "f" and hasattr(value, "__float__")):
                raise TypeError(f"{value!r} is not a number of the type {space['dtype']}") from None
        raise InvalidError(f"a number does not fit into the type {space['dtype']}: {error}") from None


def _listed(vector, space):
    """The bytes of a list of numbers; a line of JSON for other coordinates."""
    if isinstance(vector, (str, bytes)):
        raise TypeError(f"a vector must be a list or an array, not {type(vector).__name__}")
    try:
        values = list(vector)
    except TypeError:
        if space["dims"] or space["dtype"] is None:
            raise TypeError(f"a vector must be a list or an array, not {type(vector).__name__}") from None
        values = [vector]
    if space["resolution"].lower() != "json":
        values = list(_flat(values))
    if space["dtype"] is not None:
        return _number_bytes(values, space)
    import json
    return json.dumps({"values": values}, allow_nan=False)
