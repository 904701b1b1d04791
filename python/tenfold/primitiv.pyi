# SPDX-License-Identifier: MIT
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from . import File, NotFoundError, Tensor, _Source

__all__ = ["Batch", "Loaded", "MismatchError", "Optimizer", "Shape", "Statistic", "find", "join", "load",
           "load_optimizer", "load_shape", "read", "save", "save_optimizer", "save_shape", "split"]

_Save = str | bytes | os.PathLike[str]
_Path = str | Sequence[str]
_Key = str | tuple[str, ...] | Statistic

class Statistic:
    path: tuple[str, ...]
    key: str
    def __init__(self, path: _Path, key: str) -> None: ...
    def __setattr__(self, name: str, value: object) -> None: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

class Batch(NamedTuple):
    array: Any

class Loaded(NamedTuple):
    missing: list[_Key]
    extra: list[str]

class Shape(NamedTuple):
    dims: tuple[int, ...]
    batch: int = ...

class Optimizer(NamedTuple):
    name: str | None
    uints: dict[str, int]
    floats: dict[str, float]

class MismatchError(NotFoundError):
    missing: Sequence[_Key]
    extra: Sequence[str]

def join(path: Iterable[str]) -> str: ...
def split(name: str) -> tuple[str, ...]: ...
def find(file: File, path: _Path, statistic: str | None = None) -> Tensor: ...
def read(source: _Source | File) -> dict[tuple[str, ...] | Statistic, Any]: ...
def load(source: _Source | File, into: Mapping[Any, Any], *, need_all: bool = False,
         allow_extra: bool = False) -> Loaded: ...
def load_shape(source: _Source | File) -> Shape: ...
def load_optimizer(source: _Source | File, uints: Iterable[str] | None = None,
                   floats: Iterable[str] | None = None) -> Optimizer: ...
def save(path: _Save, arrays: Mapping[Any, Any], *, format: str | None = None, replace: bool = False,
         sync: bool = True, allow_loss: bool = False,
         progress: Callable[[int, int], object] | None = None, **options: Any) -> None: ...
def save_shape(path: _Save, dims: Iterable[int], batch: int = 1, *, format: str | None = None,
               replace: bool = False, sync: bool = True, allow_loss: bool = False,
               **options: Any) -> None: ...
def save_optimizer(path: _Save, uints: Mapping[str, int], floats: Mapping[str, float], *,
                   format: str | None = None, replace: bool = False, sync: bool = True,
                   allow_loss: bool = False, **options: Any) -> None: ...
