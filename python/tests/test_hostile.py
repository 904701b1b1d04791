# SPDX-License-Identifier: MIT
"""Every malicious file of the corpus, through Python: it gives a result or an error of the package,
nothing else, and no memory leaks."""
import gc
import os
import unittest
import warnings

import support

import tenfold

CORPUS = os.environ.get("TENFOLD_HOSTILE",
                        os.path.join(support.ROOT, "build", "release", "tests", "hostile"))


def files():
    return sorted(os.path.join(folder, name) for folder, _, names in os.walk(CORPUS)
                  for name in names)


def use(path, **how):
    """The calls that a careless program would make for a file."""
    with tenfold.open(path, warn=False, limits={"memory": 64 << 20, "decoded_bytes": 16 << 20},
                      **how) as f:
        repr(f), f.attrs, f.attrs_typed, f.format, f.version, f._repr_html_()
        for name in list(f)[:20]:
            tensor = f[name]
            repr(tensor), tensor.attrs, tensor.parts, tensor.location
            if tensor.nbytes > 1 << 20:
                continue
            for ask in (tensor.bytes, tensor.numpy, tensor.strings, tensor.__dlpack__,
                        lambda t=tensor: t[...], lambda t=tensor: t[0], lambda t=tensor: t[::-2]):
                try:
                    ask()
                except (tenfold.Error, BufferError, ValueError, IndexError, ImportError):
                    pass


@unittest.skipUnless(os.path.isdir(CORPUS), "needs the corpus of hostile files")
class Hostile(support.Case):
    def test_all(self):
        refused = 0
        for path in files():
            for how in ({}, {"lenient": True}, {"access": "pread"}):
                try:
                    use(path, **how)
                except tenfold.Error as error:
                    refused += 1
                    self.assertTrue(str(error))
                except MemoryError:
                    refused += 1
        self.assertGreater(refused, 0)

    def test_in_memory(self):
        for path in files():
            if os.path.getsize(path) > 1 << 20:
                continue
            with open(path, "rb") as f:
                data = f.read()
            try:
                with tenfold.open(memoryview(data), warn=False,
                                  limits={"memory": 64 << 20}) as opened:
                    len(opened)
            except (tenfold.Error, MemoryError):
                pass

    def test_verify_and_repair(self):
        target = self.path("out")
        for path in files()[::7]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    tenfold.verify(path, limits={"memory": 64 << 20})
                    tenfold.repair(path, target, replace=True, sync=False)
                except (tenfold.Error, MemoryError):
                    pass

    @unittest.skipIf(support.SANITIZED, "sanitizers keep what is freed")
    def test_memory_does_not_grow(self):
        some = [p for p in files() if os.path.getsize(p) < 1 << 16][::5]

        def all_once():
            for path in some:
                try:
                    use(path)
                except (tenfold.Error, MemoryError):
                    pass
        all_once()
        all_once()
        gc.collect()
        before = support.resident()
        for _ in range(3):
            all_once()
        gc.collect()
        self.assertLess(support.resident() - before, 2 << 20)


if __name__ == "__main__":
    unittest.main()
