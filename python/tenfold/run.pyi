# SPDX-License-Identifier: MIT
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .jobs import Job, _Path

__all__ = ["Place", "main", "place", "parts", "work"]

class Place(NamedTuple):
    rank: int
    world: int
    local_rank: int
    local_world: int
    launcher: str | None

def place(environment: Mapping[str, str] | None = None) -> Place: ...
def parts(n: int, at: Place | None = None) -> range: ...
def work(job: Job, at: Place | None = None, *, base: _Path | None = None, trust_content: bool = False,
         finish: bool = True, wait: float = 3600.0, threads: int = 0) -> dict[str, Any] | None: ...
def main(arguments: Sequence[str] | None = None) -> None: ...
