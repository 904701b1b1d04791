# SPDX-License-Identifier: MIT
"""tenfold.run: the place of a process by the variables of every launcher."""
import json
import os
import subprocess
import sys
import unittest

import support

import tenfold
from tenfold.run import Place, parts, place


class Run(support.Case):
    def test_launchers(self):
        for environment, expected in (
                ({}, (0, 1, 0, 1, None)),
                ({"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"},
                 (5, 8, 1, 4, "torchrun")),
                ({"SLURM_PROCID": "3", "SLURM_NTASKS": "4", "SLURM_LOCALID": "1"},
                 (3, 4, 1, 1, "slurm")),
                ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2",
                  "OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_LOCAL_SIZE": "1"},
                 (1, 2, 0, 1, "openmpi")),
                ({"PMI_RANK": "1", "PMI_SIZE": "2"}, (1, 2, 0, 1, "pmi")),
                ({"MV2_COMM_WORLD_RANK": "1", "MV2_COMM_WORLD_SIZE": "2"}, (1, 2, 0, 1, "mvapich")),
                # an array, which may start at any number, within a job
                ({"SLURM_ARRAY_TASK_ID": "7", "SLURM_ARRAY_TASK_COUNT": "4", "SLURM_ARRAY_TASK_MIN": "1",
                  "SLURM_ARRAY_TASK_STEP": "2", "SLURM_PROCID": "0", "SLURM_NTASKS": "1"},
                 (3, 4, 0, 1, "slurm-array")),
                # torchrun that Slurm started
                ({"RANK": "1", "WORLD_SIZE": "2", "SLURM_PROCID": "0", "SLURM_NTASKS": "1"},
                 (1, 2, 0, 1, "torchrun"))):
            self.assertEqual(place(environment), Place(*expected))

    def test_wrong(self):
        for environment, text in (({"RANK": "1"}, "WORLD_SIZE is not"),
                                  ({"RANK": "2", "WORLD_SIZE": "2"}, "only 2"),
                                  ({"RANK": "x", "WORLD_SIZE": "2"}, "'x'"),
                                  ({"RANK": "-1", "WORLD_SIZE": "2"}, "'-1'"),
                                  ({"RANK": "0", "WORLD_SIZE": "0"}, "'0'"),
                                  ({"SLURM_ARRAY_TASK_ID": "2", "SLURM_ARRAY_TASK_COUNT": "4",
                                    "SLURM_ARRAY_TASK_MIN": "1", "SLURM_ARRAY_TASK_STEP": "2"},
                                   "not one of")):
            with self.assertRaisesRegex(ValueError, text):
                place(environment)

    def test_parts(self):
        for n in (0, 1, 5, 64):
            for world in (1, 3, 7):
                got = [i for rank in range(world) for i in parts(n, Place(rank, world, 0, 1, None))]
                self.assertEqual(sorted(got), list(range(n)))
        self.assertIs(tenfold.run.parts, parts)


class Work(support.Case):
    """python -m tenfold.run with a plan that has no output: receipts are next to the plan."""

    def setUp(self):
        super().setUp()
        self.model, self.plan = self.path("m.safetensors"), self.path("plan.json")
        tenfold.save(self.model, {f"w{i}": memoryview(bytes([i]) * 5000) for i in range(8)})

    def planned(self, job):
        with open(self.plan, "w", encoding="utf-8") as f:
            f.write(tenfold.jobs.plan(job, self.model, 4).text)

    def start(self, *arguments, **environment):
        env = {key: value for key, value in os.environ.items() if not key.startswith("SLURM_")}
        env.update(environment, PYTHONPATH=os.pathsep.join(p for p in sys.path if p))
        return subprocess.Popen([sys.executable, "-m", "tenfold.run", *arguments, self.plan], env=env,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def ended(self, process):
        out, err = process.communicate()
        self.assertEqual(process.returncode, 0, err)
        return out

    def test_slurm(self):
        for job in ("hash", "verify", "stat"):
            self.planned(job)
            first = self.start("--wait", "50", SLURM_PROCID="0", SLURM_NTASKS="2")
            second = self.start(SLURM_PROCID="1", SLURM_NTASKS="2")
            self.assertEqual(self.ended(second), "")
            told = json.loads(self.ended(first))
            if job == "hash":
                self.assertEqual(told["files"][0]["hash"].split(":")[1],
                                 tenfold.hash(self.model).split(":")[1])
        left = [name for name in os.listdir(self.folder) if not name.startswith("plan.json.tenfold-")]
        self.assertEqual(sorted(left), ["m.safetensors", "plan.json"])

    def test_torchrun_variables(self):
        self.planned("hash")
        both = [self.start("--wait", "50", RANK=str(i), WORLD_SIZE="2") for i in (1, 0)]
        told = [self.ended(each) for each in both]
        self.assertEqual(json.loads(told[1])["files"][0]["hash"].split(":")[1],
                         tenfold.hash(self.model).split(":")[1])

    def test_alone(self):
        self.planned("hash")
        told = json.loads(self.ended(self.start()))
        self.assertEqual(told["files"][0]["hash"].split(":")[1],
                         tenfold.hash(self.model).split(":")[1])


if __name__ == "__main__":
    unittest.main()
