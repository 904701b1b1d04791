# SPDX-License-Identifier: MIT
"""Who am I among the processes that were started together: by torchrun, Slurm, MPI, or alone; and a
plan done by all of them.

    place = tenfold.run.place()
    for part in tenfold.run.parts(64, place): …

    torchrun --nproc-per-node 8 -m tenfold.run plan.json
    srun -n 64 python3 -m tenfold.run plan.json
"""
import os as _os
from typing import NamedTuple

__all__ = ["Place", "main", "place", "parts", "work"]

# (who started us, rank, number of processes, rank on this machine, processes on this machine), each
# by the names of its variables; the first one whose rank is set counts. Slurm comes last: torchrun
# and mpirun are often started by it, and their ranks are the finer ones.
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
        raise ValueError(f"{name} is {text!r}: a whole number from {least} on was expected")
    return int(text)


def _array(environment, rank):
    """An array of Slurm that begins at another number, or counts by more than one."""
    first = _number(environment, "SLURM_ARRAY_TASK_MIN", 0) or 0
    step = _number(environment, "SLURM_ARRAY_TASK_STEP", 1) or 1
    if rank < first or (rank - first) % step:
        raise ValueError(f"SLURM_ARRAY_TASK_ID is {rank}, which is none of {first}, {first + step} …")
    return (rank - first) // step


def place(environment=None):
    """The place of this process by what its launcher left in the environment; rank 0 of 1 if nobody
    did. Variables that contradict each other are an error."""
    environment = _os.environ if environment is None else environment
    for launcher, *names in _LAUNCHERS:
        rank = _number(environment, names[0], 0)
        # Slurm sets SLURM_PROCID for a single process as well; an array within it is the finer one.
        if rank is None or launcher == "slurm-array" and _number(environment, names[1], 1) is None:
            continue
        world = _number(environment, names[1], 1)
        if world is None:
            raise ValueError(f"{names[0]} is set, and {names[1]} is not")
        if launcher == "slurm-array":
            rank = _array(environment, rank)
        if rank >= world:
            raise ValueError(f"{names[0]} is {rank}, and {names[1]} only {world}")
        local = _number(environment, names[2], 0)
        locals = _number(environment, names[3], 1)
        return Place(rank, world, local or 0, locals or 1, launcher)
    return Place(0, 1, 0, 1, None)


def parts(n, at=None):
    """The parts of n that are this process's: rank, rank + world …"""
    at = place() if at is None else at
    return range(at.rank, n, at.world)


def work(job, at=None, *, base=None, trust_content=False, finish=True, wait=3600.0, threads=0):
    """Does this process's parts of a tenfold.jobs.Job. Rank 0 finishes it when all receipts are
    there, and returns the result; the others return None. Processes meet at the receipts alone, so
    no launcher is asked for more than ranks; what was done before is not done again.

    base    where receipts lie, if the plan has no output
    finish  False: rank 0 does not, either
    wait    seconds that rank 0 waits for the parts of others
    """
    import time
    from ._errors import InvalidError, NotFoundError
    at = place() if at is None else at
    if at.world > 1 and base is None and job.info["out"] is None:
        raise InvalidError("this plan has no output beside which receipts can lie: say where (base)",
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
        "finishes it and prints the result. Started by torchrun, Slurm, MPI, or alone.")
    parser.add_argument("plan", help="a file that `tenfold plan` wrote")
    parser.add_argument("--base", help="where receipts lie, if the plan has no output [PLAN]")
    parser.add_argument("--trust-content", action="store_true",
                        help="inputs may have other times of change")
    parser.add_argument("--no-finish", action="store_true", help="do parts only")
    parser.add_argument("--wait", type=float, default=3600.0, metavar="SECONDS",
                        help="how long rank 0 waits for the parts of others [3600]")
    parser.add_argument("--threads", type=int, default=0)
    told = parser.parse_args(arguments)
    with open(told.plan, encoding="utf-8") as f:
        job = Job(f.read())
    base = told.base
    if base is None and job.info["out"] is None and place().world > 1:
        base = told.plan  # all processes know it, and rank 0 finds the receipts of others there
    result = work(job, base=base, trust_content=told.trust_content, wait=told.wait,
                  finish=not told.no_finish, threads=told.threads)
    if result is not None:
        json.dump(result, sys.stdout)
        print()


if __name__ == "__main__":
    main()
