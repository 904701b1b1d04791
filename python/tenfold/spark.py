# SPDX-License-Identifier: MIT
"""Tensors and word vectors as data frames of Spark 4.

    spark.dataSource.register(tenfold.spark.TensorSource)
    spark.read.format("tenfold").load("model.safetensors")                    # a row for each tensor
    spark.read.format("tenfold").option("as", "rows").load("vectors.fifu")    # a row for each vector

The package must be installed on the machines of the executors, which must have access to the files
under the same paths or URLs. Options: path, as, parts, select, columns, format, embeddings, vocab, words.
"""
from ._plain import need as _need

_need("pyspark", __name__, "spark")
_need("pyarrow", __name__, "spark")
try:
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
except ImportError as _error:
    import pyspark as _pyspark
    raise ImportError(f"tenfold.spark needs pyspark 4 or later; this is {_pyspark.__version__}") from \
        _error

from . import _tenfold, open as _open
from ._errors import ChangedError, InvalidError
from ._more import pinned as _pinned

__all__ = ["TensorSource", "convert", "hash", "nearest", "run", "verify"]

_PART = 256 << 20   # bytes of a partition, if their number is not given
_BATCH = 8 << 20    # bytes of a record batch
_MOST = 100_000     # partitions

# Columns from the header, and columns for which the values must be read.
_LOOKED = {"name": "string", "dtype": "string", "shape": "array<bigint>", "nbytes": "bigint",
           "layout": "string", "order": "string", "file": "string", "offset": "bigint",
           "stored": "bigint", "encoding": "string"}
_COUNTED = {"elements": "bigint", "nan": "bigint", "inf": "bigint", "zero": "bigint",
            "subnormal": "bigint", "min": "double", "max": "double", "mean": "double",
            "std": "double"}
_ROWS = {"word": "string", "row": "bigint", "vector": "array<float>"}


def _invalid(text):
    return InvalidError(text, status="EINVAL", code=-10)


def _escaped(name):
    """A pattern that only matches this name."""
    return "".join(f"[{c}]" if c in "*?[" else "\\\\" if c == "\\" else c for c in name)


class _Options:
    """The options of a source, checked."""

    def __init__(self, options):
        known = {key.lower(): value for key, value in options.items()}
        self.path = known.pop("path", None)
        self.kind = known.pop("as", "tensors")
        self.parts = known.pop("parts", None)
        self.select = known.pop("select", None)
        self.columns = known.pop("columns", None)
        self.opening = {"format": known.pop("format", None)}
        self.names = {"embeddings": known.pop("embeddings", None), "vocab": known.pop("vocab", None)}
        self.words = known.pop("words", "text")
        if known:
            raise _invalid(f"unknown option {sorted(known)[0]!r}; the options are path, as, parts, "
                           "select, columns, format, embeddings, vocab, words")
        if not self.path:
            raise _invalid("no file was given; use .load(path), or the option path")
        if self.kind not in ("tensors", "rows"):
            raise _invalid(f"as must be tensors or rows, not {self.kind!r}")
        if self.words not in ("text", "binary"):
            raise _invalid(f"words must be text or binary, not {self.words!r}")
        if self.parts is not None and not (self.parts.isdigit() and 0 < int(self.parts) <= _MOST):
            raise _invalid(f"parts must be a number from 1 to {_MOST}, not {self.parts!r}")

    def schema(self):
        if self.kind == "rows":
            all_of_them = dict(_ROWS, word="binary" if self.words == "binary" else "string")
            usual = list(all_of_them)
        else:
            all_of_them, usual = {**_LOOKED, **_COUNTED}, list(_LOOKED)
        names = [name.strip() for name in self.columns.split(",")] if self.columns else usual
        for name in names:
            if name not in all_of_them:
                raise _invalid(f"unknown column {name!r}; the columns are {', '.join(all_of_them)}")
        return {name: all_of_them[name] for name in names}

    def count(self, nbytes, most):
        """The number of partitions for `nbytes`, at most `most`."""
        n = int(self.parts) if self.parts is not None else -(-nbytes // _PART)
        return max(1, min(n, most, _MOST))

    def open(self):
        return _open(self.path, **self.opening)

    def checked(self, state):
        """The opened file. An error if it has changed since partitions were planned."""
        file = self.open()
        if self.state() != state:
            file.close()
            raise ChangedError("the input has changed since it was planned", status="ECHANGED",
                               code=-15, path=_tenfold.shown(self.path))
        return file

    def state(self):
        """The state of the input, which must be the same when a partition is read. It is taken
        after opening, so that the opened file is not older."""
        return _pinned(self.path, self.opening["format"])


class _Part(InputPartition):
    """Some tensors, or rows [start, stop), of a file with this state."""

    def __init__(self, state, what):
        super().__init__(what)
        self.state = state


def _cut(sizes, n):
    """Divides a list into at most n runs of about the same sum: [(start, stop)]."""
    total, result, start, done = sum(sizes), [], 0, 0
    for i, size in enumerate(sizes):
        done += size
        if done * n >= total * (len(result) + 1) and len(result) < n - 1 or i == len(sizes) - 1:
            result.append((start, i + 1))
            start = i + 1
    return result


# ------------------------------------------------------------------------ tensors

class _TensorReader(DataSourceReader):
    """A row for each tensor. Only statistics read more than headers."""

    def __init__(self, options):
        self.options = options

    def _names(self, file):
        names = file.placed()
        if self.options.select:
            wanted = set()
            for pattern in self.options.select.split(","):
                wanted.update(file.glob(pattern.strip()))
            names = [name for name in names if name in wanted]
        return names

    def partitions(self):
        with self.options.open() as file:
            names, state = self._names(file), self.options.state()
            # a header costs as much as a few KB, so that a model of empty tensors is divided, too
            sizes = [file[name].nbytes + 4096 for name in names]
            cuts = _cut(sizes, self.options.count(sum(sizes), len(names)))
            return [_Part(state, names[a:b]) for a, b in cuts] or [_Part(state, [])]

    def _row(self, file, name, columns, counted):
        tensor = file[name]
        path, offset, stored, encoding = tensor.location or (None, None, None, None)
        row = {"name": name, "dtype": tensor.dtype, "shape": list(tensor.shape),
               "nbytes": tensor.nbytes, "layout": tensor.layout, "order": tensor.order,
               "file": path, "offset": offset, "stored": stored, "encoding": encoding}
        if counted is not None:
            row.update(counted._asdict())
            if counted.elements == counted.nan + counted.inf:  # there is no finite number
                row.update(dict.fromkeys(("min", "max", "mean", "std")))
        return tuple(row.get(column) for column in columns)

    def read(self, partition):
        from . import stat
        columns = list(self.options.schema())
        with self.options.checked(partition.state) as file:
            for name in partition.value:
                counted = None
                if any(column in _COUNTED for column in columns):
                    counted = stat(file, [_escaped(name)], bins=1).get(name)
                yield self._row(file, name, columns, counted)


# --------------------------------------------------------------------------- rows

class _RowReader(DataSourceReader):
    """A row for each vector, in record batches over the memory that the library filled."""

    def __init__(self, options):
        self.options = options

    def _embeddings(self, file):
        return _tenfold.Embeddings(file, {**self.options.names, "threads": 1, "no_index": True})

    def partitions(self):
        with self.options.open() as file:
            info, state = self._embeddings(file).info, self.options.state()
        rows = info["words"] if info["has_words"] else info["rows"]
        n = self.options.count(rows * (4 * info["dims"] + 16), rows)
        return [_Part(state, (rows * i // n, rows * (i + 1) // n)) for i in range(n)]

    def _words(self, emb, rows, has_words):
        import pyarrow as pa
        kind = pa.binary() if self.options.words == "binary" else pa.string()
        words = [emb.word(row) for row in rows] if has_words else [None] * len(rows)
        if self.options.words == "binary":
            words = [word if word is None else word.encode("utf-8", "surrogateescape")
                     for word in words]
        try:
            return pa.array(words, kind)
        except (UnicodeError, pa.ArrowInvalid):
            raise _invalid("words of this file are not UTF-8; the option words=binary returns "
                           "their bytes") from None

    def _vectors(self, emb, rows):
        import pyarrow as pa
        array = emb.rows(rows)
        n, dims = array.shape
        values = pa.Array.from_buffers(pa.float32(), n * dims, [None, pa.py_buffer(array.raw)])
        offsets = pa.array(range(0, (n + 1) * dims, dims) if dims else [0] * (n + 1), pa.int32())
        return pa.ListArray.from_arrays(offsets, values)

    def read(self, partition):
        import pyarrow as pa
        columns, (start, stop) = list(self.options.schema()), partition.value
        with self.options.checked(partition.state) as file:
            emb = self._embeddings(file)
            step = max(1, _BATCH // (4 * emb.info["dims"] + 16))
            for at in range(start, stop, step):
                rows = range(at, min(at + step, stop))
                made = {"word": lambda: self._words(emb, rows, emb.info["has_words"]),
                        "row": lambda: pa.array(rows, pa.int64()),
                        "vector": lambda: self._vectors(emb, rows)}
                yield pa.RecordBatch.from_arrays([made[column]() for column in columns],
                                                 names=columns)


class TensorSource(DataSource):
    """The data source "tenfold": spark.dataSource.register(TensorSource).

    path        a file of any format, a directory, an index or a URL, as for tenfold.open()
    as          tensors: a row for each tensor (the default); rows: a row for each vector
    parts       the number of partitions; default: one for each 256 MiB
    select      tensors: patterns of names, with commas between them
    columns     names with commas between them; default: all that the headers provide. Tensors also
                have elements, nan, inf, zero, subnormal, min, max, mean and std, for which the values
                are read
    format      the format of the file; default: it is detected
    embeddings  rows: the name of the tensor of vectors; vocab: that of the words
    words       rows: binary returns the bytes of words, which may be invalid UTF-8
    """

    @classmethod
    def name(cls):
        return "tenfold"

    def schema(self):
        columns = _Options(self.options).schema()
        return ", ".join(f"`{name}` {kind}" for name, kind in columns.items())

    def reader(self, schema):
        options = _Options(self.options)
        return _RowReader(options) if options.kind == "rows" else _TensorReader(options)


# -------------------------------------------------------------------------- plans

class _Do:
    """The function of a task: does a part of a plan, of which it has the text."""

    def __init__(self, text, how):
        self.text, self.how = text, how

    def __call__(self, i):
        from .jobs import Job
        return Job(self.text).part(i, **self.how)


def run(spark, job, *, base=None, trust_content=False, threads=1):
    """Does a tenfold.jobs.Job on the executors, one task for each part, and finishes it on the
    driver. Returns the result of Job.finish(). Spark may do a part twice, or start it on two
    executors."""
    how = {"base": base, "trust_content": trust_content}
    receipts = spark.sparkContext.parallelize(range(job.parts), job.parts) \
        .map(_Do(job.text, {**how, "threads": threads})).collect()
    if base is not None or job.info["out"] is not None:
        receipts = None  # they are in files
    return job.finish(receipts, **how)


def _planned(spark, job, inputs, parts, **keywords):
    from .jobs import plan
    return run(spark, plan(job, inputs, parts, **keywords))


def convert(spark, src, dst, parts, **keywords):
    """tenfold.convert() on the executors, which must have access to both paths. The keywords are
    those of tenfold.jobs.plan()."""
    return _planned(spark, "convert", src, parts, out=dst, **keywords)


def verify(spark, src, parts, **keywords):
    """tenfold.verify() on the executors: {"ok": …, "files": […]}."""
    return _planned(spark, "verify", src, parts, **keywords)


def hash(spark, src, parts, **keywords):
    """tenfold.hash() on the executors: {"files": [{"hash": …, "tensors": […]}]}."""
    return _planned(spark, "hash", src, parts, **keywords)


def nearest(spark, src, queries, k=10, *, parts, **keywords):
    """The k words nearest to each word in `queries`: {"queries": [{"word": …, "hits": […]}]}."""
    return _planned(spark, "similar", src, parts, queries=queries, k=k, **keywords)
