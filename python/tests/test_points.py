# SPDX-License-Identifier: MIT
"""tenfold.points, against the fixtures of VS and an independent reader of such files."""
import errno
import gc
import json
import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
import time
import unittest
import zlib

import support
from support import numpy as np

import tenfold
from tenfold import points

FILES = os.path.join(support.ROOT, "tests", "formats", "vs")
CODES = {"u8": "B", "i8": "b", "u16": "H", "i16": "h", "u32": "I", "i32": "i", "u64": "Q", "i64": "q",
         "f16": "e", "f32": "f", "f64": "d"}
NUMBERS = {"bit": 0, "u8": 1, "i8": -1, "u16": 2, "i16": -2, "u32": 3, "i32": -3, "u64": 4, "i64": -4,
           "f16": 10, "f32": 11, "f64": 12}


def valid(name):
    return os.path.join(FILES, "valid", name + ".vsdb")


def block(kind, payload):
    return kind + struct.pack("<I", len(payload)) + payload


def space(dims, type, attributes=b"\x80"):
    return block(b"^", bytes([len(dims), *dims]) + struct.pack("b", NUMBERS[type]) + b"\0\0" +
                 bytes([len(attributes)]) + attributes)


def point(vector, app=b""):
    return block(b"P", b"\0" + bytes([len(app)]) + app + b"\0" + struct.pack("<I", len(vector)) + vector)


def blocks(data):
    """(offset, type, whole block) of each block."""
    at = 4
    assert data[:4] == b"VS\0\0"
    while data[at:at + 1] not in (b"$", b""):
        end = at + 5 + int.from_bytes(data[at + 1:at + 5], "little")
        yield at, data[at:at + 1], data[at:end]
        at = end


def ids_of(data):
    return [f"{at}:{zlib.crc32(whole):08x}" for at, kind, whole in blocks(data) if kind == b"P"]


def rows(vectors):
    """Lists of numbers, of an array or of a list of arrays."""
    if hasattr(vectors, "tolist"):
        if vectors.dtype == "f16":  # without numpy; memoryview supports it since Python 3.12
            return list(struct.unpack(f"<{len(vectors.raw) // 2}e", vectors.raw))
        return vectors.tolist()
    return [rows(v) if hasattr(v, "tolist") else v for v in vectors]


def flat(values):
    return [x for v in values for x in flat(v)] if isinstance(values, list) else [values]


def plain(found):
    return [(q.id, rows([q.vector]), q.app) for q in found]


class Given(support.Case):
    """The files that came with the description."""

    def test_all(self):
        with open(os.path.join(FILES, "given.json"), encoding="utf-8") as f:
            given = json.load(f)["good"]
        self.assertGreater(len(given), 10)
        for name, told in given.items():
            expected = told["expected"]
            if "needs_option" in expected:
                continue
            with self.subTest(name), points.open(os.path.join(FILES, "valid", name)) as p:
                s = p.space
                self.assertEqual(s is None, "dims" not in expected or expected["dims"] is None)
                if s is None:
                    self.assertEqual(list(p), [])
                    continue
                self.assertEqual(list(s.dims), expected["dims"])
                self.assertEqual(NUMBERS[s.dtype], expected["resolution"])
                self.assertEqual(s.attributes, expected["attributes"])
                got = list(p)
                self.assertEqual([q.app for q in got], [q["app"] for q in expected["points"]])
                for q, want in zip(got, expected["points"]):
                    self.assertEqual(flat(q.vector.tolist()), want["values_row_major"])
                with open(os.path.join(FILES, "valid", name), "rb") as f:
                    ids = ids_of(f.read())
                self.assertEqual([q.id for q in got], ids)
                page = p.page()
                self.assertEqual(page.ids, ids)
                self.assertEqual(page.vectors.shape, (len(ids), *s.dims))
                self.assertEqual([q.offset for q in got], [int(id.split(":")[0]) for id in ids])

    def test_msb(self):
        with self.assertRaises(tenfold.FormatError):
            points.open(os.path.join(FILES, "reject", "dim300_msb_first.vsdb")).page()
        with points.open(os.path.join(FILES, "reject", "dim300_msb_first.vsdb"), msb=True) as p:
            self.assertEqual(rows(p.page().vectors)[0], [float(i % 7) for i in range(300)])

    def test_types(self):
        """Files of every type, by struct."""
        for type, code in CODES.items():
            values = [0, 1, 2] if type[0] == "u" else [-1.5, 0, 3] if type[0] == "f" else [-2, 0, 1]
            raw = struct.pack("<3" + code, *values)
            path = self.write("t.vsdb", b"VS\0\0" + space([3], type) + point(raw, b"\x01") + b"$")
            with points.open(path, "r+") as p:
                one, = p
                self.assertEqual((rows(one.vector), one.app), (values, 1))
                self.assertEqual(p.space.dtype, type)
                id = p.add(values)
                self.assertEqual(rows(p.read(id).vector), values)
            self.assertEqual(self.bytes_of("t.vsdb"), b"VS\0\0" + space([3], type) + point(raw, b"\x01") +
                             point(raw) + b"$")

    def test_bits(self):
        bits = [1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1]
        path = self.write("b.vsdb", b"VS\0\0" + space([13], "bit") + point(b"\x01\x13") + b"$")
        with points.open(path, "r+") as p:
            one, = p
            self.assertEqual(one.vector.tolist(), bits)
            self.assertEqual(p.page().vectors.tolist(), [bits])
            p.add(bits)
            p.add([bool(b) for b in bits])
            if np is not None:
                p.append(np.array([bits, bits], "u1"))
                p.append(np.array([bits], "?"))
                with self.assertRaises(TypeError):
                    p.append(np.full((1, 13), 2))
            with self.assertRaises(ValueError):
                p.add([2] * 13)
        data = self.bytes_of("b.vsdb")
        self.assertEqual({whole for _, kind, whole in blocks(data) if kind == b"P"}, {point(b"\x01\x13")})

    def test_rejected(self):
        """Every damaged file gives an error of Tenfold, never another one."""
        folder = os.path.join(FILES, "reject")
        for name in os.listdir(folder):
            with self.subTest(name):
                try:
                    with points.open(os.path.join(folder, name)) as p:
                        p.page()
                        self.assertFalse(p.verify(), name)
                except tenfold.Error as error:
                    self.assertIn(error.status, ("EFORMAT", "ETRUNCATED", "EUNSUPPORTED", "ELIMIT", "EINVAL"))


class Writing(support.Case):
    def setUp(self):
        super().setUp()
        self.file = self.path("s.vsdb")

    def create(self, dims=3, resolution="f32", **how):
        p = points.create(self.file, dims, resolution, **how)
        self.addCleanup(p.close)
        return p

    def test_bytes(self):
        with self.create(attributes={"a": 1}) as p:
            ids = [p.add([1, 2, 3], {"w": "x"}), *p.append([[0.5, -1, float("inf")]], [b"\0\xff"])]
        data = self.bytes_of("s.vsdb")
        self.assertEqual(data, b"VS\0\0" + space([3], "f32", b"\x81\xa1a\x01") +
                         point(struct.pack("<3f", 1, 2, 3), b"\x81\xa1w\xa1x") +
                         point(struct.pack("<3f", .5, -1, float("inf")), b"\xc4\x02\0\xff") + b"$")
        self.assertEqual(ids, ids_of(data))

    def test_apps(self):
        apps = [None, 0, -5, 1 << 63, True, 0.25, "Grüße", b"\0\1", [1, [2, "x"], None], {"k": {"v": [b"z"]}}, "", {}]
        with self.create() as p:
            p.append([[0, 0, 0]] * len(apps), apps)
            self.assertEqual([q.app for q in p], apps)
            self.assertEqual(p.page().apps, apps)
            for bad in ([object()], [{1: 2}], [1 << 64], [{"a": {1, 2}}]):
                with self.assertRaises((TypeError, OverflowError)):
                    p.append([[0, 0, 0]], bad)
            for bad in ([], [1, 2]):
                with self.assertRaises(ValueError):
                    p.append([[0, 0, 0]], bad)
            with self.assertRaises(TypeError):
                p.append([[0, 0, 0]], 5)
            self.assertEqual(len(p.page().ids), len(apps))

    @unittest.skipIf(np is None, "needs numpy")
    def test_arrays(self):
        with self.create((2, 3)) as p:
            rng = np.random.default_rng(1)
            whole = rng.standard_normal((50, 2, 3)).astype("f4")
            ids = p.append(whole)
            ids += p.append(whole[:, ::-1, ::-1])                   # any order of memory
            ids += p.append(np.asfortranarray(whole))
            ids += p.append(whole.astype(">f4"))
            ids += p.append(whole.reshape(50, 6))
            ids += p.append(list(whole))
            ids += p.append([whole[0], whole[1].tolist(), whole[2].ravel().tolist(), memoryview(whole[3])])
            ids += p.append(np.ones((1, 2, 3), "f2"))               # fits without a loss
            self.assertEqual(p.append(whole[:0]), [])
            self.assertEqual(p.append([]), [])
            page = p.page()
            self.assertEqual(page.ids, ids)
            np.testing.assert_array_equal(page.vectors, np.concatenate(
                [whole, whole[:, ::-1, ::-1], whole, whole, whole, whole, whole[:4], np.ones((1, 2, 3))]))
            for bad in (np.ones((1, 2, 3)), np.ones((1, 2, 3), "i4"), np.ones((1, 2, 3), "c8"),
                        np.full((1, 2, 3), None)):
                with self.assertRaises(TypeError, msg=bad.dtype):
                    p.append(bad)
            for bad in (whole[0], whole[:, 0], np.ones((), "f4"), np.ones((1, 3, 2), "f4")):
                with self.assertRaises(ValueError, msg=bad.shape):
                    p.append(bad)
            self.assertEqual(p.page().ids, ids)

    @unittest.skipIf(support.torch is None, "needs torch")
    def test_torch(self):
        with self.create() as p:
            p.append(support.torch.ones(2, 3, requires_grad=True))
            self.assertEqual(p.page().vectors.tolist(), [[1, 1, 1]] * 2)

    def test_lists(self):
        """Numbers must be in the range of the type; then the batch is refused as a whole."""
        with self.create(2, "u8") as p:
            p.append([[0, 255], (1, 2), range(2)])
            for bad in ([1], [1, 2, 3], [1, 256], [1, -1]):
                with self.assertRaises(tenfold.InvalidError, msg=repr(bad)):
                    p.append([[1, 2], bad])
            for bad in (["a", 1], [None, 1], "ab", b"ab", 5, [1j, 1], [1, 0.5]):
                with self.assertRaises((TypeError, ValueError), msg=repr(bad)):
                    p.append([[1, 2], bad])
            self.assertEqual(rows(p.page().vectors), [[0, 255], [1, 2], [0, 1]])
        with points.create(self.path("i"), 1, "i64") as p:
            p.append([[(1 << 63) - 1], [-(1 << 63)]])
            self.assertEqual(rows(p.page().vectors), [[(1 << 63) - 1], [-(1 << 63)]])
        with points.create(self.path("f"), 3, "f64") as p:
            p.add([float("nan"), float("-inf"), 1e300])
            self.assertEqual(repr(p.page().vectors.tolist()), "[[nan, -inf, 1e+300]]")
            with self.assertRaises(TypeError):
                p.add([1, 2, "3"])
        for type, big in (("f16", 65520), ("f32", 1e39), ("i8", 128), ("bit", 2)):
            with points.create(self.path(type), 1, type) as p:
                with self.assertRaises(tenfold.InvalidError, msg=type):
                    p.add([big])
                if np is not None:
                    p.append([[np.float32(1)] if type[0] == "f" else [np.int8(1)]])

    def test_scalars(self):
        with self.create((), "f32") as p:
            p.append([1, 2.5])
            p.add(7)
            if np is not None:
                p.append(np.array([8], "f4"))
            self.assertEqual(flat(rows([q.vector for q in p]))[:3], [1, 2.5, 7])
            self.assertEqual(p.space.dims, ())

    def test_strings_and_json(self):
        with self.create(2, "string") as p:
            id = p.add(["ä", ""], {"n": 1})
            p.append([["a", "b"], ("c", "d")])
            self.assertEqual([q.vector for q in p], [["ä", ""], ["a", "b"], ["c", "d"]])
            self.assertEqual(p.read(id).app, {"n": 1})
            self.assertEqual(p.page().vectors[0], ["ä", ""])
            for bad in ([1, 2], ["a"], "ab", 3):
                with self.assertRaises((tenfold.Error, TypeError), msg=repr(bad)):
                    p.add(bad)
            self.assertIsNone(p.space.dtype)
            self.assertEqual(p.space.resolution.lower(), "string")
        with points.create(self.path("j"), 2, "json") as p:
            p.add([{"a": [1, None]}, 2.5])
            self.assertEqual([q.vector for q in p], [[{"a": [1, None]}, 2.5]])

    def test_create(self):
        with self.create():
            pass
        with self.assertRaises(FileExistsError):
            points.create(self.file, 3)
        for bad in ({"dims": 3, "resolution": "f99"}, {"dims": 0}, {"dims": (2, 0)}, {"dims": 3, "pack": "zip"},
                    {"dims": -1}, {"dims": 3, "timeout": -1}, {"dims": 3, "timeout": float("nan")}):
            with self.assertRaises((ValueError, OverflowError), msg=repr(bad)):
                points.create(self.path("bad"), **bad)
            self.assertFalse(os.path.exists(self.path("bad")))
        for bad in ({"dims": None}, {"dims": ("a",)}, {"dims": 3, "attributes": {1: 2}},
                    {"dims": 3, "timeout": "x"}):
            with self.assertRaises(TypeError, msg=repr(bad)):
                points.create(self.path("bad"), **bad)
        with self.assertRaises(ValueError):
            points.open(self.file, "w")
        with self.assertRaises(FileNotFoundError):
            points.open(self.path("none"))

    def test_packs(self):
        vector = [0.0] * 500
        sizes = {}
        for pack in ("raw", "gzip", "snappy"):
            path = self.path(pack)
            with points.create(path, 500, pack=pack) as p:
                p.add(vector)
                self.assertEqual(p.space.pack, int(pack == "snappy"))
                self.assertEqual(p.page().vectors.tolist(), [vector])
            sizes[pack] = os.path.getsize(path)
        self.assertLess(sizes["gzip"], sizes["raw"])
        self.assertLess(sizes["snappy"], sizes["raw"])


class Changing(support.Case):
    def setUp(self):
        super().setUp()
        self.file = self.path("s.vsdb")
        self.p = points.create(self.file, 1, "u8", attributes=[1])
        self.addCleanup(self.p.close)
        self.ids = self.p.append([[i] for i in range(6)], [i % 2 for i in range(6)])

    def values(self):
        return [int(q.vector.tolist()[0]) for q in self.p]

    def test_delete(self):
        self.p.delete(self.ids[2])
        self.p.delete(self.ids[4:])
        self.assertEqual(self.values(), [0, 1, 3])
        for bad in ([self.ids[0], self.ids[2]], "16:00000000", ["9:deadbeef"]):
            with self.assertRaises(tenfold.NotFoundError):
                self.p.delete(bad)
        for bad in ("x", "16", "", "16:0", "1:000000000", "-1:00000000"):
            with self.assertRaises(ValueError, msg=bad):
                self.p.delete(bad)
        for bad in (None, 5.5, [None], 16, b"16:00000000"):
            with self.assertRaises(TypeError, msg=repr(bad)):
                self.p.delete(bad)
        self.assertEqual(self.values(), [0, 1, 3])
        self.p.delete(int(self.ids[0].split(":")[0]), unchecked=True)
        self.p.delete([int(self.ids[1].split(":")[0]), self.ids[3]], unchecked=True)
        self.assertEqual(self.values(), [])

    def test_shred(self):
        secret = self.p.add([7], "secret words")
        self.assertIn(b"secret words", self.bytes_of("s.vsdb"))
        self.p.delete(secret)
        self.assertIn(b"secret words", self.bytes_of("s.vsdb"))
        other = self.p.add([7], "other words")
        self.p.delete([other], shred=True)
        self.assertNotIn(b"other words", self.bytes_of("s.vsdb"))

    def test_foreign_compaction(self):
        """An id from before another program compacted the file deletes no other point."""
        keep = self.ids[1]
        with points.open(self.file, "r+") as other:
            other.delete(self.ids[0])
            moves = other.compact()
        for handle in (self.p, points.open(self.file, "r+")):
            with self.assertRaises(tenfold.NotFoundError):
                handle.delete(keep)
            with self.assertRaises(KeyError):
                handle.read(keep)
        self.assertEqual(self.values(), [1, 2, 3, 4, 5])
        self.p.delete(moves[keep])
        self.assertEqual(self.values(), [2, 3, 4, 5])

    def test_compact(self):
        before = os.path.getsize(self.file)
        self.p.delete(self.ids[:2])
        moves = self.p.compact()
        self.assertLess(os.path.getsize(self.file), before)
        ids = [q.id for q in self.p]
        self.assertEqual([moves[id] for id in self.ids[2:]], ids)
        self.assertEqual(moves, {int(a.split(":")[0]): int(b.split(":")[0]) for a, b in zip(self.ids[2:], ids)})
        for bad in (self.ids[0], 5, None, "x", "1:", ("a",)):
            with self.assertRaises(KeyError):
                moves[bad]
        self.assertEqual(pickle.loads(pickle.dumps(moves)), moves)

    def test_delete_app(self):
        self.assertEqual(self.p.delete_app(1.0), 3)
        self.assertEqual(self.values(), [0, 2, 4])
        with self.assertRaises(tenfold.NotFoundError):
            self.p.delete_app({"no": 1})
        self.p.add([9])
        self.assertEqual(self.p.delete_app(None), 1)
        with self.assertRaises(TypeError):
            self.p.delete_app(object())

    def test_attributes(self):
        for tree in ({"k": {"n": [300, -3, "x", 0.5, None, True]}}, "text", 5, {}):
            self.p.set_attributes(tree)
            self.assertEqual(self.p.space.attributes, tree)
            self.assertEqual(tenfold.open(self.file, warn=False).attrs["vs.attributes"], tree)
        self.p.set_attributes(None)
        self.assertIsNone(self.p.space.attributes)
        self.assertEqual(self.values(), list(range(6)))
        with self.assertRaises(TypeError):
            self.p.set_attributes(object())

    def test_read_only(self):
        with points.open(self.file) as p:
            for change in (lambda: p.add([1]), lambda: p.delete(self.ids[0]), p.compact,
                           lambda: p.set_attributes(1), lambda: p.delete_app(1)):
                with self.assertRaisesRegex(ValueError, "read-only"):
                    change()

    def test_after(self):
        self.assertEqual([q.id for q in self.p.after(self.ids[3])], self.ids[4:])
        self.assertEqual(list(self.p.after(self.ids[5])), [])
        self.p.delete(self.ids[5])
        new = self.p.add([9])
        self.assertEqual([q.id for q in self.p.after(self.ids[5])], [new])
        self.assertEqual(self.p.page(self.ids[0], 2).ids, self.ids[1:3])
        self.assertEqual(self.p.page(limit=1).ids, self.ids[:1])
        with self.assertRaises(ValueError):
            self.p.page(limit=0)
        with self.assertRaises(tenfold.NotFoundError):
            list(self.p.after("8:00000000"))

    def test_iteration_in_pages(self):
        """No lock is held between pages: others may append, and are seen."""
        more = self.p.append([[1]] * 10000)
        seen = iter(self.p)
        first = next(seen)
        self.assertEqual(first.id, self.ids[0])
        with points.open(self.file, "r+", timeout=5) as other:
            last = other.add([2])
        self.assertEqual([q.id for q in seen], [*self.ids[1:], *more, last])
        seen = iter(self.p)
        next(seen)
        self.p.delete(self.ids[0])
        self.p.compact()
        with self.assertRaises(tenfold.NotFoundError):
            list(seen)

    def test_verify_and_salvage(self):
        report = self.p.verify()
        self.assertTrue(report)
        self.assertEqual((report.points, report.problems, report.file_bytes), (6, [], os.path.getsize(self.file)))
        saved = points.salvage(self.file)
        self.assertEqual((plain(saved.points), saved.report), (plain(self.p), report))
        data = bytearray(self.bytes_of("s.vsdb"))
        at = int(self.ids[4].split(":")[0])
        data[at + 1] = 200  # the length of the fifth point
        damaged = self.write("d.vsdb", data)
        with points.open(damaged) as p:
            self.assertFalse(p.verify())
            self.assertEqual(p.verify().problems[0].status, "ETRUNCATED")
            saved = p.salvage()
        self.assertEqual([q.id for q in saved.points], self.ids[:4])
        self.assertEqual([q.app for q in saved.points], [0, 1, 0, 1])
        self.assertEqual((saved.report.stopped_at, saved.report.points), (at, 4))
        problem, = saved.report.problems
        self.assertEqual((problem.status, problem.tensor), ("ETRUNCATED", None))
        again = points.salvage(damaged)
        self.assertEqual((plain(again.points), again.report), (plain(saved.points), saved.report))


class Together(support.Case):
    def setUp(self):
        super().setUp()
        self.file = self.path("s.vsdb")
        with points.create(self.file, 2, "i32") as p:
            self.id = p.add([1, 2])

    def lock(self, kind):
        """Another process that holds the lock of the file until it is killed."""
        code = ("import fcntl,struct,sys,time\nf=open(sys.argv[1],'r+b')\n"
                f"fcntl.lockf(f,fcntl.{kind},4,0)\nprint('ok',flush=True)\ntime.sleep(100)")
        child = subprocess.Popen([sys.executable, "-c", code, self.file], stdout=subprocess.PIPE)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        child.stdout.readline()
        return child

    def test_timeouts(self):
        with points.open(self.file, "r+", timeout=0) as p, points.open(self.file, lock=False) as free:
            child = self.lock("LOCK_EX")
            for call in (lambda: p.add([1, 2]), lambda: list(p), lambda: points.open(self.file, timeout=0.05)):
                with self.assertRaises(BlockingIOError) as caught:
                    call()
                self.assertIsInstance(caught.exception, tenfold.SystemIOError)
                self.assertEqual(caught.exception.errno, errno.EAGAIN)
            self.assertEqual(len(list(free)), 1)
            child.kill()
            child.wait()
            p.add([3, 4])
            self.assertEqual(len(list(p)), 2)

    def test_control_c(self):
        """KeyboardInterrupt ends the wait for a lock, also that of a thread that waits for the
        handle; the file is unchanged."""
        before = self.bytes_of("s.vsdb")
        for reader in (False, True):
            with points.open(self.file, "r+") as p:
                child = self.lock("LOCK_EX")
                threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
                with self.assertRaises(KeyboardInterrupt):
                    if reader:
                        list(p)
                    else:
                        p.add([5, 6])
                stuck = threading.Thread(target=lambda: self.assertEqual(len(p.page().ids), 1))
                stuck.start()  # waits for the lock of the file, inside the handle
                time.sleep(0.2)
                threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
                with self.assertRaises(KeyboardInterrupt):
                    p.read(self.id)  # waits for the handle
                child.kill()
                child.wait()
                stuck.join()
        self.assertEqual(self.bytes_of("s.vsdb"), before)

    def test_threads(self):
        """Threads share a handle; others have their own."""
        bad = []

        def work(p, own):
            try:
                for i in range(30):
                    p.append([[own, i]] * 3, [{"t": own}] * 3)
                    self.assertLessEqual(len(p.page(limit=5).ids), 5)
                    list(p.after(self.id))
            except BaseException as error:
                bad.append(error)
        with points.open(self.file, "r+", sync=False) as shared, points.open(self.file, "r+", sync=False) as other:
            threads = [threading.Thread(target=work, args=(p, i))
                       for i, p in enumerate((shared, shared, shared, other))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(bad, [])
            page = shared.page()
            self.assertEqual(len(page.ids), 4 * 90 + 1)
            self.assertEqual([a and a["t"] for a in page.apps], [None] + [v[0] for v in rows(page.vectors)[1:]])

    def test_close_while_in_use(self):
        p = points.open(self.file, "r+")
        child = self.lock("LOCK_EX")
        got = []
        reader = threading.Thread(target=lambda: got.append(p.page().ids))
        reader.start()
        time.sleep(0.1)
        closer = threading.Thread(target=p.close)
        closer.start()
        time.sleep(0.1)
        self.assertFalse(p.closed)
        child.kill()
        child.wait()
        reader.join()
        closer.join()
        self.assertEqual(got, [[self.id]])
        self.assertTrue(p.closed)

    def test_after_close(self):
        p = points.open(self.file, "r+")
        pages = iter(p)
        p.close()
        p.close()
        for call in (lambda: p.space, lambda: list(p), lambda: p.read(self.id), lambda: p.add([1, 2]),
                     lambda: p.delete(self.id), p.compact, p.verify, p.salvage, lambda: next(pages),
                     lambda: p.set_attributes(1), lambda: p.page(), lambda: p.delete_app(1)):
            with self.assertRaisesRegex(tenfold.InvalidError, "closed"):
                call()
        self.assertEqual((repr(p), p.path), ("<tenfold.Points: closed>", self.file))

    def test_vectors_outlive_the_handle(self):
        with points.open(self.file) as p:
            vector, page = p.read(self.id).vector, p.page()
        del p
        gc.collect()
        self.assertEqual((vector.tolist(), page.vectors.tolist()), ([1, 2], [[1, 2]]))

    def test_finalizer(self):
        """Python code that runs while a handle is in use by the same thread may not use it."""
        p = points.open(self.file, "r+")
        self.addCleanup(p.close)
        seen = []

        class Odd:
            def __index__(self):
                try:
                    p.add([0, 0])
                except tenfold.InvalidError as error:
                    seen.append(str(error))
                return 7
        self.assertEqual(p.read(p.add([1, 1], Odd())).app, 7)
        self.assertEqual(len(seen), 1)
        self.assertIn("in use by this thread", seen[0])

    def test_fork(self):
        p = points.open(self.file, "r+")
        self.addCleanup(p.close)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                try:
                    p.add([1, 2])
                except tenfold.InvalidError:
                    with points.open(self.file, "r+") as own:
                        own.add([3, 4])
                    p.close()
                    del p
                    gc.collect()
                    code = 0
            finally:
                os._exit(code)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual([q.vector.tolist() for q in p], [[1, 2], [3, 4]])

    def test_no_leaks(self):
        def work(n):
            for i in range(n):
                ids = p.append([[1, 2], [3, 4]], [{"a": [i, "x"]}, b"\0"])
                p.read(ids[0])
                p.page(self.id)
                p.space
                try:
                    p.append([[1, 2], [3, "x"]])
                except TypeError:
                    pass
                try:
                    p.append([[1, 2], [3, 1 << 40]])
                except tenfold.Error:
                    pass
                try:
                    p.delete(["16:00000000"])
                except tenfold.Error:
                    pass
                p.delete(ids)
                if i % 100 == 0:
                    p.compact()
                    p.verify()
                    p.salvage()
                    points.open(self.file).close()
        n = 1000 if support.SANITIZED else 10000
        with points.open(self.file, "r+", sync=False) as p:
            work(n // 10)
            gc.collect()
            before, refs = support.resident(), sys.getrefcount(None)
            work(n)
            gc.collect()
            if sys.version_info < (3, 12):
                self.assertLess(abs(sys.getrefcount(None) - refs), 200)
            if not support.SANITIZED:
                self.assertLess(support.resident() - before, 1 << 20)


class Plain(support.Case):
    """Without numpy."""

    def test_without_numpy(self):
        out = support.python("""
import sys
sys.modules["numpy"] = None
from array import array
from tenfold import points
with points.create(FILE, 2, "i32") as p:
    p.add([1, 2], "x")
    p.append([array("i", [3, 4]), (5, 6)])
    p.append(memoryview(array("i", [7, 8, 9, 10])).cast("B").cast("i", (2, 2)))
    for bad in (array("f", [1, 2]), array("i", [1])):
        try:
            p.append([bad])
        except (TypeError, ValueError) as error:
            print(type(error).__name__)
    print(p.page().vectors.tolist(), [q.vector.tolist() for q in p][:2], p.page().vectors.dtype)
with points.create(FILE + "b", 3, "bit") as p:
    p.append([[1, 0, 1]])
    print(p.page().vectors.tolist())
""".replace("FILE", repr(self.path("s.vsdb"))))
        self.assertEqual(out.split("\n"), [
            "TypeError", "ValueError",
            "[[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]] [[1, 2], [3, 4]] i32", "[[1, 0, 1]]", ""])


if __name__ == "__main__":
    unittest.main()
