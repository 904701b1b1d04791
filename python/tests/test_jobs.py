# SPDX-License-Identifier: MIT
"""save, convert, plan, verify, hash, diff, repair, meta, split, merge, stat, formats: against the
command, which uses the same library."""
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import unittest

import support
from support import numpy as np

import tenfold


def command(*words):
    """The output of the command."""
    return subprocess.run([support.COMMAND, *words], check=True, capture_output=True,
                          text=True).stdout


@unittest.skipIf(np is None, "needs numpy")
class JobCase(support.Case):
    def setUp(self):
        super().setUp()
        rng = np.random.default_rng(5)
        self.arrays = {"a.weight": rng.standard_normal((4, 6)).astype("f4"),
                       "a.bias": np.arange(6, dtype="f4"), "n": np.arange(3)}
        self.model = self.path("model.safetensors")
        tenfold.save(self.model, self.arrays, attrs={"safetensors.metadata": {"by": "us"}})


class Save(JobCase):
    def test_report(self):
        report = tenfold.save(self.path("x.zt"), self.arrays)
        self.assertTrue(report.lossless)
        self.assertEqual((report.format, report.counts["native"]), ("ztensor2", 3))
        self.assertEqual(pickle.loads(pickle.dumps(report)), report)

    def test_replace(self):
        with self.assertRaises(FileExistsError) as caught:
            tenfold.save(self.model, self.arrays)
        self.assertIsInstance(caught.exception, tenfold.ExistsError)
        tenfold.save(self.model, self.arrays, replace=True)

    def test_bytes(self):
        report, data = tenfold.save(None, self.arrays, format="safetensors",
                                    attrs={"safetensors.metadata": {"by": "us"}})
        self.assertTrue(report.lossless)
        self.assertEqual(data, self.bytes_of("model.safetensors"))

    def test_attributes(self):
        attrs = {"n": 3, "big": 2**63, "f": 0.5, "text": "ä", "raw": b"\0\1", "yes": True,
                 "none": None, "list": [1, [2, "x"]], "map": {"k": {"v": [None]}}}
        tenfold.save(self.path("x.zt"), self.arrays, attrs=attrs, tensor_attrs={"n": {"unit": "m"}})
        with tenfold.open(self.path("x.zt")) as f:
            told = f.attrs
            told.pop("ztensor.content_digest")
            self.assertEqual(told, attrs)
            self.assertEqual(f.attrs_typed["f"], ("f64", 0.5))
            self.assertEqual(f["n"].attrs, {"unit": "m"})
        for bad in ({"x": object()}, {1: "x"}, {"x": 2**64}):
            with self.assertRaises((TypeError, OverflowError)):
                tenfold.save(self.path("y.zt"), self.arrays, attrs=bad)

    def test_tensors_of_files(self):
        with tenfold.open(self.model) as f:
            tenfold.save(self.path("copy.zt"), {"w": f["a.weight"], "part": f["a.weight"][1:]})
        with tenfold.open(self.path("copy.zt")) as f:
            np.testing.assert_array_equal(f["w"][:], self.arrays["a.weight"])
            np.testing.assert_array_equal(f["part"][:], self.arrays["a.weight"][1:])

    def test_streams(self):
        calls = []

        def give(offset, view):
            calls.append(offset)
            first = offset // 8
            view[:] = np.arange(first, first + len(view) // 8, dtype="<i8").tobytes()
        n = 1 << 20
        tenfold.save(self.path("s.safetensors"), {"w": tenfold.Stream(give, (n,), "i64")})
        with tenfold.open(self.path("s.safetensors")) as f:
            np.testing.assert_array_equal(f["w"].numpy(), np.arange(n))
        self.assertEqual(calls, sorted(calls))

        tenfold.save(self.path("z.safetensors"),
                     {"w": tenfold.Stream(lambda offset, view: None, (n,), "i64")})
        with tenfold.open(self.path("z.safetensors")) as f:
            self.assertFalse(f["w"].numpy().any(), "memory of the process")

        def fail(offset, view):
            raise RuntimeError("no more ink")
        with self.assertRaisesRegex(tenfold.Error, "no more ink"):
            tenfold.save(self.path("t.safetensors"), {"w": tenfold.Stream(fail, (n,), "i64")})
        self.assertFalse(os.path.exists(self.path("t.safetensors")))

    def test_strings(self):
        """A list of str is a tensor of strings; bytes that are not UTF-8 are preserved."""
        words = ["", "tensor", "Grüße", "\udcff"]
        tenfold.save(self.path("w.zt"), {"words": words})
        self.assertEqual(tenfold.open(self.path("w.zt"))["words"].strings(), words)
        tenfold.save(self.path("b.zt"), {"words": [b"a", b"\xff"]})
        self.assertEqual(tenfold.open(self.path("b.zt"))["words"].strings(bytes=True), [b"a", b"\xff"])
        offsets, data = ("u64", bytes(8) + (9).to_bytes(8, "little")), ("u8", b"ab")
        for told in (("strings/1", {"offsets": offsets, "bytes": data}, (2,)),
                     ("strings/1", {"bytes": data}, (1,)), ("strings/1", {"bytes": 3}, (1,)),
                     ("strings/1", {"offsets": ("f9", b""), "bytes": data}, (1,)),
                     ("nonsense/1", {}, (1,)), ("strings/1", {"bytes": data}, None)):
            with self.assertRaises((ValueError, TypeError, tenfold.Error)):
                tenfold.save(self.path("bad.zt"), {"x": told})
            self.assertFalse(os.path.exists(self.path("bad.zt")))
        with self.assertRaises(TypeError):
            tenfold.save(self.path("bad.zt"), {"x": ["a", 1]})

    def test_casts_and_orders(self):
        report = tenfold.save(self.path("h.safetensors"), self.arrays, dtype="f16")
        self.assertFalse(report.lossless)
        with tenfold.open(self.path("h.safetensors")) as f:
            np.testing.assert_array_equal(f["a.weight"][:], self.arrays["a.weight"].astype("f2"))
        tenfold.save(self.path("f.npy"), {"arr_0": self.arrays["a.weight"]}, order="F")
        self.assertTrue(np.load(self.path("f.npy")).flags.f_contiguous)

    def test_refusals(self):
        for value in ([1, 2], None, object(), "text", 3):
            with self.assertRaises(TypeError, msg=repr(value)):
                tenfold.save(self.path("x.zt"), {"bad": value})
        for value in (np.array(["x"]), np.array([None]), np.zeros(2, "M8[s]")):
            with self.assertRaises(tenfold.UnsupportedError) as caught:
                tenfold.save(self.path("x.zt"), {"bad": value})
            self.assertIn("'bad'", str(caught.exception))
        with self.assertRaises(ValueError):
            tenfold.save(self.path("x.zt"), {"with\0nul": np.zeros(1)})
        with self.assertRaises(tenfold.Error):
            tenfold.save(self.path("x.unknown"), self.arrays)
        self.assertEqual(os.listdir(self.folder), ["model.safetensors"])

    def test_names_that_are_not_text(self):
        name = os.fsdecode(b"bad\xff")
        tenfold.save(self.path("x.bin"), {"w": np.zeros(2, "f4")}, format="gptrs-checkpoint",
                     allow_loss=True)
        words = self.write("w.bin", b"2 2\nok " + bytes(8) + b"bad\xff " + bytes(8))
        with tenfold.open(words, format="word2vec", warn=False) as f:
            self.assertEqual(f["vocab"].strings(), ["ok", name])
            self.assertEqual(f["vocab"].strings(bytes=True), [b"ok", b"bad\xff"])


class Convert(JobCase):
    def test_content_stays(self):
        for target, how in (("x.zt", {"format": "ztensor1"}), ("y.safetensors", {})):
            report = tenfold.convert(self.model, self.path(target), select=["a.*"], **how)
            self.assertTrue(report.lossless, report)
            changes = tenfold.diff(self.model, self.path(target))
            self.assertEqual([(c.kind, c.tensor) for c in changes], [("only_a", "n")])

    def test_refuses_to_lose(self):
        with self.assertRaises(tenfold.LossyError) as caught:
            tenfold.convert(self.model, self.path("x.gten"), format="gptrs-archive")
        lost = [i for i in caught.exception.report if i.fate == "dropped"]
        self.assertTrue(lost)
        self.assertFalse(os.path.exists(self.path("x.gten")))
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual(again.report, caught.exception.report)
        plan = tenfold.plan(self.model, "gptrs-archive")
        self.assertEqual([i for i in plan if i.fate == "dropped"], lost)
        with self.assertRaises(tenfold.LossyError):
            tenfold.convert(self.model, self.path("x.gten"), format="gptrs-archive",
                            allow_loss="attribute")
        tenfold.convert(self.model, self.path("x.gten"), format="gptrs-archive", allow_loss=True)

    def test_rename_and_select(self):
        tenfold.convert(self.model, self.path("r.zt"), select="a.*", exclude=["*.bias"],
                        rename={"a.weight": "w"})
        with tenfold.open(self.path("r.zt")) as f:
            self.assertEqual(list(f), ["w"])
        tenfold.convert(self.model, self.path("u.zt"), rename=str.upper)
        with tenfold.open(self.path("u.zt")) as f:
            self.assertEqual(set(f), {"A.WEIGHT", "A.BIAS", "N"})
        with self.assertRaises(KeyError):
            tenfold.convert(self.model, self.path("v.zt"), select="nothing*")

    def test_options(self):
        tenfold.convert(self.model, self.path("a.safetensors"), align=4096)
        with tenfold.open(self.path("a.safetensors")) as f:
            self.assertEqual(min(t.location[1] for t in f.values()) % 4096, 0)
        with self.assertRaises(ValueError):
            tenfold.convert(self.model, self.path("b.safetensors"), nonsense=1)

    def test_as_the_command(self):
        command("convert", self.model, self.path("c.zt"))
        tenfold.convert(self.model, self.path("p.zt"))
        self.assertEqual(self.bytes_of("c.zt"), self.bytes_of("p.zt"))

    def test_merge_and_split(self):
        other = self.path("other.safetensors")
        tenfold.save(other, {"n": np.arange(4), "m": np.zeros(1 << 18, "f4")})
        with self.assertRaises(FileExistsError):
            tenfold.merge([self.model, other], self.path("all.safetensors"))
        tenfold.merge([self.model, other], self.path("all.safetensors"), clash="rename")
        with tenfold.open(self.path("all.safetensors")) as f:
            self.assertEqual(set(f), {*self.arrays, "m", "n.2"})
        tenfold.split(self.path("all.safetensors"), self.path("model"), max_bytes=1 << 18)
        self.assertGreater(len(os.listdir(self.path("model"))), 2)
        self.assertTrue(tenfold.diff(self.path("model"), self.path("all.safetensors"),
                                     ignore=["attrs"]).same)
        with tenfold.open(self.path("model")) as f:
            self.assertGreater(f.shards, 1)


class Look(JobCase):
    def test_verify(self):
        tenfold.convert(self.model, self.path("x.zt"))
        good = tenfold.verify(self.path("x.zt"), values=True)
        self.assertTrue(good)
        self.assertEqual(good.checked, 3)
        self.assertEqual(good.values["a.weight"]["elements"], 24)
        data = bytearray(self.bytes_of("x.zt"))
        with tenfold.open(self.path("x.zt")) as f:
            data[f["a.weight"].location[1]] ^= 1
        bad = tenfold.verify(self.write("bad.zt", data))
        self.assertFalse(bad)
        self.assertEqual(bad.problems[0].status, "EDIGEST")
        cut = tenfold.verify(self.write("cut.safetensors", self.bytes_of("model.safetensors")[:-1]))
        self.assertEqual([p.status for p in cut.problems], ["ETRUNCATED"])
        with self.assertRaises(FileNotFoundError):
            tenfold.verify(self.path("nothing"))

    def test_hash(self):
        tenfold.convert(self.model, self.path("x.zt"))
        mine = tenfold.hash(self.model)
        self.assertEqual(mine, command("hash", self.model).split()[0])
        self.assertEqual(mine, tenfold.hash(self.path("x.zt")))
        self.assertEqual(set(tenfold.hash(self.model, tensors=True)), set(self.arrays))

    def test_diff(self):
        other = self.path("other.zt")
        changed = {**self.arrays, "a.bias": self.arrays["a.bias"] + np.float32(1e-3)}
        tenfold.save(other, changed, attrs={"safetensors.metadata": {"by": "them"}})
        found = tenfold.diff(self.model, other)
        self.assertTrue(found)
        self.assertFalse(found.same)
        kinds = {c.kind: c for c in found}
        self.assertEqual(set(kinds), {"values", "attribute"})
        self.assertEqual(kinds["values"].tensor, "a.bias")
        self.assertAlmostEqual(kinds["values"].values["max_abs"], 1e-3, 6)
        self.assertEqual((kinds["attribute"].a, kinds["attribute"].b), ("us", "them"))
        self.assertTrue(tenfold.diff(self.model, other, atol=0.01, ignore="attrs").same)
        self.assertFalse(tenfold.diff(self.model, self.model))
        tenfold.convert(self.model, self.path("r.zt"), rename={"n": "count"})
        self.assertTrue(tenfold.diff(self.model, self.path("r.zt"), map={"n": "count"}).same)

    def test_stat(self):
        told = tenfold.stat(self.model, bins=4)["a.bias"]
        self.assertEqual((told.min, told.max, told.mean, told.elements), (0, 5, 2.5, 6))
        self.assertEqual(sum(told.bins), 6)
        self.assertEqual(set(tenfold.stat(self.model, "a.*")), {"a.weight", "a.bias"})

    def test_repair(self):
        self.write("cut.safetensors", self.bytes_of("model.safetensors")[:-30])
        saved, lost = tenfold.repair(self.path("cut.safetensors"), self.path("whole.safetensors"))
        self.assertEqual(saved + len(lost), 3)
        with tenfold.open(self.path("whole.safetensors")) as f:
            for name in f:
                np.testing.assert_array_equal(f[name][:], self.arrays[name])

    def test_meta(self):
        self.assertEqual(tenfold.meta(self.model), {"safetensors.metadata": {"by": "us"}})
        after = tenfold.meta(self.model, {"safetensors.metadata": {"by": "me", "n": "2"}})
        self.assertEqual(after, {"safetensors.metadata": {"by": "me", "n": "2"}})
        self.assertEqual(tenfold.meta(self.model, remove="safetensors.metadata"), {})
        with tenfold.open(self.model) as f:
            np.testing.assert_array_equal(f["n"][:], self.arrays["n"])
        self.assertFalse(tenfold._jobs.undo(self.model))

    def test_info_and_formats(self):
        self.assertEqual(tenfold.info(self.model)["tensors"], 3)
        known = tenfold.formats()
        listed = json.loads(command("formats", "--json"))
        self.assertEqual(set(known), {f["name"] for f in (
            listed["formats"] if isinstance(listed, dict) else listed)})
        self.assertIn("write", known["safetensors"]["can"])
        self.assertEqual(tenfold.types()["bf16"], 16)


class Progress(JobCase):
    def big(self, mebibytes=64):
        path = self.path("big.safetensors")
        tenfold.save(path, {f"w{i}": np.random.default_rng(i).integers(0, 99, 1 << 20, "u1")
                            for i in range(mebibytes)}, sync=False)
        return path

    def test_told(self):
        seen = []
        tenfold.convert(self.big(), self.path("big.zt"), encoding="zstd",
                        progress=lambda done, total: seen.append((done, total)))
        self.assertTrue(seen)
        self.assertTrue(all(done <= total for done, total in seen))

    def test_stopped(self):
        with self.assertRaises(tenfold.CancelledError):
            tenfold.convert(self.big(), self.path("big.zt"), encoding="zstd", level=19,
                            progress=lambda done, total: False)
        self.assertFalse(os.path.exists(self.path("big.zt")))

    def test_failed(self):
        def fail(done, total):
            raise RuntimeError("enough")
        with self.assertRaisesRegex(RuntimeError, "enough"):
            tenfold.convert(self.big(), self.path("big.zt"), encoding="zstd", level=19,
                            progress=fail)
        self.assertEqual(sorted(os.listdir(self.folder)), ["big.safetensors", "model.safetensors"])

    def test_a_bar(self):
        class Bar:
            total = None
            n = 0

            def update(self, n):
                self.n += n
        path, n = self.big(32), 32 << 20
        array = {f"w{i}": np.zeros(1 << 20, "u1") for i in range(32)}
        from tenfold.numpy import load_file, save_file
        job = tenfold.jobs.plan("hash", path, 1)
        with tenfold.open(path) as f:
            for work in (lambda bar: tenfold.hash(path, progress=bar),
                         lambda bar: f.read_all(progress=bar),
                         lambda bar: f.read_all(progress=bar, into=array, threads=2),
                         lambda bar: load_file(path, progress=bar),
                         lambda bar: save_file(array, self.path("b.safetensors"), progress=bar)):
                bar = Bar()
                work(bar)
                self.assertGreaterEqual(bar.total, n)
                self.assertGreater(bar.n, 0)
                self.assertLessEqual(bar.n, bar.total)
            np.testing.assert_array_equal(array["w7"], f["w7"][:])
        # A plan may have no progress to report, but it accepts a bar.
        job.finish([job.part(0, progress=Bar())], progress=Bar())

    def test_interrupt(self):
        path = self.path("noise.safetensors")
        noise = np.random.default_rng(1).integers(0, 255, 64 << 20, "u1")
        tenfold.save(path, {"w": noise}, sync=False)
        main = threading.main_thread().ident
        timer = threading.Timer(0.5, lambda: signal.pthread_kill(main, signal.SIGINT))
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            tenfold.convert(path, self.path("noise.zt"), encoding="zstd", level=19)
        timer.join()
        # A conversion that went on until its end would have left the file.
        self.assertFalse(os.path.exists(self.path("noise.zt")))


class Pins(JobCase):
    """The hash by which partitions of Spark check their input."""

    def test_folder(self):
        from tenfold._more import pinned
        folder = self.path("model")
        tenfold.split(self.model, folder, max_bytes=100)
        for path in (self.model, folder):
            self.assertEqual(pinned(path), pinned(path))
        kept = pinned(folder)
        shard = next(os.path.join(folder, name) for name in sorted(os.listdir(folder))
                     if name.endswith(".safetensors"))
        with open(shard, "rb") as f:
            data = bytearray(f.read())
        data[-1] ^= 1  # another value, of the same size and with the same header
        when = os.stat(shard).st_mtime_ns
        with open(shard, "wb") as f:
            f.write(data)
        os.utime(shard, ns=(when, when + 1000))
        self.assertNotEqual(pinned(folder), kept)
        tenfold.save(self.path("m.npz"), {"w": np.zeros(3)})
        self.assertEqual(pinned(self.path("m.npz"), "npz"), pinned(self.path("m.npz"), "npz"))


class Program(JobCase):
    def test_module(self):
        env = {**os.environ, "PATH": os.path.dirname(support.COMMAND) + ":" + os.environ["PATH"],
               "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        done = subprocess.run([sys.executable, "-m", "tenfold", "ls", "--json", self.model], env=env,
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, command("ls", "--json", self.model))
        done = subprocess.run([sys.executable, "-m", "tenfold", "verify", "nothing"], env=env,
                              capture_output=True, check=False)
        self.assertNotEqual(done.returncode, 0)


if __name__ == "__main__":
    unittest.main()
