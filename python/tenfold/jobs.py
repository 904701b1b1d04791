# SPDX-License-Identifier: MIT
"""Work on large files, divided into parts that any scheduler can run.

    job = tenfold.jobs.plan("hash", "model/", parts=64)      # on one machine
    receipt = tenfold.jobs.Job(text).part(7)                 # anywhere, in any order, any number of times
    job.finish(receipts)                                     # once: checks, merges, makes it visible

The result does not depend on the number of parts and their order: it is that of the plain function.
"""
import json as _json
import os as _os

from . import _tenfold
from ._plain import progress as _progress

__all__ = ["Job", "plan"]


class Job:
    """A plan. Its `text` is complete: a worker needs nothing else. A Job can be pickled."""

    def __init__(self, text):
        self._take(_tenfold.job_parse(text))

    def _take(self, job):
        self._job = job
        self.text, self.info = _tenfold.job_info(job)

    def __reduce__(self):
        return Job, (self.text,)

    def __repr__(self):
        return f"<tenfold.jobs.Job: {self.info['job']} in {self.parts} parts>"

    @property
    def parts(self):
        """The number of parts."""
        return self.info["parts"]

    @property
    def id(self):
        """64 hex digits, which are the same for the same work."""
        return self.info["id"]

    def part(self, i, *, base=None, trust_content=False, threads=0, progress=None):
        """Does a part and returns its receipt, a text. If the plan has an output, or `base` is
        given, the receipt is also written to a file, and a part with such a receipt is not done
        again.

        base           the place of receipts, if it is not the plan's output
        trust_content  accept inputs whose modification times differ from those in the plan
        """
        return _tenfold.job_do(self._job, i, {"base": _path(base), "trust_content": trust_content,
                                              "threads": threads,
                                              "progress": _progress(progress)})

    def finish(self, receipts=None, *, base=None, trust_content=False, verify=True, threads=0,
               progress=None):
        """Combines the results of the parts to a dict. `receipts`: the results of part() in any
        order, if they are not in files."""
        result = _tenfold.job_finish(self._job, {
            "receipts": list(receipts) if receipts is not None else None, "base": _path(base),
            "trust_content": trust_content, "no_verify": not verify, "threads": threads,
            "progress": _progress(progress)})
        return _json.loads(result)

    def abort(self, *, base=None):
        """Removes the leftovers of parts: receipts and unfinished files."""
        _tenfold.job_abort(self._job, {"base": _path(base)})


def _path(path):
    return None if path is None else _os.fsdecode(path)


def _list(value):
    return [value] if isinstance(value, (str, bytes, _os.PathLike)) else list(value)


def plan(job, inputs, parts, *, out=None, format=None, read_format=None, lenient=False, select=None,
         exclude=None, dtype=None, allow_loss=False, replace=False, max_bytes=0, queries=None, k=0,
         rtol=0.0, atol=0.0, numeric=None, **options):
    """Plans "hash", "verify", "convert", "stat", "diff" (two inputs) or "similar" (queries: words).
    Only headers are read. With `out`, parts write their receipts next to it; otherwise the receipts
    are passed to finish(). The other keywords are those of convert(), diff() and split()."""
    made = object.__new__(Job)
    made._take(_tenfold.job_plan({
        "job": job, "inputs": [_path(path) for path in _list(inputs)], "parts": parts,
        "out": _path(out), "format": format, "read_format": read_format, "lenient": lenient,
        "select": None if select is None else _list(select),
        "exclude": None if exclude is None else _list(exclude), "dtype": dtype,
        "allow_loss": bool(allow_loss), "replace": replace, "max_bytes": max_bytes,
        "queries": None if queries is None else _list(queries), "k": k, "rtol": float(rtol),
        "atol": float(atol), "numeric": bool(rtol or atol) if numeric is None else numeric,
        "options": options or None}))
    return made
