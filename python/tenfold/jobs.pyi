# SPDX-License-Identifier: MIT
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

__all__ = ["Job", "plan"]

_Path = str | bytes | os.PathLike[str]
_Progress = Callable[[int, int], object] | None

class Job:
    text: str
    info: dict[str, Any]
    def __init__(self, text: str) -> None: ...
    def __reduce__(self) -> tuple[type[Job], tuple[str]]: ...
    @property
    def parts(self) -> int: ...
    @property
    def id(self) -> str: ...
    def part(self, i: int, *, base: _Path | None = None, trust_content: bool = False,
             threads: int = 0, progress: _Progress = None) -> str: ...
    def finish(self, receipts: Iterable[str] | None = None, *, base: _Path | None = None,
               trust_content: bool = False, verify: bool = True, threads: int = 0,
               progress: _Progress = None) -> dict[str, Any]: ...
    def abort(self, *, base: _Path | None = None) -> None: ...

def plan(job: str, inputs: _Path | Sequence[_Path], parts: int, *, out: _Path | None = None,
         format: str | None = None, read_format: str | None = None, lenient: bool = False,
         select: str | Sequence[str] | None = None, exclude: str | Sequence[str] | None = None,
         dtype: str | None = None, allow_loss: bool = False, replace: bool = False,
         max_bytes: int = 0, queries: str | Sequence[str] | None = None, k: int = 0,
         rtol: float = 0.0, atol: float = 0.0, numeric: bool | None = None,
         **options: Any) -> Job: ...
