# SPDX-License-Identifier: MIT
"""tenfold.primitiv, against files that primitiv 0.4.0 wrote and their descriptions."""
import array
import gc
import glob
import json
import os
import pickle
import struct
import sys
import threading
import unittest

import support
from support import numpy as np

import tenfold
from tenfold import primitiv
from tenfold.primitiv import Batch, Statistic

FILES = os.path.join(support.ROOT, "tests", "formats", "primitiv")


def valid(name):
    return os.path.join(FILES, "valid", name + ".primitiv")


def upstream(name):
    with open(os.path.join(FILES, "upstream", name + ".json"), encoding="utf-8") as f:
        return json.load(f)["expected"]


def numbers(tensor):
    """The numbers of a described tensor, first index fastest, by their bits."""
    return [struct.unpack(">f", bytes.fromhex(bits))[0] for bits in tensor["bits_u32_hex"]]


def described(tensor):
    dims = tensor["shape"]["dims"]
    batch = tensor["shape"]["batch"]
    shape = dims + ([batch] if batch > 1 else [])
    return np.array(numbers(tensor), "f4").reshape(shape, order="F")


def u32(v):
    return b"\xce" + struct.pack(">I", v)


def text(s):
    return bytes([0xA0 + len(s)]) + s.encode()


def tensor(dims, values, batch=1):
    return (bytes([0x90 + len(dims)]) + b"".join(map(u32, dims)) + u32(batch) +
            bytes([0xC4, 4 * len(values)]) + struct.pack("<%df" % len(values), *values))


MODEL = u32(0) + u32(1) + u32(0x300)


class Names(support.Case):
    def test_names(self):
        self.assertEqual(primitiv.join(("encoder", "w")), "encoder.w")
        self.assertEqual(primitiv.join(["a.b", "w"]), "a\\.b.w")
        self.assertEqual(primitiv.join(()), "value")
        self.assertEqual(primitiv.split("a\\.b.w"), ("a.b", "w"))
        for path in (("a",), ("", "b"), ("a.b", "c.d"), ("Grüße", "\udcff")):
            self.assertEqual(primitiv.split(primitiv.join(path)), path)
        for bad in ((1,), ("a", b"b"), (None,)):
            with self.assertRaises(TypeError):
                primitiv.join(bad)

    def test_statistic(self):
        key = Statistic("encoder.w", "Adam.m1")
        self.assertEqual(key, Statistic(("encoder", "w"), "Adam.m1"))
        self.assertNotEqual(key, (("encoder", "w"), "Adam.m1"))
        self.assertEqual({key: 1}[Statistic(["encoder", "w"], "Adam.m1")], 1)
        self.assertEqual(pickle.loads(pickle.dumps(key)), key)
        self.assertEqual(repr(key), "Statistic(('encoder', 'w'), 'Adam.m1')")
        with self.assertRaises(AttributeError):
            key.key = "x"
        for bad in ((3, "x"), ("w", None), ((b"w",), "x")):
            with self.assertRaises(TypeError):
                Statistic(*bad)


@unittest.skipIf(np is None, "needs numpy")
class Files(support.Case):
    """Every file of primitiv with a description."""

    def expected(self, name):
        told = upstream(name)
        if "value" in told:
            told = {"parameters": [{"key": [], "parameter": told}]}
        if "parameters" not in told:
            return {(): described(told)}
        found = {}
        for entry in told["parameters"]:
            path, parameter = tuple(entry["key"]), entry["parameter"]
            found[path] = described(parameter["value"])
            for key, value in parameter["stats"].items():
                found[Statistic(path, key)] = described(value)
        return found

    def names(self, *kinds):
        names = [os.path.basename(path)[:-5] for path in glob.glob(os.path.join(FILES, "upstream", "*.json"))]
        names = [name for name in names if name.startswith(kinds)
                 and not name.endswith("optimizer")]
        self.assertTrue(names)
        return sorted(names)

    def test_read_and_load(self):
        for name in self.names("model", "parameter", "tensor", "train"):
            with self.subTest(name):
                expected = self.expected(name)
                got = primitiv.read(valid(name))
                self.assertEqual(set(got), set(expected))
                for key, value in expected.items():
                    # A scalar of primitiv may be stored with dimensions of 1.
                    np.testing.assert_array_equal(np.asarray(got[key]).reshape(value.shape, order="F"), value)
                for order in "CF":
                    into = {key: np.zeros(value.shape, "f4", order) for key, value in expected.items()}
                    loaded = primitiv.load(valid(name), into, need_all=True)
                    self.assertEqual(loaded, ([], []))
                    for key, value in expected.items():
                        np.testing.assert_array_equal(into[key], value)

    def test_save(self):
        for name in self.names("model", "parameter", "tensor", "train"):
            with self.subTest(name):
                kind = {"type": "tensor"} if name.startswith("tensor") else {}
                expected = self.expected(name)
                if not expected:
                    kind = {"type": "model"}
                for order in "CF":
                    path = self.path("saved")
                    arrays = {key: np.array(value, order=order) for key, value in expected.items()}
                    try:
                        primitiv.save(path, arrays, replace=True, **kind)
                    except tenfold.Error as error:
                        self.fail(f"{error}")
                    with open(valid(name), "rb") as f:
                        self.assertEqual(self.bytes_of("saved"), f.read())

    def test_shapes(self):
        for name in self.names("shape"):
            told = upstream(name)
            shape = primitiv.load_shape(valid(name))
            self.assertEqual(shape, (tuple(told["dims"]), told["batch"]))
            primitiv.save_shape(self.path("saved"), *shape, replace=True)
            with open(valid(name), "rb") as f:
                self.assertEqual(self.bytes_of("saved"), f.read())
        with self.assertRaises(tenfold.NotFoundError):
            primitiv.load_shape(valid("tensor_2x3"))

    def test_find(self):
        with tenfold.open(valid("model_upstream_with_stats")) as f:
            self.assertEqual(primitiv.find(f, ("sm", "p")).name, "sm.p")
            self.assertEqual(primitiv.find(f, "sm.p", "b").numpy().ravel("F").tolist(), [50, 60, 70, 80])
            for bad in (("sm",), "b"), ("sm.p", "a"), (("sm.p",), None), ((), None):
                with self.assertRaises(KeyError):
                    primitiv.find(f, *bad)
        with self.assertRaises(tenfold.InvalidError):
            primitiv.find(f, "sm.p")

    def test_name_taken(self):
        """A statistic whose tensor has another name, since a parameter has its name."""
        got = primitiv.read(valid("model_stat_name_taken"))
        self.assertEqual({key: value.shape for key, value in got.items()},
                         {("w",): (2,), Statistic("w", "m"): (3,), Statistic("w", "n"): (4,), ("w@m",): (5,)})
        into = {key: np.zeros(value.shape, "f4") for key, value in got.items()}
        primitiv.load(valid("model_stat_name_taken"), into, need_all=True)
        for key, value in got.items():
            np.testing.assert_array_equal(into[key], value)

    def test_bytes_in_names(self):
        with tenfold.open(valid("model_path_bad_utf8"), warn=False) as f:
            got = primitiv.read(f)
            self.assertEqual(list(got), [("a", "\udcff")])
            primitiv.save(self.path("saved"), {key: np.asarray(value) for key, value in got.items()})
        with open(valid("model_path_bad_utf8"), "rb") as f:
            self.assertEqual(self.bytes_of("saved"), f.read())


@unittest.skipIf(np is None, "needs numpy")
class Rules(support.Case):
    def setUp(self):
        super().setUp()
        self.w = np.arange(1, 7, dtype="f4").reshape(2, 3)
        self.file = self.path("m.primitiv")
        primitiv.save(self.file, {("e", "w"): self.w, Statistic("e.w", "m"): Batch(np.ones((2, 2), "f4")),
                                  "b": np.float32(7) * np.ones((), "f4")})

    def test_bytes(self):
        """Column-major; the statistic with its batch; independent of Tenfold's reader."""
        w = tensor([2, 3], [1, 4, 2, 5, 3, 6]) + u32(1) + text("m") + tensor([2], [1] * 4, 2)
        b = tensor([], [7]) + u32(0)
        self.assertEqual(self.bytes_of("m.primitiv"), MODEL + u32(2) + b"\x91" + text("b") + b +
                         b"\x92" + text("e") + text("w") + w)
        got = primitiv.read(self.file)[Statistic("e.w", "m")]
        self.assertIsInstance(got, Batch)
        self.assertEqual(got.array.shape, (2, 2))

    def test_none_on_errors(self):
        w, b = np.zeros((2, 3), "f4"), np.zeros(2, "f4")
        with self.assertRaisesRegex(ValueError, "has the shape"):
            primitiv.load(self.file, {"e.w": w, "b": b})
        with self.assertRaises(primitiv.MismatchError) as caught:
            primitiv.load(self.file, {"e.w": w})
        self.assertEqual((caught.exception.missing, caught.exception.extra), ([], ["b", "e.w@m"]))
        self.assertIsInstance(caught.exception, KeyError)
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((again.extra, str(again)), (["b", "e.w@m"], str(caught.exception)))
        with self.assertRaises(primitiv.MismatchError) as caught:
            primitiv.load(self.file, {"e.w": w, "b": b[:1].reshape(()), "no": b}, need_all=True)
        self.assertEqual(caught.exception.missing, ["no"])
        with self.assertRaisesRegex(ValueError, "two bindings"):
            primitiv.load(self.file, {"e.w": w, ("e", "w"): w}, allow_extra=True)
        self.assertFalse(w.any() or b.any())

    def test_missing_and_extra(self):
        w, b = np.zeros((2, 3), "f4"), np.zeros(2, "f4")
        loaded = primitiv.load(self.file, {("e", "w"): w, ("no", "b"): b}, allow_extra=True)
        self.assertEqual(loaded, ([("no", "b")], ["b", "e.w@m"]))
        np.testing.assert_array_equal(w, self.w)
        self.assertFalse(b.any())

    def test_strides(self):
        """Arrays in any order, with steps, backwards, not aligned."""
        whole = np.zeros((4, 9), "f4")
        raw = np.zeros(25, "u1")
        for into in (whole[::2, ::3], whole[1::2, ::-3], whole.T[:6:2, ::2].T,
                     raw[1:].view("f4").reshape(2, 3)):
            into[...] = -1
            primitiv.load(self.file, {"e.w": into}, allow_extra=True)
            np.testing.assert_array_equal(into, self.w)
        for value in (whole[1::2, ::-3], whole[::2, ::3]):
            value[...] = self.w
            primitiv.save(self.path("again"), {"w": value}, replace=True)
            np.testing.assert_array_equal(primitiv.read(self.path("again"))[("w",)], self.w)

    def test_values_refused(self):
        w = np.zeros((2, 3), "f4")
        w.flags.writeable = False
        for bad in (w, np.zeros((2, 3)), np.zeros((2, 3), ">f4"), np.zeros((2, 3), "i4"), [[1.0]], None, b"abcd"):
            with self.assertRaises((TypeError, BufferError, ValueError), msg=repr(bad)):
                primitiv.load(self.file, {"e.w": bad}, allow_extra=True)
        for bad in (np.zeros((2, 3)), np.zeros((0, 3), "f4"), np.zeros((1,) * 9, "f4"), [1.0],
                    Batch(np.zeros((), "f4")), Batch(None)):
            with self.assertRaises((TypeError, ValueError), msg=repr(bad)):
                primitiv.save(self.path("x"), {"w": bad})
            self.assertFalse(os.path.exists(self.path("x")))
        for bad in ({3: self.w}, {("a", 3): self.w}, {None: self.w}):
            with self.assertRaises(TypeError):
                primitiv.save(self.path("x"), bad)
        with self.assertRaises(tenfold.Error):  # primitiv cannot have both
            primitiv.save(self.path("x"), {(): self.w, "w": self.w})

    def test_existing_files(self):
        with self.assertRaises(FileExistsError):
            primitiv.save(self.file, {"w": self.w})
        primitiv.save(self.file, {"w": self.w}, replace=True)
        self.assertEqual(list(primitiv.read(self.file)), [("w",)])
        with self.assertRaises(FileNotFoundError):
            primitiv.load(self.path("none"), {"w": self.w})
        with self.assertRaises(TypeError):
            primitiv.save(None, {"w": self.w})

    def test_other_formats(self):
        """All functions work on converted files."""
        primitiv.save(self.path("m.zt"), {("e", "w"): self.w, Statistic("e.w", "m"): self.w}, format="ztensor2")
        tenfold.convert(self.file, self.path("m.safetensors"))
        w = np.zeros((2, 3), "f4")
        for name in ("m.zt", "m.safetensors"):
            primitiv.load(self.path(name), {"e.w": w}, allow_extra=True)
            np.testing.assert_array_equal(w, self.w)
            w[...] = 0

    def test_sources(self):
        w = np.zeros((2, 3), "f4")
        data = self.bytes_of("m.primitiv")
        with tenfold.open(self.file) as f:
            for source in (self.file, f, memoryview(data), os.fsencode(self.file)):
                primitiv.load(source, {"e.w": w}, allow_extra=True)
                np.testing.assert_array_equal(w, self.w)
                w[...] = 0
            self.assertFalse(f.closed)
        with self.assertRaises(tenfold.InvalidError):
            primitiv.load(f, {"e.w": w})

    def test_progress(self):
        calls = []
        big = np.ones((1 << 20,), "f4")
        primitiv.save(self.path("big"), {"w": big}, progress=lambda *now: calls.append(now))

        def stop(done, total):
            return False
        for _ in range(20):  # it may be complete before the first call
            try:
                primitiv.save(self.path("stopped"), {"w": big}, progress=stop)
            except tenfold.CancelledError:
                self.assertFalse(os.path.exists(self.path("stopped")))
                break
            os.remove(self.path("stopped"))

    def test_dlpack(self):
        class Other:
            def __init__(self, array):
                self.array = array

            def __dlpack__(self, **how):
                return self.array.__dlpack__(**how)

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

            def detach(self):
                return self
        w = np.zeros((2, 3), "f4")
        primitiv.load(self.file, {"e.w": Other(w)}, allow_extra=True)
        np.testing.assert_array_equal(w, self.w)
        primitiv.save(self.path("t"), {"w": Other(w.T)})
        np.testing.assert_array_equal(primitiv.read(self.path("t"))[("w",)], self.w.T)

    @unittest.skipIf(support.torch is None, "needs torch")
    def test_torch(self):
        t = support.torch.zeros(2, 3, requires_grad=True)
        primitiv.load(self.file, {"e.w": t}, allow_extra=True)
        self.assertEqual(t.tolist(), self.w.tolist())
        primitiv.save(self.path("t"), {"w": t.detach().t()})
        self.assertEqual(primitiv.read(self.path("t"))[("w",)].tolist(), self.w.T.tolist())

    def test_threads(self):
        bad = []
        with tenfold.open(self.file) as f:
            def work():
                for _ in range(200):
                    w = np.zeros((2, 3), "f4")
                    primitiv.load(f, {"e.w": w}, allow_extra=True)
                    if not np.array_equal(w, self.w):
                        bad.append(w)
            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(bad, [])

    def test_no_leaks(self):
        def work(n):
            for _ in range(n):
                into = {"e.w": np.zeros((2, 3), "f4"), Statistic("e.w", "m"): Batch(np.zeros((2, 2), "f4"))}
                primitiv.load(f, into, allow_extra=True)
                try:
                    primitiv.load(f, {"e.w": np.zeros(3, "f4"), "no": into["e.w"]})
                except tenfold.Error:
                    pass
                try:
                    primitiv.save(self.path("x"), {"w": into["e.w"].T, "bad": None})
                except TypeError:
                    pass
                primitiv.join(primitiv.split("a.b"))
                primitiv.find(f, "e.w", "m")
        with tenfold.open(self.file) as f:
            work(1000)
            gc.collect()
            before, refs = support.resident(), sys.getrefcount(None)
            work(10000)
            gc.collect()
            if sys.version_info < (3, 12):
                self.assertLess(abs(sys.getrefcount(None) - refs), 200)
            if not support.SANITIZED:
                self.assertLess(support.resident() - before, 1 << 20)


class Optimizers(support.Case):
    def test_upstream(self):
        for path in glob.glob(os.path.join(FILES, "upstream", "*optimizer*.json")):
            name = os.path.basename(path)[:-5]
            told = upstream(name)
            with self.subTest(name):
                got = primitiv.load_optimizer(valid(name))
                self.assertEqual(got.uints, told["uint_configs"])
                self.assertEqual(got.floats, {key: struct.unpack(">f", bytes.fromhex(bits))[0]
                                              for key, bits in told["float_bits_u32_hex"].items()})
                self.assertEqual(got.name, name.split("_")[1 if name.startswith(("train", "opt")) else 0])
                primitiv.save_optimizer(self.path("saved"), got.uints, got.floats, replace=True)
                with open(valid(name), "rb") as f:
                    self.assertEqual(self.bytes_of("saved"), f.read())

    def test_keys(self):
        file = valid("optimizer_Adam_upstream")
        got = primitiv.load_optimizer(file, ["Optimizer.epoch"], ["Adam.alpha", "Adam.eps"])
        self.assertEqual(got, ("Adam", {"Optimizer.epoch": 5}, {"Adam.alpha": 1, "Adam.eps": 4}))
        for bad in (["Adam.alpha"], None), (None, ["Optimizer.epoch"]):
            with self.assertRaises(KeyError):
                primitiv.load_optimizer(file, *bad)
        with self.assertRaises(tenfold.NotFoundError):
            primitiv.load_optimizer(valid("tensor_2x3"))
        got = primitiv.load_optimizer(valid("optimizer_bad_utf8"))
        self.assertEqual(got, (None, {"\udcff": 1, "e": 2}, {}))

    def test_refused(self):
        for uints, floats in (({"a": 1 << 32}, {}), ({"a": -1}, {}), ({"a": 0.5}, {}), ({}, {"a": "x"}),
                              ({1: 2}, {}), ({}, {None: 1.0})):
            with self.assertRaises((OverflowError, TypeError)):
                primitiv.save_optimizer(self.path("x"), uints, floats)
        self.assertFalse(os.path.exists(self.path("x")))


class Plain(support.Case):
    """Without numpy."""

    def test_buffers(self):
        flat = array.array("f", range(6))
        primitiv.save(self.path("m"), {"w": memoryview(flat).cast("B").cast("f", (2, 3)), "v": flat})
        self.assertEqual(self.bytes_of("m"), MODEL + u32(2) + b"\x91" + text("v") +
                         tensor([6], range(6)) + u32(0) + b"\x91" + text("w") +
                         tensor([2, 3], [0, 3, 1, 4, 2, 5]) + u32(0))
        memory = array.array("f", [0] * 6)
        primitiv.load(self.path("m"), {"w": memoryview(memory).cast("B").cast("f", (2, 3))}, allow_extra=True)
        self.assertEqual(memory, flat)

    def test_without_numpy(self):
        out = support.python("""
import sys
sys.modules["numpy"] = None
import array
from tenfold import primitiv
flat = array.array("f", [1, 2])
primitiv.save(sys.argv[1] if len(sys.argv) > 1 else FILE, {"w": flat, primitiv.Statistic("w", "m"): flat})
got = primitiv.read(FILE)
print({key: value.tolist() for key, value in got.items()})
""".replace("FILE", repr(self.path("m"))))
        self.assertEqual(out.strip(), "{('w',): [1.0, 2.0], Statistic(('w',), 'm'): [1.0, 2.0]}")


if __name__ == "__main__":
    unittest.main()
