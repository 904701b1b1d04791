# SPDX-License-Identifier: MIT
from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["Place", "place", "parts"]

class Place(NamedTuple):
    rank: int
    world: int
    local_rank: int
    local_world: int
    launcher: str | None

def place(environment: Mapping[str, str] | None = None) -> Place: ...
def parts(n: int, at: Place | None = None) -> range: ...
