# SPDX-License-Identifier: MIT
"""The results of convert(), verify(), diff() and other functions."""
from typing import NamedTuple


class Item(NamedTuple):
    """One line of the plan of a save."""
    fate: str
    kind: str
    name: str
    reason: "str | None"


class Report(list):
    """The fate of each tensor, attribute and extra: a list of Items without the native ones.

    format    the format that was or would be written
    counts    {fate: number of items}
    lossless  True if no item was dropped or changed
    """

    def __init__(self, format, counts, items):
        super().__init__(Item(*item) for item in items)
        self.format = format
        self.counts = dict(zip(("native", "stashed", "transformed", "dropped"), counts))

    @property
    def lossless(self):
        return not (self.counts["transformed"] or self.counts["dropped"])

    def __repr__(self):
        text = ", ".join(f"{n} {fate}" for fate, n in self.counts.items() if n)
        return f"<tenfold.Report: {self.format}, {text or 'nothing'}>"

    def __reduce__(self):
        return Report, (self.format, tuple(self.counts.values()), [tuple(i) for i in self])


class Fetched(NamedTuple):
    """A file that fetch() downloaded, or found unchanged."""
    name: str
    bytes: int
    fetched: bool


class Problem(NamedTuple):
    """A problem that verify() found."""
    status: str
    offset: "int | None"
    message: str
    rule: "str | None"
    tensor: "str | None"


class Verification(NamedTuple):
    """The result of verify(); falsy when there are problems."""
    checked: int
    undigested: int
    problems: list
    values: dict

    def __bool__(self):
        return not self.problems


class Change(NamedTuple):
    """One difference of two files."""
    kind: str
    tensor: "str | None"
    key: "str | None"
    a: object
    b: object
    values: "dict | None"


class Difference(list):
    """The differences of two files: empty, and so falsy, when they are the same."""

    def __init__(self, same, counts, items):
        super().__init__(Change(*item) for item in items if item[0] != "order")
        self.same = same
        self.counts = counts

    def __repr__(self):
        return "<tenfold.Difference: the same>" if self.same else \
            f"<tenfold.Difference: {len(self)} differences>"

    def __bool__(self):
        return not self.same


class Statistics(NamedTuple):
    """The statistics of one tensor."""
    elements: int
    nan: int
    inf: int
    zero: int
    subnormal: int
    min: float
    max: float
    mean: float
    std: float
    bins: list
