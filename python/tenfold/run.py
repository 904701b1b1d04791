# SPDX-License-Identifier: MIT
"""The rank of this process among those started together by torchrun, Slurm or MPI (or alone), and
running a plan on all of them.

    place = tenfold.run.place()
    for part in tenfold.run.parts(64, place): …

    torchrun --nproc-per-node 8 -m tenfold.run plan.json
    srun -n 64 python3 -m tenfold.run plan.json
"""
import os as _os
from typing import NamedTuple

__all__ = ["Place", "main", "place", "parts", "work"]

# (launcher, rank, number of processes, rank on this machine, processes on this machine): names of
# environment variables. The first launcher whose rank is set is used. Slurm comes last, since it
# often starts torchrun and mpirun, whose ranks are more precise.
_LAUNCHERS = [
    ("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    ("openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("mvapich", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
     "MV2_COMM_WORLD_LOCAL_SIZE"),
    ("pmi", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    ("pmix", "PMIX_RANK", "PMIX_SIZE", "PMIX_LOCAL_RANK", "PMIX_LOCAL_SIZE"),
    ("slurm-array", "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", None, None),
    ("slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"),
]


class Place(NamedTuple):
    """One process among `world`."""
    rank: int
    world: int
    local_rank: int
    local_world: int
    launcher: "str | None"


def _number(environment, name, least):
    text = environment.get(name) if name else None
    if text is None or text == "":
        return None
    if not (text.isascii() and text.isdigit()) or int(text) < least:
        raise ValueError(f"{name} must be a whole number from {least} on, not {text!r}")
    return int(text)


def _array(environment, rank):
    """The rank in an array of Slurm, which may start at any number and have a step."""
    first = _number(environment, "SLURM_ARRAY_TASK_MIN", 0) or 0
    step = _number(environment, "SLURM_ARRAY_TASK_STEP", 1) or 1
    if rank < first or (rank - first) % step:
        raise ValueError(f"SLURM_ARRAY_TASK_ID is {rank}, which is not one of {first}, {first + step} …")
    return (rank - first) // step


def place(environment=None):
    """The place of this process, by the environment variables of its launcher; rank 0 of 1 without
    a launcher. Contradictory variables are an error."""
    environment = _os.environ if environment is None else environment
    for launcher, *names in _LAUNCHERS:
        rank = _number(environment, names[0], 0)
        # A task of a Slurm array has SLURM_PROCID as well; its place in the array is more precise.
        if rank is None or launcher == "slurm-array" and _number(environment, names[1], 1) is None:
            continue
        world = _number(environment, names[1], 1)
        if world is None:
            raise ValueError(f"{names[0]} is set, but {names[1]} is not")
        if launcher == "slurm-array":
            rank = _array(environment, rank)
        if rank >= world:
            raise ValueError(f"{names[0]} is {rank}, but {names[1]} is only {world}")
        local = _number(environment, names[2], 0)
        locals = _number(environment, names[3], 1)
        return Place(rank, world, local or 0, locals or 1, launcher)
    return Place(0, 1, 0, 1, None)


def parts(n, at=None):
    """The parts of this process, out of n: rank, rank + world …"""
    at = place() if at is None else at
    return range(at.rank, n, at.world)


def work(job, at=None, *, base=None, trust_content=False, finish=True, wait=3600.0, threads=0):
    """Does this process's parts of a tenfold.jobs.Job. Rank 0 finishes the job when all receipts
    exist, and returns the result; the others return None. Processes only communicate by receipts,
    so the launcher only has to provide ranks. Parts with a receipt are not done again.

    base    the place of receipts, if the plan has no output
    finish  False: rank 0 does not finish the job
    wait    seconds that rank 0 waits for the parts of other ranks
    """
    import time
    from ._errors import InvalidError, NotFoundError
    at = place() if at is None else at
    if at.world > 1 and base is None and job.info["out"] is None:
        raise InvalidError("this plan has no output; `base` must give the place of receipts",
                           status="EINVAL", code=-10)
    receipts = [job.part(i, base=base, trust_content=trust_content, threads=threads)
                for i in parts(job.parts, at)]
    if at.rank or not finish:
        return None
    if base is not None or job.info["out"] is not None:
        receipts = None
    until = time.monotonic() + wait
    while True:
        try:
            return job.finish(receipts, base=base, trust_content=trust_content, threads=threads)
        except NotFoundError:  # parts are missing
            if at.world == 1 or time.monotonic() >= until:
                raise
        time.sleep(0.2)


def main(arguments=None):
    """python3 -m tenfold.run PLAN"""
    import argparse
    import json
    import sys
    from .jobs import Job
    parser = argparse.ArgumentParser(
        prog="python3 -m tenfold.run", description="Does this process's parts of a plan; rank 0 "
        "finishes it and prints the result. Can be started by torchrun, Slurm, MPI, or alone.")
    parser.add_argument("plan", help="a file that `tenfold plan` wrote")
    parser.add_argument("--base", help="the place of receipts, if the plan has no output [PLAN]")
    parser.add_argument("--trust-content", action="store_true",
                        help="accept inputs with other modification times")
    parser.add_argument("--no-finish", action="store_true", help="only do parts, do not finish")
    parser.add_argument("--wait", type=float, default=3600.0, metavar="SECONDS",
                        help="how long rank 0 waits for the parts of other ranks [3600]")
    parser.add_argument("--threads", type=int, default=0)
    given = parser.parse_args(arguments)
    with open(given.plan, encoding="utf-8") as f:
        job = Job(f.read())
    base = given.base
    if base is None and job.info["out"] is None and place().world > 1:
        base = given.plan  # the same for all processes, so rank 0 finds the receipts of other ranks
    result = work(job, base=base, trust_content=given.trust_content, wait=given.wait,
                  finish=not given.no_finish, threads=given.threads)
    if result is not None:
        json.dump(result, sys.stdout)
        print()


if __name__ == "__main__":
    main()
