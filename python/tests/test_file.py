# SPDX-License-Identifier: MIT
"""File, Tensor and Array: names, slices, buffers, DLPack, lifetimes, threads, forks, pickles."""
import collections.abc
import gc
import io
import os
import pickle
import random
import threading
import unittest
import warnings

import support
from support import ml_dtypes, numpy as np

import tenfold

NEW_NUMPY = np is not None and int(np.__version__.split(".")[0]) >= 2


@unittest.skipIf(np is None, "needs numpy")
class FileCase(support.Case):
    def setUp(self):
        super().setUp()
        self.arrays = {"w": np.arange(60, dtype="f4").reshape(3, 4, 5), "v": np.arange(7),
                       "s": np.array(2.5), "e": np.zeros((0, 3), "i2"),
                       "flags": np.array([True, False])}
        self.file = self.path("model.safetensors")
        tenfold.save(self.file, self.arrays)


class Names(FileCase):
    def test_mapping(self):
        with tenfold.open(self.file) as f:
            self.assertIsInstance(f, collections.abc.Mapping)
            self.assertEqual(len(f), 5)
            self.assertEqual(set(f), set(self.arrays))
            self.assertEqual(f.keys() & {"w", "x"}, {"w"})
            self.assertIn("w", f)
            self.assertNotIn("x", f)
            self.assertNotIn(3, f)
            self.assertIsNone(f.get("x"))
            self.assertEqual(f.get("w").shape, (3, 4, 5))
            self.assertEqual({name: t.dtype for name, t in f.items()},
                             {"w": "f32", "v": "i64", "s": "f64", "e": "i16", "flags": "bool"})
            self.assertEqual(sorted(f.glob("[sv]")), ["s", "v"])
            self.assertEqual((f.format, f.shards, f.path), ("safetensors", 0, self.file))
            self.assertIn("5 tensors", repr(f))

    def test_missing_names_those_that_are_near(self):
        with tenfold.open(self.file) as f:
            with self.assertRaises(KeyError) as caught:
                f["flag"]
            self.assertIn("'flags'", str(caught.exception))
            self.assertIsInstance(caught.exception, tenfold.NotFoundError)
            with self.assertRaises(TypeError):
                f[3]

    def test_sources(self):
        with open(self.file, "rb") as f:
            data = f.read()
        wanted = set(self.arrays)
        for source in (self.file.encode(), memoryview(data), bytearray(data), io.BytesIO(data),
                       os.PathLike, [self.file]):
            if source is os.PathLike:
                import pathlib
                source = pathlib.Path(self.file)
            with tenfold.open(source) as f:
                self.assertEqual(set(f), wanted)
                np.testing.assert_array_equal(f["w"][:], self.arrays["w"])
                np.testing.assert_array_equal(f.read_all()["v"], self.arrays["v"])
        with open(self.file, "rb") as opened:
            f = tenfold.open(opened.fileno())
        np.testing.assert_array_equal(f["w"].numpy(), self.arrays["w"])  # the File has its own descriptor
        with self.assertRaises(TypeError):
            tenfold.open(3.5)

    def test_file_objects_that_fail(self):
        class Broken(io.BytesIO):
            def read(self, n=-1):
                raise RuntimeError("the tape is torn")
        with open(self.file, "rb") as f:
            broken = Broken(f.read())
        with self.assertRaisesRegex(tenfold.Error, "the tape is torn"):
            tenfold.open(broken)

    def test_merged(self):
        other = self.path("other.npy")
        np.save(other, np.arange(4))
        with tenfold.open([self.file, other]) as f:
            self.assertEqual(len(f), 6)
            np.testing.assert_array_equal(f["w"].numpy(), self.arrays["w"])
            np.testing.assert_array_equal(np.from_dlpack(f["v"]), self.arrays["v"])

    def test_errors(self):
        with self.assertRaises(FileNotFoundError) as caught:
            tenfold.open(self.path("nothing"))
        self.assertIsInstance(caught.exception, tenfold.Error)
        self.assertEqual(caught.exception.errno, 2)
        cut = self.write("cut.safetensors", self.bytes_of("model.safetensors")[:-5])
        with self.assertRaises(tenfold.TruncatedError) as caught:
            tenfold.open(cut)
        error = caught.exception
        self.assertEqual((error.status, error.code, error.path), ("ETRUNCATED", -5, cut))
        self.assertIsInstance(error, ValueError)
        self.assertIsInstance(error.offset, int)
        self.assertIn("5 bytes are missing", str(error))
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual((str(again), again.status, again.offset, type(again)),
                         (str(error), error.status, error.offset, type(error)))
        again = pickle.loads(pickle.dumps(self.error_of(self.path("nothing"))))
        self.assertIsInstance(again, FileNotFoundError)

    def error_of(self, path):
        try:
            tenfold.open(path)
        except tenfold.Error as error:
            return error

    def test_warnings(self):
        data = self.bytes_of("model.safetensors")
        odd = self.write("odd.safetensors", data + b"xyz")
        with self.assertWarns(tenfold.FormatWarning):
            f = tenfold.open(odd, lenient=True)
        self.assertEqual(f.extras, {"safetensors.trailing": b"xyz"})
        told = []
        tenfold.open(odd, lenient=True, warn=lambda at, text: told.append(at))
        self.assertEqual(told, [len(data)])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with self.assertRaises(tenfold.FormatWarning):
                tenfold.open(odd, lenient=True)
            tenfold.open(odd, lenient=True, warn=False)

    def test_limits(self):
        with self.assertRaises(tenfold.LimitError):
            tenfold.open(self.file, limits={"objects": 2})

    def test_html(self):
        with tenfold.open(self.file) as f:
            self.assertIn("<td>w</td>", f._repr_html_())
            self.assertIn("<svg", f["w"]._repr_html_())


class Slices(FileCase):
    KEYS = [] if np is None else [
            0, -1, np.s_[1:], np.s_[::2], np.s_[::-1], np.s_[-2:], np.s_[:20], np.s_[5:2],
            np.s_[...], np.s_[..., 0], np.s_[0, ..., 1:3], np.s_[:, 1], (), np.s_[1, 2, 3],
            [2, 0, -1], ([1, 1], slice(None), 2), np.s_[2:0:-1, ::3, 4], np.int64(1), []]

    def test_as_numpy(self):
        for access in ("mmap", "pread"):
            with tenfold.open(self.file, access=access) as f:
                for key in self.KEYS:
                    wanted = self.arrays["w"][np.array(key, dtype=int) if isinstance(key, list) and not key else key]
                    got = f["w"][key]
                    self.assertEqual((got.shape, got.dtype), (wanted.shape, wanted.dtype), key)
                    np.testing.assert_array_equal(got, wanted)

    def test_random(self):
        rng = random.Random(3)
        with tenfold.open(self.file) as f:
            for _ in range(500):
                key = tuple(rng.choice((rng.randrange(n), slice(*(
                    rng.choice((None, rng.randrange(-7, 7))) for _ in range(2)),
                    rng.choice((None, 1, 2, -1, -3))), slice(None))) for n in (3, 4, 5))
                np.testing.assert_array_equal(f["w"][key], self.arrays["w"][key])

    def test_refused(self):
        with tenfold.open(self.file) as f:
            for key in (3, -4, (0, 0, 0, 0), None, True, "x", 1.0, np.s_[..., ...], [7], [[0]]):
                with self.assertRaises((IndexError, TypeError), msg=repr(key)):
                    f["w"][key]
            with self.assertRaises(IndexError):
                f["s"][0]
            self.assertEqual(f["s"][()], 2.5)

    def test_a_row_reads_a_row(self):
        big = self.path("big.safetensors")
        tenfold.save(big, {"w": np.zeros((1024, 1024), "f4")})

        def count():
            with open("/proc/self/io", encoding="ascii") as f:
                return int(f.readline().split()[1])
        with tenfold.open(big, access="pread") as f:
            tensor = f["w"]
            before = count()
            tensor[7]
            self.assertLess(count() - before, 3 * 4096)

    def test_columns(self):
        path = self.path("f.npy")
        wanted = np.asfortranarray(np.arange(12.0).reshape(3, 4))
        np.save(path, wanted)
        with tenfold.open(path) as f:
            tensor = next(iter(f.values()))
            self.assertEqual(tensor.order, "F")
            np.testing.assert_array_equal(tensor.numpy(), wanted)
            np.testing.assert_array_equal(tensor.numpy(copy=True), wanted)
            np.testing.assert_array_equal(tensor[1:, ::2], wanted[1:, ::2])
            np.testing.assert_array_equal(np.from_dlpack(tensor), wanted)
            np.testing.assert_array_equal(next(iter(f.read_all().values())), wanted)
            with self.assertRaises(BufferError):
                io.BytesIO().write(tensor)


class Buffers(FileCase):
    def test_views_are_read_only(self):
        with tenfold.open(self.file) as f:
            view = memoryview(f["w"])
            self.assertTrue(view.readonly)
            self.assertEqual((view.format, view.shape), ("f", (3, 4, 5)))
            array = f["w"].numpy()
            self.assertFalse(array.flags.writeable)
            self.assertTrue(f["w"].numpy(copy=True).flags.writeable)
            self.assertTrue(f["w"].numpy(writable=True).flags.writeable)
            self.assertIs(np.asarray(array), array)
            np.testing.assert_array_equal(np.array(f["w"]), self.arrays["w"])
            np.testing.assert_array_equal(np.asarray(f["w"], dtype="f8"), self.arrays["w"])
            self.assertEqual(f["w"].bytes(), self.arrays["w"].tobytes())

    def test_read_into(self):
        with tenfold.open(self.file) as f:
            out = np.empty((3, 4, 5), "f4")
            f["w"].read_into(out)
            np.testing.assert_array_equal(out, self.arrays["w"])
            with self.assertRaises(ValueError):
                f["w"].read_into(bytearray(3))
            with self.assertRaises((BufferError, TypeError)):
                f["w"].read_into(b"12345678" * 30)
            out[:] = 0
            self.assertIs(f.read_all(into={"w": out})["w"], out)
            np.testing.assert_array_equal(out, self.arrays["w"])
            for bad, error in (({"w": bytearray(3)}, ValueError), ({"none": out}, KeyError),
                               ({"w": bytes(240)}, (BufferError, TypeError))):
                with self.assertRaises(error):
                    f.read_all(into=bad)
            with self.assertRaises(KeyError):
                f.read_all(["w", "none"], into={"w": out})

    def test_all_types(self):
        kinds = ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?", "c8", "c16"]
        arrays = {k: np.arange(6).astype(k).reshape(2, 3) for k in kinds}
        path = self.path("all.zt")
        tenfold.save(path, arrays)
        with tenfold.open(path) as f:
            for k, wanted in arrays.items():
                ways = [f[k].numpy(), f[k][:], f[k].numpy(copy=True)]
                if NEW_NUMPY:  # older versions do not support bool
                    ways.append(np.from_dlpack(f[k]))
                for got in ways:
                    self.assertEqual(got.dtype, wanted.dtype)
                    np.testing.assert_array_equal(got, wanted)
            self.assertEqual(f["f4"].read().tolist(), arrays["f4"].tolist())

    def test_wide_integers(self):
        """i128 and u128 as Python's integers, everywhere exactly."""
        signed = [[0, -1], [2**64, -2**64], [2**127 - 1, -2**127]]
        unsigned = [[0, 2**128 - 1], [2**64, 2**64 - 1], [2**127 - 1, 2**127]]
        raw = b"".join(n.to_bytes(16, "little", signed=True) for row in signed for n in row)
        for path in (self.path("wide.zt"), self.path("wide.h5"), self.path("wide.safetensors")):
            tenfold.save(path, {"i": ("i128", signed, None), "u": ("u128", np.array(unsigned, object), None),
                                "b": ("i128", raw, (3, 2)), "v": ("i128", np.frombuffer(raw, "V16"), None),
                                "none": ("u128", np.zeros((0, 3), object), None),
                                "small": ("u128", np.arange(3), None)})
            with tenfold.open(path) as f:
                self.assertEqual((f["i"].dtype, f["u"].dtype, f["i"].shape), ("i128", "u128", (3, 2)))
                self.assertEqual(f["i"].bytes(), raw)
                for name, wanted in (("i", signed), ("b", signed), ("u", unsigned), ("small", [0, 1, 2]), ("none", [])):
                    got = f[name].numpy()
                    self.assertEqual((got.dtype, got.shape), (np.dtype(object), f[name].shape))
                    self.assertEqual(got.tolist(), wanted)
                    self.assertTrue(all(type(n) is int for n in got.flat))
                    self.assertEqual(np.asarray(f[name]).tolist(), wanted)
                    self.assertEqual(f[name].read().tolist(), wanted)
                self.assertEqual(f["v"].read().tolist(), sum(signed, []))
                self.assertEqual(f["i"][1:, ::-1].tolist(), [[-2**64, 2**64], [-2**127, 2**127 - 1]])
                self.assertEqual(f["u"][[2, 0]].tolist(), [unsigned[2], unsigned[0]])
                self.assertEqual(f.read_all()["u"].tolist(), unsigned)
                np.testing.assert_array_equal(f["i"].numpy(astype="f64"), np.array(signed, "f8"))
                from tenfold import _tenfold
                self.assertEqual(_tenfold.from_dlpack(f["u"]).dtype, "u128")
                self.assertEqual(_tenfold.from_dlpack(f["u"]).tolist(), unsigned)
                for how in (memoryview, np.from_dlpack, lambda t: t.numpy(copy=False), lambda t: t.numpy(astype="i64")):
                    with self.assertRaises((BufferError, RuntimeError, ValueError)):
                        how(f["i"])
                with self.assertRaisesRegex(BufferError, "no format for i128"):
                    memoryview(f["i"])
                again = self.path("again.zt")
                tenfold.save(again, {"u": f["u"]}, replace=True)
                with tenfold.open(again) as g:
                    self.assertEqual(g["u"].numpy().tolist(), unsigned)
        for bad in ([2**127], [-2**127 - 1], [1.5], ["1"], [None]):
            with self.assertRaisesRegex(ValueError, "not an integer of the type i128"):
                tenfold.save(None, {"w": ("i128", bad, None)}, format="ztensor2")
        with self.assertRaisesRegex(ValueError, "not an integer of the type u128"):
            tenfold.save(None, {"w": ("u128", [-1], None)}, format="ztensor2")
        with self.assertRaisesRegex(tenfold.Error, "i128"):
            tenfold.save(None, {"w": np.array([1], object)}, format="ztensor2")

    def test_typed_buffers(self):
        """A buffer of another width, or of references to objects, is not of the type."""
        for wrong in (("f64", np.arange(3, dtype="u1"), None), ("u64", np.array([1, 2], object), None),
                      ("u64", np.array([1, 2], object), (2,)), ("i128", np.array([1, 2, 3, 4], object), (2,))):
            with self.assertRaises(ValueError):
                tenfold.save(None, {"w": wrong}, format="ztensor2")

    def test_lists(self):
        """tolist() of types that memoryview does not have."""
        c = np.array([[1 + 2j, 3], [0.5j, -4]], "c8")
        half = np.array([[1, 2, 3], [4, 5, 6]], "u2")
        path = self.path("lists.npz")
        tenfold.save(path, {"c": c, "turned": np.asfortranarray(c),
                            "half": ("bf16", (half.astype("f4").view("u4") >> 16).astype("u2"), None)}, order="F")
        with tenfold.open(path) as f:
            for name, wanted in (("c", c.tolist()), ("turned", c.tolist()), ("half", half.astype("f4").tolist())):
                self.assertEqual(f[name].order, "F")
                self.assertEqual(f[name].read().tolist(), wanted, name)
        tenfold.save(self.path("lists.zt"), {"flags": ("u4", b"\x21\x43", (2, 2))})
        with tenfold.open(self.path("lists.zt")) as f:
            self.assertEqual(repr(f["flags"].read().tolist()), "[[1, 2], [3, 4]]")

    def test_dlpack(self):
        f = tenfold.open(self.file)
        tensor = f["w"]
        self.assertEqual(tensor.__dlpack_device__(), (1, 0))
        legacy = tensor.__dlpack__()
        self.assertIn('"dltensor"', repr(legacy))
        with self.assertRaises(BufferError):
            tensor.__dlpack__(copy=False)
        with self.assertRaises(BufferError):
            tensor.__dlpack__(dl_device=(2, 0))
        versioned = tensor.__dlpack__(max_version=(1, 0))
        self.assertIn('"dltensor_versioned"', repr(versioned))
        del versioned, legacy  # unused capsules
        view = np.from_dlpack(tensor)
        self.assertFalse(view.flags.writeable)
        if NEW_NUMPY:
            self.assertTrue(np.from_dlpack(tensor, copy=True).flags.writeable)
        f.close()
        del f, tensor
        gc.collect()
        np.testing.assert_array_equal(view, self.arrays["w"])

        class Once:
            def __init__(self, capsule):
                self.capsule = capsule

            def __dlpack__(self, **_):
                return self.capsule

            def __dlpack_device__(self):
                return (1, 0)
        with tenfold.open(self.file) as f:
            once = Once(f["v"].__dlpack__(max_version=(1, 0) if NEW_NUMPY else None))
            first = np.from_dlpack(once)
            with self.assertRaises(Exception):
                np.from_dlpack(once)
            np.testing.assert_array_equal(first, self.arrays["v"])
            empty = np.from_dlpack(f["e"])
            self.assertEqual(empty.shape, (0, 3))
            self.assertEqual(np.from_dlpack(f["s"]).shape, ())

    def test_dlpack_of_others(self):
        from tenfold import _tenfold
        base = np.arange(24, dtype="i4").reshape(4, 6)
        for array in (base, base.T, base[::2, ::-1], base[1, 2]):
            if not isinstance(array, np.ndarray):
                continue
            taken = _tenfold.from_dlpack(array)
            np.testing.assert_array_equal(taken.numpy(), array)

    @unittest.skipIf(ml_dtypes is None, "needs ml_dtypes")
    def test_ml_dtypes(self):
        names = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
                 "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"]
        arrays = {n: np.array([[1, 2, 0.5, 4], [1, 1, 2, 2]], getattr(ml_dtypes, n)) for n in names}
        path = self.path("narrow.safetensors")
        tenfold.save(path, arrays)
        with tenfold.open(path) as f:
            for n, wanted in arrays.items():
                for got in (f[n].numpy(), f[n][:], f[n][1:, ::2]):
                    self.assertEqual(got.dtype, wanted.dtype, n)
                np.testing.assert_array_equal(f[n].numpy(), wanted, n)
                np.testing.assert_array_equal(f[n][1:, ::2], wanted[1:, ::2], n)
                with self.assertRaises(BufferError):
                    memoryview(f[n])
            self.assertEqual(f["bfloat16"].read().tolist(), arrays["bfloat16"].astype("f4").tolist())
            for n, wanted in arrays.items():
                wide = f[n].numpy(astype="f32")
                self.assertEqual(wide.dtype, np.float32)
                np.testing.assert_array_equal(wide, wanted.astype("f4"), n)
            with self.assertRaises(ValueError):
                f[n].numpy(astype="i8")
            loaded = f.read_all()
            for n, wanted in arrays.items():
                np.testing.assert_array_equal(loaded[n], wanted, n)

    @unittest.skipIf(ml_dtypes is None, "needs ml_dtypes")
    def test_narrow_integers(self):
        """i4, u4, i2 and u2, with a last byte that is not full, in every format that can store
        them."""
        arrays = {n: np.arange(-2 if n[0] == "i" else 0, 2 if n[0] == "i" else 4).astype(
            getattr(ml_dtypes, n)).repeat(3).reshape(2, 6) for n in ("int4", "uint4", "int2", "uint2")}
        for path in (self.path("narrow.zt"), self.path("narrow.npz"), self.path("narrow.safetensors")):
            tenfold.save(path, arrays)
            with tenfold.open(path) as f:
                for n, wanted in arrays.items():
                    self.assertEqual(f[n].numpy().dtype, wanted.dtype, n)
                    np.testing.assert_array_equal(f[n].numpy(), wanted, n)
                    np.testing.assert_array_equal(f[n][1:, ::2], wanted[1:, ::2], n)
                    np.testing.assert_array_equal(f[n].numpy(astype="f32"), wanted.astype("f4"), n)

    def test_without_ml_dtypes(self):
        path = self.path("narrow.safetensors")
        tenfold.save(path, {"w": ("bf16", np.arange(3, dtype="u2"), None)})
        support.python(f"""
import sys
sys.modules["ml_dtypes"] = None
import tenfold
f = tenfold.open({path!r})
try:
    f["w"].numpy()
except tenfold.UnsupportedError as error:
    assert "install ml_dtypes" in str(error) and "'w' is bf16" in str(error), error
else:
    raise SystemExit("no error")
assert f["w"].bytes() == bytes([0, 0, 1, 0, 2, 0])
assert f["w"].numpy(astype="f64").tolist() == [0.0, 2.0**-133, 2.0**-132]
""")

    def test_without_numpy(self):
        support.python(f"""
import sys
sys.modules["numpy"] = None
import tenfold
f = tenfold.open({self.file!r})
part = f["w"][0, 1:3]
assert type(part) is tenfold.Array and part.shape == (2, 5), part
assert part.tolist()[0][0] == 5.0
assert memoryview(f["v"]).tolist() == list(range(7))
tenfold.save({self.path("again.safetensors")!r}, {{"part": part, "w": f["w"], "b": b"abc"}})
assert "numpy" not in [m for m in sys.modules if sys.modules[m] is not None]
""")


class Lifetimes(FileCase):
    def test_arrays_outlive_the_file(self):
        f = tenfold.open(self.file)
        view, copy, tensor = f["w"].numpy(), f["w"][:], f["v"]
        buffer = memoryview(f["v"])
        f.close()
        with self.assertRaisesRegex(tenfold.Error, "File is closed"):
            f["w"]
        with self.assertRaisesRegex(tenfold.Error, "File is closed"):
            tensor.numpy()
        with self.assertRaisesRegex(tenfold.Error, "File is closed"):
            len(f)
        del f
        gc.collect()
        os.unlink(self.file)
        np.testing.assert_array_equal(view, self.arrays["w"])
        np.testing.assert_array_equal(copy, self.arrays["w"])
        self.assertEqual(buffer.tolist(), list(range(7)))
        self.assertEqual(tensor.shape, (7,))

    def test_a_tensor_keeps_the_file(self):
        tensor = tenfold.open(self.file)["w"]
        gc.collect()
        np.testing.assert_array_equal(tensor[1], self.arrays["w"][1])

    def test_replaced_files(self):
        view = tenfold.open(self.file)["w"].numpy()
        tenfold.save(self.file, {"w": np.zeros(3)}, replace=True)
        np.testing.assert_array_equal(view, self.arrays["w"])

    def test_bytes_are_kept(self):
        view = tenfold.open(memoryview(self.bytes_of("model.safetensors")))["w"].numpy()
        gc.collect()
        junk = [bytes(2000) for _ in range(100)]
        np.testing.assert_array_equal(view, self.arrays["w"])
        del junk

    def test_descriptors_are_closed(self):
        def count():
            return len(os.listdir("/proc/self/fd"))
        before = count()
        files = [tenfold.open(self.file) for _ in range(20)]
        arrays = [f["w"].numpy() for f in files]
        for f in files:
            f.close()
        del files, arrays, f
        gc.collect()
        self.assertLessEqual(count(), before)

    def test_capsules_at_the_end(self):
        support.python(f"""
import tenfold, numpy, sys
f = tenfold.open({self.file!r})
capsule = f["w"].__dlpack__(max_version=(1, 1))
array = numpy.from_dlpack(f["w"])
sys.keep = (capsule, array, f, f["v"].numpy(), f["v"].read())
""", "-X", "dev")

    @unittest.skipIf(support.SANITIZED, "sanitizers keep what is freed")
    def test_memory_does_not_grow(self):
        def opens(n):
            for _ in range(n):
                with tenfold.open(self.file) as f:
                    f["w"].numpy()
                    f["w"][0]
                    np.from_dlpack(f["v"])
                    f.read_all()
                    f.attrs
                    try:
                        f["nope"]
                    except KeyError:
                        pass
        n = int(os.environ.get("TENFOLD_OPENS", "3000"))
        opens(n // 3)
        gc.collect()
        before = support.resident()
        opens(n)
        gc.collect()
        self.assertLess(support.resident() - before, 1 << 20)

    @unittest.skipIf(support.SANITIZED, "sanitizers keep what is freed")
    def test_saves_do_not_grow(self):
        def saves(n):
            for _ in range(n):
                tenfold.save(None, self.arrays, format="safetensors", attrs={"a": [1, {"b": "c"}]})
        saves(300)
        before = support.resident()
        saves(1500)
        self.assertLess(support.resident() - before, 1 << 20)


class Together(FileCase):
    def test_threads(self):
        bad = []
        f = tenfold.open(self.file, access="pread")

        def work():
            try:
                for _ in range(300):
                    for name, wanted in self.arrays.items():
                        np.testing.assert_array_equal(f[name][...], wanted)
                        np.testing.assert_array_equal(f.fetch(name), wanted)
            except BaseException as error:
                bad.append(error)
        threads = [threading.Thread(target=work) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(bad, [])

    def test_close_while_reading(self):
        for _ in range(30):
            f = tenfold.open(self.file)

            def work():
                try:
                    while True:
                        f.read_all()
                        f.fetch("w")
                        f["w"][1:]
                except tenfold.Error:
                    pass
            threads = [threading.Thread(target=work) for _ in range(3)]
            for t in threads:
                t.start()
            f.close()
            for t in threads:
                t.join()

    def test_file_objects_and_threads(self):
        f = tenfold.open(io.BytesIO(self.bytes_of("model.safetensors")))
        done = []

        def work():
            for _ in range(50):
                np.testing.assert_array_equal(f.read_all(threads=4)["w"], self.arrays["w"])
            done.append(True)
        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(len(done), 4)

    @unittest.skipUnless(hasattr(os, "fork"), "needs fork")
    def test_fork(self):
        f = tenfold.open(self.file)
        array = f["w"].numpy()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            child = os.fork()
        if child == 0:
            ok = (f["w"][:] == self.arrays["w"]).all() and (array == self.arrays["w"]).all() and \
                len(f.read_all()) == 5
            os._exit(0 if ok else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_interpreters(self):
        """In interpreters with a GIL of their own, since 3.12."""
        import importlib
        import sys
        for name in ("_interpreters", "_xxsubinterpreters"):
            try:
                module = importlib.import_module(name)
                break
            except ImportError:
                module = None
        if module is None or sys.version_info < (3, 12):
            self.skipTest("needs interpreters in one process")
        code = f"import sys; sys.path[:] = {sys.path!r}\nimport tenfold\n" \
               f"f = tenfold.open({self.file!r})\n" \
               "assert memoryview(f['v']).tolist() == list(range(7))\n" \
               "import io\n" \
               f"g = tenfold.open(io.BytesIO(open({self.file!r}, 'rb').read()))\n" \
               "assert g['v'].bytes() == f['v'].bytes()\n" \
               "try:\n    f['nope']\nexcept KeyError:\n    pass\n"
        for _ in range(3):
            one = module.create()
            run = getattr(module, "exec", None) or module.run_string
            self.assertIsNone(run(one, code))
            module.destroy(one)

    def test_pickle(self):
        with tenfold.open(self.file) as f:
            again = pickle.loads(pickle.dumps(f))
            np.testing.assert_array_equal(again["w"][:], self.arrays["w"])
            text = pickle.dumps(f)
        was, data = os.stat(self.file), self.bytes_of("model.safetensors")
        with open(self.file, "wb") as out:  # the same size and time, but another name
            out.write(data.replace(b'"w"', b'"x"', 1))
        os.utime(self.file, ns=(was.st_atime_ns, was.st_mtime_ns))
        with self.assertRaisesRegex(tenfold.ChangedError, "other tensors"):
            pickle.loads(text)
        tenfold.save(self.file, {"w": np.zeros(3)}, replace=True)
        with self.assertRaises(tenfold.ChangedError):
            pickle.loads(text)
        with self.assertRaises(TypeError):
            pickle.dumps(tenfold.open(memoryview(self.bytes_of("model.safetensors"))))


if __name__ == "__main__":
    unittest.main()
