# SPDX-License-Identifier: MIT
"""Random dicts saved by safetensors and by Tenfold: the bytes are the same, and both read the same.
Their number: the environment variable TENFOLD_RANDOM [2000; with sanitizers 200]."""
import os
import random
import unittest

import support
from support import ml_dtypes, numpy as np, safetensors

if np is not None:
    import tenfold.numpy

KINDS = ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?", "c8", ">f4", ">i8",
         ">u2"]
LETTERS = "abcXYZ012._-/äß€漢🙂 \"\\\n\t\x7f"


def random_name(rng):
    return "".join(rng.choice(LETTERS) for _ in range(rng.randrange(0, 12)))


def random_array(rng, kinds):
    shape = [rng.choice((0, 1, 2, 3, 5, 8)) for _ in range(rng.randrange(0, 4))]
    kind = rng.choice(kinds)
    numbers = np.frombuffer(rng.randbytes(int(np.prod(shape)) * 8 or 8), "u1")
    if not isinstance(kind, str):
        return (numbers[:int(np.prod(shape))].astype("f4") / 16).astype(kind).reshape(shape)
    if kind == "?":
        return (numbers[:int(np.prod(shape))] % 2).astype("?").reshape(shape)
    dtype = np.dtype(kind)
    raw = rng.randbytes(int(np.prod(shape)) * dtype.itemsize)
    return np.frombuffer(raw, dtype).reshape(shape)


def random_dict(rng, kinds):
    return {random_name(rng): random_array(rng, kinds) for _ in range(rng.randrange(0, 9))}


def random_view(rng, array):
    """The same numbers, but not in C order in memory."""
    if array.ndim == 0:
        return array
    how = rng.randrange(4)
    if how == 0:
        return np.asfortranarray(array)
    if how == 1:
        return np.ascontiguousarray(array[::-1])[::-1]
    if how == 2:
        wide = np.empty((*array.shape[:-1], array.shape[-1] * 3), array.dtype)
        wide[..., ::3] = array
        return wide[..., ::3]
    return np.ascontiguousarray(array.T).T


def bits(array):
    """The contents of an array, where NaNs are comparable."""
    little = array.astype(array.dtype.newbyteorder("<")) if array.dtype.byteorder == ">" else array
    return (little.dtype.name, little.shape, little.tobytes())


@unittest.skipIf(np is None or safetensors is None, "needs numpy and safetensors")
class Random(support.Case):
    def setUp(self):
        super().setUp()
        self.rng = random.Random(20260512)
        self.kinds = list(KINDS)
        if ml_dtypes is not None:
            self.kinds += [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2,
                           ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2fnuz]

    def test_both_ways(self):
        for i in range(int(os.environ.get("TENFOLD_RANDOM", 200 if support.SANITIZED else 2000))):
            tensors = random_dict(self.rng, self.kinds)
            metadata = self.rng.choice((None, {"key": random_name(self.rng)}))
            theirs = safetensors.numpy.save(tensors, metadata)
            self.assertEqual(tenfold.numpy.save(tensors, metadata), theirs, f"dict {i}")
            views = {name: random_view(self.rng, a) for name, a in tensors.items()}
            self.assertEqual(tenfold.numpy.save(views, metadata), theirs, f"views of dict {i}")
            wanted = {name: bits(a) for name, a in tensors.items()}
            loaded = tenfold.numpy.load(theirs)
            self.assertEqual({name: bits(a) for name, a in loaded.items()}, wanted, f"dict {i}")
            path = self.path("x.safetensors")
            tenfold.numpy.save_file(tensors, path, metadata, sync=False)
            with safetensors.safe_open(path, "np") as f:
                self.assertEqual(f.metadata(), metadata)
                self.assertEqual(sorted(f.keys()), sorted(tensors))
            loaded = tenfold.numpy.load_file(path)
            self.assertEqual({name: bits(a) for name, a in loaded.items()}, wanted, f"dict {i}")

    def test_slices(self):
        """Small slices are copied from the mapping: any rank, steps of both signs, every width."""
        import tenfold.compat.safetensors as ours
        path = self.path("slices.safetensors")
        for i in range(100):
            shape = [self.rng.randrange(1, 7) for _ in range(self.rng.randrange(0, 5))]
            kind = self.rng.choice(("f8", "f4", "i2", "u1", "c8"))
            array = np.arange(int(np.prod(shape))).astype(kind).reshape(shape)
            tenfold.numpy.save_file({"x": array}, path, sync=False)
            for backend in ("mmap", "pread"):
                with ours.safe_open(path, "np", backend=backend) as f:
                    for _ in range(20):
                        key = tuple(self.key(n) for n in shape[:self.rng.randrange(len(shape) + 1)])
                        got = f.get_slice("x")[key]
                        self.assertEqual(bits(got), bits(array[key]), (i, shape, key, backend))

    def key(self, n):
        if self.rng.random() < 0.3:
            return self.rng.randrange(-n, n)
        a, b = sorted((self.rng.randrange(n), self.rng.randrange(n + 1)))
        step = self.rng.randrange(1, 4)
        return slice(a, max(b, a), step) if self.rng.random() < 0.7 else slice(None, None, -step)

    def test_metadata_keeps_its_order(self):
        metadata = {f"key{i}": str(i) for i in range(20)}
        data = tenfold.numpy.save({"a": np.zeros(1)}, metadata)
        self.assertEqual(data, tenfold.numpy.save({"a": np.zeros(1)}, metadata))
        self.assertEqual(list(tenfold.open(memoryview(data)).attrs["safetensors.metadata"]),
                         list(metadata))


if __name__ == "__main__":
    unittest.main()
