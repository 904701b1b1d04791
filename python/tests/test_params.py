# SPDX-License-Identifier: MIT
"""tenfold.params, against gpt.rs' vectors of ids and arrays of our own."""
import gc
import io
import json
import os
import struct
import sys
import threading
import time
import unittest
import weakref

import support
from support import numpy as np

import tenfold
from tenfold import params
from tenfold.params import Params

FILES = os.path.join(support.ROOT, "tests", "formats", "gptrs-checkpoint")


class Ids(support.Case):
    def test_vectors(self):
        """Ids and keys that gpt.rs computes."""
        with open(os.path.join(FILES, "param_id_vectors.json"), encoding="utf-8") as f:
            vectors = json.load(f)["vectors"]
        self.assertGreater(len(vectors), 5)
        for vector in vectors:
            name = vector["name"]
            if name.endswith(" * %d" % vector["name_len"]):
                name = name[1] * vector["name_len"]
            self.assertEqual(len(name), vector["name_len"])
            id = params.param_id(name)
            self.assertEqual(id, int(vector["u128_dec"]))
            for space, stored in vector["param_key_stored_bytes_hex"].items():
                self.assertEqual(params.param_key(int(space), id), int.from_bytes(bytes.fromhex(stored), "little"))

    def test_namespaces(self):
        a = params.next_namespace()
        self.assertEqual(params.next_namespace(), a + 1)
        for bad in (-1, 1 << 128):
            with self.assertRaises(OverflowError):
                params.param_key(bad, 1)
        for bad in (None, "1", 1.5):
            with self.assertRaises((TypeError, AttributeError)):
                params.param_key(bad, 1)
        with self.assertRaises(TypeError):
            params.param_id(b"a")
        with self.assertRaises(ValueError):
            params.param_id("ä")

    def test_paths(self):
        self.assertEqual(params.join_path(["blocks", "0", "w"]), "blocks.0.w")
        params.check_path("blocks.0.w")
        for bad in ([], [""], ["a", ""], ["a.b"], ["ä"]):
            with self.assertRaises(ValueError, msg=bad):
                params.join_path(bad)
        for bad in ("", ".", "a.", "a..b", "ä"):
            with self.assertRaises(ValueError, msg=bad):
                params.check_path(bad)
        with self.assertRaises(TypeError):
            params.join_path([1])


@unittest.skipIf(np is None, "needs numpy")
class Case(support.Case):
    def setUp(self):
        super().setUp()
        rng = np.random.default_rng(3)
        self.arrays = {f"blocks.{i}.w": rng.standard_normal((8, 16)).astype("f4") for i in range(6)}  # 512 bytes
        self.arrays["small"] = np.arange(4, dtype="i8")
        self.arrays["turned"] = np.asfortranarray(np.arange(12.0).reshape(3, 4))
        self.file = self.path("m.safetensors")
        tenfold.save(self.file, self.arrays)

    def open(self, **how):
        p = Params(self.file, **how)
        self.addCleanup(p.close)
        return p


class Loads(Case):
    def test_load(self):
        p = self.open(budget=1 << 20, namespace=7)
        for name, array in self.arrays.items():
            param = p[name]
            np.testing.assert_array_equal(param.numpy(), array)
            np.testing.assert_array_equal(np.asarray(param), array)
            np.testing.assert_array_equal(np.from_dlpack(param), array)
            np.testing.assert_array_equal(memoryview(param), array)
            self.assertEqual((param.name, param.shape, param.nbytes), (name, array.shape, array.nbytes))
            self.assertEqual(param.tobytes(), array.tobytes())
            self.assertEqual(param.tolist(), array.tolist())
            self.assertEqual(param.base_id, params.param_id(name))
            self.assertEqual(param.key, params.param_key(7, param.base_id))
            for again in (p.load(name), p.load(param.base_id), p.load_id(param.base_id), p[param.base_id]):
                self.assertEqual(again.name, name)
                self.assertEqual(again.numpy().ctypes.data, param.numpy().ctypes.data, "one memory")
        self.assertEqual((len(p), sorted(p), "small" in p, "no" in p), (8, sorted(self.arrays), True, False))
        for bad in ("no", 5):
            with self.assertRaises(KeyError):
                p[bad]
        for bad in (None, b"small", 1.5):
            with self.assertRaises((TypeError, AttributeError)):
                p[bad]
        with self.assertRaises(OverflowError):
            p[1 << 128]
        stats = p.stats
        self.assertEqual((stats.misses, stats.hits, stats.cached, stats.in_use), (8, 32, 8, 1))
        self.assertEqual(stats.loaded_bytes, sum(a.nbytes for a in self.arrays.values()))

    def test_read_only(self):
        p = self.open()
        param = p["small"]
        for view in (param.numpy(), np.asarray(param), np.from_dlpack(param), memoryview(param)):
            with self.assertRaises((ValueError, TypeError)):
                view[0] = 1
        with self.assertRaises(ValueError):
            np.frombuffer(param, "u1").setflags(write=True)
        with self.assertRaises((BufferError, TypeError)):
            io.BytesIO(b"x" * 32).readinto(param)
        copy = np.from_dlpack(param, copy=True) if np.__version__ >= "2.1" else param.numpy().copy()
        copy[0] = 9
        self.assertEqual(param.tolist(), [0, 1, 2, 3])
        self.assertEqual(np.array(param, "f4").dtype, np.float32)

    def test_lifetimes(self):
        """Each view keeps the parameter in use, even without a budget, Params or a File."""
        p = self.open()
        makers = (lambda q: q.numpy(), memoryview, np.from_dlpack, lambda q: q.array, lambda q: q,
                  lambda q: q.numpy()[1:])
        for make in makers:
            kept = make(p["blocks.1.w"])
            gc.collect()
            self.assertEqual(p.stats.in_use, 1)
            del kept
            self.assertEqual(p.stats.in_use, 0)
        with p["small"] as param:
            view = param.numpy()
        with self.assertRaisesRegex(ValueError, "released"):
            param.numpy()
        with self.assertRaises(ValueError):
            memoryview(param)
        self.assertEqual(repr(param), "<tenfold.Param 'small': released>")
        param.release()
        self.assertEqual(p.stats.in_use, 1)
        views = [make(p["blocks.1.w"]) for make in makers]
        capsule = p["blocks.1.w"].__dlpack__(max_version=(1, 0))
        p.close()
        del p
        gc.collect()
        for view_, array in zip(views[:3], (self.arrays["blocks.1.w"],) * 3):
            np.testing.assert_array_equal(view_, array)
        self.assertEqual(view.tolist(), [0, 1, 2, 3])
        thread = threading.Thread(target=lambda capsules: capsules.clear(), args=([capsule],))
        del capsule
        thread.start()
        thread.join()

    def test_dlpack(self):
        param = self.open()["small"]
        self.assertEqual(param.__dlpack_device__(), (1, 0))
        with self.assertRaises(BufferError):
            param.__dlpack__(copy=False)  # the unversioned form cannot say that it is read-only
        capsule = param.__dlpack__()
        del capsule
        if support.torch is not None:
            self.assertEqual(support.torch.from_dlpack(param).tolist(), [0, 1, 2, 3])

    def test_closed(self):
        p = self.open()
        p.close()
        p.close()
        for call in (lambda: p["small"], lambda: p.stats, p.trim, lambda: p.prefetch("b"), p.ahead,
                     lambda: p.derived("small", "k", lambda w: b""), lambda: p.find_derived(1, "k"),
                     lambda: p.namespace):
            with self.assertRaisesRegex(tenfold.InvalidError, "closed"):
                call()
        self.assertTrue(p.closed)
        self.assertEqual(repr(p), "<tenfold.Params: closed>")
        f = tenfold.open(self.file)
        p = Params(f)
        param = p["small"]
        f.close()
        with self.assertRaisesRegex(tenfold.InvalidError, "closed"):
            p["small"]
        self.assertEqual(param.tolist(), [0, 1, 2, 3])

    def test_sources(self):
        with open(self.file, "rb") as f:
            data = f.read()
        for source in (self.file, memoryview(data), io.BytesIO(data), os.fsencode(self.file),
                       tenfold.open(self.file)):
            with Params(source, budget=4096) as p:
                p.ahead()
                views = [p[name].numpy() for name in self.arrays]
                capsules = [np.from_dlpack(p[name]) for name in self.arrays]
            del p
            gc.collect()
            for view, capsule, array in zip(views, capsules, self.arrays.values()):
                np.testing.assert_array_equal(view, array)
                np.testing.assert_array_equal(capsule, array)
        with self.assertRaises(FileNotFoundError):
            Params(self.path("none"))

    def test_other_layouts(self):
        tenfold.save(self.path("w.zt"), {"words": ["a", "b"], "x": np.ones(2)})
        with Params(self.path("w.zt")) as p:
            with self.assertRaises(NotImplementedError):
                p["words"]
            self.assertEqual(p["x"].tolist(), [1, 1])


class Budgets(Case):
    def test_budget(self):
        p = self.open(budget=1100, small_bytes=32)
        names = [f"blocks.{i}.w" for i in range(6)]
        for name in names:
            p[name]
        p["small"]
        stats = p.stats
        self.assertEqual((stats.budget, stats.evictions, stats.cached_bytes), (1100, 4, 1056))
        self.assertEqual(stats.pinned_bytes, 32)
        p[names[5]]
        self.assertEqual((p.stats.hits, p.stats.misses), (1, 7))
        p.trim()
        self.assertEqual((p.stats.cached, p.stats.cached_bytes), (0, 0))

    def test_other_budgets(self):
        whole = sum(a.nbytes for a in self.arrays.values())
        self.assertEqual(self.open(budget_percent=0.5).stats.budget, whole // 2)
        self.assertEqual(self.open(budget_percent=1.0, budget_cap=100).stats.budget, 100)
        self.assertIsNone(self.open().stats.budget)
        for how in ({"budget": 0}, {"budget_percent": 0.0}, {"budget_cap": 0, "budget": 100}):
            p = self.open(**how)
            p["small"]
            self.assertEqual((p.stats.budget, p.stats.cached), (0, 0))
        for bad in ({"budget_percent": 1.5}, {"budget_percent": -0.5}, {"budget_percent": float("nan")}):
            with self.assertRaises(ValueError):
                self.open(**bad)
        for bad in ({"budget": -1}, {"budget": 1 << 64}, {"budget_percent": "x"}, {"namespace": 1 << 128},
                    {"namespace": "x"}, {"prefetch_prefix": 3}, {"budget": "x"}):
            with self.assertRaises((TypeError, OverflowError, AttributeError)):
                self.open(**bad)

    def test_namespaces(self):
        a, b = self.open(), self.open()
        self.assertNotEqual(a.namespace, b.namespace)
        self.assertNotEqual(a["small"].key, b["small"].key)
        c = self.open(namespace=(1 << 128) - 1)
        self.assertEqual(c.namespace, (1 << 128) - 1)
        self.assertEqual(self.open(namespace=0)["small"].key, params.param_key(0, params.param_id("small")))

    def test_prefetch(self):
        p = self.open(budget=1 << 20, prefetch_layers=2)
        self.assertEqual((p.stats.cached, p.stats.pinned_bytes), (2, 1024))
        p.prefetch("small")
        self.assertEqual(p.stats.pinned_bytes, 1056)
        self.assertEqual(self.open(budget=1 << 20, prefetch_prefix="blocks.3").stats.cached, 1)

    def test_ahead(self):
        p = self.open(budget=1 << 20)
        names = list(self.arrays)
        p.ahead(names)
        for name in names:
            np.testing.assert_array_equal(p[name].numpy(), self.arrays[name])
        p.ahead()
        p.trim()
        with self.assertRaises(tenfold.NotFoundError):
            p.ahead(["small", "no"])
        for bad in ("small", [1], 5):
            with self.assertRaises(TypeError):
                p.ahead(bad)

    def test_config(self):
        def checkpoint(streaming):
            runtime = {"weight_streaming": streaming} if streaming is not None else {}
            config = json.dumps({"kind": "gpt", "config": {}, "runtime": runtime}).encode()
            return self.write("c.bin", b"GPTRSCHK" + struct.pack("<II", 2, len(config)) + config +
                              struct.pack("<II", 4, 0))
        how = params.config(checkpoint({"enabled": True, "device_budget_bytes": 1000, "prefetch_layers": 2,
                                        "small_param_persist_threshold": 64}))
        self.assertEqual(how, {"budget": 1000, "prefetch_layers": 2, "small_bytes": 64})
        self.assertEqual(params.config(checkpoint({"enabled": True, "device_budget_bytes": 0})), {"budget": 0})
        self.assertEqual(params.config(checkpoint({"enabled": True, "cache_budget_cap_bytes": 5})),
                         {"budget_cap": 5})
        self.assertEqual(params.config(checkpoint(None)), {"budget": (1 << 64) - 1})
        with Params(self.path("c.bin"), **params.config(checkpoint({"enabled": True, "device_budget_bytes": 7}))) as p:
            self.assertEqual(p.stats.budget, 7)
        with self.assertRaises(tenfold.Error):
            params.config(checkpoint({"enabled": True, "unknown": 1}))
        self.assertEqual(params.config(os.path.join(FILES, "valid", "runtime_streaming.bin")),
                         {"budget": 2147483648, "budget_percent": 0.5, "budget_cap": (1 << 64) - 1,
                          "small_bytes": 65536, "prefetch_layers": 2})


class Derived(Case):
    def test_made_once(self):
        p = self.open(budget=1 << 20)
        made = []

        def turn(w):
            made.append(w.name)
            self.assertEqual(w.shape, (8, 16))
            return np.ascontiguousarray(w.numpy().T)
        form = p.derived("blocks.0.w", "turned", turn)
        np.testing.assert_array_equal(form.value, self.arrays["blocks.0.w"].T)
        self.assertEqual((form.kind, form.nbytes, form.base_id, form.key),
                         ("turned", 512, params.param_id("blocks.0.w"), p["blocks.0.w"].key))
        value = form.value
        for again in (p.derived("blocks.0.w", "turned", turn), p.derived(form.base_id, "turned", turn),
                      p.find_derived(form.key, "turned")):
            self.assertIs(again.value, value)
        self.assertEqual(made, ["blocks.0.w"])
        self.assertIsNone(p.find_derived(form.key, "other"))
        self.assertIsNot(p.derived("blocks.0.w", "other", turn).value, value)
        stats = p.stats
        self.assertEqual((stats.made, stats.derived_hits, stats.derived, stats.derived_bytes,
                          stats.derived_in_use), (2, 3, 2, 1024, 1))
        del again
        with form:
            pass
        with self.assertRaisesRegex(ValueError, "released"):
            form.value
        self.assertEqual(p.stats.derived_in_use, 0)

    def test_sizes(self):
        p = self.open(budget=1000)
        self.assertEqual(p.derived("small", "bytes", lambda w: w.tobytes()).nbytes, 32)
        self.assertEqual(p.derived("small", "own", lambda w: {"x": 1}, nbytes=700).nbytes, 700)
        self.assertEqual(p.derived("small", "own2", lambda w: None, nbytes=0).value, None)
        with self.assertRaisesRegex(TypeError, "nbytes="):
            p.derived("small", "dict", lambda w: {})
        for bad in (-1, "x", 1 << 65):
            with self.assertRaises((TypeError, OverflowError, ValueError)):
                p.derived("small", "bad", lambda w: 1, nbytes=bad)
        with self.assertRaises(TypeError):
            p.derived("small", "none", None)
        with self.assertRaises(TypeError):
            p.derived("small", None, lambda w: b"")
        self.assertEqual(p.stats.derived_in_use, 0)

    def test_evicted(self):
        class Big:
            nbytes = 600
        p = self.open(budget=1000)
        first = p.derived("blocks.0.w", "big", lambda w: Big())
        value = weakref.ref(first.value)
        del first
        self.assertIsNotNone(value())
        second = p.derived("blocks.1.w", "big", lambda w: Big())
        self.assertIsNone(value(), "evicted, and released")
        kept = weakref.ref(second.value)
        p.derived("blocks.2.w", "big", lambda w: Big())
        self.assertIsNotNone(kept(), "in use")
        del second
        self.assertIsNone(kept())
        p.trim()
        self.assertEqual(p.stats.derived, 0)
        last = weakref.ref(p.derived("blocks.2.w", "big", lambda w: Big()).value)
        p.close()
        self.assertIsNone(last())

    def test_after_close(self):
        class Big:
            nbytes = 6
        p = self.open(budget=1000)
        form = p.derived("small", "k", lambda w: Big())
        value = weakref.ref(form.value)
        p.close()
        del p
        gc.collect()
        self.assertIs(form.value, value())
        del form
        self.assertIsNone(value())

    def test_errors(self):
        p = self.open(budget=1 << 20)

        class Own(Exception):
            pass

        def fail(w):
            raise Own("no ink", w)
        with self.assertRaises(Own) as caught:
            p.derived("small", "k", fail)
        self.assertEqual(caught.exception.args[0], "no ink")
        with self.assertRaisesRegex(ValueError, "released"):
            caught.exception.args[1].numpy()
        self.assertEqual(p.derived("small", "k", lambda w: b"x").value, b"x")
        with self.assertRaises(KeyError):
            p.derived("no", "k", fail)
        with self.assertRaises(SystemExit):
            p.derived("small", "exit", lambda w: sys.exit(1))

        def own(w):
            return p.derived("small", "self", own).value
        with self.assertRaises(tenfold.InvalidError):
            p.derived("small", "self", own)

        def other(w):
            return p.derived("small", "self2", lambda w: p.derived("small", "other", other).value).value
        with self.assertRaises(tenfold.InvalidError):
            p.derived("small", "other", other)
        self.assertEqual(p.derived("small", "nested", lambda w: p.derived(
            "blocks.0.w", "inner", lambda v: v.tobytes()).value[:4] + w.tobytes()[:4]).nbytes, 8)
        kept = []
        self.assertEqual(p.derived("small", "kept", lambda w: kept.append(w.numpy()) or b"").nbytes, 0)
        self.assertEqual(kept[0].tolist(), [0, 1, 2, 3])

    def test_threads(self):
        """Threads that request a form at the same time wait for one that makes it; the GIL is not
        held meanwhile."""
        p = self.open(budget=1 << 20)
        made, got = [], []
        start = threading.Barrier(8)

        def make(w):
            made.append(threading.get_ident())
            time.sleep(0.05)  # gives the GIL to those that wait
            return w.tobytes()

        def work():
            start.wait()
            for i in range(6):
                got.append(p.derived(f"blocks.{i}.w", "k", make).value)
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((len(made), len(got), len(set(map(id, got)))), (6, 48, 6))

        fails = []

        def fail_once(w):
            if not fails:
                fails.append(1)
                time.sleep(0.05)
                raise RuntimeError("once")
            return b"x"
        errors = []
        got = []

        def try_it():
            start.wait()
            try:
                got.append(p.derived("small", "k", fail_once).value)
            except RuntimeError as error:
                errors.append(error)
        threads = [threading.Thread(target=try_it) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((len(errors), got), (1, [b"x"] * 7))

    def test_resolver(self):
        memo = {}
        p = self.open(namespace=1, resolver=memo)
        other = self.open(namespace=1, resolver=memo)
        value = p.derived("small", "k", lambda w: w.numpy() * 2).value
        self.assertEqual(value.tolist(), [0, 2, 4, 6])
        self.assertEqual(list(memo), [(params.param_key(1, params.param_id("small")), "k")])
        self.assertIs(memo[p["small"].key, "k"], value)
        self.assertIs(other.derived("small", "k", lambda w: 1 / 0).value, value)
        self.assertIs(other.find_derived(p["small"].key, "k").value, value)
        refs = sys.getrefcount(value)
        for _ in range(100):
            p.derived("small", "k", lambda w: 1 / 0)
        self.assertEqual(sys.getrefcount(value), refs)
        memo.clear()
        gc.collect()
        self.assertEqual(p.derived("small", "k", lambda w: b"new").value, b"new")

        class Full(dict):
            def __setitem__(self, key, value):
                raise OSError("full")
        with self.assertRaisesRegex(tenfold.Error, "OSError: full"):
            self.open(resolver=Full()).derived("small", "k", lambda w: b"x")


class Together(Case):
    def test_threads(self):
        p = self.open(budget=1300)
        bad = []

        def work(seed):
            rng = np.random.default_rng(seed)
            names = list(self.arrays)
            for i in range(300):
                name = names[rng.integers(len(names))]
                param = p[name]
                if not np.array_equal(param.numpy(), self.arrays[name]):
                    bad.append(name)
                if i % 3 == 0:
                    form = p.derived(name, "twice", lambda w: w.numpy() * 2)
                    if not np.array_equal(form.value, self.arrays[name] * 2):
                        bad.append(name)
                if i % 50 == 0:
                    p.trim()
                    p.ahead(names[:3])
        threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(bad, [])
        gc.collect()
        self.assertEqual((p.stats.in_use, p.stats.derived_in_use), (0, 0))
        self.assertLessEqual(p.stats.cached_bytes, 1300)

    def test_close_while_in_use(self):
        for _ in range(20):
            p = Params(self.file, budget=1300)
            seen = []

            def work():
                try:
                    while True:
                        p["blocks.0.w"].numpy()
                        p.derived("blocks.1.w", "k", lambda w: w.tobytes())
                except tenfold.InvalidError as error:
                    seen.append(str(error))
            threads = [threading.Thread(target=work) for _ in range(3)]
            for thread in threads:
                thread.start()
            time.sleep(0.01)
            p.close()
            for thread in threads:
                thread.join()
            self.assertEqual(len(seen), 3)

    def test_fork(self):
        p = self.open(budget=1300)
        param, form = p["small"], p.derived("small", "k", lambda w: b"x")
        p.ahead()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                try:
                    p["small"]
                except tenfold.InvalidError:
                    with Params(self.file) as own:
                        if own["small"].tolist() == param.tolist() == [0, 1, 2, 3] and form.value == b"x":
                            code = 0
                    p.close()
                    del p, param, form
                    gc.collect()
            finally:
                os._exit(code)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(p["small"].tolist(), [0, 1, 2, 3])

    def test_end_of_the_interpreter(self):
        """Parameters, forms, capsules and a thread that reads ahead may be left."""
        out = support.python(f"""
import numpy as np
from tenfold.params import Params
p = Params({self.file!r}, budget=5000)
form = p.derived("small", "k", lambda w: w.numpy())
view, capsule = np.from_dlpack(p["small"]), p["small"].__dlpack__(max_version=(1, 0))
p.ahead()
print(view.sum())
""")
        self.assertEqual(out, "6\n")

    def test_without_numpy(self):
        out = support.python(f"""
import sys
sys.modules["numpy"] = None
from tenfold.params import Params
with Params({self.file!r}) as p, p["small"] as w:
    print(w.tolist(), memoryview(w).format, w.dtype, p.derived("small", "k", lambda w: w.tobytes()).nbytes)
""")
        self.assertEqual(out, "[0, 1, 2, 3] q i64 32\n")

    def test_no_leaks(self):
        def work(n):
            for i in range(n):
                p[f"blocks.{i % 6}.w"].numpy()
                np.from_dlpack(p["small"])
                p.derived(f"blocks.{i % 6}.w", "k", lambda w: w.tobytes())
                p.find_derived(5, "k")
                p.derived("small", str(i % 7), lambda w: w.tobytes())
                try:
                    p["no"]
                except KeyError:
                    pass
                try:
                    p.derived("small", "bad", lambda w: 1 / 0)
                except ZeroDivisionError:
                    pass
                if i % 10 == 0:
                    p.stats
                    p.ahead(["small"])
                    Params(f, budget=100).derived("small", "k", lambda w: b"")
        with tenfold.open(self.file) as f, Params(f, budget=2000) as p:
            work(1000)
            gc.collect()
            before, refs = support.resident(), sys.getrefcount(None)
            work(1000 if support.SANITIZED else 10000)
            gc.collect()
            if sys.version_info < (3, 12):
                self.assertLess(abs(sys.getrefcount(None) - refs), 200)
            if not support.SANITIZED:
                self.assertLess(support.resident() - before, 1 << 20)


if __name__ == "__main__":
    unittest.main()
