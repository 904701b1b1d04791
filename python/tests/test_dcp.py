# SPDX-License-Identifier: MIT
"""tenfold.dcp and tenfold.torch.load_sharded(), if torch has distributed checkpoints: with one
process here, and with four under torchrun in ranks.py, one of which is killed."""
import json
import os
import signal
import subprocess
import sys
import time
import unittest

import support
from support import torch

import tenfold
from tenfold import _slices

try:
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint import HuggingFaceStorageReader, HuggingFaceStorageWriter
    import tenfold.dcp
    import tenfold.torch
except ImportError:
    dcp = None

RANKS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ranks.py")


def values():
    g = torch.Generator().manual_seed(7)
    state = {"w": torch.randn(37, 24, generator=g), "b": torch.randn(24, generator=g).to(torch.bfloat16),
             "h": torch.randn(5, 6, 7, generator=g).half(), "i": torch.arange(-5, 6),
             "flag": torch.tensor([True, False, True]), "scalar": torch.tensor(2.5),
             "empty": torch.zeros(0, 3), "c": torch.randn(3, dtype=torch.complex64, generator=g)}
    for name in ("float8_e4m3fn", "float8_e5m2"):
        if hasattr(torch, name):
            state[name] = torch.randn(4, 8, generator=g).to(getattr(torch, name))
    for name in ("uint16", "uint32"):
        state[name] = torch.tensor([1, 2, 40000], dtype=torch.int64).to(getattr(torch, name))
    return state


def bits(tensor):
    flat = tensor.detach().contiguous().reshape(-1)
    return flat.view(torch.uint8).tolist() if flat.numel() else []


def blank(state):
    return {name: torch.zeros_like(t) for name, t in state.items()}


def load(state, reader):
    dcp.load(state, storage_reader=reader, no_dist=True)
    return state


@unittest.skipIf(dcp is None, "needs torch with distributed checkpoints")
class Dcp(support.Case):
    def same(self, got, expected):
        self.assertEqual(set(got), set(expected))
        for name, tensor in expected.items():
            self.assertEqual((got[name].dtype, got[name].shape), (tensor.dtype, tensor.shape), name)
            self.assertEqual(bits(got[name]), bits(tensor), name)

    def test_formats(self):
        """Every type, from files of several formats."""
        state = values()
        for name in ("x.safetensors", "x.zt", "x.pt", "x.npz"):
            saved = {k: v for k, v in state.items()
                     if name != "x.npz" or v.dtype != torch.bfloat16 and "float8" not in k}
            if name == "x.pt":
                torch.save(saved, self.path(name))
            else:
                tenfold.save(self.path(name), saved)
            reader = tenfold.dcp.Reader(self.path(name))
            self.same(load(blank(saved), reader), saved)
            self.assertEqual(reader.left_out, {})
            wanted = sum(t.nbytes for t in saved.values())
            self.assertEqual(reader.report["bytes"], wanted)
            if name == "x.safetensors":
                self.assertEqual(reader.report["bytes_read"], wanted)

    def test_shards(self):
        state = values()
        tenfold.save(self.path("x.safetensors"), state)
        tenfold.split(self.path("x.safetensors"), self.path("model"), max_bytes=1000)
        for path in (self.path("model"), os.path.join(self.path("model"),
                                                      "model.safetensors.index.json")):
            self.same(load(blank(state), tenfold.dcp.Reader(path)), state)

    def test_dcp_folder(self):
        """Files that torch writes."""
        state = values()
        dcp.save(state, checkpoint_id=self.path("own"), no_dist=True)
        self.same(load(blank(state), tenfold.dcp.Reader(self.path("own"))), state)

    def test_gguf(self):
        path = os.path.join(support.ROOT, "tests", "formats", "gguf", "valid")
        for name in sorted(os.listdir(path)):
            try:
                file = tenfold.open(os.path.join(path, name), warn=False)
            except tenfold.Error:
                continue
            with file:
                plain = {n: file[n].torch() for n in file if file[n].layout == "dense"}
            if plain:
                reader = tenfold.dcp.Reader(os.path.join(path, name), warn=False)
                self.same(load(blank(plain), reader), plain)

    def test_quantized(self):
        tenfold.save(self.path("f.safetensors"), {"w": torch.randn(64, 256)})
        try:
            tenfold.convert(self.path("f.safetensors"), self.path("q.gguf"), dtype="q8_0",
                            allow_loss=True)
        except (ValueError, tenfold.Error):
            self.skipTest("no quantized GGUF can be written")
        try:
            import gguf
        except ImportError:
            self.skipTest("needs gguf")
        with tenfold.open(self.path("q.gguf")) as file:
            raw = torch.frombuffer(bytearray(file["w"].parts["data"].bytes()), dtype=torch.uint8).reshape(64, -1)
            expected = gguf.quants.dequantize(raw.numpy(), gguf.GGMLQuantizationType.Q8_0)
        expected = torch.from_numpy(expected)
        for dtype in (torch.float32, torch.bfloat16, torch.float64):
            got = load({"w": torch.zeros(64, 256, dtype=dtype)}, tenfold.dcp.Reader(self.path("q.gguf")))
            self.assertTrue(torch.equal(got["w"], expected.to(dtype)))
        part = tenfold.torch.load_sharded(self.path("q.gguf"), None, 1, 3, 1, device="cpu")
        self.assertTrue(torch.equal(part["w"], expected.chunk(3, 1)[1]))

    def test_casts(self):
        tenfold.save(self.path("x.safetensors"),
                     {"f": torch.tensor([1.0, 2.7]), "i": torch.tensor([1, 300])})
        path = self.path("x.safetensors")
        for dtype in (torch.bfloat16, torch.float16, torch.float64):
            got = load({"f": torch.zeros(2, dtype=dtype)}, tenfold.dcp.Reader(path))
            self.assertTrue(torch.equal(got["f"], torch.tensor([1.0, 2.7]).to(dtype)))
        for name, dtype in (("i", torch.int8), ("i", torch.int32), ("i", torch.float32),
                            ("f", torch.int64), ("f", torch.complex64)):
            with self.assertRaisesRegex(BaseException, "in the file"):
                load({name: torch.zeros(2, dtype=dtype)}, tenfold.dcp.Reader(path))
        with self.assertRaisesRegex(BaseException, "in the file"):
            load({"f": torch.zeros(2, dtype=torch.bfloat16)}, tenfold.dcp.Reader(path, cast=False))

    def test_not_contiguous(self):
        state = {"w": torch.arange(12.0).reshape(3, 4)}
        tenfold.save(self.path("x.safetensors"), state)
        got = {"w": torch.zeros(4, 3).T}
        load(got, tenfold.dcp.Reader(self.path("x.safetensors")))
        self.assertTrue(torch.equal(got["w"], state["w"]))

    def test_writer(self):
        """Torch's reader, Reader and open() load what Writer wrote."""
        state = values()
        dcp.save(state, storage_writer=tenfold.dcp.Writer(self.path("out"), metadata={"a": "b"}),
                 no_dist=True)
        self.same(load(blank(state), tenfold.dcp.Reader(self.path("out"))), state)
        own = {k: v for k, v in state.items() if v.dtype.is_floating_point or k == "i"}
        self.same(load(blank(own), HuggingFaceStorageReader(self.path("out"))), own)
        with tenfold.open(self.path("out")) as file:
            self.assertEqual(set(file), set(state))
            self.assertEqual(bits(file["w"].torch()), bits(state["w"]))
        with self.assertRaisesRegex(BaseException, "replace=True"):
            dcp.save(state, storage_writer=tenfold.dcp.Writer(self.path("out")), no_dist=True)
        less = {"w": state["w"] + 1}
        dcp.save(less, storage_writer=tenfold.dcp.Writer(self.path("out"), replace=True), no_dist=True)
        self.same(load(blank(less), tenfold.dcp.Reader(self.path("out"))), less)

    def test_replaced(self):
        """An unfinished save keeps the old checkpoint, with complete tensors or with pieces."""
        class Stopped(tenfold.dcp.Writer):
            def finish(self, metadata, results):
                raise RuntimeError("stopped")

        class Pieces(tenfold.dcp.Writer):  # as if another rank had the same tensor, too
            def finish(self, metadata, results):
                super().finish(metadata, [*results, *results])
        old, new = {"w": torch.ones(4, 3)}, {"w": torch.full((4, 3), 2.0)}
        out = self.path("out")
        for first, second in ((tenfold.dcp.Writer, Pieces), (Pieces, tenfold.dcp.Writer),
                              (Pieces, Pieces)):
            dcp.save(old, storage_writer=first(out, replace=True), no_dist=True)
            before = set(os.listdir(out))
            with self.assertRaises(BaseException):
                dcp.save(new, storage_writer=Stopped(out, replace=True), no_dist=True)
            self.assertGreater(set(os.listdir(out)), before)
            self.same(load(blank(old), tenfold.dcp.Reader(out)), old)
            self.same(load(blank(old), tenfold.dcp.Reader(out, access="pread")), old)
            dcp.save(new, storage_writer=second(out, replace=True), no_dist=True)
            self.same(load(blank(new), tenfold.dcp.Reader(out)), new)
            self.assertEqual(len(os.listdir(out)), 2)
        # Without a list, files of two saves are not a checkpoint.
        dcp.save(old, storage_writer=Pieces(out, replace=True), no_dist=True)
        with self.assertRaises(BaseException):
            dcp.save(new, storage_writer=Stopped(out, replace=True), no_dist=True)
        os.unlink(os.path.join(out, "tenfold.dcp.json"))
        with self.assertRaisesRegex(tenfold.FormatError, "different saves"):
            tenfold.dcp.Reader(out).read_metadata()
        for text in ("{", "[]", '{"files": []}', '{"files": ["../x.safetensors"]}', '{"files": 3}'):
            with open(os.path.join(out, "tenfold.dcp.json"), "w", encoding="utf-8") as f:
                f.write(text)
            with self.assertRaisesRegex(tenfold.FormatError, "not a list"):
                tenfold.dcp.Reader(out).read_metadata()

    def test_opening(self):
        """Pieces are found with all keywords of open()."""
        for i in range(2):
            os.makedirs(self.path("two"), exist_ok=True)
            tenfold.torch.save_file(
                {"w": torch.full((2, 3), float(i))}, os.path.join(self.path("two"), f"{i}.safetensors"),
                {"DCP_SHARDING_INFO": json.dumps({"w": {"saved_offsets": [2 * i, 0]}})})
        for how in ({}, {"access": "pread"}, {"lenient": True}):
            got = load({"w": torch.zeros(4, 3)}, tenfold.dcp.Reader(self.path("two"), **how))
            self.assertEqual(got["w"][:, 0].tolist(), [0, 0, 1, 1])

    def test_objects(self):
        """Values that are not tensors, as in the state of optimizers."""
        state = {"w": torch.ones(3), "step": 17, "nested": {"lr": 0.5, "name": "adam"}}
        dcp.save(state, storage_writer=tenfold.dcp.Writer(self.path("out")), no_dist=True)
        got = {"w": torch.zeros(3), "step": 0, "nested": {"lr": 0.0, "name": ""}}
        load(got, tenfold.dcp.Reader(self.path("out")))
        self.assertEqual((got["step"], got["nested"], got["w"].tolist()),
                         (17, state["nested"], [1, 1, 1]))

    def test_torchs_writer(self):
        state = {k: v for k, v in values().items() if v.dtype.is_floating_point and v.dim()}
        dcp.save(state, storage_writer=HuggingFaceStorageWriter(self.path("hf"), save_distributed=True),
                 no_dist=True)
        self.same(load(blank(state), tenfold.dcp.Reader(self.path("hf"))), state)

    def test_wrong(self):
        """Pieces that do not fit are found before anything is loaded."""
        def piece(name, offsets, shape=(2, 3), tensor="w", dtype=torch.float32):
            info = offsets if isinstance(offsets, str) else json.dumps({tensor: {"saved_offsets": offsets}})
            os.makedirs(self.path("bad"), exist_ok=True)
            tenfold.torch.save_file({tensor: torch.zeros(shape, dtype=dtype)},
                                    os.path.join(self.path("bad"), name), {"DCP_SHARDING_INFO": info})

        def says(text):
            with self.assertRaisesRegex(tenfold.FormatError, text):
                tenfold.dcp.Reader(self.path("bad")).read_metadata()
        piece("a.safetensors", [0, 0])
        for offsets, text in (([4, 0], "do not make up"), ([0], "are not 2 offsets"),
                              ([-1, 0], "are not 2"), ([0, True], "are not 2"), ("[", "not a JSON"),
                              ("[]", "not a JSON"), ('{"w": 3}', "are not 2"),
                              ([1 << 70, 0], "are not 2")):
            piece("b.safetensors", offsets)
            says(text)
        piece("b.safetensors", [2, 0], dtype=torch.float16)
        says("different types")
        piece("b.safetensors", [0, 0], shape=(1, 3))
        says("begin at")
        piece("b.safetensors", [2, 0])
        self.assertEqual(load({"w": torch.ones(4, 3)}, tenfold.dcp.Reader(self.path("bad")))["w"].sum(), 0)
        with self.assertRaises(BaseException):
            load({"w": torch.ones(5, 3)}, tenfold.dcp.Reader(self.path("bad")))

    def test_load_sharded(self):
        """The pieces of all ranks form the tensor; each rank only reads its own bytes."""
        state = values()
        tenfold.save(self.path("x.safetensors"), state)
        for world in (1, 2, 3, 4, 7):
            for rule in ({"*": 0, }, {"h": 2, "w": 1, "float8*": -1}, {"*": "flat"}):
                parts = []
                for rank in range(world):
                    told = {}
                    parts.append(tenfold.torch.load_sharded(
                        self.path("x.safetensors"), [n for n in state if state[n].dim()], rank, world,
                        rule, device="cpu", report=told))
                    self.assertEqual(told["bytes_read"], sum(t.nbytes for t in parts[-1].values()))
                for name in parts[0]:
                    dim = next((d for p, d in rule.items() if p in (name, "*") or
                                p.endswith("*") and name.startswith(p[:-1])), None)
                    pieces = [part[name].view(torch.uint8) if part[name].numel() else part[name].view(torch.uint8)
                              for part in parts] if dim == "flat" else [part[name] for part in parts]
                    if dim is None:
                        self.assertEqual(bits(pieces[-1]), bits(state[name]))
                    elif dim == "flat":
                        self.assertEqual([b for p in parts for b in bits(p[name])], bits(state[name]))
                    else:
                        raw = [p.contiguous().view(torch.int8 if p.element_size() == 1 else p.dtype)
                               for p in pieces if p.numel()]
                        whole = torch.cat(raw, dim) if raw else state[name]
                        self.assertEqual(bits(whole), bits(state[name]), (name, world))

    def test_load_sharded_model(self):
        model = torch.nn.Linear(8, 6)
        tenfold.torch.save_model(model, self.path("m.safetensors"))
        other = torch.nn.Linear(8, 6)
        tenfold.torch.load_sharded(self.path("m.safetensors"), other)
        self.assertTrue(torch.equal(other.weight, model.weight))
        half = {"weight": torch.zeros(3, 8, dtype=torch.bfloat16)}
        tenfold.torch.load_sharded(self.path("m.safetensors"), half, 1, 2, 0)
        self.assertTrue(torch.equal(half["weight"], model.weight.detach()[3:].bfloat16()))
        made = tenfold.torch.load_sharded(self.path("m.safetensors"), None, 0, 2, 0, dtype="bfloat16",
                                          device="cpu")
        self.assertTrue(torch.equal(made["weight"], model.weight.detach()[:3].bfloat16()))
        with self.assertRaisesRegex(tenfold.NotFoundError, "nope"):
            tenfold.torch.load_sharded(self.path("m.safetensors"), ["nope"])
        self.assertEqual(tenfold.torch.load_sharded(self.path("m.safetensors"), ["nope"], strict=False), {})
        for bad in ((3, 2, 0), (0, None, 0), (0, 2, 5)):
            with self.assertRaises(ValueError):
                tenfold.torch.load_sharded(self.path("m.safetensors"), None, *bad)
        with self.assertRaisesRegex(ValueError, "shape"):
            tenfold.torch.load_sharded(self.path("m.safetensors"), {"weight": torch.zeros(2, 8)}, 1, 2, 0)


@unittest.skipIf(dcp is None, "needs torch with distributed checkpoints")
class Ranks(support.Case):
    """Four processes under torchrun."""

    def torchrun(self, *arguments, restarts=0, wait=True):
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
               "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=4",
                   f"--max-restarts={restarts}", "--monitor-interval=0.2", RANKS, self.folder, *arguments]
        process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True)
        if not wait:
            return process
        out = process.communicate(timeout=600)[0]
        self.assertEqual(process.returncode, 0, out)
        return out

    def results(self):
        told = []
        for rank in range(4):
            with open(self.path(f"told-{rank}.json"), encoding="utf-8") as f:
                told.append(json.load(f))
        return told

    def make(self):
        g = torch.Generator().manual_seed(3)
        state = {"up": torch.randn(1023, 2050, generator=g), "down": torch.randn(2050, 1023, generator=g),
                 "odd": torch.randn(13, 7, 300, generator=g).bfloat16(),
                 "few": torch.randn(3, 5, generator=g), "norm": torch.randn(2050, generator=g)}
        tenfold.torch.save_file(state, self.path("m.safetensors"))
        tenfold.split(self.path("m.safetensors"), self.path("folder"), max_bytes=9_000_000)
        torch.save(state, self.path("m.pt"))
        tenfold.convert(self.path("m.safetensors"), self.path("m.gguf"))
        return state

    def test_slices(self):
        """TP over both dimensions, FSDP and flat shards of four kinds of files are right to the
        byte. No rank reads more than 110 % of its bytes."""
        self.make()
        self.torchrun("load")
        for told in self.results():
            self.assertEqual(told["wrong"], [])
            for what, (wanted, read, rchar) in told["bytes"].items():
                self.assertGreater(wanted, 0, what)
                self.assertLessEqual(read, 1.1 * wanted, what)
                self.assertLessEqual(rchar, 1.1 * wanted + 65536, what)  # headers

    def test_writer(self):
        """Each rank writes its pieces; torch's reader, Reader and another number of ranks load
        them."""
        self.make()
        self.torchrun("save")
        for told in self.results():
            self.assertEqual(told["wrong"], [])
        with tenfold.open(self.path("m.safetensors")) as file:
            state = {name: file[name].torch() for name in file}
        for reader in (tenfold.dcp.Reader, HuggingFaceStorageReader):
            got = load(blank(state), reader(self.path("written")))
            for name, tensor in state.items():
                self.assertEqual(bits(got[name]), bits(tensor), name)

    def test_killed(self):
        """A rank is killed while it loads; torchrun restarts all ranks, and the result is right."""
        self.make()
        process = self.torchrun("slow", restarts=1, wait=False)
        victim, deadline = None, time.monotonic() + 300
        while victim is None and time.monotonic() < deadline and process.poll() is None:
            try:
                with open(self.path("loading-2"), encoding="ascii") as f:
                    victim = int(f.read())
            except (OSError, ValueError):
                time.sleep(0.05)
        self.assertIsNotNone(victim, "rank 2 never began")
        os.kill(victim, signal.SIGKILL)
        out = process.communicate(timeout=600)[0]
        self.assertEqual(process.returncode, 0, out)
        for told in self.results():
            self.assertEqual((told["wrong"], told["restarts"]), ([], 1))


class Slices(support.Case):
    def test_chunk(self):
        for n in (0, 1, 3, 4, 5, 7, 8, 100):
            for world in (1, 2, 3, 4, 7):
                cuts = [_slices.chunk(n, world, r) for r in range(world)]
                self.assertEqual([i for a, b in cuts for i in range(a, b)], list(range(n)))
                if torch is not None and n:
                    self.assertEqual([b - a for a, b in cuts if b > a],
                                     [len(c) for c in torch.arange(n).chunk(world)])

    def test_boxes(self):
        import itertools
        import random
        rng = random.Random(1)
        for _ in range(500):
            shape = tuple(rng.randint(1, 5) for _ in range(rng.randint(0, 4)))
            n = 1
            for extent in shape:
                n *= extent
            start = rng.randint(0, n)
            stop = rng.randint(start, n)
            got = []
            for element, key in _slices.boxes(shape, start, stop):
                self.assertEqual(element, len(got))
                for index in itertools.product(*(range(k.start, k.stop) for k in key)):
                    at = 0
                    for i, extent in zip(index, shape):
                        at = at * extent + i
                    got.append(at)
            self.assertEqual(got, list(range(start, stop)))


class Without(support.Case):
    def test_clear(self):
        """Without torch and pyspark, the errors of the modules say what to install."""
        code = """if True:
            import sys
            sys.modules.update(torch=None, pyspark=None)
            class Gone:
                def find_spec(self, name, path=None, target=None):
                    if name.split(".")[0] in ("torch", "pyspark"):
                        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            del sys.modules["torch"], sys.modules["pyspark"]
            sys.meta_path.insert(0, Gone())
            import importlib
            for module, extra in (("tenfold.dcp", "torch"), ("tenfold.spark", "spark")):
                try:
                    importlib.import_module(module)
                except ModuleNotFoundError as error:
                    assert "pip install 'tenfold[" + extra in str(error), error
                else:
                    raise SystemExit(module)
            import tenfold.run
            print("ok")"""
        self.assertEqual(support.python(code), "ok\n")


if __name__ == "__main__":
    unittest.main()
