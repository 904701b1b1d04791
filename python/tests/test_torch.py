# SPDX-License-Identifier: MIT
"""tenfold.torch, if torch is installed. (safetensors' own tests of it are in test_upstream.py.)"""
import os
import shutil
import subprocess
import sys
import unittest

import support
from support import numpy as np, torch

import tenfold

if torch is not None:
    import tenfold.torch


@unittest.skipIf(torch is None, "needs torch")
class Torch(support.Case):
    def test_round_trip(self):
        tensors = {"f": torch.arange(12.0).reshape(3, 4), "b": torch.arange(4).to(torch.bfloat16),
                   "s": torch.tensor(2.5), "e": torch.zeros((0, 3)), "t": torch.tensor([True, False]),
                   "c": torch.tensor([1 + 2j])}
        for name in ("float8_e4m3fn", "float8_e5m2"):
            if hasattr(torch, name):
                tensors[name] = torch.ones(4).to(getattr(torch, name))
        path = self.path("x.safetensors")
        tenfold.torch.save_file(tensors, path, {"key": "value"})
        for loaded in (tenfold.torch.load_file(path), tenfold.torch.load(tenfold.torch.save(tensors))):
            self.assertEqual(set(loaded), set(tensors))
            for name, tensor in tensors.items():
                self.assertEqual((loaded[name].dtype, loaded[name].shape),
                                 (tensor.dtype, tensor.shape))
                self.assertTrue(torch.equal(loaded[name].contiguous().view(torch.uint8)
                                            if tensor.dim() and tensor.numel() else loaded[name],
                                            tensor.view(torch.uint8)
                                            if tensor.dim() and tensor.numel() else tensor), name)
        loaded["f"].add_(1)  # memory of its own
        with tenfold.open(path) as f:
            self.assertTrue(torch.equal(f["f"].torch(), tensors["f"]))
            self.assertTrue(torch.equal(torch.from_dlpack(f["f"]), tensors["f"]))

    def test_other_formats(self):
        tenfold.save(self.path("x.zt"), {"w": torch.arange(6.0).reshape(2, 3),
                                         "g": torch.ones(2, requires_grad=True),
                                         "t": torch.arange(6).reshape(2, 3).T})
        loaded = tenfold.torch.load_file(self.path("x.zt"))
        self.assertEqual(loaded["w"].tolist(), [[0, 1, 2], [3, 4, 5]])
        self.assertEqual(loaded["t"].tolist(), [[0, 3], [1, 4], [2, 5]])

    @unittest.skipIf(np is None, "needs numpy")
    def test_columns(self):
        np.save(self.path("f.npy"), np.asfortranarray(np.arange(6.0).reshape(2, 3)))
        loaded = tenfold.torch.load_file(self.path("f.npy"))
        self.assertEqual(next(iter(loaded.values())).tolist(), [[0, 1, 2], [3, 4, 5]])

    def test_refused(self):
        a = torch.zeros(4)
        for bad, kind in (({"a": a, "b": a}, RuntimeError), ({"a": a[:3], "b": a[1:]}, RuntimeError),
                          ({"a": torch.zeros(2, 3).T}, ValueError), ([a], ValueError),
                          ({"a": 3}, ValueError), ({"a": torch.zeros(2, device="meta")}, RuntimeError),
                          ({"__metadata__": a}, tenfold.Error)):
            with self.assertRaises(kind):
                tenfold.torch.save_file(bad, self.path("x.safetensors"))
        tenfold.torch.save_file({"a": a[:2], "b": a[2:]}, self.path("x.safetensors"))

    def test_mapped(self):
        """mmap=True: the values of load_file(), writable, and the file does not change."""
        tensors = {"f": torch.arange(12.0).reshape(3, 4), "i": torch.arange(5), "s": torch.tensor(2.5),
                   "b": torch.arange(6).to(torch.bfloat16).reshape(2, 3), "e": torch.zeros((0, 3))}
        for name, how in (("x.safetensors", {}), ("x.zt", {}), ("z.zt", {"encoding": "zstd"}),
                          ("x.npz", {})):
            path = self.path(name)
            saved = {k: t for k, t in tensors.items() if name != "x.npz" or k != "b"}
            tenfold.save(path, saved, **how)
            before = self.bytes_of(name)
            got = tenfold.torch.load_file(path, mmap=True)
            self.assertEqual(list(got), list(tenfold.torch.load_file(path)))
            for key, tensor in saved.items():
                self.assertEqual((got[key].dtype, got[key].shape), (tensor.dtype, tensor.shape))
                self.assertTrue(torch.equal(got[key].float(), tensor.float()), key)
            got["f"] += 1
            self.assertEqual(got["f"][0, 0].item(), 1)
            self.assertEqual(self.bytes_of(name), before)
        tenfold.split(self.path("x.safetensors"), self.path("model"), max_bytes=50)
        got = tenfold.torch.load_file(self.path("model"), mmap=True)
        self.assertTrue(torch.equal(got["f"], tensors["f"]))
        with self.assertRaises(FileNotFoundError):
            tenfold.torch.load_file(self.path("none"), mmap=True)

    def test_device(self):
        tenfold.torch.save_file({"a": torch.ones(2)}, self.path("x.safetensors"))
        self.assertEqual(tenfold.torch.load_file(self.path("x.safetensors"),
                                                 torch.device("cpu"))["a"].device.type, "cpu")

    @unittest.skipUnless(torch is not None and torch.cuda.is_available(), "needs a GPU")
    def test_gpu(self):
        """Copied by torch: every type, slices, models, and back."""
        tensors = {"f": torch.arange(12.0).reshape(3, 4), "i": torch.arange(5),
                   "b": torch.arange(6).to(torch.bfloat16).reshape(2, 3), "s": torch.tensor(2.5),
                   "e": torch.zeros((0, 3)), "t": torch.tensor([True, False]),
                   "large": torch.arange(1 << 20, dtype=torch.float32)}
        if hasattr(torch, "float8_e4m3fn"):
            tensors["f8"] = torch.ones(4).to(torch.float8_e4m3fn)
        path = self.path("x.safetensors")
        tenfold.torch.save_file({name: t.cuda() for name, t in tensors.items()}, path)
        for device in ("cuda", "cuda:0", 0, torch.device("cuda"), torch.device("cuda:0")):
            loaded = tenfold.torch.load_file(path, device)
            for name, tensor in tensors.items():
                self.assertEqual((loaded[name].device.type, loaded[name].dtype), ("cuda", tensor.dtype))
                self.assertTrue(torch.equal(loaded[name].cpu().float(), tensor.float()), name)
        with tenfold.torch.safe_open(path, "pt", device="cuda:0") as f:
            self.assertEqual(f.get_tensor("f").device, torch.device("cuda:0"))
            self.assertTrue(torch.equal(f.get_slice("f")[1:, ::2].cpu(), tensors["f"][1:, ::2]))
            self.assertEqual({t.device.type for t in f.get_tensors().values()}, {"cuda"})
        with tenfold.open(path) as f:
            self.assertTrue(torch.equal(f["f"].torch("cuda").cpu(), tensors["f"]))
        model = torch.nn.Linear(4, 3).cuda()
        tenfold.torch.save_model(model, self.path("m.safetensors"))
        other = torch.nn.Linear(4, 3).cuda()
        self.assertEqual(tenfold.torch.load_model(other, self.path("m.safetensors"), device="cuda"),
                         (set(), []))
        self.assertTrue(torch.equal(model.weight, other.weight))
        with torch.device("cuda"):  # the default device does not change
            self.assertEqual(tenfold.torch.load_file(path)["f"].device.type, "cpu")

    def test_workers(self):
        from torch.utils.data import DataLoader, Dataset
        tenfold.torch.save_file({str(i): torch.full((3,), float(i)) for i in range(8)},
                                self.path("x.safetensors"))

        class Files(Dataset):
            def __init__(self, path):
                self.file = tenfold.open(path)

            def __len__(self):
                return len(self.file)

            def __getitem__(self, i):
                return self.file[str(i)].torch()
        rows = [row[0].item() for row in DataLoader(Files(self.path("x.safetensors")), batch_size=None,
                                                    num_workers=2)]
        self.assertEqual(rows, [float(i) for i in range(8)])


@unittest.skipIf(torch is not None or "TENFOLD_NO_SYSTEM" in os.environ, "torch is here")
class Elsewhere(unittest.TestCase):
    def test_by_the_system(self):
        """The same with the system's Python, if that has torch: one extension serves all
        versions."""
        python = "/usr/bin/python3"
        if not shutil.which(python) or subprocess.run(
                [python, "-c", "import torch"], capture_output=True, check=False).returncode:
            self.skipTest("needs torch")
        env = {**os.environ, "TENFOLD_NO_SYSTEM": "yes", "PYTHONPATH": os.path.dirname(
            os.path.dirname(tenfold.__file__))}
        done = subprocess.run([python, os.path.abspath(__file__)], env=env, capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-4000:])


if __name__ == "__main__":
    unittest.main()
