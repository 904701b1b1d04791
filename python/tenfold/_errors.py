# SPDX-License-Identifier: MIT
"""Error classes, one for each status of the library. Most also derive from a built-in class."""
import errno as _errno
import os as _os

__all__ = ["CancelledError", "ChangedError", "DigestError", "Error", "ExistsError", "FormatError",
           "FormatWarning", "InvalidError", "LimitError", "LossWarning", "LossyError", "NetworkError",
           "NotFoundError", "SystemIOError", "TruncatedError", "UnsupportedError"]


class FormatWarning(UserWarning):
    """Something unusual but legal in a file."""


class LossWarning(UserWarning):
    """A function with another package's name lost something in a save; `report` lists what."""

    def __init__(self, message, report=None):
        super().__init__(message)
        self.report = report


class Error(Exception):
    """An error of the library.

    status   "EFORMAT" and so on
    code     the status as a number
    offset   the byte in the file, or None
    rule     the violated rule, as named in the format's specification, or None
    sys      errno or the HTTP status; 0: none
    path     the path of the file, or None
    message  the text without the path
    """

    status = "EINVAL"
    code = -10
    offset = None
    rule = None
    sys = 0
    path = None
    message = ""
    _report = None

    def __init__(self, message="", *, status=None, code=None, offset=None, rule=None, sys=0,
                 path=None):
        # OSError interprets two or more arguments as errno and so on, so it gets only one.
        super().__init__(message)
        self.message = message
        if status is not None:
            self.status = status
        if code is not None:
            self.code = code
        self.offset = offset
        self.rule = rule
        self.sys = sys
        self.path = path

    def __str__(self):
        text = self.message
        if self.offset is not None:
            text += f" (at byte {self.offset})"
        return f"{self.path}: {text}" if self.path else text

    def __reduce__(self):
        state = {key: getattr(self, key)
                 for key in ("status", "code", "offset", "rule", "sys", "path", "_report")}
        state.update(self.__dict__)
        return _remake, (type(self), self.message), state


def _remake(cls, message):
    return cls(message)


class SystemIOError(Error, OSError):
    """A system call failed."""


class _NoFile(SystemIOError, FileNotFoundError):
    pass


class _NoPermission(SystemIOError, PermissionError):
    pass


class _IsDirectory(SystemIOError, IsADirectoryError):
    pass


class _Busy(SystemIOError, BlockingIOError):
    pass


class NetworkError(Error, OSError):
    """A network request failed; http_status has the status of the answer."""

    @property
    def http_status(self):
        return self.sys


class FormatError(Error, ValueError):
    """The bytes violate the rules of their format."""


class TruncatedError(FormatError):
    """The bytes are truncated."""


class DigestError(FormatError):
    """The bytes do not match their stored digest."""


class UnsupportedError(Error, NotImplementedError):
    """Valid, but this build or version does not support it."""


class LimitError(Error, ValueError):
    """A limit was exceeded."""


class NotFoundError(Error, KeyError):
    """No such tensor, part or format."""


class _NoObject(NotFoundError, FileNotFoundError):
    """A server has no object under that URL; http_status 410 means that it is gone permanently."""

    @property
    def http_status(self):
        return self.sys


class ExistsError(Error, FileExistsError):
    """It already exists."""


class InvalidError(Error, ValueError):
    """Invalid arguments."""


class LossyError(Error, ValueError):
    """Refused because something would be lost; .report has the plan."""

    @property
    def report(self):
        from ._results import Report
        return Report(*self._report) if self._report else None


class CancelledError(Error):
    """The progress function returned False."""


class ChangedError(Error):
    """The file was changed or replaced since it was read."""


for _name, _public in (("_NoFile", "SystemIOError"), ("_NoPermission", "SystemIOError"),
                       ("_IsDirectory", "SystemIOError"), ("_Busy", "SystemIOError")):
    globals()[_name].__qualname__ = _name

_CLASSES = {
    -2: SystemIOError, -3: NetworkError, -4: FormatError, -5: TruncatedError,
    -6: UnsupportedError, -7: LimitError, -8: NotFoundError, -9: ExistsError, -10: InvalidError,
    -11: LossyError, -12: DigestError, -13: CancelledError, -15: ChangedError,
}
_BY_ERRNO = {_errno.ENOENT: _NoFile, _errno.EACCES: _NoPermission, _errno.EPERM: _NoPermission,
             _errno.EISDIR: _IsDirectory, _errno.EAGAIN: _Busy}


def make(code, status, message, offset, rule, sys, path):
    """Makes the error of a failed call, for the extension."""
    cls = _CLASSES.get(code, Error)
    if code in (-2, -8) and sys in _BY_ERRNO:
        cls = _BY_ERRNO[sys]
    elif code == -8 and sys in (404, 410):
        cls = _NoObject
    error = cls(message, status=status, code=code, offset=offset, rule=rule, sys=sys, path=path)
    if sys and code != -3 and cls is not _NoObject and isinstance(error, OSError):
        error.errno = sys
        error.strerror = _os.strerror(sys)
        error.filename = path
    return error


def missing(name, names, compat):
    """Makes the error for an unknown tensor name, for the extension."""
    if not isinstance(name, str):
        return TypeError(f"a name must be a str, not {type(name).__name__}")
    if compat:
        return NotFoundError(f"File does not contain tensor {name}", status="ENOTFOUND", code=-8)
    import difflib
    near = difflib.get_close_matches(name, names[:10000], 3)
    hint = "; did you mean " + ", ".join(repr(n) for n in near) + "?" if near else ""
    return NotFoundError(f"there is no tensor {name!r}{hint}", status="ENOTFOUND", code=-8)
