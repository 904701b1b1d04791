# SPDX-License-Identifier: MIT
"""How the names of other packages write: as they do, but nothing is lost in silence."""
import warnings

from .. import LossWarning, convert


def written(file, path, format, allow_loss=None, **options):
    """Converts an open file. What is lost is told by a LossWarning with the report, since the
    package of that name would have said nothing at all; allow_loss=False refuses it, and with True
    the caller knows."""
    report = convert(file, path, format=format, replace=True, allow_loss=allow_loss is not False,
                     **options)
    # That norms are multiplied in was asked for.
    fates = ("dropped",) if options.get("unnormalize") else ("dropped", "transformed")
    lost = [item for item in report if item.fate in fates]
    if lost and allow_loss is None:
        first = f"{lost[0].kind} {lost[0].name!r}: {lost[0].reason}"
        more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
        warnings.warn(LossWarning(f"{format} does not keep everything: {first}{more}", report),
                      stacklevel=4)
    return report
