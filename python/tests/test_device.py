# SPDX-License-Identifier: MIT
"""Loading tensors to a device, if torch is installed. The device "host" uses the code for GPUs with
CPU memory. The loaded tensors are compared with those that torch saved."""
import gc
import os
import subprocess
import sys
import unittest

import support
from support import torch

import tenfold
from tenfold import _tenfold

if torch is not None:
    import tenfold.torch


def equal(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(
        a.contiguous().flatten().view(torch.uint8), b.contiguous().flatten().view(torch.uint8))


@unittest.skipIf(torch is None, "needs torch")
class Device(support.Case):
    def setUp(self):
        super().setUp()
        torch.manual_seed(24)
        self.tensors = {f"t{i}": torch.randn(i + 1, 7).to(kind) for i, kind in
                        enumerate([torch.float32, torch.bfloat16, torch.float16] * 20)}
        self.tensors["scalar"] = torch.tensor(2.5)
        self.tensors["empty"] = torch.zeros((0, 3))
        self.tensors["wide"] = torch.arange(3 << 20, dtype=torch.int32).reshape(512, -1)
        self.file = self.path("x.safetensors")
        tenfold.torch.save_file(self.tensors, self.file)

    def same(self, loaded, expected=None):
        expected = self.tensors if expected is None else expected
        self.assertEqual(set(loaded), set(expected))
        for name, tensor in expected.items():
            self.assertTrue(equal(loaded[name], tensor), name)

    def test_whole(self):
        for each in (False, True):
            for threads in (0, 1, 5):
                loaded = tenfold.torch.load_file(self.file, "host", each=each, threads=threads)
                self.same(loaded)
        loaded["t3"].add_(1)  # memory of its own: the file and the next load do not see it
        self.same(tenfold.torch.load_file(self.file, "host"))

    def test_memory_stays(self):
        one = tenfold.torch.load_file(self.file, "host")["wide"]
        gc.collect()
        self.same(tenfold.torch.load_file(self.file, "host"))
        self.assertTrue(equal(one, self.tensors["wide"]))

    def test_other_formats(self):
        for name in ("x.pt", "x.npz"):
            plain = {k: v for k, v in self.tensors.items() if v.dtype != torch.bfloat16}
            tenfold.save(self.path(name), plain)
            self.same(tenfold.torch.load_file(self.path(name), "host"), plain)

    def test_columns(self):
        tenfold.save(self.path("f.zt"), {"t": torch.arange(6).reshape(2, 3).T})
        loaded = tenfold.torch.load_file(self.path("f.zt"), "host")
        self.assertEqual(loaded["t"].tolist(), [[0, 3], [1, 4], [2, 5]])

    def test_names_and_slices(self):
        key = (slice(None), slice(100, 1100))
        loaded = tenfold.torch.load_file(self.file, "host", names=["wide", "t5"],
                                         slices={"wide": key})
        self.same(loaded, {"wide": self.tensors["wide"][key], "t5": self.tensors["t5"]})
        with self.assertRaises(KeyError):
            tenfold.torch.load_file(self.file, "host", names=["absent"])
        with self.assertRaises(ValueError):
            tenfold.torch.load_file(self.file, "cpu", names=["wide"])

    def test_cast(self):
        names = ["t0", "t1", "t2"]
        loaded = tenfold.torch.load_file(self.file, "host", names=names, dtype="bf16")
        self.same(loaded, {n: self.tensors[n].to(torch.bfloat16) for n in names})

    def test_into(self):
        names = ("t4", "wide", "scalar", "empty")
        targets = {n: torch.full_like(self.tensors[n], 9) for n in names}
        tenfold.torch.load_into(self.file, targets)
        self.same(targets, {n: self.tensors[n] for n in names})
        half = {"t0": torch.zeros(1, 7, dtype=torch.bfloat16)}
        tenfold.torch.load_into(self.file, half)
        self.same(half, {"t0": self.tensors["t0"].to(torch.bfloat16)})
        piece = {"wide": torch.zeros(512, 50, dtype=torch.int32)}
        tenfold.torch.load_into(self.file, piece, slices={"wide": (slice(None), slice(7, 57))})
        self.same(piece, {"wide": self.tensors["wide"][:, 7:57]})
        for bad in (torch.zeros(3, 7), torch.zeros(7, 5).T):
            with self.assertRaises(ValueError):
                tenfold.torch.load_into(self.file, {"t4": bad})

    def test_iterate(self):
        other = self.path("y.safetensors")
        tenfold.torch.save_file({"z": torch.arange(5)}, other)
        for ahead in (1, 4000, 2 << 30):
            order, loaded = [], {}
            for name, tensor in tenfold.torch.iterate([self.file, other], "host", ahead=ahead):
                order.append(name)
                loaded[name] = tensor
            with tenfold.open(self.file) as f:
                self.assertEqual(order, [*f, "z"])
            self.same(loaded, {**self.tensors, "z": torch.arange(5)})

    def test_iterate_left(self):
        names = tenfold.torch.iterate(self.file, "host", ahead=1 << 20)
        next(names)
        names.close()  # the file is closed after the load that reads it has ended
        self.same(tenfold.torch.load_file(self.file, "host"))

    def test_interrupted(self):
        """A load that ends early, for any reason, does not write to freed memory."""
        from tenfold import _device

        def interrupted(self, views):
            raise KeyboardInterrupt

        whole, _device.Plan.tensors = _device.Plan.tensors, interrupted
        try:
            for _ in range(20):
                with self.assertRaises(KeyboardInterrupt):
                    tenfold.torch.load_file(self.file, "host", names=list(self.tensors))
        finally:
            _device.Plan.tensors = whole
        self.same(tenfold.torch.load_file(self.file, "host", names=list(self.tensors)))

    def test_cut_short(self):
        with open(self.file, "r+b") as f:
            with tenfold.open(self.file) as opened:
                f.truncate(f.seek(0, 2) - (5 << 20))
                with self.assertRaises(tenfold.Error) as caught:
                    from tenfold import _device
                    _device.load(opened, "host", tenfold.torch._DTYPES)
        self.assertIn("TRUNCATED", str(caught.exception.status))

    def test_info(self):
        info = _tenfold.device_info(_tenfold.device_open("host"))
        self.assertEqual((info["name"], info["ordinal"]), ("host", -1))
        for name in ("gpu", "cuda:x9"):
            with self.assertRaises(Exception):
                _tenfold.device_open(name)

    def test_example(self):
        script = os.path.join(support.ROOT, "examples", "python_gpu.py")
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
        self.assertRegex(done.stdout, "^2 tensors, 36 numbers on .*\nslices: True\ninto: True\n"
                                      "iterated: 2\n$")

    @unittest.skipUnless(torch is not None and torch.cuda.is_available(), "needs a GPU")
    def test_gpu(self):
        for each in (False, True):
            loaded = tenfold.torch.load_file(self.file, "cuda", each=each)
            self.assertTrue(all(t.is_cuda for t in loaded.values()))
            self.same({n: t.cpu() for n, t in loaded.items()})


if __name__ == "__main__":
    unittest.main()
