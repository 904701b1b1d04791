# SPDX-License-Identifier: MIT
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, BinaryIO, Union

from ._errors import (
    CancelledError as CancelledError, ChangedError as ChangedError, DigestError as DigestError,
    Error as Error, ExistsError as ExistsError, FormatError as FormatError,
    FormatWarning as FormatWarning, InvalidError as InvalidError, LimitError as LimitError,
    LossWarning as LossWarning, LossyError as LossyError, NetworkError as NetworkError, NotFoundError as NotFoundError,
    SystemIOError as SystemIOError, TruncatedError as TruncatedError,
    UnsupportedError as UnsupportedError)
from ._jobs import (
    convert as convert, diff as diff, fetch as fetch, formats as formats, hash as hash,
    info as info, merge as merge, meta as meta, plan as plan, repair as repair, save as save, split as split,
    stat as stat, types as types, undo as undo, verify as verify)
from ._results import (
    Difference as Difference, Report as Report, Statistics as Statistics,
    Verification as Verification)
from ._tenfold import Array as Array, File as _File, Tensor as Tensor
from ._values import Stream as Stream

__version__: str
__all__: list[str]

_Path = Union[str, bytes, os.PathLike[str], os.PathLike[bytes]]
_Source = Union[_Path, int, bytearray, memoryview, BinaryIO, "Sequence[_Source]"]

class File(_File, Mapping[str, Tensor]):
    def __new__(cls, source: _Source, options: dict[str, Any] | None = None) -> File: ...
    def __getitem__(self, name: str, /) -> Tensor: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[str]: ...
    def __contains__(self, name: object, /) -> bool: ...
    def __enter__(self) -> File: ...
    def __exit__(self, *why: type[BaseException] | BaseException | TracebackType | None) -> None: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...
    def read_all(self, names: Iterable[str] | None = None, *, threads: int = 0,
                 progress: Callable[[int, int], object] | None = None,
                 into: Mapping[str, Any] | None = None) -> Any: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def _repr_html_(self) -> str: ...

def open(source: _Source, *, format: str | None = None, lenient: bool = False, access: str = "auto",
         limits: Mapping[str, int] | None = None, options: Mapping[str, object] | None = None,
         warn: Callable[[int | None, str], object] | bool | None = None,
         incomplete: bool = False) -> File: ...
