# SPDX-License-Identifier: MIT
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from . import File, _Path, _Source
from ._results import Difference, Fetched, Report, Statistics, Verification

__all__: list[str]
_Progress = Callable[[int, int], object] | Any

def save(path: _Path | None, tensors: Mapping[str, Any], *, format: str | None = None,
         attrs: Mapping[str, Any] | None = None,
         tensor_attrs: Mapping[str, Mapping[str, Any]] | None = None,
         allow_loss: bool | str | Iterable[str] = (), replace: bool = False,
         order: str | None = None, dtype: str | None = None, sync: bool = True,
         progress: _Progress = None, as_is: bool = False, **options: object) -> Any: ...
def convert(src: File | _Source, dst: _Path | None, *, format: str | None = None,
            attrs: Mapping[str, Any] | None = None, allow_loss: bool | str | Iterable[str] = (),
            replace: bool = False, order: str | None = None, dtype: str | None = None,
            sync: bool = True, progress: _Progress = None,
            select: str | Iterable[str] | None = None, exclude: str | Iterable[str] | None = None,
            rename: Mapping[str, str] | Callable[[str], str] | None = None, lenient: bool = False,
            source_format: str | None = None, as_is: bool = False, fold: str | None = None,
            normalize: bool = False, unnormalize: bool = False, append: bool = False,
            into: File | _Source | None = None, keep_rest: bool = False,
            scales: str | None = None, **options: object) -> Any: ...
def plan(src: File | _Source, format: str, **keywords: Any) -> Report: ...
def merge(sources: Iterable[File | _Source], dst: _Path, *, format: str | None = None,
          clash: str = "refuse", clash_attrs: str = "refuse",
          allow_loss: bool | str | Iterable[str] = (), replace: bool = False,
          order: str | None = None, dtype: str | None = None, sync: bool = True,
          progress: _Progress = None, select: str | Iterable[str] | None = None,
          exclude: str | Iterable[str] | None = None,
          rename: Mapping[str, str] | Callable[[str], str] | None = None,
          tensors_only: bool = False, **options: object) -> Report: ...
def split(src: File | _Source, directory: _Path, *, max_bytes: int = 5_000_000_000,
          format: str = "safetensors", stem: str | None = None,
          allow_loss: bool | str | Iterable[str] = (), replace: bool = False,
          order: str | None = None, dtype: str | None = None, sync: bool = True,
          progress: _Progress = None, select: str | Iterable[str] | None = None,
          exclude: str | Iterable[str] | None = None,
          rename: Mapping[str, str] | Callable[[str], str] | None = None,
          **options: object) -> Report: ...
def verify(src: File | _Source, *, values: bool = False, canonical: bool = False, threads: int = 0,
           progress: _Progress = None, **opening: Any) -> Verification: ...
def hash(src: File | _Source, tensors: bool = False, *, threads: int = 0,
         progress: _Progress = None) -> Any: ...
def diff(a: File | _Source, b: File | _Source, *, rtol: float = 0.0, atol: float = 0.0,
         map: Mapping[str, str] | Callable[[str], str] | None = None,
         ignore: str | Iterable[str] = (), numeric: bool | None = None, nan_differs: bool = False,
         trust_digests: bool = False, brief: bool = False, threads: int = 0,
         progress: _Progress = None) -> Difference: ...
def stat(src: File | _Source, names: str | Iterable[str] | None = None, *, bins: int = 32,
         threads: int = 0, progress: _Progress = None) -> dict[str, Statistics | None]: ...
def repair(src: _Path, dst: _Path, *, format: str | None = None, replace: bool = False,
           sync: bool = True, progress: _Progress = None,
           **options: object) -> tuple[int, list[tuple[str, str, int | None, str | None]]]: ...
def fetch(url: _Path, directory: _Path, *, replace: bool = False, progress: _Progress = None,
          **options: object) -> list[Fetched]: ...
def undo(path: _Path) -> bool: ...
def meta(path: _Path, set: Mapping[str, Any] | None = None, *, remove: str | Iterable[str] = (),
         tensor: str | None = None, in_place: bool = False, rewrite: bool = False,
         progress: _Progress = None) -> dict[str, Any]: ...
def info(src: File | _Source) -> dict[str, Any]: ...
def formats() -> dict[str, dict[str, Any]]: ...
def types() -> dict[str, int]: ...
