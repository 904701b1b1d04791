# SPDX-License-Identifier: MIT
"""tenfold.run: the place of a process by the variables of every launcher."""
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
                # an array, which may begin anywhere, within a job
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
                                   "none of")):
            with self.assertRaisesRegex(ValueError, text):
                place(environment)

    def test_parts(self):
        for n in (0, 1, 5, 64):
            for world in (1, 3, 7):
                got = [i for rank in range(world) for i in parts(n, Place(rank, world, 0, 1, None))]
                self.assertEqual(sorted(got), list(range(n)))
        self.assertIs(tenfold.run.parts, parts)


if __name__ == "__main__":
    unittest.main()
