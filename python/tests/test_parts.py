# SPDX-License-Identifier: MIT
"""tenfold.jobs and tenfold.run.work(): with any number of parts and processes, the result is that
of the plain function."""
import json
import os
import pickle
import random
import struct
import subprocess
import sys
import unittest

import support

import tenfold
import tenfold.jobs
import tenfold.run
from tenfold.run import Place


def has_jobs():
    try:
        tenfold.jobs.plan("hash", "/nowhere", 1)
    except tenfold.UnsupportedError:
        return False
    except Exception:
        pass
    return True


@unittest.skipUnless(has_jobs(), "this build does not support plans")
class Parts(support.Case):
    def setUp(self):
        super().setUp()
        rng = random.Random(5)
        self.model = self.path("m.safetensors")
        tenfold.save(self.model, {f"w{i}": memoryview(bytearray(rng.randbytes(4 * n))).cast("f")
                                  for i, n in enumerate((1, 30, 700, 1_500_000, 2_600_000))})

    def test_hash(self):
        expected, tensors = tenfold.hash(self.model), tenfold.hash(self.model, tensors=True)
        for parts in (1, 2, 3, 7, 64):
            job = tenfold.jobs.plan("hash", self.model, parts)
            self.assertEqual((job.parts, job.info["job"]), (parts, "hash"))
            order = list(range(parts))
            random.Random(parts).shuffle(order)
            again = pickle.loads(pickle.dumps(job))  # as a worker gets it
            self.assertEqual((again.text, again.id), (job.text, job.id))
            told = job.finish([again.part(i) for i in order])["files"][0]
            self.assertEqual(told["hash"].split(":")[1], expected.split(":")[1])
            self.assertEqual({t["name"]: t["hash"].split(":")[1] for t in told["tensors"]},
                             {name: text.split(":")[1] for name, text in tensors.items()})

    def test_convert(self):
        tenfold.convert(self.model, self.path("plain.npz"))
        tenfold.convert(self.model, self.path("plain.safetensors"))
        for parts in (1, 3, 16):
            out = self.path(f"{parts}.safetensors")
            job = tenfold.jobs.plan("convert", self.model, parts, out=out)
            for rank in (2, 1, 0):
                got = tenfold.run.work(job, Place(rank, 3, 0, 3, None))
                self.assertEqual(got is None, rank != 0)
            self.assertEqual(self.bytes_of(f"{parts}.safetensors"), self.bytes_of("plain.safetensors"))
        self.assertEqual([n for n in os.listdir(self.folder) if ".tenfold" in n], [])

    def test_missing(self):
        job = tenfold.jobs.plan("convert", self.model, 3, out=self.path("x.safetensors"))
        job.part(1)
        with self.assertRaises(tenfold.NotFoundError):
            job.finish()
        with self.assertRaises(tenfold.NotFoundError):
            tenfold.run.work(job, Place(0, 3, 0, 3, None), wait=0.3)
        self.assertFalse(os.path.exists(self.path("x.safetensors")))
        job.abort()
        self.assertEqual([n for n in os.listdir(self.folder) if ".tenfold" in n], [])
        with self.assertRaises(tenfold.InvalidError):
            tenfold.run.work(tenfold.jobs.plan("hash", self.model, 3), Place(0, 3, 0, 3, None))
        with self.assertRaises(tenfold.FormatError):
            tenfold.jobs.Job("{}")

    def test_changed(self):
        job = tenfold.jobs.plan("hash", self.model, 2)
        os.utime(self.model, ns=(1, 1))
        with self.assertRaises(tenfold.ChangedError):
            job.part(0)
        receipts = [job.part(i, trust_content=True) for i in range(2)]
        self.assertEqual(job.finish(receipts, trust_content=True)["files"][0]["hash"].split(":")[1],
                         tenfold.hash(self.model).split(":")[1])

    def test_processes(self):
        """Four processes at once, as Slurm starts them; one fails and is restarted."""
        job = tenfold.jobs.plan("convert", self.model, 9, out=self.path("out.safetensors"))
        self.write("plan.json", job.text.encode())
        command = [sys.executable, "-m", "tenfold.run", self.path("plan.json"), "--wait", "300"]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
               "SLURM_NTASKS": "4"}

        def start(rank):
            return subprocess.Popen(command, env={**env, "SLURM_PROCID": str(rank)},
                                    stdout=subprocess.PIPE, text=True)
        processes = [start(rank) for rank in range(4)]
        processes[2].kill()
        processes[2].communicate()
        processes[2] = start(2)
        outputs = [process.communicate(timeout=600)[0] for process in processes]
        self.assertEqual([process.returncode for process in processes], [0] * 4)
        self.assertEqual(json.loads(outputs[0])["job"], "convert")
        self.assertEqual(outputs[1:], ["", "", ""])
        tenfold.convert(self.model, self.path("plain.safetensors"))
        self.assertEqual(self.bytes_of("out.safetensors"), self.bytes_of("plain.safetensors"))

    def test_similar(self):
        rng = random.Random(6)
        with open(self.path("v.txt"), "w", encoding="utf-8") as f:
            f.write("500 8\n")
            for i in range(500):
                f.write(f"w{i} " + " ".join(f"{rng.gauss(0, 1):.4f}" for _ in range(8)) + "\n")
        tenfold.convert(self.path("v.txt"), self.path("v.fifu"), source_format="textdims",
                        normalize=True)
        told = json.loads(subprocess.run([support.COMMAND, "similar", "--json", "-k", "5",
                                          self.path("v.fifu"), "w3"], capture_output=True, check=True,
                                         text=True).stdout.splitlines()[0])
        for parts in (1, 4, 9):
            job = tenfold.jobs.plan("similar", self.path("v.fifu"), parts, queries=["w3", "w7"], k=5)
            got = job.finish([job.part(i) for i in range(parts)])["queries"]
            self.assertEqual([q["word"] for q in got], ["w3", "w7"])
            key = next(k for k in ("hits", "neighbours", "similar", "results") if k in told)
            self.assertEqual([h["word"] for h in got[0]["hits"]], [h["word"] for h in told[key]])


if __name__ == "__main__":
    unittest.main()
