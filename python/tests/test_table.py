# SPDX-License-Identifier: MIT
"""The table of differences to safetensors. If safetensors is installed, each row is checked with
both packages, so that the table stays correct. `python3 test_table.py --print` makes the table of
docs/python.md.

    row(what, call, theirs, ours)     what `call` gives, as text
"""
import os
import pickle
import sys
import types
import unittest

import support
from support import ml_dtypes, numpy as np, safetensors

if np is not None:
    import tenfold.compat.safetensors as ours
    import tenfold.compat.safetensors.numpy

SAME = object()
ROWS = []


def row(what, call, theirs, mine=SAME):
    ROWS.append((what, call, theirs, theirs if mine is SAME else mine))


def rows():
    """The rows, in a function since the calls need numpy."""
    A = np.arange(50, dtype="f4").reshape(10, 5)
    bound = "index {} out of bounds for tensor dimension #{} of size {}"
    wrong = "Error during slicing [{}] with shape [{}]: {}"
    odd = "Unsupported slice index at position {}: expected slice, int, or ellipsis"
    more = "more slicing indexes than dimensions in tensor"

    def error(text, kind="SafetensorError"):
        return f"{kind}: {text}"

    def at(key):
        return lambda p: p.slice[key]

    row("keys() are sorted by name", lambda p: p.file.keys(), "['a', 'b', 'c', 's']")
    row("offset_keys() are in the order of the data", lambda p: p.file.offset_keys(),
        "['b', 'a', 's', 'c']")
    row("get_tensors() likewise", lambda p: list(p.file.get_tensors()), "['b', 'a', 's', 'c']")
    row("the order of load() of bytes", lambda p: list(p.np.load(p.data)), "[",
        "['b', 'a', 's', 'c']")
    row("load_file() likewise", lambda p: list(p.np.load_file(p.path)), "['b', 'a', 's', 'c']")
    row("metadata() without any", lambda p: p.file.metadata(), "None")
    row("get_tensor() is writable", lambda p: p.file.get_tensor("a").flags.writeable, "True")
    row("get_tensor() of a scalar", lambda p: p.file.get_tensor("s").shape, "()")
    row("get_tensor('nope')", lambda p: p.file.get_tensor("nope"),
        error("File does not contain tensor nope"))
    row("get_slice('nope')", lambda p: p.file.get_slice("nope"),
        error("File does not contain tensor nope"))
    row("get_tensor(3)", lambda p: p.file.get_tensor(3), "TypeError")
    row("keys() after the end", lambda p: p.closed.keys(), error("File is closed"))
    row("get_tensor() after the end", lambda p: p.closed.get_tensor("a"), error("File is closed"))
    row("a file that is not there", lambda p: p.all.safe_open("notafile", "np"),
        error("No such file or directory: notafile", "FileNotFoundError"))
    row("a directory", lambda p: p.all.safe_open(p.folder, "np").keys(), "OSError",
        "['a', 'b', 'c', 's']")
    row("a path of bytes", lambda p: p.all.safe_open(p.path.encode(), "np").keys(), "TypeError",
        "['a', 'b', 'c', 's']")
    row("a descriptor", lambda p: p.all.safe_open(p.opened.fileno(), "np").keys(), "TypeError",
        "['a', 'b', 'c', 's']")
    row("load() of a memoryview", lambda p: len(p.np.load(memoryview(p.data))), "TypeError", "4")
    row("an unknown framework", lambda p: p.all.safe_open(p.path, "xx"),
        error("framework xx is invalid"))
    row("an unknown device", lambda p: p.all.safe_open(p.path, "np", device="nope"),
        error("device nope is invalid"))
    row("an unknown backend", lambda p: p.all.safe_open(p.path, "np", backend="q"),
        error('backend "q" is invalid (expected one of: "mmap", "pread")'))
    row("numpy on a device", lambda p: p.all.safe_open(p.path, "np", device="cuda"),
        error("Device cuda:0 is not supported for framework numpy"))
    for text, key, shape in (("[0]", 0, (5,)), ("[-1]", -1, (5,)), ("[1:]", np.s_[1:], (9, 5)),
                             ("[::2]", np.s_[::2], (5, 5)), ("[...]", ..., (10, 5)),
                             ("[..., 0]", np.s_[..., 0], (10,)), ("[0, 0]", (0, 0), ()),
                             ("[()]", (), (10, 5)), ("[:0]", np.s_[:0], (0, 5)),
                             ("[[]]", [], (0, 5)), ("[3:3]", np.s_[3:3], (0, 5)),
                             ("[True]", True, (5,)), ("[0, ..., 0]", np.s_[0, ..., 0], ())):
        row(f"get_slice(){text}", lambda p, key=key: p.slice[key].shape, str(shape))
    row("get_slice()[-2:]", lambda p: p.slice[-2:].shape, "OverflowError", "(2, 5)")
    row("get_slice()[::-1]", lambda p: p.slice[::-1].shape,
        error("Slice step must be a positive integer, got -1"), "(10, 5)")
    row("get_slice()[:20]", at(np.s_[:20]), error(wrong.format(":20", "10, 5",
                                                               bound.format(19, 0, 10))))
    row("get_slice()[:, :20]", at(np.s_[:, :20]),
        error(wrong.format(":, :20", "10, 5", bound.format(19, 1, 5))))
    row("get_slice()[10:]", at(np.s_[10:]), error(wrong.format("10:", "10, 5",
                                                               bound.format(10, 0, 10))))
    row("get_slice()[1:20:3, 2]", at(np.s_[1:20:3, 2]),
        error(wrong.format("1:20:3, 2", "10, 5", bound.format(19, 0, 10))))
    row("get_slice()[5:2]", lambda p: p.slice[5:2].shape, "SystemError", "(0, 5)")
    row("get_slice()[2:, -6]", at(np.s_[2:, -6]),
        error("Invalid index -6 for dimension 1 of size 5"))
    row("get_slice()[2:, 20]", at(np.s_[2:, 20]),
        error(wrong.format("2:, 20", "10, 5", bound.format(20, 1, 5))))
    row("get_slice()[[0, 1]]", at([0, 1]), error("Non empty lists are not implemented"))
    row("get_slice()[0, 0, 0]", at((0, 0, 0)), error(wrong.format("0, 0, 0", "10, 5", more)))
    row("get_slice('s')[:]", lambda p: p.file.get_slice("s")[:],
        error(wrong.format(":", "", more)))
    row("get_slice()[..., ...]", at(np.s_[..., ...]),
        error("Only one ellipsis (...) is allowed in slice index"))
    row("get_slice()[None]", at(None), error(odd.format(0)))
    row("get_slice()['x']", at("x"), error(odd.format(0)))
    row("get_slice()[1.0]", at(1.0), error(odd.format(0)))
    row("get_slice()[0, None]", at((0, None)), error(odd.format(1)))
    row("get_shape()", lambda p: p.slice.get_shape(), "[10, 5]")
    row("get_dtype()", lambda p: p.slice.get_dtype(), "F32")

    def written(p, data):
        with open(p.other, "wb") as f:
            f.write(data)
        return p.other

    def replaced(p):
        p.np.save_file({"x": np.zeros(3, "f4")}, p.other)
        with p.all.safe_open(p.other, "np") as f:
            x = f.get_tensor("x")
            written(p, b"something else, longer than the file was before")
            return x[1]

    def pickled(p):
        try:
            p.file.get_tensor("nope")
        except p.all.SafetensorError as found:
            return "SafetensorError" if isinstance(pickle.loads(pickle.dumps(found)),
                                                   p.all.SafetensorError) else "another class"

    def reserved(p):
        path = p.other + ".reserved"
        try:
            p.np.save_file({"__metadata__": A}, path)
        except p.all.SafetensorError:
            pass
        return os.path.exists(path)

    def saved(value):
        return lambda p: p.np.load(p.np.save({"x": value}))["x"].tolist()

    flat = np.arange(6).reshape(2, 3)
    row("save of a transposed array", saved(flat.T), "[[0, 1], [2, 3], [4, 5]]",
        "[[0, 3], [1, 4], [2, 5]]")
    row("save of an array in Fortran's order", saved(np.asfortranarray(flat)),
        "[[0, 3, 1], [4, 2, 5]]", "[[0, 1, 2], [3, 4, 5]]")
    row("save of every second element", saved(np.arange(6)[::2]), "[0, 1, 2]", "[0, 2, 4]")
    row("save of big-endian numbers", saved(np.arange(3, dtype=">i4")), "[0, 1, 2]")
    row("save of a numpy scalar", saved(np.float32(3)), "AttributeError", "3.0")
    row("save of a list", saved([1]), "AttributeError", "TypeError")
    row("save of None", saved(None), "AttributeError", "TypeError")
    row("a name that is not a str", lambda p: p.np.save({1: A}), "TypeError")
    row("metadata that are not str", lambda p: p.np.save({"a": A}, {"a": 1}), "TypeError")
    for text, value in (("complex128", np.zeros(2, "c16")), ("text", np.array(["x"])),
                        ("datetime", np.zeros(2, "M8[s]")), ("objects", np.array([None])),
                        ("records", np.zeros(2, [("a", "f4")])),
                        ("longdouble", np.zeros(2, np.longdouble))):
        row(f"save of {text}", saved(value), 'SafetensorError: Unknown dtype "')
    row("save({})", lambda p: p.np.save({}), str(b"\x08\0\0\0\0\0\0\0{}      "))
    row("metadata={}", lambda p: p.np.save({"x": np.zeros(1, "u1")}, {}),
        str(b'H\0\0\0\0\0\0\0{"__metadata__":{},"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
            b" \0"))
    row("save({}, {})", lambda p: p.np.save({}, {}),
        str(b"\x18\0\0\0\0\0\0\0{},\"__metadata__\":{}}   "),
        str(b'\x18\0\0\0\0\0\0\0{"__metadata__":{}}     '))
    row("metadata() of an empty map", lambda p: p.all.safe_open(
        written(p, p.np.save({"x": A}, {})), "np").metadata(), "{}")
    row("metadata()", lambda p: p.all.safe_open(
        written(p, p.np.save({"x": A}, {"k": "v"})), "np").metadata(), "{'k': 'v'}")
    row("the order of two metadata entries", lambda p: p.np.save({}, {"b": "1", "a": "2"})[8:],
        "b'{\"", str(b'{"__metadata__":{"b":"1","a":"2"}}      '))
    row("a tensor named __metadata__", lambda p: p.np.load(p.np.save({"__metadata__": A})),
        "SafetensorError: ")
    row("saving a tensor named __metadata__ leaves a file", reserved, "True", "False")
    row("safe_open() of a file of random bytes", lambda p: p.all.safe_open(
        written(p, np.random.default_rng(1).bytes(4096)), "np"),
        error("Error while deserializing header: header too large"),
        "names unrecognised")
    row("a file that is cut short", lambda p: p.np.load(p.data[:-3]),
        error("Error while deserializing: incomplete metadata, file not fully covered"),
        "SafetensorError: safetensors: the file has ")
    row("a file with bytes at its end", lambda p: p.np.load(p.data + b"xyz"),
        error("Error while deserializing: incomplete metadata, file not fully covered"),
        "SafetensorError: safetensors: 3 bytes after ")
    for what, data, said in (
            ("a Git LFS pointer", b"version https://git-lfs.github.com/spec/v1\n"
             b"oid sha256:" + b"0" * 64 + b"\nsize 12\n", "git-LFS"),
            ("an HTML page", b"<!DOCTYPE html><html><head><title>404</title></head></html>", "HTML")):
        row(f"safe_open() of {what}",
            lambda p, data=data: p.all.safe_open(written(p, data), "np"),
            error("Error while deserializing header: header too large"), f"names {said}")
    row("get_tensor() is in C order", lambda p: p.file.get_tensor("a").flags.c_contiguous, "True")
    row("a file replaced under get_tensor()", replaced, "0.0")
    row("an error can be pickled", lambda p: pickled(p), "SafetensorError")
    row("an error's class can be imported", lambda p: hasattr(
        sys.modules[p.all.SafetensorError.__module__], p.all.SafetensorError.__name__), "True")
    if ml_dtypes is not None:
        narrow = np.arange(3).astype(ml_dtypes.bfloat16)
        eight = np.arange(3).astype(ml_dtypes.float8_e4m3fn)
        four = np.arange(4).astype(ml_dtypes.float4_e2m1fn)
        row("load(bytes) of bf16", saved(narrow), "KeyError", "[0.0, 1.0, 2.0]")
        row("load(bytes) of fp8", saved(eight), "KeyError", "[0.0, 1.0, 2.0]")

        def by_file(value):
            def call(p):
                p.np.save_file({"x": value}, p.other)
                return p.np.load_file(p.other)["x"].tolist()
            return call
        row("load_file() of bf16", by_file(narrow), "[0.0, 1.0, 2.0]")
        row("load_file() of fp8", by_file(eight), "AttributeError", "[0.0, 1.0, 2.0]")
        for narrow_type in ("float6_e2m3fn", "float6_e3m2fn"):
            six = np.arange(4).astype(getattr(ml_dtypes, narrow_type))
            row(f"save of {narrow_type}", by_file(six), "SafetensorError: ", "[0.0, 1.0, 2.0, 3.0]")
        row("save of int4", by_file(np.arange(4).astype(ml_dtypes.int4)), "SafetensorError: ")
        row("save of f4", by_file(four), "SafetensorError: ", "[0.0, 1.0, 2.0, 3.0]")
    row("TensorSpec of nonsense",
        lambda p: p.all.TensorSpec(dtype="nonsense", shape=[1], data_ptr=0, data_len=0),
        'SafetensorError: Unknown dtype "nonsense"')
    row("serialize() of a dict", lambda p: p.all.serialize({"a": {}}), "TypeError")
    row("deserialize()", lambda p: type(p.all.deserialize(p.data)[0][1]["data"]).__name__,
        "bytearray")
    row("deserialize(b'123')", lambda p: p.all.deserialize(b"123"), "SafetensorError: ")


def answer(package, call):
    """The result of a call as text: a value, or the class of an error with its text."""
    try:
        return str(call(package))
    except BaseException as error:  # a Rust panic is not an Exception
        names = [c.__name__ for c in type(error).__mro__]
        kind = next((n for n in ("SafetensorError", "Error") if n in names), names[0])
        if kind == "Error":
            kind = "SafetensorError"
        if isinstance(error, FileNotFoundError):
            kind = "FileNotFoundError"
        return f"{kind}: {error}"


@unittest.skipIf(np is None, "needs numpy")
class Table(support.Case):
    @classmethod
    def setUpClass(cls):
        if not ROWS:
            rows()

    def package(self, all, numpy):
        p = types.SimpleNamespace(all=all, np=numpy, folder=self.path("model"))
        p.path = self.path("model/model.safetensors")
        p.other = self.path("other.safetensors")
        with open(p.path, "rb") as f:
            p.data = f.read()
        p.opened = open(p.path, "rb")
        self.addCleanup(p.opened.close)
        p.closed = all.safe_open(p.path, "np")
        with p.closed:
            pass
        p.file = all.safe_open(p.path, "np")
        p.slice = p.file.get_slice("a")
        return p

    def ask(self, all, numpy, which):
        import warnings
        os.mkdir(self.path("model"))
        A = np.arange(50, dtype="f4").reshape(10, 5)
        tenfold.compat.safetensors.numpy.save_file(
            {"a": A, "b": np.arange(3), "c": np.zeros(2, "u1"), "s": np.array(3, "f4")},
            self.path("model/model.safetensors"))
        p = self.package(all, numpy)
        for what, call, *expected in ROWS:
            with self.subTest(what), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                wanted, got = expected[which], answer(p, call)
                if wanted.startswith("names "):
                    self.assertIn(wanted[6:], got)
                    continue
                exact = wanted[-1] not in '" [' and "nonsense" not in wanted
                if ": " not in wanted and wanted.endswith("Error"):
                    self.assertEqual(got.split(":")[0], wanted)
                elif exact:
                    self.assertEqual(got, wanted)
                else:
                    self.assertTrue(got.startswith(wanted), f"{got!r} is not {wanted!r}")

    def test_ours(self):
        self.ask(ours, tenfold.compat.safetensors.numpy, 1)

    @unittest.skipIf(safetensors is None or
                     not safetensors.__version__.startswith("0.8."), "needs safetensors 0.8")
    def test_theirs(self):
        self.ask(safetensors, safetensors.numpy, 0)


def table():
    """The rows in which both differ, in Markdown."""
    if not ROWS:
        rows()
    lines = ["| call | safetensors 0.8.0 | Tenfold |", "|---|---|---|"]
    for what, _, theirs, mine in ROWS:
        told = "a different order each time" if theirs in ("[", "b'{\"") else f"`{theirs.strip()}`"
        said = f"an error with `{mine[6:]}`" if mine.startswith("names ") else f"`{mine.strip()}`"
        if theirs != mine:
            lines.append(f"| {what} | {told} | {said} |")
    return lines


if __name__ == "__main__":
    if sys.argv[1:] == ["--print"]:
        print("\n".join(table()))
    else:
        unittest.main()
