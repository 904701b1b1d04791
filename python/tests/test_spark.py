# SPDX-License-Identifier: MIT
"""tenfold.spark, if pyspark 4 and Java are installed: with four executors as processes, one of
which is killed."""
import array
import json
import os
import pickle
import random
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
import unittest

import support

import tenfold
import tenfold.jobs

try:
    from pyspark.sql import SparkSession
    from pyspark import cloudpickle
    import tenfold.spark
except ImportError:
    SparkSession = None
HAVE = SparkSession is not None and shutil.which("java") is not None
# Java processes start slowly on a busy machine.
PATIENCE = 600
MASTER = os.environ.get("TENFOLD_SPARK", "local-cluster[4,1,512]")


def command(*arguments):
    return json.loads(subprocess.run([support.COMMAND, *arguments], check=True,
                                     capture_output=True).stdout)


def executors(driver):
    """The pids of the executors: JVMs below this process."""
    parents, names = {}, {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
                parents[int(pid)] = int(f.read().rsplit(")", 1)[1].split()[1])
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                names[int(pid)] = f.read()
        except (OSError, IndexError):
            pass
    found = []
    for pid, name in names.items():
        above = pid
        while above in parents and above != driver:
            above = parents[above]
        if above == driver and b"CoarseGrainedExecutorBackend" in name:
            found.append(pid)
    return sorted(found)


class Files(support.Case):
    def tensors(self):
        """1,000 tensors; some of the names contain characters of patterns."""
        rng, values = random.Random(1), {}
        for i in range(1000):
            name = f"layer.{i}[*].w" if i % 100 == 0 else f"layer.{i}.w"
            n = rng.randint(0, 400)
            values[name] = memoryview(struct.pack(f"<{n}f", *(rng.gauss(0, 1) for _ in range(n)))).cast("f") \
                if n else memoryview(b"").cast("f")
        tenfold.save(self.path("m.safetensors"), values)
        return self.path("m.safetensors")

    def vectors(self, n=20000, dims=24):
        rng = random.Random(2)
        with open(self.path("v.txt"), "w", encoding="utf-8") as f:
            f.write(f"{n} {dims}\n")
            for i in range(n):
                f.write(f"wört{i} " + " ".join(f"{rng.gauss(0, 1):.6f}" for _ in range(dims)) + "\n")
        tenfold.convert(self.path("v.txt"), self.path("v.fifu"), source_format="textdims",
                        normalize=True)
        return self.path("v.fifu")


@unittest.skipIf(SparkSession is None, "needs pyspark 4")
class Source(Files):
    """The source alone, called as Spark does, without Java."""

    def read(self, path, **options):
        source = tenfold.spark.TensorSource({"path": path, **options})
        self.assertIsInstance(source.schema(), str)
        reader = pickle.loads(cloudpickle.dumps(source)).reader(None)
        parts = [pickle.loads(pickle.dumps(part)) for part in reader.partitions()]
        return parts, [row for part in parts for row in reader.read(part)]

    def test_tensors(self):
        path = self.tensors()
        listed = command("ls", "--json", path)["tensors"]
        for n in ("1", "3", "16", "5000"):
            parts, rows = self.read(path, parts=n, columns="name,shape,nbytes,offset")
            self.assertEqual(len(parts), int(n)) if int(n) < 1000 else self.assertLess(900, len(parts))
            self.assertEqual(sorted(rows), sorted((t["name"], t["shape"], t["nbytes"],
                                                   t["parts"][0]["offset"]) for t in listed))
        stat = {t["name"]: t for t in command("stat", "--json", path)["tensors"]}
        for name, *told in self.read(path, columns="name,elements,nan,min,mean")[1]:
            self.assertEqual(told, [stat[name].get(k) for k in ("elements", "nan", "min", "mean")], name)

    def test_rows(self):
        path = self.vectors(1000)
        parts, batches = self.read(path, **{"as": "rows", "parts": "7"})
        self.assertEqual(len(parts), 7)
        rows = [row for batch in batches for row in batch.to_pylist()]
        with tenfold.open(path) as file:
            from tenfold import _tenfold
            emb = _tenfold.Embeddings(file, {})
            matrix = emb.rows(range(1000)).tolist()
            self.assertEqual(rows, [{"word": w, "row": i, "vector": matrix[i]}
                                    for i, w in enumerate(emb.words())])
        _, batches = self.read(path, **{"as": "rows", "columns": "row,word", "words": "binary"})
        self.assertEqual(batches[0].to_pylist()[7], {"row": 7, "word": "wört7".encode()})

    def test_no_words(self):
        values = array.array("f", range(12))
        tenfold.save(self.path("x.fbin"), {"vectors": memoryview(values).cast("B").cast("f", (4, 3))})
        _, batches = self.read(self.path("x.fbin"), **{"as": "rows"})
        self.assertEqual([row for b in batches for row in b.to_pylist()],
                         [{"word": None, "row": i, "vector": [3.0 * i, 3.0 * i + 1, 3.0 * i + 2]}
                          for i in range(4)])

    def test_wrong(self):
        path = self.tensors()
        for options, text in (({"as": "x"}, "tensors or rows"), ({"parts": "0"}, "parts"),
                              ({"columns": "nope"}, "unknown column"), ({"colums": "name"}, "unknown option"),
                              ({"as": "rows", "words": "x"}, "binary")):
            with self.assertRaisesRegex(tenfold.InvalidError, text):
                self.read(path, **options)
        reader = tenfold.spark.TensorSource({"path": path}).reader(None)
        parts = reader.partitions()
        os.utime(path, ns=(1, 1))
        with self.assertRaisesRegex(tenfold.ChangedError, "changed since it was planned"):
            list(reader.read(parts[0]))
        # A changed shard of a directory is found, too.
        tenfold.split(path, self.path("model"), max_bytes=100000)
        reader = tenfold.spark.TensorSource({"path": self.path("model")}).reader(None)
        parts = reader.partitions()
        list(reader.read(parts[0]))
        os.utime(os.path.join(self.path("model"), sorted(os.listdir(self.path("model")))[0]), ns=(1, 1))
        with self.assertRaisesRegex(tenfold.ChangedError, "changed since it was planned"):
            list(reader.read(parts[0]))


@unittest.skipUnless(HAVE, "needs pyspark 4 and Java")
class Spark(Files):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        path = os.pathsep.join(p for p in sys.path if p)
        os.environ.update(PYSPARK_PYTHON=sys.executable, PYSPARK_DRIVER_PYTHON=sys.executable,
                          SPARK_LOCAL_IP="127.0.0.1", PYTHONPATH=path)
        import pyspark
        os.environ.setdefault("SPARK_HOME", os.path.dirname(pyspark.__file__))
        cls.spark = (SparkSession.builder.master(MASTER).appName("tenfold")
                     .config("spark.driver.host", "127.0.0.1")
                     .config("spark.driver.bindAddress", "127.0.0.1")
                     .config("spark.ui.enabled", "false").config("spark.executor.memory", "512m")
                     .config("spark.executorEnv.PYTHONPATH", path)
                     .config("spark.executorEnv.TENFOLD_TEST_SLOW",
                             os.environ.get("TENFOLD_TEST_SLOW", ""))
                     .getOrCreate())
        cls.spark.sparkContext.setLogLevel("ERROR")
        cls.spark.dataSource.register(tenfold.spark.TensorSource)

    @classmethod
    def tearDownClass(cls):
        cls.spark.stop()

    def read(self, path, **options):
        return self.spark.read.format("tenfold").options(**options).load(path)

    def check_vectors(self, path, rows):
        expected = command("vocab", "--json", path)["vocab"]
        self.assertEqual([(r.row, r.word) for r in rows], list(enumerate(expected)))
        done = subprocess.run([support.COMMAND, "vector", "--json", path], check=True,
                              input="\n".join(expected) + "\n", capture_output=True, text=True)
        for row, line in zip(rows, done.stdout.splitlines(), strict=True):
            told = json.loads(line)["vector"]
            self.assertEqual(struct.pack(f"<{len(told)}f", *row.vector),
                             struct.pack(f"<{len(told)}f", *told))

    def test_tensors(self):
        path = self.tensors()
        frame = self.read(path, parts="16")
        self.assertEqual(frame.rdd.getNumPartitions(), 16)
        rows = {row.name: row for row in frame.collect()}
        listed = command("ls", "--json", path)["tensors"]
        self.assertEqual(set(rows), {t["name"] for t in listed})
        for t in listed:
            row, part = rows[t["name"]], t["parts"][0]
            self.assertEqual((row.dtype, row.shape, row.nbytes, row.layout, row.order, row.offset,
                              row.encoding),
                             (t["dtype"], t["shape"], t["nbytes"], t["layout"], t["order"],
                              part["offset"], part["encoding"]))
        counted = self.read(path, parts="7", columns="name,elements,nan,min,max,mean,std").collect()
        stat = {t["name"]: t for t in command("stat", "--json", path)["tensors"]}
        self.assertEqual(len(counted), 1000)
        for row in counted:
            told = stat[row.name]
            for key in ("elements", "nan", "min", "max", "mean", "std"):
                self.assertEqual(row[key], told.get(key), (row.name, key))
        some = self.read(path, select="layer.10*.w,layer.7.w", columns="name").collect()
        self.assertEqual({r.name for r in some},
                         {t["name"] for t in listed if t["name"] == "layer.7.w" or
                          t["name"].startswith("layer.10") and t["name"].endswith(".w")})

    def test_rows(self):
        path = self.vectors()
        frame = self.read(path, **{"as": "rows", "parts": "8"})
        self.assertEqual([f.dataType.simpleString() for f in frame.schema.fields],
                         ["string", "bigint", "array<float>"])
        self.check_vectors(path, sorted(frame.collect(), key=lambda r: r.row))

    def test_killed(self):
        """One of four executors is killed by its pid while tasks run: the rows are the same."""
        path = self.vectors()
        deadline = time.monotonic() + PATIENCE
        while len(executors(os.getpid())) < 4 and time.monotonic() < deadline:
            time.sleep(0.5)
        before = executors(os.getpid())
        self.assertEqual(len(before), 4)
        marks = self.path("marks")
        os.mkdir(marks)

        def slowly(batches):
            import os as o
            import time as t
            for batch in batches:
                open(o.path.join(marks, str(o.getpid()) + "-" + str(t.time())), "w").close()
                t.sleep(0.5)
                yield batch
        rows, frame = [], self.read(path, **{"as": "rows", "parts": "16"})
        slow = frame.mapInArrow(slowly, frame.schema)
        worker = threading.Thread(target=lambda: rows.extend(slow.collect()))
        worker.start()
        while len(os.listdir(marks)) < 3 and worker.is_alive() and time.monotonic() < deadline:
            time.sleep(0.02)
        os.kill(before[0], signal.SIGKILL)
        worker.join(PATIENCE)
        self.assertFalse(worker.is_alive())
        self.check_vectors(path, sorted(rows, key=lambda r: r.row))
        self.assertNotIn(before[0], executors(os.getpid()))

    def test_jobs(self):
        """verify, hash, convert and nearest on the executors, one of which is killed: the results of
        the plain functions."""
        try:
            tenfold.jobs.plan("hash", self.tensors(), 1)
        except tenfold.UnsupportedError:
            self.skipTest("this build does not support plans")
        path = self.path("m.safetensors")
        deadline = time.monotonic() + PATIENCE
        while len(executors(os.getpid())) < 4 and time.monotonic() < deadline:
            time.sleep(0.5)
        victim = executors(os.getpid())[0]  # the oldest executor
        killer = threading.Timer(2, lambda: os.kill(victim, signal.SIGKILL))
        killer.start()
        told = tenfold.spark.hash(self.spark, path, 16)["files"][0]
        self.assertEqual(told["hash"].split(":")[1], tenfold.hash(path).split(":")[1])
        self.assertTrue(tenfold.spark.verify(self.spark, path, 8)["ok"])
        tenfold.convert(path, self.path("plain.safetensors"))
        tenfold.spark.convert(self.spark, path, self.path("out.safetensors"), 16)
        self.assertEqual(self.bytes_of("out.safetensors"), self.bytes_of("plain.safetensors"))
        vectors = self.vectors(2000)
        got = tenfold.spark.nearest(self.spark, vectors, ["wört7"], 5, parts=8)["queries"][0]
        one = tenfold.jobs.plan("similar", vectors, 1, queries=["wört7"], k=5)
        self.assertEqual(got, one.finish([one.part(0)])["queries"][0])
        killer.join()
        self.assertNotIn(victim, executors(os.getpid()))


if __name__ == "__main__":
    unittest.main()
