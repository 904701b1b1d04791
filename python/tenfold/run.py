# SPDX-License-Identifier: MIT
"""Who am I among the processes that were started together: by torchrun, Slurm, MPI, or alone.

    place = tenfold.run.place()
    for part in tenfold.run.parts(64, place): …
"""
import os as _os
from typing import NamedTuple

__all__ = ["Place", "place", "parts"]

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
