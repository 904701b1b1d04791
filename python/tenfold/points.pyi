# SPDX-License-Identifier: MIT
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ._results import Problem

__all__ = ["Moves", "Page", "Point", "Points", "Report", "Salvaged", "Space", "create", "open", "salvage"]

_Path = str | bytes | os.PathLike[str]

class Point(NamedTuple):
    id: str
    vector: Any
    app: Any
    @property
    def offset(self) -> int: ...

class Page(NamedTuple):
    ids: list[str]
    vectors: Any
    apps: list[Any]

class Space(NamedTuple):
    dims: tuple[int, ...]
    resolution: str
    dtype: str | None
    attributes: Any
    pack: int
    paging: int
    elements: int
    vector_bytes: int

class Report(NamedTuple):
    file_bytes: int
    points: int
    blanks: int
    blank_bytes: int
    unknown: int
    unknown_bytes: int
    trailing: int
    terminal: bool
    stopped_at: int
    problems: list[Problem]
    def __bool__(self) -> bool: ...

class Salvaged(NamedTuple):
    points: list[Point]
    report: Report

class Moves(dict[Any, Any]):
    def __missing__(self, key: object) -> Any: ...

def open(path: _Path, mode: str = "r", *, lock: bool = True, timeout: float | None = None,
         sync: bool = True, pack: str = "auto", pack_app: bool = False, msb: bool = False) -> Points: ...
def create(path: _Path, dims: int | Sequence[int], resolution: str = "f32", *, attributes: Any = None,
           lock: bool = True, timeout: float | None = None, sync: bool = True, pack: str = "auto",
           pack_app: bool = False, msb: bool = False) -> Points: ...
def salvage(path: _Path, *, lock: bool = True, timeout: float | None = None, msb: bool = False) -> Salvaged: ...

class Points:
    def __init__(self, path: _Path, options: dict[str, Any], space: dict[str, Any] | None) -> None: ...
    def close(self) -> None: ...
    @property
    def closed(self) -> bool: ...
    @property
    def path(self) -> str: ...
    def __enter__(self) -> Points: ...
    def __exit__(self, *why: object) -> None: ...
    @property
    def space(self) -> Space | None: ...
    def __iter__(self) -> Iterator[Point]: ...
    def after(self, id: str | None) -> Iterator[Point]: ...
    def page(self, after: str | None = None, limit: int | None = None) -> Page: ...
    def read(self, id: str) -> Point: ...
    def verify(self) -> Report: ...
    def salvage(self) -> Salvaged: ...
    def append(self, vectors: Any, apps: Iterable[Any] | None = None) -> list[str]: ...
    def add(self, vector: Any, app: Any = None) -> str: ...
    def delete(self, ids: str | int | Iterable[str | int], *, shred: bool = False,
               unchecked: bool = False) -> None: ...
    def delete_app(self, app: Any, *, shred: bool = False) -> int: ...
    def compact(self, *, drop_unknown: bool = False) -> Moves: ...
    def set_attributes(self, attributes: Any, *, in_place: bool = False) -> None: ...
